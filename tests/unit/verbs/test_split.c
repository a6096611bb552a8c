/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path and data path apart: each half alone, rings that are full, payload by reference,
 * closing in the middle. The transfers themselves: test_transfer.c etc. with VERBS_SPLIT. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/verbs/split.h"
#include "tests/unit/verbs/fabric.h"

enum { BUF = 1 << 20, MESSAGE = 16384 };

struct pair {
	struct fabric *f;
	struct endpoint a, b;
};

static struct pair *open_pair(bool thread)
{
	struct pair *p = calloc(1, sizeof(*p));

	p->f = fabric_create();
	p->f->split = true;
	fabric_open(p->f, thread);
	endpoint_create(&p->a, p->f->end[0].context, BUF, false);
	endpoint_create(&p->b, p->f->end[1].context, BUF, false);
	p->a.timeout = p->b.timeout = thread ? 20 : 8;
	for (unsigned i = 0; i < BUF; i++)
		p->a.buf[i] = (uint8_t)(i * 7 + i / 251);
	endpoints_connect(&p->a, &p->b, 1);
	return p;
}

static int setup(void **state)
{
	*state = open_pair(false);
	return 0;
}

static int setup_threads(void **state)
{
	*state = open_pair(true);
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

static struct iv_split *split_of(struct endpoint *ep)
{
	return iv_dev(ep->context)->split;
}

static void rdma_write(struct pair *p, uint64_t wr_id, size_t offset, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)p->a.buf + offset, len, p->a.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_RDMA_WRITE,
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.rdma = {(uintptr_t)p->b.buf + offset, p->b.mr->rkey}},
			   *bad;

	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
}

/* Posted, and nobody takes a turn for it. */
static void only_post(struct pair *p, unsigned n)
{
	struct iv_dev *dev = iv_dev(p->a.context);

	pthread_mutex_lock(&dev->owner);
	for (unsigned i = 0; i < n; i++)
		rdma_write(p, i, (size_t)i * MESSAGE, MESSAGE);
	pthread_mutex_unlock(&dev->owner);
}

static void expect_writes(struct pair *p, unsigned n)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < n; i++) {
		wait_wc(&p->a, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
	}
	assert_memory_equal(p->b.buf, p->a.buf, (size_t)n * MESSAGE);
}

static uint64_t stat_of(struct endpoint *ep, const char *name)
{
	struct inc_dv_stat stats[256];
	unsigned n;

	assert_int_equal(inc_dv_query_stats(ep->context, stats, 256, &n), 0);
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(stats[i].name, name) == 0)
			return stats[i].value;
	}
	fail_msg("no counter %s", name);
	return 0;
}

static uint64_t retransmits(struct endpoint *ep)
{
	struct inc_dv_qp_stats stats;

	assert_int_equal(inc_dv_query_qp_stats(ep->qp, &stats), 0);
	return stats.retransmits;
}

/* The control path of b stands still: its data path fills the ring, then leaves frames in the port,
 * and when the control path runs again nothing was lost. */
static void control_stands_still(void **state)
{
	struct pair *p = *state;
	const unsigned n = BUF / MESSAGE;

	for (unsigned i = 0; i < n; i++)
		rdma_write(p, i, (size_t)i * MESSAGE, MESSAGE);
	for (unsigned i = 0; i < 10000 && stat_of(&p->b, "data_rx_held") == 0; i++) {
		incline_verbs_progress(p->a.context);
		iv_split_turn(split_of(&p->b));
	}
	assert_true(stat_of(&p->b, "data_rx_held") > 0);
	assert_int_equal(p->f->end[1].read - p->f->end[1].head, VERBS_RX_HELD);
	assert_int_equal(p->b.buf[0], 0); /* nothing is placed but by the control path */
	assert_int_equal(p->b.buf[1], 0);
	expect_writes(p, n);
	assert_int_equal(retransmits(&p->a), 0);
	assert_int_equal(p->f->end[1].read, p->f->end[1].head);
}

/* The data path of a stands still: the control path fills the ring, then leaves frames in the rnic.
 */
static void data_stands_still(void **state)
{
	struct pair *p = *state;
	const unsigned n = BUF / MESSAGE;
	struct iv_split *split = split_of(&p->a);

	p->f->blocked = true;
	only_post(p, n);
	for (unsigned i = 0; i < 100 && stat_of(&p->a, "control_tx_held") == 0; i++)
		iv_split_transmit(split, p->f->now);
	assert_true(stat_of(&p->a, "control_tx_held") > 0);
	assert_false(iv_split_settled(split));
	assert_false(iv_split_must_settle(split, false));
	assert_true(iv_split_must_settle(split, true));
	assert_int_equal(stat_of(&p->a, "control_waits"), 1);
	p->f->blocked = false;
	expect_writes(p, n);
	assert_int_equal(retransmits(&p->a), 0);
}

/* A full port: the data path makes itself independent of the program's memory all the same, and
 * what leaves later is what was there when it did. */
static void full_port_copies(void **state)
{
	struct pair *p = *state;
	struct iv_split *split = split_of(&p->a);
	uint8_t was[MESSAGE];
	struct ibv_wc wc;

	memcpy(was, p->a.buf, MESSAGE);
	p->f->blocked = true;
	rdma_write(p, 0, 0, MESSAGE);
	iv_split_transmit(split, p->f->now);
	assert_true(stat_of(&p->a, "control_tx_by_reference") >= MESSAGE / 1024);
	assert_false(iv_split_settled(split));
	iv_split_turn(split);
	assert_true(iv_split_settled(split));
	assert_int_equal(stat_of(&p->a, "data_tx_copied"), MESSAGE / 1024);
	memset(p->a.buf, 0xdb, MESSAGE);
	p->f->blocked = false;
	wait_wc(&p->a, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_memory_equal(p->b.buf, was, MESSAGE);
	assert_int_equal(retransmits(&p->a), 0);
}

/* However much of it there is: whoever waits for the data path waits for one turn of it. */
static void full_port_copies_all(void **state)
{
	struct pair *p = *state;
	struct iv_split *split = split_of(&p->a);
	const unsigned n = 8; /* 128 frames: all slots */

	p->f->blocked = true;
	only_post(p, n);
	while (iv_split_transmit(split, p->f->now) > 0)
		;
	assert_false(iv_split_settled(split));
	iv_split_turn(split);
	assert_true(iv_split_settled(split));
	assert_int_equal(stat_of(&p->a, "data_tx_copied"), n * MESSAGE / 1024);
	p->f->blocked = false;
	expect_writes(p, n);
	assert_int_equal(retransmits(&p->a), 0);
}

/* The program goes on writing while the port has a frame of that memory. */
static void memory_changes(void **state)
{
	struct pair *p = *state;
	struct ibv_wc wc;

	p->f->live = p->a.buf + 500;
	rdma_write(p, 0, 0, MESSAGE);
	wait_wc(&p->a, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(retransmits(&p->a), 0);
}

/* The ACK that a queue pair owes leaves when it is destroyed, and is taken. */
static void last_answer(void **state)
{
	struct pair *p = *state;
	struct ibv_wc wc;

	rdma_write(p, 0, 0, 1000);
	while (iv_split_turn(split_of(&p->a)) == 0)
		iv_split_transmit(split_of(&p->a), p->f->now);
	iv_split_turn(split_of(&p->b));
	assert_int_equal(iv_split_receive(split_of(&p->b), p->f->now), 1);
	assert_int_equal(ibv_destroy_qp(p->b.qp), 0);
	p->b.qp = NULL;
	wait_wc(&p->a, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(retransmits(&p->a), 0);
}

/* A call that may take memory away waits until nothing refers to it. */
static void deregistering_waits(void **state)
{
	struct pair *p = *state;
	struct iv_split *split = split_of(&p->a);
	uint8_t *memory = malloc(MESSAGE);
	struct ibv_mr *mr = ibv_reg_mr(p->a.pd, memory, MESSAGE, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = {(uintptr_t)memory, MESSAGE, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_RDMA_WRITE,
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.rdma = {(uintptr_t)p->b.buf, p->b.mr->rkey}},
			   *bad;

	memset(memory, 0x77, MESSAGE);
	p->f->blocked = true;
	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
	iv_split_transmit(split, p->f->now);
	iv_split_transmit(split, p->f->now);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_true(iv_split_settled(split));
	free(memory);
	p->f->blocked = false;
	for (int i = 0; i < 100; i++)
		fabric_step(p->f);
	for (unsigned i = 0; i < MESSAGE; i++)
		assert_int_equal(p->b.buf[i], 0x77);
}

/* Frames in every ring when everything goes; teardown looks at what the port got back. */
static void close_in_the_middle(void **state)
{
	struct pair *p = *state;

	for (unsigned i = 0; i < 16; i++)
		rdma_write(p, i, (size_t)i * MESSAGE, MESSAGE);
	for (unsigned i = 0; i < 3; i++) {
		iv_split_transmit(split_of(&p->a), p->f->now);
		iv_split_turn(split_of(&p->a));
		iv_split_turn(split_of(&p->b));
	}
	iv_split_transmit(split_of(&p->a), p->f->now);
	assert_true(p->f->end[1].read != p->f->end[1].head);
}

static void close_in_the_middle_of_threads(void **state)
{
	struct pair *p = *state;

	for (unsigned i = 0; i < 16; i++)
		rdma_write(p, i, (size_t)i * MESSAGE, MESSAGE);
}

static void threads_move_data(void **state)
{
	struct pair *p = *state;
	const unsigned n = BUF / MESSAGE;

	for (unsigned i = 0; i < n; i++)
		rdma_write(p, i, (size_t)i * MESSAGE, MESSAGE);
	expect_writes(p, n);
	assert_true(stat_of(&p->a, "control_tx_by_reference") >= BUF / 1024);
	assert_true(stat_of(&p->b, "data_rx") >= BUF / 1024);
}

/* One half of the device cannot have a CPU that does not exist. */
static void no_such_cpu(void **state)
{
	pthread_attr_t attr;

	(void)state;
	pthread_attr_init(&attr);
	assert_int_equal(iv_split_pin(&attr, 0), 0);
	assert_int_equal(iv_split_pin(&attr, 1 << 20), -EINVAL);
	pthread_attr_destroy(&attr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(control_stands_still, setup, teardown),
		cmocka_unit_test_setup_teardown(data_stands_still, setup, teardown),
		cmocka_unit_test_setup_teardown(full_port_copies, setup, teardown),
		cmocka_unit_test_setup_teardown(full_port_copies_all, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(last_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(deregistering_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(close_in_the_middle, setup, teardown),
		cmocka_unit_test_setup_teardown(threads_move_data, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(
			close_in_the_middle_of_threads, setup_threads, teardown),
		cmocka_unit_test(no_such_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
