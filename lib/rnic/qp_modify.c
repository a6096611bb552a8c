/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: states and attributes. */
#include <errno.h>
#include <string.h>

#include "lib/rnic/cq.h"
#include "lib/rnic/neigh.h"
#include "lib/rnic/transport.h"
#include "lib/rnic/worker.h"
#include "lib/wire/multicast.h"

static int check_av(const struct rnic_port *port, const struct ibv_ah_attr *av, bool multicast,
	struct wire_ip *dst)
{
	memcpy(dst->b, av->grh.dgid.raw, sizeof(dst->b));
	if (!av->is_global || av->grh.sgid_index >= port->n_gid)
		return -EINVAL;
	if (wire_ip_is_zero(dst) || wire_is_multicast(dst) != multicast)
		return -EINVAL;
	if (wire_ip_is4(dst) != wire_ip_is4(&port->gid[av->grh.sgid_index]))
		return -EINVAL;
	return 0;
}

/* The port that the QP is to be on. */
static unsigned port_of(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	return mask & IBV_QP_PORT ? attr->port_num - 1u : qp->port;
}

/* Another port: another path, whose MTU must do. */
static int check_port(
	const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask, enum ibv_qp_state to)
{
	const unsigned port = port_of(qp, attr, mask);
	enum ibv_mtu mtu = mask & IBV_QP_PATH_MTU ? attr->path_mtu : qp->attr.path_mtu;

	if (port >= qp->rnic->n_ports || mtu > qp->rnic->port[port].active_mtu)
		return -EINVAL;
	return port != qp->port && to == IBV_QPS_SQD && !(mask & IBV_QP_AV) ? -EINVAL : 0;
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

static void set_flow(struct rnic_qp *qp, const struct wire_ip *dst, const uint8_t dmac[6])
{
	const struct ibv_global_route *grh = &qp->attr.ah_attr.grh;
	const struct rnic_port *port = &qp->rnic->port[qp->port];
	struct wire_flow *flow = &qp->flow;

	*flow = (struct wire_flow){.src = port->gid[grh->sgid_index],
		.dst = *dst,
		.tos = ect_tos(qp->rnic->ect, grh->traffic_class),
		/* Programs say 1 (ibv_rc_pingpong does) and mean a subnet; Linux replaces it by the
		 * route's, too. */
		.ttl = grh->hop_limit > 1 ? grh->hop_limit : 64,
		.sport = flow_port(grh->flow_label, qp->qpn, qp->attr.dest_qp_num)};
	memcpy(flow->dmac, dmac, sizeof(flow->dmac));
	memcpy(flow->smac, port->mac, sizeof(flow->smac));
	qp->loopback = rnic_own_ip(qp->rnic, qp->port, dst) >= 0;
	wire_template_init(&qp->full, flow,
		&(struct wire_hdr){.opcode = ROCE_SEND_MIDDLE, .dqpn = qp->attr.dest_qp_num},
		qp->mtu);
}

static void set_port(struct rnic_qp *qp, unsigned port)
{
	qp->port = (uint8_t)port;
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

/* Where packets go that have these attributes. */
static int resolve(struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask,
	struct wire_ip *dst, uint8_t dmac[6], uint64_t now)
{
	const struct ibv_ah_attr *av = &attr->ah_attr;
	const unsigned index = port_of(qp, attr, mask);
	const struct rnic_port *port = &qp->rnic->port[index];
	int err = check_av(port, av, qp->ops->multicast, dst);

	if (err < 0)
		return err;
	if (qp->ops->multicast) {
		wire_multicast_mac(dst, dmac);
		return 0;
	}
	if (qp->ops->resolve != NULL)
		return qp->ops->resolve(qp, av, dmac, now);
	return neigh_resolve(qp->rnic, index, &port->gid[av->grh.sgid_index], dst, dmac, now);
}

static int modify(struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask, uint64_t now)
{
	enum ibv_qp_state from = qp_state(qp);
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
	struct wire_ip dst;
	uint8_t dmac[6];
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
		err = resolve(qp, attr, mask, &dst, dmac, now);
		if (err < 0)
			return err;
	}
	set_attr(qp, attr, mask);
	if (mask & IBV_QP_AV)
		set_flow(qp, &dst, dmac);
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
