/* SPDX-License-Identifier: BSD-3-Clause */
/* Duplicate SENDs and WRITEs, and READs and atomics among them: Soft-RoCE takes an ACK with the PSN
 * of an outstanding READ or atomic for its response, so that no ACK may name one. */
#include <endian.h>
#include <string.h>

#include "lib/wire/psn.h"
#include "tests/unit/rnic/net.h"

enum { P0 = 0xfffffe, ACK = 0x1f, CELL = 1 << 18 };

static struct net net;

/* The peer is the test: what the device sends is logged and goes nowhere. */
static void open_alone_with(const struct net_options *options)
{
	memset(&net, 0, sizeof(net));
	net_connect(&net, options);
	net_run(&net, net.now + MS);
	net.mute[1] = true;
	net.n_log = 0;
}

static void open_alone(void)
{
	open_alone_with(&(struct net_options){.psn = {P0, 0}});
}

static void request(uint8_t opcode, int psn, uint32_t len)
{
	static const uint8_t data[1024];
	const struct end *b = &net.end[1];
	bool write = opcode == ROCE_WRITE_ONLY;

	net_packet(&net, 1,
		(struct wire_hdr){.opcode = opcode,
			.psn = psn_add(P0, psn),
			.ackreq = write,
			.va = (uintptr_t)b->buf + CELL,
			.rkey = rnic_mr_rkey(b->mr),
			.dmalen = len,
			.swap_add = 1},
		data, write ? len : 0);
}

/* The device's next frames, from the log's start. */
static void answers(unsigned n)
{
	net_run(&net, net.now);
	assert_int_equal(n, net.n_log);
}

static void expect_acks(unsigned i, int psn, uint32_t msn)
{
	net_expect_ack(&net, i, 1, psn_add(P0, psn), ACK, msn);
}

static void expect_read(unsigned i, int psn)
{
	net_expect(&net, i, 1, ROCE_READ_RESP_FIRST, psn_add(P0, psn));
	net_expect(&net, i + 1, 1, ROCE_READ_RESP_MIDDLE, psn_add(P0, psn + 1));
	net_expect(&net, i + 2, 1, ROCE_READ_RESP_LAST, psn_add(P0, psn + 2));
}

/* The READ's response was lost: each is answered again, for itself. */
static void test_before_read(void **state)
{
	(void)state;
	open_alone();
	request(ROCE_WRITE_ONLY, 0, 64);
	request(ROCE_READ_REQUEST, 1, 3000);
	answers(3);
	expect_read(0, 1);
	for (unsigned i = 0; i < 3; i++) {
		net.n_log = 0;
		request(ROCE_WRITE_ONLY, 0, 64);
		answers(1);
		expect_acks(0, 0, 2);
		request(ROCE_READ_REQUEST, 1, 3000);
		answers(4);
		expect_read(1, 1);
	}
	net_close(&net);
}

static void test_before_atomic(void **state)
{
	const struct end *b = &net.end[1];

	(void)state;
	open_alone();
	request(ROCE_WRITE_ONLY, 0, 64);
	request(ROCE_FETCH_ADD, 1, 0);
	answers(1);
	net_expect(&net, 0, 1, ROCE_ATOMIC_ACK, psn_add(P0, 1));
	request(ROCE_WRITE_ONLY, 0, 64);
	answers(2);
	expect_acks(1, 0, 2);
	request(ROCE_FETCH_ADD, 1, 0);
	answers(3);
	net_expect(&net, 2, 1, ROCE_ATOMIC_ACK, psn_add(P0, 1));
	assert_int_equal(1, b->buf[CELL]);
	net_close(&net);
}

/* Two READs and what is before, between and behind them. */
static void test_ranges(void **state)
{
	(void)state;
	open_alone();
	for (int i = 0; i < 3; i++)
		request(ROCE_WRITE_ONLY, i, 64);
	request(ROCE_READ_REQUEST, 3, 3000);
	for (int i = 6; i < 8; i++)
		request(ROCE_WRITE_ONLY, i, 64);
	request(ROCE_READ_REQUEST, 8, 100);
	for (int i = 9; i < 12; i++)
		request(ROCE_WRITE_ONLY, i, 64);
	answers(5);
	net_expect(&net, 3, 1, ROCE_READ_RESP_ONLY, psn_add(P0, 8));
	expect_acks(4, 11, 10);
	for (int i = 0; i < 12; i++) {
		if ((i >= 3 && i < 6) || i == 8)
			continue;
		net.n_log = 0;
		request(ROCE_WRITE_ONLY, i, 64);
		answers(1);
		/* Behind the last READ one ACK stands for all. */
		expect_acks(0, i > 8 ? 11 : i, 10);
	}
	/* One answer to a burst. */
	net.n_log = 0;
	request(ROCE_WRITE_ONLY, 1, 64);
	request(ROCE_WRITE_ONLY, 7, 64);
	request(ROCE_WRITE_ONLY, 6, 64);
	answers(1);
	expect_acks(0, 7, 10);
	/* New ones are acknowledged as ever, together with a duplicate. */
	request(ROCE_WRITE_ONLY, 1, 64);
	request(ROCE_WRITE_ONLY, 12, 64);
	answers(2);
	expect_acks(1, 12, 11);
	net_close(&net);
}

/* A response that waits acknowledges all before it: an ACK behind it would be older. */
static void test_response_waits(void **state)
{
	(void)state;
	open_alone();
	request(ROCE_WRITE_ONLY, 0, 64);
	request(ROCE_READ_REQUEST, 1, 3000);
	request(ROCE_WRITE_ONLY, 0, 64);
	answers(3);
	expect_read(0, 1);
	/* Asked for again, with the WRITE behind it. */
	request(ROCE_WRITE_ONLY, 4, 64);
	answers(4);
	net.n_log = 0;
	request(ROCE_WRITE_ONLY, 0, 64);
	request(ROCE_READ_REQUEST, 1, 3000);
	request(ROCE_WRITE_ONLY, 4, 64);
	answers(4);
	expect_read(0, 1);
	expect_acks(3, 4, 3);
	net_close(&net);
}

/* Old duplicates, delayed on their way, do not use up what the peer may have outstanding: it has
 * their answers already. */
static void test_limit(void **state)
{
	const struct end *b = &net.end[1];

	(void)state;
	open_alone_with(&(struct net_options){.psn = {P0, 0}, .dest_rd = 2});
	request(ROCE_READ_REQUEST, 0, 64);
	request(ROCE_FETCH_ADD, 1, 0);
	answers(2);
	request(ROCE_READ_REQUEST, 0, 64);
	request(ROCE_FETCH_ADD, 1, 0);
	request(ROCE_READ_REQUEST, 2, 64);
	request(ROCE_FETCH_ADD, 3, 0);
	assert_int_equal(0, rnic_drop_count(b->rnic, RNIC_DROP_RD_LIMIT));
	answers(6);
	for (int i = 0; i < 4; i++)
		net_expect(&net, 2 + (unsigned)i, 1, i % 2 ? ROCE_ATOMIC_ACK : ROCE_READ_RESP_ONLY,
			psn_add(P0, i));
	/* New ones do. */
	for (int i = 4; i < 7; i++)
		request(ROCE_READ_REQUEST, i, 64);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_RD_LIMIT));
	net_close(&net);
}

/* ---- all mixed, over a bad link ---- */

/* The PSNs of this range whose request is a READ or an atomic. */
static bool rd[1 << 16];

static bool watch(struct net *n, int from, uint8_t *frame, size_t *len)
{
	struct wire_pkt pkt;

	(void)n;
	assert_int_equal(WIRE_OK, wire_parse(frame, *len, &pkt));
	if (pkt.kind != WIRE_ROCE)
		return true;
	if (from == 0 && pkt.opcode == ROCE_READ_REQUEST) {
		for (uint32_t i = 0; i == 0 || i * 1024 < pkt.dmalen; i++)
			rd[(pkt.psn + i) & 0xffff] = true;
	} else if (from == 0) {
		rd[pkt.psn & 0xffff] = pkt.flags & ROCE_F_ATOMIC;
	} else if (pkt.opcode == ROCE_ACK && (pkt.syndrome & ROCE_AETH_CLASS) == ROCE_AETH_ACK) {
		assert_false(rd[pkt.psn & 0xffff]);
	}
	return true;
}

static void post_any(unsigned id)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
	const struct end *b = &net.end[1];
	enum ibv_wr_opcode opcode = opcodes[net_random(&net) % 5];
	struct ibv_sge sge = {(uintptr_t)net.end[0].buf, (uint32_t)(net_random(&net) % 3000),
		rnic_mr_lkey(net.end[0].mr)};
	struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = opcode};

	wr.wr.rdma.remote_addr = (uintptr_t)b->buf + CELL;
	wr.wr.rdma.rkey = rnic_mr_rkey(b->mr);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = (uintptr_t)b->buf + CELL;
		wr.wr.atomic.rkey = rnic_mr_rkey(b->mr);
	}
	assert_int_equal(0, rnic_post_send(net.end[0].qp, &wr));
	if (opcode == IBV_WR_SEND)
		assert_int_equal(0, end_recv(&net.end[1], id, 0, 4096));
}

static void test_never_named(void **state)
{
	enum { N = 5000, DEPTH = 32 };
	unsigned posted = 0, done = 0;
	struct ibv_wc wc;

	(void)state;
	memset(&net, 0, sizeof(net));
	memset(rd, 0, sizeof(rd));
	net_connect(&net, &(struct net_options){.psn = {P0, 0}, .rd = 8, .timeout = 5});
	net.loss = net.twice = 30;
	net.late = 100;
	net.hook = watch;
	while (done < N) {
		for (; posted < N && posted - done < DEPTH; posted++)
			post_any(posted);
		net_run(&net, net.now + 20000);
		while (rnic_cq_poll(net.end[0].scq, 1, &wc) == 1) {
			assert_int_equal(IBV_WC_SUCCESS, wc.status);
			assert_int_equal(done++, wc.wr_id);
		}
		while (rnic_cq_poll(net.end[1].rcq, 1, &wc) == 1)
			assert_int_equal(IBV_WC_SUCCESS, wc.status);
	}
	assert_true(rnic_drop_count(net.end[1].rnic, RNIC_DROP_DUPLICATE) > 100);
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_read),
		cmocka_unit_test(test_before_atomic),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_response_waits),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_never_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
