/* SPDX-License-Identifier: BSD-3-Clause */
/* The sets of kernels, and which of them this process uses: found out once, before main(). */
#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/icrc_impl.h"

/* ---- scalar: the reference, on any CPU ---- */

static uint32_t append_scalar(uint32_t crc, const void *data, size_t len)
{
	/* The remainders of four bits. */
	static const uint32_t nibble[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
		0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8,
		0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
	const uint8_t *p = data;

	crc = ~crc;
	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		crc = crc >> 4 ^ nibble[crc & 15];
		crc = crc >> 4 ^ nibble[crc & 15];
	}
	return ~crc;
}

static uint32_t copy_scalar(uint32_t crc, void *dst, const void *src, size_t len)
{
	/* What was copied counts, not the source once more. */
	return len ? append_scalar(crc, memcpy(dst, src, len), len) : crc;
}

/* data with the mask's bits set. */
static void set_bits(uint8_t *out, const uint8_t *data, const uint8_t *mask, size_t len)
{
	uint64_t a[2], b[2];
	size_t i;

	/* Blocks of 16; the last one overlaps. */
	for (i = 0; i < len; i += 16) {
		const size_t at = i + 16 <= len ? i : len - 16;

		memcpy(a, data + at, sizeof(a));
		memcpy(b, mask + at, sizeof(b));
		a[0] |= b[0];
		a[1] |= b[1];
		memcpy(out + at, a, sizeof(a));
	}
}

static uint32_t masked_scalar(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len)
{
	uint8_t bits[ICRC_MAX_HEADERS];

	set_bits(bits, data, mask, len);
	return append_scalar(crc, bits, len);
}

static uint32_t packet_scalar(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len)
{
	const size_t masked = len < ICRC_MAX_HEADERS ? len : ICRC_MAX_HEADERS;

	return append_scalar(masked_scalar(crc, data, mask, masked), data + masked, len - masked);
}

static uint32_t mul_scalar(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	/* Bit 31 is x^0: take the bits of a from there on while b is multiplied by x. */
	for (; a; a <<= 1) {
		if (a & 0x80000000)
			product ^= b;
		b = b >> 1 ^ (b & 1 ? ICRC_POLY : 0);
	}
	return product;
}

static bool always(void)
{
	return true;
}

/* ---- isal: ISA-L, which chooses by CPUID itself ---- */

uint32_t icrc_append_isal(uint32_t crc, const void *data, size_t len)
{
	return crc32_gzip_refl(crc, data, len);
}

uint32_t icrc_copy_isal(uint32_t crc, void *dst, const void *src, size_t len)
{
	return len ? crc32_gzip_refl(crc, memcpy(dst, src, len), len) : crc;
}

static uint32_t masked_isal(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len)
{
	uint8_t bits[ICRC_MAX_HEADERS] __attribute__((aligned(16)));

	set_bits(bits, data, mask, len);
	return crc32_gzip_refl(crc, bits, len);
}

uint32_t icrc_packet_isal(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len)
{
	const size_t masked = len < ICRC_MASKED ? len : ICRC_MASKED;

	return crc32_gzip_refl(masked_isal(crc, data, mask, masked), data + masked, len - masked);
}

#ifdef __x86_64__
/* ISA-L is made for long buffers; for 40 bytes and more, twice per packet, half its time counts. */
static uint32_t masked_clmul(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len)
{
	return len % 4 == 0 ? icrc_masked_clmul(crc, data, mask, len)
			    : masked_isal(crc, data, mask, len);
}

uint32_t icrc_packet_clmul(uint32_t crc, const uint8_t *data, const uint8_t *mask, size_t len)
{
	const size_t masked = len <= ICRC_MAX_HEADERS ? len : ICRC_MASKED;

	crc = masked_clmul(crc, data, mask, masked);
	return masked < len ? crc32_gzip_refl(crc, data + masked, len - masked) : crc;
}
#endif

/* From the slowest to the fastest; of two with one name the CPU's best counts. With AVX-512,
 * ISA-L's plain CRC is as fast as a fold of our own (measured on Zen 4 and 5). */
const struct icrc_kernels icrc_kernels[] = {
	{"scalar", always, append_scalar, copy_scalar, masked_scalar, packet_scalar, mul_scalar},
	{"isal", always, icrc_append_isal, icrc_copy_isal, masked_isal, icrc_packet_isal,
		mul_scalar},
#ifdef __x86_64__
	{"isal", icrc_has_clmul, icrc_append_isal, icrc_copy_isal, masked_clmul, icrc_packet_clmul,
		icrc_mul_clmul},
	{"avx2", icrc_has_avx2, icrc_append_avx2, icrc_copy_avx2, masked_clmul, icrc_packet_avx2,
		icrc_mul_clmul, true},
	{"avx512", icrc_has_avx512, icrc_append_avx512, icrc_copy_avx512, masked_clmul,
		icrc_packet_avx512, icrc_mul_clmul, true},
#endif
};
const unsigned icrc_n_kernels = sizeof(icrc_kernels) / sizeof(icrc_kernels[0]);

const struct icrc_kernels *icrc_choose(const char *name, char *why, size_t cap)
{
	const struct icrc_kernels *best = icrc_kernels, *named = NULL;
	bool known = false;

	for (const struct icrc_kernels *k = best; k < icrc_kernels + icrc_n_kernels; k++) {
		const bool is_named = name && strcmp(name, k->name) == 0;

		known |= is_named;
		if (!k->usable())
			continue;
		best = k;
		if (is_named)
			named = k;
	}
	why[0] = '\0';
	if (name && !named)
		snprintf(why, cap, "INCLINE_ICRC=%.20s: %s; %s is used", name,
			known ? "this CPU lacks it" : "not one of scalar, isal, avx2, avx512",
			best->name);
	return named ? named : best;
}

/* Until the constructor has run, what any CPU can. */
const struct icrc_kernels *icrc_use = &icrc_kernels[1];

__attribute__((constructor)) static void choose(void)
{
	const char *name = getenv("INCLINE_ICRC");
	char why[128];

#ifdef __x86_64__
	__builtin_cpu_init();
#endif
	icrc_use = icrc_choose(name && name[0] ? name : NULL, why, sizeof(why));
	if (why[0])
		fprintf(stderr, "incline: %s\n", why);
}
