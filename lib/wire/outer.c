/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/outer.h"

#include "lib/wire/bytes.h"
#include "lib/wire/checksum.h"
#include "lib/wire/frame.h"

enum { MAX_TAGS = 2, ETH_TYPE_SVLAN = 0x88a8, ETH_TYPE_LEN = 2 };

static struct wire_outer outer4(const uint8_t *frame, size_t len, size_t off)
{
	const struct ip4_hdr *ip = (const void *)(frame + off);
	size_t l3_len;

	if (len < off + sizeof(*ip) || ip->ver_ihl >> 4 != 4)
		return (struct wire_outer){0};
	l3_len = (ip->ver_ihl & 15) * 4u;
	if (l3_len < sizeof(*ip) || len < off + l3_len)
		return (struct wire_outer){0};
	return (struct wire_outer){4, ip->tos, (uint16_t)off, (uint16_t)l3_len};
}

static struct wire_outer outer6(const uint8_t *frame, size_t len, size_t off)
{
	const size_t l3_len = sizeof(struct wire_ip6_hdr);

	if (len < off + l3_len || frame[off] >> 4 != 6)
		return (struct wire_outer){0};
	return (struct wire_outer){6, ip_tos(frame + off), (uint16_t)off, (uint16_t)l3_len};
}

struct wire_outer wire_outer(const uint8_t *frame, size_t len)
{
	size_t off = ETH_HDR_LEN;

	for (unsigned tags = 0; len >= off; tags++) {
		switch (get_be16(frame + off - ETH_TYPE_LEN)) {
		case ETH_TYPE_IP4:
			return outer4(frame, len, off);
		case ETH_TYPE_IP6:
			return outer6(frame, len, off);
		case ETH_TYPE_VLAN:
		case ETH_TYPE_SVLAN:
			if (tags < MAX_TAGS)
				break;
			/* fall through */
		default:
			return (struct wire_outer){0};
		}
		off += VLAN_HDR_LEN;
	}
	return (struct wire_outer){0};
}

void wire_outer_set_tos(uint8_t *frame, struct wire_outer *outer, uint8_t tos)
{
	ip_put_tos(frame + outer->l3_off, tos);
	outer->tos = tos;
}

bool wire_outer_mark(uint8_t *frame, struct wire_outer *outer)
{
	if ((outer->tos & IP_ECN_MASK) == IP_ECN_NOT_ECT)
		return false;
	if ((outer->tos & IP_ECN_MASK) != IP_ECN_CE)
		wire_outer_set_tos(frame, outer, outer->tos | IP_ECN_CE);
	return true;
}

void wire_outer_cut(uint8_t *frame, const struct wire_outer *outer, size_t len)
{
	uint8_t *l3 = frame + outer->l3_off;
	size_t left = len - outer->l3_off;

	if (outer->ver == 4)
		ip4_put_word(l3, offsetof(struct ip4_hdr, len), (uint16_t)left);
	else
		put_be16(l3 + offsetof(struct wire_ip6_hdr, len),
			(uint16_t)(left - sizeof(struct wire_ip6_hdr)));
}
