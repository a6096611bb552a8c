/* SPDX-License-Identifier: BSD-3-Clause */
/* What exactly goes over the wire when packets are lost, refused or late. End 0 sends, end 1
 * receives, PSNs from 0x100 and 0x200. */
#include <errno.h>
#include <string.h>

#include "tests/unit/rnic/net.h"

enum { P = 0x100, ACK = 0x1f, NAK_SEQ = 0x60 };

static const struct net_options base = {.psn = {P, 0x200}};

static void open_with(struct net *net, const struct net_options *options)
{
	memset(net, 0, sizeof(*net));
	net_connect(net, options);
	net->n_log = 0;
}

static void write_across(struct net *net, uint64_t id, uint32_t len)
{
	struct end *peer = &net->end[1];

	assert_int_equal(0, end_send(&net->end[0], IBV_WR_RDMA_WRITE, id, 0, len,
				    (uintptr_t)peer->buf, rnic_mr_rkey(peer->mr)));
}

static void send_across(struct net *net, uint64_t id, uint32_t len)
{
	assert_int_equal(0, end_send(&net->end[0], IBV_WR_SEND, id, 0, len, 0, 0));
}

/* The QP of an end is in ERR; its send queue gave these statuses. */
static void expect_failed(struct net *net, int i, enum ibv_wc_status first, unsigned flushed)
{
	struct ibv_wc wc = end_wc(net->end[i].scq);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	assert_int_equal(first, wc.status);
	while (flushed-- > 0)
		assert_int_equal(IBV_WC_WR_FLUSH_ERR, end_wc(net->end[i].scq).status);
	end_no_wc(net->end[i].scq);
	rnic_qp_query(net->end[i].qp, &attr, &init);
	assert_int_equal(IBV_QPS_ERR, attr.qp_state);
}

/* ---- gaps ---- */

static void test_lost_middle(void **state)
{
	static struct net net;

	(void)state;
	open_with(&net, &base);
	net.drop_from = 0;
	net.drop_opcode = ROCE_WRITE_MIDDLE;
	net.drop_nth = 1;
	write_across(&net, 1, 4096);
	net_run(&net, FOREVER);
	net_expect(&net, 0, 0, ROCE_WRITE_FIRST, P);
	net_expect(&net, 1, 0, ROCE_WRITE_MIDDLE, P + 1);
	net_expect(&net, 2, 0, ROCE_WRITE_MIDDLE, P + 2);
	net_expect(&net, 3, 0, ROCE_WRITE_LAST, P + 3);
	net_expect_ack(&net, 4, 1, P + 1, NAK_SEQ, 0); /* one for the gap, not two */
	net_expect(&net, 5, 0, ROCE_WRITE_MIDDLE, P + 1);
	net_expect(&net, 6, 0, ROCE_WRITE_MIDDLE, P + 2);
	net_expect(&net, 7, 0, ROCE_WRITE_LAST, P + 3);
	net_expect_ack(&net, 8, 1, P + 3, ACK, 1);
	assert_int_equal(9, net.n_log);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	assert_memory_equal(net.end[0].buf, net.end[1].buf, 4096);
	assert_int_equal(2, rnic_drop_count(net.end[1].rnic, RNIC_DROP_SEQUENCE));
	assert_int_equal(3, rnic_count(net.end[0].rnic, RNIC_C_RETRANSMITS));
	net_close(&net);
}

static void test_lost_last(void **state)
{
	static struct net net;
	struct rnic_qp_stats stats;
	uint64_t start;

	(void)state;
	open_with(&net, &base);
	net.drop_opcode = ROCE_WRITE_LAST;
	net.drop_nth = 1;
	start = net.now;
	write_across(&net, 1, 3000);
	net_run(&net, FOREVER);
	/* Nothing was acknowledged, so everything comes again; what is known draws an ACK. */
	net_expect(&net, 3, 0, ROCE_WRITE_FIRST, P);
	assert_true(net.log[3].at == start + roce_timeout_ns(14));
	net_expect(&net, 4, 0, ROCE_WRITE_MIDDLE, P + 1);
	net_expect(&net, 5, 0, ROCE_WRITE_LAST, P + 2);
	net_expect_ack(&net, 6, 1, P + 2, ACK, 1);
	assert_int_equal(7, net.n_log);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	assert_int_equal(2, rnic_drop_count(net.end[1].rnic, RNIC_DROP_DUPLICATE));
	rnic_qp_stats(net.end[0].qp, &stats);
	assert_int_equal(1, stats.timeouts);
	assert_int_equal(3, stats.retransmits);
	assert_int_equal(7, stats.retries); /* progress gives all of them back */
	assert_int_equal(P + 3, stats.sq_una);
	net_close(&net);
}

static void test_lost_ack(void **state)
{
	static struct net net;

	(void)state;
	open_with(&net, &base);
	net.drop_from = 1;
	net.drop_opcode = ROCE_ACK;
	net.drop_nth = 1;
	assert_int_equal(0, end_recv(&net.end[1], 9, 0, 64));
	send_across(&net, 1, 64);
	net_run(&net, FOREVER);
	net_expect(&net, 0, 0, ROCE_SEND_ONLY, P);
	net_expect_ack(&net, 1, 1, P, ACK, 1);
	net_expect(&net, 2, 0, ROCE_SEND_ONLY, P);
	net_expect_ack(&net, 3, 1, P, ACK, 1);
	assert_int_equal(4, net.n_log);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	assert_int_equal(9, end_wc(net.end[1].rcq).wr_id);
	end_no_wc(net.end[1].rcq); /* taken once */
	net_close(&net);
}

/* Reordering before the NAK leaves: it asks for what is missing then, if anything is. */
static void test_late_nak(void **state)
{
	static struct net net;
	uint8_t data[64] = {0};
	struct rnic_frame frame;

	(void)state;
	for (int all = 0; all < 2; all++) {
		open_with(&net, &base);
		net.mute[1] = true;
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(0, end_recv(&net.end[1], 9, 0, 64));
		for (uint32_t i = 1; i < 3; i++)
			net_packet(&net, 1,
				(struct wire_hdr){.opcode = ROCE_SEND_ONLY, .psn = P + i}, data,
				64);
		for (uint32_t i = 0; i < (all ? 3 : 2); i++)
			net_packet(&net, 1,
				(struct wire_hdr){.opcode = ROCE_SEND_ONLY, .psn = P + i}, data,
				64);
		net_run(&net, net.now);
		if (all)
			net_expect_ack(&net, 0, 1, P + 2, ACK, 3);
		else
			net_expect_ack(&net, 0, 1, P + 2, NAK_SEQ, 2);
		assert_int_equal(1, net.n_log);
		assert_false(rnic_tx(net.end[1].rnic, RNIC_ALL_PORTS, &frame, net.now));
		net_close(&net);
	}
}

/* A port that takes no frames for a long time does not use up the tries. */
static void test_blocked_port(void **state)
{
	static struct net net;
	struct rnic *rnic;
	struct rnic_frame frame;

	(void)state;
	open_with(&net, &base);
	rnic = net.end[0].rnic;
	write_across(&net, 1, 64);
	assert_true(rnic_tx(rnic, RNIC_ALL_PORTS, &frame, net.now));
	for (unsigned i = 0; i < 100; i++) {
		net.now += SEC;
		rnic_timer(rnic, net.now);
	}
	assert_int_equal(1, rnic_count(rnic, RNIC_C_TIMEOUTS));
	net_run(&net, FOREVER);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	net_close(&net);
}

/* ---- acknowledgements ---- */

static void test_coalescing(void **state)
{
	static struct net net;
	uint8_t data[64] = {0};

	(void)state;
	open_with(&net, &base);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(0, end_recv(&net.end[1], i, 0, 64));
		net_packet(&net, 1,
			(struct wire_hdr){.opcode = ROCE_SEND_ONLY, .psn = P + i, .ackreq = true},
			data, 64);
	}
	net.mute[1] = true;
	assert_true(rnic_has_work(net.end[1].rnic));
	net_run(&net, net.now);
	net_expect_ack(&net, 0, 1, P + 19, ACK, 20);
	assert_int_equal(1, net.n_log);
	net_close(&net);
}

static void test_ackreq(void **state)
{
	static struct net net;
	unsigned since = 0, asked = 0;

	(void)state;
	open_with(&net, &base);
	write_across(&net, 1, 300 * 1024);
	net_run(&net, FOREVER);
	for (unsigned i = 0; i < net.n_log; i++) {
		const struct wire_pkt *pkt = &net.log[i].pkt;

		if (net.log[i].from != 0)
			continue;
		since++;
		assert_true(since <= 64);
		if (pkt->opcode == ROCE_WRITE_LAST)
			assert_true(pkt->ackreq);
		if (pkt->ackreq) {
			since = 0;
			asked++;
		}
	}
	assert_int_equal(5, asked);
	net_close(&net);
}

static void test_window(void **state)
{
	static struct net net;
	struct net_options options = base;

	(void)state;
	options.window = 10;
	options.timeout = 31;
	open_with(&net, &options);
	net.mute[0] = true;
	write_across(&net, 1, 16 * 1024);
	write_across(&net, 2, 16 * 1024);
	net_run(&net, net.now);
	assert_int_equal(10, net.n_log);
	assert_true(net.log[9].pkt.ackreq); /* or nobody would open it again */
	assert_false(net.log[8].pkt.ackreq);
	net_ack(&net, 0, P + 3, ACK);
	net_run(&net, net.now);
	assert_int_equal(14, net.n_log);
	net_expect(&net, 13, 0, ROCE_WRITE_MIDDLE, P + 13);
	net_ack(&net, 0, P + 13, ACK);
	net_run(&net, net.now);
	net_expect(&net, 15, 0, ROCE_WRITE_LAST, P + 15);
	net_expect(&net, 16, 0, ROCE_WRITE_FIRST, P + 16);
	assert_int_equal(24, net.n_log);
	end_no_wc(net.end[0].scq);
	net_ack(&net, 0, P + 15, ACK);
	assert_int_equal(1, end_wc(net.end[0].scq).wr_id);
	net_close(&net);
}

/* Acknowledgements outside what is in flight change nothing, whatever their kind. */
static void test_ack_range(void **state)
{
	static struct net net;
	static const uint32_t psn[] = {P - 1, P - 2, P + 5, P + 4000, P + 0x7fffff, P + 0x800000};
	static const unsigned syndrome[] = {ACK, NAK_SEQ, 0x61, 0x62, 0x63, 0x20, 0x3f};
	struct rnic_qp_stats stats;
	unsigned dropped = 0;

	(void)state;
	open_with(&net, &base);
	net.mute[0] = true;
	net_ack(&net, 0, P - 1, ACK); /* nothing was sent yet */
	net_ack(&net, 0, P, 0x62);
	for (unsigned i = 0; i < 4; i++)
		write_across(&net, i, 64);
	net_run(&net, net.now);
	for (unsigned i = 0; i < sizeof(psn) / sizeof(psn[0]); i++) {
		for (unsigned j = 0; j < sizeof(syndrome) / sizeof(syndrome[0]); j++, dropped++)
			net_ack(&net, 0, psn[i] & 0xffffff, syndrome[j]);
	}
	assert_int_equal(dropped + 2, rnic_drop_count(net.end[0].rnic, RNIC_DROP_ACK_RANGE));
	net_ack(&net, 0, P, 0x40); /* a class that does not exist */
	net_ack(&net, 0, P, 0x65);
	assert_int_equal(2, rnic_drop_count(net.end[0].rnic, RNIC_DROP_UNSUPPORTED));
	end_no_wc(net.end[0].scq);
	rnic_qp_stats(net.end[0].qp, &stats);
	assert_int_equal(P, stats.sq_una);
	assert_int_equal(7, stats.retries);
	net_close(&net);
}

/* Only PSNs complete work, whatever the MSN says; any source port, any credits. */
static void test_reflected_ack(void **state)
{
	static struct net net;

	(void)state;
	open_with(&net, &base);
	net.mute[0] = true;
	for (unsigned i = 0; i < 4; i++)
		write_across(&net, i, 64);
	net_run(&net, net.now);
	net_packet(&net, 0,
		(struct wire_hdr){.opcode = ROCE_ACK, .psn = P + 1, .syndrome = 0x0a, .msn = 4000},
		NULL, 0);
	assert_int_equal(0, end_wc(net.end[0].scq).wr_id);
	assert_int_equal(1, end_wc(net.end[0].scq).wr_id);
	end_no_wc(net.end[0].scq);
	net_close(&net);
}

/* ---- going back, giving up ---- */

static void test_nak_acknowledges(void **state)
{
	static struct net net;

	(void)state;
	open_with(&net, &base);
	net.mute[0] = true;
	for (unsigned i = 0; i < 4; i++)
		write_across(&net, i, 64);
	net_run(&net, net.now);
	net.n_log = 0;
	net_ack(&net, 0, P + 2, NAK_SEQ);
	assert_int_equal(0, end_wc(net.end[0].scq).wr_id);
	assert_int_equal(1, end_wc(net.end[0].scq).wr_id);
	end_no_wc(net.end[0].scq);
	net_run(&net, net.now);
	net_expect(&net, 0, 0, ROCE_WRITE_ONLY, P + 2);
	net_expect(&net, 1, 0, ROCE_WRITE_ONLY, P + 3);
	assert_int_equal(2, net.n_log);
	/* NAK of the next one never sent: an ACK of everything. */
	net_ack(&net, 0, P + 4, NAK_SEQ);
	assert_int_equal(2, end_wc(net.end[0].scq).wr_id);
	assert_int_equal(3, end_wc(net.end[0].scq).wr_id);
	net_run(&net, net.now);
	assert_int_equal(2, net.n_log);
	net_close(&net);
}

/* Waits of one, one, two, four, four... times the timeout: never less, never more than IBTA has. */
static void test_retry_exhausted(void **state)
{
	static const unsigned in_all[] = {1, 2, 4, 8, 12, 16, 20, 24};
	static struct net net;
	struct net_options options = base;
	uint64_t start;

	(void)state;
	for (unsigned retry = 0; retry <= 7; retry++) {
		options.no_retry = true;
		options.retry = (uint8_t)retry;
		options.timeout = 10;
		open_with(&net, &options);
		net.mute[0] = true;
		start = net.now;
		write_across(&net, 1, 64);
		write_across(&net, 2, 64);
		assert_int_equal(0, end_recv(&net.end[0], 3, 0, 64));
		net_run(&net, FOREVER);
		assert_int_equal(2 * (retry + 1), net.n_log);
		assert_true(net.now == start + in_all[retry] * roce_timeout_ns(10));
		expect_failed(&net, 0, IBV_WC_RETRY_EXC_ERR, 1);
		assert_int_equal(IBV_WC_WR_FLUSH_ERR, end_wc(net.end[0].rcq).status);
		assert_int_equal(0, net.end[0].n_event);
		net_close(&net);
	}
}

static void test_no_timeout(void **state)
{
	static struct net net;
	struct net_options options = base;
	struct ibv_qp_attr attr = {.timeout = 0, .qp_state = IBV_QPS_RTS};

	(void)state;
	open_with(&net, &options);
	attr.qp_state = IBV_QPS_SQD;
	assert_int_equal(0, rnic_qp_modify(net.end[0].qp, &attr, IBV_QP_STATE, 0));
	assert_int_equal(0, rnic_qp_modify(net.end[0].qp, &attr, IBV_QP_TIMEOUT, 0));
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(0, rnic_qp_modify(net.end[0].qp, &attr, IBV_QP_STATE, 0));
	net.mute[0] = true;
	write_across(&net, 1, 64);
	net_run(&net, FOREVER); /* returns: no timer runs */
	assert_int_equal(1, net.n_log);
	net_close(&net);
}

/* Copies of a NAK are neither tries nor reasons to send again; and they do not keep the timer from
 * ending it. */
static void test_nak_storm(void **state)
{
	static struct net net;

	(void)state;
	open_with(&net, &base);
	net.mute[0] = true;
	write_across(&net, 1, 64);
	net_run(&net, net.now);
	for (unsigned i = 0; i < 20; i++) {
		net_ack(&net, 0, P, NAK_SEQ);
		net_run(&net, net.now);
		end_no_wc(net.end[0].scq);
	}
	assert_int_equal(2, net.n_log);
	net_run(&net, FOREVER);
	assert_int_equal(2 + 6, net.n_log); /* the NAK was one of the tries */
	expect_failed(&net, 0, IBV_WC_RETRY_EXC_ERR, 0);
	net_close(&net);
}

/* ---- receiver not ready ---- */

static void test_rnr(void **state)
{
	static struct net net;
	uint64_t start;

	(void)state;
	open_with(&net, &base);
	start = net.now;
	send_across(&net, 1, 64);
	send_across(&net, 2, 64);
	net_run(&net, start + 200 * MS);
	assert_int_equal(0x2c, net.log[2].pkt.syndrome);
	for (unsigned i = 0; i + 2 < net.n_log; i += 3) {
		net_expect(&net, i, 0, ROCE_SEND_ONLY, P);
		net_expect(&net, i + 1, 0, ROCE_SEND_ONLY, P + 1); /* no NAK for that */
		net_expect_ack(&net, i + 2, 1, P, 0x2c, 0);
		assert_true(net.log[i].at == start + i / 3 * (640000 + 2 * NET_DELAY));
	}
	assert_true(net.n_log > 900);
	assert_int_equal(0, rnic_count(net.end[1].rnic, RNIC_C_NAK_TX));
	assert_int_equal(net.n_log / 3, rnic_count(net.end[1].rnic, RNIC_C_RNR_TX));
	assert_int_equal(net.n_log / 3, rnic_count(net.end[0].rnic, RNIC_C_RNR_RX));
	assert_int_equal(0, rnic_count(net.end[0].rnic, RNIC_C_TIMEOUTS));
	assert_int_equal(0, end_recv(&net.end[1], 3, 0, 64));
	assert_int_equal(0, end_recv(&net.end[1], 4, 0, 64));
	net_run(&net, FOREVER);
	assert_int_equal(1, end_wc(net.end[0].scq).wr_id);
	assert_int_equal(2, end_wc(net.end[0].scq).wr_id);
	assert_int_equal(3, end_wc(net.end[1].rcq).wr_id);
	net_close(&net);
}

/* WRITE with Immediate needs a receive for its last packet only. */
static void test_rnr_write_imm(void **state)
{
	static struct net net;

	(void)state;
	open_with(&net, &base);
	assert_int_equal(0, end_send(&net.end[0], IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 2048,
				    (uintptr_t)net.end[1].buf, rnic_mr_rkey(net.end[1].mr)));
	net_run(&net, net.now + 100000);
	net_expect(&net, 1, 0, ROCE_WRITE_LAST_IMM, P + 1);
	net_expect_ack(&net, 2, 1, P + 1, 0x2c, 0);
	assert_memory_equal(net.end[0].buf, net.end[1].buf, 1024);
	assert_int_equal(0xee, net.end[1].buf[1024]);
	assert_int_equal(0, end_recv(&net.end[1], 3, 0, 0));
	net_run(&net, FOREVER);
	net_expect(&net, 3, 0, ROCE_WRITE_LAST_IMM, P + 1);
	net_expect_ack(&net, 4, 1, P + 1, ACK, 1);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	assert_int_equal(2048, end_wc(net.end[1].rcq).byte_len);
	net_close(&net);
}

static void test_rnr_exhausted(void **state)
{
	static struct net net;
	struct net_options options = base;

	(void)state;
	for (unsigned retry = 0; retry <= 6; retry++) {
		options.no_retry = true;
		options.rnr_retry = (uint8_t)retry;
		open_with(&net, &options);
		send_across(&net, 1, 64);
		net_run(&net, FOREVER);
		assert_int_equal(2 * (retry + 1), net.n_log);
		expect_failed(&net, 0, IBV_WC_RNR_RETRY_EXC_ERR, 0);
		net_close(&net);
	}
}

/* A switch holds a requester back by RNR NAKs between timeouts: its tries are not used up, and a
 * sequence NAK meanwhile does not end the wait. */
static void test_rnr_keeps_retries(void **state)
{
	static struct net net;
	struct rnic_qp_stats stats;

	(void)state;
	open_with(&net, &base);
	net.mute[0] = true;
	write_across(&net, 1, 64);
	for (unsigned i = 0; i < 20; i++) {
		net_run(&net, net.now + roce_timeout_ns(14) + 1);
		net.n_log = 0;
		net_ack(&net, 0, P, 0x20 | 14);
		net_ack(&net, 0, P, NAK_SEQ);
		net_run(&net, net.now + roce_rnr_ns(14) - 1);
		assert_int_equal(0, net.n_log);
		net_run(&net, net.now + 1);
		assert_int_equal(1, net.n_log);
		rnic_qp_stats(net.end[0].qp, &stats);
		assert_int_equal(7, stats.retries);
	}
	end_no_wc(net.end[0].scq);
	/* An acknowledgement ends the wait at once. */
	write_across(&net, 2, 64);
	net_ack(&net, 0, P, 0x20);
	net_ack(&net, 0, P, ACK);
	net.n_log = 0;
	net_run(&net, net.now);
	net_expect(&net, 0, 0, ROCE_WRITE_ONLY, P + 1);
	net_close(&net);
}

/* ---- errors of the peer, on both sides ---- */

static void test_remote_access(void **state)
{
	static struct net net;
	static struct {
		uint64_t offset;
		uint32_t len, key;
		enum ibv_wc_status status;
	} cases[] = {
		{0, 64, 1, IBV_WC_REM_ACCESS_ERR},                  /* key */
		{1 << 20, 1, 0, IBV_WC_REM_ACCESS_ERR},             /* one past the end */
		{(1 << 20) - 1, 2, 0, IBV_WC_REM_ACCESS_ERR},       /* over the end */
		{(1 << 20) - 4096, 4097, 0, IBV_WC_REM_ACCESS_ERR}, /* the first packet would fit */
		{-1ull, 64, 0, IBV_WC_REM_ACCESS_ERR},              /* before it */
		{-1ull, 1, 0, IBV_WC_REM_ACCESS_ERR},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct end *peer;

		open_with(&net, &base);
		peer = &net.end[1];
		assert_int_equal(0, end_recv(peer, 5, 0, 64));
		assert_int_equal(0, end_send(&net.end[0], IBV_WR_RDMA_WRITE, 1, 0, 64,
					    (uintptr_t)peer->buf, rnic_mr_rkey(peer->mr)));
		assert_int_equal(0, end_send(&net.end[0], IBV_WR_RDMA_WRITE, 2, 0, cases[i].len,
					    (uintptr_t)peer->buf + cases[i].offset,
					    rnic_mr_rkey(peer->mr) ^ cases[i].key));
		send_across(&net, 3, 64);
		net_run(&net, FOREVER);
		assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
		expect_failed(&net, 0, cases[i].status, 1);
		assert_int_equal(IBV_WC_WR_FLUSH_ERR, end_wc(peer->rcq).status);
		assert_int_equal(1, peer->n_event);
		assert_int_equal(IBV_EVENT_QP_ACCESS_ERR, peer->event[0]);
		net_close(&net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_middle),
		cmocka_unit_test(test_lost_last),
		cmocka_unit_test(test_lost_ack),
		cmocka_unit_test(test_late_nak),
		cmocka_unit_test(test_blocked_port),
		cmocka_unit_test(test_coalescing),
		cmocka_unit_test(test_ackreq),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_ack_range),
		cmocka_unit_test(test_reflected_ack),
		cmocka_unit_test(test_nak_acknowledges),
		cmocka_unit_test(test_retry_exhausted),
		cmocka_unit_test(test_no_timeout),
		cmocka_unit_test(test_nak_storm),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_rnr_write_imm),
		cmocka_unit_test(test_rnr_exhausted),
		cmocka_unit_test(test_rnr_keeps_retries),
		cmocka_unit_test(test_remote_access),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
