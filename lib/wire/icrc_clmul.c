/* SPDX-License-Identifier: BSD-3-Clause */
/* Built with -mpclmul: called only after CPUID said yes. */
#include <wmmintrin.h>

#include "lib/wire/icrc_impl.h"

/* P with its x^32 term, and floor(x^64 / P), both reflected in 33 bits. */
static const uint64_t poly33 = 0x1db710641;
static const uint64_t barrett33 = 0x1f7011641;

uint32_t icrc_mul_clmul(uint32_t a, uint32_t b)
{
	const __m128i consts = _mm_set_epi64x((int64_t)barrett33, (int64_t)poly33);
	const __m128i low32 = _mm_cvtsi32_si128(-1);
	/* A product has 63 coefficients; with b one step left, bit 63 is x^0 and bit 0 is x^63. */
	__m128i wide = _mm_clmulepi64_si128(
		_mm_cvtsi32_si128((int)a), _mm_cvtsi64_si128((int64_t)((uint64_t)b << 1)), 0x00);
	/* Barrett: the quotient of the terms x^63..x^32 (the low half), times P, cancels them. */
	__m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(wide, low32), consts, 0x10);
	__m128i multiple = _mm_clmulepi64_si128(_mm_and_si128(quotient, low32), consts, 0x00);

	return (uint32_t)_mm_cvtsi128_si32(_mm_srli_epi64(_mm_xor_si128(wide, multiple), 32));
}
