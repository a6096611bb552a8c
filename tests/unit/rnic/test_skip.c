/* SPDX-License-Identifier: BSD-3-Clause */
/* PSN skip (docs/inc-protocol.md, 3.7). PSNs of requests from 0xfffff8, so that ranges wrap. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/wire/psn.h"
#include "tests/unit/rnic/net.h"

enum { P = 0xfffff8, ACK = 0x1f, NAK_SEQ = 0x60 };

static const struct net_options base = {.psn = {P, P}};

static void open_with(struct net *net)
{
	memset(net, 0, sizeof(*net));
	net_connect(net, &base);
	net->n_log = 0;
}

static uint32_t at(int32_t n)
{
	return psn_add(P, n);
}

static void send_one(struct net *net, uint64_t id)
{
	assert_int_equal(0, end_send(&net->end[0], IBV_WR_SEND, id, 0, 64, 0, 0));
}

static struct rnic_qp_stats stats_of(const struct rnic_qp *qp)
{
	struct rnic_qp_stats stats;

	rnic_qp_stats(qp, &stats);
	return stats;
}

/* ---- both ends skip the same, as CommLib does ---- */

static void test_agreed(void **state)
{
	static struct net net;
	struct end *a = &net.end[0], *b = &net.end[1];
	uint32_t psn = P;

	(void)state;
	open_with(&net);
	net.loss = 150;
	net.twice = 50;
	net.late = 50;
	for (unsigned i = 0; i < 60; i++) {
		uint32_t count = i % 7 == 0 ? 1 : i % 7 == 3 ? 1 << 22 : i * 13 + 1;

		assert_int_equal(0, end_recv(b, i, 0, 64));
		send_one(&net, i);
		psn = psn_add(psn, 1);
		if (i % 3 != 2) { /* sometimes two in a row, sometimes none */
			assert_int_equal(0, rnic_qp_skip(a->qp, RNIC_SEND, psn, count));
			assert_int_equal(0, rnic_qp_skip(b->qp, RNIC_RECV, psn, count));
			psn = psn_add(psn, (int32_t)count);
		}
		if (i % 3 == 0) {
			assert_int_equal(0, rnic_qp_skip(a->qp, RNIC_SEND, psn, 5));
			assert_int_equal(0, rnic_qp_skip(b->qp, RNIC_RECV, psn, 5));
			psn = psn_add(psn, 5);
		}
		net_run(&net, i % 4 == 0 ? FOREVER : net.now + 2000);
	}
	net_run(&net, FOREVER);
	for (unsigned i = 0; i < 60; i++) {
		struct ibv_wc wc = end_wc(a->scq);

		assert_int_equal(IBV_WC_SUCCESS, wc.status);
		assert_int_equal(i, wc.wr_id);
		assert_int_equal(i, end_wc(b->rcq).wr_id);
	}
	assert_int_equal(psn, stats_of(a->qp).sq_una);
	assert_int_equal(psn, stats_of(a->qp).sq_next);
	net_close(&net);
}

/* ---- receive side ---- */

static void give(struct net *net, uint32_t psn)
{
	net_packet(net, 1, (struct wire_hdr){.opcode = ROCE_SEND_ONLY, .psn = psn, .ackreq = true},
		"ab", 2);
	net->mute[1] = true;
	net_run(net, net->now);
}

static void test_recv_lazy(void **state)
{
	static struct net net;
	struct end *b = &net.end[1];

	(void)state;
	open_with(&net);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(0, end_recv(b, i, 0, 64));
	give(&net, at(0));
	assert_int_equal(0, rnic_qp_skip(b->qp, RNIC_RECV, at(1), 100));
	/* Nothing moved: the repeated ACK has the last PSN really received, never a skipped one. */
	assert_int_equal(at(1), stats_of(b->qp).epsn);
	give(&net, at(0));
	net_expect_ack(&net, 1, 1, at(0), ACK, 1);
	/* PSNs inside the range are not heard of. */
	give(&net, at(1));
	give(&net, at(100));
	assert_int_equal(2, rnic_drop_count(b->rnic, RNIC_DROP_SKIPPED));
	assert_int_equal(2, net.n_log);
	/* A gap asks for what follows the range. */
	give(&net, at(102));
	net_expect_ack(&net, 2, 1, at(101), NAK_SEQ, 1);
	give(&net, at(103));
	assert_int_equal(3, net.n_log);
	/* That is in order. */
	give(&net, at(101));
	net_expect_ack(&net, 3, 1, at(101), ACK, 2);
	assert_int_equal(at(102), stats_of(b->qp).epsn);
	/* Now the range is of the past: duplicates. */
	give(&net, at(50));
	net_expect_ack(&net, 4, 1, at(101), ACK, 2);
	assert_int_equal(2, rnic_drop_count(b->rnic, RNIC_DROP_DUPLICATE));
	assert_int_equal(0, end_wc(b->rcq).wr_id);
	assert_int_equal(1, end_wc(b->rcq).wr_id);
	end_no_wc(b->rcq);
	net_close(&net);
}

/* RNR NAK and a fatal NAK behind a range carry the PSN they mean. */
static void test_recv_naks(void **state)
{
	static struct net net;
	struct end *b = &net.end[1];

	(void)state;
	open_with(&net);
	assert_int_equal(0, rnic_qp_skip(b->qp, RNIC_RECV, at(0), 7));
	assert_int_equal(0, rnic_qp_skip(b->qp, RNIC_RECV, at(7), 7));
	give(&net, at(14));
	net_expect_ack(&net, 0, 1, at(14), 0x2c, 0);
	assert_int_equal(at(0), stats_of(b->qp).epsn); /* still lazy */
	assert_int_equal(0, end_recv(b, 1, 0, 64));
	give(&net, at(14));
	net_expect_ack(&net, 1, 1, at(14), ACK, 1);
	assert_int_equal(at(15), stats_of(b->qp).epsn);
	net_close(&net);
}

static void test_recv_errors(void **state)
{
	static struct net net;
	struct rnic_qp *qp;

	(void)state;
	open_with(&net);
	qp = net.end[1].qp;
	assert_int_equal(-EINVAL, rnic_qp_skip(qp, RNIC_RECV, at(0), 0));
	assert_int_equal(-EINVAL, rnic_qp_skip(qp, RNIC_RECV, at(0), (1 << 22) + 1));
	assert_int_equal(-EINVAL, rnic_qp_skip(qp, RNIC_RECV, at(0) | 0x1000000, 1));
	assert_int_equal(-EINVAL, rnic_qp_skip(qp, RNIC_RECV, at(-1), 1)); /* passed */
	assert_int_equal(0, rnic_qp_skip(qp, RNIC_RECV, at(10), 10));
	assert_int_equal(-EINVAL, rnic_qp_skip(qp, RNIC_RECV, at(19), 1)); /* overlaps */
	assert_int_equal(-EINVAL, rnic_qp_skip(qp, RNIC_RECV, at(5), 1));  /* not ascending */
	assert_int_equal(0, rnic_qp_skip(qp, RNIC_RECV, at(20), 1));
	for (int i = 0; i < 14; i++)
		assert_int_equal(0, rnic_qp_skip(qp, RNIC_RECV, at(30 + 2 * i), 1));
	assert_int_equal(-ENOSPC, rnic_qp_skip(qp, RNIC_RECV, at(100), 1));
	/* The end of all ranges stays within half the circle. */
	net_close(&net);
	open_with(&net);
	qp = net.end[1].qp;
	assert_int_equal(0, rnic_qp_skip(qp, RNIC_RECV, at(0), 1 << 22));
	assert_int_equal(-EINVAL, rnic_qp_skip(qp, RNIC_RECV, at(1 << 22), 1 << 22));
	assert_int_equal(0, rnic_qp_skip(qp, RNIC_RECV, at(1 << 22), (1 << 22) - 1));
	net_close(&net);
}

static void test_states(void **state)
{
	static struct net net;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct rnic_qp *qp;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_open(&net, &base);
	qp = net.end[0].qp = net_make_qp(&net.end[0], &base);
	for (int dir = RNIC_SEND; dir <= RNIC_RECV; dir++)
		assert_int_equal(-EINVAL, rnic_qp_skip(qp, (enum rnic_dir)dir, P, 1));
	attr = net_attr(&net, 0, 0x11, &base);
	attr.qp_state = IBV_QPS_INIT;
	assert_int_equal(0, rnic_qp_modify(qp, &attr, net_mask_init, 0));
	for (int dir = RNIC_SEND; dir <= RNIC_RECV; dir++)
		assert_int_equal(-EINVAL, rnic_qp_skip(qp, (enum rnic_dir)dir, P, 1));
	attr.qp_state = IBV_QPS_RTR;
	while (rnic_qp_modify(qp, &attr, net_mask_rtr, net.now) == -EAGAIN)
		net_run(&net, net.now + MS);
	assert_int_equal(-EINVAL, rnic_qp_skip(qp, RNIC_SEND, P, 1)); /* starts at RTS */
	assert_int_equal(0, rnic_qp_skip(qp, RNIC_RECV, P, 1));
	attr.qp_state = IBV_QPS_ERR;
	assert_int_equal(0, rnic_qp_modify(qp, &attr, IBV_QP_STATE, 0));
	for (int dir = RNIC_SEND; dir <= RNIC_RECV; dir++)
		assert_int_equal(-EINVAL, rnic_qp_skip(qp, (enum rnic_dir)dir, P + 1, 1));
	net_close(&net);
}

/* ---- send side ---- */

static void test_send_order(void **state)
{
	static struct net net;
	struct rnic_qp *qp;

	(void)state;
	open_with(&net);
	net.mute[0] = true;
	qp = net.end[0].qp;
	/* Posted, not yet sent: the range comes behind them. */
	assert_int_equal(
		0, end_send(&net.end[0], IBV_WR_SEND, 1, 0, 3000, 0, 0)); /* three packets */
	send_one(&net, 2);
	assert_int_equal(-EINVAL, rnic_qp_skip(qp, RNIC_SEND, at(3), 10));
	assert_int_equal(-EINVAL, rnic_qp_skip(qp, RNIC_SEND, at(5), 10));
	assert_int_equal(0, rnic_qp_skip(qp, RNIC_SEND, at(4), 10));
	send_one(&net, 3);
	assert_int_equal(0, rnic_qp_skip(qp, RNIC_SEND, at(15), 1));
	send_one(&net, 4);
	net_run(&net, net.now);
	for (int i = 0; i < 4; i++)
		assert_int_equal(at(i), net.log[i].pkt.psn);
	net_expect(&net, 4, 0, ROCE_SEND_ONLY, at(14));
	net_expect(&net, 5, 0, ROCE_SEND_ONLY, at(16));
	assert_int_equal(6, net.n_log);
	/* A NAK inside a range resends from its end, and acknowledges what is before it. */
	net_ack(&net, 0, at(9), NAK_SEQ);
	assert_int_equal(1, end_wc(net.end[0].scq).wr_id);
	assert_int_equal(2, end_wc(net.end[0].scq).wr_id);
	end_no_wc(net.end[0].scq);
	net_run(&net, net.now);
	net_expect(&net, 6, 0, ROCE_SEND_ONLY, at(14));
	net_expect(&net, 7, 0, ROCE_SEND_ONLY, at(16));
	/* An ACK past the range and of it. */
	net_ack(&net, 0, at(15), ACK);
	assert_int_equal(3, end_wc(net.end[0].scq).wr_id);
	net_ack(&net, 0, at(16), ACK);
	assert_int_equal(4, end_wc(net.end[0].scq).wr_id);
	assert_int_equal(at(17), stats_of(qp).sq_una);
	net_close(&net);
}

/* The only acknowledgement of the request before the range may have a PSN inside it (3.5: a
 * receiver's ACK of a Broadcast is reflected), though nothing behind the range was sent yet. */
static void test_ack_inside_unsent(void **state)
{
	static struct net net;
	struct rnic_qp *qp;

	(void)state;
	open_with(&net);
	net.mute[0] = true;
	qp = net.end[0].qp;
	send_one(&net, 1);
	net_run(&net, net.now);
	assert_int_equal(0, rnic_qp_skip(qp, RNIC_SEND, at(1), 50));
	net_ack(&net, 0, at(51), ACK); /* past the range: was never sent */
	end_no_wc(net.end[0].scq);
	net_ack(&net, 0, at(30), ACK);
	assert_int_equal(1, end_wc(net.end[0].scq).wr_id);
	net_ack(&net, 0, at(40), ACK);
	assert_int_equal(2, rnic_drop_count(net.end[0].rnic, RNIC_DROP_ACK_RANGE));
	send_one(&net, 2);
	net_run(&net, net.now);
	net_expect(&net, 1, 0, ROCE_SEND_ONLY, at(51));
	net_ack(&net, 0, at(50), ACK); /* old */
	end_no_wc(net.end[0].scq);
	net_ack(&net, 0, at(51), ACK);
	assert_int_equal(2, end_wc(net.end[0].scq).wr_id);
	net_close(&net);
}

/* The window counts packets, not skipped PSNs; but what is in flight stays within half the circle.
 */
static void test_send_far(void **state)
{
	static struct net net;
	struct rnic_qp *qp;
	uint32_t psn = P;

	(void)state;
	open_with(&net);
	net.mute[0] = true;
	qp = net.end[0].qp;
	for (unsigned i = 0; i < 6; i++) {
		send_one(&net, i);
		psn = psn_add(psn, 1);
		assert_int_equal(0, rnic_qp_skip(qp, RNIC_SEND, psn, 1 << 22));
		psn = psn_add(psn, 1 << 22);
	}
	net_run(&net, net.now);
	assert_int_equal(2, net.n_log);
	for (unsigned i = 0; i < 6; i++) {
		net_run(&net, net.now);
		net_ack(&net, 0, net.log[i].pkt.psn, ACK);
		assert_int_equal(i, end_wc(net.end[0].scq).wr_id);
	}
	assert_int_equal(psn, stats_of(qp).sq_una);
	net_close(&net);
}

/* A timeout in front of a range goes back over it. */
static void test_send_timeout(void **state)
{
	static struct net net;

	(void)state;
	open_with(&net);
	net.mute[0] = true;
	send_one(&net, 1);
	assert_int_equal(0, rnic_qp_skip(net.end[0].qp, RNIC_SEND, at(1), 1000));
	send_one(&net, 2);
	net_run(&net, net.now + 100 * MS);
	net_expect(&net, 2, 0, ROCE_SEND_ONLY, at(0));
	net_expect(&net, 3, 0, ROCE_SEND_ONLY, at(1001));
	assert_int_equal(2, stats_of(net.end[0].qp).retransmits);
	net_close(&net);
}

/* ---- behind a switch ---- */

/* What a Mode-II switch with a single host does (3.2, 3.5, 3.6): a request comes back as its own
 * result, under the same PSN; ACKs and NAKs are reflected to whom they come from; a request may be
 * held back by an RNR NAK of the oldest PSN. */
static bool mirror(struct net *net, int from, uint8_t *frame, size_t *len)
{
	struct wire_pkt pkt;
	struct wire_flow flow;
	struct wire_hdr hdr;
	uint8_t out[NET_FRAME], mac[6];
	struct wire_ip ip;
	int n;

	assert_int_equal(0, from);
	if (wire_parse(frame, *len, &pkt) != WIRE_OK || pkt.kind != WIRE_ROCE)
		return true;
	if (net_random(net) % 1000 < 80)
		return false;
	wire_unbuild(frame, &pkt, &flow, &hdr);
	memcpy(mac, flow.smac, 6);
	memcpy(flow.smac, flow.dmac, 6);
	memcpy(flow.dmac, mac, 6);
	ip = flow.src;
	flow.src = flow.dst;
	flow.dst = ip;
	flow.sport = 0xc123;
	hdr.dqpn = rnic_qp_num(net->end[0].qp);
	if (hdr.opcode != ROCE_ACK && hdr.psn == stats_of(net->end[0].qp).sq_una &&
		net_random(net) % 4 == 0) {
		hdr = (struct wire_hdr){
			.opcode = ROCE_ACK, .psn = hdr.psn, .syndrome = 0x2e, .dqpn = hdr.dqpn};
		pkt.pay_len = 0;
	}
	n = wire_build_frame(out, sizeof(out), &flow, &hdr, frame + pkt.pay_off, pkt.pay_len);
	assert_true(n > 0);
	if (net_random(net) % 1000 >= 80)
		net_put(net, 0, out, (size_t)n, NET_DELAY + net_random(net) % 9000);
	return false;
}

static void test_reflected(void **state)
{
	static struct net net;
	struct end *a = &net.end[0];
	unsigned posted = 0, sent = 0, received = 0;
	uint32_t psn = P;

	(void)state;
	open_with(&net);
	net.hook = mirror;
	while (sent < 400 || received < 400) {
		struct ibv_wc wc;

		while (posted < 400 && posted < sent + 8 && posted < received + 8) {
			uint32_t len = posted % 5 == 0 ? 3000 : 64;

			assert_int_equal(0, end_recv(a, posted, 1 << 19, 4096));
			assert_int_equal(
				0, end_send(a, IBV_WR_SEND_WITH_IMM, posted, 0, len, 0, 0));
			psn = psn_add(psn, len == 64 ? 1 : 3);
			if (posted % 3 == 0) {
				assert_int_equal(0, rnic_qp_skip(a->qp, RNIC_SEND, psn, 100));
				assert_int_equal(0, rnic_qp_skip(a->qp, RNIC_RECV, psn, 100));
				psn = psn_add(psn, 100);
			}
			posted++;
		}
		net_run(&net, net.now + MS);
		assert_true(net.now < 1000 * SEC);
		while (rnic_cq_poll(a->scq, 1, &wc) == 1) {
			assert_int_equal(IBV_WC_SUCCESS, wc.status);
			assert_int_equal(sent++, wc.wr_id);
		}
		while (rnic_cq_poll(a->rcq, 1, &wc) == 1) {
			assert_int_equal(IBV_WC_SUCCESS, wc.status);
			assert_int_equal(received, wc.wr_id);
			assert_int_equal(0xabcd0000 + received++, be32toh(wc.imm_data));
		}
	}
	assert_true(rnic_count(a->rnic, RNIC_C_RNR_RX) > 20);
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agreed),
		cmocka_unit_test(test_recv_lazy),
		cmocka_unit_test(test_recv_naks),
		cmocka_unit_test(test_recv_errors),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_send_order),
		cmocka_unit_test(test_ack_inside_unsent),
		cmocka_unit_test(test_send_far),
		cmocka_unit_test(test_send_timeout),
		cmocka_unit_test(test_reflected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
