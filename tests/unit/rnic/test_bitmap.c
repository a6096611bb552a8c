/* SPDX-License-Identifier: BSD-3-Clause */
/* A window with marks, of WRITEs and of datagrams: what is marked is there, what is not was not
 * touched, and the last of all that is expected tells. */
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
	CHUNKS = 70, /* of a part; the last one is shorter */
	BLOCK = CHUNKS * MTU - 100,
	PARTS = 3, /* the middle one is nobody's: the own one */
	ALL = PARTS * CHUNKS,
	MASK = 0xffffff,
	FIRST = 0x07fffff0, /* the number wraps behind the sixteenth chunk, the bits above stay */
	AT = 4096,          /* of the window in end 1's buffer */
	GROUP = 0xef810203,
	SENDER = 0x4711, /* queue pair of both writers */
	LAST = CHUNKS - 1,
};

static struct net net;
static bool over_ud;
static struct rnic_qp *receiver;
static uint8_t result[PARTS * BLOCK]; /* as it should become */
static uint64_t bits[(ALL + 63) / 64], again;
static const struct wire_ip group = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xef, 0x81, 2, 3}};

static uint32_t number(unsigned chunk)
{
	return (FIRST & ~MASK) | ((FIRST + chunk) & MASK);
}

static struct wire_ip source(unsigned part)
{
	return wire_ip_from4(0x0a4d0010 + part);
}

static void to_rtr(void)
{
	const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = NET_QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 0xffffff,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}}};

	memcpy(attr.ah_attr.grh.dgid.raw, group.b, 16);
	assert_int_equal(
		0, rnic_qp_modify(receiver, &attr,
			   to_init | (over_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS), net.now));
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(0, rnic_qp_modify(receiver, &attr,
				    over_ud ? IBV_QP_STATE
					    : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
				    net.now));
}

static struct rnic_mcast_writer writers[2];

/* What is 0 in w is the usual. */
static int open_window(struct rnic_mcast_window w)
{
	struct end *b = &net.end[1];

	for (unsigned i = 0; i < 2; i++)
		writers[i] = (struct rnic_mcast_writer){.ip = source(i * 2),
			.qpn = SENDER,
			.va = i * 2 * BLOCK,
			.len = BLOCK,
			.first = number(i * 2 * CHUNKS)};
	w.key = KEY;
	w.lkey = rnic_mr_lkey(b->mr);
	w.addr = (uintptr_t)b->buf + AT;
	w.len = PARTS * BLOCK;
	w.number_mask = MASK;
	w.chunk = w.chunk ?: MTU;
	w.n_writers = w.writer ? w.n_writers : 2;
	w.writer = w.writer ?: writers;
	w.marks = (struct rnic_mcast_marks){.bit = bits,
		.n = w.marks.n ?: ALL,
		.first = w.marks.first,
		.expect = w.marks.expect ?: 2 * CHUNKS,
		.again = &again};
	memset(bits, 0, sizeof(bits));
	again = 0;
	return rnic_qp_mcast_window(receiver, &w);
}

static void open_net(void)
{
	const struct net_options options = {.type = over_ud ? IBV_QPT_UD : IBV_QPT_UC,
		.transport = over_ud ? NULL : &rnic_uc_mcast};

	memset(&net, 0, sizeof(net));
	net_open(&net, &options);
	receiver = net.end[1].qp = net_make_qp(&net.end[1], &options);
	to_rtr();
	assert_int_equal(0, rnic_qp_attach_mcast(receiver, &group));
	for (size_t i = 0; i < sizeof(result); i++)
		result[i] = (uint8_t)(i * 7 + i / MTU);
	assert_int_equal(0, open_window((struct rnic_mcast_window){0}));
}

static unsigned frame(const struct wire_ip *src, struct wire_hdr hdr, const uint8_t *payload,
	size_t len, const struct wire_ip *to)
{
	struct wire_flow flow = {.ttl = 64, .sport = 0xd00d, .src = *src, .dst = *to};
	uint8_t bytes[NET_FRAME];
	int n;

	if (wire_is_multicast(to))
		wire_multicast_mac(to, flow.dmac);
	else
		rnic_mac(net.end[1].rnic, 0, flow.dmac);
	flow.smac[0] = 2;
	n = wire_build_frame(bytes, sizeof(bytes), &flow, &hdr, payload, len);
	assert_true(n > 0);
	return rnic_rx(net.end[1].rnic, 0, bytes, (size_t)n, net.now);
}

/* As a writer sends that chunk; of the whole numbering. */
static struct wire_hdr header(unsigned chunk)
{
	const unsigned part = chunk / CHUNKS, at = chunk % CHUNKS;
	struct wire_hdr hdr = {.dqpn = 0xffffff, .imm = number(chunk)};

	if (over_ud) {
		hdr.opcode = ROCE_UD | ROCE_SEND_ONLY_IMM;
		hdr.qkey = NET_QKEY;
		hdr.sqpn = SENDER;
	} else {
		hdr.opcode = ROCE_UC | ROCE_WRITE_ONLY_IMM;
		hdr.rkey = KEY;
		hdr.va = part * BLOCK + at * MTU;
		hdr.dmalen = at == LAST ? MTU - 100 : MTU;
	}
	return hdr;
}

static const uint8_t *bytes_of(unsigned chunk)
{
	return result + chunk / CHUNKS * BLOCK + chunk % CHUNKS * MTU;
}

static size_t len_of(unsigned chunk)
{
	return chunk % CHUNKS == LAST ? MTU - 100 : MTU;
}

static unsigned send_chunk(unsigned chunk)
{
	const struct wire_ip src = source(chunk / CHUNKS);

	return frame(&src, header(chunk), bytes_of(chunk), len_of(chunk), &group);
}

static void post_recv(void)
{
	assert_int_equal(0, rnic_post_recv(receiver, &(struct ibv_recv_wr){.wr_id = 77}));
}

static bool is_marked(unsigned chunk)
{
	return bits[chunk / 64] >> chunk % 64 & 1;
}

/* Marked is what is there, the rest of the buffer is as it was. */
static void check(const bool has[ALL])
{
	const uint8_t *buf = net.end[1].buf;
	uint8_t untouched[MTU];

	memset(untouched, 0xee, sizeof(untouched));
	for (unsigned i = 0; i < ALL; i++) {
		assert_int_equal(has[i], is_marked(i));
		assert_memory_equal(buf + AT + (bytes_of(i) - result),
			has[i] ? bytes_of(i) : untouched, len_of(i));
	}
	assert_memory_equal(buf + AT - MTU, untouched, MTU);
	assert_memory_equal(buf + AT + sizeof(result), untouched, MTU);
}

/* Any order, some twice, the second time with other bytes: told once, by the last. */
static void any_order(void **state)
{
	const uint8_t other[MTU] = {1};
	unsigned order[2 * CHUNKS], twice = 0;
	bool has[ALL] = {false};
	struct ibv_wc wc;

	(void)state;
	open_net();
	post_recv();
	post_recv();
	for (unsigned i = 0; i < 2 * CHUNKS; i++) {
		const unsigned k = (unsigned)(net_random(&net) % (i + 1));

		order[i] = order[k];
		order[k] = i < CHUNKS ? i : i + CHUNKS;
	}
	for (unsigned i = 0; i < 2 * CHUNKS; i++) {
		const unsigned chunk = order[i], before = order[i / 2];
		const struct wire_ip src = source(before / CHUNKS);

		assert_int_equal(0, send_chunk(chunk));
		has[chunk] = true;
		if (i % 16 == 0)
			check(has);
		if (i % 3 != 0 || i + 1 == 2 * CHUNKS)
			continue;
		assert_int_equal(0, frame(&src, header(before), other, len_of(before), &group));
		assert_int_equal(++twice, again);
		end_no_wc(net.end[1].rcq);
	}
	check(has);
	wc = end_wc(net.end[1].rcq);
	assert_int_equal(IBV_WC_SUCCESS, wc.status);
	assert_int_equal(77, wc.wr_id);
	assert_int_equal(number(order[2 * CHUNKS - 1]), be32toh(wc.imm_data));
	assert_int_equal(0, send_chunk(0));
	end_no_wc(net.end[1].rcq);
	net_close(&net);
}

/* The last one has nobody to tell: it is lost as others are. */
static void no_request(void **state)
{
	bool has[ALL] = {false};

	(void)state;
	open_net();
	assert_int_equal(0, open_window((struct rnic_mcast_window){.marks.expect = 2}));
	assert_int_equal(0, send_chunk(5));
	assert_int_equal(RNIC_DROP_RNR, send_chunk(6));
	has[5] = true;
	check(has);
	post_recv();
	assert_int_equal(0, send_chunk(6));
	has[6] = true;
	check(has);
	end_wc(net.end[1].rcq);
	/* More than were expected: marked, and nobody is told. */
	assert_int_equal(0, send_chunk(7));
	has[7] = true;
	check(has);
	end_no_wc(net.end[1].rcq);
	net_close(&net);
}

struct bad {
	unsigned drop, source; /* part's */
	struct wire_hdr hdr;
	size_t len;
};

static void refuse(const struct bad *bad)
{
	static const uint8_t payload[2 * MTU];
	const struct wire_ip src = source(bad->source);
	const uint64_t n = rnic_drop_count(net.end[1].rnic, bad->drop);
	const bool none[ALL] = {false};
	const unsigned drop = frame(&src, bad->hdr, payload, bad->len, &group);

	if (drop != bad->drop)
		fail_msg("%s, not %s", rnic_drop_name(drop), rnic_drop_name(bad->drop));
	assert_int_equal(n + 1, rnic_drop_count(net.end[1].rnic, bad->drop));
	assert_int_equal(0, again);
	check(none);
}

static void attack(void **state)
{
	struct wire_hdr other_id = header(5), no_imm = header(5), other_qp = header(5);

	(void)state;
	open_net();
	post_recv();
	other_id.imm += MASK + 1;
	no_imm.opcode = over_ud ? ROCE_UD | ROCE_SEND_ONLY : ROCE_UC | ROCE_WRITE_ONLY;
	other_qp.sqpn++;
	const struct bad bad[] = {
		/* a stranger; writers in each other's part; the own part; beyond the last */
		{RNIC_DROP_SOURCE, 1, header(5), MTU},
		{RNIC_DROP_SOURCE, 2, header(5), MTU},
		{RNIC_DROP_SOURCE, 0, header(2 * CHUNKS), MTU},
		{RNIC_DROP_ACCESS, 0, header(CHUNKS), MTU},
		{RNIC_DROP_ACCESS, 1, header(CHUNKS), MTU},
		{RNIC_DROP_ACCESS, 2, header(ALL), MTU},
		{RNIC_DROP_ACCESS, 0, other_id, MTU},
		/* too short, too long, a whole one at the end, a short one before it */
		{RNIC_DROP_LENGTH, 0, header(5), MTU - 1},
		{RNIC_DROP_LENGTH, 0, header(5), MTU + 4},
		{RNIC_DROP_LENGTH, 0, header(LAST), MTU},
		{RNIC_DROP_LENGTH, 0, header(5), MTU - 100},
		{RNIC_DROP_UNSUPPORTED, 0, no_imm, MTU},
	};
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuse(&bad[i]);
	if (over_ud)
		refuse(&(struct bad){RNIC_DROP_SOURCE, 0, other_qp, MTU});
	end_no_wc(net.end[1].rcq);
	assert_int_equal(0, send_chunk(5));
	net_close(&net);
}

/* By key and offset, too. */
static void attack_by_address(void **state)
{
	struct wire_hdr key = header(5), va = header(5), dmalen = header(5), wrap = header(5);

	(void)state;
	if (over_ud)
		return;
	open_net();
	key.rkey++;
	va.va += MTU;
	wrap.va = UINT64_MAX;
	dmalen.dmalen++;
	refuse(&(struct bad){RNIC_DROP_ACCESS, 0, key, MTU});
	refuse(&(struct bad){RNIC_DROP_ACCESS, 0, va, MTU});
	refuse(&(struct bad){RNIC_DROP_ACCESS, 0, wrap, MTU});
	refuse(&(struct bad){RNIC_DROP_LENGTH, 0, dmalen, MTU});
	net_close(&net);
}

/* Closed, another collective's, its memory gone, RESET: nothing is written, nothing marked. */
static void late(void **state)
{
	const unsigned closed = over_ud ? RNIC_DROP_RNR : RNIC_DROP_ACCESS;
	struct end *b = &net.end[1];
	const bool none[ALL] = {false};

	(void)state;
	open_net();
	assert_int_equal(0, rnic_qp_mcast_window(receiver, NULL));
	assert_int_equal(closed, send_chunk(5));
	check(none);
	post_recv(); /* of no bytes: a datagram does not fit */
	assert_int_equal(over_ud ? RNIC_DROP_LENGTH : closed, send_chunk(5));
	assert_int_equal(0, open_window((struct rnic_mcast_window){0}));
	assert_int_equal(0, rnic_mr_dereg(b->mr));
	assert_int_equal(RNIC_DROP_ACCESS, send_chunk(5));
	assert_int_equal(0,
		rnic_mr_reg(b->pd, b->buf, b->buf_len, (uintptr_t)b->buf, NET_ALL_ACCESS, &b->mr));
	assert_int_equal(0, open_window((struct rnic_mcast_window){0}));
	assert_int_equal(
		0, rnic_qp_modify(receiver, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET},
			   IBV_QP_STATE, net.now));
	to_rtr();
	assert_int_equal(closed, send_chunk(5));
	check(none);
	net_close(&net);
}

/* A queue pair of datagrams takes nothing else while it has a window, then it does again. */
static void only_the_window(void **state)
{
	struct end *b = &net.end[1];
	struct wire_hdr hdr = header(5);
	struct wire_ip own;
	const struct wire_ip src = source(0);

	(void)state;
	if (!over_ud)
		return;
	open_net();
	assert_int_equal(0, rnic_gid(b->rnic, 0, 1, &own));
	hdr.dqpn = rnic_qp_num(receiver);
	assert_int_equal(0, end_recv(b, 3, AT, MTU + 40));
	assert_int_equal(RNIC_DROP_UNSUPPORTED, frame(&src, hdr, bytes_of(5), MTU, &own));
	assert_int_equal(
		0, open_window((struct rnic_mcast_window){.writer = writers, .n_writers = 0}));
	assert_int_equal(RNIC_DROP_ACCESS, send_chunk(5));
	assert_int_equal(0, rnic_qp_mcast_window(receiver, NULL));
	assert_int_equal(0, frame(&src, hdr, bytes_of(5), MTU, &own));
	assert_int_equal(3, end_wc(b->rcq).wr_id);
	net_close(&net);
}

static void refused(void **state)
{
	struct rnic_mcast_writer swapped[2], overlap[2], beyond[2];

	(void)state;
	open_net();
	swapped[0] = writers[1], swapped[1] = writers[0];
	memcpy(overlap, writers, sizeof(writers));
	overlap[1].first = number(LAST);
	memcpy(beyond, writers, sizeof(writers));
	beyond[1].len++;
	const struct rnic_mcast_window bad[] = {
		{.marks.n = ALL - 1},
		{.marks.first = 1},
		{.chunk = 4096 + 1},
		{.writer = swapped, .n_writers = 2},
		{.writer = overlap, .n_writers = 2},
		{.writer = beyond, .n_writers = 2},
	};
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (open_window(bad[i]) != -EINVAL)
			fail_msg("window %u", i);
	if (over_ud) {
		const struct rnic_mcast_window plain = {.lkey = rnic_mr_lkey(net.end[1].mr),
			.addr = (uintptr_t)net.end[1].buf,
			.len = PARTS * BLOCK,
			.number_mask = MASK,
			.chunk = MTU,
			.writer = writers,
			.n_writers = 2};

		assert_int_equal(-EINVAL, rnic_qp_mcast_window(receiver, &plain));
	}
	/* The one that was open still is. */
	assert_int_equal(0, send_chunk(5));
	assert_true(is_marked(5));
	net_close(&net);
}

static int by_ud(void **state)
{
	(void)state;
	over_ud = true;
	return 0;
}

static int by_uc(void **state)
{
	(void)state;
	over_ud = false;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_order),
		cmocka_unit_test(no_request),
		cmocka_unit_test(attack),
		cmocka_unit_test(attack_by_address),
		cmocka_unit_test(late),
		cmocka_unit_test(only_the_window),
		cmocka_unit_test(refused),
	};
	const int uc = cmocka_run_group_tests_name("uc", tests, by_uc, NULL);

	return uc ? uc : cmocka_run_group_tests_name("ud", tests, by_ud, NULL);
}
