/* SPDX-License-Identifier: BSD-3-Clause */
/* TranslateHeader (docs/inc-protocol.md, 1.6): every packet that leaves is built from the endpoint
 * and the emission; nothing is inherited from the packet that happened to trigger it. */
#include "dataplane/inc/modules.h"

/* Where the host has its messages, one after the other (1.6). */
static uint64_t address_of(
	const struct inc_group *g, const struct inc_ep *ep, const struct inc_emit *emit)
{
	const uint32_t message = (uint32_t)g->m * g->mtu;

	return ep->mr_len ? ep->mr_addr + emit->msg % (ep->mr_len / message) * message : 0;
}

static struct wire_hdr header_of(const struct inc_group *g, const struct inc_ep *ep,
	const struct inc_emit *emit, uint16_t ip_id)
{
	return (struct wire_hdr){
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
		.va = address_of(g, ep, emit),
		.rkey = ep->rkey,
		.dmalen = emit->msg_len,
		.pos_offset = emit->pos_offset,
		.pos_recv = emit->pos_recv,
	};
}

/* Any packet: acknowledgements, controls, the tail of an operation. */
static int translate_any(const struct inc_group *g, const struct inc_ep *ep,
	const struct inc_emit *emit, uint16_t ip_id, uint8_t *out, uint8_t *tail,
	unsigned *tail_len)
{
	static const uint8_t zeros[4];
	size_t l3 = wire_l3_off(ep->flow.vlan);
	unsigned pad = wire_pad(emit->pay_len);
	size_t body = (size_t)emit->pay_len + pad;
	const struct wire_hdr hdr = header_of(g, ep, emit, ip_id);
	struct wire_flow flow = ep->flow;
	uint32_t crc;
	int len;

	flow.tos |= emit->ce ? IP_ECN_CE : IP_ECN_ECT0;
	len = wire_build_headers(out, WIRE_TEMPLATE_LEN, &flow, &hdr, emit->pay_len);
	crc = icrc_headers(out + l3, (size_t)len - l3);
	if (body)
		crc = icrc_combine(crc, icrc_append(emit->pay_crc, zeros, pad), body);
	memcpy(tail, zeros, pad);
	icrc_store(tail + pad, crc);
	*tail_len = pad + ROCE_ICRC_LEN;
	return len;
}

struct inc_translation inc_translate_emit(
	struct inc_group *g, const struct inc_emit *emit, uint16_t ip_id)
{
	const bool data = (emit->opcode <= ROCE_SEND_ONLY && emit->opcode != ROCE_SEND_LAST_IMM) ||
			  emit->opcode == ROCE_WRITE_MIDDLE;
	struct inc_translation t = {.emit = emit, .ip_id = ip_id};
	struct wire_hdr hdr;

	t.full = data && emit->pay_len == g->mtu && !emit->ce;
	if (!t.full)
		return t;
	hdr.opcode = emit->opcode;
	hdr.ackreq = emit->ackreq;
	hdr.mig = emit->mig;
	hdr.se = false;
	hdr.psn = emit->psn;
	hdr.ip_id = ip_id;
	t.common = wire_template_common(&inc_ep_at(g, 0)->full, &hdr, emit->pay_crc);
	return t;
}

int inc_translate_to(struct inc_group *g, unsigned ep_index, const struct inc_translation *t,
	uint8_t *out, uint8_t *tail, unsigned *tail_len)
{
	const struct inc_ep *ep = inc_ep_at(g, ep_index);

	if (!t->full)
		return translate_any(g, ep, t->emit, t->ip_id, out, tail, tail_len);
	icrc_store(tail, wire_template_copy(&ep->full, &t->common, out));
	*tail_len = ROCE_ICRC_LEN;
	return ep->full.len;
}

int inc_translate_header(struct inc_group *g, unsigned ep, const struct inc_emit *emit,
	uint16_t ip_id, uint8_t *out, uint8_t *tail, unsigned *tail_len)
{
	const struct inc_translation t = inc_translate_emit(g, emit, ip_id);

	return inc_translate_to(g, ep, &t, out, tail, tail_len);
}
