/* SPDX-License-Identifier: BSD-3-Clause */
/* What is left of a link's bandwidth when it loses packets, both ways: WRITEs of one queue pair, on
 * virtual time, by selective repeat and by go-back-N. */
#include <string.h>

#include "lib/rnic/rnic.h"
#include "tests/unit/rnic/net.h"

enum { LEN = 32768, DEPTH = 16, N = 4000, NONE = 0, PERMILLE = 1, PERCENT = 10 };

static const uint64_t RATE = 100000000000;

static struct net net;

/* Bit/s of payload, from the first post to the last completion. */
static double goodput(bool selective, unsigned loss)
{
	struct net_options options = {
		.mtu = IBV_MTU_4096, .timeout = 8, .selective = selective, .wr = DEPTH};
	struct end *a = &net.end[0], *b = &net.end[1];
	unsigned posted = 0, done = 0;
	struct ibv_wc wc;
	uint64_t from;

	memset(&net, 0, sizeof(net));
	net.random = 20261;
	net_connect(&net, &options);
	net.loss = loss;
	net.rate = RATE;
	from = net.now;
	while (done < N) {
		for (; posted < N && posted - done < DEPTH; posted++)
			assert_int_equal(0, end_send(a, IBV_WR_RDMA_WRITE, posted, 0, LEN,
						    (uintptr_t)b->buf, rnic_mr_rkey(b->mr)));
		net_run(&net, net.now + 1000);
		while (rnic_cq_poll(a->scq, 1, &wc) == 1) {
			assert_int_equal(IBV_WC_SUCCESS, wc.status);
			assert_int_equal(done++, wc.wr_id);
		}
	}
	assert_memory_equal(a->buf, b->buf, LEN);
	if (loss == NONE)
		assert_int_equal(0, rnic_count(a->rnic, RNIC_C_RETRANSMITS));
	from = net.now - from;
	net_close(&net);
	return 8.0 * N * LEN * 1e9 / (double)from;
}

/* 32 000 packets. */
static void test_share(void **state)
{
	const double all = goodput(true, NONE), all_back = goodput(false, NONE);
	static const struct {
		unsigned loss;
		double least;
	} rows[] = {{PERMILLE, 0.97}, {PERCENT, 0.85}};

	(void)state;
	/* Headers and the gaps between frames are the rest. */
	assert_true(all > 0.95 * (double)RATE && all_back > 0.95 * (double)RATE);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const double selective = goodput(true, rows[i].loss) / all;
		const double back = goodput(false, rows[i].loss) / all_back;

		print_message("loss %u per 1000: %.3f of the lossless goodput, go-back-N %.3f\n",
			rows[i].loss, selective, back);
		assert_true(selective >= rows[i].least);
		assert_true(back < selective);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_share)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
