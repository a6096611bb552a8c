/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the bootstrap: sockets by text address, and connections that carry lines of JSON. */
#ifndef CCL_BOOT_PEER_H
#define CCL_BOOT_PEER_H

#include <jansson.h>
#include <stddef.h>
#include <sys/socket.h>

/* One connection: at rank 0 to each other rank (and to strangers that have not said who they are),
 * elsewhere to rank 0. */
struct boot_peer {
	int fd;   /* -1: none */
	int rank; /* -1: not known yet */
	size_t len;
	char *line; /* what has come and was not read, CCL_BOOT_MAX_LINE at most */
};

/* Calls fn (boot_bind or connect) with each socket address that unix:/PATH or tcp:HOST:PORT stands
 * for, until one succeeds: 0 and *fd. */
int boot_address(
	const char *address, int (*fn)(int fd, const struct sockaddr *sa, socklen_t len), int *fd);
int boot_bind(int fd, const struct sockaddr *sa, socklen_t len); /* and listens */

/* Bounds sending on a new connection. */
void boot_socket(int fd);
void boot_peer_close(struct boot_peer *peer);

int boot_send(struct boot_peer *peer, const json_t *object);

/* 1 and *object (a new reference) if a whole line has come, 0 if not, -errno if the peer is gone or
 * talks nonsense. Neither waits. A peeked line stays to be read. */
int boot_peek(struct boot_peer *peer, json_t **object);
int boot_read(struct boot_peer *peer, json_t **object);

/* The error that an object carries, or NULL. */
const char *boot_error(const json_t *object);

#endif
