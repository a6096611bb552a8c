/* SPDX-License-Identifier: BSD-3-Clause */
/* What scheduling and timers cost, in steps, not in time: nothing for queue pairs that are idle,
 * and about one per packet for those that are not. */
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/device.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/scheduler.h"
#include "lib/rnic/timer.h"
#include "tests/unit/rnic/net.h"

enum { MANY = 10000 };

static struct net net;

/* ---- idle ones ---- */

struct cost {
	uint64_t steps, moves, frames;
};

/* The same transfers beside so many connected QPs with nothing to do. */
static struct cost transfers(unsigned idle)
{
	const struct net_options options = {.max_qp = MANY + 10, .wr = 1};
	struct rnic_qp **qp = calloc(idle + 1, sizeof(struct rnic_qp *));
	struct end *a = &net.end[0], *b = &net.end[1];
	struct cost before, after;

	assert_non_null(qp);
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){.max_qp = MANY + 10, .rd = 4});
	for (unsigned i = 0; i < idle; i++) {
		qp[i] = net_make_qp(a, &options);
		net_to_rts(&net, 0, qp[i], rnic_qp_num(b->qp), &options);
	}
	net_run(&net, net.now + MS);
	before = (struct cost){
		a->rnic->sched_steps, a->rnic->timers.moves, rnic_count(a->rnic, RNIC_C_TX_FRAMES)};
	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(0, end_send(a, i % 4 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, i, 0,
					    3000, (uintptr_t)b->buf, rnic_mr_rkey(b->mr)));
		net_run(&net, net.now + (i % 8 ? 500 : MS / 10));
		while (rnic_cq_poll(a->scq, 1, &(struct ibv_wc){0}) == 1)
			;
	}
	net_run(&net, net.now + MS);
	after = (struct cost){a->rnic->sched_steps - before.steps,
		a->rnic->timers.moves - before.moves,
		rnic_count(a->rnic, RNIC_C_TX_FRAMES) - before.frames};
	for (unsigned i = 0; i < idle; i++)
		rnic_qp_destroy(qp[i]);
	free(qp);
	net_close(&net);
	return after;
}

static void test_idle(void **state)
{
	struct cost none = transfers(0), many = transfers(MANY);

	(void)state;
	assert_true(none.frames >= 500);
	assert_int_equal(none.frames, many.frames);
	assert_int_equal(none.steps, many.steps);
	assert_int_equal(none.moves, many.moves);
	assert_true(none.steps < 6 * none.frames);
}

/* Asking a device that has nothing to do is one look at one word. */
static void test_nothing(void **state)
{
	struct rnic_frame frame;
	struct rnic *rnic;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){.max_qp = 1 << 16});
	net_run(&net, net.now + MS);
	rnic = net.end[0].rnic;
	rnic->sched_steps = 0;
	for (unsigned i = 0; i < 1000; i++)
		assert_false(rnic_tx(rnic, RNIC_ALL_PORTS, &frame, net.now));
	assert_int_equal(0, rnic->sched_steps);
	net_close(&net);
}

/* ---- busy ones ---- */

static uint32_t quantum; /* of open_many's device */

/* Datagrams without acknowledgement: n QPs, the peer's number is nobody's. */
static void open_many(unsigned n, uint32_t wr, struct rnic_qp **qp)
{
	const struct net_options options = {.type = IBV_QPT_UC,
		.max_qp = 1 << 16,
		.wr = wr,
		.cqe = 1 << 15,
		.quantum = quantum};

	memset(&net, 0, sizeof(net));
	net_open(&net, &options);
	for (unsigned i = 0; i < n; i++) {
		qp[i] = net_make_qp(&net.end[0], &options);
		net_to_rts(&net, 0, qp[i], 0x99, &options);
	}
	net_run(&net, net.now + MS);
}

static void close_many(unsigned n, struct rnic_qp **qp)
{
	for (unsigned i = 0; i < n; i++)
		rnic_qp_destroy(qp[i]);
	net_close(&net);
}

static void post_one(struct rnic_qp *qp)
{
	struct end *a = &net.end[0];
	struct ibv_sge sge = {(uintptr_t)a->buf, 64, rnic_mr_lkey(a->mr)};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

	assert_int_equal(0, rnic_post_send(qp, &wr));
}

/* All ring at once: each is found once, has one turn, and is found empty once. */
static void test_all_ring(void **state)
{
	static struct rnic_qp *qp[MANY];
	struct rnic *rnic;
	struct rnic_frame frame;
	unsigned frames = 0;

	(void)state;
	open_many(MANY, 1, qp);
	rnic = net.end[0].rnic;
	rnic->sched_steps = 0;
	for (unsigned i = 0; i < MANY; i++)
		post_one(qp[i]);
	for (; rnic_tx(rnic, RNIC_ALL_PORTS, &frame, net.now); frames++)
		assert_int_equal(rnic_qp_num(qp[frames]), frame.qpn);
	assert_int_equal(MANY, frames);
	/* The words: one in 64 of the bells', one in 64 of these, one. */
	assert_in_range(rnic->sched_steps, 3 * MANY, 3 * MANY + MANY / 64 + 10);
	close_many(MANY, qp);
}

/* Turns of 16 packets; one that comes late waits for one turn of each that is there. */
static void test_quanta(void **state)
{
	enum { N = 5, EACH = 64 };
	struct rnic_qp *qp[N + 1];
	struct rnic_frame frame;
	unsigned count[N] = {0}, waited = 0;

	(void)state;
	open_many(N + 1, EACH, qp);
	for (unsigned i = 0; i < N * EACH; i++)
		post_one(qp[i / EACH]);
	for (unsigned i = 0; i < N * QUANTUM + 3; i++) {
		assert_true(rnic_tx(net.end[0].rnic, RNIC_ALL_PORTS, &frame, net.now));
		assert_int_equal(rnic_qp_num(qp[i / QUANTUM % N]), frame.qpn);
	}
	post_one(qp[N]);
	for (; rnic_tx(net.end[0].rnic, RNIC_ALL_PORTS, &frame, net.now) &&
		frame.qpn != rnic_qp_num(qp[N]);
		waited++)
		assert_true(waited < N * QUANTUM);
	assert_int_equal(N * QUANTUM - 3, waited);
	while (rnic_tx(net.end[0].rnic, RNIC_ALL_PORTS, &frame, net.now)) {
		for (unsigned i = 0; i < N; i++)
			count[i] += frame.qpn == rnic_qp_num(qp[i]);
	}
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(EACH - 2 * QUANTUM, count[i]);
	close_many(N + 1, qp);
}

/* As short as the device is told. */
static void test_short_turns(void **state)
{
	enum { N = 3, EACH = 8 };
	struct rnic_qp *qp[N];
	struct rnic_frame frame;

	(void)state;
	for (quantum = 1; quantum <= 2; quantum++) {
		open_many(N, EACH, qp);
		for (unsigned i = 0; i < N * EACH; i++)
			post_one(qp[i / EACH]);
		for (unsigned i = 0; i < N * EACH; i++) {
			assert_true(rnic_tx(net.end[0].rnic, RNIC_ALL_PORTS, &frame, net.now));
			assert_int_equal(rnic_qp_num(qp[i / quantum % N]), frame.qpn);
		}
		close_many(N, qp);
	}
	quantum = 0;
}

/* ---- timers ---- */

/* Each packet pushes its QP's timer on. That costs a store; what the heap does about it comes once
 * per timeout. */
static void test_timers(void **state)
{
	enum { N = 2000, TIMEOUT = 1000, STEP = 10, PERIODS = 10 };
	static struct timer timer[N];
	struct timers timers = {.slot = calloc(N, sizeof(struct timer_slot))};
	uint64_t sets = 0, now = 0;

	(void)state;
	assert_non_null(timers.slot);
	for (unsigned i = 0; i < N; i++)
		timer_stop(&timer[i]);
	for (; now < PERIODS * TIMEOUT; now += STEP) {
		for (unsigned i = 0; i < N; i++, sets++)
			timer_set(&timers, &timer[i * 7 % N], now + TIMEOUT + i % STEP);
		assert_null(timer_expired(&timers, now));
	}
	assert_int_equal(PERIODS * N * (TIMEOUT / STEP), sets);
	assert_true(timers.moves < sets / 4);
	/* All of them come, none before its time. */
	for (unsigned i = 0; i < N; i++) {
		struct timer *due = timer_expired(&timers, now + TIMEOUT + STEP);

		assert_non_null(due);
		assert_int_equal(UINT64_MAX, due->at);
	}
	assert_null(timer_expired(&timers, UINT64_MAX - 1));
	free(timers.slot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_all_ring),
		cmocka_unit_test(test_quanta),
		cmocka_unit_test(test_short_turns),
		cmocka_unit_test(test_timers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
