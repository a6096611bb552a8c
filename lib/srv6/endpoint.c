/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/srv6/endpoint.h"

#include <errno.h>

#include "lib/wire/ip6_ext.h"

enum {
	HOP_LIMIT = offsetof(struct wire_ip6_hdr, hop_limit),
	DST = offsetof(struct wire_ip6_hdr, dst),
	ND_FIRST = 133, /* router solicitation .. redirect (RFC 4861, 4) */
	ND_LAST = 137,
};

static bool is_whole(const uint8_t *ip, size_t len, uint8_t proto)
{
	if (proto == IP_PROTO_IP6)
		return len >= sizeof(struct wire_ip6_hdr) && ip[0] >> 4 == 6 &&
		       get_be16(ip + offsetof(struct wire_ip6_hdr, len)) <=
			       len - sizeof(struct wire_ip6_hdr);
	return len >= sizeof(struct ip4_hdr) && ip[0] >> 4 == 4 &&
	       get_be16(ip + offsetof(struct ip4_hdr, len)) >= sizeof(struct ip4_hdr) &&
	       get_be16(ip + offsetof(struct ip4_hdr, len)) <= len;
}

static enum srv6_drop walk(const uint8_t *ip6, size_t len, struct wire_ip6_ext *ext)
{
	int rc = ip6_ext_walk(ip6, len, ext);

	if (rc == 0)
		return SRV6_OK;
	return rc == -EPROTONOSUPPORT ? SRV6_ROUTING : SRV6_BAD_SRH;
}

static enum srv6_verdict onward(const struct srv6_sid *sid)
{
	return sid->behaviour == SRV6_UA ? SRV6_ADJACENT : SRV6_LOOKUP;
}

static bool is_segment(const struct wire_ip *ip)
{
	return ip->b[0] != 0xff && !wire_ip_is4(ip) && !wire_ip_is_zero(ip);
}

/* The header in front of the SRH names what is behind it, and moves there. */
static void pop(uint8_t *ip6, const struct wire_ip6_ext *ext)
{
	uint8_t *len = ip6 + offsetof(struct wire_ip6_hdr, len);

	ip6[ext->next_off] = ip6[ext->off];
	put_be16(len, (uint16_t)(get_be16(len) - ext->srh_len));
	memmove(ip6 + ext->srh_len, ip6, ext->off);
}

/* RFC 8986, 4.1 and 4.2, for a packet whose SID has no argument (left). */
static enum srv6_drop end(
	const struct srv6_sid *sid, uint8_t *ip6, size_t len, struct srv6_done *done)
{
	struct srh_hdr srh;
	struct wire_ip6_ext ext;
	struct wire_ip next;
	enum srv6_drop drop = walk(ip6, len, &ext);

	if (drop != SRV6_OK)
		return drop;
	if (ext.srh_len == 0) {
		*done = (struct srv6_done){SRV6_ARRIVED, ext.proto, ext.off, 0};
		return SRV6_OK;
	}
	if (ip6[HOP_LIMIT] <= 1)
		return SRV6_HOP_LIMIT;
	memcpy(&srh, ip6 + ext.off, sizeof(srh));
	srh.left--;
	memcpy(next.b, ip6 + ext.off + sizeof(srh) + srh.left * sizeof(next.b), sizeof(next.b));
	if (!is_segment(&next))
		return SRV6_SEGMENT;
	ip6[HOP_LIMIT]--;
	ip6[ext.off + offsetof(struct srh_hdr, left)] = srh.left;
	memcpy(ip6 + DST, next.b, sizeof(next.b));
	*done = (struct srv6_done){.verdict = onward(sid)};
	if (sid->psp && srh.left == 0) {
		pop(ip6, &ext);
		done->front = ext.srh_len;
	}
	return SRV6_OK;
}

/* Rows: inside; columns: outside. In the order of the field's values: Not-ECT, ECT(1), ECT(0), CE.
 */
int srv6_ecn(unsigned inner, unsigned outer)
{
	static const int8_t out[4][4] = {
		[IP_ECN_NOT_ECT] = {IP_ECN_NOT_ECT, IP_ECN_NOT_ECT, IP_ECN_NOT_ECT, -1},
		[IP_ECN_ECT1] = {IP_ECN_ECT1, IP_ECN_ECT1, IP_ECN_ECT1, IP_ECN_CE},
		[IP_ECN_ECT0] = {IP_ECN_ECT0, IP_ECN_ECT1, IP_ECN_ECT0, IP_ECN_CE},
		[IP_ECN_CE] = {IP_ECN_CE, IP_ECN_CE, IP_ECN_CE, IP_ECN_CE},
	};

	return out[inner & IP_ECN_MASK][outer & IP_ECN_MASK];
}

/* Its protection is that no router sends it on (RFC 4861, 7.1), which a tunnel would undo. */
static bool is_nd(const uint8_t *ip6, size_t len)
{
	struct wire_ip6_ext ext;

	return ip6_ext_walk(ip6, len, &ext) == 0 && ext.proto == IP_PROTO_ICMP6 &&
	       ext.off < ext.end && ip6[ext.off] >= ND_FIRST && ip6[ext.off] <= ND_LAST;
}

static enum srv6_drop unpack(const struct srv6_sid *sid, uint8_t *ip6,
	const struct wire_ip6_ext *ext, struct srv6_done *done)
{
	uint8_t *inner = ip6 + ext->off, outer_tos = ip_tos(ip6), tos;
	const size_t len = (size_t)ext->end - ext->off;
	int ecn;

	if (!is_whole(inner, len, ext->proto))
		return SRV6_INNER;
	if (ext->proto == IP_PROTO_IP6 && is_nd(inner, len))
		return SRV6_INNER_ND;
	tos = ip_tos(inner);
	ecn = srv6_ecn(tos, outer_tos);
	if (ecn < 0)
		return SRV6_ECN;
	if (sid->outer_dscp)
		tos = outer_tos;
	ip_put_tos(inner, (uint8_t)((tos & ~IP_ECN_MASK) | ecn));
	*done = (struct srv6_done){SRV6_UNPACKED, ext->proto, 0, ext->off};
	return SRV6_OK;
}

static enum srv6_drop dt46(
	const struct srv6_sid *sid, uint8_t *ip6, size_t len, struct srv6_done *done)
{
	struct wire_ip6_ext ext;
	enum srv6_drop drop = walk(ip6, len, &ext);

	if (drop != SRV6_OK)
		return drop;
	if (ext.srh_len != 0)
		return SRV6_SEGMENTS;
	if (ext.proto == IP_PROTO_IP4 || ext.proto == IP_PROTO_IP6)
		return unpack(sid, ip6, &ext, done);
	*done = (struct srv6_done){SRV6_ARRIVED, ext.proto, ext.off, 0};
	return SRV6_OK;
}

enum srv6_drop srv6_endpoint(
	const struct srv6_sid *sid, uint8_t *ip6, size_t len, struct srv6_done *done)
{
	struct wire_ip dst;
	bool more;

	if (!is_whole(ip6, len, IP_PROTO_IP6))
		return SRV6_BAD_SRH;
	if (srv6_next_usid(sid, ip6, &dst)) {
		*done = (struct srv6_done){.verdict = onward(sid)};
		return SRV6_OK;
	}
	memcpy(dst.b, ip6 + DST, sizeof(dst.b));
	more = srv6_has_argument(&dst, sid->bits);
	switch (sid->behaviour) {
	case SRV6_UN:
	case SRV6_UA: /* without a hop for the next one */
		return more ? SRV6_HOP_LIMIT : end(sid, ip6, len, done);
	case SRV6_DT46:
		return more ? SRV6_SEGMENTS : dt46(sid, ip6, len, done);
	default:
		return end(sid, ip6, len, done);
	}
}
