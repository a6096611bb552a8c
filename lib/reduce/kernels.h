/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/reduce: one table of kernels per instruction set, all with the same pairs, since all
 * are made by kernel_set.h. */
#ifndef REDUCE_KERNELS_H
#define REDUCE_KERNELS_H

#include "lib/reduce/reduce.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements are little-endian; these kernels load them in the CPU's order"
#endif

enum { REDUCE_N_OPS = REDUCE_PROD + 1, REDUCE_N_DTYPES = REDUCE_UINT64 + 1 };

/* fp16 and bf16 only, except fn: the accumulators of the others are in wire form. */
struct reduce_kernels {
	reduce_fn fn[REDUCE_N_OPS][REDUCE_N_DTYPES];
	reduce_fn accumulate[REDUCE_N_OPS][REDUCE_N_DTYPES];
	reduce_fn widen[REDUCE_N_DTYPES];
	reduce_fn narrow[REDUCE_N_DTYPES];
};

extern const struct reduce_kernels reduce_scalar;
extern const struct reduce_kernels reduce_avx2;   /* AVX2 and F16C */
extern const struct reduce_kernels reduce_avx512; /* AVX-512 F, BW, VL and DQ */

/* What every NaN that a kernel writes is, whatever the operands' NaNs were: the outcome then
 * depends neither on the instruction set nor on the order of operands. */
#define REDUCE_FP64_NAN UINT64_C(0x7ff8000000000000)
enum { REDUCE_FP32_NAN = 0x7fc00000, REDUCE_FP16_NAN = 0x7e00, REDUCE_BF16_NAN = 0x7fc0 };

/* Loops take the operation as an argument; it must be inlined into them. */
#define REDUCE_LOOP static inline __attribute__((always_inline))

#endif
