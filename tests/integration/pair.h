/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices in one process, joined by RC, and WRITEs from one to the other. */
#ifndef TESTS_PAIR_H
#define TESTS_PAIR_H

#include <assert.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "../rc_steps.h"

enum { SIZE = 1 << 16, PSN = 1000 };

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	uint8_t *buf;
};

static void open_end(struct end *e, struct ibv_device *device)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};

	e->context = ibv_open_device(device);
	assert(e->context);
	e->pd = ibv_alloc_pd(e->context);
	e->cq = ibv_create_cq(e->context, 16, NULL, NULL, 0);
	assert(posix_memalign((void **)&e->buf, 4096, SIZE) == 0);
	e->mr = ibv_reg_mr(e->pd, e->buf, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	assert(e->qp && e->mr);
	assert(ibv_query_gid(e->context, 1, 1, &e->gid) == 0);
}

static void connect_to(struct end *e, const struct end *peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = PSN,
		.sq_psn = PSN,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 20,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = peer->gid, .sgid_index = 1, .hop_limit = 64}}};

	assert(ibv_modify_qp(e->qp, &attr, RC_TO_INIT) == 0);
	attr.qp_state = IBV_QPS_RTR;
	assert(ibv_modify_qp(e->qp, &attr, RC_TO_RTR) == 0);
	attr.qp_state = IBV_QPS_RTS;
	assert(ibv_modify_qp(e->qp, &attr, RC_TO_RTS) == 0);
}

static void write_once(struct end *from, struct end *to, uint8_t value)
{
	struct ibv_sge sge = {(uintptr_t)from->buf, SIZE, from->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_RDMA_WRITE,
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.rdma = {(uintptr_t)to->buf, to->mr->rkey}},
			   *bad;
	struct ibv_wc wc;
	int n;

	memset(from->buf, value, SIZE);
	memset(to->buf, 0, SIZE);
	assert(ibv_post_send(from->qp, &wr, &bad) == 0);
	while ((n = ibv_poll_cq(from->cq, 1, &wc)) == 0)
		;
	assert(n == 1 && wc.status == IBV_WC_SUCCESS);
	for (int i = 0; i < SIZE; i++)
		assert(to->buf[i] == value);
}

static void open_pair(struct end end[2], struct ibv_device **list)
{
	for (int i = 0; i < 2; i++)
		open_end(&end[i], list[i]);
	connect_to(&end[0], &end[1]);
	connect_to(&end[1], &end[0]);
}

#endif
