/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/srv6/encap.h"

#include "lib/wire/bytes.h"
#include "lib/wire/ip_fragment.h"

enum { LABEL_MASK = 0xfffff };

static uint32_t mix(uint32_t h, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 16777619u; /* FNV-1a */
	return h;
}

/* Packets of a flow stay together (RFC 6437, 3), fragments of a datagram too. */
static uint32_t label4(const uint8_t *ip, size_t len)
{
	const size_t header = (ip[0] & 15) * 4u;
	const uint8_t proto = ip[offsetof(struct ip4_hdr, proto)];
	uint32_t h = mix(2166136261u, ip + offsetof(struct ip4_hdr, src), 8);

	h = mix(h, &proto, 1);
	if ((proto == IP_PROTO_UDP || proto == IP_PROTO_TCP) && len >= header + 4 &&
		!(get_be16(ip + offsetof(struct ip4_hdr, frag)) & IP4_FRAG_MASK))
		h = mix(h, ip + header, 4);
	return (h ^ h >> 20) & LABEL_MASK;
}

static bool is_ip(const uint8_t *ip, size_t len)
{
	if (len < sizeof(struct ip4_hdr))
		return false;
	if (ip[0] >> 4 == 4)
		return (ip[0] & 15) * 4u >= sizeof(struct ip4_hdr) && (ip[0] & 15) * 4u <= len;
	return ip[0] >> 4 == 6 && len >= sizeof(struct wire_ip6_hdr);
}

/* Segment List[0] is the last of the path; the first is in the destination only. */
static void put_srh(const struct srv6_encap *e, uint8_t next, uint8_t *out)
{
	const uint8_t n = (uint8_t)(e->n - 1);
	const struct srh_hdr srh = {.next = next,
		.len = (uint8_t)(2 * n),
		.type = IP6_ROUTING_SRH,
		.left = n,
		.last = (uint8_t)(n - 1)};

	memcpy(out, &srh, sizeof(srh));
	for (unsigned i = 0; i < n; i++)
		memcpy(out + sizeof(srh) + 16 * i, e->segment[e->n - 1 - i].b, 16);
}

enum srv6_drop srv6_encap(const struct srv6_encap *e, uint8_t *inner, size_t len, uint8_t *out)
{
	const unsigned own = srv6_encap_len(e);
	const size_t payload = own - sizeof(struct wire_ip6_hdr) + len;
	struct wire_ip6_hdr h = {.hop_limit = SRV6_ENCAP_HOP_LIMIT};
	uint32_t label;
	uint8_t next;

	if (!is_ip(inner, len))
		return SRV6_INNER;
	if (payload > UINT16_MAX)
		return SRV6_TOO_LONG;
	if (ip_ttl(inner) <= 1)
		return SRV6_HOP_LIMIT;
	next = inner[0] >> 4 == 4 ? IP_PROTO_IP4 : IP_PROTO_IP6;
	label = next == IP_PROTO_IP4 ? label4(inner, len) : get_be32(inner) & LABEL_MASK;
	ip_put_ttl(inner, (uint8_t)(ip_ttl(inner) - 1));
	put_be32(h.vtc_flow, 6u << 28 | (uint32_t)ip_tos(inner) << 20 | label);
	put_be16(h.len, (uint16_t)payload);
	h.next = e->n > 1 ? IP_PROTO_ROUTING : next;
	memcpy(h.src, e->src.b, 16);
	memcpy(h.dst, e->segment[0].b, 16);
	memcpy(out, &h, sizeof(h));
	if (e->n > 1)
		put_srh(e, next, out + sizeof(h));
	return SRV6_OK;
}
