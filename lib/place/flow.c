/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows by five-tuple: buckets of chains that the control path changes while the data path follows
 * them. A flow that is taken out keeps its link until the data path has been quiet. */
#include <errno.h>
#include <string.h>

#include "lib/place/place_priv.h"

static uint32_t hash(const struct place *p, const struct place_tuple *t)
{
	uint64_t h = p->config.seed, word[sizeof(*t) / sizeof(uint64_t)];

	_Static_assert(sizeof(*t) % sizeof(uint64_t) == 0, "a tuple is whole words");
	memcpy(word, t, sizeof(*t));
	for (unsigned i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
		h = (h ^ word[i]) * 0x9e3779b97f4a7c15;
		h ^= h >> 29;
		h = h * 0xbf58476d1ce4e5b9 + p->config.seed;
		h ^= h >> 32;
	}
	return (uint32_t)h & p->bucket_mask;
}

uint32_t place_find(const struct place *p, const struct place_tuple *tuple)
{
	uint32_t i = SHARED_LOAD(&p->bucket[hash(p, tuple)]);

	while (i != NONE) {
		struct entry *e = &p->entry[i];

		if (memcmp(&e->tuple, tuple, sizeof(*tuple)) == 0)
			return SHARED_LOAD(&e->live);
		i = SHARED_LOAD(&e->next);
	}
	return 0;
}

static void fill(struct place *p, struct entry *e, const struct place_flow_init *init)
{
	const uint64_t key = init->messages ? (uint64_t)init->message << 32 : init->rx;

	e->tuple = init->tuple;
	e->messages = init->messages;
	atomic_store_explicit(&e->cursor[PLACE_RX], init->rx, memory_order_relaxed);
	atomic_store_explicit(&e->cursor[PLACE_TX], init->tx, memory_order_relaxed);
	atomic_store_explicit(&e->limit, init->limit, memory_order_relaxed);
	atomic_store_explicit(&e->message, init->message, memory_order_relaxed);
	list_init(&e->list[PLACE_RX], key);
	list_init(&e->list[PLACE_TX], init->tx);
	memset(hint_of(p, e, PLACE_RX), 0, 2 * sizeof(struct hint));
	e->chunks = 0;
}

int place_flow_add(struct place *p, const struct place_flow_init *init, uint32_t *flow)
{
	_Atomic uint32_t *bucket;
	struct entry *e;
	uint32_t i, handle;

	if (place_find(p, &init->tuple) != 0)
		return -EEXIST;
	if (p->chunks.n_free < p->promised + p->config.committed)
		place_reclaim(p);
	if (p->chunks.n_free < p->promised + p->config.committed)
		return -ENOSPC;
	i = pile_take(p, &p->entries);
	if (i == NONE)
		return -ENOSPC;
	e = &p->entry[i];
	fill(p, e, init);
	handle = (uint32_t)++e->generation << 16 | i;
	SHARED_STORE(&e->live, handle);
	bucket = &p->bucket[hash(p, &init->tuple)];
	SHARED_STORE(&e->next, atomic_load_explicit(bucket, memory_order_relaxed));
	SHARED_STORE(bucket, i);
	p->promised += p->config.committed;
	p->flows++;
	*flow = handle;
	return 0;
}

int place_flow_remove(struct place *p, uint32_t flow)
{
	struct entry *e = entry_of(p, flow);
	_Atomic uint32_t *at;

	if (e == NULL)
		return -EINVAL;
	at = &p->bucket[hash(p, &e->tuple)];
	while (atomic_load_explicit(at, memory_order_relaxed) != (flow & 0xffff))
		at = &p->entry[atomic_load_explicit(at, memory_order_relaxed)].next;
	SHARED_STORE(at, atomic_load_explicit(&e->next, memory_order_relaxed));
	SHARED_STORE(&e->live, 0);
	list_clear(p, e, PLACE_RX);
	list_clear(p, e, PLACE_TX);
	p->promised -= p->config.committed;
	p->flows--;
	pile_put(p, &p->entries, flow & 0xffff);
	return 0;
}

unsigned place_flows(const struct place *p)
{
	return p->flows;
}
