/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process has a port. A port is described by a file, and one process at a time has a lock
 * (flock) on that file: it goes with the process, however that ends. A process that only keeps a
 * port for others (apps/incline-netd) listens beside the file for one who wants it. */
#ifndef VERBS_CLAIM_H
#define VERBS_CLAIM_H

#include <sys/types.h>

#include "lib/verbs/config.h"

enum { IV_MAX_PORTS = 64 };

/* The files that the text in INCLINE_RNIC names: a file, all *.json of a directory, a pattern of
 * glob(7), or several of them with colons between, in the order of the text, names of one directory
 * or pattern in alphabetical order. At most IV_MAX_PORTS. paths[i] are the caller's to free.
 * Returns their number, > 0, or -errno with the reason in err and nothing to free. */
int iv_claim_paths(const char *text, char *paths[IV_MAX_PORTS], char err[IV_CONFIG_ERR]);

/* The lock on a port's file: a file descriptor to be closed to give it back, or -errno: -EBUSY if
 * another process has it. A keeper is asked and given ten seconds to let go, for on a crowded
 * machine it may not run for some. */
int iv_claim(const char *path);
/* The process that has the lock, or 0 if there is none or it cannot be told. */
pid_t iv_claim_owner(const char *path);

/* The keeper's side: a socket on which a datagram arrives when somebody wants the port; it is
 * closed with iv_claim_keeper_close. -errno. */
int iv_claim_keeper(const char *path);
void iv_claim_keeper_close(int fd, const char *path);

#endif
