/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses that stay on their link (RFC 1122 3.2.1.3, RFC 4291 2.4): never routed to, nor from.
 * Multicast is: to groups (dataplane/mcast), but not from them. */
#ifndef DATAPLANE_IP_STAYS_H
#define DATAPLANE_IP_STAYS_H

#include <string.h>

#include "lib/wire/ip.h"

static inline bool ip4_stays(const uint8_t *b)
{
	return b[0] == 0 || b[0] == 127 || b[0] >= 224 || (b[0] == 169 && b[1] == 254);
}

static inline bool ip6_stays(const uint8_t *b)
{
	static const uint8_t zero[15];

	return b[0] == 0xff || (b[0] == 0xfe && (b[1] & 0xc0) == 0x80) ||
	       (memcmp(b, zero, sizeof(zero)) == 0 && b[15] <= 1);
}

/* By its first byte alone: none of those, no group and not IPv4. So are nearly all of IPv6. */
static inline bool ip6_is_plain(const struct wire_ip *ip)
{
	return (uint8_t)(ip->b[0] - 1) < 0xfd;
}

static inline bool ip_stays(const struct wire_ip *ip)
{
	if (ip6_is_plain(ip))
		return false;
	return wire_ip_is4(ip) ? ip4_stays(ip->b + 12) : ip6_stays(ip->b);
}

#endif
