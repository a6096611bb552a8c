/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of packets sent and the lists of their states: snd.c's and tail.c's own. */
#ifndef MRC_SND_RING_H
#define MRC_SND_RING_H

#include "lib/mrc/rcv.h"
#include "lib/mrc/snd.h"
#include "lib/wire/psn.h"

enum { SND_NONE = 0xffff }; /* no place */

static inline size_t snd_capacity(unsigned mpr_units)
{
	size_t n = MRC_MPR_UNIT;

	while (n < (size_t)mpr_units * MRC_MPR_UNIT)
		n *= 2;
	return n;
}

static inline uint16_t snd_place(const struct mrc_snd *s, uint32_t psn)
{
	return (uint16_t)(psn & s->mask);
}

/* The PSN of a place that is in a list: one of the last capacity that were sent. */
static inline uint32_t snd_psn_of(const struct mrc_snd *s, uint16_t i)
{
	const uint32_t newest = psn_add(s->next, -1);

	return psn_add(newest, -(int32_t)((newest - i) & s->mask));
}

static inline void snd_push(struct mrc_snd *s, uint16_t i, enum mrc_sent_state state)
{
	struct mrc_list *l = &s->list[state];
	struct mrc_sent *e = &s->sent[i];

	e->state = (uint8_t)state;
	e->next = SND_NONE;
	e->prev = l->tail;
	*(l->tail == SND_NONE ? &l->head : &s->sent[l->tail].next) = i;
	l->tail = i;
	l->n++;
}

static inline void snd_cut(struct mrc_snd *s, uint16_t i)
{
	struct mrc_sent *e = &s->sent[i];
	struct mrc_list *l = &s->list[e->state];

	*(e->prev == SND_NONE ? &l->head : &s->sent[e->prev].next) = e->next;
	*(e->next == SND_NONE ? &l->tail : &s->sent[e->next].prev) = e->prev;
	l->n--;
	e->state = MRC_ARRIVED;
}

/* Of two transmissions on one path. */
static inline bool snd_later(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

/* Off the way, its path's list apart. The oldest is in the marks of all that are left, others only
 * in those of later ones, hence counted if they are known to have come. */
static inline void snd_leave(struct mrc_snd *s, uint16_t i, bool came)
{
	s->heard += came || s->list[MRC_FLIGHT].head == i;
	s->flight_bytes -= s->sent[i].bytes;
	snd_cut(s, i);
}

static inline void snd_count_lost(struct mrc_news *news, unsigned ev, uint32_t bytes)
{
	news->lost++;
	news->lost_bytes += bytes;
	news->bad_ev[ev / 64] |= UINT64_C(1) << ev % 64;
}

static inline uint64_t snd_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
