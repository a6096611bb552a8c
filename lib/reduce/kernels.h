/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/reduce: one table of kernels per instruction set. A pair without a kernel is NULL and
 * served by the next lower set; the scalar table defines which pairs are supported at all. To add a
 * pair: write it in reduce_scalar.c, then, where it pays, in the others; nothing else changes. */
#ifndef REDUCE_KERNELS_H
#define REDUCE_KERNELS_H

#include "lib/reduce/reduce.h"

enum { REDUCE_N_OPS = REDUCE_MAX + 1, REDUCE_N_DTYPES = REDUCE_UINT64 + 1 };

struct reduce_kernels {
	reduce_fn fn[REDUCE_N_OPS][REDUCE_N_DTYPES];
};

extern const struct reduce_kernels reduce_scalar;
extern const struct reduce_kernels reduce_avx2;   /* only if the CPU has AVX2 */
extern const struct reduce_kernels reduce_avx512; /* AVX-512 F, BW, VL and DQ */

/* What a NaN result becomes, whatever the operands' NaNs were: the outcome then depends neither on
 * the instruction set nor on the order of operands. */
enum { REDUCE_FP32_NAN = 0x7fc00000 };

/* One element, for the scalar kernels and the odd tails of the others. */
static inline void sum_one_fp32(uint8_t *acc, const uint8_t *src)
{
	const uint32_t nan = REDUCE_FP32_NAN;
	float a, b;

	__builtin_memcpy(&a, acc, sizeof(a));
	__builtin_memcpy(&b, src, sizeof(b));
	a += b;
	if (__builtin_isnan(a))
		__builtin_memcpy(acc, &nan, sizeof(nan));
	else
		__builtin_memcpy(acc, &a, sizeof(a));
}

static inline void sum_one_int32(uint8_t *acc, const uint8_t *src)
{
	uint32_t a, b;

	__builtin_memcpy(&a, acc, sizeof(a));
	__builtin_memcpy(&b, src, sizeof(b));
	a += b; /* unsigned: wraps */
	__builtin_memcpy(acc, &a, sizeof(a));
}

#endif
