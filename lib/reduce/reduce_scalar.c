/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference: what every other set has to match bit for bit. Operations take and give one
 * element as a bit pattern; the upper bits of a result beyond the element's size are ignored. */
#include <stdbool.h>

#include "lib/reduce/kernels.h"

typedef uint64_t bits;

static inline float as_fp32(bits x)
{
	uint32_t u = (uint32_t)x;
	float f;

	__builtin_memcpy(&f, &u, sizeof(f));
	return f;
}

static inline bits of_fp32(float f)
{
	uint32_t u;

	__builtin_memcpy(&u, &f, sizeof(u));
	return __builtin_isnan(f) ? (bits)REDUCE_FP32_NAN : u;
}

static inline double as_fp64(bits x)
{
	double d;

	__builtin_memcpy(&d, &x, sizeof(d));
	return d;
}

static inline bits of_fp64(double d)
{
	bits x;

	__builtin_memcpy(&x, &d, sizeof(x));
	return __builtin_isnan(d) ? REDUCE_FP64_NAN : x;
}

static inline bits op_sum_fp32(bits a, bits b)
{
	return of_fp32(as_fp32(a) + as_fp32(b));
}

static inline bits op_prod_fp32(bits a, bits b)
{
	return of_fp32(as_fp32(a) * as_fp32(b));
}

static inline bits op_sum_fp64(bits a, bits b)
{
	return of_fp64(as_fp64(a) + as_fp64(b));
}

static inline bits op_prod_fp64(bits a, bits b)
{
	return of_fp64(as_fp64(a) * as_fp64(b));
}

/* Equal values have equal bits, except the two zeros: there | gives -0 and & gives +0. */
static inline bits op_min_fp32(bits a, bits b)
{
	if (__builtin_isunordered(as_fp32(a), as_fp32(b)))
		return REDUCE_FP32_NAN;
	if (as_fp32(a) == as_fp32(b))
		return a | b;
	return as_fp32(a) < as_fp32(b) ? a : b;
}

static inline bits op_max_fp32(bits a, bits b)
{
	if (__builtin_isunordered(as_fp32(a), as_fp32(b)))
		return REDUCE_FP32_NAN;
	if (as_fp32(a) == as_fp32(b))
		return a & b;
	return as_fp32(a) > as_fp32(b) ? a : b;
}

static inline bits op_min_fp64(bits a, bits b)
{
	if (__builtin_isunordered(as_fp64(a), as_fp64(b)))
		return REDUCE_FP64_NAN;
	if (as_fp64(a) == as_fp64(b))
		return a | b;
	return as_fp64(a) < as_fp64(b) ? a : b;
}

static inline bits op_max_fp64(bits a, bits b)
{
	if (__builtin_isunordered(as_fp64(a), as_fp64(b)))
		return REDUCE_FP64_NAN;
	if (as_fp64(a) == as_fp64(b))
		return a & b;
	return as_fp64(a) > as_fp64(b) ? a : b;
}

/* fp16 to fp32: exact, but for NaN. */
static inline bits wide_fp16(bits h)
{
	const bits sign = (h & 0x8000) << 16, magnitude = h & 0x7fff;

	if (magnitude > 0x7c00)
		return REDUCE_FP32_NAN;
	if (magnitude == 0x7c00)
		return sign | 0x7f800000;
	if (magnitude < 0x0400) /* subnormal, in units of 2^-24 */
		return sign | of_fp32((float)magnitude * 0x1p-24f);
	return sign | ((magnitude << 13) + (112 << 23)); /* exponents' bias 15, now 127 */
}

/* x / 2^shift to the nearest, ties to even. */
static inline bits shift_rne(bits x, unsigned shift)
{
	return (x + ((bits)1 << (shift - 1)) - 1 + (x >> shift & 1)) >> shift;
}

static inline bits narrow_fp16(bits f)
{
	const bits sign = f >> 16 & 0x8000, magnitude = f & 0x7fffffff;
	const unsigned exponent = (unsigned)(magnitude >> 23);

	if (magnitude > 0x7f800000)
		return REDUCE_FP16_NAN;
	if (exponent >= 127 + 16)
		return sign | 0x7c00;
	if (exponent >= 127 - 14) /* a carry may make it infinity */
		return sign | shift_rne(magnitude - (112 << 23), 13);
	if (exponent < 127 - 25)
		return sign;
	return sign | shift_rne((magnitude & 0x7fffff) | 0x800000, 126 - exponent);
}

static inline bits wide_bf16(bits h)
{
	return (h & 0x7fff) > 0x7f80 ? (bits)REDUCE_FP32_NAN : h << 16;
}

static inline bits narrow_bf16(bits f)
{
	return (f & 0x7fffffff) > 0x7f800000 ? (bits)REDUCE_BF16_NAN : shift_rne(f, 16);
}

static inline bits op_sum_fp16(bits a, bits b)
{
	return narrow_fp16(op_sum_fp32(wide_fp16(a), wide_fp16(b)));
}

static inline bits op_min_fp16(bits a, bits b)
{
	return narrow_fp16(op_min_fp32(wide_fp16(a), wide_fp16(b)));
}

static inline bits op_max_fp16(bits a, bits b)
{
	return narrow_fp16(op_max_fp32(wide_fp16(a), wide_fp16(b)));
}

static inline bits op_prod_fp16(bits a, bits b)
{
	return narrow_fp16(op_prod_fp32(wide_fp16(a), wide_fp16(b)));
}

static inline bits op_sum_bf16(bits a, bits b)
{
	return narrow_bf16(op_sum_fp32(wide_bf16(a), wide_bf16(b)));
}

static inline bits op_min_bf16(bits a, bits b)
{
	return narrow_bf16(op_min_fp32(wide_bf16(a), wide_bf16(b)));
}

static inline bits op_max_bf16(bits a, bits b)
{
	return narrow_bf16(op_max_fp32(wide_bf16(a), wide_bf16(b)));
}

static inline bits op_prod_bf16(bits a, bits b)
{
	return narrow_bf16(op_prod_fp32(wide_bf16(a), wide_bf16(b)));
}

static inline bits op_sum_8(bits a, bits b)
{
	return a + b;
}

static inline bits op_sum_32(bits a, bits b)
{
	return a + b;
}

static inline bits op_sum_64(bits a, bits b)
{
	return a + b;
}

static inline bits op_prod_32(bits a, bits b)
{
	return a * b;
}

static inline bits op_prod_64(bits a, bits b)
{
	return a * b;
}

static inline bits op_min_int8(bits a, bits b)
{
	return (int8_t)a < (int8_t)b ? a : b;
}

static inline bits op_max_int8(bits a, bits b)
{
	return (int8_t)a > (int8_t)b ? a : b;
}

static inline bits op_min_int32(bits a, bits b)
{
	return (int32_t)a < (int32_t)b ? a : b;
}

static inline bits op_max_int32(bits a, bits b)
{
	return (int32_t)a > (int32_t)b ? a : b;
}

static inline bits op_min_int64(bits a, bits b)
{
	return (int64_t)a < (int64_t)b ? a : b;
}

static inline bits op_max_int64(bits a, bits b)
{
	return (int64_t)a > (int64_t)b ? a : b;
}

/* Bit patterns come without a sign: the same for every size. */
static inline bits op_min_uint64(bits a, bits b)
{
	return a < b ? a : b;
}

static inline bits op_max_uint64(bits a, bits b)
{
	return a > b ? a : b;
}

#define op_min_uint8 op_min_uint64
#define op_max_uint8 op_max_uint64
#define op_min_uint32 op_min_uint64
#define op_max_uint32 op_max_uint64

REDUCE_LOOP bits get(const uint8_t *p, size_t size)
{
	bits x = 0;

	__builtin_memcpy(&x, p, size);
	return x;
}

REDUCE_LOOP void run(
	uint8_t *acc, const uint8_t *src, size_t bytes, size_t size, bits (*op)(bits, bits))
{
	for (size_t i = 0; i < bytes; i += size) {
		bits x = op(get(acc + i, size), get(src + i, size));

		__builtin_memcpy(acc + i, &x, size);
	}
}

REDUCE_LOOP void run_acc(
	uint8_t *acc, const uint8_t *src, size_t bytes, bits (*wide)(bits), bits (*op)(bits, bits))
{
	for (size_t i = 0; i < bytes; i += 2) {
		bits x = op(get(acc + 2 * i, 4), wide(get(src + i, 2)));

		__builtin_memcpy(acc + 2 * i, &x, 4);
	}
}

REDUCE_LOOP void run_widen(uint8_t *acc, const uint8_t *src, size_t bytes, bits (*wide)(bits))
{
	for (size_t i = 0; i < bytes; i += 2) {
		bits x = wide(get(src + i, 2));

		__builtin_memcpy(acc + 2 * i, &x, 4);
	}
}

REDUCE_LOOP void run_narrow(uint8_t *dst, const uint8_t *acc, size_t bytes, bits (*narrow)(bits))
{
	for (size_t i = 0; i < bytes; i += 2) {
		bits x = narrow(get(acc + 2 * i, 4));

		__builtin_memcpy(dst + i, &x, 2);
	}
}

#define REDUCE_SET reduce_scalar
#include "lib/reduce/kernel_set.h"
