/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/wire and its tests: the variants that icrc.c picks from by CPUID. Those of one name
 * give the same. */
#ifndef WIRE_ICRC_IMPL_H
#define WIRE_ICRC_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/icrc.h"

enum { ICRC_POLY = 0xedb88320 }; /* 0x04c11db7 reflected */

static inline bool icrc_has_clmul(void)
{
#ifdef __x86_64__
	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("ssse3");
#else
	return false;
#endif
}

/* Product modulo P of polynomials over GF(2), bit 31 being x^0. */
uint32_t icrc_mul_scalar(uint32_t a, uint32_t b);
uint32_t icrc_mul_clmul(uint32_t a, uint32_t b);

/* CRC of (what crc covers) followed by data with the mask's bits set. len is 16..ICRC_MAX_HEADERS,
 * for the second a multiple of 4. */
uint32_t icrc_masked_isal(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len);
uint32_t icrc_masked_clmul(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len);

#endif
