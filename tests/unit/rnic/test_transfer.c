/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of every kind and size over a good and a bad link. */
#include <string.h>

#include "tests/unit/rnic/net.h"

static void test_send(void **state)
{
	struct net net = {0};

	(void)state;
	net_connect(&net, &(struct net_options){.psn = {100, 200}});
	assert_int_equal(0, end_recv(&net.end[1], 7, 0, 4096));
	assert_int_equal(0, end_send(&net.end[0], IBV_WR_SEND, 5, 0, 3000, 0, 0));
	net_run(&net, FOREVER);
	struct ibv_wc wc = end_wc(net.end[1].rcq);
	assert_int_equal(IBV_WC_SUCCESS, wc.status);
	assert_int_equal(7, wc.wr_id);
	assert_int_equal(IBV_WC_RECV, wc.opcode);
	assert_int_equal(3000, wc.byte_len);
	assert_int_equal(rnic_qp_num(net.end[1].qp), wc.qp_num);
	assert_int_equal(rnic_qp_num(net.end[0].qp), wc.src_qp);
	assert_memory_equal(net.end[0].buf, net.end[1].buf, 3000);
	assert_int_equal(0xee, net.end[1].buf[3000]);
	wc = end_wc(net.end[0].scq);
	assert_int_equal(IBV_WC_SUCCESS, wc.status);
	assert_int_equal(5, wc.wr_id);
	assert_int_equal(IBV_WC_SEND, wc.opcode);
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
