/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/rnic/uc_mcast.h"

#include <errno.h>

#include "lib/rnic/mcast.h"
#include "lib/rnic/mcast_place.h"
#include "lib/rnic/unreliable.h"
#include "lib/rnic/wqe.h"

enum { WRITE_IMM = ROCE_UC | ROCE_WRITE_ONLY_IMM };

/* ---- sending ---- */

static bool uc_mcast_tx(struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	const struct send_wqe *wqe = unreliable_next(qp);
	struct wire_hdr hdr = {.opcode = WRITE_IMM,
		.mig = true,
		.dqpn = MULTICAST_QPN,
		.psn = ((const struct unreliable *)transport_state(qp))->psn};

	(void)ports, (void)now;
	if (wqe == NULL)
		return false;
	if (gather_payload(qp->init.pd, wqe, 0, wqe->len, frame) < 0) {
		unreliable_refuse(qp);
		return false;
	}
	hdr.se = wqe->solicited;
	hdr.imm = wqe->imm;
	hdr.va = wqe->raddr;
	hdr.rkey = wqe->rkey;
	hdr.dmalen = wqe->len;
	frame_build(qp->rnic, &qp->path, frame, &hdr, wqe->len);
	qp->rnic->copy_back = mcast_other_member(qp, &qp->path.flow.dst);
	unreliable_sent(qp, wqe, wqe->len);
	return true;
}

static enum tx_control uc_mcast_tx_control(
	struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	(void)qp, (void)ports, (void)frame, (void)now;
	return CONTROL_NONE;
}

static void uc_mcast_timer(struct rnic_qp *qp, uint64_t now)
{
	(void)qp, (void)now;
}

/* ---- receiving ---- */

static unsigned uc_mcast_rx(struct rnic_qp *qp, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	struct mcast_window *w = qp->window;

	(void)port, (void)now;
	if (pkt->opcode != WRITE_IMM)
		return RNIC_DROP_UNSUPPORTED;
	if (w == NULL || pkt->rkey != w->key ||
		!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) || !mcast_has_memory(qp, w))
		return RNIC_DROP_ACCESS;
	if (pkt->dmalen != pkt->pay_len)
		return RNIC_DROP_LENGTH;
	return w->marks.bit != NULL ? mcast_place_write(qp, frame, pkt)
				    : mcast_place_each(qp, frame, pkt);
}

/* ---- states ---- */

static int uc_mcast_check_attr(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if ((mask & IBV_QP_DEST_QPN) && attr->dest_qp_num != MULTICAST_QPN)
		return -EINVAL;
	return unreliable_check_attr(qp, attr, mask);
}

static void uc_mcast_reset(struct rnic_qp *qp)
{
	mcast_window_close(qp);
	*(struct unreliable *)transport_state(qp) = (struct unreliable){0};
}

const struct transport_ops rnic_uc_mcast = {
	.name = "uc-multicast",
	.type = IBV_QPT_UC,
	.connected = true,
	.multicast = true,
	.by_worker = true,
	.opcodes = ROCE_UC,
	.state_size = sizeof(struct unreliable),
	.send_ops = 1 << IBV_WR_RDMA_WRITE_WITH_IMM,
	.transitions = uc_transitions,
	.check_attr = uc_mcast_check_attr,
	.query = unreliable_query,
	.stats = unreliable_stats,
	.enter = unreliable_enter,
	.fail = unreliable_fail,
	.reset = uc_mcast_reset,
	.rx = uc_mcast_rx,
	.tx_control = uc_mcast_tx_control,
	.tx = uc_mcast_tx,
	.timer = uc_mcast_timer,
};
