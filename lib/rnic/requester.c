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

/* Gives sequence numbers to the request at assign_idx. */
static void assign_one(struct rnic_qp *qp)
{
	struct rc_requester *req = &qp->req;
	struct send_wqe *wqe = request(qp, req->assign_idx++);

	wqe->first = req->assign;
	wqe->skipped = req->skipped;
	wqe->recv = req->recvs;
	req->recvs += rc_takes_recv(wqe->opcode);
	req->assign += rc_packets(qp, wqe);
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

	if (qp->sel != NULL)
		timeout = sel_timeout(qp, timeout);
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

/* May the packet at `next` go out now? Its request has sequence numbers. */
static bool allowed(const struct rnic_qp *qp)
{
	const struct rc_requester *req = &qp->req;
	const struct send_wqe *wqe = request(qp, req->next_idx);
	uint64_t end = rc_is_rd(wqe) ? wqe->first + rc_packets(qp, wqe) : req->next + 1;

	if (req->fault && req->fault_idx == req->next_idx)
		return false;
	if (rc_is_rd(wqe) && req->rd_out >= qp->attr.max_rd_atomic && qp->attr.max_rd_atomic > 0)
		return false;
	if (wqe->fenced && req->rd_out > 0)
		return false;
	if (qp_state(qp) == IBV_QPS_SQD && req->next == req->high &&
		req->next == request(qp, req->next_idx)->first)
		return false;
	if (qp->sel != NULL && req->next - req->una >= SEL_REACH)
		return false;
	return in_flight(qp) < qp->rnic->window && end - req->una < RC_SEQ_LIMIT;
}

void rc_step(struct rnic_qp *qp, bool last)
{
	struct rc_requester *req = &qp->req;

	req->next++;
	if (last) {
		req->next_idx++;
		req->next = start_of(qp, req->next_idx);
	}
}

/* After the packet at `next` was made. */
static void advance(struct rnic_qp *qp, bool last, uint64_t now)
{
	struct rc_requester *req = &qp->req;
	/* The clock of a packet runs from when it leaves: a port that takes nothing for a while
	 * does not use up tries. */
	bool oldest = req->next == req->una;

	if (qp->sel != NULL)
		sel_sent(qp, req->since_ackreq == 0, now);
	if (req->next < req->high) {
		req->retransmits++;
		rnic_inc(qp->rnic, RNIC_C_RETRANSMITS);
	}
	rc_step(qp, last);
	if (req->next > req->high) {
		req->high = req->next;
		req->high_idx = req->next_idx;
	}
	if (oldest)
		restart_timer(qp, now);
}

static bool give_up(struct rnic_qp *qp, enum ibv_wc_status status)
{
	struct rc_requester *req = &qp->req;

	req->fault = true;
	req->fault_idx = req->next_idx;
	req->fault_status = status;
	settle_fault(qp);
	return false;
}

/* One packet asks for all that has not come of a READ. */
static bool make_rd_packet(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now)
{
	struct rc_requester *req = &qp->req;
	const struct send_wqe *wqe = request(qp, req->next_idx);
	uint32_t offset = (uint32_t)(req->next - wqe->first) * qp->mtu;
	struct wire_hdr hdr = {.opcode = ROCE_READ_REQUEST,
		.mig = true,
		.ackreq = true,
		.dqpn = qp->attr.dest_qp_num,
		.psn = (uint32_t)req->next & PSN_MASK,
		.va = wqe->raddr + offset,
		.rkey = wqe->rkey,
		.dmalen = wqe->len - offset,
		.swap_add = wqe->swap_add,
		.compare = wqe->compare};

	if (qp->attr.max_rd_atomic == 0)
		return give_up(qp, IBV_WC_LOC_QP_OP_ERR);
	if (rc_is_atomic(wqe))
		hdr.opcode =
			wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? ROCE_CMP_SWAP : ROCE_FETCH_ADD;
	req->since_ackreq = 0;
	req->rd_out++;
	hdr.opcode |= qp->ops->opcodes;
	frame->n_iov = 0;
	frame_finish(qp, frame, &hdr, 0);
	advance(qp, true, now);
	return true;
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
	struct wire_hdr hdr = {.opcode = rc_opcode(wqe, index == 0, last) | qp->ops->opcodes,
		.mig = true,
		.se = last && wqe->solicited,
		.dqpn = qp->attr.dest_qp_num,
		.psn = (uint32_t)req->next & PSN_MASK,
		.imm = wqe->imm,
		.va = wqe->raddr,
		.rkey = wqe->opcode == IBV_WR_SEND_WITH_INV ? wqe->imm : wqe->rkey,
		.dmalen = wqe->len,
		.pos_offset = offset,
		.pos_recv = wqe->recv};

	if (rc_is_rd(wqe))
		return make_rd_packet(qp, frame, now);
	if (gather_payload(qp->init.pd, wqe, offset, len, frame) < 0)
		return give_up(qp, IBV_WC_LOC_PROT_ERR);
	hdr.ackreq = last || ++req->since_ackreq >= ACKREQ_EVERY ||
		     in_flight(qp) + 1 >= qp->rnic->window ||
		     (qp->sel != NULL && req->next < req->high); /* nothing may follow it */
	if (hdr.ackreq)
		req->since_ackreq = 0;
	frame->stays = true;
	frame_finish(qp, frame, &hdr, len);
	advance(qp, last, now);
	return true;
}

static void settle_local(struct rnic_qp *qp);

/* The request at next_idx, which has no packets; once, however often it is passed. */
static bool run_local(struct rnic_qp *qp)
{
	struct rc_requester *req = &qp->req;
	struct send_wqe *wqe = request(qp, req->next_idx);
	enum ibv_wc_status status = wqe->done ? IBV_WC_SUCCESS : window_run(qp, wqe);

	if (status != IBV_WC_SUCCESS)
		return give_up(qp, status);
	wqe->done = true;
	req->next_idx++;
	req->next = start_of(qp, req->next_idx);
	if ((int32_t)(req->next_idx - req->high_idx) > 0) {
		req->high = req->next;
		req->high_idx = req->next_idx;
	}
	settle_local(qp);
	return true;
}

bool rc_tx_request(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now)
{
	struct rc_requester *req = &qp->req;
	enum ibv_qp_state state = qp_state(qp);

	if (state == IBV_QPS_ERR)
		qp_flush(qp);
	if ((state != IBV_QPS_RTS && state != IBV_QPS_SQD) || req->rnr_wait)
		return false;
	for (;;) {
		if (qp->sel != NULL)
			sel_pass(qp);
		if (req->next_idx == req->assign_idx) {
			if (req->assign_idx == ring_head(&qp->sq))
				return false;
			assign_one(qp);
		}
		if (!allowed(qp))
			return false;
		if (!wqe_is_local(request(qp, req->next_idx)))
			return make_packet(qp, frame, now);
		if (!run_local(qp))
			return false;
	}
}

/* ---- going back, giving up ---- */

void rc_rewind(struct rnic_qp *qp)
{
	struct rc_requester *req = &qp->req;

	req->next = req->una;
	req->next_idx = req->una_idx;
	req->since_ackreq = 0;
	req->rd_out = 0;
	qp_ready(qp);
}

void rc_go_back(struct rnic_qp *qp)
{
	rc_rewind(qp);
	if (qp->sel != NULL)
		sel_go_back(qp);
	timer_stop(&qp->timer);
}

/* One more try without progress since the last one. */
void rc_try_again(struct rnic_qp *qp)
{
	if (qp->req.retries == 0) {
		fail(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	qp->req.retries--;
	rc_go_back(qp);
}

void rc_timer(struct rnic_qp *qp)
{
	struct rc_requester *req = &qp->req;

	if (req->rnr_wait) {
		req->rnr_wait = false;
		rc_go_back(qp);
		return;
	}
	if (!outstanding(req) || (qp->sel != NULL && sel_probe(qp)))
		return;
	req->timeouts++;
	req->nak_done = false;
	rnic_inc(qp->rnic, RNIC_C_TIMEOUTS);
	rc_try_again(qp);
}

/* ---- acknowledgements ---- */

/* The oldest request is done. */
static void complete(struct rnic_qp *qp)
{
	struct rc_requester *req = &qp->req;

	/* Those from next_idx on will be sent once more, or were not yet, and are not counted. */
	if (rc_is_rd(request(qp, req->una_idx)) && (int32_t)(req->next_idx - req->una_idx) > 0)
		req->rd_out--;
	qp_complete_send(qp, IBV_WC_SUCCESS);
	req->una_idx++;
	if (req->una < start_of(qp, req->una_idx))
		req->una = start_of(qp, req->una_idx);
}

/* Requests without packets are done when they have been carried out and all before them is done. */
static void settle_local(struct rnic_qp *qp)
{
	struct rc_requester *req = &qp->req;

	while (req->una_idx != req->assign_idx && request(qp, req->una_idx)->done)
		complete(qp);
}

/* una has moved. */
static void progressed(struct rnic_qp *qp, uint64_t now)
{
	struct rc_requester *req = &qp->req;

	settle_local(qp);
	if (req->next < req->una) {
		req->next = req->una;
		req->next_idx = req->una_idx;
	}
	req->retries = qp->attr.retry_cnt;
	req->rnr_retries = qp->attr.rnr_retry;
	req->rnr_wait = req->implied = req->nak_done = false;
	if (qp->sel != NULL)
		sel_progressed(qp, now);
	restart_timer(qp, now);
	settle_drain(qp);
	settle_fault(qp);
	qp_ready(qp);
}

/* Everything before seq is acknowledged (una < seq <= high), as far as no READ or atomic is among
 * it: these are done when their response is here. True if una moved. */
static bool acknowledge(struct rnic_qp *qp, uint64_t seq, uint64_t now)
{
	struct rc_requester *req = &qp->req;
	uint64_t before = req->una;
	const struct send_wqe *wqe = NULL;

	while (req->una_idx != req->assign_idx) {
		wqe = request(qp, req->una_idx);
		if (rc_is_rd(wqe) || wqe->first + rc_packets(qp, wqe) > seq ||
			(wqe_is_local(wqe) && !wqe->done))
			break;
		complete(qp);
	}
	if (req->una < seq && (req->una_idx == req->assign_idx || !rc_is_rd(wqe)))
		req->una = seq;
	if (req->una == before)
		return false;
	progressed(qp, now);
	return true;
}

void rc_heard(struct rnic_qp *qp, uint64_t now)
{
	qp->req.retries = qp->attr.retry_cnt;
	qp->sel->probes = 0;
	restart_timer(qp, now);
}

/* The peer is beyond a response that has not come: it is lost (IBTA vol. 1, 9.7.5.2.8). One resend
 * for all that tells so; if that is lost too, the timer finds out. */
unsigned rc_response_lost(struct rnic_qp *qp, bool progress)
{
	struct rc_requester *req = &qp->req;

	if (req->implied || req->rnr_wait)
		return RNIC_DROP_ACK_RANGE;
	req->implied = true;
	if (progress)
		rc_go_back(qp);
	else
		rc_try_again(qp);
	return 0;
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
		/* Packets behind one that met RNR: it will be sent again anyway. A responder says
		 * NAK once for a gap (9.7.5.2.8), so another one is a copy of it, made by the
		 * network: were it a try, copies would use up the tries within a round trip. */
		if (qp->req.rnr_wait || qp->req.nak_done)
			return 0;
		qp->req.nak_done = true;
		if (progress)
			rc_go_back(qp);
		else
			rc_try_again(qp);
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

/* The sequence number nearest to una with this PSN. */
static uint64_t nearest(const struct rc_requester *req, uint32_t psn)
{
	return req->una + (uint64_t)(int64_t)psn_diff(psn, (uint32_t)req->una & PSN_MASK);
}

unsigned rc_rx_ack(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now)
{
	struct rc_requester *req = &qp->req;
	unsigned class = pkt->syndrome & ROCE_AETH_CLASS, value = pkt->syndrome & ROCE_AETH_VALUE;
	uint64_t seq = nearest(req, pkt->psn);
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
		progress = acknowledge(qp, seq, now);
		if (qp_state(qp) == IBV_QPS_ERR)
			return 0;
	}
	if (class == ROCE_AETH_ACK)
		return req->una < seq ? rc_response_lost(qp, progress) : 0;
	if (!outstanding(req))
		return 0;
	if (qp->sel != NULL && class == ROCE_AETH_NAK && value == ROCE_NAK_SEQUENCE)
		return sel_rx_nak(qp, frame + pkt->pay_off, pkt, seq, progress, now);
	return class == ROCE_AETH_RNR ? rx_rnr(qp, value, now) : rx_nak(qp, value, progress);
}

/* ---- responses ---- */

/* Payload of the response's packet at una into the request's memory. */
static enum ibv_wc_status take_response(struct rnic_qp *qp, const struct send_wqe *wqe,
	const uint8_t *frame, const struct wire_pkt *pkt)
{
	struct placement where = {.kind = PLACE_LIST, .sge = wqe->sge, .n_sge = wqe->n_sge};
	uint64_t offset = (qp->req.una - wqe->first) * qp->mtu;
	uint64_t rest = wqe->len - offset;
	const uint8_t *from = frame + pkt->pay_off;
	size_t len = pkt->pay_len;

	if (rc_is_atomic(wqe)) {
		from = (const uint8_t *)&pkt->atomic_orig;
		len = sizeof(pkt->atomic_orig);
	} else if (len != (rest > qp->mtu ? qp->mtu : rest) ||
		   !(pkt->flags & ROCE_F_LAST) != (rest > qp->mtu)) {
		return IBV_WC_BAD_RESP_ERR;
	}
	where.offset = offset;
	return place_payload(qp->init.pd, &where, from, len) < 0 ? IBV_WC_LOC_PROT_ERR
								 : IBV_WC_SUCCESS;
}

unsigned rc_rx_response(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now)
{
	struct rc_requester *req = &qp->req;
	uint64_t seq = nearest(req, pkt->psn);
	const struct send_wqe *wqe;
	enum ibv_wc_status status;
	bool progress = false;

	if ((pkt->flags & ROCE_F_AETH) && (pkt->syndrome & ROCE_AETH_CLASS) != ROCE_AETH_ACK)
		return RNIC_DROP_UNSUPPORTED;
	if (seq < req->una || seq >= req->high)
		return RNIC_DROP_ACK_RANGE;
	/* It acknowledges all before it. */
	if (seq > req->una)
		progress = acknowledge(qp, seq, now);
	if (qp_state(qp) == IBV_QPS_ERR)
		return 0;
	if (req->una < seq)
		return rc_response_lost(qp, progress);
	wqe = request(qp, req->una_idx);
	/* FIRST or MIDDLE, LAST or ONLY: where the answer to a repeated READ begins is not told
	 * apart, Soft-RoCE goes on with MIDDLE. */
	if (!rc_is_rd(wqe) ||
		rc_is_atomic(wqe) != ((pkt->opcode & ROCE_OP_MASK) == ROCE_ATOMIC_ACK))
		return RNIC_DROP_OPCODE_SEQ;
	status = take_response(qp, wqe, frame, pkt);
	if (status != IBV_WC_SUCCESS) {
		fail(qp, status);
		return status == IBV_WC_BAD_RESP_ERR ? RNIC_DROP_LENGTH : RNIC_DROP_ACCESS;
	}
	rnic_inc(qp->rnic, RNIC_C_READ_RX);
	req->una++;
	if (req->una == wqe->first + rc_packets(qp, wqe))
		complete(qp);
	progressed(qp, now);
	return 0;
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
