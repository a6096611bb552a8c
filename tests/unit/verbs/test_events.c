/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels and asynchronous events. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	p->f = fabric_create();
	fabric_open(p->f, false);
	endpoint_create(&p->a, p->f->end[0].context, 8192, true);
	endpoint_create(&p->b, p->f->end[1].context, 8192, true);
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

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void run(struct pair *p, int steps)
{
	for (int i = 0; i < steps; i++)
		fabric_step(p->f);
}

static void nonblocking(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

static void armed_cq_tells_once(void **state)
{
	struct pair *p = *state;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *arg;

	endpoints_connect(&p->a, &p->b, 1);
	nonblocking(p->b.channel->fd);
	assert_int_equal(ibv_get_cq_event(p->b.channel, &cq, &arg), -1);
	assert_int_equal(errno, EAGAIN);
	for (int i = 0; i < 3; i++)
		assert_int_equal(post_recv(&p->b, i, 0, 100), 0);
	assert_int_equal(post_send(&p->a, 0, IBV_WR_SEND, 0, 100), 0);
	run(p, 20);
	assert_false(readable(p->b.channel->fd)); /* not armed */
	assert_int_equal(ibv_req_notify_cq(p->b.cq, 0), 0);
	assert_int_equal(post_send(&p->a, 1, IBV_WR_SEND, 0, 100), 0);
	assert_int_equal(post_send(&p->a, 2, IBV_WR_SEND, 0, 100), 0);
	run(p, 20);
	assert_true(readable(p->b.channel->fd));
	assert_int_equal(ibv_get_cq_event(p->b.channel, &cq, &arg), 0);
	assert_ptr_equal(cq, p->b.cq);
	assert_ptr_equal(arg, &p->b);
	assert_false(readable(p->b.channel->fd)); /* one event for the two */
	ibv_ack_cq_events(cq, 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ibv_poll_cq(p->b.cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, i);
	}
}

/* A program that only ever waits: the waiting itself runs the device. */
static void blocking_wait_runs_the_device(void **state)
{
	struct pair *p = *state;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *arg;

	endpoints_connect(&p->a, &p->b, 1);
	p->f->loss = 100;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(ibv_req_notify_cq(p->b.cq, 0), 0);
		assert_int_equal(post_recv(&p->b, i, 0, 3000), 0);
		assert_int_equal(post_send(&p->a, i, IBV_WR_SEND, 0, 3000), 0);
		assert_int_equal(ibv_get_cq_event(p->b.channel, &cq, &arg), 0);
		ibv_ack_cq_events(cq, 1);
		assert_int_equal(ibv_poll_cq(p->b.cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, i);
		wait_wc(&p->a, &wc);
	}
}

static void solicited_only(void **state)
{
	struct pair *p = *state;
	struct ibv_sge sge = {(uintptr_t)p->a.buf, 100, p->a.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_cq *cq;
	void *arg;

	endpoints_connect(&p->a, &p->b, 1);
	assert_int_equal(ibv_req_notify_cq(p->b.cq, 1), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(post_recv(&p->b, i, 0, 100), 0);
	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
	run(p, 20);
	assert_false(readable(p->b.channel->fd));
	wr.send_flags = IBV_SEND_SOLICITED;
	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
	run(p, 20);
	assert_true(readable(p->b.channel->fd));
	assert_int_equal(ibv_get_cq_event(p->b.channel, &cq, &arg), 0);
	ibv_ack_cq_events(cq, 1);
}

/* Events nobody fetched do not keep a CQ, nor leave the channel readable. */
static void destroying_a_cq_takes_its_events(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_recv_wr wr = {.wr_id = 5}, *bad;
	struct ibv_cq *cq = ibv_create_cq(p->a.context, 8, NULL, p->a.channel, 0);

	init.send_cq = init.recv_cq = cq;
	{
		struct ibv_qp *qp = ibv_create_qp(p->a.pd, &init), *plain = p->a.qp;

		assert_non_null(qp);
		p->a.qp = qp;
		assert_int_equal(endpoint_init(&p->a), 0);
		p->a.qp = plain;
		assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
		assert_true(readable(p->a.channel->fd));
		assert_int_equal(ibv_destroy_comp_channel(p->a.channel), EBUSY);
		assert_int_equal(ibv_destroy_cq(cq), EBUSY);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_false(readable(p->a.channel->fd));
}

/* The peer is gone: retries run out, the completion and the event say so. */
static void fatal_error_is_an_event(void **state)
{
	struct pair *p = *state;
	struct ibv_async_event event;
	struct ibv_wc wc;

	endpoints_connect(&p->a, &p->b, 1);
	nonblocking(p->a.context->async_fd);
	assert_int_equal(ibv_get_async_event(p->a.context, &event), -1);
	assert_int_equal(errno, EAGAIN);
	/* A write that the peer refuses: both sides go to error, the responder with an event. */
	{
		struct ibv_sge sge = {(uintptr_t)p->a.buf, 100, p->a.mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge,
					   .num_sge = 1,
					   .wr_id = 3,
					   .opcode = IBV_WR_RDMA_WRITE,
					   .wr.rdma = {0x1000, p->b.mr->rkey}},
				   *bad;

		assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
	}
	wait_wc(&p->a, &wc);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	assert_true(readable(p->b.context->async_fd));
	assert_int_equal(ibv_get_async_event(p->b.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(event.element.qp, p->b.qp);
	ibv_ack_async_event(&event); /* else destroying the QP would wait for ever */
}

static void lost_peer_exhausts_retries(void **state)
{
	struct pair *p = *state;
	struct ibv_wc wc;

	endpoints_connect(&p->a, &p->b, 1);
	p->f->cut = true;
	assert_int_equal(post_send(&p->a, 8, IBV_WR_SEND, 0, 100), 0);
	assert_int_equal(post_send(&p->a, 9, IBV_WR_SEND, 0, 100), 0);
	wait_wc(&p->a, &wc);
	assert_int_equal(wc.wr_id, 8);
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	wait_wc(&p->a, &wc);
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
}

static void set_link(struct pair *p, bool down)
{
	p->f->link_down = down;
	p->f->now += 1000000000;
	run(p, 1);
}

static void expect_port_event(struct pair *p, enum ibv_event_type type)
{
	struct ibv_async_event event;

	assert_int_equal(ibv_get_async_event(p->a.context, &event), 0);
	assert_int_equal(event.event_type, type);
	assert_int_equal(event.element.port_num, 1);
	ibv_ack_async_event(&event);
}

static void link_changes_are_events(void **state)
{
	struct pair *p = *state;

	set_link(p, true);
	expect_port_event(p, IBV_EVENT_PORT_ERR);
	set_link(p, false);
	expect_port_event(p, IBV_EVENT_PORT_ACTIVE);
	assert_false(readable(p->a.context->async_fd));
	/* What was not fetched meanwhile is not told twice. */
	for (int changes = 5; changes < 7; changes++) {
		for (int i = 0; i < changes; i++)
			set_link(p, !p->f->link_down);
		/* The last one tells how it is now. */
		expect_port_event(p, p->f->link_down ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
		expect_port_event(p, p->f->link_down ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE);
	}
	assert_false(readable(p->a.context->async_fd));
}

/* More completions than entries: the program hears of it, though it polls nothing. */
static void overrun_is_reported(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 32, 1, 1, 0}};
	struct ibv_cq *cq = ibv_create_cq(p->a.context, 4, NULL, NULL, 0);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_recv_wr wr = {.wr_id = 5}, *bad;
	struct ibv_async_event event;
	struct ibv_qp *qp, *plain = p->a.qp;
	struct ibv_wc wc;

	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(p->a.pd, &init);
	assert_non_null(qp);
	p->a.qp = qp;
	assert_int_equal(endpoint_init(&p->a), 0);
	p->a.qp = plain;
	for (int i = 0; i < 10; i++)
		assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	assert_true(readable(p->a.context->async_fd));
	assert_int_equal(ibv_get_async_event(p->a.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, cq);
	ibv_ack_async_event(&event);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), -1);
	assert_false(readable(p->a.context->async_fd));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(armed_cq_tells_once, setup, teardown),
		cmocka_unit_test_setup_teardown(blocking_wait_runs_the_device, setup, teardown),
		cmocka_unit_test_setup_teardown(solicited_only, setup, teardown),
		cmocka_unit_test_setup_teardown(destroying_a_cq_takes_its_events, setup, teardown),
		cmocka_unit_test_setup_teardown(fatal_error_is_an_event, setup, teardown),
		cmocka_unit_test_setup_teardown(lost_peer_exhausts_retries, setup, teardown),
		cmocka_unit_test_setup_teardown(link_changes_are_events, setup, teardown),
		cmocka_unit_test_setup_teardown(overrun_is_reported, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
