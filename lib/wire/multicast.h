/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: their addresses and the MAC addresses that these stand for. */
#ifndef WIRE_MULTICAST_H
#define WIRE_MULTICAST_H

#include "lib/wire/ip.h"

/* RFC 1112 4, RFC 4291 2.7. */
static inline bool wire_is_multicast(const struct wire_ip *ip)
{
	return ip->b[0] == 0xff || (wire_ip_is4(ip) && (ip->b[12] & 0xf0) == 0xe0);
}

/* A group that stays on its link or in its host, which no router forwards: 224.0.0.0/24 (RFC 5771
 * 4), scopes 0 to 2 (RFC 7346). ip is multicast. */
static inline bool wire_multicast_stays(const struct wire_ip *ip)
{
	static const uint8_t local[3] = {0xe0};

	if (wire_ip_is4(ip))
		return memcmp(ip->b + 12, local, sizeof(local)) == 0;
	return (ip->b[1] & 0xf) <= 2;
}

/* 01:00:5e and 23 bits of the address (RFC 1112 6.4), 33:33 and 32 (RFC 2464 7). ip is multicast.
 */
static inline void wire_multicast_mac(const struct wire_ip *ip, uint8_t mac[6])
{
	memcpy(mac + 2, ip->b + 12, 4);
	mac[0] = 0x33;
	mac[1] = 0x33;
	if (!wire_ip_is4(ip))
		return;
	mac[0] = 0x01;
	mac[1] = 0x00;
	mac[2] = 0x5e;
	mac[3] &= 0x7f;
}

#endif
