/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the connections and pipes of Mode-III stand: what of a PSN sequence has come, may be sent,
 * is acknowledged, and is forgotten. Nothing is sent here. */
#include "dataplane/inc/modules.h"

uint32_t inc_pipe_start(struct inc_group *g, unsigned pipe)
{
	return inc_adjust(g, INC_FLOW_PIPE, pipe, g->psn_start[pipe]);
}

uint32_t inc_credit(const struct inc_group *g, const struct inc_ep *ep)
{
	return ep->host ? (uint32_t)g->m * g->w : (1u << g->log2n) / 2;
}

uint32_t inc_tx_limit(const struct inc_group *g, const struct inc_ep *ep)
{
	uint32_t limit = ep->host ? INC_MAX_SLOTS : inc_credit(g, ep);

	return (g->flags & INC_F_SR) && limit > ROCE_SACK_BITS ? ROCE_SACK_BITS : limit;
}

uint32_t inc_pipe_end(const struct inc_group *g, uint32_t start)
{
	return psn_add(start, 1 << g->log2n);
}

bool inc_received(struct inc_group *g, unsigned ep, uint32_t psn)
{
	const struct inc_desc *d = inc_desc_find(g, psn);
	const struct inc_slot *slot;
	enum inc_pipe pipe;
	uint32_t start;

	if (d == NULL)
		return false;
	pipe = inc_role_of(g, inc_route_at(g, d, psn), ep) == INC_ROLE_UP ? INC_AGG : INC_BCAST;
	start = inc_pipe_start(g, pipe);
	if (psn_lt(psn, start))
		return !INC_BUG(T14);
	slot = inc_pipe_slot(g, pipe, psn);
	return psn_lt(psn, inc_pipe_end(g, start)) && slot->tag == psn && slot->arrived >> ep & 1;
}

void inc_move_acked(struct inc_group *g, unsigned i, uint32_t to)
{
	struct inc_ep *ep = inc_ep_at(g, i);

	if (psn_lt(ep->rx_acked, to))
		ep->nak_sent &= (uint8_t)~INC_NAK_SAME;
	while (psn_lt(ep->rx_acked, to)) {
		uint32_t psn = inc_adjust(g, INC_FLOW_RX, i, ep->rx_acked);
		const struct inc_desc *d = inc_desc_find(g, psn);

		if (!psn_lt(psn, to) || d == NULL) {
			ep->rx_acked = to;
			return;
		}
		ep->rx_msn = psn_add(ep->rx_msn, inc_ends_message(d, psn));
		ep->rx_acked = psn_add(psn, 1);
	}
}

/* All that an endpoint or a pipe keeps of an operation may go when it is through with it; one that
 * has no part in it is moved past it, for nobody will know then what it was. */
bool inc_retire(struct inc_group *g, const struct inc_desc *d)
{
	uint32_t after = psn_add(d->last, 1);

	for (unsigned pipe = 0; pipe < 2; pipe++)
		if (psn_lt(inc_pipe_start(g, pipe), after))
			return false;
	for (unsigned i = 0; i < g->n_ep; i++) {
		const struct inc_ep *ep = inc_ep_at(g, i);

		if (psn_lt(inc_adjust(g, INC_FLOW_RX, i, ep->rx_epsn), after) ||
			psn_lt(inc_adjust(g, INC_FLOW_TX, i, ep->tx_una), after))
			return false;
	}
	for (unsigned i = 0; i < g->n_ep; i++) {
		struct inc_ep *ep = inc_ep_at(g, i);

		inc_move_acked(g, i, after); /* its messages are counted by the descriptor */
		ep->rx_epsn = psn_max(ep->rx_epsn, after);
		ep->tx_una = psn_max(ep->tx_una, after);
		ep->tx_next = psn_max(ep->tx_next, after);
		ep->tx_high = psn_max(ep->tx_high, after);
		inc_sr_catch_up(ep, after);
	}
	for (unsigned pipe = 0; pipe < 2; pipe++)
		g->psn_start[pipe] = psn_max(g->psn_start[pipe], after);
	g->loop_next = psn_max(g->loop_next, after);
	return true;
}

/* Pipes can do with less than two windows, slowly. */
int inc_pipes_check(struct inc_group_spec *s, char *err)
{
	return inc_check_window(s, 1, 2, "", err);
}

/* Peers that have not acknowledged what was sent to them. */
uint64_t inc_window_missing(struct inc_group *g, uint32_t *psn)
{
	uint64_t missing = 0;

	for (unsigned i = 0; i < g->n_ep; i++) {
		const struct inc_ep *ep = inc_ep_at(g, i);

		if (!psn_lt(ep->tx_una, ep->tx_high))
			continue;
		if (missing == 0 || psn_lt(ep->tx_una, *psn))
			*psn = ep->tx_una;
		missing |= 1ULL << i;
	}
	return missing;
}

/* Whose packets of an operation begun have not all come. */
uint64_t inc_window_behind(struct inc_group *g, uint32_t *psn)
{
	uint64_t missing = 0;

	for (unsigned i = 0; i < g->n_ep; i++) {
		uint32_t next = inc_adjust(g, INC_FLOW_RX, i, inc_ep_at(g, i)->rx_epsn);

		if (!psn_lt(next, g->next_ctrl))
			continue;
		*psn = missing == 0 || psn_lt(next, *psn) ? next : *psn;
		missing |= 1ULL << i;
	}
	return missing;
}
