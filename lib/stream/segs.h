/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/stream: what a connection has sent and the peer has not acknowledged, one entry per
 * segment. Each is in flight, or the peer has said that it has it (SACK), or it is taken for lost
 * and waits to be sent again: RFC 6675's scoreboard, whose "pipe" is a counter here, and the times
 * that RACK compares (RFC 8985). Entries are the stack's, a fixed number for all connections. */
#ifndef STREAM_SEGS_H
#define STREAM_SEGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum seg_state { SEG_FLIGHT, SEG_SACKED, SEG_LOST };

/* Of the connection, when a segment was sent (rate.h). */
struct seg_rate {
	uint64_t delivered, delivered_at, first_sent;
	bool limited;
};

struct seg {
	TAILQ_ENTRY(seg) order; /* by position */
	TAILQ_ENTRY(seg) state_link;
	uint64_t from, to;
	uint64_t at; /* sent last, ns */
	enum seg_state state;
	bool again; /* sent more than once */
	struct seg_rate rate;
};
TAILQ_HEAD(seg_list, seg);

struct seg_pool {
	struct seg_list unused;
	uint32_t n;
};

struct segs {
	struct seg_list order;  /* all, by position */
	struct seg_list flight; /* SEG_FLIGHT, the one that was sent longest ago first */
	struct seg_list lost;   /* SEG_LOST, by position */
	struct seg *hint;       /* where the last SACK block ended */
	uint32_t n, n_sacked;
	uint64_t flight_bytes, lost_bytes;
};

void segs_init(struct segs *log);
/* The next one, sent now. NULL: no entry is free, or this connection has as many as are left for
 * all others. A connection that has none or few gets the last ones. */
struct seg *segs_add(
	struct segs *log, struct seg_pool *pool, uint64_t from, uint64_t to, uint64_t now);
bool segs_may_add(const struct segs *log, const struct seg_pool *pool);
/* Sent once more. */
void segs_again(struct segs *log, struct seg *seg, uint64_t now);
void segs_set(struct segs *log, struct seg *seg, enum seg_state state);
/* All before a position is acknowledged: takes out the first entry, or cuts it; false: none is left
 * that begins before. *was: as it was. */
bool segs_take(struct segs *log, struct seg_pool *pool, uint64_t ack, struct seg *was);
/* The first that begins at a position or behind it, NULL: none. */
struct seg *segs_from(struct segs *log, uint64_t at);
void segs_clear(struct segs *log, struct seg_pool *pool);

#endif
