/* SPDX-License-Identifier: BSD-3-Clause */
/* Pump (docs/inc-protocol.md, 4.4): what leaves the pipes of Mode-III. Everything here goes in the
 * order of PSNs, so that no receiver ever sees a gap that the switch has made. */
#include "dataplane/inc/modules.h"

/* The local loop's bit in a slot of the second pipe; no endpoint fills such a slot. */
#define LOCAL (1ULL << 63)

static const struct inc_slot *complete_slot(struct inc_group *g, unsigned pipe, uint32_t psn)
{
	const struct inc_slot *slot = inc_pipe_slot(g, pipe, psn);

	return slot->complete && slot->tag == psn ? slot : NULL;
}

/* At the tree root a sum is a result: it goes from the first pipe to the second as if it had come
 * from a parent (EPIC, appendix H.4). Stops where the second pipe ends: until that has released
 * something, the sums stay where they are. Returns the endpoints that have something to get. */
static uint64_t local_loop(struct inc_ctx *c)
{
	struct inc_group *g = c->g;
	uint32_t start, psn;
	uint64_t fed = 0;

	if (g->parent_ep != 0xff)
		return 0;
	start = inc_adjust(g, INC_FLOW_PIPE, INC_BCAST, g->psn_start[INC_BCAST]);
	for (;;) {
		const struct inc_slot *sum;
		struct inc_slot *result;

		g->loop_next = psn = inc_adjust(g, INC_FLOW_LOOP, 0, g->loop_next);
		sum = complete_slot(g, INC_AGG, psn);
		if (sum == NULL || (!psn_lt(psn, psn_add(start, 1 << g->log2n)) && !INC_BUG(T15)))
			return fed;
		result = inc_pipe_slot(g, INC_BCAST, psn);
		*result = *sum;
		result->arrived = LOCAL;
		if (psn != inc_desc_at(g, sum->desc)->ctrl_psn)
			memcpy(inc_payload_at(g, c->arena, INC_BCAST, psn),
				inc_payload_at(g, c->arena, INC_AGG, psn), sum->len);
		g->loop_next = psn_add(psn, 1);
		fed = g->child_mask;
	}
}

/* T16: what is next in the first pipe goes before what is next in the second. */
static bool overtakes(struct inc_ctx *c, unsigned i, uint32_t psn)
{
	const struct inc_desc *d = inc_desc_find(c->g, psn);
	const struct inc_slot *slot = d ? complete_slot(c->g, INC_AGG, psn) : NULL;

	if (slot == NULL || !(inc_pipe_outs(c->g, inc_route_at(c->g, d, psn), INC_AGG) >> i & 1))
		return false;
	inc_forward_slot(c, INC_AGG, slot, 1ULL << i);
	return true;
}

/* The turn is over for the group: in the next one another endpoint comes first. */
static void leave(struct inc_group *g, unsigned i, bool first)
{
	g->unsent |= 1ULL << i;
	if (first)
		g->next_out = (uint8_t)((i + 1) % INC_MAX_EP);
}

/* A packet that an endpoint is to get. */
struct next {
	uint32_t psn;
	enum inc_pipe pipe;
	const struct inc_slot *slot;
};

/* The next one, if there is one and it may be sent now. Retransmissions come this way too: whoever
 * moves tx_next back. */
static bool next_of(struct inc_ctx *c, unsigned i, struct next *n)
{
	struct inc_group *g = c->g;
	struct inc_ep *ep = inc_ep_at(g, i);
	const struct inc_desc *d;
	uint32_t una;

	if (ep->rnr_wait)
		return false;
	una = inc_adjust(g, INC_FLOW_TX, i, ep->tx_una);
	if (g->flags & INC_F_SR)
		inc_sr_pass(g, i);
	n->psn = inc_adjust(g, INC_FLOW_TX, i, ep->tx_next);
	d = inc_desc_find(g, n->psn);
	if (d == NULL || !psn_lt(n->psn, psn_add(una, (int32_t)inc_tx_limit(g, ep))))
		return false;
	n->pipe = inc_pipe_to(g, d, i, n->psn);
	n->slot = complete_slot(g, n->pipe, n->psn);
	return n->slot != NULL;
}

/* c->again is of this endpoint. */
static void leaves_for(struct inc_ctx *c, unsigned i, uint32_t psn)
{
	struct inc_group *g = c->g;
	struct inc_ep *ep = inc_ep_at(g, i);

	g->count[INC_C_RESENT] += c->again;
	inc_rtt_sent(c, ep, psn);
	if (g->flags & INC_F_SR)
		inc_sr_sent(c, i, psn);
	ep->tx_next = psn_add(psn, 1);
	ep->tx_high = psn_max(ep->tx_high, ep->tx_next);
	inc_timer_start(c, i);
}

/* Those of others that are to get the same packet next: it is made once for all of them. Not what
 * is sent again: of what a turn allows for that, endpoints have their shares in turns. */
static uint64_t companions(struct inc_ctx *c, const struct next *n, uint64_t others)
{
	struct inc_group *g = c->g;
	uint64_t with = 0;

	if (c->again)
		return 0;
	for (; others != 0 && g->allowance > 0; others &= others - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(others);
		struct next next;

		if (!next_of(c, i, &next) || next.slot != n->slot ||
			psn_lt(n->psn, inc_ep_at(g, i)->tx_high) || !inc_may_send(c, 1))
			continue;
		leaves_for(c, i, n->psn);
		with |= 1ULL << i;
	}
	return with;
}

/* others: endpoints whose turn comes after this one's. */
static void emit_to(struct inc_ctx *c, unsigned i, uint64_t others)
{
	struct inc_group *g = c->g;
	struct inc_ep *ep = inc_ep_at(g, i);
	const bool cut = g->cut;
	struct next n;

	g->unsent &= ~(1ULL << i);
	while (next_of(c, i, &n)) {
		if (!inc_may_send(c, 1)) {
			leave(g, i, !cut);
			return;
		}
		c->again = psn_lt(n.psn, ep->tx_high);
		leaves_for(c, i, n.psn);
		if (INC_BUG(T16) && overtakes(c, i, ep->tx_next)) {
			ep->tx_next = psn_add(n.psn, 2);
			ep->tx_high = psn_max(ep->tx_high, ep->tx_next);
		}
		inc_forward_slot(c, n.pipe, n.slot, 1ULL << i | companions(c, &n, others));
	}
}

/* Has everybody got it who is to? The set changes from PSN to PSN. */
static bool delivered(
	struct inc_group *g, const struct inc_route *route, enum inc_pipe pipe, uint32_t psn)
{
	uint64_t outs = inc_pipe_outs(g, route, pipe);

	if (outs == 0) /* the local loop */
		return psn_lt(psn, g->loop_next);
	for (; outs != 0; outs &= outs - 1)
		if (INC_BUG(T13B) ? !psn_lt(psn,
					    inc_ep_at(g, (unsigned)__builtin_ctzll(outs))->tx_high)
				  : !psn_lt(psn,
					    inc_ep_at(g, (unsigned)__builtin_ctzll(outs))->tx_una))
			return false;
	return true;
}

/* RecycleBuffer, for the PSNs at the pipe's start. */
static bool release(struct inc_ctx *c, enum inc_pipe pipe)
{
	struct inc_group *g = c->g;
	bool any = false;

	for (;; any = true) {
		uint32_t psn = inc_adjust(g, INC_FLOW_PIPE, pipe, g->psn_start[pipe]);
		const struct inc_desc *d = inc_desc_find(g, psn);

		g->psn_start[pipe] = psn;
		if (d == NULL || complete_slot(g, pipe, psn) == NULL ||
			!delivered(g, inc_route_at(g, d, psn), pipe, psn))
			return any;
		inc_recycle_buffer(inc_pipe_slot(g, pipe, psn), psn);
		g->psn_start[pipe] = psn_add(psn, 1);
		g->last_progress_ns = c->now;
	}
}

static unsigned first_out(const struct inc_group *g, uint64_t outs)
{
	uint64_t from = outs >> g->next_out << g->next_out;

	return (unsigned)__builtin_ctzll(from ? from : outs);
}

void inc_pump(struct inc_ctx *c, uint64_t outs)
{
	bool again;

	do {
		outs |= local_loop(c);
		while (outs != 0) {
			unsigned i = first_out(c->g, outs);

			outs &= ~(1ULL << i);
			emit_to(c, i, outs);
		}
		again = release(c, INC_BCAST);
		release(c, INC_AGG);
	} while (again); /* the local loop may have waited for it */
}
