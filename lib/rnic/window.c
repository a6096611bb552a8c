/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows (IBTA vol. 1, 10.6.7): bound and invalidated by requests of a send queue, in its
 * order, or invalidated by the peer's SEND with Invalidate. Type 1 belongs to a domain, type 2 to
 * the queue pair that bound it (2B: and its domain).
 *
 * A request to bind has in its fields: raddr and compare the range, rkey the new key, imm a key of
 * the window, swap_add the region's key and the rights above it. */
#include <errno.h>

#include "lib/rnic/device.h"
#include "lib/rnic/mr.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/window.h"
#include "lib/rnic/worker.h"
#include "lib/rnic/wqe.h"

enum {
	WINDOW_ACCESS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	/* A program may name it; the region's counts. */
	IGNORED = IBV_ACCESS_LOCAL_WRITE,
	RIGHTS_SHIFT = 32,
};

bool wqe_is_local(const struct send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_BIND_MW || wqe->opcode == IBV_WR_LOCAL_INV;
}

int window_post(struct send_wqe *wqe, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	if (wr->opcode == IBV_WR_LOCAL_INV) {
		wqe->imm = wr->invalidate_rkey;
		return 0;
	}
	if (info->mw_access_flags & ~(unsigned)(WINDOW_ACCESS | IGNORED))
		return -EOPNOTSUPP;
	if (wr->bind_mw.mw == NULL || (info->length > 0 && info->mr == NULL))
		return -EINVAL;
	wqe->raddr = info->addr;
	wqe->compare = info->length;
	wqe->rkey = wr->bind_mw.rkey;
	wqe->imm = wr->bind_mw.mw->rkey;
	wqe->swap_add = (uint64_t)(info->mw_access_flags & WINDOW_ACCESS) << RIGHTS_SHIFT |
			(info->length > 0 ? info->mr->lkey : 0);
	return 0;
}

void window_unbind(struct rnic_mr *mw)
{
	if (mw->region == NULL)
		return;
	mw->pd->rnic->mr_changes++;
	mw->region->windows--;
	mw->region = NULL;
	mw->len = 0;
	mw->access = 0;
}

/* The region that the range lies in, if it allows to bind a window with these rights. */
static struct rnic_mr *region_for(const struct rnic_qp *qp, const struct send_wqe *wqe, int access)
{
	uint32_t key = (uint32_t)wqe->swap_add;
	int need = IBV_ACCESS_MW_BIND;

	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC))
		need |= IBV_ACCESS_LOCAL_WRITE;
	return mr_translate(qp->init.pd, key, wqe->raddr, wqe->compare, need) != NULL
		       ? mr_find(qp->rnic, key)
		       : NULL;
}

static enum ibv_wc_status bind(struct rnic_qp *qp, const struct send_wqe *wqe)
{
	struct rnic_mr *mw = mr_find_any(qp->rnic, wqe->imm), *region = NULL;
	int access = (int)(wqe->swap_add >> RIGHTS_SHIFT);

	if (mw == NULL || mw->type == 0 || mw->pd != qp->init.pd ||
		wqe->rkey >> KEY_FREE_BITS != mw->key >> KEY_FREE_BITS)
		return IBV_WC_MW_BIND_ERR;
	/* Type 2 is invalidated before it is bound anew, type 1 by binding nothing. */
	if (mw->type == IBV_MW_TYPE_2 && (mw->region != NULL || wqe->compare == 0))
		return IBV_WC_MW_BIND_ERR;
	if (wqe->compare > 0) {
		region = region_for(qp, wqe, access);
		if (region == NULL)
			return IBV_WC_MW_BIND_ERR;
	}
	window_unbind(mw);
	mw->key = wqe->rkey;
	if (region == NULL)
		return IBV_WC_SUCCESS;
	mw->region = region;
	region->windows++;
	mw->qpn = qp->qpn;
	mw->iova = wqe->raddr;
	mw->addr = region->addr + (wqe->raddr - region->iova);
	mw->len = wqe->compare;
	mw->access = access;
	return IBV_WC_SUCCESS;
}

bool window_may_invalidate(const struct rnic_qp *qp, uint32_t key)
{
	const struct rnic_mr *mw = mr_find(qp->rnic, key);

	return mw != NULL && mw->type == IBV_MW_TYPE_2 && mw->region != NULL &&
	       mw->pd == qp->init.pd && mw->qpn == qp->qpn;
}

void window_invalidate(struct rnic_qp *qp, uint32_t key)
{
	struct rnic_mr *mw = mr_find(qp->rnic, key);

	if (mw == NULL)
		return;
	workers_hold(qp->rnic);
	window_unbind(mw);
	workers_let_go(qp->rnic);
}

static enum ibv_wc_status run(struct rnic_qp *qp, const struct send_wqe *wqe)
{
	if (wqe->opcode == IBV_WR_BIND_MW)
		return bind(qp, wqe);
	if (!window_may_invalidate(qp, wqe->imm))
		return IBV_WC_LOC_QP_OP_ERR;
	window_invalidate(qp, wqe->imm);
	return IBV_WC_SUCCESS;
}

enum ibv_wc_status window_run(struct rnic_qp *qp, const struct send_wqe *wqe)
{
	enum ibv_wc_status status;

	workers_hold(qp->rnic);
	status = run(qp, wqe);
	workers_let_go(qp->rnic);
	return status;
}
