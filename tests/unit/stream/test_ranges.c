/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of intervals beside a set of bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/stream/ranges.h"

enum { SPAN = 256 };

static bool bit[SPAN];

static void same(const struct ranges *set)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < SPAN; i++) {
		assert_int_equal(ranges_hold(set, i, i + 1), bit[i]);
		n += bit[i];
	}
	assert_int_equal(ranges_bytes(set), n);
	for (unsigned i = 1; i < set->n; i++)
		assert_true(set->r[i - 1].to < set->r[i].from);
}

static void same_holes(const struct ranges *set, unsigned from, unsigned to)
{
	struct range hole;
	unsigned a = from, b;

	while (a < to && bit[a])
		a++;
	for (b = a; b < to && !bit[b];)
		b++;
	assert_int_equal(ranges_hole(set, from, to, &hole), a < to);
	if (a < to) {
		assert_int_equal(hole.from, a);
		assert_int_equal(hole.to, b);
	}
}

static void test_bits(void **state)
{
	uint64_t s = 88172645463325252;
	unsigned full = 0;

	(void)state;
	for (unsigned round = 0; round < 300; round++) {
		struct ranges set = {0};

		memset(bit, 0, sizeof(bit));
		for (unsigned k = 0; k < 60; k++) {
			unsigned from, to;

			s ^= s << 13;
			s ^= s >> 7;
			s ^= s << 17;
			from = (unsigned)(s % SPAN);
			to = from + 1 + (unsigned)(s >> 32) % (round % 2 ? 40 : 2);
			to = to > SPAN ? SPAN : to;
			if (k % 20 == 19) {
				ranges_trim(&set, from / 4);
				memset(bit, 0, from / 4);
			} else if (ranges_add(&set, from, to)) {
				memset(bit + from, 1, to - from);
			} else {
				assert_int_equal(set.n, RANGES_MAX);
				full++;
			}
			same(&set);
			same_holes(&set, from, SPAN);
			same_holes(&set, 0, to);
		}
	}
	assert_true(full > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
