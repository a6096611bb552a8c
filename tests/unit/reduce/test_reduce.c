/* SPDX-License-Identifier: BSD-3-Clause */
/* The face of lib/reduce, and the results that docs/arithmetic.md gives as examples. All others:
 * test_kernels.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "tests/unit/reduce/oracle.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

struct example {
	enum reduce_op op;
	enum reduce_dtype dtype;
	uint64_t a, b, result;
};

static const struct example examples[] = {
	/* integers wrap */
	{REDUCE_SUM, REDUCE_INT32, 0x7fffffff, 1, 0x80000000},
	{REDUCE_SUM, REDUCE_INT32, 0x80000000, 0xffffffff, 0x7fffffff},
	{REDUCE_SUM, REDUCE_UINT32, 0xffffffff, 1, 0},
	{REDUCE_SUM, REDUCE_INT8, 0x7f, 1, 0x80},
	{REDUCE_SUM, REDUCE_UINT8, 0xff, 2, 1},
	{REDUCE_SUM, REDUCE_INT64, INT64_MAX, 1, 0x8000000000000000},
	{REDUCE_SUM, REDUCE_UINT64, UINT64_MAX, UINT64_MAX, UINT64_MAX - 1},
	{REDUCE_PROD, REDUCE_INT32, 0x80000000, 0xffffffff, 0x80000000},
	{REDUCE_PROD, REDUCE_INT32, 0xfffffffe, 3, 0xfffffffa},
	{REDUCE_PROD, REDUCE_UINT32, 0x10000, 0x10001, 0x10000},
	{REDUCE_PROD, REDUCE_INT64, 0xffffffffffffffff, 0xffffffffffffffff, 1},
	{REDUCE_PROD, REDUCE_UINT64, 0x123456789abcdef0, 0xfedcba9876543210, 0x236d88fe5618cf00},
	/* with and without a sign */
	{REDUCE_MIN, REDUCE_INT8, 0x80, 0x7f, 0x80},
	{REDUCE_MIN, REDUCE_UINT8, 0x80, 0x7f, 0x7f},
	{REDUCE_MAX, REDUCE_INT32, 0xffffffff, 0, 0},
	{REDUCE_MAX, REDUCE_UINT32, 0xffffffff, 0, 0xffffffff},
	{REDUCE_MIN, REDUCE_INT64, 0x8000000000000000, 1, 0x8000000000000000},
	{REDUCE_MIN, REDUCE_UINT64, 0x8000000000000000, 1, 1},
	/* zeros */
	{REDUCE_SUM, REDUCE_FP32, 0x80000000, 0x80000000, 0x80000000},
	{REDUCE_SUM, REDUCE_FP32, 0x80000000, 0, 0},
	{REDUCE_SUM, REDUCE_FP32, 0x3f800000, 0xbf800000, 0},
	{REDUCE_PROD, REDUCE_FP32, 0x80000000, 0x3f800000, 0x80000000},
	{REDUCE_MIN, REDUCE_FP32, 0, 0x80000000, 0x80000000},
	{REDUCE_MIN, REDUCE_FP32, 0x80000000, 0, 0x80000000},
	{REDUCE_MAX, REDUCE_FP32, 0, 0x80000000, 0},
	{REDUCE_MAX, REDUCE_FP32, 0x80000000, 0, 0},
	{REDUCE_MAX, REDUCE_FP64, 0x8000000000000000, 0x8000000000000000, 0x8000000000000000},
	{REDUCE_MIN, REDUCE_FP16, 0, 0x8000, 0x8000},
	{REDUCE_MAX, REDUCE_BF16, 0x8000, 0, 0},
	/* overflow becomes infinity; FP16: below the tie with 65536 it does not */
	{REDUCE_SUM, REDUCE_FP32, 0x7f7fffff, 0x7f7fffff, 0x7f800000},
	{REDUCE_PROD, REDUCE_FP64, 0x7fefffffffffffff, 0xc000000000000000, 0xfff0000000000000},
	{REDUCE_SUM, REDUCE_FP16, 0x7bff, 0x4bff, 0x7bff},
	{REDUCE_SUM, REDUCE_FP16, 0x7bff, 0x4c00, 0x7c00},
	{REDUCE_SUM, REDUCE_BF16, 0xff7f, 0xff7f, 0xff80},
	/* subnormals are kept and made */
	{REDUCE_SUM, REDUCE_FP32, 1, 1, 2},
	{REDUCE_SUM, REDUCE_FP32, 0x00800000, 0x80000001, 0x007fffff},
	{REDUCE_PROD, REDUCE_FP32, 0x00800000, 0x3f000000, 0x00400000},
	{REDUCE_PROD, REDUCE_FP64, 3, 0x3fe0000000000000, 2},
	{REDUCE_MAX, REDUCE_FP16, 1, 2, 2},
	{REDUCE_SUM, REDUCE_FP16, 1, 0x0400, 0x0401},
	{REDUCE_SUM, REDUCE_BF16, 0x0080, 0x8001, 0x007f},
	/* ties to even */
	{REDUCE_SUM, REDUCE_FP32, 0x3f800000, 0x33800000, 0x3f800000},
	{REDUCE_SUM, REDUCE_FP32, 0x3f800001, 0x33800000, 0x3f800002},
	{REDUCE_SUM, REDUCE_FP64, 0x3ff0000000000001, 0x3ca0000000000000, 0x3ff0000000000002},
	{REDUCE_SUM, REDUCE_FP16, 0x6800, 0x3c00, 0x6800}, /* 2048 + 1 */
	{REDUCE_SUM, REDUCE_FP16, 0x6801, 0x3c00, 0x6802}, /* 2050 + 1 */
	{REDUCE_SUM, REDUCE_BF16, 0x4380, 0x3f80, 0x4380}, /* 256 + 1 */
	/* NaN: one, whatever the operands were and in whatever order */
	{REDUCE_SUM, REDUCE_FP32, 0x7f800000, 0xff800000, 0x7fc00000},
	{REDUCE_SUM, REDUCE_FP32, 0xffc54321, 0x3f800000, 0x7fc00000},
	{REDUCE_SUM, REDUCE_FP32, 0x3f800000, 0x7f800001, 0x7fc00000},
	{REDUCE_SUM, REDUCE_FP32, 0x7fc11111, 0xffc22222, 0x7fc00000},
	{REDUCE_SUM, REDUCE_FP32, 0xffc22222, 0x7fc11111, 0x7fc00000},
	{REDUCE_PROD, REDUCE_FP32, 0, 0x7f800000, 0x7fc00000},
	{REDUCE_MIN, REDUCE_FP32, 0x3f800000, 0xff800001, 0x7fc00000},
	{REDUCE_MIN, REDUCE_FP32, 0xff800001, 0x3f800000, 0x7fc00000},
	{REDUCE_MAX, REDUCE_FP64, 0x7ff0000000000000, 0xfff8000000000000, 0x7ff8000000000000},
	{REDUCE_MIN, REDUCE_FP16, 0xfc00, 0xfe01, 0x7e00},
	{REDUCE_MAX, REDUCE_BF16, 0xff81, 0x7f80, 0x7fc0},
	/* infinities */
	{REDUCE_MIN, REDUCE_FP32, 0xff800000, 0x7f800000, 0xff800000},
	{REDUCE_MAX, REDUCE_FP16, 0xfc00, 0x0000, 0x0000},
	{REDUCE_PROD, REDUCE_BF16, 0xff80, 0xbf80, 0x7f80},
};

static void documented_results(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(examples); i++) {
		const struct example *e = &examples[i];

		assert_int_equal(oracle(e->op, e->dtype, e->a, e->b), e->result);
		for (int isa = 0; isa < REDUCE_N_ISA; isa++) {
			reduce_fn fn = reduce_kernel_isa(e->op, e->dtype, (enum reduce_isa)isa);
			uint64_t acc = e->a, src = e->b;

			if (!fn)
				continue;
			fn(&acc, &src, reduce_size(e->dtype));
			if (acc != e->result)
				fail_msg("%s, example %zu: %#llx",
					reduce_isa_name((enum reduce_isa)isa), i,
					(unsigned long long)acc);
		}
	}
}

/* A row of three, in accumulator form and in wire form. */
static const struct {
	enum reduce_op op;
	enum reduce_dtype dtype;
	uint64_t in[3], once, each_step;
} rows[] = {
	{REDUCE_SUM, REDUCE_FP16, {0x6800, 0x3c00, 0x3c00}, 0x6801, 0x6800}, /* 2048 + 1 + 1 */
	{REDUCE_SUM, REDUCE_FP16, {0x3c00, 0x3c00, 0x6800}, 0x6801, 0x6801}, /* 1 + 1 + 2048 */
	{REDUCE_SUM, REDUCE_FP16, {0x7bff, 0x7bff, 0xfbff}, 0x7bff, 0x7c00},
	{REDUCE_PROD, REDUCE_FP16, {0x7bff, 0x4000, 0x3800}, 0x7bff, 0x7c00},
	{REDUCE_PROD, REDUCE_FP16, {0x0001, 0x3800, 0x4000}, 0x0001, 0x0000},
	{REDUCE_SUM, REDUCE_BF16, {0x4380, 0x3f80, 0x3f80}, 0x4381, 0x4380}, /* 256 + 1 + 1 */
	{REDUCE_SUM, REDUCE_FP32, {0x4cbebc20, 0x3f800000, 0xccbebc20}, 0, 0},
	{REDUCE_SUM, REDUCE_FP32, {0x4cbebc20, 0xccbebc20, 0x3f800000}, 0x3f800000, 0x3f800000},
	{REDUCE_SUM, REDUCE_INT32, {0x7fffffff, 1, 0x80000000}, 0, 0},
};

static void rounded_once_or_each_step(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const enum reduce_dtype t = rows[i].dtype;
		const size_t size = reduce_size(t);
		reduce_fn narrow = reduce_narrow(t);
		uint64_t acc = 0, wire = rows[i].in[0];

		reduce_widen(t)(&acc, &rows[i].in[0], size);
		for (size_t k = 1; k < 3; k++) {
			reduce_accumulate(rows[i].op, t)(&acc, &rows[i].in[k], size);
			reduce_kernel(rows[i].op, t)(&wire, &rows[i].in[k], size);
		}
		if (narrow)
			narrow(&acc, &acc, size);
		assert_memory_equal(&acc, &rows[i].once, size);
		assert_memory_equal(&wire, &rows[i].each_step, size);
	}
}

/* Where the accumulator is the wire form, nothing is done to NaNs either. */
static void accumulator_forms(void **state)
{
	const uint32_t nan = 0xff812345;
	uint32_t acc = 0;

	(void)state;
	for (int i = -2; i < 20; i++) {
		const enum reduce_dtype t = (enum reduce_dtype)i;
		const bool half = i == REDUCE_FP16 || i == REDUCE_BF16;

		assert_int_equal(reduce_acc_size(t), half ? 4 : reduce_size(t));
		assert_int_equal(reduce_widen(t) != NULL, reduce_size(t) != 0);
		assert_int_equal(reduce_narrow(t) != NULL, half);
		assert_null(reduce_widen_isa(t, REDUCE_N_ISA));
		assert_null(reduce_narrow_isa(t, REDUCE_N_ISA));
	}
	reduce_widen(REDUCE_FP32)(&acc, &nan, sizeof(acc));
	assert_int_equal(acc, nan);
}

static void unsupported_pairs_are_null(void **state)
{
	(void)state;
	for (int op = -1; op < 20; op++) {
		for (int dtype = -1; dtype < 20; dtype++) {
			const bool built =
				oracle_supports((enum reduce_op)op, (enum reduce_dtype)dtype);

			assert_int_equal(
				reduce_kernel((enum reduce_op)op, (enum reduce_dtype)dtype) != NULL,
				built);
			assert_int_equal(reduce_accumulate((enum reduce_op)op,
						 (enum reduce_dtype)dtype) != NULL,
				built);
			assert_int_equal(reduce_kernel_isa((enum reduce_op)op,
						 (enum reduce_dtype)dtype, REDUCE_SCALAR) != NULL,
				built);
		}
	}
	assert_null(reduce_kernel_isa(REDUCE_SUM, REDUCE_FP32, REDUCE_N_ISA));
	assert_null(reduce_kernel_isa(REDUCE_SUM, REDUCE_FP32, (enum reduce_isa) - 1));
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
	} ops[] = {{0, "sum"}, {1, "min"}, {2, "max"}, {3, "prod"}, {7, "none"}};
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
	for (int op = 4; op < 7; op++)
		assert_string_equal(reduce_op_name((enum reduce_op)op), "?");
	assert_string_equal(reduce_op_name((enum reduce_op)8), "?");
	assert_string_equal(reduce_op_name((enum reduce_op) - 1), "?");
	assert_int_equal(reduce_dtype_parse("?"), -EINVAL);
	assert_int_equal(reduce_dtype_parse(""), -EINVAL);
	assert_int_equal(reduce_dtype_parse("fp3"), -EINVAL);
	assert_int_equal(reduce_dtype_parse("fp322"), -EINVAL);
	assert_int_equal(reduce_op_parse("product"), -EINVAL);
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
		cmocka_unit_test(documented_results),
		cmocka_unit_test(rounded_once_or_each_step),
		cmocka_unit_test(accumulator_forms),
		cmocka_unit_test(unsupported_pairs_are_null),
		cmocka_unit_test(names_and_sizes),
		cmocka_unit_test(environment_lowers_the_choice),
	};

	for (int isa = 0; argc > 1 && isa < REDUCE_N_ISA; isa++)
		if (strcmp(argv[1], reduce_isa_name((enum reduce_isa)isa)) == 0)
			limit = (enum reduce_isa)isa;
	if (argc > 1 && !reduce_kernel_isa(REDUCE_SUM, REDUCE_FP32, limit)) {
		printf("skipped: this CPU has no %s\n", argv[1]);
		return 77;
	}
	return cmocka_run_group_tests_name("reduce", tests, NULL, NULL);
}
