/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: one queue for several QPs, its limit, what becomes of requests when a QP
 * fails. */
#include <errno.h>
#include <string.h>

#include "tests/unit/rnic/net.h"

static struct net net;
static struct rnic_srq *srq;
static struct rnic_qp *second[2];

static int post(uint64_t id, size_t offset, uint32_t len)
{
	struct end *b = &net.end[1];
	struct ibv_sge sge = {(uintptr_t)b->buf + offset, len, rnic_mr_lkey(b->mr)};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

	return rnic_srq_post_recv(srq, &wr);
}

/* End 1 has two QPs on one SRQ of 8. */
static void open_two(enum ibv_qp_type type)
{
	struct ibv_srq_attr attr = {.max_wr = 5, .max_sge = 2};
	struct net_options options = {.type = type};

	memset(&net, 0, sizeof(net));
	net_open(&net, &options);
	assert_int_equal(0, rnic_srq_create(net.end[1].pd, &attr, &net.end[1], &srq));
	assert_int_equal(8, attr.max_wr);
	assert_int_equal(2, attr.max_sge);
	options.srq[1] = srq;
	for (int i = 0; i < 2; i++) {
		net.end[i].qp = net_make_qp(&net.end[i], &options);
		second[i] = net_make_qp(&net.end[i], &options);
	}
	for (int i = 0; i < 2; i++) {
		net_to_rts(&net, i, net.end[i].qp, rnic_qp_num(net.end[!i].qp), &options);
		net_to_rts(&net, i, second[i], rnic_qp_num(second[!i]), &options);
	}
	memset(net.end[1].buf, 0, net.end[1].buf_len);
}

static void close_two(void)
{
	struct rnic_qp *qp[2] = {net.end[0].qp, net.end[1].qp};

	assert_int_equal(-EBUSY, rnic_srq_destroy(srq));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(0, rnic_qp_destroy(second[i]));
		assert_int_equal(0, rnic_qp_destroy(qp[i]));
		net.end[i].qp = NULL;
	}
	assert_int_equal(0, rnic_srq_destroy(srq));
	net_close(&net);
}

static void swap(void)
{
	struct rnic_qp *qp = net.end[0].qp;

	net.end[0].qp = second[0];
	second[0] = qp;
}

static void send(uint64_t id, size_t offset, uint32_t len)
{
	assert_int_equal(0, end_send(&net.end[0], IBV_WR_SEND, id, offset, len, 0, 0));
}

/* Long messages of two QPs at once: each has its request for itself. */
static void test_shared(void **state)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};

	(void)state;
	for (unsigned t = 0; t < 2; t++) {
		struct ibv_wc wc[4];
		size_t at;

		open_two(types[t]);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(0, post(i, 100000 * i, 60000));
		send(1, 0, 50000);
		swap();
		send(2, 500000, 50001);
		swap();
		net_run(&net, net.now + 10 * MS);
		assert_int_equal(2, rnic_cq_poll(net.end[1].rcq, 4, wc));
		for (unsigned i = 0; i < 2; i++) {
			bool first = wc[i].qp_num == rnic_qp_num(net.end[1].qp);

			assert_int_equal(IBV_WC_SUCCESS, wc[i].status);
			assert_int_equal(first ? 50000 : 50001, wc[i].byte_len);
			at = 100000 * wc[i].wr_id;
			assert_memory_equal(net.end[1].buf + at,
				net.end[0].buf + (first ? 0 : 500000), wc[i].byte_len);
		}
		assert_int_not_equal(wc[0].wr_id, wc[1].wr_id);
		close_two();
	}
}

static void test_empty_is_not_ready(void **state)
{
	(void)state;
	open_two(IBV_QPT_RC);
	send(1, 0, 3000);
	net_run(&net, net.now + 2 * MS);
	assert_true(rnic_count(net.end[1].rnic, RNIC_C_RNR_TX) > 0);
	end_no_wc(net.end[1].rcq);
	assert_int_equal(0, post(7, 0, 3000));
	net_run(&net, net.now + 10 * MS);
	assert_int_equal(7, end_wc(net.end[1].rcq).wr_id);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	close_two();
}

static void test_limit(void **state)
{
	struct ibv_srq_attr attr = {.srq_limit = 3};

	(void)state;
	open_two(IBV_QPT_RC);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(0, post(i, 0, 100));
	assert_int_equal(0, rnic_srq_modify(srq, &attr, IBV_SRQ_LIMIT));
	rnic_srq_query(srq, &attr);
	assert_int_equal(3, attr.srq_limit);
	assert_int_equal(8, attr.max_wr);
	for (unsigned i = 0; i < 5; i++) {
		send(i, 0, 100);
		net_run(&net, net.now + MS);
		/* When the third is taken, two are left. */
		assert_int_equal(i >= 2, net.end[1].n_srq_event);
	}
	rnic_srq_query(srq, &attr);
	assert_int_equal(0, attr.srq_limit);
	/* Armed below it already: at once. */
	attr.srq_limit = 1;
	assert_int_equal(0, rnic_srq_modify(srq, &attr, IBV_SRQ_LIMIT));
	assert_int_equal(2, net.end[1].n_srq_event);
	close_two();
}

static void test_refusals(void **state)
{
	struct ibv_srq_attr attr = {.max_wr = 16, .srq_limit = 9};
	struct ibv_sge sge[3] = {{0}};
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 3};
	struct rnic_srq *none;

	(void)state;
	open_two(IBV_QPT_RC);
	assert_int_equal(-EOPNOTSUPP, rnic_srq_modify(srq, &attr, IBV_SRQ_MAX_WR));
	assert_int_equal(-EINVAL, rnic_srq_modify(srq, &attr, IBV_SRQ_LIMIT));
	assert_int_equal(-EINVAL, rnic_srq_modify(srq, &attr, 64));
	assert_int_equal(-EINVAL, rnic_srq_post_recv(srq, &wr));
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(0, post(i, 0, 100));
	assert_int_equal(-ENOMEM, post(8, 0, 100));
	/* A QP with an SRQ has no receive queue. */
	assert_int_equal(-EINVAL, end_recv(&net.end[1], 1, 0, 100));
	attr.max_wr = 0;
	assert_int_equal(-EINVAL, rnic_srq_create(net.end[1].pd, &attr, NULL, &none));
	attr.max_wr = 1 << 20;
	assert_int_equal(-EINVAL, rnic_srq_create(net.end[1].pd, &attr, NULL, &none));
	attr = (struct ibv_srq_attr){.max_wr = 1, .max_sge = RNIC_MAX_SGE + 1};
	assert_int_equal(-EINVAL, rnic_srq_create(net.end[1].pd, &attr, NULL, &none));
	close_two();
}

/* Only the request that the QP has taken is flushed with it; the others are for the other QP. */
static void test_error(void **state)
{
	struct end *b = &net.end[1];
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_wc wc;

	(void)state;
	open_two(IBV_QPT_RC);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(0, post(i, 0, 5000));
	net.drop_from = 0;
	net.drop_opcode = ROCE_SEND_LAST;
	net.drop_nth = 1;
	send(1, 0, 2000);
	net_run(&net, net.now + MS / 2);
	assert_int_equal(0, rnic_qp_modify(b->qp, &attr, IBV_QP_STATE, net.now));
	wc = end_wc(b->rcq);
	assert_int_equal(IBV_WC_WR_FLUSH_ERR, wc.status);
	assert_int_equal(0, wc.wr_id);
	assert_int_equal(IBV_EVENT_QP_LAST_WQE_REACHED, b->event[b->n_event - 1]);
	swap();
	send(2, 0, 2000);
	net_run(&net, net.now + MS);
	wc = end_wc(b->rcq);
	assert_int_equal(IBV_WC_SUCCESS, wc.status);
	assert_int_equal(1, wc.wr_id);
	swap();
	close_two();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_empty_is_not_ready),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
