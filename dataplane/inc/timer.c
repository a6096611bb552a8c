/* SPDX-License-Identifier: BSD-3-Clause */
/* The timer of an endpoint in Mode-III (docs/inc-protocol.md, 4.5), and the round trip that it is
 * set by. A deadline is never too late, but may be too early: a timer that is put off leaves it,
 * and inc_tick finds nothing due. */
#include "dataplane/inc/modules.h"

/* SR: a probe is cheap, and comes early. */
enum { MAX_RTO_NS = 64000000, SR_MIN_RTO_NS = 3000, SR_EARLY = 2 };

/* One packet at a time is timed, and none that was sent twice (Karn). */
void inc_rtt_sent(struct inc_ctx *c, struct inc_ep *ep, uint32_t psn)
{
	if (psn_lt(psn, ep->tx_high)) {
		/* SR: it is heard of also when others before it are missing. */
		if (c->g->flags & INC_F_SR ? psn == ep->rtt_psn : psn_le(psn, ep->rtt_psn))
			ep->rtt_from = 0;
	} else if (ep->rtt_from == 0) {
		ep->rtt_psn = psn;
		ep->rtt_from = c->now;
	}
}

/* Up at once, down slowly: a NIC in software is quick at times. */
bool inc_rtt_heard(struct inc_ctx *c, struct inc_ep *ep, uint32_t next)
{
	uint64_t rtt = c->now - ep->rtt_from;

	if (ep->rtt_from == 0 || !psn_lt(ep->rtt_psn, next))
		return false;
	ep->rtt_from = 0;
	if (rtt > MAX_RTO_NS)
		rtt = MAX_RTO_NS;
	if (rtt < ep->rtt_ns)
		rtt = ep->rtt_ns - (ep->rtt_ns - rtt) / 8;
	ep->rtt_ns = (uint32_t)rtt;
	return true;
}

static void arm(struct inc_ctx *c, struct inc_ep *ep, uint64_t ns)
{
	if (INC_BUG(T19) && !ep->rnr_wait)
		return;
	ep->timer_ns = c->now + ns;
	if (ep->timer_ns < c->g->timer_ns)
		c->g->timer_ns = ep->timer_ns;
}

/* Up to an eighth more, so that endpoints that lost the same do not all send at once. Made from
 * what is there, to be the same again when a run is repeated. */
static uint64_t jitter(const struct inc_ep *ep, uint64_t rto)
{
	uint32_t hash = (ep->local_qpn ^ ep->tx_una << 8 ^ ep->retries) * 0x9e3779b1u;

	return rto / 8 * (hash >> 24) / 256;
}

static void start(struct inc_ctx *c, struct inc_ep *ep)
{
	uint64_t rto = 2ull * ep->rtt_ns, least = c->g->rto_min_ns;

	if ((c->g->flags & INC_F_SR) && !c->g->rto_given && ep->rtt_ns) {
		rto -= ep->rtt_ns / 2;
		least = SR_MIN_RTO_NS;
	}
	rto = rto > least ? rto : least;
	if (c->g->flags & INC_F_SR)
		rto <<= ep->rto_shift > SR_EARLY ? ep->rto_shift - SR_EARLY : 0;
	else
		rto <<= ep->rto_shift;
	if (rto > MAX_RTO_NS)
		rto = MAX_RTO_NS;
	arm(c, ep, rto + jitter(ep, rto));
}

void inc_timer_start(struct inc_ctx *c, unsigned i)
{
	struct inc_ep *ep = inc_ep_at(c->g, i);

	if (ep->timer_ns == 0)
		start(c, ep);
}

void inc_timer_restart(struct inc_ctx *c, unsigned i)
{
	struct inc_ep *ep = inc_ep_at(c->g, i);

	ep->timer_ns = 0;
	if (psn_lt(ep->tx_una, ep->tx_high))
		start(c, ep);
}

void inc_timer_hold(struct inc_ctx *c, unsigned i, uint64_t ns)
{
	struct inc_ep *ep = inc_ep_at(c->g, i);

	ep->rnr_wait = 1;
	arm(c, ep, ns);
}
