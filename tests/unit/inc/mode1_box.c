/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/inc/mode1_box.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rc_steps.h"

enum { ARENA = 1 << 20, PEER_BUF = 256 << 10 };

struct wire_ip ip_of(unsigned i)
{
	return wire_ip_from4(0x0a000000 + i);
}

static void open_peer(struct box *b, unsigned i)
{
	struct peer *p = &b->peer[i];
	struct rnic_config rc = {.port[0].n_ip = 1,
		.port[0].mtu = 4200,
		.seed = i + 5,
		.port[0].mac = {2, 0, 0, 0, 1}};
	struct rnic_qp_init init = {.type = IBV_QPT_RC,
		.cap = {.max_send_wr = PEER_WR,
			.max_recv_wr = PEER_WR,
			.max_send_sge = 1,
			.max_recv_sge = 1}};

	rc.port[0].mac[5] = (uint8_t)i;
	rc.port[0].ip[0] = ip_of(10 + i);
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

	assert_int_equal(rnic_neigh_add(p->rnic, 0, &sw, switch_mac), 0);
	memcpy(&a.ah_attr.grh.dgid, sw.b, 16);
	assert_int_equal(rnic_qp_modify(p->qp, &a, RC_TO_INIT, b->now), 0);
	a.qp_state = IBV_QPS_RTR;
	assert_int_equal(rnic_qp_modify(p->qp, &a, RC_TO_RTR, b->now), 0);
	a.qp_state = IBV_QPS_RTS;
	assert_int_equal(rnic_qp_modify(p->qp, &a, RC_TO_RTS, b->now), 0);
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

void open_box(struct box *b, const struct shape *s)
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

void close_box(struct box *b)
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
		while (!b->peer[i].dead && rnic_tx(b->peer[i].rnic, RNIC_ALL_PORTS, &f, b->now)) {
			int len = rnic_frame_flatten(&f, flat, sizeof(flat));

			assert_true(len > 0);
			rnic_rx(sw, 0, flat, (size_t)len, b->now);
			any = true;
		}
	mode1_run(b->dev, b->now);
	while (rnic_tx(sw, RNIC_ALL_PORTS, &f, b->now)) {
		int len = rnic_frame_flatten(&f, flat, sizeof(flat));

		assert_ptr_equal(mode1_owner(b->dev, f.qpn, &ep), b->g);
		if (!b->peer[ep].dead)
			rnic_rx(b->peer[ep].rnic, 0, flat, (size_t)len, b->now);
		any = true;
	}
	return any;
}

void run(struct box *b, uint64_t ns)
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

void post_receives(struct box *b, unsigned peer, unsigned n, unsigned size)
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

void all_receive(struct box *b, unsigned n, unsigned size)
{
	for (unsigned i = 0; i < b->n; i++)
		post_receives(b, i, n, size);
}

void send_bytes(struct box *b, unsigned peer, const void *bytes, unsigned len, uint32_t imm)
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

uint32_t imm_of(enum inc_prim prim, unsigned root, unsigned seq)
{
	return 1u << 29 | (uint32_t)prim << 26 |
	       (uint32_t)(prim == INC_BC ? REDUCE_NONE : REDUCE_SUM) << 23 |
	       (uint32_t)REDUCE_INT32 << 19 | root << 8 | (seq & 0xff);
}

void control(struct box *b, unsigned peer, uint32_t imm, unsigned bytes)
{
	uint32_t c[8] = {0x31434e49, (bytes + MTU - 1) / MTU, bytes, 0, 0, b->g->m};

	send_bytes(b, peer, c, sizeof(c), imm);
}

void data(struct box *b, unsigned peer, int32_t value, unsigned words)
{
	int32_t v[1024];

	for (unsigned i = 0; i < words; i++)
		v[i] = value + (int32_t)i;
	send_bytes(b, peer, v, words * 4, 0);
}

void expect(
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

void expect_control(struct box *b, unsigned peer, unsigned index, uint32_t imm)
{
	assert_true(index < b->peer[peer].n_in);
	assert_int_equal(b->peer[peer].in[index].byte_len, INC_CTRL_LEN);
	assert_int_equal(be32toh(b->peer[peer].in[index].imm_data), imm);
}

void assert_failed(struct box *b, enum inc_fail reason, unsigned ep)
{
	assert_int_equal(b->g->state, INC_FAILED);
	assert_int_equal(b->g->fail_reason, reason);
	assert_int_equal(b->g->fail_ep, ep);
}
