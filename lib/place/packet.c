/* SPDX-License-Identifier: BSD-3-Clause */
/* The data path: from a position to memory, and the one copy. It reads what the control path
 * writes, and writes nothing of the engine but its hints and counters. */
#include <errno.h>
#include <string.h>

#include "lib/place/place_priv.h"

struct spot {
	uint64_t key, ms;
};

/* The segment that holds a key. -ENOENT: none, or retired with its chunk. -EMSGSIZE: behind the end
 * of its message's buffer. The hint lies in a chunk that can still be reached if its key does not
 * lie before the first chunk's: a list never gets a key twice. */
static int seek(const struct place *p, const struct entry *e, enum place_dir dir, uint64_t key,
	struct spot *spot)
{
	const bool messages = e->messages && dir == PLACE_RX;
	struct hint *hint = hint_of(p, e, dir), at = *hint;
	const uint32_t first = SHARED_LOAD(&e->list[dir].first);
	uint64_t base, ms, after;

	if (first == NONE)
		return -ENOENT;
	base = p->chunk[first].base;
	if ((int64_t)(key - base) < 0)
		return -ENOENT;
	if (at.chunk == NONE || (int64_t)(at.key - base) < 0 || (int64_t)(key - at.key) < 0)
		at = (struct hint){base, first, 0};
	for (;;) {
		if (at.i == PLACE_CHUNK_MS) {
			at.chunk = SHARED_LOAD(&p->link[at.chunk].next);
			at.i = 0;
		}
		ms = at.chunk == NONE ? 0 : SHARED_LOAD(&p->chunk[at.chunk].ms[at.i]);
		if (ms == 0)
			return -ENOENT;
		after = key_after(at.key, ms, messages);
		if ((int64_t)(key - after) < 0)
			break;
		at.key = after;
		at.i++;
	}
	*hint = at;
	*spot = (struct spot){at.key, ms};
	return key - at.key < ms_len(ms) ? 0 : -EMSGSIZE;
}

enum move { CHECK, TO_MEMORY, FROM_MEMORY };

/* Runs over the segments behind len bytes at key. */
static int run(const struct place *p, const struct entry *e, enum place_dir dir, uint64_t key,
	uint8_t *bytes, uint32_t len, enum move move)
{
	while (len > 0) {
		struct spot s;
		const int err = seek(p, e, dir, key, &s);
		const struct region *r;
		uint32_t into, part;
		uint8_t *memory;

		if (err < 0)
			return err;
		into = (uint32_t)(key - s.key);
		part = ms_len(s.ms) - into;
		part = part < len ? part : len;
		r = &p->region[ms_mr(s.ms)];
		memory = SHARED_LOAD(&r->base);
		if (memory == NULL || (uint64_t)ms_offset(s.ms) + into + part > r->len)
			return -EFAULT;
		memory += (uint64_t)ms_offset(s.ms) + into;
		PLACE_STEP(memory, move == TO_MEMORY);
		if (move == TO_MEMORY)
			memcpy(memory, bytes, part);
		else if (move == FROM_MEMORY)
			memcpy(bytes, memory, part);
		bytes += part;
		key += part;
		len -= part;
		/* The next byte of a message whose buffer is full has no place: its key is not that
		 * of the next message. */
	}
	return 0;
}

/* All of it or nothing, but for memory that goes away meanwhile. */
static int move_all(const struct place *p, const struct entry *e, enum place_dir dir, uint64_t key,
	uint8_t *bytes, uint32_t len, enum move move)
{
	const int err = run(p, e, dir, key, bytes, len, CHECK);

	return err < 0 ? err : run(p, e, dir, key, bytes, len, move);
}

static struct place_result dropped(struct place *p, struct place_result r, enum place_drop drop)
{
	p->count.drops[drop]++;
	r.verdict = PLACE_DROP;
	r.drop = drop;
	return r;
}

/* Of the first byte that is new. */
static enum place_drop key_of(const struct entry *e, const struct place_segment *seg,
	const struct place_result *r, uint64_t *key)
{
	uint32_t offset = seg->seq + r->skip - seg->message_start;

	*key = r->position + r->skip;
	if (!e->messages)
		return PLACE_OK;
	if ((int32_t)(seg->message - SHARED_LOAD(&e->message)) < 0)
		return PLACE_DROP_MESSAGE;
	if (offset > INT32_MAX)
		return PLACE_DROP_OVERRUN;
	*key = (uint64_t)seg->message << 32 | offset;
	return PLACE_OK;
}

static struct place_result place_it(struct place *p, const struct entry *e,
	const struct place_segment *seg, struct place_result r)
{
	const uint32_t len = seg->len - r.skip;
	enum place_drop drop;
	uint64_t key;
	int err;

	drop = key_of(e, seg, &r, &key);
	if (drop != PLACE_OK)
		return dropped(p, r, drop);
	err = move_all(
		p, e, PLACE_RX, key, (uint8_t *)(uintptr_t)seg->payload + r.skip, len, TO_MEMORY);
	if (err == -ENOENT) {
		p->count.deferred++;
		r.verdict = PLACE_DEFER;
		return r;
	}
	if (err < 0)
		return dropped(p, r, err == -EFAULT ? PLACE_DROP_MEMORY : PLACE_DROP_OVERRUN);
	p->count.packets++;
	p->count.bytes += len;
	p->count.ahead += r.at > 0;
	p->count.overlaps += r.skip > 0;
	return r;
}

struct place_result place_packet(struct place *p, uint32_t flow, const struct place_segment *seg)
{
	struct place_result r = {.verdict = PLACE_DROP};
	const struct entry *e = entry_of(p, flow);
	struct place_decision decision;
	uint64_t cursor, limit;

	if (e == NULL)
		return dropped(p, r, PLACE_DROP_FLOW);
	cursor = SHARED_LOAD(&e->cursor[PLACE_RX]);
	limit = SHARED_LOAD(&e->limit);
	r.at = (int32_t)(seg->seq - (uint32_t)cursor);
	r.position = cursor + (uint64_t)r.at;
	if (r.at + (int64_t)seg->len > (int64_t)(limit - cursor))
		return dropped(p, r, PLACE_DROP_WINDOW);
	decision = place_decide(
		&(struct place_flow){
			.reach = (int64_t)(limit - cursor),
			.posted = e->messages ? INT64_MAX
					      : (int64_t)(SHARED_LOAD(&e->list[PLACE_RX].tail) -
							  cursor),
			.unmatched = PLACE_DEFER,
		},
		r.at, seg->len);
	r.verdict = decision.verdict;
	r.skip = decision.skip;
	if (r.verdict == PLACE_DROP)
		return dropped(p, r, PLACE_DROP_OLD);
	if (r.verdict == PLACE_DEFER) {
		r.skip = r.at < 0 ? (uint32_t)-r.at : 0;
		p->count.deferred++;
		return r;
	}
	return place_it(p, e, seg, r);
}

int place_write(
	struct place *p, uint32_t flow, uint64_t position, const uint8_t *payload, uint32_t len)
{
	const struct entry *e = entry_of(p, flow);
	int err;

	if (e == NULL || e->messages)
		return -EINVAL;
	err = move_all(p, e, PLACE_RX, position, (uint8_t *)(uintptr_t)payload, len, TO_MEMORY);
	if (err == 0)
		p->count.copied += len;
	return err;
}

int place_read(struct place *p, uint32_t flow, uint64_t position, uint8_t *payload, uint32_t len)
{
	const struct entry *e = entry_of(p, flow);

	if (e == NULL)
		return -EINVAL;
	if ((int64_t)(position - SHARED_LOAD(&e->cursor[PLACE_TX])) < 0)
		return -ESTALE;
	return run(p, e, PLACE_TX, position, payload, len, FROM_MEMORY);
}

int place_sent(const struct place *p, uint32_t flow, uint64_t *acked, uint64_t *tail)
{
	const struct entry *e = entry_of(p, flow);

	if (e == NULL)
		return -EINVAL;
	*acked = SHARED_LOAD(&e->cursor[PLACE_TX]);
	*tail = SHARED_LOAD(&e->list[PLACE_TX].tail);
	return 0;
}
