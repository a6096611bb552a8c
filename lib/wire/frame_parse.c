/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/frame.h"

#include "lib/wire/bytes.h"
#include "lib/wire/checksum.h"
#include "lib/wire/ip_fragment.h"
#include "lib/wire/neigh.h"
#include "lib/wire/opcode.h"
#include "lib/wire/psn.h"

enum {
	BTH_OFF = sizeof(struct udp_hdr), /* from the UDP header */
	ROCE_MIN_LEN = BTH_OFF + sizeof(struct roce_bth) + ROCE_ICRC_LEN,
	EXT_FLAGS = ROCE_F_RETH | ROCE_F_POS | ROCE_F_AETH | ROCE_F_IMM | ROCE_F_IETH |
		    ROCE_F_DETH | ROCE_F_ATOMIC | ROCE_F_ATOMICACK,
	ICMP4_ECHO = 8,
	ICMP6_ECHO = 128,
	ICMP_ECHO_LEN = 8,
};

/* Extended headers, in the order in which they follow the BTH. The caller checked the length. */
static void parse_ext(const uint8_t *p, unsigned flags, struct wire_pkt *pkt)
{
	if (flags & ROCE_F_DETH) {
		pkt->qkey = get_be32(p);
		pkt->sqpn = get_be24(p + 5);
		p += sizeof(struct roce_deth);
	}
	if (flags & (ROCE_F_RETH | ROCE_F_ATOMIC)) {
		pkt->va = get_be64(p);
		pkt->rkey = get_be32(p + 8);
		p += 12;
	}
	if (flags & ROCE_F_RETH) {
		pkt->dmalen = get_be32(p);
		p += 4;
	}
	if (flags & ROCE_F_POS) {
		pkt->pos_offset = get_be32(p);
		pkt->pos_recv = get_be32(p + 4);
		p += sizeof(struct roce_poseth);
	}
	if (flags & ROCE_F_ATOMIC) {
		pkt->swap_add = get_be64(p);
		pkt->compare = get_be64(p + 8);
		p += 16;
	}
	if (flags & ROCE_F_AETH) {
		pkt->syndrome = p[0];
		pkt->msn = get_be24(p + 1);
		p += sizeof(struct roce_aeth);
	}
	if (flags & ROCE_F_ATOMICACK)
		pkt->atomic_orig = get_be64(p);
	if (flags & ROCE_F_IMM)
		pkt->imm = get_be32(p);
	if (flags & ROCE_F_IETH)
		pkt->rkey = get_be32(p);
}

static inline void take_bth(const uint8_t *bth, struct wire_pkt *pkt)
{
	pkt->kind = WIRE_ROCE;
	pkt->opcode = bth[0];
	pkt->se = (bth[1] & ROCE_BTH_SE) != 0;
	pkt->mig = (bth[1] & ROCE_BTH_MIG) != 0;
	pkt->pad = bth[1] >> ROCE_BTH_PAD_SHIFT & 3;
	pkt->fecn = (bth[4] & ROCE_BTH_FECN) != 0;
	pkt->becn = (bth[4] & ROCE_BTH_BECN) != 0;
	pkt->dqpn = get_be32(bth + 4) & PSN_MASK;
	pkt->ackreq = (bth[8] & ROCE_BTH_ACKREQ) != 0;
	pkt->psn = get_be32(bth + 8) & PSN_MASK;
}

/* udp has avail >= ROCE_MIN_LEN bytes up to the end of the IP packet. */
static enum wire_drop parse_roce(const uint8_t *udp, unsigned avail, struct wire_pkt *pkt)
{
	const uint8_t *bth = udp + BTH_OFF;
	const struct opcode_info *op = &opcode_table[bth[0]];
	unsigned flags = op->flags;
	unsigned headers = BTH_OFF + sizeof(struct roce_bth) + op->ext_len;
	unsigned pad = bth[1] >> ROCE_BTH_PAD_SHIFT & 3;
	unsigned rest;

	if (bth[1] & ROCE_BTH_TVER_MASK)
		return WIRE_BTH_VERSION;
	if (get_be16(bth + 2) != ROCE_PKEY_DEFAULT)
		return WIRE_BTH_PKEY;
	if (!flags)
		return WIRE_BTH_OPCODE;
	if (avail < headers + ROCE_ICRC_LEN)
		return WIRE_PARSE_SHORT;
	rest = avail - headers - ROCE_ICRC_LEN;
	if (rest & 3 || pad > rest)
		return WIRE_BTH_PAD;
	if (bth[0] == ROCE_CNP && rest - pad < ROCE_CNP_LEN)
		return WIRE_PARSE_SHORT;

	take_bth(bth, pkt);
	pkt->flags = (uint16_t)flags;
	pkt->pay_off = (uint16_t)(pkt->l4_off + headers);
	pkt->pay_len = (uint16_t)(rest - pad);
	if (flags & EXT_FLAGS)
		parse_ext(bth + sizeof(struct roce_bth), flags, pkt);
	return WIRE_OK;
}

enum wire_drop wire_parse_bth(const uint8_t *frame, struct wire_pkt *pkt)
{
	const unsigned headers = BTH_OFF + sizeof(struct roce_bth);
	const unsigned rest = pkt->end - pkt->l4_off - headers - ROCE_ICRC_LEN;

	if (rest & 3)
		return WIRE_BTH_PAD;
	take_bth(frame + pkt->l4_off + BTH_OFF, pkt);
	pkt->pay_off = (uint16_t)(pkt->l4_off + headers);
	pkt->pay_len = (uint16_t)rest;
	return WIRE_OK;
}

/* avail: bytes up to the end of the IP packet. */
static enum wire_drop parse_datagram(const uint8_t *udp, unsigned avail, struct wire_pkt *pkt)
{
	/* The ICRC is found from the end: UDP and IP have to agree on it. */
	if (avail < ROCE_MIN_LEN || get_be16(udp + 4) != avail)
		return WIRE_PARSE_SHORT;
	if (get_be16(udp + 6) != 0 &&
		ip_l4_sum(&pkt->src, &pkt->dst, IP_PROTO_UDP, udp, avail) != 0xffff)
		return WIRE_PARSE_UDPSUM;
	return parse_roce(udp, avail, pkt);
}

static enum wire_drop parse_udp(const uint8_t *udp, unsigned avail, struct wire_pkt *pkt)
{
	pkt->kind = WIRE_IP;
	if (avail < sizeof(struct udp_hdr))
		return WIRE_PARSE_SHORT;
	return pkt->dport == ROCE_UDP_PORT ? parse_datagram(udp, avail, pkt) : WIRE_OK;
}

enum wire_drop wire_parse_roce(const uint8_t *frame, struct wire_pkt *pkt)
{
	return parse_datagram(frame + pkt->l4_off, (unsigned)pkt->end - pkt->l4_off, pkt);
}

/* Everything but UDP. None of it is refused: forwarding does not need to understand it. */
static void parse_other(const uint8_t *frame, unsigned avail, struct wire_pkt *pkt)
{
	const uint8_t *l4 = frame + pkt->l4_off;

	if (pkt->ip_proto == IP_PROTO_TCP && avail >= 4) {
		pkt->sport = get_be16(l4);
		pkt->dport = get_be16(l4 + 2);
	} else if (pkt->ip_proto == IP_PROTO_ICMP && pkt->ip_ver == 4) {
		if (avail >= ICMP_ECHO_LEN && l4[0] == ICMP4_ECHO && l4[1] == 0)
			pkt->kind = WIRE_ICMP_ECHO;
	} else if (pkt->ip_proto == IP_PROTO_ICMP6 && pkt->ip_ver == 6) {
		if (avail >= ICMP_ECHO_LEN && l4[0] == ICMP6_ECHO && l4[1] == 0)
			pkt->kind = WIRE_ICMP_ECHO;
		else if (avail > 0 && (l4[0] == ND_NS || l4[0] == ND_NA))
			parse_nd(frame, pkt);
	}
}

static inline void parse_l4(const uint8_t *frame, struct wire_pkt *pkt)
{
	const uint8_t *l4 = frame + pkt->l4_off;
	unsigned avail = (unsigned)pkt->end - pkt->l4_off;

	if (pkt->ip_proto != IP_PROTO_UDP) {
		parse_other(frame, avail, pkt);
		return;
	}
	pkt->kind = WIRE_UDP;
	if (avail >= sizeof(struct udp_hdr)) {
		pkt->sport = get_be16(l4);
		pkt->dport = get_be16(l4 + 2);
	}
}

/* In pieces, because GCC makes a slow "rep stos" of more than 64 bytes, or a loop. */
static inline void clear_roce(struct wire_pkt *pkt)
{
	const size_t from = offsetof(struct wire_pkt, dqpn), to = offsetof(struct wire_pkt, src);

	memset((uint8_t *)pkt + from, 0, 64);
	memset((uint8_t *)pkt + from + 64, 0, to - from - 64);
}

static inline void clear_others(struct wire_pkt *pkt)
{
	const size_t to = offsetof(struct wire_pkt, dqpn), from = offsetof(struct wire_pkt, src);

	memset(pkt, 0, to);
	memset((uint8_t *)pkt + from, 0, sizeof(*pkt) - from);
}

enum wire_drop wire_parse_udp(const uint8_t *frame, struct wire_pkt *pkt)
{
	clear_roce(pkt);
	return parse_udp(frame + pkt->l4_off, (unsigned)pkt->end - pkt->l4_off, pkt);
}

/* The first fragment of a datagram: only RoCE is refused, since nothing here reassembles. */
static enum wire_drop parse_first_fragment(const uint8_t *l4, unsigned avail, uint8_t proto)
{
	if (proto == IP_PROTO_UDP && avail >= 4 && get_be16(l4 + 2) == ROCE_UDP_PORT)
		return WIRE_PARSE_FRAG;
	return WIRE_OK;
}

/* The upper half of the address is zero already. */
static inline void put_mapped(struct wire_ip *ip, const uint8_t *addr4)
{
	put_be64(ip->b + 8, UINT64_C(0xffff) << 32 | get_be32(addr4));
}

static enum wire_drop parse_ip4(const uint8_t *frame, size_t avail, struct wire_pkt *pkt)
{
	const uint8_t *ip = frame + pkt->l3_off;
	unsigned header, total, frag;

	if (avail < sizeof(struct ip4_hdr))
		return WIRE_PARSE_SHORT;
	header = (ip[0] & 15) * 4u;
	if (ip[0] >> 4 != 4 || header < sizeof(struct ip4_hdr))
		return WIRE_PARSE_IPVER;
	total = get_be16(ip + offsetof(struct ip4_hdr, len));
	if (total < header || total > avail)
		return WIRE_PARSE_SHORT;

	pkt->kind = WIRE_IP;
	pkt->ip_ver = 4;
	pkt->tos = ip[offsetof(struct ip4_hdr, tos)];
	pkt->ttl = ip[offsetof(struct ip4_hdr, ttl)];
	pkt->ip_proto = ip[offsetof(struct ip4_hdr, proto)];
	pkt->l4_off = (uint16_t)(pkt->l3_off + header);
	pkt->end = (uint16_t)(pkt->l3_off + total);
	put_mapped(&pkt->src, ip + offsetof(struct ip4_hdr, src));
	put_mapped(&pkt->dst, ip + offsetof(struct ip4_hdr, dst));

	frag = get_be16(ip + offsetof(struct ip4_hdr, frag)) & IP4_FRAG_MASK;
	if (header == sizeof(struct ip4_hdr) && !frag) {
		if (sum_fold(ip4_sum_native(ip)) != 0xffff)
			return WIRE_PARSE_IPSUM;
		parse_l4(frame, pkt);
		return WIRE_OK;
	}
	if (ip_sum(ip, header, 0) != 0xffff)
		return WIRE_PARSE_IPSUM;
	if (frag && !(frag & IP4_FRAG_OFFSET))
		return parse_first_fragment(ip + header, total - header, pkt->ip_proto);
	return WIRE_OK;
}

static enum wire_drop parse_ip6_fragment(const uint8_t *p, unsigned avail)
{
	if (avail < IP6_FRAGMENT_LEN || !ip6_fragment_is_first(p))
		return WIRE_OK;
	return parse_first_fragment(p + IP6_FRAGMENT_LEN, avail - IP6_FRAGMENT_LEN, p[0]);
}

static enum wire_drop parse_ip6(const uint8_t *frame, size_t avail, struct wire_pkt *pkt)
{
	const uint8_t *ip = frame + pkt->l3_off;
	unsigned payload;

	if (avail < sizeof(struct wire_ip6_hdr))
		return WIRE_PARSE_SHORT;
	if (ip[0] >> 4 != 6)
		return WIRE_PARSE_IPVER;
	payload = get_be16(ip + offsetof(struct wire_ip6_hdr, len));
	if (payload > avail - sizeof(struct wire_ip6_hdr))
		return WIRE_PARSE_SHORT;

	pkt->kind = WIRE_IP;
	pkt->ip_ver = 6;
	pkt->tos = (uint8_t)(get_be16(ip) >> 4);
	pkt->ttl = ip[offsetof(struct wire_ip6_hdr, hop_limit)];
	pkt->ip_proto = ip[offsetof(struct wire_ip6_hdr, next)];
	pkt->l4_off = (uint16_t)(pkt->l3_off + sizeof(struct wire_ip6_hdr));
	pkt->end = (uint16_t)(pkt->l4_off + payload);
	memcpy(pkt->src.b, ip + offsetof(struct wire_ip6_hdr, src), 16);
	memcpy(pkt->dst.b, ip + offsetof(struct wire_ip6_hdr, dst), 16);
	/* Would pass for an IPv4 address from here on; must not be on a wire (RFC 4942, 2.2). */
	if (wire_ip_is4(&pkt->src) || wire_ip_is4(&pkt->dst))
		return WIRE_PARSE_IPVER;
	if (pkt->ip_proto == IP_PROTO_FRAGMENT)
		return parse_ip6_fragment(frame + pkt->l4_off, payload);
	parse_l4(frame, pkt);
	return WIRE_OK;
}

static enum wire_drop behind_udp(const uint8_t *frame, enum wire_drop drop, struct wire_pkt *pkt)
{
	if (pkt->kind == WIRE_UDP)
		return wire_parse_udp(frame, pkt);
	clear_roce(pkt);
	return drop;
}

enum wire_drop wire_parse_ip(const uint8_t *frame, size_t len, size_t l3_off, struct wire_pkt *pkt)
{
	clear_others(pkt);
	if (len > UINT16_MAX)
		len = UINT16_MAX;
	if (l3_off >= len)
		return behind_udp(frame, WIRE_PARSE_SHORT, pkt);
	pkt->l3_off = (uint16_t)l3_off;
	return behind_udp(frame,
		frame[l3_off] >> 4 == 4 ? parse_ip4(frame, len - l3_off, pkt)
					: parse_ip6(frame, len - l3_off, pkt),
		pkt);
}

enum wire_drop wire_parse_l3(const uint8_t *frame, size_t len, struct wire_pkt *pkt)
{
	uint16_t type;

	clear_others(pkt);
	if (len < ETH_HDR_LEN)
		return WIRE_PARSE_SHORT;
	if (len > UINT16_MAX)
		len = UINT16_MAX; /* what an offset can name */
	pkt->l3_off = ETH_HDR_LEN;
	type = get_be16(frame + 12);
	if (type == ETH_TYPE_VLAN) {
		if (len < ETH_HDR_LEN + VLAN_HDR_LEN)
			return WIRE_PARSE_SHORT;
		pkt->l3_off = ETH_HDR_LEN + VLAN_HDR_LEN;
		pkt->vlan = get_be16(frame + 14);
		type = get_be16(frame + 16);
	}
	if (type == ETH_TYPE_IP4)
		return parse_ip4(frame, len - pkt->l3_off, pkt);
	if (type == ETH_TYPE_IP6)
		return parse_ip6(frame, len - pkt->l3_off, pkt);
	if (type == ETH_TYPE_ARP)
		return parse_arp(frame, len, pkt);
	return WIRE_OK;
}

enum wire_drop wire_parse(const uint8_t *frame, size_t len, struct wire_pkt *pkt)
{
	return behind_udp(frame, wire_parse_l3(frame, len, pkt), pkt);
}
