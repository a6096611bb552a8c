/* SPDX-License-Identifier: BSD-3-Clause */
/* TranslateHeader (docs/inc-protocol.md, 1.6): every packet that leaves is built from the endpoint
 * and the emission; nothing is inherited from the packet that happened to trigger it. */
#include "dataplane/inc/engine.h"

bool inc_check_icrc(const struct inc_group *g, const uint8_t *frame, const struct wire_pkt *pkt,
	uint32_t *pay_crc)
{
	size_t body = (size_t)pkt->pay_len + pkt->pad;
	uint32_t head = icrc_headers(frame + pkt->l3_off, (size_t)(pkt->pay_off - pkt->l3_off));
	uint32_t crc = icrc_append(0, frame + pkt->pay_off, body);
	uint32_t sum = body == g->mtu ? icrc_combine_shift(head, crc, g->mtu_shift)
				      : icrc_combine(head, crc, body);

	if (sum != icrc_load(frame + pkt->pay_off + body))
		return false;
	if (pkt->pad) /* pad is made anew as zeros, so the payload's CRC is wanted alone */
		crc = icrc_append(0, frame + pkt->pay_off, pkt->pay_len);
	*pay_crc = crc;
	return true;
}

int inc_translate_header(struct inc_group *g, unsigned ep_index, const struct inc_emit *emit,
	uint16_t ip_id, uint8_t *out, uint8_t *tail, unsigned *tail_len)
{
	static const uint8_t zeros[4];
	const struct inc_ep *ep = inc_ep_at(g, ep_index);
	unsigned pad = wire_pad(emit->pay_len);
	size_t body = (size_t)emit->pay_len + pad, l3 = wire_l3_off(ep->flow.vlan);
	struct wire_flow flow = ep->flow;
	const struct wire_hdr hdr = {
		.opcode = emit->opcode,
		.ackreq = emit->ackreq,
		.mig = emit->mig,
		.becn = emit->opcode == ROCE_CNP,
		.syndrome = emit->syndrome,
		.ip_id = ip_id,
		.dqpn = ep->remote_qpn,
		.psn = emit->psn,
		.msn = emit->msn,
		.imm = emit->imm,
	};
	uint32_t head, crc = emit->pay_crc;
	int len;

	flow.tos |= emit->ce ? IP_ECN_CE : IP_ECN_ECT0;
	len = wire_build_headers(out, WIRE_MAX_HEADERS, &flow, &hdr, emit->pay_len);
	head = icrc_headers(out + l3, (size_t)len - l3);
	if (pad)
		crc = icrc_append(crc, zeros, pad);
	if (body == 0)
		crc = head;
	else if (body == g->mtu)
		crc = icrc_combine_shift(head, crc, g->mtu_shift);
	else
		crc = icrc_combine(head, crc, body);
	memcpy(tail, zeros, pad);
	icrc_store(tail + pad, crc);
	*tail_len = pad + ROCE_ICRC_LEN;
	return len;
}
