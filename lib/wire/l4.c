/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/l4.h"

#include "lib/wire/bytes.h"
#include "lib/wire/ip6_ext.h"

enum { PORTS_LEN = 4 };

/* off: where it begins, which is not behind the packet's end. */
static struct wire_l4 read_ports(
	const uint8_t *frame, const struct wire_pkt *pkt, uint8_t proto, unsigned off)
{
	struct wire_l4 l4 = {.proto = proto};

	if ((proto != IP_PROTO_TCP && proto != IP_PROTO_UDP) || pkt->end - off < PORTS_LEN)
		return l4;
	l4.has_ports = true;
	l4.sport = get_be16(frame + off);
	l4.dport = get_be16(frame + off + 2);
	return l4;
}

static struct wire_l4 behind_extensions(const uint8_t *frame, const struct wire_pkt *pkt)
{
	const uint8_t *ip6 = frame + pkt->l3_off;
	struct wire_ip6_ext ext;
	unsigned off;

	if (ip6_ext_walk(ip6, (size_t)(pkt->end - pkt->l3_off), &ext) < 0)
		return (struct wire_l4){.proto = pkt->ip_proto};
	off = (unsigned)pkt->l3_off + ext.off;
	if (ext.proto != IP_PROTO_FRAGMENT || pkt->end - off < IP6_FRAGMENT_LEN)
		return read_ports(frame, pkt, ext.proto, off);
	if (!ip6_fragment_is_first(frame + off))
		return (struct wire_l4){.proto = frame[off]};
	return read_ports(frame, pkt, frame[off], off + IP6_FRAGMENT_LEN);
}

struct wire_l4 wire_l4(const uint8_t *frame, const struct wire_pkt *pkt)
{
	const uint8_t *ip = frame + pkt->l3_off;

	if (pkt->ip_ver == 6)
		return behind_extensions(frame, pkt);
	if (get_be16(ip + offsetof(struct ip4_hdr, frag)) & IP4_FRAG_OFFSET)
		return (struct wire_l4){.proto = pkt->ip_proto};
	return read_ports(frame, pkt, pkt->ip_proto, pkt->l4_off);
}
