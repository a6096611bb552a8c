/* SPDX-License-Identifier: BSD-3-Clause */
/* ICRC against zlib, which shares no code with it. */
#include <zlib.h>

#include "lib/wire/icrc.h"
#include "tests/unit/wire/wire_test.h"

enum { MAX_LEN = 9000 };

static void append_is_crc32(void **state)
{
	uint64_t seed = 2;
	uint8_t *data = malloc(MAX_LEN);

	(void)state;
	test_fill(&seed, data, MAX_LEN);
	assert_int_equal(icrc_append(0, "123456789", 9), 0xcbf43926);
	for (size_t len = 0; len < 600; len++) {
		uint32_t start = (uint32_t)test_random(&seed);

		assert_int_equal(icrc_append(0, data, len), crc32(0, data, (uInt)len));
		assert_int_equal(
			icrc_append(start, data + 1, len), crc32(start, data + 1, (uInt)len));
	}
	assert_int_equal(icrc_append(0, data, MAX_LEN), crc32(0, data, MAX_LEN));
	free(data);
}

static void check_combine(uint32_t a, uint32_t b, size_t len)
{
	uint32_t expected = (uint32_t)crc32_combine(a, b, (z_off_t)len);

	assert_int_equal(icrc_combine(a, b, len), expected);
	assert_int_equal(icrc_combine_shift(a, b, icrc_shift_for(len)), expected);
}

static void combine_joins_pieces(void **state)
{
	uint64_t seed = 3;
	uint8_t *data = malloc(MAX_LEN);

	(void)state;
	test_fill(&seed, data, MAX_LEN);
	for (int i = 0; i < 2000; i++) {
		size_t total = test_random(&seed) % (MAX_LEN + 1);
		size_t cut = test_random(&seed) % (total + 1);
		uint32_t a, b;

		if (i == 0)
			cut = 0; /* first piece empty */
		else if (i == 1)
			cut = total; /* second piece empty */
		else if (i == 2)
			total = cut = 0;
		a = icrc_append(0, data, cut);
		b = icrc_append(0, data + cut, total - cut);
		assert_int_equal(icrc_combine(a, b, total - cut), crc32(0, data, (uInt)total));
	}
	free(data);
}

static void combine_agrees_with_zlib(void **state)
{
	uint64_t seed = 4;

	(void)state;
	for (size_t len = 0; len < 5000; len++)
		check_combine((uint32_t)test_random(&seed), (uint32_t)test_random(&seed), len);
	for (unsigned bit = 0; bit < 40; bit++)
		check_combine((uint32_t)test_random(&seed), (uint32_t)test_random(&seed),
			(size_t)1 << bit | (test_random(&seed) & 1));
	check_combine(0, 0, 1024);
	check_combine(0xffffffff, 0xffffffff, 1024);
}

/* Annex A17.3.1 by the book: eight bytes of ones, then the headers with the masked bytes listed. */
static uint32_t slow_headers(const uint8_t *l3, size_t len)
{
	static const unsigned masked4[] = {1, 8, 10, 11, 26, 27, 32};
	static const unsigned masked6[] = {1, 2, 3, 7, 46, 47, 52};
	const unsigned *masked = l3[0] >> 4 == 4 ? masked4 : masked6;
	uint8_t buf[8 + ICRC_MAX_HEADERS];

	memset(buf, 0xff, 8);
	memcpy(buf + 8, l3, len);
	if (l3[0] >> 4 == 6)
		buf[8] |= 0x0f;
	for (int i = 0; i < 7; i++)
		buf[8 + masked[i]] = 0xff;
	return (uint32_t)crc32(0, buf, (uInt)(8 + len));
}

static void headers_are_masked(void **state)
{
	uint64_t seed = 6;

	(void)state;
	for (int family = 4; family <= 6; family += 2) {
		for (size_t len = family == 4 ? 40 : 60; len <= ICRC_MAX_HEADERS; len++) {
			uint8_t *exact = malloc(len), *before = malloc(len);

			test_fill(&seed, exact, len);
			exact[0] = (uint8_t)(family == 4 ? 0x45 : 0x60 | (exact[0] & 15));
			memcpy(before, exact, len);
			assert_int_equal(icrc_headers(exact, len), slow_headers(exact, len));
			assert_int_equal(icrc_packet(exact, len), slow_headers(exact, len));
			assert_memory_equal(exact, before, len);
			free(exact);
			free(before);
		}
	}
}

static void icrc_is_little_endian_on_the_wire(void **state)
{
	uint8_t b[4];

	(void)state;
	icrc_store(b, 0x11223344);
	assert_memory_equal(b, "\x44\x33\x22\x11", 4);
	assert_int_equal(icrc_load(b), 0x11223344);
}

int run_icrc_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(append_is_crc32),
		cmocka_unit_test(combine_joins_pieces),
		cmocka_unit_test(combine_agrees_with_zlib),
		cmocka_unit_test(headers_are_masked),
		cmocka_unit_test(icrc_is_little_endian_on_the_wire),
	};

	return cmocka_run_group_tests_name("icrc", tests, NULL, NULL);
}
