/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets in the middle of a message, whose payload is copied to its place and found right in one
 * pass: what one that is wrong leaves behind, and which ones are verified first all the same. */
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/transport.h"
#include "tests/unit/rnic/net.h"

enum { MTU = 1024, PART = 3, AT = 4096 };

static struct net net;

static const struct kind {
	const struct net_options options;
	uint8_t opcode[PART]; /* FIRST, MIDDLE, LAST */
} kinds[] = {
	{{.type = IBV_QPT_RC}, {ROCE_WRITE_FIRST, ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST}},
	{{.type = IBV_QPT_RC}, {ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST}},
	{{.type = IBV_QPT_UC}, {ROCE_WRITE_FIRST, ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST}},
	{{.type = IBV_QPT_UC}, {ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST}},
};

/* Packet psn of three of a message to AT. */
static size_t make(uint8_t frame[NET_FRAME], const struct kind *kind, unsigned psn, uint32_t rkey)
{
	struct end *b = &net.end[1];
	struct wire_flow flow = {.ttl = 64, .sport = 0xd00d};
	struct wire_hdr hdr = {.opcode = kind->opcode[psn] | b->qp->ops->opcodes,
		.psn = psn,
		.dqpn = rnic_qp_num(b->qp),
		.va = (uintptr_t)b->buf + AT,
		.rkey = rkey,
		.dmalen = PART * MTU};

	rnic_mac(b->rnic, 0, flow.dmac);
	rnic_mac(net.end[0].rnic, 0, flow.smac);
	rnic_gid(b->rnic, 0, 1, &flow.dst);
	rnic_gid(net.end[0].rnic, 0, 1, &flow.src);
	return (size_t)wire_build_frame(
		frame, NET_FRAME, &flow, &hdr, net.end[0].buf + psn * MTU, MTU);
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
	for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
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
			if (psn == 1) {
				assert_memory_equal(to + MTU, net.end[0].buf + MTU, MTU - 101);
				assert_memory_not_equal(to + MTU, net.end[0].buf + MTU, MTU);
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
		cmocka_unit_test(no_region),
		cmocka_unit_test(reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
