/* SPDX-License-Identifier: BSD-3-Clause */
/* Built with -mpclmul -mssse3: called only after CPUID said yes to both. */
#include <tmmintrin.h>
#include <wmmintrin.h>

#include "lib/wire/icrc_impl.h"

/* P with its x^32 term, and floor(x^64 / P), both reflected in 33 bits. */
static const uint64_t poly33 = 0x1db710641;
static const uint64_t barrett33 = 0x1f7011641;

/* Remainder of the polynomial in the low 64 bits of wide, of which bit 63 is x^0. */
static inline uint32_t reduce64(__m128i wide)
{
	const __m128i consts = _mm_set_epi64x((int64_t)barrett33, (int64_t)poly33);
	const __m128i low32 = _mm_cvtsi32_si128(-1);
	/* Barrett: the quotient of the terms x^63..x^32 (the low half), times P, cancels them. */
	__m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(wide, low32), consts, 0x10);
	__m128i multiple = _mm_clmulepi64_si128(_mm_and_si128(quotient, low32), consts, 0x00);

	return (uint32_t)_mm_cvtsi128_si32(_mm_srli_epi64(_mm_xor_si128(wide, multiple), 32));
}

/* A product has 63 coefficients; with b one step left, bit 63 is x^0 and bit 0 is x^63. */
static inline __m128i multiply32(__m128i a, uint32_t b)
{
	return _mm_clmulepi64_si128(a, _mm_cvtsi64_si128((int64_t)((uint64_t)b << 1)), 0x00);
}

uint32_t icrc_mul_clmul(uint32_t a, uint32_t b)
{
	return reduce64(multiply32(_mm_cvtsi32_si128((int)a), b));
}

/* x^(128 d + 95) and x^(128 d + 31) mod P: what the two halves of a block of 16 bytes with d blocks
 * behind it are multiplied with to be x^32 times their share. Reflected in 64 bits; a product of
 * such is one step to the right, hence 95 and 31 for 96 and 32. */
static const uint64_t block_factors[ICRC_MAX_HEADERS / 16][2] __attribute__((aligned(16))) = {
	{0xccaa009e00000000, 0x0000000100000000},
	{0x8125652700000000, 0xae68919100000000},
	{0xaf44924700000000, 0xf1da05aa00000000},
	{0x1d9513d700000000, 0x3db1ecdc00000000},
	{0xae0b539400000000, 0x8f352d9500000000},
	{0x57c5481900000000, 0x1c27981500000000},
	{0x0cbec0ed00000000, 0xdf068dc200000000},
	{0x910eeec100000000, 0x31f8303f00000000},
};

enum { X64_MOD_P = 0xb1e6b092 };

static inline __m128i masked_block(const uint8_t *p, const uint8_t *mask)
{
	return _mm_or_si128(
		_mm_loadu_si128((const __m128i *)p), _mm_loadu_si128((const __m128i *)mask));
}

static inline __m128i share(__m128i block, const uint64_t factors[2])
{
	__m128i f = _mm_load_si128((const __m128i *)factors);

	return _mm_xor_si128(
		_mm_clmulepi64_si128(block, f, 0x00), _mm_clmulepi64_si128(block, f, 0x11));
}

uint32_t icrc_masked_clmul(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len)
{
	/* A window onto this moves the first block's bytes up behind zeros. */
	static const uint8_t shuffles[32] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
		13, 14, 15};
	size_t first = (len - 1) % 16 + 1; /* bytes of the first block, the others are whole */
	const uint64_t(*factors)[2] = &block_factors[(len - 1) / 16];
	const __m128i state = _mm_cvtsi32_si128((int)~crc);
	const __m128i shuffle = _mm_loadu_si128((const __m128i *)(shuffles + first));
	__m128i sum =
		share(_mm_shuffle_epi8(_mm_xor_si128(masked_block(data, mask), state), shuffle),
			*factors);

	/* Every block on its own: the multiplications do not wait for each other. */
	for (size_t at = first; at < len; at += 16)
		sum = _mm_xor_si128(sum, share(masked_block(data + at, mask + at), *--factors));
	/* sum has the terms x^95..x^64 in bits 32..63, the lower ones in the upper half. */
	return ~reduce64(_mm_xor_si128(_mm_srli_si128(sum, 8),
		multiply32(_mm_srli_epi64(_mm_move_epi64(sum), 32), X64_MOD_P)));
}
