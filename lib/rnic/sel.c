/* SPDX-License-Identifier: BSD-3-Clause */
/* RC with selective acknowledgement, for links that lose and reorder. Each packet says where its
 * payload belongs (PosETH, and a RETH in every packet of a WRITE): what comes behind a missing one
 * is placed at once, its headers wait for their turn, and completions come in order. The responder
 * tells what has come; the requester sends again only what has not. All else is as in
 * requester.c and responder.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/core.h"
#include "lib/wire/psn.h"

int sel_init(struct rnic_qp *qp)
{
	qp->sel = calloc(1, sizeof(*qp->sel));
	return qp->sel != NULL ? 0 : -ENOMEM;
}

/* ---- responder: what is behind a missing one ---- */

static const struct rc_fault POSITION = {
	RNIC_DROP_OPCODE_SEQ, ROCE_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_REQ_ERR};

static bool is_taken(const struct rc_selective *sel, uint32_t psn)
{
	uint32_t i = psn % SEL_REACH;

	return sel->taken[i / 64] >> i % 64 & 1;
}

static void mark(struct rc_selective *sel, uint32_t psn, bool taken)
{
	uint32_t i = psn % SEL_REACH;
	uint64_t bit = UINT64_C(1) << i % 64;

	if (is_taken(sel, psn) == taken)
		return;
	sel->taken[i / 64] ^= bit;
	sel->n_taken += taken ? 1 : -1u;
}

static bool uses_recv(const struct wire_pkt *pkt)
{
	return pkt->flags & (ROCE_F_SEND | ROCE_F_IMM);
}

/* The receive request of a message that has not begun yet, or NULL. */
static const struct recv_wqe *recv_of(const struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	uint32_t tail = ring_tail(&qp->rq), ahead = pkt->pos_recv - qp->sel->recvs;

	return ahead < ring_head(&qp->rq) - tail ? ring_at(&qp->rq, tail + ahead) : NULL;
}

/* Where the payload goes; false: nowhere, *drop says why. What is wrong with the packet is told to
 * the peer when it is its turn. */
static bool find_place(const struct rnic_qp *qp, const struct wire_pkt *pkt,
	struct placement *where, unsigned *drop)
{
	const struct recv_wqe *wqe = uses_recv(pkt) ? recv_of(qp, pkt) : NULL;
	uint64_t end = (uint64_t)pkt->pos_offset + pkt->pay_len;

	*drop = RNIC_DROP_LENGTH;
	if (pkt->pay_len > qp->mtu || (!(pkt->flags & ROCE_F_LAST) && pkt->pay_len < qp->mtu))
		return false;
	if (uses_recv(pkt) && wqe == NULL) {
		*drop = RNIC_DROP_RNR;
		return false;
	}
	if (pkt->flags & ROCE_F_SEND) {
		*where = (struct placement){.kind = PLACE_LIST,
			.sge = wqe->sge,
			.n_sge = wqe->n_sge,
			.offset = pkt->pos_offset};
		return end <= wqe->len;
	}
	if (end > pkt->dmalen)
		return false;
	*where = (struct placement){
		.kind = PLACE_REMOTE, .qp = qp, .rkey = pkt->rkey, .va = pkt->va + pkt->pos_offset};
	*drop = RNIC_DROP_ACCESS;
	return (qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) &&
	       (pkt->dmalen == 0 || mr_translate_remote(qp, pkt->rkey, pkt->va, pkt->dmalen,
					    IBV_ACCESS_REMOTE_WRITE) != NULL);
}

/* A packet whose turn it is must be where it says: it may have been placed there already. */
static bool fits(const struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	const struct rc_responder *resp = &qp->resp;

	if (!(pkt->flags & ROCE_F_POS))
		return true;
	if (pkt->pos_recv != qp->sel->recvs)
		return false;
	if (pkt->flags & ROCE_F_FIRST)
		return pkt->pos_offset == 0;
	return pkt->pos_offset == resp->received &&
	       (!(pkt->flags & ROCE_F_WRITE) || (pkt->va == resp->va && pkt->rkey == resp->rkey &&
							pkt->dmalen == resp->dmalen));
}

/* No packets have the PSNs of an answer: what a peer sent there all the same is forgotten. */
static void forget(struct rc_selective *sel, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < SEL_REACH && psn_lt(psn_add(from, (int32_t)i), to); i++)
		mark(sel, psn_add(from, (int32_t)i), false);
}

static unsigned turn(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, bool placed)
{
	unsigned drop;

	if (!fits(qp, pkt))
		return rc_refuse(qp, &POSITION);
	drop = rc_take_next(qp, frame, pkt, placed);
	if (drop != 0)
		return drop;
	if ((pkt->flags & ROCE_F_LAST) && uses_recv(pkt))
		qp->sel->recvs++;
	if (rc_is_rd_request(pkt))
		forget(qp->sel, pkt->psn, qp->resp.epsn);
	return 0;
}

/* The missing one, and all that waited for it. */
static unsigned take_turns(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	struct rc_selective *sel = qp->sel;
	unsigned drop;

	mark(sel, pkt->psn, false);
	drop = turn(qp, frame, pkt, false);
	while (drop == 0 && qp_receives(qp) && is_taken(sel, qp->resp.epsn)) {
		const struct wire_pkt *next = &sel->pkt[qp->resp.epsn % SEL_REACH];

		mark(sel, next->psn, false);
		if (turn(qp, NULL, next, true) != 0)
			break;
	}
	return drop;
}

static unsigned keep(struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	qp->sel->pkt[pkt->psn % SEL_REACH] = *pkt;
	mark(qp->sel, pkt->psn, true);
	rc_ahead(qp, pkt->psn, true);
	return 0;
}

unsigned sel_rx_request(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	int32_t at = psn_diff(pkt->psn, qp->resp.epsn);
	struct place_flow flow = {.reach = SEL_REACH,
		.posted = at,
		.unmatched = rc_is_rd_request(pkt) ? PLACE_BUFFER : PLACE_DEFER};
	struct placement where;
	unsigned drop = RNIC_DROP_SEQUENCE;

	if (at == 0)
		return take_turns(qp, frame, pkt);
	if (at > 0 && at < SEL_REACH && is_taken(qp->sel, pkt->psn)) {
		rc_ahead(qp, pkt->psn, true);
		return RNIC_DROP_DUPLICATE;
	}
	if (at > 0 && flow.unmatched == PLACE_DEFER && find_place(qp, pkt, &where, &drop))
		flow.posted = at + 1;
	switch (place_decide(&flow, at, 1).verdict) {
	case PLACE_ACCEPT:
		if (place_payload(qp->init.pd, &where, frame + pkt->pay_off, pkt->pay_len) == 0)
			return keep(qp, pkt);
		rc_ahead(qp, pkt->psn, false);
		return RNIC_DROP_ACCESS;
	case PLACE_BUFFER:
		return keep(qp, pkt);
	case PLACE_DEFER:
		rc_ahead(qp, pkt->psn, false);
		return drop;
	default:
		return at < 0 ? rc_duplicate(qp, pkt) : rc_ahead(qp, pkt->psn, false);
	}
}

size_t sel_put_map(struct rnic_qp *qp, struct rnic_frame *frame)
{
	struct rc_selective *sel = qp->sel;
	uint32_t from = psn_add(qp->resp.epsn, 1) % SEL_REACH;
	size_t len = 0;

	if (sel->n_taken == 0)
		return 0;
	for (unsigned i = 0; i < SEL_REACH / 64; i++) {
		uint32_t word = (from / 64 + i) % (SEL_REACH / 64);
		uint64_t bits = sel->taken[word] >> from % 64;

		if (from % 64 != 0)
			bits |= sel->taken[(word + 1) % (SEL_REACH / 64)] << (64 - from % 64);
		for (unsigned j = 0; j < 8; j++)
			sel->map[i * 8 + j] = (uint8_t)(bits >> 8 * j);
		if (bits != 0)
			len = i * 8 + 8;
	}
	frame->iov[0].base = sel->map;
	frame->iov[0].len = len;
	frame->n_iov = 1;
	return len;
}

/* ---- requester: what has arrived ---- */

void sel_go_back(struct rnic_qp *qp)
{
	qp->sel->round = qp->sel->resend_end = qp->req.high;
}

/* Whether something is to be sent again. */
static bool take_map(struct rnic_qp *qp, const uint8_t *map, unsigned len, uint64_t missing)
{
	struct rc_selective *sel = qp->sel;

	for (unsigned i = 0; i < len * 8 && i < SEL_REACH - 1; i++) {
		uint64_t seq = missing + 1 + i;

		if (!roce_sack_bit(map, i) || seq >= qp->req.high)
			continue;
		sel->sacked[seq % SEL_REACH] = seq;
		if (seq >= sel->sack_end)
			sel->sack_end = seq + 1;
	}
	return qp->req.una >= sel->round || sel->sack_end > sel->round;
}

unsigned sel_rx_nak(struct rnic_qp *qp, const uint8_t *map, const struct wire_pkt *pkt,
	uint64_t missing, bool progress)
{
	struct rc_requester *req = &qp->req;
	bool again = take_map(qp, map, pkt->pay_len, missing);

	rnic_inc(qp->rnic, RNIC_C_NAK_RX);
	if (req->una < missing)
		return rc_response_lost(qp, progress);
	if (req->rnr_wait || !again)
		return 0;
	if (req->una == qp->sel->round_una)
		rc_try_again(qp);
	else
		rc_go_back(qp);
	qp->sel->round_una = req->una;
	if (pkt->pay_len > 0)
		qp->sel->resend_end = qp->sel->sack_end;
	return 0;
}

static bool last_packet(const struct rnic_qp *qp)
{
	const struct send_wqe *wqe = ring_at(&qp->sq, qp->req.next_idx);

	return rc_is_rd(wqe) || qp->req.next + 1 == wqe->first + rc_packets(qp, wqe);
}

/* As far as the next request without packets, which the caller passes. The oldest one always goes:
 * if it is a READ, its answer may be what was lost. */
void sel_pass(struct rnic_qp *qp)
{
	struct rc_selective *sel = qp->sel;
	struct rc_requester *req = &qp->req;

	while (req->next < req->high && req->next != req->una &&
		(sel->sacked[req->next % SEL_REACH] == req->next || req->next >= sel->resend_end)) {
		const struct send_wqe *wqe = ring_at(&qp->sq, req->next_idx);

		if (wqe_is_local(wqe))
			return;
		req->rd_out += rc_is_rd(wqe);
		rc_step(qp, last_packet(qp));
	}
}
