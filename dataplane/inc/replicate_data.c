/* SPDX-License-Identifier: BSD-3-Clause */
/* Forward and ReplicateData (EPIC, appendix B): the same payload to one or many endpoints; what
 * differs between the copies is TranslateHeader's work. */
#include "dataplane/inc/modules.h"

/* What each endpoint was sent; in Mode-III its connection says so. */
static void note_sent(struct inc_group *g, const struct inc_emit *emit)
{
	if (g->mode == INC_MODE_3)
		return;
	for (uint64_t outs = emit->out_mask; outs != 0; outs &= outs - 1) {
		struct inc_ep *ep = inc_ep_at(g, (unsigned)__builtin_ctzll(outs));

		ep->tx_high = psn_max(ep->tx_high, psn_add(emit->psn, 1));
	}
}

static void emit(struct inc_ctx *c, const struct inc_emit *emit)
{
	if (emit->out_mask == 0)
		return;
	note_sent(c->g, emit);
	c->g->count[INC_C_TX] += (unsigned)__builtin_popcountll(emit->out_mask);
	c->sink->emit(c->sink->arg, c->g, emit);
}

/* A pipe may be smaller than a message: it is not to wait for the message's end (T17). */
static bool asks_often(const struct inc_group *g, uint32_t psn)
{
	uint32_t every = 1u << g->log2n >> 2;

	return g->mode == INC_MODE_3 && !INC_BUG(T17) && (every < 2 || (psn & (every - 1)) == 0);
}

void inc_forward_slot(
	struct inc_ctx *c, enum inc_pipe pipe, const struct inc_slot *slot, uint64_t outs)
{
	struct inc_desc *d = inc_desc_at(c->g, slot->desc);
	const struct inc_position pos = inc_position_of(c->g, d, slot->tag);
	const struct inc_emit e = {
		.out_mask = outs,
		.payload = slot->tag == d->ctrl_psn
				   ? d->payload
				   : inc_payload_at(c->g, c->arena, pipe, slot->tag),
		.pay_crc = slot->pay_crc,
		.pay_len = slot->len,
		.opcode = pos.opcode,
		.ackreq = pos.ackreq || (c->again && (c->g->flags & INC_F_SR)) ||
			  asks_often(c->g, slot->tag),
		.mig = c->mig,
		.again = c->again,
		.ce = slot->ce,
		.psn = slot->tag,
		.imm = pos.imm,
		.msg = pos.msg,
		.msg_len = pos.msg_len,
		.pos_offset = pos.offset,
		.pos_recv = pos.recv,
	};

	emit(c, &e);
}

void inc_forward_packet(struct inc_ctx *c, uint64_t outs)
{
	/* What is older than all descriptors is for somebody who has it and will say so. */
	const struct inc_position pos = c->desc ? inc_position_of(c->g, c->desc, c->pkt->psn)
						: (struct inc_position){.ackreq = c->pkt->ackreq,
							  .imm = c->pkt->imm,
							  .msg_len = c->pkt->dmalen,
							  .offset = c->pkt->pos_offset,
							  .recv = c->pkt->pos_recv};
	const struct inc_emit e = {
		.out_mask = outs,
		.payload = c->payload,
		.from_packet = true,
		.pay_crc = c->pay_crc,
		.pay_len = c->pkt->pay_len,
		.opcode = c->pkt->opcode,
		.ackreq = pos.ackreq || (c->pkt->ackreq && (c->g->flags & INC_F_SR)),
		.mig = c->mig,
		.ce = (c->pkt->tos & IP_ECN_MASK) == IP_ECN_CE,
		.psn = c->pkt->psn,
		.imm = pos.imm,
		.msg = pos.msg,
		.msg_len = pos.msg_len,
		.pos_offset = pos.offset,
		.pos_recv = pos.recv,
	};

	emit(c, &e);
}
