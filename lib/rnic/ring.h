/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic, and for transports: work queues and completion queues are rings. */
#ifndef RNIC_RING_H
#define RNIC_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Single-producer single-consumer ring of entries of equal size; indices run freely. The producer
 * writes an entry, then publishes it with a release store of head; the consumer's acquire load of
 * head pairs with it. The consumer hands entries back with a release store of tail, which the
 * producer's acquire load pairs with before it writes there again. */
struct ring {
	uint8_t *mem;
	uint32_t stride, mask;
	_Alignas(64) _Atomic uint32_t head;
	_Alignas(64) _Atomic uint32_t tail;
};

/* The least power of two that is not below n. */
static inline uint32_t ring_depth(uint32_t n)
{
	uint32_t depth = 1;

	while (depth < n)
		depth *= 2;
	return depth;
}

int ring_init(struct ring *ring, uint32_t depth, uint32_t stride); /* depth: a power of two */
void ring_free(struct ring *ring);

static inline void *ring_at(const struct ring *ring, uint32_t index)
{
	return ring->mem + (size_t)(index & ring->mask) * ring->stride;
}

/* Producer: the entry to fill behind `ahead` that are claimed and not published, or NULL if the
 * ring is full. */
static inline void *ring_claim_behind(struct ring *ring, uint32_t ahead)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed) + ahead;
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	return head - tail > ring->mask ? NULL : ring_at(ring, head);
}

static inline void *ring_claim(struct ring *ring)
{
	return ring_claim_behind(ring, 0);
}

/* Producer: publishes n claimed entries. Sequentially consistent: what the producer reads next (the
 * QP's state, its bell) is not older than the publication, see wq.c and scheduler.c. */
static inline void ring_publish_all(struct ring *ring, uint32_t n)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	atomic_store_explicit(&ring->head, head + n, memory_order_seq_cst);
}

static inline void ring_publish(struct ring *ring)
{
	ring_publish_all(ring, 1);
}

static inline uint32_t ring_head(const struct ring *ring)
{
	return atomic_load_explicit(&ring->head, memory_order_acquire);
}

/* Consumer. */
static inline uint32_t ring_tail(const struct ring *ring)
{
	return atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

static inline void ring_release(struct ring *ring, uint32_t tail)
{
	atomic_store_explicit(&ring->tail, tail, memory_order_release);
}

#endif
