/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FLAGS = O_RDWR | O_CLOEXEC | O_NOFOLLOW, STEP_MS = 1, STOPPED_MS = 2000 };

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

/* The second lock, which goes with the descriptor too. Nobody has it for longer than it takes to
 * look at the file and to remove it: from who was stopped there it is not waited for, and where a
 * file system has none, all is as without. */
static void hold_name(int fd, short type)
{
	const struct timespec step = {.tv_nsec = STEP_MS * 1000000l};
	struct flock all = {.l_type = type, .l_whence = SEEK_SET};

	for (unsigned ms = 0; fcntl(fd, F_OFD_SETLK, &all) != 0 && ms < STOPPED_MS; ms += STEP_MS) {
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return;
		nanosleep(&step, NULL);
	}
}

/* Creates only what is not there: in /tmp not even root may "create" somebody else's file
 * (fs.protected_regular). */
static int open_file(const char *file)
{
	int fd;

	do {
		fd = open(file, FLAGS);
		if (fd < 0 && errno == ENOENT)
			fd = open(file, FLAGS | O_CREAT | O_EXCL, 0600);
	} while (fd < 0 && errno == EEXIST);
	return fd < 0 ? -errno : fd;
}

/* Says in the file that it has another owner, unless its name has gone. */
static bool sign(int fd, const char *file)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
	bool current;

	hold_name(fd, F_WRLCK);
	current = is_current(fd, file);
	/* What the kernel itself would write is as coarse as its clock's tick. */
	if (current && clock_gettime(CLOCK_REALTIME, &times[1]) == 0)
		(void)!futimens(fd, times);
	hold_name(fd, F_UNLCK);
	return current;
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
		if (sign(fd, file))
			return fd;
		close(fd);
	}
}

bool ctl_lock_stays(const char *file, int fd)
{
	hold_name(fd, F_WRLCK);
	return is_current(fd, file);
}

/* Closing is what gives the lock away; the name goes before, while nobody else can have it. */
void ctl_lock_leave(const char *file, int fd)
{
	if (ctl_lock_stays(file, fd))
		unlink(file);
	close(fd);
}

int ctl_lock_look(const char *file, struct ctl_lock_holder *holder)
{
	struct stat st;

	*holder = (struct ctl_lock_holder){.fd = open(file, FLAGS)};
	if (holder->fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(holder->fd, &st) != 0)
		return -errno;
	holder->since = st.st_mtim;
	return 0;
}

bool ctl_lock_unchanged(const char *file, const struct ctl_lock_holder *holder)
{
	struct stat st;

	return holder->fd >= 0 && ctl_lock_stays(file, holder->fd) && fstat(holder->fd, &st) == 0 &&
	       st.st_mtim.tv_sec == holder->since.tv_sec &&
	       st.st_mtim.tv_nsec == holder->since.tv_nsec;
}

void ctl_lock_forget(struct ctl_lock_holder *holder)
{
	if (holder->fd >= 0)
		close(holder->fd);
	holder->fd = -1;
}
