/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues between two threads: one writer, one reader, entries of one size. Between data path and
 * control path (ZeroNIC, 3.3: NIC queues) headers and verdicts go one way, requests the other;
 * payload goes through none. Work queues and completion queues are the same (lib/rnic/ring.h). */
#ifndef PLACE_RING_H
#define PLACE_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Indices run freely. The writer's release store of head publishes entries to the reader's acquire
 * load; the reader's release store of tail gives the room back in the same way. */
struct ring {
	uint8_t *mem;
	uint32_t stride, mask;
	_Alignas(64) _Atomic uint32_t head;
	_Alignas(64) _Atomic uint32_t tail;
};

/* mem: the caller's, depth * stride bytes; depth is a power of two. */
static inline void ring_init(struct ring *r, void *mem, uint32_t depth, uint32_t stride)
{
	r->mem = mem;
	r->stride = stride;
	r->mask = depth - 1;
	atomic_init(&r->head, 0);
	atomic_init(&r->tail, 0);
}

static inline void *ring_at(const struct ring *r, uint32_t i)
{
	return r->mem + (size_t)(i & r->mask) * r->stride;
}

/* Whoever is not the writer: what is before it may be read. */
static inline uint32_t ring_head(const struct ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_acquire);
}

/* The reader. */
static inline uint32_t ring_tail(const struct ring *r)
{
	return atomic_load_explicit(&r->tail, memory_order_relaxed);
}

/* Writer: the entry to fill behind `ahead` that are claimed and not published, NULL if there is no
 * room. */
static inline void *ring_claim_behind(struct ring *r, uint32_t ahead)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed) + ahead;
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);

	return head - tail > r->mask ? NULL : ring_at(r, head);
}

static inline void *ring_claim(struct ring *r)
{
	return ring_claim_behind(r, 0);
}

static inline void ring_publish(struct ring *r)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

/* Reader: the oldest entry, NULL if there is none; it is the reader's until it lets go of it. */
static inline void *ring_peek(const struct ring *r)
{
	uint32_t tail = ring_tail(r);

	return ring_head(r) == tail ? NULL : ring_at(r, tail);
}

/* Reader: lets go of all before tail; of the oldest. */
static inline void ring_release(struct ring *r, uint32_t tail)
{
	atomic_store_explicit(&r->tail, tail, memory_order_release);
}

static inline void ring_release_one(struct ring *r)
{
	ring_release(r, ring_tail(r) + 1);
}

/* About how many are in it; any thread. */
static inline uint32_t ring_count(const struct ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_relaxed) - ring_tail(r);
}

#endif
