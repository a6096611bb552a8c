/* SPDX-License-Identifier: BSD-3-Clause */
/* The listening side of a control socket: one libevent loop over listening sockets and their
 * connections, lines in, lines out. A client can take no more than its share: the length of a line,
 * the time for one, the requests per turn and the bytes of answers that wait for it are bounded. It
 * knows nothing of what lines say. One thread. */
#ifndef CTL_SERVER_H
#define CTL_SERVER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/ctl/who.h"

struct event_base;
struct ssl_ctx_st;

/* What a connection may claim beside a place among others. */
enum ctl_hold {
	CTL_HOLD_NOTHING,
	CTL_HOLD_LISTENS, /* may be silent: it waits to be told */
	CTL_HOLD_PLACE,   /* that too, and is not turned out for somebody else */
};

struct ctl_server_ops {
	size_t peer_bytes;          /* kept of a connection, zero at first */
	uint64_t (*now)(void *arg); /* nanoseconds of a monotonic clock */
	/* Somebody has come (with TLS: and has shown who he is); has gone, or is turned out. */
	void (*come)(void *arg, void *peer, const struct ctl_who *who);
	void (*gone)(void *arg, void *peer);
	enum ctl_hold (*holds)(void *arg, const void *peer);
	/* A line of len bytes, without newline; the answer, likewise, to be freed, or NULL. */
	char *(*line)(void *arg, void *peer, const char *line, size_t len);
	/* What is to be told unasked, one line at a time; NULL: nothing now. Asked with each tick.
	 */
	char *(*unasked)(void *arg, void *peer);
	void (*tick)(void *arg, uint64_t now); /* about every 100 ms */
};

struct ctl_server_limits {
	/* Times in ms that a client may take before it is closed. Time in which the server itself
	 * did not run does not count. */
	unsigned line_ms;  /* for a line to be finished; 0: 10 s */
	unsigned stall_ms; /* for none of the answers to be taken; 0: 10 s */
	unsigned idle_ms;  /* between requests, of those that hold nothing */
	unsigned gone_ms;  /* without a sign of a TCP client's machine; 0: a minute */
	/* At a time; three of four of them may be TCP's. 0: 512. */
	unsigned clients;
	/* TCP connections are TLS with what is there when they come (ctl_tls_open); NULL: as they
	 * are. A handshake has line_ms. */
	struct ssl_ctx_st *const *tls;
};

/* Serves at n listening descriptors, which are closed at the end, until *stop is set. base: as made
 * by the caller, who may have events of its own there, and frees it. 0 or -errno. */
int ctl_serve(const struct ctl_server_ops *ops, void *arg, struct event_base *base, const int *fd,
	unsigned n, volatile sig_atomic_t *stop, const struct ctl_server_limits *limits);

#endif
