/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives through the whole graph: frames of hosts in, results out, bit for bit. */
#include <string.h>

#include "collective.h"
#include "lib/wire/bytes.h"

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
/* Of the emission that was the last, in all its packets. */
static uint16_t last_ip_id(unsigned slot)
{
	return (uint16_t)(sw->worker[sw_group_worker(sw, slot)]->ip_id - 1);
}

static void expect_results(const struct op *op, uint8_t opcode, uint32_t psn, uint32_t imm,
	const void *payload, unsigned len, unsigned min_segs, unsigned max_segs)
{
	for (unsigned i = 0; i < op->n_hosts; i++) {
		uint8_t want[H_FRAME_MAX];
		struct frame f;
		unsigned n;

		assert_true(h_take(sw, i, &f));
		n = c_result_frame(
			want, op->slot, i, opcode, psn, imm, payload, len, last_ip_id(op->slot));
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
		h_inject(sw, i, b, c_host_frame(b, op->slot, i, opcode, psn, imm, payload[i], len));
		h_run(sw);
	}
}

static void run_op(struct op *op, unsigned min_segs)
{
	static uint8_t in[MAX_HOSTS][4096];
	int32_t sum[1024];
	uint32_t imm = c_control(in[0], op->bytes, op->mtu, op->seq);
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

			c_spec(n, mtus[m], (n + m) & 1, false);
			op.slot = c_create();
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
	c_spec(3, 4096, false, false);
	op.slot = c_create();
	run_op(&op, 1);
}

/* With a switch above: contributions go up as a sum, results come down and are copied. */
static void below_a_parent(void **state)
{
	uint8_t b[H_FRAME_MAX], want[H_FRAME_MAX], pay[CTRL_LEN];
	uint32_t imm = c_control(pay, 4096, 4096, 0);
	static int32_t v[3][1024], result[1024];
	struct frame f;
	unsigned slot, n;

	(void)state;
	c_spec(3, 4096, false, true);
	slot = c_create();
	for (unsigned i = 0; i < 2; i++)
		h_inject(sw, i, b,
			c_host_frame(
				b, slot, i, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN));
	h_run(sw);
	assert_true(h_take(sw, 2, &f));
	assert_false(h_take(sw, 0, &f));
	h_inject(sw, 2, b,
		c_host_frame(b, slot, 2, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN));
	h_run(sw);
	assert_true(h_take(sw, 0, &f));
	assert_true(h_take(sw, 1, &f));

	for (unsigned i = 0; i < 2; i++) {
		fill(v[i], 1024, i, 1);
		h_inject(sw, i, b,
			c_host_frame(
				b, slot, i, ROCE_SEND_ONLY, psn_add(START_PSN, 1), 0, v[i], 4096));
	}
	for (unsigned k = 0; k < 1024; k++)
		v[2][k] = (int32_t)((uint32_t)v[0][k] + (uint32_t)v[1][k]);
	h_run(sw);
	assert_true(h_take(sw, 2, &f));
	assert_int_equal(f.segs, 3);
	n = c_result_frame(want, slot, 2, ROCE_SEND_ONLY, psn_add(START_PSN, 1), 0, v[2], 4096,
		last_ip_id(slot));
	assert_int_equal(f.len, n);
	assert_memory_equal(f.b, want, n);

	fill(result, 1024, 7, 7);
	h_inject(sw, 2, b,
		c_host_frame(b, slot, 2, ROCE_SEND_ONLY, psn_add(START_PSN, 1), 0, result, 4096));
	h_run(sw);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(h_take(sw, i, &f));
		assert_int_equal(f.segs, 3);
		n = c_result_frame(want, slot, i, ROCE_SEND_ONLY, psn_add(START_PSN, 1), 0, result,
			4096, last_ip_id(slot));
		assert_int_equal(f.len, n);
		assert_memory_equal(f.b, want, n);
	}
}

static void duplicates(void **state)
{
	struct op op = {.n_hosts = 2, .mtu = 1024, .bytes = 1024, .psn = START_PSN};
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = c_control(pay, 1024, 1024, 0);
	static int32_t v[256];
	struct frame f;
	unsigned len;

	(void)state;
	c_spec(2, 1024, false, false);
	op.slot = c_create();
	len = c_host_frame(b, op.slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN);
	h_expect_drop(sw, 0, b, len, "inc_consumed");
	h_expect_drop(sw, 0, b, len, "inc_dup_wait");
	assert_int_equal(h_losses(sw), 0); /* all is well: nothing to put an alarm on */
	h_inject(sw, 1, b,
		c_host_frame(b, op.slot, 1, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN));
	h_run(sw);
	assert_true(h_take(sw, 0, &f));
	assert_true(h_take(sw, 1, &f));
	/* The result, to the asker alone. */
	len = c_host_frame(b, op.slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN);
	h_exchange(sw, 0, b, len, 0, &f);
	/* An acknowledgement comes back to its host. */
	len = c_host_frame(b, op.slot, 1, ROCE_ACK, START_PSN, 0, NULL, 0);
	h_exchange(sw, 1, b, len, 1, &f);
	/* Wrong in one bit anywhere behind the variant fields: never aggregated. */
	fill(v, 256, 0, 0);
	len = c_host_frame(b, op.slot, 0, ROCE_SEND_ONLY, psn_add(START_PSN, 1), 0, v, 1024);
	b[700] ^= 4;
	h_expect_drop(sw, 0, b, len, "icrc_bad");
	assert_int_equal(h_losses(sw), 1);
	b[700] ^= 4;
	h_expect_drop(sw, 0, b, len, "inc_consumed");
}

/* An endpoint is in one VLAN, or in none. */
static void vlans(void **state)
{
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = c_control(pay, 0, 1024, 0);
	unsigned slot, len;

	(void)state;
	c_spec(2, 1024, false, false);
	eps[0].vlan = 7;
	slot = c_create();
	for (unsigned host = 0; host < 2; host++) {
		len = c_host_frame(
			b, slot, host, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN);
		if (host == 0)
			h_expect_drop(sw, host, b, len, "inc_vlan");
		h_tag(b, len, 99);
		h_expect_drop(sw, host, b, len + 4, "inc_vlan");
		b[15] = host == 0 ? 7 : 0;
		if (host == 0)
			h_expect_drop(sw, host, b, len + 4, "inc_consumed");
	}
	h_inject(sw, 1, b, len + 4); /* VLAN 0 is a priority, and no VLAN */
	h_run(sw);
	assert_int_equal(sw_group_get(sw, slot)->count[INC_C_COMPLETED], 1);
	struct frame f;
	struct wire_pkt pkt;
	assert_true(h_take(sw, 0, &f));
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_int_equal(pkt.vlan, 7);
	assert_true(h_take(sw, 1, &f));
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_int_equal(pkt.l3_off, ETH_HDR_LEN);
}

/* From a port, what the switch's own queue pair sends to a host: it is in this VLAN, and whole. The
 * last one with data. */
static unsigned mode1_frames(unsigned port, uint16_t vlan, int32_t *data)
{
	struct wire_pkt pkt;
	struct frame f;
	unsigned n = 0;

	while (h_take(sw, port, &f)) {
		assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
		assert_int_equal(pkt.vlan, vlan);
		assert_int_equal(pkt.l3_off, ETH_HDR_LEN + (vlan ? VLAN_HDR_LEN : 0));
		assert_true(wire_icrc_ok(f.b, &pkt));
		assert_int_equal(pkt.dqpn, HOST_QPN + port);
		if (pkt.opcode == ROCE_SEND_ONLY)
			memcpy(data, f.b + pkt.pay_off, sizeof(*data));
		n++;
	}
	return n;
}

/* Of Mode-I an endpoint is in one VLAN, or in none, too. */
static void mode1_vlan(void **state)
{
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = c_control(pay, 1024, 1024, 0);
	int32_t data[256] = {0}, sum[2] = {0};
	unsigned slot, len;

	(void)state;
	c_spec(2, 1024, false, false);
	spec.mode = INC_MODE_1;
	spec.flags = 0;
	eps[0].vlan = 7;
	slot = c_create();
	len = c_host_frame(b, slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN);
	h_expect_drop(sw, 0, b, len, "inc_vlan");
	h_tag(b, len, 8);
	h_expect_drop(sw, 0, b, len + 4, "inc_vlan");
	len = c_host_frame(b, slot, 1, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN);
	h_tag(b, len, 7);
	h_expect_drop(sw, 1, b, len + 4, "inc_vlan");
	assert_int_equal(h_drop(sw, "rnic_done"), 0);
	b[15] = 0; /* a priority, and no VLAN */
	h_inject(sw, 1, b, len + 4);
	h_run(sw);
	assert_int_equal(h_drop(sw, "rnic_done"), 1);
	len = c_host_frame(b, slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN);
	h_inject(sw, 0, b, h_tag(b, len, 7));
	h_run(sw);
	for (unsigned host = 0; host < 2; host++) {
		data[0] = 40 + (int32_t)host;
		len = c_host_frame(
			b, slot, host, ROCE_SEND_ONLY, START_PSN + 1, 0, data, sizeof(data));
		h_inject(sw, host, b, host == 0 ? h_tag(b, len, 7) : len);
		h_run(sw);
	}
	for (unsigned host = 0; host < 2; host++) {
		assert_in_range(mode1_frames(host, host == 0 ? 7 : 0, &sum[host]), 3, 4);
		assert_int_equal(sum[host], 81);
	}
	assert_int_equal(h_drop(sw, "inc_vlan"), 3);
	assert_int_equal(sw_group_delete(sw, slot, true, err), 0);
}

static void not_a_member(void **state)
{
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = c_control(pay, 0, 1024, 0);
	unsigned slot, len;

	(void)state;
	c_spec(2, 1024, false, false);
	spec.flags |= INC_F_STRICT_PORT;
	slot = c_create();
	len = c_host_frame(b, slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN);
	h_expect_drop(sw, 1, b, len, "inc_port");
	b[14 + 15] ^= 1; /* source address; the checksum is mended by its last byte's neighbour */
	put_be16(b + 24, 0);
	put_be16(b + 24, (uint16_t)~ip_sum(b + 14, 20, 0));
	h_expect_drop(sw, 0, b, len, "inc_source");
	assert_int_equal(sw_group_delete(sw, slot, true, err), 0);
	h_expect_drop(sw, 0, b, len, "inc_no_group");
}

static void trace(void **state)
{
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = c_control(pay, 0, 1024, 0);
	struct sw_trace_rec rec[32];
	unsigned slot, n;

	(void)state;
	if (sw->n_workers > 1) /* see test_workers.c */
		return;
	c_spec(2, 1024, false, false);
	slot = c_create();
	assert_int_equal(sw_trace_start(sw, -1, 10, err), 0);
	for (unsigned i = 0; i < 2; i++) {
		h_inject(sw, i, b,
			c_host_frame(
				b, slot, i, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN));
		h_run(sw);
	}
	n = sw_trace_read(sw, 0, rec, 32);
	assert_int_equal(n, 5 + 7);
	assert_string_equal(rec[2].node, "inc_lookup");
	assert_non_null(strstr(rec[2].text, "group g, endpoint 0, control"));
	assert_string_equal(rec[3].node, "inc_engine");
	assert_non_null(strstr(rec[3].text, "inc_consumed"));
	assert_non_null(strstr(rec[3].text, "0x1"));
	assert_non_null(strstr(rec[8].text, "emits to endpoint 0, port p0"));
	assert_non_null(strstr(rec[9].text, "emits to endpoint 1, port p1"));
	assert_string_equal(rec[4].node, "end");
	assert_memory_equal(rec[4].text, "outcome inc_consumed: ", 22);
	assert_non_null(strstr(rec[10].text, "inc_done"));
	assert_int_equal(rec[11].packet, 2);
}

/* Without buffers copies are lost, and counted; nothing else happens. */
static void no_buffers(void **state)
{
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = c_control(pay, 0, 1024, 0);
	struct rte_mbuf *taken[20000];
	unsigned slot, n = 0;
	struct frame f;

	(void)state;
	if (sw->n_workers > 1) /* the one gives back what the other then takes */
		return;
	c_spec(2, 1024, false, false);
	slot = c_create();
	for (unsigned i = 0; i < 2; i++)
		h_inject(sw, i, b,
			c_host_frame(
				b, slot, i, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN));
	while (n < 20000 && (taken[n] = rte_pktmbuf_alloc(sw->pool)) != NULL)
		n++;
	assert_in_range(n, 1, 19999);
	h_run(sw);
	rte_pktmbuf_free_bulk(taken, n);
	assert_int_equal(h_drop(sw, "no_mbuf"), 2);
	assert_false(h_take(sw, 0, &f));
	/* The host asks again and gets it. */
	h_exchange(sw, 0, b,
		c_host_frame(b, slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN), 0, &f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, c_start, c_stop)
		T(all_reduce),
		T(all_reduce_contiguous),
		T(below_a_parent),
		T(duplicates),
		T(vlans),
		T(mode1_vlan),
		T(not_a_member),
		T(trace),
		T(no_buffers),
#undef T
	};
	int failed_tests = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed_tests;
}
