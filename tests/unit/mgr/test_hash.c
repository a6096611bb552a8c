/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of jobs' names: SipHash as its authors have it; names that fall together under one key
 * do not under another. */
#include "lib/wire/siphash.h"
#include "tests/unit/mgr/mgr_test.h"

/* Appendix A of the paper, and the first and last of the authors' vectors.h. */
static void vectors(void **state)
{
	static const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
	uint8_t in[63];

	(void)state;
	for (unsigned i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)i;
	assert_true(wire_siphash(key, in, 15) == 0xa129ca6149be45e5);
	assert_true(wire_siphash(key, in, 0) == 0x726fdb47dd0e0e31);
	assert_true(wire_siphash(key, in, 63) == 0x958a324ceb064572);
}

static void keyed(void **state)
{
	enum { CHAINS = 1 << 10, TRIED = 1 << 16 };
	static const uint64_t guessed[2] = {0, 0}, real[2] = {0x1234567890abcdef, 99};
	unsigned together = 0, still = 0;

	(void)state;
	for (unsigned i = 0; i < TRIED; i++) {
		char name[MGR_NAME_LEN];
		int len = snprintf(name, sizeof(name), "job%u", i);

		if (wire_siphash(guessed, name, (size_t)len) % CHAINS)
			continue;
		together++;
		still += wire_siphash(real, name, (size_t)len) % CHAINS == 0;
	}
	assert_in_range(together, TRIED / CHAINS / 2, 2 * TRIED / CHAINS);
	assert_in_range(still, 0, 4);
}

int run_hash_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(keyed)};

	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
