/* SPDX-License-Identifier: BSD-3-Clause */
/* iWARP's codec: golden bytes, laid out by hand after the figures of RFC 5044, 5041, 5040, 6581 and
 * 7306, both ways; every cut; every field that may be wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/wire/iwarp.h"

enum { MAX = 1024 };

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

#define REQUEST "4d504120494420526571204672616d65"
#define REPLY "4d504120494420526570204672616d65"

static const struct {
	const char *bytes;
	struct mpa_start start;
	const char *private_data;
} starts[] = {
	{REQUEST "40 01 0000", {.crc = true, .revision = 1}, ""},
	{REQUEST "c0 01 0003 616263", {.markers = true, .crc = true, .revision = 1}, "abc"},
	{REQUEST "50 02 0006 8010 8008 6869",
		{.crc = true,
			.revision = 2,
			.enhanced = true,
			.peer_to_peer = true,
			.rtr = MPA_RTR_WRITE,
			.ird = 16,
			.ord = 8},
		"hi"},
	{REPLY "50 02 0004 7fff 7fff",
		{.reply = true,
			.crc = true,
			.revision = 2,
			.enhanced = true,
			.rtr = MPA_RTR_SEND | MPA_RTR_READ,
			.ird = MPA_MAX_DEPTH,
			.ord = MPA_MAX_DEPTH},
		""},
	{REPLY "20 01 0002 6e6f", {.reply = true, .reject = true, .revision = 1}, "no"},
};

static void test_start(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		struct mpa_start want = starts[i].start, got;
		uint8_t bytes[MAX], made[MAX];
		const size_t len = unhex(starts[i].bytes, bytes);

		want.private_len = (uint16_t)strlen(starts[i].private_data);
		want.private_data = (const uint8_t *)starts[i].private_data;
		assert_int_equal(mpa_start_build(made, sizeof(made), &want), len);
		assert_memory_equal(made, bytes, len);
		assert_int_equal(mpa_start_build(made, len - 1, &want), -ENOSPC);
		for (size_t cut = 0; cut < len; cut++) {
			const int need = mpa_start_parse(bytes, cut, want.reply, &got);

			assert_true(need > (int)cut && need <= (int)len);
		}
		assert_int_equal(mpa_start_parse(bytes, len, want.reply, &got), 0);
		assert_int_equal(got.private_len, want.private_len);
		assert_memory_equal(got.private_data, want.private_data, want.private_len);
		got.private_data = want.private_data;
		assert_memory_equal(&got, &want, sizeof(got));
	}
}

static void test_start_refused(void **state)
{
	struct mpa_start got, start = {.revision = 2, .enhanced = true};
	uint8_t bytes[MAX];
	size_t len;

	(void)state;
	len = unhex(REQUEST "40 01 0000", bytes);
	assert_int_equal(mpa_start_parse(bytes, len, true, &got), -EPROTO); /* no reply */
	for (size_t i = 0; i < 16; i++) { /* as soon as it shows */
		bytes[i] ^= 1;
		assert_int_equal(mpa_start_parse(bytes, i + 1, false, &got), -EPROTO);
		assert_int_equal(mpa_start_parse(bytes, i, false, &got), MPA_START_LEN);
		bytes[i] ^= 1;
	}
	len = unhex(REQUEST "40 01 0201", bytes); /* more private data than 512 bytes */
	assert_int_equal(mpa_start_parse(bytes, len, false, &got), -EPROTO);
	len = unhex(REQUEST "60 01 0000", bytes); /* a request that rejects */
	assert_int_equal(mpa_start_parse(bytes, len, false, &got), -EPROTO);
	len = unhex(REQUEST "40 00 0000", bytes); /* revision 0 */
	assert_int_equal(mpa_start_parse(bytes, len, false, &got), -EPROTO);
	len = unhex(REQUEST "50 02 0003", bytes); /* enhanced, and no room for it */
	assert_int_equal(mpa_start_parse(bytes, len, false, &got), -EPROTO);
	len = unhex(REQUEST "50 01 0000", bytes); /* reserved in revision 1 */
	assert_int_equal(mpa_start_parse(bytes, len, false, &got), 0);
	assert_false(got.enhanced);

	start.ird = MPA_MAX_DEPTH + 1;
	assert_int_equal(mpa_start_build(bytes, sizeof(bytes), &start), -EINVAL);
	start = (struct mpa_start){.revision = 1, .enhanced = true};
	assert_int_equal(mpa_start_build(bytes, sizeof(bytes), &start), -EINVAL);
	start = (struct mpa_start){.revision = 1, .reject = true};
	assert_int_equal(mpa_start_build(bytes, sizeof(bytes), &start), -EINVAL);
	start = (struct mpa_start){.revision = 1, .private_len = MPA_MAX_PRIVATE + 1};
	assert_int_equal(mpa_start_build(bytes, sizeof(bytes), &start), -EINVAL);
}

/* Bit by bit, after RFC 3720, B.4. */
static uint32_t crc_of(const uint8_t *bytes, size_t len)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < len; i++) {
		crc ^= bytes[i];
		for (unsigned k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

static void test_fpdu(void **state)
{
	uint8_t fpdu[MPA_MAX_FPDU], zeros[32] = {0};
	const uint8_t *ulpdu;
	size_t len;

	(void)state;
	/* The example of RFC 3720, B.4: transmitted as aa 36 91 8a. */
	assert_int_equal(crc_of(zeros, 32), 0x8a9136aa);
	for (size_t n = 0; n <= 66; n++) {
		const size_t whole = mpa_fpdu_len(n);
		uint32_t crc;

		memset(fpdu, 0xee, sizeof(fpdu));
		for (size_t i = 0; i < n; i++)
			fpdu[MPA_LEN_LEN + i] = (uint8_t)(i * 3 + n);
		assert_int_equal(mpa_fpdu_seal(fpdu, n), whole);
		assert_int_equal(whole % 4, 0);
		assert_true(whole >= n + 6 && whole < n + 10);
		assert_int_equal(fpdu[0] << 8 | fpdu[1], n);
		for (size_t i = MPA_LEN_LEN + n; i < whole - MPA_CRC_LEN; i++)
			assert_int_equal(fpdu[i], 0);
		crc = crc_of(fpdu, whole - MPA_CRC_LEN);
		for (unsigned k = 0; k < 4; k++)
			assert_int_equal(fpdu[whole - 4 + k], (uint8_t)(crc >> 8 * k));
		assert_int_equal(fpdu[whole], 0xee);
		assert_int_equal(mpa_fpdu_peek(fpdu, 1), 0);
		assert_int_equal(mpa_fpdu_peek(fpdu, 2), whole);
		assert_true(mpa_fpdu_open(fpdu, &ulpdu, &len));
		assert_ptr_equal(ulpdu, fpdu + MPA_LEN_LEN);
		assert_int_equal(len, n);
		for (size_t i = MPA_LEN_LEN; i < whole; i++) {
			fpdu[i] ^= 0x10;
			assert_false(mpa_fpdu_open(fpdu, &ulpdu, &len));
			fpdu[i] ^= 0x10;
		}
		assert_true(mpa_mulpdu(whole) >= n && mpa_fpdu_len(mpa_mulpdu(whole)) <= whole);
		assert_true(mpa_fpdu_len(mpa_mulpdu(whole) + 1) > whole);
	}
	assert_int_equal(mpa_fpdu_len(MPA_MAX_ULPDU), MPA_MAX_FPDU);
	assert_int_equal(mpa_mulpdu(MPA_MAX_FPDU + 100), MPA_MAX_ULPDU);
	assert_int_equal(mpa_mulpdu(7), 0);
}

static const struct {
	const char *bytes;
	struct ddp_segment segment;
} segments[] = {
	{"c1 40 11223344 0102030405060708", {.tagged = true,
						    .last = true,
						    .opcode = RDMAP_WRITE,
						    .stag = 0x11223344,
						    .to = 0x0102030405060708}},
	{"81 42 aabbccdd 0000000000000010",
		{.tagged = true, .opcode = RDMAP_READ_RESPONSE, .stag = 0xaabbccdd, .to = 16}},
	{"41 43 00000000 00000000 00000001 00000000",
		{.last = true, .opcode = RDMAP_SEND, .qn = DDP_QN_SEND, .msn = 1}},
	{"01 45 00000000 00000000 00000002 00000400",
		{.opcode = RDMAP_SEND_SE, .msn = 2, .mo = 1024}},
	{"41 44 0badcafe 00000000 00000003 00000000",
		{.last = true, .opcode = RDMAP_SEND_INV, .stag = 0x0badcafe, .msn = 3}},
	{"41 46 0badcafe 00000000 00000004 00000000",
		{.last = true, .opcode = RDMAP_SEND_SE_INV, .stag = 0x0badcafe, .msn = 4}},
	{"41 41 00000000 00000001 00000005 00000000",
		{.last = true, .opcode = RDMAP_READ_REQUEST, .qn = DDP_QN_READ, .msn = 5}},
	{"41 47 00000000 00000002 00000001 00000000",
		{.last = true, .opcode = RDMAP_TERMINATE, .qn = DDP_QN_TERMINATE, .msn = 1}},
	{"41 48 00000000 00000000 00000006 00000000",
		{.last = true, .opcode = RDMAP_IMM, .msn = 6}},
	{"41 49 00000000 00000000 00000007 00000000",
		{.last = true, .opcode = RDMAP_IMM_SE, .msn = 7}},
};

static void test_ddp(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(segments) / sizeof(*segments); i++) {
		struct ddp_segment want = segments[i].segment, got;
		uint8_t bytes[MAX], made[MAX];
		const size_t len = unhex(segments[i].bytes, bytes);

		assert_int_equal(len, want.tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN);
		assert_int_equal(ddp_build(made, &want), len);
		assert_memory_equal(made, bytes, len);
		assert_int_equal(ddp_parse(bytes, len, &got), IWARP_OK);
		assert_int_equal(got.header_len, len);
		got.header_len = 0;
		assert_memory_equal(&got, &want, sizeof(got));
		for (size_t cut = 0; cut < len; cut++) {
			assert_int_equal(ddp_parse(bytes, cut, &got), IWARP_FAULT_SHORT);
			assert_int_equal(got.header_len, 0);
		}
	}
}

static void test_ddp_refused(void **state)
{
	static const struct {
		const char *bytes;
		enum iwarp_fault fault;
	} bad[] = {
		{"c0 40 11223344 0102030405060708", IWARP_FAULT_TAGGED_VERSION},
		{"42 43 00000000 00000000 00000001 00000000", IWARP_FAULT_UNTAGGED_VERSION},
		{"c1 80 11223344 0102030405060708", IWARP_FAULT_VERSION},
		{"41 03 00000000 00000000 00000001 00000000", IWARP_FAULT_VERSION},
		{"41 43 00000000 00000003 00000001 00000000", IWARP_FAULT_QN},
		{"41 43 00000000 ffffffff 00000001 00000000", IWARP_FAULT_QN},
		{"41 43 00000000 00000001 00000001 00000000", IWARP_FAULT_OPCODE}, /* SEND, QN 1 */
		{"41 40 00000000 00000000 00000001 00000000", IWARP_FAULT_OPCODE}, /* WRITE */
		{"41 4a 00000000 00000000 00000001 00000000", IWARP_FAULT_OPCODE}, /* atomic */
		{"c1 43 11223344 0102030405060708", IWARP_FAULT_OPCODE}, /* SEND, tagged */
		{"c1 4f 11223344 0102030405060708", IWARP_FAULT_OPCODE},
	};
	struct ddp_segment s;
	uint8_t bytes[MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(ddp_parse(bytes, unhex(bad[i].bytes, bytes), &s), bad[i].fault);
}

static void test_rdmap(void **state)
{
	const struct rdmap_read want = {
		0x01020304, 0x1112131415161718, 0x00010000, 0x21222324, 0x3132333435363738};
	struct rdmap_read read;
	uint8_t bytes[MAX], made[MAX];

	(void)state;
	assert_int_equal(
		unhex("01020304 1112131415161718 00010000 21222324 3132333435363738", bytes),
		RDMAP_READ_LEN);
	rdmap_read_build(made, &want);
	assert_memory_equal(made, bytes, RDMAP_READ_LEN);
	rdmap_read_parse(bytes, &read);
	assert_int_equal(read.sink_stag, want.sink_stag);
	assert_int_equal(read.sink_to, want.sink_to);
	assert_int_equal(read.len, want.len);
	assert_int_equal(read.source_stag, want.source_stag);
	assert_int_equal(read.source_to, want.source_to);

	assert_int_equal(unhex("00000000 deadbeef", bytes), RDMAP_IMM_LEN);
	rdmap_imm_build(made, 0xdeadbeef);
	assert_memory_equal(made, bytes, RDMAP_IMM_LEN);
	assert_int_equal(rdmap_imm_parse(bytes), 0xdeadbeef);
}

#define READ_HEADER "4141 00000000 00000001 00000005 00000000"
#define READ_BODY "01020304 1112131415161718 00010000 21222324 3132333435363738"

static void test_terminate(void **state)
{
	static const struct {
		enum iwarp_fault fault;
		const char *ulpdu, *bytes;
	} cases[] = {
		/* LLP, CRC: no headers are told. */
		{IWARP_FAULT_CRC, "", "2002 0000"},
		/* A WRITE: length of its segment, DDP header. */
		{IWARP_FAULT_TAGGED_BOUNDS, "c140 11223344 0102030405060708 ffffff",
			"1101 c000 0011 c140 11223344 0102030405060708"},
		/* A READ: RDMAP's header, too. */
		{IWARP_FAULT_ACCESS, READ_HEADER READ_BODY, "0102 e000 002e" READ_HEADER READ_BODY},
		{IWARP_FAULT_MSN, READ_HEADER "0102", "1203 c000 0014" READ_HEADER},
		{IWARP_FAULT_SHORT, "41", "1000 0000"},
		/* Of another DDP: where its header ends nobody knows. */
		{IWARP_FAULT_UNTAGGED_VERSION, "4243 00000000 00000000 00000001 00000000",
			"1206 0000"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t ulpdu[MAX], want[MAX], made[MAX];
		const size_t len = unhex(cases[i].ulpdu, ulpdu), all = unhex(cases[i].bytes, want);
		struct ddp_segment told = {0};
		struct rdmap_terminate t;

		if (len > 0)
			ddp_parse(ulpdu, len, &told);
		assert_true(all <= RDMAP_MAX_TERMINATE);
		assert_int_equal(
			rdmap_terminate_build(made, cases[i].fault, len > 0 ? ulpdu : NULL, len),
			all);
		assert_memory_equal(made, want, all);
		assert_int_equal(rdmap_terminate_parse(made, all, &t), 0);
		assert_int_equal(t.fault, cases[i].fault);
		assert_int_equal(t.segment.header_len, told.header_len);
		assert_int_equal(t.segment.opcode, told.header_len != 0 ? told.opcode : 0);
		assert_int_equal(t.segment.msn, told.msn);
		for (size_t cut = 0; cut < all; cut++) { /* no header but a whole one */
			assert_int_equal(
				rdmap_terminate_parse(made, cut, &t), cut < 4 ? -EPROTO : 0);
			assert_true(cut < 4 || t.segment.header_len == 0 ||
				    6u + t.segment.header_len <= cut);
		}
	}
	assert_int_equal(rdmap_terminate_parse((const uint8_t *)"\xf3\x77\0\0", 4,
				 &(struct rdmap_terminate){.fault = IWARP_FAULT_CRC}),
		0);
}

/* Each fault has codes of its own: what a peer reads is what was meant. */
static void test_faults(void **state)
{
	(void)state;
	for (unsigned f = IWARP_OK + 1; f < IWARP_N_FAULTS; f++) {
		struct rdmap_terminate t;
		uint8_t bytes[RDMAP_MAX_TERMINATE];

		rdmap_terminate_build(bytes, (enum iwarp_fault)f, NULL, 0);
		rdmap_terminate_parse(bytes, 4, &t);
		assert_int_equal(t.fault, f);
		assert_true(strlen(iwarp_fault_name((enum iwarp_fault)f)) > 4);
		assert_true(strlen(iwarp_fault_text((enum iwarp_fault)f)) > 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_start_refused),
		cmocka_unit_test(test_fpdu),
		cmocka_unit_test(test_ddp),
		cmocka_unit_test(test_ddp_refused),
		cmocka_unit_test(test_rdmap),
		cmocka_unit_test(test_terminate),
		cmocka_unit_test(test_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
