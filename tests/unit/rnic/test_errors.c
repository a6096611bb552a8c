/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that are refused: what the responder says, what both sides report, and that nothing was
 * written. PSNs of requests from 0x100. */
#include <errno.h>
#include <string.h>

#include "tests/unit/rnic/net.h"

enum { P = 0x100, ACK = 0x1f };

static const struct net_options base = {.psn = {P, 0x200}};

static void open_with(struct net *net, const struct net_options *options)
{
	memset(net, 0, sizeof(*net));
	net_connect(net, options);
	net->n_log = 0;
}

static enum ibv_qp_state state_of(const struct rnic_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	rnic_qp_query(qp, &attr, &init);
	return attr.qp_state;
}

/* ---- sequences of raw requests against a responder with one receive of 3000 bytes ---- */

struct raw {
	uint8_t opcode;
	uint16_t len;
	uint32_t dmalen;
	uint8_t flags;
};

enum { BAD_KEY = 1, BEFORE = 2, SOLICITED = 4, ODD = 8 };

struct refusal {
	const char *what;
	struct raw raw[4];
	unsigned n;
	unsigned syndrome;
	unsigned drop;
	enum ibv_wc_status recv; /* of the posted receive */
	int event;               /* -1: none */
};

static const struct refusal refusals[] = {
	{"READ with a bad key", {{ROCE_READ_REQUEST, 0, 64, BAD_KEY}}, 1, 0x62, RNIC_DROP_ACCESS,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_ACCESS_ERR},
	{"READ out of bounds", {{ROCE_READ_REQUEST, 0, 64, BEFORE}}, 1, 0x62, RNIC_DROP_ACCESS,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_ACCESS_ERR},
	{"READ whose end is out of bounds", {{ROCE_READ_REQUEST, 0, 1 << 20, 0}}, 1, 0x62,
		RNIC_DROP_ACCESS, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_ACCESS_ERR},
	{"READ larger than any message", {{ROCE_READ_REQUEST, 0, 0x40000001, 0}}, 1, 0x61,
		RNIC_DROP_LENGTH, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"READ with payload", {{ROCE_READ_REQUEST, 4, 64, 0}}, 1, 0x61, RNIC_DROP_LENGTH,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"READ in a send", {{ROCE_SEND_FIRST, 1024, 0, 0}, {ROCE_READ_REQUEST, 0, 64, 0}}, 2, 0x61,
		RNIC_DROP_OPCODE_SEQ, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"CAS in a write", {{ROCE_WRITE_FIRST, 1024, 2000, 0}, {ROCE_CMP_SWAP, 0, 0, 0}}, 2, 0x61,
		RNIC_DROP_OPCODE_SEQ, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"CAS with a bad key", {{ROCE_CMP_SWAP, 0, 0, BAD_KEY}}, 1, 0x62, RNIC_DROP_ACCESS,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_ACCESS_ERR},
	{"FADD out of bounds", {{ROCE_FETCH_ADD, 0, 0, BEFORE}}, 1, 0x62, RNIC_DROP_ACCESS,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_ACCESS_ERR},
	{"FADD not aligned", {{ROCE_FETCH_ADD, 0, 0, ODD}}, 1, 0x61, RNIC_DROP_ACCESS,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"FADD with payload", {{ROCE_FETCH_ADD, 8, 0, 0}}, 1, 0x61, RNIC_DROP_LENGTH,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"SEND ONLY INV", {{ROCE_SEND_ONLY_INV, 64, 0, 0}}, 1, 0x62, RNIC_DROP_ACCESS,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_ACCESS_ERR},
	{"SEND LAST INV", {{ROCE_SEND_FIRST, 1024, 0, 0}, {ROCE_SEND_LAST_INV, 64, 0, 0}}, 2, 0x62,
		RNIC_DROP_ACCESS, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_ACCESS_ERR},
	{"SEND MIDDLE first", {{ROCE_SEND_MIDDLE, 1024, 0, 0}}, 1, 0x61, RNIC_DROP_OPCODE_SEQ,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"SEND LAST first", {{ROCE_SEND_LAST, 10, 0, 0}}, 1, 0x61, RNIC_DROP_OPCODE_SEQ,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"WRITE LAST first", {{ROCE_WRITE_LAST, 10, 0, 0}}, 1, 0x61, RNIC_DROP_OPCODE_SEQ,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"WRITE MIDDLE in a send", {{ROCE_SEND_FIRST, 1024, 0, 0}, {ROCE_WRITE_MIDDLE, 1024, 0, 0}},
		2, 0x61, RNIC_DROP_OPCODE_SEQ, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"SEND LAST in a write", {{ROCE_WRITE_FIRST, 1024, 2000, 0}, {ROCE_SEND_LAST, 976, 0, 0}},
		2, 0x61, RNIC_DROP_OPCODE_SEQ, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"FIRST in a send", {{ROCE_SEND_FIRST, 1024, 0, 0}, {ROCE_SEND_FIRST, 1024, 0, 0}}, 2, 0x61,
		RNIC_DROP_OPCODE_SEQ, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"ONLY in a write", {{ROCE_WRITE_FIRST, 1024, 2000, 0}, {ROCE_SEND_ONLY, 976, 0, 0}}, 2,
		0x61, RNIC_DROP_OPCODE_SEQ, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"short FIRST", {{ROCE_SEND_FIRST, 1023, 0, 0}}, 1, 0x61, RNIC_DROP_LENGTH,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"long FIRST", {{ROCE_SEND_FIRST, 1025, 0, 0}}, 1, 0x61, RNIC_DROP_LENGTH,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"long ONLY", {{ROCE_SEND_ONLY, 1025, 0, 0}}, 1, 0x61, RNIC_DROP_LENGTH,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"empty MIDDLE", {{ROCE_SEND_FIRST, 1024, 0, 0}, {ROCE_SEND_MIDDLE, 0, 0, 0}}, 2, 0x61,
		RNIC_DROP_LENGTH, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"empty LAST", {{ROCE_SEND_FIRST, 1024, 0, 0}, {ROCE_SEND_LAST, 0, 0, 0}}, 2, 0x61,
		RNIC_DROP_LENGTH, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"WRITE ONLY shorter than RETH", {{ROCE_WRITE_ONLY, 64, 65, 0}}, 1, 0x61, RNIC_DROP_LENGTH,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"WRITE ONLY longer than RETH", {{ROCE_WRITE_ONLY, 64, 63, 0}}, 1, 0x61, RNIC_DROP_LENGTH,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"WRITE FIRST that holds all", {{ROCE_WRITE_FIRST, 1024, 1024, 0}}, 1, 0x61,
		RNIC_DROP_LENGTH, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"WRITE LAST too early", {{ROCE_WRITE_FIRST, 1024, 2048, 0}, {ROCE_WRITE_LAST, 1000, 0, 0}},
		2, 0x61, RNIC_DROP_LENGTH, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"WRITE MIDDLE too far",
		{{ROCE_WRITE_FIRST, 1024, 2048, 0}, {ROCE_WRITE_MIDDLE, 1024, 0, 0}}, 2, 0x61,
		RNIC_DROP_LENGTH, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"WRITE larger than any message", {{ROCE_WRITE_FIRST, 1024, 0x40000001, 0}}, 1, 0x61,
		RNIC_DROP_LENGTH, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	{"WRITE with a bad key", {{ROCE_WRITE_ONLY, 64, 64, BAD_KEY}}, 1, 0x62, RNIC_DROP_ACCESS,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_ACCESS_ERR},
	{"WRITE out of bounds", {{ROCE_WRITE_ONLY, 64, 64, BEFORE}}, 1, 0x62, RNIC_DROP_ACCESS,
		IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_ACCESS_ERR},
	{"WRITE whose end is out of bounds", {{ROCE_WRITE_FIRST, 1024, 1 << 20, 0}}, 1, 0x62,
		RNIC_DROP_ACCESS, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_ACCESS_ERR},
	{"send longer than the receive",
		{{ROCE_SEND_FIRST, 1024, 0, 0}, {ROCE_SEND_MIDDLE, 1024, 0, 0},
			{ROCE_SEND_LAST, 953, 0, 0}},
		3, 0x61, RNIC_DROP_LENGTH, IBV_WC_LOC_LEN_ERR, -1},
};

static void try_refusal(struct net *net, const struct refusal *r)
{
	static const uint8_t data[2048] = {1, 2, 3};
	struct end *b = &net->end[1];
	uint32_t good = r->n - 1, key = rnic_mr_rkey(b->mr);
	struct ibv_wc wc;

	assert_int_equal(0, end_recv(b, 77, 0, 3000));
	for (unsigned i = 0; i < r->n; i++) {
		const struct raw *raw = &r->raw[i];
		struct wire_hdr hdr = {.opcode = raw->opcode,
			.psn = P + i,
			.va = (uintptr_t)b->buf + 10000 - (raw->flags & BEFORE ? 10001 : 0) +
			      (raw->flags & ODD ? 4 : 0),
			.rkey = raw->flags & BAD_KEY ? key + 1 : key,
			.dmalen = raw->dmalen};

		net_packet(net, 1, hdr, data, raw->len);
	}
	net->mute[1] = true;
	net_run(net, net->now);
	net_expect_ack(net, 0, 1, P + good, r->syndrome, 0);
	assert_int_equal(1, net->n_log);
	assert_int_equal(1, rnic_drop_count(b->rnic, r->drop));
	assert_int_equal(1, net_drops(b->rnic));
	assert_int_equal(IBV_QPS_ERR, state_of(b->qp));
	wc = end_wc(b->rcq);
	assert_int_equal(r->recv, wc.status);
	assert_int_equal(77, wc.wr_id);
	assert_int_equal(r->event >= 0, b->n_event);
	if (r->event >= 0)
		assert_int_equal(r->event, b->event[0]);
	/* From now on it is silent. */
	net_packet(net, 1, (struct wire_hdr){.opcode = ROCE_SEND_ONLY, .psn = P + good}, data, 4);
	net_run(net, net->now);
	assert_int_equal(1, net->n_log);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_QP_STATE));
}

static void test_refusals(void **state)
{
	static struct net net;

	(void)state;
	for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *r = &refusals[i];
		uint8_t sum = 0;

		print_message("  %s\n", r->what);
		open_with(&net, &base);
		memset(net.end[1].buf, 0, net.end[1].buf_len);
		try_refusal(&net, r);
		/* Only what came before the refused packet was written. */
		for (size_t j = (r->n - 1) * 1024; j < net.end[1].buf_len; j++)
			sum |= j >= 10000 && j < 11024 && r->raw[0].opcode == ROCE_WRITE_FIRST &&
					       r->n > 1
				       ? 0
				       : net.end[1].buf[j];
		assert_int_equal(0, sum);
		net_close(&net);
	}
}

/* Remote writes need permission of the QP, too. */
static void test_qp_access(void **state)
{
	static struct net net;
	struct net_options options = base;

	(void)state;
	options.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	open_with(&net, &options);
	assert_int_equal(0, end_send(&net.end[0], IBV_WR_RDMA_WRITE, 1, 0, 64,
				    (uintptr_t)net.end[1].buf, rnic_mr_rkey(net.end[1].mr)));
	net_run(&net, FOREVER);
	assert_int_equal(IBV_WC_REM_INV_REQ_ERR, end_wc(net.end[0].scq).status);
	assert_int_equal(1, rnic_drop_count(net.end[1].rnic, RNIC_DROP_ACCESS));
	assert_int_equal(IBV_EVENT_QP_ACCESS_ERR, net.end[1].event[0]);
	net_close(&net);
}

/* And of the region. */
static void test_mr_access(void **state)
{
	static struct net net;
	struct rnic_mr *local, *other_pd;
	struct rnic_pd *pd;
	struct end *b = &net.end[1];

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_with(&net, &base);
		assert_int_equal(0, rnic_pd_alloc(b->rnic, &pd));
		assert_int_equal(0, rnic_mr_reg(b->pd, b->buf, 4096, (uintptr_t)b->buf,
					    IBV_ACCESS_LOCAL_WRITE, &local));
		assert_int_equal(
			0, rnic_mr_reg(pd, b->buf, 4096, (uintptr_t)b->buf,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &other_pd));
		assert_int_equal(0, end_send(&net.end[0], IBV_WR_RDMA_WRITE, 1, 0, 64,
					    (uintptr_t)b->buf, rnic_mr_rkey(i ? other_pd : local)));
		net_run(&net, FOREVER);
		assert_int_equal(IBV_WC_REM_ACCESS_ERR, end_wc(net.end[0].scq).status);
		assert_int_equal(0xee, b->buf[0]);
		assert_int_equal(0, rnic_mr_dereg(local));
		assert_int_equal(0, rnic_mr_dereg(other_pd));
		assert_int_equal(0, rnic_pd_free(pd));
		net_close(&net);
	}
}

/* A region that goes away in the middle of a write. */
static void test_dereg_midway(void **state)
{
	static struct net net;
	static const uint8_t data[1024] = {1};
	struct end *b = &net.end[1];
	struct wire_hdr hdr;
	struct rnic_mr *mr;

	(void)state;
	open_with(&net, &base);
	assert_int_equal(0, rnic_mr_reg(b->pd, b->buf, 4096, 0x1000,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr));
	hdr = (struct wire_hdr){.opcode = ROCE_WRITE_FIRST,
		.psn = P,
		.va = 0x1000,
		.rkey = rnic_mr_rkey(mr),
		.dmalen = 2048};
	net_packet(&net, 1, hdr, data, 1024);
	assert_int_equal(1, b->buf[0]);
	assert_int_equal(0, rnic_mr_dereg(mr));
	net_packet(&net, 1, (struct wire_hdr){.opcode = ROCE_WRITE_LAST, .psn = P + 1}, data, 1024);
	assert_int_equal(0xee, b->buf[1024]);
	net.mute[1] = true;
	net_run(&net, net.now);
	net_expect_ack(&net, 0, 1, P + 1, 0x62, 0);
	net_close(&net);
}

/* ---- receive buffers that are not what the program said ---- */

static void test_recv_protection(void **state)
{
	static struct net net;
	struct end *b = &net.end[1];
	struct rnic_mr *readonly;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct ibv_sge sge = {(uintptr_t)b->buf, 64, 0};
		struct ibv_recv_wr wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1};

		open_with(&net, &base);
		assert_int_equal(
			0, rnic_mr_reg(b->pd, b->buf, 4096, (uintptr_t)b->buf, 0, &readonly));
		sge.addr = (uintptr_t)b->buf + (i == 2 ? b->buf_len - 10 : 0);
		sge.lkey = i == 0   ? rnic_mr_lkey(b->mr) + 1
			   : i == 1 ? rnic_mr_lkey(readonly)
				    : rnic_mr_lkey(b->mr);
		assert_int_equal(0, rnic_post_recv(b->qp, &wr));
		assert_int_equal(0, end_recv(b, 6, 0, 64));
		assert_int_equal(0, end_send(&net.end[0], IBV_WR_SEND, 1, 0, 64, 0, 0));
		net_run(&net, FOREVER);
		assert_int_equal(IBV_WC_LOC_PROT_ERR, end_wc(b->rcq).status);
		assert_int_equal(IBV_WC_WR_FLUSH_ERR, end_wc(b->rcq).status);
		assert_int_equal(IBV_WC_REM_OP_ERR, end_wc(net.end[0].scq).status);
		assert_int_equal(0xee, b->buf[0]);
		assert_int_equal(0, rnic_mr_dereg(readonly));
		net_close(&net);
	}
}

/* ---- the requester's side ---- */

static void test_nak_kinds(void **state)
{
	static struct net net;
	static const struct {
		unsigned syndrome;
		enum ibv_wc_status status;
	} kinds[] = {{0x61, IBV_WC_REM_INV_REQ_ERR}, {0x62, IBV_WC_REM_ACCESS_ERR},
		{0x63, IBV_WC_REM_OP_ERR}};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		open_with(&net, &base);
		net.mute[0] = true;
		for (unsigned j = 0; j < 4; j++)
			assert_int_equal(0, end_send(&net.end[0], IBV_WR_SEND, j, 0, 64, 0, 0));
		net_run(&net, net.now);
		net_ack(&net, 0, P + 1, kinds[i].syndrome);
		for (unsigned j = 0; j < 4; j++) {
			struct ibv_wc wc = end_wc(net.end[0].scq);

			assert_int_equal(j, wc.wr_id);
			assert_int_equal(j == 0   ? IBV_WC_SUCCESS
					 : j == 1 ? kinds[i].status
						  : IBV_WC_WR_FLUSH_ERR,
				wc.status);
			assert_int_equal(rnic_qp_num(net.end[0].qp), wc.qp_num);
		}
		assert_int_equal(IBV_QPS_ERR, state_of(net.end[0].qp));
		net_run(&net, FOREVER);
		assert_int_equal(4, net.n_log);
		net_close(&net);
	}
}

/* A local key that is wrong fails when its turn has come: what was posted before is finished first,
 * though it has to be sent again. */
static void test_local_protection(void **state)
{
	static struct net net;
	struct end *a = &net.end[0];
	struct ibv_sge sge[2] = {{0, 2000, 0}, {0, 2000, 0}};
	struct ibv_send_wr wr = {
		.wr_id = 2, .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_RDMA_WRITE};

	(void)state;
	open_with(&net, &base);
	wr.wr.rdma.remote_addr = (uintptr_t)net.end[1].buf;
	wr.wr.rdma.rkey = rnic_mr_rkey(net.end[1].mr);
	sge[0] = (struct ibv_sge){(uintptr_t)a->buf, 2000, rnic_mr_lkey(a->mr)};
	sge[1] = (struct ibv_sge){(uintptr_t)a->buf + a->buf_len - 1999, 2000, rnic_mr_lkey(a->mr)};
	net.drop_opcode = ROCE_WRITE_FIRST;
	net.drop_nth = 1;
	assert_int_equal(0, end_send(a, IBV_WR_RDMA_WRITE, 1, 0, 4096, wr.wr.rdma.remote_addr,
				    wr.wr.rdma.rkey));
	assert_int_equal(0, rnic_post_send(a->qp, &wr));
	assert_int_equal(0,
		end_send(a, IBV_WR_RDMA_WRITE, 3, 0, 64, wr.wr.rdma.remote_addr, wr.wr.rdma.rkey));
	net_run(&net, FOREVER);
	for (unsigned i = 1; i <= 3; i++) {
		struct ibv_wc wc = end_wc(a->scq);

		assert_int_equal(i, wc.wr_id);
		assert_int_equal(i == 1   ? IBV_WC_SUCCESS
				 : i == 2 ? IBV_WC_LOC_PROT_ERR
					  : IBV_WC_WR_FLUSH_ERR,
			wc.status);
	}
	assert_int_equal(IBV_QPS_ERR, state_of(a->qp));
	net_close(&net);
}

/* The key fails only on the way back, and the packet had arrived the first time after all. */
static void test_fault_outrun(void **state)
{
	static struct net net;
	struct end *a = &net.end[0];
	struct rnic_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

	(void)state;
	open_with(&net, &base);
	net.mute[0] = true;
	assert_int_equal(0, rnic_mr_reg(a->pd, a->buf, 64, 0, 0, &mr));
	sge = (struct ibv_sge){0, 64, rnic_mr_lkey(mr)};
	assert_int_equal(0, end_send(a, IBV_WR_SEND, 1, 0, 64, 0, 0));
	assert_int_equal(0, rnic_post_send(a->qp, &wr));
	assert_int_equal(0, end_send(a, IBV_WR_SEND, 3, 0, 64, 0, 0));
	net_run(&net, net.now);
	assert_int_equal(3, net.n_log);
	assert_int_equal(0, rnic_mr_dereg(mr));
	net_ack(&net, 0, P, 0x60);
	net_run(&net, net.now);
	assert_int_equal(4, net.n_log); /* only the first again */
	net_ack(&net, 0, P + 1, ACK);
	net_run(&net, net.now);
	assert_int_equal(5, net.n_log);
	net_ack(&net, 0, P + 2, ACK);
	for (unsigned i = 1; i <= 3; i++)
		assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
	net_close(&net);
}

/* ---- frames that never reach the transport ---- */

/* One side takes nothing any more: what the other has outstanding fails at once, and what it sends
 * later too; the one's own requests go on. */
static void test_refuse(void **state)
{
	struct net net;
	struct end *a = &net.end[0], *b = &net.end[1];

	(void)state;
	open_with(&net, &base);
	assert_int_equal(end_send(a, IBV_WR_SEND, 1, 0, 3000, 0, 0), 0);
	net.mute[0] = true; /* it does not arrive */
	net_run(&net, net.now + MS);
	net.mute[0] = false;
	assert_int_equal(rnic_qp_refuse(b->qp), 0);
	net_run(&net, net.now + MS);
	assert_int_equal(end_wc(a->scq).status, IBV_WC_REM_OP_ERR);
	assert_int_equal(state_of(a->qp), IBV_QPS_ERR);
	assert_int_equal(rnic_qp_refuse(a->qp), -EINVAL);
	net_close(&net);
	/* Nothing was outstanding: the NAK says nothing, that of the next request does. */
	open_with(&net, &base);
	assert_int_equal(end_recv(a, 3, 0, 100), 0);
	assert_int_equal(end_recv(b, 4, 0, 100), 0);
	assert_int_equal(rnic_qp_refuse(b->qp), 0);
	net_run(&net, net.now + MS);
	end_no_wc(a->scq);
	assert_int_equal(end_send(b, IBV_WR_SEND, 5, 0, 10, 0, 0), 0);
	net_run(&net, net.now + MS);
	assert_int_equal(end_wc(b->scq).status, IBV_WC_SUCCESS);
	assert_int_equal(end_wc(a->rcq).status, IBV_WC_SUCCESS);
	assert_int_equal(end_send(a, IBV_WR_SEND, 2, 0, 10, 0, 0), 0);
	net_run(&net, net.now + MS);
	assert_int_equal(end_wc(a->scq).status, IBV_WC_REM_OP_ERR);
	end_no_wc(b->rcq); /* the receive is still there */
	net_close(&net);
}

static void test_dispatch_drops(void **state)
{
	static struct net net;
	struct end *b = &net.end[1];
	struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY, .psn = P};
	struct wire_flow flow = {.ttl = 64};
	uint8_t frame[256];
	int len;

	(void)state;
	open_with(&net, &base);
	assert_int_equal(0, end_recv(b, 1, 0, 64));
	hdr.dqpn = 0x777777;
	net_packet(&net, 1, hdr, "data", 4);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_NO_QP));
	hdr.dqpn = 0;
	hdr.opcode = 0x20 | ROCE_SEND_ONLY; /* UC */
	net_packet(&net, 1, hdr, "data", 4);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_QP_TYPE));
	hdr.opcode = ROCE_READ_RESP_ONLY;
	net_packet(&net, 1, hdr, "data", 4);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_ACK_RANGE));
	hdr.opcode = ROCE_CNP;
	net_packet(&net, 1, hdr, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_int_equal(1, rnic_count(b->rnic, RNIC_C_CNP_RX));

	rnic_mac(b->rnic, 0, flow.dmac);
	rnic_gid(b->rnic, 0, 1, &flow.dst);
	flow.src = wire_ip_from4(0x0a4d0099);
	hdr = (struct wire_hdr){.opcode = ROCE_SEND_ONLY, .psn = P, .dqpn = rnic_qp_num(b->qp)};
	len = wire_build_frame(frame, sizeof(frame), &flow, &hdr, "data", 4);
	net_inject(&net, 1, frame, (size_t)len);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_SOURCE));
	flow.dst = wire_ip_from4(0x0a4d0098);
	len = wire_build_frame(frame, sizeof(frame), &flow, &hdr, "data", 4);
	net_inject(&net, 1, frame, (size_t)len);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_NOT_MINE));
	rnic_gid(net.end[0].rnic, 0, 1, &flow.src);
	rnic_gid(b->rnic, 0, 1, &flow.dst);
	flow.dmac[5] ^= 1; /* a neighbour's MAC */
	len = wire_build_frame(frame, sizeof(frame), &flow, &hdr, "data", 4);
	net_inject(&net, 1, frame, (size_t)len);
	assert_int_equal(2, rnic_drop_count(b->rnic, RNIC_DROP_NOT_MINE));
	flow.vlan = 5;
	rnic_mac(b->rnic, 0, flow.dmac);
	len = wire_build_frame(frame, sizeof(frame), &flow, &hdr, "data", 4);
	net_inject(&net, 1, frame, (size_t)len);
	assert_int_equal(3, rnic_drop_count(b->rnic, RNIC_DROP_NOT_MINE));
	net_inject(&net, 1, frame, 13);
	assert_int_equal(1, rnic_drop_count(b->rnic, WIRE_PARSE_SHORT));
	end_no_wc(b->rcq);
	/* A broadcast MAC is fine. */
	flow.vlan = 0;
	memset(flow.dmac, 0xff, 6);
	len = wire_build_frame(frame, sizeof(frame), &flow, &hdr, "data", 4);
	net_inject(&net, 1, frame, (size_t)len);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(b->rcq).status);
	net_close(&net);
}

static void test_names(void **state)
{
	(void)state;
	for (unsigned i = 1; i < RNIC_N_DROPS; i++) {
		assert_non_null(rnic_drop_name(i));
		assert_non_null(rnic_drop_text(i));
		for (unsigned j = 1; j < i; j++)
			assert_string_not_equal(rnic_drop_name(i), rnic_drop_name(j));
	}
	assert_string_equal("parse_short", rnic_drop_name(WIRE_PARSE_SHORT));
	assert_string_equal("rnic_not_mine", rnic_drop_name(RNIC_DROP_NOT_MINE));
	for (unsigned i = 0; i < RNIC_N_COUNTERS; i++)
		assert_non_null(rnic_counter_name((enum rnic_counter)i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_qp_access),
		cmocka_unit_test(test_mr_access),
		cmocka_unit_test(test_dereg_midway),
		cmocka_unit_test(test_recv_protection),
		cmocka_unit_test(test_nak_kinds),
		cmocka_unit_test(test_local_protection),
		cmocka_unit_test(test_fault_outrun),
		cmocka_unit_test(test_refuse),
		cmocka_unit_test(test_dispatch_drops),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
