/* SPDX-License-Identifier: BSD-3-Clause */
/* Header templates give the same bytes and ICRC as building every packet from its fields. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/wire/psn.h"
#include "lib/wire/template.h"

static void compare(const struct wire_flow *flow, size_t pay_len)
{
	static const uint8_t opcodes[] = {
		ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST, ROCE_SEND_ONLY};
	static uint8_t payload[4096], want[4400], got[WIRE_TEMPLATE_LEN];
	struct wire_hdr hdr = {
		.opcode = ROCE_SEND_MIDDLE, .dqpn = 0xabcdef, .psn = 99, .ackreq = true};
	struct wire_template t;

	assert_int_equal(wire_template_init(&t, flow, &hdr, pay_len), 0);
	for (unsigned i = 0; i < 2000; i++) {
		uint32_t crc;
		int len;

		payload[(unsigned)rand() % sizeof(payload)] ^= (uint8_t)rand();
		hdr.opcode = opcodes[i % 4];
		hdr.psn = (uint32_t)rand() & PSN_MASK;
		hdr.ip_id = (uint16_t)rand();
		hdr.ackreq = rand() & 1;
		hdr.mig = rand() & 1;
		hdr.se = rand() & 1;
		len = wire_build_frame(want, sizeof(want), flow, &hdr, payload, pay_len);
		assert_true(len > 0);
		crc = wire_template_write(&t, &hdr, icrc_append(0, payload, pay_len), got);
		assert_int_equal(t.len + pay_len + ROCE_ICRC_LEN, len);
		assert_memory_equal(got, want, t.len);
		assert_int_equal(crc, icrc_load(want + len - ROCE_ICRC_LEN));
	}
}

static void test_same_bytes(void **state)
{
	struct wire_flow flow = {
		.dmac = {2, 1}, .smac = {2, 2}, .tos = 0x6a, .ttl = 64, .sport = 0xc123};

	(void)state;
	srand(1);
	wire_ip_parse("10.255.3.4", &flow.src);
	wire_ip_parse("10.77.255.1", &flow.dst);
	compare(&flow, 4096);
	flow.vlan = 77;
	compare(&flow, 256);
	wire_ip_parse("fd00::1", &flow.src);
	wire_ip_parse("fd00:1::2", &flow.dst);
	compare(&flow, 1024);
	flow.vlan = 0;
	compare(&flow, 0);
}

/* What packets to receivers of both families, with a tag and without, have in common can be had
 * from the template of any of them. */
static void test_common(void **state)
{
	enum { N = 3, LEN = 1024 };
	static uint8_t payload[LEN], want[4400], got[WIRE_TEMPLATE_LEN];
	const struct wire_hdr hdr = {.opcode = ROCE_SEND_LAST,
		.dqpn = 0x123456,
		.psn = 0xabcdef,
		.ip_id = 0xfedc,
		.ackreq = true,
		.mig = true};
	struct wire_flow flow[N] = {{.ttl = 64, .tos = 2}, {.ttl = 9}, {.ttl = 64, .vlan = 5}};
	struct wire_template t[N];

	(void)state;
	for (unsigned i = 0; i < LEN; i++)
		payload[i] = (uint8_t)(i * 7);
	for (unsigned i = 0; i < N; i++) {
		wire_ip_parse(i == 1 ? "fd00::1" : "10.255.3.4", &flow[i].src);
		wire_ip_parse(i == 1 ? "fd00:1::2" : "10.77.255.1", &flow[i].dst);
		assert_int_equal(wire_template_init(&t[i], &flow[i], &hdr, LEN), 0);
	}
	for (unsigned of = 0; of < N; of++) {
		const struct wire_common common =
			wire_template_common(&t[of], &hdr, icrc_append(0, payload, LEN));

		for (unsigned i = 0; i < N; i++) {
			const int len =
				wire_build_frame(want, sizeof(want), &flow[i], &hdr, payload, LEN);
			const uint32_t crc = wire_template_copy(&t[i], &common, got);

			assert_memory_equal(got, want, t[i].len);
			assert_int_equal(crc, icrc_load(want + len - ROCE_ICRC_LEN));
		}
	}
}

static void test_refused(void **state)
{
	struct wire_flow flow = {.ttl = 64};
	struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY_IMM};
	struct wire_template t;

	(void)state;
	assert_int_equal(wire_template_init(&t, &flow, &hdr, 256), -EINVAL);
	hdr.opcode = ROCE_SEND_ONLY;
	assert_int_equal(wire_template_init(&t, &flow, &hdr, 255), -EINVAL);
	assert_int_equal(wire_template_init(&t, &flow, &hdr, 65536), -EINVAL);
	assert_int_equal(wire_template_init(&t, &flow, &hdr, 256), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_common),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
