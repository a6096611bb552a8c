/* SPDX-License-Identifier: BSD-3-Clause */
/* RC with selective acknowledgement, for links that lose and reorder. Each packet says where its
 * payload belongs (PosETH, and a RETH in every packet of a WRITE): what comes behind a missing one
 * is placed at once, its headers wait for their turn, and completions come in order. The responder
 * tells what has come; the requester sends again only what has not. All else is as in
 * requester.c and responder.c. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "lib/rnic/mr.h"
#include "lib/rnic/placement.h"
#include "lib/rnic/sr.h"
#include "lib/rnic/window.h"

enum {
	SACK_EVERY = 4, /* packets behind a missing one, if none of them asks */
	MIN_PROBE_NS = 3000,
	FIRST_PROBE_NS = 1000000, /* while no round trip is known */
	EARLY_PROBES = 2,         /* that wait no longer than the first: they may be lost, too */
	MAX_PROBES = 20,
};

/* ---- responder: what is behind a missing one ---- */

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
	       (!(pkt->flags & ROCE_F_WRITE) ||
		       (pkt->va == resp->message.va && pkt->rkey == resp->message.rkey &&
			       pkt->dmalen == resp->message.dmalen));
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

/* The missing one, and all that waited for it. */
static unsigned deliver_all(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	struct sr *sr = sr_of(qp);
	unsigned drop;

	mark(sr, pkt->psn, false);
	drop = deliver(qp, frame, pkt, false);
	while (drop == 0 && qp_receives(qp) && is_received(sr, rc_of(qp)->resp.epsn)) {
		const struct wire_pkt next = unpack(sr, rc_of(qp)->resp.epsn);

		mark(sr, next.psn, false);
		if (deliver(qp, NULL, &next, true) != 0)
			break;
	}
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

static unsigned rx_request(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
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

static size_t put_sack(struct rnic_qp *qp, struct rnic_frame *frame)
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

/* ---- requester: what has arrived ---- */

static bool is_here(const struct sr *sr, uint64_t seq)
{
	return sr->sacked[seq % SR_REACH] == seq;
}

static bool is_lost(const struct sr *sr, uint64_t seq)
{
	const uint64_t order = sr->order[seq % SR_REACH];

	if (is_here(sr, seq))
		return false;
	return order & 1 ? order / 2 <= sr->largest_acked : seq < sr->sack_end;
}

static void mark_lost(struct sr *sr, uint64_t seq)
{
	sr->order[seq % SR_REACH] = 1;
}

/* The oldest one always goes: if it is a READ, its answer may be what was lost. */
static void go_back(struct rnic_qp *qp)
{
	struct sr *sr = sr_of(qp);
	const struct rc_requester *req = &rc_of(qp)->req;

	sr->sacked[req->una % SR_REACH] = ~req->una;
	for (uint64_t seq = req->una; seq < req->high && seq < req->una + SR_REACH; seq++)
		mark_lost(sr, seq);
}

/* Up at once, down slowly: a peer in software is quick at times. */
static void sample_rtt(struct sr *sr, uint64_t now)
{
	const uint64_t rtt = now - sr->rtt_from;

	sr->rtt_from = 0;
	sr->rtt_ns = rtt < sr->rtt_ns ? sr->rtt_ns - (sr->rtt_ns - rtt) / 8 : rtt;
}

static void arrived(struct sr *sr, uint64_t seq, uint64_t now)
{
	const uint64_t order = sr->order[seq % SR_REACH];

	if (order / 2 > sr->largest_acked)
		sr->largest_acked = order / 2;
	if (!(order & 1) && seq >= sr->sack_end)
		sr->sack_end = seq + 1;
	if (sr->rtt_from != 0 && seq == sr->rtt_seq)
		sample_rtt(sr, now);
}

static void sent(struct rnic_qp *qp, bool asks, uint64_t now)
{
	struct sr *sr = sr_of(qp);
	const uint64_t seq = rc_of(qp)->req.next;
	const bool again = seq < rc_of(qp)->req.high;

	if (sr->n_sent++ == 0)
		sr->acked = seq;
	sr->order[seq % SR_REACH] = 2 * sr->n_sent + again;
	if (again && seq == sr->rtt_seq) {
		sr->rtt_from = 0;
	} else if (!again && asks && sr->rtt_from == 0) {
		sr->rtt_seq = seq;
		sr->rtt_from = now;
	}
}

static void progressed(struct rnic_qp *qp, uint64_t now)
{
	struct sr *sr = sr_of(qp);

	sr->probes = 0;
	for (; sr->acked < rc_of(qp)->req.una; sr->acked++)
		if (!is_here(sr, sr->acked))
			arrived(sr, sr->acked, now);
}

static uint64_t timeout(struct rnic_qp *qp, uint64_t limit)
{
	struct sr *sr = sr_of(qp);
	uint64_t wait = sr->rtt_ns + sr->rtt_ns / 2;

	if (sr->rtt_ns == 0)
		wait = FIRST_PROBE_NS;
	else if (wait < MIN_PROBE_NS)
		wait = MIN_PROBE_NS;
	wait <<= sr->probes > EARLY_PROBES ? sr->probes - EARLY_PROBES : 0;
	sr->probing = limit == 0 || wait < limit;
	return sr->probing ? wait : limit;
}

/* The oldest that have not arrived. */
static bool probe(struct rnic_qp *qp)
{
	struct sr *sr = sr_of(qp);
	const struct rc_requester *req = &rc_of(qp)->req;
	unsigned n = 0;

	if (!sr->probing)
		return false;
	sr->probes += sr->probes < MAX_PROBES;
	sr->n_probes++;
	rnic_inc(qp->rnic, RNIC_C_PROBES);
	sr->sacked[req->una % SR_REACH] = ~req->una;
	for (uint64_t seq = req->una; seq < req->high && n < SR_PROBE; seq++)
		if (!is_here(sr, seq)) {
			mark_lost(sr, seq);
			n++;
		}
	rc_rewind(qp);
	rc_retry_at(qp, UINT64_MAX); /* the oldest one starts it */
	return true;
}

/* True if a packet of which it was not known has arrived. */
static bool take_sack(
	struct rnic_qp *qp, const uint8_t *sack, unsigned len, uint64_t missing, uint64_t now)
{
	struct sr *sr = sr_of(qp);
	bool news = false;

	for (unsigned i = 0; i < len * 8 && i < SR_REACH - 1; i++) {
		uint64_t seq = missing + 1 + i;

		if (!roce_sack_bit(sack, i) || seq >= rc_of(qp)->req.high || is_here(sr, seq))
			continue;
		sr->sacked[seq % SR_REACH] = seq;
		arrived(sr, seq, now);
		news = true;
	}
	return news;
}

/* The peer has said something new, though una stays. */
static void heard(struct rnic_qp *qp, uint64_t now)
{
	rc_of(qp)->req.retries = qp->attr.retry_cnt;
	sr_of(qp)->probes = 0;
	rc_restart_timer(qp, now);
}

/* Without a map the peer has kept nothing of what came: all of it goes again, once. */
static unsigned on_nak(struct rnic_qp *qp, const uint8_t *sack, const struct wire_pkt *pkt,
	uint64_t missing, bool progress, uint64_t now)
{
	struct rc_requester *req = &rc_of(qp)->req;
	struct sr *sr = sr_of(qp);
	const bool news = take_sack(qp, sack, pkt->pay_len, missing, now);

	if (req->una < missing)
		return rc_response_lost(qp, progress);
	if (req->rnr_wait)
		return 0;
	if (news && !progress)
		heard(qp, now);
	if (pkt->pay_len > 0)
		rc_rewind(qp);
	else if ((sr->order[req->una % SR_REACH] & 1) && !is_lost(sr, req->una))
		return 0;
	else if (progress)
		rc_go_back(qp);
	else
		rc_try_again(qp);
	return 0;
}

static bool last_packet(const struct rnic_qp *qp)
{
	const struct send_wqe *wqe = ring_at(&qp->sq, rc_of(qp)->req.next_idx);

	return rc_is_rd(wqe) || rc_of(qp)->req.next + 1 == wqe->first + rc_packets(qp, wqe);
}

/* As far as the next request without packets, which the caller passes. */
static void pass(struct rnic_qp *qp)
{
	struct sr *sr = sr_of(qp);
	struct rc_requester *req = &rc_of(qp)->req;

	while (req->next < req->high && !is_lost(sr, req->next)) {
		const struct send_wqe *wqe = ring_at(&qp->sq, req->next_idx);

		if (wqe_is_local(wqe))
			return;
		req->rd_out += rc_is_rd(wqe);
		rc_step(qp, last_packet(qp));
	}
}

static bool gap(const struct rnic_qp *qp)
{
	return sr_of(qp)->n_received > 0;
}

static const struct rc_recovery sr_recovery = {
	.reach = SR_REACH,
	.repeats_ask = true,
	.sent = sent,
	.progressed = progressed,
	.pass = pass,
	.go_back = go_back,
	.on_nak = on_nak,
	.timeout = timeout,
	.probe = probe,
	.gap = gap,
	.put_sack = put_sack,
};

/* ---- entry points ---- */

static int sr_check(const struct rnic *rnic, const struct rnic_qp_init *init)
{
	(void)rnic;
	return init->srq == NULL ? 0 : -EINVAL;
}

static int sr_check_attr(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if ((mask & IBV_QP_PATH_MTU) &&
		roce_mtu_bytes(attr->path_mtu) + SR_ROOM > qp->rnic->port[qp->port].mtu)
		return -EINVAL;
	return rc_check_attr(qp, attr, mask);
}

static unsigned sr_rx(struct rnic_qp *qp, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	(void)port;
	if (congestion_rx(qp, &rc_of(qp)->cc, pkt, now))
		return 0;
	if (pkt->flags & ROCE_F_REQUEST)
		return rx_request(qp, frame, pkt);
	return rc_rx_answer(qp, frame, pkt, now);
}

static void sr_reset(struct rnic_qp *qp)
{
	memset(sr_of(qp), 0, sizeof(struct sr));
	rc_reset(qp);
	rc_of(qp)->recovery = &sr_recovery;
}

static const struct transport_counter counters[] = {
	{"retransmits", offsetof(struct sr, rc.req.retransmits)},
	{"timeouts", offsetof(struct sr, rc.req.timeouts)},
	{"probes", offsetof(struct sr, n_probes)},
	{NULL, 0},
};

/* There may be thousands of queue pairs. Two tables of 8 bytes and one of 32 for each PSN of the
 * reach are 24 KB of it. */
static_assert(sizeof(struct rnic_qp) + sizeof(struct sr) <= 30000, "selective repeat's state");

const struct transport_ops rnic_sr = {
	.name = "sr",
	.type = IBV_QPT_RC,
	.connected = true,
	.opcodes = ROCE_SEL,
	.state_size = sizeof(struct sr),
	.send_ops = RC_SEND_OPS,
	.transitions = rc_transitions,
	.counters = counters,
	.check = sr_check,
	.check_attr = sr_check_attr,
	.set_attr = rc_set_attr,
	.query = rc_query,
	.stats = rc_stats,
	.enter = rc_enter,
	.fail = rc_fail_all,
	.reset = sr_reset,
	.rx = sr_rx,
	.tx_control = rc_tx_control,
	.tx = rc_tx,
	.timer = rc_timer,
	.port = rc_port,
	.refuse = rc_refuse_all,
};
