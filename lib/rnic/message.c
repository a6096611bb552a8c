/* SPDX-License-Identifier: BSD-3-Clause */
/* SENDs and WRITEs as responders take them, packet by packet: what a packet may be, where its
 * payload goes, what its last one completes. The same for RC and UC, which differ in what becomes
 * of a fault. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/rnic/device.h"
#include "lib/rnic/message.h"
#include "lib/rnic/mr.h"
#include "lib/rnic/placement.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/window.h"
#include "lib/wire/psn.h"

static const struct message_fault BAD_LENGTH = {
	RNIC_DROP_LENGTH, ROCE_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_REQ_ERR};
static const struct message_fault TOO_LONG = {
	RNIC_DROP_LENGTH, ROCE_NAK_INVALID_REQUEST, IBV_WC_LOC_LEN_ERR, 0};
static const struct message_fault NO_ACCESS = {
	RNIC_DROP_ACCESS, ROCE_NAK_REMOTE_ACCESS, 0, IBV_EVENT_QP_ACCESS_ERR};
static const struct message_fault NOT_ENABLED = {
	RNIC_DROP_ACCESS, ROCE_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_ACCESS_ERR};
static const struct message_fault NO_BUFFER = {
	RNIC_DROP_ACCESS, ROCE_NAK_REMOTE_OPERATION, IBV_WC_LOC_PROT_ERR, 0};

/* Payload length by position: FIRST and MIDDLE are full, LAST is not empty. */
static const struct message_fault *check_length(
	const struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	bool first = pkt->flags & ROCE_F_FIRST, last = pkt->flags & ROCE_F_LAST;

	if (!last)
		return pkt->pay_len == qp->mtu ? NULL : &BAD_LENGTH;
	if (pkt->pay_len > qp->mtu || (!first && pkt->pay_len == 0))
		return &BAD_LENGTH;
	return NULL;
}

/* The whole range named by a RETH, at once. */
static const struct message_fault *check_reth(const struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
		return &NOT_ENABLED;
	if (pkt->dmalen > RNIC_MAX_MSG)
		return &BAD_LENGTH;
	if (pkt->dmalen > 0 && mr_translate_remote(qp, pkt->rkey, pkt->va, pkt->dmalen,
				       IBV_ACCESS_REMOTE_WRITE) == NULL)
		return &NO_ACCESS;
	return NULL;
}

static const struct message_fault *check_write(
	const struct rnic_qp *qp, const struct message *message, const struct wire_pkt *pkt)
{
	bool first = pkt->flags & ROCE_F_FIRST, last = pkt->flags & ROCE_F_LAST;
	uint64_t before = first ? 0 : message->received;
	uint32_t all = first ? pkt->dmalen : message->dmalen;
	const struct message_fault *fault = first ? check_reth(qp, pkt) : NULL;

	if (fault != NULL)
		return fault;
	if (last ? before + pkt->pay_len != all : before + pkt->pay_len >= all)
		return &BAD_LENGTH;
	return NULL;
}

static const struct message_fault *check_send(
	const struct rnic_qp *qp, const struct message *message, const struct wire_pkt *pkt)
{
	const struct recv_wqe *wqe = qp_recv(qp);
	uint64_t all = (pkt->flags & ROCE_F_FIRST ? 0 : message->received) + pkt->pay_len;

	return all > wqe->len || all > RNIC_MAX_MSG ? &TOO_LONG : NULL;
}

const struct message_fault *message_check(
	const struct rnic_qp *qp, const struct message *message, const struct wire_pkt *pkt)
{
	const struct message_fault *fault = check_length(qp, pkt);

	return fault == NULL && !(pkt->flags & ROCE_F_SEND) ? check_write(qp, message, pkt) : fault;
}

bool message_needs_recv(const struct wire_pkt *pkt)
{
	return pkt->flags & ROCE_F_SEND ? pkt->flags & ROCE_F_FIRST : pkt->flags & ROCE_F_IMM;
}

uint8_t *message_middle(const struct rnic_qp *qp, const struct message *message,
	const struct wire_pkt *pkt, uint64_t ahead)
{
	const uint64_t at = message->received + ahead;
	const uint8_t opcode = message->kind == MESSAGE_SEND ? ROCE_SEND_MIDDLE : ROCE_WRITE_MIDDLE;

	if (message->kind == MESSAGE_NONE || (pkt->opcode & ROCE_OP_MASK) != opcode ||
		message->mr_changes != qp->rnic->mr_changes || pkt->pay_len != qp->mtu ||
		at + pkt->pay_len > message->room)
		return NULL;
	return message->memory + at;
}

/* The whole of what a message of several packets is for, for those behind the first. */
static void keep_memory(struct rnic_qp *qp, struct message *message, bool send)
{
	message->memory = NULL;
	if (!send) {
		message->room = message->dmalen - 1;
		message->memory = mr_translate_remote(
			qp, message->rkey, message->va, message->dmalen, IBV_ACCESS_REMOTE_WRITE);
	} else if (qp_recv(qp)->n_sge == 1) {
		const struct ibv_sge *sge = qp_recv(qp)->sge;

		message->room = sge->length < RNIC_MAX_MSG ? sge->length : RNIC_MAX_MSG;
		message->memory = mr_translate(
			qp->init.pd, sge->lkey, sge->addr, sge->length, IBV_ACCESS_LOCAL_WRITE);
	}
	message->mr_changes = message->memory != NULL ? qp->rnic->mr_changes : 0;
}

const struct message_fault *message_place(struct rnic_qp *qp, struct message *message,
	const uint8_t *payload, const struct wire_pkt *pkt)
{
	bool send = pkt->flags & ROCE_F_SEND;
	struct placement where = {.kind = send ? PLACE_LIST : PLACE_REMOTE};
	const struct message_fault *fault = send ? check_send(qp, message, pkt) : NULL;

	if (fault != NULL)
		return fault;

	if (pkt->flags & ROCE_F_FIRST) {
		message->received = 0;
		message->va = pkt->va;
		message->rkey = pkt->rkey;
		message->dmalen = pkt->dmalen;
		if (!(pkt->flags & ROCE_F_LAST))
			keep_memory(qp, message, send);
	}
	if (send) {
		const struct recv_wqe *wqe = qp_recv(qp);

		where.sge = wqe->sge;
		where.n_sge = wqe->n_sge;
		where.offset = message->received;
	} else {
		where.qp = qp;
		where.va = message->va + message->received;
		where.rkey = message->rkey;
	}
	if (payload != NULL && place_payload(qp->init.pd, &where, payload, pkt->pay_len) < 0)
		return send ? &NO_BUFFER : &NO_ACCESS;
	message->received += pkt->pay_len;
	return NULL;
}

static void complete(struct rnic_qp *qp, struct message *message, const struct wire_pkt *pkt)
{
	bool send = pkt->flags & ROCE_F_SEND;
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS,
		.opcode = send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
		.byte_len = (uint32_t)message->received};

	message->kind = MESSAGE_NONE;
	message->msn = (message->msn + 1) & PSN_MASK;
	if (!send && !(pkt->flags & ROCE_F_IMM))
		return;
	if (pkt->flags & ROCE_F_IMM) {
		wc.imm_data = htobe32(pkt->imm);
		wc.wc_flags = IBV_WC_WITH_IMM;
	}
	if (pkt->flags & ROCE_F_IETH) {
		window_invalidate(qp, pkt->rkey);
		wc.invalidated_rkey = pkt->rkey;
		wc.wc_flags = IBV_WC_WITH_INV;
	}
	qp_complete_recv(qp, &wc, pkt->se);
}

void message_advance(struct rnic_qp *qp, struct message *message, const struct wire_pkt *pkt)
{
	if (pkt->flags & ROCE_F_LAST)
		complete(qp, message, pkt);
	else
		message->kind = pkt->flags & ROCE_F_SEND ? MESSAGE_SEND : MESSAGE_WRITE;
}
