/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/sockets: what libc's functions, as programs call them, have in common. Each is defined
 * under its own name (EXPORT) in a file for what it is about; what is not a stream socket of the
 * device goes on to libc unchanged. */
#ifndef SOCKETS_EXPORTS_H
#define SOCKETS_EXPORTS_H

#include <errno.h>

#include "lib/sockets/sockets.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- exports.c ---- */

/* What a call returns: err, or -1 with errno if it is a negative one. */
int sockets_result(int err);
/* The socket, with the lock and a reference; NULL with errno 0: not ours. */
struct sock *sockets_get(int fd);
void sockets_put(struct sock *s);
bool sockets_nonblocking(const struct sock *s, int flags);
/* Until the socket can be read or written; ns 0: for ever. Lets go of the lock meanwhile. -EAGAIN
 * when the time is over, -EINTR. A thread that is cancelled in it has left the call: no buffer of
 * its own is posted, lock and reference are given back. */
int sockets_wait(struct sock *s, bool write, uint64_t ns);
/* Lets others have the lock for a moment; cancelled as in sockets_wait. */
void sockets_yield(struct sock *s);
/* SO_RCVTIMEO or SO_SNDTIMEO of a kernel's socket, in ns; 0: none. */
uint64_t sockets_timeout(int fd, int option);

/* Ours, or libc's with the program's errno untouched. */
#define OURS(s, fd, real)                 \
	const int errno_ = errno;         \
	struct sock *s = sockets_get(fd); \
	if ((s) == NULL) {                \
		if (errno != 0)           \
			return -1;        \
		errno = errno_;           \
		return real;              \
	}                                 \
	errno = errno_

#endif
