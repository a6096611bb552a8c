/* SPDX-License-Identifier: BSD-3-Clause */
/* What wire_parse() refuses, and why. */
#include "tests/unit/wire/parse_check.h"

static void names_are_complete(void **state)
{
	(void)state;
	for (int i = WIRE_OK + 1; i < WIRE_N_DROPS; i++) {
		assert_true(strlen(wire_drop_name((enum wire_drop)i)) > 3);
		assert_true(strlen(wire_drop_text((enum wire_drop)i)) > 3);
	}
	assert_string_equal(wire_drop_name(WIRE_ICRC_BAD), "icrc_bad");
	assert_string_equal(wire_drop_name(WIRE_PARSE_SHORT), "parse_short");
	assert_string_equal(wire_drop_name(WIRE_N_DROPS), "?");
}

static void every_truncation_is_short(void **state)
{
	uint8_t frame[CAP];

	(void)state;
	for (int i = 0; i < 2 * 2 * N_OPCODES; i++) {
		int family = families[i & 1];
		uint8_t opcode = opcodes[i / 4];
		size_t full = test_frame(
			frame, CAP, family, vlans[i >> 1 & 1], opcode, pay_len_of(opcode));

		expect_kind(frame, full, WIRE_ROCE);
		for (size_t len = 0; len < full; len++)
			expect(frame, len, WIRE_PARSE_SHORT);
	}
}

/* Truncated, but with lengths that agree: the transport headers must be missed, or what is left be
 * a shorter packet that is whole. */
static void consistent_truncation_never_lies(void **state)
{
	uint8_t frame[CAP];
	unsigned whole = 0;

	(void)state;
	for (int i = 0; i < 2 * 2 * N_OPCODES; i++) {
		int family = families[i & 1];
		uint16_t vlan = vlans[i >> 1 & 1];
		uint8_t opcode = opcodes[i / 4];
		size_t pay = pay_len_of(opcode), l3 = wire_l3_off(vlan);
		size_t full = test_frame(frame, CAP, family, vlan, opcode, pay);
		size_t l4 = l3 + (family == 4 ? 20 : 40);
		size_t min = l4 + 24 + roce_ext_len(roce_opcode_flags(opcode)) +
			     (opcode == ROCE_CNP ? ROCE_CNP_LEN : 0);

		for (size_t len = l4; len < full; len++) {
			struct wire_pkt pkt;
			enum wire_drop rc;

			fix_lengths(frame, family, l3, len);
			rc = parse_checked(frame, len, &pkt);
			if (len < min) {
				/* Headers that would not fit may also look like a bad pad. */
				assert_true(rc == WIRE_PARSE_SHORT || rc == WIRE_BTH_PAD);
			} else if ((len - min) % 4 || len - min < wire_pad(pay)) {
				assert_int_equal(rc, WIRE_BTH_PAD);
			} else {
				assert_int_equal(rc, WIRE_OK);
				assert_int_equal(pkt.kind, WIRE_ROCE);
				whole++;
			}
		}
	}
	assert_true(whole > 0);
}

static void trailing_bytes_are_ignored(void **state)
{
	uint8_t frame[CAP];
	struct wire_pkt a, b;

	(void)state;
	for (int i = 0; i < 2; i++) {
		size_t len = test_frame(frame, CAP, families[i], 0, ROCE_ACK, 0);

		memset(frame + len, 0xa5, 64);
		assert_int_equal(parse_checked(frame, len, &a), WIRE_OK);
		for (size_t more = 1; more < 64; more++) {
			assert_int_equal(parse_checked(frame, len + more, &b), WIRE_OK);
			assert_memory_equal(&a, &b, sizeof(a));
			assert_true(wire_icrc_ok(frame, &b));
		}
	}
}

static void ip_lengths_must_fit(void **state)
{
	uint8_t frame[CAP];
	size_t len = test_frame(frame, CAP, 4, 0, ROCE_SEND_ONLY, 64);

	(void)state;
	for (size_t claimed = 0; claimed < 20; claimed++) {
		put_be16(frame + L3 + 2, (uint16_t)claimed);
		test_fix_ip4(frame + L3);
		expect(frame, len, WIRE_PARSE_SHORT);
	}
	for (size_t claimed = len - L3 + 1; claimed < 65536; claimed += 111) {
		put_be16(frame + L3 + 2, (uint16_t)claimed);
		test_fix_ip4(frame + L3);
		expect(frame, len, WIRE_PARSE_SHORT);
	}
	len = test_frame(frame, CAP, 6, 0, ROCE_SEND_ONLY, 64);
	for (size_t claimed = len - UDP6 + 1; claimed < 65536; claimed += 111) {
		put_be16(frame + L3 + 4, (uint16_t)claimed);
		expect(frame, len, WIRE_PARSE_SHORT);
	}
	put_be16(frame + L3 + 4, 65535);
	expect(frame, len, WIRE_PARSE_SHORT);
	put_be16(frame + L3 + 4, 0);
	expect(frame, len, WIRE_PARSE_SHORT); /* no room for UDP */
}

/* The first step reads a UDP packet's ports, where they are there, and leaves all else to the
 * second: whatever is cut off behind an IP header that knows of it. */
static void router_needs_ip_only(void **state)
{
	uint8_t frame[CAP];

	(void)state;
	for (int i = 0; i < 2; i++) {
		const size_t udp = families[i] == 4 ? UDP4 : UDP6;
		const size_t len = test_frame(frame, CAP, families[i], 0, ROCE_SEND_ONLY, 64);
		struct wire_pkt pkt;

		assert_int_equal(wire_parse_l3(frame, len, &pkt), WIRE_OK);
		assert_int_equal(pkt.kind, WIRE_UDP);
		assert_int_equal(wire_parse_udp(frame, &pkt), WIRE_OK);
		assert_int_equal(pkt.kind, WIRE_ROCE);
		for (size_t cut = udp; cut < len; cut++) {
			const uint16_t udp_len = (uint16_t)(len - udp);

			fix_lengths(frame, families[i], L3, cut);
			if (cut >= udp + 6)
				put_be16(frame + udp + 4, udp_len);
			assert_int_equal(wire_parse_l3(frame, cut, &pkt), WIRE_OK);
			assert_int_equal(pkt.kind, WIRE_UDP);
			assert_int_equal(pkt.end, cut);
			assert_int_equal(pkt.dport, cut < udp + 8 ? 0 : ROCE_UDP_PORT);
			assert_int_equal(wire_parse_udp(frame, &pkt), WIRE_PARSE_SHORT);
			assert_int_equal(pkt.kind, WIRE_IP);
			expect(frame, cut, WIRE_PARSE_SHORT);
		}
	}
}

static void udp_length_must_agree(void **state)
{
	uint8_t frame[CAP];

	(void)state;
	for (int i = 0; i < 2; i++) {
		size_t len = test_frame(frame, CAP, families[i], 0, ROCE_SEND_ONLY, 64);
		size_t udp = families[i] == 4 ? UDP4 : UDP6;
		uint16_t right = get_be16(frame + udp + 4);

		for (unsigned claimed = 0; claimed < 300; claimed++) {
			put_be16(frame + udp + 4, (uint16_t)claimed);
			expect(frame, len, claimed == right ? WIRE_OK : WIRE_PARSE_SHORT);
		}
		put_be16(frame + udp + 4, 65535);
		expect(frame, len, WIRE_PARSE_SHORT);
	}
}

static void every_bit_of_ipv4_is_checked(void **state)
{
	uint8_t frame[CAP];
	size_t len = test_frame(frame, CAP, 4, 0, ROCE_SEND_ONLY, 64);
	unsigned sums = 0;

	(void)state;
	for (unsigned bit = 0; bit < 160; bit++) {
		struct wire_pkt pkt;
		enum wire_drop rc;

		frame[L3 + bit / 8] ^= (uint8_t)(1 << bit % 8);
		rc = parse_checked(frame, len, &pkt);
		assert_int_not_equal(rc, WIRE_OK);
		sums += rc == WIRE_PARSE_IPSUM;
		if (bit >= 32) /* behind version, header length, total length */
			assert_int_equal(rc, WIRE_PARSE_IPSUM);
		frame[L3 + bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_true(sums >= 128);
	expect(frame, len, WIRE_OK);
}

static void ip_version_and_header_length(void **state)
{
	uint8_t frame[CAP];
	size_t len = test_frame(frame, CAP, 4, 0, ROCE_SEND_ONLY, 64);

	(void)state;
	for (unsigned version = 0; version < 16; version++) {
		frame[L3] = (uint8_t)(version << 4 | 5);
		expect(frame, len, version == 4 ? WIRE_OK : WIRE_PARSE_IPVER);
	}
	for (unsigned words = 0; words < 5; words++) {
		frame[L3] = (uint8_t)(0x40 | words);
		expect(frame, len, WIRE_PARSE_IPVER);
	}
	/* Options: for forwarding, but never RoCE. What stood there as UDP is read as options. */
	for (unsigned words = 6; words < 16; words++) {
		frame[L3] = (uint8_t)(0x40 | words);
		expect(frame, len, WIRE_PARSE_IPSUM);
		test_fix_ip4(frame + L3);
		expect_kind(frame, len, WIRE_IP);
	}
	memmove(frame + UDP4 + 4, frame + UDP4, len - UDP4); /* UDP to 4791 behind an option */
	frame[L3] = 0x46;
	put_be16(frame + L3 + 2, (uint16_t)(len + 4 - L3));
	test_fix_ip4(frame + L3);
	expect_kind(frame, len + 4, WIRE_IP);
	frame[L3] = 0x4f;
	put_be16(frame + L3 + 2, 59); /* less than the header of 60 */
	test_fix_ip4(frame + L3);
	expect(frame, len, WIRE_PARSE_SHORT);

	len = test_frame(frame, CAP, 6, 0, ROCE_SEND_ONLY, 64);
	for (unsigned version = 0; version < 16; version++) {
		frame[L3] = (uint8_t)(version << 4 | (frame[L3] & 15));
		expect(frame, len, version == 6 ? WIRE_OK : WIRE_PARSE_IPVER);
	}
}

static void ipv6_rejects_mapped_addresses(void **state)
{
	uint8_t frame[CAP];
	struct wire_ip mapped = wire_ip_from4(0x0a4d0001);

	(void)state;
	for (int at = 8; at <= 24; at += 16) {
		size_t len = test_frame(frame, CAP, 6, 0, ROCE_SEND_ONLY, 64);

		memcpy(frame + L3 + at, mapped.b, 16);
		expect(frame, len, WIRE_PARSE_IPVER);
	}
}

static void udp_checksum_zero_or_right(void **state)
{
	uint8_t frame[CAP];

	(void)state;
	for (int i = 0; i < 2; i++) {
		size_t udp = families[i] == 4 ? UDP4 : UDP6;
		struct wire_flow flow = test_flow(families[i], 0);
		struct wire_pkt pkt;

		for (size_t pay = 0; pay < 40; pay++) {
			size_t len = test_frame(frame, CAP, families[i], 0, ROCE_SEND_ONLY, pay);
			uint16_t right = ip_l4_checksum(
				&flow.src, &flow.dst, IP_PROTO_UDP, frame + udp, len - udp);

			put_be16(frame + udp + 6, right);
			assert_int_equal(parse_checked(frame, len, &pkt), WIRE_OK);
			/* The ICRC does not cover it. */
			assert_true(wire_icrc_ok(frame, &pkt));
			for (unsigned bit = 0; bit < 16; bit++) {
				put_be16(frame + udp + 6, (uint16_t)(right ^ 1u << bit));
				expect(frame, len,
					right == 1u << bit ? WIRE_OK : WIRE_PARSE_UDPSUM);
			}
			put_be16(frame + udp + 6, right);
			frame[udp + 20] ^= 1; /* a byte of the BTH's end or the ICRC */
			expect(frame, len, WIRE_PARSE_UDPSUM);
		}
	}
}

static void bth_fields_are_checked(void **state)
{
	uint8_t frame[CAP], *bth = frame + BTH4;
	size_t len = test_frame(frame, CAP, 4, 0, ROCE_SEND_ONLY, 64);

	(void)state;
	for (unsigned version = 1; version < 16; version++) {
		bth[1] = (uint8_t)version;
		expect(frame, len, WIRE_BTH_VERSION);
	}
	bth[1] = 0;
	for (unsigned bit = 0; bit < 16; bit++) {
		put_be16(bth + 2, (uint16_t)(0xffff ^ 1u << bit));
		expect(frame, len, WIRE_BTH_PKEY);
	}
	put_be16(bth + 2, 0xffff);
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		bool known = roce_opcode_flags((uint8_t)opcode) != 0;

		bth[0] = (uint8_t)opcode;
		expect(frame, len, known ? WIRE_OK : WIRE_BTH_OPCODE);
	}
}

static void pad_must_fit_and_align(void **state)
{
	uint8_t frame[CAP], *bth = frame + BTH4;
	struct wire_pkt pkt;
	size_t len;

	(void)state;
	for (size_t pay = 0; pay <= 8; pay += 4) {
		len = test_frame(frame, CAP, 4, 0, ROCE_SEND_ONLY, pay);
		for (unsigned pad = 0; pad < 4; pad++) {
			bth[1] = (uint8_t)(pad << ROCE_BTH_PAD_SHIFT);
			expect(frame, len, pad > pay ? WIRE_BTH_PAD : WIRE_OK);
			if (pad > pay)
				continue;
			assert_int_equal(parse_checked(frame, len, &pkt), WIRE_OK);
			assert_int_equal(pkt.pay_len, pay - pad);
			assert_int_equal(pkt.pad, pad);
		}
	}
	/* 1 to 3 bytes that no pad brings to 4. */
	for (size_t extra = 1; extra < 4; extra++) {
		len = test_frame(frame, CAP, 4, 0, ROCE_SEND_ONLY, 8) + extra;
		fix_lengths(frame, 4, L3, len);
		for (unsigned pad = 0; pad < 4; pad++) {
			bth[1] = (uint8_t)(pad << ROCE_BTH_PAD_SHIFT);
			expect(frame, len, WIRE_BTH_PAD);
		}
	}
}

static void cnp_has_its_reserved_bytes(void **state)
{
	uint8_t frame[CAP], *bth = frame + BTH4;
	size_t len = test_frame(frame, CAP, 4, 0, ROCE_SEND_ONLY, 12);

	(void)state;
	bth[0] = ROCE_CNP;
	expect(frame, len, WIRE_PARSE_SHORT);
	len = test_frame(frame, CAP, 4, 0, ROCE_SEND_ONLY, 15);
	bth[0] = ROCE_CNP;
	expect(frame, len, WIRE_PARSE_SHORT);
	len = test_frame(frame, CAP, 4, 0, ROCE_SEND_ONLY, 16);
	bth[0] = ROCE_CNP;
	expect_kind(frame, len, WIRE_ROCE);
}

int run_parse_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_complete),
		cmocka_unit_test(every_truncation_is_short),
		cmocka_unit_test(consistent_truncation_never_lies),
		cmocka_unit_test(trailing_bytes_are_ignored),
		cmocka_unit_test(ip_lengths_must_fit),
		cmocka_unit_test(router_needs_ip_only),
		cmocka_unit_test(udp_length_must_agree),
		cmocka_unit_test(every_bit_of_ipv4_is_checked),
		cmocka_unit_test(ip_version_and_header_length),
		cmocka_unit_test(ipv6_rejects_mapped_addresses),
		cmocka_unit_test(udp_checksum_zero_or_right),
		cmocka_unit_test(bth_fields_are_checked),
		cmocka_unit_test(pad_must_fit_and_align),
		cmocka_unit_test(cnp_has_its_reserved_bytes),
	};

	return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
