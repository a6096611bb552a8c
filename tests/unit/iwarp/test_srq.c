/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of iWARP that take their receives from one shared queue: whichever has a message
 * begins one has the oldest, until the message is whole or the stream ends. */
#include "tests/unit/iwarp/end.h"

enum { BYTES = 4096, LEN = 400, AT = 1000 };

static struct end end[2];
static struct rnic_qp *from[2], *to[2]; /* a stream each */

static void open_all(void)
{
	const struct iwarp_attach plain = {.mulpdu = IWARP_MIN_MULPDU, .ird = 4, .ord = 4};
	struct ibv_srq_attr attr = {.max_wr = 8, .max_sge = 1};

	for (unsigned i = 0; i < 2; i++)
		end_open(&end[i], i);
	assert_int_equal(rnic_srq_create(end[1].pd, &attr, NULL, &end[1].srq), 0);
	for (int i = 0; i < 2; i++) {
		from[i] = end_qp(&end[0], END_ALL);
		end_attach(&end[0], &plain);
		to[i] = end_qp(&end[1], END_ALL);
		end_attach(&end[1], &plain);
	}
}

static void close_all(void)
{
	assert_int_equal(rnic_srq_destroy(end[1].srq), -EBUSY);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rnic_qp_destroy(to[i]), 0);
	assert_int_equal(rnic_srq_destroy(end[1].srq), 0);
	for (int i = 0; i < 2; i++)
		end_close(&end[i]);
}

/* Receive `id` is for LEN bytes at id * AT. */
static void post(uint64_t id)
{
	struct ibv_sge sge = {.addr = (uintptr_t)end[1].buf + id * AT,
		.length = LEN,
		.lkey = rnic_mr_lkey(end[1].mr)};

	assert_int_equal(rnic_srq_post_recv(end[1].srq,
				 &(struct ibv_recv_wr){.wr_id = id, .sg_list = &sge, .num_sge = 1}),
		0);
}

/* The frames of a request of len bytes on stream i; *head: of the first of them. */
static size_t frames(int i, enum ibv_wr_opcode opcode, uint32_t len, uint8_t *out, size_t *head)
{
	size_t all = 0, n;

	end_fill(&end[0], 0, len, (unsigned)i);
	end[0].qp = from[i];
	assert_int_equal(end_post(&end[0], opcode, 1, 0, len,
				 opcode == IBV_WR_SEND ? NULL : &end[1], 8 * AT, 0),
		0);
	end_rnic_tx(&end[0], 0);
	while ((n = iwarp_tx(from[i], out + all, BYTES - all)) > 0)
		all += n;
	*head = mpa_fpdu_peek(out, all);
	assert_true(*head > 0 && *head <= all);
	return all;
}

static void check_wc(uint64_t id, int i, enum ibv_wc_status status)
{
	const struct ibv_wc wc = end_wc(end[1].rcq);

	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.qp_num, rnic_qp_num(to[i]));
	assert_int_equal(wc.status, status);
}

/* Two messages at a time: each is in the memory of one receive, however their segments come; one
 * that finds none ends its queue pair, and no other. */
static void test_shared(void **state)
{
	uint8_t long_one[BYTES], short_one[BYTES];
	size_t all, head, n, rest;

	(void)state;
	open_all();
	for (unsigned id = 0; id < 3; id++)
		post(id);
	all = frames(0, IBV_WR_SEND, 200, long_one, &head);
	assert_true(head < all);
	n = frames(1, IBV_WR_SEND, 50, short_one, &rest);
	iwarp_rx(to[0], long_one, head);
	iwarp_rx(to[1], short_one, n);
	check_wc(1, 1, IBV_WC_SUCCESS);
	end_no_wc(end[1].rcq);
	iwarp_rx(to[0], long_one + head, all - head);
	check_wc(0, 0, IBV_WC_SUCCESS);
	end_check(&end[1], 0, 200, 0);
	end_check(&end[1], AT, 50, 1);

	n = frames(0, IBV_WR_RDMA_WRITE_WITH_IMM, 8, short_one, &rest);
	iwarp_rx(to[0], short_one, n);
	check_wc(2, 0, IBV_WC_SUCCESS);
	end_check(&end[1], 8 * AT, 8, 0);

	n = frames(1, IBV_WR_SEND, 50, short_one, &rest);
	iwarp_rx(to[1], short_one, n);
	assert_int_equal(iwarp_fault(to[1]), IWARP_FAULT_NO_BUFFER);
	end_no_wc(end[1].rcq);
	assert_int_equal(end[1].n_event, 2);
	assert_int_equal(end[1].event[0], IBV_EVENT_QP_REQ_ERR);
	assert_int_equal(end[1].event[1], IBV_EVENT_QP_LAST_WQE_REACHED);

	post(3);
	n = frames(0, IBV_WR_SEND, 50, short_one, &rest);
	iwarp_rx(to[0], short_one, n);
	check_wc(3, 0, IBV_WC_SUCCESS);
	end_check(&end[1], 3 * AT, 50, 0);
	close_all();
}

/* The stream ends inside a message: its receive is flushed, the others are there for the other. */
static void test_lost(void **state)
{
	uint8_t out[BYTES];
	size_t head, n;

	(void)state;
	open_all();
	post(0);
	post(1);
	frames(0, IBV_WR_SEND, 200, out, &head);
	iwarp_rx(to[0], out, head);
	iwarp_lost(to[0], 0);
	check_wc(0, 0, IBV_WC_WR_FLUSH_ERR);
	end_no_wc(end[1].rcq);
	n = frames(1, IBV_WR_SEND, 50, out, &head);
	iwarp_rx(to[1], out, n);
	check_wc(1, 1, IBV_WC_SUCCESS);
	end_check(&end[1], AT, 50, 1);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
