/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP (RFC 826) and IPv6 neighbour discovery (RFC 4861): parsing and building. */
#include "lib/wire/neigh.h"

#include <errno.h>

#include "lib/wire/bytes.h"
#include "lib/wire/checksum.h"

struct arp_pkt {
	uint8_t htype[2], ptype[2];
	uint8_t hlen, plen;
	uint8_t op[2];
	uint8_t sha[6], spa[4];
	uint8_t tha[6], tpa[4];
};
static_assert(sizeof(struct arp_pkt) == 28, "ARP for Ethernet and IPv4 is 28 bytes");

/* Solicitation and advertisement have the same shape. */
struct nd_pkt {
	uint8_t type, code;
	uint8_t checksum[2];
	uint8_t flags; /* of an advertisement */
	uint8_t reserved[3];
	uint8_t target[16];
};
static_assert(sizeof(struct nd_pkt) == 24, "NS and NA are 24 bytes without options");

struct nd_lladdr_opt {
	uint8_t type;
	uint8_t units; /* of 8 bytes */
	uint8_t mac[6];
};
static_assert(sizeof(struct nd_lladdr_opt) == 8, "link-layer address option is 8 bytes");

enum {
	ARP_HTYPE_ETHERNET = 1,
	ND_OPT_SOURCE_LLADDR = 1,
	ND_OPT_TARGET_LLADDR = 2,
	NA_SOLICITED = 0x40,
	NA_OVERRIDE = 0x20,
};

enum wire_drop parse_arp(const uint8_t *frame, size_t len, struct wire_pkt *pkt)
{
	struct arp_pkt arp;

	if (len - pkt->l3_off < sizeof(arp))
		return WIRE_PARSE_SHORT;
	memcpy(&arp, frame + pkt->l3_off, sizeof(arp));
	if (get_be16(arp.htype) != ARP_HTYPE_ETHERNET || get_be16(arp.ptype) != ETH_TYPE_IP4 ||
		arp.hlen != sizeof(arp.sha) || arp.plen != sizeof(arp.spa))
		return WIRE_OK;
	pkt->kind = WIRE_ARP;
	pkt->arp_op = get_be16(arp.op);
	pkt->src = wire_ip_from4(get_be32(arp.spa));
	pkt->dst = wire_ip_from4(get_be32(arp.tpa));
	pkt->end = (uint16_t)(pkt->l3_off + sizeof(arp));
	memcpy(pkt->arp_sha, arp.sha, sizeof(arp.sha));
	return WIRE_OK;
}

/* Finds the option that belongs to the message's type. False if the options are malformed. */
static bool parse_nd_options(const uint8_t *p, size_t len, uint8_t wanted, struct wire_pkt *pkt)
{
	struct nd_lladdr_opt opt;

	while (len >= sizeof(opt)) {
		size_t opt_len;

		memcpy(&opt, p, sizeof(opt));
		opt_len = (size_t)opt.units * 8;
		if (opt_len == 0 || opt_len > len)
			return false;
		if (opt.type == wanted && opt_len == sizeof(opt)) {
			memcpy(pkt->nd_lladdr, opt.mac, sizeof(opt.mac));
			pkt->has_lladdr = 1;
		}
		p += opt_len;
		len -= opt_len;
	}
	return len == 0;
}

void parse_nd(const uint8_t *frame, struct wire_pkt *pkt)
{
	const uint8_t *p = frame + pkt->l4_off;
	size_t len = (size_t)(pkt->end - pkt->l4_off);
	struct nd_pkt nd;

	if (len < sizeof(nd) || pkt->ttl != ND_HOP_LIMIT)
		return;
	memcpy(&nd, p, sizeof(nd));
	if (nd.code != 0 || nd.target[0] == 0xff ||
		ip_l4_sum(&pkt->src, &pkt->dst, IP_PROTO_ICMP6, p, len) != 0xffff)
		return;
	if (!parse_nd_options(p + sizeof(nd), len - sizeof(nd),
		    nd.type == ND_NS ? ND_OPT_SOURCE_LLADDR : ND_OPT_TARGET_LLADDR, pkt)) {
		pkt->has_lladdr = 0;
		return;
	}
	memcpy(pkt->nd_target.b, nd.target, sizeof(nd.target));
	pkt->kind = nd.type == ND_NS ? WIRE_ND_NS : WIRE_ND_NA;
}

/* Returns the length of the Ethernet header. */
static size_t put_eth(
	uint8_t *out, const uint8_t dmac[6], const uint8_t smac[6], uint16_t vlan, uint16_t type)
{
	memcpy(out, dmac, 6);
	memcpy(out + 6, smac, 6);
	if (vlan) {
		put_be16(out + 12, ETH_TYPE_VLAN);
		put_be16(out + 14, vlan);
	}
	put_be16(out + wire_l3_off(vlan) - 2, type);
	return wire_l3_off(vlan);
}

int wire_build_arp(uint8_t *out, size_t cap, unsigned op, const uint8_t smac[6],
	const struct wire_ip *sip, const uint8_t tmac[6], const struct wire_ip *tip, uint16_t vlan)
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct arp_pkt arp = {.hlen = sizeof(arp.sha), .plen = sizeof(arp.spa)};

	if (cap < ETH_MIN_LEN)
		return -ENOSPC;
	put_be16(arp.htype, ARP_HTYPE_ETHERNET);
	put_be16(arp.ptype, ETH_TYPE_IP4);
	put_be16(arp.op, (uint16_t)op);
	memcpy(arp.sha, smac, sizeof(arp.sha));
	put_be32(arp.spa, wire_ip_to4(sip));
	put_be32(arp.tpa, wire_ip_to4(tip));
	if (op != ARP_REQUEST)
		memcpy(arp.tha, tmac, sizeof(arp.tha));
	memset(out, 0, ETH_MIN_LEN);
	memcpy(out + put_eth(out, op == ARP_REQUEST ? broadcast : tmac, smac, vlan, ETH_TYPE_ARP),
		&arp, sizeof(arp));
	return ETH_MIN_LEN;
}

/* nd is complete but for the checksum; opt may be NULL. */
static int build_nd(uint8_t *out, size_t cap, const uint8_t dmac[6], const uint8_t smac[6],
	const struct wire_ip *src, const struct wire_ip *dst, const struct nd_pkt *nd,
	const struct nd_lladdr_opt *opt, uint16_t vlan)
{
	size_t icmp_len = sizeof(*nd) + (opt ? sizeof(*opt) : 0);
	size_t l3 = wire_l3_off(vlan), l4 = l3 + sizeof(struct wire_ip6_hdr);
	struct wire_ip6_hdr ip = {
		.vtc_flow = {0x60}, .next = IP_PROTO_ICMP6, .hop_limit = ND_HOP_LIMIT};

	if (cap < l4 + icmp_len)
		return -ENOSPC;
	put_eth(out, dmac, smac, vlan, ETH_TYPE_IP6);
	put_be16(ip.len, (uint16_t)icmp_len);
	memcpy(ip.src, src->b, sizeof(ip.src));
	memcpy(ip.dst, dst->b, sizeof(ip.dst));
	memcpy(out + l3, &ip, sizeof(ip));
	memcpy(out + l4, nd, sizeof(*nd));
	if (opt)
		memcpy(out + l4 + sizeof(*nd), opt, sizeof(*opt));
	put_be16(out + l4 + offsetof(struct nd_pkt, checksum),
		ip_l4_checksum(src, dst, IP_PROTO_ICMP6, out + l4, icmp_len));
	return (int)(l4 + icmp_len);
}

int wire_build_ns(uint8_t *out, size_t cap, const uint8_t smac[6], const struct wire_ip *src,
	const struct wire_ip *target, uint16_t vlan)
{
	struct nd_pkt nd = {.type = ND_NS};
	struct nd_lladdr_opt opt = {.type = ND_OPT_SOURCE_LLADDR, .units = 1};
	struct wire_ip group = {
		{0xff, 0x02, [11] = 0x01, 0xff, target->b[13], target->b[14], target->b[15]}};
	uint8_t dmac[6] = {0x33, 0x33, 0xff, target->b[13], target->b[14], target->b[15]};

	memcpy(nd.target, target->b, sizeof(nd.target));
	memcpy(opt.mac, smac, sizeof(opt.mac));
	/* Duplicate address detection has no source and must not carry the option (7.1.1). */
	return build_nd(
		out, cap, dmac, smac, src, &group, &nd, wire_ip_is_zero(src) ? NULL : &opt, vlan);
}

int wire_build_ns_to(uint8_t *out, size_t cap, const uint8_t smac[6], const uint8_t dmac[6],
	const struct wire_ip *src, const struct wire_ip *target, uint16_t vlan)
{
	struct nd_pkt nd = {.type = ND_NS};
	struct nd_lladdr_opt opt = {.type = ND_OPT_SOURCE_LLADDR, .units = 1};

	memcpy(nd.target, target->b, sizeof(nd.target));
	memcpy(opt.mac, smac, sizeof(opt.mac));
	return build_nd(out, cap, dmac, smac, src, target, &nd, &opt, vlan);
}

bool wire_na_is_solicited(const uint8_t *frame, const struct wire_pkt *pkt)
{
	return frame[pkt->l4_off + offsetof(struct nd_pkt, flags)] & NA_SOLICITED;
}

int wire_build_na(uint8_t *out, size_t cap, const uint8_t smac[6], const uint8_t dmac[6],
	const struct wire_ip *src, const struct wire_ip *dst, uint16_t vlan)
{
	/* To a multicast address it answers nobody's solicitation (7.2.4). */
	struct nd_pkt nd = {.type = ND_NA,
		.flags = dst->b[0] == 0xff ? NA_OVERRIDE : NA_SOLICITED | NA_OVERRIDE};
	struct nd_lladdr_opt opt = {.type = ND_OPT_TARGET_LLADDR, .units = 1};

	memcpy(nd.target, src->b, sizeof(nd.target));
	memcpy(opt.mac, smac, sizeof(opt.mac));
	return build_nd(out, cap, dmac, smac, src, dst, &nd, &opt, vlan);
}
