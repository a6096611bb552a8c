/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP errors of a router: RFC 792, 1191 and 1812, 4.3 for IPv4, RFC 4443 for IPv6, and of a
 * segment endpoint: RFC 8986, 4.1 and 4.1.1. */
#ifndef WIRE_ICMP_ERROR_H
#define WIRE_ICMP_ERROR_H

#include "lib/wire/frame.h"

enum wire_icmp_error {
	WIRE_ICMP_TIME_EXCEEDED,
	WIRE_ICMP_NO_ROUTE,
	WIRE_ICMP_NO_NEIGHBOUR, /* host unreachable; address unreachable */
	WIRE_ICMP_TOO_BIG,      /* fragmentation needed and DF set; packet too big */
	/* Parameter problems, of IPv6 alone: */
	WIRE_ICMP_SEGMENTS_LEFT, /* erroneous header field */
	WIRE_ICMP_UPPER_LAYER    /* SR upper-layer header error */
};

/* The longest error, as an IP packet: 576 bytes (RFC 1812, 4.3.2.3), or IPv6's least MTU. */
enum { WIRE_ICMP_ERROR_MAX4 = 576, WIRE_ICMP_ERROR_MAX6 = 1280 };

/* Whether there may be an error about this packet that wire_parse has read the IP header of (RFC
 * 1812, 4.3.2.7; RFC 4443, 2.4 e): not about another error, a fragment that is not the first, or
 * what was for many or in a frame for many; too big in IPv4: only with DF. Its source is the
 * caller's to judge. */
bool wire_icmp_error_due(
	const uint8_t *frame, const struct wire_pkt *about, enum wire_icmp_error error);

/* Where an error goes. */
struct wire_icmp_way {
	uint8_t dmac[6], smac[6];
	uint16_t vlan;
	struct wire_ip src; /* the router's, of the family of the packet */
};

/* The error about that packet, to its source: quotes it from its IP header on, as far as there is
 * room. value: with TOO_BIG the MTU, with parameter problems the offset of what is wrong, from the
 * IP header on. The frame's length, or -ENOSPC. */
int wire_build_icmp_error(uint8_t *out, size_t cap, const struct wire_icmp_way *way,
	enum wire_icmp_error error, uint16_t value, const uint8_t *frame,
	const struct wire_pkt *about);

#endif
