/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/stream/rack.h"

static const uint64_t epoch_ns = 10000000000;

void rack_init(struct rack *r)
{
	*r = (struct rack){.mult = 1};
}

uint64_t rack_min_rtt(const struct rack *r)
{
	if (r->min == 0 || (r->min_before != 0 && r->min_before < r->min))
		return r->min_before;
	return r->min;
}

void rack_rtt(struct rack *r, uint64_t rtt, uint64_t now)
{
	rtt += rtt == 0;
	if (now - r->epoch >= epoch_ns) {
		r->min_before = r->min;
		r->min = 0;
		r->epoch = now;
	}
	if (r->min == 0 || rtt < r->min)
		r->min = rtt;
}

static bool sent_after(uint64_t at, uint64_t end, uint64_t than_at, uint64_t than_end)
{
	return at > than_at || (at == than_at && end > than_end);
}

void rack_delivered(struct rack *r, const struct seg *seg, uint64_t now)
{
	const uint64_t rtt = now - seg->at;

	if (seg->to > r->fack)
		r->fack = seg->to;
	else if (seg->to < r->fack && !seg->again)
		r->reordering_seen = true;
	/* Faster than the path is: it was an earlier one that came. */
	if (seg->again && rtt < rack_min_rtt(r))
		return;
	if (sent_after(seg->at, seg->to, r->sent, r->end)) {
		r->sent = seg->at;
		r->end = seg->to;
		r->rtt = rtt;
	}
}

void rack_dsack(struct rack *r, uint64_t una, uint64_t nxt)
{
	/* The first one was not lost, so it was overtaken. */
	r->reordering_seen = true;
	if (r->dsack_round != 0 && una < r->dsack_round)
		return;
	r->dsack_round = nxt;
	if (r->mult < RACK_MAX_MULT)
		r->mult++;
	r->persist = RACK_PERSIST;
}

void rack_recovered(struct rack *r)
{
	if (r->persist > 0 && --r->persist == 0)
		r->mult = 1;
}

uint64_t rack_window(const struct rack *r, bool recovering, uint32_t n_sacked, uint64_t srtt)
{
	const uint64_t window = r->mult * (rack_min_rtt(r) / 4);

	if (!r->reordering_seen && (recovering || n_sacked >= RACK_DUP_THRESH))
		return 0;
	return window < srtt ? window : srtt;
}

uint64_t rack_losses(
	const struct rack *r, struct segs *log, uint64_t window, uint64_t now, bool *again)
{
	struct seg *seg, *next;
	uint64_t due = 0;

	*again = false;
	if (r->end == 0)
		return 0;
	for (seg = TAILQ_FIRST(&log->flight); seg != NULL && seg->at <= r->sent; seg = next) {
		next = TAILQ_NEXT(seg, state_link);
		if (!sent_after(r->sent, r->end, seg->at, seg->to))
			continue;
		if (seg->at + r->rtt + window <= now) {
			*again |= seg->again;
			segs_set(log, seg, SEG_LOST);
		} else {
			due = seg->at + r->rtt + window;
		}
	}
	return due;
}

void rack_timeout(const struct rack *r, struct segs *log, uint64_t window, uint64_t now)
{
	struct seg *seg, *next;

	for (seg = TAILQ_FIRST(&log->flight); seg != NULL; seg = next) {
		next = TAILQ_NEXT(seg, state_link);
		if (seg == TAILQ_FIRST(&log->order) || seg->at + r->rtt + window <= now)
			segs_set(log, seg, SEG_LOST);
	}
}

uint64_t tlp_timeout(uint64_t srtt, uint32_t n, uint64_t least, uint64_t ack_delay)
{
	const uint64_t pto = 2 * srtt + (n == 1 ? ack_delay : 0);

	return pto > least ? pto : least;
}

bool tlp_acked(struct tlp *t, uint64_t ack, bool dsack, bool plain_dup)
{
	if (t->end == 0 || ack < t->end)
		return false;
	if (t->retransmitted && !dsack && ack == t->end && !plain_dup)
		return false; /* whether something was missing will be seen */
	dsack |= !t->retransmitted || ack == t->end;
	t->end = 0;
	return !dsack;
}
