/* SPDX-License-Identifier: BSD-3-Clause */
/* What wire_parse() refuses, and why; what it lets through as something less than RoCE. */
#include "lib/wire/bytes.h"
#include "tests/unit/wire/wire_test.h"

enum { CAP = 8192, L3 = ETH_HDR_LEN, UDP4 = L3 + 20, UDP6 = L3 + 40, BTH4 = UDP4 + 8 };

static const int families[] = {4, 6};
static const uint16_t vlans[] = {0, 0x6064};
static const uint8_t opcodes[] = {ROCE_SEND_MIDDLE, ROCE_SEND_ONLY_IMM, ROCE_WRITE_ONLY_IMM,
	ROCE_ACK, ROCE_ATOMIC_ACK, ROCE_CMP_SWAP, ROCE_SEND_ONLY_INV, ROCE_UD | ROCE_SEND_ONLY_IMM,
	ROCE_CNP};

enum { N_OPCODES = sizeof(opcodes) / sizeof(*opcodes) };

static size_t pay_len_of(uint8_t opcode)
{
	if (opcode == ROCE_CNP)
		return ROCE_CNP_LEN;
	return roce_opcode_flags(opcode) & ROCE_F_PAYLOAD ? 37 : 0;
}

/* What has to hold for any frame at all. */
static void check_consistent(const struct wire_pkt *pkt, enum wire_drop rc, size_t len)
{
	size_t headers;

	assert_true(rc == WIRE_OK || (rc > WIRE_OK && rc < WIRE_N_DROPS));
	if (rc != WIRE_OK) {
		assert_int_not_equal(pkt->kind, WIRE_ROCE);
		return;
	}
	assert_true(pkt->end <= len);
	if (pkt->kind == WIRE_L2 || pkt->kind == WIRE_ARP)
		return;
	assert_true(pkt->ip_ver == 4 || pkt->ip_ver == 6);
	assert_int_equal(wire_ip_is4(&pkt->src), pkt->ip_ver == 4);
	assert_int_equal(wire_ip_is4(&pkt->dst), pkt->ip_ver == 4);
	assert_true(pkt->l3_off == ETH_HDR_LEN || pkt->l3_off == ETH_HDR_LEN + VLAN_HDR_LEN);
	assert_true(pkt->l3_off < pkt->l4_off && pkt->l4_off <= pkt->end);
	if (pkt->kind != WIRE_ROCE)
		return;
	headers = sizeof(struct udp_hdr) + sizeof(struct roce_bth) + roce_ext_len(pkt->flags);
	assert_int_equal(pkt->dport, ROCE_UDP_PORT);
	assert_int_equal(pkt->flags, roce_opcode_flags(pkt->opcode));
	assert_true(pkt->flags & ROCE_F_VALID);
	assert_int_equal(pkt->pay_off, pkt->l4_off + headers);
	assert_int_equal(pkt->pay_off + pkt->pay_len + pkt->pad + ROCE_ICRC_LEN, pkt->end);
	assert_int_equal((pkt->pay_len + pkt->pad) % 4, 0);
	assert_true(pkt->pad < 4 && pkt->dqpn <= 0xffffff && pkt->psn <= 0xffffff);
}

static enum wire_drop parse_checked(const uint8_t *frame, size_t len, struct wire_pkt *pkt)
{
	enum wire_drop rc = parse_exact(frame, len, pkt);

	check_consistent(pkt, rc, len);
	return rc;
}

static void expect(const uint8_t *frame, size_t len, enum wire_drop expected)
{
	struct wire_pkt pkt;
	enum wire_drop rc = parse_checked(frame, len, &pkt);

	if (rc != expected)
		print_error("got %s, expected %s\n", rc ? wire_drop_name(rc) : "ok",
			expected ? wire_drop_name(expected) : "ok");
	assert_int_equal(rc, expected);
}

static void expect_kind(const uint8_t *frame, size_t len, enum wire_kind kind)
{
	struct wire_pkt pkt;

	assert_int_equal(parse_checked(frame, len, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, kind);
}

/* Sets both lengths as they should be for a frame that ends at len. */
static void fix_lengths(uint8_t *frame, int family, size_t l3, size_t len)
{
	size_t l4 = l3 + (family == 4 ? 20 : 40);

	if (family == 4) {
		put_be16(frame + l3 + 2, (uint16_t)(len - l3));
		test_fix_ip4(frame + l3);
	} else {
		put_be16(frame + l3 + 4, (uint16_t)(len - l4));
	}
	put_be16(frame + l4 + 4, (uint16_t)(len - l4));
}

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

int run_parse_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_complete),
		cmocka_unit_test(every_truncation_is_short),
		cmocka_unit_test(consistent_truncation_never_lies),
		cmocka_unit_test(trailing_bytes_are_ignored),
		cmocka_unit_test(ip_lengths_must_fit),
		cmocka_unit_test(udp_length_must_agree),
		cmocka_unit_test(every_bit_of_ipv4_is_checked),
		cmocka_unit_test(ip_version_and_header_length),
		cmocka_unit_test(ipv6_rejects_mapped_addresses),
		cmocka_unit_test(udp_checksum_zero_or_right),
		cmocka_unit_test(bth_fields_are_checked),
		cmocka_unit_test(pad_must_fit_and_align),
		cmocka_unit_test(cnp_has_its_reserved_bytes),
		cmocka_unit_test(ipv4_fragments_are_not_roce),
		cmocka_unit_test(ipv6_extensions_are_not_roce),
		cmocka_unit_test(vlan_tags),
		cmocka_unit_test(other_protocols_pass),
		cmocka_unit_test(oversized_frames_are_bounded),
		cmocka_unit_test(mutations_are_survived),
	};

	return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
