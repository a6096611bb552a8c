/* SPDX-License-Identifier: BSD-3-Clause */
/* The queues between data path and control path (ZeroNIC, 3.3: NIC queues): one writer, one reader,
 * entries of one size in memory that the caller brings. Headers and verdicts go one way, requests
 * the other; payload goes through none. */
#ifndef PLACE_RING_H
#define PLACE_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Indices run freely. The writer's release store of head publishes an entry to the reader's acquire
 * load; the reader's release store of tail gives the room back in the same way. */
struct place_ring {
	uint8_t *mem;
	uint32_t stride, mask;
	_Alignas(64) _Atomic uint32_t head;
	_Alignas(64) _Atomic uint32_t tail;
};

/* mem: depth * stride bytes; depth is a power of two. */
static inline void place_ring_init(struct place_ring *r, void *mem, uint32_t depth, uint32_t stride)
{
	r->mem = mem;
	r->stride = stride;
	r->mask = depth - 1;
	atomic_init(&r->head, 0);
	atomic_init(&r->tail, 0);
}

static inline void *place_ring_at(const struct place_ring *r, uint32_t i)
{
	return r->mem + (size_t)(i & r->mask) * r->stride;
}

/* Writer: the entry to fill, NULL if there is no room. */
static inline void *place_ring_claim(struct place_ring *r)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);

	return head - tail > r->mask ? NULL : place_ring_at(r, head);
}

static inline void place_ring_publish(struct place_ring *r)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

/* Reader: the oldest entry, NULL if there is none; it is the reader's until it lets go of it. */
static inline void *place_ring_peek(const struct place_ring *r)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&r->head, memory_order_acquire);

	return head == tail ? NULL : place_ring_at(r, tail);
}

static inline void place_ring_release(struct place_ring *r)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
}

/* About how many are in it; any thread. */
static inline uint32_t place_ring_count(const struct place_ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_relaxed) -
	       atomic_load_explicit(&r->tail, memory_order_relaxed);
}

#endif
