/* SPDX-License-Identifier: BSD-3-Clause */
/* RC responder: READs and atomics (IBTA vol. 1, 9.4.4, 9.4.5, 9.7.5.1). Requests wait in a list
 * until the scheduler has sent their answers. A READ's memory is looked at when its packets are
 * made; a duplicate is read anew. An atomic is executed when it comes, and a duplicate gets what it
 * gave then. */
#include <errno.h>
#include <string.h>

#include "lib/rnic/mr.h"
#include "lib/rnic/rc.h"

static const struct message_fault IN_MESSAGE = {
	RNIC_DROP_OPCODE_SEQ, ROCE_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_REQ_ERR};
static const struct message_fault BAD_LENGTH = {
	RNIC_DROP_LENGTH, ROCE_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_REQ_ERR};
static const struct message_fault TOO_MANY = {
	RNIC_DROP_RD_LIMIT, ROCE_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_REQ_ERR};
static const struct message_fault NOT_ALIGNED = {
	RNIC_DROP_ACCESS, ROCE_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_REQ_ERR};
static const struct message_fault NOT_ENABLED = {
	RNIC_DROP_ACCESS, ROCE_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_ACCESS_ERR};
static const struct message_fault NO_ACCESS = {
	RNIC_DROP_ACCESS, ROCE_NAK_REMOTE_ACCESS, 0, IBV_EVENT_QP_ACCESS_ERR};

enum { ATOMIC_LEN = sizeof(uint64_t) };

static bool is_atomic(const struct wire_pkt *pkt)
{
	return pkt->flags & ROCE_F_ATOMIC;
}

/* ---- the list ---- */

static void remove_at(struct rc_responder *resp, unsigned i)
{
	resp->n_pending--;
	memmove(&resp->pending[i], &resp->pending[i + 1],
		(resp->n_pending - i) * sizeof(resp->pending[0]));
}

/* From this PSN on the peer asks anew: what waits with it is not sent from there on. */
static void cut(struct rc_responder *resp, uint32_t psn)
{
	for (unsigned i = 0; i < resp->n_pending; i++) {
		struct rc_pending *p = &resp->pending[i];
		int32_t before = psn_diff(psn, p->psn);

		if (before < 0 || (uint32_t)before >= p->n)
			continue;
		p->n = (uint32_t)before;
		if (p->sent >= p->n)
			remove_at(resp, i);
		return;
	}
}

/* Its place is by PSN. One of no room is forgotten: the peer asks again. */
static void insert(struct rnic_qp *qp, const struct rc_pending *new)
{
	struct rc_responder *resp = &rc_of(qp)->resp;
	unsigned i = resp->n_pending;

	if (i == RC_MAX_PENDING)
		return;
	while (i > 0 && psn_lt(new->psn, resp->pending[i - 1].psn))
		i--;
	memmove(&resp->pending[i + 1], &resp->pending[i],
		(resp->n_pending - i) * sizeof(resp->pending[0]));
	resp->pending[i] = *new;
	resp->n_pending++;
	qp_ready(qp);
}

/* ---- requests ---- */

static const struct message_fault *check_read(const struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ))
		return &NOT_ENABLED;
	if (pkt->dmalen > RNIC_MAX_MSG)
		return &BAD_LENGTH;
	if (pkt->dmalen > 0 && mr_translate_remote(qp, pkt->rkey, pkt->va, pkt->dmalen,
				       IBV_ACCESS_REMOTE_READ) == NULL)
		return &NO_ACCESS;
	return NULL;
}

static const struct message_fault *check_atomic(
	const struct rnic_qp *qp, const struct wire_pkt *pkt, uint64_t **where)
{
	uint8_t *at;

	if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC))
		return &NOT_ENABLED;
	at = mr_translate_remote(qp, pkt->rkey, pkt->va, ATOMIC_LEN, IBV_ACCESS_REMOTE_ATOMIC);
	if (at == NULL)
		return &NO_ACCESS;
	if (pkt->va % ATOMIC_LEN != 0 || (uintptr_t)at % ATOMIC_LEN != 0)
		return &NOT_ALIGNED;
	*where = (uint64_t *)at;
	return NULL;
}

static uint64_t execute(const struct wire_pkt *pkt, uint64_t *where)
{
	uint64_t orig = pkt->compare;

	if ((pkt->opcode & ROCE_OP_MASK) == ROCE_FETCH_ADD)
		return __atomic_fetch_add(where, pkt->swap_add, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(
		where, &orig, pkt->swap_add, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return orig;
}

static void remember(struct rc_responder *resp, const struct rc_pending *p)
{
	resp->replay[resp->replay_at] = (struct rc_replay){true, p->psn, p->msn, p->orig};
	resp->replay_at = (uint8_t)((resp->replay_at + 1) % RC_MAX_RD);
}

/* As many wait as the peer may have outstanding. */
static bool too_many(const struct rnic_qp *qp)
{
	const struct rc_responder *resp = &rc_of(qp)->resp;
	unsigned n = 0;

	if (resp->n_pending < qp->attr.max_dest_rd_atomic)
		return false;
	for (unsigned i = 0; i < resp->n_pending; i++)
		n += !resp->pending[i].repeat;
	return n >= qp->attr.max_dest_rd_atomic;
}

const struct message_fault *rc_take_rd(struct rnic_qp *qp, const struct wire_pkt *pkt, uint32_t *n)
{
	struct rc_responder *resp = &rc_of(qp)->resp;
	struct rc_pending new = {.atomic = is_atomic(pkt),
		.psn = pkt->psn,
		.n = 1,
		.msn = (resp->message.msn + 1) & PSN_MASK,
		.rkey = pkt->rkey,
		.len = pkt->dmalen,
		.va = pkt->va};
	const struct message_fault *fault;
	uint64_t *where = NULL;

	if (resp->message.kind != MESSAGE_NONE)
		return &IN_MESSAGE;
	if (pkt->pay_len != 0)
		return &BAD_LENGTH;
	if (too_many(qp))
		return &TOO_MANY;
	fault = new.atomic ? check_atomic(qp, pkt, &where) : check_read(qp, pkt);
	if (fault != NULL)
		return fault;
	if (new.atomic) {
		new.orig = execute(pkt, where);
		remember(resp, &new);
	} else {
		new.n = rc_packets_of(qp, pkt->dmalen);
	}
	resp->message.msn = new.msn;
	insert(qp, &new);
	*n = new.n;
	return NULL;
}

static void repeat_atomic(struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	/* The last one of this PSN: numbers come again. */
	for (unsigned i = 1; i <= RC_MAX_RD; i++) {
		const struct rc_replay *old =
			&rc_of(qp)->resp.replay[(rc_of(qp)->resp.replay_at + RC_MAX_RD - i) %
						RC_MAX_RD];

		if (!old->valid || old->psn != pkt->psn)
			continue;
		cut(&rc_of(qp)->resp, pkt->psn);
		insert(qp, &(struct rc_pending){.atomic = true,
				   .repeat = true,
				   .psn = pkt->psn,
				   .n = 1,
				   .msn = old->msn,
				   .orig = old->orig});
		return;
	}
}

void rc_repeat_rd(struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	struct rc_responder *resp = &rc_of(qp)->resp;
	uint32_t n = rc_packets_of(qp, pkt->dmalen);

	if (is_atomic(pkt)) {
		repeat_atomic(qp, pkt);
		return;
	}
	/* It may ask for nothing that was not asked for before. */
	if (pkt->pay_len != 0 || check_read(qp, pkt) != NULL ||
		psn_lt(resp->epsn, psn_add(pkt->psn, (int32_t)n)))
		return;
	cut(resp, pkt->psn);
	insert(qp, &(struct rc_pending){.repeat = true,
			   .psn = pkt->psn,
			   .n = n,
			   .msn = resp->message.msn,
			   .rkey = pkt->rkey,
			   .len = pkt->dmalen,
			   .va = pkt->va});
}

/* ---- answers ---- */

static uint8_t read_opcode(bool first, bool last)
{
	if (first)
		return last ? ROCE_READ_RESP_ONLY : ROCE_READ_RESP_FIRST;
	return last ? ROCE_READ_RESP_LAST : ROCE_READ_RESP_MIDDLE;
}

/* Names the payload of the packet; false: the memory is not there any more. */
static bool gather_read(const struct rnic_qp *qp, const struct rc_pending *p,
	struct rnic_frame *frame, uint32_t len)
{
	uint64_t offset = (uint64_t)p->sent * qp->mtu;

	frame->n_iov = 0;
	if (len == 0)
		return true;
	frame->iov[0].base =
		mr_translate_remote(qp, p->rkey, p->va + offset, len, IBV_ACCESS_REMOTE_READ);
	frame->iov[0].len = len;
	frame->n_iov = 1;
	return frame->iov[0].base != NULL;
}

static bool make_response(struct rnic_qp *qp, struct rnic_frame *frame, struct rc_pending *p)
{
	struct wire_hdr hdr = {.opcode = ROCE_ATOMIC_ACK,
		.mig = true,
		.dqpn = qp->attr.dest_qp_num,
		.psn = psn_add(p->psn, (int32_t)p->sent),
		.syndrome = ROCE_AETH_ACK | ROCE_AETH_NO_CREDITS,
		.msn = p->msn,
		.atomic_orig = p->orig};
	uint32_t len = 0;

	frame->n_iov = 0;
	if (!p->atomic) {
		uint32_t rest = p->len - p->sent * qp->mtu;

		len = rest > qp->mtu ? qp->mtu : rest;
		hdr.opcode = read_opcode(p->sent == 0, rest <= qp->mtu);
		if (!gather_read(qp, p, frame, len))
			return false;
	}
	hdr.opcode |= qp->ops->opcodes;
	frame_build(qp->rnic, &qp->path, frame, &hdr, len);
	return true;
}

bool rc_tx_response(struct rnic_qp *qp, struct rnic_frame *frame)
{
	struct rc_responder *resp = &rc_of(qp)->resp;
	struct rc_pending *p = &resp->pending[0];

	if (resp->n_pending == 0)
		return false;
	/* One that failed because of a request still answers those before it. */
	if (!qp_receives(qp) && !(qp_state(qp) == IBV_QPS_ERR && resp->answer == RC_NAK_FATAL)) {
		resp->n_pending = 0;
		return false;
	}
	if (!make_response(qp, frame, p)) {
		rc_refuse_answer(
			qp, &NO_ACCESS, psn_add(p->psn, (int32_t)p->sent), psn_add(p->msn, -1));
		return false;
	}
	rnic_inc(qp->rnic, RNIC_C_READ_TX);
	if (++p->sent == p->n)
		remove_at(resp, 0);
	if (resp->n_pending == 0 && resp->answer != RC_NO_ANSWER)
		qp_has_control(qp);
	return true;
}
