/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that lib/wire would not know for RoCE: inside an outer IPv6 header, with the segments that
 * they have come along, and such as a switch has cut (docs/mrc.md, sections 4 and 8.1). Reads only;
 * any thread. */
#include "lib/mrc/transport_priv.h"
#include "lib/rnic/device.h"
#include "lib/srv6/endpoint.h"
#include "lib/wire/bytes.h"
#include "lib/wire/ip6_ext.h"
#include "lib/wire/psn.h"
#include "lib/wire/roce.h"

static bool has_dscp(const struct mrc_dev *dev, uint8_t tos, enum mrc_class class)
{
	return (tos & ~IP_ECN_MASK) == dev->tos[class];
}

bool mrc_is_cut_last(const struct mrc_dev *dev, uint8_t tos)
{
	return has_dscp(dev, tos, MRC_CLASS_TRIMMED_LAST);
}

bool mrc_is_cut(const struct mrc_dev *dev, uint8_t tos)
{
	return has_dscp(dev, tos, MRC_CLASS_TRIMMED) || mrc_is_cut_last(dev, tos);
}

/* Where the IP headers of a frame are. */
struct layers {
	size_t l3;    /* outermost, */
	size_t inner; /* and inside of it; 0: there is no tunnel */
	uint16_t vlan;
	uint8_t tos, proto; /* of the outermost */
};

static uint8_t tos6(const uint8_t *ip)
{
	return (uint8_t)(get_be16(ip) >> 4);
}

/* The packet has come along all its segments, and this is where it was to go. */
static bool arrived(const struct mrc_dev *dev, unsigned port, const uint8_t *ip6)
{
	struct wire_ip dst;

	memcpy(dst.b, ip6 + offsetof(struct wire_ip6_hdr, dst), sizeof(dst.b));
	if (rnic_own_ip(dev->rnic, port, &dst) >= 0)
		return true;
	for (unsigned p = 0; p < MRC_MAX_PORTS; p++) {
		if (mrc_port_of(dev, p) == port && !wire_ip_is_zero(&dev->c.sid[p]) &&
			wire_ip_eq(&dst, &dev->c.sid[p]))
			return true;
	}
	return false;
}

/* Where the inner header of an IPv6 packet is, 0 if there is none for here. */
static size_t inside(
	const struct mrc_dev *dev, unsigned port, const uint8_t *frame, size_t len, size_t l3)
{
	size_t at = l3 + sizeof(struct wire_ip6_hdr);
	uint8_t next = frame[l3 + offsetof(struct wire_ip6_hdr, next)];
	const struct srh_hdr *srh = (const void *)(frame + at);

	if (next != IP_PROTO_IP6 && next != IP_PROTO_ROUTING)
		return 0;
	if (next == IP_PROTO_ROUTING) {
		if (len < at + sizeof(*srh) || srh->left != 0)
			return 0;
		next = srh->next;
		at += 8 + 8 * (size_t)srh->len;
	}
	return next == IP_PROTO_IP6 && at < len && arrived(dev, port, frame + l3) ? at : 0;
}

static bool find_layers(const struct mrc_dev *dev, unsigned port, const uint8_t *frame, size_t len,
	struct layers *y)
{
	uint16_t type;

	*y = (struct layers){.l3 = ETH_HDR_LEN};
	if (len < ETH_HDR_LEN + VLAN_HDR_LEN)
		return false;
	type = get_be16(frame + 12);
	if (type == ETH_TYPE_VLAN) {
		y->l3 += VLAN_HDR_LEN;
		y->vlan = get_be16(frame + 14);
		type = get_be16(frame + 16);
	}
	if (type == ETH_TYPE_IP4 && len >= y->l3 + sizeof(struct ip4_hdr)) {
		y->tos = frame[y->l3 + offsetof(struct ip4_hdr, tos)];
		return true;
	}
	if (type != ETH_TYPE_IP6 || len < y->l3 + sizeof(struct wire_ip6_hdr))
		return false;
	y->tos = tos6(frame + y->l3);
	y->inner = inside(dev, port, frame, len, y->l3);
	return true;
}

/* IP header without options at l3: what follows it, or 0. */
static size_t read_ip(const uint8_t *frame, size_t len, size_t l3, struct wire_pkt *pkt)
{
	const uint8_t *ip = frame + l3;

	pkt->l3_off = (uint16_t)l3;
	if (len >= l3 + sizeof(struct ip4_hdr) && ip[0] == 0x45) {
		pkt->ip_ver = 4;
		pkt->ip_proto = ip[offsetof(struct ip4_hdr, proto)];
		pkt->src = wire_ip_from4(get_be32(ip + offsetof(struct ip4_hdr, src)));
		pkt->dst = wire_ip_from4(get_be32(ip + offsetof(struct ip4_hdr, dst)));
		return l3 + sizeof(struct ip4_hdr);
	}
	if (len < l3 + sizeof(struct wire_ip6_hdr) || ip[0] >> 4 != 6)
		return 0;
	pkt->ip_ver = 6;
	pkt->ip_proto = ip[offsetof(struct wire_ip6_hdr, next)];
	memcpy(pkt->src.b, ip + offsetof(struct wire_ip6_hdr, src), 16);
	memcpy(pkt->dst.b, ip + offsetof(struct wire_ip6_hdr, dst), 16);
	return wire_ip_is4(&pkt->src) || wire_ip_is4(&pkt->dst) ? 0
								: l3 + sizeof(struct wire_ip6_hdr);
}

static bool is_port(const struct mrc_dev *dev, uint16_t port)
{
	return port == ROCE_UDP_PORT || port == dev->set.udp_port;
}

/* A UDP packet that lib/wire has read, and which is not for the port that it knows. */
static bool has_other_port(const struct mrc_dev *dev, const struct wire_pkt *pkt)
{
	return dev->set.udp_port != ROCE_UDP_PORT && pkt->kind == WIRE_IP &&
	       pkt->ip_proto == IP_PROTO_UDP && pkt->dport == dev->set.udp_port;
}

static bool has_own_opcode(const uint8_t *frame, const struct wire_pkt *pkt)
{
	return (frame[pkt->l4_off + sizeof(struct udp_hdr)] & MRC_OPCODES_MASK) == MRC_OPCODES;
}

/* Not in a tunnel, to the port that the device has in place of RoCE's. */
static enum own_look read_other_port(const struct mrc_dev *dev, const uint8_t *frame, size_t len,
	struct wire_pkt *pkt, unsigned *drop)
{
	if (wire_parse(frame, len, pkt) != WIRE_OK || !has_other_port(dev, pkt))
		return LOOK_NO;
	*drop = wire_parse_roce(frame, pkt);
	if (*drop == WIRE_BTH_OPCODE && has_own_opcode(frame, pkt))
		*drop = wire_parse_bth(frame, pkt);
	else if (*drop == WIRE_OK)
		*drop = WIRE_BTH_OPCODE; /* RC and others have one port only */
	return *drop == WIRE_OK ? LOOK_WHOLE : LOOK_DROP;
}

/* Lengths in headers are not to be believed, and checksums have nothing to be of. */
static enum own_look read_cut(const struct mrc_dev *dev, const uint8_t *frame, size_t len,
	const struct layers *y, struct wire_pkt *pkt)
{
	const size_t l4 = read_ip(frame, len, y->inner ? y->inner : y->l3, pkt);
	const uint8_t *bth = frame + l4 + sizeof(struct udp_hdr);

	if (l4 == 0 || pkt->ip_proto != IP_PROTO_UDP ||
		len < l4 + sizeof(struct udp_hdr) + sizeof(struct roce_bth) ||
		!is_port(dev, get_be16(frame + l4 + offsetof(struct udp_hdr, dport))) ||
		(bth[0] & MRC_OPCODES_MASK) != MRC_OPCODES)
		return LOOK_NO;
	pkt->kind = WIRE_ROCE;
	pkt->tos = y->tos;
	pkt->vlan = y->vlan;
	pkt->l4_off = (uint16_t)l4;
	pkt->end = (uint16_t)len;
	pkt->opcode = bth[0];
	pkt->dqpn = get_be32(bth + 4) & PSN_MASK;
	pkt->psn = get_be32(bth + 8) & PSN_MASK;
	pkt->pay_off = (uint16_t)(l4 + sizeof(struct udp_hdr) + sizeof(struct roce_bth));
	return LOOK_CUT;
}

static enum own_look read_inner(const struct mrc_dev *dev, const uint8_t *frame, size_t len,
	const struct layers *y, struct wire_pkt *pkt, unsigned *drop)
{
	int ecn;

	*drop = wire_parse_ip(frame, len, y->inner, pkt);
	if (*drop == WIRE_OK && has_other_port(dev, pkt))
		*drop = wire_parse_roce(frame, pkt);
	if (*drop == WIRE_BTH_OPCODE && has_own_opcode(frame, pkt))
		*drop = wire_parse_bth(frame, pkt);
	else if (*drop == WIRE_OK)
		*drop = RNIC_DROP_TUNNEL; /* nothing else comes this way */
	if (*drop != WIRE_OK)
		return LOOK_DROP;
	ecn = srv6_ecn(pkt->tos & IP_ECN_MASK, y->tos & IP_ECN_MASK);
	if (ecn < 0) {
		*drop = RNIC_DROP_TUNNEL;
		return LOOK_DROP;
	}
	pkt->tos = (uint8_t)((y->tos & ~IP_ECN_MASK) | ecn);
	pkt->vlan = y->vlan;
	return LOOK_WHOLE;
}

enum own_look mrc_look(const struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len,
	struct wire_pkt *pkt, unsigned *drop)
{
	const struct mrc_dev *dev = dev_of(rnic);
	struct layers y;

	if (len > UINT16_MAX || !find_layers(dev, port, frame, len, &y))
		return LOOK_NO;
	if (mrc_is_cut(dev, y.tos)) {
		*pkt = (struct wire_pkt){0};
		return read_cut(dev, frame, len, &y, pkt);
	}
	if (y.inner)
		return read_inner(dev, frame, len, &y, pkt, drop);
	return dev->set.udp_port != ROCE_UDP_PORT ? read_other_port(dev, frame, len, pkt, drop)
						  : LOOK_NO;
}
