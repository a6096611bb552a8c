/* SPDX-License-Identifier: BSD-3-Clause */
/* What an acknowledgement says of segments, losses and the window, and what the timers do: RACK and
 * tail loss probes (RFC 8985), recovery (RFC 6675 with RFC 6937; RFC 6582 without SACK), the
 * retransmission timer (RFC 6298), what is undone (RFC 3708, 5682). */
#include <errno.h>

#include "lib/stream/conn.h"

/* What one acknowledgement has delivered. */
struct delivery {
	uint64_t bytes, lost;
	uint64_t rtt;       /* of a segment that was sent once; 0: no sample */
	bool moved;         /* the left edge */
	bool original;      /* of what recovery is about, something that was sent once */
	bool limited;       /* the window was what held the sender back */
	bool lost_again;    /* a retransmission */
	struct range twice; /* to 0: no report */
	uint64_t flight;    /* before it */
	struct rate_sample rate;
	struct range block[TCP_MAX_SACK];
	unsigned n_blocks;
};

uint64_t conn_pipe(const struct conn *c)
{
	const uint64_t pipe = c->log.flight_bytes;

	/* Each duplicate says that one has left; so the first two let new ones go (RFC 3042). */
	return pipe - (c->sack ? 0 : min_u64(pipe, c->dupacks * (uint64_t)c->mss));
}

void conn_rtt(struct stream *s, struct conn *c, uint64_t rtt)
{
	const uint64_t off = rtt > c->srtt ? rtt - c->srtt : c->srtt - rtt;

	if (c->srtt == 0) {
		c->srtt = max_u64(rtt, 1);
		c->rttvar = rtt / 2;
	} else {
		c->rttvar += off / 4 - c->rttvar / 4;
		c->srtt = max_u64(c->srtt + rtt / 8 - c->srtt / 8, 1);
	}
	rack_rtt(&c->rec.rack, rtt, s->now);
	c->rto = min_u64(max_u64(c->srtt + 4 * c->rttvar, s->config.rto_min), s->config.rto_max);
}

void conn_arm_probe(struct stream *s, struct conn *c)
{
	struct recovery *r = &c->rec;

	r->probe_due = 0;
	if (!c->sack || c->srtt == 0 || r->phase != OPEN || r->tlp.end != 0 ||
		TAILQ_EMPTY(&c->log.flight) || c->log.n_sacked > 0 || c->rtx_due == 0)
		return;
	r->probe_due =
		s->now + tlp_timeout(c->srtt, c->log.n, s->config.tlp_min, s->config.ack_delay);
	if (r->probe_due >= c->rtx_due)
		r->probe_due = 0;
	else
		conn_due(s, c, r->probe_due);
}

/* ---- what an acknowledgement delivers ---- */

static void deliver(struct stream *s, struct conn *c, const struct seg *seg, struct delivery *d)
{
	struct recovery *r = &c->rec;

	d->bytes += seg->to - seg->from;
	rate_delivered(&c->rate, &d->rate, seg, s->now);
	if (!seg->again) {
		const uint64_t rtt = max_u64(s->now - seg->at, 1);

		if (d->rtt == 0 || rtt < d->rtt)
			d->rtt = rtt;
		d->original |= seg->to <= r->point;
	}
	/* While it is open whether the timeout was for nothing, one that was sent again may have
	 * come the first time. */
	if (!seg->again || r->undo.frto == FRTO_OFF)
		rack_delivered(&r->rack, seg, s->now);
}

/* What the options say, in the order of positions: only then overtaking can be seen in it. */
static void read_blocks(
	const struct conn *c, const struct wire_tcp *tcp, uint64_t ack, struct delivery *d)
{
	for (unsigned i = 0; i < tcp->n_sack; i++) {
		const struct range r = {position_of(c->una, tcp->sack[i].from),
			position_of(c->una, tcp->sack[i].to)};
		unsigned k = d->n_blocks;

		if (r.from >= r.to || r.to > c->nxt)
			continue;
		/* RFC 2883, 4: before what is acknowledged, or within the next block. */
		if (i == 0 &&
			(r.to <= ack || (tcp->n_sack > 1 &&
						r.from >= position_of(c->una, tcp->sack[1].from) &&
						r.to <= position_of(c->una, tcp->sack[1].to)))) {
			d->twice = r;
			continue;
		}
		if (r.from <= ack)
			continue;
		for (; k > 0 && d->block[k - 1].from > r.from; k--)
			d->block[k] = d->block[k - 1];
		d->block[k] = r;
		d->n_blocks++;
	}
}

/* Blocks grow at their ends: what was in one that came before is not gone through again. */
static uint64_t known_to(const struct conn *c, uint64_t from)
{
	for (unsigned i = 0; i < TCP_MAX_SACK; i++)
		if (c->rec.known[i].from <= from && from < c->rec.known[i].to)
			from = c->rec.known[i].to;
	return from;
}

static void take_blocks(struct stream *s, struct conn *c, struct delivery *d)
{
	for (unsigned i = 0; i < d->n_blocks; i++) {
		struct range *b = &d->block[i];
		const uint64_t from = known_to(c, b->from);
		struct seg *seg = from < b->to ? segs_from(&c->log, from) : NULL;
		uint64_t end = from;

		for (; seg != NULL && seg->to <= b->to; seg = TAILQ_NEXT(seg, order)) {
			end = seg->to;
			c->log.hint = seg;
			if (seg->state == SEG_SACKED)
				continue;
			deliver(s, c, seg, d);
			segs_set(&c->log, seg, SEG_SACKED);
		}
		b->to = end;
	}
	for (unsigned i = 0; i < TCP_MAX_SACK && d->n_blocks > 0; i++)
		c->rec.known[i] = i < d->n_blocks ? d->block[i] : (struct range){0, 0};
}

static void take_left_edge(struct stream *s, struct conn *c, uint64_t ack, struct delivery *d)
{
	struct seg was;

	while (segs_take(&c->log, &s->segs, ack, &was))
		if (was.state != SEG_SACKED)
			deliver(s, c, &was, d);
	if (!c->sack) {
		/* Duplicates have counted it already (RFC 6937, 3). */
		const uint64_t counted = c->dupacks * (uint64_t)c->mss;

		d->bytes -= min_u64(d->bytes, counted);
	}
	d->moved = true;
	c->una = ack;
	c->dupacks = 0;
	c->backoff = 0;
	c->progress = s->now;
	c->rtx_due = c->una < c->nxt ? s->now + c->rto : 0;
	if (c->rtx_due != 0)
		conn_due(s, c, c->rtx_due);
	if (ack > c->tail)
		c->due = 0; /* no probe */
	conn_linger(s, c);
	if (c->flow != 0)
		place_retire(s->place, c->flow, PLACE_TX, min_u64(ack, c->tail));
}

/* ---- recovery ---- */

/* Window before, window after: once per round of losses. */
static void begin_repair(struct stream *s, struct conn *c)
{
	struct recovery *r = &c->rec;

	if (r->phase == OPEN)
		undo_begin(&r->undo, c->cc.cwnd, c->cc.ssthresh, c->una, c->nxt, false);
	c->cc.ops->lost(&c->cc, c->nxt - c->una, false, s->now);
	r->phase = REPAIR;
	r->point = c->nxt;
	prr_begin(&r->prr, c->nxt - c->una);
	r->probe_due = 0;
	r->tlp.end = 0;
	s->count[STREAM_COUNT_REPAIRS]++;
}

static void end_recovery(struct conn *c)
{
	struct recovery *r = &c->rec;

	if (r->phase == REPAIR && !c->cc.ops->own_recovery)
		c->cc.cwnd = c->cc.ssthresh;
	r->phase = OPEN;
	r->undo.frto = FRTO_OFF;
	rack_recovered(&r->rack);
}

/* It was all for nothing: what was taken for lost is on its way. */
static void undo(struct stream *s, struct conn *c)
{
	struct undo *u = &c->rec.undo;
	struct seg *seg;

	while ((seg = TAILQ_FIRST(&c->log.lost)) != NULL)
		segs_set(&c->log, seg, SEG_FLIGHT);
	c->cc.cwnd = max_u64(c->cc.cwnd, u->cwnd);
	c->cc.ssthresh = max_u64(c->cc.ssthresh, u->ssthresh);
	c->cc.ops->undo(&c->cc);
	c->rec.phase = OPEN;
	c->rec.force = false;
	undo_forget(u);
	s->count[STREAM_COUNT_UNDONE]++;
}

static uint64_t reorder_window(const struct conn *c)
{
	return rack_window(&c->rec.rack, c->rec.phase != OPEN, c->log.n_sacked, c->srtt);
}

/* Without SACK: the third duplicate, or a partial acknowledgement (RFC 6582, 3.2). */
static void find_lost_unseen(struct conn *c, const struct delivery *d)
{
	struct seg *first = TAILQ_FIRST(&c->log.order);
	const bool third = c->rec.phase == OPEN && c->dupacks == 3 && c->una >= c->rec.point;
	const bool partial = c->rec.phase == REPAIR && d->moved && c->una < c->rec.point;

	if (first == NULL || first->state != SEG_FLIGHT || !(third || partial))
		return;
	segs_set(&c->log, first, SEG_LOST);
	c->rec.force = true; /* at once, whatever the window is */
}

/* What has become lost since, by what came or by time. */
static void find_lost(struct stream *s, struct conn *c, struct delivery *d)
{
	struct recovery *r = &c->rec;
	const uint64_t before = c->log.lost_bytes;

	if (c->sack) {
		r->reorder_due =
			rack_losses(&r->rack, &c->log, reorder_window(c), s->now, &d->lost_again);
		if (r->reorder_due != 0)
			conn_due(s, c, r->reorder_due);
	} else {
		find_lost_unseen(c, d);
	}
	d->lost = c->log.lost_bytes - before;
	s->count[STREAM_COUNT_LOST] += (d->lost + c->mss - 1) / c->mss;
	if (TAILQ_EMPTY(&c->log.lost))
		return;
	/* A lost retransmission is another sign of congestion (RFC 5681, 4.3). */
	if (r->phase == OPEN || (r->phase == REPAIR && d->lost_again))
		begin_repair(s, c);
	conn_work(s, c);
}

static void set_window(struct stream *s, struct conn *c, const struct delivery *d)
{
	const struct cc_ack ack = {.now = s->now,
		.flight = conn_pipe(c),
		.flight_before = d->flight,
		.total = c->rate.delivered,
		.rate = d->rate,
		.delivered = d->bytes,
		.lost = d->lost,
		.rtt = d->rtt,
		.srtt = c->srtt,
		.limited = d->limited,
		.recovering = c->rec.phase == REPAIR,
		.timed_out = c->rec.phase == LOSS};

	if (c->rec.phase == REPAIR && !c->cc.ops->own_recovery)
		c->cc.cwnd = prr_window(&c->rec.prr, d->bytes, d->moved && d->lost == 0,
			conn_pipe(c), c->cc.ssthresh, c->mss);
	else if (c->sack ? d->bytes > 0 || d->lost > 0 : d->moved)
		c->cc.ops->acked(&c->cc, &ack);
	c->cc.cwnd = min_u64(c->cc.cwnd, CC_MAX_WINDOW);
}

static void take_reports(struct stream *s, struct conn *c, const struct delivery *d)
{
	struct recovery *r = &c->rec;
	const bool twice = d->twice.to != 0;

	if (twice) {
		s->count[STREAM_COUNT_DSACKS]++;
		rack_dsack(&r->rack, c->una, c->nxt);
		if (undo_twice(&r->undo, d->twice.from, d->twice.to) && TAILQ_EMPTY(&c->log.lost))
			undo(s, c);
	}
	if (undo_frto(&r->undo, c->una, d->moved, d->original))
		undo(s, c);
	if (tlp_acked(&r->tlp, c->una, twice, !d->moved && d->n_blocks == 0)) {
		s->count[STREAM_COUNT_TAIL_REPAIRED]++;
		if (r->phase == OPEN) {
			c->cc.ops->lost(&c->cc, c->nxt - c->una, false, s->now);
			c->cc.cwnd = min_u64(c->cc.cwnd, c->cc.ssthresh);
		}
	}
}

void conn_acked(
	struct stream *s, struct conn *c, const struct wire_tcp *tcp, uint64_t ack, bool dup)
{
	struct delivery d = {.bytes = 0};
	const uint64_t pipe = d.flight = conn_pipe(c);

	d.limited = pipe + 2 * (uint64_t)c->mss > c->cc.cwnd ||
		    (c->cc.cwnd < c->cc.ssthresh && 2 * pipe >= c->cc.cwnd);
	ack = max_u64(ack, c->una);
	if (c->sack)
		read_blocks(c, tcp, ack, &d);
	if (ack > c->una)
		take_left_edge(s, c, ack, &d);
	take_blocks(s, c, &d);
	if (dup && !c->sack && c->dupacks < c->log.n) {
		c->dupacks++;
		d.bytes += c->mss;
	}
	if (d.rtt != 0)
		conn_rtt(s, c, d.rtt);
	take_reports(s, c, &d);
	if (c->rec.phase != OPEN && c->una >= c->rec.point)
		end_recovery(c);
	find_lost(s, c, &d);
	rate_finish(&c->rate, &d.rate, rack_min_rtt(&c->rec.rack));
	set_window(s, c, &d);
	if (d.moved || d.bytes > 0)
		conn_arm_probe(s, c);
	conn_work(s, c);
}

/* ---- timers ---- */

static void timeout(struct stream *s, struct conn *c)
{
	struct recovery *r = &c->rec;
	struct seg *seg = TAILQ_FIRST(&c->log.order), *k;
	/* The first one for this segment. */
	const bool first = r->phase == OPEN || (r->phase == LOSS && c->backoff == 0);

	/* A peer that has given up what it said it had (RFC 2018, 8). */
	if (seg != NULL && seg->state == SEG_SACKED) {
		TAILQ_FOREACH(k, &c->log.order, order)
		if (k->state == SEG_SACKED)
			segs_set(&c->log, k, SEG_LOST);
		for (unsigned i = 0; i < TCP_MAX_SACK; i++)
			r->known[i] = (struct range){0, 0};
	}
	if (first) {
		undo_begin(&r->undo, c->cc.cwnd, c->cc.ssthresh, c->una, c->nxt, c->sack);
		c->cc.ops->lost(&c->cc, c->nxt - c->una, true, s->now);
	} else {
		r->undo.frto = FRTO_OFF;
	}
	rack_timeout(&r->rack, &c->log, c->sack ? reorder_window(c) : 0, s->now);
	c->cc.cwnd = c->mss;
	r->phase = LOSS;
	r->point = c->nxt;
	r->force = true;
	r->probe = false;
	r->tlp.end = 0;
	r->probe_due = r->reorder_due = 0;
	c->dupacks = 0;
	c->rtx_due = 0;
}

static void run_recovery(struct stream *s, struct conn *c)
{
	struct recovery *r = &c->rec;
	struct delivery d = {.flight = conn_pipe(c)};

	if (r->reorder_due != 0 && s->now >= r->reorder_due) {
		r->reorder_due = 0;
		find_lost(s, c, &d);
		set_window(s, c, &d);
	}
	if (r->probe_due != 0 && s->now >= r->probe_due) {
		r->probe_due = 0;
		r->probe = true;
		conn_work(s, c);
	}
	if (c->rtx_due != 0 && s->now >= c->rtx_due) {
		s->count[STREAM_COUNT_TIMEOUTS]++;
		if (c->state <= SYN_RECEIVED)
			c->rtx_due = 0;
		else
			timeout(s, c);
		if (c->rto << c->backoff < s->config.rto_max)
			c->backoff++;
		conn_work(s, c);
	}
	if (r->reorder_due != 0)
		conn_due(s, c, r->reorder_due);
	if (r->probe_due != 0)
		conn_due(s, c, r->probe_due);
	if (c->rtx_due != 0)
		conn_due(s, c, c->rtx_due);
}

void conn_timers(struct stream *s, struct conn *c)
{
	if (c->state != TIME_WAIT && (c->rtx_due != 0 || c->due != 0) &&
		s->now - c->progress >= s->config.give_up) {
		conn_end(s, c, -ETIMEDOUT, false);
		return;
	}
	run_recovery(s, c);
	if (c->retry)
		conn_work(s, c);
	if (c->due != 0 && s->now >= c->due) {
		c->due = 0;
		if (c->state == TIME_WAIT) {
			conn_forget(s, c);
			return;
		}
		if (c->una > c->tail) { /* nothing is left to be sent: conn_linger */
			conn_end(s, c, -ETIMEDOUT, false);
			return;
		}
		c->probe = true;
		if (c->rto << c->backoff < s->config.rto_max)
			c->backoff++;
		conn_work(s, c);
	}
	if (c->due != 0)
		conn_due(s, c, c->due);
}
