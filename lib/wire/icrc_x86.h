/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/wire: polynomials over GF(2) by carry-less multiplication, reflected as CRC-32 is. A
 * function that uses these has CLMUL_TARGET's instructions in its own target and is called only
 * where CPUID has them; the files around are built for any CPU of the architecture. */
#ifndef WIRE_ICRC_X86_H
#define WIRE_ICRC_X86_H

#include <immintrin.h>
#include <stdint.h>

#define CLMUL_TARGET "pclmul,ssse3"
#define CLMUL static inline __attribute__((always_inline, target(CLMUL_TARGET)))

/* P with its x^32 term, and floor(x^64 / P), both reflected in 33 bits. */
#define ICRC_POLY33 0x1db710641
#define ICRC_BARRETT33 0x1f7011641

enum { ICRC_X64_MOD_P = 0xb1e6b092 };

/* Remainder of the polynomial in the low 64 bits of wide, of which bit 63 is x^0. */
CLMUL uint32_t icrc_reduce64(__m128i wide)
{
	const __m128i consts = _mm_set_epi64x(ICRC_BARRETT33, ICRC_POLY33);
	const __m128i low32 = _mm_cvtsi32_si128(-1);
	/* Barrett: the quotient of the terms x^63..x^32 (the low half), times P, cancels them. */
	__m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(wide, low32), consts, 0x10);
	__m128i multiple = _mm_clmulepi64_si128(_mm_and_si128(quotient, low32), consts, 0x00);

	return (uint32_t)_mm_cvtsi128_si32(_mm_srli_epi64(_mm_xor_si128(wide, multiple), 32));
}

/* A product has 63 coefficients; with b one step left, bit 63 is x^0 and bit 0 is x^63. */
CLMUL __m128i icrc_multiply32(__m128i a, uint32_t b)
{
	return _mm_clmulepi64_si128(a, _mm_cvtsi64_si128((int64_t)((uint64_t)b << 1)), 0x00);
}

/* The low half of block times the low factor, the high half times the high one. */
CLMUL __m128i icrc_share(__m128i block, __m128i factors)
{
	return _mm_xor_si128(_mm_clmulepi64_si128(block, factors, 0x00),
		_mm_clmulepi64_si128(block, factors, 0x11));
}

/* The remainder of a sum of shares, which has the terms x^95..x^64 in bits 32..63 and the lower
 * ones in the upper half. */
CLMUL uint32_t icrc_reduce96(__m128i sum)
{
	const __m128i high = _mm_srli_epi64(_mm_move_epi64(sum), 32);

	return icrc_reduce64(
		_mm_xor_si128(_mm_srli_si128(sum, 8), icrc_multiply32(high, ICRC_X64_MOD_P)));
}

#endif
