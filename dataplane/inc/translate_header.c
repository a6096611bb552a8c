/* SPDX-License-Identifier: BSD-3-Clause */
/* TranslateHeader (docs/inc-protocol.md, 1.6): every packet that leaves is built from the endpoint
 * and the emission; nothing is inherited from the packet that happened to trigger it. */
#include "dataplane/inc/engine.h"

bool inc_check_icrc(const struct inc_look *look, const uint8_t *frame, const struct wire_pkt *pkt,
	uint32_t *pay_crc)
{
	const struct inc_group *g = look->group;
	const uint8_t *payload = frame + pkt->pay_off;
	size_t body = (size_t)pkt->pay_len + pkt->pad;
	uint32_t head = icrc_headers(frame + pkt->l3_off, (size_t)(pkt->pay_off - pkt->l3_off));
	uint32_t crc;

	/* A contribution's own CRC is of no use: the sum will have another. */
	if (look->cls == INC_CLASS_UP_DATA)
		return icrc_append(head, payload, body) == icrc_load(payload + body);
	crc = icrc_append(0, payload, body);
	head = body == g->mtu ? icrc_combine_shift(head, crc, g->mtu_shift)
			      : icrc_combine(head, crc, body);
	if (head != icrc_load(payload + body))
		return false;
	/* Pad is made anew as zeros, so the payload's CRC is wanted alone. */
	*pay_crc = pkt->pad ? icrc_append(0, payload, pkt->pay_len) : crc;
	return true;
}

int inc_write_header(struct inc_group *g, unsigned ep_index, const struct inc_emit *emit,
	uint16_t ip_id, uint8_t *out)
{
	const struct inc_ep *ep = inc_ep_at(g, ep_index);
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

	flow.tos |= emit->ce ? IP_ECN_CE : IP_ECN_ECT0;
	return wire_build_headers(out, WIRE_MAX_HEADERS, &flow, &hdr, emit->pay_len);
}

unsigned inc_seal(struct inc_group *g, unsigned ep_index, const struct inc_emit *emit,
	const uint8_t *head, unsigned head_len, uint8_t *tail)
{
	static const uint8_t zeros[4];
	size_t l3 = wire_l3_off(inc_ep_at(g, ep_index)->flow.vlan);
	unsigned pad = wire_pad(emit->pay_len);
	size_t body = (size_t)emit->pay_len + pad;
	uint32_t crc = icrc_headers(head + l3, head_len - l3);
	uint32_t pay_crc = emit->pay_crc;

	if (pad)
		pay_crc = icrc_append(pay_crc, zeros, pad);
	if (body == g->mtu)
		crc = icrc_combine_shift(crc, pay_crc, g->mtu_shift);
	else if (body)
		crc = icrc_combine(crc, pay_crc, body);
	memcpy(tail, zeros, pad);
	icrc_store(tail + pad, crc);
	return pad + ROCE_ICRC_LEN;
}

int inc_translate_header(struct inc_group *g, unsigned ep, const struct inc_emit *emit,
	uint16_t ip_id, uint8_t *out, uint8_t *tail, unsigned *tail_len)
{
	int len = inc_write_header(g, ep, emit, ip_id, out);

	*tail_len = inc_seal(g, ep, emit, out, (unsigned)len, tail);
	return len;
}
