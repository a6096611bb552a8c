/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operation on every type by every instruction set, bit for bit against the oracle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/reduce/oracle.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

static int seed_random(void **state)
{
	(void)state;
	random_state = 42;
	return 0;
}

/* One in four is awkward. */
static uint64_t random_element(enum reduce_dtype dtype)
{
	uint64_t specials[ORACLE_SPECIALS], r = next_random();
	const size_t size = reduce_size(dtype);

	if (r % 4 == 0)
		return specials[(r >> 8) % oracle_specials(dtype, specials)];
	return next_random() >> (64 - 8 * size);
}

static uint64_t get(const uint8_t *p, size_t i, size_t size)
{
	uint64_t x = 0;

	memcpy(&x, p + i * size, size);
	return x;
}

static void put(uint8_t *p, size_t i, size_t size, uint64_t x)
{
	memcpy(p + i * size, &x, size);
}

/* A buffer that begins at any address and ends where the allocation ends, with a guard before;
 * under AddressSanitizer a step beyond it is an error, without it the second guard tells. */
struct buffer {
	uint8_t *block, *at;
	size_t shift, bytes;
};

enum { GUARD = 0xa5 };

static struct buffer buffer_new(size_t shift, size_t bytes)
{
	struct buffer b = {.shift = shift, .bytes = bytes, .block = malloc(shift + bytes + 1)};

	assert_non_null(b.block);
	memset(b.block, GUARD, shift + bytes + 1);
	b.at = b.block + shift;
	return b;
}

static void buffer_free(struct buffer *b)
{
	for (size_t i = 0; i < b->shift; i++)
		assert_int_equal(b->block[i], GUARD);
	assert_int_equal(b->at[b->bytes], GUARD);
	free(b->block);
}

struct pair {
	enum reduce_op op;
	enum reduce_dtype dtype;
};

static void fail_at(struct pair p, enum reduce_isa isa, const char *what, size_t i, size_t n,
	uint64_t is, uint64_t expected)
{
	fail_msg("%s %s %s %s: element %zu of %zu is %#llx, not %#llx", reduce_isa_name(isa), what,
		reduce_op_name(p.op), reduce_dtype_name(p.dtype), i, n, (unsigned long long)is,
		(unsigned long long)expected);
}

static void check(struct pair p, enum reduce_isa isa, const char *what, const uint8_t *is,
	const uint64_t *expected, size_t n, size_t size)
{
	for (size_t i = 0; i < n; i++)
		if (get(is, i, size) != expected[i])
			fail_at(p, isa, what, i, n, get(is, i, size), expected[i]);
}

static void fill(struct buffer *b, const uint64_t *from, size_t n, size_t size)
{
	for (size_t i = 0; i < n; i++)
		put(b->at, i, size, from[i]);
}

/* fn on n elements: acc of acc_size against expected, src unchanged. */
static void check_fn(reduce_fn fn, struct pair p, enum reduce_isa isa, const char *what,
	const uint64_t *a, size_t acc_size, const uint64_t *b, const uint64_t *expected, size_t n,
	size_t shift)
{
	const size_t size = reduce_size(p.dtype);
	struct buffer acc = buffer_new(shift, n * acc_size);
	struct buffer src = buffer_new((shift * 5 + n) % 9, n * size);

	fill(&acc, a, n, acc_size);
	fill(&src, b, n, size);
	fn(acc.at, src.at, n * size);
	check(p, isa, what, acc.at, expected, n, acc_size);
	check(p, isa, "source of", src.at, b, n, size);
	buffer_free(&acc);
	buffer_free(&src);
}

/* Both forms of the pair on the same n elements, by all sets of this CPU. acc: the accumulator form
 * takes these instead of a, which may be values that no wire form has. */
static void check_pair(struct pair p, const uint64_t *a, const uint64_t *acc, const uint64_t *b,
	size_t n, size_t shift)
{
	uint64_t *wire = malloc((n + 1) * sizeof(*wire)), *wide = malloc((n + 1) * sizeof(*wide));

	for (size_t i = 0; i < n; i++) {
		wire[i] = oracle(p.op, p.dtype, a[i], b[i]);
		wide[i] = oracle_accumulate(p.op, p.dtype, acc[i], b[i]);
	}
	for (int i = 0; i < REDUCE_N_ISA; i++) {
		const enum reduce_isa isa = (enum reduce_isa)i;
		reduce_fn kernel = reduce_kernel_isa(p.op, p.dtype, isa);
		reduce_fn accumulate = reduce_accumulate_isa(p.op, p.dtype, isa);

		if (isa == REDUCE_SCALAR)
			assert_non_null(kernel);
		assert_int_equal(kernel != NULL, accumulate != NULL);
		if (!kernel)
			continue; /* no_set_is_left_out says so */
		check_fn(kernel, p, isa, "kernel", a, reduce_size(p.dtype), b, wire, n, shift);
		check_fn(accumulate, p, isa, "accumulate", acc, reduce_acc_size(p.dtype), b, wide,
			n, shift);
	}
	free(wire);
	free(wide);
}

static uint64_t random_accumulator(enum reduce_dtype dtype)
{
	return random_element(reduce_acc_size(dtype) == reduce_size(dtype) ? dtype : REDUCE_FP32);
}

static void check_random(struct pair p, size_t n, size_t shift)
{
	uint64_t *a = malloc(3 * (n + 1) * sizeof(*a)), *acc = a + n, *b = acc + n;

	for (size_t i = 0; i < n; i++) {
		a[i] = random_element(p.dtype);
		acc[i] = random_accumulator(p.dtype);
		b[i] = random_element(p.dtype);
	}
	check_pair(p, a, acc, b, n, shift);
	free(a);
}

static void each_pair(void (*f)(struct pair))
{
	for (int op = 0; op <= REDUCE_NONE; op++)
		for (int dtype = 0; dtype <= REDUCE_BYTES; dtype++)
			if (oracle_supports((enum reduce_op)op, (enum reduce_dtype)dtype))
				f((struct pair){(enum reduce_op)op, (enum reduce_dtype)dtype});
}

/* Up to two vectors of the widest set and a tail of every length, at every misalignment. */
static void all_lengths(struct pair p)
{
	const size_t size = reduce_size(p.dtype);

	for (size_t n = 0; n <= 200 / size; n++)
		for (size_t shift = 0; shift < 2 * size && shift < 8; shift++)
			check_random(p, n, shift);
	check_random(p, 1024 / size, 0);
	check_random(p, 1500 / size, 3);
	check_random(p, 4096 / size, 0);
}

static void lengths_and_alignments(void **state)
{
	(void)state;
	each_pair(all_lengths);
}

/* Each awkward value with each, in some lanes of every set and its tails. */
static void all_special_pairs(struct pair p)
{
	uint64_t s[ORACLE_SPECIALS], *a, *b, *acc, w[ORACLE_SPECIALS];
	const bool same = reduce_acc_size(p.dtype) == reduce_size(p.dtype);
	const size_t n = oracle_specials(p.dtype, s);
	const size_t n_wide = oracle_specials(same ? p.dtype : REDUCE_FP32, w);

	a = malloc(3 * n * n_wide * sizeof(*a));
	acc = a + n * n_wide;
	b = acc + n * n_wide;
	for (size_t i = 0; i < n * n_wide; i++) {
		a[i] = s[i % n_wide % n];
		acc[i] = w[i % n_wide];
		b[i] = s[i / n_wide];
	}
	for (size_t from = 0; from < 40; from += 13)
		check_pair(p, a + from, acc + from, b + from, n * n_wide - from, from % 4);
	free(a);
}

static void special_values(void **state)
{
	(void)state;
	each_pair(all_special_pairs);
}

static const enum reduce_dtype halves[] = {REDUCE_FP16, REDUCE_BF16};

enum { ALL_HALVES = 1 << 16 };

/* Each of the 65536 values into an accumulator and back: itself, or the NaN. */
static void every_half_survives(void **state)
{
	uint64_t *h = malloc(2 * ALL_HALVES * sizeof(*h)), *wide = h + ALL_HALVES;

	(void)state;
	for (size_t t = 0; t < COUNT(halves); t++) {
		const struct pair p = {REDUCE_NONE, halves[t]};
		const uint64_t nan = p.dtype == REDUCE_FP16 ? 0x7e00 : 0x7fc0;

		for (int isa = 0; isa < REDUCE_N_ISA; isa++) {
			reduce_fn widen = reduce_widen_isa(p.dtype, (enum reduce_isa)isa);
			reduce_fn narrow = reduce_narrow_isa(p.dtype, (enum reduce_isa)isa);
			struct buffer acc;

			if (!widen)
				continue;
			for (size_t i = 0; i < ALL_HALVES; i++) {
				h[i] = i;
				wide[i] = oracle_widen(p.dtype, i);
			}
			acc = buffer_new(1, ALL_HALVES * 4);
			check_fn(widen, p, (enum reduce_isa)isa, "widen", wide, 4, h, wide,
				ALL_HALVES, 0);
			fill(&acc, wide, ALL_HALVES, 4);
			for (size_t i = 0; i < ALL_HALVES; i++)
				h[i] = oracle_is_nan(p.dtype, i) ? nan : i;
			narrow(acc.at, acc.at, ALL_HALVES * 2);
			check(p, (enum reduce_isa)isa, "narrow", acc.at, h, ALL_HALVES, 2);
			buffer_free(&acc);
		}
	}
	free(h);
}

static void check_narrow(enum reduce_dtype dtype, const uint64_t *f, size_t n, size_t shift)
{
	uint64_t *expected = malloc((n + 1) * sizeof(*expected));
	const struct pair p = {REDUCE_NONE, dtype};

	for (size_t i = 0; i < n; i++)
		expected[i] = oracle_narrow(dtype, f[i]);
	for (int isa = 0; isa < REDUCE_N_ISA; isa++) {
		reduce_fn narrow = reduce_narrow_isa(dtype, (enum reduce_isa)isa);
		struct buffer acc = buffer_new(shift, n * 4), dst = buffer_new(3 - shift, n * 2);

		fill(&acc, f, n, 4);
		if (narrow) {
			narrow(dst.at, acc.at, n * 2);
			check(p, (enum reduce_isa)isa, "narrow", dst.at, expected, n, 2);
			check(p, (enum reduce_isa)isa, "source of narrow", acc.at, f, n, 4);
			narrow(acc.at, acc.at, n * 2);
			check(p, (enum reduce_isa)isa, "narrow in place", acc.at, expected, n, 2);
		}
		buffer_free(&acc);
		buffer_free(&dst);
	}
	free(expected);
}

/* Halfway from h, in fp32, to the next value away from zero. Both lie in one closed binade of fp32,
 * where bits are linear, but for fp16's 0. Above the largest the distance stays as it was. */
static uint64_t tie_above(enum reduce_dtype dtype, uint64_t h)
{
	const uint64_t low = oracle_widen(dtype, h), high = oracle_widen(dtype, (h + 1) & 0xffff);

	if (dtype == REDUCE_FP16 && (h & 0x7fff) == 0)
		return high - (1 << 23);
	if ((high & 0x7fffffff) == 0x7f800000)
		return low + (low - oracle_widen(dtype, h - 1)) / 2;
	return low + (high - low) / 2;
}

/* Around every value of the type and every tie between two: rounding, in place and not. */
static void every_tie_rounds_to_even(void **state)
{
	uint64_t *f = malloc(6 * ALL_HALVES * sizeof(*f));

	(void)state;
	for (size_t t = 0; t < COUNT(halves); t++) {
		size_t n = 0;

		for (uint64_t h = 0; h < ALL_HALVES; h++) {
			const uint64_t at = oracle_widen(halves[t], h),
				       tie = tie_above(halves[t], h);
			const uint64_t about[] = {at - 1, at, at + 1, tie - 1, tie, tie + 1};

			for (size_t i = 0; i < COUNT(about); i++)
				f[n++] = about[i] & 0xffffffff;
		}
		check_narrow(halves[t], f, n, 0);
		for (size_t i = 0; i < n; i++)
			f[i] = next_random() >> 32;
		check_narrow(halves[t], f, n, 0);
		for (size_t k = 0; k < 100; k++)
			check_narrow(halves[t], f + k * 100, k, k % 4);
	}
	free(f);
}

/* Each of the 65536 values with some others. */
static void every_half_with_some(struct pair p)
{
	static const uint64_t partners[2][5] = {
		{0x3c01, 0xbc00, 0x0001, 0x7bff, 0x5555}, {0x3f81, 0xbf80, 0x0001, 0x7f7f, 0x5555}};
	uint64_t *a, *acc, *b;

	if (reduce_size(p.dtype) != 2)
		return;
	a = malloc(3 * ALL_HALVES * sizeof(*a));
	acc = a + ALL_HALVES;
	b = acc + ALL_HALVES;
	for (size_t k = 0; k < COUNT(partners[0]); k++) {
		for (size_t i = 0; i < ALL_HALVES; i++) {
			a[i] = i;
			acc[i] = oracle_widen(p.dtype, i);
			b[i] = partners[p.dtype == REDUCE_BF16][k];
		}
		check_pair(p, a, acc, b, ALL_HALVES, 0);
	}
	free(a);
}

static void every_half(void **state)
{
	(void)state;
	each_pair(every_half_with_some);
}

/* A row of vectors through an accumulator, as a switch does it: rounded once. */
static void rows(struct pair p)
{
	enum { N = 77, RANKS = 9 };
	const size_t size = reduce_size(p.dtype), acc_size = reduce_acc_size(p.dtype);
	uint64_t expected[N];
	uint8_t in[RANKS][N * 8];

	for (size_t r = 0; r < RANKS; r++) {
		for (size_t i = 0; i < N; i++) {
			uint64_t x = random_element(p.dtype);

			put(in[r], i, size, x);
			expected[i] = r ? oracle_accumulate(p.op, p.dtype, expected[i], x)
					: oracle_widen(p.dtype, x);
		}
	}
	for (size_t i = 0; i < N; i++)
		expected[i] = oracle_narrow(p.dtype, expected[i]);
	for (int i = 0; i < REDUCE_N_ISA; i++) {
		const enum reduce_isa isa = (enum reduce_isa)i;
		reduce_fn narrow = reduce_narrow_isa(p.dtype, isa);
		struct buffer slot = buffer_new(0, N * acc_size);

		if (reduce_widen_isa(p.dtype, isa)) {
			reduce_widen_isa(p.dtype, isa)(slot.at, in[0], N * size);
			for (size_t r = 1; r < RANKS; r++)
				reduce_accumulate_isa(p.op, p.dtype, isa)(slot.at, in[r], N * size);
			if (narrow)
				narrow(slot.at, slot.at, N * size);
			check(p, isa, "row of", slot.at, expected, N, size);
		}
		buffer_free(&slot);
	}
}

static void rows_of_vectors(void **state)
{
	(void)state;
	for (size_t i = 0; i < 20; i++)
		each_pair(rows);
}

/* A length within an element: the rest is left alone. */
static void rest_is_left(struct pair p)
{
	const size_t size = reduce_size(p.dtype), acc_size = reduce_acc_size(p.dtype);

	for (int isa = 0; isa < REDUCE_N_ISA; isa++) {
		reduce_fn fn = reduce_kernel_isa(p.op, p.dtype, (enum reduce_isa)isa);
		uint8_t acc[400], src[400];

		for (size_t bytes = 0; fn && bytes < 150; bytes++) {
			memset(acc, 0x11, sizeof(acc));
			memset(src, 0x22, sizeof(src));
			fn(acc, src, bytes);
			for (size_t i = bytes / size * size; i < sizeof(acc); i++)
				assert_int_equal(acc[i], 0x11);
			memset(acc, 0x11, sizeof(acc));
			reduce_accumulate_isa(p.op, p.dtype, (enum reduce_isa)isa)(acc, src, bytes);
			for (size_t i = bytes / size * acc_size; i < sizeof(acc); i++)
				assert_int_equal(acc[i], 0x11);
		}
	}
}

static void lengths_within_an_element(void **state)
{
	(void)state;
	each_pair(rest_is_left);
}

static void no_set_is_left_out(void **state)
{
	(void)state;
	for (int isa = 0; isa < REDUCE_N_ISA; isa++)
		if (!reduce_kernel_isa(REDUCE_SUM, REDUCE_FP32, (enum reduce_isa)isa))
			print_message("this CPU has no %s: not tested\n",
				reduce_isa_name((enum reduce_isa)isa));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_set_is_left_out),
		cmocka_unit_test_setup(lengths_and_alignments, seed_random),
		cmocka_unit_test(special_values),
		cmocka_unit_test(every_half_survives),
		cmocka_unit_test_setup(every_tie_rounds_to_even, seed_random),
		cmocka_unit_test(every_half),
		cmocka_unit_test_setup(rows_of_vectors, seed_random),
		cmocka_unit_test(lengths_within_an_element),
	};

	return cmocka_run_group_tests_name("reduce kernels", tests, NULL, NULL);
}
