/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: events, what goes with a queue pair, overruns. */
#include <errno.h>
#include <string.h>

#include "tests/unit/rnic/net.h"

static struct rnic_qp_init small_qp(const struct end *end)
{
	return (struct rnic_qp_init){.type = IBV_QPT_RC,
		.pd = end->pd,
		.send_cq = end->scq,
		.recv_cq = end->rcq,
		.cap = {3, 8, 1, 2, 0},
		.user = (void *)end};
}

static void give(struct net *net, uint32_t psn, bool solicited)
{
	assert_int_equal(0, end_recv(&net->end[1], psn, 0, 64));
	net_packet(net, 1, (struct wire_hdr){.opcode = ROCE_SEND_ONLY, .psn = psn, .se = solicited},
		"x", 1);
}

static void test_events(void **state)
{
	static struct net net;
	struct end *b = &net.end[1];
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){0});
	give(&net, 0, true); /* not armed */
	assert_int_equal(0, b->n_cq_event);
	rnic_cq_arm(b->rcq, false); /* what is there already raises nothing */
	assert_int_equal(0, b->n_cq_event);
	give(&net, 1, false);
	assert_int_equal(1, b->n_cq_event);
	give(&net, 2, true); /* disarmed again */
	assert_int_equal(1, b->n_cq_event);
	rnic_cq_arm(b->rcq, true);
	give(&net, 3, false);
	assert_int_equal(1, b->n_cq_event);
	give(&net, 4, true);
	assert_int_equal(2, b->n_cq_event);
	rnic_cq_arm(b->rcq, false);
	rnic_cq_arm(b->rcq, true); /* does not take back the wider wish */
	give(&net, 5, false);
	assert_int_equal(3, b->n_cq_event);
	rnic_cq_arm(b->rcq, true);
	assert_int_equal(0, end_recv(b, 6, 0, 64));
	assert_int_equal(0, rnic_qp_modify(b->qp, &attr, IBV_QP_STATE, 0));
	assert_int_equal(4, b->n_cq_event); /* a failed one counts as solicited */
	net_close(&net);
}

/* One channel for two CQs: the events of a burst come as its completions did. A program that has
 * seen the answer's event reads the completion of what it answers (perftest, ib_send_lat -e). */
static void test_events_in_order(void **state)
{
	static struct net net;
	static struct rnic_frame frames[2];
	static uint8_t bytes[2][NET_FRAME];
	struct rnic_rx_frame rx[2];
	struct end *a = &net.end[0], *b = &net.end[1];

	(void)state;
	for (int last = 0; last < 2; last++) {
		memset(&net, 0, sizeof(net));
		net_connect(&net, &(struct net_options){0});
		assert_int_equal(0, end_recv(a, 0, 0, 64));
		assert_int_equal(0, end_recv(b, 0, 0, 64));
		assert_int_equal(0, end_send(b, IBV_WR_SEND, 0, 0, 64, 0, 0));
		assert_true(rnic_tx(b->rnic, RNIC_ALL_PORTS, &frames[0], 0));
		net_inject(&net, 0, bytes[0],
			(size_t)rnic_frame_flatten(&frames[0], bytes[0], NET_FRAME));
		assert_int_equal(0, end_send(a, IBV_WR_SEND, 0, 0, 64, 0, 0));
		assert_int_equal(2, rnic_tx_burst(a->rnic, RNIC_ALL_PORTS, frames, 2, 0));
		for (int i = 0; i < 2; i++) {
			const int at = last ? !i : i;

			rx[at].data = bytes[i];
			rx[at].len = (uint32_t)rnic_frame_flatten(&frames[i], bytes[i], NET_FRAME);
		}
		rnic_cq_arm(b->scq, false);
		rnic_cq_arm(b->rcq, false);
		rnic_rx_burst(b->rnic, 0, rx, 2, 0);
		assert_int_equal(2, b->n_cq_event);
		/* Acknowledgements leave before requests. */
		assert_ptr_equal(last ? b->rcq : b->scq, b->cq_event[0]);
		assert_ptr_equal(last ? b->scq : b->rcq, b->cq_event[1]);
		net_close(&net);
	}
}

/* Two QPs on one CQ: with one goes what it completed. */
static void test_purge(void **state)
{
	static struct net net;
	struct end *a = &net.end[0];
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct rnic_qp *qp[2];
	struct ibv_wc wc[16];

	(void)state;
	memset(&net, 0, sizeof(net));
	net_open(&net, &(struct net_options){0});
	for (int i = 0; i < 2; i++) {
		struct rnic_qp_init init = small_qp(&net.end[0]);

		assert_int_equal(0, rnic_qp_create(a->rnic, &init, &qp[i]));
		assert_int_equal(0, rnic_qp_modify(qp[i], &attr, IBV_QP_STATE, 0));
	}
	for (unsigned i = 0; i < 8; i++) {
		a->qp = qp[i % 2];
		assert_int_equal(0, end_recv(a, i, 0, 64));
		net_run(&net, 0);
	}
	assert_int_equal(1, rnic_cq_poll(a->rcq, 1, wc));
	assert_int_equal(0, rnic_qp_destroy(qp[1]));
	assert_int_equal(3, rnic_cq_poll(a->rcq, 16, wc));
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(2 + 2 * i, wc[i].wr_id);
	a->qp = qp[0];
	net_close(&net);
}

/* ---- overruns ---- */

static enum ibv_qp_state state_of(const struct rnic_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	rnic_qp_query(qp, &attr, &init);
	return attr.qp_state;
}

static const struct ibv_qp_attr to_err = {.qp_state = IBV_QPS_ERR};
static const struct ibv_qp_attr to_init = {.qp_state = IBV_QPS_INIT, .port_num = 1};

/* Said at once, and once; what there was room for is there; then the queue is dead, with all that
 * uses it. */
static void test_overrun(void **state)
{
	static struct net net;
	struct end *a = &net.end[0];
	struct rnic_qp_init init;
	struct rnic_qp *bystander, *unborn, *other, *none;
	struct rnic_cq *cq;
	struct ibv_wc wc[8];

	(void)state;
	memset(&net, 0, sizeof(net));
	net_open(&net, &(struct net_options){0});
	assert_int_equal(-EINVAL, rnic_cq_create(a->rnic, 0, NULL, &cq));
	assert_int_equal(0, rnic_cq_create(a->rnic, 3, a, &cq));
	assert_int_equal(4, rnic_cq_depth(cq));
	init = small_qp(a);
	assert_int_equal(0, rnic_qp_create(a->rnic, &init, &other));
	assert_int_equal(0, rnic_qp_modify(other, &to_init, net_mask_init, 0));
	init.recv_cq = cq;
	assert_int_equal(0, rnic_qp_create(a->rnic, &init, &a->qp));
	assert_int_equal(0, rnic_qp_create(a->rnic, &init, &bystander));
	assert_int_equal(0, rnic_qp_create(a->rnic, &init, &unborn));
	assert_int_equal(0, rnic_qp_modify(bystander, &to_init, net_mask_init, 0));
	rnic_cq_arm(cq, true);
	assert_int_equal(0, rnic_qp_modify(a->qp, &to_err, IBV_QP_STATE, 0));
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(0, end_recv(a, i, 0, 64));
	assert_int_equal(0, a->n_cq_error);
	net_run(&net, 0);
	assert_int_equal(1, a->n_cq_error);
	assert_int_equal(1, a->n_cq_event);
	assert_int_equal(1, a->n_event);
	assert_int_equal(IBV_EVENT_QP_FATAL, a->event[0]);
	assert_int_equal(IBV_QPS_ERR, state_of(bystander));
	assert_int_equal(IBV_QPS_INIT, state_of(other));
	assert_int_equal(IBV_QPS_RESET, state_of(unborn));
	assert_int_equal(3, rnic_cq_poll(cq, 3, wc));
	assert_int_equal(1, rnic_cq_poll(cq, 8, wc + 3));
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(i, wc[i].wr_id);
	for (unsigned i = 0; i < 3; i++) { /* there is room again, and nothing comes */
		assert_int_equal(0, end_recv(a, i, 0, 64));
		net_run(&net, 0);
		assert_int_equal(-EOVERFLOW, rnic_cq_poll(cq, 8, wc));
	}
	assert_int_equal(0, rnic_cq_poll(cq, 0, wc));
	assert_int_equal(1, a->n_cq_error);
	assert_int_equal(-EINVAL, rnic_qp_modify(unborn, &to_init, net_mask_init, 0));
	assert_int_equal(-EINVAL, rnic_qp_create(a->rnic, &init, &none));
	assert_int_equal(-EINVAL, rnic_cq_resize(cq, 64));
	assert_int_equal(0, rnic_qp_destroy(a->qp));
	assert_int_equal(0, rnic_qp_destroy(bystander));
	assert_int_equal(0, rnic_qp_destroy(unborn));
	a->qp = other;
	assert_int_equal(0, rnic_cq_destroy(cq));
	net_close(&net);
}

/* In the middle of an acknowledgement that completes more than there is room for. */
static void test_overrun_by_ack(void **state)
{
	static struct net net;
	struct end *a = &net.end[0];
	struct rnic_cq *plain, *cq;
	struct ibv_wc wc[8];

	(void)state;
	memset(&net, 0, sizeof(net));
	net_open(&net, &(struct net_options){0});
	assert_int_equal(0, rnic_cq_create(a->rnic, 4, a, &cq));
	plain = a->scq;
	a->scq = cq;
	for (int i = 0; i < 2; i++)
		net.end[i].qp = net_make_qp(&net.end[i], &(struct net_options){0});
	for (int i = 0; i < 2; i++)
		net_to_rts(&net, i, net.end[i].qp, rnic_qp_num(net.end[!i].qp),
			&(struct net_options){0});
	assert_int_equal(0, end_recv(a, 99, 0, 64));
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(
			0, end_send(a, IBV_WR_RDMA_WRITE, i, 0, 64, (uintptr_t)net.end[1].buf,
				   rnic_mr_rkey(net.end[1].mr)));
	net_run(&net, FOREVER);
	assert_int_equal(1, a->n_cq_error);
	assert_int_equal(IBV_QPS_ERR, state_of(a->qp));
	assert_int_equal(1, a->n_event);
	assert_int_equal(4, rnic_cq_poll(cq, 8, wc));
	assert_int_equal(IBV_WC_SUCCESS, wc[3].status);
	assert_int_equal(-EOVERFLOW, rnic_cq_poll(cq, 8, wc));
	/* The other queue of the QP lives, and tells. */
	assert_int_equal(IBV_WC_WR_FLUSH_ERR, end_wc(a->rcq).status);
	assert_int_equal(0, rnic_qp_destroy(a->qp));
	a->qp = NULL;
	a->scq = plain;
	assert_int_equal(0, rnic_cq_destroy(cq));
	net_close(&net);
}

/* Messages that come in one burst: none is taken after the one that overran. */
static void test_overrun_by_messages(void **state)
{
	static struct net net;
	struct end *b = &net.end[1];
	struct rnic_cq *plain, *cq;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_open(&net, &(struct net_options){0});
	assert_int_equal(0, rnic_cq_create(b->rnic, 2, b, &cq));
	plain = b->rcq;
	b->rcq = cq;
	for (int i = 0; i < 2; i++)
		net.end[i].qp = net_make_qp(&net.end[i], &(struct net_options){0});
	for (int i = 0; i < 2; i++)
		net_to_rts(&net, i, net.end[i].qp, rnic_qp_num(net.end[!i].qp),
			&(struct net_options){0});
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(0, end_recv(b, i, 64 * i, 64));
	for (unsigned i = 0; i < 5; i++)
		net_packet(&net, 1, (struct wire_hdr){.opcode = ROCE_SEND_ONLY, .psn = i}, "x", 1);
	assert_int_equal(1, b->n_cq_error);
	assert_int_equal(IBV_QPS_ERR, state_of(b->qp));
	assert_int_equal(2, rnic_drop_count(b->rnic, RNIC_DROP_QP_STATE));
	assert_int_equal(0xee, b->buf[3 * 64]);
	assert_int_equal(0, rnic_qp_destroy(b->qp));
	b->qp = NULL;
	b->rcq = plain;
	assert_int_equal(0, rnic_cq_destroy(cq));
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_events_in_order),
		cmocka_unit_test(test_purge),
		cmocka_unit_test(test_overrun),
		cmocka_unit_test(test_overrun_by_ack),
		cmocka_unit_test(test_overrun_by_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
