/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets in their order, bounded by their bytes. A packet takes a buffer however short it is, so
 * there is one place for each EGRESS_LEAST bytes of the limit. One thread at a time. */
#ifndef DATAPLANE_EGRESS_FIFO_H
#define DATAPLANE_EGRESS_FIFO_H

#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>

enum { EGRESS_LEAST = 512 };

struct egress_fifo {
	struct rte_mbuf **slot;
	uint32_t places, size; /* size: a power of two */
	uint32_t head, tail;   /* free-running; head is the oldest's */
	uint64_t bytes, limit;
};

/* Places, and so buffers, of a FIFO of this limit. */
static inline uint32_t egress_fifo_places(uint64_t limit)
{
	return limit < EGRESS_LEAST ? 1 : (uint32_t)(limit / EGRESS_LEAST);
}

/* limit: bytes, below 2^32. 0 or -ENOMEM. */
int egress_fifo_init(struct egress_fifo *f, uint64_t limit, int socket);
/* Frees the packets that are in it, too. */
void egress_fifo_free(struct egress_fifo *f);

static inline uint32_t egress_fifo_count(const struct egress_fifo *f)
{
	return f->tail - f->head;
}

/* Is there room for a packet of so many bytes? */
static inline bool egress_fifo_has_room(const struct egress_fifo *f, uint64_t bytes)
{
	return egress_fifo_count(f) < f->places && f->bytes + bytes <= f->limit;
}

/* Takes m; only if there is room. */
static inline void egress_fifo_put(struct egress_fifo *f, struct rte_mbuf *m)
{
	f->slot[f->tail++ & (f->size - 1)] = m;
	f->bytes += m->pkt_len;
}

/* The i-th oldest, i < count; it stays. */
static inline struct rte_mbuf *egress_fifo_at(const struct egress_fifo *f, uint32_t i)
{
	return f->slot[(f->head + i) & (f->size - 1)];
}

/* The oldest is somebody else's now; bytes: what its pkt_len was. */
static inline void egress_fifo_take(struct egress_fifo *f, uint64_t bytes)
{
	f->head++;
	f->bytes -= bytes;
}

#endif
