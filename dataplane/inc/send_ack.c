/* SPDX-License-Identifier: BSD-3-Clause */
/* SendAck (EPIC, appendix B): acknowledgements and congestion notifications that leave the switch,
 * its own and those it passes on. */
#include "dataplane/inc/modules.h"

enum { CNP_MIN_GAP_NS = 50000 };

/* An ACK, and a NAK of any kind, tells a host that everything before it was received. */
static void note_acknowledged(struct inc_group *g, uint64_t outs, uint8_t syndrome, uint32_t psn)
{
	bool ack = (syndrome & ROCE_AETH_CLASS) == ROCE_AETH_ACK;
	uint32_t next = ack ? psn_add(psn, 1) : psn;

	for (outs &= g->host_mask; outs != 0; outs &= outs - 1) {
		struct inc_ep *ep = inc_ep_at(g, (unsigned)__builtin_ctzll(outs));

		ep->refl_next = psn_max(ep->refl_next, next);
		if (ep->rnr_told && psn_lt(ep->rnr_psn, ep->refl_next)) {
			ep->rnr_told = false;
			ep->rnr_psn = 0;
		}
	}
}

void inc_send_map(
	struct inc_ctx *c, unsigned ep, uint32_t psn, uint32_t msn, const uint8_t *map, size_t len)
{
	const struct inc_emit emit = {
		.out_mask = 1ULL << ep,
		.opcode = ROCE_ACK | inc_transport(c->g),
		.syndrome = ROCE_AETH_NAK | ROCE_NAK_SEQUENCE,
		.payload = map,
		.pay_len = (uint16_t)len,
		.pay_crc = icrc_append(0, map, len),
		.mig = true,
		.psn = psn,
		.msn = msn,
	};

	c->g->count[INC_C_TX]++;
	c->sink->emit(c->sink->arg, c->g, &emit);
}

/* What the host says that it has behind the missing packet (4.11). */
static void add_map(const struct inc_ctx *c, struct inc_emit *emit)
{
	emit->payload = c->payload;
	emit->pay_len = c->pkt->pay_len < ROCE_SACK_LEN ? c->pkt->pay_len : ROCE_SACK_LEN;
	emit->pay_crc = icrc_append(0, emit->payload, emit->pay_len);
}

void inc_send_ack(struct inc_ctx *c, uint64_t outs, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	bool passed_on =
		c->cls == INC_CLASS_ACK || c->cls == INC_CLASS_NAK || c->cls == INC_CLASS_RNR;
	struct inc_emit emit = {
		.out_mask = outs,
		.opcode = ROCE_ACK | inc_transport(c->g),
		.syndrome = syndrome,
		.mig = passed_on ? c->pkt->mig : true,
		.psn = psn,
		.msn = msn,
	};

	if (outs == 0)
		return;
	if ((c->g->flags & INC_F_SR) && c->cls == INC_CLASS_NAK)
		add_map(c, &emit);
	note_acknowledged(c->g, outs, syndrome, psn);
	c->g->count[INC_C_TX] += (unsigned)__builtin_popcountll(outs);
	c->sink->emit(c->sink->arg, c->g, &emit);
}

enum inc_drop inc_send_cnp(struct inc_ctx *c, uint64_t outs)
{
	static const uint8_t zeros[ROCE_CNP_LEN];
	struct inc_emit emit = {
		.opcode = ROCE_CNP,
		.payload = zeros,
		.pay_len = sizeof(zeros),
		.pay_crc = icrc_append(0, zeros, sizeof(zeros)),
		.mig = true,
	};

	for (; outs != 0; outs &= outs - 1) {
		struct inc_ep *ep = inc_ep_at(c->g, (unsigned)__builtin_ctzll(outs));

		if (ep->cnp_ns && c->now - ep->cnp_ns < CNP_MIN_GAP_NS)
			continue;
		ep->cnp_ns = c->now;
		emit.out_mask |= outs & -outs;
	}
	if (emit.out_mask == 0)
		return INC_DROP_CNP_RATE;
	c->g->count[INC_C_TX] += (unsigned)__builtin_popcountll(emit.out_mask);
	c->sink->emit(c->sink->arg, c->g, &emit);
	return INC_DROP_DONE;
}
