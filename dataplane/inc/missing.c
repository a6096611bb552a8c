/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is waited for: what an operator, a rank that stands still, or somebody who wants a group to
 * end is told. */
#include "dataplane/inc/modules.h"

/* Receivers of the newest broadcast that lack what its sender has sent; if none does, the sender.
 */
static uint64_t broadcast_missing(struct inc_group *g, uint32_t *psn)
{
	const struct inc_desc *d = inc_desc_at(g, (uint8_t)(g->next_seq - 1) % INC_N_DESC);
	uint64_t missing = 0;

	if (!d->valid || d->n == 0 || d->route.prim != INC_BC || psn_le(g->bc_next, d->ctrl_psn))
		return 0;
	*psn = g->bc_next;
	for (uint64_t outs = d->route.outs; outs != 0; outs &= outs - 1) {
		const struct inc_ep *ep = inc_ep_at(g, (unsigned)__builtin_ctzll(outs));

		if (!psn_lt(ep->ack_next, g->bc_next))
			continue;
		missing |= outs & -outs;
		*psn = psn_lt(ep->ack_next, *psn) ? ep->ack_next : *psn;
	}
	return missing == 0 && psn_le(g->bc_next, d->last) ? d->route.in : missing;
}

/* Mode-III: peers that have not acknowledged what was sent to them. */
static uint64_t peers_missing(struct inc_group *g, uint32_t *psn)
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

/* psn: the number of the message. */
static uint64_t mode1_missing(struct inc_group *g, uint32_t *psn)
{
	uint64_t waiting = g->in_front, here = 0;
	const struct inc_route *route;
	const struct inc_desc *d;

	if (waiting == 0)
		return 0;
	*psn = inc_ep_at(g, (unsigned)__builtin_ctzll(waiting))->ack_next;
	for (uint64_t eps = waiting; eps != 0; eps &= eps - 1)
		*psn = psn_min(*psn, inc_ep_at(g, (unsigned)__builtin_ctzll(eps))->ack_next);
	d = inc_desc_find(g, *psn);
	if (d == NULL)
		return 0;
	for (uint64_t eps = waiting; eps != 0; eps &= eps - 1)
		if (inc_ep_at(g, (unsigned)__builtin_ctzll(eps))->ack_next == *psn)
			here |= eps & -eps;
	route = inc_route_at(g, d, *psn);
	/* If all have come, those that it goes to do not take it. */
	return route->in & ~here ? route->in & ~here : route->outs;
}

uint64_t inc_group_missing(struct inc_group *g, uint32_t *psn)
{
	uint64_t missing = 0;

	if (g->mode == INC_MODE_1)
		return mode1_missing(g, psn);
	for (uint32_t i = 0; i < 1u << g->log2n; i++) {
		const struct inc_slot *slot = inc_slot_at(g, i);
		uint64_t in, here = slot->arrived;

		if (here == 0 || slot->complete)
			continue;
		in = inc_slot_fan_in(g, slot);
		if ((here & in) == in || (missing && psn_lt(*psn, slot->tag)))
			continue;
		*psn = slot->tag;
		missing = in & ~here;
	}
	if (missing)
		return missing;
	return g->mode == INC_MODE_3 ? peers_missing(g, psn) : broadcast_missing(g, psn);
}

/* Hosts that have not acknowledged the newest operation's results, if they get any here. */
static uint64_t unacknowledged(struct inc_group *g, const struct inc_desc *d)
{
	uint64_t eps = d->route.prim == INC_BC   ? d->route.outs
		       : d->route.prim == INC_AR ? g->host_mask
						 : 0;
	uint64_t behind = 0;

	for (; eps != 0; eps &= eps - 1)
		if (psn_le(inc_ep_at(g, (unsigned)__builtin_ctzll(eps))->ack_next, d->last))
			behind |= eps & -eps;
	return behind;
}

/* Mode-III: whose packets of an operation begun have not all come. */
static uint64_t senders_missing(struct inc_group *g, uint32_t *psn)
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

bool inc_group_busy(struct inc_group *g, uint32_t *psn, uint64_t *eps)
{
	const struct inc_desc *d = inc_desc_at(g, (uint8_t)(g->next_seq - 1) % INC_N_DESC);

	*eps = inc_group_missing(g, psn);
	if (*eps == 0 && g->mode == INC_MODE_3) {
		*eps = senders_missing(g, psn);
	} else if (*eps == 0 && d->valid) {
		*psn = d->last;
		*eps = unacknowledged(g, d);
	}
	return *eps != 0;
}
