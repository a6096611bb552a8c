/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a server listens: a UNIX socket, and TCP if its configuration names an address. */
#ifndef CTL_LISTEN_H
#define CTL_LISTEN_H

#include <stdbool.h>
#include <sys/stat.h>

#include "lib/ctl/address.h"

enum { CTL_MAX_LISTENERS = 2, CTL_LISTEN_STRLEN = 128 };

/* The UNIX socket, then the TCP one if there is to be one (tcp may be NULL; name becomes where that
 * really is). How many, or -errno after a line on stderr. */
int ctl_listen(const char *path, const char *tcp, int fd[CTL_MAX_LISTENERS],
	char name[CTL_ADDRESS_STRLEN]);

/* One more socket: unix:PATH, or ADDRESS:PORT, whose real form becomes name. A descriptor, or
 * -errno after a line on stderr, in which field is what the configuration calls it. */
int ctl_listen_one(const char *field, const char *where, char name[CTL_LISTEN_STRLEN]);
/* The same for pages over HTTP (http.h): says on stderr where they are served. *ours is what
 * ctl_unlisten_one wants at the end; where may be NULL then. */
int ctl_listen_pages(const char *where, struct stat *ours);
void ctl_unlisten_one(const char *where, const struct stat *ours);
/* Whether a value is of that form, as ctl_listen_check. */
int ctl_listen_check_one(const char *field, const char *where, char *err, size_t cap);

/* What a table of fields cannot tell of the field that has tcp (NULL: it is absent): whether that
 * is an address to listen at. -EINVAL with a reason in err. */
int ctl_listen_check(const char *field, const char *tcp, char *err, size_t cap);

/* Whether this process may have so many descriptors at a time; look: only that, else it may from
 * now on. -EMFILE with a reason in err, which says what the configuration calls it. */
int ctl_descriptors(const char *field, unsigned n, bool look, char *err, size_t cap);

/* Removes our socket, but not one that somebody else has put there since. */
void ctl_unlisten(const char *path, const struct stat *ours);

#endif
