/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of a packet whose outer IPv6 header is another now. */
#ifndef DATAPLANE_SRV6_AGAIN_H
#define DATAPLANE_SRV6_AGAIN_H

#include "lib/wire/bytes.h"
#include "lib/wire/frame.h"

/* The fields that forwarding reads; l3_off and end are right already. */
static inline void srv6_again(const uint8_t *frame, struct wire_pkt *pkt)
{
	const uint8_t *ip6 = frame + pkt->l3_off;

	pkt->kind = WIRE_IP;
	pkt->ip_ver = 6;
	pkt->tos = (uint8_t)(get_be16(ip6) >> 4);
	pkt->ttl = ip6[offsetof(struct wire_ip6_hdr, hop_limit)];
	pkt->ip_proto = ip6[offsetof(struct wire_ip6_hdr, next)];
	pkt->l4_off = (uint16_t)(pkt->l3_off + sizeof(struct wire_ip6_hdr));
	memcpy(pkt->src.b, ip6 + offsetof(struct wire_ip6_hdr, src), sizeof(pkt->src.b));
	memcpy(pkt->dst.b, ip6 + offsetof(struct wire_ip6_hdr, dst), sizeof(pkt->dst.b));
}

#endif
