/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { LINE_LEN = 512 };

void ctl_lock_name(char file[CTL_LOCK_STRLEN], const char *path)
{
	snprintf(file, CTL_LOCK_STRLEN, "%.107s.lock", path);
}

/* Is this file descriptor still what the name stands for? Whoever lets go removes the file. */
static bool is_current(int fd, const char *file)
{
	struct stat opened, named;

	return fstat(fd, &opened) == 0 && stat(file, &named) == 0 &&
	       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* Creates only what is not there: in /tmp not even root may "create" somebody else's file
 * (fs.protected_regular). */
static int open_file(const char *file)
{
	enum { FLAGS = O_RDWR | O_CLOEXEC | O_NOFOLLOW };
	int fd;

	do {
		fd = open(file, FLAGS);
		if (fd < 0 && errno == ENOENT)
			fd = open(file, FLAGS | O_CREAT | O_EXCL, 0600);
	} while (fd < 0 && errno == EEXIST);
	return fd < 0 ? -errno : fd;
}

/* Begins anew for each process that let go in between. */
int ctl_lock_take(const char *file)
{
	for (;;) {
		const int fd = open_file(file);

		if (fd < 0)
			return fd;
		if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
			const int error = errno;

			close(fd);
			return -error;
		}
		if (is_current(fd, file))
			return fd;
		close(fd);
	}
}

/* Closing is what gives the lock away; the name goes before, while nobody else can have it. */
void ctl_lock_leave(const char *file, int fd)
{
	if (is_current(fd, file))
		unlink(file);
	close(fd);
}

pid_t ctl_lock_owner(const char *file)
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
