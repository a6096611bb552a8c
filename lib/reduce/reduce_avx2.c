/* SPDX-License-Identifier: BSD-3-Clause */
/* Built with -mavx2 -mf16c: used only after CPUID said yes. Unlike min and max of C, minps and
 * maxps give their second operand when the two are equal or unordered. */
#include <immintrin.h>

#include "lib/reduce/kernels.h"

enum { VEC = 32 };

typedef __m256i vec;
typedef __m128i half;

static inline vec load(const uint8_t *p)
{
	return _mm256_loadu_si256((const __m256i *)p);
}

static inline void store(uint8_t *p, vec x)
{
	_mm256_storeu_si256((__m256i *)p, x);
}

static inline half load_half(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)p);
}

static inline half low(vec x)
{
	return _mm256_castsi256_si128(x);
}

static inline half high(vec x)
{
	return _mm256_extracti128_si256(x, 1);
}

static inline vec join(half l, half h)
{
	return _mm256_inserti128_si256(_mm256_castsi128_si256(l), h, 1);
}

static inline __m256 ps(vec x)
{
	return _mm256_castsi256_ps(x);
}

static inline __m256d pd(vec x)
{
	return _mm256_castsi256_pd(x);
}

/* x, with the canonical NaN where a and b are unordered. */
static inline vec nan_ps(__m256 x, __m256 a, __m256 b)
{
	const __m256 nan = ps(_mm256_set1_epi32(REDUCE_FP32_NAN));

	return _mm256_castps_si256(_mm256_blendv_ps(x, nan, _mm256_cmp_ps(a, b, _CMP_UNORD_Q)));
}

static inline vec nan_pd(__m256d x, __m256d a, __m256d b)
{
	const __m256d nan = pd(_mm256_set1_epi64x((int64_t)REDUCE_FP64_NAN));

	return _mm256_castpd_si256(_mm256_blendv_pd(x, nan, _mm256_cmp_pd(a, b, _CMP_UNORD_Q)));
}

static inline vec op_sum_fp32(vec a, vec b)
{
	__m256 x = _mm256_add_ps(ps(a), ps(b));

	return nan_ps(x, x, x);
}

static inline vec op_prod_fp32(vec a, vec b)
{
	__m256 x = _mm256_mul_ps(ps(a), ps(b));

	return nan_ps(x, x, x);
}

static inline vec op_sum_fp64(vec a, vec b)
{
	__m256d x = _mm256_add_pd(pd(a), pd(b));

	return nan_pd(x, x, x);
}

static inline vec op_prod_fp64(vec a, vec b)
{
	__m256d x = _mm256_mul_pd(pd(a), pd(b));

	return nan_pd(x, x, x);
}

/* Both orders differ only in zeros of two signs: | gives -0, & gives +0. */
static inline vec op_min_fp32(vec a, vec b)
{
	__m256 x = _mm256_or_ps(_mm256_min_ps(ps(a), ps(b)), _mm256_min_ps(ps(b), ps(a)));

	return nan_ps(x, ps(a), ps(b));
}

static inline vec op_max_fp32(vec a, vec b)
{
	__m256 x = _mm256_and_ps(_mm256_max_ps(ps(a), ps(b)), _mm256_max_ps(ps(b), ps(a)));

	return nan_ps(x, ps(a), ps(b));
}

static inline vec op_min_fp64(vec a, vec b)
{
	__m256d x = _mm256_or_pd(_mm256_min_pd(pd(a), pd(b)), _mm256_min_pd(pd(b), pd(a)));

	return nan_pd(x, pd(a), pd(b));
}

static inline vec op_max_fp64(vec a, vec b)
{
	__m256d x = _mm256_and_pd(_mm256_max_pd(pd(a), pd(b)), _mm256_max_pd(pd(b), pd(a)));

	return nan_pd(x, pd(a), pd(b));
}

static inline vec canonical(vec f)
{
	return nan_ps(ps(f), ps(f), ps(f));
}

static inline vec wide_fp16(half h)
{
	return _mm256_castps_si256(_mm256_cvtph_ps(h));
}

static inline half narrow_fp16(vec f)
{
	return _mm256_cvtps_ph(ps(f), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vec wide_bf16(half h)
{
	return _mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16);
}

/* The upper 16 bits: to nearest, ties to even. */
static inline vec round_bf16(vec f)
{
	vec odd = _mm256_and_si256(_mm256_srli_epi32(f, 16), _mm256_set1_epi32(1));

	return _mm256_add_epi32(f, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
}

static inline half narrow_bf16(vec f)
{
	vec x = round_bf16(f);

	x = _mm256_srli_epi32(x, 16);
	return _mm_packus_epi32(low(x), high(x));
}

static inline vec bf16_even(vec x)
{
	return _mm256_slli_epi32(x, 16);
}

static inline vec bf16_odd(vec x)
{
	return _mm256_and_si256(x, _mm256_set1_epi32((int)0xffff0000));
}

static inline vec bf16_merge(vec even, vec odd)
{
	return _mm256_blend_epi16(_mm256_srli_epi32(round_bf16(even), 16), round_bf16(odd), 0xaa);
}

static inline vec op_sum_8(vec a, vec b)
{
	return _mm256_add_epi8(a, b);
}

static inline vec op_sum_32(vec a, vec b)
{
	return _mm256_add_epi32(a, b);
}

static inline vec op_sum_64(vec a, vec b)
{
	return _mm256_add_epi64(a, b);
}

static inline vec op_prod_32(vec a, vec b)
{
	return _mm256_mullo_epi32(a, b);
}

/* low a * low b + 2^32 (low a * high b + high a * low b) */
static inline vec op_prod_64(vec a, vec b)
{
	vec cross = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(a, 32), b),
		_mm256_mul_epu32(a, _mm256_srli_epi64(b, 32)));

	return _mm256_add_epi64(_mm256_mul_epu32(a, b), _mm256_slli_epi64(cross, 32));
}

static inline vec op_min_int8(vec a, vec b)
{
	return _mm256_min_epi8(a, b);
}

static inline vec op_max_int8(vec a, vec b)
{
	return _mm256_max_epi8(a, b);
}

static inline vec op_min_uint8(vec a, vec b)
{
	return _mm256_min_epu8(a, b);
}

static inline vec op_max_uint8(vec a, vec b)
{
	return _mm256_max_epu8(a, b);
}

static inline vec op_min_int32(vec a, vec b)
{
	return _mm256_min_epi32(a, b);
}

static inline vec op_max_int32(vec a, vec b)
{
	return _mm256_max_epi32(a, b);
}

static inline vec op_min_uint32(vec a, vec b)
{
	return _mm256_min_epu32(a, b);
}

static inline vec op_max_uint32(vec a, vec b)
{
	return _mm256_max_epu32(a, b);
}

static inline vec op_min_int64(vec a, vec b)
{
	return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b));
}

static inline vec op_max_int64(vec a, vec b)
{
	return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
}

/* Comparisons have a sign: turning the top bits over makes theirs the unsigned order. */
static inline vec above(vec a, vec b)
{
	const vec top = _mm256_set1_epi64x(INT64_MIN);

	return _mm256_cmpgt_epi64(_mm256_xor_si256(a, top), _mm256_xor_si256(b, top));
}

static inline vec op_min_uint64(vec a, vec b)
{
	return _mm256_blendv_epi8(a, b, above(a, b));
}

static inline vec op_max_uint64(vec a, vec b)
{
	return _mm256_blendv_epi8(b, a, above(a, b));
}

#include "lib/reduce/simd.h"

#define REDUCE_SET reduce_avx2
#include "lib/reduce/kernel_set.h"
