/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in and out, and the time. */
#include <errno.h>
#include <string.h>

#include "lib/rnic/cq.h"
#include "lib/rnic/device.h"
#include "lib/rnic/gsi.h"
#include "lib/rnic/mcast.h"
#include "lib/rnic/neigh.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/scheduler.h"
#include "lib/rnic/timer.h"
#include "lib/rnic/transport.h"
#include "lib/wire/cm.h"
#include "lib/wire/icrc.h"
#include "lib/wire/multicast.h"

enum { LOOPBACK_MAX = 64 }; /* frames a device hands to itself in one call of rnic_tx */

/* ---- receiving ---- */

bool qp_receives(const struct rnic_qp *qp)
{
	enum ibv_qp_state state = qp_state(qp);

	return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
	       state == IBV_QPS_SQE;
}

static unsigned rx_roce(
	struct rnic *rnic, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now)
{
	struct rnic_qp *qp;

	if (wire_is_multicast(&pkt->dst))
		return mcast_rx(rnic, frame, pkt, now);
	if (pkt->dqpn == CM_QPN)
		return gsi_rx(rnic, frame, pkt);
	qp = rnic_qp_find(rnic, pkt->dqpn);
	if (qp == NULL)
		return RNIC_DROP_NO_QP;
	if (!qp_receives(qp))
		return RNIC_DROP_QP_STATE;
	if (!qp->ops->connected)
		return (pkt->opcode & ~ROCE_OP_MASK) == qp->ops->opcodes
			       ? qp->ops->rx(qp, frame, pkt, now)
			       : RNIC_DROP_QP_TYPE;
	if (!wire_ip_eq(&pkt->src, &qp->flow.dst) || !wire_ip_eq(&pkt->dst, &qp->flow.src))
		return RNIC_DROP_SOURCE;
	if ((pkt->opcode & ~ROCE_OP_MASK) != qp->ops->opcodes && pkt->opcode != ROCE_CNP)
		return RNIC_DROP_QP_TYPE;
	return qp->ops->rx(qp, frame, pkt, now);
}

static unsigned rx_echo(struct rnic *rnic, const uint8_t *frame, const struct wire_pkt *pkt)
{
	uint8_t *out;

	if (rnic_own_ip(rnic, &pkt->dst) < 0)
		return RNIC_DROP_NOT_MINE;
	if (pkt->end > rnic->reply_cap)
		return RNIC_DROP_LENGTH;
	out = rnic_reply(rnic);
	if (out == NULL)
		return RNIC_DROP_REPLY_QUEUE;
	memcpy(out, frame, pkt->end);
	wire_icmp_echo_reply(out, pkt);
	/* To a multicast MAC, perhaps; the answer does not come from there. */
	memcpy(out + 6, rnic->mac, sizeof(rnic->mac));
	rnic_reply_send(rnic, pkt->end);
	return 0;
}

/* Opcodes that lib/wire does not know, but perhaps a transport here. */
static unsigned parse_own(const struct rnic *rnic, const uint8_t *frame, struct wire_pkt *pkt)
{
	const uint32_t own = atomic_load_explicit(&rnic->own_codecs, memory_order_relaxed);
	unsigned drop = own != 0 ? wire_parse_bth(frame, pkt) : WIRE_BTH_OPCODE;

	return drop == WIRE_OK && !(own >> (pkt->opcode >> 5) & 1) ? WIRE_BTH_OPCODE : drop;
}

/* Of what is constant in a device only, but for n_mcast and own_codecs, which are atomic. */
static unsigned check(
	const struct rnic *rnic, const uint8_t *frame, size_t len, struct wire_pkt *pkt)
{
	unsigned drop = wire_parse(frame, len, pkt);

	if (drop == WIRE_BTH_OPCODE)
		drop = parse_own(rnic, frame, pkt);
	if (drop != WIRE_OK)
		return drop;
	if (!(frame[0] & 1) && memcmp(frame, rnic->mac, sizeof(rnic->mac)) != 0)
		return RNIC_DROP_NOT_MINE;
	if (pkt->vlan & 0xfff)
		return RNIC_DROP_NOT_MINE;
	if (pkt->kind != WIRE_ROCE)
		return 0;
	if (wire_is_multicast(&pkt->dst)
			? atomic_load_explicit(&rnic->n_mcast, memory_order_relaxed) == 0
			: rnic_own_ip(rnic, &pkt->dst) < 0)
		return RNIC_DROP_NOT_MINE;
	return wire_icrc_ok(frame, pkt) ? 0 : WIRE_ICRC_BAD;
}

void rnic_check(
	const struct rnic *rnic, const uint8_t *frame, size_t len, struct rnic_checked *checked)
{
	checked->drop = check(rnic, frame, len, &checked->pkt);
	checked->done = true;
}

static unsigned take(
	struct rnic *rnic, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now)
{
	switch (pkt->kind) {
	case WIRE_ROCE:
		return rx_roce(rnic, frame, pkt, now);
	case WIRE_ARP:
	case WIRE_ND_NS:
	case WIRE_ND_NA:
		return neigh_rx(rnic, pkt, frame, now);
	case WIRE_ICMP_ECHO:
		return rx_echo(rnic, frame, pkt);
	default:
		return RNIC_DROP_NOT_ROCE;
	}
}

unsigned rnic_rx_checked(struct rnic *rnic, const uint8_t *frame, size_t len,
	const struct rnic_checked *checked, uint64_t now)
{
	unsigned drop;

	if (!checked->done)
		return rnic_rx(rnic, frame, len, now);
	rnic->rx_at = now;
	drop = checked->drop ? checked->drop : take(rnic, frame, &checked->pkt, now);
	if (rnic->cq_overrun)
		cq_settle(rnic);
	rnic_inc(rnic, RNIC_C_RX_FRAMES);
	rnic->count[RNIC_C_RX_BYTES] += len;
	if (drop == 0)
		rnic_inc(rnic, RNIC_C_RX_ACCEPTED);
	else
		rnic->drop[drop]++;
	return drop;
}

unsigned rnic_rx(struct rnic *rnic, const uint8_t *frame, size_t len, uint64_t now)
{
	struct rnic_checked checked;

	rnic_check(rnic, frame, len, &checked);
	return rnic_rx_checked(rnic, frame, len, &checked, now);
}

unsigned rnic_readers(const struct rnic *rnic, const uint8_t *frame, size_t len)
{
	struct wire_pkt pkt;

	if (wire_parse(frame, len, &pkt) != WIRE_OK ||
		(!(frame[0] & 1) && memcmp(frame, rnic->mac, sizeof(rnic->mac)) != 0))
		return RNIC_READS;
	if (pkt.vlan & 0xfff)
		return STACK_READS;
	switch (pkt.kind) {
	case WIRE_ROCE:
		return RNIC_READS;
	case WIRE_ARP:
		return pkt.arp_op == ARP_REQUEST && rnic_own_ip(rnic, &pkt.dst) >= 0
			       ? RNIC_READS
			       : RNIC_READS | STACK_READS;
	case WIRE_ND_NS:
		return rnic_own_ip(rnic, &pkt.nd_target) >= 0 ? RNIC_READS
							      : RNIC_READS | STACK_READS;
	case WIRE_ND_NA:
		return RNIC_READS | STACK_READS;
	default:
		return STACK_READS;
	}
}

/* ---- sending ---- */

/* Headers are in place. */
static void finish(struct rnic_frame *frame, uint32_t before, uint32_t share, size_t pay_len)
{
	unsigned pad = wire_pad(pay_len);

	memset(frame->tail, 0, pad);
	frame->tail_len = (uint16_t)(pad + ROCE_ICRC_LEN);
	frame->len = (uint32_t)(frame->head_len + pay_len + frame->tail_len);
	frame->crc_before = before;
	frame->crc_share = share;
	frame->unsealed = true;
}

void frame_build(struct rnic *rnic, const struct wire_flow *flow, struct rnic_frame *frame,
	struct wire_hdr *hdr, size_t pay_len)
{
	size_t l3 = wire_l3_off(flow->vlan);

	hdr->ip_id = rnic->ip_id++;
	frame->head_len =
		(uint16_t)wire_build_headers(frame->head, sizeof(frame->head), flow, hdr, pay_len);
	finish(frame, icrc_headers(frame->head + l3, frame->head_len - l3), 0, pay_len);
}

void frame_finish_own(struct rnic_frame *frame, size_t l3_off, size_t head_len, size_t pay_len)
{
	frame->head_len = (uint16_t)head_len;
	finish(frame, icrc_headers(frame->head + l3_off, head_len - l3_off), 0, pay_len);
}

void frame_finish(
	struct rnic_qp *qp, struct rnic_frame *frame, struct wire_hdr *hdr, size_t pay_len)
{
	uint32_t share;

	if (pay_len != qp->mtu || roce_ext_len(roce_opcode_flags(hdr->opcode)) != 0) {
		frame_build(qp->rnic, &qp->flow, frame, hdr, pay_len);
		return;
	}
	hdr->ip_id = qp->rnic->ip_id++;
	share = wire_template_write(&qp->full, hdr, 0, frame->head);
	frame->head_len = qp->full.len;
	finish(frame, 0, share, pay_len);
}

int rnic_frame_flatten(const struct rnic_frame *frame, uint8_t *out, size_t cap)
{
	uint8_t *at = out + frame->head_len;
	uint32_t crc = frame->crc_before;

	if (frame->len > cap)
		return -ENOSPC;
	memcpy(out, frame->head, frame->head_len);
	for (unsigned i = 0; i < frame->n_iov; i++) {
		/* One reading: the program may write to its memory at any time, and what leaves is
		 * what the ICRC must be of. */
		if (frame->unsealed)
			crc = icrc_copy(crc, at, frame->iov[i].base, frame->iov[i].len);
		else
			memcpy(at, frame->iov[i].base, frame->iov[i].len);
		at += frame->iov[i].len;
	}
	memcpy(at, frame->tail, frame->tail_len);
	if (frame->unsealed) {
		/* Payload and pad append to what is before them; the rest was worked out from the
		 * headers. */
		const size_t pad = frame->tail_len - (size_t)ROCE_ICRC_LEN;

		if (pad)
			crc = icrc_append(crc, at, pad);
		icrc_store(at + pad, crc ^ frame->crc_share);
	}
	return (int)frame->len;
}

uint8_t *rnic_reply(struct rnic *rnic)
{
	if (rnic->reply_head - rnic->reply_tail == N_REPLIES)
		return NULL;
	return rnic->reply[rnic->reply_head % N_REPLIES].bytes;
}

void rnic_reply_send(struct rnic *rnic, int len)
{
	if (len <= 0)
		return;
	rnic->reply[rnic->reply_head++ % N_REPLIES].len = (uint32_t)len;
	atomic_store_explicit(&rnic->left, true, memory_order_relaxed);
}

static bool tx_reply(struct rnic *rnic, struct rnic_frame *frame, bool *loopback)
{
	const struct reply *reply;

	if (rnic->reply_head == rnic->reply_tail)
		return false;
	reply = &rnic->reply[rnic->reply_tail++ % N_REPLIES];
	frame->head_len = frame->tail_len = frame->n_iov = 0;
	frame->len = reply->len;
	frame->qpn = 0;
	*loopback = memcmp(reply->bytes, rnic->mac, sizeof(rnic->mac)) == 0;
	if (reply->len <= sizeof(frame->head)) {
		memcpy(frame->head, reply->bytes, reply->len);
		frame->head_len = (uint16_t)reply->len;
	} else {
		frame->iov[0].base = reply->bytes;
		frame->iov[0].len = reply->len;
		frame->n_iov = 1;
	}
	return true;
}

/* Sent so many of a list in a row, it waits until the others had their turn. */
static bool used_up(uint8_t *budget)
{
	if (--*budget > 0)
		return false;
	*budget = QUANTUM;
	return true;
}

static bool tx_control(struct rnic *rnic, struct rnic_frame *frame, bool *loopback, uint64_t now)
{
	struct rnic_qp *qp;

	while ((qp = TAILQ_FIRST(&rnic->controls)) != NULL) {
		enum tx_control got = qp->ops->tx_control(qp, frame, now);

		rnic->sched_steps++;
		if (got != CONTROL_MORE) {
			TAILQ_REMOVE(&rnic->controls, qp, control);
			qp->en_control = false;
		} else if (used_up(&qp->budget)) {
			TAILQ_REMOVE(&rnic->controls, qp, control);
			TAILQ_INSERT_TAIL(&rnic->controls, qp, control);
		}
		*loopback = qp->loopback;
		frame->qpn = qp->qpn;
		if (got != CONTROL_NONE)
			return true;
	}
	return false;
}

static bool tx_request(struct rnic *rnic, struct rnic_frame *frame, bool *loopback, uint64_t now)
{
	struct rnic_qp *qp;

	while ((qp = TAILQ_FIRST(&rnic->ready)) != NULL) {
		rnic->sched_steps++;
		if (!qp->ops->tx(qp, frame, now)) {
			TAILQ_REMOVE(&rnic->ready, qp, ready);
			qp->en_ready = false;
			continue;
		}
		if (used_up(&qp->quantum)) {
			TAILQ_REMOVE(&rnic->ready, qp, ready);
			TAILQ_INSERT_TAIL(&rnic->ready, qp, ready);
		}
		*loopback = qp->loopback;
		frame->qpn = qp->qpn;
		return true;
	}
	return false;
}

/* A frame of the device's own for itself. */
static void take_back(struct rnic *rnic, struct rnic_frame *frame, uint64_t now)
{
	rnic_rx(rnic, rnic->scratch,
		(size_t)rnic_frame_flatten(frame, rnic->scratch, rnic->reply_cap), now);
}

bool rnic_tx(struct rnic *rnic, struct rnic_frame *frame, uint64_t now)
{
	for (unsigned i = 0; i < LOOPBACK_MAX; i++) {
		bool loopback = false;

		if (rnic->cq_overrun)
			cq_settle(rnic);
		sched_collect(rnic);
		frame->stays = frame->unsealed = false;
		if (!tx_control(rnic, frame, &loopback, now) && !tx_reply(rnic, frame, &loopback) &&
			!tx_request(rnic, frame, &loopback, now) &&
			!tx_control(
				rnic, frame, &loopback, now)) { /* a READ that failed just now */
			if (rnic->cq_overrun)
				continue;
			atomic_store_explicit(&rnic->left, false, memory_order_relaxed);
			return false;
		}
		rnic_inc(rnic, RNIC_C_TX_FRAMES);
		rnic->count[RNIC_C_TX_BYTES] += frame->len;
		if (rnic->copy_back) {
			rnic->copy_back = false;
			take_back(rnic, frame, now);
		}
		if (!loopback)
			return true;
		take_back(rnic, frame, now);
	}
	return false;
}

/* ---- time ---- */

uint64_t rnic_deadline(const struct rnic *rnic)
{
	return rnic->timers.n > 0 ? rnic->timers.slot[0].key : UINT64_MAX;
}

static void expire(struct rnic *rnic, struct timer *timer, uint64_t now)
{
	char *at = (char *)timer;
	struct rnic_qp *qp;

	switch (timer->kind) {
	case TIMER_NEIGH:
		neigh_timer(rnic, (struct neigh *)(at - offsetof(struct neigh, timer)), now);
		break;
	case TIMER_QP:
		qp = (struct rnic_qp *)(at - offsetof(struct rnic_qp, timer));
		qp->ops->timer(qp, now);
		break;
	}
}

void rnic_timer(struct rnic *rnic, uint64_t now)
{
	struct timer *timer;

	while ((timer = timer_expired(&rnic->timers, now)) != NULL)
		expire(rnic, timer, now);
	if (rnic->cq_overrun)
		cq_settle(rnic);
}
