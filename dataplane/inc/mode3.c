/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-III, connection augmented (docs/inc-protocol.md, section 4; EPIC's algorithms 2 and 3):
 * every edge is a connection of its own, whose packets the switch acknowledges, keeps in its pipes
 * and sends again until they are acknowledged to it. This is the receiving half of a connection. */
#include "dataplane/inc/modules.h"

enum { RNR_TIMER_CODE = 6 /* 80 us */ };

/* Once per gap; what it names acknowledges all before it. */
static enum inc_drop nak(struct inc_ctx *c, enum inc_drop why)
{
	inc_nak(c, false);
	return why;
}

/* Rows 6 and 7: there is no slot for it yet. */
static enum inc_drop ahead(struct inc_ctx *c, uint32_t expected)
{
	inc_count(c->g, INC_C_AHEAD);
	if (c->pkt->psn != expected)
		return nak(c, INC_DROP_PSN_AHEAD);
	inc_hold(c, expected, RNR_TIMER_CODE);
	if (inc_ep_at(c->g, c->ep)->host)
		inc_send_cnp(c, 1ULL << c->ep);
	return INC_DROP_PSN_AHEAD;
}

/* Row 10: the packet is the next in order; so may be others that overtook it. */
static void advance(struct inc_ctx *c, struct inc_ep *ep)
{
	struct inc_group *g = c->g;
	uint32_t psn = c->pkt->psn;
	unsigned steps = 0;

	do {
		ep->rx_epsn = psn_add(psn, 1);
		psn = inc_adjust(g, INC_FLOW_RX, c->ep, ep->rx_epsn);
		steps++;
	} while (inc_received(g, c->ep, psn));
	if (!INC_BUG(T20B))
		ep->nak_sent &= INC_NAK_SAME;
	if (c->pkt->ackreq || steps > 1 || inc_ends_message(c->desc, c->pkt->psn))
		inc_ack_owed(c);
}

/* Rows 8 and 9: AggregateData, unless it was done before. */
static enum inc_drop take(struct inc_ctx *c, uint32_t start)
{
	struct inc_group *g = c->g;
	uint32_t psn = c->pkt->psn;
	struct inc_slot *slot = inc_pipe_slot(g, c->pipe, psn);
	uint64_t in =
		c->route->prim == INC_AR && c->pipe == INC_BCAST ? 1ULL << c->ep : c->route->in;

	/* The pipe's range says whose the slot is, however old its last owner. */
	if (!psn_lt(psn, start) && slot->tag != psn)
		inc_recycle_buffer(slot, psn);
	if (psn_lt(psn, start) || inc_check_duplicate(g, slot, psn, c->ep) != INC_FRESH) {
		inc_count(g, INC_C_DUP);
		return INC_DROP_DUP_WAIT;
	}
	inc_aggregate_data(c, slot);
	if ((slot->arrived & in) != in)
		return INC_DROP_CONSUMED;
	inc_complete(c, slot);
	if (INC_BUG(FIG6))
		inc_recycle_buffer(inc_pipe_slot(g, c->pipe, psn_add(psn, g->m * g->w)),
			psn_add(psn, g->m * g->w));
	return INC_DROP_DONE;
}

/* The table of 4.2. */
static enum inc_drop receive_data(struct inc_ctx *c)
{
	struct inc_group *g = c->g;
	struct inc_ep *ep = inc_ep_at(g, c->ep);
	uint32_t psn = c->pkt->psn, start;
	uint32_t expected = inc_adjust(g, INC_FLOW_RX, c->ep, ep->rx_epsn);
	bool next = psn == expected, known = inc_desc_find(g, psn) != NULL;
	enum inc_role role;
	enum inc_drop drop;

	if (psn_lt(psn, expected))
		return inc_ack_again(c);
	if (!known && (c->cls != INC_CLASS_CTRL || !next))
		return nak(c, INC_DROP_NO_CONTROL);
	drop = inc_admit(c, &role);
	if (drop == INC_DROP_NO_CONTROL)
		return nak(c, drop);
	if (drop == INC_DROP_NO_DESCRIPTOR) {
		inc_hold(c, expected, RNR_TIMER_CODE);
		return drop;
	}
	if (drop != INC_OK)
		return drop;
	if ((c->pkt->tos & IP_ECN_MASK) == IP_ECN_CE)
		inc_send_cnp(c, 1ULL << c->ep);
	c->pipe = role == INC_ROLE_UP ? INC_AGG : INC_BCAST;
	start = inc_pipe_start(g, c->pipe);
	if (!psn_lt(psn, inc_pipe_end(g, start)))
		return ahead(c, expected);
	drop = take(c, start);
	ep->rx_high = psn_max(ep->rx_high, psn_add(psn, 1));
	if (next)
		advance(c, ep);
	else
		inc_nak(c, true);
	inc_ack_flush(c);
	if (drop != INC_DROP_DONE)
		return drop;
	inc_pump(c, inc_pipe_outs(g, c->route, c->pipe));
	inc_ack_flush(c); /* the pipes may have moved on */
	return drop;
}

/* To whoever feeds the pipe that sends to this endpoint (4.8). */
static enum inc_drop receive_cnp(struct inc_ctx *c)
{
	struct inc_group *g = c->g;
	const struct inc_desc *d = inc_desc_at(g, (uint8_t)(g->next_seq - 1) % INC_N_DESC);
	const struct inc_route *route = d->valid ? &d->route : &g->control;

	if (!((inc_pipe_outs(g, route, INC_AGG) | inc_pipe_outs(g, route, INC_BCAST)) >> c->ep & 1))
		return INC_DROP_ACK_CLASS;
	if (route->prim == INC_AR && c->ep != g->parent_ep && g->parent_ep != 0xff)
		return inc_send_cnp(c, 1ULL << g->parent_ep);
	return inc_send_cnp(c, route->in);
}

/* What the turn before has left. */
static void go_on(struct inc_ctx *c)
{
	if (c->g->unsent == 0)
		return;
	inc_pump(c, c->g->unsent);
	inc_ack_flush(c);
}

const struct inc_mode_ops inc_mode3 = {
	.pipes = 2,
	.check = inc_pipes_check,
	.pay_bytes = inc_pipe_bytes,
	.missing = inc_window_missing,
	.behind = inc_window_behind,
	.data = receive_data,
	.ack = inc_receive_ack,
	.cnp = receive_cnp,
	.retire = inc_retire,
	.go_on = go_on,
	.expired = inc_timer_expired,
};
