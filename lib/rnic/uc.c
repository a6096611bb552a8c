/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connections (IBTA vol. 1, 9.8.2): nothing is answered. A message of which a packet is
 * missing, or that is wrong, is dropped, with its receive request left for the next one. */
#include "lib/rnic/congestion.h"
#include "lib/rnic/message.h"
#include "lib/rnic/placement.h"
#include "lib/rnic/unreliable.h"
#include "lib/wire/psn.h"

struct uc {
	struct unreliable un;
	struct congestion cc;
	uint32_t epsn; /* PSN after the last one that came */
	bool heard;    /* IBV_EVENT_COMM_EST was raised */
	struct message message;
};

static struct uc *uc_of(const struct rnic_qp *qp)
{
	return transport_state(qp);
}

static uint8_t opcode_of(const struct send_wqe *wqe, bool first, bool last)
{
	bool write = wqe->opcode == IBV_WR_RDMA_WRITE || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool imm = wqe->opcode == IBV_WR_SEND_WITH_IMM || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	uint8_t base = ROCE_UC | (write ? ROCE_WRITE_FIRST : ROCE_SEND_FIRST);

	/* FIRST, MIDDLE, LAST, LAST with Immediate, ONLY, ONLY with Immediate. */
	if (!last)
		return base + !first;
	return base + (first ? 4 : 2) + imm;
}

static bool make_packet(struct rnic_qp *qp, const struct send_wqe *wqe, struct rnic_frame *frame)
{
	struct uc *uc = uc_of(qp);
	const uint32_t rest = wqe->len - uc->un.sent, len = rest > qp->mtu ? qp->mtu : rest;
	struct wire_hdr hdr = {.opcode = opcode_of(wqe, uc->un.sent == 0, rest == len),
		.mig = true,
		.se = rest == len && wqe->solicited,
		.dqpn = qp->attr.dest_qp_num,
		.psn = uc->un.psn,
		.imm = wqe->imm,
		.va = wqe->raddr,
		.rkey = wqe->rkey,
		.dmalen = wqe->len};

	if (gather_payload(qp->init.pd, wqe, uc->un.sent, len, frame) < 0) {
		unreliable_refuse(qp);
		return false;
	}
	frame_build(qp->rnic, &qp->path, frame, &hdr, len);
	unreliable_sent(qp, wqe, len);
	return true;
}

static bool uc_tx(struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	struct congestion *cc = &uc_of(qp)->cc;
	const struct send_wqe *wqe;
	uint64_t until;

	(void)ports;
	if (cc->limited && congestion_hold(qp, cc, now, &until)) {
		transport_schedule(qp, until);
		return false;
	}
	wqe = unreliable_next(qp);
	if (wqe == NULL || !make_packet(qp, wqe, frame))
		return false;
	congestion_sent(cc, frame->len, now);
	return true;
}

static enum tx_control uc_tx_control(
	struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	(void)ports, (void)now;
	if (!uc_of(qp)->cc.cnp_due)
		return CONTROL_NONE;
	congestion_tx_cnp(qp, &uc_of(qp)->cc, frame);
	return CONTROL_LAST;
}

static void uc_timer(struct rnic_qp *qp, uint64_t now)
{
	(void)now;
	qp_ready(qp);
}

static unsigned take(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	/* The cursor is where the packet is: nothing missing comes later. */
	struct place_flow flow = {.posted = 1, .unmatched = PLACE_DROP};
	struct message *message = &uc_of(qp)->message;
	const struct message_fault *fault = message_check(qp, message, pkt);

	if (fault != NULL)
		return fault->drop;
	flow.posted = !message_needs_recv(pkt) || qp_take_recv(qp);
	if (place_decide(&flow, 0, 1).verdict != PLACE_ACCEPT)
		return RNIC_DROP_RNR;
	fault = message_place(qp, message, frame + pkt->pay_off, pkt);
	if (fault != NULL)
		return fault->drop;
	message_advance(qp, message, pkt);
	return 0;
}

static unsigned uc_rx(struct rnic_qp *qp, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	struct uc *uc = uc_of(qp);
	enum message_kind kind = pkt->flags & ROCE_F_SEND ? MESSAGE_SEND : MESSAGE_WRITE;
	bool first = pkt->flags & ROCE_F_FIRST, in_order = pkt->psn == uc->epsn;
	unsigned drop;

	(void)port;
	if (congestion_rx(qp, &uc->cc, pkt, now))
		return 0;
	uc->epsn = psn_add(pkt->psn, 1);
	if (!uc->heard) {
		uc->heard = true;
		if (qp_state(qp) == IBV_QPS_RTR)
			qp_event(qp, IBV_EVENT_COMM_EST);
	}
	if (first)
		uc->message.kind = MESSAGE_NONE; /* one that was not finished is forgotten */
	else if (!in_order || uc->message.kind != kind) {
		uc->message.kind = MESSAGE_NONE;
		return in_order ? RNIC_DROP_OPCODE_SEQ : RNIC_DROP_SEQUENCE;
	}
	drop = take(qp, frame, pkt);
	if (drop != 0)
		uc->message.kind = MESSAGE_NONE;
	return drop;
}

/* It has been heard of, since its message has begun. */
static uint8_t *uc_place(const struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt,
	uint16_t *headers)
{
	const struct uc *uc = uc_of(qp);

	(void)frame, (void)headers;
	return pkt->psn == uc->epsn ? message_middle(qp, &uc->message, pkt, 0) : NULL;
}

static void uc_rx_placed(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now)
{
	struct uc *uc = uc_of(qp);

	(void)frame;
	(void)congestion_rx(qp, &uc->cc, pkt, now);
	uc->epsn = psn_add(pkt->psn, 1);
	message_placed(&uc->message, pkt);
}

static void uc_enter(struct rnic_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, uint64_t now)
{
	if (to == IBV_QPS_RTR)
		uc_of(qp)->epsn = qp->attr.rq_psn;
	unreliable_enter(qp, from, to, now);
}

static void uc_query(const struct rnic_qp *qp, struct ibv_qp_attr *attr)
{
	unreliable_query(qp, attr);
	attr->rq_psn = uc_of(qp)->epsn;
}

static void uc_stats(const struct rnic_qp *qp, struct rnic_qp_stats *stats)
{
	unreliable_stats(qp, stats);
	stats->epsn = uc_of(qp)->epsn;
	stats->rate = congestion_rate(&uc_of(qp)->cc);
}

static void uc_reset(struct rnic_qp *qp)
{
	*uc_of(qp) = (struct uc){0};
	congestion_init(&uc_of(qp)->cc, qp->rnic);
}

const struct transport_ops rnic_uc = {
	.name = "uc",
	.type = IBV_QPT_UC,
	.connected = true,
	.opcodes = ROCE_UC,
	.state_size = sizeof(struct uc),
	.send_ops = 1 << IBV_WR_SEND | 1 << IBV_WR_SEND_WITH_IMM | 1 << IBV_WR_RDMA_WRITE |
		    1 << IBV_WR_RDMA_WRITE_WITH_IMM | 1 << IBV_WR_LOCAL_INV | 1 << IBV_WR_BIND_MW,
	.transitions = uc_transitions,
	.check_attr = unreliable_check_attr,
	.query = uc_query,
	.stats = uc_stats,
	.enter = uc_enter,
	.fail = unreliable_fail,
	.reset = uc_reset,
	.rx = uc_rx,
	.place = uc_place,
	.rx_placed = uc_rx_placed,
	.tx_control = uc_tx_control,
	.tx = uc_tx,
	.timer = uc_timer,
};
