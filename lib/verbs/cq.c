/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues. */
#include <errno.h>
#include <stdlib.h>

#include "lib/verbs/exports.h"
#include "lib/verbs/internal.h"

static void init_base(struct iv_cq *cq, struct ibv_context *context, void *cq_context,
	struct ibv_comp_channel *channel)
{
	cq->base.context = context;
	cq->base.channel = channel;
	cq->base.cq_context = cq_context;
	cq->base.handle = iv_handle(iv_ctx(context));
	cq->base.cqe = (int)rnic_cq_depth(cq->cq);
	pthread_mutex_init(&cq->base.mutex, NULL);
	pthread_cond_init(&cq->base.cond, NULL);
	pthread_mutex_init(&cq->lock, NULL);
	pthread_mutex_init(&cq->batch_lock, NULL);
	cq->async.cq = &cq->base;
}

static struct iv_cq *create(struct ibv_context *context, unsigned cqe, void *cq_context,
	struct ibv_comp_channel *channel, unsigned comp_vector)
{
	struct iv_ctx *ctx = iv_ctx(context);
	struct iv_cq *cq;
	int ret;

	if (comp_vector >= (unsigned)context->num_comp_vectors || cqe == 0 || cqe > INT32_MAX ||
		(channel && channel->context != context)) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	iv_own(ctx->dev);
	ret = rnic_cq_create(ctx->dev->rnic, cqe, cq, &cq->cq);
	iv_disown(ctx->dev);
	if (ret) {
		free(cq);
		iv_errno(ret);
		return NULL;
	}
	init_base(cq, context, cq_context, channel);
	pthread_mutex_lock(&ctx->lock);
	if (channel)
		channel->refcnt++;
	LIST_INSERT_HEAD(&ctx->cqs, cq, link);
	pthread_mutex_unlock(&ctx->lock);
	return cq;
}

struct ibv_cq *iv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
	struct ibv_comp_channel *channel, int comp_vector)
{
	struct iv_cq *cq = create(
		context, cqe < 0 ? 0 : (unsigned)cqe, cq_context, channel, (unsigned)comp_vector);

	return cq ? &cq->base : NULL;
}

struct ibv_cq_ex *iv_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	struct iv_cq *cq;

	if ((attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS) ||
		((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attr->flags & ~flags))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cq = create(context, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector);
	if (!cq)
		return NULL;
	if (iv_cq_ex_init(cq, attr->wc_flags)) {
		iv_cq_free(cq);
		errno = EOPNOTSUPP;
		return NULL;
	}
	return &cq->ex;
}

int iv_resize_cq(struct ibv_cq *base, int cqe)
{
	struct iv_cq *cq = iv_cq(base);
	struct iv_dev *dev = iv_dev(base->context);
	int ret = -EINVAL;

	pthread_mutex_lock(&cq->lock);
	iv_own(dev);
	if (cqe > 0)
		ret = rnic_cq_resize(cq->cq, (unsigned)cqe);
	if (ret == 0)
		base->cqe = (int)rnic_cq_depth(cq->cq);
	iv_disown(dev);
	pthread_mutex_unlock(&cq->lock);
	return ret ? iv_errno(ret) : 0;
}

/* Takes the CQ from the rnic: -EBUSY while a QP uses it. */
static int detach(struct iv_cq *cq)
{
	struct iv_dev *dev = iv_dev(cq->base.context);
	int ret;

	pthread_mutex_lock(&cq->lock);
	iv_own(dev);
	ret = rnic_cq_destroy(cq->cq);
	iv_disown(dev);
	if (ret == 0)
		cq->cq = NULL;
	pthread_mutex_unlock(&cq->lock);
	return ret;
}

void iv_cq_free(struct iv_cq *cq)
{
	struct iv_ctx *ctx = iv_ctx(cq->base.context);

	if (cq->cq)
		detach(cq);
	iv_cq_forget_events(cq);
	iv_async_forget(ctx, &cq->async);
	pthread_mutex_lock(&ctx->lock);
	if (cq->base.channel)
		cq->base.channel->refcnt--;
	LIST_REMOVE(cq, link);
	pthread_mutex_unlock(&ctx->lock);
	pthread_mutex_destroy(&cq->base.mutex);
	pthread_cond_destroy(&cq->base.cond);
	pthread_mutex_destroy(&cq->lock);
	pthread_mutex_destroy(&cq->batch_lock);
	free(cq);
}

/* The application still has pointers to the CQ in events it has not acknowledged. */
static void await_acks(struct iv_cq *cq)
{
	struct iv_ctx *ctx = iv_ctx(cq->base.context);
	struct iv_channel *channel = (struct iv_channel *)cq->base.channel;
	unsigned comp = 0, async;

	iv_cq_forget_events(cq);
	iv_async_forget(ctx, &cq->async);
	if (channel) {
		pthread_mutex_lock(&channel->lock);
		comp = cq->got;
		pthread_mutex_unlock(&channel->lock);
	}
	pthread_mutex_lock(&ctx->async_lock);
	async = cq->async.got;
	pthread_mutex_unlock(&ctx->async_lock);
	pthread_mutex_lock(&cq->base.mutex);
	while (cq->base.comp_events_completed != comp || cq->base.async_events_completed != async)
		pthread_cond_wait(&cq->base.cond, &cq->base.mutex);
	pthread_mutex_unlock(&cq->base.mutex);
}

int iv_destroy_cq(struct ibv_cq *base)
{
	struct iv_cq *cq = iv_cq(base);
	int ret = detach(cq);

	if (ret)
		return iv_errno(ret);
	await_acks(cq);
	iv_cq_free(cq);
	return 0;
}

/* ---- completions ---- */

static int poll_once(struct iv_cq *cq, int n, struct ibv_wc *wc)
{
	int ret;

	pthread_mutex_lock(&cq->lock);
	ret = rnic_cq_poll(cq->cq, n, wc);
	pthread_mutex_unlock(&cq->lock);
	if (ret < 0) {
		iv_errno(ret);
		return -1;
	}
	return ret;
}

int iv_poll_cq(struct ibv_cq *base, int n, struct ibv_wc *wc)
{
	struct iv_cq *cq = iv_cq(base);
	struct iv_dev *dev = iv_dev(base->context);
	int ret = poll_once(cq, n, wc);
	unsigned work;

	if (ret != 0 || n <= 0) {
		atomic_store_explicit(&cq->empty, 0, memory_order_relaxed);
		return ret;
	}
	/* Nothing there: do the work that could bring something. */
	atomic_fetch_add_explicit(&dev->polling, 1, memory_order_relaxed);
	work = iv_progress(dev);
	if (work)
		atomic_store_explicit(&cq->empty, 0, memory_order_relaxed);
	else
		iv_idle(dev, atomic_fetch_add_explicit(&cq->empty, 1, memory_order_relaxed));
	atomic_store_explicit(&dev->polled_ns,
		atomic_load_explicit(&dev->turn_ns, memory_order_relaxed), memory_order_relaxed);
	atomic_fetch_sub_explicit(&dev->polling, 1, memory_order_relaxed);
	return work ? poll_once(cq, n, wc) : 0;
}

int iv_req_notify_cq(struct ibv_cq *base, int solicited_only)
{
	struct iv_cq *cq = iv_cq(base);

	pthread_mutex_lock(&cq->lock);
	rnic_cq_arm(cq->cq, solicited_only != 0);
	pthread_mutex_unlock(&cq->lock);
	return 0;
}
