/* SPDX-License-Identifier: BSD-3-Clause */
/* Who has a file's lock, by what the kernel says of its locks. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/ctl/lock.h"

enum { LINE_LEN = 512, PATH_LEN = 64 };

/* A file as the kernel's lists of locks name it. */
struct identity {
	unsigned maj, min;
	unsigned long inode;
};

/* The device of the file system that is mounted there: a file of an overlay, or of a subvolume, has
 * another one for stat. */
static bool device_of_mount(int mount, struct identity *id)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t cap = 0;
	bool found = false;
	int this;

	while (f && !found && getline(&line, &cap, f) > 0)
		found = sscanf(line, "%d %*d %u:%u", &this, &id->maj, &id->min) == 3 &&
			this == mount;
	free(line);
	if (f)
		fclose(f);
	return found;
}

static bool identify(int fd, struct identity *id)
{
	char path[PATH_LEN], line[LINE_LEN];
	int mount = -1;
	struct stat st;
	FILE *f;

	if (fstat(fd, &st) != 0)
		return false;
	id->inode = st.st_ino;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "mnt_id: %d", &mount);
	if (f)
		fclose(f);
	return mount >= 0 && device_of_mount(mount, id);
}

/* The process that has such a lock by this list, 0: none. */
static pid_t in_list(FILE *f, const char *format, const struct identity *wanted)
{
	struct identity id;
	char line[LINE_LEN];
	pid_t pid;

	while (fgets(line, sizeof(line), f))
		if (sscanf(line, format, &pid, &id.maj, &id.min, &id.inode) == 4 &&
			id.maj == wanted->maj && id.min == wanted->min && id.inode == wanted->inode)
			return pid;
	return 0;
}

static bool has_lock(const char *path, const struct identity *id)
{
	FILE *f = fopen(path, "re");
	const bool has = f && in_list(f, "lock: %*u: FLOCK ADVISORY WRITE %d %x:%x:%lu", id) != 0;

	if (f)
		fclose(f);
	return has;
}

/* The list has who took the lock: he may have ended since, and left it to a child; then his number
 * is nobody's, or somebody else's. Another user's descriptors are not shown: he is believed. */
static bool still_has(pid_t pid, const struct identity *id)
{
	char path[PATH_LEN + sizeof(((struct dirent *)0)->d_name)];
	const struct dirent *d;
	bool has = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	dir = opendir(path);
	if (!dir)
		return errno == EACCES || errno == EPERM;
	while (!has && (d = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)pid, d->d_name);
		has = d->d_name[0] != '.' && has_lock(path, id);
	}
	closedir(dir);
	return has;
}

pid_t ctl_lock_owner(const char *file)
{
	const int fd = open(file, O_PATH | O_CLOEXEC);
	struct identity id;
	pid_t pid = 0;
	FILE *f;

	if (fd < 0)
		return 0;
	f = identify(fd, &id) ? fopen("/proc/locks", "re") : NULL;
	if (f) {
		pid = in_list(f, "%*u: FLOCK ADVISORY WRITE %d %x:%x:%lu", &id);
		fclose(f);
	}
	close(fd);
	return pid > 0 && still_has(pid, &id) ? pid : 0;
}
