/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction kernels: acc[i] = acc[i] (op) src[i] on little-endian elements, as they lie in packets
 * and host memory (docs/inc-protocol.md, section 7). Integer sums wrap; float sums round to nearest
 * even, element by element in the given order. Pure functions: any thread, no state. */
#ifndef REDUCE_REDUCE_H
#define REDUCE_REDUCE_H

#include <stddef.h>
#include <stdint.h>

/* Numbers are those of the control message's immediate (docs/inc-protocol.md, 2.1). */
enum reduce_op { REDUCE_SUM = 0, REDUCE_MIN = 1, REDUCE_MAX = 2, REDUCE_NONE = 7 };

enum reduce_dtype {
	REDUCE_FP32 = 0,
	REDUCE_FP16 = 1,
	REDUCE_BF16 = 2,
	REDUCE_INT32 = 3,
	REDUCE_FP64 = 4,
	REDUCE_INT64 = 5,
	REDUCE_INT8 = 6,
	REDUCE_UINT8 = 7,
	REDUCE_UINT32 = 8,
	REDUCE_UINT64 = 9,
	REDUCE_BYTES = 15,
};

enum reduce_isa { REDUCE_SCALAR, REDUCE_AVX2, REDUCE_AVX512, REDUCE_N_ISA };

/* Adds bytes / element size elements of src to acc. bytes is a multiple of the element size;
 * neither pointer needs alignment; they do not overlap. */
typedef void (*reduce_fn)(void *acc, const void *src, size_t bytes);

/* Size of an element, 0 for a dtype that is not defined. REDUCE_BYTES has 1. */
size_t reduce_size(enum reduce_dtype dtype);

/* "fp32", "sum" ... and back. Name functions return "?" for undefined values; parse functions
 * return the enum value or -EINVAL. */
const char *reduce_dtype_name(enum reduce_dtype dtype);
const char *reduce_op_name(enum reduce_op op);
int reduce_dtype_parse(const char *name);
int reduce_op_parse(const char *name);

/* The best instruction set of this CPU that a kernel exists for; the environment variable
 * INCLINE_REDUCE_ISA=scalar|avx2|avx512 lowers it (for tests and comparisons). Read once. */
enum reduce_isa reduce_isa_best(void);
const char *reduce_isa_name(enum reduce_isa isa);

/* The kernel for a pair, or NULL if the pair is not supported (callers answer EOPNOTSUPP).
 * reduce_kernel uses reduce_isa_best(); the other one a given set, NULL if this CPU lacks it. */
reduce_fn reduce_kernel(enum reduce_op op, enum reduce_dtype dtype);
reduce_fn reduce_kernel_isa(enum reduce_op op, enum reduce_dtype dtype, enum reduce_isa isa);

#endif
