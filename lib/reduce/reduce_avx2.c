/* SPDX-License-Identifier: BSD-3-Clause */
/* Built with -mavx2: used only after CPUID said yes. */
#include <immintrin.h>

#include "lib/reduce/kernels.h"

enum { VEC = 32 };

static inline void sum_vec_fp32(uint8_t *acc, const uint8_t *src)
{
	const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(REDUCE_FP32_NAN));
	__m256 sum =
		_mm256_add_ps(_mm256_loadu_ps((float *)acc), _mm256_loadu_ps((const float *)src));
	__m256 bad = _mm256_cmp_ps(sum, sum, _CMP_UNORD_Q);

	_mm256_storeu_ps((float *)acc, _mm256_blendv_ps(sum, nan, bad));
}

static inline void sum_vec_int32(uint8_t *acc, const uint8_t *src)
{
	__m256i sum = _mm256_add_epi32(
		_mm256_loadu_si256((__m256i *)acc), _mm256_loadu_si256((const __m256i *)src));

	_mm256_storeu_si256((__m256i *)acc, sum);
}

static void sum_fp32(void *acc, const void *src, size_t bytes)
{
	uint8_t *a = acc;
	const uint8_t *b = src;

	for (; bytes >= 2 * VEC; a += 2 * VEC, b += 2 * VEC, bytes -= 2 * VEC) {
		sum_vec_fp32(a, b);
		sum_vec_fp32(a + VEC, b + VEC);
	}
	for (; bytes >= 4; a += 4, b += 4, bytes -= 4)
		sum_one_fp32(a, b);
}

static void sum_int32(void *acc, const void *src, size_t bytes)
{
	uint8_t *a = acc;
	const uint8_t *b = src;

	for (; bytes >= 2 * VEC; a += 2 * VEC, b += 2 * VEC, bytes -= 2 * VEC) {
		sum_vec_int32(a, b);
		sum_vec_int32(a + VEC, b + VEC);
	}
	for (; bytes >= 4; a += 4, b += 4, bytes -= 4)
		sum_one_int32(a, b);
}

const struct reduce_kernels reduce_avx2 = {
	.fn[REDUCE_SUM] = {[REDUCE_FP32] = sum_fp32, [REDUCE_INT32] = sum_int32},
};
