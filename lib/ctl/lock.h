/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process serves a UNIX socket, or has any other thing that a file stands for: the one that
 * has the lock (flock) of that file. It goes with the process, however that ends, and asking for it
 * does not disturb who has it, as a connection would. A file that a killed process left is no
 * hindrance. */
#ifndef CTL_LOCK_H
#define CTL_LOCK_H

#include <sys/types.h>

/* The lock of what has this path is that of PATH.lock. */
enum { CTL_LOCK_STRLEN = 128 };
void ctl_lock_name(char file[CTL_LOCK_STRLEN], const char *path);

/* Makes the file (mode 0600) if there is none. Its descriptor, which is the lock; -EWOULDBLOCK:
 * somebody has it; or another -errno. */
int ctl_lock_take(const char *file);
/* Removes the file, unless somebody else has put another there since, and gives the lock away. */
void ctl_lock_leave(const char *file, int fd);
/* The process that has the lock, or 0 if there is none or it cannot be told. */
pid_t ctl_lock_owner(const char *file);

#endif
