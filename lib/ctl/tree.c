/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int path_of(char path[PATH_MAX], const char *root, const char *fmt, va_list ap)
{
	const int at = snprintf(path, PATH_MAX, "%s", root);

	if (at >= PATH_MAX ||
		vsnprintf(path + at, (size_t)(PATH_MAX - at), fmt, ap) >= PATH_MAX - at)
		return -ENAMETOOLONG;
	return 0;
}

static void clean(char *text)
{
	for (; *text; text++)
		if (*text != '\n' && *text != '\t' && (*text < ' ' || *text > '~'))
			*text = '?';
}

static int read_file(const char *path, char *buf, size_t cap)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	size_t len = 0;
	ssize_t n = 0;
	int rc = 0;

	buf[0] = '\0';
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		rc = -errno;
	else if (!S_ISREG(st.st_mode))
		rc = -EINVAL;
	while (!rc && len < cap - 1 && (n = read(fd, buf + len, cap - 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		rc = -errno;
	close(fd);
	for (size_t i = 0; i < len; i++)
		buf[i] = buf[i] ? buf[i] : '?';
	buf[rc ? 0 : len] = '\0';
	clean(buf);
	return rc;
}

static int read_at(const char *root, char *buf, size_t cap, const char *fmt, va_list ap)
{
	char path[PATH_MAX];
	const int rc = path_of(path, root, fmt, ap);

	buf[0] = '\0';
	return rc ? rc : read_file(path, buf, cap);
}

int tree_text(const char *root, char *buf, size_t cap, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	const int rc = read_at(root, buf, cap, fmt, ap);
	va_end(ap);
	return rc;
}

int tree_line(const char *root, char *buf, size_t cap, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	const int rc = read_at(root, buf, cap, fmt, ap);
	va_end(ap);
	buf[strcspn(buf, "\n")] = '\0';
	return rc;
}

int tree_number(const char *root, int64_t *n, const char *fmt, ...)
{
	char text[32], *end;
	va_list ap;

	va_start(ap, fmt);
	const int rc = read_at(root, text, sizeof(text), fmt, ap);
	va_end(ap);
	if (rc)
		return rc;
	errno = 0;
	const int64_t value = strtoll(text, &end, 0);
	if (errno || end == text || (*end && *end != '\n'))
		return -EINVAL;
	*n = value;
	return 0;
}

int tree_link(const char *root, char *buf, size_t cap, const char *fmt, ...)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *last;
	va_list ap;

	buf[0] = '\0';
	va_start(ap, fmt);
	int rc = path_of(path, root, fmt, ap);
	va_end(ap);
	if (rc)
		return rc;
	const ssize_t n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	last = strrchr(target, '/');
	snprintf(buf, cap, "%s", last ? last + 1 : target);
	clean(buf);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

int tree_names(const char *root, char (*names)[TREE_NAME], size_t max, const char *fmt, ...)
{
	char path[PATH_MAX];
	const struct dirent *d;
	size_t n = 0;
	va_list ap;

	va_start(ap, fmt);
	int rc = path_of(path, root, fmt, ap);
	va_end(ap);
	if (rc)
		return rc;
	DIR *dir = opendir(path);
	if (!dir)
		return -errno;
	while (n < max && (d = readdir(dir)) != NULL) {
		if (d->d_name[0] == '.' || strlen(d->d_name) >= TREE_NAME)
			continue;
		snprintf(names[n], TREE_NAME, "%.*s", TREE_NAME - 1, d->d_name);
		clean(names[n++]);
	}
	closedir(dir);
	qsort(names, n, TREE_NAME, by_name);
	return (int)n;
}

bool tree_has(const char *root, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	int rc = path_of(path, root, fmt, ap);
	va_end(ap);
	return !rc && access(path, F_OK) == 0;
}

/* ---- what is in them ---- */

bool tree_in_list(const char *list, int64_t n)
{
	while (*list) {
		char *end;
		const int64_t first = strtoll(list, &end, 10);
		int64_t last = first;

		if (end == list)
			return false;
		if (*end == '-') {
			list = end + 1;
			last = strtoll(list, &end, 10);
			if (end == list)
				return false;
		}
		if (n >= first && n <= last)
			return true;
		if (*end != ',')
			return false;
		list = end + 1;
	}
	return false;
}

bool tree_has_word(const char *text, const char *word)
{
	const size_t len = strlen(word);

	for (const char *at = text; (at = strstr(at, word)) != NULL; at += len)
		if ((at == text || strchr(" \n\t", at[-1])) && strchr(" \n\t", at[len]))
			return true;
	return false;
}
