/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: states and attributes. */
#include <errno.h>

#include "lib/rnic/cq.h"
#include "lib/rnic/transport.h"
#include "lib/rnic/worker.h"

/* The port that the QP is to be on. */
static unsigned port_of(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	return mask & IBV_QP_PORT ? attr->port_num - 1u : qp->path.port;
}

/* Another port: another path, whose MTU must do. */
static int check_port(
	const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask, enum ibv_qp_state to)
{
	const unsigned port = port_of(qp, attr, mask);
	enum ibv_mtu mtu = mask & IBV_QP_PATH_MTU ? attr->path_mtu : qp->attr.path_mtu;

	if (port >= qp->rnic->n_ports || mtu > qp->rnic->port[port].active_mtu)
		return -EINVAL;
	return port != qp->path.port && to == IBV_QPS_SQD && !(mask & IBV_QP_AV) ? -EINVAL : 0;
}

/* Attributes of the device and of QPs that only have one value here, and ranges. */
static int check_values(const struct ibv_qp_attr *attr, int mask)
{
	if ((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index != 0)
		return -EINVAL;
	if ((mask & IBV_QP_PATH_MTU) && attr->path_mtu < IBV_MTU_256)
		return -EINVAL;
	if ((mask & IBV_QP_DEST_QPN) && attr->dest_qp_num > 0xffffff)
		return -EINVAL;
	if ((mask & IBV_QP_TIMEOUT) && attr->timeout > 31)
		return -EINVAL;
	if ((mask & IBV_QP_RETRY_CNT) && attr->retry_cnt > 7)
		return -EINVAL;
	if ((mask & IBV_QP_RNR_RETRY) && attr->rnr_retry > 7)
		return -EINVAL;
	if ((mask & IBV_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31)
		return -EINVAL;
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > RNIC_MAX_RD_ATOMIC)
		return -EINVAL;
	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > RNIC_MAX_RD_ATOMIC)
		return -EINVAL;
	if ((mask & IBV_QP_ALT_PATH) ||
		((mask & IBV_QP_PATH_MIG_STATE) && attr->path_mig_state != IBV_MIG_MIGRATED))
		return -EOPNOTSUPP;
	return 0;
}

/* UDP source port as Soft-RoCE chooses it: the same in both directions, and one per connection, so
 * that routers which hash it keep packets in order. */
static uint16_t flow_port(uint32_t label, uint32_t qpn, uint32_t peer)
{
	if (label == 0) {
		uint64_t product = (uint64_t)qpn * peer;

		label = (uint32_t)(product ^ product >> 20 ^ product >> 40) & 0xfffff;
	}
	return (uint16_t)(0xc000 | ((label ^ label >> 14) & 0x3fff));
}

static void set_path(struct rnic_qp *qp, const struct rnic_path *path)
{
	const struct ibv_qp_attr *attr = &qp->attr;

	qp->path = *path;
	qp->path.flow.sport = flow_port(attr->ah_attr.grh.flow_label, qp->qpn, attr->dest_qp_num);
	path_prepare(&qp->path, &qp->full, attr->dest_qp_num, qp->mtu);
}

static void set_port(struct rnic_qp *qp, unsigned port)
{
	qp->path.port = (uint8_t)port;
	if (!qp->ops->several_ports)
		sched_move(qp, port);
	if (!qp->ops->connected)
		qp->mtu = roce_mtu_bytes(qp->rnic->port[port].active_mtu);
}

static void set_attr(struct rnic_qp *qp, const struct ibv_qp_attr *new, int mask)
{
	struct ibv_qp_attr *attr = &qp->attr;

	if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
		attr->en_sqd_async_notify = new->en_sqd_async_notify;
	if (mask & IBV_QP_QKEY)
		attr->qkey = new->qkey;
	if (mask & IBV_QP_ACCESS_FLAGS)
		attr->qp_access_flags = new->qp_access_flags;
	if (mask & IBV_QP_PORT) {
		attr->port_num = new->port_num;
		set_port(qp, new->port_num - 1u);
	}
	if (mask & IBV_QP_AV)
		attr->ah_attr = new->ah_attr;
	if (mask & IBV_QP_PATH_MTU) {
		attr->path_mtu = new->path_mtu;
		qp->mtu = roce_mtu_bytes(new->path_mtu);
	}
	if (mask & IBV_QP_TIMEOUT)
		attr->timeout = new->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		attr->retry_cnt = new->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		attr->rnr_retry = new->rnr_retry;
	if (mask & IBV_QP_RQ_PSN)
		attr->rq_psn = new->rq_psn & 0xffffff;
	if (mask & IBV_QP_SQ_PSN)
		attr->sq_psn = new->sq_psn & 0xffffff;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		attr->max_rd_atomic = new->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		attr->max_dest_rd_atomic = new->max_dest_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		attr->min_rnr_timer = new->min_rnr_timer;
	if (mask & IBV_QP_DEST_QPN)
		attr->dest_qp_num = new->dest_qp_num;
	if (qp->ops->set_attr != NULL)
		qp->ops->set_attr(qp, mask);
}

static void enter(struct rnic_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, uint64_t now)
{
	if (to == from)
		return;
	if (to == IBV_QPS_ERR) {
		qp_error(qp);
		return;
	}
	atomic_store(&qp->state, to);
	qp->ops->enter(qp, from, to, now);
	qp_ready(qp);
}

/* What the transition from -> to needs and allows. */
static int check_mask(
	const struct rnic_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	const struct transition *t;

	if ((unsigned)from >= QP_N_STATES || (unsigned)to >= QP_N_STATES)
		return -EINVAL;
	t = &qp->ops->transitions[from][to];
	mask &= ~IBV_QP_STATE;
	if (!t->valid || (mask & t->required) != t->required ||
		(mask & ~(t->required | t->optional)))
		return -EINVAL;
	return 0;
}

static int check_modify(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask,
	enum ibv_qp_state from, enum ibv_qp_state to)
{
	int err = check_mask(qp, from, to, mask);

	if (err == 0)
		err = check_values(attr, mask);
	if (err == 0)
		err = check_port(qp, attr, mask, to);
	if (err == 0 && to != IBV_QPS_RESET && to != IBV_QPS_ERR &&
		(cq_is_dead(qp->init.send_cq) || cq_is_dead(qp->init.recv_cq)))
		err = -EINVAL;
	if (err == 0 && to != IBV_QPS_RESET && qp->ops->check_attr != NULL)
		err = qp->ops->check_attr(qp, attr, mask);
	return err;
}

/* That of packets that have these attributes. */
static int find_path(struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask,
	struct rnic_path *path, uint64_t now)
{
	int err = path_of_attr(path, qp->rnic, port_of(qp, attr, mask), &attr->ah_attr);

	if (err == 0 && path->multicast != qp->ops->multicast)
		err = -EINVAL;
	if (err < 0)
		return err;
	return qp->ops->resolve != NULL ? qp->ops->resolve(qp, path, now)
					: path_resolve(path, qp->rnic, now);
}

static int modify(struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask, uint64_t now)
{
	enum ibv_qp_state from = qp_state(qp);
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
	struct rnic_path path;
	int err;

	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)
		return -EINVAL;
	err = check_modify(qp, attr, mask, from, to);
	if (err < 0)
		return err;
	if (to == IBV_QPS_RESET) {
		qp_reset(qp);
		return 0;
	}
	if (mask & IBV_QP_AV) {
		err = find_path(qp, attr, mask, &path, now);
		if (err < 0)
			return err;
	}
	set_attr(qp, attr, mask);
	if (mask & IBV_QP_AV)
		set_path(qp, &path);
	enter(qp, from, to, now);
	if (cq_unsettled(qp->rnic))
		cq_settle(qp->rnic);
	return 0;
}

int rnic_qp_modify(struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask, uint64_t now)
{
	int err;

	workers_hold(qp->rnic);
	err = modify(qp, attr, mask, now);
	workers_let_go(qp->rnic);
	return err;
}
