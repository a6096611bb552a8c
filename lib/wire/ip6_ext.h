/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv6 extension headers up to the first thing that is none (RFC 8200, 4), and the segment routing
 * header among them (RFC 8754, 2). Reads only; changing a packet is the caller's. */
#ifndef WIRE_IP6_EXT_H
#define WIRE_IP6_EXT_H

#include "lib/wire/ip.h"

enum {
	IP_PROTO_HOP_OPTIONS = 0,
	IP_PROTO_IP4 = 4,
	IP_PROTO_IP6 = 41,
	IP_PROTO_ROUTING = 43,
	IP_PROTO_DST_OPTIONS = 60,
	IP6_ROUTING_SRH = 4,
};

struct srh_hdr {
	uint8_t next;
	uint8_t len; /* units of 8 bytes, without the first */
	uint8_t type;
	uint8_t left; /* segments left: index of the active one */
	uint8_t last; /* index of the last entry of the list */
	uint8_t flags;
	uint8_t tag[2];
	/* then the segments, the last of the path first, 16 bytes each, then TLVs */
};
static_assert(sizeof(struct srh_hdr) == 8, "SRH without segments is 8 bytes");

/* Offsets count from the IPv6 header. Not ip6_ext: <netinet/ip6.h> has that name. */
struct wire_ip6_ext {
	uint16_t end;      /* of the packet, as its header says */
	uint16_t off;      /* of what follows the extension headers, or of the SRH */
	uint16_t next_off; /* of the byte that says what is at off */
	uint8_t proto;     /* that byte */
	uint16_t srh_len;  /* bytes; 0: no SRH with segments left */
};

/* Such a header is one that these pass over. */
static inline bool ip6_is_ext(uint8_t proto)
{
	return proto == IP_PROTO_HOP_OPTIONS || proto == IP_PROTO_ROUTING ||
	       proto == IP_PROTO_DST_OPTIONS;
}

/* Walks hop-by-hop and destination options and routing headers. A routing header without segments
 * left is passed over, whatever its type (RFC 8200, 4.4); the walk ends at a SRH that has some, at
 * the first other header, or at the end. TLVs and options are not looked at. 0; -EBADMSG: a length
 * that does not fit the packet, or a SRH whose last entry or segments left (at most one above the
 * last entry: a reduced list, RFC 8754, 4.1.1) do not fit its length; -EPROTONOSUPPORT: a routing
 * header of another type has segments left. len: bytes at ip6. */
int ip6_ext_walk(const uint8_t *ip6, size_t len, struct wire_ip6_ext *ext);

/* The same, and on behind the fragment headers of whole datagrams and first fragments, for there
 * may be more extension headers (RFC 8200, 4.5). It ends at the header of a later fragment, or at
 * one that is cut off: proto is IP_PROTO_FRAGMENT then, and never else. Of a packet whose IPv6
 * header is right ext says where it ended, whatever is returned. */
int ip6_ext_walk_into(const uint8_t *ip6, size_t len, struct wire_ip6_ext *ext);

#endif
