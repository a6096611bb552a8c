/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs and work requests. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/libmrc/internal.h"

enum { SEND_OPS = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM };

static int check_init(const struct mrc_context *ctx, const struct mrc_qp_init_attr *init)
{
	if (!ctx || !init || !init->send_cq || !init->recv_cq || !init->pd ||
		init->send_cq->ctx != ctx || init->recv_cq->ctx != ctx || init->send_cq->is_ev ||
		init->recv_cq->is_ev || init->pd->context != ctx->verbs)
		return EINVAL;
	if (init->protocol_version != MRC_PROTOCOL_VERSION_0 &&
		init->protocol_version != MRC_PROTOCOL_VERSION_1)
		return EINVAL;
	return init->send_ops_flags & ~(uint64_t)SEND_OPS ? EOPNOTSUPP : 0;
}

static struct ibv_qp *create_verbs(struct mrc_qp *qp)
{
	struct ibv_qp_init_attr init = {
		.qp_context = qp,
		.send_cq = qp->init.send_cq->cq,
		.recv_cq = qp->init.recv_cq->cq,
		.cap = qp->init.cap,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = qp->init.sq_sig_all,
	};
	struct ibv_qp *made = qp->ctx->dev->dv->create_qp(qp->init.pd, &init);

	qp->init.cap = init.cap;
	return made;
}

API struct mrc_qp *mrc_create_qp(struct mrc_context *ctx, struct mrc_qp_init_attr *init)
{
	int ret = check_init(ctx, init);
	struct mrc_qp *qp;

	if (ret) {
		errno = ret;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->ctx = ctx;
	qp->init = *init;
	if (!qp->init.send_ops_flags)
		qp->init.send_ops_flags = SEND_OPS;
	qp->attr = mrc_qp_defaults();
	qp->qp = create_verbs(qp);
	if (!qp->qp) {
		free(qp);
		return NULL;
	}
	init->cap = qp->init.cap;
	pthread_mutex_init(&qp->lock, NULL);
	pthread_mutex_lock(&ctx->dev->lock);
	LIST_INSERT_HEAD(&ctx->dev->qps, qp, link);
	pthread_mutex_unlock(&ctx->dev->lock);
	atomic_fetch_add(&ctx->children, 1);
	return qp;
}

API int mrc_destroy_qp(struct mrc_qp *qp)
{
	struct mrc_dev *dev;
	int ret;

	if (!qp)
		return mrc_errno(EINVAL);
	dev = qp->ctx->dev;
	pthread_mutex_lock(&dev->lock);
	LIST_REMOVE(qp, link);
	pthread_mutex_unlock(&dev->lock);
	ret = ibv_destroy_qp(qp->qp);
	if (ret) {
		pthread_mutex_lock(&dev->lock);
		LIST_INSERT_HEAD(&dev->qps, qp, link);
		pthread_mutex_unlock(&dev->lock);
		return mrc_errno(ret);
	}
	mrc_qp_release(qp);
	pthread_mutex_destroy(&qp->lock);
	atomic_fetch_sub(&qp->ctx->children, 1);
	free(qp);
	return 0;
}

API int mrc_get_qpn(struct mrc_qp *qp, uint32_t *qpn)
{
	if (!qp || !qpn)
		return mrc_fail(EINVAL);
	*qpn = qp->qp->qp_num;
	return 0;
}

/* ---- work requests ---- */

static bool may_post(const struct mrc_qp *qp, const struct ibv_send_wr *wr)
{
	const unsigned flags =
		IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE | IBV_SEND_FENCE;

	if (wr->send_flags & ~flags)
		return false;
	if (wr->opcode == IBV_WR_RDMA_WRITE)
		return qp->init.send_ops_flags & IBV_QP_EX_WITH_RDMA_WRITE;
	return wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM &&
	       qp->init.send_ops_flags & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
}

/* What comes before a request that is not MRC's is posted. */
API int mrc_post_send(struct mrc_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct ibv_send_wr *at = wr, *last = NULL;
	int ret = 0;

	if (!qp || !wr || !bad_wr)
		return mrc_errno(EINVAL);
	while (at && may_post(qp, at)) {
		last = at;
		at = at->next;
	}
	if (last) {
		last->next = NULL;
		ret = ibv_post_send(qp->qp, wr, bad_wr);
		last->next = at;
	}
	if (!ret && at) {
		*bad_wr = at;
		ret = EINVAL;
	}
	return ret ? mrc_errno(ret) : 0;
}

API int mrc_post_recv(struct mrc_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int ret;

	if (!qp || !wr || !bad_wr)
		return mrc_errno(EINVAL);
	ret = ibv_post_recv(qp->qp, wr, bad_wr);
	return ret ? mrc_errno(ret) : 0;
}
