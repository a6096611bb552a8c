/* SPDX-License-Identifier: BSD-3-Clause */
/* ReceiveAck of Mode-III (docs/inc-protocol.md, 4.3): the sending half of a connection hears from
 * its peer. Nothing is passed on to anybody. */
#include "dataplane/inc/modules.h"

enum { NAK_GAP_NS = 20000 }; /* half a round trip: NAKs for what was just sent again */

/* Everything before next has arrived. */
static void acknowledged(struct inc_ctx *c, struct inc_ep *ep, uint32_t next)
{
	bool news = psn_lt(ep->tx_una, next), waited = ep->rnr_wait;

	if (c->g->flags & INC_F_SR)
		inc_sr_acked(c, c->ep, next);
	ep->rnr_wait = 0;
	if (news || c->cls != INC_CLASS_NAK)
		ep->retries = 0;
	if (inc_rtt_heard(c, ep, next) || c->cls == INC_CLASS_RNR)
		ep->rto_shift = 0;
	ep->tx_una = next;
	ep->tx_next = psn_max(ep->tx_next, next);
	ep->tx_high = psn_max(ep->tx_high, next);
	ep->sack_end = psn_max(ep->sack_end, next);
	if (news || waited)
		inc_timer_restart(c, c->ep);
}

/* Another NAK for what has just been sent again tells nothing. */
static bool just_resent(const struct inc_ctx *c, const struct inc_ep *ep, uint32_t psn)
{
	return ep->resent_ns && ep->resent_psn == psn && c->now - ep->resent_ns < NAK_GAP_NS;
}

enum inc_drop inc_receive_ack(struct inc_ctx *c)
{
	struct inc_ep *ep = inc_ep_at(c->g, c->ep);
	bool ack = c->cls == INC_CLASS_ACK;
	uint32_t psn = c->pkt->psn, next = psn_add(psn, ack || INC_BUG(T13));

	if (psn_lt(inc_adjust(c->g, INC_FLOW_TX, c->ep, ep->tx_high), next))
		return INC_DROP_ACK_RANGE;
	if (psn_lt(psn, ep->tx_una))
		return INC_DROP_ACK_OLD;
	acknowledged(c, ep, next);
	if (c->cls == INC_CLASS_NAK && (c->g->flags & INC_F_SR)) {
		inc_sr_heard(c, ep);
	} else if (c->cls == INC_CLASS_NAK && !just_resent(c, ep, psn)) {
		ep->tx_next = next;
		ep->resent_psn = psn;
		ep->resent_ns = c->now;
	} else if (c->cls == INC_CLASS_RNR) {
		ep->tx_next = psn;
		if (c->g->flags & INC_F_SR)
			inc_sr_lose(c->g, c->ep, ROCE_SACK_BITS);
		inc_timer_hold(c, c->ep, roce_rnr_ns(c->pkt->syndrome & ROCE_AETH_VALUE));
	}
	inc_pump(c, 1ULL << c->ep);
	inc_ack_flush(c);
	return INC_DROP_DONE;
}
