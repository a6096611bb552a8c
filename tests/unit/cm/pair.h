/* SPDX-License-Identifier: BSD-3-Clause */
/* Two communication managers, a link between them on virtual time, and users that write down what
 * happens to them. */
#ifndef TEST_CM_PAIR_H
#define TEST_CM_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/cm/cm.h"

enum { MAX_USERS = 128, MAX_FLIGHT = 1024, MS = 1000000 };

/* One end of a connection as its user sees it. */
struct user {
	struct cm_conn *conn; /* NULL: released */
	bool passive, requested, rep, established, disconnected, rejected, unreachable, sidr, out;
	bool was_sidr;
	unsigned events;
	int status;
	struct cm_msg msg; /* of the last event that had one */
};

struct end {
	struct pair *pair;
	struct cm *cm;
	struct wire_ip ip;
	struct user user[MAX_USERS];
	unsigned n_user;
	unsigned answer;    /* what request says */
	unsigned sent[256]; /* by attribute */
};

struct flight {
	uint64_t at;
	unsigned to;
	uint8_t mad[CM_MAD_LEN];
	bool used;
};

struct pair {
	struct end end[2];
	uint64_t now, rng;
	struct flight flight[MAX_FLIGHT];
	/* per mille of the datagrams */
	unsigned loss, dup, late, corrupt;
	/* Loses the next so many of this attribute. */
	unsigned lose_attr, lose_n;
};

uint64_t pair_random(struct pair *pair);
struct pair *pair_create(uint64_t seed);
/* Fails if a manager does not account for each datagram. */
void pair_destroy(struct pair *pair);
struct cm_path pair_path(const struct pair *pair, unsigned from);

/* Sends what there is and delivers what is due; then the clock goes to whatever is next. False if
 * nothing is. */
bool pair_step(struct pair *pair);
/* Until nothing is left to happen before that time. */
void pair_run(struct pair *pair, uint64_t until);
/* Until nothing is left to happen at all. */
void pair_settle(struct pair *pair);

/* A REQ of the end for service 7; user of the new connection. */
struct user *pair_connect(struct pair *pair, unsigned from, uint32_t qpn);
/* The connection that the other end last got a request of. */
struct user *pair_last(struct pair *pair, unsigned at);
int pair_accept(struct pair *pair, struct user *user, uint32_t qpn);
/* The whole exchange without a fault. */
void pair_establish(struct pair *pair, struct user **active, struct user **passive);
void pair_release(struct pair *pair, struct user *user);
/* Both sides release all; nothing may be left over. */
void pair_finish(struct pair *pair);

#endif
