/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-II: ReceiveAck (docs/inc-protocol.md, 3.5 and 3.8). The switch keeps no connection state of
 * its own: what a host says of what it received holds for what others, or it itself, have sent. */
#include "dataplane/inc/modules.h"

enum { NAK_FWD_GAP_NS = 100000 };

/* What an acknowledged PSN belongs to. */
struct scope {
	const struct inc_desc *desc; /* NULL: of none that has begun here */
	const struct inc_route *route;
	/* The PSNs with this route that the sender may have to hear of: [first, end). In a MIXED
	 * group those of this operation, since fences keep it apart from the others. In a SINGLE
	 * group all up to this operation's end: operations follow one another without a pause, and
	 * a receiver may lack something of an earlier one. */
	uint32_t first, end;
};

static bool single(const struct inc_ctx *c)
{
	return c->g->kind == INC_SINGLE;
}

/* False: the PSN is of no known operation. */
static bool find_scope(const struct inc_ctx *c, struct scope *s)
{
	struct inc_group *g = c->g;
	uint32_t psn = c->pkt->psn;
	const struct inc_desc *d = inc_desc_find(g, psn);

	*s = (struct scope){d, &g->control, psn, psn_add(psn, 1)};
	if (d == NULL) {
		/* A NAK may name the first PSN of an operation that has not begun here. */
		if (c->cls == INC_CLASS_ACK || psn != g->next_ctrl)
			return false;
		s->end = psn;
		if (single(c))
			s->first = g->node_ack;
		return true;
	}
	if (!single(c) && psn == d->ctrl_psn)
		return true;
	s->route = &d->route;
	s->first = single(c) ? g->node_ack : psn_add(d->ctrl_psn, 1);
	s->end = psn_add(d->last, 1);
	return true;
}

/* PSNs < *next are acknowledged; a NAK acknowledges those before its own. */
static void note_ack(const struct inc_ctx *c, uint32_t *next)
{
	uint32_t acked = psn_add(c->pkt->psn, c->cls == INC_CLASS_ACK);

	if (!psn_lt(*next, acked))
		return;
	*next = acked;
	c->g->moved_ns = c->now;
}

/* Credits count the host's receive queue, not the switch's: none are passed on. */
static uint8_t passed_on(const struct inc_ctx *c)
{
	return c->cls == INC_CLASS_ACK ? ROCE_AETH_ACK | ROCE_AETH_NO_CREDITS : c->pkt->syndrome;
}

uint64_t inc_not_told(struct inc_ctx *c, uint64_t outs, uint8_t syndrome, uint32_t psn)
{
	const uint8_t cls = syndrome & ROCE_AETH_CLASS;

	if (cls == ROCE_AETH_ACK)
		return outs;
	for (uint64_t m = outs & c->g->host_mask; m != 0; m &= m - 1) {
		struct inc_ep *ep = inc_ep_at(c->g, (unsigned)__builtin_ctzll(m));

		if (ep->rnr_told && ep->rnr_psn == psn) {
			outs &= ~(m & -m);
		} else if (cls == ROCE_AETH_RNR) {
			ep->rnr_told = true;
			ep->rnr_psn = psn;
		}
	}
	return outs;
}

/* Back to the host it came from. */
static enum inc_drop reflect(struct inc_ctx *c)
{
	if (!inc_not_told(c, 1ULL << c->ep, c->pkt->syndrome, c->pkt->psn))
		return INC_DROP_ACK_TOLD;
	inc_count(c->g, INC_C_REFLECTED);
	inc_send_back(c, passed_on(c));
	return INC_DROP_DONE;
}

/* Messages of data that end at or before a PSN of an operation's data. */
static uint32_t messages_until(const struct inc_desc *d, uint32_t psn)
{
	const uint32_t packets = (uint32_t)psn_diff(psn, d->ctrl_psn);

	return packets / d->m + (psn == d->last && packets % d->m != 0);
}

/* In a MIXED group an acknowledgement of data may be the only one of the same host's control. To a
 * host that sends none of the data it goes back as one of the control, with the count of messages
 * until then: its NIC has sent nothing behind that, unless it has left PSNs out, and would take no
 * acknowledgement of more (3.7). */
static bool reflects_too(struct inc_ctx *c, const struct scope *s)
{
	const struct inc_desc *d = s->desc;
	const uint64_t self = 1ULL << c->ep;

	if (c->g->kind != INC_MIXED || c->cls != INC_CLASS_ACK || !inc_ep_at(c->g, c->ep)->host ||
		INC_BUG(T6))
		return false;
	if (s->route->in & self) {
		reflect(c);
		return true;
	}
	inc_count(c->g, INC_C_REFLECTED);
	inc_send_ack(c, self, passed_on(c), d->ctrl_psn,
		(c->pkt->msn - messages_until(d, c->pkt->psn)) & PSN_MASK);
	return true;
}

uint32_t inc_node_ack(
	struct inc_group *g, const struct inc_route *route, uint32_t end, uint32_t *msn)
{
	const struct inc_ep *slowest = NULL;

	for (uint64_t outs = route->outs; outs != 0; outs &= outs - 1) {
		const struct inc_ep *ep = inc_ep_at(g, (unsigned)__builtin_ctzll(outs));

		if (slowest == NULL || psn_lt(ep->ack_next, slowest->ack_next))
			slowest = ep;
	}
	*msn = slowest ? slowest->ack_msn : 0;
	if (slowest && INC_BUG(T18))
		return slowest->ack_next;
	return slowest && psn_lt(slowest->ack_next, end) ? slowest->ack_next : end;
}

uint32_t inc_not_before(
	const struct inc_ctx *c, unsigned sender, uint32_t first, uint32_t node, uint32_t *msn)
{
	if (psn_lt(first, node))
		return node;
	if (!single(c))
		*msn = inc_ep_at(c->g, sender)->ack_msn;
	return first;
}

/* Broadcast: towards the sender go only what all receivers have, and the first PSN that one of them
 * lacks, for a NAK acknowledges everything before it. */
static enum inc_drop towards_sender(struct inc_ctx *c, const struct scope *s)
{
	struct inc_group *g = c->g;
	uint64_t sender = s->route->in;
	uint32_t msn, node = inc_node_ack(g, s->route, s->end, &msn);

	if (c->cls == INC_CLASS_ACK) {
		if (!psn_lt(g->node_ack, node) || !psn_lt(s->first, node))
			return INC_DROP_ACK_MERGED;
		g->node_ack = node;
		inc_send_ack(c, sender, passed_on(c), psn_add(node, -1), msn);
		return INC_DROP_DONE;
	}
	node = INC_BUG(T4)
		       ? c->pkt->psn
		       : inc_not_before(c, (unsigned)__builtin_ctzll(sender), s->first, node, &msn);
	if (g->nak_fwd_ns && node == g->nak_fwd_psn && c->now - g->nak_fwd_ns < NAK_FWD_GAP_NS)
		return INC_DROP_ACK_MERGED;
	if (!inc_not_told(c, sender, c->pkt->syndrome, node))
		return INC_DROP_ACK_TOLD;
	g->nak_fwd_psn = node;
	g->nak_fwd_ns = c->now;
	inc_send_ack(c, sender, passed_on(c), node, msn);
	return INC_DROP_DONE;
}

static enum inc_drop ack_broadcast(struct inc_ctx *c, const struct scope *s)
{
	const bool reflected = reflects_too(c, s);

	if (!(s->route->outs >> c->ep & 1))
		return reflected ? INC_DROP_DONE : INC_DROP_ACK_CLASS;
	c->g->last_progress_ns = c->now;
	return towards_sender(c, s) == INC_DROP_DONE || reflected ? INC_DROP_DONE
								  : INC_DROP_ACK_MERGED;
}

/* What the root of a reduce acknowledges holds for every sender. */
static enum inc_drop ack_reduce(struct inc_ctx *c, const struct scope *s)
{
	const bool reflected = reflects_too(c, s);
	uint64_t outs;

	if (c->ep != s->route->via)
		return reflected ? INC_DROP_DONE : INC_DROP_ACK_CLASS;
	note_ack(c, &c->g->red_ack);
	for (uint64_t in = s->route->in; in != 0; in &= in - 1) {
		struct inc_ep *ep = inc_ep_at(c->g, (unsigned)__builtin_ctzll(in));

		ep->ack_msn = psn_max(ep->ack_msn, c->pkt->msn); /* also 24 bits */
	}
	outs = inc_not_told(c, s->route->in, c->pkt->syndrome, c->pkt->psn);
	inc_send_ack(c, outs, passed_on(c), c->pkt->psn, c->pkt->msn);
	return outs || reflected ? INC_DROP_DONE : INC_DROP_ACK_TOLD;
}

enum inc_drop inc_mode2_ack(struct inc_ctx *c)
{
	struct inc_ep *ep = inc_ep_at(c->g, c->ep);
	uint32_t next = psn_add(c->pkt->psn, c->cls == INC_CLASS_ACK);
	struct scope s;

	if (!find_scope(c, &s))
		return ep->host || s.route->prim != INC_AR ? INC_DROP_ACK_RANGE
							   : INC_DROP_ACK_CLASS;
	if (psn_lt(inc_adjust(c->g, INC_FLOW_TX, c->ep, ep->tx_high), next))
		return INC_DROP_ACK_RANGE;
	ep->tx_una = psn_max(ep->tx_una, next);
	if (s.route->prim == INC_RED)
		return ack_reduce(c, &s);
	if (s.route->prim == INC_AR && !ep->host)
		return INC_DROP_ACK_CLASS;
	/* One that was overtaken, or repeated, tells nothing new, its MSN neither. */
	if (psn_lt(ep->ack_next, next))
		ep->ack_msn = c->pkt->msn;
	note_ack(c, &ep->ack_next);
	return s.route->prim == INC_AR ? reflect(c) : ack_broadcast(c, &s);
}

/* Whoever sends too fast hears of it: in an allreduce the host itself, since all go in step. */
enum inc_drop inc_mode2_cnp(struct inc_ctx *c)
{
	struct inc_group *g = c->g;
	const struct inc_desc *d = inc_desc_at(g, (uint8_t)(g->next_seq - 1) % INC_N_DESC);
	const struct inc_route *route = d->valid ? &d->route : &g->control;

	if (route->prim == INC_AR)
		return inc_ep_at(g, c->ep)->host ? inc_send_cnp(c, 1ULL << c->ep)
						 : INC_DROP_ACK_CLASS;
	if (!(route->outs >> c->ep & 1))
		return INC_DROP_ACK_CLASS;
	return inc_send_cnp(c, route->in);
}
