/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes out. Segments of two messages are never mixed; messages of requests and answers to READs
 * take turns. Payload is copied from the program's memory into the frame, and the CRC is that of
 * the copy: a program may write there at any time. */
#include <string.h>

#include "lib/iwarp/priv.h"
#include "lib/rnic/mr.h"
#include "lib/rnic/window.h"

static uint32_t least(size_t a, size_t b)
{
	return (uint32_t)(a < b ? a : b);
}

static size_t seal(struct iwarp *iw, uint8_t *out, size_t ulpdu)
{
	iw->fpdu_tx++;
	return mpa_fpdu_seal(out, ulpdu);
}

/* ---- requests ---- */

void iwarp_settle(struct rnic_qp *qp)
{
	const struct iwarp *iw = iwarp_of(qp);

	while (ring_tail(&qp->sq) != iw->snd) {
		const struct send_wqe *wqe = ring_at(&qp->sq, ring_tail(&qp->sq));

		if (wqe->opcode == IBV_WR_RDMA_READ)
			return;
		qp_complete_send(qp, IBV_WC_SUCCESS);
	}
}

/* The request fails that is next to leave; with it, all. Those before it that wait for READs are
 * flushed. */
static void refuse(struct rnic_qp *qp, enum ibv_wc_status status)
{
	struct iwarp *iw = iwarp_of(qp);

	while (ring_tail(&qp->sq) != iw->snd)
		qp_complete_send(qp, IBV_WC_WR_FLUSH_ERR);
	iw->reads = 0;
	qp_complete_send(qp, status);
	iwarp_fail(qp, IWARP_FAULT_CATASTROPHIC, NULL, 0);
}

/* Requests that send nothing are carried out when all before them are done. */
static bool run_local(struct rnic_qp *qp, const struct send_wqe *wqe)
{
	struct iwarp *iw = iwarp_of(qp);
	enum ibv_wc_status status;

	if (ring_tail(&qp->sq) != iw->snd)
		return false;
	status = window_run(qp, wqe);
	if (status != IBV_WC_SUCCESS) {
		refuse(qp, status);
		return false;
	}
	iw->snd++;
	qp_complete_send(qp, status);
	return true;
}

/* The request that may go on now, or NULL. */
static const struct send_wqe *next_request(struct rnic_qp *qp)
{
	struct iwarp *iw = iwarp_of(qp);

	while (qp_state(qp) == IBV_QPS_RTS && iw->snd != ring_head(&qp->sq)) {
		const struct send_wqe *wqe = ring_at(&qp->sq, iw->snd);

		if (wqe_is_local(wqe)) {
			if (!run_local(qp, wqe))
				return NULL;
			continue;
		}
		if (iw->sent > 0 || iw->imm_due)
			return wqe;
		if (wqe->fenced && iw->reads > 0)
			return NULL;
		if (wqe->opcode != IBV_WR_RDMA_READ)
			return wqe;
		if (iw->set.ord > 0)
			return iw->reads < iw->set.ord ? wqe : NULL;
		refuse(qp, IBV_WC_LOC_QP_OP_ERR);
	}
	return NULL;
}

static bool is_write(const struct send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_WRITE || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static struct ddp_segment untagged(const struct iwarp *iw, enum ddp_queue qn, uint8_t opcode)
{
	return (struct ddp_segment){
		.opcode = opcode, .qn = qn, .msn = iw->next_msn[qn], .last = true};
}

static void request_done(struct rnic_qp *qp)
{
	struct iwarp *iw = iwarp_of(qp);

	iw->snd++;
	iw->sent = 0;
	iw->middle = iw->imm_due = false;
	iw->answers_first = true;
	iwarp_settle(qp);
}

static size_t make_read(struct rnic_qp *qp, const struct send_wqe *wqe, uint8_t *out, size_t cap)
{
	struct iwarp *iw = iwarp_of(qp);
	const struct ddp_segment s = untagged(iw, DDP_QN_READ, RDMAP_READ_REQUEST);
	const struct rdmap_read read = {.sink_stag = iw->read_stag + iw->reads,
		.len = wqe->len,
		.source_stag = wqe->rkey,
		.source_to = wqe->raddr};
	size_t len = DDP_UNTAGGED_LEN + RDMAP_READ_LEN;

	if (mpa_fpdu_len(len) > cap)
		return 0;
	ddp_build(out + MPA_LEN_LEN, &s);
	rdmap_read_build(out + MPA_LEN_LEN + DDP_UNTAGGED_LEN, &read);
	len = seal(iw, out, len);
	iw->next_msn[DDP_QN_READ]++;
	iw->reads++;
	request_done(qp);
	return len;
}

static size_t make_imm(struct rnic_qp *qp, const struct send_wqe *wqe, uint8_t *out, size_t cap)
{
	struct iwarp *iw = iwarp_of(qp);
	const struct ddp_segment s =
		untagged(iw, DDP_QN_SEND, wqe->solicited ? RDMAP_IMM_SE : RDMAP_IMM);
	size_t len = DDP_UNTAGGED_LEN + RDMAP_IMM_LEN;

	if (mpa_fpdu_len(len) > cap)
		return 0;
	ddp_build(out + MPA_LEN_LEN, &s);
	rdmap_imm_build(out + MPA_LEN_LEN + DDP_UNTAGGED_LEN, wqe->imm);
	len = seal(iw, out, len);
	iw->next_msn[DDP_QN_SEND]++;
	request_done(qp);
	return len;
}

static struct ddp_segment segment_of(
	const struct iwarp *iw, const struct send_wqe *wqe, uint32_t len)
{
	static const uint8_t send[2][2] = {
		{RDMAP_SEND, RDMAP_SEND_SE}, {RDMAP_SEND_INV, RDMAP_SEND_SE_INV}};
	struct ddp_segment s;

	if (is_write(wqe)) {
		s = (struct ddp_segment){.tagged = true,
			.opcode = RDMAP_WRITE,
			.stag = wqe->rkey,
			.to = wqe->raddr + iw->sent};
	} else {
		s = untagged(
			iw, DDP_QN_SEND, send[wqe->opcode == IBV_WR_SEND_WITH_INV][wqe->solicited]);
		s.stag = wqe->imm;
		s.mo = iw->sent;
	}
	s.last = iw->sent + len == wqe->len;
	return s;
}

/* The next segment of a SEND or WRITE. */
static size_t make_data(struct rnic_qp *qp, const struct send_wqe *wqe, uint8_t *out, size_t cap)
{
	struct iwarp *iw = iwarp_of(qp);
	const size_t header = is_write(wqe) ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
	const uint32_t len = least(wqe->len - iw->sent, iw->set.mulpdu - header);
	uint8_t *at = out + MPA_LEN_LEN;
	struct rnic_frame pieces;
	struct ddp_segment s;

	if (mpa_fpdu_len(header + len) > cap)
		return 0;
	if (gather_payload(qp->init.pd, wqe, iw->sent, len, &pieces) < 0) {
		refuse(qp, IBV_WC_LOC_PROT_ERR);
		return 0;
	}
	s = segment_of(iw, wqe, len);
	at += ddp_build(at, &s);
	for (unsigned i = 0; i < pieces.n_iov; i++) {
		memcpy(at, pieces.iov[i].base, pieces.iov[i].len);
		at += pieces.iov[i].len;
	}
	iw->sent += len;
	iw->middle = true;
	if (s.last && !s.tagged)
		iw->next_msn[DDP_QN_SEND]++;
	if (s.last && wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		iw->imm_due = true;
	else if (s.last)
		request_done(qp);
	return seal(iw, out, header + len);
}

static size_t make_request(struct rnic_qp *qp, uint8_t *out, size_t cap)
{
	const struct send_wqe *wqe = next_request(qp);

	if (wqe == NULL)
		return 0;
	if (wqe->opcode == IBV_WR_RDMA_READ)
		return make_read(qp, wqe, out, cap);
	return iwarp_of(qp)->imm_due ? make_imm(qp, wqe, out, cap) : make_data(qp, wqe, out, cap);
}

/* ---- answers ---- */

/* It cannot be answered, though it could when it came: the Terminate message says which. */
static void refuse_answer(struct rnic_qp *qp, const struct answer *a, enum iwarp_fault fault)
{
	const struct iwarp *iw = iwarp_of(qp);
	const struct ddp_segment s = {.opcode = RDMAP_READ_REQUEST,
		.last = true,
		.qn = DDP_QN_READ,
		.msn = iw->msn[DDP_QN_READ] - (iw->answer_head - iw->answer_tail)};
	uint8_t ulpdu[DDP_UNTAGGED_LEN + RDMAP_READ_LEN];

	rdmap_read_build(ulpdu + ddp_build(ulpdu, &s), &a->read);
	iwarp_fail(qp, fault, ulpdu, sizeof(ulpdu));
}

static size_t make_answer(struct rnic_qp *qp, uint8_t *out, size_t cap)
{
	struct iwarp *iw = iwarp_of(qp);
	struct answer *a = &iw->answer[iw->answer_tail % RNIC_MAX_RD_ATOMIC];
	const uint32_t len = least(a->read.len - a->sent, iw->set.mulpdu - DDP_TAGGED_LEN);
	const struct ddp_segment s = {.tagged = true,
		.opcode = RDMAP_READ_RESPONSE,
		.last = a->sent + len == a->read.len,
		.stag = a->read.sink_stag,
		.to = a->read.sink_to + a->sent};
	enum iwarp_fault fault;

	if (mpa_fpdu_len(DDP_TAGGED_LEN + len) > cap)
		return 0;
	/* The memory may have gone since the last segment. */
	fault = iwarp_check_source(qp, &a->read);
	if (fault != IWARP_OK) {
		refuse_answer(qp, a, fault);
		return 0;
	}
	ddp_build(out + MPA_LEN_LEN, &s);
	if (len > 0)
		memcpy(out + MPA_LEN_LEN + DDP_TAGGED_LEN,
			mr_translate_remote(qp, a->read.source_stag, a->read.source_to + a->sent,
				len, IBV_ACCESS_REMOTE_READ),
			len);
	a->sent += len;
	iw->middle = !s.last;
	if (s.last) {
		iw->answer_tail++;
		iw->answers_first = false;
	}
	return seal(iw, out, DDP_TAGGED_LEN + len);
}

/* ---- what goes next ---- */

/* With its payload, which is written by whoever fails. */
static size_t terminate_frame(uint8_t *out, size_t cap, const uint8_t *payload, size_t payload_len)
{
	const struct ddp_segment s = {
		.opcode = RDMAP_TERMINATE, .qn = DDP_QN_TERMINATE, .msn = 1, .last = true};
	const size_t len = DDP_UNTAGGED_LEN + payload_len;

	if (mpa_fpdu_len(len) > cap)
		return 0;
	ddp_build(out + MPA_LEN_LEN, &s);
	memcpy(out + MPA_LEN_LEN + DDP_UNTAGGED_LEN, payload, payload_len);
	return mpa_fpdu_seal(out, len);
}

size_t iwarp_refusal(uint8_t *out, size_t cap, enum iwarp_fault fault)
{
	uint8_t payload[RDMAP_MAX_TERMINATE];

	return terminate_frame(out, cap, payload, rdmap_terminate_build(payload, fault, NULL, 0));
}

/* Once: it is due once. */
static size_t make_terminate(struct rnic_qp *qp, uint8_t *out, size_t cap)
{
	struct iwarp *iw = iwarp_of(qp);
	const size_t len = terminate_frame(out, cap, iw->terminate, iw->terminate_len);

	if (len == 0)
		return 0;
	iw->fpdu_tx++;
	iw->terminate_due = false;
	iw->terminate_tx++;
	return len;
}

static size_t make_rtr(struct iwarp *iw, uint8_t *out, size_t cap)
{
	const struct ddp_segment s = {.tagged = true, .last = true, .opcode = RDMAP_WRITE};

	if (mpa_fpdu_len(DDP_TAGGED_LEN) > cap)
		return 0;
	ddp_build(out + MPA_LEN_LEN, &s);
	iw->rtr_due = false;
	return seal(iw, out, DDP_TAGGED_LEN);
}

static size_t make_next(struct rnic_qp *qp, uint8_t *out, size_t cap)
{
	struct iwarp *iw = iwarp_of(qp);
	const bool answers = iw->answer_head != iw->answer_tail;
	size_t len = 0;

	if (qp_state(qp) != IBV_QPS_RTS || iw->set.waits)
		return 0;
	if (iw->rtr_due)
		return make_rtr(iw, out, cap);
	if (iw->middle) /* answers_first changes at ends of messages */
		return answers && iw->answer[iw->answer_tail % RNIC_MAX_RD_ATOMIC].sent > 0
			       ? make_answer(qp, out, cap)
			       : make_request(qp, out, cap);
	if (!answers || !iw->answers_first)
		len = make_request(qp, out, cap);
	return len == 0 && answers && qp_state(qp) == IBV_QPS_RTS ? make_answer(qp, out, cap) : len;
}

size_t iwarp_tx(struct rnic_qp *qp, uint8_t *out, size_t cap)
{
	struct iwarp *iw = iwarp_of(qp);
	size_t all = 0, len;

	if (!iw->attached)
		return 0;
	do {
		len = make_next(qp, out + all, cap - all);
		iwarp_settle_queues(qp);
		if (len == 0 && iw->terminate_due)
			len = make_terminate(qp, out + all, cap - all);
		all += len;
	} while (len > 0);
	return all;
}
