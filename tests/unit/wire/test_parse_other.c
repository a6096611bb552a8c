/* SPDX-License-Identifier: BSD-3-Clause */
/* What wire_parse() lets through as something less than RoCE; and any frame at all. */
#include "tests/unit/wire/parse_check.h"

static void ipv4_fragments_are_not_roce(void **state)
{
	enum { MORE = 0x2000, DF = 0x4000, RESERVED = 0x8000 };
	uint8_t frame[CAP];
	size_t len = test_frame(frame, CAP, 4, 0, ROCE_SEND_ONLY, 64);

	(void)state;
	put_be16(frame + L3 + 6, MORE);
	test_fix_ip4(frame + L3);
	expect(frame, len, WIRE_PARSE_FRAG);
	frame[L3 + 10] ^= 1;
	expect(frame, len, WIRE_PARSE_IPSUM);
	for (unsigned offset = 1; offset < 0x2000; offset <<= 1) {
		put_be16(frame + L3 + 6, (uint16_t)(offset | (offset & 2 ? MORE : 0)));
		test_fix_ip4(frame + L3);
		expect_kind(frame, len, WIRE_IP);
	}
	for (unsigned flags = 0; flags <= 0xc000; flags += 0x4000) {
		put_be16(frame + L3 + 6, (uint16_t)flags);
		test_fix_ip4(frame + L3);
		expect_kind(frame, len, WIRE_ROCE);
	}
	/* Another port's first fragment, another protocol's, and one without room for a port. */
	put_be16(frame + L3 + 6, MORE);
	put_be16(frame + UDP4 + 2, 4790);
	test_fix_ip4(frame + L3);
	expect_kind(frame, len, WIRE_IP);
	put_be16(frame + UDP4 + 2, ROCE_UDP_PORT);
	frame[L3 + 9] = IP_PROTO_TCP;
	test_fix_ip4(frame + L3);
	expect_kind(frame, len, WIRE_IP);
	frame[L3 + 9] = IP_PROTO_UDP;
	put_be16(frame + L3 + 2, 23);
	test_fix_ip4(frame + L3);
	expect_kind(frame, len, WIRE_IP);
}

/* Puts an extension header of 8 bytes between the IPv6 header and UDP. */
static size_t insert_ip6_ext(uint8_t *frame, size_t len, uint8_t type)
{
	memmove(frame + UDP6 + 8, frame + UDP6, len - UDP6);
	memset(frame + UDP6, 0, 8);
	frame[UDP6] = frame[L3 + 6];
	frame[L3 + 6] = type;
	put_be16(frame + L3 + 4, (uint16_t)(len + 8 - UDP6));
	return len + 8;
}

static void ipv6_extensions_are_not_roce(void **state)
{
	static const uint8_t types[] = {0, 43, 50, 51, 60, 135, 59, 253};
	uint8_t frame[CAP];
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(types); i++) {
		len = test_frame(frame, CAP, 6, 0, ROCE_SEND_ONLY, 64);
		expect_kind(frame, insert_ip6_ext(frame, len, types[i]), WIRE_IP);
	}
	len = insert_ip6_ext(frame, test_frame(frame, CAP, 6, 0, ROCE_SEND_ONLY, 64), 44);
	expect(frame, len, WIRE_PARSE_FRAG);
	put_be16(frame + UDP6 + 2, 8); /* not the first */
	expect_kind(frame, len, WIRE_IP);
	put_be16(frame + UDP6 + 2, 0);
	for (uint16_t payload = 0; payload < 12; payload++) { /* no room for a port */
		put_be16(frame + L3 + 4, payload);
		expect_kind(frame, len, WIRE_IP);
	}
	put_be16(frame + L3 + 4, 12);
	expect(frame, len, WIRE_PARSE_FRAG);
}

static void vlan_tags(void **state)
{
	uint8_t frame[CAP];
	struct wire_pkt pkt;
	size_t len = test_frame(frame, CAP, 4, 0xe123, ROCE_SEND_ONLY, 64);

	(void)state;
	assert_int_equal(parse_checked(frame, len, &pkt), WIRE_OK);
	assert_int_equal(pkt.vlan, 0xe123);
	assert_int_equal(pkt.l3_off, 18);
	assert_true(wire_icrc_ok(frame, &pkt));
	put_be16(frame + 14, 0); /* a priority tag with nothing in it */
	assert_int_equal(parse_checked(frame, len, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_ROCE);
	assert_int_equal(pkt.vlan, 0);
	assert_int_equal(pkt.l3_off, 18);
	assert_true(wire_icrc_ok(frame, &pkt));
	put_be16(frame + 16, ETH_TYPE_VLAN); /* a second tag is not looked into */
	expect_kind(frame, len, WIRE_L2);
}

static void other_protocols_pass(void **state)
{
	uint8_t frame[CAP];
	struct wire_pkt pkt;
	size_t len = test_frame(frame, CAP, 4, 0, ROCE_SEND_ONLY, 64);

	(void)state;
	put_be16(frame + 12, 0x88cc); /* LLDP */
	expect_kind(frame, len, WIRE_L2);
	expect_kind(frame, ETH_HDR_LEN, WIRE_L2);
	put_be16(frame + 12, ETH_TYPE_IP4);

	put_be16(frame + UDP4 + 2, 53);
	put_be16(frame + UDP4 + 4, 9999); /* not our business */
	assert_int_equal(parse_checked(frame, len, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_IP);
	assert_int_equal(pkt.ip_proto, IP_PROTO_UDP);
	assert_int_equal(pkt.sport, 0xc123);
	assert_int_equal(pkt.dport, 53);

	frame[L3 + 9] = IP_PROTO_TCP;
	test_fix_ip4(frame + L3);
	assert_int_equal(parse_checked(frame, len, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_IP);
	assert_int_equal(pkt.dport, 53);
	for (uint16_t l4_len = 0; l4_len < 4; l4_len++) {
		put_be16(frame + L3 + 2, 20 + l4_len);
		test_fix_ip4(frame + L3);
		assert_int_equal(parse_checked(frame, 34u + l4_len, &pkt), WIRE_OK);
		assert_int_equal(pkt.dport, 0);
	}
}

static void oversized_frames_are_bounded(void **state)
{
	size_t cap = 70000;
	uint8_t *frame = calloc(1, cap);
	struct wire_pkt pkt;

	(void)state;
	test_frame(frame, cap, 6, 0, ROCE_SEND_ONLY, 64);
	put_be16(frame + L3 + 4, 65535); /* would end at 65589 */
	put_be16(frame + UDP6 + 4, 65535);
	assert_int_equal(wire_parse(frame, cap, &pkt), WIRE_PARSE_SHORT);
	frame[L3 + 6] = IP_PROTO_TCP;
	assert_int_equal(wire_parse(frame, cap, &pkt), WIRE_PARSE_SHORT);
	test_frame(frame, cap, 6, 0, ROCE_SEND_ONLY, 64);
	assert_int_equal(wire_parse(frame, cap, &pkt), WIRE_OK);
	free(frame);
}

/* Nothing is known of the outcome but that it is consistent, and that ASan is content. */
static void mutations_are_survived(void **state)
{
	uint8_t frame[CAP];
	uint64_t seed = 7;
	unsigned outcomes[WIRE_N_DROPS] = {0};

	(void)state;
	for (int i = 0; i < 40000; i++) {
		int family = families[i & 1];
		uint8_t opcode = opcodes[test_random(&seed) % N_OPCODES];
		uint16_t vlan = vlans[test_random(&seed) & 1];
		size_t len = test_frame(frame, CAP, family, vlan, opcode, pay_len_of(opcode));
		unsigned changes = 1 + test_random(&seed) % 4;
		struct wire_pkt pkt;

		while (changes--)
			frame[test_random(&seed) % (len < 90 ? len : 90)] ^=
				(uint8_t)(1 << test_random(&seed) % 8);
		if (test_random(&seed) % 2 && family == 4)
			test_fix_ip4(frame + wire_l3_off(vlan));
		if (test_random(&seed) % 4 == 0)
			len = test_random(&seed) % (len + 1);
		outcomes[parse_checked(frame, len, &pkt)]++;
	}
	for (int rc = WIRE_OK; rc < WIRE_N_DROPS; rc++)
		if (rc != WIRE_ICRC_BAD) /* the parser does not compute it */
			assert_true(outcomes[rc] > 0);
}

int run_parse_other_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4_fragments_are_not_roce),
		cmocka_unit_test(ipv6_extensions_are_not_roce),
		cmocka_unit_test(vlan_tags),
		cmocka_unit_test(other_protocols_pass),
		cmocka_unit_test(oversized_frames_are_bounded),
		cmocka_unit_test(mutations_are_survived),
	};

	return cmocka_run_group_tests_name("parse, other", tests, NULL, NULL);
}
