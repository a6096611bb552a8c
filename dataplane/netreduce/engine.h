/* SPDX-License-Identifier: BSD-3-Clause */
/* The NetReduce engine: what a switch does to a packet of a registered host-to-host connection.
 * Sans-I/O, as inc/engine.h: packets in, frames to forward out.
 *
 * Connection Lookup Table and Connection Translation Table are one table of rows (nr_key to
 * nr_look), which the caller keeps: rte_hash in the switch. nr_rows lists what belongs in it. */
#ifndef NR_ENGINE_H
#define NR_ENGINE_H

#include "dataplane/inc/engine.h"
#include "dataplane/netreduce/drops.h"
#include "dataplane/netreduce/ring.h"

enum nr_row {
	NR_ROW_HOST,   /* requests of an input that is a host */
	NR_ROW_REPLY,  /* what its receiver sends back: looked at, never held */
	NR_ROW_SWITCH, /* from a switch below */
	NR_ROW_PARENT, /* from the parent */
};

struct nr_look {
	struct nr_ring *ring;
	uint8_t row; /* enum nr_row */
	uint8_t in;
	uint16_t port; /* that its packets come in by, NR_ANY_PORT without STRICT_PORT */
};

enum { NR_ANY_PORT = 0xffff };

/* All rows of a ring, at most NR_MAX_ROWS. */
enum { NR_MAX_ROWS = 2 * NR_MAX_IN + 1 };
unsigned nr_rows(
	struct nr_ring *r, struct nr_key key[NR_MAX_ROWS], struct nr_look look[NR_MAX_ROWS]);

static inline struct nr_key nr_key_of(const struct wire_pkt *pkt)
{
	return (struct nr_key){.src = pkt->src, .dst = pkt->dst, .qpn = pkt->dqpn};
}

/* One frame to forward to dst: MACs to be written, TTL to be decremented, as of any packet on its
 * way (the switch's own ones have one more in theirs). Parts are valid during the call; payload, in
 * the arena, until its aggregator is claimed again. */
struct nr_emit {
	struct wire_ip dst;
	uint16_t l3_off, head_len, pay_len;
	uint8_t ip_ver, ttl, tail_len;
	const uint8_t *head, *payload;
	uint8_t tail[WIRE_MAX_TRAILER + 1];
};

struct nr_sink {
	void *arg;
	void (*emit)(void *arg, struct nr_ring *r, const struct nr_emit *emit);
};

/* A well-formed RoCE packet of a row of an active ring. Checks the ICRC of what it looks into.
 * NR_FORWARD: the packet goes on as it is; else it ends here and the value says why. */
enum nr_drop nr_rx(const struct nr_look *look, const struct inc_arena *arena, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now, const struct nr_sink *sink);

/* Puts an emission's frame together: out has room for all of it. Returns its length. */
size_t nr_frame(const struct nr_emit *emit, uint8_t *out);

#endif
