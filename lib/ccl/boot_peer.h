/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the bootstrap: sockets by text address, and connections that carry lines of JSON. */
#ifndef CCL_BOOT_PEER_H
#define CCL_BOOT_PEER_H

#include <jansson.h>
#include <stddef.h>
#include <sys/socket.h>

#include "lib/ccl/boot.h"

/* One connection: at rank 0 to each other rank (and to strangers that have not said who they are),
 * elsewhere to rank 0. */
struct boot_peer {
	int fd;                /* -1: none */
	int rank;              /* -1: not known yet */
	size_t len, cap, seen; /* seen: bytes without the end of a line, or up to the first */
	char *line;            /* what has come and was not read */
};

struct ccl_boot {
	char address[160];
	unsigned rank, n_ranks;
	unsigned timeout_ms;
	int listener;   /* rank 0, until everybody has come */
	char path[108]; /* of the UNIX listener, to be removed */
	unsigned n_peers;
	struct boot_peer *peer; /* those with fd < 0 are unused */
};

/* How long a line may be before its sender has said which rank it is; then CCL_BOOT_MAX_LINE. */
enum { BOOT_STRANGERS_LINE = 65536 };

/* Calls fn (boot_bind or connect) with each socket address that unix:/PATH or tcp:HOST:PORT stands
 * for, until one succeeds: 0 and *fd. */
int boot_address(
	const char *address, int (*fn)(int fd, const struct sockaddr *sa, socklen_t len), int *fd);
int boot_bind(int fd, const struct sockaddr *sa, socklen_t len); /* and listens */

/* Bounds sending on a new connection. */
void boot_socket(int fd);
void boot_peer_close(struct boot_peer *peer);

/* -EMSGSIZE: it is too long, and nothing was sent; -ECONNABORTED: the peer is gone. */
int boot_send(struct boot_peer *peer, const json_t *object);
/* The same of a line for several: what boot_line makes of an object (malloc; NULL: no memory). */
int boot_send_line(struct boot_peer *peer, const char *line, size_t len);
char *boot_line(const json_t *object, size_t *len);

/* 1 and *object (a new reference) if a whole line has come, 0 if not, -errno if the peer is gone or
 * talks nonsense, -EMSGSIZE if its line is too long. Neither waits. A peeked line stays to be read.
 */
int boot_peek(struct boot_peer *peer, json_t **object);
int boot_read(struct boot_peer *peer, json_t **object);

/* Its connection; NULL: it has none (any more), or has not said who it is. */
struct boot_peer *boot_peer_of(struct ccl_boot *boot, unsigned rank);

/* Return rc, with a sentence in err; boot_too_long -EMSGSIZE, of somebody's ("rank 0's") line. */
int __attribute__((format(printf, 3, 4))) boot_fail(char *err, int rc, const char *fmt, ...);
int boot_too_long(char *err, const char *whose, size_t len);

/* The error that an object carries, or NULL. */
const char *boot_error(const json_t *object);

#endif
