/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/wire only: the parser's part for address resolution, off the packet path. */
#ifndef WIRE_NEIGH_H
#define WIRE_NEIGH_H

#include "lib/wire/frame.h"

enum { ND_NS = 135, ND_NA = 136, ND_HOP_LIMIT = 255 };

/* Ethernet and l3_off are parsed. kind becomes WIRE_ARP for Ethernet/IPv4 ARP, else WIRE_L2. */
enum wire_drop parse_arp(const uint8_t *frame, size_t len, struct wire_pkt *pkt);

/* An ICMPv6 message of type ND_NS or ND_NA: kind becomes WIRE_ND_NS or WIRE_ND_NA if it passes the
 * validation of RFC 4861, 7.1; otherwise it stays WIRE_IP. */
void parse_nd(const uint8_t *frame, struct wire_pkt *pkt);

#endif
