/* SPDX-License-Identifier: BSD-3-Clause */
/* Micro-segments in an IPv6 destination address: NEXT-CSID, format F3216 (RFC 9800, 4.1). 32 bits
 * of locator block, then up to six uSIDs of 16 bits, then zeros. Pure functions of addresses: what
 * a switch does with a packet, what a NIC puts into one and what a report makes of it start here.
 */
#ifndef SRV6_USID_H
#define SRV6_USID_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire/bytes.h"
#include "lib/wire/ip.h"

enum { SRV6_BLOCK_LEN = 4, SRV6_USIDS = 6, SRV6_USID_BITS = 16 };

static inline uint16_t srv6_usid(const struct wire_ip *ip, unsigned i)
{
	return get_be16(ip->b + SRV6_BLOCK_LEN + 2 * i);
}

static inline void srv6_usid_put(struct wire_ip *ip, unsigned i, uint16_t usid)
{
	put_be16(ip->b + SRV6_BLOCK_LEN + 2 * i, usid);
}

/* Whether ip begins with the block and uSID of node, a locator: the /48 of one switch or host. */
static inline bool srv6_is_for(const struct wire_ip *ip, const struct wire_ip *node)
{
	return memcmp(ip->b, node->b, SRV6_BLOCK_LEN + 2) == 0;
}

/* Whether a bit behind a SID's prefix is set: something follows it. Looked at before the shift (RFC
 * 9800, 4.1.1): if not, the packet has arrived, or its SRH has the next segment. */
static inline bool srv6_has_argument(const struct wire_ip *ip, unsigned bits)
{
	unsigned i = bits / 8;

	if (i < 16 && (ip->b[i] & 0xff >> bits % 8) != 0)
		return true;
	while (++i < 16)
		if (ip->b[i] != 0)
			return true;
	return false;
}

/* What follows the SID takes its place behind the block, zeros come in at the end. bits: of the
 * SID's prefix, whole bytes, from SRV6_BLOCK_LEN * 8 on. */
static inline void srv6_shift_argument(struct wire_ip *ip, unsigned bits)
{
	const unsigned end = bits / 8, left = 16 - end;

	memmove(ip->b + SRV6_BLOCK_LEN, ip->b + end, left);
	memset(ip->b + SRV6_BLOCK_LEN + left, 0, end - SRV6_BLOCK_LEN);
}

/* The same for a uSID of 16 bits alone, of a switch or host. */
static inline bool srv6_has_next(const struct wire_ip *ip)
{
	return srv6_has_argument(ip, SRV6_USID_BITS + 8 * SRV6_BLOCK_LEN);
}

static inline void srv6_shift(struct wire_ip *ip)
{
	srv6_shift_argument(ip, SRV6_USID_BITS + 8 * SRV6_BLOCK_LEN);
}

/* The uSIDs up to the last that is not zero, in the order of the hops: their number, 0 to 6. */
unsigned srv6_path(const struct wire_ip *ip, uint16_t usids[SRV6_USIDS]);

/* An address of a block (host order) and n uSIDs. -EINVAL if n is 0 or more than 6, or a uSID is 0,
 * which would end the path there. */
int srv6_address(uint32_t block, const uint16_t *usids, unsigned n, struct wire_ip *ip);

#endif
