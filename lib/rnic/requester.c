/* SPDX-License-Identifier: BSD-3-Clause */
/* RC requester: makes packets of send requests, and goes back to the oldest unacknowledged one
 * when told to, or on a timeout (IBTA vol. 1, 9.7.5, 9.9.2). completer.c has what comes back. */
#include <errno.h>

#include "lib/rnic/mr.h"
#include "lib/rnic/rc.h"
#include "lib/rnic/requester.h"
#include "lib/rnic/window.h"

enum { ACKREQ_EVERY = 64 }; /* an AckReq at least this often */

/* Gives sequence numbers to the request at assign_idx. */
static void assign_one(struct rnic_qp *qp)
{
	struct rc_requester *req = &rc_of(qp)->req;
	struct send_wqe *wqe = request(qp, req->assign_idx++);

	wqe->first = req->assign;
	wqe->skipped = req->skipped;
	wqe->recv = req->recvs;
	wqe->bytes = req->bytes;
	req->bytes += wqe->len;
	req->recvs += rc_takes_recv(wqe->opcode);
	req->assign += rc_packets(qp, wqe);
}

/* ---- where it stands ---- */

/* A requester waits for one to four times what "timeout" says (IBTA vol. 1, 9.7.6.1.3). The first
 * two tries take the least, since a packet or its answer was lost; a peer that answers none of them
 * may be a process without a CPU, and seven tries of 67 ms, all that most programs ask for, would
 * be over in half a second. */
static uint64_t patience(const struct rnic_qp *qp)
{
	const unsigned tried = qp->attr.retry_cnt - rc_of(qp)->req.retries;

	return roce_timeout_ns(qp->attr.timeout) << (tried < 2 ? 0 : tried < 3 ? 1 : 2);
}

void rc_restart_timer(struct rnic_qp *qp, uint64_t now)
{
	uint64_t timeout = patience(qp);

	if (rc_of(qp)->recovery->timeout != NULL)
		timeout = rc_of(qp)->recovery->timeout(qp, timeout);
	if (answer_due(&rc_of(qp)->req) && timeout != 0)
		rc_retry_at(qp, now + timeout);
	else
		rc_retry_at(qp, UINT64_MAX);
}

void rc_fail(struct rnic_qp *qp, enum ibv_wc_status status)
{
	qp_complete_send(qp, status);
	qp_error(qp);
}

void rc_fail_in_turn(struct rnic_qp *qp, uint32_t index, enum ibv_wc_status status)
{
	struct rc_requester *req = &rc_of(qp)->req;

	if (req->fault && (int32_t)(index - req->fault_idx) >= 0)
		return;
	req->fault = true;
	req->fault_idx = index;
	req->fault_status = status;
	rc_settle_fault(qp);
}

void rc_settle_fault(struct rnic_qp *qp)
{
	struct rc_requester *req = &rc_of(qp)->req;

	if (!req->fault || (int32_t)(req->fault_idx - req->una_idx) > 0)
		return;
	/* It may have arrived the first time and only failed when sent again. */
	req->fault = req->fault_idx == req->una_idx;
	if (req->fault)
		rc_fail(qp, req->fault_status);
}

void rc_settle_drain(struct rnic_qp *qp)
{
	struct rc_requester *req = &rc_of(qp)->req;

	if (!req->draining || outstanding(req) || req->high != start_of(qp, req->high_idx))
		return;
	req->draining = false;
	if (qp->attr.en_sqd_async_notify)
		qp_event(qp, IBV_EVENT_SQ_DRAINED);
}

/* ---- the window in bytes: without one a packet pays for this question alone ---- */

static inline bool has_window(const struct rnic_qp *qp)
{
	return cwnd_is_on(&rc_of(qp)->cc.window);
}

/* Is it all used when so many more are under way? */
static bool fills_window(const struct rnic_qp *qp, uint32_t more)
{
	const struct rc *rc = rc_of(qp);

	return bytes_at(qp, rc->req.next_idx, rc->req.next) - bytes_acked(qp) + more >=
	       rc->cc.window.bytes;
}

/* A window may become smaller while packets are under way of which none asks for an
 * acknowledgement (after going back since_ackreq does not tell): then one more leaves, which asks,
 * since it fills the window. */
static bool window_holds(const struct rnic_qp *qp)
{
	const struct rc_requester *req = &rc_of(qp)->req;

	if (req->since_ackreq > 0 || !answer_due(req) || !fills_window(qp, 0))
		return false;
	cwnd_want(&rc_of(qp)->cc.window);
	return true;
}

/* The packet before `next` has left. */
static void measure(struct rnic_qp *qp, bool again, uint64_t now)
{
	struct cwnd *w = &rc_of(qp)->cc.window;
	const struct rc_requester *req = &rc_of(qp)->req;

	if (again)
		cwnd_again(w, req->next);
	else if (req->since_ackreq == 0)
		cwnd_sent(w, req->next, bytes_acked(qp), now);
}

/* ---- sending ---- */

/* May the packet at `next` go out now? Its request has sequence numbers. */
static bool allowed(const struct rnic_qp *qp)
{
	const struct rc_requester *req = &rc_of(qp)->req;
	const struct send_wqe *wqe = request(qp, req->next_idx);
	uint64_t end = rc_is_rd(wqe) ? wqe->first + rc_packets(qp, wqe) : req->next + 1;

	if (req->fault && (int32_t)(req->next_idx - req->fault_idx) >= 0)
		return false;
	if (rc_is_rd(wqe) && req->rd_out >= qp->attr.max_rd_atomic && qp->attr.max_rd_atomic > 0)
		return false;
	if (wqe->fenced && req->rd_out > 0)
		return false;
	if (qp_state(qp) == IBV_QPS_SQD && req->next == req->high &&
		req->next == request(qp, req->next_idx)->first)
		return false;
	if (req->next - req->una >= rc_of(qp)->recovery->reach)
		return false;
	return in_flight(qp) < qp->rnic->window && end - req->una < RC_SEQ_LIMIT &&
	       !(has_window(qp) && window_holds(qp));
}

void rc_step(struct rnic_qp *qp, bool last)
{
	struct rc_requester *req = &rc_of(qp)->req;

	req->next++;
	if (last) {
		req->next_idx++;
		req->next = start_of(qp, req->next_idx);
	}
}

/* After the packet at `next` was made. */
static void advance(struct rnic_qp *qp, bool last, uint64_t now)
{
	struct rc_requester *req = &rc_of(qp)->req;
	const bool oldest = req->next == req->una, again = req->next < req->high;
	const bool asks = req->since_ackreq == 0;

	if (rc_of(qp)->recovery->sent != NULL)
		rc_of(qp)->recovery->sent(qp, asks, now);
	if (again) {
		req->retransmits++;
		rnic_inc(qp->rnic, RNIC_C_RETRANSMITS);
	}
	rc_step(qp, last);
	if (has_window(qp))
		measure(qp, again, now);
	if (req->next > req->high) {
		req->high = req->next;
		req->high_idx = req->next_idx;
	}
	if (!asks)
		return;
	if (req->next > req->asked)
		req->asked = req->next;
	/* Nobody answers before that is asked for: a port that takes nothing for a while, or a
	 * rate that lets little go, does not use up tries. */
	if (oldest || req->retry_at == UINT64_MAX)
		rc_restart_timer(qp, now);
}

static bool give_up(struct rnic_qp *qp, enum ibv_wc_status status)
{
	rc_fail_in_turn(qp, rc_of(qp)->req.next_idx, status);
	return false;
}

/* One packet asks for all that has not come of a READ. */
static bool make_rd_packet(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now)
{
	struct rc_requester *req = &rc_of(qp)->req;
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
	frame_build(qp->rnic, &qp->path, frame, &hdr, 0);
	advance(qp, true, now);
	return true;
}

/* Where a request's payload lies, for its packets behind the first. */
static void keep_memory(struct rnic_qp *qp, const struct send_wqe *wqe)
{
	struct rc_requester *req = &rc_of(qp)->req;

	req->from = wqe->n_sge == 1 && !wqe->inlined ? mr_translate(qp->init.pd, wqe->sge[0].lkey,
							       wqe->sge[0].addr, wqe->len, 0)
						     : NULL;
	req->from_idx = req->next_idx;
	req->from_changes = req->from != NULL ? qp->rnic->mr_changes : 0;
}

/* Of the packet at `next`; 0 or -EFAULT. index: its number in its request. */
static int gather(struct rnic_qp *qp, const struct send_wqe *wqe, uint32_t index, uint32_t offset,
	uint32_t len, struct rnic_frame *frame)
{
	const struct rc_requester *req = &rc_of(qp)->req;

	if (index > 0 && req->from_idx == req->next_idx &&
		req->from_changes == qp->rnic->mr_changes) {
		frame->iov[0].base = req->from + offset;
		frame->iov[0].len = len;
		frame->n_iov = 1;
		return 0;
	}
	if (index == 0 && len < wqe->len)
		keep_memory(qp, wqe);
	return gather_payload(qp->init.pd, wqe, offset, len, frame);
}

static bool make_packet(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now)
{
	struct rc_requester *req = &rc_of(qp)->req;
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
	if (gather(qp, wqe, index, offset, len, frame) < 0)
		return give_up(qp, IBV_WC_LOC_PROT_ERR);
	hdr.ackreq = last || ++req->since_ackreq >= ACKREQ_EVERY ||
		     in_flight(qp) + 1 >= qp->rnic->window ||
		     req->next + 1 - req->una >= rc_of(qp)->recovery->reach ||
		     (has_window(qp) && fills_window(qp, len)) ||
		     (req->next < req->high && rc_of(qp)->recovery->repeats_ask);
	if (hdr.ackreq)
		req->since_ackreq = 0;
	frame->stays = true;
	frame_build(qp->rnic, &qp->path, frame, &hdr, len);
	advance(qp, last, now);
	return true;
}

/* The request at next_idx, which has no packets; once, however often it is passed. */
static bool run_local(struct rnic_qp *qp)
{
	struct rc_requester *req = &rc_of(qp)->req;
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
	rc_settle_local(qp);
	return true;
}

bool rc_tx_request(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now)
{
	const struct rc_recovery *recovery = rc_of(qp)->recovery;
	struct rc_requester *req = &rc_of(qp)->req;
	enum ibv_qp_state state = qp_state(qp);

	if (state == IBV_QPS_ERR)
		qp_flush(qp);
	if ((state != IBV_QPS_RTS && state != IBV_QPS_SQD) || req->rnr_wait)
		return false;
	for (;;) {
		if (recovery->pass != NULL)
			recovery->pass(qp);
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
	struct rc_requester *req = &rc_of(qp)->req;

	req->next = req->una;
	req->next_idx = req->una_idx;
	req->since_ackreq = 0;
	req->rd_out = 0;
	qp_ready(qp);
}

void rc_go_back(struct rnic_qp *qp)
{
	rc_rewind(qp);
	if (rc_of(qp)->recovery->go_back != NULL)
		rc_of(qp)->recovery->go_back(qp);
	rc_retry_at(qp, UINT64_MAX);
}

/* One more try without progress since the last one. */
void rc_try_again(struct rnic_qp *qp)
{
	if (rc_of(qp)->req.retries == 0) {
		rc_fail(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	rc_of(qp)->req.retries--;
	rc_go_back(qp);
}

void rc_retry(struct rnic_qp *qp)
{
	const struct rc_recovery *recovery = rc_of(qp)->recovery;
	struct rc_requester *req = &rc_of(qp)->req;

	if (req->rnr_wait) {
		req->rnr_wait = false;
		rc_go_back(qp);
		return;
	}
	if (!outstanding(req) || (recovery->probe != NULL && recovery->probe(qp)))
		return;
	req->timeouts++;
	req->nak_done = false;
	cwnd_restart(&rc_of(qp)->cc.window);
	rnic_inc(qp->rnic, RNIC_C_TIMEOUTS);
	rc_try_again(qp);
}

/* ---- states, skip ---- */

void rc_start_send(struct rnic_qp *qp)
{
	struct rc_requester *req = &rc_of(qp)->req;
	uint32_t index = ring_tail(&qp->sq);
	/* One lap up, so that nothing is ever below zero. */
	uint64_t start = (UINT64_C(1) << PSN_BITS) + qp->attr.sq_psn;

	req->una = req->next = req->high = req->assign = req->asked = start;
	req->una_idx = req->next_idx = req->high_idx = req->assign_idx = index;
}

void rc_drain(struct rnic_qp *qp, bool on)
{
	rc_of(qp)->req.draining = on;
	rc_settle_drain(qp);
}

int rc_skip_send(struct rnic_qp *qp, uint32_t from, uint32_t count)
{
	struct rc_requester *req = &rc_of(qp)->req;
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
