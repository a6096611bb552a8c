/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32 by folding with wide carry-less multiplications, and copies that compute it on the way.
 * Four registers at a time, so that a multiplication's latency hides behind three others; what was
 * read so far is moved over the distance to the next bytes by one multiplication per eight bytes
 * (Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction",
 * Intel, 2009). Functions carry their instruction sets, the file is built for any CPU. */
#include <assert.h>
#include <string.h>

#include "lib/wire/icrc_impl.h"

#ifdef __x86_64__
#include "lib/wire/icrc_x86.h"

#define AVX2_TARGET CLMUL_TARGET ",sse4.1,avx2,vpclmulqdq"
#define AVX512_TARGET AVX2_TARGET ",avx512f,avx512vl,avx512bw,avx512dq"
#define IN_AVX2 static inline __attribute__((always_inline, target(AVX2_TARGET)))
#define IN_AVX512 static inline __attribute__((always_inline, target(AVX512_TARGET)))

/* ISA-L has an AVX-512 fold of its own, faster than this one on less than ZMM_PLAIN bytes. */
enum { YMM_STEP = 4 * 32, ZMM_STEP = 4 * 64, ZMM_PLAIN = 1024 };

/* The bytes at src + at, in a copy also stored at dst + at. The source may change meanwhile (a
 * program owns its memory): what is stored and what counts must be one reading, so the compiler is
 * told that it can not have the value again. Without copy dst is not looked at. */
#define TAKE(target, suffix, type, load, store)                                           \
	target type take_##suffix(uint8_t *dst, const uint8_t *src, size_t at, bool copy) \
	{                                                                                 \
		type v = load((const void *)(src + at));                                  \
                                                                                          \
		if (copy) {                                                               \
			__asm__("" : "+v"(v));                                            \
			store((void *)(dst + at), v);                                     \
		}                                                                         \
		return v;                                                                 \
	}
TAKE(IN_AVX2, xmm, __m128i, _mm_loadu_si128, _mm_storeu_si128)
TAKE(IN_AVX2, ymm, __m256i, _mm256_loadu_si256, _mm256_storeu_si256)
TAKE(IN_AVX512, zmm, __m512i, _mm512_loadu_si512, _mm512_storeu_si512)

/* What the two halves of 16 bytes are multiplied with to count n bytes further on: x^(8 n + 31) and
 * x^(8 n - 33) mod P, reflected in 33 bits, which is one step to the left. */
struct fold {
	uint64_t low, high;
};
static const struct fold over_16 = {0x1751997d0, 0x0ccaa009e}, over_32 = {0x0f1da05aa, 0x15a546366},
			 over_64 = {0x154442bd4, 0x1c6e41596}, over_96 = {0x0df068dc2, 0x18cb44e58},
			 over_128 = {0x1e88ef372, 0x14a7fe880},
			 over_192 = {0x1821d8bc0, 0x12e958ac4},
			 over_256 = {0x11542778a, 0x1322d1430};
/* For the 16-byte lanes of a register: each to where the last one is, which itself stays. */
static const struct fold to_last_ymm[2] = {{0x1751997d0, 0x0ccaa009e}},
			 to_last_zmm[4] = {{0x03db1ecdc, 0x174359406}, {0x0f1da05aa, 0x15a546366},
				 {0x1751997d0, 0x0ccaa009e}};

IN_AVX2 __m128i load_fold(const struct fold *fold)
{
	return _mm_loadu_si128((const __m128i *)fold);
}

IN_AVX2 __m256i fold_ymm(__m256i state, __m256i over, __m256i next)
{
	return _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(state, over, 0x00),
					_mm256_clmulepi64_epi128(state, over, 0x11)),
		next);
}

IN_AVX512 __m512i fold_zmm(__m512i state, __m512i over, __m512i next)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(state, over, 0x00),
		_mm512_clmulepi64_epi128(state, over, 0x11), next, 0x96);
}

IN_AVX2 __m256i every_lane_ymm(const struct fold *fold)
{
	return _mm256_broadcastsi128_si256(load_fold(fold));
}

IN_AVX512 __m512i every_lane_zmm(const struct fold *fold)
{
	return _mm512_broadcast_i64x2(load_fold(fold));
}

/* state followed by the n bytes at src, 1 to 15; the 16 bytes before their end can be read. */
IN_AVX2 __m128i append_rest(__m128i state, const uint8_t *src, size_t n)
{
	/* A window onto this moves bytes up behind zeros, or down with a mark above them. */
	static const uint8_t moves[48] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
		13, 14, 15, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0x80, 0x80, 0x80, 0x80};
	const __m128i up = _mm_loadu_si128((const __m128i *)(moves + n));
	const __m128i down = _mm_loadu_si128((const __m128i *)(moves + 16 + n));
	const __m128i window = _mm_loadu_si128((const __m128i *)(src + n - 16));

	return _mm_xor_si128(icrc_share(_mm_shuffle_epi8(state, up), load_fold(&over_16)),
		_mm_blendv_epi8(_mm_shuffle_epi8(state, down), window, down));
}

/* The bytes from at to len, fewer than a wide register's. The rest of a copy is copied first, and
 * what counts is the copy. */
IN_AVX2 uint32_t finish(
	__m128i state, uint8_t *dst, const uint8_t *src, size_t at, size_t len, bool copy)
{
	/* Times x^32, in the form that icrc_reduce96 takes. */
	const __m128i last = _mm_set_epi64x(0x0000000100000000, (int64_t)0xccaa009e00000000);

	for (; at + 16 <= len; at += 16)
		state = _mm_xor_si128(
			icrc_share(state, load_fold(&over_16)), take_xmm(dst, src, at, copy));
	if (at < len && copy)
		memmove(dst + at, src + at, len - at);
	if (at < len)
		state = append_rest(state, (copy ? dst : src) + at, len - at);
	return ~icrc_reduce96(icrc_share(state, last));
}

IN_AVX2 __m256i or_ymm(__m256i v, const uint8_t *mask)
{
	return _mm256_or_si256(v, _mm256_loadu_si256((const __m256i *)mask));
}

/* len is YMM_STEP or more. mask: ICRC_MASKED bytes, or NULL. */
IN_AVX2 uint32_t run_ymm(
	uint32_t crc, uint8_t *dst, const uint8_t *src, const uint8_t *mask, size_t len, bool copy)
{
	const __m256i over = every_lane_ymm(&over_128);
	__m256i a = take_ymm(dst, src, 0, copy), b = take_ymm(dst, src, 32, copy),
		c = take_ymm(dst, src, 64, copy), d = take_ymm(dst, src, 96, copy);
	size_t at = YMM_STEP;

	static_assert((int)ICRC_MASKED == 2 * 32, "two registers");
	if (mask) {
		a = or_ymm(a, mask);
		b = or_ymm(b, mask + 32);
	}
	a = _mm256_xor_si256(a, _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)~crc)));
	for (; at + YMM_STEP <= len; at += YMM_STEP) {
		a = fold_ymm(a, over, take_ymm(dst, src, at, copy));
		b = fold_ymm(b, over, take_ymm(dst, src, at + 32, copy));
		c = fold_ymm(c, over, take_ymm(dst, src, at + 64, copy));
		d = fold_ymm(d, over, take_ymm(dst, src, at + 96, copy));
	}
	d = fold_ymm(a, every_lane_ymm(&over_96), d);
	d = fold_ymm(b, every_lane_ymm(&over_64), d);
	d = fold_ymm(c, every_lane_ymm(&over_32), d);
	for (; at + 32 <= len; at += 32)
		d = fold_ymm(d, every_lane_ymm(&over_32), take_ymm(dst, src, at, copy));
	a = fold_ymm(d, _mm256_loadu_si256((const __m256i *)to_last_ymm), _mm256_setzero_si256());
	return finish(_mm_xor_si128(_mm256_castsi256_si128(a), _mm256_extracti128_si256(d, 1)), dst,
		src, at, len, copy);
}

/* What a to d hold, one behind the other, and the bytes from at to len. */
IN_AVX512 uint32_t go_on_zmm(__m512i a, __m512i b, __m512i c, __m512i d, uint8_t *dst,
	const uint8_t *src, size_t at, size_t len, bool copy)
{
	const __m512i over = every_lane_zmm(&over_256);
	__m256i half;

	for (; at + ZMM_STEP <= len; at += ZMM_STEP) {
		a = fold_zmm(a, over, take_zmm(dst, src, at, copy));
		b = fold_zmm(b, over, take_zmm(dst, src, at + 64, copy));
		c = fold_zmm(c, over, take_zmm(dst, src, at + 128, copy));
		d = fold_zmm(d, over, take_zmm(dst, src, at + 192, copy));
	}
	d = fold_zmm(a, every_lane_zmm(&over_192), d);
	d = fold_zmm(b, every_lane_zmm(&over_128), d);
	d = fold_zmm(c, every_lane_zmm(&over_64), d);
	for (; at + 64 <= len; at += 64)
		d = fold_zmm(d, every_lane_zmm(&over_64), take_zmm(dst, src, at, copy));
	/* The last lane stays, the other three come to it, and the four are one sum. */
	d = fold_zmm(d, _mm512_loadu_si512(to_last_zmm), _mm512_maskz_mov_epi64(0xc0, d));
	half = _mm256_xor_si256(_mm512_castsi512_si256(d), _mm512_extracti64x4_epi64(d, 1));
	return finish(
		_mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)), dst,
		src, at, len, copy);
}

/* len is ZMM_STEP or more. */
IN_AVX512 uint32_t run_zmm(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len, bool copy)
{
	__m512i a = take_zmm(dst, src, 0, copy), b = take_zmm(dst, src, 64, copy),
		c = take_zmm(dst, src, 128, copy), d = take_zmm(dst, src, 192, copy);

	a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc)));
	return go_on_zmm(a, b, c, d, dst, src, ZMM_STEP, len, copy);
}

/* The same of ZMM_STEP bytes or more, a multiple of 4. Zeros in front change nothing but where the
 * first bytes are: the first register is filled up with them, so that nothing is left at the end.
 */
IN_AVX512 uint32_t run_masked_zmm(uint32_t crc, const uint8_t *src, const uint8_t *mask, size_t len)
{
	const size_t first = (len - 1) % 64 + 1;
	const unsigned zeros = (unsigned)(64 - first) / 4;
	const __m512i lanes =
		_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
	const __m512i from = _mm512_sub_epi32(lanes, _mm512_set1_epi32((int)zeros));
	__m512i a = _mm512_or_si512(take_zmm(NULL, src, 0, false), take_zmm(NULL, mask, 0, false)),
		b = _mm512_or_si512(
			take_zmm(NULL, src, first, false), take_zmm(NULL, mask, first, false)),
		c = take_zmm(NULL, src, first + 64, false),
		d = take_zmm(NULL, src, first + 128, false);

	static_assert(ICRC_MASKED + 64 <= (int)ICRC_MAX_HEADERS, "the second register's mask");
	a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc)));
	a = _mm512_maskz_permutexvar_epi32((__mmask16)(0xffff << zeros), from, a);
	return go_on_zmm(a, b, c, d, NULL, src, first + 192, len, false);
}

__attribute__((target(AVX2_TARGET))) uint32_t icrc_packet_avx2(
	uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len)
{
	return len <= ICRC_MAX_HEADERS ? icrc_packet_clmul(crc, data, mask, len)
				       : run_ymm(crc, NULL, data, mask, len, false);
}

__attribute__((target(AVX512_TARGET))) uint32_t icrc_packet_avx512(
	uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len)
{
	return len < ZMM_STEP || len % 4 != 0 ? icrc_packet_clmul(crc, data, mask, len)
					      : run_masked_zmm(crc, data, mask, len);
}

__attribute__((target(AVX2_TARGET))) uint32_t icrc_append_avx2(
	uint32_t crc, const void *data, size_t len)
{
	return len < YMM_STEP ? icrc_append_isal(crc, data, len)
			      : run_ymm(crc, NULL, data, NULL, len, false);
}

__attribute__((target(AVX2_TARGET))) uint32_t icrc_copy_avx2(
	uint32_t crc, void *dst, const void *src, size_t len)
{
	return len < YMM_STEP ? icrc_copy_isal(crc, dst, src, len)
			      : run_ymm(crc, dst, src, NULL, len, true);
}

__attribute__((target(AVX512_TARGET))) uint32_t icrc_append_avx512(
	uint32_t crc, const void *data, size_t len)
{
	return len < ZMM_PLAIN ? icrc_append_isal(crc, data, len)
			       : run_zmm(crc, NULL, data, len, false);
}

__attribute__((target(AVX512_TARGET))) uint32_t icrc_copy_avx512(
	uint32_t crc, void *dst, const void *src, size_t len)
{
	return len < ZMM_STEP ? icrc_copy_isal(crc, dst, src, len)
			      : run_zmm(crc, dst, src, len, true);
}

bool icrc_has_avx2(void)
{
	return icrc_has_clmul() && __builtin_cpu_supports("avx2") &&
	       __builtin_cpu_supports("vpclmulqdq");
}

bool icrc_has_avx512(void)
{
	return icrc_has_avx2() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq");
}

#endif
