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

/* Whether something follows the first uSID. Looked at before the shift (RFC 9800, 4.1.1): if not,
 * the packet has arrived, or its SRH has the next segment. */
static inline bool srv6_has_next(const struct wire_ip *ip)
{
	static const uint8_t none[16 - SRV6_BLOCK_LEN - 2];

	return memcmp(ip->b + SRV6_BLOCK_LEN + 2, none, sizeof(none)) != 0;
}

/* uN: the next uSID takes the place of the first, zeros come in at the end. */
static inline void srv6_shift(struct wire_ip *ip)
{
	memmove(ip->b + SRV6_BLOCK_LEN, ip->b + SRV6_BLOCK_LEN + 2, 16 - SRV6_BLOCK_LEN - 2);
	put_be16(ip->b + 14, 0);
}

/* The uSIDs up to the last that is not zero, in the order of the hops: their number, 0 to 6. */
unsigned srv6_path(const struct wire_ip *ip, uint16_t usids[SRV6_USIDS]);

/* An address of a block (host order) and n uSIDs. -EINVAL if n is 0 or more than 6, or a uSID is 0,
 * which would end the path there. */
int srv6_address(uint32_t block, const uint16_t *usids, unsigned n, struct wire_ip *ip);

#endif
