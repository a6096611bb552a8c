/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes at all as a frame: the parser, and all that trusts its result. */
#include <errno.h>
#include <string.h>

#include "lib/wire/bytes.h"
#include "lib/wire/frame.h"
#include "lib/wire/icmp_error.h"
#include "lib/wire/ip6_ext.h"
#include "lib/wire/ip_fragment.h"
#include "lib/wire/l4.h"
#include "tests/fuzz/fuzz.h"

static const uint8_t mac_a[6] = {0x02, 0, 0, 0, 0, 0x0a};
static const uint8_t mac_b[6] = {0x02, 0, 0, 0, 0, 0x0b};

/* Fields that a rebuilt packet must have kept. */
static bool same_packet(const struct wire_pkt *a, const struct wire_pkt *b)
{
	return a->opcode == b->opcode && a->dqpn == b->dqpn && a->psn == b->psn &&
	       a->ackreq == b->ackreq && a->se == b->se && a->mig == b->mig && a->fecn == b->fecn &&
	       a->becn == b->becn && a->pay_len == b->pay_len && a->syndrome == b->syndrome &&
	       a->msn == b->msn && a->imm == b->imm && a->rkey == b->rkey &&
	       a->dmalen == b->dmalen && a->va == b->va && a->swap_add == b->swap_add &&
	       a->compare == b->compare && a->atomic_orig == b->atomic_orig && a->qkey == b->qkey &&
	       a->sqpn == b->sqpn && a->vlan == b->vlan && a->tos == b->tos && a->ttl == b->ttl &&
	       a->sport == b->sport && a->ip_ver == b->ip_ver && wire_ip_eq(&a->src, &b->src) &&
	       wire_ip_eq(&a->dst, &b->dst);
}

static void rebuild(const uint8_t *frame, const struct wire_pkt *pkt)
{
	size_t cap = (size_t)pkt->pay_len + WIRE_MAX_HEADERS + WIRE_MAX_TRAILER;
	uint8_t *out = malloc(cap);
	struct wire_flow flow;
	struct wire_hdr hdr;
	struct wire_pkt again;
	int len;

	wire_unbuild(frame, pkt, &flow, &hdr);
	len = wire_build_frame(out, cap, &flow, &hdr, frame + pkt->pay_off, pkt->pay_len);
	if (len == -EINVAL && pkt->pay_len > 65535 - 128) {
		free(out);
		return;
	}
	fuzz_check(len > 0, "a parsed packet builds");
	fuzz_check(wire_parse(out, (size_t)len, &again) == WIRE_OK, "a built packet parses");
	fuzz_check(again.kind == WIRE_ROCE && again.end == len, "it is RoCE and whole");
	fuzz_check(same_packet(pkt, &again), "nothing was lost");
	fuzz_check(memcmp(frame + pkt->pay_off, out + again.pay_off, pkt->pay_len) == 0,
		"nor the payload");
	fuzz_check(wire_icrc_ok(out, &again), "a built packet's ICRC is right");
	free(out);
}

static void forward(const uint8_t *frame, size_t size, const struct wire_pkt *pkt)
{
	uint8_t *copy = malloc(size);
	struct wire_pkt again;
	int rc;

	memcpy(copy, frame, size);
	rc = wire_forward(copy, pkt, mac_b, mac_a);
	fuzz_check((rc == -ETIME) == (pkt->ttl <= 1), "forwarding ends with the TTL");
	if (rc < 0) {
		fuzz_check(memcmp(copy, frame, size) == 0, "and then changes nothing");
	} else {
		fuzz_check(wire_parse(copy, size, &again) == WIRE_OK, "it still parses");
		/* A solicitation with another hop limit is not one any more. */
		fuzz_check(again.kind == pkt->kind || again.kind == WIRE_IP, "as the same kind");
		fuzz_check(again.ttl == pkt->ttl - 1, "one hop less");
	}
	free(copy);
}

static void answer(const uint8_t *frame, size_t size, const struct wire_pkt *pkt)
{
	uint8_t *copy = malloc(size);
	struct wire_pkt again;

	memcpy(copy, frame, size);
	wire_icmp_echo_reply(copy, pkt);
	fuzz_check(wire_parse(copy, size, &again) == WIRE_OK, "a reply parses");
	fuzz_check(again.kind == WIRE_IP && again.end == pkt->end, "and is no request");
	fuzz_check(wire_ip_eq(&again.src, &pkt->dst) && wire_ip_eq(&again.dst, &pkt->src),
		"the other way round");
	free(copy);
}

/* Opcodes that nobody knows, for somebody who does. */
static void only_bth(const uint8_t *frame, struct wire_pkt pkt)
{
	if (wire_parse_bth(frame, &pkt) != WIRE_OK)
		return;
	fuzz_check(pkt.kind == WIRE_ROCE && pkt.flags == 0, "it is RoCE");
	fuzz_check(pkt.pay_off + pkt.pay_len + ROCE_ICRC_LEN == pkt.end, "to the ICRC");
	(void)wire_icrc_ok(frame, &pkt);
}

/* What walks extension headers looks at nothing behind the packet, which is all that it gets. */
static void look_behind(const uint8_t *frame, const struct wire_pkt *pkt)
{
	uint8_t *copy = malloc(pkt->end);
	struct wire_l4 l4;

	memcpy(copy, frame, pkt->end);
	l4 = wire_l4(copy, pkt);
	fuzz_check(l4.has_ports || (l4.sport == 0 && l4.dport == 0), "no ports are zeros");
	fuzz_check(!l4.has_ports || l4.proto == IP_PROTO_TCP || l4.proto == IP_PROTO_UDP,
		"ports are TCP's and UDP's");
	(void)wire_icmp_error_due(copy, pkt, WIRE_ICMP_TIME_EXCEEDED);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_pkt pkt;
	const enum wire_drop drop = wire_parse(data, size, &pkt);

	if (drop == WIRE_BTH_OPCODE)
		only_bth(data, pkt);
	if (drop != WIRE_OK) {
		fuzz_check(pkt.kind != WIRE_ROCE, "a refused frame is not RoCE");
		return 0;
	}
	fuzz_check(pkt.end <= size, "the packet ends in the frame");
	if (pkt.kind == WIRE_ROCE) {
		(void)wire_icrc_ok(data, &pkt);
		rebuild(data, &pkt);
	}
	if (pkt.kind == WIRE_ICMP_ECHO)
		answer(data, size, &pkt);
	if (pkt.ip_ver) {
		forward(data, size, &pkt);
		look_behind(data, &pkt);
	}
	return 0;
}

/* Options in front of a fragment header and behind it. */
static size_t put_extensions(uint8_t *out, const struct wire_ip *src, const struct wire_ip *dst)
{
	static const uint8_t behind[] = {IP_PROTO_FRAGMENT, 0, 1, 4, 0, 0, 0, 0,
		IP_PROTO_DST_OPTIONS, 0, 0, 1, 0, 0, 0, 5, IP_PROTO_UDP, 0, 1, 4, 0, 0, 0, 0, 1, 2,
		3, 4};
	struct wire_ip6_hdr ip = {.vtc_flow = {0x60}, .next = IP_PROTO_HOP_OPTIONS, .hop_limit = 2};

	memcpy(out, mac_b, 6);
	memcpy(out + 6, mac_a, 6);
	put_be16(out + 12, ETH_TYPE_IP6);
	put_be16(ip.len, sizeof(behind));
	memcpy(ip.src, src->b, sizeof(ip.src));
	memcpy(ip.dst, dst->b, sizeof(ip.dst));
	memcpy(out + ETH_HDR_LEN, &ip, sizeof(ip));
	memcpy(out + ETH_HDR_LEN + sizeof(ip), behind, sizeof(behind));
	return ETH_HDR_LEN + sizeof(ip) + sizeof(behind);
}

/* The captures hold RoCE only. */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	struct wire_ip a4 = wire_ip_from4(0x0a4d0001), b4 = wire_ip_from4(0x0a4d0002);
	struct wire_ip a6 = wire_ip_link_local(mac_a), b6 = wire_ip_link_local(mac_b);
	struct wire_flow flow = {.src = a6, .dst = b6, .ttl = 2, .vlan = 7};
	struct wire_hdr hdr = {.opcode = ROCE_ACK};
	int len;

	switch (i) {
	case 0:
		return (size_t)wire_build_arp(out, cap, ARP_REQUEST, mac_a, &a4, mac_b, &b4, 0);
	case 1:
		return (size_t)wire_build_arp(out, cap, ARP_REPLY, mac_a, &a4, mac_b, &b4, 7);
	case 2:
		return (size_t)wire_build_ns(out, cap, mac_a, &a6, &b6, 0);
	case 3:
		return (size_t)wire_build_na(out, cap, mac_b, mac_a, &b6, &a6, 7);
	case 4: /* ICMPv6 echo request */
	case 5: /* ICMP echo request */
		if (i == 5) {
			flow.src = a4;
			flow.dst = b4;
		}
		len = wire_build_frame(out, cap, &flow, &hdr, NULL, 0);
		out[18 + (i == 5 ? 9 : 6)] = i == 5 ? IP_PROTO_ICMP : IP_PROTO_ICMP6;
		out[18 + (i == 5 ? 20 : 40)] = i == 5 ? 8 : 128;
		out[18 + (i == 5 ? 21 : 41)] = 0;
		if (i == 5)
			out[18 + 11] += IP_PROTO_UDP - IP_PROTO_ICMP; /* of the checksum */
		return (size_t)len;
	case 6: /* CNP with a VLAN tag */
		hdr.opcode = ROCE_CNP;
		return (size_t)wire_build_frame(out, cap, &flow, &hdr, "0123456789abcdef", 16);
	case 7:
		return put_extensions(out, &a6, &b6);
	default:
		return 0;
	}
}
