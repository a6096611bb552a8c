/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives through the whole graph: frames of hosts in, results out, bit for bit; and groups
 * from the control plane's side. */
#include <errno.h>
#include <string.h>

#include "harness.h"
#include "lib/wire/bytes.h"

enum { MAX_HOSTS = 4, HOST_QPN = 0x20, START_PSN = 0xfffffe, CTRL_LEN = 32, M = 2, W = 2 };

static struct sw *sw;
static struct inc_ep_spec eps[MAX_HOSTS + 1];
static struct inc_group_spec spec;
static char err[SW_ERR_LEN];

static int start(void **state)
{
	(void)state;
	sw = h_start(4, NULL, NULL);
	err[0] = '\0';
	return 0;
}

static int stop(void **state)
{
	struct frame f;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		while (h_take(sw, i, &f))
			;
	h_check_balance(sw);
	assert_int_equal(h_value(sw, "mbufs_free"), h_value(sw, "mbufs"));
	assert_int_equal(h_value(sw, "head_mbufs_free"), sw->head_pool->size);
	h_stop(sw);
	return 0;
}

/* n hosts at ports 0..n-1; parent: the last of them is a switch above. */
static void make_spec(unsigned n, unsigned mtu, bool v6, bool parent)
{
	memset(eps, 0, sizeof(eps));
	spec = (struct inc_group_spec){
		.name = "g",
		.mode = INC_MODE_2,
		.kind = INC_SINGLE,
		.prim = INC_AR,
		.mtu = (uint16_t)mtu,
		.m = M,
		.w = W,
		.start_psn = START_PSN,
		.flags = INC_F_LATE_FLUSH,
		.n_ranks = (uint16_t)n,
		.n_ep = (uint8_t)n,
		.ep = eps,
	};
	for (unsigned i = 0; i < n; i++) {
		eps[i].remote_ip = v6 ? h_host6(i) : h_host4(i);
		eps[i].remote_qpn = HOST_QPN + i;
		eps[i].port = sw->ports[i].id;
		eps[i].host = true;
		eps[i].n_ranks = 1;
		eps[i].ranks[0] = (uint16_t)i;
	}
	if (parent) {
		eps[n - 1].parent = true;
		eps[n - 1].host = false;
	}
}

static unsigned create(void)
{
	unsigned slot = 0;

	if (sw_group_create(sw, &spec, true, &slot, err) != 0)
		fail_msg("%s", err);
	return slot;
}

/* What host i of the group in slot sends. */
static unsigned host_frame(uint8_t *out, unsigned slot, unsigned i, uint8_t opcode, uint32_t psn,
	uint32_t imm, const void *payload, unsigned len)
{
	const struct inc_ep *ep = inc_ep_at(sw_group_get(sw, slot), i);
	struct wire_flow flow = {
		.src = ep->flow.dst,
		.dst = ep->flow.src,
		.ttl = 63,
		.tos = IP_ECN_ECT0,
		.sport = 0xc123,
	};
	const struct wire_hdr hdr = {
		.opcode = opcode,
		.ackreq = opcode != ROCE_SEND_FIRST && opcode != ROCE_SEND_MIDDLE,
		.mig = true,
		.dqpn = ep->local_qpn,
		.psn = psn,
		.imm = imm,
		.ip_id = 99,
	};
	int n;

	h_host_mac(i, flow.smac);
	memcpy(flow.dmac, h_port_mac(sw, i), 6);
	n = wire_build_frame(out, H_FRAME_MAX, &flow, &hdr, payload, len);
	assert_true(n > 0);
	return (unsigned)n;
}

/* What the switch must send to endpoint i. */
static unsigned result_frame(uint8_t *out, unsigned slot, unsigned i, uint8_t opcode, uint32_t psn,
	uint32_t imm, const void *payload, unsigned len, uint16_t ip_id)
{
	const struct inc_ep *ep = inc_ep_at(sw_group_get(sw, slot), i);
	struct wire_flow flow = ep->flow;
	const struct wire_hdr hdr = {
		.opcode = opcode,
		.ackreq = opcode != ROCE_SEND_FIRST && opcode != ROCE_SEND_MIDDLE,
		.mig = true,
		.dqpn = ep->remote_qpn,
		.psn = psn,
		.imm = imm,
		.ip_id = ip_id,
	};
	int n;

	flow.tos |= IP_ECN_ECT0;
	n = wire_build_frame(out, H_FRAME_MAX, &flow, &hdr, payload, len);
	assert_true(n > 0);
	return (unsigned)n;
}

static uint32_t control(uint8_t payload[CTRL_LEN], unsigned bytes, unsigned mtu, unsigned seq)
{
	uint32_t n = (bytes + mtu - 1) / mtu;

	memset(payload, 0, CTRL_LEN);
	memcpy(payload, "INC1", 4);
	memcpy(payload + 4, &n, 4); /* little-endian, as this machine */
	memcpy(payload + 8, &bytes, 4);
	payload[20] = M;
	return 1u << 29 | 3u << 19 | (seq & 0xff); /* version 1, AllReduce, sum, int32 */
}

static void fill(int32_t *v, unsigned n, unsigned host, unsigned seed)
{
	for (unsigned k = 0; k < n; k++)
		v[k] = (int32_t)(k * 2654435761u + seed * 97 + host * 31);
}

/* The position rules of docs/inc-protocol.md, 2.4. */
static uint8_t opcode_at(unsigned p, unsigned n)
{
	unsigned i = p % M, len = n - (p - i) < M ? n - (p - i) : M;

	if (len == 1)
		return ROCE_SEND_ONLY;
	return i == 0 ? ROCE_SEND_FIRST : i == len - 1 ? ROCE_SEND_LAST : ROCE_SEND_MIDDLE;
}

struct op {
	unsigned slot, n_hosts, mtu, bytes, seq;
	uint32_t psn; /* of the control */
};

/* Takes the result from every port and compares it with what it must be. */
static void expect_results(const struct op *op, uint8_t opcode, uint32_t psn, uint32_t imm,
	const void *payload, unsigned len, unsigned min_segs, unsigned max_segs)
{
	for (unsigned i = 0; i < op->n_hosts; i++) {
		uint8_t want[H_FRAME_MAX];
		struct frame f;
		unsigned n;

		assert_true(h_take(sw, i, &f));
		n = result_frame(want, op->slot, i, opcode, psn, imm, payload, len,
			(uint16_t)(sw->lcore->port[sw->ports[i].id].ip_id - 1));
		assert_int_equal(f.len, n);
		assert_memory_equal(f.b, want, n);
		assert_in_range(f.segs, min_segs, max_segs);
		assert_false(h_take(sw, i, &f));
	}
}

/* One packet of every host; nothing comes before the last one's. */
static void one_psn(const struct op *op, uint8_t opcode, uint32_t psn, uint32_t imm,
	const uint8_t (*payload)[4096], unsigned len)
{
	uint8_t b[H_FRAME_MAX];
	struct frame f;

	for (unsigned i = 0; i < op->n_hosts; i++) {
		for (unsigned k = 0; k < op->n_hosts; k++)
			assert_false(h_take(sw, k, &f));
		h_inject(sw, i, b, host_frame(b, op->slot, i, opcode, psn, imm, payload[i], len));
		h_run(sw);
	}
}

static void run_op(struct op *op, unsigned min_segs)
{
	static uint8_t in[MAX_HOSTS][4096];
	int32_t sum[1024];
	uint32_t imm = control(in[0], op->bytes, op->mtu, op->seq);
	unsigned n = (op->bytes + op->mtu - 1) / op->mtu;

	for (unsigned i = 1; i < op->n_hosts; i++)
		memcpy(in[i], in[0], CTRL_LEN);
	one_psn(op, ROCE_SEND_ONLY_IMM, op->psn, imm, in, CTRL_LEN);
	expect_results(op, ROCE_SEND_ONLY_IMM, op->psn, imm, in[0], CTRL_LEN, 1, 1);
	for (unsigned p = 0; p < n; p++) {
		unsigned len = p + 1 < n ? op->mtu : op->bytes - p * op->mtu;
		uint32_t psn = psn_add(op->psn, (int32_t)p + 1);

		memset(sum, 0, sizeof(sum));
		for (unsigned i = 0; i < op->n_hosts; i++) {
			fill((int32_t *)in[i], len / 4, i, op->seq * 1000 + p);
			for (unsigned k = 0; k < len / 4; k++)
				sum[k] = (int32_t)((uint32_t)sum[k] +
						   (uint32_t)((int32_t *)in[i])[k]);
		}
		one_psn(op, opcode_at(p, n), psn, 0, in, len);
		expect_results(op, opcode_at(p, n), psn, 0, sum, len, len > 512 ? min_segs : 1,
			len > 512 ? min_segs : 1);
	}
	op->psn = psn_add(op->psn, (int32_t)n + 1);
	op->seq++;
}

static void all_reduce(void **state)
{
	static const unsigned mtus[] = {256, 512, 1024, 4096};

	(void)state;
	for (unsigned n = 2; n <= MAX_HOSTS; n++) {
		for (unsigned m = 0; m < 4; m++) {
			struct op op = {.n_hosts = n, .mtu = mtus[m], .psn = START_PSN};

			make_spec(n, mtus[m], (n + m) & 1, false);
			op.slot = create();
			op.bytes = 3 * mtus[m] + 20;
			run_op(&op, 3);
			op.bytes = 0; /* a barrier */
			run_op(&op, 3);
			op.bytes = 9 * mtus[m]; /* more than a lap of the ring */
			run_op(&op, 3);
			h_check_balance(sw);
			assert_int_equal(h_drop(sw, "icrc_bad"), 0);
			assert_int_equal(sw_group_delete(sw, op.slot, true, err), 0);
		}
	}
}

/* The same frames leave a port that cannot send chained buffers. */
static void all_reduce_contiguous(void **state)
{
	struct op op = {.n_hosts = 3, .mtu = 4096, .bytes = 3 * 4096 + 8, .psn = START_PSN};

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		sw->ports[i].multi_seg = false;
	make_spec(3, 4096, false, false);
	op.slot = create();
	run_op(&op, 1);
}

/* With a switch above: contributions go up as a sum, results come down and are copied. */
static void below_a_parent(void **state)
{
	uint8_t b[H_FRAME_MAX], want[H_FRAME_MAX], pay[CTRL_LEN];
	uint32_t imm = control(pay, 4096, 4096, 0);
	static int32_t v[3][1024], result[1024];
	struct frame f;
	unsigned slot, n;

	(void)state;
	make_spec(3, 4096, false, true);
	slot = create();
	for (unsigned i = 0; i < 2; i++)
		h_inject(sw, i, b,
			host_frame(b, slot, i, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN));
	h_run(sw);
	assert_true(h_take(sw, 2, &f));
	assert_false(h_take(sw, 0, &f));
	h_inject(sw, 2, b,
		host_frame(b, slot, 2, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN));
	h_run(sw);
	assert_true(h_take(sw, 0, &f));
	assert_true(h_take(sw, 1, &f));

	for (unsigned i = 0; i < 2; i++) {
		fill(v[i], 1024, i, 1);
		h_inject(sw, i, b,
			host_frame(
				b, slot, i, ROCE_SEND_ONLY, psn_add(START_PSN, 1), 0, v[i], 4096));
	}
	for (unsigned k = 0; k < 1024; k++)
		v[2][k] = (int32_t)((uint32_t)v[0][k] + (uint32_t)v[1][k]);
	h_run(sw);
	assert_true(h_take(sw, 2, &f));
	assert_int_equal(f.segs, 3);
	n = result_frame(want, slot, 2, ROCE_SEND_ONLY, psn_add(START_PSN, 1), 0, v[2], 4096, 1);
	assert_int_equal(f.len, n);
	assert_memory_equal(f.b, want, n);

	fill(result, 1024, 7, 7);
	h_inject(sw, 2, b,
		host_frame(b, slot, 2, ROCE_SEND_ONLY, psn_add(START_PSN, 1), 0, result, 4096));
	h_run(sw);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(h_take(sw, i, &f));
		assert_int_equal(f.segs, 3);
		n = result_frame(
			want, slot, i, ROCE_SEND_ONLY, psn_add(START_PSN, 1), 0, result, 4096, 1);
		assert_int_equal(f.len, n);
		assert_memory_equal(f.b, want, n);
	}
}

static void duplicates(void **state)
{
	struct op op = {.n_hosts = 2, .mtu = 1024, .bytes = 1024, .psn = START_PSN};
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = control(pay, 1024, 1024, 0);
	static int32_t v[256];
	struct frame f;
	unsigned len;

	(void)state;
	make_spec(2, 1024, false, false);
	op.slot = create();
	len = host_frame(b, op.slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN);
	h_expect_drop(sw, 0, b, len, "inc_consumed");
	h_expect_drop(sw, 0, b, len, "inc_dup_wait");
	h_inject(sw, 1, b,
		host_frame(b, op.slot, 1, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN));
	h_run(sw);
	assert_true(h_take(sw, 0, &f));
	assert_true(h_take(sw, 1, &f));
	/* The result, to the asker alone. */
	len = host_frame(b, op.slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN);
	h_exchange(sw, 0, b, len, 0, &f);
	/* An acknowledgement comes back to its host. */
	len = host_frame(b, op.slot, 1, ROCE_ACK, START_PSN, 0, NULL, 0);
	h_exchange(sw, 1, b, len, 1, &f);
	/* Wrong in one bit anywhere behind the variant fields: never aggregated. */
	fill(v, 256, 0, 0);
	len = host_frame(b, op.slot, 0, ROCE_SEND_ONLY, psn_add(START_PSN, 1), 0, v, 1024);
	b[700] ^= 4;
	h_expect_drop(sw, 0, b, len, "icrc_bad");
	b[700] ^= 4;
	h_expect_drop(sw, 0, b, len, "inc_consumed");
}

static void not_a_member(void **state)
{
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = control(pay, 0, 1024, 0);
	unsigned slot, len;

	(void)state;
	make_spec(2, 1024, false, false);
	spec.flags |= INC_F_STRICT_PORT;
	slot = create();
	len = host_frame(b, slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN);
	h_expect_drop(sw, 1, b, len, "inc_port");
	b[14 + 15] ^= 1; /* source address; the checksum is mended by its last byte's neighbour */
	put_be16(b + 24, 0);
	put_be16(b + 24, (uint16_t)~ip_sum(b + 14, 20, 0));
	h_expect_drop(sw, 0, b, len, "inc_source");
	assert_int_equal(sw_group_delete(sw, slot, true, err), 0);
	h_expect_drop(sw, 0, b, len, "inc_no_group");
}

/* ---- groups ---- */

static void refused(int rc, const char *text)
{
	unsigned slot = 4711;
	uint64_t size, used;

	assert_int_equal(sw_group_create(sw, &spec, true, &slot, err), rc);
	if (strstr(err, text) == NULL)
		fail_msg("\"%s\" does not contain \"%s\"", err, text);
	assert_int_equal(slot, 4711);
	sw_arena_usage(sw, &size, &used);
	assert_int_equal(used, 0);
	assert_int_equal(h_value(sw, "groups"), 0);
}

static void create_refused(void **state)
{
	(void)state;
	make_spec(2, 1024, false, false);
	eps[1].port = 31;
	refused(-ENOENT, "endpoints[1].port");
	make_spec(2, 1024, false, false);
	eps[1].remote_ip = h_ip("10.9.9.9");
	refused(-ENOENT, "endpoints[1].mac: 10.9.9.9");
	make_spec(2, 1024, false, false);
	eps[1].port = sw->ports[0].id;
	refused(-EINVAL, "reached by port p1, not p0");
	make_spec(2, 1024, false, false);
	eps[0].local_ip = h_ip("10.0.0.2");
	refused(-EINVAL, "endpoints[0].local_ip: 10.0.0.2 is not an address");
	make_spec(2, 4096, false, false);
	spec.w = 1024;
	refused(-ENOSPC, "aggregation memory");
	make_spec(2, 1024, false, false);
	spec.mode = INC_MODE_3;
	refused(-EOPNOTSUPP, "mode");
	make_spec(2, 1024, false, false);
	eps[0].remote_qpn = 0;
	refused(-EINVAL, "endpoints[0].qpn");
	make_spec(2, 1024, false, false);
	spec.n_ep = 0;
	refused(-EINVAL, "endpoints");
	h_stop(sw);
	sw = h_start(4, "{'addresses':['10.0.0.1']}", "{'mtu':1500}");
	make_spec(2, 1024, true, false);
	refused(-ENOENT, "no address of the family");
	make_spec(2, 2048, false, false);
	refused(-EINVAL, "more than the MTU 1500 of port p0");
}

static void filled_in(void **state)
{
	struct wire_ip own = h_ip("fd00::1");
	struct inc_ep *ep;
	uint8_t mac[6];

	(void)state;
	make_spec(2, 1024, true, false);
	ep = inc_ep_at(sw_group_get(sw, create()), 1);
	h_host_mac(1, mac);
	assert_memory_equal(ep->flow.dmac, mac, 6);
	assert_memory_equal(ep->flow.smac, h_port_mac(sw, 1), 6);
	assert_true(wire_ip_eq(&ep->flow.src, &own));
}

static void slots_and_generations(void **state)
{
	uint64_t size, used;
	unsigned slot, first;

	(void)state;
	make_spec(2, 1024, false, false);
	first = create();
	assert_int_equal(first, 1);
	assert_int_equal(sw_group_find(sw, "g"), (int)first);
	assert_int_equal(sw_group_find(sw, "h"), -ENOENT);
	assert_int_equal(sw_group_create(sw, &spec, true, &slot, err), -EEXIST);
	strcpy(spec.name, "h");
	assert_int_equal(create(), 2);
	sw_arena_usage(sw, &size, &used);
	assert_int_equal(size, 4096 << 10);
	assert_int_equal(used, 2 * 8 * 1024);
	assert_int_equal(inc_ep_at(sw_group_get(sw, first), 1)->local_qpn, inc_qpn(1, 1, 0));
	assert_int_equal(sw_group_delete(sw, first, true, err), 0);
	assert_null(sw_group_get(sw, first));
	assert_int_equal(sw_group_delete(sw, first, true, err), -ENOENT);
	strcpy(spec.name, "i");
	assert_int_equal(create(), first); /* no rest in this test */
	assert_int_equal(inc_ep_at(sw_group_get(sw, first), 1)->local_qpn, inc_qpn(1, 1, 1));
	/* 63 more lives of the slot, and the generation is 0 again. */
	for (unsigned i = 0; i < 63; i++) {
		assert_int_equal(sw_group_delete(sw, first, true, err), 0);
		assert_int_equal(create(), first);
	}
	assert_int_equal(inc_ep_at(sw_group_get(sw, first), 1)->local_qpn, inc_qpn(1, 1, 0));
	assert_null(sw_group_get(sw, 0));
	assert_null(sw_group_get(sw, INC_GROUP_SLOTS));
	assert_int_equal(sw_group_delete(sw, INC_GROUP_SLOTS, true, err), -ENOENT);
}

static void slots_rest(void **state)
{
	(void)state;
	h_stop(sw);
	sw = h_start(4, "{'slot_rest_ms':3600000}", NULL);
	make_spec(2, 1024, false, false);
	assert_int_equal(create(), 1);
	assert_int_equal(sw_group_delete(sw, 1, true, err), 0);
	assert_int_equal(create(), 2);
}

static void draining(void **state)
{
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = control(pay, 0, 1024, 0);
	unsigned slot;
	uint64_t until;

	(void)state;
	make_spec(2, 1024, false, false);
	slot = create();
	assert_int_equal(sw_group_delete(sw, slot, false, err), 0);
	assert_int_equal(sw_group_get(sw, slot)->state, INC_DRAINING);
	assert_int_equal(sw_group_delete(sw, slot, false, err), -EALREADY);
	h_expect_drop(sw, 0, b,
		host_frame(b, slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN),
		"inc_draining");
	until = sw->slot[slot].drain_until;
	sw_tick(sw, until - 1);
	assert_non_null(sw_group_get(sw, slot));
	sw_tick(sw, until);
	assert_null(sw_group_get(sw, slot));
}

static void activation(void **state)
{
	uint32_t qpn[3] = {0, 0x55, 0};
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = control(pay, 0, 1024, 0);
	unsigned slot, len;

	(void)state;
	make_spec(2, 1024, false, false);
	eps[1].remote_qpn = 0;
	assert_int_equal(sw_group_create(sw, &spec, false, &slot, err), 0);
	len = host_frame(b, slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN);
	h_expect_drop(sw, 0, b, len, "inc_group_state");
	assert_int_equal(sw_group_activate(sw, slot, NULL, 0, err), -EINVAL);
	assert_int_equal(sw_group_activate(sw, slot, qpn, 3, err), -EINVAL);
	qpn[1] = 0x1000000;
	assert_int_equal(sw_group_activate(sw, slot, qpn, 2, err), -EINVAL);
	qpn[1] = 0x55;
	qpn[0] = 0x66;
	assert_int_equal(sw_group_activate(sw, slot, qpn, 2, err), -EEXIST);
	qpn[0] = 0;
	assert_int_equal(sw_group_activate(sw, slot, qpn, 2, err), 0);
	assert_int_equal(sw_group_activate(sw, slot, qpn, 2, err), -EBUSY);
	assert_int_equal(sw_group_activate(sw, 77, qpn, 2, err), -ENOENT);
	h_expect_drop(sw, 0, b, len, "inc_consumed");
}

static void failed(void **state)
{
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = control(pay, 0, 1024, 0);
	struct wire_pkt pkt;
	struct frame f;
	unsigned slot;

	(void)state;
	make_spec(2, 1024, false, false);
	slot = create();
	assert_int_equal(sw_group_fail(sw, slot, err), 0);
	/* Told so, once. */
	h_exchange(sw, 0, b,
		host_frame(b, slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN), 0, &f);
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_true(wire_icrc_ok(f.b, &pkt));
	assert_int_equal(pkt.syndrome, ROCE_AETH_NAK | ROCE_NAK_REMOTE_OPERATION);
	assert_int_equal(h_drop(sw, "inc_group_failed"), 1);
	assert_int_equal(sw_group_delete(sw, slot, false, err), 0); /* nothing to finish */
	assert_null(sw_group_get(sw, slot));
}

static void stall(void **state)
{
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = control(pay, 0, 1024, 0);
	struct inc_group *g;
	struct frame f;
	unsigned slot;

	(void)state;
	make_spec(2, 1024, false, false);
	slot = create();
	g = sw_group_get(sw, slot);
	sw_tick(sw, g->last_progress_ns + sw->config.stall_ns + 1);
	assert_int_equal(h_value(sw, "stalls"), 0); /* nobody waits */
	h_inject(sw, 0, b,
		host_frame(b, slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN));
	h_run(sw);
	sw_tick(sw, g->last_progress_ns + sw->config.stall_ns - 1);
	assert_int_equal(h_value(sw, "stalls"), 0);
	sw_tick(sw, g->last_progress_ns + sw->config.stall_ns + 1);
	sw_tick(sw, g->last_progress_ns + sw->config.stall_ns + 2);
	assert_int_equal(h_value(sw, "stalls"), 1);
	assert_int_equal(h_value(sw, "groups_stalled"), 1);
	h_inject(sw, 1, b,
		host_frame(b, slot, 1, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN));
	h_run(sw);
	assert_true(h_take(sw, 0, &f));
	sw_tick(sw, port_now_ns());
	assert_int_equal(h_value(sw, "groups_stalled"), 0);
}

static void trace(void **state)
{
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = control(pay, 0, 1024, 0);
	struct sw_trace_rec rec[32];
	unsigned slot, n;

	(void)state;
	make_spec(2, 1024, false, false);
	slot = create();
	assert_int_equal(sw_trace_start(sw, -1, 10, err), 0);
	for (unsigned i = 0; i < 2; i++) {
		h_inject(sw, i, b,
			host_frame(b, slot, i, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN));
		h_run(sw);
	}
	n = sw_trace_read(sw, 0, rec, 32);
	assert_int_equal(n, 5 + 7);
	assert_string_equal(rec[2].node, "inc_lookup");
	assert_non_null(strstr(rec[2].text, "group g, endpoint 0, control"));
	assert_string_equal(rec[3].node, "inc_mode2");
	assert_non_null(strstr(rec[3].text, "inc_consumed"));
	assert_non_null(strstr(rec[3].text, "0x1"));
	assert_non_null(strstr(rec[8].text, "emits to endpoint 0, port p0"));
	assert_non_null(strstr(rec[9].text, "emits to endpoint 1, port p1"));
	assert_non_null(strstr(rec[10].text, "inc_done"));
	assert_int_equal(rec[11].packet, 2);
}

/* Without buffers copies are lost, and counted; nothing else happens. */
static void no_buffers(void **state)
{
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = control(pay, 0, 1024, 0);
	struct rte_mbuf *taken[20000];
	unsigned slot, n = 0;
	struct frame f;

	(void)state;
	make_spec(2, 1024, false, false);
	slot = create();
	for (unsigned i = 0; i < 2; i++)
		h_inject(sw, i, b,
			host_frame(b, slot, i, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN));
	while (n < 20000 && (taken[n] = rte_pktmbuf_alloc(sw->pool)) != NULL)
		n++;
	assert_in_range(n, 1, 19999);
	h_run(sw);
	rte_pktmbuf_free_bulk(taken, n);
	assert_int_equal(h_drop(sw, "no_mbuf"), 2);
	assert_false(h_take(sw, 0, &f));
	/* The host asks again and gets it. */
	h_exchange(sw, 0, b,
		host_frame(b, slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN), 0, &f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
		T(all_reduce),
		T(all_reduce_contiguous),
		T(below_a_parent),
		T(duplicates),
		T(not_a_member),
		T(create_refused),
		T(filled_in),
		T(slots_and_generations),
		T(slots_rest),
		T(draining),
		T(activation),
		T(failed),
		T(stall),
		T(trace),
		T(no_buffers),
#undef T
	};
	int failed_tests = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed_tests;
}
