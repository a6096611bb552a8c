/* SPDX-License-Identifier: BSD-3-Clause */
/* RC with selective acknowledgement, for links that lose and reorder. Each packet says where its
 * payload belongs (PosETH, and a RETH in every packet of a WRITE): what comes behind a missing one
 * is placed at once, its headers wait for their turn, and completions come in order. The responder
 * tells what has come; the requester sends again only what has not. All else is as in
 * requester.c and responder.c. */
#include <errno.h>
#include <string.h>

#include "lib/rnic/mr.h"
#include "lib/rnic/placement.h"
#include "lib/rnic/rc.h"
#include "lib/rnic/window.h"

enum {
	MAP_EVERY = 4, /* packets behind a missing one, if none of them asks */
	MIN_PROBE_NS = 3000,
	FIRST_PROBE_NS = 1000000, /* while no round trip is known */
	EARLY_PROBES = 2,         /* that wait no longer than the first: they may be lost, too */
	MAX_PROBES = 20,
};

struct sr {
	struct rc rc;
	struct rc_selective sel;
};

/* ---- responder: what is behind a missing one ---- */

static const struct message_fault POSITION = {
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
	uint32_t tail = ring_tail(&qp->rq), ahead = pkt->pos_recv - rc_of(qp)->sel->recvs;

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
	if (pkt->pos_recv != rc_of(qp)->sel->recvs)
		return false;
	if (pkt->flags & ROCE_F_FIRST)
		return pkt->pos_offset == 0;
	return pkt->pos_offset == resp->message.received &&
	       (!(pkt->flags & ROCE_F_WRITE) ||
		       (pkt->va == resp->message.va && pkt->rkey == resp->message.rkey &&
			       pkt->dmalen == resp->message.dmalen));
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
		rc_of(qp)->sel->recvs++;
	if (rc_is_rd_request(pkt))
		forget(rc_of(qp)->sel, pkt->psn, rc_of(qp)->resp.epsn);
	return 0;
}

/* The missing one, and all that waited for it. */
static unsigned take_turns(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	struct rc_selective *sel = rc_of(qp)->sel;
	unsigned drop;

	mark(sel, pkt->psn, false);
	drop = turn(qp, frame, pkt, false);
	while (drop == 0 && qp_receives(qp) && is_taken(sel, rc_of(qp)->resp.epsn)) {
		const struct wire_pkt *next = &sel->pkt[rc_of(qp)->resp.epsn % SEL_REACH];

		mark(sel, next->psn, false);
		if (turn(qp, NULL, next, true) != 0)
			break;
	}
	return drop;
}

static unsigned keep(struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	struct rc_selective *sel = rc_of(qp)->sel;

	sel->pkt[pkt->psn % SEL_REACH] = *pkt;
	mark(sel, pkt->psn, true);
	rc_ahead(qp, pkt->psn, pkt->ackreq || ++sel->unsaid >= MAP_EVERY);
	return 0;
}

static unsigned rx_request(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	int32_t at = psn_diff(pkt->psn, rc_of(qp)->resp.epsn);
	struct place_flow flow = {.reach = SEL_REACH,
		.posted = at,
		.unmatched = rc_is_rd_request(pkt) ? PLACE_BUFFER : PLACE_DEFER};
	struct placement where;
	unsigned drop = RNIC_DROP_SEQUENCE;

	if (at == 0)
		return take_turns(qp, frame, pkt);
	if (at > 0 && at < SEL_REACH && is_taken(rc_of(qp)->sel, pkt->psn)) {
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
	struct rc_selective *sel = rc_of(qp)->sel;
	uint32_t from = psn_add(rc_of(qp)->resp.epsn, 1) % SEL_REACH;
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
	sel->unsaid = 0;
	frame->iov[0].base = sel->map;
	frame->iov[0].len = len;
	frame->n_iov = 1;
	return len;
}

/* ---- requester: what has arrived ---- */

static bool is_here(const struct rc_selective *sel, uint64_t seq)
{
	return sel->sacked[seq % SEL_REACH] == seq;
}

static bool is_lost(const struct rc_selective *sel, uint64_t seq)
{
	const uint64_t order = sel->order[seq % SEL_REACH];

	if (is_here(sel, seq))
		return false;
	return order & 1 ? order / 2 <= sel->newest : seq < sel->sack_end;
}

static void lose(struct rc_selective *sel, uint64_t seq)
{
	sel->order[seq % SEL_REACH] = 1;
}

/* The oldest one always goes: if it is a READ, its answer may be what was lost. */
void sel_go_back(struct rnic_qp *qp)
{
	struct rc_selective *sel = rc_of(qp)->sel;
	const struct rc_requester *req = &rc_of(qp)->req;

	sel->sacked[req->una % SEL_REACH] = ~req->una;
	for (uint64_t seq = req->una; seq < req->high && seq < req->una + SEL_REACH; seq++)
		lose(sel, seq);
}

/* Up at once, down slowly: a peer in software is quick at times. */
static void heard(struct rc_selective *sel, uint64_t now)
{
	const uint64_t rtt = now - sel->rtt_from;

	sel->rtt_from = 0;
	sel->rtt_ns = rtt < sel->rtt_ns ? sel->rtt_ns - (sel->rtt_ns - rtt) / 8 : rtt;
}

static void arrived(struct rc_selective *sel, uint64_t seq, uint64_t now)
{
	const uint64_t order = sel->order[seq % SEL_REACH];

	if (order / 2 > sel->newest)
		sel->newest = order / 2;
	if (!(order & 1) && seq >= sel->sack_end)
		sel->sack_end = seq + 1;
	if (sel->rtt_from != 0 && seq == sel->rtt_seq)
		heard(sel, now);
}

void sel_sent(struct rnic_qp *qp, bool asks, uint64_t now)
{
	struct rc_selective *sel = rc_of(qp)->sel;
	const uint64_t seq = rc_of(qp)->req.next;
	const bool again = seq < rc_of(qp)->req.high;

	if (sel->n_sent++ == 0)
		sel->acked = seq;
	sel->order[seq % SEL_REACH] = 2 * sel->n_sent + again;
	if (again && seq == sel->rtt_seq) {
		sel->rtt_from = 0;
	} else if (!again && asks && sel->rtt_from == 0) {
		sel->rtt_seq = seq;
		sel->rtt_from = now;
	}
}

void sel_progressed(struct rnic_qp *qp, uint64_t now)
{
	struct rc_selective *sel = rc_of(qp)->sel;

	sel->probes = 0;
	for (; sel->acked < rc_of(qp)->req.una; sel->acked++)
		if (!is_here(sel, sel->acked))
			arrived(sel, sel->acked, now);
}

uint64_t sel_timeout(struct rnic_qp *qp, uint64_t limit)
{
	struct rc_selective *sel = rc_of(qp)->sel;
	uint64_t wait = sel->rtt_ns + sel->rtt_ns / 2;

	if (sel->rtt_ns == 0)
		wait = FIRST_PROBE_NS;
	else if (wait < MIN_PROBE_NS)
		wait = MIN_PROBE_NS;
	wait <<= sel->probes > EARLY_PROBES ? sel->probes - EARLY_PROBES : 0;
	sel->probing = limit == 0 || wait < limit;
	return sel->probing ? wait : limit;
}

/* The oldest that have not arrived. */
bool sel_probe(struct rnic_qp *qp)
{
	struct rc_selective *sel = rc_of(qp)->sel;
	const struct rc_requester *req = &rc_of(qp)->req;
	unsigned n = 0;

	if (!sel->probing)
		return false;
	sel->probes += sel->probes < MAX_PROBES;
	rnic_inc(qp->rnic, RNIC_C_PROBES);
	sel->sacked[req->una % SEL_REACH] = ~req->una;
	for (uint64_t seq = req->una; seq < req->high && n < SEL_PROBE; seq++)
		if (!is_here(sel, seq)) {
			lose(sel, seq);
			n++;
		}
	rc_rewind(qp);
	rc_retry_at(qp, UINT64_MAX); /* the oldest one starts it */
	return true;
}

/* True if a packet of which it was not known has arrived. */
static bool take_map(
	struct rnic_qp *qp, const uint8_t *map, unsigned len, uint64_t missing, uint64_t now)
{
	struct rc_selective *sel = rc_of(qp)->sel;
	bool news = false;

	for (unsigned i = 0; i < len * 8 && i < SEL_REACH - 1; i++) {
		uint64_t seq = missing + 1 + i;

		if (!roce_sack_bit(map, i) || seq >= rc_of(qp)->req.high || is_here(sel, seq))
			continue;
		sel->sacked[seq % SEL_REACH] = seq;
		arrived(sel, seq, now);
		news = true;
	}
	return news;
}

/* Without a map the peer has kept nothing of what came: all of it goes again, once. */
unsigned sel_rx_nak(struct rnic_qp *qp, const uint8_t *map, const struct wire_pkt *pkt,
	uint64_t missing, bool progress, uint64_t now)
{
	struct rc_requester *req = &rc_of(qp)->req;
	struct rc_selective *sel = rc_of(qp)->sel;
	const bool news = take_map(qp, map, pkt->pay_len, missing, now);

	rnic_inc(qp->rnic, RNIC_C_NAK_RX);
	if (req->una < missing)
		return rc_response_lost(qp, progress);
	if (req->rnr_wait)
		return 0;
	if (news && !progress)
		rc_heard(qp, now);
	if (pkt->pay_len > 0)
		rc_rewind(qp);
	else if ((sel->order[req->una % SEL_REACH] & 1) && !is_lost(sel, req->una))
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
void sel_pass(struct rnic_qp *qp)
{
	struct rc_selective *sel = rc_of(qp)->sel;
	struct rc_requester *req = &rc_of(qp)->req;

	while (req->next < req->high && !is_lost(sel, req->next)) {
		const struct send_wqe *wqe = ring_at(&qp->sq, req->next_idx);

		if (wqe_is_local(wqe))
			return;
		req->rd_out += rc_is_rd(wqe);
		rc_step(qp, last_packet(qp));
	}
}

/* ---- entry points ---- */

static int sr_check(const struct rnic *rnic, const struct rnic_qp_init *init)
{
	(void)rnic;
	return init->srq == NULL ? 0 : -EINVAL;
}

static int sr_check_attr(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if ((mask & IBV_QP_PATH_MTU) &&
		roce_mtu_bytes(attr->path_mtu) + SEL_ROOM > qp->rnic->port_mtu)
		return -EINVAL;
	return rc_check_attr(qp, attr, mask);
}

static unsigned sr_rx(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now)
{
	if (congestion_rx(qp, &rc_of(qp)->cc, pkt, now))
		return 0;
	if (pkt->flags & ROCE_F_REQUEST)
		return rx_request(qp, frame, pkt);
	return rc_rx_answer(qp, frame, pkt, now);
}

static void sr_reset(struct rnic_qp *qp)
{
	struct sr *sr = transport_state(qp);

	rc_reset(qp);
	memset(&sr->sel, 0, sizeof(sr->sel));
	sr->rc.sel = &sr->sel;
}

const struct transport_ops rnic_sr = {
	.name = "sr",
	.type = IBV_QPT_RC,
	.connected = true,
	.opcodes = ROCE_SEL,
	.state_size = sizeof(struct sr),
	.send_ops = RC_SEND_OPS,
	.transitions = rc_transitions,
	.counters = rc_counters,
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
	.refuse = rc_refuse_all,
};
