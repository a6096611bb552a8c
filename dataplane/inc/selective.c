/* SPDX-License-Identifier: BSD-3-Clause */
/* The SR flag of Mode-III (docs/inc-protocol.md, 4.10): packets and acknowledgements are those of
 * lib/rnic/sel.c on every edge. What has come behind a missing packet is told to its sender, who
 * sends again only what has not; so does the switch. */
#include "dataplane/inc/modules.h"

/* ---- receiving ---- */

static uint32_t expected(struct inc_group *g, unsigned i)
{
	return inc_adjust(g, INC_FLOW_RX, i, inc_ep_at(g, i)->rx_epsn);
}

bool inc_sr_gap(struct inc_group *g, unsigned i)
{
	return psn_lt(expected(g, i), inc_ep_at(g, i)->rx_high);
}

void inc_sr_tell(struct inc_ctx *c, unsigned i, uint32_t psn)
{
	const struct inc_ep *ep = inc_ep_at(c->g, i);
	uint8_t map[ROCE_SACK_LEN] = {0};
	size_t len = 0;

	for (unsigned k = 0; k < ROCE_SACK_BITS; k++) {
		uint32_t p = psn_add(psn, (int32_t)k + 1);

		if (!psn_lt(p, ep->rx_high))
			break;
		if (!inc_received(c->g, i, p))
			continue;
		map[k / 8] |= (uint8_t)(1u << k % 8);
		len = k / 64 * 8 + 8;
	}
	inc_send_map(c, i, psn, ep->rx_msn, map, len);
}

/* ---- sending ---- */

/* The slot of a PSN that was sent to the endpoint and is not acknowledged: it is still there. */
static struct inc_slot *slot_of(struct inc_group *g, unsigned i, uint32_t psn)
{
	const struct inc_desc *d = inc_desc_find(g, psn);
	struct inc_slot *slot;

	if (d == NULL)
		return NULL;
	slot = inc_pipe_slot(g, inc_pipe_to(g, d, i, psn), psn);
	return slot->complete && slot->tag == psn ? slot : NULL;
}

static bool has_it(struct inc_group *g, unsigned i, uint32_t psn)
{
	const struct inc_slot *slot = slot_of(g, i, psn);

	return slot != NULL && slot->sacked >> i & 1;
}

/* A packet that was sent once is lost when one behind it has come. One that was sent again may have
 * overtaken those: it is lost when something that was sent later has come. */
static bool is_lost(struct inc_group *g, unsigned i, uint32_t psn)
{
	const struct inc_ep *ep = inc_ep_at(g, i);
	uint64_t order = *inc_order(g, i, psn);

	if (has_it(g, i, psn))
		return false;
	return order & 1 ? order / 2 <= ep->newest : psn_lt(psn, ep->sack_end);
}

/* The oldest always goes: that it has come was said, but what acknowledges it may be lost. */
void inc_sr_lose(struct inc_group *g, unsigned i, unsigned n)
{
	const struct inc_ep *ep = inc_ep_at(g, i);
	struct inc_slot *oldest = slot_of(g, i, ep->tx_una);

	if (oldest != NULL && psn_lt(ep->tx_una, ep->tx_high))
		oldest->sacked &= ~(1ULL << i);
	for (uint32_t psn = ep->tx_una; n > 0 && psn_lt(psn, ep->tx_high); psn = psn_add(psn, 1))
		if (!has_it(g, i, psn)) {
			*inc_order(g, i, psn) = 1;
			n--;
		}
}

void inc_sr_sent(struct inc_ctx *c, unsigned i, uint32_t psn)
{
	*inc_order(c->g, i, psn) = 2 * ++inc_ep_at(c->g, i)->n_sent + c->again;
}

static void arrived(struct inc_ctx *c, unsigned i, uint32_t psn)
{
	struct inc_ep *ep = inc_ep_at(c->g, i);
	uint64_t order = *inc_order(c->g, i, psn);

	if (order / 2 > ep->newest)
		ep->newest = order / 2;
	if (!(order & 1))
		ep->sack_end = psn_max(ep->sack_end, psn_add(psn, 1));
	if (ep->rtt_from != 0 && psn == ep->rtt_psn)
		inc_rtt_heard(c, ep, psn_add(psn, 1));
}

void inc_sr_acked(struct inc_ctx *c, unsigned i, uint32_t next)
{
	struct inc_ep *ep = inc_ep_at(c->g, i);

	if (psn_lt(ep->tx_una, next))
		ep->rto_shift = 0;
	for (uint32_t psn = ep->tx_una; psn_lt(psn, next) && psn_lt(psn, ep->tx_high);
		psn = psn_add(psn, 1))
		if (!has_it(c->g, i, psn))
			arrived(c, i, psn);
}

/* Without a map the peer has kept nothing of what came: all of it goes again, once. */
void inc_sr_heard(struct inc_ctx *c, struct inc_ep *ep)
{
	bool news = false;

	for (unsigned k = 0; k < 8u * c->pkt->pay_len && k < ROCE_SACK_BITS; k++) {
		uint32_t psn = psn_add(ep->tx_una, (int32_t)k + 1);
		struct inc_slot *slot;

		if (!psn_lt(psn, ep->tx_high))
			break;
		slot = roce_sack_bit(c->payload, k) ? slot_of(c->g, c->ep, psn) : NULL;
		if (slot == NULL || slot->sacked >> c->ep & 1)
			continue;
		slot->sacked |= 1ULL << c->ep;
		arrived(c, c->ep, psn);
		news = true;
	}
	if (news) {
		ep->retries = ep->rto_shift = 0;
		inc_timer_restart(c, c->ep);
	}
	if (c->pkt->pay_len == 0 &&
		(!(*inc_order(c->g, c->ep, ep->tx_una) & 1) || is_lost(c->g, c->ep, ep->tx_una)))
		inc_sr_lose(c->g, c->ep, ROCE_SACK_BITS);
	ep->tx_next = ep->tx_una;
}

void inc_sr_pass(struct inc_group *g, unsigned i)
{
	struct inc_ep *ep = inc_ep_at(g, i);

	while (psn_lt(ep->tx_next, ep->tx_high) && !is_lost(g, i, ep->tx_next))
		ep->tx_next = psn_add(ep->tx_next, 1);
}
