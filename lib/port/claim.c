/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/port/claim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/ctl/lock.h"
#include "lib/port/internal.h"

enum { PATH_LEN = 108, LINE_LEN = 512, ACCEPTS = 0x10000 };

static struct claim {
	struct claim *next;
	unsigned refs;
	int fd;
	char path[PATH_LEN];
} * claims;

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

static void let_go(const char *path, int fd)
{
	char file[CTL_LOCK_STRLEN];

	ctl_lock_name(file, path);
	ctl_lock_leave(file, fd);
}

int port_socket_claim(const char *path, char err[PORT_ERR_LEN])
{
	struct claim *c = find(path);
	char file[CTL_LOCK_STRLEN];
	struct stat st;
	int fd;

	if (c != NULL) {
		c->refs++;
		return 0;
	}
	ctl_lock_name(file, path);
	fd = ctl_lock_take(file);
	if (fd == -EWOULDBLOCK)
		return in_use(path, ctl_lock_owner(file), err);
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
