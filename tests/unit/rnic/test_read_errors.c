/* SPDX-License-Identifier: BSD-3-Clause */
/* READs and atomics that fail, and those that a failing request comes after. */
#include "tests/unit/rnic/reads.h"

/* What a peer sends that lies: packets of a READ of 3000 bytes at P0. */
static void bad_response(uint8_t opcode, size_t len, enum ibv_wc_status status, unsigned drop)
{
	static const uint8_t data[2048];

	open_with(&(struct net_options){.psn = {P0, 0}});
	net.mute[1] = true;
	assert_int_equal(0, read_at(1, 3000, 0, 0, 0));
	net_run(&net, net.now + 100);
	net_packet(&net, 0, (struct wire_hdr){.opcode = opcode, .psn = P0, .syndrome = 0x1f}, data,
		len);
	assert_int_equal(1, rnic_drop_count(net.end[0].rnic, drop));
	if (status == IBV_WC_SUCCESS)
		end_no_wc(net.end[0].scq);
	else
		assert_int_equal(status, end_wc(net.end[0].scq).status);
	net_close(&net);
}

static void test_bad_responses(void **state)
{
	(void)state;
	bad_response(ROCE_READ_RESP_FIRST, 1023, IBV_WC_BAD_RESP_ERR, RNIC_DROP_LENGTH);
	bad_response(ROCE_READ_RESP_FIRST, 1025, IBV_WC_BAD_RESP_ERR, RNIC_DROP_LENGTH);
	bad_response(ROCE_READ_RESP_ONLY, 1024, IBV_WC_BAD_RESP_ERR, RNIC_DROP_LENGTH);
	bad_response(ROCE_READ_RESP_LAST, 952, IBV_WC_BAD_RESP_ERR, RNIC_DROP_LENGTH);
	bad_response(ROCE_ATOMIC_ACK, 0, IBV_WC_SUCCESS, RNIC_DROP_OPCODE_SEQ);
}

static void remote_error(const struct net_options *options, uint32_t key, enum ibv_wc_status status)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};

	open_with(options);
	sge = (struct ibv_sge){(uintptr_t)a->buf, 3000, rnic_mr_lkey(a->mr)};
	wr.wr.rdma.remote_addr = (uintptr_t)b->buf;
	wr.wr.rdma.rkey = rnic_mr_rkey(b->mr) + key;
	assert_int_equal(0, rnic_post_send(a->qp, &wr));
	net_run(&net, net.now + MS);
	assert_int_equal(status, end_wc(a->scq).status);
	assert_int_equal(0, a->buf[0]);
	net_close(&net);
}

static void test_remote_errors(void **state)
{
	(void)state;
	remote_error(&(struct net_options){0}, 1, IBV_WC_REM_ACCESS_ERR);
	remote_error(&(struct net_options){.mr_access = IBV_ACCESS_LOCAL_WRITE}, 0,
		IBV_WC_REM_ACCESS_ERR);
	remote_error(&(struct net_options){.access = IBV_ACCESS_REMOTE_WRITE}, 0,
		IBV_WC_REM_INV_REQ_ERR);
}

/* The list that is read into has no permission to be written. */
static void test_local_error(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
	struct rnic_mr *only;

	(void)state;
	open_with(&(struct net_options){0});
	assert_int_equal(0, rnic_mr_reg(a->pd, a->buf, 4096, (uintptr_t)a->buf, 0, &only));
	sge = (struct ibv_sge){(uintptr_t)a->buf, 3000, rnic_mr_lkey(only)};
	wr.wr.rdma.remote_addr = (uintptr_t)b->buf;
	wr.wr.rdma.rkey = rnic_mr_rkey(b->mr);
	assert_int_equal(0, rnic_post_send(a->qp, &wr));
	net_run(&net, net.now + MS);
	assert_int_equal(IBV_WC_LOC_PROT_ERR, end_wc(a->scq).status);
	assert_int_equal(0, a->buf[0]);
	assert_int_equal(0, rnic_mr_dereg(only));
	net_close(&net);
}

/* Memory that goes while it is being read. */
static void test_dereg_meanwhile(void **state)
{
	struct end *b = &net.end[1];
	struct rnic_mr *mr;
	struct rnic_frame frame;

	(void)state;
	open_with(&(struct net_options){.psn = {P0, 0}});
	assert_int_equal(0,
		rnic_mr_reg(b->pd, b->buf, 65536, (uintptr_t)b->buf, IBV_ACCESS_REMOTE_READ, &mr));
	net_packet(&net, 1,
		(struct wire_hdr){.opcode = ROCE_READ_REQUEST,
			.psn = P0,
			.va = (uintptr_t)b->buf,
			.rkey = rnic_mr_rkey(mr),
			.dmalen = 8192},
		NULL, 0);
	assert_true(rnic_tx(b->rnic, RNIC_ALL_PORTS, &frame, net.now));
	assert_int_equal(0, rnic_mr_dereg(mr));
	net.mute[1] = true;
	net_run(&net, net.now);
	net_expect_ack(&net, 0, 1, P0 + 1, 0x62, 0); /* of the READ's second packet */
	assert_int_equal(1, net.n_log);
	assert_int_equal(IBV_EVENT_QP_ACCESS_ERR, b->event[b->n_event - 1]);
	net_close(&net);
}

/* A duplicate may not name other memory than may be read, nor reach beyond what was asked. */
static void test_lying_duplicates(void **state)
{
	struct end *b = &net.end[1];
	struct wire_hdr hdr = {.opcode = ROCE_READ_REQUEST, .psn = P0, .dmalen = 2048};

	(void)state;
	open_with(&(struct net_options){.psn = {P0, 0}});
	net.mute[1] = true;
	hdr.va = (uintptr_t)b->buf;
	hdr.rkey = rnic_mr_rkey(b->mr);
	net_packet(&net, 1, hdr, NULL, 0);
	net_run(&net, net.now);
	assert_int_equal(2, net.n_log);
	hdr.dmalen = 2049; /* three packets, two were asked for */
	net_packet(&net, 1, hdr, NULL, 0);
	hdr.dmalen = 2048;
	hdr.rkey++;
	net_packet(&net, 1, hdr, NULL, 0);
	hdr.rkey--;
	hdr.va--;
	net_packet(&net, 1, hdr, NULL, 0);
	hdr.opcode = ROCE_FETCH_ADD; /* never was one here */
	net_packet(&net, 1, hdr, NULL, 0);
	net_run(&net, net.now);
	assert_int_equal(2, net.n_log);
	net_close(&net);
}

/* An atomic whose PSN another one had, 2^24 PSNs ago, and its duplicate. */
static void test_replay_of_the_last(void **state)
{
	enum { QUARTER = 1 << 22 };
	struct end *b = &net.end[1];
	struct wire_hdr add = {.opcode = ROCE_FETCH_ADD, .psn = P0, .swap_add = 5};
	struct wire_hdr write = {.opcode = ROCE_WRITE_ONLY};
	uint32_t at = P0 + 1;

	(void)state;
	open_with(&(struct net_options){.psn = {P0, 0}});
	net.mute[1] = true;
	memset(b->buf + CELL, 0, 8);
	add.va = write.va = (uintptr_t)b->buf + CELL;
	add.rkey = write.rkey = rnic_mr_rkey(b->mr);
	net_packet(&net, 1, add, NULL, 0);
	for (unsigned i = 0; i < 4; i++) { /* once round, and the PSN before P0 was the last */
		const uint32_t n = QUARTER - 1 - (i == 3);

		assert_int_equal(0, rnic_qp_skip(b->qp, RNIC_RECV, at, n));
		write.psn = psn_add(at, (int32_t)n);
		net_packet(&net, 1, write, NULL, 0);
		at = psn_add(write.psn, 1);
	}
	assert_int_equal(P0, at);
	net_packet(&net, 1, add, NULL, 0);
	assert_int_equal(10, cell(b, CELL));
	net_run(&net, net.now);
	net.n_log = 0;
	net_packet(&net, 1, add, NULL, 0);
	net_run(&net, net.now);
	net_expect(&net, 0, 1, ROCE_ATOMIC_ACK, P0);
	assert_int_equal(5, net.log[0].pkt.atomic_orig);
	assert_int_equal(10, cell(b, CELL));
	net_close(&net);
}

/* ---- a request that is refused behind good ones ---- */

/* A WRITE with a key that nobody has. */
static int bad_write(uint64_t id)
{
	struct end *b = &net.end[1];

	return end_send(&net.end[0], IBV_WR_RDMA_WRITE, id, 0, 64, (uintptr_t)b->buf,
		rnic_mr_rkey(b->mr) + 1);
}

static void expect_status(uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = end_wc(net.end[0].scq);

	assert_int_equal(id, wc.wr_id);
	assert_int_equal(status, wc.status);
}

/* All in one burst: what was good is answered, in order, then the NAK; the WRITE fails and nothing
 * else. */
static void test_refused_behind_reads(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	uint64_t v = 77;

	(void)state;
	for (unsigned selective = 0; selective < 2; selective++) {
		open_with(&(struct net_options){
			.rd = 4, .psn = {P0, 0}, .selective = selective == 1});
		memcpy(b->buf + CELL, &v, 8);
		assert_int_equal(0, read_at(1, 3000, 0, 4096, 0));
		assert_int_equal(0, atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 2, CELL, 8, 5, 0));
		assert_int_equal(0, bad_write(3));
		assert_int_equal(0, read_at(4, 100, 0, 64, 0));
		net_run(&net, FOREVER);
		expect_wc(1, IBV_WC_RDMA_READ, 3000);
		expect_wc(2, IBV_WC_FETCH_ADD, 8);
		expect_status(3, IBV_WC_REM_ACCESS_ERR);
		expect_status(4, IBV_WC_WR_FLUSH_ERR);
		assert_memory_equal(b->buf, a->buf + 4096, 3000);
		assert_int_equal(77, cell(a, 8));
		assert_int_equal(82, cell(b, CELL));
		assert_int_equal(1, rnic_count(b->rnic, RNIC_C_NAK_TX));
		assert_int_equal(0, rnic_count(a->rnic, RNIC_C_RETRANSMITS));
		assert_int_equal(IBV_EVENT_QP_ACCESS_ERR, b->event[b->n_event - 1]);
		net_close(&net);
	}
}

/* One after another, each answered before the next one comes. */
static void test_atomic_then_refused(void **state)
{
	struct end *b = &net.end[1];

	(void)state;
	open_with(&(struct net_options){.rd = 1});
	memset(b->buf + CELL, 0, 8);
	assert_int_equal(0, atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, CELL, 0, 5, 0));
	assert_int_equal(0, bad_write(2));
	net_run(&net, FOREVER);
	expect_wc(1, IBV_WC_FETCH_ADD, 8);
	expect_status(2, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(5, cell(b, CELL));
	net_close(&net);
}

/* What a READ names goes while it waits for its answer, behind it a request that is refused: the
 * NAK is the READ's, and the device tells of one failure. */
static void test_gone_behind_refused(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	struct wire_hdr hdr = {.opcode = ROCE_READ_REQUEST, .psn = P0, .dmalen = 64};
	struct rnic_mr *mr;

	(void)state;
	open_with(&(struct net_options){.psn = {P0, 0}});
	assert_int_equal(0,
		rnic_mr_reg(b->pd, b->buf, 4096, (uintptr_t)b->buf, IBV_ACCESS_REMOTE_READ, &mr));
	hdr.va = (uintptr_t)b->buf;
	hdr.rkey = rnic_mr_rkey(mr);
	net_packet(&net, 1, hdr, NULL, 0);
	hdr.psn = P0 + 1;
	hdr.rkey++;
	net_packet(&net, 1, hdr, NULL, 0);
	assert_int_equal(1, b->n_event);
	assert_int_equal(0, rnic_mr_dereg(mr));
	net.mute[1] = true;
	net_run(&net, net.now);
	net_expect_ack(&net, 0, 1, P0, 0x62, 0);
	assert_int_equal(1, net.n_log);
	assert_int_equal(1, b->n_event);
	end_no_wc(a->scq);
	net_close(&net);
}

/* ---- a peer whose answer to a READ is lost, and that refuses what came after it ---- */

/* A READ of one packet at P0 and a SEND at P0 + 1 are on their way, and nothing comes back yet. */
static void read_and_send(void)
{
	open_with(&(struct net_options){.psn = {P0, 0}, .rnr_timer = 31});
	net.mute[0] = net.mute[1] = true;
	assert_int_equal(0, read_at(1, 64, 0, 0, 0));
	assert_int_equal(0, end_send(&net.end[0], IBV_WR_SEND, 2, 0, 64, 0, 0));
	assert_int_equal(0, end_send(&net.end[0], IBV_WR_SEND, 3, 0, 64, 0, 0));
	net_run(&net, net.now);
	net_expect(&net, 2, 0, ROCE_SEND_ONLY, P0 + 2);
	net.n_log = 0;
}

static void answer_read(void)
{
	static const uint8_t data[64] = {1, 2, 3};

	net_packet(&net, 0,
		(struct wire_hdr){.opcode = ROCE_READ_RESP_ONLY, .psn = P0, .syndrome = 0x1f}, data,
		sizeof(data));
}

/* The READ is asked for again and nothing after it; when it is here the SEND fails. */
static void test_nak_before_answer(void **state)
{
	static const struct {
		unsigned syndrome;
		enum ibv_wc_status status;
	} kinds[] = {{0x61, IBV_WC_REM_INV_REQ_ERR}, {0x62, IBV_WC_REM_ACCESS_ERR},
		{0x63, IBV_WC_REM_OP_ERR}};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		read_and_send();
		net_ack(&net, 0, P0 + 1, kinds[i].syndrome);
		net_ack(&net, 0, P0 + 1, kinds[i].syndrome);
		net_run(&net, net.now);
		end_no_wc(net.end[0].scq);
		net_expect(&net, 0, 0, ROCE_READ_REQUEST, P0);
		assert_int_equal(1, net.n_log);
		answer_read();
		expect_wc(1, IBV_WC_RDMA_READ, 64);
		expect_status(2, kinds[i].status);
		expect_status(3, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(2, net.end[0].buf[1]);
		net_run(&net, FOREVER);
		assert_int_equal(1, net.n_log);
		net_close(&net);
	}
}

/* It never is: that is the READ's failure. */
static void test_nak_and_no_answer(void **state)
{
	(void)state;
	read_and_send();
	net_ack(&net, 0, P0 + 1, 0x62);
	net_run(&net, FOREVER);
	expect_status(1, IBV_WC_RETRY_EXC_ERR);
	expect_status(2, IBV_WC_WR_FLUSH_ERR);
	expect_status(3, IBV_WC_WR_FLUSH_ERR);
	net_close(&net);
}

/* A NAK of the READ itself is the READ's, also behind a part of its answer. */
static void test_nak_of_read(void **state)
{
	static const uint8_t data[1024];

	(void)state;
	open_with(&(struct net_options){.psn = {P0, 0}});
	net.mute[1] = true;
	assert_int_equal(0, read_at(1, 5000, 0, 0, 0));
	assert_int_equal(0, end_send(&net.end[0], IBV_WR_SEND, 2, 0, 64, 0, 0));
	net_run(&net, net.now);
	net_packet(&net, 0,
		(struct wire_hdr){.opcode = ROCE_READ_RESP_FIRST, .psn = P0, .syndrome = 0x1f},
		data, sizeof(data));
	net_ack(&net, 0, P0 + 3, 0x62);
	expect_status(1, IBV_WC_REM_ACCESS_ERR);
	expect_status(2, IBV_WC_WR_FLUSH_ERR);
	net_close(&net);
}

/* Not ready for the SEND: the READ need not wait for that. */
static void test_rnr_before_answer(void **state)
{
	uint64_t now;

	(void)state;
	read_and_send();
	now = net.now;
	net_ack(&net, 0, P0 + 1, 0x20 | 31); /* half a second */
	net_run(&net, net.now);
	net_expect(&net, 0, 0, ROCE_READ_REQUEST, P0);
	assert_int_equal(now, net.log[0].at);
	answer_read();
	expect_wc(1, IBV_WC_RDMA_READ, 64);
	net_ack(&net, 0, P0 + 1, 0x20 | 31);
	net.n_log = 0;
	net_run(&net, now + 491 * MS);
	assert_int_equal(0, net.n_log);
	net_run(&net, now + 492 * MS);
	net_expect(&net, 0, 0, ROCE_SEND_ONLY, P0 + 1);
	net_close(&net);
}

/* ---- rnic_qp_refuse ---- */

/* READs that were taken before are answered, also when they come again. */
static void test_refuse_behind_read(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];

	(void)state;
	for (unsigned lost = 0; lost < 2; lost++) {
		open_with(&(struct net_options){.psn = {P0, 0}, .timeout = 5});
		net.drop_from = 1;
		net.drop_opcode = ROCE_READ_RESP_ONLY;
		net.drop_nth = lost;
		net.mute[1] = true;
		assert_int_equal(0, read_at(1, 64, 0, 0, 0));
		assert_int_equal(0, end_send(a, IBV_WR_SEND, 2, 0, 64, 0, 0));
		net_packet(&net, 1,
			(struct wire_hdr){.opcode = ROCE_READ_REQUEST,
				.psn = P0,
				.va = (uintptr_t)b->buf,
				.rkey = rnic_mr_rkey(b->mr),
				.dmalen = 64},
			NULL, 0);
		net.mute[1] = false;
		assert_int_equal(0, rnic_qp_refuse(b->qp));
		net_run(&net, FOREVER);
		expect_wc(1, IBV_WC_RDMA_READ, 64);
		expect_status(2, IBV_WC_REM_OP_ERR);
		assert_memory_equal(b->buf, a->buf, 64);
		net_close(&net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_responses),
		cmocka_unit_test(test_remote_errors),
		cmocka_unit_test(test_local_error),
		cmocka_unit_test(test_dereg_meanwhile),
		cmocka_unit_test(test_lying_duplicates),
		cmocka_unit_test(test_replay_of_the_last),
		cmocka_unit_test(test_refused_behind_reads),
		cmocka_unit_test(test_atomic_then_refused),
		cmocka_unit_test(test_gone_behind_refused),
		cmocka_unit_test(test_nak_before_answer),
		cmocka_unit_test(test_nak_and_no_answer),
		cmocka_unit_test(test_nak_of_read),
		cmocka_unit_test(test_rnr_before_answer),
		cmocka_unit_test(test_refuse_behind_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
