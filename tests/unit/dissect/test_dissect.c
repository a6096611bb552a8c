/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of packets that were built here: ladders, control messages, MRC, segments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "apps/dissect.h"
#include "lib/ccl/msg.h"
#include "lib/srv6/encap.h"
#include "lib/wire/bytes.h"
#include "lib/wire/frame.h"
#include "lib/wire/mrc.h"
#include "lib/wire/netreduce.h"

enum { QP_A = 0x11, QP_B = 0x22, FRAME = 2048 };
static const uint32_t BLOCK = 0xfcbbbb00;

/* The capture at hand. */
static FILE *out;
static char *text;
static size_t text_len;
static uint64_t clock_ns;

static int begin(void **state)
{
	(void)state;
	out = open_memstream(&text, &text_len);
	clock_ns = 1700000000000000000;
	pcapng_section(out, NULL);
	pcapng_interface(out, "p0", 0, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(text);
	text = NULL;
	return 0;
}

static void add(const uint8_t *frame, size_t len, size_t cap)
{
	pcapng_packet(out, &(struct pcapng_packet){.ns = clock_ns += 1000,
				   .len = (uint32_t)len,
				   .cap = (uint32_t)cap,
				   .data = frame});
}

static json_t *dissected(void)
{
	char err[DISSECT_ERR];
	json_t *result;

	fclose(out);
	result = dissect_file(text, text_len, BLOCK, err);
	if (!result)
		fail_msg("%s", err);
	return result;
}

static struct wire_flow flow(bool to_b, bool v6)
{
	struct wire_flow f = {.dmac = {2, [5] = 1}, .smac = {2, [5] = 2}, .ttl = 64, .sport = 99};
	struct wire_ip a = wire_ip_from4(0x0a000001), b = wire_ip_from4(0x0a000002);

	if (v6) {
		wire_ip_parse("fd00::1", &a);
		wire_ip_parse("fd00::2", &b);
	}
	f.src = to_b ? a : b;
	f.dst = to_b ? b : a;
	return f;
}

static size_t build(
	uint8_t *frame, const struct wire_hdr *h, bool to_b, const void *payload, size_t len)
{
	const struct wire_flow f = flow(to_b, false);
	const int n = wire_build_frame(frame, FRAME, &f, h, payload, len);

	assert_true(n > 0);
	return (size_t)n;
}

static void send_it(const struct wire_hdr *h, bool to_b, const void *payload, size_t len)
{
	uint8_t frame[FRAME];
	const size_t n = build(frame, h, to_b, payload, len);

	add(frame, n, n);
}

static void request(uint8_t opcode, uint32_t psn, size_t len)
{
	static const uint8_t zeros[1024];

	send_it(&(struct wire_hdr){.opcode = opcode, .dqpn = QP_B, .psn = psn}, true, zeros, len);
}

static void answer(uint8_t opcode, uint32_t psn, uint8_t syndrome, size_t len)
{
	static const uint8_t zeros[1024];

	send_it(
		&(struct wire_hdr){
			.opcode = opcode, .dqpn = QP_A, .psn = psn, .syndrome = syndrome, .msn = 5},
		false, zeros, len);
}

static const json_t *packet(const json_t *result, size_t connection, size_t i)
{
	const json_t *c = json_array_get(json_object_get(result, "connections"), connection);
	const json_t *p = json_array_get(json_object_get(c, "packets"), i);

	assert_non_null(p);
	return p;
}

/* A packet's first mark, "" if it has none. */
static const char *mark_of(const json_t *result, size_t i)
{
	const json_t *marks = json_object_get(packet(result, 0, i), "marks");

	return marks ? json_string_value(json_array_get(marks, 0)) : "";
}

static void expect_text(const json_t *o, const char *name, const char *want)
{
	const char *is = json_string_value(json_object_get(o, name));

	if (!is || strcmp(is, want))
		fail_msg("%s is %s, not %s", name, is, want);
}

static void expect_int(const json_t *o, const char *name, json_int_t want)
{
	assert_non_null(json_object_get(o, name));
	assert_int_equal(json_integer_value(json_object_get(o, name)), want);
}

/* ---- ladders ---- */

static void test_ladder(void **state)
{
	static const char *const marks[] = {"", "", "gap of 2 before", "nak", "late",
		"retransmission", "", "not taken: ICRC", ""};
	uint8_t frame[FRAME];
	json_t *result;
	const json_t *c;
	size_t n;

	(void)state;
	request(ROCE_SEND_ONLY, 0xfffffe, 8);
	answer(ROCE_ACK, 0xfffffe, ROCE_AETH_ACK | ROCE_AETH_NO_CREDITS, 0);
	request(ROCE_SEND_ONLY, 1, 8);
	answer(ROCE_ACK, 0xffffff, ROCE_AETH_NAK | ROCE_NAK_SEQUENCE, 0);
	request(ROCE_SEND_ONLY, 0, 8);
	request(ROCE_SEND_ONLY, 1, 8);
	request(ROCE_SEND_ONLY, 2, 8);
	n = build(frame, &(struct wire_hdr){.opcode = ROCE_SEND_ONLY, .dqpn = QP_B, .psn = 900},
		true, "x", 1);
	frame[n - 1] ^= 1;
	add(frame, n, n);
	answer(ROCE_ACK, 2, ROCE_AETH_ACK, 0);
	result = dissected();
	assert_int_equal(json_array_size(json_object_get(result, "connections")), 1);
	c = json_array_get(json_object_get(result, "connections"), 0);
	expect_text(json_object_get(c, "a"), "ip", "10.0.0.1");
	expect_text(json_object_get(c, "a"), "qp", "0x11");
	expect_text(json_object_get(c, "b"), "qp", "0x22");
	expect_int(json_object_get(c, "to_b"), "requests", 5);
	expect_int(json_object_get(c, "to_b"), "retransmissions", 1);
	expect_int(json_object_get(c, "to_b"), "late", 1);
	expect_int(json_object_get(c, "to_b"), "missing", 2);
	expect_int(json_object_get(c, "to_a"), "responses", 3);
	expect_int(json_object_get(c, "to_a"), "naks", 1);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		assert_string_equal(mark_of(result, i), marks[i]);
	expect_text(packet(result, 0, 3), "syndrome", "NAK, sequence error");
	expect_text(packet(result, 0, 3), "way", "b>a");
	expect_int(json_object_get(result, "icrc"), "bad", 1);
	expect_int(json_object_get(result, "icrc"), "ok", 8);
	json_decref(result);
}

/* A READ takes as many PSNs as its answer has packets, which the first of these tells. */
static void test_read(void **state)
{
	json_t *result;

	(void)state;
	send_it(
		&(struct wire_hdr){
			.opcode = ROCE_READ_REQUEST, .dqpn = QP_B, .psn = 10, .dmalen = 2500},
		true, "", 0);
	answer(ROCE_READ_RESP_FIRST, 10, 0, 1024);
	answer(ROCE_READ_RESP_LAST, 12, 0, 452);
	send_it(
		&(struct wire_hdr){
			.opcode = ROCE_READ_REQUEST, .dqpn = QP_B, .psn = 11, .dmalen = 1476},
		true, "", 0);
	request(ROCE_SEND_ONLY, 13, 8);
	request(ROCE_SEND_ONLY, 15, 8);
	result = dissected();
	assert_string_equal(mark_of(result, 0), "");
	assert_string_equal(mark_of(result, 3), "retransmission");
	assert_string_equal(mark_of(result, 4), "");
	assert_string_equal(mark_of(result, 5), "gap of 1 before");
	json_decref(result);
}

/* Two connections between the same hosts; answers go to the one that has sent their PSN. */
static void test_two(void **state)
{
	json_t *result, *list;

	(void)state;
	request(ROCE_SEND_ONLY, 100, 8);
	send_it(&(struct wire_hdr){.opcode = ROCE_SEND_ONLY, .dqpn = 0x44, .psn = 7000}, true, "x",
		1);
	answer(ROCE_ACK, 100, 0, 0);
	send_it(&(struct wire_hdr){.opcode = ROCE_ACK, .dqpn = 0x33, .psn = 7000}, false, "", 0);
	result = dissected();
	list = json_object_get(result, "connections");
	assert_int_equal(json_array_size(list), 2);
	for (size_t i = 0; i < 2; i++) {
		const json_t *c = json_array_get(list, i);

		expect_text(json_object_get(c, "a"), "qp", i ? "0x33" : "0x11");
		expect_text(json_object_get(c, "b"), "qp", i ? "0x44" : "0x22");
		assert_int_equal(json_array_size(json_object_get(c, "packets")), 2);
	}
	json_decref(result);
}

/* Headers are there, payload and ICRC are not. */
static void test_cut(void **state)
{
	const struct wire_hdr h = {
		.opcode = ROCE_WRITE_ONLY, .dqpn = QP_B, .psn = 3, .va = 0x1000, .dmalen = 500};
	uint8_t frame[FRAME], payload[500] = {1};
	json_t *result;

	(void)state;
	add(frame, build(frame, &h, true, payload, sizeof(payload)), 96);
	add(frame, 400, 20);
	result = dissected();
	expect_text(packet(result, 0, 0), "icrc", "cut");
	expect_text(packet(result, 0, 0), "va", "0x1000");
	expect_int(packet(result, 0, 0), "payload", 500);
	expect_int(packet(result, 0, 0), "cap", 96);
	expect_int(json_object_get(result, "icrc"), "cut", 1);
	expect_int(result, "refused", 1);
	json_decref(result);
}

/* ---- what they carry ---- */

static void test_collectives(void **state)
{
	const struct ccl_ctrl c = {.op = 2,
		.dtype = 3,
		.op_seq = 7,
		.n = 9,
		.bytes = 8200,
		.flags = CCL_F_LAST,
		.m = 4,
		.tag = 0xbeef};
	const struct ina_hdr ina = {.ring = 3, .rank = 2, .msg = 88, .packets = 4};
	uint8_t payload[CCL_CTRL_LEN], data[64] = {0};
	const json_t *o;
	json_t *result;

	(void)state;
	ccl_ctrl_encode(&c, payload);
	send_it(&(struct wire_hdr){.opcode = ROCE_SEND_ONLY_IMM,
			.dqpn = QP_B,
			.psn = 1,
			.imm = ccl_ctrl_imm(&c)},
		true, payload, sizeof(payload));
	ina_encode(&ina, data);
	send_it(&(struct wire_hdr){.opcode = ROCE_SEND_FIRST, .dqpn = QP_B, .psn = 2}, true, data,
		sizeof(data));
	send_it(&(struct wire_hdr){.opcode = ROCE_SEND_ONLY_IMM, .dqpn = QP_B, .psn = 3, .imm = 1},
		true, payload, sizeof(payload));
	result = dissected();
	o = json_object_get(packet(result, 0, 0), "inc");
	expect_text(o, "primitive", "AllReduce");
	expect_text(o, "op", "max");
	expect_text(o, "dtype", "int32");
	expect_int(o, "op_seq", 7);
	expect_int(o, "packets", 9);
	expect_int(o, "bytes", 8200);
	expect_text(o, "tag", "0xbeef");
	assert_true(json_is_true(json_object_get(o, "last")));
	assert_true(json_is_false(json_object_get(o, "write")));
	o = json_object_get(packet(result, 0, 1), "netreduce");
	expect_int(o, "ring", 3);
	expect_int(o, "rank", 2);
	expect_int(o, "message", 88);
	assert_null(json_object_get(packet(result, 0, 2), "inc"));
	json_decref(result);
}

static void add_mrc(
	const struct mrc_pkt *m, const char *from, const char *to, uint8_t tos, size_t cut)
{
	struct mrc_flow f = {.tos = tos, .ttl = 64, .udp_port = ROCE_UDP_PORT, .ev = 0x00010002};
	uint8_t frame[FRAME] = {2, [5] = 1, [6] = 2, [12] = 0x86, 0xdd}, payload[256] = {5};
	int n;

	wire_ip_parse(from, &f.src);
	wire_ip_parse(to, &f.dst);
	n = mrc_build(frame + ETH_HDR_LEN, FRAME - ETH_HDR_LEN, &mrc_codec_ocp_r1, &f, m, payload);
	assert_true(n > 0);
	if (cut) {
		n = (int)cut;
		put_be16(frame + ETH_HDR_LEN + 4, (uint16_t)(cut - 40));
		put_be16(frame + ETH_HDR_LEN + 44, (uint16_t)(cut - 40));
	}
	add(frame, ETH_HDR_LEN + (size_t)n, ETH_HDR_LEN + (size_t)n);
}

static void test_mrc(void **state)
{
	static const char path[] = "fcbb:bb00:a:b:c::";
	struct mrc_pkt data = {.kind = MRC_KIND_DATA,
		.data = {.place = MRC_ONLY,
			.dqpn = QP_B,
			.psn = 5,
			.rkey = 6,
			.va = 0x2000,
			.dmalen = 256,
			.pay_len = 256}};
	const struct mrc_pkt sack = {.kind = MRC_KIND_SACK,
		.sack = {.dqpn = QP_A,
			.cack_psn = 5,
			.trigger_psn = 6,
			.base_psn = 6,
			.bitmap = 3,
			.entropy = 0x00010002}};
	const struct mrc_pkt nack = {.kind = MRC_KIND_NACK,
		.nack = {.dqpn = QP_A, .psn = 6, .reason = MRC_NACK_TRIMMED}};
	json_t *result, *usids;
	const json_t *p;

	(void)state;
	add_mrc(&data, "fd00::1", path, 4 << 2, 0);
	data.data.psn = 6;
	add_mrc(&data, "fd00::1", path, 12 << 2, 40 + 8 + 12 + 8);
	add_mrc(&nack, path, "fd00::1", 46 << 2, 0);
	add_mrc(&sack, path, "fd00::1", 46 << 2, 0);
	data.data.rtx = true;
	add_mrc(&data, "fd00::1", path, 8 << 2, 0);
	result = dissected();
	p = packet(result, 0, 0);
	expect_text(p, "op", "MRC WRITE ONLY");
	expect_text(p, "icrc", "ok");
	expect_text(p, "own_ev", "0x10002");
	expect_int(p, "payload", 256);
	usids = json_object_get(p, "usids");
	assert_int_equal(json_array_size(usids), 1);
	usids = json_array_get(usids, 0);
	assert_int_equal(json_array_size(usids), 3);
	assert_string_equal(json_string_value(json_array_get(usids, 0)), "a");
	assert_string_equal(json_string_value(json_array_get(usids, 2)), "c");
	p = packet(result, 0, 1);
	expect_text(p, "icrc", "trimmed");
	assert_true(json_is_true(json_object_get(p, "trimmed")));
	p = packet(result, 0, 2);
	expect_text(p, "op", "MRC NACK");
	expect_text(p, "reason", "trimmed");
	assert_string_equal(mark_of(result, 2), "nak");
	p = packet(result, 0, 3);
	expect_text(p, "op", "MRC SACK");
	expect_text(p, "bitmap", "0x3");
	expect_int(p, "trigger", 6);
	assert_string_equal(mark_of(result, 4), "retransmission");
	assert_true(json_is_true(json_object_get(packet(result, 0, 4), "rtx")));
	json_decref(result);
}

/* RoCE inside of a tunnel with a routing header. */
static void test_tunnel(void **state)
{
	const struct wire_flow f = flow(true, true);
	const struct wire_hdr h = {.opcode = ROCE_SEND_ONLY, .dqpn = QP_B, .psn = 3};
	struct srv6_encap e = {.n = 2};
	uint8_t inner[FRAME], frame[FRAME] = {2, [5] = 1, [6] = 2, [12] = 0x86, 0xdd};
	const json_t *p;
	json_t *result;
	unsigned own;
	int n;

	(void)state;
	wire_ip_parse("fd00:9::1", &e.src);
	wire_ip_parse("fcbb:bb00:1:2::", &e.segment[0]);
	wire_ip_parse("fcbb:bb00:3:dead::", &e.segment[1]);
	own = srv6_encap_len(&e);
	n = wire_build_frame(inner, FRAME, &f, &h, "x", 1);
	assert_true(n > 0);
	memcpy(frame + ETH_HDR_LEN + own, inner + ETH_HDR_LEN, (size_t)n - ETH_HDR_LEN);
	assert_int_equal(srv6_encap(&e, frame + ETH_HDR_LEN + own, (size_t)n - ETH_HDR_LEN,
				 frame + ETH_HDR_LEN),
		SRV6_OK);
	add(frame, (size_t)n + own, (size_t)n + own);
	result = dissected();
	p = packet(result, 0, 0);
	expect_text(p, "op", "RC SEND ONLY");
	expect_text(p, "src", "fd00::1");
	expect_text(p, "icrc", "ok");
	expect_int(p, "segments_left", 1);
	assert_string_equal(json_string_value(json_array_get(json_object_get(p, "segments"), 0)),
		"fcbb:bb00:3:dead::");
	assert_string_equal(json_string_value(json_array_get(json_object_get(p, "tunnels"), 0)),
		"fd00:9::1 > fcbb:bb00:1:2::");
	json_decref(result);
}

/* The text has every field of the JSON. */
static void test_text(void **state)
{
	char *said = NULL;
	size_t n;
	FILE *to = open_memstream(&said, &n);
	json_t *result;

	(void)state;
	request(ROCE_WRITE_ONLY, 5, 8);
	answer(ROCE_ACK, 5, ROCE_AETH_RNR | 1, 0);
	add((const uint8_t *)"\2\0\0\0\0\1\2\0\0\0\0\2\x88\xcc", 14, 14);
	result = dissected();
	dissect_text(to, result);
	fclose(to);
	assert_non_null(strstr(said, "connection 1: a 10.0.0.1 qp 0x11, b 10.0.0.2 qp 0x22, from "
				     "1700000000.000001000\n"));
	assert_non_null(strstr(said, "----> 5        RC WRITE ONLY interface=p0"));
	assert_non_null(strstr(said, "<---- 5        RC ACKNOWLEDGE interface=p0"));
	assert_non_null(strstr(said, "syndrome=\"RNR NAK, 0.01 ms\" msn=5 icrc=ok [nak]\n"));
	assert_non_null(strstr(said, "others:\n     3   0.000000000 "));
	assert_non_null(strstr(said, "kind=Ethernet"));
	free(said);
	json_decref(result);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {T(test_ladder), T(test_read), T(test_two), T(test_cut),
		T(test_collectives), T(test_mrc), T(test_tunnel), T(test_text)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
