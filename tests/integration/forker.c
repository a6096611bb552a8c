/* SPDX-License-Identifier: BSD-3-Clause */
/* A program with two devices that writes from one to the other, on and on, while it forks. Without
 * an argument: children that change the registered memory and exit, that run a program, that try to
 * use a device; "ok" if every byte was right throughout.
 *
 * With "stay": a child that lives on, and one that has become sleep(1); prints "ready PID PID" and
 * writes until it is killed. */
#include <assert.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 1 << 16, WRITES = 50, CHILDREN = 5, PSN = 1000 };

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

	assert(ibv_modify_qp(e->qp, &attr,
		       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
	attr.qp_state = IBV_QPS_RTR;
	assert(ibv_modify_qp(e->qp, &attr,
		       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) ==
		0);
	attr.qp_state = IBV_QPS_RTS;
	assert(ibv_modify_qp(e->qp, &attr,
		       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
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

/* What a child writes to registered memory stays its own. */
static void in_child(const struct end *a, const struct end *b, struct ibv_device *device, int kind)
{
	struct ibv_context *context;

	memset(a->buf, 0xee, SIZE);
	memset(b->buf, 0xee, SIZE);
	switch (kind % 4) {
	case 0:
		exit(0); /* with its exit handlers: the port is the parent's to close */
	case 1:
		_exit(0);
	case 2:
		execlp("true", "true", (char *)NULL);
		_exit(1);
	default:
		errno = 0;
		context = ibv_open_device(device);
		_exit(!context && errno == ENODEV ? 0 : 1);
	}
}

static void fork_and_write(struct end *a, struct end *b, struct ibv_device *device)
{
	for (int i = 0; i < 4 * CHILDREN; i++) {
		const pid_t child = fork();
		int status;

		assert(child >= 0);
		if (child == 0)
			in_child(a, b, device, i);
		for (int k = 0; k < WRITES; k++)
			write_once(i & 1 ? a : b, i & 1 ? b : a, (uint8_t)(k + 1));
		assert(waitpid(child, &status, 0) == child);
		assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	assert(system("true") == 0);
	write_once(a, b, 1);
	printf("ok\n");
}

static void stay(struct end *a, struct end *b)
{
	pid_t child[2];

	for (int i = 0; i < 2; i++) {
		child[i] = fork();
		assert(child[i] >= 0);
		if (child[i] > 0)
			continue;
		fclose(stdout);
		fclose(stderr);
		if (i == 1)
			execlp("sleep", "sleep", "600", (char *)NULL);
		sleep(600);
		_exit(0);
	}
	write_once(a, b, 1);
	printf("ready %d %d\n", (int)child[0], (int)child[1]);
	fflush(stdout);
	for (;;)
		write_once(a, b, 2);
}

int main(int argc, char **argv)
{
	struct ibv_device **list;
	struct end end[2];
	int n;

	assert(ibv_fork_init() == 0);
	list = ibv_get_device_list(&n);
	assert(list && n == 2);
	for (int i = 0; i < 2; i++)
		open_end(&end[i], list[i]);
	connect_to(&end[0], &end[1]);
	connect_to(&end[1], &end[0]);
	if (argc > 1 && strcmp(argv[1], "stay") == 0)
		stay(&end[0], &end[1]);
	else
		fork_and_write(&end[0], &end[1], list[0]);
	for (int i = 0; i < 2; i++)
		ibv_close_device(end[i].context);
	ibv_free_device_list(list);
	return 0;
}
