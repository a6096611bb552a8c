/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-II, connection translated (EPIC algorithm 1 with the repairs of docs/inc-protocol.md,
 * section 3): control and data. The switch has no timers and starts nothing by itself. */
#include "dataplane/inc/modules.h"

#include <errno.h>

enum { STALL_TIMER_CODE = 14 /* 1.28 ms */, SILENCE_NS = 30000000, SR_SILENCE_NS = 4000000 };

static bool is_root(const struct inc_group *g)
{
	return g->parent_ep == 0xff;
}

static struct inc_slot *complete_slot(struct inc_group *g, uint32_t psn)
{
	struct inc_slot *slot = inc_slot_at(g, psn);

	return slot->tag == psn && slot->complete ? slot : NULL;
}

/* Is what goes to the outs a result, which receivers take in the order of PSNs? */
static bool is_last_hop(struct inc_group *g, const struct inc_route *route)
{
	return route->prim == INC_RED ? inc_ep_at(g, route->via)->host != 0 : is_root(g);
}

static bool flushes(const struct inc_group *g)
{
	return g->flush_next != g->flush_end;
}

/* False: the turn is over. */
static bool flush_one(struct inc_ctx *c, uint32_t psn)
{
	struct inc_group *g = c->g;
	const struct inc_desc *d = inc_desc_find(g, psn);
	const struct inc_route *route = d ? inc_route_at(g, d, psn) : NULL;
	const struct inc_slot *slot = complete_slot(g, psn);

	if (slot == NULL || route == NULL || !is_last_hop(g, route))
		return true;
	if (!inc_may_send(c, (unsigned)__builtin_popcountll(route->outs)))
		return false;
	inc_count(g, INC_C_LATE_FLUSHED);
	inc_forward_slot(c, INC_AGG, slot, route->outs);
	return true;
}

static void late_flush(struct inc_ctx *c)
{
	struct inc_group *g = c->g;

	for (;;) {
		g->flush_next = inc_adjust(g, INC_FLOW_SUM, 0, g->flush_next);
		if (!psn_lt(g->flush_next, g->flush_end))
			break;
		if (!flush_one(c, g->flush_next))
			return;
		g->flush_next = psn_add(g->flush_next, 1);
	}
	g->flush_next = g->flush_end = 0;
}

/* To the outs, unless the flush before is still under way: behind that it is in order. */
static void forward_result(struct inc_ctx *c, const struct inc_slot *slot)
{
	struct inc_group *g = c->g;

	if (!flushes(g) || c->pkt->psn != inc_sum_next(g) || !is_last_hop(g, c->route))
		inc_forward_slot(c, INC_AGG, slot, c->route->outs);
}

/* Go-back-N receivers have discarded the results that overtook one before them. */
static bool is_late_flushed(const struct inc_ctx *c)
{
	const uint16_t flags = c->g->flags;

	return (flags & INC_F_LATE_FLUSH) && !(flags & INC_F_SR) && is_last_hop(c->g, c->route);
}

/* The first PSN that was missing is complete, and so may be others behind it, whose results
 * overtook it: receivers have discarded these and are sent them again (3.4). Each but once, in
 * whatever order they came: the first that is missing passes it only once. */
static void pass(struct inc_ctx *c)
{
	struct inc_group *g = c->g;
	uint32_t first, psn;

	if (c->pkt->psn != g->sum_next && c->pkt->psn != inc_sum_next(g))
		return;
	g->sum_next = first = psn_add(c->pkt->psn, 1);
	while (complete_slot(g, psn = inc_sum_next(g)))
		g->sum_next = psn_add(psn, 1);
	if (!flushes(g)) {
		if (psn == first || !is_late_flushed(c))
			return;
		g->flush_next = first;
	}
	g->flush_end = g->sum_next;
	late_flush(c);
}

/* The first PSN this host has sent and nobody has acknowledged to it: refl_next, but for ranges in
 * which it only receives. */
static uint32_t oldest_unacknowledged(struct inc_ctx *c)
{
	return inc_adjust(c->g, INC_FLOW_RX, c->ep, inc_ep_at(c->g, c->ep)->refl_next);
}

/* Selective hosts send again what another's loss holds up, within a round trip: they are not to be
 * held for that, since being held they would forget what has come (4.11). */
static bool is_repairing(const struct inc_ctx *c)
{
	return (c->g->flags & INC_F_SR) && c->now - c->g->last_progress_ns < SR_SILENCE_NS;
}

/* A host that waits long for its peers resends; without an answer its NIC would give up (3.6). Only
 * its oldest unacknowledged PSN may draw an RNR NAK: the NAK acknowledges everything before it. */
static void stall_rnr(struct inc_ctx *c)
{
	const struct inc_ep *ep = inc_ep_at(c->g, c->ep);

	if (is_repairing(c))
		return;
	if (!(c->g->flags & INC_F_STALL_RNR) || !ep->host ||
		(c->pkt->psn != oldest_unacknowledged(c) && !INC_BUG(T9)))
		return;
	if (!inc_not_told(c, 1ULL << c->ep, ROCE_AETH_RNR, c->pkt->psn))
		return;
	inc_count(c->g, INC_C_STALL_RNR);
	inc_send_ack(c, 1ULL << c->ep, ROCE_AETH_RNR | STALL_TIMER_CODE, c->pkt->psn, ep->ack_msn);
}

/* Receivers of a reduce or broadcast have everything that was sent to them, for all that is heard
 * of them: their NICs may wait for a program that computes. Loss is repaired in less time. */
static bool receivers_silent(const struct inc_ctx *c)
{
	return c->now - c->g->moved_ns >= SILENCE_NS;
}

/* The sender of a broadcast is held like that of a reduce, when it resends the first PSN that a
 * receiver lacks. The NAK acknowledges everything before: all receivers have it. */
static void hold_sender(struct inc_ctx *c)
{
	struct inc_group *g = c->g;
	const uint32_t first = psn_add(c->desc->ctrl_psn, 1);
	uint32_t msn, node = inc_node_ack(g, c->route, psn_add(c->desc->last, 1), &msn);

	if (g->kind == INC_MIXED)
		node = inc_not_before(c, c->ep, first, node, &msn);
	if (!(g->flags & INC_F_STALL_RNR) || c->pkt->psn != node || !receivers_silent(c) ||
		!inc_not_told(c, 1ULL << c->ep, ROCE_AETH_RNR, node))
		return;
	inc_count(g, INC_C_STALL_RNR);
	inc_send_ack(c, 1ULL << c->ep, ROCE_AETH_RNR | STALL_TIMER_CODE, c->pkt->psn, msn);
}

/* The asker's request is done and it lacks only the acknowledgement (3.3). Never answered from the
 * slot, which belongs to another PSN. */
static enum inc_drop answer_stale(struct inc_ctx *c)
{
	struct inc_group *g = c->g;
	const struct inc_ep *ep = inc_ep_at(g, c->ep);
	const struct inc_route *route = c->route ? c->route : &g->control;

	inc_count(g, INC_C_STALE);
	if (INC_BUG(T8))
		return INC_DROP_PSN_STALE;
	if (inc_role_of(g, route, c->ep) == INC_ROLE_NONE)
		return INC_DROP_WRONG_ENDPOINT;
	if (route->prim == INC_RED) {
		/* The root has it, will discard it and repeat its acknowledgement. */
		c->pay_crc = icrc_append(0, c->payload, c->pkt->pay_len);
		inc_forward_packet(c, route->outs);
		return INC_DROP_DONE;
	}
	if (route->prim == INC_AR ? !ep->host : !psn_lt(c->pkt->psn, g->node_ack))
		return INC_DROP_PSN_STALE;
	inc_send_ack(
		c, 1ULL << c->ep, ROCE_AETH_ACK | ROCE_AETH_NO_CREDITS, c->pkt->psn, ep->ack_msn);
	return INC_DROP_DONE;
}

/* A duplicate of a complete slot (3.4): the tree root has the result, an interior switch only its
 * subtree's sum, which it sends upward again; the receiver of a reduce acknowledges again. */
static enum inc_drop answer_duplicate(struct inc_ctx *c, const struct inc_slot *slot)
{
	bool result = c->route->prim == INC_AR && is_root(c->g);
	bool last_hop = c->route->prim == INC_RED && inc_ep_at(c->g, c->route->via)->host;
	uint64_t asker = c->g->flags & INC_F_DUP_ALL ? c->route->outs : 1ULL << c->ep;

	inc_count(c->g, INC_C_DUP_ANSWERED);
	c->again = c->g->flags & INC_F_SR;
	inc_forward_slot(c, INC_AGG, slot, result ? asker : c->route->outs);
	c->again = false;
	/* It may still wait for ranks elsewhere in the tree, or for the root of a reduce. */
	if (!result && (!last_hop || receivers_silent(c)))
		stall_rnr(c);
	return INC_DROP_DONE;
}

/* To be aggregated: control and data of an allreduce from a child, or of a reduce. */
static enum inc_drop up(struct inc_ctx *c)
{
	struct inc_group *g = c->g;
	struct inc_slot *slot = inc_slot_at(g, c->pkt->psn);
	enum inc_dup dup = inc_check_duplicate(g, slot, c->pkt->psn, c->ep);

	if (dup == INC_STALE)
		return answer_stale(c);
	if (dup == INC_AHEAD) {
		inc_count(g, INC_C_AHEAD);
		return INC_DROP_PSN_AHEAD;
	}
	if (dup == INC_FRESH)
		inc_aggregate_data(c, slot);
	else
		inc_count(g, INC_C_DUP);
	if ((slot->arrived & c->route->in) != c->route->in) {
		if (dup == INC_FRESH)
			return INC_DROP_CONSUMED;
		stall_rnr(c);
		return INC_DROP_DUP_WAIT;
	}
	if (dup == INC_DUP)
		return answer_duplicate(c, slot);
	inc_complete(c, slot);
	if (c->route->prim == INC_RED)
		g->moved_ns = c->now;
	forward_result(c, slot);
	pass(c);
	return INC_DROP_DONE;
}

/* A broadcast's sender resends what every receiver has acknowledged: it lacks our acknowledgement
 * (3.2, step 2). */
static bool answer_acknowledged(struct inc_ctx *c)
{
	uint32_t msn, node;

	node = inc_node_ack(c->g, c->route, psn_add(c->desc->last, 1), &msn);
	if (!psn_lt(c->pkt->psn, node) || INC_BUG(T5))
		return false;
	inc_count(c->g, INC_C_DUP_ANSWERED);
	inc_send_ack(
		c, 1ULL << c->ep, ROCE_AETH_ACK | ROCE_AETH_NO_CREDITS, psn_add(node, -1), msn);
	return true;
}

/* To be replicated, without being stored: results of an allreduce, a broadcast. */
static enum inc_drop down(struct inc_ctx *c)
{
	struct inc_group *g = c->g;
	uint32_t next = psn_add(c->pkt->psn, 1);

	if (c->route->prim == INC_BC) {
		if (answer_acknowledged(c))
			return INC_DROP_DONE;
		if (psn_lt(g->bc_next, next)) {
			g->bc_next = next;
			g->moved_ns = c->now;
		}
	}
	g->last_progress_ns = c->now;
	inc_forward_packet(c, c->route->prim == INC_BC ? c->route->outs : g->child_mask);
	if (c->route->prim == INC_BC)
		hold_sender(c);
	return INC_DROP_DONE;
}

static enum inc_drop receive_data(struct inc_ctx *c)
{
	enum inc_role role;
	enum inc_drop drop = inc_admit(c, &role);
	struct inc_ep *ep = inc_ep_at(c->g, c->ep);

	if (ep->rnr_told && c->pkt->psn == ep->rnr_psn) {
		ep->rnr_told = false;
		ep->rnr_psn = 0;
	}
	if (drop == INC_DROP_PSN_STALE)
		return answer_stale(c);
	if (drop != INC_OK)
		return drop;
	return role == INC_ROLE_UP ? up(c) : down(c);
}

/* All that is aggregated here is complete. A broadcast is not, but has acknowledgements to come. */
static bool retire(struct inc_group *g, const struct inc_desc *d)
{
	uint32_t msn;

	if (psn_le(inc_sum_next(g), d->last))
		return false;
	return d->n == 0 || d->route.prim != INC_BC ||
	       psn_lt(d->last, inc_node_ack(g, &d->route, psn_add(d->last, 1), &msn));
}

static void go_on(struct inc_ctx *c)
{
	if (flushes(c->g))
		late_flush(c);
}

/* Two windows of slots: those of one are in use while the other's results may still be wanted. */
static int check(struct inc_group_spec *s, char *err)
{
	int rc = inc_check_window(s, 2, 2u * s->m * s->w, " (2 M W and more)", err);

	if (rc < 0)
		return rc;
	if (s->rto_us)
		return inc_refuse(err, EINVAL, "rto_us: only mode III has timers");
	if ((s->flags & INC_F_SR) && s->prim != INC_AR)
		return inc_refuse(err, EOPNOTSUPP,
			"flags.sr: mode II merges no maps of several receivers: allreduce alone");
	return 0;
}

/* Receivers of the newest broadcast that lack what its sender has sent; if none does, the sender.
 */
static uint64_t broadcast_missing(struct inc_group *g, uint32_t *psn)
{
	const struct inc_desc *d = inc_desc_newest(g, 1);
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

const struct inc_mode_ops inc_mode2 = {
	.pipes = 1,
	.check = check,
	.pay_bytes = inc_pipe_bytes,
	.missing = broadcast_missing,
	.behind = inc_unacknowledged,
	.data = receive_data,
	.ack = inc_mode2_ack,
	.cnp = inc_mode2_cnp,
	.retire = retire,
	.go_on = go_on,
};
