/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of memory segments: chains of chunks out of one store, of which each flow is sure of some
 * and may have more (3.2: committed and peak). The control path appends and retires; what it
 * retires stays as it is until the data path has been quiet. */
#include <errno.h>

#include "lib/place/place_priv.h"

void list_init(struct list *l, uint64_t key)
{
	atomic_store_explicit(&l->tail, key, memory_order_relaxed);
	atomic_store_explicit(&l->first, NONE, memory_order_relaxed);
	l->last = NONE;
	l->used = PLACE_CHUNK_MS;
	l->retired = 0;
	l->segments = 0;
}

/* What the other flows have been promised stays there for them. */
static bool may_take(struct place *p, const struct entry *e, uint32_t n)
{
	const uint32_t committed = p->config.committed;
	const uint32_t own = e->chunks < committed ? committed - e->chunks : 0;

	if (e->chunks + n > p->config.peak)
		return false;
	return p->chunks.n_free >= p->promised - own + n;
}

static void hold(struct place *p, struct entry *e, int n)
{
	const int committed = p->config.committed, had = e->chunks, has = had + n;

	p->promised += (uint32_t)((has < committed ? committed - has : 0) -
				  (had < committed ? committed - had : 0));
	e->chunks = (uint16_t)has;
}

static void append_chunk(struct place *p, struct entry *e, struct list *l)
{
	const uint32_t c = pile_take(p, &p->chunks);
	struct chunk *chunk = &p->chunk[c];

	chunk->base = atomic_load_explicit(&l->tail, memory_order_relaxed);
	for (unsigned i = 0; i < PLACE_CHUNK_MS; i++)
		atomic_store_explicit(&chunk->ms[i], 0, memory_order_relaxed);
	atomic_store_explicit(&p->link[c].next, NONE, memory_order_relaxed);
	SHARED_STORE(l->last == NONE ? &l->first : &p->link[l->last].next, c);
	l->last = c;
	l->used = 0;
	hold(p, e, 1);
}

int place_post(struct place *p, uint32_t flow, enum place_dir dir, uint32_t mr, uint64_t offset,
	uint64_t len)
{
	struct entry *e = entry_of(p, flow);
	struct region *r = region_of(p, mr);
	const uint64_t segments = (len + PLACE_MS_MAX - 1) / PLACE_MS_MAX;
	uint64_t room, chunks, key;
	struct list *l;

	if (e == NULL || r == NULL || len == 0 || offset >= r->len || len > r->len - offset ||
		(dir == PLACE_RX && (!r->writable || (e->messages && len > INT32_MAX))))
		return -EINVAL;
	l = &e->list[dir];
	room = PLACE_CHUNK_MS - l->used;
	chunks = segments <= room ? 0 : (segments - room + PLACE_CHUNK_MS - 1) / PLACE_CHUNK_MS;
	if (chunks > p->config.peak)
		return -ENOBUFS;
	if (chunks > 0 && !may_take(p, e, (uint32_t)chunks)) {
		place_reclaim(p);
		if (!may_take(p, e, (uint32_t)chunks))
			return -ENOBUFS;
	}
	key = atomic_load_explicit(&l->tail, memory_order_relaxed);
	for (uint64_t i = 0; i < segments; i++) {
		const uint32_t part = len < PLACE_MS_MAX ? (uint32_t)len : PLACE_MS_MAX;
		const bool last = dir == PLACE_RX && e->messages && part == len;
		const uint64_t ms =
			ms_make((uint32_t)(r - p->region), last, part, (uint32_t)offset);

		if (l->used == PLACE_CHUNK_MS) {
			atomic_store_explicit(&l->tail, key, memory_order_relaxed);
			append_chunk(p, e, l);
		}
		SHARED_STORE(&p->chunk[l->last].ms[l->used++], ms);
		key = key_after(key, ms, e->messages && dir == PLACE_RX);
		offset += part;
		len -= part;
	}
	r->refs += (uint32_t)segments;
	l->segments += (uint32_t)segments;
	SHARED_STORE(&l->tail, key);
	return 0;
}

uint64_t place_posted(const struct place *p, uint32_t flow, enum place_dir dir)
{
	const struct entry *e = entry_of(p, flow);

	return e == NULL ? 0 : atomic_load_explicit(&e->list[dir].tail, memory_order_relaxed);
}

unsigned place_segments(const struct place *p, uint32_t flow, enum place_dir dir)
{
	const struct entry *e = entry_of(p, flow);

	return e == NULL ? 0 : e->list[dir].segments;
}

/* ---- retiring ---- */

/* Key at which the first segment that is not retired begins. */
static uint64_t retired_key(const struct place *p, const struct list *l, uint32_t c, bool messages)
{
	uint64_t key = p->chunk[c].base;

	for (unsigned i = 0; i < l->retired; i++)
		key = key_after(key, atomic_load_explicit(&p->chunk[c].ms[i], memory_order_relaxed),
			messages);
	return key;
}

/* The chunk in front, all of it retired, if another follows. */
static bool drop_chunk(struct place *p, struct entry *e, struct list *l, uint32_t c)
{
	const uint32_t next = atomic_load_explicit(&p->link[c].next, memory_order_relaxed);

	if (next == NONE)
		return false;
	SHARED_STORE(&l->first, next);
	l->retired = 0;
	pile_put(p, &p->chunks, c);
	hold(p, e, -1);
	return true;
}

static void retire(struct place *p, struct entry *e, enum place_dir dir, uint64_t to)
{
	const bool messages = e->messages && dir == PLACE_RX;
	struct list *l = &e->list[dir];
	uint32_t c = atomic_load_explicit(&l->first, memory_order_relaxed);
	uint64_t key;

	if (c == NONE)
		return;
	key = retired_key(p, l, c, messages);
	for (;;) {
		uint64_t ms;

		if (l->retired == PLACE_CHUNK_MS) {
			if (!drop_chunk(p, e, l, c))
				return;
			c = atomic_load_explicit(&l->first, memory_order_relaxed);
		}
		ms = atomic_load_explicit(&p->chunk[c].ms[l->retired], memory_order_relaxed);
		if (ms == 0)
			return;
		key = key_after(key, ms, messages);
		if ((int64_t)(key - to) > 0)
			return;
		l->retired++;
		l->segments--;
		region_unref(p, ms_mr(ms));
	}
}

int place_cursor(struct place *p, uint32_t flow, uint64_t cursor, uint64_t limit)
{
	struct entry *e = entry_of(p, flow);

	if (e == NULL ||
		cursor < atomic_load_explicit(&e->cursor[PLACE_RX], memory_order_relaxed) ||
		limit < atomic_load_explicit(&e->limit, memory_order_relaxed) || limit < cursor)
		return -EINVAL;
	SHARED_STORE(&e->limit, limit);
	SHARED_STORE(&e->cursor[PLACE_RX], cursor);
	return 0;
}

int place_retire(struct place *p, uint32_t flow, enum place_dir dir, uint64_t position)
{
	struct entry *e = entry_of(p, flow);

	if (e == NULL || (e->messages && dir == PLACE_RX))
		return -EINVAL;
	if (dir == PLACE_RX &&
		position > atomic_load_explicit(&e->cursor[PLACE_RX], memory_order_relaxed))
		return -EINVAL;
	if (dir == PLACE_TX) {
		if (position < atomic_load_explicit(&e->cursor[dir], memory_order_relaxed) ||
			position > atomic_load_explicit(&e->list[dir].tail, memory_order_relaxed))
			return -EINVAL;
		SHARED_STORE(&e->cursor[dir], position);
	}
	retire(p, e, dir, position);
	return 0;
}

int place_retire_messages(struct place *p, uint32_t flow, uint32_t message)
{
	struct entry *e = entry_of(p, flow);

	if (e == NULL || !e->messages ||
		(int32_t)(message - atomic_load_explicit(&e->message, memory_order_relaxed)) < 0)
		return -EINVAL;
	SHARED_STORE(&e->message, message);
	retire(p, e, PLACE_RX, (uint64_t)message << 32);
	return 0;
}

/* ---- taking back ---- */

/* Segments of a chunk from i on. */
static void forget(struct place *p, struct list *l, uint32_t c, unsigned i)
{
	for (; i < PLACE_CHUNK_MS; i++) {
		const uint64_t ms = atomic_load_explicit(&p->chunk[c].ms[i], memory_order_relaxed);

		if (ms == 0)
			return;
		region_unref(p, ms_mr(ms));
		l->segments--;
		atomic_store_explicit(&p->chunk[c].ms[i], 0, memory_order_relaxed);
	}
}

/* The list ends with the first i segments of chunk c. */
static void end_at(struct place *p, struct entry *e, struct list *l, uint32_t c, unsigned i)
{
	uint32_t next = atomic_load_explicit(&p->link[c].next, memory_order_relaxed);

	forget(p, l, c, i);
	atomic_store_explicit(&p->link[c].next, NONE, memory_order_relaxed);
	l->last = c;
	l->used = (uint16_t)i;
	while (next != NONE) {
		c = next;
		next = atomic_load_explicit(&p->link[c].next, memory_order_relaxed);
		forget(p, l, c, 0);
		pile_put(p, &p->chunks, c);
		hold(p, e, -1);
	}
}

int place_cut(struct place *p, uint32_t flow, uint64_t position)
{
	struct entry *e = entry_of(p, flow);
	struct list *l;
	uint64_t key, ms;
	uint32_t c;
	unsigned i;

	if (e == NULL || e->messages)
		return -EINVAL;
	l = &e->list[PLACE_RX];
	c = atomic_load_explicit(&l->first, memory_order_relaxed);
	if (position == atomic_load_explicit(&l->tail, memory_order_relaxed))
		return 0;
	if (c == NONE || (int64_t)(position - (key = retired_key(p, l, c, false))) < 0 ||
		position > atomic_load_explicit(&l->tail, memory_order_relaxed))
		return -EINVAL;
	for (i = l->retired;; i++) {
		if (i == PLACE_CHUNK_MS) {
			c = atomic_load_explicit(&p->link[c].next, memory_order_relaxed);
			i = 0;
		}
		ms = atomic_load_explicit(&p->chunk[c].ms[i], memory_order_relaxed);
		if (position - key < ms_len(ms))
			break;
		key += ms_len(ms);
	}
	if (position > key) {
		ms = ms_make(ms_mr(ms), false, (uint32_t)(position - key), ms_offset(ms));
		atomic_store_explicit(&p->chunk[c].ms[i++], ms, memory_order_relaxed);
	}
	end_at(p, e, l, c, i);
	*hint_of(p, e, PLACE_RX) = (struct hint){0};
	SHARED_STORE(&l->tail, position);
	return 0;
}

void list_clear(struct place *p, struct entry *e, enum place_dir dir)
{
	struct list *l = &e->list[dir];
	uint32_t c = atomic_load_explicit(&l->first, memory_order_relaxed);

	for (unsigned i = l->retired; c != NONE; i = 0) {
		const uint32_t next = atomic_load_explicit(&p->link[c].next, memory_order_relaxed);
		uint64_t ms;

		for (; i < PLACE_CHUNK_MS; i++) {
			ms = atomic_load_explicit(&p->chunk[c].ms[i], memory_order_relaxed);
			if (ms == 0)
				break;
			region_unref(p, ms_mr(ms));
		}
		pile_put(p, &p->chunks, c);
		hold(p, e, -1);
		c = next;
	}
}
