/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes through the API: data, immediates in order, loss, events, errors. */
#include "tests/unit/libmrc_api/pair.h"

#include <arpa/inet.h>
#include <errno.h>

static void fill(struct side *s, unsigned seed)
{
	for (unsigned i = 0; i < SIDE_BUF; i++)
		s->buf[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

static void one_write(struct pair *p, uint32_t len, uint32_t imm)
{
	struct ibv_wc wc;

	memset(p->b.buf, 0, SIDE_BUF);
	if (imm)
		assert_int_equal(recv_one(&p->b, 70), 0);
	assert_int_equal(write_to(&p->a, &p->b, 11, 0, len, imm), 0);
	if (imm) {
		wait_one(p, &p->b, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(wc.wr_id, 70);
		assert_int_equal(wc.byte_len, len);
		assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
		assert_int_equal(ntohl(wc.imm_data), imm);
		/* All of it is there when it says so. */
		assert_memory_equal(p->b.buf, p->a.buf, len);
	}
	wait_one(p, &p->a, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_WRITE);
	assert_int_equal(wc.wr_id, 11);
	assert_memory_equal(p->b.buf, p->a.buf, len);
	assert_true(len == SIDE_BUF || p->b.buf[len] == 0);
}

static void every_size_and_family(void **state)
{
	static const uint32_t len[] = {0, 1, 3, 1023, 1024, 1025, 10000, SIDE_BUF};
	struct pair *p = *state;

	fill(&p->a, 1);
	for (int gid = 1; gid < 3; gid++) {
		pair_connect(p, gid); /* IPv4, IPv6 */
		for (unsigned i = 0; i < sizeof(len) / sizeof(*len); i++) {
			one_write(p, len[i], 0);
			one_write(p, len[i], 1000 + i);
		}
		assert_int_equal(to_state(&p->a, IBV_QPS_RESET), 0);
		assert_int_equal(to_state(&p->b, IBV_QPS_RESET), 0);
	}
}

/* Many at once over a cable that loses and corrupts: in order at both ends, every byte right. */
static void in_order_over_a_bad_cable(void **state)
{
	enum { N = 32, LEN = SIDE_BUF / N };
	struct pair *p = *state;
	struct ibv_wc wc;

	pair_connect(p, 2);
	p->f->loss = 50;
	p->f->corrupt = 20;
	for (unsigned round = 0; round < 8; round++) {
		fill(&p->a, round);
		for (unsigned i = 0; i < N; i++)
			assert_int_equal(recv_one(&p->b, i), 0);
		for (unsigned i = 0; i < N; i++)
			assert_int_equal(
				write_to(&p->a, &p->b, 500 + i, i * LEN, LEN, 1 + round * N + i),
				0);
		for (unsigned i = 0; i < N; i++) {
			wait_one(p, &p->b, &wc);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.wr_id, i);
			assert_int_equal(ntohl(wc.imm_data), 1 + round * N + i);
			assert_memory_equal(p->b.buf + i * LEN, p->a.buf + i * LEN, LEN);
		}
		for (unsigned i = 0; i < N; i++) {
			wait_one(p, &p->a, &wc);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.wr_id, 500 + i);
		}
	}
	assert_true(p->f->n_lost > 0 && p->f->n_corrupt > 0);
}

static void completion_events(void **state)
{
	struct pair *p = *state;
	struct mrc_cq *cq = NULL;
	struct ibv_wc wc;
	void *context = NULL;

	pair_connect(p, 1);
	assert_int_equal(mrc_req_notify_cq(p->a.cq, 0), 0);
	assert_int_equal(write_to(&p->a, &p->b, 5, 0, 5000, 0), 0);
	assert_int_equal(mrc_get_cq_event(p->a.channel, &cq, &context), 0);
	assert_ptr_equal(cq, p->a.cq);
	assert_ptr_equal(context, &p->a);
	assert_int_equal(mrc_poll_cq(p->a.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 5);
	mrc_ack_cq_events(cq, 1);
}

/* A key that is not the peer's: both ends hear of it. */
static void access_error(void **state)
{
	struct pair *p = *state;
	struct ibv_mr *mr = p->b.mr, wrong = *mr;
	struct mrc_async_event event;
	struct ibv_wc wc;

	pair_connect(p, 1);
	wrong.rkey ^= 0x5a5a00;
	p->b.mr = &wrong;
	assert_int_equal(write_to(&p->a, &p->b, 5, 0, 100, 0), 0);
	assert_int_equal(write_to(&p->a, &p->b, 6, 0, 100, 0), 0);
	p->b.mr = mr;
	wait_one(p, &p->a, &wc);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	wait_one(p, &p->a, &wc);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(mrc_get_async_event(p->b.ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(event.element.qp, p->b.qp);
	mrc_ack_async_event(&event); /* else the queue pair could not be destroyed */
	for (unsigned i = 0; i < SIDE_BUF; i++)
		assert_int_equal(p->b.buf[i], 0);
}

/* Nobody answers: after its tries the request fails, with the counts that were set. */
static void no_answer(void **state)
{
	struct pair *p = *state;
	struct mrc_qp_attr a = {.timeout = 4, .retry = {2, 1}};
	struct ibv_wc wc;

	pair_connect(p, 1);
	assert_int_equal(mrc_modify_qp(p->a.qp, NULL, 0, &a, MRC_QP_TIMEOUT | MRC_QP_RETRY_CNT), 0);
	p->f->cut = true;
	assert_int_equal(write_to(&p->a, &p->b, 5, 0, 100, 0), 0);
	wait_one(p, &p->a, &wc);
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(every_size_and_family),
		PAIR_TEST(in_order_over_a_bad_cable),
		PAIR_TEST(completion_events),
		PAIR_TEST(access_error),
		PAIR_TEST(no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
