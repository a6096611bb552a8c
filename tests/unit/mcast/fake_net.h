/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks of lib/mcast in one process, on virtual time: multicast that loses, doubles and delays as a
 * test says, connections that are reliable and in order. Each rank begins the next collective as
 * soon as its last one is over, and writes over its buffer before. */
#ifndef TEST_MCAST_FAKE_NET_H
#define TEST_MCAST_FAKE_NET_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>

#include "lib/mcast/mcast.h"

enum { NET_MAX = 64, NET_DELAY = 2000, NET_CHUNK_MAX = 256 };

struct net;

/* How many copies of a root's chunk a rank gets (0: it is lost). */
typedef unsigned net_copies(struct net *net, unsigned to, unsigned from, unsigned chunk);

struct net_rank {
	struct mcast m;
	struct net *net;
	uint8_t *buf;
	void *memory;
	unsigned begun, done;
	bool dead;
	uint64_t dies_at, over_at;
	uint64_t read_bytes; /* from its left neighbour */
	uint64_t starts_at;  /* joins the first collective not before */
};

struct net {
	struct mcast_config config;
	unsigned n, collectives;
	bool all;
	unsigned root;
	uint64_t bytes, now, seed;
	struct net *heard_by; /* its ranks get the datagrams as well, and must not take one */
	net_copies *copies;
	void *copies_arg;
	unsigned jitter;                 /* ns: datagrams come up to this later, so in any order */
	unsigned most_roots, multicasts; /* at a time; in all */
	unsigned sending_now[NET_MAX];
	struct net_rank rank[NET_MAX];
	struct net_event *event;
	unsigned n_events, room;
	uint64_t order, fifo[NET_MAX][NET_MAX];
	uint64_t first_ask; /* when somebody first asked; 0: nobody */
};

/* Of config, what is 0 is filled in: chunk 64, psn_bits 16, windows 4, READs of any length, 100
 * Gb/s, alpha 100 us, give up after 10 ms. */
void net_open(struct net *net, const struct mcast_config *config, bool all, unsigned root,
	uint64_t bytes, unsigned collectives);
/* The ranks begin; the next thing happens (false: there is none); both, to the end. */
void net_start(struct net *net);
bool net_step(struct net *net);
void net_run(struct net *net);
/* All ranks have done all collectives, exactly (that is checked as they go). */
void net_all_done(struct net *net);
void net_close(struct net *net);
uint32_t net_random(struct net *net);
/* Of a hundred copies 20 are lost, 10 come twice. */
net_copies net_weather;

#endif
