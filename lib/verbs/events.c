/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels and asynchronous events. Both are queues of sources beside an eventfd in
 * semaphore mode whose count is the number of queued events, always changed together under one
 * lock: the descriptor is readable exactly while an event can be had, so it works with poll() and
 * epoll. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/verbs/exports.h"
#include "lib/verbs/internal.h"

enum { EVENT_POLLS = 512, EVENT_POLLS_YIELD = 64 };

static void fd_up(int fd)
{
	(void)!eventfd_write(fd, 1);
}

static void fd_down(int fd)
{
	eventfd_t one;

	(void)!eventfd_read(fd, &one);
}

/* ---- waiting ---- */

/* The event is tried for, and the caller does the datapath's work, before it sleeps: the thread may
 * be in the middle of a nap. */
static bool poll_for(struct iv_dev *dev, bool (*take)(void *arg), void *arg)
{
	for (int i = 0; i < EVENT_POLLS; i++) {
		iv_progress(dev);
		if (take(arg))
			return true;
		if (dev->idle == PORT_IDLE_SLEEP && i >= EVENT_POLLS_YIELD)
			sched_yield();
	}
	return false;
}

/* Without a thread nobody else will bring the event: run the device until it is there. */
static bool run_for(struct iv_dev *dev, bool (*take)(void *arg), void *arg)
{
	for (;;) {
		unsigned work = iv_progress(dev);

		if (take(arg))
			return true;
		if (!work)
			dev->ops->wait(dev->port, atomic_load(&dev->deadline));
	}
}

/* 0 or -1 with errno, as the functions that wait return. */
static int wait_event(struct iv_dev *dev, int fd, bool (*take)(void *arg), void *arg)
{
	int flags;

	if (take(arg))
		return 0;
	flags = fcntl(fd, F_GETFL);
	if (flags >= 0 && (flags & O_NONBLOCK)) {
		iv_progress(dev);
		if (take(arg))
			return 0;
		errno = EAGAIN;
		return -1;
	}
	if (!dev->threaded)
		return run_for(dev, take, arg) ? 0 : -1;
	if (poll_for(dev, take, arg))
		return 0;
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (poll(&p, 1, -1) < 0)
			return -1; /* EINTR among others: the application decides */
		if (take(arg))
			return 0;
	}
}

/* ---- completion channels ---- */

struct ibv_comp_channel *iv_create_comp_channel(struct ibv_context *context)
{
	struct iv_ctx *ctx = iv_ctx(context);
	struct iv_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->base.context = context;
	channel->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (channel->base.fd < 0) {
		free(channel);
		return NULL;
	}
	pthread_mutex_init(&channel->lock, NULL);
	TAILQ_INIT(&channel->ready);
	pthread_mutex_lock(&ctx->lock);
	LIST_INSERT_HEAD(&ctx->channels, channel, link);
	pthread_mutex_unlock(&ctx->lock);
	return &channel->base;
}

void iv_channel_free(struct iv_channel *channel)
{
	struct iv_ctx *ctx = iv_ctx(channel->base.context);

	pthread_mutex_lock(&ctx->lock);
	LIST_REMOVE(channel, link);
	pthread_mutex_unlock(&ctx->lock);
	close(channel->base.fd);
	pthread_mutex_destroy(&channel->lock);
	free(channel);
}

int iv_destroy_comp_channel(struct ibv_comp_channel *base)
{
	struct iv_ctx *ctx = iv_ctx(base->context);
	int refs;

	pthread_mutex_lock(&ctx->lock);
	refs = base->refcnt;
	pthread_mutex_unlock(&ctx->lock);
	if (refs)
		return iv_errno(EBUSY);
	iv_channel_free((struct iv_channel *)base);
	return 0;
}

void iv_on_cq_event(void *arg, struct rnic_cq *rcq)
{
	struct iv_cq *cq = rnic_cq_user(rcq);
	struct iv_channel *channel = (struct iv_channel *)cq->base.channel;

	(void)arg;
	if (!channel)
		return;
	pthread_mutex_lock(&channel->lock);
	if (cq->pending++ == 0)
		TAILQ_INSERT_TAIL(&channel->ready, cq, ready_link);
	fd_up(channel->base.fd);
	pthread_mutex_unlock(&channel->lock);
}

struct take_cq {
	struct iv_channel *channel;
	struct iv_cq *cq;
};

static bool take_cq_event(void *arg)
{
	struct take_cq *take = arg;
	struct iv_channel *channel = take->channel;
	struct iv_cq *cq;

	pthread_mutex_lock(&channel->lock);
	cq = TAILQ_FIRST(&channel->ready);
	if (cq) {
		TAILQ_REMOVE(&channel->ready, cq, ready_link);
		if (--cq->pending)
			TAILQ_INSERT_TAIL(&channel->ready, cq, ready_link);
		cq->got++;
		fd_down(channel->base.fd);
		take->cq = cq;
	}
	pthread_mutex_unlock(&channel->lock);
	return cq != NULL;
}

int iv_get_cq_event(struct ibv_comp_channel *base, struct ibv_cq **cq, void **cq_context)
{
	struct take_cq take = {.channel = (struct iv_channel *)base};

	if (wait_event(iv_dev(base->context), base->fd, take_cq_event, &take))
		return -1;
	*cq = &take.cq->base;
	*cq_context = take.cq->base.cq_context;
	return 0;
}

void iv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += n;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

void iv_cq_forget_events(struct iv_cq *cq)
{
	struct iv_channel *channel = (struct iv_channel *)cq->base.channel;

	if (!channel)
		return;
	pthread_mutex_lock(&channel->lock);
	if (cq->pending)
		TAILQ_REMOVE(&channel->ready, cq, ready_link);
	for (; cq->pending; cq->pending--)
		fd_down(channel->base.fd);
	pthread_mutex_unlock(&channel->lock);
}

/* ---- asynchronous events ---- */

/* Takes the event at index i out of the queue of a source. */
static enum ibv_event_type async_remove(struct iv_async *src, unsigned i)
{
	const uint8_t type = src->pending[i];

	src->n_pending--;
	memmove(&src->pending[i], &src->pending[i + 1], src->n_pending - i);
	return (enum ibv_event_type)type;
}

void iv_async_raise(struct iv_ctx *ctx, struct iv_async *src, enum ibv_event_type type)
{
	const uint8_t *known;

	pthread_mutex_lock(&ctx->async_lock);
	known = memchr(src->pending, type, src->n_pending);
	if (known)
		async_remove(src, (unsigned)(known - src->pending));
	else
		fd_up(ctx->vctx.context.async_fd);
	if (src->n_pending == 0 && !known)
		TAILQ_INSERT_TAIL(&ctx->async_ready, src, link);
	src->pending[src->n_pending++] = (uint8_t)type;
	pthread_mutex_unlock(&ctx->async_lock);
}

void iv_on_qp_event(void *arg, struct rnic_qp *rqp, enum ibv_event_type type)
{
	struct iv_qp *qp = rnic_qp_user(rqp);

	(void)arg;
	iv_async_raise(iv_ctx(qp->base.context), &qp->async, type);
}

void iv_on_cq_error(void *arg, struct rnic_cq *rcq)
{
	struct iv_cq *cq = rnic_cq_user(rcq);

	(void)arg;
	iv_async_raise(iv_ctx(cq->base.context), &cq->async, IBV_EVENT_CQ_ERR);
}

void iv_on_srq_event(void *arg, struct rnic_srq *rsrq, enum ibv_event_type type)
{
	struct iv_srq *srq = rnic_srq_user(rsrq);

	(void)arg;
	iv_async_raise(iv_ctx(srq->base.context), &srq->async, type);
}

void iv_on_port_event(void *arg, unsigned port, enum ibv_event_type type)
{
	struct iv_dev *dev = arg;
	struct iv_ctx *ctx;

	pthread_mutex_lock(&dev->list_lock);
	LIST_FOREACH(ctx, &dev->contexts, link)
	iv_async_raise(ctx, &ctx->port_async[port], type);
	pthread_mutex_unlock(&dev->list_lock);
}

void iv_async_forget(struct iv_ctx *ctx, struct iv_async *src)
{
	pthread_mutex_lock(&ctx->async_lock);
	if (src->n_pending)
		TAILQ_REMOVE(&ctx->async_ready, src, link);
	for (; src->n_pending; src->n_pending--)
		fd_down(ctx->vctx.context.async_fd);
	pthread_mutex_unlock(&ctx->async_lock);
}

struct take_async {
	struct iv_ctx *ctx;
	struct ibv_async_event *event;
};

static bool take_async_event(void *arg)
{
	struct take_async *take = arg;
	struct iv_ctx *ctx = take->ctx;
	struct iv_async *src;

	pthread_mutex_lock(&ctx->async_lock);
	src = TAILQ_FIRST(&ctx->async_ready);
	if (src) {
		take->event->event_type = async_remove(src, 0);
		if (src->qp)
			take->event->element.qp = src->qp;
		else if (src->cq)
			take->event->element.cq = src->cq;
		else if (src->srq)
			take->event->element.srq = src->srq;
		else
			take->event->element.port_num = (int)(src - ctx->port_async) + 1;
		TAILQ_REMOVE(&ctx->async_ready, src, link);
		if (src->n_pending)
			TAILQ_INSERT_TAIL(&ctx->async_ready, src, link);
		src->got++;
		fd_down(ctx->vctx.context.async_fd);
	}
	pthread_mutex_unlock(&ctx->async_lock);
	return src != NULL;
}

int iv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct take_async take = {.ctx = iv_ctx(context), .event = event};

	return wait_event(take.ctx->dev, context->async_fd, take_async_event, &take);
}

void iv_ack_async_event(struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		pthread_mutex_lock(&event->element.cq->mutex);
		event->element.cq->async_events_completed++;
		pthread_cond_signal(&event->element.cq->cond);
		pthread_mutex_unlock(&event->element.cq->mutex);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		pthread_mutex_lock(&event->element.qp->mutex);
		event->element.qp->events_completed++;
		pthread_cond_signal(&event->element.qp->cond);
		pthread_mutex_unlock(&event->element.qp->mutex);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		pthread_mutex_lock(&event->element.srq->mutex);
		event->element.srq->events_completed++;
		pthread_cond_signal(&event->element.srq->cond);
		pthread_mutex_unlock(&event->element.srq->mutex);
		break;
	default:
		break; /* events of the port have no object that could go away */
	}
}
