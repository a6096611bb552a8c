/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction kernels: acc[i] = acc[i] (op) src[i] on little-endian elements, as they lie in packets
 * and host memory. What each result is, to the bit and on every instruction set:
 * docs/arithmetic.md (and docs/inc-protocol.md, section 7). Pure functions: any thread, no state.
 *
 * Two ways to reduce a row of vectors a, b, c:
 *
 *	wire form, each step rounded to the type (hosts, rings):
 *		copy a to acc;
 *		reduce_kernel(op, t)(acc, b, bytes); reduce_kernel(op, t)(acc, c, bytes);
 *
 *	accumulator form, fp16 and bf16 held as fp32 and rounded once (switches):
 *		reduce_widen(t)(acc, a, bytes);
 *		reduce_accumulate(op, t)(acc, b, bytes); reduce_accumulate(op, t)(acc, c, bytes);
 *		narrow = reduce_narrow(t); if (narrow) narrow(acc, acc, bytes);
 *
 * For all types but fp16 and bf16 the two forms, and so the two ways, are the same. */
#ifndef REDUCE_REDUCE_H
#define REDUCE_REDUCE_H

#include <incline/types.h>
#include <stddef.h>
#include <stdint.h>

enum reduce_isa { REDUCE_SCALAR, REDUCE_AVX2, REDUCE_AVX512, REDUCE_N_ISA };

/* One pass over bytes / element size elements. bytes always counts wire form and is a multiple of
 * the element's size (a rest is left alone); no pointer needs alignment; the buffers do not
 * overlap, except where reduce_narrow says so. */
typedef void (*reduce_fn)(void *acc, const void *src, size_t bytes);

/* Bytes of an element in wire form and in accumulator form (4 for fp16 and bf16, else the same); 0
 * for a dtype that is not defined. REDUCE_BYTES has 1. */
size_t reduce_size(enum reduce_dtype dtype);
size_t reduce_acc_size(enum reduce_dtype dtype);

/* "fp32", "sum" ... and back. Name functions return "?" for undefined values; parse functions
 * return the enum value or -EINVAL. */
const char *reduce_dtype_name(enum reduce_dtype dtype);
const char *reduce_op_name(enum reduce_op op);
int reduce_dtype_parse(const char *name);
int reduce_op_parse(const char *name);

/* The best instruction set of this CPU that kernels exist for; the environment variable
 * INCLINE_REDUCE_ISA=scalar|avx2|avx512 lowers it (for tests and comparisons). Found out before
 * main(). */
enum reduce_isa reduce_isa_best(void);
const char *reduce_isa_name(enum reduce_isa isa);

/* The kernel for a pair, or NULL if the pair is not supported (callers answer EOPNOTSUPP): all but
 * products of 8-bit integers, and anything of REDUCE_BYTES or REDUCE_NONE. Both are NULL or
 * neither. reduce_kernel: acc and src in wire form. reduce_accumulate: acc in accumulator form. */
reduce_fn reduce_kernel(enum reduce_op op, enum reduce_dtype dtype);
reduce_fn reduce_accumulate(enum reduce_op op, enum reduce_dtype dtype);

/* (acc, src, bytes): the first contribution into an accumulator. NULL: dtype is not defined. */
reduce_fn reduce_widen(enum reduce_dtype dtype);

/* (dst, acc, bytes of dst): the accumulator as it goes on the wire; dst == acc is allowed and
 * leaves the result at the start. NULL: there is nothing to do, the accumulator is in wire form. */
reduce_fn reduce_narrow(enum reduce_dtype dtype);

/* The same with a given instruction set instead of reduce_isa_best(); also NULL if this CPU or
 * this build lacks it. */
reduce_fn reduce_kernel_isa(enum reduce_op op, enum reduce_dtype dtype, enum reduce_isa isa);
reduce_fn reduce_accumulate_isa(enum reduce_op op, enum reduce_dtype dtype, enum reduce_isa isa);
reduce_fn reduce_widen_isa(enum reduce_dtype dtype, enum reduce_isa isa);
reduce_fn reduce_narrow_isa(enum reduce_dtype dtype, enum reduce_isa isa);

#endif
