/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connections. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/wire/psn.h"
#include "tests/unit/rnic/net.h"

enum { P0 = 0x100 };

static struct net net;
static const struct net_options uc = {.type = IBV_QPT_UC, .psn = {P0, 0x200}};

static void open_with(const struct net_options *options)
{
	memset(&net, 0, sizeof(net));
	net_connect(&net, options);
	memset(net.end[1].buf, 0, net.end[1].buf_len);
	net_run(&net, net.now + MS);
	net.n_log = 0;
}

static int write_to(uint64_t id, enum ibv_wr_opcode opcode, uint32_t len)
{
	return end_send(&net.end[0], opcode, id, 0, len, (uintptr_t)net.end[1].buf,
		rnic_mr_rkey(net.end[1].mr));
}

static void test_uc_messages(void **state)
{
	static const uint32_t sizes[] = {0, 1, 1024, 1025, 5000};
	struct end *a = &net.end[0], *b = &net.end[1];
	struct ibv_wc wc;

	(void)state;
	open_with(&uc);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(b->buf, 0, 8192);
		assert_int_equal(0, end_recv(b, 10 + i, 8192, 6000));
		assert_int_equal(0, write_to(i, IBV_WR_SEND_WITH_IMM, sizes[i]));
		net_run(&net, net.now + MS);
		assert_int_equal(IBV_WC_SEND, end_wc(a->scq).opcode);
		wc = end_wc(b->rcq);
		assert_int_equal(IBV_WC_RECV, wc.opcode);
		assert_int_equal(sizes[i], wc.byte_len);
		assert_int_equal(IBV_WC_WITH_IMM, wc.wc_flags);
		assert_memory_equal(a->buf, b->buf + 8192, sizes[i]);
		assert_int_equal(0, write_to(i, IBV_WR_RDMA_WRITE, sizes[i]));
		net_run(&net, net.now + MS);
		assert_int_equal(IBV_WC_RDMA_WRITE, end_wc(a->scq).opcode);
		end_no_wc(b->rcq);
		assert_memory_equal(a->buf, b->buf, sizes[i]);
	}
	assert_int_equal(0, rnic_count(b->rnic, RNIC_C_TX_FRAMES) - 2); /* ARP: nothing answered */
	net_close(&net);
}

/* A lost packet costs its message and nothing else; its receive is there for the next one. */
static void test_uc_loss(void **state)
{
	static const uint8_t opcodes[] = {ROCE_UC | ROCE_SEND_FIRST, ROCE_UC | ROCE_SEND_MIDDLE,
		ROCE_UC | ROCE_SEND_LAST, ROCE_UC | ROCE_SEND_ONLY};
	struct end *b = &net.end[1];
	struct ibv_wc wc;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		open_with(&uc);
		net.drop_from = 0;
		net.drop_opcode = opcodes[i];
		net.drop_nth = 1;
		assert_int_equal(0, end_recv(b, 77, 0, 5000));
		assert_int_equal(0, write_to(1, IBV_WR_SEND, i == 3 ? 100 : 4000));
		assert_int_equal(0, write_to(2, IBV_WR_SEND, 3000));
		net_run(&net, net.now + MS);
		assert_int_equal(1, end_wc(net.end[0].scq).wr_id - 0);
		assert_int_equal(2, end_wc(net.end[0].scq).wr_id);
		wc = end_wc(b->rcq);
		assert_int_equal(77, wc.wr_id);
		assert_int_equal(3000, wc.byte_len);
		assert_memory_equal(net.end[0].buf, b->buf, 3000);
		net_close(&net);
	}
}

static void test_uc_silent_drops(void **state)
{
	struct end *b = &net.end[1];
	struct wire_hdr hdr = {.opcode = ROCE_UC | ROCE_SEND_ONLY, .psn = P0};
	static const uint8_t data[2048];

	(void)state;
	open_with(&uc);
	net_packet(&net, 1, hdr, data, 10);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_RNR));
	assert_int_equal(0, end_recv(b, 1, 0, 64));
	hdr.psn++;
	net_packet(&net, 1, hdr, data, 65);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_LENGTH));
	hdr.opcode = ROCE_UC | ROCE_WRITE_ONLY;
	hdr.psn++;
	hdr.dmalen = 64;
	net_packet(&net, 1, hdr, data, 64);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_ACCESS));
	hdr.opcode = ROCE_UC | ROCE_SEND_MIDDLE;
	hdr.psn++;
	net_packet(&net, 1, hdr, data, 1024);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_OPCODE_SEQ));
	hdr.opcode = ROCE_READ_REQUEST;
	net_packet(&net, 1, hdr, NULL, 0);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_QP_TYPE));
	net_run(&net, net.now + MS);
	assert_int_equal(0, net.n_log);
	end_no_wc(b->rcq);
	/* Still alive. */
	assert_int_equal(0, write_to(1, IBV_WR_SEND, 64));
	net_run(&net, net.now + MS);
	assert_int_equal(1, end_wc(b->rcq).wr_id);
	net_close(&net);
}

/* A request that cannot be sent stops the send queue, not the receive queue; RTS again. */
static void test_sqe(void **state)
{
	struct end *a = &net.end[0];
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_wc wc;

	(void)state;
	open_with(&uc);
	sge = (struct ibv_sge){(uintptr_t)a->buf, 64, rnic_mr_lkey(a->mr) + 1};
	assert_int_equal(0, rnic_post_send(a->qp, &wr));
	assert_int_equal(0, write_to(6, IBV_WR_RDMA_WRITE, 64));
	net_run(&net, net.now + MS);
	wc = end_wc(a->scq);
	assert_int_equal(IBV_WC_LOC_PROT_ERR, wc.status);
	assert_int_equal(5, wc.wr_id);
	wc = end_wc(a->scq);
	assert_int_equal(IBV_WC_WR_FLUSH_ERR, wc.status);
	assert_int_equal(0, net.n_log);
	assert_int_equal(0, write_to(7, IBV_WR_RDMA_WRITE, 64));
	net_run(&net, net.now + MS);
	assert_int_equal(IBV_WC_WR_FLUSH_ERR, end_wc(a->scq).status);
	assert_int_equal(0, rnic_qp_modify(a->qp, &attr, IBV_QP_STATE, net.now));
	assert_int_equal(0, write_to(8, IBV_WR_RDMA_WRITE, 64));
	net_run(&net, net.now + MS);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
	net_close(&net);
}

/* The completion waits until the frame, which refers to the memory, cannot be looked at any more.
 */
static void test_completes_after_copy(void **state)
{
	struct end *a = &net.end[0];
	struct rnic_frame frame;

	(void)state;
	open_with(&uc);
	assert_int_equal(0, write_to(1, IBV_WR_RDMA_WRITE, 64));
	assert_true(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, net.now));
	end_no_wc(a->scq);
	assert_int_equal(-EOPNOTSUPP, rnic_qp_skip(a->qp, RNIC_SEND, P0, 1));
	assert_true(rnic_has_work(a->rnic));
	assert_false(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, net.now));
	assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
	net_close(&net);
}

static void test_uc_drain(void **state)
{
	struct end *a = &net.end[0];
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct rnic_frame frame;

	(void)state;
	open_with(&uc);
	net_run(&net, net.now + MS);
	assert_int_equal(0, write_to(1, IBV_WR_RDMA_WRITE, 3000));
	assert_int_equal(0, write_to(2, IBV_WR_RDMA_WRITE, 3000));
	assert_true(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, net.now));
	assert_int_equal(0,
		rnic_qp_modify(a->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, net.now));
	assert_int_equal(0, a->n_event);
	/* What was begun is finished, no more. */
	assert_true(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, net.now));
	assert_true(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, net.now));
	assert_false(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, net.now));
	assert_int_equal(1, end_wc(a->scq).wr_id);
	end_no_wc(a->scq);
	assert_int_equal(IBV_EVENT_SQ_DRAINED, a->event[0]);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(0, rnic_qp_modify(a->qp, &attr, IBV_QP_STATE, net.now));
	net_run(&net, net.now + MS);
	assert_int_equal(2, end_wc(a->scq).wr_id);
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uc_messages),
		cmocka_unit_test(test_uc_loss),
		cmocka_unit_test(test_uc_silent_drops),
		cmocka_unit_test(test_sqe),
		cmocka_unit_test(test_completes_after_copy),
		cmocka_unit_test(test_uc_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
