/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable datagrams (IBTA vol. 1, 9.8.3): one packet each, with the sender's network header in
 * front of what is received. */
#include <endian.h>
#include <string.h>

#include "lib/rnic/ah.h"
#include "lib/rnic/mcast.h"
#include "lib/rnic/mcast_place.h"
#include "lib/rnic/placement.h"
#include "lib/rnic/unreliable.h"

/* Somebody here, be it the sender itself; with a window it has no use for that. */
static bool hears(const struct rnic_qp *qp, const struct wire_ip *group)
{
	return qp->window != NULL ? mcast_other_member(qp, group)
				  : mcast_member(qp->rnic, qp->path.port, group);
}

static bool ud_tx(struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	const struct send_wqe *wqe = unreliable_next(qp);
	struct wire_hdr hdr = {.opcode = ROCE_UD | ROCE_SEND_ONLY, .mig = true, .sqpn = qp->qpn};
	const struct ud_dest *dest;

	(void)ports, (void)now;
	if (wqe == NULL)
		return false;
	if (gather_payload(qp->init.pd, wqe, 0, wqe->len, frame) < 0) {
		unreliable_refuse(qp);
		return false;
	}
	dest = (const struct ud_dest *)((const uint8_t *)wqe + qp->dest_off);
	hdr.opcode += wqe->opcode == IBV_WR_SEND_WITH_IMM;
	hdr.imm = wqe->imm;
	hdr.se = wqe->solicited;
	hdr.dqpn = dest->qpn;
	/* IBTA vol. 1, 10.2.5: the QP's own where the request's has the upper bit. */
	hdr.qkey = dest->qkey & 0x80000000 ? qp->attr.qkey : dest->qkey;
	hdr.psn = ((const struct unreliable *)transport_state(qp))->psn;
	frame_build(qp->rnic, &dest->path, frame, &hdr, wqe->len);
	qp->rnic->copy_back = dest->path.multicast && hears(qp, &dest->path.flow.dst);
	unreliable_sent(qp, wqe, wqe->len);
	return true;
}

/* A datagram is not answered, and waits for nothing. */
static enum tx_control ud_tx_control(
	struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	(void)qp, (void)ports, (void)frame, (void)now;
	return CONTROL_NONE;
}

static void ud_timer(struct rnic_qp *qp, uint64_t now)
{
	(void)qp, (void)now;
}

static void ud_reset(struct rnic_qp *qp)
{
	mcast_window_close(qp);
	*(struct unreliable *)transport_state(qp) = (struct unreliable){0};
}

enum { GRH_LEN = 40 };

/* The 40 bytes in front of a datagram: the IPv6 header, or the IPv4 one in their second half. */
static void make_grh(uint8_t grh[GRH_LEN], const uint8_t *frame, const struct wire_pkt *pkt)
{
	const uint8_t *l3 = frame + pkt->l3_off;
	size_t len = pkt->ip_ver == 4 ? sizeof(struct ip4_hdr) : sizeof(struct wire_ip6_hdr);

	memset(grh, 0, GRH_LEN);
	memcpy(grh + GRH_LEN - len, l3, len);
}

/* Into the receive request that was taken. */
static void place_grh(const struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	const struct recv_wqe *wqe = qp_recv(qp);
	const struct placement where = {.kind = PLACE_LIST, .sge = wqe->sge, .n_sge = wqe->n_sge};
	uint8_t grh[GRH_LEN];

	make_grh(grh, frame, pkt);
	place_payload(qp->init.pd, &where, grh, GRH_LEN);
}

/* A17.4.5.1: a completion says which header is in those 40 bytes. Where, the annex leaves open;
 * ConnectX does it in the service level, which Ethernet has no other use for, and UCX reads it
 * there. */
enum { SL_IP6 = 1, SL_IP4 = 2, SL_UDP = 8 };

static void complete(struct rnic_qp *qp, const struct wire_pkt *pkt, enum ibv_wc_status status)
{
	struct ibv_wc wc = {.status = status,
		.sl = SL_UDP | (pkt->ip_ver == 4 ? SL_IP4 : SL_IP6),
		.opcode = IBV_WC_RECV,
		.byte_len = GRH_LEN + pkt->pay_len,
		.src_qp = pkt->sqpn,
		.wc_flags = IBV_WC_GRH};

	if (pkt->flags & ROCE_F_IMM) {
		wc.imm_data = htobe32(pkt->imm);
		wc.wc_flags |= IBV_WC_WITH_IMM;
	}
	qp_complete_recv(qp, &wc, pkt->se);
}

static unsigned ud_rx(struct rnic_qp *qp, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	struct place_flow flow = {.unmatched = PLACE_DROP};
	struct placement where = {.kind = PLACE_LIST};
	const struct recv_wqe *wqe;

	(void)port, (void)now;
	if (pkt->qkey != qp->attr.qkey)
		return RNIC_DROP_QKEY;
	if (qp->window != NULL) {
		if (pkt->dqpn != MULTICAST_QPN || !(pkt->flags & ROCE_F_IMM))
			return RNIC_DROP_UNSUPPORTED;
		return mcast_has_memory(qp, qp->window) ? mcast_place_datagram(qp, frame, pkt)
							: RNIC_DROP_ACCESS;
	}
	if (pkt->pay_len > qp->mtu)
		return RNIC_DROP_LENGTH;
	flow.posted = qp_take_recv(qp);
	if (place_decide(&flow, 0, 1).verdict != PLACE_ACCEPT)
		return RNIC_DROP_RNR;
	wqe = qp_recv(qp);
	if ((uint64_t)GRH_LEN + pkt->pay_len > wqe->len)
		return RNIC_DROP_LENGTH;
	where.sge = wqe->sge;
	where.n_sge = wqe->n_sge;
	if (place_check(qp->init.pd, &where, GRH_LEN + pkt->pay_len) < 0) {
		complete(qp, pkt, IBV_WC_LOC_PROT_ERR);
		qp_break(qp);
		return RNIC_DROP_ACCESS;
	}
	place_grh(qp, frame, pkt);
	where.offset = GRH_LEN;
	place_payload(qp->init.pd, &where, frame + pkt->pay_off, pkt->pay_len);
	complete(qp, pkt, IBV_WC_SUCCESS);
	return 0;
}

/* Behind the header, in the receive request that is next; nothing of that is looked at before it
 * completes. In one piece, as most are. */
static uint8_t *ud_place(const struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt,
	uint16_t *headers)
{
	const size_t len = GRH_LEN + (size_t)pkt->pay_len;
	struct placement where = {.kind = PLACE_LIST};
	const struct recv_wqe *wqe;
	uint8_t *to;

	(void)frame, (void)headers;
	if (qp->window != NULL || pkt->qkey != qp->attr.qkey || pkt->pay_len > qp->mtu ||
		pkt->pay_len == 0)
		return NULL;
	wqe = qp_next_recv(qp);
	if (wqe == NULL)
		return NULL;
	where.sge = wqe->sge;
	where.n_sge = wqe->n_sge;
	to = place_piece(qp->init.pd, &where, len);
	return to != NULL ? to + GRH_LEN : NULL;
}

static void ud_rx_placed(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now)
{
	(void)now;
	(void)qp_take_recv(qp); /* there was one */
	place_grh(qp, frame, pkt);
	complete(qp, pkt, IBV_WC_SUCCESS);
}

const struct transport_ops rnic_ud = {
	.name = "ud",
	.type = IBV_QPT_UD,
	.by_worker = true,
	.opcodes = ROCE_UD,
	.state_size = sizeof(struct unreliable),
	.send_ops = 1 << IBV_WR_SEND | 1 << IBV_WR_SEND_WITH_IMM,
	.transitions = ud_transitions,
	.query = unreliable_query,
	.stats = unreliable_stats,
	.enter = unreliable_enter,
	.fail = unreliable_fail,
	.reset = ud_reset,
	.rx = ud_rx,
	.place = ud_place,
	.rx_placed = ud_rx_placed,
	.tx_control = ud_tx_control,
	.tx = ud_tx,
	.timer = ud_timer,
};
