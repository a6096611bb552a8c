/* SPDX-License-Identifier: BSD-3-Clause */
/* Built with -mavx512f, bw, vl, dq: used only after CPUID said yes. Tails run under a mask. */
#include <immintrin.h>

#include "lib/reduce/kernels.h"

enum { VEC = 64 };

/* The lanes of 4 bytes that bytes < VEC fill. */
static inline __mmask16 tail32(size_t bytes)
{
	return (__mmask16)((1u << bytes / 4) - 1);
}

static inline void sum_vec_fp32(uint8_t *acc, const uint8_t *src, __mmask16 lanes)
{
	const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(REDUCE_FP32_NAN));
	__m512 sum =
		_mm512_add_ps(_mm512_maskz_loadu_ps(lanes, acc), _mm512_maskz_loadu_ps(lanes, src));
	__mmask16 bad = _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q);

	_mm512_mask_storeu_ps(acc, lanes, _mm512_mask_mov_ps(sum, bad, nan));
}

static inline void sum_vec_int32(uint8_t *acc, const uint8_t *src, __mmask16 lanes)
{
	__m512i sum = _mm512_add_epi32(
		_mm512_maskz_loadu_epi32(lanes, acc), _mm512_maskz_loadu_epi32(lanes, src));

	_mm512_mask_storeu_epi32(acc, lanes, sum);
}

static void sum_fp32(void *acc, const void *src, size_t bytes)
{
	uint8_t *a = acc;
	const uint8_t *b = src;

	for (; bytes >= VEC; a += VEC, b += VEC, bytes -= VEC)
		sum_vec_fp32(a, b, 0xffff);
	if (bytes >= 4)
		sum_vec_fp32(a, b, tail32(bytes));
}

static void sum_int32(void *acc, const void *src, size_t bytes)
{
	uint8_t *a = acc;
	const uint8_t *b = src;

	for (; bytes >= VEC; a += VEC, b += VEC, bytes -= VEC)
		sum_vec_int32(a, b, 0xffff);
	if (bytes >= 4)
		sum_vec_int32(a, b, tail32(bytes));
}

const struct reduce_kernels reduce_avx512 = {
	.fn[REDUCE_SUM] = {[REDUCE_FP32] = sum_fp32, [REDUCE_INT32] = sum_int32},
};
