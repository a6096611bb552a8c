/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-I, rule by rule (docs/inc-protocol.md, section 5): one switch, whose peers are software
 * RNICs driven message by message over a wire of no delay. The collectives end to end are in
 * tests/integration. */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dataplane/inc/mode1.h"

enum { MTU = 256, MAX_PEERS = 4, ARENA = 1 << 20, PEER_BUF = 256 << 10, PEER_WR = 256 };

static const uint64_t MS = 1000000;

struct peer {
	struct rnic *rnic;
	struct rnic_pd *pd;
	struct rnic_mr *mr;
	struct rnic_cq *cq;
	struct rnic_qp *qp;
	uint8_t *mem; /* sends from the lower half, receives into the upper */
	unsigned n_in, n_sent, posted;
	struct ibv_wc in[PEER_WR];
	enum ibv_wc_status bad;
	bool dead;
};

struct box {
	struct mode1_device *dev;
	struct mode1 *m;
	struct inc_group *g;
	struct inc_arena arena;
	unsigned n;
	struct peer peer[MAX_PEERS];
	uint64_t now;
};

struct shape {
	unsigned n; /* peers; the last is the parent if parent */
	bool parent;
	uint16_t m, w;
	uint32_t start;
};

static struct wire_ip ip_of(unsigned i)
{
	return wire_ip_from4(0x0a000000 + i);
}

static void open_peer(struct box *b, unsigned i)
{
	struct peer *p = &b->peer[i];
	struct rnic_config rc = {
		.n_ip = 1, .port_mtu = 4200, .seed = i + 5, .mac = {2, 0, 0, 0, 1}};
	struct rnic_qp_init init = {.type = IBV_QPT_RC,
		.cap = {.max_send_wr = PEER_WR,
			.max_recv_wr = PEER_WR,
			.max_send_sge = 1,
			.max_recv_sge = 1}};

	rc.mac[5] = (uint8_t)i;
	rc.ip[0] = ip_of(10 + i);
	assert_int_equal(rnic_create(&rc, &p->rnic), 0);
	assert_int_equal(rnic_pd_alloc(p->rnic, &p->pd), 0);
	p->mem = calloc(2, PEER_BUF);
	assert_int_equal(rnic_mr_reg(p->pd, p->mem, (uint64_t)2 * PEER_BUF, (uintptr_t)p->mem,
				 IBV_ACCESS_LOCAL_WRITE, &p->mr),
		0);
	assert_int_equal(rnic_cq_create(p->rnic, 4 * PEER_WR, NULL, &p->cq), 0);
	init.pd = p->pd;
	init.send_cq = init.recv_cq = p->cq;
	init.sq_sig_all = true;
	assert_int_equal(rnic_qp_create(p->rnic, &init, &p->qp), 0);
}

static void connect_peer(struct box *b, unsigned i)
{
	static const uint8_t switch_mac[6] = {2, 0, 0, 0, 0, 1};
	struct peer *p = &b->peer[i];
	struct wire_ip sw = ip_of(1);
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = inc_ep_at(b->g, i)->local_qpn,
		.rq_psn = b->g->start_psn,
		.sq_psn = b->g->start_psn,
		.min_rnr_timer = 6,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh.sgid_index = 1}};

	assert_int_equal(rnic_neigh_add(p->rnic, &sw, switch_mac), 0);
	memcpy(&a.ah_attr.grh.dgid, sw.b, 16);
	assert_int_equal(
		rnic_qp_modify(p->qp, &a,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
			b->now),
		0);
	a.qp_state = IBV_QPS_RTR;
	assert_int_equal(
		rnic_qp_modify(p->qp, &a,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
			b->now),
		0);
	a.qp_state = IBV_QPS_RTS;
	assert_int_equal(rnic_qp_modify(p->qp, &a,
				 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					 IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
				 b->now),
		0);
}

enum { PART = 5 };

static void make_group(struct box *b, const struct shape *s)
{
	struct inc_ep_spec *ep = calloc(s->n, sizeof(*ep));
	struct inc_group_spec spec = {.name = "test",
		.mode = INC_MODE_1,
		.kind = INC_MIXED,
		.mtu = MTU,
		.m = s->m,
		.w = s->w,
		.start_psn = s->start,
		.n_ranks = (uint16_t)s->n,
		.n_ep = (uint8_t)s->n,
		.ep = ep};
	char err[INC_ERR_LEN];
	unsigned parts = 0;
	int rc;

	for (unsigned i = 0; i < s->n; i++) {
		ep[i].remote_ip = ip_of(10 + i);
		ep[i].local_ip = ip_of(1);
		ep[i].remote_qpn = rnic_qp_num(b->peer[i].qp);
		memcpy(ep[i].dmac, (uint8_t[]){2, 0, 0, 0, 1, (uint8_t)i}, 6);
		ep[i].parent = s->parent && i + 1 == s->n;
		ep[i].host = !ep[i].parent;
		ep[i].n_ranks = 1;
		ep[i].ranks[0] = (uint16_t)i;
	}
	assert_int_equal(inc_group_check(&spec, err), 0);
	assert_true(inc_group_payload_bytes(&spec) <= ARENA);
	assert_int_equal(
		inc_group_payload_bytes(&spec), ((s->w + 2u) * s->n + 2u * s->w) * s->m * MTU);
	b->g = calloc(1, inc_group_bytes(&spec));
	inc_group_init(b->g, &spec, 3, 1, 0);
	assert_int_equal(mode1_create(b->dev, b->g, &b->m, err), 0);
	assert_int_equal(inc_group_activate(b->g, err), 0);
	/* No part of it takes long: at most PART receives are posted at a time. */
	while ((rc = mode1_connect_part(b->m, PART, b->now, err)) > 0)
		parts++;
	assert_int_equal(rc, 0);
	assert_int_equal(parts, b->n * ((s->w + 2 + PART - 1) / PART));
	free(ep);
}

static void open_box(struct box *b, const struct shape *s)
{
	struct mode1_device_config config = {
		.mac = {2, 0, 0, 0, 0, 1}, .ip = {ip_of(1)}, .n_ip = 1, .seed = 1};

	memset(b, 0, sizeof(*b));
	b->n = s->n;
	b->now = 1000 * MS;
	b->arena = config.arena = (struct inc_arena){calloc(1, ARENA), ARENA};
	assert_int_equal(mode1_device_create(&config, &b->dev), 0);
	for (unsigned i = 0; i < s->n; i++)
		open_peer(b, i);
	make_group(b, s);
	for (unsigned i = 0; i < s->n; i++)
		connect_peer(b, i);
}

static void close_box(struct box *b)
{
	mode1_destroy(b->m);
	assert_int_equal(mode1_n_groups(b->dev), 0);
	mode1_device_destroy(b->dev);
	for (unsigned i = 0; i < b->n; i++) {
		rnic_qp_destroy(b->peer[i].qp);
		rnic_cq_destroy(b->peer[i].cq);
		rnic_mr_dereg(b->peer[i].mr);
		rnic_pd_free(b->peer[i].pd);
		rnic_destroy(b->peer[i].rnic);
		free(b->peer[i].mem);
	}
	free(b->g);
	free(b->arena.base);
}

static void reap(struct peer *p)
{
	struct ibv_wc wc;

	while (rnic_cq_poll(p->cq, 1, &wc) == 1) {
		if (wc.status != IBV_WC_SUCCESS)
			p->bad = p->bad ? p->bad : wc.status;
		else if (wc.opcode == IBV_WC_RECV)
			p->in[p->n_in++] = wc;
		else
			p->n_sent++;
	}
}

/* Frames to and fro until nobody has any; true if there was one. */
static bool exchange(struct box *b)
{
	struct rnic *sw = mode1_rnic(b->dev);
	struct rnic_frame f;
	uint8_t flat[4400];
	bool any = false;
	unsigned ep;

	for (unsigned i = 0; i < b->n; i++)
		while (!b->peer[i].dead && rnic_tx(b->peer[i].rnic, &f, b->now)) {
			int len = rnic_frame_flatten(&f, flat, sizeof(flat));

			assert_true(len > 0);
			rnic_rx(sw, flat, (size_t)len, b->now);
			any = true;
		}
	mode1_run(b->dev, b->now);
	while (rnic_tx(sw, &f, b->now)) {
		int len = rnic_frame_flatten(&f, flat, sizeof(flat));

		assert_ptr_equal(mode1_owner(b->dev, f.qpn, &ep), b->g);
		if (!b->peer[ep].dead)
			rnic_rx(b->peer[ep].rnic, flat, (size_t)len, b->now);
		any = true;
	}
	return any;
}

static void run(struct box *b, uint64_t ns)
{
	uint64_t end = b->now + ns;

	for (;;) {
		uint64_t next;

		while (exchange(b))
			;
		next = rnic_deadline(mode1_rnic(b->dev));
		for (unsigned i = 0; i < b->n; i++) {
			uint64_t at = rnic_deadline(b->peer[i].rnic);

			reap(&b->peer[i]);
			next = !b->peer[i].dead && at < next ? at : next;
		}
		if (next > end)
			break;
		b->now = next > b->now ? next : b->now + 1;
		rnic_timer(mode1_rnic(b->dev), b->now);
		for (unsigned i = 0; i < b->n; i++)
			rnic_timer(b->peer[i].rnic, b->now);
	}
	b->now = end;
}

static void post_receives(struct box *b, unsigned peer, unsigned n, unsigned size)
{
	struct peer *p = &b->peer[peer];

	for (unsigned i = 0; i < n; i++) {
		uint8_t *at = p->mem + PEER_BUF + (size_t)p->posted * size % PEER_BUF;
		struct ibv_sge sge = {(uintptr_t)at, size, rnic_mr_lkey(p->mr)};
		struct ibv_recv_wr wr = {.wr_id = (uintptr_t)at, .sg_list = &sge, .num_sge = 1};

		assert_int_equal(rnic_post_recv(p->qp, &wr), 0);
		p->posted++;
	}
}

static void all_receive(struct box *b, unsigned n, unsigned size)
{
	for (unsigned i = 0; i < b->n; i++)
		post_receives(b, i, n, size);
}

static void send_bytes(struct box *b, unsigned peer, const void *bytes, unsigned len, uint32_t imm)
{
	static unsigned at;
	struct peer *p = &b->peer[peer];
	struct ibv_sge sge = {.length = len, .lkey = rnic_mr_lkey(p->mr)};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

	at = (at + 1024) % (PEER_BUF - 1024);
	memcpy(p->mem + at, bytes, len);
	sge.addr = (uintptr_t)(p->mem + at);
	if (imm) {
		wr.opcode = IBV_WR_SEND_WITH_IMM;
		wr.imm_data = htobe32(imm);
	}
	assert_int_equal(rnic_post_send(p->qp, &wr), 0);
}

static uint32_t imm_of(enum inc_prim prim, unsigned root, unsigned seq)
{
	return 1u << 29 | (uint32_t)prim << 26 |
	       (uint32_t)(prim == INC_BC ? REDUCE_NONE : REDUCE_SUM) << 23 |
	       (uint32_t)REDUCE_INT32 << 19 | root << 8 | (seq & 0xff);
}

static void control(struct box *b, unsigned peer, uint32_t imm, unsigned bytes)
{
	uint32_t c[8] = {0x31434e49, (bytes + MTU - 1) / MTU, bytes, 0, 0, b->g->m};

	send_bytes(b, peer, c, sizeof(c), imm);
}

/* words values: value, value + 1 ... */
static void data(struct box *b, unsigned peer, int32_t value, unsigned words)
{
	int32_t v[1024];

	for (unsigned i = 0; i < words; i++)
		v[i] = value + (int32_t)i;
	send_bytes(b, peer, v, words * 4, 0);
}

static void expect(
	struct box *b, unsigned peer, unsigned index, int32_t value, int32_t step, unsigned words)
{
	struct peer *p = &b->peer[peer];
	int32_t v;

	assert_true(index < p->n_in);
	assert_int_equal(p->in[index].byte_len, words * 4);
	assert_false(p->in[index].wc_flags & IBV_WC_WITH_IMM);
	for (unsigned k = 0; k < words; k++) {
		memcpy(&v, (uint8_t *)(uintptr_t)p->in[index].wr_id + k * 4, 4);
		assert_int_equal(v, value + (int32_t)k * step);
	}
}

static void expect_control(struct box *b, unsigned peer, unsigned index, uint32_t imm)
{
	assert_true(index < b->peer[peer].n_in);
	assert_int_equal(b->peer[peer].in[index].byte_len, INC_CTRL_LEN);
	assert_int_equal(be32toh(b->peer[peer].in[index].imm_data), imm);
}

static void assert_failed(struct box *b, enum inc_fail reason, unsigned ep)
{
	assert_int_equal(b->g->state, INC_FAILED);
	assert_int_equal(b->g->fail_reason, reason);
	assert_int_equal(b->g->fail_ep, ep);
}

static const struct shape star3 = {.n = 3, .m = 2, .w = 4, .start = 0xfffffe};

/* Nothing goes on before all have sent; two packets are one message. The numbers wrap. */
static void test_allreduce(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, &star3);
	all_receive(&b, 6, 512);
	for (unsigned i = 0; i < 3; i++) {
		control(&b, i, imm_of(INC_AR, 0, 0), 512 + 100);
		data(&b, i, 100 * (int)i, 128);
		run(&b, 2 * MS);
		assert_int_equal(b.peer[0].n_in, i < 2 ? 0 : 2);
	}
	for (unsigned i = 0; i < 3; i++)
		data(&b, i, 7, 25);
	run(&b, 2 * MS);
	for (unsigned i = 0; i < 3; i++) {
		expect_control(&b, i, 0, imm_of(INC_AR, 0, 0));
		expect(&b, i, 1, 300, 3, 128);
		expect(&b, i, 2, 21, 3, 25);
		assert_int_equal(b.peer[i].n_sent, 3);
	}
	assert_int_equal(b.g->count[INC_C_CONTROLS], 1);
	assert_int_equal(b.g->count[INC_C_COMPLETED], 3);
	assert_int_equal(b.g->next_ctrl, 1);
	close_box(&b);
}

/* A root's data may be there before the others have agreed: they wait, behind the control. */
static void test_mixed_roots(void **state)
{
	const uint32_t bc = imm_of(INC_BC, 1, 0), red = imm_of(INC_RED, 2, 1);
	struct box b;

	(void)state;
	open_box(&b, &star3);
	all_receive(&b, 8, 512);
	control(&b, 1, bc, 512);
	data(&b, 1, 5, 128);
	run(&b, 2 * MS);
	assert_int_equal(b.peer[0].n_in, 0);
	control(&b, 0, bc, 512);
	control(&b, 0, red, 512);
	data(&b, 0, 1000, 128);
	control(&b, 1, red, 512);
	data(&b, 1, 1, 128);
	run(&b, 2 * MS);
	assert_int_equal(b.peer[2].n_in, 0); /* its own control is missing */
	control(&b, 2, bc, 512);
	control(&b, 2, red, 512);
	run(&b, 2 * MS);
	expect_control(&b, 0, 0, bc);
	expect(&b, 0, 1, 5, 1, 128);
	expect_control(&b, 0, 2, red);
	assert_int_equal(b.peer[0].n_in, 3);
	expect_control(&b, 1, 0, bc);
	expect_control(&b, 1, 1, red);
	assert_int_equal(b.peer[1].n_in, 2);
	expect(&b, 2, 1, 5, 1, 128);
	expect(&b, 2, 3, 1001, 2, 128);
	assert_int_equal(b.peer[2].n_in, 4);
	close_box(&b);
}

/* An interior switch: the sum goes up, what comes from the parent goes down. */
static void test_interior(void **state)
{
	static const struct shape inner = {.n = 3, .parent = true, .m = 1, .w = 2, .start = 9};
	const uint32_t imm = imm_of(INC_AR, 0, 0), red = imm_of(INC_RED, 0, 1);
	struct box b;

	(void)state;
	open_box(&b, &inner);
	all_receive(&b, 6, 256);
	for (unsigned i = 0; i < 2; i++) {
		control(&b, i, imm, 256);
		data(&b, i, 10, 64);
	}
	run(&b, 2 * MS);
	expect_control(&b, 2, 0, imm);
	expect(&b, 2, 1, 20, 2, 64);
	assert_int_equal(b.peer[0].n_in, 0);
	control(&b, 2, imm, 256);
	data(&b, 2, 4711, 64);
	run(&b, 2 * MS);
	for (unsigned i = 0; i < 2; i++)
		expect(&b, i, 1, 4711, 1, 64);
	/* Rank 0 is below: the parent's data are added to rank 1's. */
	for (unsigned i = 0; i < 2; i++)
		control(&b, i, red, 256);
	data(&b, 1, 100, 64);
	run(&b, 2 * MS);
	control(&b, 2, red, 256);
	data(&b, 2, 1, 64);
	run(&b, 2 * MS);
	expect(&b, 0, 3, 101, 2, 64);
	assert_int_equal(b.peer[2].n_in, 3);
	close_box(&b);
}

/* Many laps with the smallest window; one rank is slow, the others run into RNR and no further. */
static void window(unsigned m, unsigned w, unsigned laps)
{
	const struct shape s = {.n = 2, .m = (uint16_t)m, .w = (uint16_t)w, .start = 0xfffff0};
	unsigned words = m * MTU / 4, in = 0;
	struct box b;

	open_box(&b, &s);
	all_receive(&b, laps + 1, words * 4);
	for (unsigned i = 0; i < 2; i++)
		control(&b, i, imm_of(INC_AR, 0, 0), laps * words * 4);
	for (unsigned k = 0; k < laps; k++)
		data(&b, 0, (int)k, words);
	run(&b, 20 * MS);
	/* W + 2 receives after the control was given back. */
	assert_int_equal(b.peer[0].n_sent, 1 + w + 2);
	assert_true(rnic_count(mode1_rnic(b.dev), RNIC_C_RNR_TX) > 0);
	for (unsigned k = 0; k < laps; k++) {
		data(&b, 1, 1, words);
		run(&b, 1 * MS);
	}
	run(&b, 50 * MS);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(b.peer[i].n_sent, laps + 1);
		for (unsigned k = 0; k < laps; k++)
			expect(&b, i, 1 + k, (int)k + 1, 2, words);
		in += b.peer[i].n_in;
	}
	assert_int_equal(in, 2 * (laps + 1));
	assert_int_equal(b.g->state, INC_ACTIVE);
	close_box(&b);
}

static void test_windows(void **state)
{
	(void)state;
	window(1, 1, 40);
	window(2, 1, 20);
	window(1, 2, 40);
	window(3, 5, 20);
}

/* A receiver that posts nothing: W results wait for it, and the senders are held. */
static void test_slow_receiver(void **state)
{
	static const struct shape s = {.n = 2, .m = 1, .w = 2, .start = 0};
	struct box b;
	uint32_t psn;

	(void)state;
	open_box(&b, &s);
	post_receives(&b, 0, 13, 256);
	for (unsigned i = 0; i < 2; i++) {
		control(&b, i, imm_of(INC_AR, 0, 0), 12 * 256);
		for (unsigned k = 0; k < 12; k++)
			data(&b, i, (int)k, 64);
	}
	run(&b, 100 * MS);
	assert_int_equal(b.peer[0].n_in, 3);
	assert_true(b.peer[0].n_sent < 13);
	assert_int_equal(inc_group_missing(b.g, &psn), 3); /* all contributed: results are stuck */
	post_receives(&b, 1, 13, 256);
	run(&b, 100 * MS);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(b.peer[i].n_in, 13);
		assert_int_equal(b.peer[i].n_sent, 13);
	}
	close_box(&b);
}

/* Twenty operations of nothing but a control, sent ahead as far as the switch takes them. */
static void test_barriers(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, &star3);
	all_receive(&b, 20, 256);
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < 20; k++)
			control(&b, i, imm_of(INC_AR, 0, k), 0);
		run(&b, 2 * MS);
	}
	run(&b, 50 * MS);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 20; k++)
			expect_control(&b, i, k, imm_of(INC_AR, 0, k));
	close_box(&b);
}

static void test_missing(void **state)
{
	struct box b;
	uint32_t psn;

	(void)state;
	open_box(&b, &star3);
	all_receive(&b, 4, 256);
	assert_int_equal(inc_group_missing(b.g, &psn), 0);
	control(&b, 0, imm_of(INC_AR, 0, 0), 0);
	control(&b, 2, imm_of(INC_AR, 0, 0), 0);
	run(&b, MS);
	assert_int_equal(inc_group_missing(b.g, &psn), 2);
	assert_int_equal(psn, 0xfffffe);
	close_box(&b);
}

/* ---- failures ---- */

static void test_mismatch(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, &star3);
	all_receive(&b, 4, 512);
	control(&b, 0, imm_of(INC_AR, 0, 0), 512);
	control(&b, 1, imm_of(INC_AR, 0, 0), 256);
	run(&b, 2 * MS);
	assert_failed(&b, INC_FAIL_CTRL_MISMATCH, 1);
	assert_int_equal(b.peer[0].n_in, 0);
	/* Everybody has learnt it from its own queue pair, who waits like who did wrong. */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(b.peer[i].bad, IBV_WC_WR_FLUSH_ERR);
	close_box(&b);
}

enum mistake { NO_CONTROL, CONTROL_INSIDE, SHORT, LONG, SHORT_CONTROL, NEVER_SENDS };

static void mistake(enum mistake what)
{
	const uint32_t imm = what == NEVER_SENDS ? imm_of(INC_BC, 0, 0) : imm_of(INC_AR, 0, 0);
	struct box b;

	open_box(&b, &star3);
	all_receive(&b, 4, 512);
	if (what == SHORT_CONTROL)
		send_bytes(&b, 1, "x", 1, imm);
	else if (what != NO_CONTROL)
		control(&b, 1, imm, 1024);
	for (unsigned i = 0; i < 3 && what != NO_CONTROL && what != SHORT_CONTROL; i += 2)
		control(&b, i, imm, 1024); /* so that the next message comes to the front */
	if (what == CONTROL_INSIDE)
		control(&b, 1, imm_of(INC_AR, 0, 1), 0);
	else
		data(&b, 1, 1, what == SHORT ? 127 : what == LONG ? 129 : 128);
	run(&b, 2 * MS);
	if (what == LONG) { /* more than any message of the group */
		assert_failed(&b, INC_FAIL_MODE1_QP, 1);
		assert_int_equal(b.g->fail_status, IBV_WC_LOC_LEN_ERR);
	} else {
		assert_failed(&b, INC_FAIL_MODE1_SEQUENCE, 1);
	}
	close_box(&b);
}

static void test_sequence(void **state)
{
	(void)state;
	for (enum mistake what = NO_CONTROL; what <= NEVER_SENDS; what++)
		mistake(what);
}

static void test_invalid(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, &star3);
	control(&b, 2, imm_of(INC_AR, 0, 1), 0); /* the first has number 0 */
	run(&b, MS);
	assert_failed(&b, INC_FAIL_CTRL_INVALID, 2);
	close_box(&b);
}

/* A rank that died: its receiver half is missed by the retry count. */
static void test_dead(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, &star3);
	all_receive(&b, 4, 256);
	for (unsigned i = 0; i < 3; i++) {
		control(&b, i, imm_of(INC_AR, 0, 0), 0);
		if (i == 1) {
			run(&b, MS);
			b.peer[0].dead = true;
		}
	}
	run(&b, 3000 * MS);
	assert_failed(&b, INC_FAIL_MODE1_QP, 0);
	assert_int_equal(b.g->fail_status, IBV_WC_RETRY_EXC_ERR);
	assert_string_equal(inc_fail_status_name(b.g->fail_status), "peer does not answer");
	close_box(&b);
}

/* A group that is being destroyed finishes what has begun and begins nothing. */
static void test_draining(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, &star3);
	all_receive(&b, 4, 256);
	control(&b, 0, imm_of(INC_AR, 0, 0), 0);
	run(&b, MS);
	assert_true(inc_group_set_state(b.g, INC_ACTIVE, INC_DRAINING));
	for (unsigned i = 1; i < 3; i++)
		control(&b, i, imm_of(INC_AR, 0, 0), 0);
	for (unsigned i = 0; i < 3; i++)
		control(&b, i, imm_of(INC_AR, 0, 1), 0);
	run(&b, 5 * MS);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(b.peer[i].n_in, 1);
	close_box(&b);
}

/* What the checks refuse by name. */
static void test_refused(void **state)
{
	struct inc_ep_spec ep = {
		.remote_ip = ip_of(10), .local_ip = ip_of(1), .host = true, .n_ranks = 1};
	const struct inc_group_spec good = {.name = "x",
		.mode = INC_MODE_1,
		.kind = INC_MIXED,
		.mtu = MTU,
		.m = 1,
		.w = 1,
		.n_ranks = 1,
		.n_ep = 1,
		.ep = &ep};
	struct inc_group_spec s = good;
	char err[INC_ERR_LEN];

	(void)state;
	assert_int_equal(inc_group_check(&s, err), 0);
	s = good;
	s.w = MODE1_MAX_W + 1;
	assert_int_equal(inc_group_check(&s, err), -EINVAL);
	s = good;
	s.m = 0;
	assert_int_equal(inc_group_check(&s, err), -EINVAL);
	s = good;
	s.slots = 64;
	assert_int_equal(inc_group_check(&s, err), -EOPNOTSUPP);
	s = good;
	s.unbound = true;
	assert_int_equal(inc_group_check(&s, err), -EOPNOTSUPP);
	s = good;
	ep.vlan = 5;
	assert_int_equal(inc_group_check(&s, err), -EOPNOTSUPP);
	assert_non_null(strstr(err, "endpoints[0].vlan"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allreduce),
		cmocka_unit_test(test_mixed_roots),
		cmocka_unit_test(test_interior),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_slow_receiver),
		cmocka_unit_test(test_barriers),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_mismatch),
		cmocka_unit_test(test_sequence),
		cmocka_unit_test(test_invalid),
		cmocka_unit_test(test_dead),
		cmocka_unit_test(test_draining),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
