/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways of congestion control beside their formulas, and proportional rate reduction, by hand:
 * no stack, no packets. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/stream/congestion.h"
#include "lib/stream/prr.h"
#include "lib/stream/segs.h"

enum { MSS = 1000 };

static const uint64_t ms = 1000000, us = 1000;

static struct congestion start(enum stream_cc way, uint64_t cwnd)
{
	struct congestion cc;
	struct stream_config config = {.cc = way, .loss_tolerance = 20000, .delay_target = 25 * us};

	cc_init(&cc, &config, MSS);
	assert_int_equal(cc.cwnd, 10 * MSS);
	cc.cwnd = cwnd;
	return cc;
}

/* One window is acknowledged, segment by segment, in a round trip. */
static void round_trip(struct congestion *cc, uint64_t *now, uint64_t rtt, bool limited)
{
	const uint64_t n = cc->cwnd / MSS, from = *now;

	for (uint64_t i = 1; i <= n; i++) {
		*now = from + rtt * i / n;
		cc->ops->acked(cc, &(struct cc_ack){.now = *now,
					   .delivered = MSS,
					   .rtt = rtt,
					   .srtt = rtt,
					   .limited = limited});
	}
}

static void cut(struct congestion *cc, uint64_t now)
{
	cc->ops->lost(cc, cc->cwnd, false, now);
	cc->cwnd = cc->ssthresh;
}

static void test_names(void **state)
{
	(void)state;
	for (int i = 0; i < STREAM_N_CCS; i++)
		assert_int_equal(stream_cc_by_name(stream_cc_name(i)), i);
	assert_int_equal(stream_cc_by_name("reno"), -1);
}

static void test_newreno(void **state)
{
	struct congestion cc = start(STREAM_NEWRENO, 10 * MSS);
	uint64_t now = 1;

	(void)state;
	round_trip(&cc, &now, ms, true);
	assert_int_equal(cc.cwnd, 20 * MSS); /* slow start */
	cut(&cc, now);
	assert_int_equal(cc.cwnd, 10 * MSS);
	for (unsigned i = 0; i < 10; i++)
		round_trip(&cc, &now, ms, true);
	assert_in_range(cc.cwnd, 19 * MSS, 20 * MSS + MSS / 2);
	round_trip(&cc, &now, ms, false); /* who does not use it gets no more */
	assert_in_range(cc.cwnd, 19 * MSS, 20 * MSS + MSS / 2);
}

/* RFC 9438, figures 1 and 2: W(t) = 0.4 (t - K)^3 + W_max, K the cube root of 0.3 W_max / 0.4. */
static void test_cubic_curve(void **state)
{
	const uint64_t rtt = 100 * ms;
	struct congestion cc = start(STREAM_CUBIC, 1000 * MSS);
	const double k = cbrt(300 / 0.4);
	uint64_t now = 1, from;

	(void)state;
	cut(&cc, now);
	assert_int_equal(cc.cwnd, 700 * MSS);
	from = now;
	while (now < from + 14000 * ms) {
		const double t = (double)(now - from) / 1e9, w = 0.4 * pow(t - k, 3) + 1000;

		if (fabs((double)cc.cwnd / MSS - w) > 0.02 * w)
			fail_msg("%.1f s: %.1f segments, not %.1f", t, (double)cc.cwnd / MSS, w);
		round_trip(&cc, &now, rtt, true);
	}
	assert_true(cc.cwnd > 1040 * MSS);
}

/* 4.3: where Reno would be faster, as fast as it: at 0.7, 9/17 of a segment per round trip, and one
 * when it is where it was. */
static void test_cubic_as_reno(void **state)
{
	struct congestion cc = start(STREAM_CUBIC, 20 * MSS);
	uint64_t now = 1;

	(void)state;
	cut(&cc, now);
	assert_int_equal(cc.cwnd, 14 * MSS);
	for (unsigned i = 0; i < 10; i++)
		round_trip(&cc, &now, ms, true);
	assert_in_range(cc.cwnd, 18800, 19800); /* 14 + 10 * 0.53 */
	for (unsigned i = 0; i < 12; i++)
		round_trip(&cc, &now, ms, true);
	assert_in_range(cc.cwnd, 28000, 31500); /* 20 + 10 */
}

static void test_cubic_convergence_and_undo(void **state)
{
	struct congestion cc = start(STREAM_CUBIC, 100 * MSS);

	(void)state;
	cut(&cc, 1);
	assert_true(fabs(cc.cubic.w_max - 100) < 0.01);
	cut(&cc, 2); /* 70 segments, less than it had: another flow wants room */
	assert_true(fabs(cc.cubic.w_max - 70 * 0.85) < 0.01);
	cc.ops->undo(&cc);
	assert_true(fabs(cc.cubic.w_max - 100) < 0.01);
	for (unsigned i = 0; i < 50; i++)
		cut(&cc, 3);
	assert_int_equal(cc.cwnd, 2 * MSS);
}

/* The window goes where the queue is as long as it is to be. */
static void test_delay(void **state)
{
	struct congestion cc = start(STREAM_DELAY, 10 * MSS);
	uint64_t now = 1, total = 0;

	(void)state;
	/* 1 Gb/s, 100 us: 12.5 segments, 8 us each. */
	for (unsigned i = 0; i < 400; i++) {
		const uint64_t queue = cc.cwnd > 12500 ? (cc.cwnd - 12500) * 8 : 0;

		round_trip(&cc, &now, 100 * us + queue, true);
		total += i >= 200 ? cc.cwnd : 0;
	}
	assert_in_range(total / 200, 12500, 12500 + 6000); /* 25 us are 3.1 segments */
}

/* Few losses without delay leave the window; many cut it, and a timeout does. */
static void test_delay_losses(void **state)
{
	static const struct {
		uint64_t of; /* one of so many */
		bool cut;
	} cases[] = {{100, false}, {66, false}, {30, true}, {10, true}};

	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		struct congestion cc = start(STREAM_DELAY, 50 * MSS);
		uint64_t before;

		cc.ssthresh = 50 * MSS;
		for (unsigned i = 0; i < 6000; i++)
			cc.ops->acked(&cc, &(struct cc_ack){.now = i * us,
						   .delivered = MSS,
						   .lost = i % cases[k].of ? 0 : MSS,
						   .rtt = 100 * us});
		before = cc.cwnd;
		cc.ops->lost(&cc, cc.cwnd, false, 0);
		assert_int_equal(cc.cwnd < before, cases[k].cut);
	}
	struct congestion cc = start(STREAM_DELAY, 50 * MSS);

	cc.ops->lost(&cc, cc.cwnd, true, 0);
	assert_int_equal(cc.ssthresh, 35 * MSS);
}

/* RFC 6937, its first example: one segment of 100 is lost, the window is to be 70: of ten that come
 * seven are sent, from the first on, and at the end 70 are on their way. */
static void test_prr(void **state)
{
	struct prr p;
	uint64_t pipe = 99 * MSS, sent = 0;

	(void)state;
	prr_begin(&p, 100 * MSS);
	for (unsigned i = 0; i < 99; i++) {
		uint64_t n;

		pipe -= MSS;
		n = (prr_window(&p, MSS, i > 0, pipe, 70 * MSS, MSS) - pipe) / MSS;
		assert_true(n <= 2);
		prr_sent(&p, n * MSS);
		pipe += n * MSS;
		sent += n;
		assert_true(sent + 1 >= (i + 1) * 7 / 10 && sent <= (i + 1) * 7 / 10 + 2);
	}
	assert_in_range(pipe, 69 * MSS, 71 * MSS);
}

/* Most of it is lost: no burst; as much as comes, and one more while there is progress. */
static void test_prr_heavy(void **state)
{
	struct prr p;
	uint64_t pipe = 9 * MSS;

	(void)state;
	prr_begin(&p, 100 * MSS);
	for (unsigned i = 0; i < 9; i++) {
		uint64_t n;

		pipe -= MSS;
		n = (prr_window(&p, MSS, i % 2, pipe, 70 * MSS, MSS) - pipe) / MSS;
		assert_true(n <= 1 + i % 2);
		prr_sent(&p, n * MSS);
		pipe += n * MSS;
	}
	assert_in_range(pipe, 9 * MSS, 19 * MSS);
}

/* The log: counters beside its lists, whatever is done to it. */
static void check_log(struct segs *log)
{
	uint64_t flight = 0, lost = 0, at = 0, before = 0;
	unsigned n = 0, sacked = 0;
	struct seg *k;

	TAILQ_FOREACH(k, &log->order, order)
	{
		assert_true(k->from < k->to && k->from >= before);
		before = k->to;
		flight += k->state == SEG_FLIGHT ? k->to - k->from : 0;
		lost += k->state == SEG_LOST ? k->to - k->from : 0;
		sacked += k->state == SEG_SACKED;
		n++;
	}
	assert_int_equal(n, log->n);
	assert_int_equal(sacked, log->n_sacked);
	assert_int_equal(flight, log->flight_bytes);
	assert_int_equal(lost, log->lost_bytes);
	TAILQ_FOREACH(k, &log->flight, state_link)
	{
		assert_true(k->state == SEG_FLIGHT && k->at >= at);
		at = k->at;
	}
	before = 0;
	TAILQ_FOREACH(k, &log->lost, state_link)
	{
		assert_true(k->state == SEG_LOST && k->from >= before);
		before = k->from;
	}
}

static void test_log(void **state)
{
	enum { N = 40 };
	struct seg entries[N], *k, was;
	struct seg_pool pool = {.n = N};
	struct segs log;
	uint64_t next = 1000, una = 1000;
	uint32_t r = 7;

	(void)state;
	TAILQ_INIT(&pool.unused);
	for (unsigned i = 0; i < N; i++)
		TAILQ_INSERT_TAIL(&pool.unused, &entries[i], order);
	segs_init(&log);
	for (uint64_t now = 1; now < 50000; now++) {
		r = r * 1664525 + 1013904223;
		k = segs_from(&log, una + (r >> 8) % (next - una + 1));
		switch (r >> 29) {
		case 0:
		case 1:
		case 2: /* never more than half for one */
			assert_int_equal(
				segs_add(&log, &pool, next, next + 10, now) != NULL, log.n < N / 2);
			next = TAILQ_LAST(&log.order, seg_list)->to;
			break;
		case 3:
			una += una < next ? (r >> 8) % 15 : 0;
			una = una < next ? una : next;
			while (segs_take(&log, &pool, una, &was))
				assert_true(was.from < una && was.to <= una);
			break;
		case 4:
			if (k != NULL)
				segs_again(&log, k, now);
			break;
		default:
			if (k != NULL)
				segs_set(&log, k, (enum seg_state)((r >> 4) % 3));
			log.hint = k;
		}
		check_log(&log);
		assert_int_equal(log.n + pool.n, N);
	}
	segs_clear(&log, &pool);
	assert_int_equal(pool.n, N);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_newreno),
		cmocka_unit_test(test_cubic_curve),
		cmocka_unit_test(test_cubic_as_reno),
		cmocka_unit_test(test_cubic_convergence_and_undo),
		cmocka_unit_test(test_delay),
		cmocka_unit_test(test_delay_losses),
		cmocka_unit_test(test_prr),
		cmocka_unit_test(test_prr_heavy),
		cmocka_unit_test(test_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
