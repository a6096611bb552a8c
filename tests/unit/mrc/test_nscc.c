/* SPDX-License-Identifier: BSD-3-Clause */
/* NSCC: each rule by arithmetic, and all of them on a bottleneck. */
#include <errno.h>
#include <math.h>

#include "lib/mrc/nscc.h"
#include "tests/unit/mrc/mrc_test.h"

enum { MTU = 4160, US = 1000 };

/* The reference network: scaling factors are 1. */
static const struct nscc_link reference = {.bits_per_s = 100000000000, .mtu = MTU};

static struct nscc fresh(void)
{
	struct nscc cc;

	assert_int_equal(nscc_init(&cc, &(struct nscc_config){0}, &reference), 0);
	return cc;
}

static void defaults(void **state)
{
	const struct nscc_link trims = {.bits_per_s = 400000000000, .mtu = MTU, .trims = true};
	struct nscc cc = fresh();

	(void)state;
	assert_int_equal(cc.base_rtt_ns, 12 * US);
	assert_int_equal(cc.target_ns, 12 * US);
	assert_int_equal(cc.max_cwnd, 225000);
	assert_int_equal(cc.cwnd, 225000);
	assert_int_equal(cc.eta, 624);
	assert_int_equal(cc.fi, 5 * MTU);
	assert_int_equal(cc.fi_scale_q16, 16384);
	assert_int_equal(cc.adjust_bytes, 8 * MTU);
	assert_int_equal(cc.qa_threshold_ns, 48 * US);
	assert_int_equal(cc.alpha_q16, 4 * MTU * 65536.0 / 12000 + 0.5);
	assert_int_equal(nscc_init(&cc, &(struct nscc_config){0}, &trims), 0);
	assert_int_equal(cc.target_ns, 9 * US);
	assert_int_equal(cc.fi, 4 * 5 * MTU);
}

static void refusals(void **state)
{
	static const struct nscc_config bad[] = {{.eta = -1}, {.fi = NAN}, {.fi_scale = INFINITY},
		{.gamma = 1.5f}, {.max_md_jump = 1.5f}, {.qa_gate = 32}, {.max_cwnd = MTU - 1}};
	const struct nscc_link none = {.mtu = MTU}, flat = {.bits_per_s = 1};
	struct nscc cc;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(nscc_init(&cc, &bad[i], &reference), -EINVAL);
	assert_int_equal(nscc_init(&cc, &(struct nscc_config){0}, &none), -EINVAL);
	assert_int_equal(nscc_init(&cc, &(struct nscc_config){0}, &flat), -EINVAL);
}

static void window_rules(void **state)
{
	struct nscc cc = fresh();
	uint64_t mine = 0;

	(void)state;
	cc.cwnd = 5 * MTU;
	nscc_sent(&cc, &mine, 4 * MTU);
	assert_true(nscc_may_send(&cc, MTU));
	assert_false(nscc_may_send(&cc, MTU + 1));
	nscc_sent(&cc, &mine, MTU);
	assert_false(nscc_may_send(&cc, 1));
	assert_true(nscc_want_ack(&cc, false));
	nscc_refused(&cc, 6 * MTU); /* below 0: a packet larger than the window may go */
	assert_true(nscc_may_send(&cc, 100 * MTU));
	nscc_set_inflight(&cc, &mine, MTU);
	assert_false(nscc_want_ack(&cc, false));
	assert_true(nscc_want_ack(&cc, true));
	assert_int_equal(nscc_received(0xffffff, 1), 512);
	assert_int_equal(nscc_received(1, 0xffffff), 0);
	assert_int_equal(nscc_received(5, 5), 0);
}

/* No queue: nothing for a window's worth of bytes, then a quarter of what is acknowledged. */
static void fast_increase(void **state)
{
	struct nscc cc = fresh();
	struct nscc_sack s = {.bytes = MTU, .has_rtt = true, .rtt_ns = 12 * US};

	(void)state;
	cc.cwnd = 10 * MTU;
	cc.adjust_bytes = UINT32_MAX; /* keep fulfil out of it */
	cc.period_ns = UINT32_MAX;
	for (unsigned i = 0; i < 10; i++)
		nscc_sack(&cc, &s, i);
	assert_int_equal(cc.cwnd, 10 * MTU);
	nscc_sack(&cc, &s, 11);
	assert_int_equal(cc.cwnd, 10 * MTU + MTU / 4);
	nscc_sack(&cc, &s, 12);
	assert_int_equal(cc.cwnd, 10 * MTU + 2 * (MTU / 4));
	s.rtt_ns = 14 * US; /* a queue: it ends */
	nscc_sack(&cc, &s, 13);
	assert_false(cc.increasing);
}

/* Delay below the target: alpha * n * distance, given to the window by fulfil, and eta per period.
 */
static void proportional_increase(void **state)
{
	struct nscc cc = fresh();
	struct nscc_sack s = {.bytes = MTU, .has_rtt = true, .rtt_ns = 18 * US};
	uint64_t inc = (uint64_t)cc.alpha_q16 * MTU * 6 * US >> 16;

	(void)state;
	cc.cwnd = 20 * MTU;
	cc.last_adjust = 100 * US;
	nscc_sack(&cc, &s, 100 * US + 1);
	assert_int_equal(cc.inc_bytes, inc);
	assert_int_equal(cc.cwnd, 20 * MTU);
	nscc_sack(&cc, &s, 112 * US);
	assert_int_equal(cc.cwnd, 20 * MTU + 2 * inc / (20 * MTU) + cc.eta);
	assert_int_equal(cc.inc_bytes, 0);
	s.rtt_ns = 30 * US; /* above the target, unmarked: fi bytes a window */
	nscc_sack(&cc, &s, 113 * US);
	assert_int_equal(cc.inc_bytes, (uint64_t)cc.fi * MTU);
}

static void decrease_once_per_rtt(void **state)
{
	struct nscc cc = fresh();
	struct nscc_sack s = {.bytes = MTU, .has_rtt = true, .rtt_ns = 36 * US, .marked = true};
	uint32_t before = cc.cwnd;

	(void)state;
	cc.qa = false;
	cc.avg_delay_ns = 24 * US;
	cc.last_adjust = 1000 * US;
	nscc_sack(&cc, &s, 1000 * US);
	/* 1 - 0.8 * (24 - 12) / 24 = 0.6 */
	assert_in_range(cc.cwnd, before * 0.6 - 2, before * 0.6 + 2);
	before = cc.cwnd;
	nscc_sack(&cc, &s, 1012 * US);
	assert_int_equal(cc.cwnd, before + cc.eta); /* the period's share alone */
	before = cc.cwnd;
	cc.avg_delay_ns = 1000 * US;
	s.rtt_ns = 1012 * US;
	cc.last_adjust = 1013 * US;
	nscc_sack(&cc, &s, 1013 * US);
	assert_int_equal(cc.cwnd, before / 2); /* never below half at once */
	s.rtt_ns = 13 * US;
	cc.avg_delay_ns = 24 * US;
	before = cc.cwnd;
	cc.last_adjust = 1100 * US;
	nscc_sack(&cc, &s, 1100 * US);
	assert_int_equal(cc.cwnd, before); /* marked, no delay: not the window's business */
}

static void penalty_and_restore(void **state)
{
	struct nscc cc = fresh();
	uint64_t mine = 0;
	struct nscc_sack s = {.bytes = 128 * 64, .penalty = 64};

	(void)state;
	cc.cwnd = 100000;
	nscc_sent(&cc, &mine, 90000 + s.bytes);
	nscc_sack(&cc, &s, 1);
	assert_int_equal(cc.cwnd, 90000 - 4096);
	nscc_sack(&cc, &s, 2);
	assert_int_equal(cc.saved_cwnd, 100000);
	s = (struct nscc_sack){.restore = true};
	cc.last_adjust = 3;
	nscc_sack(&cc, &s, 3);
	assert_int_equal(cc.cwnd, 100000);
	assert_int_equal(cc.saved_cwnd, 0);
	cc.inflight = 100;
	s = (struct nscc_sack){.bytes = UINT32_MAX, .penalty = 127};
	nscc_sack(&cc, &s, 4);
	assert_int_equal(cc.cwnd, MTU);
}

/* Trims within a round trip in which hardly anything arrives: the window becomes what did. */
static void quick_adapt_after_trims(void **state)
{
	struct nscc cc = fresh();
	uint64_t mine = 0;
	struct nscc_sack s = {.bytes = 3 * MTU};

	(void)state;
	nscc_sent(&cc, &mine, 50 * MTU);
	nscc_trimmed(&cc, MTU, 1000 * US); /* the first ends no period: one packet less */
	assert_int_equal(cc.cwnd, 225000 - MTU);
	cc.last_adjust = 1001 * US;
	nscc_sack(&cc, &s, 1001 * US);
	nscc_trimmed(&cc, MTU, 1025 * US);
	assert_int_equal(cc.cwnd, 3 * MTU);
	assert_int_equal(cc.to_ignore, 45 * MTU);
	/* Old news does not cut it again. */
	nscc_trimmed(&cc, MTU, 1026 * US);
	assert_int_equal(cc.cwnd, 3 * MTU);
	nscc_lost(&cc, 100 * MTU);
	assert_int_equal(cc.cwnd, MTU);
}

/* One sender whose link to the network is ten times as fast as the bottleneck, which marks from 20
 * % of the BDP on: the link stays full, and the queue near the delay aimed at. */
static void fills_a_bottleneck(void **state)
{
	enum { RATE = 10, RTT = 48 * US, BDP = RATE * RTT / 8, STEPS = 40000, FLIGHT = 4096 };
	const struct nscc_config config = {.base_rtt_ns = RTT};
	const struct nscc_link link = {.bits_per_s = (uint64_t)RATE * 1000000000, .mtu = MTU};
	const uint64_t wire = (uint64_t)MTU * 8 / RATE; /* ns per packet */
	struct {
		uint64_t sent_at, sack_at;
		bool marked;
	} flight[FLIGHT];
	uint64_t now = 0, free_at = 0, sent = 0, worst = 0;
	struct nscc cc;
	uint64_t mine = 0;

	(void)state;
	assert_int_equal(nscc_init(&cc, &config, &link), 0);
	for (uint64_t got = 0; got < STEPS; got++) {
		struct nscc_sack s = {.bytes = MTU, .has_rtt = true};

		for (; nscc_may_send(&cc, MTU); sent++) {
			uint64_t start = free_at > now ? free_at : now;

			assert_true(sent - got < FLIGHT);
			flight[sent % FLIGHT].sent_at = now;
			flight[sent % FLIGHT].marked = (start - now) * RATE / 8 > BDP / 5;
			if (got > STEPS / 2 && start - now > worst)
				worst = start - now;
			free_at = start + wire;
			flight[sent % FLIGHT].sack_at = free_at + RTT - wire;
			nscc_sent(&cc, &mine, MTU);
		}
		assert_true(sent > got);
		now = flight[got % FLIGHT].sack_at;
		s.rtt_ns = now - flight[got % FLIGHT].sent_at;
		s.marked = flight[got % FLIGHT].marked;
		nscc_sack(&cc, &s, now);
	}
	assert_true(now < STEPS * wire * 101 / 100 + 2 * RTT);
	assert_in_range(worst, wire, 2 * (uint64_t)cc.target_ns);
	assert_int_equal(cc.base_rtt_ns, RTT);
}

/* Two senders: what is on the way is the sum of theirs, a word to one says nothing of the other's,
 * and who leaves takes nothing of it along. */
static void two_senders(void **state)
{
	const struct nscc_config slow = {.fi = 1};
	struct nscc cc = fresh(), same = fresh(), other;
	uint64_t a = 0, b = 0;

	(void)state;
	cc.cwnd = 10 * MTU;
	assert_int_equal(nscc_share(&cc, a), 10 * MTU);
	nscc_sent(&cc, &a, 6 * MTU);
	assert_int_equal(nscc_share(&cc, a), 10 * MTU);
	nscc_sent(&cc, &b, 2 * MTU);
	nscc_sent(&cc, &b, 2 * MTU);
	assert_false(nscc_may_send(&cc, 1));
	assert_int_equal(nscc_share(&cc, a), 6 * MTU);
	assert_int_equal(nscc_share(&cc, b), 4 * MTU);
	nscc_set_inflight(&cc, &a, 5 * MTU);
	assert_int_equal(cc.inflight, 9 * MTU);
	assert_true(nscc_may_send(&cc, MTU));
	nscc_set_inflight(&cc, &b, 0);
	assert_int_equal(cc.inflight, 5 * MTU);
	assert_int_equal(nscc_share(&cc, a), 10 * MTU);
	assert_true(nscc_same_rules(&cc, &same));
	assert_int_equal(nscc_init(&other, &slow, &reference), 0);
	assert_false(nscc_same_rules(&cc, &other));
}

int run_nscc_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(refusals),
		cmocka_unit_test(window_rules),
		cmocka_unit_test(fast_increase),
		cmocka_unit_test(proportional_increase),
		cmocka_unit_test(decrease_once_per_rtt),
		cmocka_unit_test(penalty_and_restore),
		cmocka_unit_test(quick_adapt_after_trims),
		cmocka_unit_test(fills_a_bottleneck),
		cmocka_unit_test(two_senders),
	};

	return cmocka_run_group_tests_name("mrc nscc", tests, NULL, NULL);
}
