/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a control socket is: a path, unix:PATH, or tcp:HOST:PORT ([V6]:PORT with brackets). */
#ifndef CTL_ADDRESS_H
#define CTL_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum { CTL_ADDRESS_STRLEN = 80 }; /* of ctl_tcp_format, with its terminator */

struct ctl_address {
	struct sockaddr_storage sa;
	socklen_t len;
	bool tcp;
};

/* 0, -ENAMETOOLONG (a path beyond sun_path, a host beyond 255), -EINVAL (no HOST:PORT),
 * -EADDRNOTAVAIL (a host name that is not known). Looks names up, which may take time. */
int ctl_address_parse(const char *text, struct ctl_address *address);

/* Several, with commas between them, to be tried in turn: item i into item. Its length, -ENOENT
 * (there are no more), -ENAMETOOLONG. */
int ctl_address_item(const char *list, unsigned i, char *item, size_t cap);

/* HOST:PORT, HOST being an address: names are refused with -EINVAL, as is every form of "any
 * address" (0.0.0.0, ::) with -EADDRNOTAVAIL: who listens must say in which network. Port 0: any.
 */
int ctl_listen_parse(const char *text, struct ctl_address *address);

/* tcp:ADDRESS:PORT */
void ctl_tcp_format(const struct ctl_address *address, char *text, size_t cap);

/* For a TCP connection of either side: requests go out at once, and a peer whose machine is gone is
 * noticed within a minute. */
void ctl_tcp_options(int fd);

/* On top of that, where a connection is a sign of life: about gone_ms after the last of a peer
 * whose machine is gone the connection ends (probes each third, a second at least). */
void ctl_tcp_watch(int fd, unsigned gone_ms);

#endif
