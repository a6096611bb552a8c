/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference: what every other kernel has to match bit for bit. */
#include "lib/reduce/kernels.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements are little-endian; these kernels load them in the CPU's order"
#endif

static void sum_fp32(void *acc, const void *src, size_t bytes)
{
	uint8_t *a = acc;
	const uint8_t *b = src;

	for (; bytes >= 4; a += 4, b += 4, bytes -= 4)
		sum_one_fp32(a, b);
}

static void sum_int32(void *acc, const void *src, size_t bytes)
{
	uint8_t *a = acc;
	const uint8_t *b = src;

	for (; bytes >= 4; a += 4, b += 4, bytes -= 4)
		sum_one_int32(a, b);
}

const struct reduce_kernels reduce_scalar = {
	.fn[REDUCE_SUM] = {[REDUCE_FP32] = sum_fp32, [REDUCE_INT32] = sum_int32},
};
