/* SPDX-License-Identifier: BSD-3-Clause */
/* The reliable connection transport: its entry points. */
#include <string.h>

#include "lib/rnic/qp.h"
#include "lib/rnic/rc.h"
#include "lib/wire/psn.h"

static unsigned rc_rx(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now)
{
	if (pkt->flags & ROCE_F_REQUEST)
		return qp->sel != NULL ? sel_rx_request(qp, frame, pkt)
				       : rc_rx_request(qp, frame, pkt);
	if ((pkt->opcode & ROCE_OP_MASK) == ROCE_ACK)
		return rc_rx_ack(qp, frame, pkt, now);
	return rc_rx_response(qp, frame, pkt, now);
}

/* Requests and responses take turns. */
static bool rc_tx(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now)
{
	qp->resp.yielded = !qp->resp.yielded;
	if (qp->resp.yielded && rc_tx_response(qp, frame))
		return true;
	return rc_tx_request(qp, frame, now) || rc_tx_response(qp, frame);
}

static void rc_reset(struct rnic_qp *qp)
{
	memset(&qp->req, 0, sizeof(qp->req));
	memset(&qp->resp, 0, sizeof(qp->resp));
	if (qp->sel != NULL)
		memset(qp->sel, 0, sizeof(*qp->sel));
}

static int rc_skip(struct rnic_qp *qp, enum rnic_dir dir, uint32_t from, uint32_t count)
{
	return dir == RNIC_SEND ? rc_skip_send(qp, from, count) : rc_skip_recv(qp, from, count);
}

const struct transport rc_transport = {
	.type = IBV_QPT_RC,
	.connected = true,
	.opcodes = ROCE_RC,
	.rx = rc_rx,
	.tx = rc_tx,
	.tx_answer = rc_tx_answer,
	.timer = rc_timer,
	.start_recv = rc_start_recv,
	.start_send = rc_start_send,
	.drain = rc_drain,
	.reset = rc_reset,
	.skip = rc_skip,
};

/* The same but for what its packets look like, and what sel.c does differently. */
const struct transport selective_transport = {
	.type = IBV_QPT_RC,
	.connected = true,
	.opcodes = ROCE_SEL,
	.rx = rc_rx,
	.tx = rc_tx,
	.tx_answer = rc_tx_answer,
	.timer = rc_timer,
	.start_recv = rc_start_recv,
	.start_send = rc_start_send,
	.drain = rc_drain,
	.reset = rc_reset,
};

void rnic_qp_stats(const struct rnic_qp *qp, struct rnic_qp_stats *stats)
{
	*stats = (struct rnic_qp_stats){.sq_una = (uint32_t)qp->req.una & PSN_MASK,
		.sq_next = (uint32_t)qp->req.next & PSN_MASK,
		.epsn = qp->resp.epsn,
		.retries = qp->req.retries,
		.rnr_retries = qp->req.rnr_retries,
		.retransmits = qp->req.retransmits,
		.timeouts = qp->req.timeouts,
		.rate = qp->flow_rate.limited ? qp->flow_rate.rate : 0};
}
