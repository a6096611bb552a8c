/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes in: frames out of the stream, segments out of frames; what each may be, and where its
 * payload goes. A frame's CRC is verified before anything of it is believed, and all of a segment
 * before a byte of it is written. */
#include <endian.h>
#include <string.h>

#include "lib/iwarp/priv.h"
#include "lib/rnic/mr.h"
#include "lib/rnic/placement.h"
#include "lib/rnic/window.h"

struct segment {
	struct ddp_segment ddp;
	const uint8_t *payload;
	size_t len;
};

/* ---- memory that the peer names ---- */

/* What is wrong with it: codes of a READ's source, of what arrives tagged. */
enum memory { MEMORY_OK, NO_KEY, OTHER_STREAM, WRAPS, NO_RIGHT, OUTSIDE, N_MEMORY };

static const enum iwarp_fault source_fault[N_MEMORY] = {IWARP_OK, IWARP_FAULT_STAG,
	IWARP_FAULT_STREAM, IWARP_FAULT_WRAP, IWARP_FAULT_ACCESS, IWARP_FAULT_BOUNDS};
static const enum iwarp_fault tagged_fault[N_MEMORY] = {IWARP_OK, IWARP_FAULT_TAGGED_STAG,
	IWARP_FAULT_TAGGED_STREAM, IWARP_FAULT_TAGGED_WRAP, IWARP_FAULT_ACCESS,
	IWARP_FAULT_TAGGED_BOUNDS};

static enum memory check_remote(
	const struct rnic_qp *qp, uint32_t key, uint64_t va, uint64_t len, int access)
{
	const struct rnic_mr *mr = mr_find(qp->rnic, key);

	if (len == 0) /* names nothing; so are RTR messages */
		return MEMORY_OK;
	if (!(qp->attr.qp_access_flags & (unsigned)access))
		return NO_RIGHT;
	if (mr == NULL || (mr->type != 0 && mr->region == NULL))
		return NO_KEY;
	if (mr->pd != qp->init.pd || (mr->type == IBV_MW_TYPE_2 && mr->qpn != qp->qpn))
		return OTHER_STREAM;
	if (len > UINT64_MAX - va)
		return WRAPS;
	if (!(mr->access & access))
		return NO_RIGHT;
	return mr_translate_remote(qp, key, va, len, access) != NULL ? MEMORY_OK : OUTSIDE;
}

enum iwarp_fault iwarp_check_source(const struct rnic_qp *qp, const struct rdmap_read *r)
{
	return source_fault[check_remote(
		qp, r->source_stag, r->source_to, r->len, IBV_ACCESS_REMOTE_READ)];
}

/* ---- tagged ---- */

static enum iwarp_fault take_write(struct rnic_qp *qp, const struct segment *s)
{
	struct iwarp *iw = iwarp_of(qp);
	const struct placement where = {
		.kind = PLACE_REMOTE, .qp = qp, .rkey = s->ddp.stag, .va = s->ddp.to};
	const enum memory wrong =
		check_remote(qp, s->ddp.stag, s->ddp.to, s->len, IBV_ACCESS_REMOTE_WRITE);
	const uint64_t before = iw->in_write ? iw->wrote : 0;

	if (wrong != MEMORY_OK)
		return tagged_fault[wrong];
	/* Lengths of messages have 32 bits, as byte_len has. Of tagged ones that
	 * are too long no code of DDP's speaks: RDMAP's of an error of this stream does. */
	if (s->len > UINT32_MAX - before)
		return IWARP_FAULT_MALFORMED;
	if (place_payload(qp->init.pd, &where, s->payload, s->len) < 0)
		return IWARP_FAULT_TAGGED_BOUNDS;
	iw->wrote = before + s->len;
	iw->in_write = !s->ddp.last;
	return IWARP_OK;
}

/* The oldest READ is at the tail of the send queue: what was before it has been completed. */
static enum iwarp_fault take_response(struct rnic_qp *qp, const struct segment *s)
{
	struct iwarp *iw = iwarp_of(qp);
	const struct send_wqe *wqe = ring_at(&qp->sq, ring_tail(&qp->sq));
	struct placement where = {.kind = PLACE_LIST, .offset = iw->read_got};

	if (iw->reads == 0 || s->ddp.stag != iw->read_stag)
		return IWARP_FAULT_TAGGED_STAG;
	if (s->ddp.to != iw->read_got || s->len > wqe->len - iw->read_got)
		return IWARP_FAULT_TAGGED_BOUNDS;
	if (s->ddp.last != (iw->read_got + s->len == wqe->len))
		return IWARP_FAULT_MALFORMED;
	where.sge = wqe->sge;
	where.n_sge = wqe->n_sge;
	if (place_payload(qp->init.pd, &where, s->payload, s->len) < 0) {
		iw->reads--;
		qp_complete_send(qp, IBV_WC_LOC_PROT_ERR);
		return IWARP_FAULT_BUFFER;
	}
	iw->read_got += (uint32_t)s->len;
	if (!s->ddp.last)
		return IWARP_OK;
	iw->read_got = 0;
	iw->read_stag++;
	iw->reads--;
	qp_complete_send(qp, IBV_WC_SUCCESS);
	iwarp_settle(qp);
	iwarp_wake(qp); /* one may wait for it */
	return IWARP_OK;
}

/* ---- untagged ---- */

static enum iwarp_fault fail_recv(
	struct rnic_qp *qp, enum ibv_wc_status status, enum iwarp_fault fault)
{
	struct ibv_wc wc = {.status = status, .opcode = IBV_WC_RECV};

	qp_complete_recv(qp, &wc, true);
	return fault;
}

static enum iwarp_fault finish_send(struct rnic_qp *qp, const struct segment *s)
{
	struct iwarp *iw = iwarp_of(qp);
	struct ibv_wc wc = {
		.status = IBV_WC_SUCCESS, .opcode = IBV_WC_RECV, .byte_len = (uint32_t)iw->got};
	const uint8_t op = s->ddp.opcode;

	if (op == RDMAP_SEND_INV || op == RDMAP_SEND_SE_INV) {
		if (!window_may_invalidate(qp, s->ddp.stag))
			return IWARP_FAULT_INVALIDATE;
		window_invalidate(qp, s->ddp.stag);
		wc.invalidated_rkey = s->ddp.stag;
		wc.wc_flags = IBV_WC_WITH_INV;
	}
	iw->in_send = false;
	iw->got = iw->wrote = 0;
	iw->msn[DDP_QN_SEND]++;
	qp_complete_recv(qp, &wc, op == RDMAP_SEND_SE || op == RDMAP_SEND_SE_INV);
	return IWARP_OK;
}

static enum iwarp_fault take_send(struct rnic_qp *qp, const struct segment *s)
{
	struct iwarp *iw = iwarp_of(qp);
	struct placement where = {.kind = PLACE_LIST, .offset = iw->got};
	const struct recv_wqe *wqe;

	if (s->ddp.mo != iw->got)
		return IWARP_FAULT_MO;
	if (iw->in_send && s->ddp.opcode != iw->send_opcode)
		return IWARP_FAULT_OPCODE;
	if (!qp_take_recv(qp))
		return IWARP_FAULT_NO_BUFFER;
	wqe = qp_recv(qp);
	if (s->len > wqe->len - iw->got || iw->got + s->len > RNIC_MAX_MSG)
		return fail_recv(qp, IBV_WC_LOC_LEN_ERR, IWARP_FAULT_TOO_LONG);
	where.sge = wqe->sge;
	where.n_sge = wqe->n_sge;
	if (place_payload(qp->init.pd, &where, s->payload, s->len) < 0)
		return fail_recv(qp, IBV_WC_LOC_PROT_ERR, IWARP_FAULT_BUFFER);
	iw->in_send = true;
	iw->send_opcode = s->ddp.opcode;
	iw->got += s->len;
	return s->ddp.last ? finish_send(qp, s) : IWARP_OK;
}

static enum iwarp_fault take_imm(struct rnic_qp *qp, const struct segment *s)
{
	struct iwarp *iw = iwarp_of(qp);
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS,
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.wc_flags = IBV_WC_WITH_IMM,
		.byte_len = (uint32_t)iw->wrote};

	if (iw->in_send)
		return IWARP_FAULT_OPCODE;
	if (!qp_take_recv(qp))
		return IWARP_FAULT_NO_BUFFER;
	wc.imm_data = htobe32(rdmap_imm_parse(s->payload));
	iw->wrote = 0;
	iw->msn[DDP_QN_SEND]++;
	qp_complete_recv(qp, &wc, s->ddp.opcode == RDMAP_IMM_SE);
	return IWARP_OK;
}

static enum iwarp_fault take_read(struct rnic_qp *qp, const struct segment *s)
{
	struct iwarp *iw = iwarp_of(qp);
	struct answer *answer = &iw->answer[iw->answer_head % RNIC_MAX_RD_ATOMIC];
	struct rdmap_read read;
	enum iwarp_fault fault;

	if (iw->answer_head - iw->answer_tail >= iw->set.ird)
		return IWARP_FAULT_NO_BUFFER;
	rdmap_read_parse(s->payload, &read);
	fault = iwarp_check_source(qp, &read);
	if (fault != IWARP_OK)
		return fault;
	*answer = (struct answer){.read = read};
	iw->answer_head++;
	iw->msn[DDP_QN_READ]++;
	iwarp_wake(qp);
	return IWARP_OK;
}

/* How many READs that are not answered are older than the one that a Terminate message is about; as
 * many as there are: it is about none of them. If it does not say, it is the oldest. */
static uint32_t reads_before(const struct iwarp *iw)
{
	const struct ddp_segment *s = &iw->terminated.segment;

	if (s->header_len == 0)
		return 0;
	return s->opcode == RDMAP_READ_REQUEST ? s->msn - (iw->next_msn[DDP_QN_READ] - iw->reads)
					       : iw->reads;
}

/* The READ that the peer has refused fails, behind those before it. All else is flushed. */
static void fail_read(struct rnic_qp *qp)
{
	struct iwarp *iw = iwarp_of(qp);
	const bool protection = iw->terminated.layer == 0 && iw->terminated.type == 1;
	uint32_t before = reads_before(iw);

	if (before >= iw->reads)
		return;
	for (;;) {
		const struct send_wqe *wqe = ring_at(&qp->sq, ring_tail(&qp->sq));

		if (wqe->opcode == IBV_WR_RDMA_READ && before-- == 0)
			break;
		qp_complete_send(qp, IBV_WC_WR_FLUSH_ERR);
	}
	iw->reads = 0;
	qp_complete_send(qp, protection ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_OP_ERR);
}

static enum iwarp_fault take_terminate(struct rnic_qp *qp, const struct segment *s)
{
	struct iwarp *iw = iwarp_of(qp);

	if (rdmap_terminate_parse(s->payload, s->len, &iw->terminated) < 0)
		return IWARP_FAULT_MALFORMED;
	iw->terminate_rx++;
	iw->dead = true;
	fail_read(qp);
	qp_event(qp, IBV_EVENT_QP_FATAL);
	qp_error(qp);
	return IWARP_OK;
}

/* Messages of one segment and, but for a Terminate, of one length. */
static enum iwarp_fault check_single(const struct segment *s, size_t len)
{
	if (s->ddp.mo != 0)
		return IWARP_FAULT_MO;
	if (len != 0 && s->len > len)
		return IWARP_FAULT_TOO_LONG;
	return !s->ddp.last || s->len < len ? IWARP_FAULT_MALFORMED : IWARP_OK;
}

static enum iwarp_fault take_untagged(struct rnic_qp *qp, const struct segment *s)
{
	enum iwarp_fault fault;

	if (s->ddp.msn != iwarp_of(qp)->msn[s->ddp.qn])
		return IWARP_FAULT_MSN;
	switch (s->ddp.opcode) {
	case RDMAP_READ_REQUEST:
		fault = check_single(s, RDMAP_READ_LEN);
		return fault != IWARP_OK ? fault : take_read(qp, s);
	case RDMAP_TERMINATE:
		fault = check_single(s, 0);
		return fault != IWARP_OK ? fault : take_terminate(qp, s);
	case RDMAP_IMM:
	case RDMAP_IMM_SE:
		fault = check_single(s, RDMAP_IMM_LEN);
		return fault != IWARP_OK ? fault : take_imm(qp, s);
	default:
		return take_send(qp, s);
	}
}

/* ---- frames ---- */

static enum iwarp_fault take_segment(struct rnic_qp *qp, const uint8_t *ulpdu, size_t len)
{
	struct segment s;
	enum iwarp_fault fault = ddp_parse(ulpdu, len, &s.ddp);

	if (fault != IWARP_OK)
		return fault;
	s.payload = ulpdu + s.ddp.header_len;
	s.len = len - s.ddp.header_len;
	if (!s.ddp.tagged)
		return take_untagged(qp, &s);
	return s.ddp.opcode == RDMAP_WRITE ? take_write(qp, &s) : take_response(qp, &s);
}

static void take_fpdu(struct rnic_qp *qp, const uint8_t *fpdu)
{
	struct iwarp *iw = iwarp_of(qp);
	enum iwarp_fault fault;
	const uint8_t *ulpdu;
	size_t len;

	if (!mpa_fpdu_open(fpdu, &ulpdu, &len)) {
		iwarp_fail(qp, IWARP_FAULT_CRC, NULL, 0);
		return;
	}
	iw->fpdu_rx++;
	if (iw->set.waits) {
		iw->set.waits = false;
		iwarp_wake(qp);
	}
	fault = take_segment(qp, ulpdu, len);
	if (fault != IWARP_OK)
		iwarp_fail(qp, fault, ulpdu, len);
}

/* More of a frame whose beginning came before; bytes used. */
static size_t continue_part(struct rnic_qp *qp, const uint8_t *bytes, size_t len)
{
	struct iwarp *iw = iwarp_of(qp);
	size_t used = 0, whole, take;

	while (iw->have < MPA_LEN_LEN && used < len)
		iw->part[iw->have++] = bytes[used++];
	whole = mpa_fpdu_peek(iw->part, iw->have);
	if (whole == 0)
		return used;
	take = whole - iw->have < len - used ? whole - iw->have : len - used;
	memcpy(iw->part + iw->have, bytes + used, take);
	iw->have += (uint32_t)take;
	if (iw->have == whole) {
		iw->have = 0;
		take_fpdu(qp, iw->part);
	}
	return used + take;
}

void iwarp_rx(struct rnic_qp *qp, const uint8_t *bytes, size_t len)
{
	struct iwarp *iw = iwarp_of(qp);

	while (len > 0 && iwarp_rx_open(qp)) {
		const size_t whole = mpa_fpdu_peek(bytes, len);
		size_t used;

		if (iw->have == 0 && whole != 0 && whole <= len) {
			take_fpdu(qp, bytes); /* where it lies */
			used = whole;
		} else {
			used = continue_part(qp, bytes, len);
		}
		bytes += used;
		len -= used;
		iwarp_settle_queues(qp);
	}
	iw->ignored += len;
}
