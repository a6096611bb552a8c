/* SPDX-License-Identifier: BSD-3-Clause */
/* Products, and the CRC of headers, whose blocks do not wait for each other. */
#include "lib/wire/icrc_impl.h"

#ifdef __x86_64__
#include "lib/wire/icrc_x86.h"

bool icrc_has_clmul(void)
{
	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("ssse3");
}

__attribute__((target(CLMUL_TARGET))) uint32_t icrc_mul_clmul(uint32_t a, uint32_t b)
{
	return icrc_reduce64(icrc_multiply32(_mm_cvtsi32_si128((int)a), b));
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

CLMUL __m128i masked_block(const uint8_t *p, const uint8_t *mask)
{
	return _mm_or_si128(
		_mm_loadu_si128((const __m128i *)p), _mm_loadu_si128((const __m128i *)mask));
}

CLMUL __m128i share(__m128i block, const uint64_t factors[2])
{
	return icrc_share(block, _mm_load_si128((const __m128i *)factors));
}

__attribute__((target(CLMUL_TARGET))) uint32_t icrc_masked_clmul(
	uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len)
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
	return ~icrc_reduce96(sum);
}

#endif
