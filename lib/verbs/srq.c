/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues. */
#include <errno.h>
#include <stdlib.h>

#include "lib/verbs/exports.h"
#include "lib/verbs/internal.h"

static struct iv_srq *iv_srq(struct ibv_srq *srq)
{
	return (struct iv_srq *)srq;
}

static struct ibv_srq *create(struct ibv_pd *pd, struct ibv_srq_attr *attr, void *user)
{
	struct iv_ctx *ctx = iv_ctx(pd->context);
	struct iv_srq *srq = calloc(1, sizeof(*srq));
	int ret;

	if (!srq)
		return NULL;
	iv_own(ctx->dev);
	ret = rnic_srq_create(((struct iv_pd *)pd)->pd, attr, srq, &srq->srq);
	iv_disown(ctx->dev);
	if (ret) {
		free(srq);
		iv_errno(ret);
		return NULL;
	}
	srq->base.context = pd->context;
	srq->base.srq_context = user;
	srq->base.pd = pd;
	srq->base.handle = iv_handle(ctx);
	srq->async.srq = &srq->base;
	pthread_mutex_init(&srq->base.mutex, NULL);
	pthread_cond_init(&srq->base.cond, NULL);
	pthread_mutex_init(&srq->lock, NULL);
	pthread_mutex_lock(&ctx->lock);
	LIST_INSERT_HEAD(&ctx->srqs, srq, link);
	pthread_mutex_unlock(&ctx->lock);
	return &srq->base;
}

struct ibv_srq *iv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	return create(pd, &init->attr, init->srq_context);
}

struct ibv_srq *iv_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;

	if ((init->comp_mask & ~known) ||
		((init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && init->srq_type != IBV_SRQT_BASIC)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!(init->comp_mask & IBV_SRQ_INIT_ATTR_PD) || init->pd->context != context) {
		errno = EINVAL;
		return NULL;
	}
	return create(init->pd, &init->attr, init->srq_context);
}

int iv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct iv_dev *dev = iv_dev(srq->context);
	int ret;

	iv_own(dev);
	ret = rnic_srq_modify(iv_srq(srq)->srq, attr, mask);
	iv_disown(dev);
	return ret ? iv_errno(ret) : 0;
}

int iv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct iv_dev *dev = iv_dev(srq->context);

	iv_own(dev);
	rnic_srq_query(iv_srq(srq)->srq, attr);
	iv_disown(dev);
	return 0;
}

static int detach(struct iv_srq *srq)
{
	struct iv_dev *dev = iv_dev(srq->base.context);
	int ret;

	pthread_mutex_lock(&srq->lock);
	iv_own(dev);
	ret = rnic_srq_destroy(srq->srq);
	iv_disown(dev);
	pthread_mutex_unlock(&srq->lock);
	return ret;
}

static void unlink_and_free(struct iv_srq *srq)
{
	struct iv_ctx *ctx = iv_ctx(srq->base.context);

	pthread_mutex_lock(&ctx->lock);
	LIST_REMOVE(srq, link);
	pthread_mutex_unlock(&ctx->lock);
	pthread_mutex_destroy(&srq->base.mutex);
	pthread_cond_destroy(&srq->base.cond);
	pthread_mutex_destroy(&srq->lock);
	free(srq);
}

void iv_srq_free(struct iv_srq *srq)
{
	detach(srq);
	iv_async_forget(iv_ctx(srq->base.context), &srq->async);
	unlink_and_free(srq);
}

int iv_destroy_srq(struct ibv_srq *base)
{
	struct iv_srq *srq = iv_srq(base);
	struct iv_ctx *ctx = iv_ctx(base->context);
	unsigned got;
	int ret = detach(srq);

	if (ret)
		return iv_errno(ret);
	iv_async_forget(ctx, &srq->async);
	pthread_mutex_lock(&ctx->async_lock);
	got = srq->async.got;
	pthread_mutex_unlock(&ctx->async_lock);
	pthread_mutex_lock(&base->mutex);
	while (base->events_completed != got)
		pthread_cond_wait(&base->cond, &base->mutex);
	pthread_mutex_unlock(&base->mutex);
	unlink_and_free(srq);
	return 0;
}

int iv_post_srq_recv(struct ibv_srq *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct iv_srq *srq = iv_srq(base);
	int ret = 0;

	pthread_mutex_lock(&srq->lock);
	for (; wr && ret == 0; wr = wr->next) {
		ret = rnic_srq_post_recv(srq->srq, wr);
		if (ret)
			*bad = wr;
	}
	pthread_mutex_unlock(&srq->lock);
	return ret ? iv_errno(ret) : 0;
}
