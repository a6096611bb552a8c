/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes from bandwidth-delay products: the paper's numbers, the switch's own arithmetic, and that
 * rate and memory are each other's inverse. */
#include <errno.h>

#include "dataplane/inc/group.h"
#include "lib/mgr/size.h"
#include "tests/unit/mgr/mgr_test.h"

static const struct mgr_shape plain = {.mtu = 1024, .m = 4, .hop_ns = 2500};

static struct mgr_size size(const struct mgr_shape *s, unsigned mode, unsigned height, uint64_t bps)
{
	struct mgr_size z;

	assert_int_equal(mgr_size_for(s, mode, height, bps, &z), 0);
	assert_int_equal(z.mode, mode);
	return z;
}

/* Section 7.2: Mode-II, 100 Gb/s and 10 us there and back, "250 KB per job (twice the path BDP)".
 */
static void papers_number(void **state)
{
	struct mgr_size z = size(&plain, MGR_MODE_II, 2, 100ull * TEST_GBPS);

	(void)state;
	assert_int_equal(z.m * z.w, 124); /* 125 KB in packets of 1024, in whole messages of 4 */
	assert_int_equal(z.slots, 256);
	assert_int_equal(mgr_size_bytes(&plain, &z, 5), 256 * 1024);
}

/* F.3: height 1, II is half of III; 2, the same; 4, twice. */
static void order_of_space(void **state)
{
	const uint64_t bps = 100ull * TEST_GBPS;
	struct mgr_shape s = plain;

	(void)state;
	s.hop_ns = 2600; /* its products just below powers of two */
	for (unsigned h = 1; h <= 4; h *= 2) {
		struct mgr_size two = size(&s, MGR_MODE_II, h, bps);
		struct mgr_size three = size(&s, MGR_MODE_III, h, bps);

		assert_true(2 * mgr_size_bytes(&s, &two, 9) == h * mgr_size_bytes(&s, &three, 9) ||
			    h == 1);
		assert_true(mgr_size_bytes(&s, &three, 9) == mgr_size_bytes(&s, &three, 3));
	}
}

/* One formula on both sides of the control socket. */
static void as_the_switch_has_it(void **state)
{
	static struct inc_group_spec spec; /* large */

	(void)state;
	for (unsigned i = 0; i < 3 * 2 * 2 * 3; i++) {
		unsigned mode = 1 + i % 3, n_ep = 2 + 7 * (i / 12 % 3);
		struct mgr_shape s = plain;
		struct mgr_size z;

		s.reproducible = i / 3 % 2;
		s.half = i / 6 % 2;
		z = size(&s, 1u << mode, 3, 40ull * TEST_GBPS);
		memset(&spec, 0, sizeof(spec));
		spec.mode = mode;
		spec.kind = INC_MIXED;
		spec.mtu = s.mtu;
		spec.m = z.m;
		spec.w = z.w;
		spec.slots = z.slots;
		spec.n_ep = n_ep;
		spec.flags = (s.reproducible ? INC_F_REPRODUCIBLE : 0) | (s.half ? INC_F_HALF : 0);
		assert_int_equal(mgr_size_bytes(&s, &z, n_ep), inc_group_payload_bytes(&spec));
	}
}

/* What a rate needs suffices for it; what memory carries fits into it. */
static void inverse(void **state)
{
	uint64_t random = 7;

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		struct mgr_shape s = {.mtu = 256u << test_random(&random) % 5,
			.m = 1 + test_random(&random) % 16,
			.hop_ns = 100 + test_random(&random) % 5000,
			.reproducible = test_random(&random) % 2,
			.half = test_random(&random) % 2};
		unsigned mode = 2u << test_random(&random) % 3, h = 1 + test_random(&random) % 4;
		unsigned n_ep = 2 + test_random(&random) % 62;
		uint64_t bytes = test_random(&random) % (4u << 20), bps;
		struct mgr_size z;

		bps = mgr_size_rate(&s, mode, h, bytes, n_ep);
		if (bps > 0 && mgr_size_for(&s, mode, h, bps, &z) == 0)
			assert_true(mgr_size_bytes(&s, &z, n_ep) <= bytes);
		bps = 1 + test_random(&random) * 50ull;
		if (mgr_size_for(&s, mode, h, bps, &z) == 0)
			assert_true(mgr_size_rate(&s, mode, h, mgr_size_bytes(&s, &z, n_ep),
					    n_ep) >= bps);
	}
}

/* F.4: Mode-II loses with every child. */
static void loss(void **state)
{
	struct mgr_shape s = plain;

	(void)state;
	s.loss_ppm = 10000;
	assert_int_equal(mgr_size_goodput(&s, MGR_MODE_III, 1, 8, 10000), 9801);
	assert_int_equal(mgr_size_goodput(&s, MGR_MODE_I, 1, 8, 10000), 9801);
	assert_int_equal(mgr_size_goodput(&s, MGR_MODE_II, 1, 8, 10000), 8514);
	s.loss_ppm = 0;
	assert_int_equal(mgr_size_goodput(&s, MGR_MODE_II, 4, 63, 10000), 10000);
}

static void refused(void **state)
{
	struct mgr_shape s = plain;
	struct mgr_size z;

	(void)state;
	assert_int_equal(mgr_shape_check(&s), 0);
	s.mtu = 1000;
	assert_int_equal(mgr_shape_check(&s), -EINVAL);
	s = plain;
	s.hop_ns = 0;
	assert_int_equal(mgr_shape_check(&s), -EINVAL);
	s = plain;
	s.loss_ppm = MGR_PPM + 1;
	assert_int_equal(mgr_shape_check(&s), -EINVAL);
	/* A window that no PSN range holds. */
	assert_int_equal(mgr_size_for(&plain, MGR_MODE_II, 4, UINT64_MAX, &z), -ERANGE);
	assert_int_equal(mgr_size_for(&plain, MGR_MODE_II, 4, 20000ull * TEST_GBPS, &z), -ERANGE);
	assert_int_equal(mgr_size_rate(&plain, MGR_MODE_II, 1, 8191, 2), 0);
}

int run_size_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(papers_number),
		cmocka_unit_test(order_of_space), cmocka_unit_test(as_the_switch_has_it),
		cmocka_unit_test(inverse), cmocka_unit_test(loss), cmocka_unit_test(refused)};

	return cmocka_run_group_tests_name("size", tests, NULL, NULL);
}
