/* SPDX-License-Identifier: BSD-3-Clause */
/* READs, atomics, fences, SEND with Invalidate: between two devices, with losses at every place. */
#include "tests/unit/rnic/reads.h"

/* ---- READ ---- */

static void test_sizes(void **state)
{
	static const uint32_t sizes[] = {0, 1, 3, 1023, 1024, 1025, 2048, 5000, 300000};

	(void)state;
	for (int ip6 = 0; ip6 < 2; ip6++) {
		open_with(&(struct net_options){.ip6 = ip6, .psn = {0xfffffd, 7}});
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			memset(net.end[0].buf, 0, 310000);
			assert_int_equal(0, read_at(i, sizes[i], 11, 3, 0));
			net_run(&net, net.now + 10 * MS);
			expect_wc(i, IBV_WC_RDMA_READ, sizes[i]);
			assert_memory_equal(net.end[0].buf + 3, net.end[1].buf + 11, sizes[i]);
			assert_int_equal(0, net.end[0].buf[3 + sizes[i]]);
		}
		assert_int_equal(0, rnic_count(net.end[0].rnic, RNIC_C_RETRANSMITS));
		net_close(&net);
	}
}

static void test_on_the_wire(void **state)
{
	(void)state;
	open_with(&(struct net_options){.psn = {P0, 7}, .rd = 2});
	assert_int_equal(0, read_at(1, 2500, 0, 0, 0));
	assert_int_equal(0, read_at(2, 100, 0, 4096, 0));
	net_run(&net, net.now + MS);
	net_expect(&net, 0, 0, ROCE_READ_REQUEST, P0);
	net_expect(&net, 1, 0, ROCE_READ_REQUEST, P0 + 3);
	net_expect(&net, 2, 1, ROCE_READ_RESP_FIRST, P0);
	net_expect(&net, 3, 1, ROCE_READ_RESP_MIDDLE, P0 + 1);
	net_expect(&net, 4, 1, ROCE_READ_RESP_LAST, P0 + 2);
	net_expect(&net, 5, 1, ROCE_READ_RESP_ONLY, P0 + 3);
	assert_int_equal(6, net.n_log);
	assert_int_equal(1, net.log[2].pkt.msn);
	assert_int_equal(1, net.log[4].pkt.msn);
	assert_int_equal(2, net.log[5].pkt.msn);
	expect_wc(1, IBV_WC_RDMA_READ, 2500);
	expect_wc(2, IBV_WC_RDMA_READ, 100);
	net_close(&net);
}

static void test_scattered(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	struct ibv_sge sge[4];
	struct ibv_send_wr wr = {.sg_list = sge, .num_sge = 4, .opcode = IBV_WR_RDMA_READ};
	static const uint32_t len[4] = {1, 1500, 0, 1499};
	uint32_t at = 0;

	(void)state;
	open_with(&(struct net_options){0});
	for (unsigned i = 0; i < 4; i++)
		sge[i] =
			(struct ibv_sge){(uintptr_t)a->buf + 4096 * i, len[i], rnic_mr_lkey(a->mr)};
	wr.wr.rdma.remote_addr = (uintptr_t)b->buf;
	wr.wr.rdma.rkey = rnic_mr_rkey(b->mr);
	assert_int_equal(0, rnic_post_send(a->qp, &wr));
	net_run(&net, net.now + MS);
	expect_wc(0, IBV_WC_RDMA_READ, 3000);
	for (unsigned i = 0; i < 4; i++) {
		assert_memory_equal(a->buf + 4096 * i, b->buf + at, len[i]);
		assert_int_equal(0, a->buf[4096 * i + len[i]]);
		at += len[i];
	}
	net_close(&net);
}

static void test_limit(void **state)
{
	(void)state;
	open_with(&(struct net_options){.rd = 3});
	net.mute[1] = true;
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(0, read_at(i, 2000, 0, 4096 * i, 0));
	net_run(&net, net.now + 100);
	assert_int_equal(3, count_log(0, ROCE_READ_REQUEST));
	net.mute[1] = false;
	net_run(&net, net.now + SEC);
	for (unsigned i = 0; i < 8; i++) {
		expect_wc(i, IBV_WC_RDMA_READ, 2000);
		assert_memory_equal(net.end[0].buf + 4096 * i, net.end[1].buf, 2000);
	}
	net_close(&net);
}

static void test_none_allowed(void **state)
{
	struct ibv_wc wc;

	(void)state;
	open_with(&(struct net_options){.no_rd = true});
	assert_int_equal(0, read_at(5, 2000, 0, 0, 0));
	net_run(&net, net.now + MS);
	wc = end_wc(net.end[0].scq);
	assert_int_equal(IBV_WC_LOC_QP_OP_ERR, wc.status);
	net_close(&net);
}

/* More than the responder said it takes: NAK, and only of what is beyond. */
static void test_too_many(void **state)
{
	struct end *b = &net.end[1];

	(void)state;
	open_with(&(struct net_options){.rd = 16, .dest_rd = 2, .psn = {P0, 0}});
	for (unsigned i = 0; i < 3; i++)
		net_packet(&net, 1,
			(struct wire_hdr){.opcode = ROCE_READ_REQUEST,
				.psn = P0 + i,
				.va = (uintptr_t)b->buf,
				.rkey = rnic_mr_rkey(b->mr),
				.dmalen = 64},
			NULL, 0);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_RD_LIMIT));
	net.mute[1] = true;
	net_run(&net, net.now);
	net_expect_ack(&net, net.n_log - 1, 1, P0 + 2, 0x61, 2);
	net_close(&net);
}

/* ---- order ---- */

static void test_fence(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];

	(void)state;
	for (unsigned fenced = 0; fenced < 2; fenced++) {
		struct ibv_sge sge;
		struct ibv_send_wr wr = {.wr_id = 2,
			.num_sge = 1,
			.sg_list = &sge,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = fenced ? IBV_SEND_FENCE : 0};

		open_with(&(struct net_options){.rd = 4, .psn = {P0, 0}});
		sge = (struct ibv_sge){(uintptr_t)a->buf, 64, rnic_mr_lkey(a->mr)};
		wr.wr.rdma.remote_addr = (uintptr_t)b->buf + FAR;
		wr.wr.rdma.rkey = rnic_mr_rkey(b->mr);
		assert_int_equal(0, read_at(1, 3000, 0, 4096, 0));
		assert_int_equal(0, rnic_post_send(a->qp, &wr));
		net_run(&net, net.now + MS);
		/* Unfenced it leaves at once; fenced, when the response is here. */
		net_expect(&net, fenced ? 4 : 1, 0, ROCE_WRITE_ONLY, P0 + 3);
		expect_wc(1, IBV_WC_RDMA_READ, 3000);
		expect_wc(2, IBV_WC_RDMA_WRITE, 64);
		net_close(&net);
	}
}

/* Acknowledgements do not overtake responses. */
static void test_ack_behind_response(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];

	(void)state;
	open_with(&(struct net_options){.rd = 4, .psn = {P0, 0}});
	assert_int_equal(0, end_send(a, IBV_WR_RDMA_WRITE, 1, FAR, 64, (uintptr_t)b->buf + FAR,
				    rnic_mr_rkey(b->mr)));
	assert_int_equal(0, read_at(2, 3000, 0, 0, 0));
	assert_int_equal(0, end_send(a, IBV_WR_RDMA_WRITE, 3, FAR, 64, (uintptr_t)b->buf + FAR,
				    rnic_mr_rkey(b->mr)));
	net_run(&net, net.now + MS);
	net_expect(&net, 3, 1, ROCE_READ_RESP_FIRST, P0 + 1);
	net_expect(&net, 4, 1, ROCE_READ_RESP_MIDDLE, P0 + 2);
	net_expect(&net, 5, 1, ROCE_READ_RESP_LAST, P0 + 3);
	net_expect(&net, 6, 1, ROCE_ACK, P0 + 4);
	assert_int_equal(7, net.n_log);
	expect_wc(1, IBV_WC_RDMA_WRITE, 64);
	expect_wc(2, IBV_WC_RDMA_READ, 3000);
	expect_wc(3, IBV_WC_RDMA_WRITE, 64);
	net_close(&net);
}

/* Both directions at once: responses and requests share the QP. */
static void test_both_ways(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};

	(void)state;
	open_with(&(struct net_options){.rd = 4});
	memset(a->buf + FAR, 0x77, 200000);
	sge = (struct ibv_sge){(uintptr_t)b->buf + FAR, 200000, rnic_mr_lkey(b->mr)};
	wr.wr.rdma.remote_addr = (uintptr_t)a->buf + FAR;
	wr.wr.rdma.rkey = rnic_mr_rkey(a->mr);
	assert_int_equal(0, rnic_post_send(b->qp, &wr));
	assert_int_equal(0, read_at(1, 200000, 0, 0, 0));
	net_run(&net, net.now + 100 * MS);
	expect_wc(1, IBV_WC_RDMA_READ, 200000);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(b->scq).status);
	assert_memory_equal(a->buf, b->buf, 200000);
	assert_memory_equal(a->buf + FAR, b->buf + FAR, 200000);
	assert_int_equal(0, rnic_count(a->rnic, RNIC_C_RETRANSMITS));
	net_close(&net);
}

/* ---- atomics ---- */

static void test_atomics(void **state)
{
	struct end *b = &net.end[1];
	uint64_t v = UINT64_C(0x1122334455667788);

	(void)state;
	open_with(&(struct net_options){.rd = 4});
	memcpy(b->buf + CELL, &v, 8);
	assert_int_equal(0, atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, CELL, 0, 5, 0));
	assert_int_equal(0, atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 2, CELL, 8, v + 5, 42));
	assert_int_equal(0, atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 3, CELL, 16, 41, 43));
	net_run(&net, net.now + MS);
	expect_wc(1, IBV_WC_FETCH_ADD, 8);
	expect_wc(2, IBV_WC_COMP_SWAP, 8);
	expect_wc(3, IBV_WC_COMP_SWAP, 8);
	assert_int_equal(v, cell(&net.end[0], 0));
	assert_int_equal(v + 5, cell(&net.end[0], 8));
	assert_int_equal(42, cell(&net.end[0], 16));
	assert_int_equal(42, cell(b, CELL));
	net_close(&net);
}

/* Lost answers: the duplicate gets what the first one gave, nothing is added twice. */
static void test_replay(void **state)
{
	struct end *b = &net.end[1];

	(void)state;
	for (unsigned lost = 1; lost <= 4; lost++) {
		open_with(&(struct net_options){.rd = 4, .timeout = 5});
		memset(b->buf + CELL, 0, 8);
		net.drop_from = 1;
		net.drop_opcode = ROCE_ATOMIC_ACK;
		net.drop_nth = lost;
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(
				0, atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, i, CELL, 8 * i, 1, 0));
		net_run(&net, net.now + SEC);
		for (unsigned i = 0; i < 4; i++) {
			expect_wc(i, IBV_WC_FETCH_ADD, 8);
			assert_int_equal(i, cell(&net.end[0], 8 * i));
		}
		assert_int_equal(4, cell(b, CELL));
		assert_true(rnic_drop_count(b->rnic, RNIC_DROP_DUPLICATE) > 0);
		net_close(&net);
	}
}

/* ---- losses ---- */

static void lose(int from, uint8_t opcode, unsigned nth, unsigned requests)
{
	open_with(&(struct net_options){.psn = {P0, 0}, .rd = 2, .timeout = 5});
	net.drop_from = from;
	net.drop_opcode = opcode;
	net.drop_nth = nth;
	assert_int_equal(0, read_at(1, 5000, 0, 0, 0));
	assert_int_equal(0, read_at(2, 3000, 5000, 5000, 0));
	net_run(&net, net.now + SEC);
	expect_wc(1, IBV_WC_RDMA_READ, 5000);
	expect_wc(2, IBV_WC_RDMA_READ, 3000);
	assert_memory_equal(net.end[0].buf, net.end[1].buf, 8000);
	assert_int_equal(requests, count_log(0, ROCE_READ_REQUEST));
	assert_int_equal(0, net.drop_nth);
	net_close(&net);
}

static void test_losses(void **state)
{
	(void)state;
	lose(0, ROCE_READ_REQUEST, 1, 4); /* NAK, both again */
	lose(0, ROCE_READ_REQUEST, 2, 3);
	lose(1, ROCE_READ_RESP_FIRST, 1, 4);
	lose(1, ROCE_READ_RESP_FIRST, 2, 3);
	for (unsigned i = 1; i <= 3; i++)
		lose(1, ROCE_READ_RESP_MIDDLE, i, 4);
	lose(1, ROCE_READ_RESP_LAST, 1, 4);
	lose(1, ROCE_READ_RESP_LAST, 2, 3); /* only the timer tells */
}

/* It goes on from the missing packet, not from the beginning. */
static void test_continued(void **state)
{
	(void)state;
	open_with(&(struct net_options){.psn = {P0, 0}});
	net.drop_from = 1;
	net.drop_opcode = ROCE_READ_RESP_MIDDLE;
	net.drop_nth = 2;
	assert_int_equal(0, read_at(1, 5000, 64, 0, 0));
	net_run(&net, net.now + SEC);
	expect_wc(1, IBV_WC_RDMA_READ, 5000);
	for (unsigned i = 1; i < net.n_log; i++) {
		const struct wire_pkt *pkt = &net.log[i].pkt;

		if (net.log[i].from != 0)
			continue;
		net_expect(&net, i, 0, ROCE_READ_REQUEST, P0 + 2);
		assert_int_equal((uintptr_t)net.end[1].buf + 64 + 2048, pkt->va);
		assert_int_equal(5000 - 2048, pkt->dmalen);
	}
	assert_int_equal(2, count_log(0, ROCE_READ_REQUEST));
	assert_int_equal(2, count_log(1, ROCE_READ_RESP_FIRST)); /* the second answer's, too */
	assert_int_equal(0, rnic_count(net.end[0].rnic, RNIC_C_TIMEOUTS));
	net_close(&net);
}

/* A peer that never answers: retries, then the READ fails. */
static void test_retries_exceeded(void **state)
{
	(void)state;
	open_with(&(struct net_options){.timeout = 5, .no_retry = true, .retry = 2});
	net.mute[1] = true;
	assert_int_equal(0, read_at(1, 5000, 0, 0, 0));
	net_run(&net, net.now + SEC);
	assert_int_equal(IBV_WC_RETRY_EXC_ERR, end_wc(net.end[0].scq).status);
	assert_int_equal(3, count_log(0, ROCE_READ_REQUEST));
	net_close(&net);
}

/* Everything mixed over a bad link: all bytes right, each atomic done once. */
static void test_soak(void **state)
{
	enum { ROUNDS = 4000, SLOT = 8192, SLOTS = 16 };
	struct end *a = &net.end[0], *b = &net.end[1];
	unsigned posted = 0, done = 0, adds = 0, len[SLOTS] = {0}, from[SLOTS] = {0};
	uint64_t next = 0;
	struct ibv_wc wc;

	(void)state;
	open_with(&(struct net_options){.psn = {0xfffff0, 0}, .rd = 5, .timeout = 5});
	memset(b->buf + CELL, 0, 8);
	net.loss = net.twice = net.corrupt = 15;
	net.late = 100;
	while (done < ROUNDS) {
		while (posted < ROUNDS && posted - done < SLOTS) {
			unsigned slot = posted % SLOTS, what = (unsigned)(net_random(&net) % 4);

			len[slot] = 0;
			if (what == 0) {
				assert_int_equal(0, atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, posted,
							    CELL, slot * SLOT, 1, 0));
				adds++;
			} else if (what == 1) {
				assert_int_equal(
					0, end_send(a, IBV_WR_RDMA_WRITE, posted, FAR,
						   (uint32_t)(net_random(&net) % 4000),
						   (uintptr_t)b->buf + FAR, rnic_mr_rkey(b->mr)));
			} else {
				len[slot] = (unsigned)(net_random(&net) % SLOT);
				from[slot] = (unsigned)(net_random(&net) % CELL / 2);
				memset(a->buf + slot * SLOT, 0, SLOT);
				assert_int_equal(
					0, read_at(posted, len[slot], from[slot], slot * SLOT,
						   net_random(&net) % 8 ? 0 : IBV_SEND_FENCE));
			}
			posted++;
		}
		net_run(&net, net.now + 20000);
		while (rnic_cq_poll(a->scq, 1, &wc) == 1) {
			unsigned slot = done % SLOTS;

			assert_int_equal(IBV_WC_SUCCESS, wc.status);
			assert_int_equal(done, wc.wr_id);
			if (wc.opcode == IBV_WC_FETCH_ADD)
				assert_int_equal(next++, cell(a, slot * SLOT));
			if (wc.opcode == IBV_WC_RDMA_READ)
				assert_memory_equal(
					a->buf + slot * SLOT, b->buf + from[slot], len[slot]);
			done++;
		}
	}
	assert_int_equal(adds, cell(b, CELL));
	assert_true(rnic_count(a->rnic, RNIC_C_RETRANSMITS) > 100);
	net_close(&net);
}

/* ---- SEND with Invalidate ---- */

static void test_send_with_inv(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_INV,
		.invalidate_rkey = 0x12345678};

	(void)state;
	for (unsigned len = 100; len < 3000; len += 2000) {
		open_with(&(struct net_options){.psn = {P0, 0}});
		assert_int_equal(0, end_recv(b, 1, 0, 4096));
		sge = (struct ibv_sge){(uintptr_t)a->buf, len, rnic_mr_lkey(a->mr)};
		assert_int_equal(0, rnic_post_send(a->qp, &wr));
		net_run(&net, net.now + MS);
		net_expect(&net, len / 1024, 0,
			len < 1024 ? ROCE_SEND_ONLY_INV : ROCE_SEND_LAST_INV, P0 + len / 1024);
		assert_int_equal(0x12345678, net.log[len / 1024].pkt.rkey);
		/* Nothing at the peer can be invalidated. */
		assert_int_equal(IBV_WC_REM_ACCESS_ERR, end_wc(a->scq).status);
		assert_int_equal(IBV_WC_WR_FLUSH_ERR, end_wc(b->rcq).status);
		net_close(&net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_on_the_wire),
		cmocka_unit_test(test_scattered),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_none_allowed),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_fence),
		cmocka_unit_test(test_ack_behind_response),
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_continued),
		cmocka_unit_test(test_retries_exceeded),
		cmocka_unit_test(test_soak),
		cmocka_unit_test(test_send_with_inv),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
