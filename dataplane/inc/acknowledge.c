/* SPDX-License-Identifier: BSD-3-Clause */
/* Acknowledging in Mode-III (docs/inc-protocol.md, 4.9). What was received is acknowledged as far
 * as all that the peer may send then still finds room: in the pipes, and among the descriptors. So
 * a peer that keeps its window is never ahead of the switch, and no RNR NAK is needed; rdma_rxe for
 * one does not bear them well. What is held back is acknowledged when the pipes have moved on. */
#include "dataplane/inc/modules.h"

enum { OPS_AHEAD = 4 /* 2.2, 7 */, STALL_TIMER_CODE = 14 /* 1.28 ms */ };

/* Where the pipes have room for all that may be sent beyond it. */
static uint32_t room(struct inc_group *g, const struct inc_ep *ep)
{
	uint32_t n = 1u << g->log2n, credit = inc_credit(g, ep);
	uint32_t agg = inc_pipe_start(g, INC_AGG), bcast = inc_pipe_start(g, INC_BCAST);

	return psn_add(psn_lt(agg, bcast) ? agg : bcast, credit < n ? (int32_t)(n - credit) : 0);
}

/* Is the operation OPS_AHEAD before the k-th newest over? If it is not known any more it is. */
static bool descriptor_free(struct inc_group *g, unsigned k)
{
	const struct inc_desc *d = inc_desc_at(g, (uint8_t)(g->next_seq - k) % INC_N_DESC);
	const struct inc_desc *older =
		inc_desc_at(g, (uint8_t)(g->next_seq - k - OPS_AHEAD) % INC_N_DESC);

	return !older->valid || older->op_seq != (uint8_t)(d->op_seq - OPS_AHEAD) ||
	       inc_retire(g, older);
}

/* PSNs before this one may be acknowledged. */
static uint32_t limit(struct inc_group *g, const struct inc_ep *ep)
{
	uint32_t to = room(g, ep);

	if (INC_BUG(FIG6)) /* as in the paper: whatever has come */
		return ep->rx_epsn;
	to = psn_max(psn_lt(to, ep->rx_epsn) ? to : ep->rx_epsn, ep->rx_acked);
	for (unsigned k = 1; k <= INC_N_DESC; k++) {
		const struct inc_desc *d = inc_desc_at(g, (uint8_t)(g->next_seq - k) % INC_N_DESC);

		if (!d->valid || psn_lt(d->ctrl_psn, ep->rx_acked))
			break;
		if (psn_lt(d->ctrl_psn, to) && !descriptor_free(g, k))
			to = d->ctrl_psn;
	}
	return to;
}

static void send(struct inc_ctx *c, unsigned i, uint8_t syndrome, uint32_t psn)
{
	inc_send_ack(c, 1ULL << i, syndrome, psn, inc_ep_at(c->g, i)->rx_msn);
}

/* Names the oldest PSN that is not acknowledged, which may have come. */
static void send_nak(struct inc_ctx *c, unsigned i, uint32_t to)
{
	inc_count(c->g, INC_C_NAKS);
	inc_ep_at(c->g, i)->nak_sent = INC_NAK_SENT | INC_NAK_SAME;
	send(c, i, ROCE_AETH_NAK | ROCE_NAK_SEQUENCE, inc_adjust(c->g, INC_FLOW_RX, i, to));
}

/* A NAK waits, and would not be taken for a copy of the last one. */
static bool nak_due(const struct inc_ep *ep)
{
	return (ep->nak_sent & (INC_NAK_OWED | INC_NAK_SAME)) == INC_NAK_OWED;
}

/* SR: where something is missing, what has come behind it goes with each acknowledgement. */
static void send_ack(struct inc_ctx *c, unsigned i, uint32_t to)
{
	inc_move_acked(c->g, i, to);
	if (nak_due(inc_ep_at(c->g, i))) {
		send_nak(c, i, to);
		return;
	}
	inc_count(c->g, INC_C_ACKS);
	if ((c->g->flags & INC_F_SR) && to == inc_ep_at(c->g, i)->rx_epsn && inc_sr_gap(c->g, i))
		inc_sr_tell(c, i, to);
	else
		send(c, i, ROCE_AETH_ACK | ROCE_AETH_NO_CREDITS, psn_add(to, -1));
}

void inc_ack_owed(struct inc_ctx *c)
{
	c->g->owed |= 1ULL << c->ep;
	c->owed = true;
}

/* Not each PSN by itself: the packet's own endpoint hears at once, one that waited when it has all
 * or a good part of its credit. */
void inc_ack_flush(struct inc_ctx *c)
{
	struct inc_group *g = c->g;

	for (uint64_t eps = g->owed; eps != 0; eps &= eps - 1) {
		unsigned i = (unsigned)__builtin_ctzll(eps);
		struct inc_ep *ep = inc_ep_at(g, i);
		uint32_t to = limit(g, ep), news = (to - ep->rx_acked) & PSN_MASK;

		if (to == ep->rx_epsn)
			g->owed &= ~(1ULL << i);
		else if (news == 0 || (!(c->owed && i == c->ep) && !(ep->nak_sent & INC_NAK_OWED) &&
					      news < inc_credit(g, ep) / 4))
			continue;
		if (news || nak_due(ep))
			send_ack(c, i, to);
	}
}

enum inc_drop inc_ack_again(struct inc_ctx *c)
{
	struct inc_group *g = c->g;
	const struct inc_ep *ep = inc_ep_at(g, c->ep);
	uint32_t psn = c->pkt->psn, to = limit(g, ep);

	inc_count(g, INC_C_DUP);
	if (psn_lt(psn, to) || !psn_lt(psn, ep->rx_epsn) /* no PSN of its flow */) {
		inc_count(g, INC_C_DUP_ANSWERED);
		if (!INC_BUG(T12) || !psn_lt(psn, inc_pipe_start(g, INC_AGG)))
			send_ack(c, c->ep, to);
		return INC_DROP_DONE;
	}
	/* Held back for so long that its timer runs: its NIC would give up. */
	if (!(g->flags & INC_F_STALL_RNR) || !ep->host ||
		psn != inc_adjust(g, INC_FLOW_RX, c->ep, to))
		return INC_DROP_DUP_WAIT;
	inc_count(g, INC_C_STALL_RNR);
	inc_move_acked(g, c->ep, to);
	send(c, c->ep, ROCE_AETH_RNR | STALL_TIMER_CODE, psn);
	return INC_DROP_DONE;
}

void inc_nak(struct inc_ctx *c, bool kept)
{
	struct inc_group *g = c->g;
	struct inc_ep *ep = inc_ep_at(g, c->ep);
	bool selective = g->flags & INC_F_SR;
	uint32_t to;

	if ((ep->nak_sent & INC_NAK_SENT) && !INC_BUG(T20) &&
		!(selective && kept && c->pkt->ackreq))
		return;
	to = limit(g, ep);
	if (selective && to != ep->rx_epsn) { /* what it would name is not missing */
		inc_ack_owed(c);
		return;
	}
	inc_move_acked(g, c->ep, to);
	/* To its peer the same NAK again is a copy, and tells nothing. */
	if ((ep->nak_sent & INC_NAK_SAME) && !INC_BUG(T20) && !INC_BUG(T20C)) {
		ep->nak_sent |= INC_NAK_SENT | INC_NAK_OWED;
		inc_ack_owed(c);
	} else if (selective) {
		ep->nak_sent = INC_NAK_SENT;
		inc_count(g, INC_C_NAKS);
		inc_sr_tell(c, c->ep, to);
	} else {
		send_nak(c, c->ep, to);
	}
}

void inc_hold(struct inc_ctx *c, uint32_t expected, uint8_t timer_code)
{
	inc_move_acked(c->g, c->ep, inc_ep_at(c->g, c->ep)->rx_epsn);
	send(c, c->ep, ROCE_AETH_RNR | timer_code, expected);
}
