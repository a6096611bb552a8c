/* SPDX-License-Identifier: BSD-3-Clause */
/* The roles of a switch's endpoints (docs/inc-protocol.md, 1.4): the tree is re-rooted at the root
 * rank for reduce and broadcast, so that an interior switch may aggregate what its parent sends. */
#include "dataplane/inc/modules.h"

/* Above a switch with one child, itself a switch, there is nobody to send or get anything. */
static bool parent_has_ranks(const struct inc_group *g)
{
	const uint8_t *rank_ep = (const uint8_t *)g + g->rank_off;

	return memchr(rank_ep, g->parent_ep, g->n_ranks) != NULL;
}

struct inc_route inc_route_of(const struct inc_group *g, enum inc_prim prim, unsigned root)
{
	const uint8_t *rank_ep = (const uint8_t *)g + g->rank_off;
	bool tree_root = g->parent_ep == 0xff;
	uint64_t parent = tree_root ? 0 : 1ULL << g->parent_ep, via, others;
	struct inc_route r = {.prim = (uint8_t)prim, .via = 0xff};

	if (prim == INC_AR) {
		r.in = g->child_mask;
		r.outs = tree_root ? g->child_mask : parent;
		return r;
	}
	r.via = rank_ep[root];
	via = 1ULL << r.via;
	others = (g->child_mask | (parent_has_ranks(g) ? parent : 0)) & ~via;
	r.in = prim == INC_RED ? others : via;
	r.outs = prim == INC_RED ? via : others;
	return r;
}

enum inc_role inc_role_of(const struct inc_group *g, const struct inc_route *route, unsigned ep)
{
	bool in = route->in >> ep & 1;

	if (route->prim == INC_BC)
		return in ? INC_ROLE_DOWN : INC_ROLE_NONE;
	if (in)
		return INC_ROLE_UP;
	return route->prim == INC_AR && ep == g->parent_ep ? INC_ROLE_DOWN : INC_ROLE_NONE;
}

uint64_t inc_pipe_outs(const struct inc_group *g, const struct inc_route *route, enum inc_pipe pipe)
{
	bool tree_root = g->parent_ep == 0xff;

	if (route->prim == INC_AR)
		return pipe == INC_BCAST ? g->child_mask : tree_root ? 0 : 1ULL << g->parent_ep;
	return (pipe == INC_BCAST) == (route->prim == INC_BC) ? route->outs : 0;
}

uint64_t inc_slot_fan_in(struct inc_group *g, const struct inc_slot *slot)
{
	const struct inc_desc *d = inc_desc_at(g, slot->desc % INC_N_DESC);

	if (d->valid && psn_in(slot->tag, d->ctrl_psn, d->last))
		return inc_route_at(g, d, slot->tag)->in;
	return g->control.in; /* an operation long past: the slot is complete */
}
