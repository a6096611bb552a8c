/* SPDX-License-Identifier: BSD-3-Clause */
/* A window by delay, for one datacentre: after Swift (SIGCOMM 2020, 3.2 and 3.4), from which it
 * differs in three ways. The target is the connection's least round trip and a queue, not a
 * configured path; the delay of a round is its least sample, for an end that is a process is late
 * for reasons of its own; and losses without delay are not congestion as long as they are few, as
 * BBR has it. So it is no good neighbour of CUBIC where queues are shorter than the target, and a
 * path that becomes longer for good is taken for a queue. */
#include "lib/stream/congestion.h"

enum { MILLION = 1000000, SAMPLE = 64, GAIN = 8, LEAST_FACTOR = 50 /* of 100, per round */ };

static void measure(struct congestion *cc, const struct cc_ack *ack)
{
	struct delay *d = &cc->delay;

	d->seen += ack->delivered;
	d->lost += ack->lost;
	if (d->seen + d->lost >= SAMPLE * (uint64_t)cc->mss) {
		const uint64_t share = d->lost * MILLION / (d->seen + d->lost);

		d->share = d->share - d->share / GAIN + share / GAIN;
		d->seen = d->lost = 0;
	}
	if (ack->rtt != 0 && (d->base == 0 || ack->rtt < d->base))
		d->base = ack->rtt;
	if (ack->rtt != 0 && (d->least == 0 || ack->rtt < d->least))
		d->least = ack->rtt;
}

static void floor_and_ceiling(struct congestion *cc)
{
	if (cc->cwnd < cc_least(cc))
		cc->cwnd = cc_least(cc);
	if (cc->cwnd > CC_MAX_WINDOW)
		cc->cwnd = CC_MAX_WINDOW;
}

static void end_of_round(struct congestion *cc, bool limited)
{
	struct delay *d = &cc->delay;
	const uint64_t target = d->base + cc->delay_target;

	if (d->least > target) {
		/* Swift's factor 0.8; never below half. */
		uint64_t keep = 100 - 80 * (d->least - target) / d->least;

		if (keep < LEAST_FACTOR)
			keep = LEAST_FACTOR;
		cc->cwnd = cc->cwnd * keep / 100;
		cc->ssthresh = cc->cwnd;
	} else if (limited && cc->cwnd >= cc->ssthresh) {
		cc->cwnd += cc->mss;
	}
	d->round_end = d->total + cc->cwnd;
	d->least = 0;
}

static void acked(struct congestion *cc, const struct cc_ack *ack)
{
	struct delay *d = &cc->delay;

	measure(cc, ack);
	d->total += ack->delivered;
	if (ack->limited && (ack->rtt == 0 || ack->rtt <= d->base + cc->delay_target))
		cc_slow_start(cc, ack->delivered);
	if (d->total >= d->round_end && d->least != 0)
		end_of_round(cc, ack->limited);
	floor_and_ceiling(cc);
}

static void lost(struct congestion *cc, uint64_t flight, bool timeout, uint64_t now)
{
	struct delay *d = &cc->delay;

	(void)flight;
	(void)now;
	if (!timeout && d->share <= cc->tolerance)
		return;
	cc->ssthresh = cc->cwnd * 7 / 10;
	if (cc->ssthresh < cc_least(cc))
		cc->ssthresh = cc_least(cc);
	cc->cwnd = cc->ssthresh; /* after a timeout the caller begins with less */
}

static void undo(struct congestion *cc)
{
	(void)cc;
}

const struct cc_ops cc_delay = {"delay", true, acked, lost, undo};
