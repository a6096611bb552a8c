/* SPDX-License-Identifier: BSD-3-Clause */
/* The block, and what is given back to it after a grace period. */
#include "lib/place/place.h"

#include <errno.h>
#include <string.h>

#include "lib/place/place_priv.h"

enum { LINE = 64 };

static size_t lines(size_t bytes)
{
	return (bytes + LINE - 1) / LINE * LINE;
}

static uint32_t buckets(const struct place_config *config)
{
	uint32_t n = 1;

	while (n < config->max_flows)
		n *= 2;
	return n;
}

static bool possible(const struct place_config *c)
{
	return c->max_flows > 0 && c->max_flows <= PLACE_MAX_FLOWS && c->max_mrs > 0 &&
	       c->max_mrs <= PLACE_MAX_MRS && c->chunks > 0 && c->chunks < UINT32_MAX &&
	       c->committed <= c->peak && c->peak > 0;
}

/* Tables are one longer than they hold, because indices count from 1. */
void place_bytes(const struct place_config *c, struct place_bytes *b)
{
	const size_t flow = sizeof(struct entry) + 2 * sizeof(struct hint);

	b->ms_store = (c->chunks + 1) * (sizeof(struct chunk) + sizeof(struct chunk_link));
	b->flow_table = (c->max_flows + 1) * flow + buckets(c) * sizeof(uint32_t);
	b->mr_table = (c->max_mrs + 1) * sizeof(struct region);
	b->other = sizeof(struct place) + 6 * LINE;
}

size_t place_size(const struct place_config *c)
{
	struct place_bytes b;

	if (!possible(c))
		return 0;
	place_bytes(c, &b);
	return lines(b.ms_store + b.flow_table + b.mr_table + b.other);
}

static void *cut(uint8_t **at, size_t bytes)
{
	void *part = *at;

	*at += lines(bytes);
	return part;
}

static void pile_init(struct pile *pile, void *links, uint32_t stride, uint32_t n)
{
	*pile = (struct pile){.links = links, .stride = stride, .n_free = n};
	for (uint32_t i = n; i > 0; i--) {
		*(uint32_t *)(pile->links + (size_t)i * stride) = pile->free;
		pile->free = i;
	}
}

int place_init(const struct place_config *c, void *block, struct place **place)
{
	const size_t size = place_size(c);
	struct place *p = block;
	uint8_t *at = block;

	if (size == 0 || (uintptr_t)block % LINE != 0)
		return -EINVAL;
	memset(block, 0, size);
	cut(&at, sizeof(*p));
	p->config = *c;
	p->chunk = cut(&at, (c->chunks + 1) * sizeof(*p->chunk));
	p->link = cut(&at, (c->chunks + 1) * sizeof(*p->link));
	p->entry = cut(&at, (c->max_flows + 1) * sizeof(*p->entry));
	p->hint = cut(&at, (c->max_flows + 1) * sizeof(*p->hint));
	p->region = cut(&at, (c->max_mrs + 1) * sizeof(*p->region));
	p->bucket = cut(&at, buckets(c) * sizeof(*p->bucket));
	p->bucket_mask = buckets(c) - 1;
	pile_init(&p->chunks, &p->link[0].pile, sizeof(p->link[0]), c->chunks);
	pile_init(&p->entries, &p->entry[0].pile, sizeof(p->entry[0]), c->max_flows);
	pile_init(&p->regions, &p->region[0].pile, sizeof(p->region[0]), c->max_mrs);
	*place = p;
	return 0;
}

/* ---- grace ---- */

/* Whoever reads an epoch of `ticket` or later also sees what the control path did before it gave
 * the ticket out, and by publishing it says that its own reads from before are over. */
void place_quiesce(struct place *p)
{
	SHARED_STORE(&p->seen, SHARED_LOAD(&p->epoch));
}

uint64_t place_grace(struct place *p)
{
	uint64_t ticket = atomic_load_explicit(&p->epoch, memory_order_relaxed) + 1;

	SHARED_STORE(&p->epoch, ticket);
	return ticket;
}

bool place_passed(const struct place *p, uint64_t ticket)
{
	return (int64_t)(SHARED_LOAD(&p->seen) - ticket) >= 0;
}

static uint32_t *link_of(struct pile *pile, uint32_t i)
{
	return (uint32_t *)(pile->links + (size_t)i * pile->stride);
}

/* The fresh ones wait from now on. */
static void wait_for_grace(struct place *p, struct pile *pile)
{
	pile->waiting = pile->fresh;
	pile->fresh = NONE;
	pile->ticket = place_grace(p);
}

void pile_put(struct place *p, struct pile *pile, uint32_t i)
{
	*link_of(pile, i) = pile->fresh;
	pile->fresh = i;
	if (pile->waiting == NONE)
		wait_for_grace(p, pile);
}

/* Those who have waited become free. */
static void reclaim(struct place *p, struct pile *pile)
{
	while (pile->waiting != NONE && place_passed(p, pile->ticket)) {
		while (pile->waiting != NONE) {
			uint32_t i = pile->waiting;

			pile->waiting = *link_of(pile, i);
			*link_of(pile, i) = pile->free;
			pile->free = i;
			pile->n_free++;
		}
		if (pile->fresh != NONE)
			wait_for_grace(p, pile);
	}
}

void place_reclaim(struct place *p)
{
	reclaim(p, &p->chunks);
	reclaim(p, &p->entries);
	reclaim(p, &p->regions);
}

uint32_t pile_take(struct place *p, struct pile *pile)
{
	uint32_t i;

	if (pile->free == NONE)
		reclaim(p, pile);
	i = pile->free;
	if (i == NONE)
		return NONE;
	pile->free = *link_of(pile, i);
	pile->n_free--;
	return i;
}

const struct place_counters *place_counters(const struct place *p)
{
	return &p->count;
}

const char *place_drop_name(enum place_drop drop)
{
	static const char *const names[PLACE_N_DROPS] = {[PLACE_OK] = "ok",
#define X(sym, name, text) [PLACE_DROP_##sym] = name,
		PLACE_DROPS(X)
#undef X
	};

	return drop < PLACE_N_DROPS ? names[drop] : "unknown";
}
