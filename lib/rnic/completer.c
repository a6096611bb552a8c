/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes back to an RC requester: acknowledgements, NAKs and responses, and the completions
 * that follow (IBTA vol. 1, 9.7.5, 9.9.2). */
#include "lib/rnic/placement.h"
#include "lib/rnic/requester.h"
#include "lib/rnic/window.h"

/* ---- acknowledgements ---- */

/* The oldest request is done. */
static void complete(struct rnic_qp *qp)
{
	struct rc_requester *req = &rc_of(qp)->req;

	/* Those from next_idx on will be sent once more, or were not yet, and are not counted. */
	if (rc_is_rd(request(qp, req->una_idx)) && (int32_t)(req->next_idx - req->una_idx) > 0)
		req->rd_out--;
	qp_complete_send(qp, IBV_WC_SUCCESS);
	req->una_idx++;
	if (req->una < start_of(qp, req->una_idx))
		req->una = start_of(qp, req->una_idx);
}

void rc_settle_local(struct rnic_qp *qp)
{
	struct rc_requester *req = &rc_of(qp)->req;

	while (req->una_idx != req->assign_idx && request(qp, req->una_idx)->done)
		complete(qp);
}

/* una has moved. */
static void progressed(struct rnic_qp *qp, uint64_t now)
{
	struct rc_requester *req = &rc_of(qp)->req;

	rc_settle_local(qp);
	if (req->next < req->una) {
		req->next = req->una;
		req->next_idx = req->una_idx;
	}
	if (cwnd_is_on(&rc_of(qp)->cc.window))
		cwnd_acked(&rc_of(qp)->cc.window, req->una, bytes_acked(qp), now);
	req->retries = qp->attr.retry_cnt;
	req->rnr_retries = qp->attr.rnr_retry;
	req->rnr_wait = req->implied = req->nak_done = false;
	if (rc_of(qp)->recovery->progressed != NULL)
		rc_of(qp)->recovery->progressed(qp, now);
	rc_restart_timer(qp, now);
	rc_settle_drain(qp);
	rc_settle_fault(qp);
	qp_ready(qp);
}

/* Everything before seq is acknowledged (una < seq <= high), as far as no READ or atomic is among
 * it: these are done when their response is here. True if una moved. */
static bool acknowledge(struct rnic_qp *qp, uint64_t seq, uint64_t now)
{
	struct rc_requester *req = &rc_of(qp)->req;
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

/* The peer is beyond a response that has not come: it is lost (IBTA vol. 1, 9.7.5.2.8). One resend
 * for all that tells so; if that is lost too, the timer finds out. */
unsigned rc_response_lost(struct rnic_qp *qp, bool progress)
{
	struct rc_requester *req = &rc_of(qp)->req;

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
	struct rc_requester *req = &rc_of(qp)->req;

	rnic_inc(qp->rnic, RNIC_C_RNR_RX);
	if (req->rnr_wait)
		return 0; /* the same once more */
	if (qp->attr.rnr_retry != 7) {
		if (req->rnr_retries == 0) {
			rc_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
			return 0;
		}
		req->rnr_retries--;
	}
	/* The peer lives: what it makes us wait for does not count as tries. */
	req->retries = qp->attr.retry_cnt;
	req->rnr_wait = true;
	rc_retry_at(qp, now + roce_rnr_ns(code));
	return 0;
}

/* SUCCESS: not a NAK that ends a connection. */
static enum ibv_wc_status fatal_status(unsigned code)
{
	switch (code) {
	case ROCE_NAK_INVALID_REQUEST:
		return IBV_WC_REM_INV_REQ_ERR;
	case ROCE_NAK_REMOTE_ACCESS:
		return IBV_WC_REM_ACCESS_ERR;
	case ROCE_NAK_REMOTE_OPERATION:
		return IBV_WC_REM_OP_ERR;
	default:
		return IBV_WC_SUCCESS;
	}
}

/* The request of the packet seq, which has been sent. */
static uint32_t index_of(const struct rnic_qp *qp, uint64_t seq)
{
	uint32_t index = rc_of(qp)->req.una_idx;
	const struct send_wqe *wqe = request(qp, index);

	while (wqe_is_local(wqe) || wqe->first + rc_packets(qp, wqe) <= seq)
		wqe = request(qp, ++index);
	return index;
}

/* The packet seq is refused: its request fails, when READs and atomics before it are answered. */
static unsigned rx_fatal(struct rnic_qp *qp, unsigned code, uint64_t seq, bool progress)
{
	enum ibv_wc_status status = fatal_status(code);

	if (status == IBV_WC_SUCCESS)
		return RNIC_DROP_UNSUPPORTED;
	if (seq < rc_of(qp)->req.high)
		rc_fail_in_turn(qp, index_of(qp, seq), status);
	return qp_state(qp) == IBV_QPS_ERR ? 0 : rc_response_lost(qp, progress);
}

/* The sequence number nearest to una with this PSN. */
static uint64_t nearest(const struct rc_requester *req, uint32_t psn)
{
	return req->una + (uint64_t)(int64_t)psn_diff(psn, (uint32_t)req->una & PSN_MASK);
}

static unsigned rx_ack(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now)
{
	struct rc_requester *req = &rc_of(qp)->req;
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
	if (class == ROCE_AETH_NAK && value == ROCE_NAK_SEQUENCE) {
		rnic_inc(qp->rnic, RNIC_C_NAK_RX);
		return rc_of(qp)->recovery->on_nak(
			qp, frame + pkt->pay_off, pkt, seq, progress, now);
	}
	if (class == ROCE_AETH_RNR)
		return req->una < seq ? rc_response_lost(qp, progress) : rx_rnr(qp, value, now);
	return rx_fatal(qp, value, seq, progress);
}

/* ---- responses ---- */

/* Payload of the response's packet at una into the request's memory. */
static enum ibv_wc_status take_response(struct rnic_qp *qp, const struct send_wqe *wqe,
	const uint8_t *frame, const struct wire_pkt *pkt)
{
	struct placement where = {.kind = PLACE_LIST, .sge = wqe->sge, .n_sge = wqe->n_sge};
	uint64_t offset = (rc_of(qp)->req.una - wqe->first) * qp->mtu;
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

static unsigned rx_response(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now)
{
	struct rc_requester *req = &rc_of(qp)->req;
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
		rc_fail(qp, status);
		return status == IBV_WC_BAD_RESP_ERR ? RNIC_DROP_LENGTH : RNIC_DROP_ACCESS;
	}
	rnic_inc(qp->rnic, RNIC_C_READ_RX);
	req->una++;
	if (req->una == wqe->first + rc_packets(qp, wqe))
		complete(qp);
	progressed(qp, now);
	return 0;
}

/* Of the packet that is next, and not the last of its READ. */
uint8_t *rc_place_response(const struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	const struct rc_requester *req = &rc_of(qp)->req;
	const struct send_wqe *wqe;
	uint64_t offset;

	if ((pkt->opcode & ROCE_OP_MASK) != ROCE_READ_RESP_MIDDLE || qp_state(qp) == IBV_QPS_ERR ||
		req->una >= req->high || pkt->psn != ((uint32_t)req->una & PSN_MASK) ||
		pkt->pay_len != qp->mtu)
		return NULL;
	wqe = request(qp, req->una_idx);
	if (!rc_is_rd(wqe) || rc_is_atomic(wqe) || wqe->n_sge != 1)
		return NULL;
	offset = (req->una - wqe->first) * qp->mtu;
	if (wqe->len - offset <= qp->mtu)
		return NULL;
	return mr_translate(qp->init.pd, wqe->sge[0].lkey, wqe->sge[0].addr + offset, qp->mtu,
		IBV_ACCESS_LOCAL_WRITE);
}

void rc_response_placed(struct rnic_qp *qp, uint64_t now)
{
	rnic_inc(qp->rnic, RNIC_C_READ_RX);
	rc_of(qp)->req.una++;
	progressed(qp, now);
}

unsigned rc_rx_answer(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now)
{
	return (pkt->opcode & ROCE_OP_MASK) == ROCE_ACK ? rx_ack(qp, frame, pkt, now)
							: rx_response(qp, frame, pkt, now);
}
