/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariant CRC of a packet that came (docs/inc-protocol.md, 1.5): nothing is believed of a
 * packet, and none of it added, before this. */
#include "dataplane/inc/modules.h"

bool inc_check_icrc(const struct inc_look *look, const uint8_t *frame, const struct wire_pkt *pkt,
	uint32_t *pay_crc)
{
	const struct inc_group *g = look->group;
	const uint8_t *payload = frame + pkt->pay_off;
	size_t body = (size_t)pkt->pay_len + pkt->pad;
	const uint8_t *l3 = frame + pkt->l3_off;
	const size_t headers = (size_t)(pkt->pay_off - pkt->l3_off);
	uint32_t head, crc;

	/* A contribution's own CRC is of no use: the sum will have another. */
	if (body == 0 ||
		(look->cls == INC_CLASS_DATA && inc_aggregates(look->group, look->ep, pkt->psn)))
		return icrc_packet(l3, headers + body) == icrc_load(payload + body);
	head = icrc_headers(l3, headers);
	crc = icrc_append(0, payload, body);
	head = body == g->mtu ? icrc_combine_shift(head, crc, g->mtu_shift)
			      : icrc_combine(head, crc, body);
	if (head != icrc_load(payload + body))
		return false;
	/* Pad is made anew as zeros, so the payload's CRC is wanted alone. */
	*pay_crc = pkt->pad ? icrc_append(0, payload, pkt->pay_len) : crc;
	return true;
}
