/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/frame.h"

#include <errno.h>

#include "lib/wire/bytes.h"
#include "lib/wire/checksum.h"
#include "lib/wire/icrc.h"
#include "lib/wire/opcode.h"
#include "lib/wire/psn.h"

enum { MAX_PAY_LEN = 65535 - 128 };

static uint8_t *put_eth(uint8_t *p, const struct wire_flow *flow, uint16_t type)
{
	memcpy(p, flow->dmac, 6);
	memcpy(p + 6, flow->smac, 6);
	if (flow->vlan) {
		put_be32(p + 12, (uint32_t)ETH_TYPE_VLAN << 16 | flow->vlan);
		p += VLAN_HDR_LEN;
	}
	put_be16(p + 12, type);
	return p + ETH_HDR_LEN;
}

/* Both IP builders compute in registers and store whole words: a checksum that reads back what was
 * just written in smaller pieces would wait for the store buffer. */
static uint8_t *put_ip4(uint8_t *p, const struct wire_flow *flow, uint16_t id, size_t udp_len)
{
	uint32_t w0 = 0x4500u << 16 | (uint32_t)flow->tos << 16 |
		      (uint32_t)(sizeof(struct ip4_hdr) + udp_len);
	uint32_t w1 = (uint32_t)id << 16 | IP4_DF;
	uint32_t w2 = (uint32_t)flow->ttl << 24 | IP_PROTO_UDP << 16;
	uint32_t src = get_be32(flow->src.b + 12);
	uint32_t dst = get_be32(flow->dst.b + 12);

	w2 |= (uint16_t)~sum_fold((uint64_t)w0 + w1 + w2 + src + dst);
	put_be32(p, w0);
	put_be32(p + 4, w1);
	put_be32(p + 8, w2);
	put_be32(p + 12, src);
	put_be32(p + 16, dst);
	return p + sizeof(struct ip4_hdr);
}

static uint8_t *put_ip6(uint8_t *p, const struct wire_flow *flow, size_t udp_len)
{
	put_be32(p, 6u << 28 | (uint32_t)flow->tos << 20);
	put_be32(p + 4, (uint32_t)udp_len << 16 | IP_PROTO_UDP << 8 | flow->ttl);
	memcpy(p + offsetof(struct wire_ip6_hdr, src), flow->src.b, 16);
	memcpy(p + offsetof(struct wire_ip6_hdr, dst), flow->dst.b, 16);
	return p + sizeof(struct wire_ip6_hdr);
}

static uint8_t *put_udp(uint8_t *p, uint16_t sport, size_t udp_len)
{
	put_be32(p, (uint32_t)sport << 16 | ROCE_UDP_PORT);
	put_be32(p + 4, (uint32_t)udp_len << 16);
	return p + sizeof(struct udp_hdr);
}

static uint8_t *put_bth(uint8_t *p, const struct wire_hdr *hdr, unsigned pad)
{
	p[0] = hdr->opcode;
	p[1] = (uint8_t)((hdr->se ? ROCE_BTH_SE : 0) | (hdr->mig ? ROCE_BTH_MIG : 0) |
			 pad << ROCE_BTH_PAD_SHIFT);
	put_be16(p + 2, ROCE_PKEY_DEFAULT);
	put_be32(p + 4, (hdr->fecn ? (uint32_t)ROCE_BTH_FECN << 24 : 0) |
				(hdr->becn ? (uint32_t)ROCE_BTH_BECN << 24 : 0) |
				(hdr->dqpn & PSN_MASK));
	put_be32(
		p + 8, (hdr->ackreq ? (uint32_t)ROCE_BTH_ACKREQ << 24 : 0) | (hdr->psn & PSN_MASK));
	return p + sizeof(struct roce_bth);
}

/* Mirrors parse_ext(). */
static uint8_t *put_ext(uint8_t *p, const struct wire_hdr *hdr, unsigned flags)
{
	if (flags & ROCE_F_DETH) {
		put_be32(p, hdr->qkey);
		put_be32(p + 4, hdr->sqpn & PSN_MASK);
		p += sizeof(struct roce_deth);
	}
	if (flags & (ROCE_F_RETH | ROCE_F_ATOMIC)) {
		put_be64(p, hdr->va);
		put_be32(p + 8, hdr->rkey);
		p += 12;
	}
	if (flags & ROCE_F_RETH) {
		put_be32(p, hdr->dmalen);
		p += 4;
	}
	if (flags & ROCE_F_POS) {
		put_be32(p, hdr->pos_offset);
		put_be32(p + 4, hdr->pos_recv);
		p += sizeof(struct roce_poseth);
	}
	if (flags & ROCE_F_ATOMIC) {
		put_be64(p, hdr->swap_add);
		put_be64(p + 8, hdr->compare);
		p += 16;
	}
	if (flags & ROCE_F_AETH) {
		put_be32(p, (uint32_t)hdr->syndrome << 24 | (hdr->msn & PSN_MASK));
		p += sizeof(struct roce_aeth);
	}
	if (flags & ROCE_F_ATOMICACK) {
		put_be64(p, hdr->atomic_orig);
		p += sizeof(struct roce_atomicacketh);
	}
	if (flags & (ROCE_F_IMM | ROCE_F_IETH)) {
		put_be32(p, flags & ROCE_F_IMM ? hdr->imm : hdr->rkey);
		p += sizeof(struct roce_immdt);
	}
	return p;
}

int wire_build_headers(uint8_t *out, size_t cap, const struct wire_flow *flow,
	const struct wire_hdr *hdr, size_t pay_len)
{
	const struct opcode_info *op = &opcode_table[hdr->opcode];
	unsigned flags = op->flags;
	bool is4 = wire_ip_is4(&flow->src);
	unsigned pad = wire_pad(pay_len);
	size_t transport = sizeof(struct roce_bth) + op->ext_len;
	size_t udp_len = sizeof(struct udp_hdr) + transport + pay_len + pad + ROCE_ICRC_LEN;
	size_t total = wire_l3_off(flow->vlan) +
		       (is4 ? sizeof(struct ip4_hdr) : sizeof(struct wire_ip6_hdr)) +
		       sizeof(struct udp_hdr) + transport;
	uint8_t *p;

	if (!flags || is4 != wire_ip_is4(&flow->dst) || pay_len > MAX_PAY_LEN ||
		(hdr->opcode == ROCE_CNP && pay_len < ROCE_CNP_LEN))
		return -EINVAL;
	if (cap < total)
		return -ENOSPC;
	if (is4) {
		p = put_eth(out, flow, ETH_TYPE_IP4);
		p = put_ip4(p, flow, hdr->ip_id, udp_len);
	} else {
		p = put_eth(out, flow, ETH_TYPE_IP6);
		p = put_ip6(p, flow, udp_len);
	}
	p = put_udp(p, flow->sport, udp_len);
	p = put_bth(p, hdr, pad);
	p = put_ext(p, hdr, flags);
	return (int)(p - out);
}

unsigned wire_build_trailer(uint8_t *trailer, const uint8_t *hdr, size_t hdr_len, uint16_t vlan,
	uint32_t pay_crc, size_t pay_len)
{
	static const uint8_t zeros[3];
	size_t l3 = wire_l3_off(vlan);
	unsigned pad = wire_pad(pay_len);
	uint32_t crc = icrc_headers(hdr + l3, hdr_len - l3);

	if (pay_len) {
		crc = icrc_combine(crc, pay_crc, pay_len);
		if (pad)
			crc = icrc_append(crc, zeros, pad);
	}
	memset(trailer, 0, pad);
	icrc_store(trailer + pad, crc);
	return pad + ROCE_ICRC_LEN;
}

int wire_build_frame(uint8_t *out, size_t cap, const struct wire_flow *flow,
	const struct wire_hdr *hdr, const void *payload, size_t pay_len)
{
	int headers = wire_build_headers(out, cap, flow, hdr, pay_len);
	size_t l3 = wire_l3_off(flow->vlan), pad = wire_pad(pay_len);
	uint8_t *p;
	uint32_t crc;

	if (headers < 0)
		return headers;
	if (cap - (size_t)headers < pay_len + pad + ROCE_ICRC_LEN)
		return -ENOSPC;
	p = out + headers;
	memset(p + pay_len, 0, pad);
	crc = icrc_headers(out + l3, (size_t)headers - l3);
	if (pay_len)
		crc = icrc_append(icrc_copy(crc, p, payload, pay_len), p + pay_len, pad);
	icrc_store(p + pay_len + pad, crc);
	return headers + (int)(pay_len + pad + ROCE_ICRC_LEN);
}

void wire_unbuild(const uint8_t *frame, const struct wire_pkt *pkt, struct wire_flow *flow,
	struct wire_hdr *hdr)
{
	memcpy(flow->dmac, frame, 6);
	memcpy(flow->smac, frame + 6, 6);
	flow->vlan = pkt->vlan;
	flow->src = pkt->src;
	flow->dst = pkt->dst;
	flow->tos = pkt->tos;
	flow->ttl = pkt->ttl;
	flow->sport = pkt->sport;
	*hdr = (struct wire_hdr){
		.opcode = pkt->opcode,
		.ackreq = pkt->ackreq,
		.se = pkt->se,
		.mig = pkt->mig,
		.fecn = pkt->fecn,
		.becn = pkt->becn,
		.syndrome = pkt->syndrome,
		.ip_id = pkt->ip_ver == 4
				 ? get_be16(frame + pkt->l3_off + offsetof(struct ip4_hdr, id))
				 : 0,
		.dqpn = pkt->dqpn,
		.psn = pkt->psn,
		.msn = pkt->msn,
		.imm = pkt->imm,
		.rkey = pkt->rkey,
		.dmalen = pkt->dmalen,
		.pos_offset = pkt->pos_offset,
		.pos_recv = pkt->pos_recv,
		.qkey = pkt->qkey,
		.sqpn = pkt->sqpn,
		.va = pkt->va,
		.swap_add = pkt->swap_add,
		.compare = pkt->compare,
		.atomic_orig = pkt->atomic_orig,
	};
}
