/* SPDX-License-Identifier: BSD-3-Clause */
/* What is in an IP packet, for filters: unlike wire_parse_l3, which reads what forwarding needs,
 * this looks behind IPv4's options, IPv6's extension headers and into first fragments, so that none
 * of them hides a port. */
#ifndef WIRE_L4_H
#define WIRE_L4_H

#include "lib/wire/frame.h"

struct wire_l4 {
	/* Of what is behind the headers that could be passed over. Of an IPv6 packet's later
	 * fragment the number that it gives itself, which its receiver does not look at (RFC 8200,
	 * 4.5); if that is an extension header's, IP_PROTO_FRAGMENT: what is in it is not known. */
	uint8_t proto;
	bool has_ports;
	uint16_t sport, dport; /* 0 without */
};

/* pkt is what wire_parse_l3 made of the frame, and said WIRE_OK (or PARSE_FRAG). Ports are those of
 * TCP and UDP. A later fragment, a header that is cut off, a segment routing header with segments
 * left, an extension header that is not known and a lying length have none. */
struct wire_l4 wire_l4(const uint8_t *frame, const struct wire_pkt *pkt);

#endif
