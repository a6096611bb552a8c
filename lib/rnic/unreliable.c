/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending half of UC and UD: a request is done when its last packet has left. The frame refers
 * to its memory until the next call into the device; only then may the completion show, since who
 * sees it may write there at once, from another thread. */
#include "lib/rnic/unreliable.h"

#include <errno.h>

#include "lib/rnic/window.h"
#include "lib/wire/psn.h"

static struct unreliable *of(const struct rnic_qp *qp)
{
	return transport_state(qp);
}

static void settle_drain(struct rnic_qp *qp)
{
	struct unreliable *un = of(qp);

	if (!un->draining || un->sent > 0 || un->all_sent)
		return;
	un->draining = false;
	if (qp->attr.en_sqd_async_notify)
		qp_event(qp, IBV_EVENT_SQ_DRAINED);
}

static void settle(struct rnic_qp *qp)
{
	struct unreliable *un = of(qp);

	if (!un->all_sent)
		return;
	un->all_sent = false;
	un->sent = 0;
	qp_complete_send(qp, IBV_WC_SUCCESS);
	settle_drain(qp);
}

struct send_wqe *unreliable_next(struct rnic_qp *qp)
{
	enum ibv_qp_state state = qp_state(qp);

	settle(qp);
	if (state == IBV_QPS_ERR)
		qp_flush(qp);
	else if (state == IBV_QPS_SQE)
		qp_sq_error(qp);
	if (state != IBV_QPS_RTS && (state != IBV_QPS_SQD || of(qp)->sent == 0))
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

void unreliable_sent(struct rnic_qp *qp, const struct send_wqe *wqe, uint32_t len)
{
	struct unreliable *un = of(qp);

	un->sent += len;
	un->all_sent = un->sent == wqe->len;
	un->psn = psn_add(un->psn, 1);
}

void unreliable_refuse(struct rnic_qp *qp)
{
	qp_complete_send(qp, IBV_WC_LOC_PROT_ERR);
	qp_sq_error(qp);
}

/* ---- attributes and states ---- */

int unreliable_check_attr(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	(void)attr;
	return (mask & IBV_QP_AV) && of(qp)->draining ? -EINVAL : 0;
}

void unreliable_query(const struct rnic_qp *qp, struct ibv_qp_attr *attr)
{
	attr->sq_psn = of(qp)->psn;
	attr->sq_draining = of(qp)->draining;
}

void unreliable_stats(const struct rnic_qp *qp, struct rnic_qp_stats *stats)
{
	stats->sq_una = stats->sq_next = of(qp)->psn;
}

void unreliable_enter(
	struct rnic_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, uint64_t now)
{
	(void)now;
	if (to == IBV_QPS_RTS && from == IBV_QPS_RTR)
		of(qp)->psn = qp->attr.sq_psn;
	if (to == IBV_QPS_SQD || from == IBV_QPS_SQD) {
		settle(qp);
		of(qp)->draining = to == IBV_QPS_SQD;
		settle_drain(qp);
	}
}

void unreliable_fail(struct rnic_qp *qp)
{
	settle(qp);
	of(qp)->sent = 0;
}
