/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/port/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/port/internal.h"

enum { PATH_LEN = 108, FILE_LEN = PATH_LEN + 8, LINE_LEN = 512, ACCEPTS = 0x10000 };

static struct claim {
	struct claim *next;
	unsigned refs;
	int fd;
	char path[PATH_LEN];
} * claims;

pid_t port_flock_owner(const char *file)
{
	unsigned long inode;
	unsigned maj, min;
	pid_t pid = 0, found = 0;
	char line[LINE_LEN];
	struct stat st;
	FILE *f;

	if (stat(file, &st) != 0)
		return 0;
	f = fopen("/proc/locks", "re");
	while (f != NULL && found == 0 && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*u: FLOCK ADVISORY WRITE %d %x:%x:%lu", &pid, &maj, &min,
			    &inode) == 4 &&
			maj == major(st.st_dev) && min == minor(st.st_dev) && inode == st.st_ino)
			found = pid;
	}
	if (f != NULL)
		fclose(f);
	return found;
}

/* Is this file descriptor still what the name stands for? Whoever lets go removes the file. */
static bool is_current(int fd, const char *file)
{
	struct stat opened, named;

	return fstat(fd, &opened) == 0 && stat(file, &named) == 0 &&
	       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* The lock, or -errno. Begins anew for each process that let go in between. */
static int take_lock(const char *file)
{
	for (;;) {
		int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), error;

		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
			error = errno;
			close(fd);
			return -error;
		}
		if (is_current(fd, file))
			return fd;
		close(fd);
	}
}

/* Does a program without a lock listen there? The kernel's list says so without disturbing it. */
static bool is_listening(const char *path)
{
	size_t len = strlen(path);
	char line[LINE_LEN];
	FILE *f = fopen("/proc/net/unix", "re");
	bool found = false;

	while (f != NULL && !found && fgets(line, sizeof(line), f)) {
		size_t n = strcspn(line, "\n");
		unsigned flags = 0;

		line[n] = '\0';
		found = n > len && line[n - len - 1] == ' ' && strcmp(line + n - len, path) == 0 &&
			sscanf(line, "%*x: %*x %*x %x", &flags) == 1 && (flags & ACCEPTS);
	}
	if (f != NULL)
		fclose(f);
	return found;
}

static int in_use(const char *path, pid_t pid, char err[PORT_ERR_LEN])
{
	char who[32] = "";

	if (pid > 0)
		snprintf(who, sizeof(who), " (PID %d)", (int)pid);
	snprintf(err, PORT_ERR_LEN, "socket: another process%s serves %s", who, path);
	return -EADDRINUSE;
}

static struct claim *find(const char *path)
{
	struct claim *c = claims;

	while (c != NULL && strcmp(c->path, path) != 0)
		c = c->next;
	return c;
}

static void lock_file(char file[FILE_LEN], const char *path)
{
	snprintf(file, FILE_LEN, "%.107s.lock", path);
}

/* Closing is what gives the lock away; the name goes before, while nobody else can have it. */
static void let_go(const char *path, int fd)
{
	char file[FILE_LEN];

	lock_file(file, path);
	unlink(file);
	close(fd);
}

int port_socket_claim(const char *path, char err[PORT_ERR_LEN])
{
	struct claim *c = find(path);
	char file[FILE_LEN];
	struct stat st;
	int fd;

	if (c != NULL) {
		c->refs++;
		return 0;
	}
	lock_file(file, path);
	fd = take_lock(file);
	if (fd == -EWOULDBLOCK)
		return in_use(path, port_flock_owner(file), err);
	if (fd < 0) {
		snprintf(err, PORT_ERR_LEN, "socket: cannot make %s: %s", file, strerror(-fd));
		return fd;
	}
	if (is_listening(path)) {
		let_go(path, fd);
		return in_use(path, 0, err);
	}
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		unlink(path);
	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		let_go(path, fd);
		snprintf(err, PORT_ERR_LEN, "socket: no memory");
		return -ENOMEM;
	}
	*c = (struct claim){.next = claims, .refs = 1, .fd = fd};
	snprintf(c->path, sizeof(c->path), "%s", path);
	claims = c;
	return 0;
}

void port_socket_release(const char *path)
{
	struct claim *c = find(path), **at = &claims;

	if (c == NULL || --c->refs > 0)
		return;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	let_go(path, c->fd);
	free(c);
}
