/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in bursts, and what is kept from one packet of a message to the next. */
#include <string.h>

#include "lib/wire/frame.h"
#include "tests/unit/rnic/net.h"

enum { BURST = 8, MTU = 1024, MESSAGES = 3 };

static unsigned make(struct end *from, struct rnic_frame frames[BURST],
	uint8_t bytes[BURST][NET_FRAME], struct rnic_rx_frame rx[BURST])
{
	const unsigned n = rnic_tx_burst(from->rnic, RNIC_ALL_PORTS, frames, BURST, 0);

	for (unsigned i = 0; i < n; i++) {
		rx[i].data = bytes[i];
		rx[i].len = (uint32_t)rnic_frame_flatten(&frames[i], bytes[i], NET_FRAME);
	}
	return n;
}

/* All that can leave comes out at once, in order; completions show together, with one event. */
static void test_requests(void **state)
{
	static struct net net;
	static struct rnic_frame frames[BURST];
	static uint8_t bytes[BURST][NET_FRAME];
	struct rnic_rx_frame rx[BURST];
	struct end *a = &net.end[0], *b = &net.end[1];
	struct wire_pkt pkt;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){0});
	for (unsigned i = 0; i < MESSAGES; i++) {
		assert_int_equal(0, end_recv(b, i, i * 64, 64));
		assert_int_equal(0, end_send(a, IBV_WR_SEND, i, i * 64, 64, 0, 0));
	}
	assert_int_equal(MESSAGES, make(a, frames, bytes, rx));
	for (unsigned i = 0; i < MESSAGES; i++) {
		assert_int_equal(WIRE_OK, wire_parse(rx[i].data, rx[i].len, &pkt));
		assert_int_equal(i, pkt.psn);
	}
	assert_false(rnic_has_work(a->rnic) && rnic_tx(a->rnic, RNIC_ALL_PORTS, frames, 0));
	rnic_cq_arm(b->rcq, false);
	rnic_rx_burst(b->rnic, 0, rx, MESSAGES, 0);
	assert_int_equal(1, b->n_cq_event);
	for (unsigned i = 0; i < MESSAGES; i++)
		assert_int_equal(i, end_wc(b->rcq).wr_id);
	end_no_wc(b->rcq);
	net_run(&net, FOREVER);
	net_close(&net);
}

/* A payload that is valid until the next call only ends the burst. */
static void test_responses(void **state)
{
	static struct net net;
	static struct rnic_frame frames[BURST];
	static uint8_t bytes[BURST][NET_FRAME];
	struct rnic_rx_frame rx[BURST];
	struct end *a = &net.end[0], *b = &net.end[1];

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){0});
	assert_int_equal(0, end_send(a, IBV_WR_RDMA_READ, 0, 0, 2 * MTU, (uintptr_t)b->buf,
				    rnic_mr_rkey(b->mr)));
	assert_int_equal(1, make(a, frames, bytes, rx));
	rnic_rx_burst(b->rnic, 0, rx, 1, 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(1, make(b, frames, bytes, rx));
		rnic_rx_burst(a->rnic, 0, rx, 1, 0);
	}
	assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
	assert_memory_equal(a->buf, b->buf, 2 * MTU);
	net_close(&net);
}

static void give(struct net *net, uint8_t opcode, uint32_t psn, uint8_t fill)
{
	struct end *b = &net->end[1];
	uint8_t payload[MTU];

	memset(payload, fill, sizeof(payload));
	net_packet(net, 1,
		(struct wire_hdr){.opcode = opcode,
			.psn = psn,
			.va = (uintptr_t)b->buf,
			.rkey = rnic_mr_rkey(b->mr),
			.dmalen = 8 * MTU},
		payload, sizeof(payload));
}

static void reregister(struct end *end)
{
	struct rnic_mr *mr;

	assert_int_equal(0, rnic_mr_reg(end->pd, end->buf, end->buf_len, (uintptr_t)end->buf,
				    NET_ALL_ACCESS, &mr));
	assert_int_equal(0, rnic_mr_dereg(end->mr));
	end->mr = mr; /* another key */
}

/* A region that goes in the middle of a message is not written to any more. */
static void test_written_region_goes(void **state)
{
	static struct net net;
	struct end *b = &net.end[1];

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){0});
	memset(b->buf, 0xee, 8 * MTU);
	give(&net, ROCE_WRITE_FIRST, 0, 1);
	give(&net, ROCE_WRITE_MIDDLE, 1, 2);
	give(&net, ROCE_WRITE_MIDDLE, 2, 3);
	assert_int_equal(2, b->buf[MTU]);
	assert_int_equal(3, b->buf[3 * MTU - 1]);
	assert_int_equal(0xee, b->buf[3 * MTU]);
	reregister(b);
	give(&net, ROCE_WRITE_MIDDLE, 3, 4);
	assert_int_equal(0xee, b->buf[3 * MTU]);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_ACCESS));
	net_run(&net, FOREVER);
	net_close(&net);
}

/* The same where it is read from: the request fails, and no packet of it leaves any more. */
static void test_sent_region_goes(void **state)
{
	static struct net net;
	struct end *a = &net.end[0], *b = &net.end[1];
	struct rnic_frame frame;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){0});
	assert_int_equal(0, end_send(a, IBV_WR_RDMA_WRITE, 0, 0, 8 * MTU, (uintptr_t)b->buf,
				    rnic_mr_rkey(b->mr)));
	for (unsigned i = 0; i < 2; i++) {
		assert_true(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, 0));
		assert_ptr_equal(a->buf + i * MTU, frame.iov[0].base);
	}
	reregister(a);
	assert_false(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, 0));
	assert_int_equal(IBV_WC_LOC_PROT_ERR, end_wc(a->scq).status);
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_responses),
		cmocka_unit_test(test_written_region_goes),
		cmocka_unit_test(test_sent_region_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
