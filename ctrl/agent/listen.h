/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the agent listens: a UNIX socket, and TCP if the configuration names an address. */
#ifndef AGENT_LISTEN_H
#define AGENT_LISTEN_H

#include <sys/stat.h>

#include "lib/ctl/address.h"

enum { MAX_LISTENERS = 2 };

/* The UNIX socket, then the TCP one if there is to be one (tcp may be NULL; name becomes where that
 * really is). How many, or -errno after a line on stderr. */
int agent_listen(
	const char *path, const char *tcp, int fd[MAX_LISTENERS], char name[CTL_ADDRESS_STRLEN]);

/* Removes our socket, but not one that somebody else has put there since. */
void agent_unlisten(const char *path, const struct stat *ours);

#endif
