/* SPDX-License-Identifier: BSD-3-Clause */
/* BBR, the first version, as Linux has it under this name (net/ipv4/tcp_bbr.c;
 * draft-cardwell-iccrg-bbr-congestion-control-00): the path is modelled by the most that it has
 * delivered and the least round trip; segments are paced at that rate, and a loss is nothing but a
 * segment to be sent again. It is what ZeroNIC was measured with (OSDI '24, table 1).
 *
 * Left out: the detection of policers; when sending begins anew after a pause, pacing at the plain
 * rate, and a look whether PROBE_RTT is over. The most of the last 8 to 16 rounds counts, not of 10
 * (of what acknowledgements hold back 5 to 10); and beside two products of rate and delay the
 * window has room for six segments and for what acknowledgements are seen to hold back, also before
 * the path has been found, not for three times 64 KB, which Linux adds for the sake of its offloads
 * and which is more than a short path has. */
#include "lib/stream/congestion.h"

/* Gains are of 256. */
enum { UNIT = 256, HIGH = UNIT * 2885 / 1000 + 1, DRAIN = UNIT * 1000 / 2885, PHASES = 8 };
enum {
	ROUNDS = 8,
	FULL_ROUNDS = 3,
	LEAST = 4 /* segments */,
	SPARE = 6 /* segments */,
	QUANTUM = 65536
};

static const uint64_t min_rtt_window = 10000000000, probe_rtt_time = 200000000;
static const uint16_t cycle[PHASES] = {
	UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT};

static uint64_t max_bw(const struct bbr *b)
{
	return b->bw[0] > b->bw[1] ? b->bw[0] : b->bw[1];
}

static uint64_t bdp(const struct bbr *b, uint32_t gain)
{
	const double bytes = (double)max_bw(b) * (double)b->min_rtt / 1e9 * gain / UNIT;

	return bytes < CC_MAX_WINDOW ? (uint64_t)bytes : CC_MAX_WINDOW;
}

static void enter_cycle(struct congestion *cc, uint64_t now)
{
	struct bbr *b = &cc->bbr;

	b->mode = BBR_PROBE_BW;
	b->window_gain = 2 * UNIT;
	/* Flows begin at different phases; not with the one that sends less. */
	b->phase = (uint8_t)((PHASES - 1 - cc->seed % (PHASES - 1) + 1) % PHASES);
	b->phase_at = now;
	b->pace_gain = cycle[b->phase];
}

/* ---- the model ---- */

static void update_round(struct bbr *b, const struct cc_ack *ack)
{
	b->round_begins = ack->rate.bytes_per_s != 0 && ack->rate.delivered >= b->round_end;
	if (!b->round_begins)
		return;
	b->round_end = ack->total;
	b->conserving = false;
}

static void update_bw(struct bbr *b, const struct cc_ack *ack)
{
	const uint64_t rate = ack->rate.bytes_per_s;

	b->limited = ack->rate.limited || ack->rate.delivered < b->limited_to;
	if (rate == 0 || (b->limited && rate < max_bw(b)))
		return;
	if (b->round_begins && ++b->bw_rounds >= ROUNDS) {
		b->bw[1] = b->bw[0];
		b->bw[0] = 0;
		b->bw_rounds = 0;
	}
	if (rate > b->bw[0])
		b->bw[0] = rate;
}

/* What came of acknowledgements that were more than the rate says: so much may be under way, and
 * nobody has heard of it. */
static void update_extra(struct congestion *cc, const struct cc_ack *ack)
{
	struct bbr *b = &cc->bbr;
	uint64_t expected = (uint64_t)((double)max_bw(b) * (double)(ack->now - b->burst_at) / 1e9);

	if (b->round_begins && ++b->extra_rounds >= ROUNDS) {
		b->extra[1] = b->extra[0];
		b->extra[0] = 0;
		b->extra_rounds = 0;
	}
	if (b->burst <= expected) {
		b->burst = expected = 0;
		b->burst_at = ack->now;
	}
	b->burst += ack->delivered;
	if (b->burst - expected > b->extra[0])
		b->extra[0] = b->burst - expected;
	if (b->extra[0] > cc->cwnd)
		b->extra[0] = cc->cwnd;
}

static uint64_t room(const struct congestion *cc)
{
	const struct bbr *b = &cc->bbr;
	const uint64_t extra = b->extra[0] > b->extra[1] ? b->extra[0] : b->extra[1];
	const uint64_t most = max_bw(b) / 10;

	return SPARE * (uint64_t)cc->mss + (extra < most ? extra : most);
}

static void next_phase(struct bbr *b, const struct cc_ack *ack)
{
	const bool long_enough = ack->now - b->phase_at > b->min_rtt;
	bool over = long_enough;

	if (b->mode != BBR_PROBE_BW)
		return;
	if (b->pace_gain > UNIT)
		over = long_enough && (ack->lost > 0 || ack->flight_before >= bdp(b, b->pace_gain));
	else if (b->pace_gain < UNIT)
		over = long_enough || ack->flight_before <= bdp(b, UNIT);
	if (!over)
		return;
	b->phase = (b->phase + 1) % PHASES;
	b->phase_at = ack->now;
	b->pace_gain = cycle[b->phase];
}

/* Three rounds that have not brought a quarter more: the pipe is full. */
static void look_whether_full(struct bbr *b)
{
	if (b->full || !b->round_begins || b->limited)
		return;
	if (max_bw(b) >= b->full_bw + b->full_bw / 4) {
		b->full_bw = max_bw(b);
		b->full_rounds = 0;
		return;
	}
	b->full = ++b->full_rounds >= FULL_ROUNDS;
}

static void look_whether_drained(struct congestion *cc, const struct cc_ack *ack)
{
	struct bbr *b = &cc->bbr;

	if (b->mode == BBR_STARTUP && b->full) {
		b->mode = BBR_DRAIN;
		b->pace_gain = DRAIN;
	}
	if (b->mode == BBR_DRAIN && ack->flight <= bdp(b, UNIT))
		enter_cycle(cc, ack->now);
}

static void keep_window(struct congestion *cc)
{
	struct bbr *b = &cc->bbr;

	if (b->busy || b->mode == BBR_PROBE_RTT)
		b->prior = b->prior > cc->cwnd ? b->prior : cc->cwnd;
	else
		b->prior = cc->cwnd;
}

static void leave_probe_rtt(struct congestion *cc, const struct cc_ack *ack)
{
	struct bbr *b = &cc->bbr;

	b->min_rtt_at = ack->now;
	cc->cwnd = cc->cwnd > b->prior ? cc->cwnd : b->prior;
	if (b->full) {
		enter_cycle(cc, ack->now);
		return;
	}
	b->mode = BBR_STARTUP;
	b->pace_gain = b->window_gain = HIGH;
}

/* After ten seconds without a round trip as short as the least, nearly nothing is sent for a while,
 * so that queues, all flows' at once, run empty. */
static void update_min_rtt(struct congestion *cc, const struct cc_ack *ack)
{
	struct bbr *b = &cc->bbr;
	const bool old = b->min_rtt != 0 && ack->now > b->min_rtt_at + min_rtt_window;

	if (ack->rtt != 0 && (b->min_rtt == 0 || ack->rtt <= b->min_rtt || old)) {
		b->min_rtt = ack->rtt;
		b->min_rtt_at = ack->now;
	}
	/* Whoever had nothing to send has emptied the queue by that. */
	if (old && b->mode != BBR_PROBE_RTT && !(ack->rate.began && ack->rate.limited)) {
		keep_window(cc);
		b->mode = BBR_PROBE_RTT;
		b->pace_gain = b->window_gain = UNIT;
		b->probe_end = 0;
	}
	if (b->mode != BBR_PROBE_RTT)
		return;
	b->limited_to = ack->total + ack->flight; /* its rates say nothing of the path */
	if (b->probe_end == 0 && ack->flight <= LEAST * (uint64_t)cc->mss) {
		b->probe_end = ack->now + probe_rtt_time;
		b->probe_round = false;
		b->round_end = ack->total;
	} else if (b->probe_end != 0) {
		b->probe_round |= b->round_begins;
		if (b->probe_round && ack->now > b->probe_end)
			leave_probe_rtt(cc, ack);
	}
}

/* ---- rate and window ---- */

static void set_pace(struct congestion *cc, const struct cc_ack *ack)
{
	struct bbr *b = &cc->bbr;
	/* A hundredth less, so that queues do not grow by what is rounded. */
	const uint64_t rate = max_bw(b) / 100 * 99 / UNIT * b->pace_gain;

	/* The first acknowledgement may be of a few bytes, whose rate is nothing. */
	if (cc->pace == 0 && ack->srtt != 0)
		cc->pace = (uint64_t)((double)cc->cwnd * 1e9 / (double)ack->srtt) * HIGH / UNIT;
	if (rate != 0 && (b->full || rate > cc->pace))
		cc->pace = rate;
	cc->quantum = cc->pace / 1000; /* a millisecond */
	if (cc->quantum > QUANTUM)
		cc->quantum = QUANTUM;
	if (cc->quantum < 2 * (uint64_t)cc->mss)
		cc->quantum = 2 * (uint64_t)cc->mss;
}

/* In its first round a recovery sends what has left; then the window is what the model says. */
static void follow_recovery(struct congestion *cc, const struct cc_ack *ack)
{
	struct bbr *b = &cc->bbr;
	const bool busy = ack->recovering || ack->timed_out;

	if (ack->lost > 0)
		cc->cwnd = cc->cwnd > ack->lost + cc->mss ? cc->cwnd - ack->lost : cc->mss;
	if (ack->recovering && !b->recovering) {
		b->conserving = true;
		b->round_end = ack->total;
		cc->cwnd = ack->flight + ack->delivered;
	} else if (!busy && b->busy) {
		b->conserving = false;
		cc->cwnd = cc->cwnd > b->prior ? cc->cwnd : b->prior;
	}
	b->recovering = ack->recovering;
	b->busy = busy;
}

static void set_window(struct congestion *cc, const struct cc_ack *ack)
{
	struct bbr *b = &cc->bbr;
	const uint64_t target = bdp(b, b->window_gain) + room(cc);
	const uint64_t least = LEAST * (uint64_t)cc->mss;

	follow_recovery(cc, ack);
	if (b->conserving) {
		if (cc->cwnd < ack->flight + ack->delivered)
			cc->cwnd = ack->flight + ack->delivered;
	} else {
		if (b->full)
			cc->cwnd = cc->cwnd + ack->delivered < target ? cc->cwnd + ack->delivered
								      : target;
		else if (cc->cwnd < target || ack->total < 10 * (uint64_t)cc->mss)
			cc->cwnd += ack->delivered;
		if (cc->cwnd < least)
			cc->cwnd = least;
	}
	if (b->mode == BBR_PROBE_RTT && cc->cwnd > least)
		cc->cwnd = least;
}

static void acked(struct congestion *cc, const struct cc_ack *ack)
{
	struct bbr *b = &cc->bbr;

	if (b->pace_gain == 0)
		b->pace_gain = b->window_gain = HIGH;
	update_round(b, ack);
	update_bw(b, ack);
	update_extra(cc, ack);
	next_phase(b, ack);
	look_whether_full(b);
	look_whether_drained(cc, ack);
	update_min_rtt(cc, ack);
	set_pace(cc, ack);
	set_window(cc, ack);
}

static void lost(struct congestion *cc, uint64_t flight, bool timeout, uint64_t now)
{
	(void)flight;
	(void)now;
	keep_window(cc);
	if (timeout) {
		cc->bbr.full_bw = 0;
		cc->bbr.busy = true;
		cc->bbr.recovering = cc->bbr.conserving = false;
	}
}

static void undo(struct congestion *cc)
{
	cc->bbr.full_bw = 0;
	cc->bbr.full_rounds = 0;
}

const struct cc_ops cc_bbr = {"bbr", true, acked, lost, undo};
