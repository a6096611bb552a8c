/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/tcp.h"

#include <errno.h>
#include <string.h>

#include "lib/wire/bytes.h"
#include "lib/wire/ip.h"

enum { OPT_END, OPT_NOP, OPT_MSS, OPT_WSCALE, OPT_SACK_OK, OPT_SACK };

const char *wire_tcp_drop_name(enum wire_tcp_drop drop)
{
	static const char *const names[WIRE_TCP_N_DROPS] = {[WIRE_TCP_OK] = "ok",
#define X(sym, name, text) [WIRE_TCP_##sym] = name,
		WIRE_TCP_DROPS(X)
#undef X
	};

	return drop < WIRE_TCP_N_DROPS ? names[drop] : "unknown";
}

/* One option of len bytes. */
static bool take_option(const uint8_t *o, unsigned len, struct wire_tcp *tcp)
{
	switch (o[0]) {
	case OPT_MSS:
		tcp->mss = len == 4 ? get_be16(o + 2) : 0;
		return len == 4;
	case OPT_WSCALE:
		if (len != 3)
			return false;
		/* RFC 7323, 2.3: a larger one counts as 14. */
		tcp->wscale = o[2] > TCP_MAX_WSCALE ? TCP_MAX_WSCALE : o[2];
		return true;
	case OPT_SACK_OK:
		tcp->sack_ok = true;
		return len == 2;
	case OPT_SACK:
		if (len < 10 || (len - 2) % 8 != 0)
			return false;
		tcp->n_sack = (uint8_t)((len - 2) / 8);
		for (unsigned i = 0; i < tcp->n_sack; i++) {
			tcp->sack[i].from = get_be32(o + 2 + 8 * i);
			tcp->sack[i].to = get_be32(o + 6 + 8 * i);
		}
		return true;
	default:
		return true;
	}
}

static bool take_options(const uint8_t *o, const uint8_t *end, struct wire_tcp *tcp)
{
	while (o < end && o[0] != OPT_END) {
		if (o[0] == OPT_NOP) {
			o++;
			continue;
		}
		if (end - o < 2 || o[1] < 2 || o[1] > end - o || !take_option(o, o[1], tcp))
			return false;
		o += o[1];
	}
	return true;
}

enum wire_tcp_drop wire_tcp_parse(const uint8_t *frame, struct wire_pkt *pkt, struct wire_tcp *tcp)
{
	const uint8_t *ip = frame + pkt->l3_off, *h = frame + pkt->l4_off;
	unsigned len;

	*tcp = (struct wire_tcp){.wscale = TCP_NO_WSCALE};
	if (pkt->kind != WIRE_IP || pkt->ip_proto != IP_PROTO_TCP ||
		(pkt->ip_ver == 4 && (get_be16(ip + 6) & 0x3fff) != 0))
		return WIRE_TCP_OTHER;
	if (pkt->end < pkt->l4_off + TCP_HDR_LEN)
		return WIRE_TCP_LENGTH;
	len = h[12] >> 4 << 2;
	if (len < TCP_HDR_LEN || pkt->l4_off + len > pkt->end)
		return WIRE_TCP_LENGTH;
	tcp->sport = get_be16(h);
	tcp->dport = get_be16(h + 2);
	tcp->seq = get_be32(h + 4);
	tcp->ack = get_be32(h + 8);
	tcp->flags = h[13];
	tcp->window = get_be16(h + 14);
	if (!take_options(h + TCP_HDR_LEN, h + len, tcp))
		return WIRE_TCP_OPTIONS;
	pkt->pay_off = (uint16_t)(pkt->l4_off + len);
	pkt->pay_len = (uint16_t)(pkt->end - pkt->pay_off);
	return WIRE_TCP_OK;
}

bool wire_tcp_checksum_ok(const uint8_t *frame, const struct wire_pkt *pkt)
{
	return ip_l4_checksum(&pkt->src, &pkt->dst, IP_PROTO_TCP, frame + pkt->l4_off,
		       (size_t)(pkt->end - pkt->l4_off)) == 0;
}

static unsigned options_len(const struct wire_tcp *tcp)
{
	return (tcp->mss != 0 ? 4 : 0) + (tcp->sack_ok ? 4 : 0) +
	       (tcp->wscale != TCP_NO_WSCALE ? 4 : 0) +
	       (tcp->n_sack > 0 ? 4u + 8u * tcp->n_sack : 0);
}

static unsigned put_options(uint8_t *o, const struct wire_tcp *tcp)
{
	uint8_t *at = o;

	if (tcp->mss != 0) {
		at[0] = OPT_MSS;
		at[1] = 4;
		put_be16(at + 2, tcp->mss);
		at += 4;
	}
	if (tcp->sack_ok) {
		at[0] = at[1] = OPT_NOP;
		at[2] = OPT_SACK_OK;
		at[3] = 2;
		at += 4;
	}
	if (tcp->wscale != TCP_NO_WSCALE) {
		at[0] = OPT_NOP;
		at[1] = OPT_WSCALE;
		at[2] = 3;
		at[3] = tcp->wscale;
		at += 4;
	}
	if (tcp->n_sack > 0) {
		at[0] = at[1] = OPT_NOP;
		at[2] = OPT_SACK;
		at[3] = (uint8_t)(2 + 8 * tcp->n_sack);
		at += 4;
		for (unsigned i = 0; i < tcp->n_sack; i++, at += 8) {
			put_be32(at, tcp->sack[i].from);
			put_be32(at + 4, tcp->sack[i].to);
		}
	}
	return (unsigned)(at - o);
}

static unsigned put_ip(uint8_t *ip, const struct wire_flow *flow, size_t len)
{
	if (wire_ip_is4(&flow->src)) {
		struct ip4_hdr *h = (struct ip4_hdr *)ip;

		memset(h, 0, sizeof(*h));
		h->ver_ihl = 0x45;
		h->tos = flow->tos;
		put_be16(h->len, (uint16_t)(sizeof(*h) + len));
		put_be16(h->frag, IP4_DF);
		h->ttl = flow->ttl;
		h->proto = IP_PROTO_TCP;
		memcpy(h->src, flow->src.b + 12, 4);
		memcpy(h->dst, flow->dst.b + 12, 4);
		put_be16(h->checksum, (uint16_t)~ip_sum(h, sizeof(*h), 0));
		return sizeof(*h);
	}
	memset(ip, 0, sizeof(struct wire_ip6_hdr));
	put_be32(ip, 0x60000000u | (uint32_t)flow->tos << 20);
	put_be16(ip + 4, (uint16_t)len);
	ip[6] = IP_PROTO_TCP;
	ip[7] = flow->ttl;
	memcpy(ip + 8, flow->src.b, 16);
	memcpy(ip + 24, flow->dst.b, 16);
	return sizeof(struct wire_ip6_hdr);
}

int wire_tcp_build(uint8_t *out, size_t cap, const struct wire_flow *flow,
	const struct wire_tcp *tcp, size_t pay_len)
{
	const bool v4 = wire_ip_is4(&flow->src);
	uint8_t *h =
		out + ETH_HDR_LEN + (v4 ? sizeof(struct ip4_hdr) : sizeof(struct wire_ip6_hdr));
	unsigned len;

	if (cap < WIRE_TCP_MAX_HEADERS)
		return -ENOSPC;
	if (options_len(tcp) > TCP_MAX_OPTIONS)
		return -EINVAL;
	len = TCP_HDR_LEN + put_options(h + TCP_HDR_LEN, tcp);
	memcpy(out, flow->dmac, 6);
	memcpy(out + 6, flow->smac, 6);
	put_be16(out + 12, v4 ? ETH_TYPE_IP4 : ETH_TYPE_IP6);
	put_ip(out + ETH_HDR_LEN, flow, len + pay_len);
	put_be16(h, tcp->sport);
	put_be16(h + 2, tcp->dport);
	put_be32(h + 4, tcp->seq);
	put_be32(h + 8, tcp->ack);
	h[12] = (uint8_t)(len / 4 << 4);
	h[13] = tcp->flags;
	put_be16(h + 14, tcp->window);
	memset(h + 16, 0, 4);
	return (int)(h + len - out);
}

void wire_tcp_finish(uint8_t *frame, size_t len)
{
	const uint8_t *ip = frame + ETH_HDR_LEN;
	const bool v4 = ip[0] >> 4 == 4;
	uint8_t *tcp =
		frame + ETH_HDR_LEN + (v4 ? sizeof(struct ip4_hdr) : sizeof(struct wire_ip6_hdr));
	struct wire_ip src, dst;

	if (v4) {
		src = wire_ip_from4(get_be32(ip + 12));
		dst = wire_ip_from4(get_be32(ip + 16));
	} else {
		memcpy(src.b, ip + 8, 16);
		memcpy(dst.b, ip + 24, 16);
	}
	put_be16(tcp + 16,
		ip_l4_checksum(&src, &dst, IP_PROTO_TCP, tcp, (size_t)(frame + len - tcp)));
}
