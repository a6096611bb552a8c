/* SPDX-License-Identifier: BSD-3-Clause */
/* How connections end, and what programs may ask for. */
#include "tests/unit/mrc_transport/fabric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct fabric_options plain = {.format = RNIC_MRC_STEV,
	.psn = {100, 200},
	.attr = {.timeout = 8, .linear_cnt = 2, .exp_cnt = 2},
	.mask = RNIC_MRC_TIMEOUT | RNIC_MRC_RETRY};

static enum ibv_qp_state state_of(const struct fabric *f, int i)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	rnic_qp_query(f->net.end[i].qp, &attr, &init);
	return attr.qp_state;
}

static bool has_event(const struct fabric *f, int i, enum ibv_event_type type)
{
	for (unsigned n = 0; n < f->net.end[i].n_event; n++) {
		if (f->net.end[i].event[n] == type)
			return true;
	}
	return false;
}

static void expect(struct rnic_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	const struct ibv_wc wc = end_wc(cq);

	assert_int_equal(id, wc.wr_id);
	assert_int_equal(status, wc.status);
}

static int write_to(struct fabric *f, uint64_t id, uint32_t len, uint32_t rkey)
{
	struct end *peer = &f->net.end[1];

	return end_send(&f->net.end[0], IBV_WR_RDMA_WRITE, id, 0, len, (uintptr_t)peer->buf, rkey);
}

/* The second of three cannot be placed: the first is done, the third is flushed, both ends are
 * over, and nothing was written. */
static void access_error(void **state)
{
	struct fabric *f = fabric_make(&plain);
	struct end *a = &f->net.end[0], *b = &f->net.end[1];
	const uint32_t key = rnic_mr_rkey(b->mr);
	uint8_t *before = malloc(5000);

	(void)state;
	assert_int_equal(0, write_to(f, 1, 100, key));
	net_run(&f->net, f->net.now + MS);
	memcpy(before, b->buf, 5000);
	memset(a->buf, 0x5a, 5000);
	assert_int_equal(0, write_to(f, 2, 5000, key ^ 0x100));
	assert_int_equal(0, write_to(f, 3, 0, key));
	net_run(&f->net, f->net.now + 10 * MS);
	expect(a->scq, 1, IBV_WC_SUCCESS);
	expect(a->scq, 2, IBV_WC_REM_ACCESS_ERR);
	expect(a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	assert_memory_equal(before, b->buf, 5000);
	assert_int_equal(IBV_QPS_ERR, state_of(f, 0));
	assert_int_equal(IBV_QPS_ERR, state_of(f, 1));
	assert_true(has_event(f, 1, IBV_EVENT_QP_ACCESS_ERR));
	assert_true(rnic_drop_count(b->rnic, RNIC_DROP_ACCESS) > 0);
	/* What is posted now is flushed, too. */
	assert_int_equal(0, write_to(f, 4, 10, key));
	net_run(&f->net, f->net.now + MS);
	expect(a->scq, 4, IBV_WC_WR_FLUSH_ERR);
	free(before);
	fabric_free(f);
}

static void no_receive(void **state)
{
	struct fabric *f = fabric_make(&plain);
	struct end *a = &f->net.end[0], *b = &f->net.end[1];
	const uint32_t key = rnic_mr_rkey(b->mr);

	(void)state;
	assert_int_equal(0, end_recv(b, 50, 0, 0));
	for (unsigned i = 1; i < 4; i++)
		assert_int_equal(0, end_send(a, IBV_WR_RDMA_WRITE_WITH_IMM, i, 0, 3000,
					    (uintptr_t)b->buf, key));
	net_run(&f->net, f->net.now + 10 * MS);
	expect(a->scq, 1, IBV_WC_SUCCESS);
	expect(a->scq, 2, IBV_WC_REM_OP_ERR);
	expect(a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	expect(b->rcq, 50, IBV_WC_SUCCESS);
	end_no_wc(b->rcq);
	assert_true(has_event(f, 1, IBV_EVENT_QP_REQ_ERR));
	fabric_free(f);
}

static bool lose_first(struct fabric *f, int from, uint8_t *frame, size_t *len)
{
	(void)len;
	(void)frame;
	return from != 0 || f->net.hook_n++ > 0;
}

/* More immediates at a time than the peer can hold. */
static void too_many_immediates(void **state)
{
	struct fabric_options o = plain;
	struct fabric *f;
	struct end *a, *b;

	(void)state;
	o.attr.max_wimm = 8;
	o.attr.max_wimm_dest = 2;
	o.mask |= RNIC_MRC_MAX_WIMM | RNIC_MRC_MAX_WIMM_DEST;
	f = fabric_make(&o);
	f->hook = lose_first;
	a = &f->net.end[0];
	b = &f->net.end[1];
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(0, end_recv(b, i, 0, 0));
		assert_int_equal(0, end_send(a, IBV_WR_RDMA_WRITE_WITH_IMM, i, 0, 10,
					    (uintptr_t)b->buf, rnic_mr_rkey(b->mr)));
	}
	net_run(&f->net, f->net.now + 10 * MS);
	expect(a->scq, 0, IBV_WC_REM_INV_REQ_ERR);
	expect(a->scq, 1, IBV_WC_WR_FLUSH_ERR);
	fabric_free(f);
}

/* The peer is gone: over in bounded time. */
static void nobody_there(void **state)
{
	struct fabric *f = fabric_make(&plain);
	struct end *a = &f->net.end[0];
	uint64_t from;

	(void)state;
	f->loss = 1000;
	from = f->net.now;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(0, write_to(f, i, 2000, rnic_mr_rkey(f->net.end[1].mr)));
	while (state_of(f, 0) == IBV_QPS_RTS) {
		net_run(&f->net, f->net.now + 100000);
		assert_true(f->net.now - from < 20 * MS);
	}
	/* Two waits of 262 us, then doubled twice, and the one after which it gives up. */
	assert_true(f->net.now - from >= 2 * MS);
	expect(a->scq, 0, IBV_WC_RETRY_EXC_ERR);
	expect(a->scq, 1, IBV_WC_WR_FLUSH_ERR);
	expect(a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(IBV_QPS_RTS, state_of(f, 1));
	fabric_free(f);
}

/* Memory that the program may not read: what is before it completes. */
static void local_memory(void **state)
{
	struct fabric *f = fabric_make(&plain);
	struct end *a = &f->net.end[0], *b = &f->net.end[1];
	struct ibv_sge sge = {(uintptr_t)a->buf, 100, rnic_mr_lkey(a->mr) ^ 0x300};
	struct ibv_send_wr wr = {.wr_id = 2,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {(uintptr_t)b->buf, rnic_mr_rkey(b->mr)}};

	(void)state;
	assert_int_equal(0, write_to(f, 1, 4000, rnic_mr_rkey(b->mr)));
	assert_int_equal(0, rnic_post_send(a->qp, &wr));
	assert_int_equal(0, write_to(f, 3, 4000, rnic_mr_rkey(b->mr)));
	net_run(&f->net, f->net.now + 10 * MS);
	expect(a->scq, 1, IBV_WC_SUCCESS);
	expect(a->scq, 2, IBV_WC_LOC_PROT_ERR);
	expect(a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	fabric_free(f);
}

/* It goes while packets are on their way: the request it belongs to says so. */
static void memory_goes(void **state)
{
	struct fabric *f = fabric_make(&plain);
	struct end *a = &f->net.end[0], *b = &f->net.end[1];
	struct rnic_mr *mr;
	struct ibv_sge sge = {(uintptr_t)a->buf, 8000, 0};
	struct ibv_send_wr wr = {.wr_id = 2,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {(uintptr_t)b->buf, rnic_mr_rkey(b->mr)}};

	(void)state;
	assert_int_equal(0, rnic_mr_reg(a->pd, a->buf, 8000, (uintptr_t)a->buf, 0, &mr));
	sge.lkey = rnic_mr_lkey(mr);
	f->loss = 1000;
	assert_int_equal(0, write_to(f, 1, 4000, rnic_mr_rkey(b->mr)));
	assert_int_equal(0, rnic_post_send(a->qp, &wr));
	net_run(&f->net, f->net.now + 10000);
	assert_int_equal(0, rnic_mr_dereg(mr));
	f->loss = 0;
	net_run(&f->net, f->net.now + 50 * MS);
	assert_int_equal(1, end_wc(a->scq).wr_id);
	expect(a->scq, 2, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(IBV_QPS_ERR, state_of(f, 0));
	fabric_free(f);
}

static void requests(void **state)
{
	struct fabric *f = fabric_make(&plain);
	struct end *a = &f->net.end[0];
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};

	(void)state;
	assert_int_equal(-EOPNOTSUPP, end_send(a, IBV_WR_SEND, 1, 0, 10, 0, 0));
	assert_int_equal(-EOPNOTSUPP, end_send(a, IBV_WR_RDMA_READ, 1, 0, 10, 0, 0));
	assert_int_equal(-EINVAL, rnic_qp_modify(a->qp, &attr, IBV_QP_STATE, f->net.now));
	fabric_free(f);
}

static void attributes(void **state)
{
	static struct rnic_mrc_paths two = {
		.format = RNIC_MRC_STEV, .n = 2, .path = {{.ev = 5}, {.ev = 5}}};
	struct fabric *f = fabric_make(&plain);
	struct end *a = &f->net.end[0];
	const struct net_options no = {.ip6 = true, .transport = &rnic_mrc};
	struct rnic_qp *qp = net_make_qp(a, &no);
	struct rnic_mrc_attr attr = {.mpr = 0}, got;
	struct ibv_qp_attr ibv = net_attr(&f->net, 0, 77, &no);

	(void)state;
	assert_int_equal(-EINVAL, rnic_mrc_set(qp, &attr, RNIC_MRC_MPR));
	assert_int_equal(-EINVAL, rnic_mrc_set(qp, &attr, RNIC_MRC_MAX_WIMM_DEST));
	assert_int_equal(-EINVAL, rnic_mrc_set(qp, &attr, 1u << 20));
	attr = (struct rnic_mrc_attr){.timeout = 25, .linear_cnt = 8, .caps = 8};
	assert_int_equal(-EINVAL, rnic_mrc_set(qp, &attr, RNIC_MRC_TIMEOUT));
	assert_int_equal(-EINVAL, rnic_mrc_set(qp, &attr, RNIC_MRC_RETRY));
	assert_int_equal(-EINVAL, rnic_mrc_set(qp, &attr, RNIC_MRC_CAPS));
	assert_int_equal(0, rnic_mrc_get(qp, &got));
	assert_int_equal(8, got.mpr);
	assert_int_equal(32, got.max_wimm_dest);
	/* One EV twice shows when the set is made. */
	attr.paths = &two;
	assert_int_equal(0, rnic_mrc_set(qp, &attr, RNIC_MRC_PATHS));
	ibv.qp_state = IBV_QPS_INIT;
	assert_int_equal(0, rnic_qp_modify(qp, &ibv, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, 0));
	ibv.qp_state = IBV_QPS_RTR;
	assert_int_equal(-EINVAL, rnic_qp_modify(qp, &ibv,
					  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
					  f->net.now));
	assert_null(rnic_mrc_paths_of(qp));
	/* AUTO, made by the device. */
	attr.paths = NULL;
	assert_int_equal(0, rnic_mrc_set(qp, &attr, RNIC_MRC_PATHS));
	assert_int_equal(0, rnic_qp_modify(qp, &ibv,
				    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					    IBV_QP_RQ_PSN,
				    f->net.now));
	assert_int_equal(128, rnic_mrc_paths_of(qp)->n);
	/* Their time has passed. */
	attr = (struct rnic_mrc_attr){.mpr_dest = 1, .timeout = 3};
	assert_int_equal(-EINVAL, rnic_mrc_set(qp, &attr, RNIC_MRC_MPR_DEST));
	assert_int_equal(-EINVAL, rnic_mrc_set(a->qp, &attr, RNIC_MRC_MPR));
	assert_int_equal(0, rnic_mrc_set(a->qp, &attr, RNIC_MRC_TIMEOUT));
	rnic_qp_destroy(qp);
	fabric_free(f);
}

/* A device that does not speak it; and one that goes with all that it has. */
static void devices(void **state)
{
	const struct rnic_config config = {.port[0] = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = 1500}};
	struct mrc_settings set = mrc_settings_default();
	struct rnic_mrc_config mrc = {.n_ports = 9};
	struct rnic_qp_init init = {.type = IBV_QPT_RC, .transport = &rnic_mrc};
	struct rnic_qp *qp;
	struct rnic *rnic;
	uint64_t value;

	(void)state;
	assert_int_equal(0, rnic_create(&config, &rnic));
	assert_int_equal(0, rnic_pd_alloc(rnic, &init.pd));
	assert_int_equal(0, rnic_cq_create(rnic, 16, NULL, &init.send_cq));
	init.recv_cq = init.send_cq;
	assert_int_equal(-EINVAL, rnic_qp_create(rnic, &init, &qp));
	assert_int_equal(-EINVAL, rnic_mrc_open(rnic, &mrc));
	assert_null(rnic_mrc_counter(rnic, 0, &value));
	mrc = (struct rnic_mrc_config){.settings = &set};
	set.dscp_control = set.dscp_trimmed;
	assert_int_equal(-EINVAL, rnic_mrc_open(rnic, &mrc));
	set = mrc_settings_default();
	set.base_rtt_us = 0;
	assert_int_equal(-EINVAL, rnic_mrc_open(rnic, &mrc));
	set = mrc_settings_default();
	assert_int_equal(0, rnic_mrc_open(rnic, &mrc));
	assert_int_equal(0, rnic_qp_create(rnic, &init, &qp));
	assert_string_equal("mrc", rnic_qp_transport(qp));
	rnic_destroy(rnic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(access_error),
		cmocka_unit_test(no_receive),
		cmocka_unit_test(too_many_immediates),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(local_memory),
		cmocka_unit_test(memory_goes),
		cmocka_unit_test(requests),
		cmocka_unit_test(attributes),
		cmocka_unit_test(devices),
	};

	return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
