/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices whose queue pairs have streams, two stacks of TCP, a bad network, virtual time. */
#ifndef IWARP_PAIR_H
#define IWARP_PAIR_H

#include "lib/iwarp/link.h"
#include "tests/unit/iwarp/end.h"
#include "tests/unit/stream/net.h"

enum { PAIR_EVENTS = 16, PAIR_PORT = 7174 };

struct pair_options {
	uint64_t seed;
	uint16_t mtu;                    /* default 1500 */
	uint32_t loss, repeat, overtake; /* of a million */
	uint32_t ring;                   /* bytes of both rings, default 64 KB */
	bool raw;                        /* no link at side 0 */
	uint16_t stream_conns, conns;    /* of side 0's stream, and of its link: default 8 */
	bool small;                      /* streams with little memory, made in no time */
};

struct pair {
	struct net *net;
	struct pair_options options;
	struct end end[2];
	struct iwarp_link *link[2]; /* [0] may be NULL: the test speaks TCP itself */
	uint32_t conn[2];
	struct iwarp_event event[2][PAIR_EVENTS]; /* those that came, and are not taken */
	unsigned n_event[2];
};

#define PAIR_SECOND UINT64_C(1000000000)

void pair_open(struct pair *p, const struct pair_options *options);
void pair_close(struct pair *p);
void pair_link(struct pair *p, int side); /* with the same options */
void pair_run(struct pair *p, uint64_t time);
/* The streams alone: the links have no turn. */
void pair_run_streams(struct pair *p, uint64_t time);
/* The next event of a side has this type. */
struct iwarp_event pair_event(struct pair *p, int side, enum iwarp_event_type type);
/* Side 0 asks, with queue pairs of all rights in INIT at both; conn[1] has the request. */
void pair_request(struct pair *p, const struct mpa_offer *offer);
/* And side 1 accepts; both in RTS. */
void pair_connect(struct pair *p, const struct mpa_offer *offer);
int pair_ask(struct pair *p, const struct mpa_offer *offer); /* side 0 begins */

#endif
