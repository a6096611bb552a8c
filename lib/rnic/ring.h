/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic, and for transports: work queues and completion queues are rings, with memory of
 * their own. */
#ifndef RNIC_RING_H
#define RNIC_RING_H

#include "lib/place/ring.h"

/* The least power of two that is not below n. */
static inline uint32_t ring_depth(uint32_t n)
{
	uint32_t depth = 1;

	while (depth < n)
		depth *= 2;
	return depth;
}

int ring_alloc(struct ring *ring, uint32_t depth, uint32_t stride); /* depth: a power of two */
void ring_free(struct ring *ring);

/* In place of ring_publish, for n claimed entries. Sequentially consistent: what the writer reads
 * next (the QP's state, its bell) is not older than the publication, see wq.c and scheduler.c. */
static inline void ring_post_all(struct ring *ring, uint32_t n)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	atomic_store_explicit(&ring->head, head + n, memory_order_seq_cst);
}

static inline void ring_post(struct ring *ring)
{
	ring_post_all(ring, 1);
}

#endif
