/* SPDX-License-Identifier: BSD-3-Clause */
/* What waits for a port, of one worker: a queue for control and one for data. Control goes first.
 * Whatever the port does not take at once waits here; a packet is lost only when its queue has
 * reached its limit, or when the port has taken nothing for so long that it counts as dead. As long
 * as nothing waits and there is no rate to keep, packets need not come here at all
 * (egress_straight).
 *
 * No I/O: packets, the time (ns, never back) and random numbers are arguments. One thread; another
 * one may read `count` and the queues' lengths, each number as it is at that moment. */
#ifndef DATAPLANE_EGRESS_QUEUE_H
#define DATAPLANE_EGRESS_QUEUE_H

#include "dataplane/egress/bucket.h"
#include "dataplane/egress/class.h"
#include "dataplane/egress/fifo.h"
#include "dataplane/egress/red.h"

enum egress_which { EGRESS_Q_CONTROL, EGRESS_Q_DATA, EGRESS_N_QUEUES };

struct egress_config {
	uint64_t limit[EGRESS_N_QUEUES]; /* bytes */
	struct egress_red red;           /* of data */
	unsigned trim;                   /* bytes that are left of a trimmed frame; 0: none is */
	bool last_hop;                   /* hosts are behind this port */
	uint64_t rate, burst;            /* bytes per second, 0: no limit; bytes */
	uint64_t hold_ns;                /* a port that takes nothing for so long is dead */
};

/* X(field, meaning) */
#define EGRESS_COUNTERS(X)                                                                 \
	X(queued, "packets that had to wait")                                              \
	X(peak_bytes, "most bytes that waited at a time")                                  \
	X(marked, "packets marked with Congestion Experienced as they came to wait")       \
	X(trimmed, "packets of this queue that had no room and were cut to their headers") \
	X(full, "packets lost because the queue was full")                                 \
	X(stale, "packets lost because the port had not taken anything for too long")
struct egress_count {
#define X(field, text) uint64_t field;
	EGRESS_COUNTERS(X)
#undef X
};

struct egress {
	bool straight; /* nothing waits, no rate, and the port takes packets */
	bool stuck;    /* it took nothing when it was last asked to, first at stuck_at */
	uint64_t stuck_at;
	struct egress_fifo queue[EGRESS_N_QUEUES];
	struct egress_bucket bucket;
	struct egress_config config;
	const struct egress_classes *classes;
	struct egress_count count[EGRESS_N_QUEUES];
};

/* classes lives longer. 0 or -ENOMEM; egress_free in either case. */
int egress_init(struct egress *e, const struct egress_config *config,
	const struct egress_classes *classes, int socket, uint64_t now);
void egress_free(struct egress *e);

/* May packets be given to the port without coming here? Those that it does not take then come. */
static inline bool egress_straight(const struct egress *e)
{
	return e->straight;
}

static inline uint32_t egress_waiting(const struct egress *e)
{
	return egress_fifo_count(&e->queue[EGRESS_Q_CONTROL]) +
	       egress_fifo_count(&e->queue[EGRESS_Q_DATA]);
}

/* A packet to wait; it may be marked, or be trimmed. False: its queue is full, which has been
 * counted; the packet stays the caller's. random: even over 0..2^32-1. */
bool egress_put(struct egress *e, struct rte_mbuf *m, uint32_t random);

/* What may be sent now, at most max packets, in this order. They stay here until egress_sent. */
unsigned egress_next(struct egress *e, struct rte_mbuf **out, unsigned max, uint64_t now);

/* The port took the first n of the packets that egress_next has just given, of which there was at
 * least one. bytes: their lengths, since they may be gone. */
void egress_sent(struct egress *e, const uint32_t *bytes, unsigned n, uint64_t now);

/* Packets that have waited in vain: they are the caller's to free. At most max; call again while
 * there are so many. */
unsigned egress_expired(struct egress *e, struct rte_mbuf **out, unsigned max, uint64_t now);

/* When egress_next may have something: UINT64_MAX if nothing waits, in the past if it may now. */
uint64_t egress_when(const struct egress *e);

#endif
