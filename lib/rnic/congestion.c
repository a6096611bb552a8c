/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/rnic/congestion.h"

#include "lib/rnic/device.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/scheduler.h"

/* ---- DCQCN ---- */

static bool rate_notified(struct congestion *cc, uint64_t now)
{
	const bool cut = dcqcn_cnp(&cc->dcqcn, cc->params, now);

	cc->limited = cc->dcqcn.limited;
	return cut;
}

static uint64_t rate_hold(struct congestion *cc, uint64_t now)
{
	const uint64_t until = dcqcn_hold(&cc->dcqcn, cc->params, now);

	cc->limited = cc->dcqcn.limited;
	return until;
}

static void rate_sent(struct congestion *cc, uint32_t bytes, uint64_t now)
{
	dcqcn_sent(&cc->dcqcn, cc->params, bytes, now);
	cc->limited = cc->dcqcn.limited;
}

static uint64_t rate_now(const struct congestion *cc)
{
	return cc->dcqcn.rate;
}

const struct cc_ops cc_dcqcn = {
	.name = "dcqcn",
	.notified = rate_notified,
	.hold = rate_hold,
	.sent = rate_sent,
	.rate = rate_now,
};

/* ---- none: a flow is never limited ---- */

static bool none_notified(struct congestion *cc, uint64_t now)
{
	(void)cc, (void)now;
	return false;
}

const struct cc_ops cc_none = {.name = "none", .notified = none_notified};

/* ---- the flow ---- */

void congestion_init(struct congestion *cc, const struct rnic *rnic)
{
	*cc = (struct congestion){
		.ops = rnic->cnp_react ? &cc_dcqcn : &cc_none, .params = &rnic->dcqcn};
	cwnd_init(&cc->window, rnic->window_bytes);
}

void congestion_rx_cnp(struct rnic_qp *qp, struct congestion *cc, uint64_t now)
{
	rnic_inc(qp->rnic, RNIC_C_CNP_RX);
	if (!cc->ops->notified(cc, now))
		return;
	rnic_inc(qp->rnic, RNIC_C_RATE_CUTS);
	cwnd_cut(&cc->window);
}

void congestion_marked(struct rnic_qp *qp, struct congestion *cc, uint64_t now)
{
	if (!qp->rnic->cnp_notify || (cc->cnp_sent && now - cc->cnp_at < qp->rnic->cnp_ns))
		return;
	cc->cnp_sent = cc->cnp_due = true;
	cc->cnp_at = now;
	qp_has_control(qp);
}

/* To the QP that the marked packet came from, BECN set, 16 bytes of zeros. */
void congestion_tx_cnp(struct rnic_qp *qp, struct congestion *cc, struct rnic_frame *frame)
{
	static const uint8_t zeros[ROCE_CNP_LEN];
	struct rnic_path path = qp->path;
	struct wire_hdr hdr = {
		.opcode = ROCE_CNP, .mig = true, .becn = true, .dqpn = qp->attr.dest_qp_num};

	cc->cnp_due = false;
	path.flow.tos = qp->rnic->cnp_tos;
	path.full = NULL;
	frame->iov[0].base = zeros;
	frame->iov[0].len = sizeof(zeros);
	frame->n_iov = 1;
	frame_build(qp->rnic, &path, frame, &hdr, sizeof(zeros));
	rnic_inc(qp->rnic, RNIC_C_CNP_TX);
}

bool congestion_hold(struct rnic_qp *qp, struct congestion *cc, uint64_t now, uint64_t *until)
{
	*until = cc->ops->hold(cc, now);
	if (*until == 0)
		return false;
	rnic_inc(qp->rnic, RNIC_C_PACED);
	return true;
}
