/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-I: connections and buffers of groups. */
#include "dataplane/inc/mode1.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/inc/mode1_state.h"
#include "dataplane/inc/seeded_bugs.h"

enum {
	PORT_MTU = 4096 + RNIC_MTU_ROOM, /* a group's mtu is checked against its ports */
	CONTROLS_OUT = INC_N_DESC, /* control messages that may be on their way to an endpoint */
	/* 4.096 us << 14 = 67 ms; 0.08 ms: a sender ahead of the others asks again soon. */
	TIMEOUT = 14,
	MIN_RNR_TIMER = 6,
	RETRY = 7,
};

static void on_completion(void *arg, struct rnic_cq *cq)
{
	struct mode1_device *dev = arg;
	struct mode1 *m = rnic_cq_user(cq);

	if (m->is_ready)
		return;
	m->is_ready = true;
	STAILQ_INSERT_TAIL(&dev->ready, m, ready);
}

int mode1_device_create(const struct mode1_device_config *config, struct mode1_device **out)
{
	struct mode1_device *dev = calloc(1, sizeof(*dev));
	struct rnic_config rc = {
		.port[0].n_ip = config->n_ip,
		.port[0].mtu = PORT_MTU,
		.max_qp = MODE1_MAX_QP,
		.max_cq = MODE1_MAX_QP,
		.max_mr = 1,
		.max_pd = 1,
		.qpn_limit = MODE1_QPN_LIMIT,
		.seed = config->seed,
		.events = {.arg = dev, .cq_event = on_completion},
	};
	int err;

	if (dev == NULL)
		return -ENOMEM;
	if (config->n_ip > MODE1_MAX_IP) {
		free(dev);
		return -EINVAL;
	}
	memcpy(rc.port[0].mac, config->mac, sizeof(rc.port[0].mac));
	memcpy(rc.port[0].ip, config->ip, config->n_ip * sizeof(rc.port[0].ip[0]));
	STAILQ_INIT(&dev->ready);
	dev->arena = config->arena;
	err = rnic_create(&rc, &dev->rnic);
	if (err == 0)
		err = rnic_pd_alloc(dev->rnic, &dev->pd);
	if (err == 0)
		err = rnic_mr_reg(dev->pd, dev->arena.base, dev->arena.size,
			(uintptr_t)dev->arena.base, IBV_ACCESS_LOCAL_WRITE, &dev->mr);
	if (err < 0) {
		mode1_device_destroy(dev);
		return err;
	}
	*out = dev;
	return 0;
}

void mode1_device_destroy(struct mode1_device *dev)
{
	if (dev == NULL)
		return;
	if (dev->mr)
		rnic_mr_dereg(dev->mr);
	if (dev->pd)
		rnic_pd_free(dev->pd);
	if (dev->rnic)
		rnic_destroy(dev->rnic);
	free(dev);
}

struct rnic *mode1_rnic(struct mode1_device *dev)
{
	return dev->rnic;
}

unsigned mode1_n_groups(const struct mode1_device *dev)
{
	return dev->n_groups;
}

struct inc_group *mode1_owner(struct mode1_device *dev, uint32_t qpn, unsigned *ep)
{
	struct rnic_qp *qp = rnic_qp_find(dev->rnic, qpn);
	const struct mode1_ep *e = qp ? rnic_qp_user(qp) : NULL;

	if (e == NULL)
		return NULL;
	*ep = e->index;
	return e->m->g;
}

/* ---- a group ---- */

static int gid_index(const struct rnic *rnic, const struct wire_ip *ip)
{
	struct wire_ip own;

	for (unsigned i = 0; i < rnic_gid_count(rnic, 0); i++)
		if (rnic_gid(rnic, 0, i, &own) == 0 && wire_ip_eq(&own, ip))
			return (int)i;
	return -EADDRNOTAVAIL;
}

int mode1_make_qp(struct mode1 *m, unsigned i, char err[INC_ERR_LEN])
{
	struct inc_ep *ep = inc_ep_at(m->g, i);
	struct rnic_qp_init init = {
		.type = IBV_QPT_RC,
		.pd = m->dev->pd,
		.send_cq = m->cq,
		.recv_cq = m->cq,
		.cap = {.max_send_wr = m->sq_depth + 1u, /* the one of mode1_stop */
			.max_recv_wr = m->credits,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = INC_CTRL_LEN},
		.sq_sig_all = true,
		.user = &m->ep[i],
	};
	int rc = gid_index(m->dev->rnic, &ep->flow.src);

	if (rc < 0)
		return snprintf(err, INC_ERR_LEN,
			       "endpoints[%u].local_ip: mode I serves the first %u addresses of "
			       "the configuration, this is none of them",
			       i, MODE1_MAX_IP),
		       rc;
	rc = rnic_neigh_add(m->dev->rnic, 0, &ep->flow.dst, ep->flow.dmac);
	if (rc == 0)
		rc = rnic_qp_create(m->dev->rnic, &init, &m->ep[i].qp);
	if (rc < 0)
		return snprintf(err, INC_ERR_LEN,
			       "endpoints[%u]: no queue pair (%s); mode I has %u at a time", i,
			       strerror(-rc), MODE1_MAX_QP),
		       rc;
	ep->local_qpn = rnic_qp_num(m->ep[i].qp);
	return 0;
}

/* Everything but queue pairs, in one piece of memory each. */
static struct mode1 *allocate(struct mode1_device *dev, struct inc_group *g)
{
	struct mode1 *m = calloc(1, sizeof(*m) + g->n_ep * sizeof(m->ep[0]));
	unsigned credits = g->w + 2u, n_recv = g->n_ep * credits;
	struct mode1_message *queue;

	if (m == NULL)
		return NULL;
	m->dev = dev;
	m->g = g;
	m->base = dev->arena.base + g->pay_off;
	m->buf_len = (uint32_t)g->m * g->mtu;
	m->credits = (uint16_t)credits;
	m->sq_depth = (uint16_t)(MODE1_N_POOLS * g->w + CONTROLS_OUT);
	m->buf = calloc(n_recv + (size_t)MODE1_N_POOLS * g->w, sizeof(*m->buf));
	m->free[0] = calloc((size_t)MODE1_N_POOLS * g->w, sizeof(uint32_t));
	queue = calloc(n_recv, sizeof(*queue));
	m->ep[0].queue = queue;
	if (m->buf == NULL || m->free[0] == NULL || queue == NULL)
		return m;
	m->free[MODE1_DOWN] = m->free[MODE1_UP] + g->w;
	for (unsigned i = 0; i < g->n_ep; i++) {
		m->ep[i].m = m;
		m->ep[i].index = (uint8_t)i;
		m->ep[i].queue = queue + (size_t)i * credits;
	}
	for (unsigned k = 0; k < MODE1_N_POOLS * g->w; k++) {
		enum mode1_pool pool = k / g->w;

		m->free[pool][m->n_free[pool]++] = n_recv + k;
	}
	return m;
}

int mode1_begin(
	struct mode1_device *dev, struct inc_group *g, struct mode1 **out, char err[INC_ERR_LEN])
{
	struct mode1 *m = allocate(dev, g);
	unsigned depth = g->n_ep * (g->w + 2u + MODE1_N_POOLS * g->w + CONTROLS_OUT + 1);
	int rc = -ENOMEM;

	if (m == NULL)
		return snprintf(err, INC_ERR_LEN, "no memory for connections"), -ENOMEM;
	dev->n_groups++;
	if (m->buf && m->free[0] && m->ep[0].queue)
		rc = rnic_cq_create(dev->rnic, depth, m, &m->cq);
	if (rc < 0)
		snprintf(err, INC_ERR_LEN, "no completion queue of %u: %s", depth, strerror(-rc));
	if (rc < 0) {
		mode1_destroy(m);
		return rc;
	}
	*out = m;
	return 0;
}

int mode1_create(
	struct mode1_device *dev, struct inc_group *g, struct mode1 **out, char err[INC_ERR_LEN])
{
	struct mode1 *m;
	int rc = mode1_begin(dev, g, &m, err);

	for (unsigned i = 0; rc == 0 && i < g->n_ep; i++) {
		rc = mode1_make_qp(m, i, err);
		if (rc < 0)
			mode1_destroy(m);
	}
	if (rc == 0)
		*out = m;
	return rc;
}

void mode1_destroy(struct mode1 *m)
{
	struct mode1_device *dev = m->dev;

	for (unsigned i = 0; i < m->g->n_ep; i++)
		if (m->ep[i].qp)
			rnic_qp_destroy(m->ep[i].qp);
	if (m->cq)
		rnic_cq_destroy(m->cq);
	if (m->is_ready)
		STAILQ_REMOVE(&dev->ready, m, mode1, ready);
	dev->n_groups--;
	free(m->ep[0].queue);
	free(m->free[0]);
	free(m->buf);
	free(m);
}

/* ---- connecting ---- */

int mode1_post_recv(struct mode1 *m, unsigned ep, uint32_t buf)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)mode1_buf_at(m, buf),
		.length = m->buf_len,
		.lkey = rnic_mr_lkey(m->dev->mr),
	};
	struct ibv_recv_wr wr = {.wr_id = WR_ID(ep, buf), .sg_list = &sge, .num_sge = 1};

	return rnic_post_recv(m->ep[ep].qp, &wr);
}

static int to_init(struct mode1 *m, unsigned i, uint64_t now)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	return rnic_qp_modify(m->ep[i].qp, &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, now);
}

/* Up to `budget` of the endpoint's receives; 1: there are more. */
static int post_some(struct mode1 *m, unsigned i, unsigned budget)
{
	int rc = 0;

	for (; rc == 0 && budget > 0 && m->posted < m->credits; budget--, m->posted++)
		rc = mode1_post_recv(m, i, i * m->credits + m->posted);
	return rc == 0 ? m->posted < m->credits : rc;
}

static int to_rtr(struct mode1 *m, unsigned i, uint64_t now)
{
	const struct inc_ep *ep = inc_ep_at(m->g, i);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)roce_mtu_code(m->g->mtu),
		.dest_qp_num = ep->remote_qpn,
		.rq_psn = m->g->start_psn,
		.min_rnr_timer = MIN_RNR_TIMER,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.sgid_index = (uint8_t)gid_index(m->dev->rnic, &ep->flow.src),
				.hop_limit = 64,
				.traffic_class = (uint8_t)(ep->flow.tos | IP_ECN_ECT0)}},
	};

	memcpy(&attr.ah_attr.grh.dgid, ep->flow.dst.b, sizeof(attr.ah_attr.grh.dgid));
	return rnic_qp_modify(m->ep[i].qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		now);
}

static int to_rts(struct mode1 *m, unsigned i, uint64_t now)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = TIMEOUT,
		.retry_cnt = RETRY,
		.rnr_retry = RETRY,
		.sq_psn = m->g->start_psn,
	};

	return rnic_qp_modify(m->ep[i].qp, &attr,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
		now);
}

/* None of them is connected then, and all can be tried again. */
static int cannot(struct mode1 *m, unsigned i, int rc, uint64_t now, char err[INC_ERR_LEN])
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	for (unsigned k = 0; k < m->g->n_ep; k++)
		rnic_qp_modify(m->ep[k].qp, &attr, IBV_QP_STATE, now);
	m->ready_eps = 0;
	m->posted = 0;
	snprintf(err, INC_ERR_LEN, "endpoints[%u]: cannot connect its queue pair: %s", i,
		strerror(-rc));
	return rc;
}

/* All at once: what comes for one queue pair may be for all the others to send. */
static int connect_all(struct mode1 *m, uint64_t now, char err[INC_ERR_LEN])
{
	rnic_cq_arm(m->cq, false);
	for (unsigned i = 0; i < m->g->n_ep; i++) {
		int rc = to_rtr(m, i, now);

		rc = rc ? rc : to_rts(m, i, now);
		if (rc < 0)
			return cannot(m, i, rc, now, err);
	}
	return 0;
}

int mode1_connect_part(struct mode1 *m, unsigned budget, uint64_t now, char err[INC_ERR_LEN])
{
	const unsigned i = m->ready_eps;
	int rc = 0;

	if (i == m->g->n_ep)
		return connect_all(m, now, err);
	if (m->posted == 0)
		rc = to_init(m, i, now);
	if (rc == 0)
		rc = post_some(m, i, budget);
	if (rc < 0)
		return cannot(m, i, rc, now, err);
	if (rc == 0) {
		m->ready_eps++;
		m->posted = 0;
	}
	return 1;
}

int mode1_connect(struct mode1 *m, uint64_t now, char err[INC_ERR_LEN])
{
	int rc;

	while ((rc = mode1_connect_part(m, UINT_MAX, now, err)) > 0)
		;
	return rc;
}

/* A peer that only waits has no request that a NAK could fail. It gets one that its queue pair must
 * refuse, which ends it: a WRITE, for which nobody has given a key. */
static int end_peer(struct mode1 *m, unsigned i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)m->base, .length = 1, .lkey = rnic_mr_lkey(m->dev->mr)};
	struct ibv_send_wr wr = {
		.wr_id = WR_SEND | WR_ID(i, WR_NO_BUF),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};

	return rnic_post_send(m->ep[i].qp, &wr);
}

void mode1_stop(struct mode1 *m, uint64_t now)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	m->stopped = true;
	for (unsigned i = 0; i < m->g->n_ep; i++)
		if (rnic_qp_refuse(m->ep[i].qp) < 0 || (!INC_BUG(M1_MUTE) && end_peer(m, i) < 0))
			rnic_qp_modify(m->ep[i].qp, &attr, IBV_QP_STATE, now);
}
