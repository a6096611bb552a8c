/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/sim/link.h"

enum { LEN = 1000 - SIM_WIRE_OVERHEAD }; /* 1000 bytes on the wire: 80 ns at 100 Gb/s */

static struct sim_link make(struct sim_link_conf conf)
{
	struct sim_link link = {0};

	sim_link_init(&link, &conf, 42);
	return link;
}

static void test_rate_and_delay(void **state)
{
	struct sim_link link = make((struct sim_link_conf){.mbps = 100000, .delay_ns = 1000});
	struct sim_verdict v;

	(void)state;
	v = sim_link_send(&link, 5000, LEN, false);
	assert_int_equal(v.copies, 1);
	assert_int_equal(v.at[0], 5000 + 80 + 1000);
	v = sim_link_send(&link, 5000, LEN, false); /* waits behind the first */
	assert_int_equal(v.at[0], 5000 + 160 + 1000);
	assert_int_equal(sim_link_backlog(&link, 5040), 1500);
	assert_int_equal(sim_link_backlog(&link, 5160), 0);
	v = sim_link_send(&link, 9000, LEN, false); /* the queue has drained */
	assert_int_equal(v.at[0], 9000 + 80 + 1000);
	link = make((struct sim_link_conf){.delay_ns = 7});
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(sim_link_send(&link, 10, LEN, false).at[0], 17);
}

static void test_queue(void **state)
{
	struct sim_link link = make(
		(struct sim_link_conf){.mbps = 100000, .queue_bytes = 4000, .ecn_bytes = 1500});
	unsigned marked = 0, taken = 0;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		struct sim_verdict v = sim_link_send(&link, 100, LEN, false);

		taken += v.copies;
		marked += v.mark;
	}
	assert_int_equal(taken, 4);
	assert_int_equal(marked, 2); /* behind 2000 and 3000 bytes */
	assert_int_equal(link.count[SIM_L_QUEUE_DROP], 6);
	assert_int_equal(link.count[SIM_L_PEAK_QUEUE], 3000);
}

/* What is shown of a link is what leaves it: ten times its rate offered, with a queue in front that
 * is full most of the time, it shows its rate in every interval, and nothing of what it dropped. */
static void bytes_leave_at_the_rate(void **state)
{
	enum { WIRE = LEN + SIM_WIRE_OVERHEAD, TAKES = WIRE * 8 / 100, EVERY = 100 * TAKES };
	struct sim_link link =
		make((struct sim_link_conf){.mbps = 100000, .queue_bytes = 64 * WIRE});
	uint64_t last = 0;

	(void)state;
	for (uint64_t now = 0; now <= 10 * EVERY; now += TAKES / 10) {
		if (now > 0 && now % EVERY == 0) {
			assert_int_equal(sim_link_left(&link, now) - last, 100 * WIRE);
			last = sim_link_left(&link, now);
		}
		sim_link_send(&link, now, LEN, false);
	}
	assert_true(link.count[SIM_L_QUEUE_DROP] > 8000);
	assert_int_equal(link.count[SIM_L_FRAMES] - link.count[SIM_L_QUEUE_DROP],
		link.count[SIM_L_BYTES] / WIRE);
	assert_int_equal(sim_link_left(&link, UINT64_MAX), link.count[SIM_L_BYTES]);
}

/* A link that is down takes nothing; one that loses what it has sent has sent it. */
static void bytes_of_lost_frames(void **state)
{
	struct sim_link down =
		make((struct sim_link_conf){.mbps = 100000, .n_down = 1, .down = {{0, 100}}});
	struct sim_link loses = make((struct sim_link_conf){.loss = 1});

	(void)state;
	sim_link_send(&down, 50, LEN, false);
	assert_int_equal(down.count[SIM_L_FRAMES], 1);
	assert_int_equal(down.count[SIM_L_BYTES], 0);
	sim_link_send(&loses, 50, LEN, false);
	assert_int_equal(loses.count[SIM_L_LOST], 1);
	assert_int_equal(sim_link_left(&loses, 50), LEN + SIM_WIRE_OVERHEAD);
}

/* Headers go on, ahead of the queue, until that is twice as long; what is short is not trimmed. */
static void test_trim(void **state)
{
	struct sim_link link =
		make((struct sim_link_conf){.mbps = 100000, .queue_bytes = 4000, .trim = true});
	struct sim_verdict v;
	unsigned trimmed = 0;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_false(sim_link_send(&link, 100, LEN, false).trim);
	v = sim_link_send(&link, 100, LEN, false);
	assert_true(v.trim && v.copies == 1);
	assert_int_equal(v.at[0], 100 + 9 + 9); /* behind no more than one of its size */
	for (unsigned i = 0; i < 1000; i++)
		trimmed += sim_link_send(&link, 100, LEN, false).trim;
	/* Times are whole nanoseconds: a little more or less. */
	assert_in_range(trimmed, 32, 35);
	assert_int_equal(link.count[SIM_L_TRIMMED], trimmed + 1);
	assert_int_equal(link.count[SIM_L_QUEUE_DROP], 1000 - trimmed);
	assert_int_equal(sim_link_send(&link, 100, SIM_TRIMMED, false).copies, 0);
}

/* To another length: MRC's headers are longer. */
static void test_trim_to(void **state)
{
	struct sim_link link = make((struct sim_link_conf){
		.mbps = 100000, .queue_bytes = 2000, .trim = true, .trim_to = SIM_TRIMMED_MRC});
	const uint64_t before = SIM_TRIMMED_MRC + SIM_WIRE_OVERHEAD;
	uint64_t bytes;

	(void)state;
	assert_int_equal(sim_link_trims_to(&link.conf), SIM_TRIMMED_MRC);
	for (unsigned i = 0; i < 2; i++)
		sim_link_send(&link, 100, LEN, false);
	bytes = link.count[SIM_L_BYTES];
	assert_true(sim_link_send(&link, 100, LEN, false).trim);
	assert_int_equal(link.count[SIM_L_BYTES], bytes + before);
	assert_int_equal(sim_link_send(&link, 100, SIM_TRIMMED_MRC, false).trim, false);
}

/* Between two lengths of the queue some are marked, below none, above all. */
static void test_mark_range(void **state)
{
	struct sim_link link = make((struct sim_link_conf){
		.mbps = 100000, .ecn_bytes = 100000, .ecn_max_bytes = 300000});
	unsigned marked[3] = {0}, sent[3] = {0};

	(void)state;
	for (unsigned i = 0; i < 400; i++) {
		const uint64_t queue = sim_link_backlog(&link, 100);
		const unsigned where = queue <= 100000 ? 0 : queue < 300000 ? 1 : 2;

		marked[where] += sim_link_send(&link, 100, LEN, false).mark;
		sent[where]++;
	}
	assert_int_equal(marked[0], 0);
	assert_in_range(marked[1], sent[1] * 2 / 5, sent[1] * 3 / 5);
	assert_true(sent[2] > 0);
	assert_int_equal(marked[2], sent[2]);
}

static void test_priority(void **state)
{
	struct sim_link link = make((struct sim_link_conf){.mbps = 100000, .priority = true});

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		sim_link_send(&link, 100, LEN, false);
	assert_int_equal(sim_link_send(&link, 100, LEN, true).at[0], 100 + 2 * 80);
	assert_int_equal(sim_link_send(&link, 100, LEN, true).at[0], 100 + 3 * 80);
	assert_int_equal(sim_link_send(&link, 100, LEN, false).at[0], 100 + 13 * 80);
	link = make((struct sim_link_conf){.mbps = 100000});
	sim_link_send(&link, 100, LEN, false);
	assert_int_equal(sim_link_send(&link, 100, LEN, true).at[0], 100 + 2 * 80);
}

static void test_loss(void **state)
{
	struct sim_link link = make((struct sim_link_conf){.loss = 0.1});
	unsigned run = 0, longest = 0;

	(void)state;
	for (unsigned i = 0; i < 100000; i++)
		sim_link_send(&link, i, LEN, false);
	assert_in_range(link.count[SIM_L_LOST], 9600, 10400);
	link = make((struct sim_link_conf){.lose_nth = 3});
	for (unsigned i = 1; i <= 5; i++)
		assert_int_equal(sim_link_send(&link, i, LEN, false).copies, i == 3 ? 0 : 1);
	/* A burst: bad for 20 frames in the mean, one in a hundred begins one. */
	link = make(
		(struct sim_link_conf){.burst_enter = 0.01, .burst_leave = 0.05, .burst_loss = 1});
	for (unsigned i = 0; i < 100000; i++) {
		run = sim_link_send(&link, i, LEN, false).copies ? 0 : run + 1;
		longest = run > longest ? run : longest;
	}
	assert_in_range(link.count[SIM_L_LOST], 13000, 20500);
	assert_true(longest > 50);
}

static void test_other_faults(void **state)
{
	struct sim_link link = make((struct sim_link_conf){
		.dup = 0.5, .reorder = 0.5, .corrupt = 0.5, .delay_ns = 10, .reorder_ns = 100});
	unsigned late = 0;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		struct sim_verdict v = sim_link_send(&link, i, LEN, false);

		assert_in_range(v.copies, 1, 2);
		assert_in_range(v.at[0], i + 10, i + 110);
		late += v.at[0] > i + 10;
	}
	assert_in_range(link.count[SIM_L_DUPLICATED], 400, 600);
	assert_in_range(link.count[SIM_L_REORDERED], 400, 600);
	assert_in_range(link.count[SIM_L_CORRUPTED], 400, 600);
	assert_in_range(late, 400, 600);
	assert_int_equal(link.count[SIM_L_DELIVERED], 1000 + link.count[SIM_L_DUPLICATED]);
}

static void test_down(void **state)
{
	struct sim_link link =
		make((struct sim_link_conf){.n_down = 2, .down = {{100, 200}, {300, 301}}});

	(void)state;
	for (uint64_t t = 0; t < 400; t++)
		assert_int_equal(sim_link_send(&link, t, LEN, false).copies,
			(t >= 100 && t < 200) || t == 300 ? 0 : 1);
	assert_int_equal(link.count[SIM_L_DOWN_DROP], 101);
}

static void test_seed(void **state)
{
	struct sim_link_conf conf = {.loss = 0.3, .dup = 0.3};
	struct sim_link a = make(conf), b = make(conf), c = make(conf);
	unsigned differ = 0;

	(void)state;
	c.rng++;
	for (unsigned i = 0; i < 1000; i++) {
		struct sim_verdict x = sim_link_send(&a, i, LEN, false),
				   y = sim_link_send(&b, i, LEN, false);

		assert_int_equal(x.copies, y.copies);
		assert_int_equal(x.at[0], y.at[0]);
		differ += x.copies != sim_link_send(&c, i, LEN, false).copies;
	}
	assert_true(differ > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate_and_delay),
		cmocka_unit_test(test_queue),
		cmocka_unit_test(bytes_leave_at_the_rate),
		cmocka_unit_test(bytes_of_lost_frames),
		cmocka_unit_test(test_trim),
		cmocka_unit_test(test_trim_to),
		cmocka_unit_test(test_mark_range),
		cmocka_unit_test(test_priority),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_other_faults),
		cmocka_unit_test(test_down),
		cmocka_unit_test(test_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
