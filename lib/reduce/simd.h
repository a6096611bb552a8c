/* SPDX-License-Identifier: BSD-3-Clause */
/* What the vector sets share: loops, tails and 16-bit floats. Included once by each of them, after
 *
 *	vec, half, VEC		a register, one of half its width, bytes of the first
 *	load, store, load_half	unaligned
 *	low, high, join		halves of a register, and a register of two halves
 *	bf16_even, bf16_odd	every second bf16 as fp32; bf16_merge: rounds and puts together
 *	op_<op>_fp32
 *	wide_<type>		a NaN stays some NaN, as any operation on it needs it
 *	narrow_<type>		of a NaN takes the canonical one only, as operations leave it
 *	canonical		makes any NaN the canonical one
 *
 * A tail goes through a zeroed buffer of a register's size: the same instructions as the rest. */
#include "lib/reduce/kernels.h"

REDUCE_LOOP void run(
	uint8_t *acc, const uint8_t *src, size_t bytes, size_t size, vec (*op)(vec, vec))
{
	(void)size;
	for (; bytes >= 2 * VEC; acc += 2 * VEC, src += 2 * VEC, bytes -= 2 * VEC) {
		store(acc, op(load(acc), load(src)));
		store(acc + VEC, op(load(acc + VEC), load(src + VEC)));
	}
	for (; bytes >= VEC; acc += VEC, src += VEC, bytes -= VEC)
		store(acc, op(load(acc), load(src)));
	if (bytes) {
		uint8_t a[VEC] = {0}, b[VEC] = {0};

		__builtin_memcpy(a, acc, bytes);
		__builtin_memcpy(b, src, bytes);
		store(a, op(load(a), load(b)));
		__builtin_memcpy(acc, a, bytes);
	}
}

REDUCE_LOOP void run_acc(
	uint8_t *acc, const uint8_t *src, size_t bytes, vec (*wide)(half), vec (*op)(vec, vec))
{
	for (; bytes >= VEC; acc += 2 * VEC, src += VEC, bytes -= VEC) {
		store(acc, op(load(acc), wide(load_half(src))));
		store(acc + VEC, op(load(acc + VEC), wide(load_half(src + VEC / 2))));
	}
	if (bytes) {
		uint8_t a[2 * VEC] = {0}, b[VEC] = {0};

		__builtin_memcpy(a, acc, 2 * bytes);
		__builtin_memcpy(b, src, bytes);
		store(a, op(load(a), wide(load_half(b))));
		store(a + VEC, op(load(a + VEC), wide(load_half(b + VEC / 2))));
		__builtin_memcpy(acc, a, 2 * bytes);
	}
}

REDUCE_LOOP void run_widen(uint8_t *acc, const uint8_t *src, size_t bytes, vec (*wide)(half))
{
	for (; bytes >= VEC; acc += 2 * VEC, src += VEC, bytes -= VEC) {
		store(acc, canonical(wide(load_half(src))));
		store(acc + VEC, canonical(wide(load_half(src + VEC / 2))));
	}
	if (bytes) {
		uint8_t a[2 * VEC], b[VEC] = {0};

		__builtin_memcpy(b, src, bytes);
		store(a, canonical(wide(load_half(b))));
		store(a + VEC, canonical(wide(load_half(b + VEC / 2))));
		__builtin_memcpy(acc, a, 2 * bytes);
	}
}

/* In place: both registers are read before one is written, at or before where they were. */
REDUCE_LOOP void run_narrow(uint8_t *dst, const uint8_t *acc, size_t bytes, half (*narrow)(vec))
{
	for (; bytes >= VEC; acc += 2 * VEC, dst += VEC, bytes -= VEC) {
		vec a = canonical(load(acc)), b = canonical(load(acc + VEC));

		store(dst, join(narrow(a), narrow(b)));
	}
	if (bytes) {
		uint8_t a[2 * VEC] = {0};

		__builtin_memcpy(a, acc, 2 * bytes);
		store(a, join(narrow(canonical(load(a))), narrow(canonical(load(a + VEC)))));
		__builtin_memcpy(dst, a, bytes);
	}
}

REDUCE_LOOP vec by_halves(vec a, vec b, vec (*op)(vec, vec))
{
	return join(narrow_fp16(op(wide_fp16(low(a)), wide_fp16(low(b)))),
		narrow_fp16(op(wide_fp16(high(a)), wide_fp16(high(b)))));
}

/* Nothing crosses lanes, unlike wide_bf16 and narrow_bf16. */
REDUCE_LOOP vec by_parity(vec a, vec b, vec (*op)(vec, vec))
{
	return bf16_merge(op(bf16_even(a), bf16_even(b)), op(bf16_odd(a), bf16_odd(b)));
}

static inline vec op_sum_fp16(vec a, vec b)
{
	return by_halves(a, b, op_sum_fp32);
}

static inline vec op_min_fp16(vec a, vec b)
{
	return by_halves(a, b, op_min_fp32);
}

static inline vec op_max_fp16(vec a, vec b)
{
	return by_halves(a, b, op_max_fp32);
}

static inline vec op_prod_fp16(vec a, vec b)
{
	return by_halves(a, b, op_prod_fp32);
}

static inline vec op_sum_bf16(vec a, vec b)
{
	return by_parity(a, b, op_sum_fp32);
}

static inline vec op_min_bf16(vec a, vec b)
{
	return by_parity(a, b, op_min_fp32);
}

static inline vec op_max_bf16(vec a, vec b)
{
	return by_parity(a, b, op_max_fp32);
}

static inline vec op_prod_bf16(vec a, vec b)
{
	return by_parity(a, b, op_prod_fp32);
}
