/* SPDX-License-Identifier: BSD-3-Clause */
/* Every set of kernels that this CPU can run, against the scalar one, and that against zlib. */
#include <zlib.h>

#include "lib/wire/icrc.h"
#include "lib/wire/icrc_impl.h"
#include "tests/unit/wire/wire_test.h"

enum { MAX_LEN = 4200, GUARD = 64, ROOM = MAX_LEN + 2 * GUARD };

static const struct icrc_kernels *next_usable(const struct icrc_kernels *k)
{
	for (; k < icrc_kernels + icrc_n_kernels; k++) {
		if (k->usable())
			return k;
		print_message("this CPU lacks the instructions of kernels \"%s\"\n", k->name);
	}
	return NULL;
}

#define FOR_EACH_USABLE(k) \
	for (const struct icrc_kernels *k = next_usable(icrc_kernels); k; k = next_usable(k + 1))

static void check_copy(const struct icrc_kernels *k, uint32_t start, const uint8_t *src,
	size_t dst_off, size_t len, uint32_t expected)
{
	static uint8_t out[ROOM], untouched[ROOM];

	memset(out, 0xa5, sizeof(out));
	memset(untouched, 0xa5, sizeof(untouched));
	assert_int_equal(k->copy(start, out + dst_off, src, len), expected);
	assert_memory_equal(out + dst_off, src, len);
	assert_memory_equal(out, untouched, dst_off);
	assert_memory_equal(out + dst_off + len, untouched, ROOM - dst_off - len);
}

static void every_length(void **state)
{
	const struct icrc_kernels *scalar = icrc_kernels;
	uint8_t *data = malloc(ROOM);
	uint64_t seed = 20;

	(void)state;
	test_fill(&seed, data, ROOM);
	for (size_t len = 0; len <= MAX_LEN; len++) {
		const uint8_t *src = data + test_random(&seed) % GUARD;
		const uint32_t start = len % 3 ? (uint32_t)test_random(&seed) : 0;
		const uint32_t expected = scalar->append(start, src, len);

		assert_int_equal(expected, crc32(start, src, (uInt)len));
		FOR_EACH_USABLE(k)
		{
			assert_int_equal(k->append(start, src, len), expected);
			check_copy(k, start, src, test_random(&seed) % GUARD, len, expected);
		}
	}
	free(data);
}

/* A buffer of exactly the length, for the address sanitizer. */
static void nothing_beyond_the_ends(void **state)
{
	uint64_t seed = 21;

	(void)state;
	for (size_t len = 1; len <= 1100; len++) {
		uint8_t *src = malloc(len), *dst = malloc(len);

		test_fill(&seed, src, len);
		FOR_EACH_USABLE(k)
		{
			const uint32_t expected = (uint32_t)crc32(7, src, (uInt)len);

			assert_int_equal(k->append(7, src, len), expected);
			assert_int_equal(k->copy(7, dst, src, len), expected);
			assert_memory_equal(dst, src, len);
		}
		free(src);
		free(dst);
	}
}

static void every_alignment(void **state)
{
	static const size_t lens[] = {15, 64, 127, 128, 131, 255, 256, 271, 333, 1024, 1087, 4096};
	uint8_t *data = malloc(ROOM);
	uint64_t seed = 22;

	(void)state;
	test_fill(&seed, data, ROOM);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (size_t from = 0; from < GUARD; from++)
			FOR_EACH_USABLE(k)
			{
				const uint32_t expected =
					icrc_kernels->append(1, data + from, lens[i]);

				assert_int_equal(k->append(1, data + from, lens[i]), expected);
				check_copy(k, 1, data + from, from * 37 % GUARD, lens[i], expected);
			}
	free(data);
}

/* A single bit anywhere, so that a wrong factor shows by itself. */
static void every_bit(void **state)
{
	enum { LEN = 256 + 3 * 64 + 3 * 16 + 13 };
	static uint8_t data[LEN], out[LEN];

	(void)state;
	for (size_t bit = 0; bit < LEN * 8; bit++) {
		data[bit / 8] = (uint8_t)(1 << bit % 8);
		FOR_EACH_USABLE(k)
		{
			const uint32_t expected = icrc_kernels->append(0, data, LEN);

			assert_int_equal(k->append(0, data, LEN), expected);
			assert_int_equal(k->copy(0, out, data, LEN), expected);
		}
		data[bit / 8] = 0;
	}
}

static void pieces_continue(void **state)
{
	uint8_t *data = malloc(MAX_LEN), *out = malloc(MAX_LEN);
	uint64_t seed = 23;

	(void)state;
	test_fill(&seed, data, MAX_LEN);
	for (int i = 0; i < 500; i++)
		FOR_EACH_USABLE(k)
		{
			const size_t len = test_random(&seed) % (MAX_LEN + 1),
				     cut = test_random(&seed) % (len + 1);
			uint32_t crc = k->copy(0, out, data, cut);

			crc = i % 2 ? k->append(crc, data + cut, len - cut)
				    : k->copy(crc, out + cut, data + cut, len - cut);
			assert_int_equal(crc, crc32(0, data, (uInt)len));
		}
	free(data);
	free(out);
}

/* Others write to the source, and the CRC must be that of what arrived. Here the copy itself does:
 * it goes to one byte before, so that what is stored spoils what was read, and whoever reads it
 * once more has something else. (The folds load before they store and go upwards; the others copy
 * with memcpy, which may not overlap, and count the copy.) */
static void folds_read_once(void **state)
{
	enum { LEN = 1024 + 3 * 64 + 16 + 5 };
	static uint8_t data[LEN], buf[1 + LEN];
	uint64_t seed = 24;

	(void)state;
	test_fill(&seed, data, LEN);
	for (size_t len = 256; len <= LEN; len++)
		FOR_EACH_USABLE(k)
		{
			if (strncmp(k->name, "avx", 3) != 0)
				continue;
			memcpy(buf + 1, data, len);
			assert_int_equal(k->copy(0, buf, buf + 1, len), crc32(0, data, (uInt)len));
			assert_memory_equal(buf, data, len);
		}
}

static void check_masked(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len)
{
	uint8_t buf[ICRC_MAX_HEADERS];
	uint32_t expected;

	for (size_t i = 0; i < len; i++)
		buf[i] = data[i] | mask[i];
	expected = (uint32_t)crc32(crc, buf, (uInt)len);
	FOR_EACH_USABLE(k)
	assert_int_equal(k->masked(crc, data, mask, len), expected);
}

/* Buffers of exactly the lengths, for the address sanitizer; bits anywhere in the mask's first
 * half, so that a register that is not masked shows. */
static void packets_agree(void **state)
{
	uint64_t seed = 11;

	(void)state;
	for (size_t len = 40; len <= 1200; len++) {
		uint8_t *exact = malloc(len), *bits = malloc(len);
		uint8_t *mask = calloc(1, ICRC_MAX_HEADERS);
		uint32_t crc, expected;

		for (int i = 0; i < 8; i++) {
			test_fill(&seed, exact, len);
			test_fill(&seed, mask, ICRC_MASKED);
			if (i == 0) {
				memset(mask, 0, ICRC_MASKED);
				mask[test_random(&seed) % ICRC_MASKED] = 0xff;
			}
			memcpy(bits, exact, len);
			for (size_t k = 0; k < len && k < ICRC_MASKED; k++)
				bits[k] |= mask[k];
			crc = (uint32_t)test_random(&seed);
			expected = (uint32_t)crc32(crc, bits, (uInt)len);
			FOR_EACH_USABLE(k)
			assert_int_equal(k->packet(crc, exact, mask, len), expected);
		}
		free(exact);
		free(bits);
		free(mask);
	}
}

/* As copy of ISA-L's kernels, which counts what it has written, when another writes there
 * meanwhile. */
static uint32_t copy_spoilt(uint32_t crc, void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	*(uint8_t *)dst ^= 1;
	return icrc_append_isal(crc, dst, len);
}

/* The CRC of a packet that arrives is that of what came, whatever is where it was copied to. (Of
 * kernels in one pass: folds_read_once.) */
static void arrivals_count(void **state)
{
	const struct icrc_kernels *const used = icrc_use;
	static uint8_t data[MAX_LEN], out[MAX_LEN];
	uint64_t seed = 31;

	(void)state;
	test_fill(&seed, data, MAX_LEN);
	FOR_EACH_USABLE(k)
	{
		struct icrc_kernels spoils = *k;

		if (strncmp(k->name, "avx", 3) != 0)
			spoils.copy = copy_spoilt;
		icrc_use = &spoils;
		assert_int_equal(icrc_place(7, out, data, MAX_LEN), crc32(7, data, MAX_LEN));
		icrc_use = used;
		assert_memory_equal(out, data, MAX_LEN);
	}
}

static void masked_headers_agree(void **state)
{
	uint64_t seed = 10;

	(void)state;
	for (size_t len = 16; len <= ICRC_MAX_HEADERS; len++) {
		uint8_t *exact = malloc(len), *mask = malloc(len);

		for (int i = 0; i < 50; i++) {
			test_fill(&seed, exact, len);
			test_fill(&seed, mask, len);
			if (i % 2)
				memset(mask, 0, len);
			check_masked((uint32_t)test_random(&seed), exact, mask, len);
		}
		/* A single bit anywhere, so that a wrong factor shows by itself. */
		memset(mask, 0, len);
		for (size_t bit = 0; bit < len * 8; bit++) {
			memset(exact, 0, len);
			exact[bit / 8] = (uint8_t)(1 << bit % 8);
			check_masked(0xffffffff, exact, mask, len);
		}
		free(exact);
		free(mask);
	}
}

static void products_agree(void **state)
{
	const struct icrc_kernels *scalar = icrc_kernels;
	uint64_t seed = 5;

	(void)state;
	assert_int_equal(scalar->mul(0x80000000, 0x12345678), 0x12345678);
	assert_int_equal(scalar->mul(0x12345678, 0x80000000), 0x12345678);
	assert_int_equal(scalar->mul(0, 0x12345678), 0);
	for (int i = 0; i < 10000; i++) {
		uint32_t a = (uint32_t)test_random(&seed), b = (uint32_t)test_random(&seed);

		if (i < 32)
			a = 1u << i;
		else if (i < 64)
			b = 1u << (i - 32);
		else if (i == 64)
			a = b = 0xffffffff;
		else if (i == 65)
			a = 0;
		FOR_EACH_USABLE(k)
		assert_int_equal(k->mul(a, b), scalar->mul(a, b));
	}
}

/* One that can not be had is said, and the best takes its place. */
static void a_name_chooses(void **state)
{
	const struct icrc_kernels *best;
	char why[128] = "x";

	(void)state;
	best = icrc_choose(NULL, why, sizeof(why));
	assert_string_equal(why, "");
	assert_true(best->usable());
	for (unsigned i = 0; i < icrc_n_kernels; i++) {
		const struct icrc_kernels *k = icrc_choose(icrc_kernels[i].name, why, sizeof(why));

		assert_true(k->usable());
		if (icrc_kernels[i].usable()) {
			assert_string_equal(k->name, icrc_kernels[i].name);
			assert_string_equal(why, "");
		} else if (strcmp(k->name, icrc_kernels[i].name) != 0) {
			assert_ptr_equal(k, best);
			assert_non_null(strstr(why, "this CPU lacks it"));
		}
	}
	assert_ptr_equal(icrc_choose("sse9", why, sizeof(why)), best);
	assert_non_null(strstr(why, "INCLINE_ICRC=sse9: not one of scalar, isal, avx2, avx512"));
	assert_non_null(strstr(why, best->name));
	assert_string_equal(icrc_kernel_name(), icrc_use->name);
}

int run_icrc_kernel_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length),
		cmocka_unit_test(nothing_beyond_the_ends),
		cmocka_unit_test(every_alignment),
		cmocka_unit_test(every_bit),
		cmocka_unit_test(pieces_continue),
		cmocka_unit_test(folds_read_once),
		cmocka_unit_test(arrivals_count),
		cmocka_unit_test(masked_headers_agree),
		cmocka_unit_test(packets_agree),
		cmocka_unit_test(products_agree),
		cmocka_unit_test(a_name_chooses),
	};

	return cmocka_run_group_tests_name("icrc kernels", tests, NULL, NULL);
}
