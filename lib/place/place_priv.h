/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/place only: the block's layout. The control path writes all of it but hints, counters
 * and `seen`, which are the data path's. */
#ifndef PLACE_PLACE_PRIV_H
#define PLACE_PLACE_PRIV_H

#include <stdatomic.h>

#include "lib/place/place.h"

/* A test that tries every order of the two threads' steps puts its switch here. */
#ifndef PLACE_STEP
#define PLACE_STEP(address, writes) ((void)0)
#endif

/* What both threads touch goes through these: a store publishes all that was stored before it. */
#define SHARED_LOAD(p)                                           \
	({                                                       \
		__typeof__(p) at_ = (p);                         \
		PLACE_STEP(at_, false);                          \
		atomic_load_explicit(at_, memory_order_acquire); \
	})
#define SHARED_STORE(p, v)                                           \
	({                                                           \
		__typeof__(p) at_ = (p);                             \
		PLACE_STEP(at_, true);                               \
		atomic_store_explicit(at_, v, memory_order_release); \
	})

enum { NONE = 0 }; /* no chunk, flow, region: indices count from 1 */

/* A memory segment: 14 bits of region, 1 "ends a message", 17 of length - 1, 32 of offset; 0: none
 * yet. */
enum { MS_MR_SHIFT = 50, MS_LAST_SHIFT = 49, MS_LEN_SHIFT = 32 };

static inline uint64_t ms_make(uint32_t mr, bool last, uint32_t len, uint32_t offset)
{
	return (uint64_t)mr << MS_MR_SHIFT | (uint64_t)last << MS_LAST_SHIFT |
	       (uint64_t)(len - 1) << MS_LEN_SHIFT | offset;
}

static inline uint32_t ms_mr(uint64_t ms)
{
	return (uint32_t)(ms >> MS_MR_SHIFT);
}

static inline bool ms_last(uint64_t ms)
{
	return ms >> MS_LAST_SHIFT & 1;
}

static inline uint32_t ms_len(uint64_t ms)
{
	return (uint32_t)(ms >> MS_LEN_SHIFT & (PLACE_MS_MAX - 1)) + 1;
}

static inline uint32_t ms_offset(uint64_t ms)
{
	return (uint32_t)ms;
}

/* Lists are ordered by key: a stream's position; a message's number above the offset in it. Both
 * wrap, so keys are compared by difference. */
static inline uint64_t key_after(uint64_t key, uint64_t ms, bool messages)
{
	return messages && ms_last(ms) ? ((key >> 32) + 1) << 32 : key + ms_len(ms);
}

/* The key of its first segment; then segments, from the front. Nothing of it changes but from none
 * to some, as long as it can be reached from a list, and for a grace period after. */
struct chunk {
	uint64_t base;
	_Atomic uint64_t ms[PLACE_CHUNK_MS];
};

struct chunk_link {
	_Atomic uint32_t next; /* the data path follows it */
	uint32_t pile;
};

struct list {
	_Atomic uint64_t tail; /* key behind the last one */
	_Atomic uint32_t first;
	uint32_t last;
	uint16_t used;     /* of the last chunk */
	uint16_t retired;  /* of the first chunk */
	uint32_t segments; /* not retired */
};

struct entry {
	struct place_tuple tuple;
	_Atomic uint64_t cursor[2]; /* by place_dir: in order; acknowledged */
	_Atomic uint64_t limit;
	_Atomic uint32_t message;
	_Atomic uint32_t live; /* the handle, or 0 */
	_Atomic uint32_t next; /* of its bucket */
	uint32_t pile;
	uint16_t generation;
	uint16_t chunks; /* that both lists hold */
	bool messages;
	struct list list[2];
};

/* Where the data path was last in a list. */
struct hint {
	uint64_t key;
	uint32_t chunk, i;
};

struct region {
	_Atomic(uint8_t *) base; /* NULL: not registered */
	uint64_t len;
	uint32_t handle; /* its next or present one, without the index */
	uint32_t refs;   /* segments that name it */
	uint32_t pile;
	bool writable, taken;
};

/* Unused things of one table, by index, linked through a word of each: free ones; those whose grace
 * ends with the ticket; those that came later. */
struct pile {
	uint8_t *links;
	uint32_t stride;
	uint32_t free, waiting, fresh;
	uint32_t n_free;
	uint64_t ticket;
};

struct place {
	struct place_config config;
	struct chunk *chunk;
	struct chunk_link *link;
	struct entry *entry;
	struct hint (*hint)[2];
	struct region *region;
	_Atomic uint32_t *bucket;
	uint32_t bucket_mask;
	uint32_t flows;
	uint32_t promised; /* chunks committed to flows that do not hold them */
	struct pile chunks, entries, regions;
	_Alignas(64) _Atomic uint64_t epoch; /* tickets given out */
	_Alignas(64) _Atomic uint64_t seen;
	struct place_counters count;
};

uint32_t pile_take(struct place *p, struct pile *pile);        /* NONE: empty */
void pile_put(struct place *p, struct pile *pile, uint32_t i); /* after a grace period */

/* The flow of a handle, or NULL. */
static inline struct entry *entry_of(const struct place *p, uint32_t flow)
{
	struct entry *e = &p->entry[flow & 0xffff];

	if ((flow & 0xffff) == 0 || (flow & 0xffff) > p->config.max_flows)
		return NULL;
	return SHARED_LOAD(&e->live) == flow ? e : NULL;
}

static inline struct hint *hint_of(const struct place *p, const struct entry *e, enum place_dir dir)
{
	return &p->hint[e - p->entry][dir];
}

struct region *region_of(struct place *p, uint32_t mr); /* of a handle, or NULL */
void region_unref(struct place *p, uint32_t index);
void list_init(struct list *list, uint64_t key);
void list_clear(struct place *p, struct entry *e, enum place_dir dir);

#endif
