/* SPDX-License-Identifier: BSD-3-Clause */
/* RC responder: takes requests in PSN order, places their payload, and answers (IBTA vol. 1, 9.7.4,
 * 9.9.3). */
#include <errno.h>
#include <string.h>

#include "lib/rnic/placement.h"
#include "lib/rnic/rc.h"
#include "lib/rnic/window.h"

/* ---- skipped ranges ---- */

/* The PSN that is in order now: after the ranges that begin at epsn. *passed: their number. */
static uint32_t expected(const struct rc_responder *resp, unsigned *passed)
{
	uint32_t psn = resp->epsn;
	unsigned n = 0;

	while (n < resp->n_skip && resp->skip[n].from == psn)
		psn = psn_add(psn, (int32_t)resp->skip[n++].count);
	*passed = n;
	return psn;
}

static void take_psn(struct rc_responder *resp, uint32_t psn, unsigned passed)
{
	resp->epsn = psn_add(psn, 1);
	if (passed > 0) {
		resp->n_skip -= (uint8_t)passed;
		memmove(resp->skip, resp->skip + passed, resp->n_skip * sizeof(resp->skip[0]));
	}
}

int rc_skip_recv(struct rnic_qp *qp, uint32_t from, uint32_t count)
{
	struct rc_responder *resp = &rc_of(qp)->resp;
	uint32_t floor = resp->epsn;
	int32_t ahead;

	if (resp->n_skip > 0) {
		const struct rc_skip *last = &resp->skip[resp->n_skip - 1];

		floor = psn_add(last->from, (int32_t)last->count);
	}
	ahead = psn_diff(from, resp->epsn);
	/* PSNs compare only within half of their circle. */
	if (psn_lt(from, floor) || ahead < 0 || ahead + count >= RC_SEQ_LIMIT)
		return -EINVAL;
	if (resp->n_skip == RC_MAX_SKIPS)
		return -ENOSPC;
	resp->skip[resp->n_skip++] = (struct rc_skip){from, count};
	return 0;
}

/* ---- answers ---- */

static void answer(struct rnic_qp *qp, enum rc_answer kind)
{
	struct rc_responder *resp = &rc_of(qp)->resp;

	/* A NAK acknowledges everything before it. It is made with the PSN expected when it leaves.
	 */
	if (kind == RC_ACK && resp->answer == RC_NAK)
		return;
	resp->answer = kind;
	/* Not ahead of the responses to what came before. */
	if (resp->n_pending == 0)
		qp_has_control(qp);
}

bool rc_tx_answer(struct rnic_qp *qp, struct rnic_frame *frame)
{
	const struct rc_recovery *recovery = rc_of(qp)->recovery;
	struct rc_responder *resp = &rc_of(qp)->resp;
	unsigned passed;
	size_t len = 0;
	struct wire_hdr hdr = {.opcode = ROCE_ACK | qp->ops->opcodes,
		.mig = true,
		.dqpn = qp->attr.dest_qp_num,
		.psn = expected(resp, &passed),
		.msn = resp->message.msn};

	if (resp->n_pending > 0)
		return false;
	frame->n_iov = 0;
	/* Where something is missing, what has come behind it goes with each acknowledgement. */
	if (resp->answer == RC_ACK && recovery->gap != NULL && recovery->gap(qp))
		resp->answer = RC_NAK;
	switch (resp->answer) {
	case RC_NO_ANSWER:
		return false;
	case RC_NAK:
		hdr.syndrome = ROCE_AETH_NAK | ROCE_NAK_SEQUENCE;
		resp->nak_sent = true;
		len = recovery->put_sack != NULL ? recovery->put_sack(qp, frame) : 0;
		rnic_inc(qp->rnic, RNIC_C_NAK_TX);
		break;
	case RC_NAK_FATAL:
		hdr.psn = resp->fatal_psn;
		hdr.msn = resp->fatal_msn;
		hdr.syndrome = ROCE_AETH_NAK | resp->fatal_code;
		rnic_inc(qp->rnic, RNIC_C_NAK_TX);
		break;
	case RC_RNR:
		hdr.syndrome = ROCE_AETH_RNR | qp->attr.min_rnr_timer;
		rnic_inc(qp->rnic, RNIC_C_RNR_TX);
		break;
	case RC_ACK:
		hdr.psn = resp->ack_psn;
		hdr.syndrome = ROCE_AETH_ACK | ROCE_AETH_NO_CREDITS;
		rnic_inc(qp->rnic, RNIC_C_ACK_TX);
		break;
	}
	resp->answer = RC_NO_ANSWER;
	frame_build(qp->rnic, &qp->path, frame, &hdr, len);
	return true;
}

static const struct message_fault UNSUPPORTED = {
	RNIC_DROP_UNSUPPORTED, ROCE_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_REQ_ERR};
static const struct message_fault OPCODE_SEQ = {
	RNIC_DROP_OPCODE_SEQ, ROCE_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_REQ_ERR};
static const struct message_fault NO_ACCESS = {
	RNIC_DROP_ACCESS, ROCE_NAK_REMOTE_ACCESS, 0, IBV_EVENT_QP_ACCESS_ERR};

static void answer_fatal(struct rnic_qp *qp, uint8_t code)
{
	struct rc_responder *resp = &rc_of(qp)->resp;
	unsigned passed;

	resp->fatal_code = code;
	resp->fatal_psn = expected(resp, &passed);
	resp->fatal_msn = resp->message.msn;
	answer(qp, RC_NAK_FATAL);
}

static unsigned refuse(struct rnic_qp *qp, const struct message_fault *fault)
{
	if (fault->status != IBV_WC_SUCCESS) {
		struct ibv_wc wc = {.status = fault->status, .opcode = IBV_WC_RECV};

		qp_complete_recv(qp, &wc, false);
	}
	qp_error(qp);
	if (fault->status == IBV_WC_SUCCESS)
		qp_event(qp, fault->event);
	return fault->drop;
}

/* The request at the expected PSN is not taken, nor any after it. */
unsigned rc_refuse(struct rnic_qp *qp, const struct message_fault *fault)
{
	answer_fatal(qp, fault->nak);
	return refuse(qp, fault);
}

void rc_refuse_answer(
	struct rnic_qp *qp, const struct message_fault *fault, uint32_t psn, uint32_t msn)
{
	struct rc_responder *resp = &rc_of(qp)->resp;

	resp->n_pending = 0;
	resp->fatal_code = fault->nak;
	resp->fatal_psn = psn;
	resp->fatal_msn = msn;
	answer(qp, RC_NAK_FATAL);
	/* It may be failing already, for a later request. */
	if (qp_state(qp) != IBV_QPS_ERR)
		refuse(qp, fault);
}

void rc_refuse_all(struct rnic_qp *qp)
{
	rc_of(qp)->resp.refuses = true;
	answer_fatal(qp, ROCE_NAK_REMOTE_OPERATION);
}

/* ---- checks of a request in PSN order ---- */

static const struct message_fault *check_opcode(
	const struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	const struct rc_responder *resp = &rc_of(qp)->resp;
	enum message_kind kind = pkt->flags & ROCE_F_SEND ? MESSAGE_SEND : MESSAGE_WRITE;

	if (!(pkt->flags & (ROCE_F_SEND | ROCE_F_WRITE)))
		return &UNSUPPORTED;
	if ((pkt->flags & ROCE_F_IETH) && !window_may_invalidate(qp, pkt->rkey))
		return &NO_ACCESS;
	if (pkt->flags & ROCE_F_FIRST)
		return resp->message.kind == MESSAGE_NONE ? NULL : &OPCODE_SEQ;
	return resp->message.kind == kind ? NULL : &OPCODE_SEQ;
}

/* ---- taking it ---- */

static unsigned not_ready(struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	/* What follows the refused packet comes again after it: no NAK for that. */
	rc_of(qp)->resp.nak_sent = true;
	rc_of(qp)->resp.ahead = pkt->psn;
	answer(qp, RC_RNR);
	return RNIC_DROP_RNR;
}

/* An ACK of this SEND or WRITE is due, at least: one that waits names the later of both. */
static void answer_ack(struct rnic_qp *qp, uint32_t psn)
{
	struct rc_responder *resp = &rc_of(qp)->resp;

	resp->ack_psn = resp->answer == RC_ACK ? psn_max(resp->ack_psn, psn) : psn;
	answer(qp, RC_ACK);
}

/* A packet was taken in order. */
static void acknowledge(struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	struct rc_responder *resp = &rc_of(qp)->resp;
	bool ack = pkt->ackreq || resp->answer == RC_RNR || resp->answer == RC_ACK;

	/* A NAK that waits still has something to ask for, unless all that was dropped has come. */
	if (resp->answer == RC_NAK) {
		if (psn_lt(pkt->psn, resp->ahead))
			return;
		resp->answer = RC_NO_ANSWER;
		ack = true;
	}
	resp->nak_sent = false;
	if (ack)
		answer_ack(qp, pkt->psn);
}

/* A SEND or WRITE seen before (IBTA vol. 1, C9-105). READs and atomics executed after it may still
 * be outstanding, their answers lost, and an ACK must not name one of them: Soft-RoCE takes it for
 * the answer. So it goes no further than the packet itself, unless there were only SENDs and WRITEs
 * since. No ACK where a response that waits says more; the peer asks again if that one is lost. */
static void repeat_ack(struct rnic_qp *qp, uint32_t psn)
{
	struct rc_responder *resp = &rc_of(qp)->resp;

	if (resp->answer == RC_RNR)
		return;
	if (psn_lt(resp->rd_psn, psn))
		answer_ack(qp, psn_add(resp->epsn, -1));
	else if (resp->n_pending == 0 || psn_lt(resp->pending[resp->n_pending - 1].psn, psn))
		answer_ack(qp, psn);
}

/* A READ whose response would have PSNs of a skipped range. */
static bool meets_skip(const struct rnic_qp *qp, const struct wire_pkt *pkt, unsigned passed)
{
	const struct rc_responder *resp = &rc_of(qp)->resp;
	uint32_t room;

	if (passed == resp->n_skip)
		return false;
	room = (uint32_t)psn_diff(resp->skip[passed].from, pkt->psn);
	return pkt->dmalen > (uint64_t)room * qp->mtu;
}

/* A READ or atomic. Its response acknowledges all before it. */
static unsigned take_rd(struct rnic_qp *qp, const struct wire_pkt *pkt, unsigned passed)
{
	struct rc_responder *resp = &rc_of(qp)->resp;
	uint32_t n = 1, last;
	const struct message_fault *fault = meets_skip(qp, pkt, passed) ? &UNSUPPORTED : NULL;

	if (fault == NULL)
		fault = rc_take_rd(qp, pkt, &n);
	if (fault != NULL)
		return rc_refuse(qp, fault);
	last = psn_add(pkt->psn, (int32_t)n - 1);
	take_psn(resp, last, passed);
	resp->rd_psn = last;
	if (resp->answer == RC_NAK && psn_lt(last, resp->ahead))
		return 0;
	resp->answer = RC_NO_ANSWER;
	resp->nak_sent = false;
	return 0;
}

static unsigned take(
	struct rnic_qp *qp, const uint8_t *payload, const struct wire_pkt *pkt, unsigned passed)
{
	struct rc_responder *resp = &rc_of(qp)->resp;
	const struct message_fault *fault = message_place(qp, &resp->message, payload, pkt);

	if (fault != NULL)
		return rc_refuse(qp, fault);
	take_psn(resp, pkt->psn, passed);
	acknowledge(qp, pkt);
	message_advance(qp, &resp->message, pkt);
	return 0;
}

bool rc_is_rd_request(const struct wire_pkt *pkt)
{
	return (pkt->opcode & ROCE_OP_MASK) == ROCE_READ_REQUEST || (pkt->flags & ROCE_F_ATOMIC);
}

static void hear(struct rnic_qp *qp)
{
	if (rc_of(qp)->resp.heard)
		return;
	rc_of(qp)->resp.heard = true;
	if (qp_state(qp) == IBV_QPS_RTR)
		qp_event(qp, IBV_EVENT_COMM_EST);
}

/* Behind a gap: asked for again, once. */
unsigned rc_ahead(struct rnic_qp *qp, uint32_t psn, bool repeat)
{
	struct rc_responder *resp = &rc_of(qp)->resp;

	if (!resp->nak_sent || (repeat && resp->answer != RC_RNR)) {
		if (!resp->nak_sent)
			resp->ahead = psn;
		resp->nak_sent = true;
		answer(qp, RC_NAK);
	}
	resp->ahead = psn_max(resp->ahead, psn);
	return RNIC_DROP_SEQUENCE;
}

unsigned rc_duplicate(struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	if (!psn_lt(pkt->psn, rc_of(qp)->resp.epsn))
		return RNIC_DROP_SKIPPED;
	if (rc_is_rd_request(pkt))
		rc_repeat_rd(qp, pkt);
	else
		repeat_ack(qp, pkt->psn);
	return RNIC_DROP_DUPLICATE;
}

/* What is in order is taken if it has a destination; ahead of that and behind, nothing is. */
static unsigned receive(struct rnic_qp *qp, const uint8_t *payload, const struct wire_pkt *pkt,
	int32_t at, unsigned passed)
{
	struct place_flow flow = {.reach = 0, .posted = 1, .unmatched = PLACE_DEFER};

	if (rc_of(qp)->resp.refuses) {
		if (at < 0 && rc_is_rd_request(pkt))
			rc_duplicate(qp, pkt);
		answer_fatal(qp, ROCE_NAK_REMOTE_OPERATION);
		return RNIC_DROP_QP_STATE;
	}
	if (at == 0) {
		const struct message_fault *fault;

		hear(qp);
		if (rc_is_rd_request(pkt))
			return take_rd(qp, pkt, passed);
		fault = check_opcode(qp, pkt);
		if (fault == NULL)
			fault = message_check(qp, &rc_of(qp)->resp.message, pkt);
		if (fault != NULL)
			return rc_refuse(qp, fault);
		flow.posted = !message_needs_recv(pkt) || qp_take_recv(qp);
	}
	switch (place_decide(&flow, at, 1).verdict) {
	case PLACE_ACCEPT:
		return take(qp, payload, pkt, passed);
	case PLACE_DEFER:
		return not_ready(qp, pkt);
	default:
		return at < 0 ? rc_duplicate(qp, pkt) : rc_ahead(qp, pkt->psn, false);
	}
}

/* Most packets of a long message: in order, and nothing to be looked up. The same comes of it as of
 * receive. */
uint8_t *rc_place_request(const struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	const struct rc_responder *resp = &rc_of(qp)->resp;

	if (pkt->psn != resp->epsn || resp->n_skip > 0 || resp->refuses)
		return NULL;
	return message_middle(qp, &resp->message, pkt, 0);
}

void rc_request_placed(struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	struct rc_responder *resp = &rc_of(qp)->resp;

	message_placed(&resp->message, pkt);
	resp->epsn = psn_add(pkt->psn, 1);
	acknowledge(qp, pkt);
}

/* Go-back-N. */
unsigned rc_rx_request(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	unsigned passed;
	const int32_t at = psn_diff(pkt->psn, expected(&rc_of(qp)->resp, &passed));

	return receive(qp, frame + pkt->pay_off, pkt, at, passed);
}

unsigned rc_take_next(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, bool placed)
{
	return receive(qp, placed ? NULL : frame + pkt->pay_off, pkt, 0, 0);
}

void rc_start_recv(struct rnic_qp *qp)
{
	rc_of(qp)->resp.epsn = qp->attr.rq_psn;
	rc_of(qp)->resp.rd_psn = psn_add(rc_of(qp)->resp.epsn, -1);
}
