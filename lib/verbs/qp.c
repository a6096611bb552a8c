/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs and work requests. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/iwarp/iwarp.h"
#include "lib/verbs/exports.h"
#include "lib/verbs/internal.h"

enum { RESOLVE_NAP_NS = 50 * 1000 };

/* ---- locks: see internal.h for their order ---- */

static void lock_cqs(struct iv_qp *qp)
{
	struct iv_cq *a = iv_cq(qp->base.send_cq), *b = iv_cq(qp->base.recv_cq);

	if (a > b) {
		struct iv_cq *t = a;

		a = b;
		b = t;
	}
	pthread_mutex_lock(&a->lock);
	if (b != a)
		pthread_mutex_lock(&b->lock);
}

static void unlock_cqs(struct iv_qp *qp)
{
	struct iv_cq *a = iv_cq(qp->base.send_cq), *b = iv_cq(qp->base.recv_cq);

	pthread_mutex_unlock(&a->lock);
	if (b != a)
		pthread_mutex_unlock(&b->lock);
}

/* A state change touches the work queues, and to RESET, or away, also the CQs: keep out producers,
 * consumers and the datapath. */
static void lock_all(struct iv_qp *qp)
{
	pthread_mutex_lock(&qp->sq_lock);
	pthread_mutex_lock(&qp->rq_lock);
	lock_cqs(qp);
	iv_own(iv_dev(qp->base.context));
}

static void unlock_all(struct iv_qp *qp)
{
	iv_disown(iv_dev(qp->base.context));
	unlock_cqs(qp);
	pthread_mutex_unlock(&qp->rq_lock);
	pthread_mutex_unlock(&qp->sq_lock);
}

/* ---- life ---- */

/* The transport of a queue pair, of which wanted is the one that the program has named, or NULL. */
static int choose_transport(const struct ibv_context *context, enum ibv_qp_type type,
	const struct transport_ops *wanted, const struct transport_ops **transport)
{
	*transport = wanted;
	if (!iv_dev(context)->iwarp)
		return 0;
	if (type != IBV_QPT_RC || wanted) {
		iv_debug("%s: queue pairs of iWARP are RC only", context->device->name);
		return -EOPNOTSUPP;
	}
	*transport = &iwarp_transport;
	return 0;
}

static int check_init(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UC &&
		attr->qp_type != IBV_QPT_UD)
		return -EOPNOTSUPP;
	if (attr->srq && attr->srq->context != context)
		return -EINVAL;
	if (!attr->send_cq || !attr->recv_cq || attr->send_cq->context != context ||
		attr->recv_cq->context != context || !attr->pd || attr->pd->context != context)
		return -EINVAL;
	return 0;
}

static int make_rnic_qp(struct iv_qp *qp, const struct ibv_qp_init_attr_ex *attr,
	const struct transport_ops *transport, unsigned worker)
{
	struct iv_dev *dev = iv_dev(attr->pd->context);
	struct rnic_qp_init init = {
		.type = attr->qp_type,
		.pd = ((struct iv_pd *)attr->pd)->pd,
		.send_cq = iv_cq(attr->send_cq)->cq,
		.recv_cq = iv_cq(attr->recv_cq)->cq,
		.cap = attr->cap,
		.sq_sig_all = attr->sq_sig_all != 0,
		.transport = transport,
		.user = qp,
		.srq = attr->srq ? ((struct iv_srq *)attr->srq)->srq : NULL,
		.worker = worker,
	};
	int ret;

	iv_own(dev);
	ret = rnic_qp_create(dev->rnic, &init, &qp->qp);
	iv_disown(dev);
	qp->cap = init.cap;
	qp->sq_sig_all = init.sq_sig_all;
	return ret;
}

static void fill_base(struct iv_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *base = &qp->base;

	base->context = attr->pd->context;
	base->qp_context = attr->qp_context;
	base->pd = attr->pd;
	base->send_cq = attr->send_cq;
	base->recv_cq = attr->recv_cq;
	base->srq = attr->srq;
	base->handle = iv_handle(iv_ctx(base->context));
	base->qp_type = attr->qp_type;
	base->state = IBV_QPS_RESET;
	pthread_mutex_init(&base->mutex, NULL);
	pthread_cond_init(&base->cond, NULL);
	pthread_mutex_init(&qp->sq_lock, NULL);
	pthread_mutex_init(&qp->rq_lock, NULL);
	qp->async.qp = base;
}

/* Memory of the QP after it left the rnic (or never came to it). */
static void free_host(struct iv_qp *qp)
{
	iv_qp_ex_fini(qp);
	pthread_mutex_destroy(&qp->base.mutex);
	pthread_cond_destroy(&qp->base.cond);
	pthread_mutex_destroy(&qp->sq_lock);
	pthread_mutex_destroy(&qp->rq_lock);
	free(qp);
}

static int create(struct iv_qp *qp, struct ibv_qp_init_attr_ex *attr, uint64_t send_ops,
	const struct transport_ops *transport, unsigned worker)
{
	struct iv_ctx *ctx = iv_ctx(attr->pd->context);
	int ret;

	fill_base(qp, attr);
	ret = make_rnic_qp(qp, attr, transport, worker);
	if (ret)
		return ret;
	qp->base.qp_num = rnic_qp_num(qp->qp);
	ret = send_ops ? iv_qp_ex_init(qp, send_ops) : 0;
	if (ret) {
		iv_own(ctx->dev);
		rnic_qp_destroy(qp->qp);
		iv_disown(ctx->dev);
		return ret;
	}
	attr->cap = qp->cap;
	pthread_mutex_lock(&ctx->lock);
	LIST_INSERT_HEAD(&ctx->qps, qp, link);
	pthread_mutex_unlock(&ctx->lock);
	atomic_fetch_add(&ctx->dev->n_qp, 1);
	return 0;
}

static struct ibv_qp *create_any(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
	const struct transport_ops *transport, unsigned worker)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS;
	uint64_t ops = 0;
	struct iv_qp *qp = NULL;
	int ret;

	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		ops = attr->send_ops_flags;
	if ((attr->comp_mask & ~known) ||
		((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags))
		ret = -EOPNOTSUPP;
	else if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
		ret = -EINVAL;
	else
		ret = check_init(context, attr);
	if (ret == 0)
		ret = choose_transport(context, attr->qp_type, transport, &transport);
	if (ret == 0) {
		qp = calloc(1, sizeof(*qp));
		ret = qp ? create(qp, attr, ops, transport, worker) : -ENOMEM;
	}
	if (ret) {
		if (qp)
			free_host(qp);
		iv_errno(ret);
		return NULL;
	}
	return &qp->base;
}

struct ibv_qp *iv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	return create_any(context, attr, NULL, 0);
}

struct ibv_qp *iv_create_qp_as(struct ibv_pd *pd, struct ibv_qp_init_attr *init,
	const struct transport_ops *transport, unsigned worker)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = init->qp_context,
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.srq = init->srq,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.sq_sig_all = init->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = create_any(pd->context, &attr, transport, worker);

	if (qp)
		init->cap = attr.cap;
	return qp;
}

struct ibv_qp *iv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	return iv_create_qp_as(pd, init, NULL, 0);
}

static int detach(struct iv_qp *qp)
{
	struct iv_dev *dev = iv_dev(qp->base.context);
	int ret;

	lock_all(qp);
	ret = rnic_qp_destroy(qp->qp);
	unlock_all(qp);
	if (ret == 0)
		atomic_fetch_sub(&dev->n_qp, 1);
	return ret;
}

static void unlink_and_free(struct iv_qp *qp)
{
	struct iv_ctx *ctx = iv_ctx(qp->base.context);

	pthread_mutex_lock(&ctx->lock);
	LIST_REMOVE(qp, link);
	pthread_mutex_unlock(&ctx->lock);
	free_host(qp);
}

void iv_qp_free(struct iv_qp *qp)
{
	detach(qp);
	iv_async_forget(iv_ctx(qp->base.context), &qp->async);
	unlink_and_free(qp);
}

int iv_destroy_qp(struct ibv_qp *base)
{
	struct iv_qp *qp = iv_qp(base);
	struct iv_ctx *ctx = iv_ctx(base->context);
	unsigned got;
	int ret = detach(qp);

	if (ret)
		return iv_errno(ret);
	iv_async_forget(ctx, &qp->async);
	pthread_mutex_lock(&ctx->async_lock);
	got = qp->async.got;
	pthread_mutex_unlock(&ctx->async_lock);
	pthread_mutex_lock(&base->mutex);
	while (base->events_completed != got)
		pthread_cond_wait(&base->cond, &base->mutex);
	pthread_mutex_unlock(&base->mutex);
	unlink_and_free(qp);
	return 0;
}

/* ---- attributes ---- */

static void say_unresolved(const struct ibv_qp *qp, const struct ibv_qp_attr *attr, int err)
{
	char peer[WIRE_IP_STRLEN];
	struct wire_ip ip;

	memcpy(ip.b, attr->ah_attr.grh.dgid.raw, sizeof(ip.b));
	iv_debug("%s: QP 0x%06x to RTR: no answer from %s to address resolution (%s)",
		qp->context->device->name, qp->qp_num, wire_ip_format(&ip, peer, sizeof(peer)),
		strerror(err));
}

/* INIT -> RTR needs the peer's MAC; the rnic says EAGAIN while it asks. The locks are dropped
 * between attempts, so that the datapath (ours or the thread's) brings the answer. */
static int modify(struct iv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct iv_dev *dev = iv_dev(qp->base.context);
	const uint64_t start = dev->ops->now(dev->port);

	for (;;) {
		uint64_t now;
		int ret;

		lock_all(qp);
		ret = rnic_qp_modify(qp->qp, attr, mask, dev->ops->now(dev->port));
		if (ret == -EAGAIN && !dev->dead)
			iv_turn(dev);
		unlock_all(qp);
		if (ret != -EAGAIN)
			return ret;
		now = dev->ops->now(dev->port);
		if (now - start > IV_RESOLVE_NS)
			return -ETIMEDOUT;
		dev->ops->wait(dev->port, now + RESOLVE_NAP_NS);
	}
}

/* TCP's connections are made by rdma_cm, which takes the queue pair from INIT to RTS itself. */
static bool connects_by_hand(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr now;

	if (!iv_dev(qp->context)->iwarp || !(mask & IBV_QP_STATE) ||
		(attr->qp_state != IBV_QPS_RTR && attr->qp_state != IBV_QPS_RTS))
		return false;
	iv_query_qp(qp, &now, IBV_QP_STATE, &init);
	if (now.qp_state == IBV_QPS_RTS)
		return false;
	iv_debug("%s: QP 0x%06x: queue pairs of iWARP are connected by rdma_connect and "
		 "rdma_accept, not by ibv_modify_qp",
		qp->context->device->name, qp->qp_num);
	return true;
}

int iv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int ret = connects_by_hand(qp, attr, mask) ? -EOPNOTSUPP : modify(iv_qp(qp), attr, mask);

	if (ret == -EHOSTUNREACH || ret == -ETIMEDOUT)
		say_unresolved(qp, attr, -ret);
	if (ret)
		return iv_errno(ret);
	if (mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	/* To ERR flushes, and completions may need to be announced. */
	iv_kick(iv_dev(qp->context));
	return 0;
}

int iv_query_qp(
	struct ibv_qp *base, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct iv_qp *qp = iv_qp(base);
	struct iv_dev *dev = iv_dev(base->context);

	(void)mask; /* a lower bound of what is wanted: everything is filled */
	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	iv_own(dev);
	rnic_qp_query(qp->qp, attr, init);
	iv_disown(dev);
	attr->cap = qp->cap;
	*init = (struct ibv_qp_init_attr){.qp_context = base->qp_context,
		.send_cq = base->send_cq,
		.recv_cq = base->recv_cq,
		.srq = base->srq,
		.cap = qp->cap,
		.qp_type = base->qp_type,
		.sq_sig_all = qp->sq_sig_all};
	base->state = attr->qp_state;
	return 0;
}

/* ---- work requests ---- */

int iv_post_one(struct iv_qp *qp, const struct ibv_send_wr *wr)
{
	struct ibv_send_wr ud;

	/* Windows of type 1 have a function of their own. */
	if (wr->opcode == IBV_WR_BIND_MW &&
		(!wr->bind_mw.mw || wr->bind_mw.mw->type != IBV_MW_TYPE_2))
		return -EINVAL;
	if (qp->base.qp_type != IBV_QPT_UD || !wr->wr.ud.ah)
		return rnic_post_send(qp->qp, wr);
	ud = *wr;
	ud.wr.ud.ah = (struct ibv_ah *)((struct iv_ah *)wr->wr.ud.ah)->ah;
	return rnic_post_send(qp->qp, &ud);
}

int iv_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct iv_qp *qp = iv_qp(base);
	int ret = 0;

	pthread_mutex_lock(&qp->sq_lock);
	for (; wr && ret == 0; wr = wr->next) {
		ret = iv_post_one(qp, wr);
		if (ret)
			*bad_wr = wr;
	}
	pthread_mutex_unlock(&qp->sq_lock);
	iv_kick(iv_dev(base->context));
	return ret ? iv_errno(ret) : 0;
}

int iv_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct iv_qp *qp = iv_qp(base);
	int ret = 0;

	pthread_mutex_lock(&qp->rq_lock);
	for (; wr && ret == 0; wr = wr->next) {
		ret = rnic_post_recv(qp->qp, wr);
		if (ret)
			*bad_wr = wr;
	}
	pthread_mutex_unlock(&qp->rq_lock);
	return ret ? iv_errno(ret) : 0;
}

int iv_bind_mw(struct ibv_qp *base, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct iv_qp *qp = iv_qp(base);
	const struct ibv_send_wr wr = {.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {
			.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = bind->bind_info}};
	int ret = -EINVAL;

	if (mw->type == IBV_MW_TYPE_1) {
		pthread_mutex_lock(&qp->sq_lock);
		ret = rnic_post_send(qp->qp, &wr);
		if (ret == 0)
			mw->rkey = wr.bind_mw.rkey;
		pthread_mutex_unlock(&qp->sq_lock);
		iv_kick(iv_dev(base->context));
	}
	return ret ? iv_errno(ret) : 0;
}
