/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending half of UC and UD: a request is done when its last packet has left. The frame refers
 * to its memory until the next call into the device; only then may the completion show, since who
 * sees it may write there at once, from another thread. */
#include "lib/rnic/unacked.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/rc.h"
#include "lib/rnic/ring.h"
#include "lib/rnic/window.h"
#include "lib/rnic/wqe.h"

static void settle_drain(struct rnic_qp *qp)
{
	if (!qp->req.draining || qp->sent > 0 || qp->all_sent)
		return;
	qp->req.draining = false;
	if (qp->attr.en_sqd_async_notify)
		qp_event(qp, IBV_EVENT_SQ_DRAINED);
}

void unacked_settle(struct rnic_qp *qp)
{
	if (!qp->all_sent)
		return;
	qp->all_sent = false;
	qp->sent = 0;
	qp_complete_send(qp, IBV_WC_SUCCESS);
	settle_drain(qp);
}

struct send_wqe *unacked_next(struct rnic_qp *qp)
{
	enum ibv_qp_state state = qp_state(qp);

	unacked_settle(qp);
	if (state == IBV_QPS_ERR)
		qp_flush(qp);
	else if (state == IBV_QPS_SQE)
		qp_sq_error(qp);
	if (state != IBV_QPS_RTS && (state != IBV_QPS_SQD || qp->sent == 0))
		return NULL;
	while (ring_tail(&qp->sq) != ring_head(&qp->sq)) {
		struct send_wqe *wqe = ring_at(&qp->sq, ring_tail(&qp->sq));
		enum ibv_wc_status status;

		if (!wqe_is_local(wqe))
			return wqe;
		status = window_run(qp, wqe);
		qp_complete_send(qp, status);
		if (status != IBV_WC_SUCCESS) {
			qp_sq_error(qp);
			return NULL;
		}
	}
	return NULL;
}

void unacked_sent(struct rnic_qp *qp, const struct send_wqe *wqe, uint32_t len)
{
	qp->sent += len;
	qp->all_sent = qp->sent == wqe->len;
	qp->req.una = qp->req.next = ++qp->req.high;
}

void unacked_drain(struct rnic_qp *qp, bool on)
{
	unacked_settle(qp);
	qp->req.draining = on;
	settle_drain(qp);
}

void unacked_start_send(struct rnic_qp *qp)
{
	qp->req.una = qp->req.next = qp->req.high = qp->attr.sq_psn;
}

void unacked_reset(struct rnic_qp *qp)
{
	qp->req = (struct rc_requester){0};
	qp->resp = (struct rc_responder){0};
	qp->sent = 0;
	qp->all_sent = false;
}

void unacked_timer(struct rnic_qp *qp)
{
	(void)qp;
}

bool unacked_tx_answer(struct rnic_qp *qp, struct rnic_frame *frame)
{
	(void)qp, (void)frame;
	return false;
}
