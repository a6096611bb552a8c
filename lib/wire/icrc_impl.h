/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/wire and its tests: the kernels that icrc_kernels.c chooses from by CPUID. All give
 * the same. */
#ifndef WIRE_ICRC_IMPL_H
#define WIRE_ICRC_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/icrc.h"

enum { ICRC_POLY = 0xedb88320 }; /* 0x04c11db7 reflected */
enum { ICRC_MASKED = 64 };

struct icrc_kernels {
	const char *name;
	bool (*usable)(void); /* this CPU has the instructions */
	/* icrc_append and icrc_copy */
	uint32_t (*append)(uint32_t crc, const void *data, size_t len);
	uint32_t (*copy)(uint32_t crc, void *dst, const void *src, size_t len);
	/* CRC of (what crc covers) followed by data with the mask's bits set, 16 to
	 * ICRC_MAX_HEADERS bytes. */
	uint32_t (*masked)(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len);
	/* The same, but the data may be longer, and the mask has ICRC_MAX_HEADERS bytes: what it
	 * sets is in the first ICRC_MASKED of them. */
	uint32_t (*packet)(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len);
	/* Product modulo P of polynomials over GF(2), bit 31 being x^0. */
	uint32_t (*mul)(uint32_t a, uint32_t b);
	/* copy reads src once: its CRC is of what was read and of what was written. Else it is of
	 * what was written, read again. */
	bool one_pass;
};

extern const struct icrc_kernels icrc_kernels[];
extern const unsigned icrc_n_kernels;
extern const struct icrc_kernels *icrc_use; /* set before main(), then constant */

/* The kernels of that name, or this CPU's best if there are none or it lacks their instructions:
 * why says so then, else it is empty. NULL: the best. */
const struct icrc_kernels *icrc_choose(const char *name, char *why, size_t cap);

uint32_t icrc_append_isal(uint32_t crc, const void *data, size_t len);
uint32_t icrc_copy_isal(uint32_t crc, void *dst, const void *src, size_t len);
uint32_t icrc_packet_isal(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len);

#ifdef __x86_64__
bool icrc_has_clmul(void);  /* PCLMULQDQ, SSSE3 */
bool icrc_has_avx2(void);   /* and AVX2, VPCLMULQDQ */
bool icrc_has_avx512(void); /* and AVX-512 F, VL, BW, DQ */

uint32_t icrc_mul_clmul(uint32_t a, uint32_t b);
/* len is a multiple of 4. */
uint32_t icrc_masked_clmul(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len);
uint32_t icrc_packet_clmul(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len);
uint32_t icrc_packet_avx2(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len);
uint32_t icrc_packet_avx512(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len);
uint32_t icrc_append_avx2(uint32_t crc, const void *data, size_t len);
uint32_t icrc_copy_avx2(uint32_t crc, void *dst, const void *src, size_t len);
uint32_t icrc_append_avx512(uint32_t crc, const void *data, size_t len);
uint32_t icrc_copy_avx512(uint32_t crc, void *dst, const void *src, size_t len);
#endif

#endif
