/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of every kind and size, over a good link and over bad ones. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/frame.h"
#include "lib/wire/psn.h"
#include "tests/unit/rnic/net.h"

static const enum ibv_wr_opcode opcodes[] = {
	IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM};

static bool is_write(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool has_imm(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* To the same offset of the other end's buffer. */
static int send_across(struct net *net, int from, enum ibv_wr_opcode opcode, uint64_t id,
	size_t offset, uint32_t len)
{
	const struct end *peer = &net->end[!from];

	return end_send(&net->end[from], opcode, id, offset, len, (uintptr_t)peer->buf + offset,
		rnic_mr_rkey(peer->mr));
}

static void check_send_wc(const struct ibv_wc *wc, enum ibv_wr_opcode opcode, uint64_t id)
{
	assert_int_equal(IBV_WC_SUCCESS, wc->status);
	assert_int_equal(id, wc->wr_id);
	assert_int_equal(is_write(opcode) ? IBV_WC_RDMA_WRITE : IBV_WC_SEND, wc->opcode);
}

static void check_recv_wc(struct net *net, int to, const struct ibv_wc *wc,
	enum ibv_wr_opcode opcode, uint64_t id, uint32_t len)
{
	assert_int_equal(IBV_WC_SUCCESS, wc->status);
	assert_int_equal(id, wc->wr_id);
	assert_int_equal(is_write(opcode) ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV, wc->opcode);
	assert_int_equal(len, wc->byte_len);
	assert_int_equal(rnic_qp_num(net->end[to].qp), wc->qp_num);
	assert_int_equal(rnic_qp_num(net->end[!to].qp), wc->src_qp);
	assert_int_equal(has_imm(opcode) ? IBV_WC_WITH_IMM : 0, wc->wc_flags);
	if (has_imm(opcode))
		assert_int_equal(0xabcd0000 + (uint32_t)id, be32toh(wc->imm_data));
}

static void one_message(struct net *net, enum ibv_wr_opcode opcode, uint64_t id, uint32_t len)
{
	struct end *a = &net->end[0], *b = &net->end[1];
	size_t offset = 1000 + id % 64;
	struct ibv_wc wc;

	memset(b->buf, 0xee, len + 4096);
	if (opcode != IBV_WR_RDMA_WRITE)
		assert_int_equal(0, end_recv(b, id, offset, len));
	assert_int_equal(0, send_across(net, 0, opcode, id, offset, len));
	net_run(net, FOREVER);
	wc = end_wc(a->scq);
	check_send_wc(&wc, opcode, id);
	end_no_wc(a->scq);
	if (opcode != IBV_WR_RDMA_WRITE) {
		wc = end_wc(b->rcq);
		check_recv_wc(net, 1, &wc, opcode, id, len);
	}
	end_no_wc(b->rcq);
	assert_memory_equal(a->buf + offset, b->buf + offset, len);
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(0xee, b->buf[offset - 1 - i]);
		assert_int_equal(0xee, b->buf[offset + len + i]);
	}
}

static void all_sizes(const struct net_options *options)
{
	struct net net = {0};
	uint32_t mtu = roce_mtu_bytes(options->mtu);
	const uint32_t sizes[] = {0, 1, 2, 3, 4, 5, 255, mtu - 1, mtu, mtu + 1, 2 * mtu - 1,
		2 * mtu, 2 * mtu + 1, 3 * mtu, 5 * mtu + 7, 64 * mtu, 65 * mtu, 130 * mtu - 2};
	uint64_t id = 1;

	net_connect(&net, options);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (unsigned j = 0; j < 4; j++)
			one_message(&net, opcodes[j], id++, sizes[i]);
	}
	assert_int_equal(0, rnic_count(net.end[0].rnic, RNIC_C_RETRANSMITS));
	assert_int_equal(0, net_drops(net.end[1].rnic));
	assert_int_equal(rnic_count(net.end[0].rnic, RNIC_C_TX_FRAMES),
		rnic_count(net.end[1].rnic, RNIC_C_RX_FRAMES));
	assert_int_equal(rnic_count(net.end[0].rnic, RNIC_C_TX_BYTES),
		rnic_count(net.end[1].rnic, RNIC_C_RX_BYTES));
	net_close(&net);
}

static void test_sizes(void **state)
{
	(void)state;
	for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
		for (int ip6 = 0; ip6 < 2; ip6++)
			all_sizes(&(struct net_options){
				.mtu = (enum ibv_mtu)mtu, .ip6 = ip6, .psn = {0xfffff0, 0xabcdef}});
	}
}

/* Scatter and gather in odd pieces; empty pieces and their keys are not looked at. */
static void test_sge(void **state)
{
	struct net net = {0};
	struct end *a, *b;
	struct ibv_sge from[4], to[4];
	static uint8_t sent[4096], got[4096];

	(void)state;
	net_connect(&net, &(struct net_options){0});
	a = &net.end[0];
	b = &net.end[1];
	for (int i = 0; i < 4; i++) {
		static const uint32_t out[] = {701, 0, 1299, 1000}, in[] = {3, 1021, 0, 1976};

		from[i] = (struct ibv_sge){(uintptr_t)a->buf + 5000u * (unsigned)i, out[i],
			out[i] ? rnic_mr_lkey(a->mr) : 1};
		to[i] = (struct ibv_sge){(uintptr_t)b->buf + 7000u * (unsigned)i, in[i],
			in[i] ? rnic_mr_lkey(b->mr) : 1};
	}
	assert_int_equal(
		0, rnic_post_recv(
			   b->qp, &(struct ibv_recv_wr){.wr_id = 1, .sg_list = to, .num_sge = 4}));
	assert_int_equal(0,
		rnic_post_send(a->qp,
			&(struct ibv_send_wr){
				.wr_id = 2, .sg_list = from, .num_sge = 4, .opcode = IBV_WR_SEND}));
	net_run(&net, FOREVER);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
	assert_int_equal(3000, end_wc(b->rcq).byte_len);
	for (size_t i = 0, s = 0, g = 0; i < 4; i++) {
		memcpy(sent + s, (void *)(uintptr_t)from[i].addr, from[i].length);
		memcpy(got + g, (void *)(uintptr_t)to[i].addr, to[i].length);
		s += from[i].length;
		g += to[i].length;
	}
	assert_memory_equal(sent, got, 3000);
	net_close(&net);
}

/* Inline data is taken at the post: the caller's memory, registered nowhere, may change at once. */
static void test_inline(void **state)
{
	struct net net = {0};
	char text[] = "written before", more[] = " the doorbell";
	struct ibv_sge sge[2] = {
		{(uintptr_t)text, sizeof(text) - 1, 0}, {(uintptr_t)more, sizeof(more), 0}};
	struct ibv_send_wr wr = {
		.sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};

	(void)state;
	net_connect(&net, &(struct net_options){0});
	assert_int_equal(0, end_recv(&net.end[1], 1, 0, 100));
	assert_int_equal(0, rnic_post_send(net.end[0].qp, &wr));
	memset(text, 'x', sizeof(text));
	net_run(&net, FOREVER);
	assert_int_equal(sizeof("written before the doorbell"), end_wc(net.end[1].rcq).byte_len);
	assert_string_equal("written before the doorbell", (char *)net.end[1].buf);
	sge[0].length = 300;
	assert_int_equal(-EINVAL, rnic_post_send(net.end[0].qp, &wr));
	net_close(&net);
}

static void test_link_local(void **state)
{
	struct net net = {0};

	(void)state;
	net_connect(&net, &(struct net_options){.link_local = true});
	one_message(&net, IBV_WR_SEND, 1, 5000);
	net_close(&net);
}

/* Solicited is said by the last packet, and heard at the other end's completion queue. */
static void test_solicited(void **state)
{
	struct net net = {0};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM};

	(void)state;
	net_connect(&net, &(struct net_options){0});
	for (unsigned i = 0; i < 2; i++) {
		wr.send_flags = i ? IBV_SEND_SOLICITED : 0;
		assert_int_equal(0, end_recv(&net.end[1], i, 0, 0));
		rnic_cq_arm(net.end[1].rcq, true);
		assert_int_equal(0, rnic_post_send(net.end[0].qp, &wr));
		net_run(&net, FOREVER);
		assert_int_equal(i, net.end[1].n_cq_event);
	}
	net_close(&net);
}

/* Without IBV_SEND_SIGNALED no completion, but the ones after it complete and its place is free. */
static void test_unsignaled(void **state)
{
	struct net net = {0};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

	(void)state;
	net_connect(&net, &(struct net_options){.sig_none = true, .wr = 4});
	for (unsigned i = 0; i < 40; i++) {
		wr.wr_id = i;
		wr.send_flags = i % 4 == 3 ? IBV_SEND_SIGNALED : 0;
		assert_int_equal(0, rnic_post_send(net.end[0].qp, &wr));
		if (i % 4 == 3) {
			assert_int_equal(-ENOMEM, rnic_post_send(net.end[0].qp, &wr));
			net_run(&net, FOREVER);
			assert_int_equal(i, end_wc(net.end[0].scq).wr_id);
			end_no_wc(net.end[0].scq);
		}
	}
	net_close(&net);
}

/* ---- bad links ---- */

struct traffic {
	uint32_t n, posted[2], sent[2], received[2];
	uint32_t len[2][400];
	enum ibv_wr_opcode opcode[2][400];
};

enum { SLOTS = 16, SLOT = 20000 };

/* Both directions; messages go to slot number mod SLOTS, a half of the buffer for each direction.
 */
static size_t slot_of(int from, uint32_t i)
{
	return (size_t)from * SLOTS * SLOT + i % SLOTS * SLOT;
}

static void feed(struct net *net, struct traffic *t, int from)
{
	struct end *a = &net->end[from], *b = &net->end[!from];

	while (t->posted[from] < t->n && t->posted[from] < t->sent[from] + SLOTS / 2 &&
		t->posted[from] < t->received[from] + SLOTS / 2) {
		uint32_t i = t->posted[from]++;
		uint32_t len = (uint32_t)(net_random(net) % (net_random(net) % 4 ? 3000 : SLOT));
		enum ibv_wr_opcode opcode = opcodes[net_random(net) % 4];
		size_t at = slot_of(from, i);

		t->len[from][i] = len;
		t->opcode[from][i] = opcode;
		for (uint32_t j = 0; j < len; j++)
			a->buf[at + j] = (uint8_t)(i * 31 + j * 7 + (j >> 8));
		memset(b->buf + at, 0, len);
		if (opcode == IBV_WR_RDMA_WRITE)
			t->received[from]++; /* nothing will be seen */
		else
			assert_int_equal(0, end_recv(b, i, at, len));
		assert_int_equal(0, send_across(net, from, opcode, i, at, len));
	}
}

static void harvest(struct net *net, struct traffic *t, int from)
{
	struct end *a = &net->end[from], *b = &net->end[!from];
	struct ibv_wc wc;

	while (rnic_cq_poll(b->rcq, 1, &wc) == 1) {
		uint32_t i = (uint32_t)wc.wr_id;

		check_recv_wc(net, !from, &wc, t->opcode[from][i], i, t->len[from][i]);
		assert_memory_equal(
			a->buf + slot_of(from, i), b->buf + slot_of(from, i), wc.byte_len);
		t->received[from]++;
	}
	while (rnic_cq_poll(a->scq, 1, &wc) == 1) {
		uint32_t i = t->sent[from]++;

		check_send_wc(&wc, t->opcode[from][i], i);
		assert_memory_equal(
			a->buf + slot_of(from, i), b->buf + slot_of(from, i), t->len[from][i]);
	}
}

static void run_traffic(struct net *net, uint32_t n)
{
	struct traffic *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->n = n;
	while (t->sent[0] < n || t->sent[1] < n || t->received[0] < n || t->received[1] < n) {
		uint64_t before = net->now;

		feed(net, t, 0);
		feed(net, t, 1);
		net_run(net, net->now + MS / 10);
		harvest(net, t, 0);
		harvest(net, t, 1);
		assert_true(net->now > before && net->now < 1000 * SEC);
	}
	net_run(net, FOREVER);
	end_no_wc(net->end[0].scq);
	end_no_wc(net->end[1].rcq);
	free(t);
}

static void test_bad_link(void **state)
{
	static const struct {
		unsigned loss, twice, late, corrupt;
	} links[] = {{20, 0, 0, 0}, {0, 100, 0, 0}, {0, 0, 200, 0}, {0, 0, 0, 30}, {30, 50, 50, 20},
		{100, 100, 100, 50}};

	(void)state;
	for (unsigned i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		for (unsigned seed = 1; seed <= 6; seed++) {
			struct net net = {.random = seed * 7919 + i};

			/* The first PSNs wrap in the midst of it; MTU and window vary. */
			net_connect(&net, &(struct net_options){.psn = {0xffff80, 0xfffc00},
						  .mtu = IBV_MTU_256 + seed % 5,
						  .window = seed % 2 ? 16 : 0,
						  .timeout = 8});
			net.loss = links[i].loss;
			net.twice = links[i].twice;
			net.late = links[i].late;
			net.corrupt = links[i].corrupt;
			run_traffic(&net, 120);
			if (links[i].corrupt)
				assert_true(rnic_drop_count(net.end[1].rnic, WIRE_ICRC_BAD) > 0);
			if (links[i].loss)
				assert_true(rnic_count(net.end[0].rnic, RNIC_C_RETRANSMITS) > 0);
			assert_int_equal(0, net.end[0].n_event + net.end[1].n_event);
			net_close(&net);
		}
	}
}

/* Flips one bit in each place of a request frame: whatever it hits, nothing wrong is written. */
static bool flip_hook(struct net *net, int from, uint8_t *frame, size_t *len)
{
	unsigned bit = net->hook_n;

	if (from == 0 && bit / 8 < *len) {
		frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
		net->hook = NULL;
	}
	return true;
}

static void test_every_bit(void **state)
{
	struct net net = {0};
	const unsigned frame_len = 14 + 20 + 8 + 12 + 16 + 64 + 4;
	struct end *b = &net.end[1];
	uint8_t *blank;

	(void)state;
	net_connect(&net, &(struct net_options){.timeout = 6});
	blank = malloc(b->buf_len);
	assert_non_null(blank);
	memset(blank, 0xee, b->buf_len);
	for (unsigned bit = 0; bit < frame_len * 8; bit++) {
		net.hook = flip_hook;
		net.hook_n = bit;
		assert_int_equal(0, send_across(&net, 0, IBV_WR_RDMA_WRITE, bit, 500, 64));
		net_run(&net, FOREVER);
		assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
		assert_null(net.hook);
		assert_memory_equal(net.end[0].buf + 500, b->buf + 500, 64);
		memset(b->buf + 500, 0xee, 64);
		if (memcmp(b->buf, blank, b->buf_len) != 0)
			fail_msg("bit %u: something else was written", bit);
	}
	free(blank);
	assert_true(rnic_drop_count(b->rnic, WIRE_ICRC_BAD) > frame_len * 4);
	net_close(&net);
}

/* ---- more than one ---- */

static uint32_t turn[256];
static unsigned n_turn;

static bool note_turns(struct net *net, int from, uint8_t *frame, size_t *len)
{
	struct wire_pkt pkt;

	(void)net;
	if (from == 0 && n_turn < 256 && wire_parse(frame, *len, &pkt) == WIRE_OK)
		turn[n_turn++] = pkt.dqpn;
	return true;
}

static void test_fairness(void **state)
{
	enum { N = 4 };
	struct net net = {0};
	struct rnic_qp *qp[2][N];
	unsigned count[N] = {0};
	const struct net_options options = {.mtu = IBV_MTU_256};

	(void)state;
	net_open(&net, &options);
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < 2; j++)
			qp[j][i] = net_make_qp(&net.end[j], &options);
		for (int j = 0; j < 2; j++)
			net_to_rts(&net, j, qp[j][i], rnic_qp_num(qp[!j][i]), &options);
		net.end[0].qp = qp[0][i];
		assert_int_equal(
			0, send_across(&net, 0, IBV_WR_RDMA_WRITE, (unsigned)i, 0, 200 * 256));
	}
	net.end[0].qp = NULL;
	net.hook = note_turns;
	net_run(&net, FOREVER);
	assert_int_equal(256, n_turn);
	for (unsigned i = 0; i < 128; i++) {
		for (int j = 0; j < N; j++)
			count[j] += turn[i] == rnic_qp_num(qp[1][j]);
	}
	for (int j = 0; j < N; j++) {
		assert_int_equal(128 / N, count[j]);
		assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	}
	for (int j = 0; j < 2 * N; j++)
		assert_int_equal(0, rnic_qp_destroy(qp[j / N][j % N]));
	net_close(&net);
}

/* Bells of many QPs, rung in any order while others are silent: each is heard. */
static void test_many(void **state)
{
	enum { N = 300 };
	static struct net net;
	static struct rnic_qp *qp[2][N];
	const struct net_options options = {.wr = 4};

	(void)state;
	memset(&net, 0, sizeof(net));
	net_open(&net, &options);
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < 2; j++)
			qp[j][i] = net_make_qp(&net.end[j], &options);
		for (int j = 0; j < 2; j++)
			net_to_rts(&net, j, qp[j][i], rnic_qp_num(qp[!j][i]), &options);
	}
	for (unsigned round = 0; round < 50; round++) {
		unsigned n = 1 + round * 7 % 200, step = 1 + round % 3 * 2;

		for (unsigned i = 0; i < n; i++) {
			net.end[0].qp = qp[0][(round * 31 + i * step) % N];
			assert_int_equal(0, send_across(&net, 0, IBV_WR_RDMA_WRITE, i, 0, 10));
		}
		net_run(&net, FOREVER);
		while (n-- > 0)
			assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	}
	net.end[0].qp = NULL;
	for (int j = 0; j < 2 * N; j++)
		assert_int_equal(0, rnic_qp_destroy(qp[j / N][j % N]));
	net_close(&net);
}

/* Two QPs of one device: no frame leaves it. */
static void test_loopback(void **state)
{
	struct net net = {0};
	const struct net_options options = {0};
	struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY, .psn = 391, .ackreq = true};
	struct wire_flow flow = {.ttl = 64};
	struct rnic_qp *qp[2];
	uint8_t bytes[256];
	struct ibv_wc wc;
	int len;

	(void)state;
	net_open(&net, &options);
	for (int i = 0; i < 2; i++)
		qp[i] = net_make_qp(&net.end[0], &options);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr attr = net_attr(&net, 1, rnic_qp_num(qp[!i]), &options);

		attr.ah_attr.grh.sgid_index = 1;
		attr.qp_state = IBV_QPS_INIT;
		assert_int_equal(0, rnic_qp_modify(qp[i], &attr, net_mask_init, 0));
		attr.qp_state = IBV_QPS_RTR;
		assert_int_equal(0, rnic_qp_modify(qp[i], &attr, net_mask_rtr, 0));
		attr.qp_state = IBV_QPS_RTS;
		assert_int_equal(0, rnic_qp_modify(qp[i], &attr, net_mask_rts, 0));
	}
	net.end[0].qp = qp[1];
	assert_int_equal(0, end_recv(&net.end[0], 1, 500000, 400000));
	net.end[0].qp = qp[0];
	assert_int_equal(0, end_send(&net.end[0], IBV_WR_SEND, 2, 0, 400000, 0, 0));
	for (int i = 0; i < 100 && rnic_has_work(net.end[0].rnic); i++) {
		struct rnic_frame frame;

		assert_false(rnic_tx(net.end[0].rnic, RNIC_ALL_PORTS, &frame, 0));
	}
	wc = end_wc(net.end[0].rcq);
	assert_int_equal(400000, wc.byte_len);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	assert_memory_equal(net.end[0].buf, net.end[0].buf + 500000, 400000);
	/* Nor does the last acknowledgement of a QP that goes. */
	net.end[0].qp = qp[1];
	assert_int_equal(0, end_recv(&net.end[0], 1, 500000, 64));
	hdr.dqpn = rnic_qp_num(qp[1]);
	rnic_mac(net.end[0].rnic, 0, flow.dmac);
	rnic_gid(net.end[0].rnic, 0, 1, &flow.src);
	flow.dst = flow.src;
	len = wire_build_frame(bytes, sizeof(bytes), &flow, &hdr, "data", 4);
	net_inject(&net, 0, bytes, (size_t)len);
	assert_int_equal(4, end_wc(net.end[0].rcq).byte_len);
	assert_int_equal(0, rnic_qp_destroy(qp[1]));
	net.n_log = 0;
	net_run(&net, net.now);
	assert_int_equal(0, net.n_log);
	assert_int_equal(1, rnic_drop_count(net.end[0].rnic, RNIC_DROP_ACK_RANGE));
	net.end[0].qp = NULL;
	assert_int_equal(0, rnic_qp_destroy(qp[0]));
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_sge),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_link_local),
		cmocka_unit_test(test_solicited),
		cmocka_unit_test(test_unsignaled),
		cmocka_unit_test(test_bad_link),
		cmocka_unit_test(test_every_bit),
		cmocka_unit_test(test_fairness),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_loopback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
