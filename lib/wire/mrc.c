/* SPDX-License-Identifier: BSD-3-Clause */
/* What is MRC's in any layout: names, and the way from a packet to the bytes of IP. */
#include "lib/wire/mrc.h"

#include <errno.h>

#include "lib/wire/bytes.h"
#include "lib/wire/icrc.h"
#include "lib/wire/roce.h"

static const struct {
	const char *name, *text;
} drops[MRC_N_DROPS] = {
#define X(sym, name, text) [MRC_DROP_##sym] = {name, text},
	MRC_DROPS(X)
#undef X
};

const char *mrc_drop_name(enum mrc_drop drop)
{
	return drops[drop].name;
}

const char *mrc_drop_text(enum mrc_drop drop)
{
	return drops[drop].text;
}

const char *mrc_nack_name(uint8_t reason)
{
	switch (reason) {
#define X(sym, code, name) \
	case code:         \
		return name;
		MRC_NACK_REASONS(X)
#undef X
	default:
		return NULL;
	}
}

uint32_t mrc_ev_get(const uint8_t *l3, enum mrc_ev_order order)
{
	const struct wire_ip6_hdr *ip6 = (const void *)l3;
	const struct udp_hdr *udp;

	if (l3[0] >> 4 == 4) {
		udp = (const void *)(l3 + sizeof(struct ip4_hdr));
		return get_be16(udp->sport);
	}
	udp = (const void *)(l3 + sizeof(*ip6));
	return mrc_ev(get_be32(ip6->vtc_flow) & 0xfffff, get_be16(udp->sport), order);
}

static size_t build_ip(uint8_t *out, const struct mrc_flow *flow, size_t udp_len, bool v4)
{
	struct wire_ip6_hdr *ip6 = (void *)out;
	struct ip4_hdr *ip4 = (void *)out;

	if (v4) {
		*ip4 = (struct ip4_hdr){
			.ver_ihl = 0x45, .tos = flow->tos, .ttl = flow->ttl, .proto = IP_PROTO_UDP};
		put_be16(ip4->len, (uint16_t)(sizeof(*ip4) + udp_len));
		put_be16(ip4->frag, IP4_DF);
		memcpy(ip4->src, flow->src.b + 12, 4);
		memcpy(ip4->dst, flow->dst.b + 12, 4);
		put_be16(ip4->checksum, (uint16_t)~ip_sum(ip4, sizeof(*ip4), 0));
		return sizeof(*ip4);
	}
	put_be32(ip6->vtc_flow,
		6u << 28 | (uint32_t)flow->tos << 20 | mrc_ev_flow_label(flow->ev, flow->order));
	put_be16(ip6->len, (uint16_t)udp_len);
	ip6->next = IP_PROTO_UDP;
	ip6->hop_limit = flow->ttl;
	memcpy(ip6->src, flow->src.b, 16);
	memcpy(ip6->dst, flow->dst.b, 16);
	return sizeof(*ip6);
}

int mrc_build_l3(uint8_t *out, size_t room, const struct mrc_flow *flow, size_t len)
{
	bool v4 = wire_ip_is4(&flow->src);
	size_t ip_len = v4 ? sizeof(struct ip4_hdr) : sizeof(struct wire_ip6_hdr);
	size_t udp_len = sizeof(struct udp_hdr) + len;
	struct udp_hdr *udp;

	if (v4 != wire_ip_is4(&flow->dst) || len > UINT16_MAX - 64 || (v4 && flow->ev > UINT16_MAX))
		return -EINVAL;
	if (room < ip_len + sizeof(*udp))
		return -ENOSPC;
	udp = (void *)(out + build_ip(out, flow, udp_len, v4));
	put_be16(udp->sport, v4 ? (uint16_t)flow->ev : mrc_ev_sport(flow->ev, flow->order));
	put_be16(udp->dport, flow->udp_port);
	put_be16(udp->len, (uint16_t)udp_len);
	put_be16(udp->checksum, 0);
	return (int)(ip_len + sizeof(*udp));
}

int mrc_build(uint8_t *out, size_t room, const struct mrc_codec *codec, const struct mrc_flow *flow,
	const struct mrc_pkt *pkt, const void *payload)
{
	size_t pay = pkt->kind == MRC_KIND_DATA ? pkt->data.pay_len : 0, pad = -pay & 3;
	uint8_t headers[MRC_MAX_HEADERS];
	int hdr = codec->encode(pkt, headers, sizeof(headers)), l3;
	uint32_t crc;
	size_t len;

	if (hdr < 0)
		return hdr;
	len = (size_t)hdr + pay + pad + ROCE_ICRC_LEN;
	l3 = mrc_build_l3(out, room, flow, len);
	if (l3 < 0)
		return l3;
	if (room < (size_t)l3 + len)
		return -ENOSPC;
	memcpy(out + l3, headers, (size_t)hdr);
	crc = icrc_headers(out, (size_t)(l3 + hdr));
	memset(out + l3 + hdr + pay, 0, pad);
	if (pay)
		crc = icrc_append(
			icrc_copy(crc, out + l3 + hdr, payload, pay), out + l3 + hdr + pay, pad);
	icrc_store(out + l3 + hdr + pay + pad, crc);
	return (int)((size_t)l3 + len);
}
