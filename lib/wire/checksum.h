/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/wire only: one's complement arithmetic that the packet path wants inline. */
#ifndef WIRE_CHECKSUM_H
#define WIRE_CHECKSUM_H

#include <stdint.h>
#include <string.h>

#include "lib/wire/bytes.h"
#include "lib/wire/ip.h"

static inline uint16_t sum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Sum of an IPv4 header without options, not folded, in memory's byte order. */
static inline uint64_t ip4_sum_native(const uint8_t *ip)
{
	uint64_t a, b;
	uint32_t c;

	memcpy(&a, ip, sizeof(a));
	memcpy(&b, ip + 8, sizeof(b));
	memcpy(&c, ip + 16, sizeof(c));
	return (a >> 32) + (uint32_t)a + (b >> 32) + (uint32_t)b + c;
}

/* RFC 1624, equation 3: the checksum after a 16-bit word changed from old to new. */
static inline uint16_t checksum_update(uint16_t checksum, uint16_t old, uint16_t new)
{
	uint32_t sum = (uint16_t)~checksum + (uint32_t)(uint16_t)~old + new;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Changes a 16-bit word of an IPv4 header, and the checksum over it. */
static inline void ip4_put_word(uint8_t *ip, size_t at, uint16_t word)
{
	uint8_t *sum = ip + offsetof(struct ip4_hdr, checksum);

	put_be16(sum, checksum_update(get_be16(sum), get_be16(ip + at), word));
	put_be16(ip + at, word);
}

/* Sum of an upper-layer packet and its pseudo-header, in host order: 0xffff if the checksum in it
 * is right. */
uint16_t ip_l4_sum(const struct wire_ip *src, const struct wire_ip *dst, uint8_t proto,
	const void *l4, size_t len);

#endif
