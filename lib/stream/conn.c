/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of connections, the program's operations on them, and when it hears of these. */
#include "lib/stream/conn.h"

#include <errno.h>
#include <string.h>

/* ---- connections ---- */

static uint32_t bucket_of(const struct stream *s, const struct place_tuple *t)
{
	uint64_t word[sizeof(*t) / 8], h = s->config.place.seed;

	memcpy(word, t, sizeof(*t));
	for (unsigned i = 0; i < sizeof(*t) / 8; i++) {
		h = (h ^ word[i]) * 0xd6e8feb86659fd93;
		h ^= h >> 32;
	}
	return (uint32_t)h & s->bucket_mask;
}

struct conn *conn_find(const struct stream *s, const struct place_tuple *t)
{
	struct conn *c = s->bucket[bucket_of(s, t)];

	while (c != NULL && memcmp(&c->tuple, t, sizeof(*t)) != 0)
		c = c->hash_next;
	return c;
}

/* The oldest in TIME-WAIT makes room for a new one, unless its program has not heard of its end. */
struct conn *conn_new(struct stream *s, const struct place_tuple *t, const uint8_t mac[6])
{
	struct conn **bucket = &s->bucket[bucket_of(s, t)];
	struct op *closing;
	struct conn *c;
	uint32_t handle;

	c = TAILQ_FIRST(&s->waiting);
	if (TAILQ_EMPTY(&s->unused) && c != NULL && !c->owed)
		conn_forget(s, c);
	c = TAILQ_FIRST(&s->unused);
	/* Room for all that may still have to be told, to a program that does not listen. */
	if (c == NULL || s->done_head - s->done_tail + s->config.max_ops + 4 * (s->n_conns + 1) >
				 s->done_mask + 1)
		return NULL;
	closing = TAILQ_FIRST(&s->free_ops);
	if (closing == NULL)
		return NULL;
	TAILQ_REMOVE(&s->free_ops, closing, link);
	TAILQ_REMOVE(&s->unused, c, age);
	handle = ((c->handle >> 16) + 1) << 16 | (uint32_t)(c - s->conn);
	memset(c, 0, sizeof(*c));
	c->handle = handle;
	c->closing = closing;
	c->tuple = *t;
	memcpy(c->mac, mac, 6);
	TAILQ_INIT(&c->tx);
	TAILQ_INIT(&c->rx);
	TAILQ_INIT(&c->held);
	segs_init(&c->log);
	c->hash_next = *bucket;
	*bucket = c;
	s->n_conns++;
	return c;
}

static void no_arrival(struct stream *s, struct conn *c)
{
	if (c->arriving)
		TAILQ_REMOVE(&s->arrivals, c, arrival);
	c->arriving = false;
}

static void not_paced(struct stream *s, struct conn *c)
{
	if (c->paced)
		TAILQ_REMOVE(&s->paced, c, pacing);
	c->paced = false;
}

void conn_forget(struct stream *s, struct conn *c)
{
	struct conn **at = &s->bucket[bucket_of(s, &c->tuple)];

	while (*at != c)
		at = &(*at)->hash_next;
	*at = c->hash_next;
	if (c->state == TIME_WAIT)
		TAILQ_REMOVE(&s->waiting, c, age);
	if (c->on_work)
		TAILQ_REMOVE(&s->work, c, work);
	c->on_work = false;
	no_arrival(s, c);
	not_paced(s, c);
	c->state = FREE;
	s->n_conns--;
	if (!c->owed)
		TAILQ_INSERT_TAIL(&s->unused, c, age);
}

void conn_heard_of(struct stream *s, uint32_t handle)
{
	struct conn *c = &s->conn[handle & 0xffff];

	c->owed = false;
	if (c->state == FREE)
		TAILQ_INSERT_TAIL(&s->unused, c, age);
}

void conn_work(struct stream *s, struct conn *c)
{
	if (c->on_work)
		return;
	c->on_work = true;
	TAILQ_INSERT_TAIL(&s->work, c, work);
}

void conn_due(struct stream *s, struct conn *c, uint64_t when)
{
	uint64_t *timer = &s->timer[c - s->conn];

	*timer = min_u64(*timer, when);
	s->due = min_u64(s->due, when);
}

void conn_pace(struct stream *s, struct conn *c)
{
	if (!c->paced)
		TAILQ_INSERT_TAIL(&s->paced, c, pacing);
	c->paced = true;
	s->pace_due = min_u64(s->pace_due, c->pace_at);
}

void conn_paced(struct stream *s)
{
	struct conn *c, *next;

	if (s->now < s->pace_due)
		return;
	s->pace_due = UINT64_MAX;
	for (c = TAILQ_FIRST(&s->paced); c != NULL; c = next) {
		next = TAILQ_NEXT(c, pacing);
		if (s->now < c->pace_at) {
			s->pace_due = min_u64(s->pace_due, c->pace_at);
			continue;
		}
		not_paced(s, c);
		conn_work(s, c);
	}
}

static void tell(
	struct stream *s, enum stream_event event, uint32_t conn, uint64_t cookie, int64_t result)
{
	s->done[s->done_head++ & s->done_mask] =
		(struct stream_completion){event, conn, cookie, result};
	if (s->armed && s->config.notify != NULL)
		s->config.notify(s->config.notify_arg);
	s->armed = false;
}

/* ---- operations ---- */

/* Told when the data path has been quiet, after those before it. */
static void rest(struct stream *s, struct op *op)
{
	TAILQ_INSERT_TAIL(&s->settling, op, link);
	s->unsettled++;
}

/* The program may look at its buffers up to here when no duplicate can be on its way into them. */
static void arrive(struct stream *s, struct conn *c, uint64_t ready)
{
	if (!s->config.arrivals || c->arriving || ready <= c->known)
		return;
	c->arriving = true;
	c->arrived = ready;
	c->arrival_ticket = place_grace(s->place);
	TAILQ_INSERT_TAIL(&s->arrivals, c, arrival);
}

static void tell_arrivals(struct stream *s)
{
	struct conn *c;

	while ((c = TAILQ_FIRST(&s->arrivals)) != NULL &&
		place_passed(s->place, c->arrival_ticket)) {
		no_arrival(s, c);
		c->known = c->arrived;
		if (!c->arrival_told)
			tell(s, STREAM_ARRIVED, c->handle, c->cookie,
				(int64_t)(c->known - c->origin));
		c->arrival_told = true;
		conn_work(s, c);
	}
}

/* The program may have its memory back when the data path cannot be at it any more. */
static void settle(struct stream *s, struct op_list *from, struct op *op, int64_t result)
{
	TAILQ_REMOVE(from, op, link);
	op->result = result;
	if (op->posted)
		place_mr_remove(s->place, op->mr);
	rest(s, op);
}

void conn_settled(struct stream *s)
{
	struct op *op;

	if (s->unsettled > 0) {
		const uint64_t ticket = place_grace(s->place);

		TAILQ_FOREACH_REVERSE(op, &s->settling, op_list, link)
		{
			if (s->unsettled-- == 0)
				break;
			op->ticket = ticket;
		}
		s->unsettled = 0;
	}
	tell_arrivals(s);
	while ((op = TAILQ_FIRST(&s->settling)) != NULL && place_passed(s->place, op->ticket)) {
		TAILQ_REMOVE(&s->settling, op, link);
		tell(s, op->event, op->conn, op->cookie, op->result);
		TAILQ_INSERT_TAIL(&s->free_ops, op, link);
	}
}

/* As many as the lists of segments take; in order, the rest later. */
static bool post_list(struct stream *s, struct conn *c, struct op_list *list, enum place_dir dir)
{
	struct op *op;

	TAILQ_FOREACH(op, list, link)
	{
		uint64_t *tail = dir == PLACE_RX ? &c->rx_tail : &c->tail;

		if (op->posted)
			continue;
		if (place_mr_add(s->place, op->buf, op->len, dir == PLACE_RX, &op->mr) < 0)
			return false;
		if (place_post(s->place, c->flow, dir, op->mr, 0, op->len) < 0) {
			place_mr_remove(s->place, op->mr);
			return false;
		}
		op->posted = true;
		op->start = *tail;
		*tail += op->len;
		op->end = *tail;
	}
	return true;
}

void conn_post(struct stream *s, struct conn *c)
{
	bool tx, rx;

	if (c->flow == 0)
		return;
	tx = post_list(s, c, &c->tx, PLACE_TX);
	rx = post_list(s, c, &c->rx, PLACE_RX);
	c->retry = !tx || !rx;
	if (c->retry)
		conn_due(s, c, s->now + RETRY);
}

void conn_open(struct stream *s, struct conn *c)
{
	c->state = ESTABLISHED;
	c->rtx_due = 0;
	c->backoff = 0;
	if (c->passive) {
		TAILQ_REMOVE(&s->half, c, age);
		s->n_half--;
	}
	c->origin = c->known = c->rcv;
	tell(s, c->passive ? STREAM_ACCEPTED : STREAM_CONNECTED, c->handle, c->cookie, 0);
	if (c->fin)
		c->state = FIN_WAIT;
	conn_post(s, c);
	conn_work(s, c);
}

/* In order, and in memory: nothing in front is still to be copied. */
uint64_t conn_ready(const struct conn *c)
{
	const struct held *h = TAILQ_FIRST(&c->held);
	uint64_t ready = c->fin_at != 0 ? min_u64(c->rcv, c->fin_at) : c->rcv;

	return h != NULL ? min_u64(ready, h->from) : ready;
}

void conn_complete(struct stream *s, struct conn *c)
{
	const uint64_t ready = conn_ready(c);
	const bool end = c->fin_at != 0 && c->rcv > c->fin_at && ready == c->fin_at;
	struct op *op;

	if (c->flow == 0)
		return;
	arrive(s, c, min_u64(ready, c->rx_tail));
	while ((op = TAILQ_FIRST(&c->rx)) != NULL && op->posted && (op->end <= ready || end)) {
		const uint64_t got = ready > op->start ? min_u64(ready, op->end) - op->start : 0;

		settle(s, &c->rx, op, (int64_t)got);
	}
	place_retire(s->place, c->flow, PLACE_RX, min_u64(ready, c->rx_tail));
	while ((op = TAILQ_FIRST(&c->tx)) != NULL && op->posted && op->end <= c->una)
		settle(s, &c->tx, op, (int64_t)op->len);
}

/* The data path is between two bursts: what its cursor says is right from its next packet on, and
 * no grace has to be waited for. Not before what is in slots yet: that goes where it is posted
 * then. */
void conn_recall(struct stream *s, struct conn *c, struct stream_recalled *out)
{
	const uint64_t posted = c->rx_tail;
	uint64_t ready, came;
	struct op *op;

	place_cursor(s->place, c->flow, c->rcv, max_u64(c->edge, c->rcv));
	conn_complete(s, c);
	ready = min_u64(conn_ready(c), posted);
	came = c->ahead.n > 0 ? c->ahead.r[c->ahead.n - 1].to : c->rcv;
	place_cut(s->place, c->flow, ready);
	while ((op = TAILQ_FIRST(&c->rx)) != NULL) {
		TAILQ_REMOVE(&c->rx, op, link);
		TAILQ_INSERT_TAIL(&s->free_ops, op, link);
		if (op->posted)
			place_mr_remove(s->place, op->mr);
		s->user_ops--;
	}
	/* As many can be posted at once. */
	for (unsigned i = 0; i < 2; i++) {
		place_quiesce(s->place);
		place_reclaim(s->place);
	}
	c->rx_tail = ready;
	/* What was to be told after a grace is known now. */
	no_arrival(s, c);
	c->known = max_u64(c->known, ready);
	*out = (struct stream_recalled){
		.from = ready - c->origin, .to = max_u64(ready, min_u64(came, posted)) - c->origin};
	conn_work(s, c);
}

void held_free(struct stream *s, struct held *h)
{
	TAILQ_INSERT_TAIL(&s->to_free, h, link);
}

/* Nothing of it is left in the tables that the data path sees. */
static void strip(struct stream *s, struct conn *c, int result)
{
	struct held *h;
	struct op *op;

	if (c->flow != 0)
		place_flow_remove(s->place, c->flow);
	c->flow = 0;
	segs_clear(&c->log, &s->segs);
	while ((op = TAILQ_FIRST(&c->rx)) != NULL)
		settle(s, &c->rx, op, result < 0 ? result : 0);
	while ((op = TAILQ_FIRST(&c->tx)) != NULL)
		settle(s, &c->tx, op, result < 0 ? result : -EPIPE);
	/* Those that are being copied are freed by their note. */
	while ((h = TAILQ_FIRST(&c->held)) != NULL) {
		TAILQ_REMOVE(&c->held, h, link);
		h->conn = NULL;
		if (!h->copying)
			held_free(s, h);
	}
	s->n_held -= c->n_held;
	c->n_held = 0;
}

void conn_end(struct stream *s, struct conn *c, int result, bool keep)
{
	if (c->state == SYN_RECEIVED) {
		TAILQ_REMOVE(&s->half, c, age);
		s->n_half--;
	}
	/* Nobody has heard of one that was half-open. */
	strip(s, c, result);
	if (c->state != SYN_RECEIVED) {
		*c->closing = (struct op){.event = STREAM_CLOSED,
			.conn = c->handle,
			.cookie = c->cookie,
			.result = result};
		rest(s, c->closing);
		c->owed = true;
	} else {
		TAILQ_INSERT_TAIL(&s->free_ops, c->closing, link);
	}
	no_arrival(s, c);
	c->reported = true;
	c->rtx_due = c->due = c->rec.probe_due = c->rec.reorder_due = 0;
	if (!keep) {
		conn_forget(s, c);
		return;
	}
	c->state = TIME_WAIT;
	c->due = s->now + s->config.time_wait;
	conn_due(s, c, c->due);
	TAILQ_INSERT_TAIL(&s->waiting, c, age);
}

/* A slot's bytes are where they belong. */
void conn_copied(struct stream *s, const struct stream_note *note)
{
	struct held *h = &s->held[note->slot];
	struct conn *c = h->conn;

	h->copying = false;
	if (c == NULL) {
		held_free(s, h);
		return;
	}
	if (note->result < 0) {
		conn_end(s, c, note->result, false);
		return;
	}
	h->from += note->len;
	h->offset += note->len;
	c->held_bytes -= note->len;
	if (h->from == h->to) {
		TAILQ_REMOVE(&c->held, h, link);
		c->n_held--;
		s->n_held--;
		held_free(s, h);
	}
	conn_work(s, c);
}

void conn_linger(struct stream *s, struct conn *c)
{
	if (!c->app_closed || c->state != FIN_WAIT || c->una <= c->tail || c->due != 0)
		return;
	c->progress = s->now;
	c->due = s->now + s->config.give_up;
	conn_due(s, c, c->due);
}

void conn_check_end(struct stream *s, struct conn *c)
{
	if (c->state != LAST_ACK || !c->fin || c->una <= c->tail || conn_ready(c) != c->fin_at)
		return;
	/* Who ended first waits, for the other's FIN may come again. */
	conn_end(s, c, 0, c->first);
}
