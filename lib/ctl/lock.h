/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process serves a UNIX socket, or has any other thing that a file stands for: the one that
 * has the lock (flock) of that file. It goes with the process, however that ends, and asking for it
 * does not disturb who has it, as a connection would. A file that a killed process left is no
 * hindrance.
 *
 * Who removes the file has a second lock of it meanwhile (of the other kind, fcntl's), so that it
 * is the file he means: of several that want the same owner away the first has his way, and who has
 * the lock by then keeps it. */
#ifndef CTL_LOCK_H
#define CTL_LOCK_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

/* The lock of what has this path is that of PATH.lock. */
enum { CTL_LOCK_STRLEN = 128 };
void ctl_lock_name(char file[CTL_LOCK_STRLEN], const char *path);

/* Makes the file (mode 0600) if there is none; its time of modification is when the lock was taken.
 * Its descriptor, which is the lock; -EWOULDBLOCK: somebody has it; or another -errno. */
int ctl_lock_take(const char *file);
/* Is the file still that of this lock? Then it stays so until the descriptor is closed. */
bool ctl_lock_stays(const char *file, int fd);
/* Removes the file, unless somebody else has put another there since, and gives the lock away. */
void ctl_lock_leave(const char *file, int fd);
/* The process that has the lock, or 0 if there is none or it cannot be told. */
pid_t ctl_lock_owner(const char *file);

/* Who has the lock, or had it last. */
struct ctl_lock_holder {
	int fd; /* -1: there was no file */
	struct timespec since;
};
/* 0 or -errno. To be forgotten in either case. */
int ctl_lock_look(const char *file, struct ctl_lock_holder *holder);
/* Has nobody taken the lock since, or removed the file? Then nobody does until he is forgotten. */
bool ctl_lock_unchanged(const char *file, const struct ctl_lock_holder *holder);
void ctl_lock_forget(struct ctl_lock_holder *holder);

#endif
