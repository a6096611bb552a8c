/* SPDX-License-Identifier: BSD-3-Clause */
/* Every instruction set against the scalar reference, bit for bit, and that against plain C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <float.h>
#include <math.h>

#include "lib/reduce/reduce.h"

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

static float from_bits(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static uint32_t to_bits(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

/* All that is awkward about floats, both signs of most. */
static const uint32_t awkward[] = {
	0x00000000, 0x80000000,                         /* zeros */
	0x00000001, 0x80000001, 0x007fffff, 0x807fffff, /* subnormals */
	0x00800000, 0x80800000,                         /* smallest normal */
	0x3f800000, 0xbf800000, 0x34000000, 0x33800000, /* 1, epsilon, half of it */
	0x7f7fffff, 0xff7fffff,                         /* largest */
	0x7f800000, 0xff800000,                         /* infinities */
	0x7fc00000, 0xffc00000, 0x7fc12345, 0xffffffff, /* quiet NaNs */
	0x7f800001, 0xff812345, 0x7fbfffff,             /* signalling NaNs */
};

enum { N_AWKWARD = sizeof(awkward) / sizeof(*awkward), FP32_NAN = 0x7fc00000 };

static uint32_t random_word(void)
{
	uint64_t r = next_random();

	return r % 4 == 0 ? awkward[(r >> 8) % N_AWKWARD] : (uint32_t)(r >> 32);
}

static uint32_t plain_sum(enum reduce_dtype dtype, uint32_t a, uint32_t b)
{
	float sum;

	if (dtype == REDUCE_INT32)
		return a + b;
	sum = from_bits(a) + from_bits(b);
	return isnan(sum) ? FP32_NAN : to_bits(sum);
}

static reduce_fn kernel_or_skip(enum reduce_dtype dtype, enum reduce_isa isa)
{
	reduce_fn fn = reduce_kernel_isa(REDUCE_SUM, dtype, isa);

	if (!fn) {
		assert_int_not_equal(isa, REDUCE_SCALAR);
		print_message("this CPU has no %s: not tested\n", reduce_isa_name(isa));
	}
	return fn;
}

/* n elements at the given misalignments, in blocks that end where the data ends, with guard bytes
 * before: compares with plain C. */
static void check_sum(
	reduce_fn fn, enum reduce_dtype dtype, size_t n, size_t acc_shift, size_t src_shift)
{
	uint8_t *acc_block = malloc(acc_shift + n * 4 + 1);
	uint8_t *src_block = malloc(src_shift + n * 4 + 1);
	uint32_t *expected = malloc(n * 4 + 1), *src = malloc(n * 4 + 1);
	uint8_t *acc = acc_block + acc_shift;

	memset(acc_block, 0xa5, acc_shift + n * 4 + 1);
	memset(src_block, 0x5a, src_shift + n * 4 + 1);
	for (size_t i = 0; i < n; i++) {
		uint32_t a = random_word(), b = random_word();

		memcpy(acc + 4 * i, &a, 4);
		src[i] = b;
		expected[i] = plain_sum(dtype, a, b);
	}
	memcpy(src_block + src_shift, src, n * 4);
	fn(acc, src_block + src_shift, n * 4);
	assert_memory_equal(acc, expected, n * 4);
	assert_memory_equal(src_block + src_shift, src, n * 4);
	for (size_t i = 0; i < acc_shift; i++)
		assert_int_equal(acc_block[i], 0xa5);
	assert_int_equal(acc[n * 4], 0xa5);
	free(acc_block);
	free(src_block);
	free(expected);
	free(src);
}

static void check_all_lengths(enum reduce_dtype dtype)
{
	for (int isa = 0; isa < REDUCE_N_ISA; isa++) {
		reduce_fn fn = kernel_or_skip(dtype, (enum reduce_isa)isa);

		if (!fn)
			continue;
		for (size_t n = 0; n < 150; n++)
			for (size_t shift = 0; shift < 4; shift++)
				check_sum(fn, dtype, n, shift, (shift * 3 + n) % 8);
		check_sum(fn, dtype, 1024, 0, 0);
		check_sum(fn, dtype, 1023, 1, 2);
	}
}

static void fp32_sums(void **state)
{
	(void)state;
	check_all_lengths(REDUCE_FP32);
}

static void int32_sums(void **state)
{
	(void)state;
	check_all_lengths(REDUCE_INT32);
}

/* Each awkward value with each, in every lane position of the widest vector and in the tails. */
static void fp32_awkward_pairs(void **state)
{
	(void)state;
	for (int isa = 0; isa < REDUCE_N_ISA; isa++) {
		reduce_fn fn = kernel_or_skip(REDUCE_FP32, (enum reduce_isa)isa);

		for (size_t i = 0; fn && i < N_AWKWARD * N_AWKWARD; i++) {
			uint32_t a = awkward[i % N_AWKWARD], b = awkward[i / N_AWKWARD];
			uint32_t acc[37], src[37], expected = plain_sum(REDUCE_FP32, a, b);

			for (size_t k = 0; k < 37; k++) {
				acc[k] = a;
				src[k] = b;
			}
			fn(acc, src, sizeof(acc));
			for (size_t k = 0; k < 37; k++)
				assert_int_equal(acc[k], expected);
		}
	}
}

static void check_one(enum reduce_dtype dtype, uint32_t a, uint32_t b, uint32_t expected)
{
	for (int isa = 0; isa < REDUCE_N_ISA; isa++) {
		reduce_fn fn = kernel_or_skip(dtype, (enum reduce_isa)isa);
		uint32_t acc = a, src = b;

		if (!fn)
			continue;
		fn(&acc, &src, sizeof(acc));
		assert_int_equal(acc, expected);
	}
}

/* The promises of the README, as numbers. */
static void documented_results(void **state)
{
	(void)state;
	check_one(REDUCE_INT32, 0x7fffffff, 1, 0x80000000);
	check_one(REDUCE_INT32, 0x80000000, 0xffffffff, 0x7fffffff);
	check_one(REDUCE_INT32, 0xffffffff, 1, 0);
	check_one(REDUCE_FP32, to_bits(1.5f), to_bits(-0.25f), to_bits(1.25f));
	check_one(REDUCE_FP32, 0x80000000, 0x80000000, 0x80000000); /* -0 + -0 = -0 */
	check_one(REDUCE_FP32, 0x80000000, 0x00000000, 0);          /* -0 + 0 = 0 */
	check_one(REDUCE_FP32, to_bits(1), to_bits(-1), 0);         /* x - x = 0 */
	check_one(REDUCE_FP32, to_bits(FLT_MAX), to_bits(FLT_MAX), 0x7f800000);
	check_one(REDUCE_FP32, 0x00000001, 0x00000001, 0x00000002); /* subnormals kept */
	check_one(REDUCE_FP32, 0x00800000, 0x80000001, 0x007fffff); /* and produced */
	check_one(REDUCE_FP32, to_bits(1), 0x33800000, to_bits(1)); /* tie to even: down */
	check_one(REDUCE_FP32, 0x3f800001, 0x33800000, 0x3f800002); /* tie to even: up */
	check_one(REDUCE_FP32, 0x7f800000, 0xff800000, FP32_NAN);   /* inf - inf */
	check_one(REDUCE_FP32, 0xffc54321, to_bits(1), FP32_NAN);   /* payload, sign lost */
	check_one(REDUCE_FP32, to_bits(1), 0x7f800001, FP32_NAN);   /* signalling */
	check_one(REDUCE_FP32, 0x7fc11111, 0xffc22222, FP32_NAN);   /* either order */
	check_one(REDUCE_FP32, 0xffc22222, 0x7fc11111, FP32_NAN);
}

static void unsupported_pairs_are_null(void **state)
{
	(void)state;
	for (int op = -1; op < 20; op++) {
		for (int dtype = -1; dtype < 20; dtype++) {
			bool built =
				op == REDUCE_SUM && (dtype == REDUCE_FP32 || dtype == REDUCE_INT32);

			assert_int_equal(
				reduce_kernel((enum reduce_op)op, (enum reduce_dtype)dtype) != NULL,
				built);
			assert_int_equal(reduce_kernel_isa((enum reduce_op)op,
						 (enum reduce_dtype)dtype, REDUCE_SCALAR) != NULL,
				built);
		}
	}
	assert_null(reduce_kernel_isa(REDUCE_SUM, REDUCE_FP32, REDUCE_N_ISA));
	assert_null(reduce_kernel_isa(REDUCE_SUM, REDUCE_FP32, (enum reduce_isa) - 1));
}

/* No set has a pair that the reference lacks; whatever is chosen is one of the sets'. */
static void scalar_defines_the_pairs(void **state)
{
	(void)state;
	for (int op = 0; op <= REDUCE_NONE; op++) {
		for (int dtype = 0; dtype <= REDUCE_BYTES; dtype++) {
			reduce_fn best =
				reduce_kernel((enum reduce_op)op, (enum reduce_dtype)dtype);
			bool found = false, any = false;

			for (int isa = 0; isa < REDUCE_N_ISA; isa++) {
				reduce_fn fn = reduce_kernel_isa((enum reduce_op)op,
					(enum reduce_dtype)dtype, (enum reduce_isa)isa);

				any = any || fn;
				found = found || (fn && fn == best);
			}
			assert_int_equal(any, best != NULL);
			assert_int_equal(found, best != NULL);
		}
	}
}

static void names_and_sizes(void **state)
{
	static const struct {
		int dtype;
		const char *name;
		size_t size;
	} cases[] = {{0, "fp32", 4}, {1, "fp16", 2}, {2, "bf16", 2}, {3, "int32", 4},
		{4, "fp64", 8}, {5, "int64", 8}, {6, "int8", 1}, {7, "uint8", 1}, {8, "uint32", 4},
		{9, "uint64", 8}, {15, "bytes", 1}};
	static const struct {
		int op;
		const char *name;
	} ops[] = {{0, "sum"}, {1, "min"}, {2, "max"}, {7, "none"}};
	size_t defined = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		enum reduce_dtype dtype = (enum reduce_dtype)cases[i].dtype;

		assert_int_equal(reduce_size(dtype), cases[i].size);
		assert_string_equal(reduce_dtype_name(dtype), cases[i].name);
		assert_int_equal(reduce_dtype_parse(cases[i].name), dtype);
	}
	for (int dtype = -2; dtype < 300; dtype++) {
		defined += reduce_size((enum reduce_dtype)dtype) != 0;
		if (!reduce_size((enum reduce_dtype)dtype))
			assert_string_equal(reduce_dtype_name((enum reduce_dtype)dtype), "?");
	}
	assert_int_equal(defined, sizeof(cases) / sizeof(*cases));
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		assert_string_equal(reduce_op_name((enum reduce_op)ops[i].op), ops[i].name);
		assert_int_equal(reduce_op_parse(ops[i].name), ops[i].op);
	}
	for (int op = 3; op < 7; op++)
		assert_string_equal(reduce_op_name((enum reduce_op)op), "?");
	assert_string_equal(reduce_op_name((enum reduce_op)8), "?");
	assert_string_equal(reduce_op_name((enum reduce_op) - 1), "?");
	assert_int_equal(reduce_dtype_parse("?"), -EINVAL);
	assert_int_equal(reduce_dtype_parse(""), -EINVAL);
	assert_int_equal(reduce_dtype_parse("fp3"), -EINVAL);
	assert_int_equal(reduce_dtype_parse("fp322"), -EINVAL);
	assert_int_equal(reduce_op_parse("prod"), -EINVAL);
	assert_string_equal(reduce_isa_name(REDUCE_SCALAR), "scalar");
	assert_string_equal(reduce_isa_name(REDUCE_AVX2), "avx2");
	assert_string_equal(reduce_isa_name(REDUCE_AVX512), "avx512");
	assert_string_equal(reduce_isa_name(REDUCE_N_ISA), "?");
}

/* The build runs this program once per value of the variable; the argument is what to expect. */
static enum reduce_isa limit = REDUCE_AVX512;

static void environment_lowers_the_choice(void **state)
{
	enum reduce_isa best = reduce_isa_best();

	(void)state;
	assert_true(best <= limit);
	for (int isa = 0; isa < REDUCE_N_ISA; isa++) {
		reduce_fn fn = reduce_kernel_isa(REDUCE_SUM, REDUCE_FP32, (enum reduce_isa)isa);

		if (isa <= (int)limit && fn)
			assert_true((int)best >= isa);
		if (isa == (int)best)
			assert_ptr_equal(reduce_kernel(REDUCE_SUM, REDUCE_FP32), fn);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(fp32_sums, seed_random),
		cmocka_unit_test_setup(int32_sums, seed_random),
		cmocka_unit_test(fp32_awkward_pairs),
		cmocka_unit_test(documented_results),
		cmocka_unit_test(unsupported_pairs_are_null),
		cmocka_unit_test(scalar_defines_the_pairs),
		cmocka_unit_test(names_and_sizes),
		cmocka_unit_test(environment_lowers_the_choice),
	};

	for (int isa = 0; argc > 1 && isa < REDUCE_N_ISA; isa++)
		if (strcmp(argv[1], reduce_isa_name((enum reduce_isa)isa)) == 0)
			limit = (enum reduce_isa)isa;
	return cmocka_run_group_tests_name("reduce", tests, NULL, NULL);
}
