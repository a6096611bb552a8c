/* SPDX-License-Identifier: BSD-3-Clause */
/* The manager's connections to switches' control sockets, one each: dialled until it is there, and
 * again when it has gone (redial.h says how soon). With certificates those to tcp: addresses are
 * TLS, and only who shows a switch's is spoken to. All in the loop's thread. */
#ifndef MANAGER_DIAL_H
#define MANAGER_DIAL_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctrl/manager/manager.h"

struct event_base;
struct manager_dial;

/* What it does, of switch i. */
struct manager_dial_io {
	void *arg;
	/* Where its control socket is; stays as it is. */
	const char *(*control)(void *arg, unsigned i);
	/* A connection is there. It is not any more, or could not be made; dead: nobody listens. */
	void (*up)(void *arg, unsigned i);
	void (*down)(void *arg, unsigned i, bool dead);
	/* A line. true: on this connection a switch has answered. */
	bool (*heard)(void *arg, unsigned i, const char *line, size_t len);
	void (*say)(void *arg, enum journal_level level, const char *line);
};

/* base: may be NULL of one that never dials. certificates: as they are when it dials; NULL there:
 * no TLS. -EINVAL (an address), -ENOMEM, or a resolver's, with a reason in err that names the
 * field. */
int manager_dial_open(struct event_base *base, SSL_CTX *const *certificates, unsigned n,
	const struct manager_dial_io *io, struct manager_dial **out, char err[MANAGER_ERR_LEN]);
void manager_dial_close(struct manager_dial *d); /* may be NULL; calls nothing */

/* About every 100 ms. How many it has dialled. */
unsigned manager_dial_tick(struct manager_dial *d, uint64_t now);
/* A line, without newline: nowhere if there is no connection, or too much waits for it. */
void manager_dial_send(struct manager_dial *d, unsigned i, const char *line);
/* Hangs up, and dials again. */
void manager_dial_drop(struct manager_dial *d, unsigned i);
/* There are other certificates now: who is not to be trusted by them is hung up on, and whom TLS
 * kept away is dialled again as soon as anybody. */
void manager_dial_renewed(struct manager_dial *d);

#endif
