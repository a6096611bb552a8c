/* SPDX-License-Identifier: BSD-3-Clause */
/* RC requester: makes packets of send requests, completes these when acknowledged, and goes back to
 * the oldest unacknowledged packet on a NAK or timeout (IBTA vol. 1, 9.7.5, 9.9.2). */
#include <errno.h>

#include "lib/rnic/core.h"
#include "lib/wire/psn.h"

static struct send_wqe *request(const struct rnic_qp *qp, uint32_t index)
{
	return ring_at(&qp->sq, index);
}

static uint32_t packets(const struct rnic_qp *qp, const struct send_wqe *wqe)
{
	return wqe->len == 0 ? 1 : (wqe->len + qp->mtu - 1) / qp->mtu;
}

/* Gives sequence numbers to the request at assign_idx. */
static void assign_one(struct rnic_qp *qp)
{
	struct rc_requester *req = &qp->req;
	struct send_wqe *wqe = request(qp, req->assign_idx++);

	wqe->first = req->assign;
	wqe->skipped = req->skipped;
	req->assign += packets(qp, wqe);
}

/* Where a request starts, and the PSNs skipped before it; index may be the one to be posted next.
 */
static uint64_t start_of(const struct rnic_qp *qp, uint32_t index)
{
	return index == qp->req.assign_idx ? qp->req.assign : request(qp, index)->first;
}

static uint64_t skipped_at(const struct rnic_qp *qp, uint32_t index)
{
	return index == qp->req.assign_idx ? qp->req.skipped : request(qp, index)->skipped;
}

/* Packets, not PSNs, that would be in flight before `next`. */
static uint64_t in_flight(const struct rnic_qp *qp)
{
	const struct rc_requester *req = &qp->req;

	return (req->next - skipped_at(qp, req->next_idx)) -
	       (req->una - skipped_at(qp, req->una_idx));
}

static bool outstanding(const struct rc_requester *req)
{
	return req->una != req->high;
}

static void restart_timer(struct rnic_qp *qp, uint64_t now)
{
	uint64_t timeout = roce_timeout_ns(qp->attr.timeout);

	if (outstanding(&qp->req) && timeout != 0)
		timer_set(&qp->rnic->timers, &qp->timer, now + timeout);
	else
		timer_stop(&qp->timer);
}

/* The oldest request failed: it completes with status, everything else is flushed. */
static void fail(struct rnic_qp *qp, enum ibv_wc_status status)
{
	qp_complete_send(qp, status);
	qp_error(qp);
}

/* A request that cannot be sent fails in its turn. */
static void settle_fault(struct rnic_qp *qp)
{
	struct rc_requester *req = &qp->req;

	if (!req->fault || (int32_t)(req->fault_idx - req->una_idx) > 0)
		return;
	/* It may have arrived the first time and only failed when sent again. */
	req->fault = req->fault_idx == req->una_idx;
	if (req->fault)
		fail(qp, req->fault_status);
}

/* In SQD: nothing that was begun is unfinished. */
static void settle_drain(struct rnic_qp *qp)
{
	struct rc_requester *req = &qp->req;

	if (!req->draining || outstanding(req) || req->high != start_of(qp, req->high_idx))
		return;
	req->draining = false;
	if (qp->attr.en_sqd_async_notify)
		qp_event(qp, IBV_EVENT_SQ_DRAINED);
}

/* ---- sending ---- */

static uint8_t opcode_of(const struct send_wqe *wqe, bool first, bool last)
{
	static const uint8_t send[2][2] = {
		{ROCE_SEND_MIDDLE, ROCE_SEND_LAST}, {ROCE_SEND_FIRST, ROCE_SEND_ONLY}};
	static const uint8_t write[2][2] = {
		{ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST}, {ROCE_WRITE_FIRST, ROCE_WRITE_ONLY}};

	switch (wqe->opcode) {
	case IBV_WR_SEND_WITH_IMM:
		/* The opcodes with immediate follow those without. */
		return send[first][last] + last;
	case IBV_WR_RDMA_WRITE:
		return write[first][last];
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return write[first][last] + last;
	default:
		return send[first][last];
	}
}

/* May the packet at `next` go out now? Its request has sequence numbers. */
static bool allowed(const struct rnic_qp *qp)
{
	const struct rc_requester *req = &qp->req;

	if (req->fault && req->fault_idx == req->next_idx)
		return false;
	if (qp_state(qp) == IBV_QPS_SQD && req->next == req->high &&
		req->next == request(qp, req->next_idx)->first)
		return false;
	return in_flight(qp) < qp->rnic->window && req->next - req->una < RC_SEQ_LIMIT - 1;
}

/* After the packet at `next` was made. */
static void advance(struct rnic_qp *qp, bool last, uint64_t now)
{
	struct rc_requester *req = &qp->req;
	/* The clock of a packet runs from when it leaves: a port that takes nothing for a while
	 * does not use up tries. */
	bool oldest = req->next == req->una;

	if (req->next < req->high) {
		req->retransmits++;
		rnic_inc(qp->rnic, RNIC_C_RETRANSMITS);
	}
	req->next++;
	if (last) {
		req->next_idx++;
		req->next = start_of(qp, req->next_idx);
	}
	if (req->next > req->high) {
		req->high = req->next;
		req->high_idx = req->next_idx;
	}
	if (oldest)
		restart_timer(qp, now);
}

static bool make_packet(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now)
{
	struct rc_requester *req = &qp->req;
	const struct send_wqe *wqe = request(qp, req->next_idx);
	uint32_t index = (uint32_t)(req->next - wqe->first);
	uint32_t offset = index * qp->mtu;
	uint32_t rest = wqe->len - offset;
	bool last = rest <= qp->mtu;
	uint32_t len = last ? rest : qp->mtu;
	struct wire_hdr hdr = {.opcode = opcode_of(wqe, index == 0, last),
		.mig = true,
		.se = last && wqe->solicited,
		.dqpn = qp->attr.dest_qp_num,
		.psn = (uint32_t)req->next & PSN_MASK,
		.imm = wqe->imm,
		.va = wqe->raddr,
		.rkey = wqe->rkey,
		.dmalen = wqe->len};

	if (gather_payload(qp->init.pd, wqe, offset, len, frame) < 0) {
		req->fault = true;
		req->fault_idx = req->next_idx;
		req->fault_status = IBV_WC_LOC_PROT_ERR;
		settle_fault(qp);
		return false;
	}
	hdr.ackreq = last || ++req->since_ackreq >= ACKREQ_EVERY ||
		     in_flight(qp) + 1 >= qp->rnic->window;
	if (hdr.ackreq)
		req->since_ackreq = 0;
	frame_finish(qp, frame, &hdr, len);
	advance(qp, last, now);
	return true;
}

bool rc_tx(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now)
{
	struct rc_requester *req = &qp->req;
	enum ibv_qp_state state = qp_state(qp);

	if (state == IBV_QPS_ERR)
		qp_flush(qp);
	if ((state != IBV_QPS_RTS && state != IBV_QPS_SQD) || req->rnr_wait)
		return false;
	if (req->next_idx == req->assign_idx) {
		if (req->assign_idx == ring_head(&qp->sq))
			return false;
		assign_one(qp);
	}
	return allowed(qp) && make_packet(qp, frame, now);
}

/* ---- going back, giving up ---- */

static void go_back(struct rnic_qp *qp)
{
	struct rc_requester *req = &qp->req;

	req->next = req->una;
	req->next_idx = req->una_idx;
	req->since_ackreq = 0;
	timer_stop(&qp->timer);
	qp_ready(qp);
}

/* One more try without progress since the last one. */
static void try_again(struct rnic_qp *qp)
{
	if (qp->req.retries == 0) {
		fail(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	qp->req.retries--;
	go_back(qp);
}

void rc_timer(struct rnic_qp *qp)
{
	struct rc_requester *req = &qp->req;

	if (req->rnr_wait) {
		req->rnr_wait = false;
		go_back(qp);
		return;
	}
	if (!outstanding(req))
		return;
	req->timeouts++;
	rnic_inc(qp->rnic, RNIC_C_TIMEOUTS);
	try_again(qp);
}

/* ---- acknowledgements ---- */

/* Everything before seq is acknowledged; una < seq <= high. */
static void acknowledge(struct rnic_qp *qp, uint64_t seq, uint64_t now)
{
	struct rc_requester *req = &qp->req;

	while (req->una_idx != req->assign_idx) {
		const struct send_wqe *wqe = request(qp, req->una_idx);

		if (wqe->first + packets(qp, wqe) > seq)
			break;
		qp_complete_send(qp, IBV_WC_SUCCESS);
		req->una_idx++;
	}
	req->una = start_of(qp, req->una_idx);
	if (req->una < seq)
		req->una = seq;
	if (req->next < req->una) {
		req->next = req->una;
		req->next_idx = req->una_idx;
	}
	req->retries = qp->attr.retry_cnt;
	req->rnr_retries = qp->attr.rnr_retry;
	req->rnr_wait = false;
	restart_timer(qp, now);
	settle_drain(qp);
	settle_fault(qp);
	qp_ready(qp);
}

static unsigned rx_rnr(struct rnic_qp *qp, unsigned code, uint64_t now)
{
	struct rc_requester *req = &qp->req;

	rnic_inc(qp->rnic, RNIC_C_RNR_RX);
	if (req->rnr_wait)
		return 0; /* the same once more */
	if (qp->attr.rnr_retry != 7) {
		if (req->rnr_retries == 0) {
			fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
			return 0;
		}
		req->rnr_retries--;
	}
	/* The peer lives: what it makes us wait for does not count as tries. */
	req->retries = qp->attr.retry_cnt;
	req->rnr_wait = true;
	timer_set(&qp->rnic->timers, &qp->timer, now + roce_rnr_ns(code));
	return 0;
}

static unsigned rx_nak(struct rnic_qp *qp, unsigned code, bool progress)
{
	switch (code) {
	case ROCE_NAK_SEQUENCE:
		rnic_inc(qp->rnic, RNIC_C_NAK_RX);
		/* Packets behind one that met RNR: it will be sent again anyway. */
		if (qp->req.rnr_wait)
			return 0;
		if (progress)
			go_back(qp);
		else
			try_again(qp);
		return 0;
	case ROCE_NAK_INVALID_REQUEST:
		fail(qp, IBV_WC_REM_INV_REQ_ERR);
		return 0;
	case ROCE_NAK_REMOTE_ACCESS:
		fail(qp, IBV_WC_REM_ACCESS_ERR);
		return 0;
	case ROCE_NAK_REMOTE_OPERATION:
		fail(qp, IBV_WC_REM_OP_ERR);
		return 0;
	default:
		return RNIC_DROP_UNSUPPORTED;
	}
}

unsigned rc_rx_ack(struct rnic_qp *qp, const struct wire_pkt *pkt, uint64_t now)
{
	struct rc_requester *req = &qp->req;
	unsigned class = pkt->syndrome & ROCE_AETH_CLASS, value = pkt->syndrome & ROCE_AETH_VALUE;
	/* The sequence number nearest to una with this PSN. */
	uint64_t seq =
		req->una + (uint64_t)(int64_t)psn_diff(pkt->psn, (uint32_t)req->una & PSN_MASK);
	bool progress;

	if (class != ROCE_AETH_ACK && class != ROCE_AETH_RNR && class != ROCE_AETH_NAK)
		return RNIC_DROP_UNSUPPORTED;
	if (class == ROCE_AETH_ACK)
		seq++;
	/* An ACK of nothing new, a NAK or RNR NAK of something done, or of what was never sent. The
	 * responder's NAK of the packet after all that were sent tells nothing but an ACK. */
	if (seq < req->una || seq > req->high || !outstanding(req))
		return RNIC_DROP_ACK_RANGE;
	progress = seq > req->una;
	if (class == ROCE_AETH_ACK) {
		if (!progress)
			return RNIC_DROP_ACK_RANGE;
		rnic_inc(qp->rnic, RNIC_C_ACK_RX);
	}
	if (progress) {
		acknowledge(qp, seq, now);
		if (qp_state(qp) == IBV_QPS_ERR)
			return 0;
	}
	if (class == ROCE_AETH_ACK || !outstanding(req))
		return 0;
	return class == ROCE_AETH_RNR ? rx_rnr(qp, value, now) : rx_nak(qp, value, progress);
}

/* ---- states, skip ---- */

void rc_start_send(struct rnic_qp *qp)
{
	struct rc_requester *req = &qp->req;
	uint32_t index = ring_tail(&qp->sq);
	/* One lap up, so that nothing is ever below zero. */
	uint64_t start = (UINT64_C(1) << PSN_BITS) + qp->attr.sq_psn;

	req->una = req->next = req->high = req->assign = start;
	req->una_idx = req->next_idx = req->high_idx = req->assign_idx = index;
}

void rc_drain(struct rnic_qp *qp, bool on)
{
	qp->req.draining = on;
	settle_drain(qp);
}

int rc_skip_send(struct rnic_qp *qp, uint32_t from, uint32_t count)
{
	struct rc_requester *req = &qp->req;
	uint32_t head = ring_head(&qp->sq);

	while (req->assign_idx != head)
		assign_one(qp);
	if (((uint32_t)req->assign & PSN_MASK) != from)
		return -EINVAL;
	req->assign += count;
	req->skipped += count;
	/* Whatever stood at the end of the last request now stands behind the range. */
	if (req->una_idx == head)
		req->una = req->assign;
	if (req->next_idx == head)
		req->next = req->assign;
	if (req->high_idx == head)
		req->high = req->assign;
	return 0;
}
