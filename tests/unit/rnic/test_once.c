/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets whose payload is copied to its place and found right in one pass: what one that is wrong
 * leaves behind, and which ones are verified first all the same. Of RC, UC and SR those in the
 * middle of a message, of UD all. */
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/transport.h"
#include "tests/unit/rnic/net.h"

enum { MTU = 1024, PART = 5, AT = 8192, GRH = 40 };

static struct net net;
static struct rnic_srq *srq; /* of end 1, or NULL */

static const struct kind {
	const struct net_options options;
	uint8_t opcode[3]; /* FIRST, MIDDLE, LAST */
} kinds[] = {
	{{.type = IBV_QPT_RC}, {ROCE_WRITE_FIRST, ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST}},
	{{.type = IBV_QPT_RC}, {ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST}},
	{{.type = IBV_QPT_UC}, {ROCE_WRITE_FIRST, ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST}},
	{{.type = IBV_QPT_UC}, {ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST}},
	{{.selective = true}, {ROCE_WRITE_FIRST, ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST}},
	{{.selective = true}, {ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST}},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]), SR_WRITE = 4, SR_SEND = 5 };

static size_t build(
	uint8_t frame[NET_FRAME], const struct wire_hdr *hdr, const uint8_t *payload, size_t len)
{
	struct wire_flow flow = {.ttl = 64, .sport = 0xd00d};

	rnic_mac(net.end[1].rnic, 0, flow.dmac);
	rnic_mac(net.end[0].rnic, 0, flow.smac);
	rnic_gid(net.end[1].rnic, 0, 1, &flow.dst);
	rnic_gid(net.end[0].rnic, 0, 1, &flow.src);
	return (size_t)wire_build_frame(frame, NET_FRAME, &flow, hdr, payload, len);
}

/* Packet psn of PART of a message to AT. */
static struct wire_hdr header(const struct kind *kind, unsigned psn, uint32_t rkey)
{
	struct end *b = &net.end[1];

	return (struct wire_hdr){.opcode = kind->opcode[psn == 0         ? 0
							: psn + 1 < PART ? 1
									 : 2] |
					   b->qp->ops->opcodes,
		.psn = psn,
		.dqpn = rnic_qp_num(b->qp),
		.va = (uintptr_t)b->buf + AT,
		.rkey = rkey,
		.dmalen = PART * MTU,
		.pos_offset = psn * MTU};
}

static size_t make(uint8_t frame[NET_FRAME], const struct kind *kind, unsigned psn, uint32_t rkey)
{
	const struct wire_hdr hdr = header(kind, psn, rkey);

	return build(frame, &hdr, net.end[0].buf + psn * MTU, MTU);
}

static unsigned take(uint8_t *frame, size_t n)
{
	return rnic_rx(net.end[1].rnic, 0, frame, n, net.now);
}

/* One bit of the payload's last byte but `behind`. */
static unsigned take_wrong(uint8_t *frame, size_t n, size_t behind)
{
	unsigned drop;

	frame[n - 5 - behind] ^= 1;
	drop = take(frame, n);
	frame[n - 5 - behind] ^= 1;
	return drop;
}

static void untouched(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		assert_int_equal(0xee, net.end[1].buf[i]);
}

static void open_net(const struct kind *kind)
{
	memset(&net, 0, sizeof(net));
	net_connect(&net, &kind->options);
	for (unsigned i = 0; i < PART * MTU; i++)
		net.end[0].buf[i] = (uint8_t)(i * 7 + i / 251);
	assert_int_equal(0, end_recv(&net.end[1], 1, AT, PART * MTU));
}

/* A wrong packet in the middle leaves its bytes where the right one's go, and nothing else: nothing
 * is taken, and the right one, and the rest, come to the same as ever. A wrong one that begins or
 * ends a message leaves nothing. */
static void wrong_ones(void **state)
{
	uint8_t frame[NET_FRAME];

	(void)state;
	for (unsigned k = 0; k < N_KINDS; k++) {
		struct end *b = &net.end[1];
		uint8_t *to;
		struct rnic_qp_stats before, after;

		open_net(&kinds[k]);
		to = b->buf + AT;
		for (unsigned psn = 0; psn < PART; psn++) {
			const size_t n = make(frame, &kinds[k], psn, rnic_mr_rkey(b->mr));

			rnic_qp_stats(b->qp, &before);
			assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 100));
			rnic_qp_stats(b->qp, &after);
			assert_int_equal(before.epsn, after.epsn);
			if (psn > 0 && psn + 1 < PART) {
				assert_memory_equal(
					to + psn * MTU, net.end[0].buf + psn * MTU, MTU - 101);
				assert_memory_not_equal(
					to + psn * MTU, net.end[0].buf + psn * MTU, MTU);
			} else {
				untouched(AT + psn * MTU, AT + (psn + 1) * MTU);
			}
			untouched(AT + (psn + 1) * MTU, (unsigned)b->buf_len);
			assert_int_equal(0, take(frame, n));
			assert_memory_equal(to, net.end[0].buf, (psn + 1) * MTU);
		}
		untouched(0, AT);
		assert_int_equal(PART, rnic_drop_count(b->rnic, WIRE_ICRC_BAD));
		net_check_counters(&net);
		net_close(&net);
	}
}

/* What is not the next packet of this message has no place before it is known to be right. */
static void no_place(void **state)
{
	uint8_t first[NET_FRAME], frame[NET_FRAME], *bth = frame + 14 + 20 + 8;
	struct end *b = &net.end[1];
	size_t n;

	(void)state;
	open_net(&kinds[0]);
	n = make(frame, &kinds[0], 1, rnic_mr_rkey(b->mr));
	assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 0)); /* no message yet */
	assert_int_equal(0, take(first, make(first, &kinds[0], 0, rnic_mr_rkey(b->mr))));
	bth[11] = 2; /* a PSN ahead, and one that was */
	assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 0));
	bth[11] = 0;
	assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 0));
	bth[11] = 1;
	bth[0] = ROCE_SEND_MIDDLE; /* of no message of that kind */
	assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 0));
	bth[0] = ROCE_WRITE_MIDDLE;
	frame[14 + 12 + 3] ^= 1; /* from somebody else; ICRC and IPv4 checksum would not be right */
	assert_int_not_equal(0, take(frame, n));
	untouched(AT + MTU, (unsigned)b->buf_len);
	net_close(&net);
}

/* A CNP is no packet of a message, though its opcode's last bits, its length and its PSN are those
 * of the one that is next. */
static void no_place_for_cnp(void **state)
{
	uint8_t frame[NET_FRAME];

	(void)state;
	for (unsigned k = 0; k < N_KINDS; k++) {
		struct end *b = &net.end[1];
		const uint32_t rkey = (open_net(&kinds[k]), rnic_mr_rkey(b->mr));
		struct wire_hdr hdr = header(&kinds[k], 1, rkey);
		struct rnic_qp_stats stats;
		size_t n;

		hdr.opcode = ROCE_CNP;
		assert_int_equal(0, take(frame, make(frame, &kinds[k], 0, rkey)));
		n = build(frame, &hdr, net.end[0].buf + 3 * MTU, MTU);
		assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 100));
		assert_int_equal(0, take(frame, n));
		untouched(AT + MTU, (unsigned)b->buf_len);
		rnic_qp_stats(b->qp, &stats);
		assert_int_equal(1, stats.epsn);
		for (unsigned psn = 1; psn < PART; psn++)
			assert_int_equal(0, take(frame, make(frame, &kinds[k], psn, rkey)));
		assert_memory_equal(b->buf + AT, net.end[0].buf, PART * MTU);
		untouched(AT + PART * MTU, (unsigned)b->buf_len);
		net_close(&net);
	}
}

/* ---- SR: behind a missing packet ---- */

static void holds(unsigned psn)
{
	assert_memory_equal(net.end[1].buf + AT + psn * MTU, net.end[0].buf + psn * MTU, MTU);
}

/* Behind a missing packet of the message a wrong one leaves its bytes in the place that its PSN
 * has, if that one has not come, and no others; what has come keeps its bytes, and completes. */
static void ahead(void **state)
{
	uint8_t frame[NET_FRAME], *bth = frame + 14 + 20 + 8;
	size_t n;

	(void)state;
	for (unsigned k = SR_WRITE; k <= SR_SEND; k++) {
		struct end *b = &net.end[1];
		const uint32_t rkey = (open_net(&kinds[k]), rnic_mr_rkey(b->mr));

		n = make(frame, &kinds[k], 0, rkey);
		assert_int_equal(0, take(frame, n));
		n = make(frame, &kinds[k], 2, rkey);
		assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 100));
		assert_memory_equal(b->buf + AT + 2 * MTU, net.end[0].buf + 2 * MTU, MTU - 101);
		untouched(AT + MTU, AT + 2 * MTU);
		untouched(AT + 3 * MTU, (unsigned)b->buf_len);
		assert_int_equal(0, take(frame, n));
		holds(2);
		assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 100)); /* it has come */
		holds(2);
		bth[11] = 0; /* and so has this one */
		assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 0));
		holds(0);
		n = make(frame, &kinds[k], 4, rkey); /* the message's end */
		assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 100));
		untouched(AT + 4 * MTU, AT + 5 * MTU);
		assert_int_equal(0, take(frame, n));
		n = make(frame, &kinds[k], 1, rkey);
		assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 100));
		end_no_wc(b->rcq);
		assert_int_equal(0, take(frame, n));
		n = make(frame, &kinds[k], 3, rkey);
		assert_int_equal(0, take(frame, n));
		for (unsigned psn = 0; psn < PART; psn++)
			holds(psn);
		untouched(0, AT);
		untouched(AT + PART * MTU, (unsigned)b->buf_len);
		if (k == SR_SEND)
			assert_int_equal(PART * MTU, end_wc(b->rcq).byte_len);
		net_close(&net);
	}
}

/* One that says of its place what is not so is verified first. */
static void disagrees(void **state)
{
	uint8_t frame[NET_FRAME];

	(void)state;
	for (unsigned i = 0; i < 7; i++) {
		struct wire_hdr hdr;
		size_t n;

		open_net(&kinds[SR_WRITE]);
		n = make(frame, &kinds[SR_WRITE], 0, rnic_mr_rkey(net.end[1].mr));
		assert_int_equal(0, take(frame, n));
		hdr = header(&kinds[SR_WRITE], 2, rnic_mr_rkey(net.end[1].mr));
		hdr.va += i == 0 ? MTU : 0;
		hdr.rkey ^= i == 1;
		hdr.dmalen -= i == 2;
		hdr.pos_offset += i == 3 ? MTU : 0;
		hdr.pos_recv += i == 4;
		hdr.psn += i == 5;         /* of another PSN's place */
		hdr.psn += i == 6 ? 2 : 0; /* the message's end, and no LAST */
		hdr.pos_offset += i == 6 ? 2 * MTU : 0;
		n = build(frame, &hdr, net.end[0].buf, MTU);
		assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 0));
		untouched(0, AT);
		untouched(AT + MTU, (unsigned)net.end[1].buf_len);
		net_close(&net);
	}
}

/* ---- UD ---- */

static size_t datagram(uint8_t frame[NET_FRAME], uint32_t qkey, size_t len)
{
	const struct wire_hdr hdr = {.opcode = ROCE_UD | ROCE_SEND_ONLY,
		.dqpn = rnic_qp_num(net.end[1].qp),
		.qkey = qkey,
		.sqpn = 77};

	return build(frame, &hdr, net.end[0].buf, len);
}

/* With a shared receive queue, or without. */
static void open_ud(bool shared)
{
	struct net_options options = {.type = IBV_QPT_UD};
	struct ibv_srq_attr attr = {.max_wr = 4, .max_sge = 1};

	memset(&net, 0, sizeof(net));
	srq = NULL;
	net_open(&net, &options);
	if (shared)
		assert_int_equal(0, rnic_srq_create(net.end[1].pd, &attr, NULL, &srq));
	options.srq[1] = srq;
	for (int i = 0; i < 2; i++)
		net.end[i].qp = net_make_qp(&net.end[i], &options);
	for (int i = 0; i < 2; i++)
		net_to_rts(&net, i, net.end[i].qp, rnic_qp_num(net.end[!i].qp), &options);
	memset(net.end[1].buf, 0xee, net.end[1].buf_len);
	for (unsigned i = 0; i < MTU; i++)
		net.end[0].buf[i] = (uint8_t)(i * 7 + i / 251);
}

static void post(uint64_t id, unsigned at)
{
	struct end *b = &net.end[1];
	struct ibv_sge sge = {(uintptr_t)b->buf + at, GRH + MTU, rnic_mr_lkey(b->mr)};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

	assert_int_equal(
		0, srq != NULL ? rnic_srq_post_recv(srq, &wr) : rnic_post_recv(b->qp, &wr));
}

static void check_datagrams(bool shared)
{
	struct end *b = &net.end[1];
	uint8_t frame[NET_FRAME];
	struct ibv_wc wc;
	size_t n;

	open_ud(shared);
	n = datagram(frame, NET_QKEY, MTU);
	assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 100)); /* nothing is posted */
	post(1, AT);
	post(2, 0);
	assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 100));
	untouched(0, AT + GRH);
	assert_memory_equal(b->buf + AT + GRH, net.end[0].buf, MTU - 101);
	untouched(AT + GRH + MTU, (unsigned)b->buf_len);
	end_no_wc(b->rcq);
	assert_int_equal(0, take(frame, n));
	wc = end_wc(b->rcq);
	assert_int_equal(1, wc.wr_id);
	assert_int_equal(GRH + MTU, wc.byte_len);
	assert_int_equal(77, wc.src_qp);
	assert_int_equal(0x45, b->buf[AT + 20]);
	assert_memory_equal(b->buf + AT + GRH, net.end[0].buf, MTU);
	untouched(0, AT);
	assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 100));
	assert_memory_equal(b->buf + AT + GRH, net.end[0].buf, MTU); /* it is the program's */
	assert_int_equal(0, take(frame, n));
	assert_int_equal(2, end_wc(b->rcq).wr_id);
	assert_int_equal(0, rnic_qp_destroy(b->qp));
	b->qp = NULL;
	if (shared)
		assert_int_equal(0, rnic_srq_destroy(srq));
	net_close(&net);
}

/* A wrong datagram leaves its payload in the receive request that is next, which the right one
 * takes; another one finds its own. */
static void datagrams(void **state)
{
	(void)state;
	check_datagrams(false);
	check_datagrams(true);
}

/* Of another Q_Key, too long, to memory that is not whole or not the QP's. */
static void no_datagrams(void **state)
{
	struct end *b = &net.end[1];
	struct ibv_sge sge[2] = {{0, GRH, 0}, {0, MTU, 0}};
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 2};
	uint8_t frame[NET_FRAME];
	size_t n;

	(void)state;
	open_ud(false);
	assert_int_equal(0, end_recv(b, 1, AT, GRH + MTU - 4));
	n = datagram(frame, NET_QKEY, MTU);
	assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 100));
	n = datagram(frame, NET_QKEY + 1, MTU - 4);
	assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 100));
	untouched(0, (unsigned)b->buf_len);
	n = datagram(frame, NET_QKEY, MTU - 4);
	assert_int_equal(0, take(frame, n));
	assert_int_equal(1, end_wc(b->rcq).wr_id);
	memset(b->buf, 0xee, b->buf_len);

	for (unsigned i = 0; i < 2; i++) {
		sge[i].addr = (uintptr_t)b->buf + AT + i * GRH;
		sge[i].lkey = rnic_mr_lkey(b->mr);
	}
	assert_int_equal(0, rnic_post_recv(b->qp, &wr));
	assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 100));
	untouched(0, (unsigned)b->buf_len);
	assert_int_equal(0, take(frame, n));
	(void)end_wc(b->rcq);
	memset(b->buf, 0xee, b->buf_len);

	wr.num_sge = 1;
	sge[0].length = GRH + MTU;
	sge[0].lkey ^= 1;
	assert_int_equal(0, rnic_post_recv(b->qp, &wr));
	assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 100));
	assert_int_equal(RNIC_DROP_ACCESS, take(frame, n));
	untouched(0, (unsigned)b->buf_len);
	assert_int_equal(IBV_WC_LOC_PROT_ERR, end_wc(b->rcq).status);
	net_close(&net);
}

/* The region has gone since the message began. */
static void no_region(void **state)
{
	uint8_t frame[NET_FRAME];
	struct end *b = &net.end[1];
	struct rnic_mr *mr;
	uint32_t rkey;
	size_t n;

	(void)state;
	open_net(&kinds[0]);
	assert_int_equal(
		0, rnic_mr_reg(b->pd, b->buf, b->buf_len, (uintptr_t)b->buf, NET_ALL_ACCESS, &mr));
	rkey = rnic_mr_rkey(mr);
	n = make(frame, &kinds[0], 0, rkey);
	assert_int_equal(0, take(frame, n));
	assert_int_equal(0, rnic_mr_dereg(mr));
	n = make(frame, &kinds[0], 1, rkey);
	assert_int_equal(WIRE_ICRC_BAD, take_wrong(frame, n, 0));
	assert_int_equal(RNIC_DROP_ACCESS, take(frame, n));
	untouched(AT + MTU, (unsigned)b->buf_len);
	net_close(&net);
}

/* Once, the second response. */
static bool break_response(struct net *n, int from, uint8_t *frame, size_t *len)
{
	const uint8_t opcode = frame[14 + 20 + 8];

	if (from == 1 && opcode == ROCE_READ_RESP_MIDDLE && n->hook_n++ == 0)
		frame[*len - 5] ^= 1;
	return true;
}

static void reads(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];

	(void)state;
	open_net(&kinds[0]);
	memcpy(b->buf, a->buf, 4 * MTU + 5);
	memset(a->buf, 0xee, a->buf_len);
	net.hook = break_response;
	assert_int_equal(0, end_send(a, IBV_WR_RDMA_READ, 5, AT, 4 * MTU + 5, (uintptr_t)b->buf,
				    rnic_mr_rkey(b->mr)));
	net_run(&net, FOREVER);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
	assert_int_equal(1, rnic_drop_count(a->rnic, WIRE_ICRC_BAD));
	assert_memory_equal(a->buf + AT, b->buf, 4 * MTU + 5);
	for (size_t i = AT + 4 * MTU + 5; i < a->buf_len; i++)
		assert_int_equal(0xee, a->buf[i]);
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_ones),
		cmocka_unit_test(no_place),
		cmocka_unit_test(no_place_for_cnp),
		cmocka_unit_test(ahead),
		cmocka_unit_test(disagrees),
		cmocka_unit_test(datagrams),
		cmocka_unit_test(no_datagrams),
		cmocka_unit_test(no_region),
		cmocka_unit_test(reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
