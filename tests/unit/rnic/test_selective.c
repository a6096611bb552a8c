/* SPDX-License-Identifier: BSD-3-Clause */
/* RC with selective acknowledgement: what comes behind a missing packet is in its place at once and
 * completes in order; only what is missing is sent again; nobody else is spoken to like that. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/qp.h"
#include "lib/rnic/sr.h"
#include "lib/wire/psn.h"
#include "tests/unit/rnic/net.h"

enum { P0 = 0xfffff8, FAR = 1 << 19, ACK = 0x1f, NAK_SEQ = 0x60, SEL_ACK = ROCE_SEL | ROCE_ACK };

static struct net net;

static void open_with(struct net_options options)
{
	memset(&net, 0, sizeof(net));
	options.selective = true;
	options.psn[0] = P0;
	net_connect(&net, &options);
	net_run(&net, net.now + MS);
	net.n_log = 0;
}

static void write_across(uint64_t id, uint32_t len)
{
	struct end *b = &net.end[1];

	assert_int_equal(0, end_send(&net.end[0], IBV_WR_RDMA_WRITE, id, 0, len,
				    (uintptr_t)b->buf + FAR, rnic_mr_rkey(b->mr)));
}

static unsigned count_data(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < net.n_log; i++)
		n += net.log[i].from == 0 && (net.log[i].pkt.flags & ROCE_F_REQUEST);
	return n;
}

/* ---- one loss ---- */

static bool hold_third(struct net *n, int from, uint8_t *frame, size_t *len)
{
	(void)frame, (void)len;
	return from != 0 || n->hook_n++ != 2;
}

/* A WRITE and a SEND of several packets; the third is lost. All others are in their places before
 * it comes again, nothing completes until then, and it is the only one that comes again. */
static void test_one_loss(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];

	(void)state;
	open_with((struct net_options){0});
	assert_int_equal(0, end_recv(b, 7, 0, 8192));
	write_across(1, 5000);
	assert_int_equal(0, end_send(a, IBV_WR_SEND, 2, 8192, 3000, 0, 0));
	net.hook = hold_third;
	net_run(&net, net.now + NET_DELAY);
	assert_memory_equal(a->buf, b->buf + FAR, 2048);
	assert_int_equal(0xee, b->buf[FAR + 2048]);
	assert_int_equal(0xee, b->buf[FAR + 3071]);
	assert_memory_equal(a->buf + 3072, b->buf + FAR + 3072, 5000 - 3072);
	assert_memory_equal(a->buf + 8192, b->buf, 3000);
	end_no_wc(b->rcq);
	end_no_wc(a->scq);
	net_run(&net, net.now + MS);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(b->rcq).status);
	assert_memory_equal(a->buf, b->buf + FAR, 5000);
	assert_int_equal(1, rnic_count(a->rnic, RNIC_C_RETRANSMITS));
	assert_int_equal(0, rnic_count(a->rnic, RNIC_C_TIMEOUTS));
	assert_int_equal(9, count_data());
	/* Everything from the third on but the third itself; then all of it. */
	net_expect(&net, 8, 1, SEL_ACK, psn_add(P0, 2));
	assert_int_equal(NAK_SEQ, net.log[8].pkt.syndrome);
	assert_int_equal(8, net.log[8].pkt.pay_len);
	net_expect(&net, 9, 0, ROCE_SEL | ROCE_WRITE_MIDDLE, psn_add(P0, 2));
	net_expect(&net, 10, 1, SEL_ACK, psn_add(P0, 7));
	assert_int_equal(ACK, net.log[10].pkt.syndrome);
	assert_int_equal(0, net.log[10].pkt.pay_len);
	net_close(&net);
}

/* The last packet is lost, and its first repetition: nothing behind it tells. A probe goes out
 * after one and a half round trips, which takes no retry; the QP's timeout is half a second. */
static bool hold_last(struct net *n, int from, uint8_t *frame, size_t *len)
{
	struct wire_pkt pkt;

	return wire_parse(frame, *len, &pkt) != WIRE_OK || from != 0 || pkt.psn != psn_add(P0, 3) ||
	       n->hook_n++ > 1;
}

static void test_last_one_lost(void **state)
{
	struct end *a = &net.end[0];
	struct rnic_qp_stats stats;

	(void)state;
	open_with((struct net_options){.timeout = 17});
	write_across(1, 100); /* tells the round trip */
	net_run(&net, net.now + MS);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
	net.hook = hold_last;
	write_across(2, 3000);
	net_run(&net, net.now + 6 * 2 * NET_DELAY);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
	assert_int_equal(2, rnic_count(a->rnic, RNIC_C_PROBES));
	assert_int_equal(3 + 1, rnic_count(a->rnic, RNIC_C_RETRANSMITS));
	assert_int_equal(0, rnic_count(a->rnic, RNIC_C_TIMEOUTS));
	rnic_qp_stats(a->qp, &stats);
	assert_int_equal(7, stats.retries);
	net_close(&net);
}

/* A message's last 40 packets are lost, which are more than a probe sends: what comes back to one
 * is followed by the next, without the QP's timeout. */
static bool hold_rest(struct net *n, int from, uint8_t *frame, size_t *len)
{
	(void)frame, (void)len;
	return from != 0 || n->hook_n == 0 || n->hook_n++ > 40;
}

static void test_long_tail_lost(void **state)
{
	struct end *a = &net.end[0];

	(void)state;
	open_with((struct net_options){.timeout = 17});
	net.hook = hold_rest;
	write_across(1, 100); /* tells the round trip */
	net_run(&net, net.now + MS);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
	net.hook_n = 1;
	write_across(2, 40 * 1024);
	net_run(&net, net.now + MS);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
	assert_int_equal(0, rnic_count(a->rnic, RNIC_C_TIMEOUTS));
	assert_int_equal(40, rnic_count(a->rnic, RNIC_C_RETRANSMITS));
	net_close(&net);
}

/* READs and atomics behind a missing packet wait for their turn: they see what it wrote. */
static void test_turns(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};

	(void)state;
	open_with((struct net_options){.rd = 4});
	sge = (struct ibv_sge){(uintptr_t)a->buf + FAR, 3072, rnic_mr_lkey(a->mr)};
	sge.length = 3064; /* the atomic, behind it, does not wait for the response */
	wr.wr.rdma.remote_addr = (uintptr_t)b->buf + FAR;
	wr.wr.rdma.rkey = rnic_mr_rkey(b->mr);
	write_across(1, 3072);
	assert_int_equal(0, rnic_post_send(a->qp, &wr));
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr_id = 3;
	sge.addr += 4096;
	sge.length = 8;
	wr.wr.atomic.remote_addr = (uintptr_t)b->buf + FAR + 3064;
	wr.wr.atomic.compare_add = 1;
	wr.wr.atomic.rkey = rnic_mr_rkey(b->mr);
	assert_int_equal(0, rnic_post_send(a->qp, &wr));
	net.hook = hold_third;
	net_run(&net, net.now + SEC);
	for (uint64_t id = 1; id <= 3; id++)
		assert_int_equal(id, end_wc(a->scq).wr_id);
	assert_memory_equal(a->buf, a->buf + FAR, 3064);
	assert_memory_equal(a->buf + 3064, a->buf + FAR + 4096, 8);
	assert_int_equal(1, rnic_count(a->rnic, RNIC_C_RETRANSMITS));
	net_close(&net);
}

/* ---- many ---- */

/* Messages of 1 to 8 packets over a link that loses: the packets that were sent again. */
static uint64_t resent(bool selective, unsigned loss, unsigned late)
{
	enum { N = 1500, DEPTH = 32 };
	struct net_options options = {.psn = {P0, 0}, .timeout = 8, .selective = selective};
	struct end *a = &net.end[0], *b = &net.end[1];
	unsigned posted = 0, done = 0;
	struct ibv_wc wc;
	uint64_t n;

	memset(&net, 0, sizeof(net));
	net.random = 20261;
	net_connect(&net, &options);
	net.loss = loss;
	net.late = late;
	while (done < N) {
		for (; posted < N && posted - done < DEPTH; posted++) {
			uint32_t len = 1 + posted * 977 % 8192;
			size_t at = posted % DEPTH * 8192;

			assert_int_equal(
				0, end_send(a, IBV_WR_RDMA_WRITE, posted, posted % 999, len,
					   (uintptr_t)b->buf + at, rnic_mr_rkey(b->mr)));
		}
		net_run(&net, net.now + 20000);
		while (rnic_cq_poll(a->scq, 1, &wc) == 1) {
			assert_int_equal(IBV_WC_SUCCESS, wc.status);
			assert_int_equal(done, wc.wr_id);
			assert_memory_equal(a->buf + done % 999, b->buf + done % DEPTH * 8192,
				1 + done * 977 % 8192);
			done++;
		}
	}
	n = rnic_count(a->rnic, RNIC_C_RETRANSMITS);
	net_close(&net);
	return n;
}

static void test_fewer(void **state)
{
	static const unsigned cases[][2] = {{5, 0}, {20, 0}, {50, 0}, {100, 0}, {10, 50}};

	(void)state;
	assert_int_equal(0, resent(true, 0, 0));
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t back = resent(false, cases[i][0], cases[i][1]);
		uint64_t selective = resent(true, cases[i][0], cases[i][1]);

		print_message(
			"loss %u, late %u per 1000: %llu packets sent again, go-back-N %llu\n",
			cases[i][0], cases[i][1], (unsigned long long)selective,
			(unsigned long long)back);
		assert_true(selective > 0 && selective < back / 2);
	}
}

/* Everything mixed over a bad link; the soak (tests/integration) has many more. */
static void test_mixed(void **state)
{
	enum { N = 3000, DEPTH = 16, SLOT = 8192 };
	struct end *a = &net.end[0], *b = &net.end[1];
	unsigned posted = 0, done = 0, received = 0, sends = 0, slot_of[N];
	uint32_t len_of[N];
	struct ibv_wc wc;

	(void)state;
	open_with((struct net_options){.rd = 8, .timeout = 6});
	net.loss = net.twice = net.corrupt = 20;
	net.late = 200;
	while (done < N || received < sends) {
		for (; posted < N && posted - done < DEPTH; posted++) {
			unsigned what = (unsigned)(net_random(&net) % 3);
			uint32_t len = (uint32_t)(net_random(&net) % SLOT);
			size_t at = posted % 61, to = posted % DEPTH * SLOT;

			if (what == 0) {
				slot_of[sends] = posted;
				assert_int_equal(0, end_recv(b, sends++, FAR + to, SLOT));
			}
			len_of[posted] = len;
			assert_int_equal(
				0, end_send(a, what == 0 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, posted,
					   at, len, (uintptr_t)b->buf + to, rnic_mr_rkey(b->mr)));
		}
		net_run(&net, net.now + 20000);
		while (rnic_cq_poll(b->rcq, 1, &wc) == 1) {
			unsigned id = slot_of[received];

			assert_int_equal(received++, wc.wr_id);
			assert_int_equal(len_of[id], wc.byte_len);
			assert_memory_equal(
				a->buf + id % 61, b->buf + FAR + id % DEPTH * SLOT, wc.byte_len);
		}
		while (rnic_cq_poll(a->scq, 1, &wc) == 1) {
			assert_int_equal(IBV_WC_SUCCESS, wc.status);
			if (wc.opcode == IBV_WC_RDMA_WRITE)
				assert_memory_equal(a->buf + done % 61,
					b->buf + done % DEPTH * SLOT, len_of[done]);
			assert_int_equal(done++, wc.wr_id);
		}
	}
	net_check_counters(&net);
	net_close(&net);
}

/* ---- others ---- */

/* One end is selective, the other is not: not a byte is taken, from either. */
static void test_unmodified_peer(void **state)
{
	(void)state;
	for (int selective = 0; selective < 2; selective++) {
		struct net_options options = {.timeout = 4, .selective = true};
		struct end *a = &net.end[0], *b = &net.end[1];

		memset(&net, 0, sizeof(net));
		net_open(&net, &options);
		for (int i = 0; i < 2; i++) {
			options.selective = i == selective;
			net.end[i].qp = net_make_qp(&net.end[i], &options);
		}
		for (int i = 0; i < 2; i++)
			net_to_rts(&net, i, net.end[i].qp, rnic_qp_num(net.end[!i].qp), &options);
		write_across(1, 3000);
		net_run(&net, net.now + SEC);
		assert_int_equal(IBV_WC_RETRY_EXC_ERR, end_wc(a->scq).status);
		assert_int_equal(0xee, b->buf[FAR]);
		assert_int_equal(8 * 3, rnic_drop_count(b->rnic, RNIC_DROP_QP_TYPE));
		assert_int_equal(0, rnic_count(b->rnic, RNIC_C_RX_ACCEPTED) -
					    rnic_count(a->rnic, RNIC_C_TX_FRAMES) + 8 * 3);
		net_close(&net);
	}
}

static void test_create(void **state)
{
	struct end *a = &net.end[0];
	struct rnic_qp *qp;
	struct rnic_qp_init init = {.type = IBV_QPT_UC, .transport = &rnic_sr};
	struct ibv_srq_attr attr = {.max_wr = 1, .max_sge = 1};
	uint64_t probes;

	(void)state;
	open_with((struct net_options){0});
	assert_int_equal(-EOPNOTSUPP, rnic_qp_skip(a->qp, RNIC_RECV, 0, 1));
	init.pd = a->pd;
	init.send_cq = a->scq;
	init.recv_cq = a->rcq;
	assert_int_equal(-EINVAL, rnic_qp_create(a->rnic, &init, &qp));
	init.type = IBV_QPT_RC;
	assert_int_equal(0, rnic_srq_create(a->pd, &attr, a, &init.srq));
	assert_int_equal(-EINVAL, rnic_qp_create(a->rnic, &init, &qp));
	assert_int_equal(0, rnic_srq_destroy(init.srq));
	init.srq = NULL;
	assert_int_equal(0, rnic_qp_create(a->rnic, &init, &qp));
	assert_string_equal("sr", rnic_qp_transport(qp));
	assert_string_equal("probes", rnic_qp_counter(qp, 2, &probes));
	assert_int_equal(0, probes);
	/* There may be thousands. */
	assert_true(sizeof(*qp) + qp->ops->state_size < 30000);
	rnic_qp_destroy(qp);
	net_close(&net);
}

/* ---- lies ---- */

/* A packet behind a missing one, as the peer might send it. */
static unsigned lie(struct wire_hdr hdr, size_t len)
{
	static const uint8_t data[1024] = {1, 2, 3};
	struct end *b = &net.end[1];
	uint64_t before = rnic_count(b->rnic, RNIC_C_RX_ACCEPTED);

	hdr.opcode |= ROCE_SEL;
	hdr.psn = psn_add(P0, (int)hdr.psn);
	hdr.va += (uintptr_t)b->buf;
	hdr.rkey += rnic_mr_rkey(b->mr);
	net_packet(&net, 1, hdr, data, len);
	return rnic_count(b->rnic, RNIC_C_RX_ACCEPTED) > before;
}

/* What a packet asked for that had to wait is done in its turn: its event, its ACK. */
static void test_kept(void **state)
{
	struct end *b = &net.end[1];

	(void)state;
	open_with((struct net_options){0});
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(0, end_recv(b, i, i * 1024, 1024));
	rnic_cq_arm(b->rcq, true);
	assert_int_equal(1, lie((struct wire_hdr){.opcode = ROCE_SEND_ONLY_IMM,
					.psn = 1,
					.pos_recv = 1,
					.imm = 77,
					.se = true,
					.ackreq = true},
				    64));
	net_run(&net, net.now + MS);
	assert_int_equal(0, b->n_cq_event);
	net.n_log = 0;
	assert_int_equal(1, lie((struct wire_hdr){.opcode = ROCE_SEND_ONLY}, 64));
	net_run(&net, net.now + MS);
	assert_int_equal(1, b->n_cq_event);
	net_expect(&net, 0, 1, SEL_ACK, psn_add(P0, 1));
	assert_int_equal(ACK, net.log[0].pkt.syndrome);
	end_wc(b->rcq);
	assert_int_equal(htobe32(77), end_wc(b->rcq).imm_data);
	net_close(&net);
}

/* Addresses, offsets and lengths that reach beyond what they may: nothing is placed or kept. */
static void test_out_of_bounds(void **state)
{
	static const struct {
		struct wire_hdr hdr;
		size_t len;
	} lies[] = {
		{{.opcode = ROCE_WRITE_ONLY, .psn = 1, .va = 1 << 20, .dmalen = 64}, 64},
		{{.opcode = ROCE_WRITE_ONLY, .psn = 1, .rkey = 1, .dmalen = 64}, 64},
		{{.opcode = ROCE_WRITE_LAST, .psn = 1, .dmalen = 64, .pos_offset = 1}, 64},
		{{.opcode = ROCE_WRITE_LAST, .psn = 1, .dmalen = 64, .pos_offset = -64u}, 64},
		{{.opcode = ROCE_WRITE_LAST, .psn = 1, .dmalen = 2 << 20, .pos_offset = 1 << 20},
			64},
		{{.opcode = ROCE_WRITE_MIDDLE, .psn = 1, .dmalen = 4096, .pos_offset = 64}, 64},
		{{.opcode = ROCE_SEND_ONLY, .psn = 1, .pos_recv = 1}, 64},
		{{.opcode = ROCE_SEND_ONLY, .psn = 1, .pos_recv = -1u}, 64},
		{{.opcode = ROCE_SEND_LAST, .psn = 1, .pos_offset = 961}, 64},
		{{.opcode = ROCE_SEND_LAST, .psn = 1, .pos_offset = -1u}, 64},
		{{.opcode = ROCE_WRITE_ONLY_IMM, .psn = 1, .dmalen = 64, .pos_recv = 1}, 64},
		{{.opcode = ROCE_WRITE_ONLY, .psn = SR_REACH, .dmalen = 64}, 64},
	};
	struct end *b = &net.end[1];

	(void)state;
	open_with((struct net_options){0});
	assert_int_equal(0, end_recv(b, 1, 0, 1024));
	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		assert_int_equal(0, lie(lies[i].hdr, lies[i].len));
	for (size_t i = 0; i < b->buf_len; i++)
		assert_int_equal(0xee, b->buf[i]);
	assert_int_equal(0, sr_of(b->qp)->n_received);
	/* One that is right. */
	assert_int_equal(1,
		lie((struct wire_hdr){.opcode = ROCE_SEND_LAST, .psn = 1, .pos_offset = 960}, 64));
	assert_int_equal(1, b->buf[960]);
	net_close(&net);
}

/* Placed ahead of its turn, it is not what the message before it says: the peer is refused. */
static void test_wrong_position(void **state)
{
	static const struct wire_hdr first = {
		.opcode = ROCE_WRITE_FIRST, .dmalen = 2048, .va = FAR};
	static const struct wire_hdr wrong[] = {
		{.opcode = ROCE_WRITE_LAST, .psn = 1, .dmalen = 2048, .va = FAR, .pos_offset = 0},
		{.opcode = ROCE_WRITE_LAST,
			.psn = 1,
			.dmalen = 2049,
			.va = FAR,
			.pos_offset = 1024},
		{.opcode = ROCE_WRITE_LAST,
			.psn = 1,
			.dmalen = 2048,
			.va = FAR + 1,
			.pos_offset = 1024},
		{.opcode = ROCE_WRITE_ONLY, .psn = 1, .dmalen = 1024, .va = FAR},
		{.opcode = ROCE_WRITE_LAST,
			.psn = 1,
			.dmalen = 2048,
			.va = FAR,
			.pos_offset = 1024,
			.pos_recv = 1},
	};
	struct end *b = &net.end[1];

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		open_with((struct net_options){0});
		assert_int_equal(1, lie(wrong[i], 1024));
		assert_int_equal(1, lie(first, 1024));
		assert_int_equal(IBV_QPS_ERR, qp_state(b->qp));
		assert_int_equal(IBV_EVENT_QP_REQ_ERR, b->event[b->n_event - 1]);
		net_close(&net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_loss),
		cmocka_unit_test(test_last_one_lost),
		cmocka_unit_test(test_long_tail_lost),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_fewer),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_unmodified_peer),
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_out_of_bounds),
		cmocka_unit_test(test_wrong_position),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
