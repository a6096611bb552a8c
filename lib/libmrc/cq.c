/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels, completion queues, events of EVs, asynchronous events. */
#include <errno.h>
#include <stdlib.h>

#include "lib/libmrc/internal.h"
#include "lib/libmrc/mrc_incline.h"

/* ---- channels ---- */

API int mrc_create_comp_channel(struct mrc_context *ctx, struct mrc_comp_channel **out)
{
	struct mrc_comp_channel *channel;

	if (!ctx || !out)
		return mrc_errno(EINVAL);
	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return mrc_errno(ENOMEM);
	channel->ctx = ctx;
	channel->channel = ibv_create_comp_channel(ctx->verbs);
	if (!channel->channel) {
		free(channel);
		return errno;
	}
	atomic_fetch_add(&ctx->children, 1);
	*out = channel;
	return 0;
}

API int mrc_get_comp_channel_fd(struct mrc_comp_channel *channel, int *fd)
{
	if (!channel || !fd)
		return mrc_fail(EINVAL);
	*fd = channel->channel->fd;
	return 0;
}

API int mrc_destroy_comp_channel(struct mrc_comp_channel *channel)
{
	int ret;

	if (!channel)
		return mrc_errno(EINVAL);
	ret = ibv_destroy_comp_channel(channel->channel);
	if (ret)
		return mrc_errno(ret);
	atomic_fetch_sub(&channel->ctx->children, 1);
	free(channel);
	return 0;
}

/* ---- queues ---- */

static void enlist(struct mrc_cq *cq)
{
	struct mrc_dev *dev = cq->ctx->dev;

	pthread_mutex_lock(&dev->note);
	LIST_INSERT_HEAD(&dev->cqs, cq, link);
	pthread_mutex_unlock(&dev->note);
}

/* Not in the list yet. */
static struct mrc_cq *create(struct mrc_context *ctx, int cqe, void *cq_context,
	struct mrc_comp_channel *channel, int comp_vector)
{
	struct mrc_cq *cq;

	if (!ctx || (channel && channel->ctx != ctx)) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->ctx = ctx;
	cq->cq_context = cq_context;
	cq->cq = ibv_create_cq(ctx->verbs, cqe, cq, channel ? channel->channel : NULL, comp_vector);
	if (!cq->cq) {
		free(cq);
		return NULL;
	}
	atomic_fetch_add(&ctx->children, 1);
	return cq;
}

API struct mrc_cq *mrc_create_cq(struct mrc_context *ctx, int cqe, void *cq_context,
	struct mrc_comp_channel *channel, int comp_vector)
{
	struct mrc_cq *cq = create(ctx, cqe, cq_context, channel, comp_vector);

	if (cq)
		enlist(cq);
	return cq;
}

API int mrc_destroy_cq(struct mrc_cq *cq)
{
	struct mrc_dev *dev;
	int ret;

	if (!cq)
		return mrc_errno(EINVAL);
	dev = cq->ctx->dev;
	pthread_mutex_lock(&dev->note);
	LIST_REMOVE(cq, link);
	pthread_mutex_unlock(&dev->note);
	ret = ibv_destroy_cq(cq->cq);
	if (ret) {
		enlist(cq);
		return mrc_errno(ret);
	}
	event_ring_fini(&cq->ring);
	atomic_fetch_sub(&cq->ctx->children, 1);
	free(cq);
	return 0;
}

API int mrc_poll_cq(struct mrc_cq *cq, int n, struct ibv_wc *wc)
{
	int ret;

	if (!cq || cq->is_ev || n < 0 || (n && !wc))
		return mrc_fail(EINVAL);
	ret = ibv_poll_cq(cq->cq, n, wc);
	return ret < 0 ? -1 : ret;
}

API int mrc_req_notify_cq(struct mrc_cq *cq, int solicited_only)
{
	int ret;

	if (!cq)
		return mrc_errno(EINVAL);
	if (cq->is_ev) {
		pthread_mutex_lock(&cq->ctx->dev->note);
		cq->armed = true;
		pthread_mutex_unlock(&cq->ctx->dev->note);
		return 0;
	}
	ret = ibv_req_notify_cq(cq->cq, solicited_only);
	return ret ? mrc_errno(ret) : 0;
}

API int mrc_get_cq_event(struct mrc_comp_channel *channel, struct mrc_cq **cq, void **cq_context)
{
	struct ibv_cq *ready;
	void *mine;

	if (!channel || !cq || !cq_context)
		return mrc_fail(EINVAL);
	if (ibv_get_cq_event(channel->channel, &ready, &mine))
		return -1;
	*cq = mine;
	*cq_context = (*cq)->cq_context;
	return 0;
}

API void mrc_ack_cq_events(struct mrc_cq *cq, unsigned int n)
{
	ibv_ack_cq_events(cq->cq, n);
}

/* ---- events of EVs ---- */

API struct mrc_cq *mrc_ctl_create_ev_event_cq(struct mrc_context *ctx, int cqe, void *cq_context,
	struct mrc_comp_channel *channel, int comp_vector)
{
	struct mrc_cq *cq;
	struct event_ring ring;
	int ret;

	if (!mrc_admin()) {
		errno = EPERM;
		return NULL;
	}
	ret = event_ring_init(&ring, cqe);
	if (ret) {
		mrc_errno(ret);
		return NULL;
	}
	cq = create(ctx, 1, cq_context, channel, comp_vector);
	if (!cq) {
		event_ring_fini(&ring);
		return NULL;
	}
	cq->is_ev = true;
	cq->ring = ring;
	enlist(cq);
	return cq;
}

static int poll_events(struct mrc_cq *cq, int n, void *events, size_t stride)
{
	int ret;

	if (!cq || !cq->is_ev || n < 0 || (n && !events))
		return -mrc_errno(EINVAL);
	if (!mrc_admin())
		return -mrc_errno(EPERM);
	pthread_mutex_lock(&cq->ctx->dev->note);
	ret = event_ring_take(&cq->ring, events, stride ? stride : cq->ctx->stride, n);
	pthread_mutex_unlock(&cq->ctx->dev->note);
	return ret;
}

API int mrc_ctl_poll_ev_event(struct mrc_cq *cq, int n, struct mrc_ctl_ev_event *events)
{
	return poll_events(cq, n, events, 0);
}

API int mrc_incline_poll_ev_event(struct mrc_cq *cq, int n, void *events, size_t stride)
{
	if (stride != EVENT_STRIDE && stride != EVENT_STRIDE_100)
		return -mrc_errno(EINVAL);
	return poll_events(cq, n, events, stride);
}

static void tell(struct mrc_dev *dev, const struct ev_profile *p, const struct mrc_ctl_ev *ev,
	enum mrc_ctl_ev_state state)
{
	struct mrc_cq *cq;

	LIST_FOREACH(cq, &dev->cqs, link)
	{
		if (cq->is_ev && event_ring_put(&cq->ring, p->p.id, ev, state) && cq->armed) {
			cq->armed = false;
			dev->dv->raise(cq->cq);
		}
	}
}

void mrc_on_ev(void *arg, struct ibv_qp *vqp, unsigned index, enum mrc_ev_state state)
{
	struct mrc_dev *dev = arg;
	struct mrc_qp *qp = vqp->qp_context;
	bool bad = state == MRC_EV_BAD;

	pthread_mutex_lock(&dev->note);
	if (index < qp->n_map && state != MRC_EV_DENIED && qp->bad[index] != bad) {
		struct ev_path *path = &qp->map[index];
		int says = bad ? MRC_CTL_EV_ASSUMED_BAD : MRC_CTL_EV_GOOD;

		qp->bad[index] = bad;
		ev_note(qp->ev, path, 0, bad ? 1 : -1);
		if (qp->ev->event_mask & says && path->entry < qp->ev->count &&
			qp->ev->entry[path->entry].generation == path->generation)
			tell(dev, qp->ev, &qp->ev->entry[path->entry].ev,
				(enum mrc_ctl_ev_state)says);
	}
	pthread_mutex_unlock(&dev->note);
}

/* ---- asynchronous events ---- */

static bool has_cq(struct mrc_context *ctx, const struct ibv_cq *vcq)
{
	struct mrc_cq *cq;
	bool found = false;

	pthread_mutex_lock(&ctx->dev->note);
	LIST_FOREACH(cq, &ctx->dev->cqs, link)
	found = found || (cq->cq == vcq && cq->ctx == ctx);
	pthread_mutex_unlock(&ctx->dev->note);
	return found;
}

static bool has_qp(struct mrc_context *ctx, const struct ibv_qp *vqp)
{
	struct mrc_qp *qp;
	bool found = false;

	pthread_mutex_lock(&ctx->dev->lock);
	LIST_FOREACH(qp, &ctx->dev->qps, link)
	found = found || (qp->qp == vqp && qp->ctx == ctx);
	pthread_mutex_unlock(&ctx->dev->lock);
	return found;
}

/* Whether the event is of MRC's; its objects are then those of this API. */
static bool translate(
	struct mrc_context *ctx, const struct ibv_async_event *v, struct mrc_async_event *event)
{
	event->event_type = v->event_type;
	switch (v->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		if (!has_qp(ctx, v->element.qp))
			return false;
		event->element.qp = v->element.qp->qp_context;
		return true;
	case IBV_EVENT_CQ_ERR:
		if (!has_cq(ctx, v->element.cq))
			return false;
		event->element.cq = v->element.cq->cq_context;
		return true;
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
		event->element.port_num = v->element.port_num;
		return true;
	default:
		return false;
	}
}

API int mrc_get_async_event(struct mrc_context *ctx, struct mrc_async_event *event)
{
	struct ibv_async_event v;

	if (!ctx || !event)
		return mrc_errno(EINVAL);
	for (;;) {
		if (ibv_get_async_event(ctx->verbs, &v))
			return errno;
		if (translate(ctx, &v, event))
			return 0;
		ibv_ack_async_event(&v); /* of another object of this context */
	}
}

API void mrc_ack_async_event(struct mrc_async_event *event)
{
	struct ibv_async_event v = {.event_type = event->event_type};

	if (event->event_type == IBV_EVENT_CQ_ERR)
		v.element.cq = event->element.cq->cq;
	else if (event->event_type == IBV_EVENT_PORT_ERR ||
		 event->event_type == IBV_EVENT_PORT_ACTIVE)
		v.element.port_num = event->element.port_num;
	else
		v.element.qp = event->element.qp->qp;
	ibv_ack_async_event(&v);
}
