/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of EVs: order, what is lost and where that is told, arrays of both strides. */
#include "tests/unit/libmrc/libmrc_test.h"

#include <errno.h>

#include "lib/libmrc/event_ring.h"

static void in_order_and_counted(void **state)
{
	struct event_ring r;
	struct mrc_ctl_ev_event e[8];

	(void)state;
	assert_int_equal(event_ring_init(&r, 0), -EINVAL);
	assert_int_equal(event_ring_init(&r, 3), 0);
	assert_int_equal(event_ring_take(&r, e, sizeof(*e), 8), 0);
	/* More than fit, several times round. */
	for (uint32_t lap = 0; lap < 5; lap++) {
		for (uint32_t i = 0; i < 3 + lap; i++) {
			struct mrc_ctl_ev ev = an_ev(10 * lap + i, 1);

			assert_int_equal(event_ring_put(&r, lap, &ev, MRC_CTL_EV_GOOD), i < 3);
		}
		assert_int_equal(event_ring_take(&r, e, sizeof(*e), 2), 2);
		assert_int_equal(event_ring_take(&r, e + 2, sizeof(*e), 6), 1);
		for (uint32_t i = 0; i < 3; i++) {
			assert_int_equal(e[i].profile_id, lap);
			assert_int_equal(e[i].ev.val[3], 10 * lap + i);
			/* The lap before lost lap - 1 behind its third. */
			assert_int_equal(e[i].drop_count, i == 0 && lap > 1 ? lap - 1 : 0);
		}
	}
	event_ring_fini(&r);
}

static void both_strides(void **state)
{
	struct event_ring r;
	uint8_t old[3 * EVENT_STRIDE_100];
	struct mrc_ctl_ev_event e[2];

	(void)state;
	assert_int_equal(event_stride(0), EVENT_STRIDE);
	assert_int_equal(event_stride(1), EVENT_STRIDE); /* what the public benchmark says */
	assert_int_equal(event_stride(0x01000000), EVENT_STRIDE_100);
	assert_int_equal(event_stride(0x01000001), EVENT_STRIDE);
	assert_int_equal(event_ring_init(&r, 4), 0);
	for (uint32_t i = 0; i < 4; i++) {
		struct mrc_ctl_ev ev = an_ev(i, (uint8_t)(i + 1));

		assert_true(
			event_ring_put(&r, 0x1122334455667788 + i, &ev, MRC_CTL_EV_ASSUMED_BAD));
	}
	memset(old, 0xee, sizeof(old));
	assert_int_equal(event_ring_take(&r, old, EVENT_STRIDE_100, 2), 2);
	for (uint32_t i = 0; i < 2; i++) {
		struct mrc_ctl_ev_event got;

		memcpy(&got, old + i * EVENT_STRIDE_100, EVENT_STRIDE_100);
		assert_int_equal(got.profile_id, 0x1122334455667788 + i);
		assert_int_equal(got.ev.port, i + 1);
		assert_int_equal(got.drop_count, 0);
	}
	assert_int_equal(old[2 * EVENT_STRIDE_100], 0xee); /* not a byte behind */
	assert_int_equal(event_ring_take(&r, e, EVENT_STRIDE, 2), 2);
	assert_int_equal(e[1].profile_id, 0x1122334455667788 + 3);
	assert_int_equal(e[1].state, MRC_CTL_EV_ASSUMED_BAD);
	event_ring_fini(&r);
}

int run_event_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order_and_counted),
		cmocka_unit_test(both_strides),
	};

	return cmocka_run_group_tests_name("events of EVs", tests, NULL, NULL);
}
