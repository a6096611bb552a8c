/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/runtime/tap.h"

#include "dataplane/runtime/worker.h"

static_assert(TAP_PACKETS == (int)WORKER_MAX_PACKETS, "numbers of packets");
static_assert(TAP_BURST == (int)WORKER_TX_BURST, "packets sent at once");

/* ---- one record ---- */

static bool passes(const struct tap *t, const struct rte_mbuf *m)
{
	const uint32_t n = m->nb_segs == 1 ? m->pkt_len : RTE_MIN(m->pkt_len, (uint32_t)TAP_LOOK);
	uint8_t look[TAP_LOOK];

	return bpf_filter(t->filter, rte_pktmbuf_read(m, 0, n, look), m->pkt_len, n) != 0;
}

static void fill(struct tap *t, const struct rte_mbuf *m, const struct tap_record *r)
{
	const uint64_t place = t->head & (t->size - 1);
	uint8_t *to = t->ring + place;
	const void *data = rte_pktmbuf_read(m, 0, r->cap, to + sizeof(*r));

	*(struct tap_record *)to = *r;
	if (data != to + sizeof(*r))
		memcpy(to + sizeof(*r), data, r->cap);
	t->last = (uint32_t)place;
	t->head += r->size;
}

/* A record is in one piece: what is left of the ring before its beginning may be too short. */
static enum tap_fate put(struct tap *t, const struct rte_mbuf *m, uint64_t now, bool out)
{
	const uint32_t cap = RTE_MIN(m->pkt_len, t->snaplen);
	const struct tap_record r = {.ns = now,
		.size = RTE_ALIGN_CEIL((uint32_t)sizeof(r) + cap, 8),
		.len = m->pkt_len,
		.cap = cap,
		.out = out};
	const uint64_t place = t->head & (t->size - 1);
	const uint64_t skip = t->size - place < r.size ? t->size - place : 0;
	const uint64_t used = t->head - atomic_load_explicit(&t->taken, memory_order_acquire);

	if (t->filter && !passes(t, m))
		return TAP_FILTERED;
	if (used + skip + r.size > t->size)
		return TAP_DROPPED;
	if (skip)
		*(uint64_t *)(t->ring + place) = TAP_SKIP;
	t->head += skip;
	fill(t, m, &r);
	return TAP_CAPTURED;
}

static void count(struct tap *t, enum tap_fate fate)
{
	t->captured += fate == TAP_CAPTURED;
	t->dropped += fate == TAP_DROPPED;
	t->filtered += fate == TAP_FILTERED;
}

/* ---- bursts ---- */

static void tap_in(struct tap *t, uint64_t now, struct rte_mbuf *const *mbufs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const enum tap_fate fate = put(t, mbufs[i], now, false);

		count(t, fate);
		if (fate != TAP_CAPTURED)
			continue;
		t->marked = true;
		t->at[mbufs[i]->hash.usr] = 1 + t->last;
	}
}

void taps_in(struct worker *w, uint16_t port, struct rte_mbuf *const *mbufs, unsigned n)
{
	for (struct tap *t = w->taps; t; t = t->next)
		if (t->port == port && t->in)
			tap_in(t, w->now, mbufs, n);
}

static void tap_out(struct tap *t, uint64_t now, struct rte_mbuf *const *mbufs, unsigned n)
{
	t->burst_head = t->head;
	for (unsigned i = 0; i < n; i++) {
		t->fate[i] = put(t, mbufs[i], now, true);
		t->end[i] = t->head;
	}
}

void taps_out(struct worker *w, uint16_t port, struct rte_mbuf *const *mbufs, unsigned n)
{
	for (struct tap *t = w->taps; t; t = t->next)
		if (t->port == port && t->out)
			tap_out(t, w->now, mbufs, n);
}

void taps_sent(struct worker *w, uint16_t port, unsigned sent)
{
	for (struct tap *t = w->taps; t; t = t->next) {
		if (t->port != port || !t->out)
			continue;
		for (unsigned i = 0; i < sent; i++)
			count(t, t->fate[i]);
		t->head = sent ? t->end[sent - 1] : t->burst_head;
	}
}

static void tap_ended(struct tap *t, struct worker *w, struct rte_mbuf *const *mbufs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const uint32_t at = t->at[mbufs[i]->hash.usr];

		if (at)
			((struct tap_record *)(t->ring + at - 1))->drop =
				meta_of(w, mbufs[i])->drop;
	}
}

void taps_ended(struct worker *w, struct rte_mbuf *const *mbufs, unsigned n)
{
	for (struct tap *t = w->taps; t; t = t->next)
		if (t->marked)
			tap_ended(t, w, mbufs, n);
}

void taps_show(struct worker *w)
{
	for (struct tap *t = w->taps; t; t = t->next) {
		if (t->marked)
			memset(t->at, 0, sizeof(t->at));
		t->marked = false;
		atomic_store_explicit(&t->shown, t->head, memory_order_release);
	}
}

/* ---- the reader ---- */

/* Bytes up to the oldest record: 0, or the rest of the ring. */
static uint64_t skipped(const struct tap *t, uint64_t taken)
{
	const uint64_t place = taken & (t->size - 1);

	return *(const uint64_t *)(t->ring + place) == TAP_SKIP ? t->size - place : 0;
}

const struct tap_record *tap_peek(const struct tap *t)
{
	uint64_t taken = atomic_load_explicit(&t->taken, memory_order_relaxed);
	const uint64_t shown = atomic_load_explicit(&t->shown, memory_order_acquire);

	if (taken == shown)
		return NULL;
	taken += skipped(t, taken);
	return (const struct tap_record *)(t->ring + (taken & (t->size - 1)));
}

void tap_take(struct tap *t)
{
	const uint64_t taken = atomic_load_explicit(&t->taken, memory_order_relaxed);
	const struct tap_record *r = tap_peek(t);

	if (r)
		atomic_store_explicit(
			&t->taken, taken + skipped(t, taken) + r->size, memory_order_release);
}
