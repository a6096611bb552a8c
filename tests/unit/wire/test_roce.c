/* SPDX-License-Identifier: BSD-3-Clause */
/* PSN arithmetic, opcodes, timers, MTU codes. */
#include "lib/wire/psn.h"
#include "lib/wire/roce.h"
#include "tests/unit/wire/wire_test.h"

static void psn_wraps(void **state)
{
	(void)state;
	assert_int_equal(psn_add(0xffffff, 1), 0);
	assert_int_equal(psn_add(0, -1), 0xffffff);
	assert_int_equal(psn_add(0xfffffe, 0x10), 0x0e);
	assert_int_equal(psn_diff(0, 0xffffff), 1);
	assert_int_equal(psn_diff(0xffffff, 0), -1);
	assert_int_equal(psn_diff(5, 0xfffffb), 10);
	assert_int_equal(psn_diff(0x7fffff, 0), 0x7fffff);
	assert_int_equal(psn_diff(0x800000, 0), -0x800000);
	/* Bits above 24 do not matter. */
	assert_int_equal(psn_diff(0x01000002, 0xff000001), 1);
}

static void psn_orders(void **state)
{
	static const uint32_t bases[] = {0, 1, 0x7fffff, 0x800000, 0xfffff0, 0xffffff};
	static const int32_t steps[] = {1, 2, 0x100, 0x7ffffe, 0x7fffff};

	(void)state;
	for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++) {
		for (size_t j = 0; j < sizeof(steps) / sizeof(*steps); j++) {
			uint32_t a = bases[i], b = psn_add(a, steps[j]);

			assert_int_equal(psn_diff(b, a), steps[j]);
			assert_int_equal(psn_diff(a, b), -steps[j]);
			assert_true(psn_lt(a, b) && psn_le(a, b));
			assert_false(psn_lt(b, a) || psn_le(b, a));
			assert_int_equal(psn_max(a, b), b);
			assert_int_equal(psn_max(b, a), b);
			assert_int_equal(psn_min(a, b), a);
			assert_int_equal(psn_min(b, a), a);
		}
		assert_false(psn_lt(bases[i], bases[i]));
		assert_true(psn_le(bases[i], bases[i]));
	}
	assert_true(psn_in(0, 0xfffffe, 1));
	assert_true(psn_in(0xfffffe, 0xfffffe, 1));
	assert_true(psn_in(1, 0xfffffe, 1));
	assert_false(psn_in(2, 0xfffffe, 1));
	assert_false(psn_in(0xfffffd, 0xfffffe, 1));
}

struct opcode_case {
	uint8_t opcode;
	uint16_t flags;
	unsigned ext_len;
	const char *name;
};

static const struct opcode_case opcode_cases[] = {
	{0x00, ROCE_F_SEND | ROCE_F_REQUEST | ROCE_F_PAYLOAD | ROCE_F_FIRST, 0, "RC SEND FIRST"},
	{0x05,
		ROCE_F_SEND | ROCE_F_REQUEST | ROCE_F_PAYLOAD | ROCE_F_FIRST | ROCE_F_LAST |
			ROCE_F_IMM,
		4, "RC SEND ONLY with Immediate"},
	{0x07, ROCE_F_WRITE | ROCE_F_REQUEST | ROCE_F_PAYLOAD, 0, "RC WRITE MIDDLE"},
	{0x0b,
		ROCE_F_WRITE | ROCE_F_REQUEST | ROCE_F_PAYLOAD | ROCE_F_FIRST | ROCE_F_LAST |
			ROCE_F_RETH | ROCE_F_IMM,
		20, "RC WRITE ONLY with Immediate"},
	{0x0c, ROCE_F_REQUEST | ROCE_F_FIRST | ROCE_F_LAST | ROCE_F_RETH, 16, "RC READ REQUEST"},
	{0x0d, ROCE_F_PAYLOAD | ROCE_F_FIRST | ROCE_F_AETH, 4, "RC READ RESPONSE FIRST"},
	{0x0e, ROCE_F_PAYLOAD, 0, "RC READ RESPONSE MIDDLE"},
	{0x11, ROCE_F_AETH, 4, "RC ACKNOWLEDGE"},
	{0x12, ROCE_F_AETH | ROCE_F_ATOMICACK, 12, "RC ATOMIC ACKNOWLEDGE"},
	{0x13, ROCE_F_REQUEST | ROCE_F_FIRST | ROCE_F_LAST | ROCE_F_ATOMIC, 28, "RC COMPARE SWAP"},
	{0x16, ROCE_F_SEND | ROCE_F_REQUEST | ROCE_F_PAYLOAD | ROCE_F_LAST | ROCE_F_IETH, 4,
		"RC SEND LAST with Invalidate"},
	{0x29, ROCE_F_WRITE | ROCE_F_REQUEST | ROCE_F_PAYLOAD | ROCE_F_LAST | ROCE_F_IMM, 4,
		"UC WRITE LAST with Immediate"},
	{0x65,
		ROCE_F_SEND | ROCE_F_REQUEST | ROCE_F_PAYLOAD | ROCE_F_FIRST | ROCE_F_LAST |
			ROCE_F_DETH | ROCE_F_IMM,
		12, "UD SEND ONLY with Immediate"},
	{0x81, ROCE_F_PAYLOAD, 0, "CNP"},
	{0xe1, ROCE_F_SEND | ROCE_F_REQUEST | ROCE_F_PAYLOAD | ROCE_F_POS, 8, "SEL SEND MIDDLE"},
	{0xeb,
		ROCE_F_WRITE | ROCE_F_REQUEST | ROCE_F_PAYLOAD | ROCE_F_FIRST | ROCE_F_LAST |
			ROCE_F_RETH | ROCE_F_POS | ROCE_F_IMM,
		28, "SEL WRITE ONLY with Immediate"},
	{0xf1, ROCE_F_AETH | ROCE_F_PAYLOAD, 4, "SEL ACKNOWLEDGE"},
};

static void opcodes_have_their_headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(opcode_cases) / sizeof(*opcode_cases); i++) {
		const struct opcode_case *c = &opcode_cases[i];

		assert_int_equal(roce_opcode_flags(c->opcode), c->flags | ROCE_F_VALID);
		assert_int_equal(roce_ext_len(c->flags), c->ext_len);
		assert_string_equal(roce_opcode_name(c->opcode), c->name);
	}
}

static void only_known_opcodes_are_valid(void **state)
{
	unsigned n = 0;

	(void)state;
	for (unsigned op = 0; op < 256; op++) {
		/* All of RC, and the same for selective acknowledgement; UC; UD; CNP. Those of MRC
		 * (0xc0..0xdf) belong to nobody here. */
		unsigned rc = op >= 0xe0 ? op - 0xe0 : op;
		bool known = rc <= 0x14 || rc == 0x16 || rc == 0x17 || (op >= 0x20 && op <= 0x2b) ||
			     op == 0x64 || op == 0x65 || op == 0x81;
		uint16_t flags = roce_opcode_flags((uint8_t)op);

		n += known;
		assert_int_equal((flags & ROCE_F_VALID) != 0, known);
		assert_int_equal(strcmp(roce_opcode_name((uint8_t)op), "unknown") != 0, known);
		if (!known)
			assert_int_equal(flags, 0);
		/* Nothing is longer than the room that builders are told to have. */
		assert_true(roce_ext_len(flags) <= sizeof(struct roce_atomiceth));
	}
	assert_int_equal(n, 61);
}

static void timers_follow_the_tables(void **state)
{
	(void)state;
	assert_int_equal(roce_rnr_ns(0), 655360000);
	assert_int_equal(roce_rnr_ns(1), 10000);
	assert_int_equal(roce_rnr_ns(12), 640000);
	assert_int_equal(roce_rnr_ns(14), 1280000);
	assert_int_equal(roce_rnr_ns(31), 491520000);
	assert_int_equal(roce_rnr_ns(2), 20000);
	assert_int_equal(roce_rnr_ns(3), 30000);
	for (unsigned code = 4; code < 32; code++)
		assert_int_equal(roce_rnr_ns(code), 2 * roce_rnr_ns(code - 2));
	assert_int_equal(roce_timeout_ns(0), 0);
	assert_int_equal(roce_timeout_ns(1), 8192);
	assert_int_equal(roce_timeout_ns(14), 67108864);
	assert_int_equal(roce_timeout_ns(31), UINT64_C(8796093022208));
}

static void mtu_codes_convert(void **state)
{
	static const unsigned bytes[] = {0, 256, 512, 1024, 2048, 4096, 0, 0};

	(void)state;
	for (unsigned code = 0; code < 8; code++) {
		assert_int_equal(roce_mtu_bytes(code), bytes[code]);
		if (bytes[code])
			assert_int_equal(roce_mtu_code(bytes[code]), code);
	}
	assert_int_equal(roce_mtu_bytes(33), 0);
	assert_int_equal(roce_mtu_code(0), 0);
	assert_int_equal(roce_mtu_code(1500), 0);
	assert_int_equal(roce_mtu_code(8192), 0);
}

int run_roce_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(psn_wraps),
		cmocka_unit_test(psn_orders),
		cmocka_unit_test(opcodes_have_their_headers),
		cmocka_unit_test(only_known_opcodes_are_valid),
		cmocka_unit_test(timers_follow_the_tables),
		cmocka_unit_test(mtu_codes_convert),
	};

	return cmocka_run_group_tests_name("roce", tests, NULL, NULL);
}
