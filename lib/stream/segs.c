/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/stream/segs.h"

enum { ALWAYS = 4 }; /* entries that a connection may have however few are left */

void segs_init(struct segs *log)
{
	*log = (struct segs){.n = 0};
	TAILQ_INIT(&log->order);
	TAILQ_INIT(&log->flight);
	TAILQ_INIT(&log->lost);
}

bool segs_may_add(const struct segs *log, const struct seg_pool *pool)
{
	return pool->n > 0 && (log->n < ALWAYS || log->n < pool->n);
}

/* Retransmissions go in the order of their positions. They are mostly found lost in it, too. */
static void insert_lost(struct segs *log, struct seg *seg)
{
	struct seg *k = TAILQ_LAST(&log->lost, seg_list);

	while (k != NULL && k->from > seg->from)
		k = TAILQ_PREV(k, seg_list, state_link);
	if (k != NULL)
		TAILQ_INSERT_AFTER(&log->lost, k, seg, state_link);
	else
		TAILQ_INSERT_HEAD(&log->lost, seg, state_link);
}

static void leave(struct segs *log, struct seg *seg)
{
	if (seg->state == SEG_FLIGHT) {
		TAILQ_REMOVE(&log->flight, seg, state_link);
		log->flight_bytes -= seg->to - seg->from;
	} else if (seg->state == SEG_LOST) {
		TAILQ_REMOVE(&log->lost, seg, state_link);
		log->lost_bytes -= seg->to - seg->from;
	} else {
		log->n_sacked--;
	}
}

/* Into flight: as the one that was sent last. */
static void enter(struct segs *log, struct seg *seg, enum seg_state state)
{
	seg->state = state;
	if (state == SEG_FLIGHT) {
		TAILQ_INSERT_TAIL(&log->flight, seg, state_link);
		log->flight_bytes += seg->to - seg->from;
	} else if (state == SEG_LOST) {
		insert_lost(log, seg);
		log->lost_bytes += seg->to - seg->from;
	} else {
		log->n_sacked++;
	}
}

struct seg *segs_add(
	struct segs *log, struct seg_pool *pool, uint64_t from, uint64_t to, uint64_t now)
{
	struct seg *seg;

	if (!segs_may_add(log, pool))
		return NULL;
	seg = TAILQ_FIRST(&pool->unused);
	TAILQ_REMOVE(&pool->unused, seg, order);
	pool->n--;
	*seg = (struct seg){.from = from, .to = to, .at = now};
	TAILQ_INSERT_TAIL(&log->order, seg, order);
	log->n++;
	enter(log, seg, SEG_FLIGHT);
	return seg;
}

void segs_again(struct segs *log, struct seg *seg, uint64_t now)
{
	leave(log, seg);
	seg->at = now;
	seg->again = true;
	enter(log, seg, SEG_FLIGHT);
}

void segs_set(struct segs *log, struct seg *seg, enum seg_state state)
{
	struct seg *k;

	leave(log, seg);
	if (state != SEG_FLIGHT) {
		enter(log, seg, state);
		return;
	}
	/* Back to its place among those that were sent before and after it. */
	seg->state = SEG_FLIGHT;
	log->flight_bytes += seg->to - seg->from;
	k = TAILQ_LAST(&log->flight, seg_list);
	while (k != NULL && (k->at > seg->at || (k->at == seg->at && k->from > seg->from)))
		k = TAILQ_PREV(k, seg_list, state_link);
	if (k != NULL)
		TAILQ_INSERT_AFTER(&log->flight, k, seg, state_link);
	else
		TAILQ_INSERT_HEAD(&log->flight, seg, state_link);
}

static void give_back(struct segs *log, struct seg_pool *pool, struct seg *seg)
{
	leave(log, seg);
	if (log->hint == seg)
		log->hint = NULL;
	TAILQ_REMOVE(&log->order, seg, order);
	log->n--;
	TAILQ_INSERT_HEAD(&pool->unused, seg, order);
	pool->n++;
}

bool segs_take(struct segs *log, struct seg_pool *pool, uint64_t ack, struct seg *was)
{
	struct seg *seg = TAILQ_FIRST(&log->order);

	if (seg == NULL || seg->from >= ack)
		return false;
	*was = *seg;
	if (seg->to <= ack) {
		give_back(log, pool, seg);
		return true;
	}
	was->to = ack;
	if (seg->state == SEG_FLIGHT)
		log->flight_bytes -= ack - seg->from;
	else if (seg->state == SEG_LOST)
		log->lost_bytes -= ack - seg->from;
	seg->from = ack;
	return true;
}

struct seg *segs_from(struct segs *log, uint64_t at)
{
	struct seg *k = log->hint != NULL ? log->hint : TAILQ_LAST(&log->order, seg_list);

	if (k == NULL)
		return NULL;
	while (k != NULL && k->from >= at)
		k = TAILQ_PREV(k, seg_list, order);
	if (k == NULL)
		return TAILQ_FIRST(&log->order);
	while (k != NULL && k->from < at)
		k = TAILQ_NEXT(k, order);
	return k;
}

void segs_clear(struct segs *log, struct seg_pool *pool)
{
	while (!TAILQ_EMPTY(&log->order))
		give_back(log, pool, TAILQ_FIRST(&log->order));
}
