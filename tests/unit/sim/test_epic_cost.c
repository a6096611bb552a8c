/* SPDX-License-Identifier: BSD-3-Clause */
/* EPIC, appendix F: what the paper derives from its formulas. That they are ours, too, is measured:
 * incline-sim epic-model. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/sim/epic_cost.h"

static struct epic_cost setting(unsigned h, unsigned d)
{
	return (struct epic_cost){
		.h = h, .d = d, .u = 1024, .m = 4, .w = 64, .extra = 82, .b = 12.5e9, .l = 1e-6};
}

static void same(double a, double b)
{
	assert_true(fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)));
}

/* "Mode-II/III always outperforms Mode-I by (2H - 1)(M - 1)U/B"; on our way it is 2H - 3 times a
 * message with headers. */
static void grain(void **state)
{
	(void)state;
	for (unsigned h = 2; h < 6; h++) {
		const struct epic_cost c = setting(h, 4);

		same(epic_cost_printed(&c, EPIC_MODE_1, 1 << 20) -
				epic_cost_printed(&c, EPIC_MODE_2, 1 << 20),
			(2 * h - 1) * 3 * 1024 / 12.5e9);
		same(epic_cost_seconds(&c, EPIC_MODE_1, 1 << 20) -
				epic_cost_seconds(&c, EPIC_MODE_3, 1 << 20),
			(2 * h - 3) * 3 * (1024 + 82) / 12.5e9);
		same(epic_cost_seconds(&c, EPIC_MODE_2, 1 << 20) -
				epic_cost_seconds(&c, EPIC_MODE_3, 1 << 20),
			2e-6);
	}
}

/* A packet through one switch: two links of propagation, the same bytes twice, the control once. */
static void one_packet(void **state)
{
	const struct epic_cost c = setting(2, 8);

	(void)state;
	for (int mode = EPIC_MODE_1; mode <= EPIC_MODE_3; mode += 2)
		same(epic_cost_seconds(&c, (enum epic_mode)mode, 1024),
			2e-6 + (2 * (1024 + 82) + 82) / 12.5e9);
	/* Half a packet pays for its header only once more. */
	assert_true(epic_cost_seconds(&c, EPIC_MODE_3, 1536) - 512 / 12.5e9 >
		    epic_cost_seconds(&c, EPIC_MODE_3, 1024));
}

/* "From small to large Mode-III = Mode-I < Mode-II", for sums that are reproducible. */
static void memory_order(void **state)
{
	(void)state;
	for (unsigned h = 3; h < 6; h++) {
		const struct epic_cost c = setting(h, 8);

		same(epic_cost_memory_printed(&c, EPIC_MODE_1, true),
			epic_cost_memory_printed(&c, EPIC_MODE_3, true));
		assert_true(epic_cost_memory_printed(&c, EPIC_MODE_3, true) <
			    epic_cost_memory_printed(&c, EPIC_MODE_2, true));
		assert_true(epic_cost_memory_printed(&c, EPIC_MODE_3, false) <
			    epic_cost_memory_printed(&c, EPIC_MODE_2, false));
	}
}

/* Section 7: "100 Gbps, 10 us RTT: 250 KB, twice the path BDP". F.3 has it once for the same
 * way; what an array of twice the window takes is the former. */
static void twice_the_path(void **state)
{
	struct epic_cost c = setting(2, 8);
	unsigned window;

	(void)state;
	c.l = 2.5e-6; /* two links there, two back: 10 us */
	c.extra = 0;
	window = epic_cost_window(&c, EPIC_MODE_2);
	assert_int_equal(window, 123); /* 125 KB */
	same(epic_cost_memory_printed(&c, EPIC_MODE_2, false), 125e3);
	c.m = 1;
	c.w = window;
	assert_int_equal(epic_cost_memory(&c, EPIC_MODE_2, false), 256 * 1024);
	assert_int_equal(epic_cost_memory(&c, EPIC_MODE_2, true), 8 * 256 * 1024);
	assert_int_equal(epic_cost_memory(&c, EPIC_MODE_3, false), 2 * 256 * 1024);
}

static void loss(void **state)
{
	const struct epic_cost star = setting(2, 8), deep = setting(4, 3);

	(void)state;
	same(epic_cost_loss(&star, EPIC_MODE_1, 0.99), 0.99 * 0.99);
	same(epic_cost_loss(&star, EPIC_MODE_3, 0.99), 0.99 * 0.99);
	same(epic_cost_loss(&star, EPIC_MODE_2, 0.99), pow(0.99, 14));
	same(epic_cost_loss(&deep, EPIC_MODE_3, 0.99), pow(0.99, 6));
	same(epic_cost_loss(&deep, EPIC_MODE_2, 0.99), pow(0.99, 12));
	for (int mode = EPIC_MODE_1; mode <= EPIC_MODE_3; mode++)
		same(epic_cost_loss(&star, (enum epic_mode)mode, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grain),
		cmocka_unit_test(one_packet),
		cmocka_unit_test(memory_order),
		cmocka_unit_test(twice_the_path),
		cmocka_unit_test(loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
