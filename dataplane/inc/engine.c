/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's door: what every mode has in common, then the modules of the group's mode. */
#include "dataplane/inc/modules.h"

enum { FAIL_NAK_GAP_NS = 10000000 };

/* A failed group says so once in a while, so that queue pairs stop at once (8.1). */
static enum inc_drop answer_failed(struct inc_ctx *c)
{
	struct inc_ep *ep = inc_ep_at(c->g, c->ep);
	bool request = c->cls == INC_CLASS_CTRL || c->cls == INC_CLASS_DATA;

	if (request && (ep->fail_nak_ns == 0 || c->now - ep->fail_nak_ns >= FAIL_NAK_GAP_NS)) {
		ep->fail_nak_ns = c->now;
		inc_send_ack(c, 1ULL << c->ep, ROCE_AETH_NAK | ROCE_NAK_REMOTE_OPERATION,
			c->pkt->psn, ep->ack_msn);
	}
	return INC_DROP_GROUP_FAILED;
}

/* Whoever refuses a packet names it: one that was sent to it, and that it has not acknowledged
 * before. What names another is late, garbled or forged. */
static bool is_outstanding(const struct inc_ctx *c)
{
	struct inc_group *g = c->g;
	const struct inc_ep *ep = inc_ep_at(g, c->ep);
	uint32_t psn = c->pkt->psn;

	return psn_le(ep->tx_una, psn) && psn_lt(psn, ep->tx_high) &&
	       inc_desc_find(g, psn) != NULL && inc_adjust(g, INC_FLOW_TX, c->ep, psn) == psn;
}

static enum inc_drop fatal(struct inc_ctx *c)
{
	if (!is_outstanding(c))
		return INC_DROP_ACK_RANGE;
	inc_group_fail(c->g, INC_FAIL_FATAL_NAK, c->ep);
	return INC_DROP_GROUP_FAILED;
}

enum inc_drop inc_packet(struct inc_group *g, const struct inc_arena *arena,
	const struct inc_look *look, const struct wire_pkt *pkt, const uint8_t *payload,
	uint32_t pay_crc, uint64_t now, const struct inc_sink *sink)
{
	struct inc_ctx c = {
		.g = g,
		.arena = arena,
		.pkt = pkt,
		.payload = payload,
		.sink = sink,
		.now = now,
		.pay_crc = pay_crc,
		.ep = look->ep,
		.cls = look->cls,
		/* Mode-III's packets are its own, whatever made it send them. */
		.mig = g->mode == INC_MODE_3 || pkt->mig,
	};

	inc_turn_begin(g, now, g->burst);
	g->allowance += g->n_ep;
	inc_count(g, INC_C_RX);
	if (__atomic_load_n(&g->state, __ATOMIC_ACQUIRE) == INC_FAILED)
		return answer_failed(&c);
	if (INC_BUG(DRAIN) && __atomic_load_n(&g->state, __ATOMIC_ACQUIRE) == INC_DRAINING)
		return INC_DROP_DRAINING;
	switch (look->cls) {
	case INC_CLASS_CTRL:
	case INC_CLASS_DATA:
		return inc_ops_of(g)->data(&c);
	case INC_CLASS_ACK:
	case INC_CLASS_NAK:
	case INC_CLASS_RNR:
		return inc_ops_of(g)->ack(&c);
	case INC_CLASS_FATAL:
		return fatal(&c);
	default:
		return inc_ops_of(g)->cnp(&c);
	}
}

static bool works(struct inc_group *g)
{
	uint8_t state = __atomic_load_n(&g->state, __ATOMIC_ACQUIRE);

	return state == INC_ACTIVE || state == INC_DRAINING;
}

uint64_t inc_tick(struct inc_group *g, const struct inc_arena *arena, uint64_t now,
	const struct inc_sink *sink)
{
	struct inc_ctx c = {
		.g = g, .arena = arena, .sink = sink, .now = now, .ep = 0xff, .mig = true};

	if (now < g->timer_ns)
		return g->timer_ns;
	inc_turn_begin(g, now, g->burst > g->n_ep ? g->burst : g->n_ep);
	g->timer_ns = UINT64_MAX;
	for (unsigned i = 0; i < g->n_ep && works(g); i++) {
		const struct inc_ep *ep = inc_ep_at(g, i);

		if (ep->timer_ns != 0 && ep->timer_ns <= now)
			inc_ops_of(g)->expired(&c, i);
		if (ep->timer_ns != 0 && ep->timer_ns < g->timer_ns)
			g->timer_ns = ep->timer_ns;
	}
	if (works(g))
		inc_ops_of(g)->go_on(&c);
	else
		g->timer_ns = UINT64_MAX;
	return g->timer_ns;
}
