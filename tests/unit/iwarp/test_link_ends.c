/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of links, connections and queue pairs in every order: what is gone is not used any more,
 * what is left goes on, and all that began is told to be over. */
#include "lib/rnic/transport.h"
#include "tests/unit/iwarp/pair.h"

static const struct mpa_offer depths = {.ird = 4, .ord = 4};

static enum ibv_qp_state state_of(const struct rnic_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	rnic_qp_query(qp, &attr, &init);
	return attr.qp_state;
}

/* ---- places ---- */

/* The stream's only place is the old connection's until the link has heard that it is over; then
 * the next one has it, each with its own queue pair. */
static void test_place_again(void **state)
{
	struct iwarp_event event;
	struct rnic_qp *first;
	struct pair p;
	uint32_t conn;

	(void)state;
	pair_open(&p, &(struct pair_options){.stream_conns = 1, .conns = 2});
	pair_connect(&p, &depths);
	first = p.end[0].qp;
	conn = p.conn[0];
	assert_int_equal(stream_abort(p.net->s[1], p.conn[1]), 0);
	pair_run_streams(&p, PAIR_SECOND);
	assert_int_equal(stream_conns(p.net->s[0]), 0);

	end_qp(&p.end[0], END_ALL);
	assert_int_equal(pair_ask(&p, &depths), -ENOSPC);
	pair_run(&p, PAIR_SECOND);
	assert_int_equal(pair_event(&p, 1, IWARP_CLOSED).conn, p.conn[1]);
	assert_int_equal(pair_ask(&p, &depths), 0);
	assert_int_equal(p.conn[0] & 0xffff, conn & 0xffff);
	pair_run(&p, PAIR_SECOND);
	event = pair_event(&p, 0, IWARP_CLOSED);
	assert_int_equal(event.result, -ECONNRESET);
	assert_int_equal(event.conn, conn);
	assert_int_equal(state_of(first), IBV_QPS_ERR);
	assert_int_equal(rnic_qp_destroy(first), 0); /* nothing to the other one */

	p.conn[1] = pair_event(&p, 1, IWARP_REQUEST).conn;
	end_qp(&p.end[1], END_ALL);
	assert_int_equal(
		iwarp_accept(p.link[1], p.net->now, p.conn[1], p.end[1].qp, &depths, 1), 0);
	pair_run(&p, PAIR_SECOND);
	pair_event(&p, 0, IWARP_ESTABLISHED);
	assert_int_equal(state_of(p.end[0].qp), IBV_QPS_RTS);
	pair_close(&p);
}

/* As many at a time as the link has places, whatever the numbers that the stream gives; a place is
 * free when its end was polled. */
static void test_places(void **state)
{
	struct rnic_qp *second;
	struct pair p;
	uint32_t conn;

	(void)state;
	pair_open(&p, &(struct pair_options){.stream_conns = 8, .conns = 2});
	for (unsigned i = 0; i < 20; i++) {
		pair_connect(&p, &depths);
		assert_int_equal(iwarp_close(p.link[0], p.conn[0]), 0);
		pair_run(&p, PAIR_SECOND);
		assert_int_equal(pair_event(&p, 0, IWARP_CLOSED).result, 0);
		assert_int_equal(pair_event(&p, 1, IWARP_CLOSED).result, 0);
		assert_int_equal(rnic_qp_destroy(p.end[0].qp), 0);
		assert_int_equal(rnic_qp_destroy(p.end[1].qp), 0);
	}
	pair_connect(&p, &depths);
	second = end_qp(&p.end[0], END_ALL);
	assert_int_equal(pair_ask(&p, &depths), 0);
	end_qp(&p.end[0], END_ALL);
	conn = p.conn[0];
	assert_int_equal(pair_ask(&p, &depths), -ENOSPC);
	assert_int_equal(p.conn[0], conn);
	assert_int_equal(iwarp_close(p.link[0], conn), 0);
	assert_int_equal(pair_ask(&p, &depths), -ENOSPC); /* not told yet */
	pair_run(&p, PAIR_SECOND);
	assert_int_equal(pair_event(&p, 0, IWARP_CLOSED).result, -ECONNABORTED);
	assert_int_equal(state_of(second), IBV_QPS_INIT);
	assert_int_equal(pair_ask(&p, &depths), 0);
	pair_close(&p);
}

/* ---- the link goes ---- */

/* With a connection that runs, one that begins and a port, in the midst of what the peer sends:
 * nothing more is put into its memory, the peer hears of it, and another link may follow. */
static void test_link_gone(void **state)
{
	const struct pair_options options = {.stream_conns = 8};
	struct rnic_qp *first;
	struct pair p;

	(void)state;
	pair_open(&p, &options);
	assert_int_equal(iwarp_listen(p.link[0], 5, 1), 0);
	assert_int_equal(iwarp_unlisten(p.link[0], 6), -ENOENT);
	pair_connect(&p, &depths);
	first = p.end[0].qp;
	end_qp(&p.end[0], END_ALL);
	assert_int_equal(pair_ask(&p, &depths), 0);
	assert_int_equal(end_post(&p.end[1], IBV_WR_RDMA_WRITE, 1, 0, 60000, &p.end[0], 0, 0), 0);
	end_rnic_tx(&p.end[1], p.net->now);
	assert_true(iwarp_turn(p.link[1], p.net->now));
	pair_run_streams(&p, p.net->delay + 1); /* the first of it is on its way */
	iwarp_link_destroy(p.link[0]);
	p.link[0] = NULL;
	assert_int_equal(stream_conns(p.net->s[0]), 0);
	assert_int_equal(stream_listen(p.net->s[0], 5, 1), 0);
	assert_int_equal(stream_unlisten(p.net->s[0], 5), 0);
	assert_int_equal(state_of(first), IBV_QPS_ERR);
	assert_int_equal(state_of(p.end[0].qp), IBV_QPS_INIT);
	pair_run(&p, 3 * PAIR_SECOND);
	assert_int_equal(pair_event(&p, 1, IWARP_CLOSED).result, -ECONNRESET);
	assert_int_equal(stream_conns(p.net->s[1]), 0);

	assert_int_equal(rnic_qp_destroy(p.end[1].qp), 0);
	pair_link(&p, 0);
	pair_connect(&p, &depths); /* what the stream had to tell the one before is passed over */
	pair_close(&p);
}

/* Before it has heard of a connection that the stream has accepted. */
static void test_link_gone_unheard(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_options){0});
	end_qp(&p.end[0], END_ALL);
	assert_int_equal(pair_ask(&p, &depths), 0);
	pair_run_streams(&p, PAIR_SECOND);
	assert_int_equal(stream_conns(p.net->s[1]), 1);
	iwarp_link_destroy(p.link[1]);
	p.link[1] = NULL;
	assert_int_equal(stream_conns(p.net->s[1]), 0);
	pair_link(&p, 1);
	pair_run(&p, PAIR_SECOND);
	assert_int_equal(pair_event(&p, 0, IWARP_CLOSED).result, -ECONNRESET);
	assert_int_equal(p.n_event[1], 0);
	pair_close(&p);
}

/* ---- the queue pair goes ---- */

static int modify(struct rnic_qp *qp, enum ibv_qp_state to)
{
	return rnic_qp_modify(qp, &(struct ibv_qp_attr){.qp_state = to}, IBV_QP_STATE, 0);
}

/* While connecting it is the connection's: not to be had in RTS, nor by another connection. */
static void test_held(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_options){0});
	end_qp(&p.end[0], END_ALL);
	end_qp(&p.end[1], END_ALL);
	assert_int_equal(pair_ask(&p, &depths), 0);
	assert_int_equal(modify(p.end[0].qp, IBV_QPS_RTS), -ENOTCONN);
	assert_int_equal(pair_ask(&p, &depths), -EBUSY);
	pair_run(&p, PAIR_SECOND);
	p.conn[1] = pair_event(&p, 1, IWARP_REQUEST).conn;
	assert_int_equal(
		iwarp_accept(p.link[1], p.net->now, p.conn[1], p.end[1].qp, &depths, 8), 0);
	pair_run(&p, PAIR_SECOND);
	pair_event(&p, 0, IWARP_ESTABLISHED);
	pair_event(&p, 1, IWARP_ESTABLISHED);
	assert_int_equal(state_of(p.end[0].qp), IBV_QPS_RTS);
	pair_close(&p);
}

/* It goes to ERR, and then goes altogether, before and after the peer's answer has come. */
static void test_held_fails(void **state)
{
	(void)state;
	for (int answered = 0; answered < 2; answered++) {
		struct pair p;

		pair_open(&p, &(struct pair_options){0});
		pair_request(&p, &depths);
		if (answered) {
			assert_int_equal(iwarp_accept(p.link[1], p.net->now, p.conn[1], p.end[1].qp,
						 &depths, 8),
				0);
			assert_true(iwarp_turn(p.link[1], p.net->now));
			pair_run_streams(&p, PAIR_SECOND);
		}
		assert_int_equal(modify(p.end[0].qp, IBV_QPS_ERR), 0);
		iwarp_turn(p.link[0], p.net->now);
		assert_int_equal(rnic_qp_destroy(p.end[0].qp), 0);
		pair_run(&p, PAIR_SECOND);
		assert_true(pair_event(&p, 0, IWARP_CLOSED).result < 0);
		if (answered)
			pair_event(&p, 1, IWARP_ESTABLISHED);
		pair_event(&p, 1, IWARP_CLOSED);
		assert_int_equal(stream_conns(p.net->s[0]) + stream_conns(p.net->s[1]), 0);
		pair_close(&p);
	}
}

/* One that cannot be had does nothing to the request: it may have another answer. */
static void test_accept_again(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_options){0});
	pair_request(&p, &depths);
	assert_int_equal(modify(p.end[1].qp, IBV_QPS_ERR), 0);
	assert_int_equal(
		iwarp_accept(p.link[1], p.net->now, p.conn[1], p.end[1].qp, &depths, 8), -EINVAL);
	assert_int_equal(iwarp_accept(p.link[1], p.net->now, p.conn[1], end_qp(&p.end[1], END_ALL),
				 &(struct mpa_offer){.ird = 4, .ord = 4, .private_len = 1}, 8),
		-EINVAL);
	assert_int_equal(iwarp_reject(p.link[1], p.net->now, p.conn[1], NULL, 1), -EINVAL);
	assert_int_equal(
		iwarp_reject(p.link[1], p.net->now, p.conn[1], "", MPA_MAX_PRIVATE), -EINVAL);
	assert_int_equal(
		iwarp_accept(p.link[1], p.net->now, p.conn[1], p.end[1].qp, &depths, 8), 0);
	pair_run(&p, PAIR_SECOND);
	pair_event(&p, 0, IWARP_ESTABLISHED);
	assert_int_equal(pair_event(&p, 1, IWARP_ESTABLISHED).cookie, 8);
	pair_close(&p);
}

/* ---- what is told, and when ---- */

static void turn(struct pair *p, int side)
{
	while (iwarp_turn(p->link[side], p->net->now))
		;
	assert_true(iwarp_due(p->link[side]) > p->net->now);
}

/* A turn is due for whatever the program does: who sleeps until then misses nothing. */
static void test_due(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_options){0});
	turn(&p, 0);
	end_qp(&p.end[0], END_ALL);
	end_qp(&p.end[1], END_ALL);
	assert_int_equal(pair_ask(&p, &depths), 0);
	assert_int_equal(iwarp_due(p.link[0]), 0);
	turn(&p, 0);
	pair_run(&p, PAIR_SECOND);
	p.conn[1] = pair_event(&p, 1, IWARP_REQUEST).conn;
	turn(&p, 1);
	assert_int_equal(
		iwarp_accept(p.link[1], p.net->now, p.conn[1], p.end[1].qp, &depths, 8), 0);
	assert_int_equal(iwarp_due(p.link[1]), 0);
	pair_run(&p, PAIR_SECOND);

	assert_int_equal(end_post(&p.end[0], IBV_WR_RDMA_WRITE, 1, 0, 8, &p.end[1], 0, 0), 0);
	end_rnic_tx(&p.end[0], p.net->now);
	assert_int_equal(iwarp_due(p.link[0]), 0);
	turn(&p, 0);
	assert_int_equal(iwarp_close(p.link[0], p.conn[0]), 0);
	assert_int_equal(iwarp_due(p.link[0]), 0);
	turn(&p, 0);
	assert_int_equal(rnic_qp_destroy(p.end[1].qp), 0);
	assert_int_equal(iwarp_due(p.link[1]), 0);
	turn(&p, 1);
	pair_run(&p, PAIR_SECOND);

	end_qp(&p.end[0], END_ALL);
	assert_int_equal(pair_ask(&p, &depths), 0);
	pair_run(&p, PAIR_SECOND);
	while (p.n_event[1] > 1)
		pair_event(&p, 1, p.event[1][0].type);
	assert_int_equal(iwarp_reject(p.link[1], p.net->now, p.event[1][0].conn, NULL, 0), 0);
	assert_int_equal(iwarp_due(p.link[1]), 0);
	pair_close(&p);
}

/* Whoever closes one that ends takes away nothing of what the peer is to hear. */
static void test_close_late(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_options){0});
	pair_connect(&p, &depths);
	assert_int_equal(
		end_post(&p.end[0], IBV_WR_RDMA_WRITE, 1, 0, 8, &p.end[1], END_BYTES - 7, 0), 0);
	end_rnic_tx(&p.end[0], p.net->now);
	turn(&p, 0);
	pair_run_streams(&p, PAIR_SECOND);
	turn(&p, 1);
	assert_int_equal(iwarp_fault(p.end[1].qp), IWARP_FAULT_TAGGED_BOUNDS);
	assert_int_equal(iwarp_close(p.link[1], p.conn[1]), 0);
	pair_run(&p, PAIR_SECOND);
	assert_int_equal(iwarp_terminated(p.end[0].qp).fault, IWARP_FAULT_TAGGED_BOUNDS);
	assert_int_equal(pair_event(&p, 0, IWARP_CLOSED).result, 0);
	assert_int_equal(pair_event(&p, 1, IWARP_CLOSED).result, 0);
	pair_close(&p);
}

/* The answer and the end come between two turns: both are told. */
static void test_both_told(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_options){0});
	pair_request(&p, &depths);
	assert_int_equal(iwarp_accept(p.link[1], p.net->now, p.conn[1], p.end[1].qp,
				 &(struct mpa_offer){
					 .private_len = 2, .private_data = (const uint8_t *)"hi"},
				 8),
		0);
	turn(&p, 1);
	pair_run_streams(&p, PAIR_SECOND);
	assert_int_equal(stream_abort(p.net->s[1], p.conn[1]), 0);
	pair_run_streams(&p, PAIR_SECOND);
	pair_run(&p, PAIR_SECOND);
	assert_int_equal(pair_event(&p, 0, IWARP_ESTABLISHED).private_len, 2);
	assert_int_equal(pair_event(&p, 0, IWARP_CLOSED).result, -ECONNRESET);
	assert_int_equal(state_of(p.end[0].qp), IBV_QPS_ERR);
	pair_close(&p);
}

/* ---- all of it in any order ---- */

enum { QPS = 6, STEPS = 60, ROUNDS = 20 };

struct any {
	struct pair p;
	struct rnic_qp *qp[2][QPS];
	uint32_t conn[2];     /* the last that was told of */
	uint32_t left[STEPS]; /* requests without an answer */
	unsigned n_left;
	uint64_t closed[2];
};

static uint32_t pick(struct any *a, uint32_t n)
{
	return net_random(a->p.net, n);
}

/* One in INIT in a place that has none, or NULL. */
static struct rnic_qp *new_qp(struct any *a, int side)
{
	const unsigned at = pick(a, QPS);

	if (a->qp[side][at] == NULL)
		return a->qp[side][at] = end_qp(&a->p.end[side], END_ALL);
	return NULL;
}

static void hear(struct any *a, int side)
{
	struct pair *p = &a->p;

	while (p->n_event[side] > 0) {
		const struct iwarp_event event = pair_event(p, side, p->event[side][0].type);
		struct rnic_qp *qp;

		a->conn[side] = event.conn;
		a->closed[side] += event.type == IWARP_CLOSED;
		if (event.type != IWARP_REQUEST)
			continue;
		qp = pick(a, 3) > 0 ? new_qp(a, side) : NULL;
		if (qp != NULL)
			iwarp_accept(p->link[side], p->net->now, event.conn, qp, &depths, 1);
		else if (pick(a, 2) > 0)
			iwarp_reject(p->link[side], p->net->now, event.conn, NULL, 0);
		else if (a->n_left < STEPS)
			a->left[a->n_left++] = event.conn;
	}
}

static void ask(struct any *a)
{
	struct rnic_qp *qp = new_qp(a, 0);

	if (qp == NULL)
		return;
	a->p.end[0].qp = qp;
	if (pair_ask(&a->p, &depths) == 0)
		a->conn[0] = a->p.conn[0];
}

static void post(struct any *a, int side)
{
	static const enum ibv_wr_opcode kinds[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
	struct end *e = &a->p.end[side];

	e->qp = a->qp[side][pick(a, QPS)];
	if (e->qp == NULL || state_of(e->qp) != IBV_QPS_RTS)
		return;
	end_recv(e, 1, 0, 4096);
	end_post(e, kinds[pick(a, 3)], 1, 0, pick(a, 30000), &a->p.end[!side], pick(a, 40000), 0);
}

static void end_one(struct any *a, int side)
{
	const unsigned at = pick(a, QPS);

	if (a->qp[side][at] == NULL)
		return;
	if (pick(a, 2) > 0) {
		modify(a->qp[side][at], pick(a, 2) > 0 ? IBV_QPS_ERR : IBV_QPS_RESET);
		return;
	}
	rnic_qp_destroy(a->qp[side][at]);
	a->qp[side][at] = NULL;
}

static void step(struct any *a)
{
	const int side = (int)pick(a, 2);
	struct pair *p = &a->p;
	struct ibv_wc wc[32];

	switch (pick(a, 8)) {
	case 0:
	case 1:
		ask(a);
		break;
	case 2:
		end_one(a, side);
		break;
	case 3:
		iwarp_close(p->link[side], a->conn[side]);
		break;
	case 4:
		if (pick(a, 3) == 0)
			stream_abort(p->net->s[side], a->conn[side]);
		break;
	default:
		post(a, side);
	}
	if (pick(a, 2) > 0)
		pair_run_streams(p, pick(a, 300000));
	if (pick(a, 2) > 0)
		pair_run(p, pick(a, 300000));
	for (int i = 0; i < 2; i++) {
		hear(a, i);
		p->end[i].n_event = 0;
		while (rnic_cq_poll(p->end[i].scq, 32, wc) + rnic_cq_poll(p->end[i].rcq, 32, wc) >
			0)
			;
	}
}

/* Whatever both programs do and the network loses: every connection that began is told to be over
 * once, nothing is left; and what was freed is not used (build with sanitizers). */
static void test_any_order(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct any a = {0};
		struct pair *p = &a.p;

		pair_open(p, &(struct pair_options){.seed = round,
				     .ring = round % 2 ? 4096 : 65536,
				     .stream_conns = 1 + round % 4});
		p->net->loss = round % 3 * 20000;
		for (unsigned i = 0; i < STEPS; i++)
			step(&a);
		for (int i = 0; i < 2; i++)
			for (unsigned k = 0; k < QPS; k++)
				if (a.qp[i][k] != NULL)
					rnic_qp_destroy(a.qp[i][k]);
		while (a.n_left > 0)
			iwarp_close(p->link[1], a.left[--a.n_left]);
		for (unsigned i = 0; i < 60; i++) {
			pair_run(p, PAIR_SECOND);
			for (int side = 0; side < 2; side++)
				while (p->n_event[side] > 0) {
					const struct iwarp_event event =
						pair_event(p, side, p->event[side][0].type);

					a.closed[side] += event.type == IWARP_CLOSED;
					if (event.type != IWARP_CLOSED)
						iwarp_close(p->link[side], event.conn);
				}
		}
		for (int i = 0; i < 2; i++) {
			assert_int_equal(
				a.closed[i], iwarp_link_count(p->link[i], IWARP_LINK_CONNECTS));
			assert_int_equal(stream_conns(p->net->s[i]), 0);
		}
		pair_close(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_place_again),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_link_gone),
		cmocka_unit_test(test_link_gone_unheard),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_held_fails),
		cmocka_unit_test(test_accept_again),
		cmocka_unit_test(test_due),
		cmocka_unit_test(test_close_late),
		cmocka_unit_test(test_both_told),
		cmocka_unit_test(test_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
