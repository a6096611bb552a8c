/* SPDX-License-Identifier: BSD-3-Clause */
/* The reliable connection transport: its entry points. */
#include "lib/rnic/rc.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "lib/rnic/requester.h"

static unsigned rc_rx(struct rnic_qp *qp, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	(void)port;
	if (congestion_rx(qp, &rc_of(qp)->cc, pkt, now))
		return 0;
	if (pkt->flags & ROCE_F_REQUEST)
		return rc_rx_request(qp, frame, pkt);
	return rc_rx_answer(qp, frame, pkt, now);
}

static uint8_t *rc_place(const struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt,
	uint16_t *headers)
{
	(void)frame, (void)headers;
	return pkt->flags & ROCE_F_REQUEST ? rc_place_request(qp, pkt) : rc_place_response(qp, pkt);
}

static void rc_rx_placed(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now)
{
	(void)frame;
	(void)congestion_rx(qp, &rc_of(qp)->cc, pkt, now);
	if (pkt->flags & ROCE_F_REQUEST)
		rc_request_placed(qp, pkt);
	else
		rc_response_placed(qp, now);
}

/* The rate allows no packet now: the timer brings the QP back. */
static bool held(struct rnic_qp *qp, uint64_t now)
{
	struct rc *rc = rc_of(qp);

	if (!congestion_hold(qp, &rc->cc, now, &rc->pace_at)) {
		rc->pace_at = UINT64_MAX;
		return false;
	}
	rc_schedule(qp);
	return true;
}

/* Requests and responses take turns. */
bool rc_tx(struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	struct rc *rc = rc_of(qp);

	(void)ports;
	if (rc->cc.limited && held(qp, now))
		return false;
	rc->resp.yielded = !rc->resp.yielded;
	if (!(rc->resp.yielded && rc_tx_response(qp, frame)) && !rc_tx_request(qp, frame, now) &&
		!rc_tx_response(qp, frame))
		return false;
	congestion_sent(&rc->cc, frame->len, now);
	return true;
}

enum tx_control rc_tx_control(
	struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	(void)ports, (void)now;
	if (rc_of(qp)->cc.cnp_due) {
		congestion_tx_cnp(qp, &rc_of(qp)->cc, frame);
		return CONTROL_MORE;
	}
	return rc_tx_answer(qp, frame) ? CONTROL_LAST : CONTROL_NONE;
}

void rc_timer(struct rnic_qp *qp, uint64_t now)
{
	struct rc *rc = rc_of(qp);

	if (rc->pace_at <= now) {
		rc->pace_at = UINT64_MAX;
		qp_ready(qp);
	}
	if (rc->req.retry_at <= now) {
		rc->req.retry_at = UINT64_MAX;
		rc_retry(qp);
	}
	rc_schedule(qp);
}

/* What was lost meanwhile need not wait for the timeout. The tries stay as they are: a link that
 * comes and goes is no progress. */
void rc_port(struct rnic_qp *qp, unsigned port, bool up, uint64_t now)
{
	struct rc_requester *req = &rc_of(qp)->req;

	(void)port, (void)now;
	if (!up || !outstanding(req) || req->rnr_wait)
		return;
	req->nak_done = false;
	rc_go_back(qp);
}

/* ---- attributes and states ---- */

int rc_check_attr(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	(void)attr;
	return (mask & IBV_QP_AV) && rc_of(qp)->req.draining ? -EINVAL : 0;
}

void rc_set_attr(struct rnic_qp *qp, int mask)
{
	struct rc_requester *req = &rc_of(qp)->req;

	if (mask & IBV_QP_RETRY_CNT)
		req->retries = qp->attr.retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		req->rnr_retries = qp->attr.rnr_retry;
	if (mask & IBV_QP_AV)
		cwnd_restart(&rc_of(qp)->cc.window);
}

void rc_query(const struct rnic_qp *qp, struct ibv_qp_attr *attr)
{
	const struct rc *rc = rc_of(qp);

	attr->rq_psn = rc->resp.epsn;
	attr->sq_psn = (uint32_t)rc->req.high & PSN_MASK;
	attr->sq_draining = rc->req.draining;
}

void rc_stats(const struct rnic_qp *qp, struct rnic_qp_stats *stats)
{
	const struct rc *rc = rc_of(qp);

	*stats = (struct rnic_qp_stats){.sq_una = (uint32_t)rc->req.una & PSN_MASK,
		.sq_next = (uint32_t)rc->req.next & PSN_MASK,
		.epsn = rc->resp.epsn,
		.retries = rc->req.retries,
		.rnr_retries = rc->req.rnr_retries,
		.retransmits = rc->req.retransmits,
		.timeouts = rc->req.timeouts,
		.rate = congestion_rate(&rc->cc),
		.window = rc->cc.window.bytes};
}

void rc_enter(struct rnic_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, uint64_t now)
{
	(void)now;
	if (to == IBV_QPS_RTR)
		rc_start_recv(qp);
	if (to == IBV_QPS_RTS && from == IBV_QPS_RTR)
		rc_start_send(qp);
	if (to == IBV_QPS_SQD || from == IBV_QPS_SQD)
		rc_drain(qp, to == IBV_QPS_SQD);
}

/* Nothing is sent again. What waits for the rate still goes: answers to READs and atomics. */
void rc_fail_all(struct rnic_qp *qp)
{
	rc_retry_at(qp, UINT64_MAX);
}

void rc_reset(struct rnic_qp *qp)
{
	struct rc *rc = rc_of(qp);

	*rc = (struct rc){
		.recovery = &gbn_recovery, .pace_at = UINT64_MAX, .req.retry_at = UINT64_MAX};
	congestion_init(&rc->cc, qp->rnic);
}

static int rc_skip(struct rnic_qp *qp, enum rnic_dir dir, uint32_t from, uint32_t count)
{
	return dir == RNIC_SEND ? rc_skip_send(qp, from, count) : rc_skip_recv(qp, from, count);
}

static const struct transport_counter counters[] = {
	{"retransmits", offsetof(struct rc, req.retransmits)},
	{"timeouts", offsetof(struct rc, req.timeouts)},
	{NULL, 0},
};

const struct transport_ops rnic_rc = {
	.name = "rc",
	.type = IBV_QPT_RC,
	.connected = true,
	.opcodes = ROCE_RC,
	.state_size = sizeof(struct rc),
	.send_ops = RC_SEND_OPS,
	.transitions = rc_transitions,
	.counters = counters,
	.check_attr = rc_check_attr,
	.set_attr = rc_set_attr,
	.query = rc_query,
	.stats = rc_stats,
	.enter = rc_enter,
	.fail = rc_fail_all,
	.reset = rc_reset,
	.rx = rc_rx,
	.place = rc_place,
	.rx_placed = rc_rx_placed,
	.tx_control = rc_tx_control,
	.tx = rc_tx,
	.timer = rc_timer,
	.port = rc_port,
	.skip = rc_skip,
	.refuse = rc_refuse_all,
};
