/* SPDX-License-Identifier: BSD-3-Clause */
/* Data between two devices through ibv_*: every way to post and to poll, loss, a port that is full,
 * PSN skip. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/verbs/fabric.h"

struct pair {
	struct fabric *f;
	struct endpoint a, b;
};

enum { BUF = 1 << 16 };

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	p->f = fabric_create();
	fabric_open(p->f, false);
	endpoint_create(&p->a, p->f->end[0].context, BUF, false);
	endpoint_create(&p->b, p->f->end[1].context, BUF, false);
	for (unsigned i = 0; i < BUF; i++)
		p->a.buf[i] = (uint8_t)(i * 7 + i / 251);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	endpoint_destroy(&p->a);
	endpoint_destroy(&p->b);
	fabric_destroy(p->f);
	free(p);
	return 0;
}

static void expect_wc(
	struct endpoint *ep, uint64_t wr_id, enum ibv_wc_opcode opcode, struct ibv_wc *wc)
{
	wait_wc(ep, wc);
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_int_equal(wc->wr_id, wr_id);
	assert_int_equal(wc->opcode, opcode);
	assert_int_equal(wc->qp_num, ep->qp->qp_num);
}

static void send_once(struct pair *p, uint32_t len)
{
	struct ibv_wc wc;

	memset(p->b.buf, 0, BUF);
	assert_int_equal(post_recv(&p->b, 77, 0, BUF), 0);
	assert_int_equal(post_send(&p->a, 11, IBV_WR_SEND, 0, len), 0);
	expect_wc(&p->b, 77, IBV_WC_RECV, &wc);
	assert_int_equal(wc.byte_len, len);
	expect_wc(&p->a, 11, IBV_WC_SEND, &wc);
	assert_memory_equal(p->b.buf, p->a.buf, len);
	if (len < BUF)
		assert_int_equal(p->b.buf[len], 0);
}

static void send_over_every_gid(void **state)
{
	struct pair *p = *state;

	for (int gid = 0; gid < 3; gid++) {
		struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

		endpoints_connect(&p->a, &p->b, gid);
		send_once(p, 5000);
		assert_int_equal(ibv_modify_qp(p->a.qp, &reset, IBV_QP_STATE), 0);
		assert_int_equal(ibv_modify_qp(p->b.qp, &reset, IBV_QP_STATE), 0);
		assert_int_equal(p->a.qp->state, IBV_QPS_RESET);
	}
}

static void send_every_size(void **state)
{
	static const uint32_t len[] = {0, 1, 3, 1023, 1024, 1025, 4096, 10000, BUF};
	struct pair *p = *state;

	endpoints_connect(&p->a, &p->b, 1);
	for (unsigned i = 0; i < sizeof(len) / sizeof(len[0]); i++)
		send_once(p, len[i]);
}

static void ping_pong(struct pair *p, int rounds, uint32_t len)
{
	struct ibv_wc wc;

	for (int i = 0; i < rounds; i++) {
		struct endpoint *from = i % 2 ? &p->b : &p->a, *to = i % 2 ? &p->a : &p->b;

		memset(to->buf + BUF / 2, 0, len);
		assert_int_equal(post_recv(to, 1000 + i, BUF / 2, len), 0);
		assert_int_equal(post_send(from, i, IBV_WR_SEND, 0, len), 0);
		expect_wc(to, 1000 + i, IBV_WC_RECV, &wc);
		expect_wc(from, i, IBV_WC_SEND, &wc);
		assert_memory_equal(to->buf + BUF / 2, from->buf, len);
	}
}

static void ping_pong_with_loss(void **state)
{
	struct pair *p = *state;

	memcpy(p->b.buf, p->a.buf, BUF);
	endpoints_connect(&p->a, &p->b, 1);
	p->f->loss = 100;
	ping_pong(p, 200, 5000);
	assert_true(p->f->n_lost > 100);
}

static uint64_t dropped(struct endpoint *ep, unsigned reason)
{
	return rnic_drop_count(incline_verbs_rnic(ep->context), reason);
}

/* Of a WRITE, the data of a SEND and a response to a READ, not a byte arrives while every frame is
 * corrupted; then everything does. */
static void corruption_places_nothing(void **state)
{
	struct pair *p = *state;
	struct ibv_sge sge = {(uintptr_t)p->a.buf, 3000, p->a.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_RDMA_WRITE,
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.rdma = {(uintptr_t)p->b.buf, p->b.mr->rkey}},
			   *bad;
	struct ibv_wc wc;

	memset(p->b.buf, 0xee, BUF);
	endpoints_connect(&p->a, &p->b, 1);
	p->f->corrupt = 1000;
	assert_int_equal(post_recv(&p->b, 2, 4000, 3000), 0);
	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
	assert_int_equal(post_send(&p->a, 1, IBV_WR_SEND, 0, 3000), 0);
	for (int i = 0; i < 100; i++)
		fabric_step(p->f);
	assert_true(p->f->n_corrupt > 0);
	assert_true(dropped(&p->b, WIRE_ICRC_BAD) > 0);
	for (unsigned i = 0; i < BUF; i++)
		assert_int_equal(p->b.buf[i], 0xee);
	assert_int_equal(ibv_poll_cq(p->b.cq, 1, &wc), 0);
	p->f->corrupt = 0;
	expect_wc(&p->a, 0, IBV_WC_RDMA_WRITE, &wc);
	expect_wc(&p->a, 1, IBV_WC_SEND, &wc);
	expect_wc(&p->b, 2, IBV_WC_RECV, &wc);
	assert_memory_equal(p->b.buf, p->a.buf, 3000);
	assert_memory_equal(p->b.buf + 4000, p->a.buf, 3000);
	memset(p->b.buf, 0x55, 3000);
	memset(p->a.buf, 0xee, BUF);
	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
	while (p->f->end[1].head == p->f->end[1].tail) /* the request arrives as it was sent */
		incline_verbs_progress(p->a.context);
	p->f->corrupt = 1000;
	for (int i = 0; i < 100; i++)
		fabric_step(p->f);
	assert_true(dropped(&p->a, WIRE_ICRC_BAD) > 0);
	for (unsigned i = 0; i < BUF; i++)
		assert_int_equal(p->a.buf[i], 0xee);
	p->f->corrupt = 0;
	expect_wc(&p->a, 0, IBV_WC_RDMA_READ, &wc);
	assert_memory_equal(p->a.buf, p->b.buf, 3000);
}

static void ping_pong_with_corruption(void **state)
{
	struct pair *p = *state;

	memcpy(p->b.buf, p->a.buf, BUF);
	endpoints_connect(&p->a, &p->b, 1);
	p->f->corrupt = 100;
	ping_pong(p, 200, 5000);
	assert_true(p->f->n_corrupt > 100);
	assert_int_equal(
		dropped(&p->a, WIRE_ICRC_BAD) + dropped(&p->b, WIRE_ICRC_BAD), p->f->n_corrupt);
}

/* tx_room of one frame at a time: everything still goes, in order, and nothing is lost. */
static void ping_pong_with_full_port(void **state)
{
	struct pair *p = *state;
	struct ibv_wc wc;

	memcpy(p->b.buf, p->a.buf, BUF);
	endpoints_connect(&p->a, &p->b, 1);
	p->f->room = 1;
	ping_pong(p, 20, 20000);
	assert_int_equal(p->f->n_lost, 0);
	assert_int_equal(ibv_poll_cq(p->a.cq, 1, &wc), 0);
}

/* The port passes on one frame per flush: the device comes back for the rest. */
static void ping_pong_with_slow_port(void **state)
{
	struct pair *p = *state;

	memcpy(p->b.buf, p->a.buf, BUF);
	endpoints_connect(&p->a, &p->b, 1);
	p->f->flush = 1;
	ping_pong(p, 20, 20000);
	assert_int_equal(p->f->n_lost, 0);
}

/* Polling alone moves the data, with nothing else that runs the devices. */
static void polling_is_progress(void **state)
{
	struct pair *p = *state;
	struct ibv_wc wc;
	int sent = 0, received = 0;

	endpoints_connect(&p->a, &p->b, 1);
	p->f->alone = true;
	p->f->loss = 50;
	assert_int_equal(post_recv(&p->b, 1, 0, BUF), 0);
	assert_int_equal(post_send(&p->a, 1, IBV_WR_SEND, 0, BUF), 0);
	while (!sent || !received) {
		sent += ibv_poll_cq(p->a.cq, 1, &wc);
		received += ibv_poll_cq(p->b.cq, 1, &wc);
	}
	assert_memory_equal(p->b.buf, p->a.buf, BUF);
	p->f->alone = false;
}

static void write_and_immediate(void **state)
{
	struct pair *p = *state;
	struct ibv_sge sge = {(uintptr_t)p->a.buf, 3000, p->a.mr->lkey};
	struct ibv_send_wr imm = {.wr_id = 2,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(0xabcd1234),
		.wr.rdma = {(uintptr_t)p->b.buf + 3000, p->b.mr->rkey}};
	struct ibv_send_wr wr = {.wr_id = 1,
		.next = &imm,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {(uintptr_t)p->b.buf, p->b.mr->rkey}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	endpoints_connect(&p->a, &p->b, 2);
	assert_int_equal(post_recv(&p->b, 9, 0, 0), 0);
	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
	expect_wc(&p->b, 9, IBV_WC_RECV_RDMA_WITH_IMM, &wc);
	assert_int_equal(wc.byte_len, 3000);
	assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), 0xabcd1234);
	expect_wc(&p->a, 2, IBV_WC_RDMA_WRITE, &wc); /* the first was not signalled */
	assert_memory_equal(p->b.buf, p->a.buf, 3000);
	assert_memory_equal(p->b.buf + 3000, p->a.buf, 3000);
}

/* Many requests under way, the queues filled to the brim. */
static void stream(void **state)
{
	struct pair *p = *state;
	struct ibv_wc wc[16];
	int sent = 0, received = 0;

	endpoints_connect(&p->a, &p->b, 1);
	p->f->loss = 5;
	for (int i = 0; i < EP_DEPTH; i++)
		assert_int_equal(post_recv(&p->b, i, 0, 2000), 0);
	assert_int_equal(post_recv(&p->b, 0, 0, 2000), ENOMEM);
	for (int i = 0; i < EP_DEPTH; i++)
		assert_int_equal(post_send(&p->a, i, IBV_WR_SEND, 0, 2000), 0);
	assert_int_equal(post_send(&p->a, 0, IBV_WR_SEND, 0, 2000), ENOMEM);
	while (sent < EP_DEPTH || received < EP_DEPTH) {
		int n = ibv_poll_cq(p->a.cq, 16, wc);

		for (int i = 0; i < n; i++)
			assert_int_equal(wc[i].wr_id, sent++);
		n = ibv_poll_cq(p->b.cq, 16, wc);
		for (int i = 0; i < n; i++)
			assert_int_equal(wc[i].wr_id, received++);
	}
}

/* ---- extended interfaces ---- */

struct ex {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
};

static void ex_create(struct endpoint *ep, struct ex *ex)
{
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 64,
		.wc_flags = IBV_WC_STANDARD_FLAGS & ~(uint64_t)IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC,
		.pd = ep->pd,
		.cap = {4, 4, 2, 2, 64},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD};

	ex->cq = ibv_create_cq_ex(ep->context, &cq_attr);
	assert_non_null(ex->cq);
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(ex->cq);
	ex->qp = ibv_create_qp_ex(ep->context, &attr);
	assert_non_null(ex->qp);
	ex->qpx = ibv_qp_to_qp_ex(ex->qp);
	assert_non_null(ex->qpx);
	assert_null(ibv_qp_to_qp_ex(ep->qp));
}

static void ex_connect(struct pair *p, struct ex *a, struct ex *b)
{
	struct ibv_qp *plain_a = p->a.qp, *plain_b = p->b.qp;

	p->a.qp = a->qp;
	p->b.qp = b->qp;
	endpoints_connect(&p->a, &p->b, 1);
	assert_int_equal(post_recv(&p->b, 50, 0, 1000), 0);
	assert_int_equal(post_recv(&p->b, 51, 1000, 1000), 0);
	p->a.qp = plain_a;
	p->b.qp = plain_b;
}

static void ex_expect(struct ex *ex, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	struct ibv_poll_cq_attr attr = {0};
	int ret;

	do {
		ret = ibv_start_poll(ex->cq, &attr);
	} while (ret == ENOENT);
	assert_int_equal(ret, 0);
	assert_int_equal(ex->cq->status, IBV_WC_SUCCESS);
	assert_int_equal(ex->cq->wr_id, wr_id);
	assert_int_equal(ibv_wc_read_opcode(ex->cq), opcode);
	assert_int_equal(ibv_wc_read_qp_num(ex->cq), ex->qp->qp_num);
}

static void builder_of_reads_and_atomics(void **state)
{
	struct pair *p = *state;
	uint64_t *there = (uint64_t *)(void *)(p->b.buf + 4096), *here;
	struct ex a, b;

	ex_create(&p->a, &a);
	ex_create(&p->b, &b);
	ex_connect(p, &a, &b);
	memset(p->b.buf, 0x5a, 4096);
	*there = 7;
	here = (uint64_t *)(void *)(p->a.buf + 4096);
	ibv_wr_start(a.qpx);
	a.qpx->wr_flags = IBV_SEND_SIGNALED;
	a.qpx->wr_id = 1;
	ibv_wr_rdma_read(a.qpx, p->b.mr->rkey, (uintptr_t)p->b.buf);
	ibv_wr_set_sge(a.qpx, p->a.mr->lkey, (uintptr_t)p->a.buf, 4000);
	a.qpx->wr_id = 2;
	ibv_wr_atomic_fetch_add(a.qpx, p->b.mr->rkey, (uintptr_t)there, 3);
	ibv_wr_set_sge(a.qpx, p->a.mr->lkey, (uintptr_t)here, 8);
	a.qpx->wr_id = 3;
	ibv_wr_atomic_cmp_swp(a.qpx, p->b.mr->rkey, (uintptr_t)there, 10, 99);
	ibv_wr_set_sge(a.qpx, p->a.mr->lkey, (uintptr_t)(here + 1), 8);
	assert_int_equal(ibv_wr_complete(a.qpx), 0);
	ex_expect(&a, 1, IBV_WC_RDMA_READ);
	ibv_end_poll(a.cq);
	ex_expect(&a, 2, IBV_WC_FETCH_ADD);
	ibv_end_poll(a.cq);
	ex_expect(&a, 3, IBV_WC_COMP_SWAP);
	ibv_end_poll(a.cq);
	assert_memory_equal(p->a.buf, p->b.buf, 4000);
	assert_int_equal(here[0], 7);
	assert_int_equal(here[1], 10);
	assert_int_equal(*there, 99);
	ibv_destroy_qp(a.qp);
	ibv_destroy_qp(b.qp);
	ibv_destroy_cq(ibv_cq_ex_to_cq(a.cq));
	ibv_destroy_cq(ibv_cq_ex_to_cq(b.cq));
}

static void builder_and_iterator(void **state)
{
	struct pair *p = *state;
	char hello[] = "hello ", world[] = "world";
	struct ibv_data_buf pieces[2] = {{hello, 6}, {world, 5}};
	struct ex a, b;
	struct ibv_wc wc;

	ex_create(&p->a, &a);
	ex_create(&p->b, &b);
	ex_connect(p, &a, &b);
	ibv_wr_start(a.qpx);
	a.qpx->wr_id = 1;
	a.qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(a.qpx);
	ibv_wr_abort(a.qpx); /* never was */
	ibv_wr_start(a.qpx);
	a.qpx->wr_id = 2;
	ibv_wr_send_imm(a.qpx, htonl(42));
	ibv_wr_set_inline_data_list(a.qpx, 2, pieces);
	a.qpx->wr_id = 3;
	ibv_wr_rdma_write_imm(a.qpx, p->b.mr->rkey, (uintptr_t)p->b.buf + 2000, htonl(43));
	ibv_wr_set_sge(a.qpx, p->a.mr->lkey, (uintptr_t)p->a.buf, 500);
	assert_int_equal(ibv_wr_complete(a.qpx), 0);
	ex_expect(&b, 50, IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_byte_len(b.cq), 11);
	assert_int_equal(ntohl(ibv_wc_read_imm_data(b.cq)), 42);
	assert_true(ibv_wc_read_wc_flags(b.cq) & IBV_WC_WITH_IMM);
	while (ibv_next_poll(b.cq) == ENOENT)
		;
	assert_int_equal(b.cq->wr_id, 51);
	assert_int_equal(ibv_wc_read_opcode(b.cq), IBV_WC_RECV_RDMA_WITH_IMM);
	ibv_end_poll(b.cq);
	assert_memory_equal(p->b.buf, "hello world", 11);
	assert_memory_equal(p->b.buf + 2000, p->a.buf, 500);
	ex_expect(&a, 2, IBV_WC_SEND);
	ibv_end_poll(a.cq);
	ex_expect(&a, 3, IBV_WC_RDMA_WRITE);
	ibv_end_poll(a.cq);
	/* An overlong inline request fails the whole batch: nothing is posted. */
	ibv_wr_start(a.qpx);
	ibv_wr_send(a.qpx);
	ibv_wr_set_sge(a.qpx, p->a.mr->lkey, (uintptr_t)p->a.buf, 1);
	ibv_wr_send(a.qpx);
	ibv_wr_set_inline_data(a.qpx, p->a.buf, 10000);
	assert_int_equal(ibv_wr_complete(a.qpx), EINVAL);
	assert_int_equal(ibv_poll_cq(ibv_cq_ex_to_cq(a.cq), 1, &wc), 0);
	assert_int_equal(ibv_destroy_qp(a.qp), 0);
	assert_int_equal(ibv_destroy_qp(b.qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(a.cq)), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(b.cq)), 0);
}

/* ---- PSN skip ---- */

static void skip_both_sides(void **state)
{
	struct pair *p = *state;
	struct inc_dv_qp_stats before, after;

	endpoints_connect(&p->a, &p->b, 1);
	send_once(p, 100);
	assert_int_equal(inc_dv_query_qp_stats(p->a.qp, &before), 0);
	assert_int_equal(before.sq_next, EP_PSN + 1);
	assert_int_equal(inc_dv_qp_skip(p->a.qp, INC_DV_SEND, EP_PSN + 1, 100), 0);
	assert_int_equal(inc_dv_qp_skip(p->b.qp, INC_DV_RECV, EP_PSN + 1, 100), 0);
	send_once(p, 5000);
	assert_int_equal(inc_dv_query_qp_stats(p->a.qp, &after), 0);
	assert_int_equal(after.sq_next, (EP_PSN + 1 + 100 + 5) & 0xffffff);
	assert_int_equal(after.retransmits, 0);
	assert_int_equal(inc_dv_qp_skip(p->a.qp, INC_DV_SEND, after.sq_next, 0), EINVAL);
	assert_int_equal(inc_dv_qp_skip(p->a.qp, (enum inc_dv_dir)7, after.sq_next, 1), EINVAL);
}

/* ---- selective queue pairs ---- */

static void make_selective(struct endpoint *ep)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
		.send_cq = ep->cq,
		.recv_cq = ep->cq,
		.cap = {EP_DEPTH, EP_DEPTH, 1, 1, 0}};

	assert_int_equal(ibv_destroy_qp(ep->qp), 0);
	assert_null(inc_dv_create_qp(ep->pd, &init, 0));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(inc_dv_create_qp(ep->pd, &init, 1 << 7));
	assert_int_equal(errno, EOPNOTSUPP);
	ep->qp = inc_dv_create_qp(ep->pd, &init, INC_DV_QP_SELECTIVE);
	assert_non_null(ep->qp);
}

/* Windows are for queue pairs of multicast WRITEs; such a one needs its group first. */
static void multicast_queue_pairs(void **state)
{
	struct pair *p = *state;
	struct endpoint *ep = &p->a;
	const struct inc_dv_mcast_writer writer = {.length = 64};
	const struct inc_dv_mcast_window window = {
		.mr = ep->mr, .addr = ep->buf, .length = 64, .writer = &writer, .n_writers = 1};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UC,
		.send_cq = ep->cq,
		.recv_cq = ep->cq,
		.cap = {EP_DEPTH, EP_DEPTH, 1, 1, 0}};
	struct ibv_qp *qp;

	assert_int_equal(inc_dv_qp_mcast_window(ep->qp, &window), EOPNOTSUPP);
	assert_int_equal(inc_dv_qp_mcast_window(ep->qp, NULL), EOPNOTSUPP);
	assert_null(inc_dv_create_qp(ep->pd, &init, INC_DV_QP_MULTICAST | INC_DV_QP_SELECTIVE));
	assert_int_equal(errno, EOPNOTSUPP);
	init.qp_type = IBV_QPT_RC;
	assert_null(inc_dv_create_qp(ep->pd, &init, INC_DV_QP_MULTICAST));
	assert_int_equal(errno, EINVAL);
	init.qp_type = IBV_QPT_UC;
	qp = inc_dv_create_qp(ep->pd, &init, INC_DV_QP_MULTICAST);
	assert_non_null(qp);
	assert_int_equal(inc_dv_qp_mcast_window(qp, &window), EINVAL);
	assert_int_equal(inc_dv_qp_mcast_window(qp, NULL), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void selective_queue_pairs(void **state)
{
	struct pair *p = *state;

	make_selective(&p->a);
	make_selective(&p->b);
	endpoints_connect(&p->a, &p->b, 1);
	assert_int_not_equal(inc_dv_qp_skip(p->a.qp, INC_DV_SEND, EP_PSN, 1), 0);
	p->f->loss = 100;
	for (unsigned i = 0; i < 20; i++)
		send_once(p, 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(send_over_every_gid, setup, teardown),
		cmocka_unit_test_setup_teardown(send_every_size, setup, teardown),
		cmocka_unit_test_setup_teardown(ping_pong_with_loss, setup, teardown),
		cmocka_unit_test_setup_teardown(corruption_places_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(ping_pong_with_corruption, setup, teardown),
		cmocka_unit_test_setup_teardown(ping_pong_with_full_port, setup, teardown),
		cmocka_unit_test_setup_teardown(ping_pong_with_slow_port, setup, teardown),
		cmocka_unit_test_setup_teardown(polling_is_progress, setup, teardown),
		cmocka_unit_test_setup_teardown(write_and_immediate, setup, teardown),
		cmocka_unit_test_setup_teardown(stream, setup, teardown),
		cmocka_unit_test_setup_teardown(builder_and_iterator, setup, teardown),
		cmocka_unit_test_setup_teardown(builder_of_reads_and_atomics, setup, teardown),
		cmocka_unit_test_setup_teardown(skip_both_sides, setup, teardown),
		cmocka_unit_test_setup_teardown(selective_queue_pairs, setup, teardown),
		cmocka_unit_test_setup_teardown(multicast_queue_pairs, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
