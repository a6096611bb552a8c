/* SPDX-License-Identifier: BSD-3-Clause */
/* WRITEs to a multicast group: into the right place in any weather, and nowhere else. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/uc_mcast.h"
#include "lib/wire/multicast.h"
#include "tests/unit/rnic/net.h"

enum {
	MTU = 1024,
	KEY = 0x5eed,
	CHUNKS = 200,
	BLOCK = CHUNKS * MTU - 100, /* the last one is shorter */
	MASK = 0xffffff,
	FIRST = 0x07fffff0, /* the number wraps behind the sixteenth chunk, the bits above stay */
	AT = 4096,          /* of the window in end 1's buffer */
	GROUP = 0xef810203,
	WR = 256,
};

static struct net net;
static struct rnic_qp *sender, *receiver;
static const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
static const int to_rtr =
	IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

static uint32_t number(unsigned chunk)
{
	return (FIRST & ~MASK) | ((FIRST + chunk) & MASK);
}

static struct ibv_qp_attr group_attr(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 0xffffff,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}}};
	const struct wire_ip group = wire_ip_from4(GROUP);

	memcpy(attr.ah_attr.grh.dgid.raw, group.b, 16);
	return attr;
}

static void to_rts(struct rnic_qp *qp)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE},
			   attr = group_attr();

	assert_int_equal(0, rnic_qp_modify(qp, &init, to_init, net.now));
	assert_int_equal(0, rnic_qp_modify(qp, &attr, to_rtr, net.now));
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(0, rnic_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, net.now));
}

static struct rnic_mcast_writer writer(int end, uint64_t va)
{
	struct rnic_mcast_writer w = {.va = va, .len = BLOCK, .first = FIRST};

	assert_int_equal(0, rnic_gid(net.end[end].rnic, 0, 1, &w.ip));
	return w;
}

static int open_window(struct rnic_mcast_window *w)
{
	struct end *b = &net.end[1];
	const struct rnic_mcast_writer only = writer(0, 0);

	w->key = w->key ? w->key : KEY;
	w->lkey = w->lkey ? w->lkey : rnic_mr_lkey(b->mr);
	w->addr = w->addr ? w->addr : (uintptr_t)b->buf + AT;
	w->len = w->len ? w->len : BLOCK;
	w->number_mask = w->number_mask ? w->number_mask : MASK;
	if (w->writer == NULL) {
		w->writer = &only;
		w->n_writers = 1;
	}
	return rnic_qp_mcast_window(receiver, w);
}

static void open_net(void)
{
	const struct net_options options = {
		.type = IBV_QPT_UC, .transport = &rnic_uc_mcast, .wr = WR};
	const struct wire_ip group = wire_ip_from4(GROUP);

	memset(&net, 0, sizeof(net));
	net_open(&net, &options);
	sender = net.end[0].qp = net_make_qp(&net.end[0], &options);
	receiver = net.end[1].qp = net_make_qp(&net.end[1], &options);
	to_rts(sender);
	to_rts(receiver);
	assert_int_equal(0, rnic_qp_attach_mcast(receiver, &group));
	assert_int_equal(0, open_window(&(struct rnic_mcast_window){0}));
	net_run(&net, net.now + MS); /* the report */
	net.n_log = 0;
}

static int write_chunk(unsigned chunk, uint32_t key)
{
	struct end *a = &net.end[0];
	const uint32_t at = chunk * MTU, len = BLOCK - at < MTU ? BLOCK - at : MTU;
	struct ibv_sge sge = {(uintptr_t)a->buf + at, len, rnic_mr_lkey(a->mr)};
	struct ibv_send_wr wr = {.wr_id = chunk,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htobe32(number(chunk)),
		.wr.rdma = {at, key}};

	return rnic_post_send(sender, &wr);
}

static void post_recvs(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(0, rnic_post_recv(receiver, &(struct ibv_recv_wr){.wr_id = i}));
}

/* ---- in its place ---- */

static void one_chunk(const struct ibv_wc *wc, bool has[CHUNKS])
{
	const uint32_t index = (be32toh(wc->imm_data) - FIRST) & MASK;
	const struct end *a = &net.end[0], *b = &net.end[1];

	assert_int_equal(IBV_WC_SUCCESS, wc->status);
	assert_int_equal(IBV_WC_RECV_RDMA_WITH_IMM, wc->opcode);
	assert_in_range(index, 0, CHUNKS - 1);
	assert_int_equal(index == CHUNKS - 1 ? MTU - 100 : MTU, wc->byte_len);
	assert_memory_equal(a->buf + index * MTU, b->buf + AT + index * MTU, wc->byte_len);
	has[index] = true;
}

/* Lost, doubled, delayed, corrupted: what a completion tells of is there, what has not come was not
 * touched, nor what is beside the window. */
static void weather(unsigned loss, unsigned twice, unsigned late, unsigned corrupt)
{
	struct end *b = &net.end[1];
	bool has[CHUNKS] = {0};
	struct ibv_wc wc;
	unsigned n = 0, missing = 0;

	open_net();
	net.loss = loss;
	net.twice = twice;
	net.late = late;
	net.corrupt = corrupt;
	for (unsigned i = 0; i < CHUNKS; i++) {
		post_recvs(2);
		assert_int_equal(0, write_chunk(i, KEY));
		net_run(&net, net.now + 3000);
		while (rnic_cq_poll(b->rcq, 1, &wc) == 1)
			n++, one_chunk(&wc, has);
		while (rnic_cq_poll(net.end[0].scq, 1, &wc) == 1)
			assert_int_equal(IBV_WC_SUCCESS, wc.status);
	}
	net_run(&net, net.now + MS);
	while (rnic_cq_poll(b->rcq, 1, &wc) == 1)
		n++, one_chunk(&wc, has);
	for (unsigned i = 0; i < CHUNKS; i++) {
		missing += !has[i];
		if (!has[i])
			assert_int_equal(0xee, b->buf[AT + i * MTU]);
	}
	if (loss + twice + corrupt == 0)
		assert_int_equal(CHUNKS, n);
	assert_true(loss + corrupt > 0 ? missing > 0 : missing == 0);
	assert_true(twice == 0 || n > CHUNKS - missing);
	assert_int_equal(0xee, b->buf[AT - 1]);
	assert_int_equal(0xee, b->buf[AT + BLOCK]);
	net_check_counters(&net);
	net_close(&net);
}

static void test_placed(void **state)
{
	(void)state;
	weather(0, 0, 0, 0);
	weather(0, 300, 500, 0);
	weather(100, 100, 300, 50);
}

/* On the wire: to the group's addresses, as UC, and not to the sender itself. */
static void test_wire(void **state)
{
	const struct wire_ip group = wire_ip_from4(GROUP);
	struct end *a = &net.end[0];

	(void)state;
	open_net();
	assert_int_equal(0, rnic_qp_attach_mcast(sender, &group));
	net_run(&net, net.now + MS);
	net.n_log = 0;
	post_recvs(1);
	assert_int_equal(0, rnic_post_recv(sender, &(struct ibv_recv_wr){.wr_id = 9}));
	assert_int_equal(0, write_chunk(3, KEY));
	net_run(&net, net.now + MS);
	assert_int_equal(1, net.n_log);
	assert_int_equal(ROCE_UC | ROCE_WRITE_ONLY_IMM, net.log[0].pkt.opcode);
	assert_int_equal(0xffffff, net.log[0].pkt.dqpn);
	assert_true(wire_ip_eq(&group, &net.log[0].pkt.dst));
	assert_int_equal(3 * MTU, net.log[0].pkt.va);
	assert_int_equal(KEY, net.log[0].pkt.rkey);
	assert_int_equal(number(3), net.log[0].pkt.imm);
	assert_int_equal(number(3), be32toh(end_wc(net.end[1].rcq).imm_data));
	end_no_wc(a->rcq);
	assert_int_equal(0, rnic_drop_count(a->rnic, RNIC_DROP_ACCESS));
	net_close(&net);
}

/* Another member on the sender's device gets its copy, the sender none. */
static void test_two_of_a_device(void **state)
{
	const struct net_options options = {
		.type = IBV_QPT_UC, .transport = &rnic_uc_mcast, .wr = WR};
	const struct wire_ip group = wire_ip_from4(GROUP);
	struct rnic_mcast_writer from;
	struct end *a = &net.end[0];
	uint8_t *to;
	struct rnic_qp *other;

	(void)state;
	open_net();
	from = writer(0, 0);
	to = a->buf + (1 << 19);
	other = net_make_qp(a, &options);
	to_rts(other);
	assert_int_equal(0, rnic_qp_attach_mcast(sender, &group));
	assert_int_equal(0, rnic_qp_attach_mcast(other, &group));
	assert_int_equal(0, rnic_qp_mcast_window(other, &(struct rnic_mcast_window){.key = KEY,
								.lkey = rnic_mr_lkey(a->mr),
								.addr = (uintptr_t)to,
								.len = BLOCK,
								.number_mask = MASK,
								.writer = &from,
								.n_writers = 1}));
	assert_int_equal(0, rnic_post_recv(other, &(struct ibv_recv_wr){.wr_id = 7}));
	assert_int_equal(0, rnic_post_recv(sender, &(struct ibv_recv_wr){.wr_id = 8}));
	assert_int_equal(0, write_chunk(1, KEY));
	net_run(&net, net.now + MS);
	assert_int_equal(7, end_wc(a->rcq).wr_id);
	end_no_wc(a->rcq);
	assert_memory_equal(a->buf + MTU, to + MTU, MTU);
	assert_int_equal(0, rnic_qp_destroy(other));
	net_close(&net);
}

/* ---- nowhere else ---- */

/* A packet of the group, with the right checksum. */
static unsigned forged(const struct wire_ip *src, const struct wire_hdr *hdr, size_t len)
{
	static const uint8_t payload[2 * MTU];
	uint8_t bytes[NET_FRAME];
	struct wire_flow flow = {
		.ttl = 64, .sport = 0xd00d, .src = *src, .dst = wire_ip_from4(GROUP)};
	struct wire_hdr h = *hdr;
	int n;

	wire_multicast_mac(&flow.dst, flow.dmac);
	flow.smac[0] = 2;
	h.dqpn = h.dqpn ? h.dqpn : 0xffffff;
	h.dmalen = h.dmalen ? h.dmalen : (uint32_t)len;
	n = wire_build_frame(bytes, sizeof(bytes), &flow, &h, payload, len);
	assert_true(n > 0);
	return rnic_rx(net.end[1].rnic, 0, bytes, (size_t)n, net.now);
}

static void test_attack(void **state)
{
	const struct wire_hdr good = {.opcode = ROCE_UC | ROCE_WRITE_ONLY_IMM,
		.rkey = KEY,
		.va = 5 * MTU,
		.imm = number(5)};
	struct wire_ip member, other = wire_ip_from4(0x0a4d0009);
	struct end *b = &net.end[1];
	uint8_t *before;

	(void)state;
	open_net();
	post_recvs(2);
	member = writer(0, 0).ip;
	before = malloc(b->buf_len);
	assert_non_null(before);
	memcpy(before, b->buf, b->buf_len);
	const struct {
		const struct wire_ip *src;
		struct wire_hdr hdr;
		size_t len;
		unsigned drop;
	} bad[] = {
		{&other, good, MTU, RNIC_DROP_SOURCE},
		{&member, {.opcode = good.opcode, .rkey = KEY + 1, .va = good.va, .imm = good.imm},
			MTU, RNIC_DROP_ACCESS},
		/* a region's key is no group's */
		{&member,
			{.opcode = good.opcode,
				.rkey = rnic_mr_rkey(b->mr),
				.va = (uintptr_t)b->buf,
				.imm = good.imm},
			MTU, RNIC_DROP_ACCESS},
		/* the number of another chunk; the bits above it of another collective */
		{&member, {.opcode = good.opcode, .rkey = KEY, .va = good.va, .imm = number(6)},
			MTU, RNIC_DROP_ACCESS},
		{&member,
			{.opcode = good.opcode,
				.rkey = KEY,
				.va = good.va,
				.imm = number(5) + MASK + 1},
			MTU, RNIC_DROP_ACCESS},
		/* between two chunks, beyond the part, and so far that it wraps */
		{&member, {.opcode = good.opcode, .rkey = KEY, .va = good.va + 1, .imm = good.imm},
			MTU, RNIC_DROP_ACCESS},
		{&member, {.opcode = good.opcode, .rkey = KEY, .va = BLOCK, .imm = number(CHUNKS)},
			MTU, RNIC_DROP_ACCESS},
		{&member, {.opcode = good.opcode, .rkey = KEY, .va = UINT64_MAX, .imm = good.imm},
			MTU, RNIC_DROP_ACCESS},
		/* too short, too long, beyond the end, and a length that is a lie */
		{&member, good, MTU - 1, RNIC_DROP_LENGTH},
		{&member, good, MTU + 4, RNIC_DROP_LENGTH},
		{&member,
			{.opcode = good.opcode,
				.rkey = KEY,
				.va = (CHUNKS - 1) * MTU,
				.imm = number(CHUNKS - 1)},
			MTU, RNIC_DROP_LENGTH},
		{&member,
			{.opcode = good.opcode,
				.rkey = KEY,
				.va = good.va,
				.imm = good.imm,
				.dmalen = 2 * MTU},
			MTU, RNIC_DROP_LENGTH},
		/* another opcode of UC; a datagram; no multicast number */
		{&member, {.opcode = ROCE_UC | ROCE_WRITE_ONLY, .rkey = KEY, .va = good.va}, MTU,
			RNIC_DROP_UNSUPPORTED},
		{&member, {.opcode = ROCE_UC | ROCE_WRITE_FIRST, .rkey = KEY, .va = good.va}, MTU,
			RNIC_DROP_UNSUPPORTED},
		{&member, {.opcode = ROCE_UC | ROCE_SEND_ONLY_IMM, .imm = good.imm}, MTU,
			RNIC_DROP_UNSUPPORTED},
		{&member, {.opcode = ROCE_UD | ROCE_SEND_ONLY_IMM, .imm = good.imm}, MTU,
			RNIC_DROP_QP_TYPE},
		{&member,
			{.opcode = good.opcode,
				.rkey = KEY,
				.va = good.va,
				.imm = good.imm,
				.dqpn = 5},
			MTU, RNIC_DROP_NO_QP},
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const uint64_t n = rnic_drop_count(b->rnic, bad[i].drop);

		if (forged(bad[i].src, &bad[i].hdr, bad[i].len) != bad[i].drop)
			fail_msg("case %u is not dropped as %s", i, rnic_drop_name(bad[i].drop));
		assert_int_equal(n + 1, rnic_drop_count(b->rnic, bad[i].drop));
	}
	end_no_wc(b->rcq);
	assert_memory_equal(before, b->buf, b->buf_len);
	/* To the queue pair's own number, by unicast. */
	net_packet(&net, 1, good, before, MTU);
	assert_memory_equal(before, b->buf, b->buf_len);
	/* And what is right is taken: once, twice, but not without a receive request. */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(i < 2 ? 0 : RNIC_DROP_RNR, forged(&member, &good, MTU));
	assert_int_equal(0, b->buf[AT + 5 * MTU]);
	free(before);
	net_close(&net);
}

/* Several parts: each writer in its own, also two behind one address. */
static void test_parts(void **state)
{
	struct rnic_mcast_writer parts[3];
	const struct wire_ip other = wire_ip_from4(0x0a4d0009);
	struct wire_hdr hdr = {.opcode = ROCE_UC | ROCE_WRITE_ONLY_IMM, .rkey = KEY};

	(void)state;
	open_net();
	for (unsigned i = 0; i < 3; i++) {
		parts[i] = writer(0, i * BLOCK);
		parts[i].first = number(i * CHUNKS);
	}
	parts[1].ip = other;
	assert_int_equal(0, open_window(&(struct rnic_mcast_window){
				    .writer = parts, .n_writers = 3, .len = 3 * BLOCK}));
	post_recvs(8);
	for (unsigned i = 0; i < 3; i++) {
		hdr.va = i * BLOCK;
		hdr.imm = number(i * CHUNKS);
		assert_int_equal(i == 1 ? RNIC_DROP_SOURCE : 0, forged(&parts[0].ip, &hdr, MTU));
		assert_int_equal(i == 1 ? 0 : RNIC_DROP_SOURCE, forged(&other, &hdr, MTU));
	}
	net_close(&net);
}

/* Nothing is written once the window is closed, its key has changed, its region or queue pair has
 * gone. */
static void test_late(void **state)
{
	struct end *b = &net.end[1];
	struct rnic_mr *mr;
	const struct wire_hdr hdr = {
		.opcode = ROCE_UC | ROCE_WRITE_ONLY_IMM, .rkey = KEY, .va = 0, .imm = number(0)};
	struct wire_ip member;

	(void)state;
	open_net();
	member = writer(0, 0).ip;
	post_recvs(8);
	assert_int_equal(0, forged(&member, &hdr, MTU));
	assert_int_equal(0, open_window(&(struct rnic_mcast_window){.key = KEY + 1}));
	assert_int_equal(RNIC_DROP_ACCESS, forged(&member, &hdr, MTU));
	assert_int_equal(0, open_window(&(struct rnic_mcast_window){0}));
	assert_int_equal(0, forged(&member, &hdr, MTU));
	assert_int_equal(0, rnic_qp_mcast_window(receiver, NULL));
	assert_int_equal(RNIC_DROP_ACCESS, forged(&member, &hdr, MTU));
	assert_int_equal(0, rnic_mr_reg(b->pd, b->buf, b->buf_len, (uintptr_t)b->buf,
				    IBV_ACCESS_LOCAL_WRITE, &mr));
	assert_int_equal(0, open_window(&(struct rnic_mcast_window){.lkey = rnic_mr_lkey(mr)}));
	assert_int_equal(0, forged(&member, &hdr, MTU));
	assert_int_equal(0, rnic_mr_dereg(mr));
	assert_int_equal(RNIC_DROP_ACCESS, forged(&member, &hdr, MTU));
	assert_int_equal(0, open_window(&(struct rnic_mcast_window){0}));
	assert_int_equal(
		0, rnic_qp_modify(receiver, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET},
			   IBV_QP_STATE, net.now));
	assert_int_equal(RNIC_DROP_QP_STATE, forged(&member, &hdr, MTU));
	to_rts(receiver);
	assert_int_equal(RNIC_DROP_ACCESS, forged(&member, &hdr, MTU));
	net_close(&net);
}

/* ---- what is refused ---- */

static void test_refused_windows(void **state)
{
	struct end *b = &net.end[1];
	const struct rnic_mcast_writer beyond = {.va = 1, .len = BLOCK};
	const struct rnic_mcast_writer wraps = {.va = UINT64_MAX, .len = 2};
	const struct net_options plain = {.type = IBV_QPT_UC};
	struct rnic_qp *qp;
	struct rnic_mr *mr;

	(void)state;
	open_net();
	assert_int_equal(0, rnic_mr_reg(b->pd, b->buf, 4096, (uintptr_t)b->buf, 0, &mr));
	assert_int_equal(-EINVAL,
		open_window(&(struct rnic_mcast_window){.lkey = rnic_mr_lkey(mr), .len = MTU}));
	assert_int_equal(-EINVAL, open_window(&(struct rnic_mcast_window){.lkey = 1}));
	assert_int_equal(-EINVAL, open_window(&(struct rnic_mcast_window){
					  .addr = (uintptr_t)b->buf + b->buf_len - BLOCK + 1}));
	assert_int_equal(-EINVAL, open_window(&(struct rnic_mcast_window){.number_mask = 6}));
	assert_int_equal(-EINVAL,
		open_window(&(struct rnic_mcast_window){.writer = &beyond, .n_writers = 1}));
	assert_int_equal(-EINVAL,
		open_window(&(struct rnic_mcast_window){.writer = &wraps, .n_writers = 1}));
	assert_int_equal(-EINVAL,
		open_window(&(struct rnic_mcast_window){.writer = &beyond, .n_writers = 0}));
	assert_int_equal(-EINVAL, open_window(&(struct rnic_mcast_window){
					  .writer = &beyond, .n_writers = RNIC_MAX_WRITERS + 1}));
	/* The one that was open still is. */
	post_recvs(1);
	assert_int_equal(0, write_chunk(0, KEY));
	net_run(&net, net.now + MS);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(b->rcq).status);
	qp = net_make_qp(b, &plain);
	assert_int_equal(-EOPNOTSUPP, rnic_qp_mcast_window(qp, NULL));
	assert_int_equal(0, rnic_qp_destroy(qp));
	qp = net_make_qp(b, &(struct net_options){.type = IBV_QPT_UC, .transport = &rnic_uc_mcast});
	receiver = qp;
	assert_int_equal(-EINVAL, open_window(&(struct rnic_mcast_window){0}));
	assert_int_equal(0, rnic_qp_destroy(qp));
	assert_int_equal(0, rnic_mr_dereg(mr));
	net_close(&net);
}

static void test_refused_attributes(void **state)
{
	const struct net_options options = {.type = IBV_QPT_UC, .transport = &rnic_uc_mcast};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1}, attr = group_attr();
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .num_sge = 1};
	struct end *a = &net.end[0];
	struct ibv_sge sge;
	struct wire_ip peer;
	struct rnic_qp *qp;

	(void)state;
	open_net();
	qp = net_make_qp(a, &options);
	assert_int_equal(0, rnic_qp_modify(qp, &init, to_init, net.now));
	attr.dest_qp_num = 5;
	assert_int_equal(-EINVAL, rnic_qp_modify(qp, &attr, to_rtr, net.now));
	attr = group_attr();
	assert_int_equal(0, rnic_gid(net.end[1].rnic, 0, 1, &peer));
	memcpy(attr.ah_attr.grh.dgid.raw, peer.b, 16);
	assert_int_equal(-EINVAL, rnic_qp_modify(qp, &attr, to_rtr, net.now));
	assert_int_equal(0, rnic_qp_destroy(qp));
	/* A plain connection still has no group for its peer. */
	attr = group_attr();
	qp = net_make_qp(a, &(struct net_options){.type = IBV_QPT_UC});
	assert_int_equal(0, rnic_qp_modify(qp, &init, to_init, net.now));
	assert_int_equal(-EINVAL, rnic_qp_modify(qp, &attr, to_rtr, net.now));
	assert_int_equal(0, rnic_qp_destroy(qp));
	/* One packet, and this request alone. */
	sge = (struct ibv_sge){(uintptr_t)a->buf, MTU + 1, rnic_mr_lkey(a->mr)};
	wr.sg_list = &sge;
	assert_int_equal(-EINVAL, rnic_post_send(sender, &wr));
	sge.length = MTU;
	wr.opcode = IBV_WR_RDMA_WRITE;
	assert_int_equal(-EOPNOTSUPP, rnic_post_send(sender, &wr));
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	assert_int_equal(-EOPNOTSUPP, rnic_post_send(sender, &wr));
	net_close(&net);
}

/* Writing needs the queue pair's leave, as any WRITE does. */
static void test_access_flags(void **state)
{
	struct ibv_qp_attr attr = {.qp_access_flags = 0};

	(void)state;
	open_net();
	post_recvs(1);
	assert_int_equal(0, rnic_qp_modify(receiver, &attr, IBV_QP_ACCESS_FLAGS, net.now));
	assert_int_equal(0, write_chunk(0, KEY));
	net_run(&net, net.now + MS);
	assert_int_equal(1, rnic_drop_count(net.end[1].rnic, RNIC_DROP_ACCESS));
	end_no_wc(net.end[1].rcq);
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_placed),
		cmocka_unit_test(test_wire),
		cmocka_unit_test(test_two_of_a_device),
		cmocka_unit_test(test_attack),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_refused_windows),
		cmocka_unit_test(test_refused_attributes),
		cmocka_unit_test(test_access_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
