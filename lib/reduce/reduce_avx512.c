/* SPDX-License-Identifier: BSD-3-Clause */
/* Built with -mavx512f, bw, vl, dq: used only after CPUID said yes. Unlike min and max of C, minps
 * and maxps give their second operand when the two are equal or unordered. */
#include <immintrin.h>

#include "lib/reduce/kernels.h"

enum { VEC = 64 };

typedef __m512i vec;
typedef __m256i half;

static inline vec load(const uint8_t *p)
{
	return _mm512_loadu_si512(p);
}

static inline void store(uint8_t *p, vec x)
{
	_mm512_storeu_si512(p, x);
}

static inline half load_half(const uint8_t *p)
{
	return _mm256_loadu_si256((const __m256i *)p);
}

static inline half low(vec x)
{
	return _mm512_castsi512_si256(x);
}

static inline half high(vec x)
{
	return _mm512_extracti64x4_epi64(x, 1);
}

static inline vec join(half l, half h)
{
	return _mm512_inserti64x4(_mm512_castsi256_si512(l), h, 1);
}

static inline __m512 ps(vec x)
{
	return _mm512_castsi512_ps(x);
}

static inline __m512d pd(vec x)
{
	return _mm512_castsi512_pd(x);
}

/* x, with the canonical NaN where a and b are unordered. */
static inline vec nan_ps(__m512 x, __m512 a, __m512 b)
{
	return _mm512_mask_mov_epi32(_mm512_castps_si512(x), _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q),
		_mm512_set1_epi32(REDUCE_FP32_NAN));
}

static inline vec nan_pd(__m512d x, __m512d a, __m512d b)
{
	return _mm512_mask_mov_epi64(_mm512_castpd_si512(x), _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q),
		_mm512_set1_epi64((int64_t)REDUCE_FP64_NAN));
}

static inline vec op_sum_fp32(vec a, vec b)
{
	__m512 x = _mm512_add_ps(ps(a), ps(b));

	return nan_ps(x, x, x);
}

static inline vec op_prod_fp32(vec a, vec b)
{
	__m512 x = _mm512_mul_ps(ps(a), ps(b));

	return nan_ps(x, x, x);
}

static inline vec op_sum_fp64(vec a, vec b)
{
	__m512d x = _mm512_add_pd(pd(a), pd(b));

	return nan_pd(x, x, x);
}

static inline vec op_prod_fp64(vec a, vec b)
{
	__m512d x = _mm512_mul_pd(pd(a), pd(b));

	return nan_pd(x, x, x);
}

/* Both orders differ only in zeros of two signs: | gives -0, & gives +0. */
static inline vec op_min_fp32(vec a, vec b)
{
	__m512 x = _mm512_or_ps(_mm512_min_ps(ps(a), ps(b)), _mm512_min_ps(ps(b), ps(a)));

	return nan_ps(x, ps(a), ps(b));
}

static inline vec op_max_fp32(vec a, vec b)
{
	__m512 x = _mm512_and_ps(_mm512_max_ps(ps(a), ps(b)), _mm512_max_ps(ps(b), ps(a)));

	return nan_ps(x, ps(a), ps(b));
}

static inline vec op_min_fp64(vec a, vec b)
{
	__m512d x = _mm512_or_pd(_mm512_min_pd(pd(a), pd(b)), _mm512_min_pd(pd(b), pd(a)));

	return nan_pd(x, pd(a), pd(b));
}

static inline vec op_max_fp64(vec a, vec b)
{
	__m512d x = _mm512_and_pd(_mm512_max_pd(pd(a), pd(b)), _mm512_max_pd(pd(b), pd(a)));

	return nan_pd(x, pd(a), pd(b));
}

static inline vec canonical(vec f)
{
	return nan_ps(ps(f), ps(f), ps(f));
}

static inline vec wide_fp16(half h)
{
	return _mm512_castps_si512(_mm512_cvtph_ps(h));
}

static inline half narrow_fp16(vec f)
{
	return _mm512_cvtps_ph(ps(f), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vec wide_bf16(half h)
{
	return _mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16);
}

/* The upper 16 bits: to nearest, ties to even. The instruction of AVX512_BF16 would flush
 * subnormals. */
static inline vec round_bf16(vec f)
{
	vec odd = _mm512_and_si512(_mm512_srli_epi32(f, 16), _mm512_set1_epi32(1));

	return _mm512_add_epi32(f, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
}

static inline half narrow_bf16(vec f)
{
	vec x = round_bf16(f);

	return _mm512_cvtepi32_epi16(_mm512_srli_epi32(x, 16));
}

static inline vec bf16_even(vec x)
{
	return _mm512_slli_epi32(x, 16);
}

static inline vec bf16_odd(vec x)
{
	return _mm512_and_si512(x, _mm512_set1_epi32((int)0xffff0000));
}

static inline vec bf16_merge(vec even, vec odd)
{
	return _mm512_mask_blend_epi16(
		0xaaaaaaaa, _mm512_srli_epi32(round_bf16(even), 16), round_bf16(odd));
}

static inline vec op_sum_8(vec a, vec b)
{
	return _mm512_add_epi8(a, b);
}

static inline vec op_sum_32(vec a, vec b)
{
	return _mm512_add_epi32(a, b);
}

static inline vec op_sum_64(vec a, vec b)
{
	return _mm512_add_epi64(a, b);
}

static inline vec op_prod_32(vec a, vec b)
{
	return _mm512_mullo_epi32(a, b);
}

static inline vec op_prod_64(vec a, vec b)
{
	return _mm512_mullo_epi64(a, b);
}

static inline vec op_min_int8(vec a, vec b)
{
	return _mm512_min_epi8(a, b);
}

static inline vec op_max_int8(vec a, vec b)
{
	return _mm512_max_epi8(a, b);
}

static inline vec op_min_uint8(vec a, vec b)
{
	return _mm512_min_epu8(a, b);
}

static inline vec op_max_uint8(vec a, vec b)
{
	return _mm512_max_epu8(a, b);
}

static inline vec op_min_int32(vec a, vec b)
{
	return _mm512_min_epi32(a, b);
}

static inline vec op_max_int32(vec a, vec b)
{
	return _mm512_max_epi32(a, b);
}

static inline vec op_min_uint32(vec a, vec b)
{
	return _mm512_min_epu32(a, b);
}

static inline vec op_max_uint32(vec a, vec b)
{
	return _mm512_max_epu32(a, b);
}

static inline vec op_min_int64(vec a, vec b)
{
	return _mm512_min_epi64(a, b);
}

static inline vec op_max_int64(vec a, vec b)
{
	return _mm512_max_epi64(a, b);
}

static inline vec op_min_uint64(vec a, vec b)
{
	return _mm512_min_epu64(a, b);
}

static inline vec op_max_uint64(vec a, vec b)
{
	return _mm512_max_epu64(a, b);
}

#include "lib/reduce/simd.h"

#define REDUCE_SET reduce_avx512
#include "lib/reduce/kernel_set.h"
