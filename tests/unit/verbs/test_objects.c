/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects that change while they are in use: completion queues that are resized, memory regions
 * that are registered anew, memory windows; and very many queue pairs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/verbs/fabric.h"

enum { BUF = 1 << 14, LEN = 3000 };

struct pair {
	struct fabric *f;
	struct endpoint a, b;
};

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	p->f = fabric_create();
	fabric_open(p->f, false);
	endpoint_create(&p->a, p->f->end[0].context, BUF, false);
	endpoint_create(&p->b, p->f->end[1].context, BUF, false);
	p->a.timeout = p->b.timeout = 8; /* 1 ms */
	endpoints_connect(&p->a, &p->b, 1);
	for (unsigned i = 0; i < BUF; i++)
		p->a.buf[i] = (uint8_t)(i * 5 + i / 253);
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

static void run(struct pair *p)
{
	for (unsigned i = 0; i < 200; i++)
		fabric_step(p->f);
}

static void resize_keeps_completions(void **state)
{
	enum { N = 5 };
	struct pair *p = *state;
	struct ibv_wc wc;

	for (unsigned round = 0; round < 40; round++) { /* the ring's indices go round */
		for (uint64_t i = 0; i < N; i++) {
			assert_int_equal(post_recv(&p->b, i, 0, LEN), 0);
			assert_int_equal(post_send(&p->a, 100 + i, IBV_WR_SEND, 0, LEN), 0);
		}
		run(p);
		assert_int_equal(ibv_resize_cq(p->b.cq, N - 1), EINVAL);
		assert_int_equal(ibv_resize_cq(p->b.cq, N), 0);
		assert_in_range(p->b.cq->cqe, N, 16);
		assert_int_equal(ibv_resize_cq(p->b.cq, 1000), 0);
		assert_in_range(p->b.cq->cqe, 1000, 1 << 11);
		for (uint64_t i = 0; i < N; i++) {
			wait_wc(&p->b, &wc);
			assert_int_equal(wc.wr_id, i);
			assert_int_equal(wc.byte_len, LEN);
			wait_wc(&p->a, &wc);
			assert_int_equal(wc.wr_id, 100 + i);
		}
		assert_int_equal(ibv_poll_cq(p->b.cq, 1, &wc), 0);
		assert_int_equal(ibv_resize_cq(p->b.cq, 8), 0);
	}
	assert_int_equal(ibv_resize_cq(p->b.cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(p->b.cq, 1 << 20), EINVAL);
}

/* Programs duplicate it, and close the copy. */
static void cmd_fd_is_a_descriptor(void **state)
{
	struct pair *p = *state;
	int fd = dup(p->a.context->cmd_fd);

	assert_in_range(fd, 3, 1 << 20);
	assert_int_equal(close(fd), 0);
}

/* ---- memory windows ---- */

enum { RIGHTS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

static int post(struct endpoint *ep, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags |= IBV_SEND_SIGNALED;
	return ibv_post_send(ep->qp, wr, &bad);
}

/* Of type 2; to the given part of the endpoint's buffer. The new key in the window. */
static int post_bind(
	struct endpoint *ep, struct ibv_mw *mw, size_t offset, size_t len, unsigned access)
{
	struct ibv_send_wr wr = {.wr_id = 7,
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {.mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = {.mr = ep->mr,
				.addr = (uintptr_t)ep->buf + offset,
				.length = len,
				.mw_access_flags = access}}};
	int ret = post(ep, &wr);

	mw->rkey = wr.bind_mw.rkey;
	return ret;
}

static int post_local_inv(struct endpoint *ep, uint32_t key)
{
	struct ibv_send_wr wr = {.wr_id = 8, .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = key};

	return post(ep, &wr);
}

static void expect(struct endpoint *ep, enum ibv_wc_status status, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	wait_wc(ep, &wc);
	assert_int_equal(wc.status, status);
	if (status == IBV_WC_SUCCESS)
		assert_int_equal(wc.opcode, opcode);
}

/* a writes (or reads) len bytes at an offset of b's buffer under that key. */
static enum ibv_wc_status access_remote(
	struct pair *p, enum ibv_wr_opcode opcode, uint32_t key, size_t offset, uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)p->a.buf, .length = len, .lkey = p->a.mr->lkey};
	struct ibv_send_wr wr = {.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {.remote_addr = (uintptr_t)p->b.buf + offset, .rkey = key}};
	struct ibv_wc wc;

	assert_int_equal(post(&p->a, &wr), 0);
	wait_wc(&p->a, &wc);
	return wc.status;
}

static void reconnect(struct pair *p)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	run(p);
	assert_int_equal(ibv_modify_qp(p->a.qp, &reset, IBV_QP_STATE), 0);
	assert_int_equal(ibv_modify_qp(p->b.qp, &reset, IBV_QP_STATE), 0);
	endpoints_connect(&p->a, &p->b, 1);
}

/* What must fail, on a connection of its own. */
static void refuse_remote(
	struct pair *p, enum ibv_wr_opcode opcode, uint32_t key, size_t offset, uint32_t len)
{
	static uint8_t before[BUF];

	memcpy(before, p->b.buf, BUF);
	assert_int_equal(access_remote(p, opcode, key, offset, len), IBV_WC_REM_ACCESS_ERR);
	reconnect(p);
	assert_memory_equal(before, p->b.buf, BUF);
}

static void allow_binding(struct endpoint *ep)
{
	assert_int_equal(ibv_rereg_mr(ep->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND),
		0);
}

static void window_limits(void **state)
{
	struct pair *p = *state;
	struct ibv_mw *mw = ibv_alloc_mw(p->b.pd, IBV_MW_TYPE_2);
	uint32_t key;

	allow_binding(&p->b);
	refuse_remote(p, IBV_WR_RDMA_WRITE, mw->rkey, 1000, 1); /* not bound */
	assert_int_equal(post_bind(&p->b, mw, 1000, 2000, RIGHTS), 0);
	expect(&p->b, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
	assert_int_equal(access_remote(p, IBV_WR_RDMA_WRITE, mw->rkey, 1000, 2000), IBV_WC_SUCCESS);
	assert_memory_equal(p->b.buf + 1000, p->a.buf, 2000);
	assert_int_equal(access_remote(p, IBV_WR_RDMA_READ, mw->rkey, 2999, 1), IBV_WC_SUCCESS);
	refuse_remote(p, IBV_WR_RDMA_WRITE, mw->rkey, 999, 2);
	refuse_remote(p, IBV_WR_RDMA_WRITE, mw->rkey, 2999, 2);
	refuse_remote(p, IBV_WR_RDMA_WRITE, ibv_inc_rkey(mw->rkey), 1000, 1);
	/* The region itself is not open to peers; the window is not for local use. */
	refuse_remote(p, IBV_WR_RDMA_WRITE, p->b.mr->rkey, 1000, 1);
	assert_int_equal(ibv_dereg_mr(p->b.mr), EBUSY);
	assert_int_equal(ibv_rereg_mr(p->b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(post_local_inv(&p->b, mw->rkey), 0);
	expect(&p->b, IBV_WC_SUCCESS, IBV_WC_LOCAL_INV);
	refuse_remote(p, IBV_WR_RDMA_WRITE, mw->rkey, 1000, 1);
	assert_int_equal(post_bind(&p->b, mw, 0, 10, IBV_ACCESS_REMOTE_READ), 0);
	expect(&p->b, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
	refuse_remote(p, IBV_WR_RDMA_WRITE, mw->rkey, 0, 1);
	key = mw->rkey;
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	refuse_remote(p, IBV_WR_RDMA_READ, key, 0, 1);
}

/* A window of type 2 is its queue pair's, even within the domain. */
static void window_of_another_queue_pair(void **state)
{
	struct pair *p = *state;
	struct ibv_mw *mw = ibv_alloc_mw(p->b.pd, IBV_MW_TYPE_2);
	struct ibv_qp_init_attr init = {.send_cq = p->b.cq,
		.recv_cq = p->b.cq,
		.qp_type = IBV_QPT_RC,
		.cap = {EP_DEPTH, EP_DEPTH, 1, 1, 0}};
	struct ibv_qp *first = p->b.qp;

	allow_binding(&p->b);
	assert_int_equal(post_bind(&p->b, mw, 0, 100, RIGHTS), 0);
	expect(&p->b, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
	p->b.qp = ibv_create_qp(p->b.pd, &init);
	reconnect(p);
	refuse_remote(p, IBV_WR_RDMA_WRITE, mw->rkey, 0, 1);
	assert_int_equal(post_local_inv(&p->b, mw->rkey), 0);
	expect(&p->b, IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOCAL_INV);
	assert_int_equal(ibv_destroy_qp(first), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

static void bind_refused(struct pair *p, struct ibv_mw *mw, size_t offset, size_t len)
{
	assert_int_equal(post_bind(&p->b, mw, offset, len, RIGHTS), 0);
	expect(&p->b, IBV_WC_MW_BIND_ERR, IBV_WC_BIND_MW);
	reconnect(p);
}

static void refused_bindings(void **state)
{
	struct pair *p = *state;
	struct ibv_mw *mw = ibv_alloc_mw(p->b.pd, IBV_MW_TYPE_2),
		      *one = ibv_alloc_mw(p->b.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.bind_info = {.mr = p->b.mr}};

	bind_refused(p, mw, 0, 100); /* the region does not allow it */
	allow_binding(&p->b);
	bind_refused(p, mw, 0, 0);
	bind_refused(p, mw, 1, BUF);
	bind_refused(p, mw, (size_t)-1, 2);
	assert_int_equal(post_bind(&p->b, mw, 0, 100, RIGHTS), 0);
	expect(&p->b, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
	bind_refused(p, mw, 0, 100); /* it is bound */
	assert_int_equal(post_bind(&p->b, mw, 0, 1, IBV_ACCESS_ZERO_BASED), EOPNOTSUPP);
	assert_int_equal(post_bind(&p->b, one, 0, 1, RIGHTS), EINVAL);
	assert_int_equal(ibv_bind_mw(p->b.qp, mw, &bind), EINVAL);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dealloc_mw(one), 0);
}

/* In the order of the queue, once each, though what surrounds them is sent again and again. */
static void windows_in_order_under_loss(void **state)
{
	enum { N = 300, AT_ONCE = 8 };
	struct pair *p = *state;
	struct ibv_mw *mw = ibv_alloc_mw(p->a.pd, IBV_MW_TYPE_2);
	static const enum ibv_wc_opcode order[] = {
		IBV_WC_SEND, IBV_WC_BIND_MW, IBV_WC_SEND, IBV_WC_LOCAL_INV};

	allow_binding(&p->a);
	p->f->loss = 200;
	for (unsigned i = 0; i < N; i += AT_ONCE) {
		for (unsigned j = 0; j < AT_ONCE; j++) {
			assert_int_equal(post_recv(&p->b, 0, 0, BUF), 0);
			assert_int_equal(post_recv(&p->b, 0, 0, BUF), 0);
			assert_int_equal(post_send(&p->a, 1, IBV_WR_SEND, 0, LEN), 0);
			assert_int_equal(post_bind(&p->a, mw, 0, 100, RIGHTS), 0);
			assert_int_equal(post_send(&p->a, 1, IBV_WR_SEND, 0, LEN), 0);
			assert_int_equal(post_local_inv(&p->a, mw->rkey), 0);
		}
		for (unsigned j = 0; j < 4 * AT_ONCE; j++)
			expect(&p->a, IBV_WC_SUCCESS, order[j % 4]);
		for (unsigned j = 0; j < 2 * AT_ONCE; j++)
			expect(&p->b, IBV_WC_SUCCESS, IBV_WC_RECV);
	}
	p->f->loss = 0;
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

static void send_with_invalidate(void **state)
{
	struct pair *p = *state;
	struct ibv_mw *mw = ibv_alloc_mw(p->b.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV};
	struct ibv_wc wc;

	allow_binding(&p->b);
	assert_int_equal(post_bind(&p->b, mw, 0, 100, RIGHTS), 0);
	expect(&p->b, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
	wr.invalidate_rkey = mw->rkey;
	assert_int_equal(post_recv(&p->b, 5, 0, 0), 0);
	assert_int_equal(post(&p->a, &wr), 0);
	wait_wc(&p->b, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, mw->rkey);
	expect(&p->a, IBV_WC_SUCCESS, IBV_WC_SEND);
	refuse_remote(p, IBV_WR_RDMA_WRITE, mw->rkey, 0, 1);
	/* Twice is once too often; and regions are not for peers to invalidate. */
	assert_int_equal(post(&p->a, &wr), 0);
	expect(&p->a, IBV_WC_REM_ACCESS_ERR, IBV_WC_SEND);
	reconnect(p);
	wr.invalidate_rkey = p->b.mr->rkey;
	assert_int_equal(post(&p->a, &wr), 0);
	expect(&p->a, IBV_WC_REM_ACCESS_ERR, IBV_WC_SEND);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

static void rereg_moves_the_region(void **state)
{
	struct pair *p = *state;
	uint8_t *other = calloc(1, BUF), *old = p->b.buf;
	struct ibv_pd *pd = ibv_alloc_pd(p->b.context);

	assert_int_equal(
		ibv_rereg_mr(p->b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, 500, 0), 0);
	assert_ptr_equal(p->b.mr->addr, other);
	assert_int_equal(p->b.mr->length, 500);
	refuse_remote(p, IBV_WR_RDMA_WRITE, p->b.mr->rkey, 0, 1);
	p->b.buf = other;
	assert_int_equal(
		access_remote(p, IBV_WR_RDMA_WRITE, p->b.mr->rkey, 0, 500), IBV_WC_SUCCESS);
	assert_memory_equal(other, p->a.buf, 500);
	assert_int_equal(ibv_rereg_mr(p->b.mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	assert_ptr_equal(p->b.mr->pd, pd);
	refuse_remote(p, IBV_WR_RDMA_WRITE, p->b.mr->rkey, 0, 1);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_rereg_mr(p->b.mr, IBV_REREG_MR_CHANGE_PD, p->b.pd, NULL, 0, 0), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	free(old);
}

/* All of them connected, and each one used; the device says how many there may be. */
static void five_thousand_pairs(void **state)
{
	enum { N = 5000 };
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_qp **qp[2];
	struct pair p = {.f = fabric_create()};
	struct endpoint *ep[2] = {&p.a, &p.b};
	struct ibv_device_attr attr;
	struct ibv_wc wc;

	(void)state;
	p.f->max_qp = N + 1;
	fabric_open(p.f, false);
	for (unsigned k = 0; k < 2; k++) {
		endpoint_create(ep[k], p.f->end[k].context, BUF, false);
		qp[k] = calloc(N, sizeof(*qp[k]));
	}
	memset(p.a.buf, 0x5a, LEN);
	assert_int_equal(ibv_query_device(p.a.context, &attr), 0);
	assert_int_equal(attr.max_qp, N + 1);
	for (unsigned k = 0; k < 2; k++) {
		assert_int_equal(ibv_destroy_qp(ep[k]->qp), 0);
		init.send_cq = init.recv_cq = ep[k]->cq;
		for (unsigned i = 0; i < N; i++) {
			qp[k][i] = ibv_create_qp(ep[k]->pd, &init);
			assert_non_null(qp[k][i]);
		}
	}
	for (unsigned i = 0; i < N; i++) {
		p.a.qp = qp[0][i];
		p.b.qp = qp[1][i];
		endpoints_connect(&p.a, &p.b, 1);
	}
	for (unsigned i = 0; i < N; i++) {
		p.a.qp = qp[0][i];
		p.b.qp = qp[1][i];
		assert_int_equal(post_recv(&p.b, i, 0, LEN), 0);
		assert_int_equal(post_send(&p.a, i, IBV_WR_SEND, 0, LEN), 0);
		wait_wc(&p.a, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.qp_num, p.a.qp->qp_num);
		wait_wc(&p.b, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.qp_num, p.b.qp->qp_num);
	}
	for (unsigned k = 0; k < 2; k++) {
		for (unsigned i = 0; i < N; i++)
			assert_int_equal(ibv_destroy_qp(qp[k][i]), 0);
		ep[k]->qp = NULL;
		endpoint_destroy(ep[k]);
		free(qp[k]);
	}
	fabric_destroy(p.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(resize_keeps_completions, setup, teardown),
		cmocka_unit_test_setup_teardown(window_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(window_of_another_queue_pair, setup, teardown),
		cmocka_unit_test_setup_teardown(refused_bindings, setup, teardown),
		cmocka_unit_test_setup_teardown(windows_in_order_under_loss, setup, teardown),
		cmocka_unit_test_setup_teardown(send_with_invalidate, setup, teardown),
		cmocka_unit_test_setup_teardown(rereg_moves_the_region, setup, teardown),
		cmocka_unit_test_setup_teardown(cmd_fd_is_a_descriptor, setup, teardown),
		cmocka_unit_test(five_thousand_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
