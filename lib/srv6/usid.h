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

/* An address as a number. In registers: one that is moved by bytes in memory and then read as a
 * whole makes the CPU wait for its stores. */
static inline unsigned __int128 srv6_number(const struct wire_ip *ip)
{
	return (unsigned __int128)get_be64(ip->b) << 64 | get_be64(ip->b + 8);
}

static inline void srv6_number_put(struct wire_ip *ip, unsigned __int128 number)
{
	put_be64(ip->b, (uint64_t)(number >> 64));
	put_be64(ip->b + 8, (uint64_t)number);
}

/* What follows a SID's prefix of so many bits, from the highest bit on. */
static inline unsigned __int128 srv6_argument(unsigned __int128 number, unsigned bits)
{
	return bits < 128 ? number << bits : 0;
}

/* What follows the SID takes its place behind the block, zeros come in at the end. bits: of the
 * SID's prefix, from SRV6_BLOCK_LEN * 8 on. */
static inline unsigned __int128 srv6_shifted(unsigned __int128 number, unsigned bits)
{
	const unsigned __int128 behind = ~(unsigned __int128)0 >> 8 * SRV6_BLOCK_LEN;

	return (number & ~behind) | srv6_argument(number, bits) >> 8 * SRV6_BLOCK_LEN;
}

/* The same of a SID of one or two uSIDs (48 or 64 bits), which most packets meet: in halves, each
 * of which is shifted by less than its width. False, with *shifted the block alone: nothing
 * follows. */
static inline bool srv6_shift_usids(const struct wire_ip *ip, unsigned bits, uint64_t shifted[2])
{
	const uint64_t begin = get_be64(ip->b), rest = get_be64(ip->b + 8);
	const unsigned by = bits - 8 * SRV6_BLOCK_LEN;
	const uint32_t behind = (uint32_t)(begin << by);

	shifted[0] = (begin & ~(uint64_t)UINT32_MAX) | behind | rest >> (64 - by);
	shifted[1] = rest << by;
	return (behind | rest) != 0;
}

/* Whether a bit behind a SID's prefix is set: something follows it. Looked at before the shift (RFC
 * 9800, 4.1.1): if not, the packet has arrived, or its SRH has the next segment. */
static inline bool srv6_has_argument(const struct wire_ip *ip, unsigned bits)
{
	return srv6_argument(srv6_number(ip), bits) != 0;
}

/* The same for a uSID of 16 bits alone, of a switch or host. */
static inline bool srv6_has_next(const struct wire_ip *ip)
{
	return srv6_has_argument(ip, SRV6_USID_BITS + 8 * SRV6_BLOCK_LEN);
}

static inline void srv6_shift(struct wire_ip *ip)
{
	srv6_number_put(ip, srv6_shifted(srv6_number(ip), SRV6_USID_BITS + 8 * SRV6_BLOCK_LEN));
}

/* The uSIDs up to the last that is not zero, in the order of the hops: their number, 0 to 6. */
unsigned srv6_path(const struct wire_ip *ip, uint16_t usids[SRV6_USIDS]);

/* An address of a block (host order) and n uSIDs. -EINVAL if n is 0 or more than 6, or a uSID is 0,
 * which would end the path there. */
int srv6_address(uint32_t block, const uint16_t *usids, unsigned n, struct wire_ip *ip);

#endif
