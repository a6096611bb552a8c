/* SPDX-License-Identifier: BSD-3-Clause */
/* Selective acknowledgement, the responder: what comes behind a missing packet is placed, its
 * headers wait for their turn, and the peer is told. All else is as in responder.c. */
#include "lib/rnic/mr.h"
#include "lib/rnic/placement.h"
#include "lib/rnic/sr.h"
#include "lib/rnic/wqe.h"

enum { SACK_EVERY = 4 }; /* packets behind a missing one, if none of them asks */

static const struct message_fault POSITION = {
	RNIC_DROP_OPCODE_SEQ, ROCE_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_REQ_ERR};

static bool is_received(const struct sr *sr, uint32_t psn)
{
	uint32_t i = psn % SR_REACH;

	return sr->received[i / 64] >> i % 64 & 1;
}

static void mark(struct sr *sr, uint32_t psn, bool taken)
{
	uint32_t i = psn % SR_REACH;
	uint64_t bit = UINT64_C(1) << i % 64;

	if (is_received(sr, psn) == taken)
		return;
	sr->received[i / 64] ^= bit;
	sr->n_received += taken ? 1 : -1u;
}

/* What is asked of a packet's headers when it is its turn. */
static struct sr_kept pack(const struct wire_pkt *pkt)
{
	struct sr_kept kept = {.va = pkt->va,
		.rkey = pkt->rkey,
		.pay_len = pkt->pay_len,
		.opcode = pkt->opcode,
		.ackreq = pkt->ackreq,
		.se = pkt->se};

	if (pkt->flags & ROCE_F_ATOMIC) {
		kept.swap_add = pkt->swap_add;
		kept.compare = pkt->compare;
	} else {
		kept.pos_offset = pkt->pos_offset;
		kept.pos_recv = pkt->pos_recv;
		kept.dmalen = pkt->dmalen;
		kept.imm = pkt->imm;
	}
	return kept;
}

static struct wire_pkt unpack(const struct sr *sr, uint32_t psn)
{
	const struct sr_kept *kept = &sr->kept[psn % SR_REACH];
	struct wire_pkt pkt = {.kind = WIRE_ROCE,
		.opcode = kept->opcode,
		.flags = (uint16_t)roce_opcode_flags(kept->opcode),
		.psn = psn,
		.ackreq = kept->ackreq,
		.se = kept->se,
		.pay_len = kept->pay_len,
		.rkey = kept->rkey,
		.va = kept->va};

	if (pkt.flags & ROCE_F_ATOMIC) {
		pkt.swap_add = kept->swap_add;
		pkt.compare = kept->compare;
	} else {
		pkt.pos_offset = kept->pos_offset;
		pkt.pos_recv = kept->pos_recv;
		pkt.dmalen = kept->dmalen;
		pkt.imm = kept->imm;
	}
	return pkt;
}

static bool uses_recv(const struct wire_pkt *pkt)
{
	return pkt->flags & (ROCE_F_SEND | ROCE_F_IMM);
}

/* The receive request of a message that has not begun yet, or NULL. */
static const struct recv_wqe *recv_of(const struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	uint32_t tail = ring_tail(&qp->rq), ahead = pkt->pos_recv - sr_of(qp)->recvs;

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

static bool in_write(const struct message *message, const struct wire_pkt *pkt)
{
	return pkt->va == message->va && pkt->rkey == message->rkey &&
	       pkt->dmalen == message->dmalen;
}

/* A packet whose turn it is must be where it says: it may have been placed there already. */
static bool fits(const struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	const struct rc_responder *resp = &rc_of(qp)->resp;

	if (!(pkt->flags & ROCE_F_POS))
		return true;
	if (pkt->pos_recv != sr_of(qp)->recvs)
		return false;
	if (pkt->flags & ROCE_F_FIRST)
		return pkt->pos_offset == 0;
	return pkt->pos_offset == resp->message.received &&
	       (!(pkt->flags & ROCE_F_WRITE) || in_write(&resp->message, pkt));
}

/* No packets have the PSNs of an answer: what a peer sent there all the same is forgotten. */
static void forget(struct sr *sr, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < SR_REACH && psn_lt(psn_add(from, (int32_t)i), to); i++)
		mark(sr, psn_add(from, (int32_t)i), false);
}

static unsigned deliver(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, bool placed)
{
	unsigned drop;

	if (!fits(qp, pkt))
		return rc_refuse(qp, &POSITION);
	drop = rc_take_next(qp, frame, pkt, placed);
	if (drop != 0)
		return drop;
	if ((pkt->flags & ROCE_F_LAST) && uses_recv(pkt))
		sr_of(qp)->recvs++;
	if (rc_is_rd_request(pkt))
		forget(sr_of(qp), pkt->psn, rc_of(qp)->resp.epsn);
	return 0;
}

static void deliver_kept(struct rnic_qp *qp)
{
	struct sr *sr = sr_of(qp);

	while (qp_receives(qp) && is_received(sr, rc_of(qp)->resp.epsn)) {
		const struct wire_pkt next = unpack(sr, rc_of(qp)->resp.epsn);

		mark(sr, next.psn, false);
		if (deliver(qp, NULL, &next, true) != 0)
			break;
	}
}

/* The missing one, and all that waited for it. */
static unsigned deliver_all(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	struct sr *sr = sr_of(qp);
	unsigned drop;

	mark(sr, pkt->psn, false);
	drop = deliver(qp, frame, pkt, false);
	if (drop == 0)
		deliver_kept(qp);
	return drop;
}

static unsigned enqueue(struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	struct sr *sr = sr_of(qp);

	sr->kept[pkt->psn % SR_REACH] = pack(pkt);
	mark(sr, pkt->psn, true);
	rc_ahead(qp, pkt->psn, pkt->ackreq || ++sr->unsaid >= SACK_EVERY);
	return 0;
}

unsigned sr_rx_request(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	int32_t at = psn_diff(pkt->psn, rc_of(qp)->resp.epsn);
	struct place_flow flow = {.reach = SR_REACH,
		.posted = at,
		.unmatched = rc_is_rd_request(pkt) ? PLACE_BUFFER : PLACE_DEFER};
	struct placement where;
	unsigned drop = RNIC_DROP_SEQUENCE;

	if (at == 0)
		return deliver_all(qp, frame, pkt);
	if (at > 0 && at < SR_REACH && is_received(sr_of(qp), pkt->psn)) {
		rc_ahead(qp, pkt->psn, true);
		return RNIC_DROP_DUPLICATE;
	}
	if (at > 0 && flow.unmatched == PLACE_DEFER && find_place(qp, pkt, &where, &drop))
		flow.posted = at + 1;
	switch (place_decide(&flow, at, 1).verdict) {
	case PLACE_ACCEPT:
		if (place_payload(qp->init.pd, &where, frame + pkt->pay_off, pkt->pay_len) == 0)
			return enqueue(qp, pkt);
		rc_ahead(qp, pkt->psn, false);
		return RNIC_DROP_ACCESS;
	case PLACE_BUFFER:
		return enqueue(qp, pkt);
	case PLACE_DEFER:
		rc_ahead(qp, pkt->psn, false);
		return drop;
	default:
		return at < 0 ? rc_duplicate(qp, pkt) : rc_ahead(qp, pkt->psn, false);
	}
}

/* Of the message under way, also behind a missing packet: its PSN alone tells where, unless that
 * has come. What it says itself of its place has to agree, so what belongs to another message does
 * not.
 */
uint8_t *sr_place_request(const struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	const struct rc_responder *resp = &rc_of(qp)->resp;
	const struct message *message = &resp->message;
	const int32_t at = psn_diff(pkt->psn, resp->epsn);
	uint64_t ahead;

	if (at < 0 || at >= SR_REACH || (at > 0 && is_received(sr_of(qp), pkt->psn)) ||
		resp->refuses)
		return NULL;
	ahead = (uint64_t)at * qp->mtu;
	if (pkt->pos_recv != sr_of(qp)->recvs || pkt->pos_offset != message->received + ahead ||
		((pkt->flags & ROCE_F_WRITE) && !in_write(message, pkt)))
		return NULL;
	return message_middle(qp, message, pkt, ahead);
}

/* The same comes of it as of sr_rx_request. */
void sr_request_placed(struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	if (pkt->psn != rc_of(qp)->resp.epsn) {
		enqueue(qp, pkt);
		return;
	}
	rc_request_placed(qp, pkt);
	deliver_kept(qp);
}

size_t sr_put_sack(struct rnic_qp *qp, struct rnic_frame *frame)
{
	struct sr *sr = sr_of(qp);
	uint32_t from = psn_add(rc_of(qp)->resp.epsn, 1) % SR_REACH;
	size_t len = 0;

	if (sr->n_received == 0)
		return 0;
	for (unsigned i = 0; i < SR_REACH / 64; i++) {
		uint32_t word = (from / 64 + i) % (SR_REACH / 64);
		uint64_t bits = sr->received[word] >> from % 64;

		if (from % 64 != 0)
			bits |= sr->received[(word + 1) % (SR_REACH / 64)] << (64 - from % 64);
		for (unsigned j = 0; j < 8; j++)
			sr->sack[i * 8 + j] = (uint8_t)(bits >> 8 * j);
		if (bits != 0)
			len = i * 8 + 8;
	}
	sr->unsaid = 0;
	frame->iov[0].base = sr->sack;
	frame->iov[0].len = len;
	frame->n_iov = 1;
	return len;
}
