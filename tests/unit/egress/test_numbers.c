/* SPDX-License-Identifier: BSD-3-Clause */
/* The mechanisms that know no packets: token bucket, RED, classes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>

#include "dataplane/egress/bucket.h"
#include "dataplane/egress/class.h"
#include "dataplane/egress/red.h"

enum { PACKET = 1500 };
static const uint64_t SECOND = 1000000000, GBIT = 125000000;

/* Whoever asks at every moment that egress_bucket_when tells sends at the rate, to the byte. */
static void rate_is_exact(void **state)
{
	static const uint64_t rates[] = {1000, GBIT / 3, GBIT, 100 * GBIT, 800 * GBIT};

	(void)state;
	for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		const uint64_t start = 12345, depth = 64000, want = 20000;
		uint64_t now = start, sent = 0, ideal;
		struct egress_bucket b;

		egress_bucket_init(&b, rates[i], depth, now);
		for (unsigned n = 0; n < want; n++) {
			assert_true(egress_bucket_left(&b, now) > 0);
			egress_bucket_take(&b, PACKET);
			sent += PACKET;
			if (egress_bucket_when(&b) > now)
				now = egress_bucket_when(&b);
		}
		ideal = (sent - depth) * SECOND / rates[i];
		assert_in_range(now - start, ideal, ideal + 1);
	}
}

/* Nothing goes before its time, and a pause earns no more than the depth. */
static void no_more_than_depth(void **state)
{
	const uint64_t day = 86400 * SECOND;
	struct egress_bucket b;
	unsigned n = 0;

	(void)state;
	egress_bucket_init(&b, 100 * GBIT, 4 * PACKET, 0);
	for (unsigned pause = 0; pause < 3; pause++) {
		for (n = 0; egress_bucket_left(&b, pause * day) > 0; n++)
			egress_bucket_take(&b, PACKET);
		assert_int_equal(n, 4);
	}
	egress_bucket_take(&b, PACKET);
	assert_int_equal(egress_bucket_left(&b, egress_bucket_when(&b) - 1), 0);
	assert_true(egress_bucket_left(&b, egress_bucket_when(&b)) > 0);
}

static void no_limit(void **state)
{
	struct egress_bucket b;

	(void)state;
	egress_bucket_init(&b, 0, 1, 5);
	egress_bucket_take(&b, UINT32_MAX);
	assert_true(egress_bucket_left(&b, 5) == INT64_MAX);
	assert_true(egress_bucket_when(&b) <= 5);
}

static void red(void **state)
{
	const struct egress_red r = {.min = 1000, .max = 3000}, off = {0}, step = {2000, 2000};

	(void)state;
	assert_false(egress_red_marks(&r, 999, 0));
	assert_false(egress_red_marks(&r, 1000, 0)); /* probability 0 */
	assert_true(egress_red_marks(&r, 1001, 0));
	assert_true(egress_red_marks(&r, 2000, 0x7fffffff)); /* a half */
	assert_false(egress_red_marks(&r, 2000, 0x80000000));
	assert_true(egress_red_marks(&r, 2500, 0xbfffffff)); /* three quarters */
	assert_false(egress_red_marks(&r, 2500, 0xc0000000));
	assert_true(egress_red_marks(&r, 3000, UINT32_MAX));
	assert_false(egress_red_marks(&off, UINT32_MAX, 0));
	assert_false(egress_red_marks(&step, 1999, 0));
	assert_true(egress_red_marks(&step, 2000, UINT32_MAX));
}

static void classes(void **state)
{
	struct egress_classes c;
	unsigned count[3] = {0};

	(void)state;
	egress_classes_default(&c);
	for (unsigned dscp = 0; dscp < EGRESS_N_DSCP; dscp++)
		for (unsigned ecn = 0; ecn < 4; ecn++)
			count[egress_class_of(&c, 4, (uint8_t)(dscp << 2 | ecn))]++;
	assert_int_equal(count[EGRESS_CONTROL], 3 * 4);
	assert_int_equal(count[EGRESS_TRIMMABLE], 2 * 4);
	assert_int_equal(egress_class_of(&c, 6, 46 << 2), EGRESS_CONTROL);
	assert_int_equal(egress_class_of(&c, 6, 4 << 2), EGRESS_TRIMMABLE);
	assert_int_equal(egress_class_of(&c, 4, c.trimmed << 2), EGRESS_CONTROL);
	assert_int_equal(egress_class_of(&c, 4, c.trimmed_last_hop << 2), EGRESS_CONTROL);
	assert_int_equal(egress_class_of(&c, 0, 0), EGRESS_CONTROL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rate_is_exact),
		cmocka_unit_test(no_more_than_depth),
		cmocka_unit_test(no_limit),
		cmocka_unit_test(red),
		cmocka_unit_test(classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
