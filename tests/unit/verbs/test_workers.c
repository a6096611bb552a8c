/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive workers of a device: who gets one, hand-over and full rings, threads beside RC, events,
 * closing in the middle. What a worker does with a frame: tests/unit/rnic/test_workers.c. */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/rnic/device.h"
#include "lib/rnic/worker.h"
#include "lib/verbs/dpdk_port.h"
#include "lib/verbs/workers.h"
#include "tests/unit/verbs/fabric.h"

enum {
	WORKERS = 2,
	QKEY = 0x1234,
	GRH = 40,
	SLOT = 2048,
	DEPTH = 512,
	LENGTH = 1000,
	BUF = 1 << 20
};

/* Datagrams to workers: a sender at the first end, a receiver for each worker at the other. */
struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_comp_channel *channel;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	uint8_t *buf;
};

struct bench {
	struct fabric *f;
	struct side tx, rx[WORKERS];
};

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1, .qkey = QKEY};
	const int mask = state == IBV_QPS_INIT
				 ? IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY
			 : state == IBV_QPS_RTS ? IBV_QP_STATE | IBV_QP_SQ_PSN
						: IBV_QP_STATE;

	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
}

static struct ibv_qp_init_attr init_attr(const struct side *s)
{
	return (struct ibv_qp_init_attr){.qp_type = IBV_QPT_UD,
		.send_cq = s->scq,
		.recv_cq = s->rcq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1}};
}

static void open_side(struct side *s, struct ibv_context *context, unsigned worker)
{
	struct ibv_qp_init_attr init;

	memset(s, 0, sizeof(*s));
	s->context = context;
	s->pd = ibv_alloc_pd(context);
	s->channel = ibv_create_comp_channel(context);
	s->scq = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
	s->rcq = ibv_create_cq(context, DEPTH, NULL, s->channel, 0);
	s->buf = calloc(1, BUF);
	s->mr = ibv_reg_mr(s->pd, s->buf, BUF, IBV_ACCESS_LOCAL_WRITE);
	assert_true(s->pd && s->channel && s->scq && s->rcq && s->mr);
	init = init_attr(s);
	s->qp = worker ? inc_dv_create_qp(s->pd, &init, INC_DV_QP_WORKER(worker))
		       : ibv_create_qp(s->pd, &init);
	assert_non_null(s->qp);
	to_state(s->qp, IBV_QPS_INIT);
	to_state(s->qp, IBV_QPS_RTR);
	to_state(s->qp, IBV_QPS_RTS);
}

static void close_side(struct side *s)
{
	if (s->ah)
		assert_int_equal(ibv_destroy_ah(s->ah), 0);
	assert_int_equal(ibv_destroy_qp(s->qp), 0);
	assert_int_equal(ibv_destroy_cq(s->scq), 0);
	assert_int_equal(ibv_destroy_cq(s->rcq), 0);
	assert_int_equal(ibv_destroy_comp_channel(s->channel), 0);
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	assert_int_equal(ibv_dealloc_pd(s->pd), 0);
	free(s->buf);
}

static struct bench *open_bench(bool thread)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 1}};

	b->f = fabric_create();
	b->f->workers = WORKERS;
	fabric_open(b->f, thread);
	open_side(&b->tx, b->f->end[0].context, 0);
	for (unsigned i = 0; i < WORKERS; i++)
		open_side(&b->rx[i], b->f->end[1].context, i + 1);
	assert_int_equal(ibv_query_gid(b->f->end[1].context, 1, 1, &attr.grh.dgid), 0);
	b->tx.ah = ibv_create_ah(b->tx.pd, &attr);
	assert_non_null(b->tx.ah);
	for (unsigned i = 0; i < BUF; i++)
		b->tx.buf[i] = (uint8_t)(i * 7 + i / 251);
	return b;
}

static void close_bench(struct bench *b)
{
	close_side(&b->tx);
	for (unsigned i = 0; i < WORKERS; i++)
		close_side(&b->rx[i]);
	fabric_destroy(b->f);
	free(b);
}

/* From a place in the buffer that the number tells. */
static void send_to(struct bench *b, unsigned worker, uint32_t number)
{
	struct side *s = &b->tx;
	struct ibv_sge sge = {(uintptr_t)s->buf + number % 1024, LENGTH, s->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND_WITH_IMM,
				   .imm_data = htonl(number),
				   .wr.ud = {s->ah, b->rx[worker - 1].qp->qp_num, QKEY}},
			   *bad;

	assert_int_equal(ibv_post_send(s->qp, &wr, &bad), 0);
}

static void recv_at(struct side *s, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)s->buf + id % 256 * SLOT, SLOT, s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(s->qp, &wr, &bad), 0);
}

static void check_wc(const struct bench *b, const struct side *s, const struct ibv_wc *wc)
{
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_int_equal(wc->byte_len, GRH + LENGTH);
	assert_int_equal(wc->qp_num, s->qp->qp_num);
	assert_memory_equal(s->buf + wc->wr_id % 256 * SLOT + GRH,
		b->tx.buf + ntohl(wc->imm_data) % 1024, LENGTH);
}

static uint64_t stat_of(const struct side *s, const char *name)
{
	struct inc_dv_stat stats[256];
	unsigned n;

	assert_int_equal(inc_dv_query_stats(s->context, stats, 256, &n), 0);
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(stats[i].name, name) == 0)
			return stats[i].value;
	}
	fail_msg("no counter %s", name);
	return 0;
}

/* ---- who gets one ---- */

static void expect_refusal(struct side *s, uint32_t flags, int err)
{
	struct ibv_qp_init_attr init = init_attr(s);

	errno = 0;
	assert_null(inc_dv_create_qp(s->pd, &init, flags));
	assert_int_equal(errno, err);
}

static void refusals(void **state)
{
	struct bench *b = open_bench(false);
	struct side *s = &b->rx[0];
	struct ibv_cq *scq = s->scq;

	(void)state;
	assert_int_equal(inc_dv_receive_workers(s->context), WORKERS);
	expect_refusal(s, INC_DV_QP_WORKER(WORKERS + 1), EINVAL);
	expect_refusal(s, INC_DV_QP_WORKER(2), EINVAL); /* the CQ is worker 1's */
	expect_refusal(s, INC_DV_QP_WORKER(1) | INC_DV_QP_SELECTIVE, EOPNOTSUPP);
	expect_refusal(s, INC_DV_QP_WORKER(256), EINVAL);
	expect_refusal(s, INC_DV_QP_WORKER(0x1000001), EINVAL);
	expect_refusal(s, 0, EOPNOTSUPP);
	s->scq = s->rcq;
	expect_refusal(s, INC_DV_QP_WORKER(1), EINVAL);
	s->scq = scq;
	close_bench(b);
}

static void not_together(void **state)
{
	struct fabric *f = fabric_create();
	struct verbs_open_attr attr = {.rnic = {.n_workers = 1}, .iwarp = true};

	(void)state;
	attr.rnic.port[0] = (struct rnic_port_config){.mac = {2, 1}, .mtu = 4200};
	assert_null(incline_verbs_open_port(&iv_dpdk_ops, &f->end[0], &attr));
	assert_int_equal(errno, EINVAL);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* ---- without threads ---- */

static void datagrams(void **state)
{
	struct bench *b = open_bench(false);
	struct ibv_wc wc;

	(void)state;
	for (unsigned i = 0; i < WORKERS; i++) {
		recv_at(&b->rx[i], i);
		send_to(b, i + 1, 100 + i);
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		while (ibv_poll_cq(b->rx[i].rcq, 1, &wc) == 0)
			;
		check_wc(b, &b->rx[i], &wc);
		assert_int_equal(ntohl(wc.imm_data), 100 + i);
	}
	assert_int_equal(stat_of(&b->rx[0], "worker_handed"), WORKERS);
	assert_int_equal(stat_of(&b->rx[0], "worker_full"), 0);
	close_bench(b);
}

/* What has no room in the worker's ring is lost, and that is counted; the other worker's ring is
 * not touched, and all buffers come back (the cable looks). */
static void full_ring(void **state)
{
	const unsigned sent = VERBS_WORKER_HELD + 44;
	struct bench *b = open_bench(false);
	struct iv_dev *dev = iv_dev(b->rx[0].context);
	struct ibv_wc wc;
	unsigned n = 0;

	(void)state;
	b->f->alone = true;
	for (unsigned i = 0; i < DEPTH; i++)
		recv_at(&b->rx[0], i);
	recv_at(&b->rx[1], 0);
	for (unsigned i = 0; i < sent; i++)
		send_to(b, 1, i);
	send_to(b, 2, 7);
	while (incline_verbs_progress(b->tx.context) > 0)
		;
	iv_own(dev);
	while (iv_receive(dev, 0) > 0)
		;
	iv_disown(dev);
	assert_int_equal(stat_of(&b->rx[0], "worker_handed"), VERBS_WORKER_HELD + 1);
	assert_int_equal(stat_of(&b->rx[0], "worker_full"), 44);
	while (incline_verbs_progress(b->rx[0].context) > 0)
		;
	for (; ibv_poll_cq(b->rx[0].rcq, 1, &wc) == 1; n++) {
		check_wc(b, &b->rx[0], &wc);
		assert_int_equal(ntohl(wc.imm_data), n);
	}
	assert_int_equal(n, VERBS_WORKER_HELD);
	assert_int_equal(ibv_poll_cq(b->rx[1].rcq, 1, &wc), 1);
	check_wc(b, &b->rx[1], &wc);
	close_bench(b);
}

/* ---- with threads ---- */

static void wait_event(struct side *s)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(ibv_get_cq_event(s->channel, &cq, &context), 0);
	assert_ptr_equal(cq, s->rcq);
	ibv_ack_cq_events(cq, 1);
}

/* All that was sent, by events or by polling. */
static void take_all(struct bench *b, struct side *s, unsigned n, bool events)
{
	struct ibv_wc wc;

	while (n > 0) {
		int got;

		if (events)
			assert_int_equal(ibv_req_notify_cq(s->rcq, 0), 0);
		got = ibv_poll_cq(s->rcq, 1, &wc);
		assert_true(got >= 0);
		if (got == 0 && events)
			wait_event(s);
		if (got == 0)
			continue;
		check_wc(b, s, &wc);
		n--;
	}
}

static void threads(void **state)
{
	enum { ROUNDS = 40, EACH = 32, RC_LEN = 20000 };
	struct bench *b = open_bench(true);
	struct endpoint one, two;
	struct ibv_wc wc;

	(void)state;
	endpoint_create(&one, b->f->end[0].context, BUF, false);
	endpoint_create(&two, b->f->end[1].context, BUF, false);
	one.timeout = two.timeout = 20;
	endpoints_connect(&one, &two, 1);
	memcpy(one.buf, b->tx.buf, BUF);
	for (unsigned r = 0; r < ROUNDS; r++) {
		for (unsigned i = 0; i < EACH; i++) {
			recv_at(&b->rx[0], i);
			recv_at(&b->rx[1], i);
		}
		assert_int_equal(post_recv(&two, r, 0, RC_LEN), 0);
		assert_int_equal(post_send(&one, r, IBV_WR_SEND, r, RC_LEN), 0);
		for (unsigned i = 0; i < 2 * EACH; i++)
			send_to(b, 1 + i % 2, r * EACH + i);
		take_all(b, &b->rx[0], EACH, r % 2);
		take_all(b, &b->rx[1], EACH, r % 3 == 0);
		wait_wc(&two, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_memory_equal(two.buf, one.buf + r, RC_LEN);
		wait_wc(&one, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(ibv_poll_cq(b->tx.scq, 1, &wc), 0); /* not signalled */
	}
	assert_int_equal(stat_of(&b->rx[0], "worker_full"), 0);
	assert_true(stat_of(&b->rx[0], "worker_handed") >= 2 * EACH * ROUNDS);
	endpoint_destroy(&one);
	endpoint_destroy(&two);
	close_bench(b);
}

/* Frames are on their way, in rings and in the hands of a worker. */
static void close_in_the_middle(void **state)
{
	(void)state;
	for (unsigned r = 0; r < 10; r++) {
		struct bench *b = open_bench(true);

		for (unsigned i = 0; i < 100; i++)
			recv_at(&b->rx[0], i);
		for (unsigned i = 0; i < 100; i++)
			send_to(b, 1, i);
		if (r % 2)
			sched_yield();
		close_bench(b);
	}
}

/* ---- the end ---- */

/* Frames for worker 1 are in its ring, and it may not take them yet. The caller owns the device. */
static void hold_with(struct bench *b, struct iv_dev *dev, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		recv_at(&b->rx[0], i);
	iv_own(dev);
	workers_hold(dev->rnic);
	for (unsigned i = 0; i < n; i++)
		send_to(b, 1, i);
	while (stat_of(&b->rx[0], "worker_handed") < n)
		iv_receive(dev, dev->ops->now(dev->port));
}

/* An owner that holds the workers and does not come back, as a thread whose signal's handler calls
 * exit: the threads end all the same, and nothing is lost if he does come back. */
static void stop_while_held(void **state)
{
	enum { N = 100 };
	struct bench *b = open_bench(true);
	struct iv_dev *dev = iv_dev(b->rx[0].context);
	struct ibv_wc wc;

	(void)state;
	hold_with(b, dev, N);
	iv_dev_stop(dev);
	workers_let_go(dev->rnic);
	/* Not ibv_poll_cq: a CQ's lock comes before the owner's. */
	assert_int_equal(rnic_cq_poll(((struct iv_cq *)b->rx[0].rcq)->cq, 1, &wc), 0);
	iv_drain(dev);
	iv_disown(dev);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(ibv_poll_cq(b->rx[0].rcq, 1, &wc), 1);
		check_wc(b, &b->rx[0], &wc);
		assert_int_equal(ntohl(wc.imm_data), i);
	}
	close_bench(b);
}

/* A peer that sends as fast as the worker takes. */
static struct flood {
	struct bench *b;
	struct iv_dev *dev;
	uint8_t bytes[SLOT];
	struct rnic_rx_frame frame;
	bool back[2]; /* by turns: as rx_free of fabric.c wants it */
	unsigned n;
} flood;

/* In the worker's thread, for the owner, who waits for the thread's end. */
static void next_frame(void *arg, struct rnic_cq *cq)
{
	struct ibv_wc wc;

	(void)arg;
	if (rnic_cq_poll(cq, 1, &wc) != 1)
		return;
	recv_at(&flood.b->rx[0], 0);
	rnic_cq_arm(cq, false);
	iv_workers_hand(flood.dev->workers, 0, NULL, 0); /* takes the one before back */
	flood.frame.priv = &flood.back[flood.n++ % 2];
	*(bool *)flood.frame.priv = false;
	iv_workers_hand(flood.dev->workers, 0, &flood.frame, 1);
}

/* Its ring is never empty: a thread that is to end leaves what comes after the burst. */
static void stop_in_a_flood(void **state)
{
	struct bench *b = open_bench(true);
	struct iv_dev *dev = iv_dev(b->rx[0].context);
	const struct fabric_end *end = &b->f->end[1];
	struct rnic_events events;
	unsigned slot;

	(void)state;
	assert_int_equal(ibv_req_notify_cq(b->rx[0].rcq, 0), 0);
	hold_with(b, dev, 1);
	slot = (end->read - 1) % CABLE_FRAMES;
	events = dev->rnic->events;
	flood = (struct flood){.b = b, .dev = dev};
	flood.frame = (struct rnic_rx_frame){.data = flood.bytes, .len = end->queue[slot].len};
	memcpy(flood.bytes, end->queue[slot].data, flood.frame.len);
	dev->rnic->events.cq_event = next_frame;
	workers_let_go(dev->rnic);
	iv_dev_stop(dev);
	dev->rnic->events = events;
	iv_disown(dev);
	close_bench(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals),
		cmocka_unit_test(not_together),
		cmocka_unit_test(datagrams),
		cmocka_unit_test(full_ring),
		cmocka_unit_test(threads),
		cmocka_unit_test(close_in_the_middle),
		cmocka_unit_test(stop_while_held),
		cmocka_unit_test(stop_in_a_flood),
	};

	return cmocka_run_group_tests_name("receive workers", tests, NULL, NULL);
}
