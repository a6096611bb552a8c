/* SPDX-License-Identifier: BSD-3-Clause */
/* Two queue pairs whose streams are arrays: every operation, however the bytes are cut; order, READ
 * depths, fences; what is wrong here. */
#include <stdio.h>

#include "lib/rnic/transport.h"
#include "tests/unit/iwarp/end.h"

enum { PIPE = 1 << 20 };

static struct end end[2];
static uint8_t pipe_bytes[PIPE];

static const struct iwarp_attach plain = {.mulpdu = IWARP_MIN_MULPDU, .ird = 4, .ord = 4};

static void open_pair(const struct iwarp_attach *a, const struct iwarp_attach *b)
{
	for (unsigned i = 0; i < 2; i++) {
		end_open(&end[i], i);
		end_qp(&end[i], END_ALL);
		end_attach(&end[i], i == 0 ? a : b);
	}
}

static void close_pair(void)
{
	end_close(&end[0]);
	end_close(&end[1]);
}

/* What `from` has to say now. */
static size_t say(int from)
{
	size_t all = 0, len;

	end_rnic_tx(&end[from], 0);
	while ((len = iwarp_tx(end[from].qp, pipe_bytes + all, 3000)) > 0)
		all += len;
	return all;
}

/* Both until neither has anything, in pieces of so many bytes. */
static void run(size_t piece)
{
	for (bool busy = true; busy;) {
		busy = false;
		for (int i = 0; i < 2; i++) {
			const size_t all = say(i);

			for (size_t at = 0; at < all; at += piece)
				iwarp_rx(end[!i].qp, pipe_bytes + at,
					all - at < piece ? all - at : piece);
			busy |= all > 0;
		}
	}
}

static void expect(struct rnic_cq *cq, uint64_t id, enum ibv_wc_opcode opcode, uint32_t len)
{
	const struct ibv_wc wc = end_wc(cq);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.opcode, opcode);
	if (opcode >= IBV_WC_RECV)
		assert_int_equal(wc.byte_len, len);
}

/* One of each, sizes at and around the segments' ends. */
static void script(void)
{
	end_fill(&end[0], 0, 1000, 1);
	end_fill(&end[1], 30000, 700, 2);
	assert_int_equal(end_recv(&end[1], 10, 0, 400), 0);
	assert_int_equal(end_recv(&end[1], 11, 400, 110), 0);
	assert_int_equal(end_recv(&end[1], 12, 0, 0), 0);
	assert_int_equal(end_recv(&end[1], 13, 0, 0), 0);
	assert_int_equal(end_post(&end[0], IBV_WR_SEND, 1, 0, 400, NULL, 0, 0), 0);
	assert_int_equal(end_post(&end[0], IBV_WR_SEND, 2, 0, 110, NULL, 0, IBV_SEND_SOLICITED), 0);
	assert_int_equal(end_post(&end[0], IBV_WR_RDMA_WRITE, 3, 0, 500, &end[1], 1000, 0), 0);
	assert_int_equal(end_post(&end[0], IBV_WR_RDMA_READ, 4, 2000, 700, &end[1], 30000, 0), 0);
	assert_int_equal(end_post(&end[0], IBV_WR_SEND, 5, 0, 0, NULL, 0, 0), 0);
	assert_int_equal(
		end_post(&end[0], IBV_WR_RDMA_WRITE_WITH_IMM, 6, 0, 114, &end[1], 2000, 0), 0);
	assert_int_equal(end_post(&end[0], IBV_WR_RDMA_READ, 7, 2000, 0, &end[1], 30000, 0), 0);
}

static void check_script(void)
{
	struct ibv_wc wc;

	expect(end[1].rcq, 10, IBV_WC_RECV, 400);
	expect(end[1].rcq, 11, IBV_WC_RECV, 110);
	expect(end[1].rcq, 12, IBV_WC_RECV, 0);
	wc = end_wc(end[1].rcq);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(be32toh(wc.imm_data), 6);
	assert_int_equal(wc.byte_len, 114);
	end_no_wc(end[1].rcq);
	expect(end[0].scq, 1, IBV_WC_SEND, 400);
	expect(end[0].scq, 2, IBV_WC_SEND, 110);
	expect(end[0].scq, 3, IBV_WC_RDMA_WRITE, 500);
	expect(end[0].scq, 4, IBV_WC_RDMA_READ, 700);
	expect(end[0].scq, 5, IBV_WC_SEND, 0);
	expect(end[0].scq, 6, IBV_WC_RDMA_WRITE, 114);
	expect(end[0].scq, 7, IBV_WC_RDMA_READ, 0);
	end_no_wc(end[0].scq);
	end_check(&end[1], 0, 400, 1);
	end_check(&end[1], 400, 110, 1);
	end_check(&end[1], 1000, 500, 1);
	end_check(&end[1], 2000, 114, 1);
	end_check(&end[0], 2000, 700, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(end_count(&end[i], "terminate_tx"), 0);
		assert_int_equal(end[i].n_event, 0);
	}
}

static void test_operations(void **state)
{
	static const size_t pieces[] = {PIPE, 1, 2, 3, 7, 64, 133, 1460};

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		open_pair(&plain, &plain);
		script();
		run(pieces[i]);
		check_script();
		close_pair();
	}
}

/* All requests in one stream, cut in two at every byte. */
static void test_every_cut(void **state)
{
	size_t all = 1;

	(void)state;
	for (size_t cut = 0; cut < all; cut++) {
		open_pair(&plain, &plain);
		script();
		all = say(0);
		iwarp_rx(end[1].qp, pipe_bytes, cut);
		iwarp_rx(end[1].qp, pipe_bytes + cut, all - cut);
		run(PIPE);
		check_script();
		close_pair();
	}
	assert_true(all > 1500);
}

/* Both ends at once; answers and requests share the stream. */
static void test_both_ways(void **state)
{
	enum { N = 16, LEN = 1024 };

	(void)state;
	open_pair(&plain, &plain);
	for (int i = 0; i < 2; i++) {
		end_fill(&end[i], 0, N * LEN, 5 + (unsigned)i);
		for (unsigned k = 0; k < N; k++)
			assert_int_equal(
				end_post(&end[i], k % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, k,
					k % 2 ? 32768 + k * LEN : k * LEN, LEN, &end[!i],
					k % 2 ? k * LEN : 32768 + k * LEN, 0),
				0);
	}
	run(100);
	for (int i = 0; i < 2; i++) {
		for (unsigned k = 0; k < N; k++)
			expect(end[i].scq, k, k % 2 ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE, LEN);
		for (unsigned k = 0; k < N; k++)
			assert_memory_equal(
				end[i].buf + 32768 + k * LEN, end[!i].buf + k * LEN, LEN);
	}
	close_pair();
}

/* No more READs outstanding than agreed; what needs none goes on; a fence waits. */
static void test_read_depth(void **state)
{
	const struct iwarp_attach one = {.mulpdu = 1000, .ird = 1, .ord = 1};

	(void)state;
	open_pair(&one, &one);
	for (unsigned k = 0; k < 3; k++)
		assert_int_equal(
			end_post(&end[0], IBV_WR_RDMA_READ, k, k * 8, 8, &end[1], 100, 0), 0);
	say(0);
	assert_int_equal(end_count(&end[0], "fpdu_tx"), 1);
	close_pair();

	open_pair(&plain, &plain);
	assert_int_equal(end_post(&end[0], IBV_WR_RDMA_READ, 1, 0, 8, &end[1], 100, 0), 0);
	assert_int_equal(end_post(&end[0], IBV_WR_RDMA_WRITE, 2, 0, 8, &end[1], 200, 0), 0);
	say(0);
	assert_int_equal(end_count(&end[0], "fpdu_tx"), 2);
	end_no_wc(end[0].scq); /* in order: the WRITE behind the READ */
	close_pair();

	open_pair(&plain, &plain);
	end_fill(&end[1], 100, 8, 3);
	assert_int_equal(end_post(&end[0], IBV_WR_RDMA_READ, 1, 0, 8, &end[1], 100, 0), 0);
	assert_int_equal(
		end_post(&end[0], IBV_WR_RDMA_WRITE, 2, 0, 8, &end[1], 200, IBV_SEND_FENCE), 0);
	run(PIPE);
	end_check(&end[1], 200, 8, 3); /* what the READ brought */
	close_pair();
}

/* MPA's responder is silent until it hears something; the initiator's first frame may be empty. */
static void test_first_frame(void **state)
{
	struct iwarp_attach a = plain, b = plain;

	(void)state;
	b.waits = true;
	open_pair(&a, &b);
	assert_int_equal(end_post(&end[1], IBV_WR_RDMA_WRITE, 1, 0, 8, &end[0], 0, 0), 0);
	run(PIPE);
	assert_int_equal(end_count(&end[1], "fpdu_tx"), 0);
	close_pair();

	a.rtr = true;
	for (int i = 0; i < 2; i++)
		end_open(&end[i], (unsigned)i);
	end_qp(&end[0], END_ALL);
	end_qp(&end[1], 0); /* an empty WRITE needs no right */
	end_attach(&end[0], &a);
	end_attach(&end[1], &b);
	assert_int_equal(end_post(&end[1], IBV_WR_RDMA_WRITE, 1, 0, 8, &end[0], 0, 0), 0);
	run(PIPE);
	expect(end[1].scq, 1, IBV_WC_RDMA_WRITE, 8);
	assert_int_equal(end_count(&end[0], "fpdu_rx"), 1);
	close_pair();
}

static int post_local(struct end *e, const struct ibv_send_wr *wr)
{
	return rnic_post_send(e->qp, wr);
}

/* A window: bound, written through, invalidated by the peer's SEND, and then none. */
static void test_windows(void **state)
{
	struct rnic_mr *mw;
	struct ibv_mw mw_of = {0};
	struct ibv_mr mr_of = {0};
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_BIND_MW};
	struct ibv_send_wr inv = {.wr_id = 3, .opcode = IBV_WR_SEND_WITH_INV};
	uint32_t key;
	struct ibv_sge sge;
	struct ibv_wc wc;

	(void)state;
	open_pair(&plain, &plain);
	assert_int_equal(rnic_mw_alloc(end[1].pd, IBV_MW_TYPE_2, &mw), 0);
	mw_of.rkey = rnic_mr_rkey(mw);
	mr_of.lkey = rnic_mr_lkey(end[1].mr);
	key = (mw_of.rkey & ~0xffu) | ((mw_of.rkey + 1) & 0xff);
	wr.bind_mw.mw = &mw_of;
	wr.bind_mw.rkey = key;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = &mr_of,
		.addr = (uintptr_t)end[1].buf + 100,
		.length = 50,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	assert_int_equal(post_local(&end[1], &wr), 0);
	run(PIPE);
	expect(end[1].scq, 1, IBV_WC_BIND_MW, 0);

	end_fill(&end[0], 0, 50, 9);
	sge = (struct ibv_sge){(uintptr_t)end[0].buf, 50, rnic_mr_lkey(end[0].mr)};
	wr = (struct ibv_send_wr){
		.wr_id = 2, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};
	wr.wr.rdma.remote_addr = (uintptr_t)end[1].buf + 100;
	wr.wr.rdma.rkey = key;
	assert_int_equal(rnic_post_send(end[0].qp, &wr), 0);
	inv.invalidate_rkey = key;
	assert_int_equal(end_recv(&end[1], 20, 0, 0), 0);
	assert_int_equal(rnic_post_send(end[0].qp, &inv), 0);
	run(PIPE);
	end_check(&end[1], 100, 50, 9);
	wc = end_wc(end[1].rcq);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, key);

	assert_int_equal(rnic_post_send(end[0].qp, &wr), 0); /* nothing there any more */
	run(PIPE);
	assert_int_equal(iwarp_fault(end[1].qp), IWARP_FAULT_TAGGED_STAG);
	close_pair();
}

static enum ibv_qp_state state_of(struct end *e)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	rnic_qp_query(e->qp, &attr, &init);
	return attr.qp_state;
}

/* Wrong here: the request fails by itself, all others are flushed, the peer is told. */
static void test_local_errors(void **state)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};
	static const struct {
		enum ibv_wr_opcode opcode;
		uint16_t ord;
		bool bad_key;
		enum ibv_wc_status status;
	} cases[] = {
		{IBV_WR_SEND, 4, true, IBV_WC_LOC_PROT_ERR},
		{IBV_WR_RDMA_WRITE, 4, true, IBV_WC_LOC_PROT_ERR},
		{IBV_WR_RDMA_READ, 0, false, IBV_WC_LOC_QP_OP_ERR},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct iwarp_attach a = plain;
		struct ibv_wc wc;

		a.ord = cases[i].ord;
		open_pair(&a, &plain);
		sge = (struct ibv_sge){(uintptr_t)end[0].buf, 8,
			rnic_mr_lkey(end[0].mr) ^ (cases[i].bad_key ? 0x100000 : 0)};
		wr.opcode = cases[i].opcode;
		wr.wr.rdma.remote_addr = (uintptr_t)end[1].buf;
		wr.wr.rdma.rkey = rnic_mr_rkey(end[1].mr);
		assert_int_equal(end_post(&end[0], IBV_WR_RDMA_WRITE, 1, 0, 8, &end[1], 0, 0), 0);
		assert_int_equal(rnic_post_send(end[0].qp, &wr), 0);
		assert_int_equal(end_post(&end[0], IBV_WR_RDMA_WRITE, 3, 0, 8, &end[1], 0, 0), 0);
		run(PIPE);
		expect(end[0].scq, 1, IBV_WC_RDMA_WRITE, 8);
		wc = end_wc(end[0].scq);
		assert_int_equal(wc.wr_id, 2);
		assert_int_equal(wc.status, cases[i].status);
		wc = end_wc(end[0].scq);
		assert_int_equal(wc.wr_id, 3);
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		end_no_wc(end[0].scq);
		assert_int_equal(state_of(&end[0]), IBV_QPS_ERR);
		assert_int_equal(state_of(&end[1]), IBV_QPS_ERR);
		assert_int_equal(iwarp_terminated(end[1].qp).fault, IWARP_FAULT_CATASTROPHIC);
		assert_true(iwarp_over(end[0].qp) && iwarp_over(end[1].qp));
		close_pair();
	}
}

/* The peer refuses a READ, when it comes or in the midst of the answer: that one fails, all others
 * are flushed. */
static void test_refused_read(void **state)
{
	struct ibv_wc wc;

	(void)state;
	for (int late = 0; late < 2; late++) {
		open_pair(&plain, &plain);
		assert_int_equal(end_post(&end[0], IBV_WR_RDMA_READ, 1, 0, 8, &end[1], 0, 0), 0);
		assert_int_equal(end_post(&end[0], IBV_WR_SEND, 2, 0, 0, NULL, 0, 0), 0);
		assert_int_equal(end_post(&end[0], IBV_WR_RDMA_READ, 3, 0, 8, &end[1],
					 late ? 0 : END_BYTES - 7, 0),
			0);
		assert_int_equal(end_post(&end[0], IBV_WR_RDMA_WRITE, 4, 0, 8, &end[1], 0, 0), 0);
		assert_int_equal(end_recv(&end[1], 1, 0, 8), 0);
		if (late) {
			iwarp_rx(end[1].qp, pipe_bytes, say(0));
			assert_int_equal(rnic_mr_dereg(end[1].mr), 0);
		}
		run(PIPE);
		for (unsigned k = 1; k <= 4; k++) {
			const unsigned guilty = late ? 1 : 3;

			wc = end_wc(end[0].scq);
			assert_int_equal(wc.wr_id, k);
			assert_int_equal(wc.status,
				k == guilty ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
		}
		end_no_wc(end[0].scq);
		assert_int_equal(
			iwarp_fault(end[1].qp), late ? IWARP_FAULT_STAG : IWARP_FAULT_BOUNDS);
		assert_int_equal(end[1].event[0], IBV_EVENT_QP_ACCESS_ERR);
		assert_int_equal(iwarp_terminated(end[0].qp).fault, iwarp_fault(end[1].qp));
		assert_int_equal(iwarp_terminated(end[0].qp).segment.opcode, RDMAP_READ_REQUEST);
		assert_int_equal(iwarp_terminated(end[0].qp).segment.msn, late ? 1 : 2);
		assert_int_equal(end_count(&end[0], "terminate_rx"), 1);
		close_pair();
	}
}

/* What the peer refuses is a WRITE: no READ is to blame. */
static void test_refused_write(void **state)
{
	struct ibv_wc wc;

	(void)state;
	open_pair(&plain, &plain);
	assert_int_equal(
		end_post(&end[0], IBV_WR_RDMA_WRITE, 1, 0, 8, &end[1], END_BYTES - 7, 0), 0);
	assert_int_equal(end_post(&end[0], IBV_WR_RDMA_READ, 2, 0, 8, &end[1], 0, 0), 0);
	run(PIPE);
	expect(end[0].scq, 1, IBV_WC_RDMA_WRITE, 8);
	wc = end_wc(end[0].scq);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(iwarp_terminated(end[0].qp).segment.opcode, RDMAP_WRITE);
	close_pair();
}

/* A QP without a stream is in no RTS; attaching is for INIT, once; the owner hears of the end. */
static void test_attach(void **state)
{
	const struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS}, err = {.qp_state = IBV_QPS_ERR};
	struct iwarp_attach a = plain;

	(void)state;
	open_pair(&plain, &plain);
	a.ready = a.gone = NULL;
	end_qp(&end[0], END_ALL);
	assert_int_equal(rnic_qp_modify(end[0].qp, &rts, IBV_QP_STATE, 0), -ENOTCONN);
	assert_int_equal(iwarp_attach(end[0].qp, &a), -EINVAL);
	end_attach(&end[0], &plain);
	assert_int_equal(iwarp_attach(end[0].qp, &plain), -EINVAL);
	assert_int_equal(end_recv(&end[0], 1, 0, 8), 0);
	assert_int_equal(rnic_qp_modify(end[0].qp, &err, IBV_QP_STATE, 0), 0);
	assert_int_equal(end_wc(end[0].rcq).status, IBV_WC_WR_FLUSH_ERR);
	assert_true(iwarp_over(end[0].qp));
	assert_int_equal(end[0].gones, 0);
	assert_int_equal(rnic_qp_destroy(end[0].qp), 0);
	assert_int_equal(end[0].gones, 1);
	close_pair();
}

/* A queue that is full when the second request completes, here of SENDs that come, here of those
 * that leave: it is over in that call, the rest is not looked at, the peer is told. */
static void test_overrun(void **state)
{
	(void)state;
	for (int from = 0; from < 2; from++) {
		struct end *e = &end[1];
		struct ibv_wc wc;
		size_t all;

		end_open(&end[0], 0);
		end_open(&end[1], 1);
		assert_int_equal(
			rnic_cq_create(e->rnic, 1, NULL, from == 0 ? &e->rcq : &e->scq), 0);
		for (int i = 0; i < 2; i++) {
			end_qp(&end[i], END_ALL);
			end_attach(&end[i], &plain);
		}
		for (unsigned k = 0; k < 3; k++) {
			assert_int_equal(end_recv(&end[!from], k, k * 8, 8), 0);
			assert_int_equal(end_post(&end[from], IBV_WR_SEND, k, 0, 8, NULL, 0, 0), 0);
		}
		all = say(from);
		iwarp_rx(end[!from].qp, pipe_bytes, all);
		assert_int_equal(state_of(e), IBV_QPS_ERR);
		assert_int_equal(e->n_event, 1);
		assert_int_equal(e->event[0], IBV_EVENT_QP_FATAL);
		if (from == 0)
			assert_int_equal(end_count(e, "ignored_bytes"), all / 3);
		assert_int_equal(rnic_cq_poll(from == 0 ? e->rcq : e->scq, 1, &wc), 1);
		assert_int_equal(rnic_cq_poll(from == 0 ? e->rcq : e->scq, 1, &wc), -EOVERFLOW);
		run(PIPE);
		assert_int_equal(end_count(e, "rdmap_catastrophic"), 1);
		assert_int_equal(end_count(e, "terminate_tx"), 1);
		assert_int_equal(iwarp_terminated(end[0].qp).fault, IWARP_FAULT_CATASTROPHIC);
		assert_true(iwarp_over(e->qp));
		close_pair();
	}
}

/* The stream ends between two frames, or in one. */
static void test_lost(void **state)
{
	size_t all;

	(void)state;
	open_pair(&plain, &plain);
	iwarp_lost(end[1].qp, 0);
	assert_int_equal(state_of(&end[1]), IBV_QPS_ERR);
	assert_int_equal(end[1].n_event, 0);
	iwarp_lost(end[0].qp, -ECONNRESET);
	assert_int_equal(end[0].event[0], IBV_EVENT_QP_FATAL);
	close_pair();

	open_pair(&plain, &plain);
	assert_int_equal(end_post(&end[0], IBV_WR_RDMA_WRITE, 1, 0, 8, &end[1], 0, 0), 0);
	all = say(0);
	iwarp_rx(end[1].qp, pipe_bytes, all - 1);
	iwarp_lost(end[1].qp, 0);
	assert_int_equal(end_count(&end[1], "mpa_lost"), 1);
	end_untouched(&end[1], 0, 0);
	assert_true(iwarp_over(end[1].qp)); /* nobody there to be told */
	close_pair();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_read_depth),
		cmocka_unit_test(test_first_frame),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_local_errors),
		cmocka_unit_test(test_refused_read),
		cmocka_unit_test(test_refused_write),
		cmocka_unit_test(test_attach),
		cmocka_unit_test(test_overrun),
		cmocka_unit_test(test_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
