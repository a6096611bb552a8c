/* SPDX-License-Identifier: BSD-3-Clause */
/* How a client of a control socket reaches its server: stream connections and a clock. By default
 * ctl_sockets; a simulation brings streams of its own on virtual time (lib/sim/control.c). */
#ifndef CTL_CLIENT_IO_H
#define CTL_CLIENT_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ctl_io {
	void *arg; /* given to all of them */
	int64_t (*now_ms)(void *arg);
	void (*sleep_ms)(void *arg, unsigned ms);
	/* One try: a connection's number, from 0 on, or -errno as of connect(2); deadlines are
	 * times of now_ms. */
	int (*open)(void *arg, const char *path, int64_t deadline);
	/* The same in two steps, for who has no time to wait. begin: a connection's number, from 0
	 * on, that is under way, or -errno; looks names up, which may take time. ready: 0 as soon
	 * as it can be used; -ETIMEDOUT: not by the deadline, and may be asked again; or another
	 * errno, and it is only to be closed. Both NULL: open is all that there is. */
	int (*begin)(void *arg, const char *path);
	int (*ready)(void *arg, int conn, int64_t deadline);
	void (*close)(void *arg, int conn);
	/* Some bytes, 1 at least; -ETIMEDOUT at the deadline, or another errno. receive: 0 if the
	 * peer has closed. */
	ssize_t (*send)(void *arg, int conn, const char *buf, size_t len, int64_t deadline);
	/* As far as is known: the peer has not closed it, it has not broken. */
	bool (*is_open)(void *arg, int conn);
	ssize_t (*receive)(void *arg, int conn, char *buf, size_t cap, int64_t deadline);
};

extern const struct ctl_io ctl_sockets;

#endif
