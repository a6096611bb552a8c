/* SPDX-License-Identifier: BSD-3-Clause */
/* The placement engine: the five cases of ZeroNIC's figure 8, where the bytes go, and that nothing
 * goes anywhere before its ICRC was verified. */
#include <errno.h>
#include <string.h>

#include "lib/rnic/placement.h"
#include "lib/rnic/transport.h"
#include "tests/unit/rnic/net.h"

/* ---- figure 8 ---- */

/* A stream whose application has posted 4000 bytes behind the cursor, and a transport that can
 * remember what arrives 3000 bytes ahead of it. */
static const struct place_flow stream = {3000, 4000, PLACE_DEFER};

static void decides(const struct place_flow *flow, int64_t at, uint32_t len,
	enum place_verdict verdict, uint32_t skip)
{
	struct place_decision d = place_decide(flow, at, len);

	if (d.verdict != verdict || d.skip != skip)
		fail_msg("at %lld, %u long: verdict %d, skip %u; not %d, %u", (long long)at, len,
			d.verdict, d.skip, verdict, skip);
}

/* (a) The packet holds what the flow expects next. */
static void test_in_order(void **state)
{
	(void)state;
	decides(&stream, 0, 1, PLACE_ACCEPT, 0);
	decides(&stream, 0, 1000, PLACE_ACCEPT, 0);
	decides(&stream, 0, 3500, PLACE_ACCEPT, 0); /* not ahead: reach does not matter */
	decides(&stream, 0, 4000, PLACE_ACCEPT, 0);
}

/* (b) All of it was taken before. */
static void test_old(void **state)
{
	(void)state;
	decides(&stream, -1, 1, PLACE_DROP, 0);
	decides(&stream, -1000, 1000, PLACE_DROP, 0);
	decides(&stream, -5000, 1000, PLACE_DROP, 0);
}

/* (c) Some of it was: the rest is taken. */
static void test_partly_old(void **state)
{
	(void)state;
	decides(&stream, -1, 2, PLACE_ACCEPT, 1);
	decides(&stream, -999, 1000, PLACE_ACCEPT, 999);
}

/* (d) Behind a hole: taken as far as the transport remembers it. */
static void test_hole(void **state)
{
	struct place_flow in_order = stream;

	(void)state;
	decides(&stream, 1, 1000, PLACE_ACCEPT, 0);
	decides(&stream, 2000, 1000, PLACE_ACCEPT, 0);
	decides(&stream, 2001, 1000, PLACE_DROP, 0);
	in_order.reach = 0;
	decides(&in_order, 1, 1, PLACE_DROP, 0);
	decides(&in_order, 0, 1, PLACE_ACCEPT, 0);
}

/* (e) It has no destination: what the transport says. */
static void test_unmatched(void **state)
{
	static const enum place_verdict say[] = {PLACE_DROP, PLACE_BUFFER, PLACE_DEFER};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct place_flow flow = {3000, 1500, say[i]};

		decides(&flow, 0, 1500, PLACE_ACCEPT, 0);
		decides(&flow, 0, 1501, say[i], 0);
		decides(&flow, -10, 1511, say[i], 0);
		decides(&flow, 1000, 501, say[i], 0);
		decides(&flow, -10, 10, PLACE_DROP, 0); /* an old one is old */
		decides(&flow, 2000, 1001, PLACE_DROP, 0);
		flow.posted = 0;
		decides(&flow, 0, 1, say[i], 0);
	}
}

/* ---- where the bytes go ---- */

/* Pieces of a message in any order, over a list whose segments fit nothing: one copy each, and the
 * whole is there in the end. */
static void test_any_order(void **state)
{
	enum { LEN = 5000, STEP = 700 };
	static struct net net;
	struct end *b = &net.end[1];
	static const uint32_t part[4] = {1, 1333, 2048, 1618};
	struct ibv_sge sge[4];
	uint32_t at = 0;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_open(&net, &(struct net_options){0});
	for (unsigned i = 0; i < 4; i++)
		sge[i] = (struct ibv_sge){
			(uintptr_t)b->buf + 8192 * i, part[i], rnic_mr_lkey(b->mr)};
	for (int i = LEN / STEP; i >= 0; i--) {
		struct placement where = {
			.kind = PLACE_LIST, .sge = sge, .n_sge = 4, .offset = (uint64_t)i * STEP};
		size_t len = i == LEN / STEP ? LEN % STEP : STEP;

		assert_int_equal(0, place_payload(b->pd, &where, net.end[0].buf + i * STEP, len));
	}
	for (unsigned i = 0; i < 4; at += part[i++]) {
		assert_memory_equal(net.end[0].buf + at, b->buf + 8192 * i, part[i]);
		assert_int_equal(0xee, b->buf[8192 * i + part[i]]);
	}
	net_close(&net);
}

/* One byte too many, or a key that forbids it in the last segment: not a byte is written. */
static void test_all_or_nothing(void **state)
{
	static struct net net;
	struct end *b = &net.end[1];
	struct ibv_sge sge[2];
	struct placement where = {.kind = PLACE_LIST, .sge = sge, .n_sge = 2};

	(void)state;
	memset(&net, 0, sizeof(net));
	net_open(&net, &(struct net_options){0});
	sge[0] = (struct ibv_sge){(uintptr_t)b->buf, 100, rnic_mr_lkey(b->mr)};
	sge[1] = (struct ibv_sge){(uintptr_t)b->buf + 4096, 100, rnic_mr_lkey(b->mr)};
	assert_int_equal(-EFAULT, place_payload(b->pd, &where, net.end[0].buf, 201));
	sge[1].lkey++;
	assert_int_equal(-EFAULT, place_payload(b->pd, &where, net.end[0].buf, 200));
	assert_int_equal(-EFAULT, place_check(b->pd, &where, 200));
	for (size_t i = 0; i < 8192; i++)
		assert_int_equal(0xee, b->buf[i]);
	net_close(&net);
}

/* ---- not before the ICRC ---- */

static const struct net_options types[] = {{.type = IBV_QPT_RC}, {.type = IBV_QPT_UC}};

/* Every bit of a WRITE's transport headers and payload, wrong: nothing is placed, and the reason is
 * the ICRC, wherever the address now points (BTH: the bits that the ICRC covers). */
static void test_wrong_address(void **state)
{
	static struct net net;

	(void)state;
	for (unsigned t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		const unsigned bth = 14 + 20 + 8, reth = bth + 12, end = reth + 16 + 64;
		struct wire_flow flow = {.ttl = 64, .sport = 0xd00d};
		struct end *b = &net.end[1];
		uint8_t frame[256];
		struct wire_hdr hdr = {.opcode = ROCE_WRITE_ONLY, .ackreq = true, .dmalen = 64};
		int n;

		memset(&net, 0, sizeof(net));
		net_connect(&net, &types[t]);
		rnic_mac(b->rnic, 0, flow.dmac);
		rnic_mac(net.end[0].rnic, 0, flow.smac);
		rnic_gid(b->rnic, 0, 1, &flow.dst);
		rnic_gid(net.end[0].rnic, 0, 1, &flow.src);
		hdr.opcode |= b->qp->ops->opcodes;
		hdr.dqpn = rnic_qp_num(b->qp);
		hdr.va = (uintptr_t)b->buf + 4096;
		hdr.rkey = rnic_mr_rkey(b->mr);
		n = wire_build_frame(frame, sizeof(frame), &flow, &hdr, net.end[0].buf, 64);
		assert_int_equal(end + 4, n);
		for (unsigned bit = reth * 8; bit < (end + 4) * 8; bit++) {
			frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_equal(
				WIRE_ICRC_BAD, rnic_rx(b->rnic, 0, frame, (size_t)n, net.now));
			frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		for (size_t i = 0; i < b->buf_len; i++)
			assert_int_equal(0xee, b->buf[i]);
		assert_int_equal(0, rnic_rx(b->rnic, 0, frame, (size_t)n, net.now));
		assert_memory_equal(net.end[0].buf, b->buf + 4096, 64);
		net_close(&net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_old),
		cmocka_unit_test(test_partly_old),
		cmocka_unit_test(test_hole),
		cmocka_unit_test(test_unmatched),
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_all_or_nothing),
		cmocka_unit_test(test_wrong_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
