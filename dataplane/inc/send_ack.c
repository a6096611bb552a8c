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

static struct inc_emit acknowledgement(
	const struct inc_ctx *c, uint64_t outs, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	const bool passed_on =
		c->cls == INC_CLASS_ACK || c->cls == INC_CLASS_NAK || c->cls == INC_CLASS_RNR;

	return (struct inc_emit){
		.out_mask = outs,
		.opcode = ROCE_ACK | inc_transport(c->g),
		.syndrome = syndrome,
		.mig = passed_on ? c->pkt->mig : true,
		.psn = psn,
		.msn = msn,
	};
}

static void send(struct inc_ctx *c, const struct inc_emit *emit)
{
	note_acknowledged(c->g, emit->out_mask, emit->syndrome, emit->psn);
	c->g->count[INC_C_TX] += (unsigned)__builtin_popcountll(emit->out_mask);
	c->sink->emit(c->sink->arg, c->g, emit);
}

void inc_send_ack(struct inc_ctx *c, uint64_t outs, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	const struct inc_emit emit = acknowledgement(c, outs, syndrome, psn, msn);

	if (outs != 0)
		send(c, &emit);
}

void inc_send_back(struct inc_ctx *c, uint8_t syndrome)
{
	struct inc_emit emit =
		acknowledgement(c, 1ULL << c->ep, syndrome, c->pkt->psn, c->pkt->msn);

	if ((c->g->flags & INC_F_SR) && c->cls == INC_CLASS_NAK) {
		emit.from_packet = true;
		emit.payload = c->payload;
		emit.pay_len = c->pkt->pay_len < ROCE_SACK_LEN ? c->pkt->pay_len : ROCE_SACK_LEN;
		emit.pay_crc = icrc_append(0, emit.payload, emit.pay_len);
	}
	send(c, &emit);
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
