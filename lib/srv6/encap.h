/* SPDX-License-Identifier: BSD-3-Clause */
/* The head of a tunnel: H.Encaps.Red (RFC 8986, 5.2), an outer IPv6 header and, if the path has
 * more than one segment, a SRH without the first of them. Pure functions; any thread. */
#ifndef SRV6_ENCAP_H
#define SRV6_ENCAP_H

#include "lib/srv6/drops.h"
#include "lib/wire/ip6_ext.h"

enum {
	SRV6_MAX_SEGMENTS = 4,
	SRV6_ENCAP_HOP_LIMIT = 64,
	SRV6_ENCAP_MAX = (int)sizeof(struct wire_ip6_hdr) + (int)sizeof(struct srh_hdr) +
			 16 * (SRV6_MAX_SEGMENTS - 1),
};

struct srv6_encap {
	struct wire_ip src;
	uint8_t n; /* 1 to SRV6_MAX_SEGMENTS, in the order of the path */
	struct wire_ip segment[SRV6_MAX_SEGMENTS];
};

/* Bytes that come in front of the packet. */
static inline unsigned srv6_encap_len(const struct srv6_encap *e)
{
	return (unsigned)sizeof(struct wire_ip6_hdr) +
	       (e->n > 1 ? (unsigned)sizeof(struct srh_hdr) + 16u * (e->n - 1u) : 0);
}

/* inner: an IP packet of len bytes that is being forwarded: its TTL or hop limit is decremented.
 * out: srv6_encap_len bytes, which may end where inner begins. Traffic class (RFC 6040, 4.1: normal
 * mode) and flow label are the inner packet's; of an IPv4 packet the label is a hash of addresses,
 * protocol and ports. Hop limit SRV6_ENCAP_HOP_LIMIT, which counts from the next node. SRV6_OK, or
 * why not, and nothing is written. */
enum srv6_drop srv6_encap(const struct srv6_encap *e, uint8_t *inner, size_t len, uint8_t *out);

#endif
