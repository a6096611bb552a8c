/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that do nothing more, at every point where something of theirs is waited for: each wait has
 * a bound, and is counted. And room in the rings: whoever waits for it gets it. */
#include "lib/rnic/transport.h"
#include "tests/unit/iwarp/pair.h"

static const struct mpa_offer depths = {.ird = 4, .ord = 4};

/* A peer by hand at side 0, of which side 1 has the request. */
struct raw {
	struct pair p;
	uint32_t conn;
	uint8_t answer[64];
};

static const struct mpa_start revision_1 = {.crc = true, .revision = 1};
static const struct mpa_start with_rtr = {.crc = true,
	.revision = 2,
	.enhanced = true,
	.peer_to_peer = true,
	.rtr = MPA_RTR_WRITE,
	.ird = 4,
	.ord = 4};

static void raw_send(struct raw *r, const void *bytes, size_t len)
{
	assert_int_equal(stream_send(r->p.net->s[0], r->conn, bytes, len, 3), 0);
	pair_run(&r->p, PAIR_SECOND / 100);
}

static void raw_ask(struct raw *r, const struct mpa_start *start)
{
	uint8_t request[MPA_MAX_START];
	const int len = mpa_start_build(request, sizeof(request), start);
	struct pair *p = &r->p;

	pair_open(p, &(struct pair_options){.raw = true, .ring = 4096});
	end_qp(&p->end[1], END_ALL);
	assert_int_equal(stream_connect(p->net->s[0], 0, p->net->mac[1], &p->net->ip[1], PAIR_PORT,
				 0, 1, &r->conn),
		0);
	assert_int_equal(stream_recv(p->net->s[0], r->conn, r->answer, sizeof(r->answer), 2), 0);
	raw_send(r, request, (size_t)len);
	p->conn[1] = pair_event(p, 1, IWARP_REQUEST).conn;
}

static void raw_accept(struct raw *r)
{
	struct pair *p = &r->p;

	assert_int_equal(
		iwarp_accept(p->link[1], p->net->now, p->conn[1], p->end[1].qp, &depths, 8), 0);
	pair_run(p, PAIR_SECOND / 100);
	pair_event(p, 1, IWARP_ESTABLISHED);
}

static void raw_open(struct raw *r, const struct mpa_start *start)
{
	raw_ask(r, start);
	raw_accept(r);
}

static void check_timed_out(struct raw *r, enum iwarp_link_counter counter)
{
	struct pair *p = &r->p;

	assert_int_equal(pair_event(p, 1, IWARP_CLOSED).result, -ETIMEDOUT);
	assert_int_equal(iwarp_link_count(p->link[1], counter), 1);
	assert_int_equal(stream_conns(p->net->s[1]), 0);
	assert_true(iwarp_failed(p->end[1].qp));
	pair_close(p);
}

/* The program does not answer: the link waits as long as that takes, and a peer that does not is
 * told of, once, and not to be answered any more. */
static void test_no_answer(void **state)
{
	struct raw r;
	struct pair p;

	(void)state;
	raw_ask(&r, &with_rtr);
	assert_true(iwarp_due(r.p.link[1]) == UINT64_MAX);
	pair_run(&r.p, 60 * PAIR_SECOND);
	assert_int_equal(r.p.n_event[1], 0);
	raw_accept(&r);
	pair_close(&r.p);

	pair_open(&p, &(struct pair_options){0});
	pair_request(&p, &depths);
	pair_run(&p, 3 * PAIR_SECOND);
	assert_int_equal(pair_event(&p, 0, IWARP_CLOSED).result, -ETIMEDOUT);
	assert_int_equal(iwarp_link_count(p.link[0], IWARP_LINK_TIMEOUTS), 1);
	assert_int_equal(pair_event(&p, 1, IWARP_CLOSED).result, -ECONNRESET);
	assert_int_equal(
		iwarp_accept(p.link[1], p.net->now, p.conn[1], p.end[1].qp, &depths, 8), -EBADF);
	assert_int_equal(p.n_event[0] + p.n_event[1], 0);
	pair_close(&p);
}

/* It promises a ready-to-receive message, and does not send it. In revision 1 there is none. */
static void test_no_rtr(void **state)
{
	static const struct ddp_segment write = {.tagged = true, .last = true};
	uint8_t frame[64];
	struct raw r;

	(void)state;
	raw_open(&r, &with_rtr);
	pair_run(&r.p, 3 * PAIR_SECOND);
	check_timed_out(&r, IWARP_LINK_TIMEOUTS);

	for (int i = 0; i < 2; i++) {
		raw_open(&r, i == 0 ? &revision_1 : &with_rtr);
		ddp_build(frame + MPA_LEN_LEN, &write);
		if (i == 1)
			raw_send(&r, frame, mpa_fpdu_seal(frame, DDP_TAGGED_LEN));
		pair_run(&r.p, 9 * PAIR_SECOND);
		assert_false(iwarp_failed(r.p.end[1].qp));
		assert_int_equal(r.p.n_event[1], 0);
		pair_close(&r.p);
	}
}

/* It closes its window, then sends what is wrong: there is no room for the Terminate message. Its
 * TCP lives and answers every probe, also when it has ended its own stream. */
static void no_room(bool ends)
{
	static const struct ddp_segment write = {.tagged = true, .last = true};
	static const uint8_t wrong[64];
	uint8_t frame[64];
	struct raw r;

	raw_open(&r, &with_rtr);
	ddp_build(frame + MPA_LEN_LEN, &write);
	raw_send(&r, frame, mpa_fpdu_seal(frame, DDP_TAGGED_LEN));
	for (unsigned k = 0; k < 3; k++)
		assert_int_equal(
			end_post(&r.p.end[1], IBV_WR_RDMA_WRITE, k, 0, 60000, &r.p.end[0], 0, 0),
			0);
	pair_run(&r.p, 9 * PAIR_SECOND);
	assert_false(iwarp_failed(r.p.end[1].qp)); /* who has no buffers is no fault */
	raw_send(&r, wrong, sizeof(wrong));
	assert_int_equal(iwarp_fault(r.p.end[1].qp), IWARP_FAULT_CRC);
	raw_send(&r, wrong, sizeof(wrong)); /* counted by the queue pair */
	assert_int_equal(end_count(&r.p.end[1], "ignored_bytes"), 64 + 64 - 8);
	if (ends)
		assert_int_equal(stream_shutdown(r.p.net->s[0], r.conn), 0);
	pair_run(&r.p, 3 * PAIR_SECOND);
	check_timed_out(&r, IWARP_LINK_NO_END);
}

static void test_no_room(void **state)
{
	(void)state;
	no_room(false);
	no_room(true);
}

/* It does not end its stream, and sends on. */
static void test_no_end(void **state)
{
	static const uint8_t more[100];
	struct raw r;

	(void)state;
	raw_open(&r, &revision_1);
	assert_int_equal(iwarp_close(r.p.link[1], r.p.conn[1]), 0);
	pair_run(&r.p, PAIR_SECOND);
	raw_send(&r, more, sizeof(more));
	assert_int_equal(iwarp_link_count(r.p.link[1], IWARP_LINK_LATE_BYTES), sizeof(more));
	pair_run(&r.p, 3 * PAIR_SECOND);
	check_timed_out(&r, IWARP_LINK_NO_END);
}

/* A ring that is not much larger than a frame, at every place of it: when the frame before is
 * acknowledged the next one goes in the same turn, for nothing else may call for another. */
static void test_tight_ring(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_options){.mtu = 4096, .ring = 4096});
	pair_connect(&p, &depths);
	for (unsigned k = 0; k < 40; k++) {
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(end_post(&p.end[0], IBV_WR_RDMA_WRITE, i, 0, 2500 + k * 37,
						 &p.end[1], 0, 0),
				0);
		end_rnic_tx(&p.end[0], p.net->now);
		assert_true(iwarp_turn(p.link[0], p.net->now));
		assert_int_equal(end_wc(p.end[0].scq).wr_id, 0);
		end_no_wc(p.end[0].scq);
		pair_run_streams(&p, PAIR_SECOND / 10);
		assert_true(iwarp_turn(p.link[0], p.net->now));
		assert_int_equal(end_wc(p.end[0].scq).wr_id, 1);
		pair_run(&p, PAIR_SECOND);
	}
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_no_rtr),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_no_end),
		cmocka_unit_test(test_tight_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
