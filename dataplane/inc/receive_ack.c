/* SPDX-License-Identifier: BSD-3-Clause */
/* ReceiveAck and SendAck of Mode-II (docs/inc-protocol.md, 3.5, 3.8): the switch keeps no
 * connection state of its own; what a host says of the results it received holds for what it sent.
 */
#include "dataplane/inc/modules.h"

enum { CNP_MIN_GAP_NS = 50000 };

static void emit_ack(
	struct inc_ctx *c, unsigned ep, uint8_t syndrome, uint32_t psn, uint32_t msn, bool mig)
{
	const struct inc_emit emit = {
		.out_mask = 1ULL << ep,
		.opcode = ROCE_ACK,
		.syndrome = syndrome,
		.mig = mig,
		.psn = psn,
		.msn = msn,
	};

	inc_count(c->g, INC_C_TX);
	c->sink->emit(c->sink->arg, c->g, &emit);
}

void inc_send_ack(struct inc_ctx *c, unsigned ep, uint8_t syndrome, uint32_t psn)
{
	struct inc_ep *e = inc_ep_at(c->g, ep);

	/* An ACK, or an RNR NAK, tells the host that everything before it was received. */
	if ((syndrome & ROCE_AETH_CLASS) == ROCE_AETH_ACK)
		e->refl_next = psn_max(e->refl_next, psn_add(psn, 1));
	emit_ack(c, ep, syndrome, psn, e->ack_msn, true);
}

enum inc_drop inc_reflect_ack(struct inc_ctx *c)
{
	struct inc_ep *ep = inc_ep_at(c->g, c->ep);
	bool ack = c->cls == INC_CLASS_ACK;
	uint32_t next = ack ? psn_add(c->pkt->psn, 1) : c->pkt->psn;

	if (!ep->host)
		return INC_DROP_ACK_CLASS;
	/* A NAK may name the first PSN of an operation that has not begun here. */
	if (inc_desc_find(c->g, c->pkt->psn) == NULL && (ack || c->pkt->psn != c->g->next_ctrl))
		return INC_DROP_ACK_RANGE;
	ep->ack_next = psn_max(ep->ack_next, next);
	ep->ack_msn = c->pkt->msn;
	ep->refl_next = psn_max(ep->refl_next, next);
	inc_count(c->g, INC_C_REFLECTED);
	/* Credits count the host's receive queue, not the switch's: none are passed on. */
	emit_ack(c, c->ep, ack ? ROCE_AETH_ACK | ROCE_AETH_NO_CREDITS : c->pkt->syndrome,
		c->pkt->psn, c->pkt->msn, c->pkt->mig);
	return INC_DROP_DONE;
}

enum inc_drop inc_reflect_cnp(struct inc_ctx *c)
{
	static const uint8_t zeros[ROCE_CNP_LEN];
	struct inc_ep *ep = inc_ep_at(c->g, c->ep);
	const struct inc_emit emit = {
		.out_mask = 1ULL << c->ep,
		.opcode = ROCE_CNP,
		.payload = zeros,
		.pay_len = sizeof(zeros),
		.pay_crc = icrc_append(0, zeros, sizeof(zeros)),
		.mig = true,
	};

	if (!ep->host)
		return INC_DROP_ACK_CLASS;
	if (ep->cnp_ns && c->now - ep->cnp_ns < CNP_MIN_GAP_NS)
		return INC_DROP_CNP_RATE;
	ep->cnp_ns = c->now;
	inc_count(c->g, INC_C_TX);
	c->sink->emit(c->sink->arg, c->g, &emit);
	return INC_DROP_DONE;
}
