/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/icmp_error.h"

#include <errno.h>

#include "lib/wire/bytes.h"
#include "lib/wire/ip6_ext.h"
#include "lib/wire/ip_fragment.h"
#include "lib/wire/multicast.h"

enum {
	ICMP_LEN = 8, /* type, code, checksum, and four bytes of which some errors use some */
	TTL = 64,
	TOS_CONTROL = 0xc0,  /* RFC 1812, 4.3.2.5 */
	ICMP6_QUERIES = 128, /* types below are errors */
	ICMP6_REDIRECT = 137,
};

static const struct {
	uint8_t type4, code4, type6, code6;
} codes[] = {
	[WIRE_ICMP_TIME_EXCEEDED] = {11, 0, 3, 0},
	[WIRE_ICMP_NO_ROUTE] = {3, 0, 1, 0},
	[WIRE_ICMP_NO_NEIGHBOUR] = {3, 1, 1, 3},
	[WIRE_ICMP_TOO_BIG] = {3, 4, 2, 0},
	[WIRE_ICMP_SEGMENTS_LEFT] = {12, 0, 4, 0},
	[WIRE_ICMP_UPPER_LAYER] = {12, 0, 4, 4},
};

/* Unreachable, source quench, redirect, time exceeded, parameter problem. */
static bool is_error4(uint8_t type)
{
	return (type >= 3 && type <= 5) || type == 11 || type == 12;
}

static bool due4(const uint8_t *ip, size_t len, enum wire_icmp_error error)
{
	const size_t header = (ip[0] & 15) * 4u;
	const uint16_t frag = get_be16(ip + offsetof(struct ip4_hdr, frag));

	if (frag & IP4_FRAG_OFFSET || (error == WIRE_ICMP_TOO_BIG && !(frag & IP4_DF)))
		return false;
	if (get_be32(ip + offsetof(struct ip4_hdr, dst)) == UINT32_MAX)
		return false;
	if (ip[offsetof(struct ip4_hdr, proto)] != IP_PROTO_ICMP)
		return true;
	return header < len && !is_error4(ip[header]);
}

static bool due6(const uint8_t *ip, size_t len, enum wire_icmp_error error)
{
	struct wire_ip6_ext ext = {0};

	/* Behind an SRH that is wrong nobody looks: there may be another error. */
	if (ip6_ext_walk_into(ip, len, &ext) < 0)
		return error == WIRE_ICMP_SEGMENTS_LEFT && ext.off > 0 && ext.off < len &&
		       ip[ext.off] != IP_PROTO_ICMP6;
	if (ext.proto == IP_PROTO_FRAGMENT) /* a later one */
		return false;
	if (ext.proto != IP_PROTO_ICMP6)
		return true;
	return ext.off < len && ip[ext.off] >= ICMP6_QUERIES && ip[ext.off] != ICMP6_REDIRECT;
}

bool wire_icmp_error_due(
	const uint8_t *frame, const struct wire_pkt *about, enum wire_icmp_error error)
{
	const uint8_t *ip = frame + about->l3_off;
	const size_t len = (size_t)(about->end - about->l3_off);

	if (frame[0] & 1 || wire_is_multicast(&about->dst))
		return false;
	return about->ip_ver == 4 ? due4(ip, len, error) : due6(ip, len, error);
}

static void put_ip4(uint8_t *out, const struct wire_ip *src, const struct wire_ip *dst, size_t len)
{
	struct ip4_hdr ip = {
		.ver_ihl = 0x45, .tos = TOS_CONTROL, .ttl = TTL, .proto = IP_PROTO_ICMP};

	put_be16(ip.len, (uint16_t)(sizeof(ip) + len));
	put_be16(ip.frag, IP4_DF);
	memcpy(ip.src, src->b + 12, sizeof(ip.src));
	memcpy(ip.dst, dst->b + 12, sizeof(ip.dst));
	put_be16(ip.checksum, (uint16_t)~ip_sum(&ip, sizeof(ip), 0));
	memcpy(out, &ip, sizeof(ip));
}

static void put_ip6(uint8_t *out, const struct wire_ip *src, const struct wire_ip *dst, size_t len)
{
	struct wire_ip6_hdr ip = {.vtc_flow = {0x60}, .next = IP_PROTO_ICMP6, .hop_limit = TTL};

	put_be16(ip.len, (uint16_t)len);
	memcpy(ip.src, src->b, sizeof(ip.src));
	memcpy(ip.dst, dst->b, sizeof(ip.dst));
	memcpy(out, &ip, sizeof(ip));
}

static void put_ethernet(uint8_t *out, const struct wire_icmp_way *way, bool ip4)
{
	const size_t l3 = wire_l3_off(way->vlan);

	memcpy(out, way->dmac, 6);
	memcpy(out + 6, way->smac, 6);
	if (way->vlan != 0) {
		put_be16(out + 12, ETH_TYPE_VLAN);
		put_be16(out + 14, way->vlan);
	}
	put_be16(out + l3 - 2, ip4 ? ETH_TYPE_IP4 : ETH_TYPE_IP6);
}

int wire_build_icmp_error(uint8_t *out, size_t cap, const struct wire_icmp_way *way,
	enum wire_icmp_error error, uint16_t value, const uint8_t *frame,
	const struct wire_pkt *about)
{
	const bool ip4 = about->ip_ver == 4;
	const size_t header = ip4 ? sizeof(struct ip4_hdr) : sizeof(struct wire_ip6_hdr);
	const size_t most = ip4 ? WIRE_ICMP_ERROR_MAX4 : WIRE_ICMP_ERROR_MAX6;
	const size_t l3 = wire_l3_off(way->vlan), l4 = l3 + header;
	size_t quote = (size_t)(about->end - about->l3_off), len;
	uint8_t *icmp = out + l4;

	quote = quote < most - header - ICMP_LEN ? quote : most - header - ICMP_LEN;
	len = ICMP_LEN + quote;
	if (cap < l4 + len)
		return -ENOSPC;
	put_ethernet(out, way, ip4);
	memset(icmp, 0, ICMP_LEN);
	icmp[0] = ip4 ? codes[error].type4 : codes[error].type6;
	icmp[1] = ip4 ? codes[error].code4 : codes[error].code6;
	if (error >= WIRE_ICMP_TOO_BIG)
		put_be16(icmp + 6, value);
	memcpy(icmp + ICMP_LEN, frame + about->l3_off, quote);
	if (ip4) {
		put_ip4(out + l3, &way->src, &about->src, len);
		put_be16(icmp + 2, (uint16_t)~ip_sum(icmp, len, 0));
	} else {
		put_ip6(out + l3, &way->src, &about->src, len);
		put_be16(icmp + 2,
			ip_l4_checksum(&way->src, &about->src, IP_PROTO_ICMP6, icmp, len));
	}
	return (int)(l4 + len);
}
