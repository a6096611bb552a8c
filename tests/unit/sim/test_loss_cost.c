/* SPDX-License-Identifier: BSD-3-Clause */
/* The best that a transport can do where packets are lost: beside what can be worked out by hand.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/sim/loss_cost.h"

static void near(double a, double b, double part)
{
	if (fabs(a - b) > part * fabs(b))
		fail_msg("%g, not %g", a, b);
}

/* Without loss it is what it was. */
static void lossless(void **state)
{
	static const uint64_t at[] = {5, 9, 7, 3, 2, 1};
	const struct loss_cost_setting none = {.rtt_ns = 20, .packets = 2, .seed = 1};

	(void)state;
	near(loss_cost_ring(&none, 16, 4, 30, 10, 3), 300, 1e-9);
	near(loss_cost_apart(&none, at, 3, 2, 3), (9 + 3) / 2.0, 1e-9);
}

/* Of one transfer after the other every loss counts: p / (1 - p) of them on average. */
static void one_chain(void **state)
{
	const struct loss_cost_setting s = {.loss = 0.1, .rtt_ns = 20, .packets = 1, .seed = 1};

	(void)state;
	near(loss_cost_ring(&s, 1, 1, 30, 10, 20000), 300 + 30 * 20 * 0.1 / 0.9, 0.005);
}

/* All begin together, and the worst decides: of n packets, in whichever transfers, the expected
 * number of times that the unluckiest is lost. */
static void the_worst(void **state)
{
	static const uint64_t at[56];
	struct loss_cost_setting s = {.loss = 0.01, .rtt_ns = 20, .packets = 2, .seed = 1};
	double times = 0;

	(void)state;
	for (unsigned k = 1; k < 10; k++)
		times += 1 - pow(1 - pow(s.loss, k), 112);
	near(loss_cost_apart(&s, at, 56, 1, 20000), 20 * times, 0.01);
	/* A ring of one hop is the same. */
	near(loss_cost_ring(&s, 56, 1, 1, 0, 20000), 20 * times, 0.01);
}

/* What is early has time to lose. */
static void early(void **state)
{
	static const uint64_t at[] = {0, 100};
	const struct loss_cost_setting s = {.loss = 0.2, .rtt_ns = 50, .packets = 1, .seed = 1};
	double sum = 0;

	(void)state;
	/* The later one is lost k times, the earlier one j: 100 + 50 k or 50 j. */
	for (unsigned k = 0; k < 30; k++)
		for (unsigned j = 0; j < 30; j++)
			sum += 0.64 * pow(0.2, k + j) * fmax(100 + 50.0 * k, 50.0 * j);
	near(loss_cost_apart(&s, at, 2, 1, 200000), sum, 0.003);
}

/* Connections hand over in order: what is behind a loss waits for it. Two slices, one hop: the
 * second to arrive is the later of both, and losses do not add; two hops: they do if the first is
 * lost at one and the second at the other. */
static void in_order(void **state)
{
	const struct loss_cost_setting s = {.loss = 0.1, .rtt_ns = 20, .packets = 1, .seed = 1};
	const double apart = loss_cost_ring(&s, 1, 1, 2, 10, 100000);

	(void)state;
	near(apart, 20 + 2 * 20 * 0.1 / 0.9, 0.005);
	assert_true(loss_cost_ring(&s, 1, 2, 2, 10, 100000) > apart + 1.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lossless),
		cmocka_unit_test(one_chain),
		cmocka_unit_test(the_worst),
		cmocka_unit_test(early),
		cmocka_unit_test(in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
