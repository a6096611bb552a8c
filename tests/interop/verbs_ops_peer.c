/* SPDX-License-Identifier: BSD-3-Clause */
/* The way to the other side, over TCP, and the objects of this one. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/interop/verbs_ops.h"

int dial(const char *at)
{
	char host[256];
	const char *colon = strrchr(at, ':');
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_INET}, *a;
	int fd, one = 1, server;

	snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - at) : 0, at);
	hints.ai_flags = colon ? 0 : AI_PASSIVE;
	if (getaddrinfo(colon ? host : NULL, colon ? colon + 1 : at, &hints, &a) != 0)
		fail("%s: no such address", at);
	fd = socket(a->ai_family, SOCK_STREAM, 0);
	check(fd >= 0, "socket");
	if (colon) {
		for (int i = 0; connect(fd, a->ai_addr, a->ai_addrlen) != 0; i++) {
			check(i < WAIT_S * 10, at);
			usleep(100000);
			close(fd);
			fd = socket(a->ai_family, SOCK_STREAM, 0);
		}
		freeaddrinfo(a);
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	check(bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 1) == 0, at);
	freeaddrinfo(a);
	server = fd;
	fd = accept(server, NULL, NULL);
	check(fd >= 0, "accept");
	close(server);
	return fd;
}

void meet(void)
{
	struct timeval limit = {.tv_sec = WAIT_S};

	setsockopt(state.control, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	check(write(state.control, &state.here, sizeof(state.here)) == (ssize_t)sizeof(state.here),
		"peer");
	errno = ECONNRESET;
	check(recv(state.control, &state.there, sizeof(state.there), MSG_WAITALL) ==
			(ssize_t)sizeof(state.there),
		"the other side");
}

static enum ibv_mtu mtu_code(int mtu)
{
	for (enum ibv_mtu m = IBV_MTU_256; m <= IBV_MTU_4096; m++)
		if (128 << m == mtu)
			return m;
	fail("-m: MTU is 256, 512, 1024, 2048 or 4096");
}

void create(struct ibv_context *c)
{
	enum {
		ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND
	};
	struct ibv_qp_init_attr init = {.qp_type = conf.type,
		.cap = {.max_send_wr = 2 * OPS_MAX,
			.max_recv_wr = OPS_MAX,
			.max_send_sge = 1,
			.max_recv_sge = 1}};

	state.memory = aligned_alloc(4096, (size_t)N_REGIONS * OPS_MAX * AREA);
	state.pd = ibv_alloc_pd(c);
	check(state.memory && state.pd, "ibv_alloc_pd");
	state.mr = ibv_reg_mr(state.pd, state.memory, (size_t)N_REGIONS * OPS_MAX * AREA, ACCESS);
	check(state.mr, "ibv_reg_mr");
	state.cq = ibv_create_cq(c, 4 * OPS_MAX, NULL, NULL, 0);
	check(state.cq, "ibv_create_cq");
	init.send_cq = init.recv_cq = state.cq;
	state.qp = ibv_create_qp(state.pd, &init);
	check(state.qp, "ibv_create_qp");
	for (unsigned i = 0; i < conf.n_ops; i++)
		if (conf.op[i].verb->opcode == IBV_WR_SEND_WITH_INV) {
			state.mw[i] = ibv_alloc_mw(state.pd, IBV_MW_TYPE_2);
			check(state.mw[i], "ibv_alloc_mw");
		}
	state.here = (struct peer){.qpn = state.qp->qp_num,
		.psn = (conf.psn + (conf.side == CONNECTOR ? 256 : 0)) & 0xffffff,
		.rkey = state.mr->rkey,
		.soft_roce = state.soft_roce,
		.addr = (uintptr_t)state.memory};
	check(ibv_query_gid(c, 1, conf.gid, &state.here.gid) == 0, "ibv_query_gid");
}

void bring_up(void)
{
	bool ud = conf.type == IBV_QPT_UD, rc = conf.type == IBV_QPT_RC;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC};
	struct ibv_ah_attr way = {.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = state.there.gid, .sgid_index = (uint8_t)conf.gid, .hop_limit = 64}};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	check(ibv_modify_qp(state.qp, &a, mask | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0,
		"INIT");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.dest_qp_num = state.there.qpn,
		.rq_psn = state.there.psn,
		.path_mtu = mtu_code(conf.mtu),
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = way};
	mask = IBV_QP_STATE;
	if (!ud)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (rc)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	check(ibv_modify_qp(state.qp, &a, mask) == 0, "RTR");
	if (ud)
		check((state.ah = ibv_create_ah(state.pd, &way)) != NULL, "ibv_create_ah");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.sq_psn = state.here.psn,
		.timeout = 16,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4};
	if (strcmp(conf.op[conf.n_ops - 1].verb->name, "norecv") == 0)
		a.rnr_retry = 2;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (rc)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	check(ibv_modify_qp(state.qp, &a, mask) == 0, "RTS");
}
