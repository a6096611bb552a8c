/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/icrc.h"

#include <string.h>

#include "lib/wire/icrc_impl.h"
#include "lib/wire/ip.h"
#include "lib/wire/roce.h"

/* Fields that a router may change count as ones: IPv4 TOS, TTL and header checksum, IPv6 traffic
 * class, flow label and hop limit, the UDP checksum, and FECN, BECN and reserved of the BTH. */
static const uint8_t mask4[ICRC_MAX_HEADERS] = {
	[1] = 0xff,
	[8] = 0xff,
	[10] = 0xff,
	[11] = 0xff, /* IPv4 */
	[26] = 0xff,
	[27] = 0xff, /* UDP */
	[32] = 0xff, /* BTH */
};
static const uint8_t mask6[ICRC_MAX_HEADERS] = {
	[0] = 0x0f,
	[1] = 0xff,
	[2] = 0xff,
	[3] = 0xff,
	[7] = 0xff, /* IPv6 */
	[46] = 0xff,
	[47] = 0xff, /* UDP */
	[52] = 0xff, /* BTH */
};

/* CRC-32 of the eight bytes of ones that stand for the InfiniBand local route header. */
enum { ICRC_SEED = 0x2144df1c };

uint32_t icrc_headers(const uint8_t *l3, size_t len)
{
	return icrc_use->masked(ICRC_SEED, l3, l3[0] >> 4 == 4 ? mask4 : mask6, len);
}

uint32_t icrc_packet(const uint8_t *l3, size_t len)
{
	return icrc_use->packet(ICRC_SEED, l3, l3[0] >> 4 == 4 ? mask4 : mask6, len);
}

uint32_t icrc_append(uint32_t crc, const void *data, size_t len)
{
	return icrc_use->append(crc, data, len);
}

uint32_t icrc_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
	return icrc_use->copy(crc, dst, src, len);
}

uint32_t icrc_place(uint32_t crc, void *dst, const void *src, size_t len)
{
	if (icrc_use->one_pass)
		return icrc_use->copy(crc, dst, src, len);
	crc = icrc_use->append(crc, src, len);
	memcpy(dst, src, len);
	return crc;
}

const char *icrc_kernel_name(void)
{
	return icrc_use->name;
}

/* x^(8 << k) mod P, each the square of the one before. P is primitive: x^(2^32 - 1) = 1, so that
 * squaring 32 times gives the first again and longer lengths wrap around. */
static const uint32_t powers[32] = {
	0x00800000,
	0x00008000,
	0xedb88320,
	0xb1e6b092,
	0xa06a2517,
	0xed627dae,
	0x88d14467,
	0xd7bbfe6a,
	0xec447f11,
	0x8e7ea170,
	0x6427800e,
	0x4d47bae0,
	0x09fe548f,
	0x83852d0f,
	0x30362f1a,
	0x7b5a9cc3,
	0x31fec169,
	0x9fec022a,
	0x6c8dedc4,
	0x15d6874d,
	0x5fde7a4e,
	0xbad90e37,
	0x2e4e5eef,
	0x4eaba214,
	0xa8a472c0,
	0x429a969e,
	0x148d302a,
	0xc40ba6d0,
	0xc4e22c3c,
	0x40000000,
	0x20000000,
	0x08000000,
};

static inline uint32_t mul(uint32_t a, uint32_t b)
{
	return icrc_use->mul(a, b);
}

struct icrc_shift icrc_shift_for(size_t len_b)
{
	uint32_t factor = 0x80000000; /* x^0 */
	unsigned k = 0;

	for (; len_b; len_b >>= 1, k = (k + 1) & 31)
		if (len_b & 1)
			factor = factor == 0x80000000 ? powers[k] : mul(factor, powers[k]);
	return (struct icrc_shift){factor};
}

uint32_t icrc_combine_shift(uint32_t a, uint32_t b, struct icrc_shift shift)
{
	return mul(a, shift.factor) ^ b;
}

uint32_t icrc_combine(uint32_t a, uint32_t b, size_t len_b)
{
	return icrc_combine_shift(a, b, icrc_shift_for(len_b));
}
