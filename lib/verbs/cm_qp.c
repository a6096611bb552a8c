/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of IDs: made with them, and taken through their states as the connection goes. */
#include <errno.h>
#include <sys/random.h>

#include "lib/verbs/cm_exports.h"
#include "lib/verbs/cm_internal.h"
#include "lib/verbs/exports.h"

enum { MIN_RNR_TIMER = 12 /* 0.64 ms */ };

/* ---- attributes of each state ---- */

void iv_id_ah(const struct iv_id *id, struct ibv_ah_attr *attr)
{
	*attr = (struct ibv_ah_attr){.is_global = 1,
		.port_num = (uint8_t)(id->gid.port + 1),
		.grh = {.sgid_index = id->gid.index,
			.hop_limit = 64,
			.traffic_class = id->tos,
			.flow_label = id->flow_label}};
	memcpy(attr->grh.dgid.raw, id->remote.b, sizeof(attr->grh.dgid.raw));
}

static int init_attr(const struct iv_id *id, bool iwarp, struct ibv_qp_attr *attr)
{
	attr->pkey_index = 0;
	attr->port_num = (uint8_t)(id->gid.port + 1);
	if (iv_id_ud(id)) {
		attr->qkey = id->qkey;
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	}
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (iwarp) /* what a peer may do is not known later either */
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ;
	else if (id->responder_resources && id->base.qp_type == IBV_QPT_RC)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

static int rtr_attr(const struct iv_id *id, struct ibv_qp_attr *attr)
{
	if (iv_id_ud(id))
		return IBV_QP_STATE;
	iv_id_ah(id, &attr->ah_attr);
	attr->path_mtu = id->mtu;
	attr->dest_qp_num = id->remote_qpn;
	attr->rq_psn = id->psn; /* what we said is what the peer begins with: 12.7.21 */
	if (id->base.qp_type == IBV_QPT_UC)
		return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	attr->max_dest_rd_atomic = id->responder_resources;
	attr->min_rnr_timer = MIN_RNR_TIMER;
	return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static int rts_attr(const struct iv_id *id, struct ibv_qp_attr *attr)
{
	attr->sq_psn = iv_id_ud(id) ? 0 : id->remote_psn;
	if (id->base.qp_type != IBV_QPT_RC)
		return IBV_QP_STATE | IBV_QP_SQ_PSN;
	attr->timeout = id->ack_timeout;
	attr->retry_cnt = id->retry_count;
	attr->rnr_retry = id->rnr_retry;
	attr->max_rd_atomic = id->initiator_depth;
	return IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	       IBV_QP_MAX_QP_RD_ATOMIC;
}

int iv_init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *attr, int *mask)
{
	struct iv_id *id = iv_id(base);
	struct iv_cm_dev *cdev;
	int ret = attr && mask ? iv_cm_get(id, &cdev) : -EINVAL;
	bool iwarp;

	if (ret)
		return iv_cm_ret(ret);
	iwarp = cdev->dev->iwarp;
	iv_cm_put(cdev); /* bound to it, and that is enough */
	if (iwarp && attr->qp_state != IBV_QPS_INIT)
		return iv_cm_ret(EOPNOTSUPP); /* rdma_connect and rdma_accept do it */
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		*mask = init_attr(id, iwarp, attr);
		return 0;
	case IBV_QPS_RTR:
		*mask = rtr_attr(id, attr);
		return 0;
	case IBV_QPS_RTS:
		*mask = rts_attr(id, attr);
		return 0;
	default:
		return iv_cm_ret(EINVAL);
	}
}

/* ---- transitions ---- */

static int to_state(struct iv_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	if (iv_init_qp_attr(&id->base, &attr, &mask))
		return -errno;
	return -ibv_modify_qp(qp, &attr, mask);
}

int iv_id_to_init(struct iv_id *id, struct ibv_qp *qp)
{
	int ret = to_state(id, qp, IBV_QPS_INIT);

	if (ret == 0 && iv_id_ud(id))
		ret = to_state(id, qp, IBV_QPS_RTR);
	if (ret == 0 && iv_id_ud(id))
		ret = to_state(id, qp, IBV_QPS_RTS);
	return ret;
}

int iv_id_to_rts(struct iv_id *id)
{
	/* The first one again, for now it is known what the peer may do. */
	static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
	struct iv_cm_dev *cdev;
	int ret = iv_cm_get(id, &cdev);

	if (ret)
		return ret;
	for (unsigned i = 0; i < 3 && id->base.qp && !iv_id_ud(id) && ret == 0; i++)
		ret = to_state(id, id->base.qp, states[i]);
	iv_cm_put(cdev);
	return ret;
}

void iv_id_to_err(struct iv_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct iv_cm_dev *cdev;

	if (iv_cm_get(id, &cdev))
		return;
	if (id->base.qp && !iv_id_ud(id))
		ibv_modify_qp(id->base.qp, &attr, IBV_QP_STATE);
	iv_cm_put(cdev);
}

/* ---- making ---- */

static void destroy_cqs(struct rdma_cm_id *id)
{
	if (id->send_cq)
		ibv_destroy_cq(id->send_cq);
	if (id->send_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	if (id->recv_cq)
		ibv_destroy_cq(id->recv_cq);
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	id->send_cq = id->recv_cq = NULL;
	id->send_cq_channel = id->recv_cq_channel = NULL;
}

static int create_cq(struct rdma_cm_id *id, unsigned depth, struct ibv_comp_channel **channel,
	struct ibv_cq **cq)
{
	*channel = ibv_create_comp_channel(id->verbs);
	if (*channel)
		*cq = ibv_create_cq(id->verbs, (int)(depth ? depth : 1), id, *channel, 0);
	return *cq ? 0 : -errno;
}

/* Those that the program did not bring. */
static int create_cqs(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int ret = 0;

	if (!attr->send_cq) {
		ret = create_cq(id, attr->cap.max_send_wr, &id->send_cq_channel, &id->send_cq);
		attr->send_cq = id->send_cq;
	}
	if (ret == 0 && !attr->recv_cq) {
		ret = create_cq(id, attr->cap.max_recv_wr, &id->recv_cq_channel, &id->recv_cq);
		attr->recv_cq = id->recv_cq;
	}
	if (ret)
		destroy_cqs(id);
	return ret;
}

static int make_qp(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;
	int ret;

	if (id->qp)
		return -EINVAL;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	if (attr->pd->context != id->verbs)
		return -EINVAL;
	if (id->srq && !attr->srq)
		attr->srq = id->srq;
	ret = create_cqs(id, attr);
	if (ret)
		return ret;
	id->qp_type = attr->qp_type;
	qp = iv_create_qp_ex(id->verbs, attr);
	ret = qp ? iv_id_to_init(iv_id(id), qp) : -errno;
	if (ret) {
		if (qp)
			iv_destroy_qp(qp);
		destroy_cqs(id);
		return ret;
	}
	id->pd = qp->pd;
	id->qp = qp;
	return 0;
}

int iv_rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct iv_cm_dev *cdev;
	int ret = iv_cm_get(iv_id(id), &cdev);

	if (ret)
		return iv_cm_ret(ret);
	ret = make_qp(id, attr);
	iv_cm_put(cdev);
	return iv_cm_ret(ret);
}

int iv_rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex attr = {.qp_context = init->qp_context,
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.srq = init->srq,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.sq_sig_all = init->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd ? pd : id->pd};
	int ret = iv_rdma_create_qp_ex(id, &attr);

	if (ret == 0)
		init->cap = attr.cap;
	return ret;
}

void iv_rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct iv_cm_dev *cdev;

	if (iv_cm_get(iv_id(id), &cdev))
		return; /* freed with its device */
	if (id->qp)
		iv_destroy_qp(id->qp);
	id->qp = NULL;
	destroy_cqs(id);
	iv_cm_put(cdev);
}

/* ---- shared receive queues ---- */

static int make_srq(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq;

	if (id->srq)
		return -EINVAL;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	srq = iv_create_srq_ex(id->verbs, attr);
	if (!srq)
		return -errno;
	id->pd = srq->pd;
	id->srq = srq;
	return 0;
}

int iv_rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct iv_cm_dev *cdev;
	int ret = iv_cm_get(iv_id(id), &cdev);

	if (ret)
		return iv_cm_ret(ret);
	ret = make_srq(id, attr);
	iv_cm_put(cdev);
	return iv_cm_ret(ret);
}

int iv_rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct ibv_srq_init_attr_ex attr = {.srq_context = init->srq_context,
		.attr = init->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd ? pd : id->pd};
	int ret = iv_rdma_create_srq_ex(id, &attr);

	if (ret == 0)
		init->attr = attr.attr;
	return ret;
}

void iv_rdma_destroy_srq(struct rdma_cm_id *id)
{
	struct iv_cm_dev *cdev;

	if (iv_cm_get(iv_id(id), &cdev))
		return;
	if (id->srq)
		iv_destroy_srq(id->srq);
	id->srq = NULL;
	iv_cm_put(cdev);
}
