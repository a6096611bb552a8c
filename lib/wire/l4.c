/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/l4.h"

#include "lib/wire/bytes.h"
#include "lib/wire/ip6_ext.h"
#include "lib/wire/ip_fragment.h"

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

/* What a later fragment says it is of; p is its header, or what is left of it. */
static uint8_t named(const uint8_t *p, unsigned len)
{
	return len < IP6_FRAGMENT_LEN || ip6_is_ext(p[0]) ? IP_PROTO_FRAGMENT : p[0];
}

static struct wire_l4 behind_extensions(const uint8_t *frame, const struct wire_pkt *pkt)
{
	const uint8_t *ip6 = frame + pkt->l3_off;
	struct wire_ip6_ext ext = {.proto = pkt->ip_proto};

	if (ip6_ext_walk_into(ip6, (size_t)(pkt->end - pkt->l3_off), &ext) < 0)
		return (struct wire_l4){.proto = ext.proto};
	if (ext.proto == IP_PROTO_FRAGMENT)
		return (struct wire_l4){.proto = named(ip6 + ext.off, ext.end - ext.off)};
	return read_ports(frame, pkt, ext.proto, (unsigned)pkt->l3_off + ext.off);
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
