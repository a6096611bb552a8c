/* SPDX-License-Identifier: BSD-3-Clause */
/* MRC's codec: golden packets byte for byte, both ways; truncation at every length; every reason to
 * refuse; what trimming leaves. */
#include <errno.h>
#include <stdio.h>

#include "lib/wire/bytes.h"
#include "lib/wire/icrc.h"
#include "lib/wire/mrc.h"
#include "lib/wire/psn.h"
#include "tests/unit/wire/pcap_file.h"
#include "tests/unit/wire/wire_test.h"

enum { L3_LEN = 48, MAX = 512 };

static const struct mrc_codec *const codec = &mrc_codec_ocp_r1;

/* IPv6 header of all golden packets but for the first eight bytes. */
#define ADDRESSES "20010db8000000010000000000000001 20010db8000000020000000000000001"

static size_t unhex(const char *text, uint8_t *out)
{
	size_t n = 0;
	unsigned byte;

	for (; *text; text++) {
		if (*text == ' ')
			continue;
		assert_int_equal(sscanf(text++, "%2x", &byte), 1);
		assert_true(n < MAX);
		out[n++] = (uint8_t)byte;
	}
	return n;
}

static struct mrc_flow golden_flow(unsigned dscp, unsigned ecn, uint32_t ev)
{
	struct mrc_flow flow = {
		.tos = (uint8_t)(dscp << 2 | ecn), .ttl = 64, .udp_port = 4791, .ev = ev};

	assert_int_equal(wire_ip_parse("2001:db8:0:1::1", &flow.src), 0);
	assert_int_equal(wire_ip_parse("2001:db8:0:2::1", &flow.dst), 0);
	return flow;
}

struct golden {
	const char *name, *bytes;
	unsigned dscp, ecn;
	uint32_t ev;
	struct mrc_pkt pkt;
	const char *payload;
};

static const struct golden golden[] = {
	{"write only with immediate",
		"61201234003c1140" ADDRESSES
		"567812b7003c0000 cb30ffff0000010190000100 00010007 12340001"
		"00007f00000010001122334400000005 cafef00d 68656c6c6f000000 45480c0f",
		4, 2, 0x12345678,
		{.kind = MRC_KIND_DATA,
			.depth = MRC_DEPTH_ALL,
			.pay_off = 40,
			.data = {.place = MRC_ONLY,
				.has_imm = true,
				.ackreq = true,
				.has_ts = true,
				.ts = 0x1234,
				.dqpn = 0x101,
				.psn = 0x100,
				.msn = 7,
				.rqmsn = 1,
				.va = 0x7f0000001000,
				.rkey = 0x11223344,
				.dmalen = 5,
				.imm = 0xcafef00d,
				.pay_len = 5}},
		"hello"},
	{"sack",
		"6b800001003c1140" ADDRESSES
		"000212b7003c0000 dc00ffff0000020200000103 00200002 12345678"
		"01010202 00000103 00080001 0000000000000002 1234000100000011 508717fb",
		46, 0, 0x00010002,
		{.kind = MRC_KIND_SACK,
			.depth = MRC_DEPTH_ALL,
			.sack = {.dqpn = 0x202,
				.mark = MRC_SKIP_ONCE,
				.trigger_psn = 0x105,
				.cack_psn = 0x103,
				.entropy = 0x12345678,
				.mpr = 8,
				.base_psn = 0x104,
				.bitmap = 2,
				.spdcid = 0x101,
				.dpdcid = 0x202,
				.ts = 0x1234,
				.ooo_count = 1,
				.rcvd_units = 0x11}},
		NULL},
	{"nack trimmed",
		"6b800001002c1140" ADDRESSES
		"000212b7002c0000 dd00ffff0000020200000104 00000100 12345679"
		"01010202 00000104 20001240 46882754",
		46, 0, 0x00010002,
		{.kind = MRC_KIND_NACK,
			.depth = MRC_DEPTH_ALL,
			.nack = {.dqpn = 0x202,
				.psn = 0x104,
				.reason = MRC_NACK_TRIMMED,
				.entropy = 0x12345679,
				.spdcid = 0x101,
				.dpdcid = 0x202,
				.ts = 0x1240}},
		NULL},
	{"reliability probe",
		"6020123400281140" ADDRESSES
		"567a12b700280000 de00ffff0000010100000000 00000000 00210000"
		"02020101 13000001 0bbb742a",
		0, 2, 0x1234567a,
		{.kind = MRC_KIND_PROBE,
			.depth = MRC_DEPTH_ALL,
			.probe = {.dqpn = 0x101,
				.id = 0x21,
				.spdcid = 0x202,
				.dpdcid = 0x101,
				.ts = 0x1300}},
		NULL},
	{"ev probe request",
		"6020123400281140" ADDRESSES
		"567b12b700280000 d800ffff0000000200000042 00010000 00000000"
		"00000000 14000001 9aeea245",
		0, 2, 0x1234567b,
		{.kind = MRC_KIND_ENDPOINT_REQUEST,
			.depth = MRC_DEPTH_ALL,
			.endpoint = {.id = 0x42, .op = MRC_EV_PROBE, .ts = 0x1400}},
		NULL},
	{"ev probe response",
		"6b800001003c1140" ADDRESSES "000212b7003c0000 d900ffff0000000200000042 00040000"
		"000000000000000000000000000000000000000000000000 14000000 00000000 fb1a8af8",
		46, 0, 0x00010002,
		{.kind = MRC_KIND_ENDPOINT_RESPONSE,
			.depth = MRC_DEPTH_ALL,
			.endpoint = {.id = 0x42, .op = MRC_EV_PROBE, .ts = 0x1400}},
		NULL},
	{"port status update",
		"6b80123400281140" ADDRESSES
		"567b12b700280000 d800ffff0000000200000043 00000000 0000001e"
		"00000000 14800001 527cc8fe",
		46, 0, 0x1234567b,
		{.kind = MRC_KIND_ENDPOINT_REQUEST,
			.depth = MRC_DEPTH_ALL,
			.endpoint = {.id = 0x43,
				.op = MRC_PORT_STATUS,
				.port_mask = 0x1e,
				.ts = 0x1480}},
		NULL},
	{"transport ack",
		"6b800001001c1140" ADDRESSES
		"000212b7001c0000 d100ffff0000020200000100 1f000007 24077fdd",
		46, 0, 0x00010002,
		{.kind = MRC_KIND_ACK,
			.depth = MRC_DEPTH_ALL,
			.ack = {.dqpn = 0x202,
				.psn = 0x100,
				.syndrome = MRC_SYNDROME_ACK,
				.msn = 7}},
		NULL},
};
enum { N_GOLDEN = sizeof(golden) / sizeof(*golden) };

static void builds_golden_packets(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_GOLDEN; i++) {
		const struct golden *g = &golden[i];
		struct mrc_flow flow = golden_flow(g->dscp, g->ecn, g->ev);
		uint8_t want[MAX], got[MAX];
		size_t n = unhex(g->bytes, want);

		assert_int_equal(mrc_build(got, sizeof(got), codec, &flow, &g->pkt, g->payload), n);
		assert_memory_equal(got, want, n);
		for (size_t room = 0; room < n; room++)
			assert_int_equal(
				mrc_build(got, room, codec, &flow, &g->pkt, g->payload), -ENOSPC);
	}
}

/* The capture that other programs read. */
static void are_in_the_capture(void **state)
{
	struct pcap_file file;
	char path[512];

	(void)state;
	snprintf(path, sizeof(path), "%s/../mrc/golden.pcap", pcap_dir);
	assert_int_equal(pcap_file_read(path, &file), 0);
	assert_int_equal(file.n, N_GOLDEN);
	for (unsigned i = 0; i < N_GOLDEN; i++) {
		uint8_t want[MAX];
		const size_t n = unhex(golden[i].bytes, want);

		assert_int_equal(file.packets[i].len, ETH_HDR_LEN + n);
		assert_memory_equal(file.packets[i].data + ETH_HDR_LEN, want, n);
	}
	pcap_file_free(&file);
}

static void same_packet(const struct mrc_pkt *a, const struct mrc_pkt *b)
{
	uint8_t x[MRC_MAX_HEADERS], y[MRC_MAX_HEADERS];
	int len;

	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->depth, b->depth);
	assert_int_equal(a->pay_off, b->pay_off);
	len = codec->encode(a, x, sizeof(x));
	assert_true(len > 0);
	assert_int_equal(codec->encode(b, y, sizeof(y)), len);
	assert_memory_equal(x, y, len);
	if (a->kind == MRC_KIND_DATA)
		assert_int_equal(a->data.pay_len, b->data.pay_len);
}

static void reads_golden_packets(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_GOLDEN; i++) {
		const struct golden *g = &golden[i];
		uint8_t bytes[MAX], again[MRC_MAX_HEADERS];
		size_t n = unhex(g->bytes, bytes);
		struct mrc_pkt pkt;
		int len;

		assert_int_equal(mrc_ev_get(bytes, MRC_EV_FLOW_HIGH), g->ev);
		assert_int_equal(mrc_ev_get(bytes, MRC_EV_FLOW_LOW), g->ev << 16 | g->ev >> 16);
		assert_int_equal(codec->decode(bytes + L3_LEN, n - L3_LEN, false, &pkt), MRC_OK);
		len = codec->encode(&pkt, again, sizeof(again));
		assert_true(len > 0);
		assert_memory_equal(again, bytes + L3_LEN, len);
		if (g->payload)
			assert_memory_equal(
				bytes + L3_LEN + pkt.pay_off, g->payload, pkt.data.pay_len);
		same_packet(&pkt, &g->pkt);
	}
}

/* Each prefix is copied to its own allocation, so that a sanitizer sees a read behind it. */
static void refuses_every_truncation(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_GOLDEN; i++) {
		uint8_t bytes[MAX];
		size_t n = unhex(golden[i].bytes, bytes) - L3_LEN;

		for (size_t len = 0; len < n; len++) {
			uint8_t *cut = test_malloc(len ? len : 1);
			struct mrc_pkt pkt;

			memcpy(cut, bytes + L3_LEN, len);
			if (codec->decode(cut, len, false, &pkt) == MRC_OK) {
				/* Whole words of payload may lack: the ICRC's business. */
				assert_int_equal(pkt.kind, MRC_KIND_DATA);
				assert_true(pkt.pay_off + pkt.data.pay_len + 4u <= len);
			}
			test_free(cut);
		}
	}
}

static void trimmed_data_is_read_as_far_as_it_goes(void **state)
{
	uint8_t bytes[MAX];
	size_t n = unhex(golden[0].bytes, bytes) - L3_LEN;

	(void)state;
	for (size_t len = 0; len <= n; len++) {
		uint8_t *cut = test_malloc(len ? len : 1);
		enum mrc_drop drop;
		struct mrc_pkt pkt;

		memcpy(cut, bytes + L3_LEN, len);
		drop = codec->decode(cut, len, true, &pkt);
		test_free(cut);
		assert_int_equal(drop, len < 12 ? MRC_DROP_SHORT : MRC_OK);
		if (drop)
			continue;
		assert_int_equal(pkt.data.psn, 0x100);
		assert_int_equal(pkt.data.dqpn, 0x101);
		assert_int_equal(pkt.depth, len < 20   ? MRC_DEPTH_BTH
					    : len < 36 ? MRC_DEPTH_TS
					    : len < 40 ? MRC_DEPTH_RETH
						       : MRC_DEPTH_ALL);
		assert_int_equal(pkt.data.has_ts, len >= 20);
		assert_int_equal(pkt.data.ts, len >= 20 ? 0x1234 : 0);
		assert_int_equal(pkt.data.va, len >= 36 ? 0x7f0000001000 : 0);
	}
}

static enum mrc_drop decode_with(unsigned g, size_t off, uint8_t mask, uint8_t value, bool trimmed)
{
	uint8_t bytes[MAX];
	size_t n = unhex(golden[g].bytes, bytes);
	struct mrc_pkt pkt;

	bytes[L3_LEN + off] = (uint8_t)((bytes[L3_LEN + off] & ~mask) | value);
	return codec->decode(bytes + L3_LEN, n - L3_LEN, trimmed, &pkt);
}

static void every_reason(void **state)
{
	enum { WIMM, SACK, NACK, PROBE, REQUEST, RESPONSE, STATUS, ACK };

	(void)state;
	assert_int_equal(decode_with(WIMM, 1, 0x0f, 1, false), MRC_DROP_VERSION);
	assert_int_equal(decode_with(WIMM, 2, 0xff, 0, false), MRC_DROP_PKEY);
	assert_int_equal(decode_with(WIMM, 0, 0xff, 0x0b, false), MRC_DROP_OPCODE);
	assert_int_equal(decode_with(WIMM, 0, 0xff, 0xc5, false), MRC_DROP_OPCODE);
	assert_int_equal(decode_with(WIMM, 0, 0xff, 0xcc, false), MRC_DROP_OPCODE);
	assert_int_equal(decode_with(SACK, 1, 0x30, 0x10, false), MRC_DROP_PAD);
	assert_int_equal(decode_with(SACK, 12, 0x80, 0x80, false), MRC_DROP_FORMAT);
	assert_int_equal(decode_with(SACK, 28, 0xf0, 0x10, false), MRC_DROP_FORMAT);
	assert_int_equal(decode_with(NACK, 28, 0xf0, 0x00, false), MRC_DROP_FORMAT);
	assert_int_equal(decode_with(REQUEST, 13, 0x03, 0x02, false), MRC_DROP_FORMAT);
	assert_int_equal(decode_with(REQUEST, 7, 0xff, 0x03, false), MRC_DROP_QPN);
	assert_int_equal(decode_with(SACK, 6, 0xff, 0, false), MRC_DROP_QPN);
	for (unsigned g = SACK; g <= ACK; g++) {
		uint8_t bytes[MAX] = {0};
		size_t n = unhex(golden[g].bytes, bytes) - L3_LEN;
		struct mrc_pkt pkt;

		assert_int_equal(codec->decode(bytes + L3_LEN, n, true, &pkt), MRC_DROP_TRIMMED);
		assert_int_equal(codec->decode(bytes + L3_LEN, n + 4, false, &pkt), MRC_DROP_LONG);
	}
	for (unsigned d = MRC_OK + 1; d < MRC_N_DROPS; d++)
		assert_true(strncmp(mrc_drop_name(d), "mrc_", 4) == 0 && *mrc_drop_text(d));
	assert_string_equal(mrc_nack_name(MRC_NACK_PSN_OOR), "psn_oor_window");
	assert_null(mrc_nack_name(0x03));
}

/* Data to QP 2, and payloads whose pad lies. */
static void data_lies(void **state)
{
	struct mrc_flow flow = golden_flow(0, 2, 1);
	struct mrc_pkt pkt = {
		.kind = MRC_KIND_DATA, .data = {.place = MRC_ONLY, .dqpn = 5, .has_ts = true}};
	uint8_t bytes[MAX];
	int n = mrc_build(bytes, sizeof(bytes), codec, &flow, &pkt, NULL);

	(void)state;
	assert_int_equal(n, L3_LEN + 12 + 4 + 4 + 16 + 4);
	bytes[L3_LEN + 1] |= 0x10; /* pad of 1 in no payload */
	assert_int_equal(
		codec->decode(bytes + L3_LEN, (size_t)n - L3_LEN, false, &pkt), MRC_DROP_PAD);
	bytes[L3_LEN + 1] = 0;
	bytes[L3_LEN + 7] = MRC_ENDPOINT_QPN;
	assert_int_equal(
		codec->decode(bytes + L3_LEN, (size_t)n - L3_LEN, false, &pkt), MRC_DROP_QPN);
	bytes[L3_LEN + 7] = 5;
	assert_int_equal(
		codec->decode(bytes + L3_LEN, (size_t)n - L3_LEN + 2, false, &pkt), MRC_DROP_PAD);
}

/* All places, with and without time and immediate, survive the way there and back. */
static void data_survives(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 64; i++) {
		struct mrc_pkt in = {.kind = MRC_KIND_DATA, .depth = MRC_DEPTH_ALL}, out;
		uint8_t bytes[MAX];
		int n;

		in.data = (struct mrc_data){.place = i & 3,
			.has_imm = i & 4 && i & MRC_LAST,
			.has_ts = i & 8,
			.rtx = i & 16,
			.se = i & 32,
			.ackreq = !(i & 16),
			.dqpn = PSN_MASK - i,
			.psn = i,
			.msn = (uint16_t)(0xffff - i),
			.rqmsn = (uint16_t)i,
			.va = UINT64_MAX - i,
			.rkey = i,
			.dmalen = UINT32_MAX,
			.imm = i & 4 && i & MRC_LAST ? 0x80000000 + i : 0,
			.ts = i & 8 ? 0xfff0 : 0,
			.ts_vendor = (i & 9) == 9,
			.pay_len = (uint16_t)i};
		n = codec->encode(&in, bytes, sizeof(bytes));
		assert_true(n > 0 && n <= MRC_MAX_HEADERS);
		memset(bytes + n, 0, 72);
		in.pay_off = (uint16_t)n;
		assert_int_equal(
			codec->decode(bytes, (size_t)n + ((i + 3) & ~3u) + 4, false, &out), MRC_OK);
		same_packet(&in, &out);
	}
}

static void refuses_what_does_not_fit(void **state)
{
	static const struct mrc_pkt bad[] = {
		{.kind = MRC_KIND_DATA, .data = {.place = MRC_FIRST, .has_imm = true}},
		{.kind = MRC_KIND_DATA, .data = {.place = 4}},
		{.kind = MRC_KIND_DATA, .data = {.dqpn = PSN_MASK + 1}},
		{.kind = MRC_KIND_DATA, .data = {.dqpn = MRC_ENDPOINT_QPN}},
		{.kind = MRC_KIND_SACK, .sack = {.mark = 3}},
		{.kind = MRC_KIND_SACK, .sack = {.base_psn = 0x8000}},
		{.kind = MRC_KIND_SACK, .sack = {.trigger_psn = 0x8000}},
		{.kind = MRC_KIND_SACK, .sack = {.ooo_count = 0x8000}},
		{.kind = MRC_KIND_SACK, .sack = {.cwnd_penalty = 128}},
		{.kind = MRC_KIND_SACK, .sack = {.rcvd_units = 1 << 24}},
		{.kind = MRC_KIND_NACK, .nack = {.psn = 1 << 24}},
		{.kind = MRC_KIND_PROBE, .probe = {.dqpn = 1 << 24}},
		{.kind = MRC_KIND_ACK, .ack = {.msn = 1 << 24}},
		{.kind = MRC_KIND_ENDPOINT_REQUEST, .endpoint = {.op = 2}},
		{.kind = MRC_KIND_ENDPOINT_RESPONSE, .endpoint = {.op = 2}},
		{.kind = MRC_KIND_PROBE + 1},
	};
	uint8_t out[MRC_MAX_HEADERS];

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(codec->encode(&bad[i], out, sizeof(out)), -EINVAL);
	assert_int_equal(codec->encode(&golden[1].pkt, out, MRC_MAX_HEADERS - 1), -ENOSPC);
}

/* The window of a SACK may lie across the wrap of PSNs, and before cack. */
static void sack_wraps(void **state)
{
	struct mrc_pkt in = {.kind = MRC_KIND_SACK, .depth = MRC_DEPTH_ALL}, out;
	uint8_t bytes[MRC_MAX_HEADERS + 4] = {0};
	int n;

	(void)state;
	in.sack = (struct mrc_sack){.cack_psn = PSN_MASK,
		.base_psn = 0x10,
		.trigger_psn = 0x7f00,
		.bitmap = UINT64_MAX,
		.ooo_count = 0x7fff,
		.restore_cwnd = true,
		.cwnd_penalty = 127,
		.mark = MRC_ALWAYS_SKIP,
		.rtx = true,
		.rcvd_units = PSN_MASK};
	n = codec->encode(&in, bytes, MRC_MAX_HEADERS);
	assert_int_equal(codec->decode(bytes, (size_t)n + 4, false, &out), MRC_OK);
	same_packet(&in, &out);
	in.sack.base_psn = PSN_MASK - 0x8000;
	in.sack.trigger_psn = 0;
	in.sack.probe = true;
	in.sack.probe_id = 0xffff;
	n = codec->encode(&in, bytes, MRC_MAX_HEADERS);
	assert_int_equal(codec->decode(bytes, (size_t)n + 4, false, &out), MRC_OK);
	same_packet(&in, &out);
}

/* IPv4 has room for 16 bits of EV. */
static void ipv4_carries_half(void **state)
{
	struct mrc_flow flow = golden_flow(4, 2, 0x5678);
	uint8_t out[MAX];
	int n;

	(void)state;
	assert_int_equal(mrc_build_l3(out, sizeof(out), &flow, UINT16_MAX), -EINVAL);
	assert_int_equal(wire_ip_parse("10.0.0.1", &flow.src), 0);
	assert_int_equal(mrc_build_l3(out, sizeof(out), &flow, 32), -EINVAL); /* mixed families */
	assert_int_equal(wire_ip_parse("10.0.0.2", &flow.dst), 0);
	n = mrc_build(out, sizeof(out), codec, &flow, &golden[1].pkt, NULL);
	assert_int_equal(n, 28 + 48 + 4);
	assert_int_equal(ip_sum(out, 20, 0), 0xffff);
	assert_int_equal(mrc_ev_get(out, MRC_EV_FLOW_HIGH), 0x5678);
	assert_int_equal(icrc_load(out + n - 4), icrc_headers(out, (size_t)n - 4));
	flow.ev = 0x10000;
	assert_int_equal(mrc_build_l3(out, sizeof(out), &flow, 32), -EINVAL);
}

int run_mrc_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builds_golden_packets),
		cmocka_unit_test(are_in_the_capture),
		cmocka_unit_test(reads_golden_packets),
		cmocka_unit_test(refuses_every_truncation),
		cmocka_unit_test(trimmed_data_is_read_as_far_as_it_goes),
		cmocka_unit_test(every_reason),
		cmocka_unit_test(data_lies),
		cmocka_unit_test(data_survives),
		cmocka_unit_test(refuses_what_does_not_fit),
		cmocka_unit_test(sack_wraps),
		cmocka_unit_test(ipv4_carries_half),
	};

	return cmocka_run_group_tests_name("mrc", tests, NULL, NULL);
}
