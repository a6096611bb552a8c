/* SPDX-License-Identifier: BSD-3-Clause */
/* What arrives for a queue pair. */
#include <endian.h>

#include "lib/mrc/transport_priv.h"
#include "lib/rnic/mr.h"
#include "lib/rnic/placement.h"
#include "lib/wire/psn.h"
#include "lib/wire/roce.h"

enum { BYTES_BESIDE = 40 }; /* that both ends add to a packet's UDP length (docs/mrc.md, 9.1) */

static struct mrc_met met_of(const struct mrc_conn *c, const uint8_t *frame,
	const struct wire_pkt *pkt, const struct mrc_pkt *m, uint64_t now)
{
	struct mrc_met met = {.ev = mrc_ev_get(frame + pkt->l3_off, c->dev->set.ev_order),
		.ecn = (pkt->tos & IP_ECN_MASK) == IP_ECN_CE,
		.bytes = (uint32_t)(pkt->end - pkt->l4_off) + BYTES_BESIDE,
		.at = now};

	if (m->kind == MRC_KIND_PROBE)
		met.ts = m->probe.ts;
	else if (m->kind == MRC_KIND_DATA && m->depth >= MRC_DEPTH_TS && m->data.has_ts)
		met.ts = m->data.ts;
	return met;
}

/* ---- data ---- */

/* Its own bytes; and at the start of a message, all of it. */
static bool may_write(const struct rnic_qp *qp, const struct mrc_data *d)
{
	const struct placement all = {.kind = PLACE_REMOTE, .qp = qp, .rkey = d->rkey, .va = d->va};

	return !(d->place & MRC_FIRST) || place_check(qp->init.pd, &all, d->dmalen) == 0;
}

static bool place(const struct rnic_qp *qp, const struct mrc_data *d, const uint8_t *payload)
{
	const struct placement to = {.kind = PLACE_REMOTE, .qp = qp, .rkey = d->rkey, .va = d->va};

	return may_write(qp, d) && place_payload(qp->init.pd, &to, payload, d->pay_len) == 0;
}

static void receive_done(struct rnic_qp *qp, const struct mrc_wimm *wimm)
{
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS,
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.byte_len = wimm->bytes,
		.imm_data = htobe32(wimm->imm),
		.wc_flags = IBV_WC_WITH_IMM};

	qp_complete_recv(qp, &wc, wimm->se);
}

static enum ibv_event_type event_of(uint8_t syndrome)
{
	return syndrome == (ROCE_AETH_NAK | ROCE_NAK_REMOTE_ACCESS) ? IBV_EVENT_QP_ACCESS_ERR
								    : IBV_EVENT_QP_REQ_ERR;
}

/* What has become whole: immediates in order; or it is over, and the NAK still leaves. */
static void advance(struct mrc_conn *c)
{
	struct mrc_wimm wimm;
	enum mrc_step step;

	while ((step = mrc_rsp_step(&c->rsp, &wimm)) == MRC_STEP_WIMM) {
		if (qp_take_recv(c->qp))
			receive_done(c->qp, &wimm);
		else
			mrc_rsp_fail(&c->rsp, wimm.psn, ROCE_AETH_NAK | ROCE_NAK_REMOTE_OPERATION);
	}
	if (step != MRC_STEP_FAILED || c->refused)
		return;
	c->refused = true;
	qp_has_control(c->qp);
	qp_event(c->qp, event_of(c->rsp.syndrome));
	qp_error(c->qp);
}

/* The First tells where all of its message goes, if its DMALen is the message's. */
static void note_part(struct mrc_conn *c, const struct mrc_data *d)
{
	const uint32_t pmtu = c->rsp.c.pmtu;
	struct mrc_part *part = &c->part;

	if (d->place != MRC_FIRST || d->dmalen <= pmtu)
		return;
	*part = (struct mrc_part){.psn = d->psn,
		.n = (d->dmalen + pmtu - 1) / pmtu,
		.rkey = d->rkey,
		.dmalen = d->dmalen,
		.va = d->va,
		.mr_changes = c->qp->rnic->mr_changes};
	part->memory =
		mr_translate_remote(c->qp, d->rkey, d->va, d->dmalen, IBV_ACCESS_REMOTE_WRITE);
	if (part->memory == NULL)
		part->n = 0;
}

/* Its PSN alone tells where, unless that has come; its address has to agree, so that what belongs
 * to another message is verified first. Not the message's end. */
static uint8_t *place_in_part(const struct mrc_conn *c, const struct mrc_data *d)
{
	const struct mrc_part *part = &c->part;
	const uint32_t at = (d->psn - part->psn) & PSN_MASK;
	const uint64_t ahead = (uint64_t)at * c->rsp.c.pmtu;

	if (part->n == 0 || at == 0 || at + 1 >= part->n || d->place != MRC_MIDDLE ||
		d->rkey != part->rkey || d->dmalen != part->dmalen || d->va != part->va + ahead ||
		part->mr_changes != c->qp->rnic->mr_changes || c->rsp.failed ||
		mrc_rsp_look(&c->rsp, d) != MRC_NEW)
		return NULL;
	return part->memory + ahead;
}

/* PSNs come round: a message that is whole is none any more. */
static void forget_part(struct mrc_conn *c)
{
	if (c->part.n != 0 &&
		!psn_lt(c->rsp.rcv.cack, psn_add(c->part.psn, (int32_t)c->part.n - 1)))
		c->part.n = 0;
}

/* placed: its payload is where it belongs. */
static unsigned rx_data(struct mrc_conn *c, const uint8_t *frame, const struct wire_pkt *pkt,
	const struct mrc_pkt *m, bool placed, const struct mrc_met *met, uint64_t now)
{
	const uint8_t *bth = frame + pkt->l4_off + sizeof(struct udp_hdr);
	const struct mrc_data *d = &m->data;
	enum mrc_arrival arrival;

	if (!placed && mrc_rsp_look(&c->rsp, d) == MRC_NEW && !place(c->qp, d, bth + m->pay_off)) {
		mrc_rsp_refuse(&c->rsp, d->psn, ROCE_AETH_NAK | ROCE_NAK_REMOTE_ACCESS);
		advance(c);
		return RNIC_DROP_ACCESS;
	}
	mrc_reverse_received(&c->reverse);
	arrival = mrc_rsp_data(&c->rsp, d, met, now);
	if (arrival == MRC_NEW)
		note_part(c, d);
	forget_part(c);
	advance(c);
	switch (arrival) {
	case MRC_NEW:
		c->placed++;
		return 0;
	case MRC_BEYOND:
		return RNIC_DROP_SEQUENCE;
	case MRC_MISFIT:
		return RNIC_DROP_LENGTH;
	default:
		c->again++;
		if (d->rtx)
			mrc_reverse_repeated(&c->reverse, &c->evs, d->psn);
		return RNIC_DROP_DUPLICATE;
	}
}

static unsigned rx_cut(struct mrc_conn *c, const struct wire_pkt *pkt, const struct mrc_pkt *m,
	const struct mrc_met *met, uint64_t now)
{
	if (c->dev->c.no_trim_nack)
		return RNIC_DROP_CUT;
	mrc_reverse_received(&c->reverse);
	mrc_rsp_trimmed(&c->rsp, m->data.psn, mrc_is_cut_last(c->dev, pkt->tos), met, now);
	return 0;
}

/* ---- words of the peer ---- */

static unsigned rx_sack(struct mrc_conn *c, const struct mrc_sack *sack, uint64_t now)
{
	const int ev = mrc_evset_echoed(&c->evs, sack->entropy);

	if (mrc_req_sack(&c->req, sack, now) < 0)
		return RNIC_DROP_ACK_RANGE;
	if (sack->mark == MRC_MARK_NONE && !sack->probe)
		mrc_reverse_worked(&c->reverse, &c->evs, ev);
	return 0;
}

static unsigned rx_word(struct mrc_conn *c, const struct mrc_pkt *m, uint64_t now)
{
	unsigned drop = 0;

	if (!c->sends)
		return RNIC_DROP_ACK_RANGE;
	if (m->kind == MRC_KIND_SACK)
		drop = rx_sack(c, &m->sack, now);
	else if (m->kind == MRC_KIND_NACK)
		drop = mrc_req_nack(&c->req, &m->nack, now) < 0 ? RNIC_DROP_ACK_RANGE : 0;
	else
		drop = mrc_req_ack(&c->req, &m->ack, now) < 0 ? RNIC_DROP_ACK_RANGE : 0;
	if (drop != 0)
		return drop;
	rnic_inc(c->qp->rnic, m->kind == MRC_KIND_NACK ? RNIC_C_NAK_RX : RNIC_C_ACK_RX);
	c->words++;
	qp_ready(c->qp);
	return 0;
}

static void hear(struct mrc_conn *c)
{
	if (c->heard)
		return;
	c->heard = true;
	if (qp_state(c->qp) == IBV_QPS_RTR)
		qp_event(c->qp, IBV_EVENT_COMM_EST);
}

static unsigned take(struct mrc_conn *c, const uint8_t *frame, const struct wire_pkt *pkt,
	const struct mrc_pkt *m, bool cut, bool placed, uint64_t now)
{
	const struct mrc_met met = met_of(c, frame, pkt, m, now);

	switch (m->kind) {
	case MRC_KIND_DATA:
		hear(c);
		return cut ? rx_cut(c, pkt, m, &met, now)
			   : rx_data(c, frame, pkt, m, placed, &met, now);
	case MRC_KIND_PROBE:
		mrc_rsp_probe(&c->rsp, &m->probe, &met);
		return 0;
	case MRC_KIND_SACK:
	case MRC_KIND_NACK:
	case MRC_KIND_ACK:
		return rx_word(c, m, now);
	default:
		return RNIC_DROP_UNSUPPORTED;
	}
}

static bool from_peer(const struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	return wire_ip_eq(&pkt->src, &qp->path.flow.dst) &&
	       wire_ip_eq(&pkt->dst, &qp->path.flow.src);
}

uint8_t *mrc_place(const struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt,
	uint16_t *headers)
{
	const size_t bth = pkt->l4_off + sizeof(struct udp_hdr);
	const struct mrc_conn *c = conn_of(qp);
	struct mrc_dev *dev = c->dev;
	struct mrc_pkt *m = &dev->placed;

	if (c->part.n == 0 || pkt->dqpn == MRC_ENDPOINT_QPN || !from_peer(qp, pkt) ||
		mrc_is_cut(dev, pkt->tos) ||
		dev->c.codec->decode(frame + bth, pkt->end - bth, false, m) != MRC_OK ||
		m->kind != MRC_KIND_DATA)
		return NULL;
	*headers = (uint16_t)(bth + m->pay_off - pkt->pay_off);
	return place_in_part(c, &m->data);
}

void mrc_rx_placed(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now)
{
	struct mrc_conn *c = conn_of(qp);

	mrc_count_way(c->dev, pkt, false);
	(void)take(c, frame, pkt, &c->dev->placed, false, true, now);
	mrc_settle(c, now);
}

unsigned mrc_rx(struct rnic_qp *qp, unsigned port, const uint8_t *frame, const struct wire_pkt *pkt,
	uint64_t now)
{
	const size_t bth = pkt->l4_off + sizeof(struct udp_hdr);
	struct mrc_conn *c = conn_of(qp);
	const bool cut = mrc_is_cut(c->dev, pkt->tos);
	enum mrc_drop bad;
	struct mrc_pkt m;
	unsigned drop;

	(void)port; /* a peer may use any */
	if (!from_peer(qp, pkt))
		return RNIC_DROP_SOURCE;
	bad = c->dev->c.codec->decode(frame + bth, pkt->end - bth, cut, &m);
	if (bad != MRC_OK)
		return RNIC_DROP_MRC_SHORT - MRC_DROP_SHORT + bad;
	drop = take(c, frame, pkt, &m, cut, false, now);
	mrc_settle(c, now);
	return drop;
}
