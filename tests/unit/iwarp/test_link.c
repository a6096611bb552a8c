/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs on TCP: every byte under loss, repetition and overtaking, whatever the segments; who
 * connects, and does not; ends. */
#include <stdio.h>

#include "lib/rnic/transport.h"
#include "tests/unit/iwarp/pair.h"

static const struct mpa_offer depths = {.ird = 4, .ord = 4};

/* ---- every byte ---- */

enum { OPS = 8, SLOT = 4096, HALF = 2048, INTO = 32768 };

struct op {
	enum ibv_wr_opcode opcode;
	uint32_t len;
};

static enum ibv_wc_opcode done_as(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND        ? IBV_WC_SEND
	       : opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ
					    : IBV_WC_RDMA_WRITE;
}

/* Sources in the lower half of each end's memory; of slot k of the upper one the first half is for
 * the peer's request k, the second for the own READ k. */
static void post_round(struct pair *p, struct op op[2][OPS])
{
	static const enum ibv_wr_opcode kinds[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM};

	for (int i = 0; i < 2; i++) {
		for (size_t at = 0; at < INTO; at++)
			p->end[i].buf[at] = (uint8_t)net_random(p->net, 256);
		memset(p->end[i].buf + INTO, END_FILL, END_BYTES - INTO);
		for (unsigned k = 0; k < OPS; k++) {
			op[i][k].opcode = kinds[net_random(p->net, 4)];
			op[i][k].len = net_random(p->net, 4) == 0 ? net_random(p->net, 3)
								  : net_random(p->net, HALF + 1);
			if (op[i][k].opcode == IBV_WR_SEND ||
				op[i][k].opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
				assert_int_equal(
					end_recv(&p->end[!i], k, INTO + k * SLOT, HALF), 0);
		}
	}
	for (int i = 0; i < 2; i++)
		for (unsigned k = 0; k < OPS; k++) {
			const bool read = op[i][k].opcode == IBV_WR_RDMA_READ;
			const size_t from = k * SLOT, to = INTO + k * SLOT;

			assert_int_equal(
				end_post(&p->end[i], op[i][k].opcode, k, read ? to + HALF : from,
					op[i][k].len,
					op[i][k].opcode == IBV_WR_SEND ? NULL : &p->end[!i],
					read ? from : to, 0),
				0);
		}
}

static void check_round(struct pair *p, struct op op[2][OPS])
{
	for (int i = 0; i < 2; i++) {
		const struct end *e = &p->end[i], *peer = &p->end[!i];

		for (unsigned k = 0; k < OPS; k++) {
			const bool read = op[i][k].opcode == IBV_WR_RDMA_READ;
			const size_t from = k * SLOT, to = INTO + k * SLOT;
			struct ibv_wc wc = end_wc(e->scq);

			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.wr_id, k);
			assert_int_equal(wc.opcode, done_as(op[i][k].opcode));
			if (read)
				assert_memory_equal(
					e->buf + to + HALF, peer->buf + from, op[i][k].len);
			else
				assert_memory_equal(peer->buf + to, e->buf + from, op[i][k].len);
			for (size_t at = op[i][k].len; at < HALF; at++)
				assert_int_equal(
					(read ? e->buf + HALF : peer->buf)[to + at], END_FILL);
			if (read || op[i][k].opcode == IBV_WR_RDMA_WRITE)
				continue;
			wc = end_wc(peer->rcq);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.wr_id, k);
			assert_int_equal(wc.byte_len, op[i][k].len);
		}
		end_no_wc(e->scq);
	}
	end_no_wc(p->end[0].rcq);
	end_no_wc(p->end[1].rcq);
}

static void test_exact(void **state)
{
	static const struct pair_options networks[] = {
		{.mtu = 1500},
		{.mtu = 576, .ring = 4096},
		{.mtu = 9000, .ring = 16384},
		{.mtu = 1500, .loss = 30000, .repeat = 10000, .overtake = 50000},
		{.mtu = 576, .loss = 50000, .overtake = 200000, .ring = 4096},
		{.mtu = 4096, .loss = 50000, .repeat = 50000, .ring = 8192},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(networks) / sizeof(*networks); i++) {
		struct pair_options o = networks[i];
		struct op op[2][OPS];
		struct pair p;

		o.seed = i;
		pair_open(&p, &o);
		p.net->loss = 0; /* while connecting: that it takes a second is asserted */
		pair_connect(&p, &depths);
		p.net->loss = o.loss;
		for (unsigned round = 0; round < 8; round++) {
			post_round(&p, op);
			pair_run(&p, 3 * PAIR_SECOND);
			check_round(&p, op);
		}
		assert_true(o.loss == 0 || p.net->lost > 3);
		assert_int_equal(p.n_event[0] + p.n_event[1], 0);
		pair_close(&p);
	}
}

/* ---- who connects ---- */

static void check_gone(struct pair *p)
{
	pair_run(p, 20 * PAIR_SECOND);
	assert_int_equal(stream_conns(p->net->s[0]), 0);
	assert_int_equal(stream_conns(p->net->s[1]), 0);
	assert_int_equal(p->n_event[0] + p->n_event[1], 0);
}

/* What both say reaches the other; depths are what both can. */
static void test_agreement(void **state)
{
	const uint8_t hello[] = "hello", welcome[] = "welcome";
	const struct mpa_offer asks = {
		.ird = 3, .ord = 16, .private_len = sizeof(hello), .private_data = hello};
	const struct mpa_offer gives = {
		.ird = 5, .ord = 16, .private_len = sizeof(welcome), .private_data = welcome};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct iwarp_event event;
	struct mpa_start start;
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_options){0});
	end_qp(&p.end[0], END_ALL);
	end_qp(&p.end[1], END_ALL);
	assert_int_equal(pair_ask(&p, &asks), 0);
	pair_run(&p, PAIR_SECOND);
	event = pair_event(&p, 1, IWARP_REQUEST);
	assert_int_equal(event.cookie, 99);
	assert_int_equal(iwarp_request(p.link[1], event.conn, &start), 0);
	assert_int_equal(start.private_len, sizeof(hello));
	assert_memory_equal(start.private_data, hello, sizeof(hello));
	assert_true(start.enhanced && start.peer_to_peer && start.crc && !start.markers);
	assert_int_equal(
		iwarp_accept(p.link[1], p.net->now, event.conn, p.end[1].qp, &gives, 1), 0);
	assert_int_equal(
		iwarp_accept(p.link[1], p.net->now, event.conn, p.end[1].qp, &gives, 1), -EBADF);
	/* It may send first: the other's empty WRITE lets it. */
	assert_int_equal(end_recv(&p.end[0], 4, 0, 16), 0);
	assert_int_equal(end_post(&p.end[1], IBV_WR_SEND, 3, 0, 16, NULL, 0, 0), 0);
	pair_run(&p, PAIR_SECOND);
	event = pair_event(&p, 0, IWARP_ESTABLISHED);
	assert_int_equal(event.private_len, sizeof(welcome));
	assert_memory_equal(event.private_data, welcome, sizeof(welcome));
	pair_event(&p, 1, IWARP_ESTABLISHED);
	assert_int_equal(end_wc(p.end[0].rcq).wr_id, 4);
	rnic_qp_query(p.end[0].qp, &attr, &init);
	assert_int_equal(attr.max_rd_atomic, 5);
	assert_int_equal(attr.max_dest_rd_atomic, 3);
	rnic_qp_query(p.end[1].qp, &attr, &init);
	assert_int_equal(attr.max_rd_atomic, 3);
	assert_int_equal(attr.max_dest_rd_atomic, 5);

	assert_int_equal(iwarp_close(p.link[0], event.conn), 0);
	pair_run(&p, PAIR_SECOND);
	assert_int_equal(pair_event(&p, 0, IWARP_CLOSED).result, 0);
	assert_int_equal(pair_event(&p, 1, IWARP_CLOSED).result, 0);
	check_gone(&p);
	assert_int_equal(p.end[0].n_event + p.end[1].n_event, 0);
	pair_close(&p);
}

static void test_reject(void **state)
{
	struct iwarp_event event;
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_options){0});
	end_qp(&p.end[0], END_ALL);
	assert_int_equal(pair_ask(&p, &depths), 0);
	pair_run(&p, PAIR_SECOND);
	event = pair_event(&p, 1, IWARP_REQUEST);
	assert_int_equal(iwarp_reject(p.link[1], p.net->now, event.conn, "no", 2), 0);
	pair_run(&p, PAIR_SECOND);
	event = pair_event(&p, 0, IWARP_CLOSED);
	assert_int_equal(event.result, -ECONNREFUSED);
	assert_int_equal(event.private_len, 2);
	assert_memory_equal(event.private_data, "no", 2);
	assert_int_equal(pair_event(&p, 1, IWARP_CLOSED).result, -ECONNREFUSED);
	assert_int_equal(iwarp_link_count(p.link[0], IWARP_LINK_REFUSED), 1);
	assert_int_equal(iwarp_link_count(p.link[1], IWARP_LINK_REJECTED), 1);
	check_gone(&p);
	/* The queue pair is as it was: it may ask again, also where nobody listens. */
	assert_int_equal(iwarp_unlisten(p.link[1], PAIR_PORT), 0);
	assert_int_equal(pair_ask(&p, &depths), 0);
	pair_run(&p, PAIR_SECOND);
	assert_int_equal(pair_event(&p, 0, IWARP_CLOSED).result, -ECONNREFUSED);
	check_gone(&p);
	pair_close(&p);
}

/* Peers that speak TCP and nothing else, or another MPA than ours: raw bytes from side 0. */
static void test_strangers(void **state)
{
#define REQUEST "MPA ID Req Frame"
	static const struct {
		const char *bytes;
		size_t len;
		enum iwarp_link_counter counter;
		int result;
		size_t answer; /* bytes */
	} cases[] = {
		{"GET / HTTP/1.1\r\n\r\n", 18, IWARP_LINK_BAD_START, -EPROTO, 0},
		{"MPA ID Rep Frame\x40\x01\0\0", 20, IWARP_LINK_BAD_START, -EPROTO, 0},
		{REQUEST "\x40\x01\x02\x01", 20, IWARP_LINK_BAD_START, -EPROTO, 0},
		{REQUEST "\x40\x09\0\0", 20, IWARP_LINK_BAD_START, -EPROTO, 0},
		{REQUEST "\xc0\x01\0\0", 20, IWARP_LINK_MARKERS, -EPROTO, 20},
		{REQUEST "\x50\x02\0\x04\xc0\x04\0\x04", 24, IWARP_LINK_NO_RTR, -EPROTO, 24},
		{REQUEST "\x40\x01", 18, IWARP_LINK_TIMEOUTS, -ETIMEDOUT, 0},
		{"", 0, IWARP_LINK_TIMEOUTS, -ETIMEDOUT, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct stream_completion done[8];
		uint8_t answer[64];
		struct pair p;
		uint32_t conn;
		unsigned n;

		pair_open(&p, &(struct pair_options){.raw = true});
		assert_int_equal(stream_connect(p.net->s[0], 0, p.net->mac[1], &p.net->ip[1],
					 PAIR_PORT, 0, 1, &conn),
			0);
		assert_int_equal(stream_recv(p.net->s[0], conn, answer, sizeof(answer), 2), 0);
		if (cases[i].len > 0)
			assert_int_equal(
				stream_send(p.net->s[0], conn, cases[i].bytes, cases[i].len, 3), 0);
		pair_run(&p, 5 * PAIR_SECOND);
		assert_int_equal(pair_event(&p, 1, IWARP_CLOSED).result, cases[i].result);
		assert_int_equal(iwarp_link_count(p.link[1], cases[i].counter), 1);
		n = stream_poll(p.net->s[0], done, 8);
		for (unsigned k = 0; k < n; k++)
			if (done[k].event == STREAM_RECEIVED && done[k].result >= 0)
				assert_int_equal(done[k].result, cases[i].answer);
		if (cases[i].answer > 0) {
			assert_memory_equal(answer, "MPA ID Rep Frame", 16);
			assert_true(answer[16] & 0x20); /* rejected */
		}
		stream_abort(p.net->s[0], conn);
		check_gone(&p);
		pair_close(&p);
	}
}

/* Revision 1: no depths, no ready-to-receive message; who is asked is silent until it hears. */
static void test_revision_1(void **state)
{
	const char request[] = REQUEST "\x40\x01\0\x02hi";
	const struct ddp_segment write = {.tagged = true, .last = true, .opcode = RDMAP_WRITE};
	struct iwarp_event event;
	struct mpa_start start;
	uint8_t answer[200], frame[64];
	struct pair p;
	uint32_t conn;

	(void)state;
	memset(answer, 0, sizeof(answer));
	pair_open(&p, &(struct pair_options){.raw = true});
	end_qp(&p.end[1], END_ALL);
	assert_int_equal(stream_connect(p.net->s[0], 0, p.net->mac[1], &p.net->ip[1], PAIR_PORT, 0,
				 1, &conn),
		0);
	assert_int_equal(stream_recv(p.net->s[0], conn, answer, sizeof(answer), 2), 0);
	assert_int_equal(stream_send(p.net->s[0], conn, request, 22, 3), 0);
	pair_run(&p, PAIR_SECOND);
	event = pair_event(&p, 1, IWARP_REQUEST);
	assert_int_equal(
		iwarp_accept(p.link[1], p.net->now, event.conn, p.end[1].qp, &depths, 1), 0);
	assert_int_equal(end_post(&p.end[1], IBV_WR_RDMA_WRITE, 1, 0, 8, &p.end[0], 0, 0), 0);
	pair_run(&p, PAIR_SECOND);
	assert_int_equal(mpa_start_parse(answer, 20, true, &start), 0);
	assert_int_equal(start.revision, 1);
	assert_false(start.enhanced || start.reject);
	assert_int_equal(answer[20], 0); /* silent */
	ddp_build(frame + MPA_LEN_LEN, &write);
	assert_int_equal(
		stream_send(p.net->s[0], conn, frame, mpa_fpdu_seal(frame, DDP_TAGGED_LEN), 4), 0);
	pair_run(&p, PAIR_SECOND);
	assert_int_equal(mpa_fpdu_peek(answer + 20, 2), mpa_fpdu_len(DDP_TAGGED_LEN + 8));
	assert_int_equal(end_wc(p.end[1].scq).status, IBV_WC_SUCCESS);

	/* And then something that is no frame: told over TCP, behind what was sent. */
	memset(frame, 0, sizeof(frame));
	assert_int_equal(stream_send(p.net->s[0], conn, frame, 64, 5), 0);
	pair_run(&p, PAIR_SECOND);
	assert_int_equal(iwarp_fault(p.end[1].qp), IWARP_FAULT_CRC);
	assert_memory_equal(answer + 20 + 28 + MPA_LEN_LEN, "\x41\x47", 2); /* Terminate */
	stream_abort(p.net->s[0], conn);
	pair_run(&p, 5 * PAIR_SECOND);
	pair_event(&p, 1, IWARP_ESTABLISHED);
	pair_event(&p, 1, IWARP_CLOSED);
	check_gone(&p);
	pair_close(&p);
}

/* A peer that does not wait for our answer. */
static void test_early(void **state)
{
	const char request[] = REQUEST "\x40\x01\0\0 and more";
	struct pair p;
	uint32_t conn;

	(void)state;
	pair_open(&p, &(struct pair_options){.raw = true});
	assert_int_equal(stream_connect(p.net->s[0], 0, p.net->mac[1], &p.net->ip[1], PAIR_PORT, 0,
				 1, &conn),
		0);
	assert_int_equal(stream_send(p.net->s[0], conn, request, sizeof(request) - 1, 3), 0);
	pair_run(&p, PAIR_SECOND);
	assert_int_equal(iwarp_link_count(p.link[1], IWARP_LINK_EARLY), 1);
	/* There is no request any more that could be answered. */
	assert_int_equal(pair_event(&p, 1, IWARP_CLOSED).result, -EPROTO);
	check_gone(&p);
	pair_close(&p);
}

/* ---- ends ---- */

/* A WRITE to where it may not: both ends are told over a bad network, and the streams end. */
static void test_terminate(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_options){.overtake = 100000});
	pair_connect(&p, &depths);
	p.net->loss = 100000;
	assert_int_equal(
		end_post(&p.end[0], IBV_WR_RDMA_WRITE, 1, 0, 8, &p.end[1], END_BYTES - 7, 0), 0);
	pair_run(&p, 5 * PAIR_SECOND);
	assert_int_equal(iwarp_fault(p.end[1].qp), IWARP_FAULT_TAGGED_BOUNDS);
	assert_int_equal(iwarp_terminated(p.end[0].qp).fault, IWARP_FAULT_TAGGED_BOUNDS);
	assert_int_equal(p.end[0].event[0], IBV_EVENT_QP_FATAL);
	assert_int_equal(p.end[1].event[0], IBV_EVENT_QP_ACCESS_ERR);
	end_untouched(&p.end[1], 0, 0);
	pair_run(&p, 10 * PAIR_SECOND);
	assert_int_equal(pair_event(&p, 0, IWARP_CLOSED).result, 0);
	assert_int_equal(pair_event(&p, 1, IWARP_CLOSED).result, 0);
	check_gone(&p);
	pair_close(&p);
}

/* The queue pair goes: while connecting, and when it runs. */
static void test_destroyed(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_options){0});
	end_qp(&p.end[0], END_ALL);
	assert_int_equal(pair_ask(&p, &depths), 0);
	assert_int_equal(rnic_qp_destroy(p.end[0].qp), 0);
	pair_run(&p, PAIR_SECOND);
	assert_int_equal(pair_event(&p, 0, IWARP_CLOSED).result, -ECONNABORTED);
	check_gone(&p);

	pair_connect(&p, &depths);
	assert_int_equal(rnic_qp_destroy(p.end[0].qp), 0);
	pair_run(&p, PAIR_SECOND);
	assert_int_equal(pair_event(&p, 0, IWARP_CLOSED).result, 0);
	assert_int_equal(pair_event(&p, 1, IWARP_CLOSED).result, 0);
	check_gone(&p);
	pair_close(&p);
}

/* Nothing arrives any more: what is posted is flushed within TCP's patience. */
static void test_dead_peer(void **state)
{
	struct ibv_wc wc;
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_options){0});
	pair_connect(&p, &depths);
	p.net->loss = 1000000;
	assert_int_equal(end_post(&p.end[0], IBV_WR_RDMA_READ, 1, 0, 8, &p.end[1], 0, 0), 0);
	pair_run(&p, 60 * PAIR_SECOND);
	wc = end_wc(p.end[0].scq);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(p.end[0].event[0], IBV_EVENT_QP_FATAL);
	assert_int_equal(pair_event(&p, 0, IWARP_CLOSED).result, -ETIMEDOUT);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_agreement),
		cmocka_unit_test(test_reject),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_revision_1),
		cmocka_unit_test(test_early),
		cmocka_unit_test(test_terminate),
		cmocka_unit_test(test_destroyed),
		cmocka_unit_test(test_dead_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
