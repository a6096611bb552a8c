/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a server listens: a UNIX socket, and TCP if its configuration names an address. Who listens
 * at a UNIX socket has the lock of PATH.lock (lock.h): of two that start at once one gets it, and
 * only that one removes what a killed server left. */
#ifndef CTL_LISTEN_H
#define CTL_LISTEN_H

#include <stdbool.h>
#include <sys/stat.h>

#include "lib/ctl/address.h"
#include "lib/ctl/lock.h"

enum { CTL_MAX_LISTENERS = 2, CTL_LISTEN_STRLEN = 128 };

/* A UNIX socket that this process listens at; what ctl_unlisten wants at the end. */
struct ctl_place {
	bool held;
	int lock;
	struct stat socket;
};

/* The UNIX socket, then the TCP one if there is to be one (tcp may be NULL; name becomes where that
 * really is). How many, or -errno after a line on stderr: -EADDRINUSE if another process has the
 * lock, which is not disturbed, or listens there without one. */
int ctl_listen(const char *path, const char *tcp, int fd[CTL_MAX_LISTENERS],
	char name[CTL_ADDRESS_STRLEN], struct ctl_place *place);
/* Removes our socket and the lock's file, but not those that somebody else has put there since. The
 * descriptors are the caller's. Nothing if the place is not held. */
void ctl_unlisten(const char *path, struct ctl_place *place);
/* Who has the socket's lock: for ctl_push_aside. As ctl_lock_look. */
int ctl_look(const char *path, struct ctl_lock_holder *holder);
/* Takes the socket and its lock from him, or from who listens there without one, and does not ask:
 * for who knows that he hangs. Whoever has got the lock since he was looked at keeps both:
 * -EWOULDBLOCK; or another -errno. */
int ctl_push_aside(const char *path, const struct ctl_lock_holder *holder);

/* A socket for pages over HTTP (http.h): at unix:PATH, or ADDRESS:PORT. A descriptor, and a line on
 * stderr that says where that really is; or -errno after another line. */
int ctl_listen_pages(const char *where, struct ctl_place *place);
/* where may be NULL. */
void ctl_unlisten_one(const char *where, struct ctl_place *place);
/* Whether a value is of that form, as ctl_listen_check. */
int ctl_listen_check_one(const char *field, const char *where, char *err, size_t cap);

/* What a table of fields cannot tell of the field that has tcp (NULL: it is absent): whether that
 * is an address to listen at. -EINVAL with a reason in err. */
int ctl_listen_check(const char *field, const char *tcp, char *err, size_t cap);

/* Whether this process may have so many descriptors at a time; look: only that, else it may from
 * now on. -EMFILE with a reason in err, which says what the configuration calls it. */
int ctl_descriptors(const char *field, unsigned n, bool look, char *err, size_t cap);

#endif
