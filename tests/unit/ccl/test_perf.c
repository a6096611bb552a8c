/* SPDX-License-Identifier: BSD-3-Clause */
/* What incline-perf says of its samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "apps/perf.h"

enum { MOST = 1000 };

static uint64_t sorted[MOST]; /* 1, 2, ... us */

static unsigned of(long n, unsigned thousandths)
{
	return (unsigned)perf_percentile(sorted, n, thousandths);
}

/* Of as many as it takes, and no fewer, the percentile is not the slowest one. */
static void percentiles(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MOST; i++)
		sorted[i] = 1000 * (i + 1);
	assert_int_equal(of(1, 500), 1);
	assert_int_equal(of(2, 500), 1);
	assert_int_equal(of(3, 500), 2);
	assert_int_equal(of(99, 990), 99);
	assert_int_equal(of(100, 990), 99);
	assert_int_equal(of(101, 990), 100);
	assert_int_equal(of(999, 999), 999);
	assert_int_equal(of(1000, 999), 999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(percentiles)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
