/* SPDX-License-Identifier: BSD-3-Clause */
/* DCQCN: the rate of a flow by itself, then two devices on virtual time: CNPs for frames marked CE,
 * pacing, switches. */
#include <errno.h>
#include <string.h>

#include "lib/rnic/dcqcn.h"
#include "lib/wire/icrc.h"
#include "tests/unit/rnic/net.h"

static const uint64_t US = 1000, MBIT = 1000000;

/* ---- one flow ---- */

static struct dcqcn_params paper(void)
{
	struct dcqcn_params p;

	assert_int_equal(0, dcqcn_params_init(&p, &(struct rnic_congestion){0}));
	return p;
}

static void test_first_cnp_halves(void **state)
{
	struct dcqcn_params p = paper();
	struct dcqcn flow = {0};

	(void)state;
	assert_true(dcqcn_cnp(&flow, &p, 1000));
	assert_true(flow.limited);
	assert_int_equal(12500 * MBIT, flow.rate);
	assert_int_equal(25000 * MBIT, flow.target);
	/* Not again at once; then from the rate, by alpha, which is still 1. */
	assert_false(dcqcn_cnp(&flow, &p, 2000));
	assert_true(dcqcn_cnp(&flow, &p, 6000));
	assert_int_equal(6250 * MBIT, flow.rate);
	assert_int_equal(12500 * MBIT, flow.target);
}

static void test_bounded_below(void **state)
{
	struct dcqcn_params p = paper();
	struct dcqcn flow = {0};
	uint64_t now = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_true(dcqcn_cnp(&flow, &p, now += 50 * US));
	assert_int_equal(10 * MBIT, flow.rate);
	assert_int_equal(DCQCN_ONE, flow.alpha);
}

/* Without CNPs, alpha decays by 1/256 every 55 us, so that the next cut is a smaller one. */
static void test_alpha_decays(void **state)
{
	struct dcqcn_params p = paper();
	struct dcqcn flow = {0};

	(void)state;
	assert_true(dcqcn_cnp(&flow, &p, 0));
	assert_true(dcqcn_cnp(&flow, &p, 256 * 55 * US));
	/* (1 - 1/256)^256 is 0.367. */
	assert_in_range(flow.alpha, DCQCN_ONE * 36 / 100, DCQCN_ONE * 38 / 100);
	assert_true(flow.rate > flow.target * 80 / 100 && flow.rate < flow.target * 83 / 100);
}

static void test_recovery_by_time(void **state)
{
	struct dcqcn_params p = paper();
	struct dcqcn flow = {0};
	uint64_t now = 0, last;

	(void)state;
	dcqcn_cnp(&flow, &p, now);
	dcqcn_cnp(&flow, &p, now += 5 * US);
	last = flow.rate;
	/* Four steps towards the target, halving the distance; then R_AI more per step. */
	for (unsigned i = 1; i < p.recovery_steps; i++) {
		assert_int_equal(0, dcqcn_hold(&flow, &p, now += p.timer_ns));
		assert_int_equal((last + 12500 * MBIT) / 2, flow.rate);
		assert_int_equal(12500 * MBIT, flow.target);
		last = flow.rate;
	}
	dcqcn_hold(&flow, &p, now += p.timer_ns);
	assert_int_equal(12540 * MBIT, flow.target);
	for (unsigned i = 0; i < 400 && flow.limited; i++)
		dcqcn_hold(&flow, &p, now += p.timer_ns);
	/* (25000 - 12500) / 40 steps of 55 us. */
	assert_false(flow.limited);
	assert_in_range(now, 310 * p.timer_ns, 330 * p.timer_ns);
}

/* With bytes and time both past fast recovery, R_HAI. */
static void test_hyper_increase(void **state)
{
	struct dcqcn_params p = paper();
	struct dcqcn flow = {0};
	uint64_t now = 0, target;

	(void)state;
	for (int i = 0; i < 4; i++)
		dcqcn_cnp(&flow, &p, now += 5 * US);
	flow.byte_steps = flow.timer_steps = p.recovery_steps + 1;
	target = flow.target;
	dcqcn_hold(&flow, &p, now += p.timer_ns);
	assert_int_equal(target + 400 * MBIT, flow.target);
	dcqcn_sent(&flow, &p, (uint32_t)p.bytes, now);
	assert_int_equal(target + 800 * MBIT, flow.target);
}

static void test_idle_forgets(void **state)
{
	struct dcqcn_params p = paper();
	struct dcqcn flow = {0};

	(void)state;
	dcqcn_cnp(&flow, &p, 7);
	assert_int_equal(0, dcqcn_hold(&flow, &p, 7 + 3600 * SEC));
	assert_false(flow.limited);
	dcqcn_cnp(&flow, &p, 7200 * SEC);
	assert_int_equal(0, flow.target - 25000 * MBIT);
	assert_true(flow.rate > 24900 * MBIT);
}

static void test_params(void **state)
{
	static const struct rnic_congestion bad[] = {
		{.line_mbps = 1000001},
		{.line_mbps = 5, .min_mbps = 6},
		{.min_mbps = 25001},
		{.ai_mbps = 1000001},
		{.hai_mbps = 1000001},
		{.alpha_shift = 17},
		{.alpha_us = 1000001},
		{.timer_us = 1000001},
		{.cut_us = 1000001},
		{.recovery_steps = 1001},
	};
	struct dcqcn_params p;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(-EINVAL, dcqcn_params_init(&p, &bad[i]));
}

/* ---- two devices ---- */

/* Marks a packet of the first hook_n CE. */
static bool mark(struct net *net, uint8_t *frame, size_t len)
{
	struct wire_pkt pkt;

	if (net->hook_n > 0 && wire_parse(frame, len, &pkt) == WIRE_OK && pkt.kind == WIRE_ROCE &&
		pkt.opcode != ROCE_CNP) {
		uint8_t old = frame[pkt.l3_off + 1];
		uint32_t sum = (uint32_t)frame[pkt.l3_off + 10] << 8 | frame[pkt.l3_off + 11];

		net->hook_n--;
		frame[pkt.l3_off + 1] = old | IP_ECN_CE;
		/* RFC 1624. */
		sum = (~sum & 0xffff) + (~(uint32_t)old & 0xffff) + (old | IP_ECN_CE);
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		frame[pkt.l3_off + 10] = (uint8_t)(~sum >> 8);
		frame[pkt.l3_off + 11] = (uint8_t)~sum;
	}
	return true;
}

/* Those of end 0. */
static bool mark_ce(struct net *net, int from, uint8_t *frame, size_t *len)
{
	return from != 0 || mark(net, frame, *len);
}

static bool mark_both(struct net *net, int from, uint8_t *frame, size_t *len)
{
	(void)from;
	return mark(net, frame, *len);
}

static void write_bytes(struct net *net, uint32_t len)
{
	assert_int_equal(0, end_send(&net->end[0], IBV_WR_RDMA_WRITE, 1, 0, len,
				    (uintptr_t)net->end[1].buf, rnic_mr_rkey(net->end[1].mr)));
}

static unsigned n_cnps(const struct net *net)
{
	unsigned n = 0;

	for (unsigned i = 0; i < net->n_log; i++)
		n += net->log[i].pkt.opcode == ROCE_CNP;
	return n;
}

static void test_ce_draws_cnp(void **state)
{
	static struct net net;
	const struct net_log *cnp = NULL;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){0});
	net.hook = mark_ce;
	net.hook_n = 40;
	net.n_log = 0;
	write_bytes(&net, 40 * 1024);
	net_run(&net, net.now + MS);
	/* All in one burst: one CNP, with BECN, DSCP 48. */
	assert_int_equal(1, n_cnps(&net));
	for (unsigned i = 0; i < net.n_log; i++)
		cnp = net.log[i].pkt.opcode == ROCE_CNP ? &net.log[i] : cnp;
	assert_int_equal(1, cnp->from);
	assert_true(cnp->pkt.becn);
	assert_int_equal(0xc0, cnp->pkt.tos);
	assert_int_equal(0, cnp->pkt.psn);
	assert_int_equal(ROCE_CNP_LEN, cnp->pkt.pay_len);
	assert_int_equal(1, rnic_count(net.end[1].rnic, RNIC_C_CNP_TX));
	assert_int_equal(1, rnic_count(net.end[0].rnic, RNIC_C_CNP_RX));
	assert_int_equal(1, rnic_count(net.end[0].rnic, RNIC_C_RATE_CUTS));
	assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	net_close(&net);
}

static void test_cnp_interval(void **state)
{
	static struct net net;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){0});
	net.hook = mark_ce;
	net.hook_n = 1000000;
	net.n_log = 0;
	/* A marked packet every 10 us for 1 ms: a CNP at most every 50 us. */
	for (int i = 0; i < 100; i++) {
		write_bytes(&net, 64);
		net_run(&net, net.now + 10 * US);
	}
	assert_in_range(n_cnps(&net), 15, 21);
	net_close(&net);
}

static void cnp(struct net *net)
{
	static const uint8_t zeros[ROCE_CNP_LEN];

	net_packet(
		net, 0, (struct wire_hdr){.opcode = ROCE_CNP, .becn = true}, zeros, sizeof(zeros));
}

/* Time that so many bytes take. */
static uint64_t time_of(struct net *net, uint32_t len)
{
	uint64_t start = net->now;
	struct ibv_wc wc;

	write_bytes(net, len);
	while (rnic_cq_poll(net->end[0].scq, 1, &wc) == 0)
		net_run(net, net->now + 10 * US);
	assert_int_equal(IBV_WC_SUCCESS, wc.status);
	return net->now - start;
}

static void test_paced(void **state)
{
	static struct net net;
	struct rnic_qp_stats stats;
	uint64_t fast, slow;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){0});
	fast = time_of(&net, 400 * 1024);
	assert_int_equal(0, rnic_count(net.end[0].rnic, RNIC_C_PACED));
	for (int i = 0; i < 7; i++) {
		cnp(&net);
		net.now += 5 * US;
	}
	rnic_qp_stats(net.end[0].qp, &stats);
	assert_in_range(stats.rate, 150 * MBIT, 200 * MBIT); /* 25 Gbit/s / 2^7 */
	slow = time_of(&net, 400 * 1024);
	assert_true(slow > 10 * fast);
	/* 3.3 Mbit: at 195 Mbit/s 17 ms; it recovers meanwhile, to 390 Mbit/s and more. */
	assert_in_range(slow, MS, 17 * MS);
	assert_true(rnic_count(net.end[0].rnic, RNIC_C_PACED) > 100);
	/* And after a while it is as if nothing had been. */
	net_run(&net, net.now + SEC);
	assert_in_range(time_of(&net, 400 * 1024), 0, fast);
	assert_int_equal(0, rnic_count(net.end[0].rnic, RNIC_C_TIMEOUTS));
	assert_memory_equal(net.end[0].buf, net.end[1].buf, 400 * 1024);
	net_close(&net);
}

/* Messages of 256 KB, every packet of which is marked: but for the first few, one leaves in 0.9 ms,
 * an answer is asked for in 55 ms. Nothing is lost, so nothing is sent again, by selective repeat,
 * whose probes wait for one and a half round trips of 10 us, as little as by a timeout of 1 ms. The
 * pace of an answer to READs is learnt from the first two packets that are late, at a few requests
 * each. */
static void check_slow(enum ibv_wr_opcode opcode, bool selective, uint8_t timeout, uint64_t most)
{
	enum { N = 10, LEN = 256 * 1024 };
	static struct net net;
	struct end *a = &net.end[0], *b = &net.end[1];
	struct rnic_qp_stats stats;
	struct ibv_wc wc;

	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){.selective = selective,
				  .timeout = timeout,
				  .congestion = {.line_mbps = 20, .timer_us = 1000000}});
	net.hook = mark_both;
	net.hook_n = UINT32_MAX;
	for (unsigned i = 0; i < N; i++) {
		(opcode == IBV_WR_RDMA_READ ? b : a)->buf[0] = (uint8_t)i;
		assert_int_equal(
			0, end_send(a, opcode, i, 0, LEN, (uintptr_t)b->buf, rnic_mr_rkey(b->mr)));
		while (rnic_cq_poll(a->scq, 1, &wc) == 0)
			net_run(&net, net.now + MS);
		assert_int_equal(IBV_WC_SUCCESS, wc.status);
		assert_memory_equal(a->buf, b->buf, LEN);
	}
	rnic_qp_stats(opcode == IBV_WR_RDMA_READ ? b->qp : a->qp, &stats);
	assert_in_range(stats.rate, 10 * MBIT, 15 * MBIT);
	assert_true(rnic_count((opcode == IBV_WR_RDMA_READ ? b : a)->rnic, RNIC_C_PACED) > 1000);
	assert_in_range(rnic_count(a->rnic, RNIC_C_RETRANSMITS), 0, most);
	assert_int_equal(
		rnic_count(a->rnic, RNIC_C_PROBES), rnic_count(a->rnic, RNIC_C_RETRANSMITS));
	assert_int_equal(0, rnic_count(a->rnic, RNIC_C_TIMEOUTS));
	net_close(&net);
}

static void test_slow(void **state)
{
	(void)state;
	check_slow(IBV_WR_RDMA_WRITE, true, 0, 0);
	check_slow(IBV_WR_RDMA_WRITE, true, 8, 0);
	check_slow(IBV_WR_RDMA_WRITE, false, 8, 0);
	check_slow(IBV_WR_RDMA_READ, true, 0, 16);
	check_slow(IBV_WR_RDMA_READ, false, 0, 0);
}

/* Two QPs: one that is held back does not hold back the other. */
static void test_other_qp_is_free(void **state)
{
	static struct net net;
	struct rnic_qp *other[2], *first = NULL;
	struct ibv_wc wc;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){0});
	for (int i = 0; i < 2; i++)
		other[i] = net_make_qp(&net.end[i], &(struct net_options){0});
	for (int i = 0; i < 2; i++)
		net_to_rts(&net, i, other[i], rnic_qp_num(other[!i]), &(struct net_options){0});
	for (int i = 0; i < 9; i++) {
		cnp(&net);
		net.now += 5 * US;
	}
	write_bytes(&net, 400 * 1024);
	first = net.end[0].qp;
	net.end[0].qp = other[0];
	write_bytes(&net, 400 * 1024);
	net.end[0].qp = first;
	net_run(&net, net.now + 100 * US);
	wc = end_wc(net.end[0].scq);
	assert_int_equal(rnic_qp_num(other[0]), wc.qp_num);
	net_run(&net, net.now + 100 * MS);
	wc = end_wc(net.end[0].scq);
	assert_int_equal(rnic_qp_num(first), wc.qp_num);
	for (int i = 0; i < 2; i++)
		assert_int_equal(0, rnic_qp_destroy(other[i]));
	net_close(&net);
}

/* A QP that goes while it is held back leaves no timer behind. */
static void test_destroy_while_held(void **state)
{
	static struct net net;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){0});
	for (int i = 0; i < 9; i++) {
		cnp(&net);
		net.now += 5 * US;
	}
	write_bytes(&net, 400 * 1024);
	net_run(&net, net.now + 100 * US);
	assert_int_equal(0, rnic_qp_destroy(net.end[0].qp));
	net.end[0].qp = NULL;
	net_run(&net, net.now + SEC);
	net_close(&net);
}

static void switched(bool no_reaction, bool no_notification, bool ect)
{
	static struct net net;
	struct rnic_congestion off = {
		.no_reaction = no_reaction, .no_notification = no_notification, .ect = ect};

	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){.congestion = off});
	net.hook = mark_ce;
	net.hook_n = 1;
	net.n_log = 0;
	write_bytes(&net, 4096);
	net_run(&net, net.now + MS);
	assert_int_equal(ect ? IP_ECN_ECT0 : 0, net.log[0].pkt.tos);
	assert_int_equal(no_notification ? 0 : 1, n_cnps(&net));
	cnp(&net);
	assert_int_equal(no_notification ? 1 : 2, rnic_count(net.end[0].rnic, RNIC_C_CNP_RX));
	assert_int_equal(no_reaction, rnic_count(net.end[0].rnic, RNIC_C_RATE_CUTS) == 0);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	net_close(&net);
}

static void test_switches(void **state)
{
	(void)state;
	switched(false, false, false);
	switched(true, false, true);
	switched(false, true, false);
	switched(true, true, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_cnp_halves),
		cmocka_unit_test(test_bounded_below),
		cmocka_unit_test(test_alpha_decays),
		cmocka_unit_test(test_recovery_by_time),
		cmocka_unit_test(test_hyper_increase),
		cmocka_unit_test(test_idle_forgets),
		cmocka_unit_test(test_params),
		cmocka_unit_test(test_ce_draws_cnp),
		cmocka_unit_test(test_cnp_interval),
		cmocka_unit_test(test_paced),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_other_qp_is_free),
		cmocka_unit_test(test_destroy_while_held),
		cmocka_unit_test(test_switches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
