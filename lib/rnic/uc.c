/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connections (IBTA vol. 1, 9.8.2): nothing is answered. A message of which a packet is
 * missing, or that is wrong, is dropped, with its receive request left for the next one. */
#include "lib/rnic/device.h"
#include "lib/rnic/placement.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/rc.h"
#include "lib/rnic/unacked.h"
#include "lib/rnic/wqe.h"
#include "lib/wire/psn.h"

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

static bool uc_tx(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now)
{
	const struct send_wqe *wqe = unacked_next(qp);
	struct wire_hdr hdr = {.mig = true, .dqpn = qp->attr.dest_qp_num};
	uint32_t rest, len;

	(void)now;
	if (wqe == NULL)
		return false;
	rest = wqe->len - qp->sent;
	len = rest > qp->mtu ? qp->mtu : rest;
	if (gather_payload(qp->init.pd, wqe, qp->sent, len, frame) < 0) {
		qp_complete_send(qp, IBV_WC_LOC_PROT_ERR);
		qp_sq_error(qp);
		return false;
	}
	hdr.opcode = opcode_of(wqe, qp->sent == 0, rest == len);
	hdr.psn = (uint32_t)qp->req.high & PSN_MASK;
	hdr.se = rest == len && wqe->solicited;
	hdr.imm = wqe->imm;
	hdr.va = wqe->raddr;
	hdr.rkey = wqe->rkey;
	hdr.dmalen = wqe->len;
	frame_finish(qp, frame, &hdr, len);
	unacked_sent(qp, wqe, len);
	return true;
}

static unsigned take(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	/* The cursor is where the packet is: nothing missing comes later. */
	struct place_flow flow = {.posted = 1, .unmatched = PLACE_DROP};
	const struct rc_fault *fault = message_check(qp, pkt);

	if (fault != NULL)
		return fault->drop;
	flow.posted = !message_needs_recv(pkt) || qp_take_recv(qp);
	if (place_decide(&flow, 0, 1).verdict != PLACE_ACCEPT)
		return RNIC_DROP_RNR;
	fault = message_place(qp, frame + pkt->pay_off, pkt);
	if (fault != NULL)
		return fault->drop;
	message_advance(qp, pkt);
	return 0;
}

static unsigned uc_rx(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now)
{
	struct rc_responder *resp = &qp->resp;
	enum rc_message kind = pkt->flags & ROCE_F_SEND ? RC_IN_SEND : RC_IN_WRITE;
	bool first = pkt->flags & ROCE_F_FIRST, in_order = pkt->psn == resp->epsn;
	unsigned drop;

	(void)now;
	resp->epsn = psn_add(pkt->psn, 1);
	if (!resp->heard) {
		resp->heard = true;
		if (qp_state(qp) == IBV_QPS_RTR)
			qp_event(qp, IBV_EVENT_COMM_EST);
	}
	if (first)
		resp->message = RC_NO_MESSAGE; /* one that was not finished is forgotten */
	else if (!in_order || resp->message != kind) {
		resp->message = RC_NO_MESSAGE;
		return in_order ? RNIC_DROP_OPCODE_SEQ : RNIC_DROP_SEQUENCE;
	}
	drop = take(qp, frame, pkt);
	if (drop != 0)
		resp->message = RC_NO_MESSAGE;
	return drop;
}

static void uc_start_recv(struct rnic_qp *qp)
{
	qp->resp.epsn = qp->attr.rq_psn;
}

const struct transport uc_transport = {
	.type = IBV_QPT_UC,
	.connected = true,
	.opcodes = ROCE_UC,
	.rx = uc_rx,
	.tx = uc_tx,
	.tx_answer = unacked_tx_answer,
	.timer = unacked_timer,
	.start_recv = uc_start_recv,
	.start_send = unacked_start_send,
	.drain = unacked_drain,
	.reset = unacked_reset,
};
