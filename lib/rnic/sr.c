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

#include "lib/rnic/sr.h"
#include "lib/rnic/window.h"

enum {
	MIN_PROBE_NS = 3000,
	FIRST_PROBE_NS = 1000000, /* while no round trip is known */
	READ_GAPS = 4,            /* of a READ's answer that a probe waits for at least */
	EARLY_PROBES = 2,         /* that wait no longer than the first: they may be lost, too */
	MAX_PROBES = 20,
};

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

/* What is missing first is the answer to a READ or an atomic that has left. */
static bool awaits_rd(const struct rnic_qp *qp)
{
	const struct rc_requester *req = &rc_of(qp)->req;

	return req->una < req->high && rc_is_rd(ring_at(&qp->sq, req->una_idx));
}

/* An answer comes at the pace of the peer, whose rate this end is not told. The shorter of the last
 * two gaps: a lost packet makes one that is longer. */
static void sample_gap(struct rnic_qp *qp, uint64_t now)
{
	struct sr *sr = sr_of(qp);
	const uint64_t gap = now - sr->rd_from;

	if (sr->rd_from != 0) {
		sr->gap_ns = gap < sr->last_gap_ns ? gap : sr->last_gap_ns;
		sr->last_gap_ns = gap;
	}
	sr->rd_from = awaits_rd(qp) ? now : 0;
}

static void progressed(struct rnic_qp *qp, uint64_t now)
{
	struct sr *sr = sr_of(qp);

	sr->probes = 0;
	sample_gap(qp, now);
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
	if (awaits_rd(qp) && wait < READ_GAPS * sr->gap_ns)
		wait = READ_GAPS * sr->gap_ns;
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
	.put_sack = sr_put_sack,
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
		roce_mtu_bytes(attr->path_mtu) + SR_ROOM > qp->rnic->port[qp->path.port].mtu)
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
		return sr_rx_request(qp, frame, pkt);
	return rc_rx_answer(qp, frame, pkt, now);
}

static uint8_t *sr_place(const struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt,
	uint16_t *headers)
{
	(void)frame, (void)headers;
	return pkt->flags & ROCE_F_REQUEST ? sr_place_request(qp, pkt) : rc_place_response(qp, pkt);
}

static void sr_rx_placed(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now)
{
	(void)frame;
	(void)congestion_rx(qp, &rc_of(qp)->cc, pkt, now);
	if (pkt->flags & ROCE_F_REQUEST)
		sr_request_placed(qp, pkt);
	else
		rc_response_placed(qp, now);
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
	.place = sr_place,
	.rx_placed = sr_rx_placed,
	.tx_control = rc_tx_control,
	.tx = rc_tx,
	.timer = rc_timer,
	.port = rc_port,
	.refuse = rc_refuse_all,
};
