/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive window: against a plain array, across the wrap of PSNs; what SACKs say of it. */
#include <errno.h>
#include <stdlib.h>

#include "lib/mrc/rcv.h"
#include "lib/wire/psn.h"
#include "tests/unit/mrc/mrc_test.h"

static struct mrc_rcv window(uint32_t first, unsigned units)
{
	struct mrc_rcv r;

	assert_int_equal(mrc_rcv_init(&r, first, units, test_malloc(mrc_rcv_bytes(units))), 0);
	return r;
}

static void in_order(void **state)
{
	struct mrc_rcv r = window(0xfffffe, 1);
	struct mrc_sack sack = {0};

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(mrc_rcv_packet(&r, psn_add(0xfffffe, (int32_t)i), 100), MRC_NEW);
	assert_int_equal(r.cack, 7);
	assert_int_equal(r.ooo, 0);
	mrc_rcv_sack(&r, 7, &sack);
	assert_int_equal(sack.cack_psn, 7);
	assert_int_equal(sack.base_psn, 8);
	assert_int_equal(sack.bitmap, 0);
	assert_int_equal(sack.rcvd_units, 4); /* 1000 bytes, rounded up */
	test_free(r.bits);
}

static void verdicts(void **state)
{
	struct mrc_rcv r = window(100, 1);
	uint8_t bits[64];

	(void)state;
	assert_int_equal(mrc_rcv_packet(&r, 102, 64), MRC_NEW);
	assert_int_equal(mrc_rcv_packet(&r, 102, 64), MRC_REPEATED);
	assert_int_equal(mrc_rcv_packet(&r, 99, 64), MRC_DUPLICATE);
	assert_int_equal(mrc_rcv_packet(&r, psn_add(99, -0x7ffffe), 64), MRC_DUPLICATE);
	assert_int_equal(r.rcvd_units, 1);
	assert_int_equal(mrc_rcv_packet(&r, 99 + 128, 64), MRC_NEW);
	assert_int_equal(mrc_rcv_packet(&r, 99 + 129, 64), MRC_BEYOND);
	assert_int_equal(r.rcvd_rest, 64); /* of five packets, not of the sixth */
	assert_int_equal(mrc_rcv_packet(&r, 100, 64), MRC_NEW);
	assert_int_equal(r.cack, 100);
	assert_int_equal(mrc_rcv_look(&r, 99 + 129), MRC_NEW);
	assert_int_equal(mrc_rcv_packet(&r, 101, 64), MRC_NEW);
	assert_int_equal(r.cack, 102);
	assert_int_equal(r.ooo, 1);
	test_free(r.bits);
	assert_int_equal(mrc_rcv_init(&r, 0, 0, bits), -EINVAL);
	assert_int_equal(mrc_rcv_init(&r, 0, MRC_MPR_MAX + 1, bits), -EINVAL);
}

/* Bits of a SACK against what has arrived: 1 is never said of what has not, and every PSN of the
 * window that has arrived is named. */
static void sack_is_true(struct mrc_rcv *r, const uint8_t *seen, uint32_t first, uint32_t psn)
{
	struct mrc_sack sack = {0};

	mrc_rcv_sack(r, psn, &sack);
	assert_int_equal(sack.cack_psn, r->cack);
	for (unsigned i = 0; i < 64; i++) {
		int32_t at = psn_diff(psn_add(sack.base_psn, (int32_t)i), first);

		assert_int_equal(sack.bitmap >> i & 1, at < 0 || seen[at]);
	}
	if (psn_diff(r->high, r->cack) <= 64)
		assert_int_equal(sack.base_psn, psn_add(r->cack, 1));
}

static void against_an_array(void **state)
{
	enum { N = 200000, UNITS = 3, MPR = UNITS * MRC_MPR_UNIT };
	const uint32_t first = 0xfffff0;
	struct mrc_rcv r = window(first, UNITS);
	uint8_t *seen = test_calloc(N + MPR + 64, 1);
	uint64_t random = 7;
	uint32_t low = 0;

	(void)state;
	while (low < N) {
		int32_t at = (int32_t)low + (int32_t)(test_random(&random) % (MPR + 40)) - 20;
		uint32_t psn = psn_add(first, at);
		enum mrc_arrival want = at < (int32_t)low            ? MRC_DUPLICATE
					: at >= (int32_t)(low + MPR) ? MRC_BEYOND
					: seen[at]                   ? MRC_REPEATED
								     : MRC_NEW;

		/* Mostly the lowest, so that the window moves. */
		if (test_random(&random) % 2 == 0) {
			at = (int32_t)low;
			psn = psn_add(first, at);
			want = MRC_NEW;
		}
		assert_int_equal(mrc_rcv_look(&r, psn), want);
		assert_int_equal(mrc_rcv_packet(&r, psn, 4096), want);
		if (want == MRC_NEW)
			seen[at] = 1;
		while (seen[low])
			low++;
		assert_int_equal(psn_diff(r.cack, first), (int32_t)low - 1);
		sack_is_true(&r, seen, first, psn);
	}
	test_free(seen);
	test_free(r.bits);
}

/* With much out of order, SACKs show the place of their trigger, and the low end now and then. */
static void both_ends(void **state)
{
	struct mrc_rcv r = window(0, 8);
	unsigned low = 0, trigger = 0;

	(void)state;
	for (uint32_t psn = 1; psn < 800; psn++) {
		struct mrc_sack sack = {0};

		assert_int_equal(mrc_rcv_packet(&r, psn, 64), MRC_NEW);
		mrc_rcv_sack(&r, psn, &sack);
		if (psn <= 100)
			continue;
		low += sack.base_psn == 0;
		trigger += psn_in(psn, sack.base_psn, psn_add(sack.base_psn, 63));
	}
	assert_in_range(low, 800 / 4 - 30, 800 / 4);
	assert_int_equal(low + trigger, 799 - 100);
	test_free(r.bits);
}

/* A very old duplicate, and the counters at their ends. */
static void limits(void **state)
{
	struct mrc_rcv r = window(0, MRC_MPR_MAX);
	struct mrc_pkt pkt = {.kind = MRC_KIND_SACK};
	uint8_t out[MRC_MAX_HEADERS];

	(void)state;
	assert_int_equal(mrc_rcv_bytes(MRC_MPR_MAX), 4096);
	for (uint32_t psn = 1; psn < MRC_MPR_MAX * MRC_MPR_UNIT; psn++)
		assert_int_equal(mrc_rcv_packet(&r, psn, 0), MRC_NEW);
	r.rcvd_units = PSN_MASK;
	assert_int_equal(mrc_rcv_packet(&r, psn_add(0, -0x7ffff0), 256), MRC_DUPLICATE);
	mrc_rcv_sack(&r, psn_add(0, -0x7ffff0), &pkt.sack);
	assert_int_equal(pkt.sack.trigger_psn, r.cack);
	assert_int_equal(pkt.sack.ooo_count, MRC_MPR_MAX * MRC_MPR_UNIT - 1);
	assert_int_equal(pkt.sack.rcvd_units, 0);
	assert_true(mrc_codec_ocp_r1.encode(&pkt, out, sizeof(out)) > 0);
	test_free(r.bits);
}

int run_rcv_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order),
		cmocka_unit_test(verdicts),
		cmocka_unit_test(against_an_array),
		cmocka_unit_test(both_ends),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests_name("mrc receive window", tests, NULL, NULL);
}
