/* SPDX-License-Identifier: BSD-3-Clause */
/* CUBIC (RFC 9438). After a loss the window is 0.7 of what it was, and grows as the cube of time
 * around where the loss was, or as Reno's would if that is more. In segments and seconds, as the
 * RFC has it. */
#include <math.h>

#include "lib/stream/congestion.h"

static const double C = 0.4, BETA = 0.7;

static double segments(const struct congestion *cc)
{
	return (double)cc->cwnd / cc->mss;
}

/* 4.2: where the cube's turning point lies. */
static void begin(struct congestion *cc, uint64_t now)
{
	struct cubic *q = &cc->cubic;
	const double w = segments(cc);

	q->epoch = now;
	q->w_est = w;
	if (w < q->w_max) {
		q->k = cbrt((q->w_max - w) / C);
		q->origin = q->w_max;
	} else {
		q->k = 0;
		q->origin = w;
	}
}

static double cube(const struct cubic *q, uint64_t t_ns)
{
	const double t = (double)t_ns / 1e9 - q->k;

	return q->origin + C * t * t * t;
}

/* 4.3: what Reno would have with the same average and this factor. */
static void reno(struct congestion *cc, double acked)
{
	struct cubic *q = &cc->cubic;
	const double prior = (double)q->prior / cc->mss;
	const double alpha = q->w_est >= prior ? 1 : 3 * (1 - BETA) / (1 + BETA);

	q->w_est += alpha * acked / segments(cc);
}

static void acked(struct congestion *cc, const struct cc_ack *ack)
{
	struct cubic *q = &cc->cubic;
	const uint64_t left = ack->limited ? cc_slow_start(cc, ack->delivered) : 0;
	double n, w, target;
	uint64_t t;

	if (!ack->limited && q->epoch != 0) /* 5.8: no time passes for one who does not send */
		q->epoch = 0;
	if (left == 0)
		return;
	if (q->epoch == 0)
		begin(cc, ack->now);
	n = (double)left / cc->mss;
	w = segments(cc);
	t = ack->now - q->epoch;
	reno(cc, n);
	if (cube(q, t) < q->w_est) {
		if (q->w_est > w)
			w = q->w_est;
	} else {
		target = cube(q, t + ack->srtt);
		target = target < w ? w : target > 1.5 * w ? 1.5 * w : target;
		w += (target - w) / w * n;
	}
	cc->cwnd = (uint64_t)(w * cc->mss);
}

static void lost(struct congestion *cc, uint64_t flight, bool timeout, uint64_t now)
{
	struct cubic *q = &cc->cubic;
	const double w = segments(cc);
	const uint64_t cut = (uint64_t)(BETA * (double)cc->cwnd);

	(void)flight; /* 4.6: the window only grows while it is what limits */
	(void)now;
	(void)timeout;
	q->was_max = q->w_max;
	/* 4.7: another flow wants room. */
	q->w_max = w < q->w_max ? w * (1 + BETA) / 2 : w;
	q->prior = cc->cwnd;
	q->epoch = 0;
	cc->ssthresh = cut > cc_least(cc) ? cut : cc_least(cc);
}

static void undo(struct congestion *cc)
{
	cc->cubic.w_max = cc->cubic.was_max;
	cc->cubic.epoch = 0;
}

const struct cc_ops cc_cubic = {"cubic", false, acked, lost, undo};
