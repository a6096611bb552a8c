/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node does with a packet whose destination is one of its SIDs. Pure functions of the
 * packet's bytes and the entry of the SID table that it has matched; any thread. */
#ifndef SRV6_ENDPOINT_H
#define SRV6_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/srv6/drops.h"
#include "lib/srv6/usid.h"

enum srv6_behaviour {
	SRV6_UN,   /* End with NEXT-CSID (RFC 9800, 4.1.1) */
	SRV6_UA,   /* End.X with NEXT-CSID (RFC 9800, 4.1.2) */
	SRV6_END,  /* End (RFC 8986, 4.1) */
	SRV6_DT46, /* End.DT46 (RFC 8986, 4.8), of one table: the switch's routes */
};

struct srv6_sid {
	uint8_t behaviour;
	uint8_t bits;    /* of the prefix; uN, uA: 48 or 64 */
	bool psp;        /* penultimate segment pop of the SRH (RFC 8986, 4.16.1); not DT46 */
	bool outer_dscp; /* DT46: the inner packet gets the outer one's DSCP, which a switch on
			    the way may have changed, and not only its congestion mark */
};

enum srv6_verdict {
	SRV6_LOOKUP,   /* to the new destination, by the routes */
	SRV6_ADJACENT, /* to the neighbour of the SID */
	SRV6_ARRIVED,  /* for the node itself: the upper layer is at `upper` */
	SRV6_UNPACKED, /* the inner packet is what is left */
};

struct srv6_done {
	enum srv6_verdict verdict;
	uint8_t proto;  /* ARRIVED: of the upper layer; UNPACKED: IP_PROTO_IP4 or _IP6 */
	uint16_t upper; /* ARRIVED: offset */
	uint16_t front; /* bytes at ip6 that are not the packet's any more */
};

/* ip6: an IPv6 header, and len bytes from there. SRV6_OK, *done set and the packet changed as the
 * behaviour says (destination, hop limit, segments left, SRH popped, ECN of the inner packet by RFC
 * 6040, 4.2); or why it is to be dropped, and neither. The hop limit is decremented with LOOKUP and
 * ADJACENT, and must not be again by whoever sends the packet; an unpacked packet's is not.
 *
 * Not done: TLVs are passed over, a HMAC is not verified; the O-flag is ignored. */
enum srv6_drop srv6_endpoint(
	const struct srv6_sid *sid, uint8_t *ip6, size_t len, struct srv6_done *done);

/* What srv6_endpoint does to most packets, inline: uN or uA, and another uSID follows. *next is the
 * new destination then, as it is in the packet, and the verdict is LOOKUP, or ADJACENT of uA.
 * False: the packet is as it was, and srv6_endpoint says what becomes of it. ip6: the header of a
 * packet whose length is right. */
static inline bool srv6_next_usid(const struct srv6_sid *sid, uint8_t *ip6, struct wire_ip *next)
{
	uint8_t *hop_limit = ip6 + offsetof(struct wire_ip6_hdr, hop_limit);
	struct wire_ip *dst = (struct wire_ip *)(ip6 + offsetof(struct wire_ip6_hdr, dst));
	uint64_t left[2];

	if (sid->behaviour > SRV6_UA || *hop_limit <= 1 || !srv6_shift_usids(dst, sid->bits, left))
		return false;
	--*hop_limit;
	put_be64(dst->b, left[0]);
	put_be64(dst->b + 8, left[1]);
	put_be64(next->b, left[0]);
	put_be64(next->b + 8, left[1]);
	return true;
}

/* RFC 6040, 4.2: the ECN field of a packet that leaves a tunnel, or -1: to be dropped. */
int srv6_ecn(unsigned inner, unsigned outer);

#endif
