/* SPDX-License-Identifier: BSD-3-Clause */
/* All kernels of one instruction set and their table. Included once by each reduce_<isa>.c, which
 * defines before:
 *
 *	REDUCE_SET	the name of the table
 *	run		(acc, src, bytes, size, op): acc = op(acc, src), wire form, elements of size
 *	run_acc		(acc, src, bytes, wide, op): acc = op(acc, wide(src)), acc of fp32
 *	run_widen	(acc, src, bytes, wide): acc = wide(src), NaNs canonical
 *	run_narrow	(dst, acc, bytes, narrow): dst = narrow(acc), NaNs canonical; dst may be acc
 *
 * and the operations op_<kernel>, wide_<type> and narrow_<type> on whatever these loops handle at a
 * time. The lists below are the only place that says which pairs exist. */
#include "lib/reduce/kernels.h"

#define KERNEL(name, size)                                               \
	static void name(void *acc, const void *src, size_t bytes)       \
	{                                                                \
		run(acc, src, bytes / (size) * (size), size, op_##name); \
	}
#define HALF_KERNELS(type)                                                 \
	KERNEL(sum_##type, 2)                                              \
	KERNEL(min_##type, 2)                                              \
	KERNEL(max_##type, 2)                                              \
	KERNEL(prod_##type, 2)                                             \
	ACC_KERNEL(sum, type)                                              \
	ACC_KERNEL(min, type)                                              \
	ACC_KERNEL(max, type)                                              \
	ACC_KERNEL(prod, type)                                             \
	static void widen_##type(void *acc, const void *src, size_t bytes) \
	{                                                                  \
		run_widen(acc, src, bytes / 2 * 2, wide_##type);           \
	}                                                                  \
	static void to_##type(void *dst, const void *acc, size_t bytes)    \
	{                                                                  \
		run_narrow(dst, acc, bytes / 2 * 2, narrow_##type);        \
	}
#define ACC_KERNEL(op, type)                                                    \
	static void acc_##op##_##type(void *acc, const void *src, size_t bytes) \
	{                                                                       \
		run_acc(acc, src, bytes / 2 * 2, wide_##type, op_##op##_fp32);  \
	}

KERNEL(sum_fp32, 4)
KERNEL(min_fp32, 4)
KERNEL(max_fp32, 4)
KERNEL(prod_fp32, 4)
KERNEL(sum_fp64, 8)
KERNEL(min_fp64, 8)
KERNEL(max_fp64, 8)
KERNEL(prod_fp64, 8)
HALF_KERNELS(fp16)
HALF_KERNELS(bf16)
/* Two's complement: sums and products are the same with and without a sign. */
KERNEL(sum_8, 1)
KERNEL(sum_32, 4)
KERNEL(sum_64, 8)
KERNEL(prod_32, 4)
KERNEL(prod_64, 8)
KERNEL(min_int8, 1)
KERNEL(min_uint8, 1)
KERNEL(min_int32, 4)
KERNEL(min_uint32, 4)
KERNEL(min_int64, 8)
KERNEL(min_uint64, 8)
KERNEL(max_int8, 1)
KERNEL(max_uint8, 1)
KERNEL(max_int32, 4)
KERNEL(max_uint32, 4)
KERNEL(max_int64, 8)
KERNEL(max_uint64, 8)

const struct reduce_kernels REDUCE_SET = {
	.fn[REDUCE_SUM] = {[REDUCE_FP32] = sum_fp32,
		[REDUCE_FP16] = sum_fp16,
		[REDUCE_BF16] = sum_bf16,
		[REDUCE_FP64] = sum_fp64,
		[REDUCE_INT8] = sum_8,
		[REDUCE_UINT8] = sum_8,
		[REDUCE_INT32] = sum_32,
		[REDUCE_UINT32] = sum_32,
		[REDUCE_INT64] = sum_64,
		[REDUCE_UINT64] = sum_64},
	.fn[REDUCE_MIN] = {[REDUCE_FP32] = min_fp32,
		[REDUCE_FP16] = min_fp16,
		[REDUCE_BF16] = min_bf16,
		[REDUCE_FP64] = min_fp64,
		[REDUCE_INT8] = min_int8,
		[REDUCE_UINT8] = min_uint8,
		[REDUCE_INT32] = min_int32,
		[REDUCE_UINT32] = min_uint32,
		[REDUCE_INT64] = min_int64,
		[REDUCE_UINT64] = min_uint64},
	.fn[REDUCE_MAX] = {[REDUCE_FP32] = max_fp32,
		[REDUCE_FP16] = max_fp16,
		[REDUCE_BF16] = max_bf16,
		[REDUCE_FP64] = max_fp64,
		[REDUCE_INT8] = max_int8,
		[REDUCE_UINT8] = max_uint8,
		[REDUCE_INT32] = max_int32,
		[REDUCE_UINT32] = max_uint32,
		[REDUCE_INT64] = max_int64,
		[REDUCE_UINT64] = max_uint64},
	.fn[REDUCE_PROD] = {[REDUCE_FP32] = prod_fp32,
		[REDUCE_FP16] = prod_fp16,
		[REDUCE_BF16] = prod_bf16,
		[REDUCE_FP64] = prod_fp64,
		[REDUCE_INT32] = prod_32,
		[REDUCE_UINT32] = prod_32,
		[REDUCE_INT64] = prod_64,
		[REDUCE_UINT64] = prod_64},
	.accumulate[REDUCE_SUM] = {[REDUCE_FP16] = acc_sum_fp16, [REDUCE_BF16] = acc_sum_bf16},
	.accumulate[REDUCE_MIN] = {[REDUCE_FP16] = acc_min_fp16, [REDUCE_BF16] = acc_min_bf16},
	.accumulate[REDUCE_MAX] = {[REDUCE_FP16] = acc_max_fp16, [REDUCE_BF16] = acc_max_bf16},
	.accumulate[REDUCE_PROD] = {[REDUCE_FP16] = acc_prod_fp16, [REDUCE_BF16] = acc_prod_bf16},
	.widen = {[REDUCE_FP16] = widen_fp16, [REDUCE_BF16] = widen_bf16},
	.narrow = {[REDUCE_FP16] = to_fp16, [REDUCE_BF16] = to_bf16},
};
