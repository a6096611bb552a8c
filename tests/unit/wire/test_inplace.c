/* SPDX-License-Identifier: BSD-3-Clause */
/* Forwarding and echo replies: frames changed in place. */
#include <errno.h>

#include "lib/wire/bytes.h"
#include "tests/unit/wire/wire_test.h"

enum { CAP = 2048, L3 = ETH_HDR_LEN, DATA_LEN = 57 };

static const uint8_t next_hop[6] = {0x02, 0xbb, 0, 0, 0, 1};
static const uint8_t own_mac[6] = {0x02, 0xcc, 0, 0, 0, 2};

static void forward_ipv4(void **state)
{
	uint8_t frame[CAP], before[CAP];
	struct wire_pkt pkt;

	(void)state;
	/* Every identification and every TTL: all carries that the update can meet. */
	for (unsigned id = 0; id < 65536; id++) {
		size_t len = test_frame(frame, CAP, 4, id & 1 ? 9 : 0, ROCE_ACK, 0);
		size_t l3 = wire_l3_off(id & 1 ? 9 : 0);
		uint8_t ttl = (uint8_t)(2 + id % 254);

		put_be16(frame + l3 + 4, (uint16_t)id);
		frame[l3 + 8] = ttl;
		test_fix_ip4(frame + l3);
		memcpy(before, frame, len);
		assert_int_equal(wire_parse(frame, len, &pkt), WIRE_OK);
		assert_int_equal(wire_forward(frame, &pkt, next_hop, own_mac), 0);
		memcpy(before, next_hop, 6);
		memcpy(before + 6, own_mac, 6);
		before[l3 + 8] = (uint8_t)(ttl - 1);
		test_fix_ip4(before + l3);
		assert_memory_equal(frame, before, len);
	}
}

/* Both forms of zero: a header whose sum needs 0x0000, received with 0xffff as well. */
static void forward_accepts_both_zeros(void **state)
{
	(void)state;
	for (int ones = 0; ones < 2; ones++) {
		uint8_t frame[CAP];
		size_t len = test_frame(frame, CAP, 4, 0, ROCE_ACK, 0);
		struct wire_pkt pkt;

		/* What the checksum was with id 0 is the id that makes it zero. */
		put_be16(frame + L3 + 4, 0);
		test_fix_ip4(frame + L3);
		memcpy(frame + L3 + 4, frame + L3 + 10, 2);
		test_fix_ip4(frame + L3);
		assert_int_equal(get_be16(frame + L3 + 10), 0);
		if (ones)
			put_be16(frame + L3 + 10, 0xffff);
		assert_int_equal(wire_parse(frame, len, &pkt), WIRE_OK);
		assert_int_equal(wire_forward(frame, &pkt, next_hop, own_mac), 0);
		assert_int_equal(get_be16(frame + L3 + 10), 0x0100);
		assert_int_equal(wire_parse(frame, len, &pkt), WIRE_OK);
	}
}

static void forward_ipv6_and_icrc(void **state)
{
	uint8_t frame[CAP], before[CAP];
	struct wire_pkt pkt;
	size_t len = test_frame(frame, CAP, 6, 9, ROCE_SEND_ONLY, 10);

	(void)state;
	memcpy(before, frame, len);
	memcpy(before, next_hop, 6);
	memcpy(before + 6, own_mac, 6);
	before[18 + 7]--;
	assert_int_equal(wire_parse(frame, len, &pkt), WIRE_OK);
	assert_int_equal(wire_forward(frame, &pkt, next_hop, own_mac), 0);
	assert_memory_equal(frame, before, len);
	assert_true(wire_icrc_ok(frame, &pkt));
	len = test_frame(frame, CAP, 4, 9, ROCE_SEND_ONLY, 10);
	assert_int_equal(wire_parse(frame, len, &pkt), WIRE_OK);
	assert_int_equal(wire_forward(frame, &pkt, next_hop, own_mac), 0);
	assert_true(wire_icrc_ok(frame, &pkt));
}

static void forward_stops_at_the_last_hop(void **state)
{
	uint8_t frame[CAP], before[CAP];

	(void)state;
	for (int i = 0; i < 4; i++) {
		int family = i & 1 ? 6 : 4;
		size_t len = test_frame(frame, CAP, family, 0, ROCE_ACK, 0);
		struct wire_pkt pkt;

		frame[L3 + (family == 4 ? 8 : 7)] = (uint8_t)(i >> 1); /* 0 or 1 */
		if (family == 4)
			test_fix_ip4(frame + L3);
		memcpy(before, frame, len);
		assert_int_equal(wire_parse(frame, len, &pkt), WIRE_OK);
		assert_int_equal(wire_forward(frame, &pkt, next_hop, own_mac), -ETIME);
		assert_memory_equal(frame, before, len);
	}
}

/* With IPv4 options, the way other hosts may send. */
static void forward_with_options(void **state)
{
	uint8_t frame[CAP];
	struct wire_pkt pkt;
	size_t len = test_frame(frame, CAP, 4, 0, ROCE_SEND_ONLY, 64);

	(void)state;
	frame[L3] = 0x46;
	test_fix_ip4(frame + L3);
	assert_int_equal(wire_parse(frame, len, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_IP);
	assert_int_equal(pkt.l4_off, L3 + 24);
	assert_int_equal(wire_forward(frame, &pkt, next_hop, own_mac), 0);
	assert_int_equal(wire_parse(frame, len, &pkt), WIRE_OK);
	assert_int_equal(pkt.ttl, 63);
}

/* An echo request with DATA_LEN bytes; returns the frame's length. */
static size_t make_echo(uint8_t *frame, int family, uint16_t vlan, uint16_t id)
{
	struct wire_flow flow = test_flow(family, vlan);
	size_t l3 = wire_l3_off(vlan), l4 = l3 + (family == 4 ? 20 : 40);
	size_t icmp_len = 8 + DATA_LEN;

	test_frame(frame, CAP, family, vlan, ROCE_ACK, 0);
	memset(frame + l4, 0, icmp_len);
	frame[l4] = family == 4 ? 8 : 128;
	put_be16(frame + l4 + 4, id);
	for (size_t i = 0; i < DATA_LEN; i++)
		frame[l4 + 8 + i] = (uint8_t)i;
	if (family == 4) {
		frame[l3 + 9] = IP_PROTO_ICMP;
		frame[l3 + 8] = (uint8_t)id; /* any TTL */
		put_be16(frame + l3 + 2, (uint16_t)(20 + icmp_len));
		test_fix_ip4(frame + l3);
		put_be16(frame + l4 + 2, (uint16_t)~ip_sum(frame + l4, icmp_len, 0));
	} else {
		frame[l3 + 6] = IP_PROTO_ICMP6;
		frame[l3 + 7] = (uint8_t)id;
		put_be16(frame + l3 + 4, (uint16_t)icmp_len);
		put_be16(frame + l4 + 2,
			ip_l4_checksum(&flow.src, &flow.dst, IP_PROTO_ICMP6, frame + l4, icmp_len));
	}
	return l4 + icmp_len;
}

static void check_reply(const uint8_t *frame, size_t len, int family, uint16_t vlan, uint16_t id)
{
	struct wire_flow flow = test_flow(family, vlan);
	const uint8_t *icmp;
	struct wire_pkt pkt;

	assert_int_equal(wire_parse(frame, len, &pkt), WIRE_OK); /* IPv4 checksum */
	assert_int_equal(pkt.kind, WIRE_IP);
	assert_int_equal(pkt.ttl, 64);
	assert_int_equal(pkt.end, len);
	assert_memory_equal(frame, flow.smac, 6);
	assert_memory_equal(frame + 6, flow.dmac, 6);
	assert_true(wire_ip_eq(&pkt.src, &flow.dst));
	assert_true(wire_ip_eq(&pkt.dst, &flow.src));
	icmp = frame + pkt.l4_off;
	assert_int_equal(icmp[0], family == 4 ? 0 : 129);
	assert_int_equal(icmp[1], 0);
	assert_int_equal(get_be16(icmp + 4), id);
	for (size_t i = 0; i < DATA_LEN; i++)
		assert_int_equal(icmp[8 + i], i);
	/* The sum over everything, checksum included. */
	if (family == 4)
		assert_int_equal(ip_sum(icmp, len - pkt.l4_off, 0), 0xffff);
	else
		assert_int_equal(
			ip_l4_checksum(&pkt.src, &pkt.dst, IP_PROTO_ICMP6, icmp, len - pkt.l4_off),
			0);
}

static void echo_is_answered(void **state)
{
	uint8_t frame[CAP];

	(void)state;
	for (unsigned i = 0; i < 65536; i += i < 600 ? 1 : 37) {
		int family = i & 1 ? 6 : 4;
		uint16_t vlan = i & 2 ? 0x0123 : 0;
		size_t len = make_echo(frame, family, vlan, (uint16_t)i);
		struct wire_pkt pkt;

		assert_int_equal(parse_exact(frame, len, &pkt), WIRE_OK);
		assert_int_equal(pkt.kind, WIRE_ICMP_ECHO);
		wire_icmp_echo_reply(frame, &pkt);
		check_reply(frame, len, family, vlan, (uint16_t)i);
	}
}

/* Every IPv4 checksum that a request can come with, and TTLs that give rise to carries. */
static void echo_mends_any_checksum(void **state)
{
	static const uint8_t ttls[] = {1, 63, 64, 65, 255};
	uint8_t request[CAP], frame[CAP];
	size_t len = make_echo(request, 4, 0, 1);

	(void)state;
	for (size_t i = 0; i < sizeof(ttls) * 65536; i++) {
		struct wire_pkt pkt;

		memcpy(frame, request, len);
		frame[L3 + 8] = ttls[i / 65536];
		put_be16(frame + L3 + 4, (uint16_t)i); /* the identification shifts the sum */
		test_fix_ip4(frame + L3);
		assert_int_equal(wire_parse(frame, len, &pkt), WIRE_OK);
		wire_icmp_echo_reply(frame, &pkt);
		assert_int_equal(wire_parse(frame, len, &pkt), WIRE_OK);
		assert_int_equal(pkt.ttl, 64);
	}
}

/* The sender has to notice what was damaged on the way to us. */
static void damaged_echo_stays_damaged(void **state)
{
	uint8_t frame[CAP];
	size_t len = make_echo(frame, 4, 0, 1);
	struct wire_pkt pkt;

	(void)state;
	frame[len - 1] ^= 0x10;
	assert_int_equal(wire_parse(frame, len, &pkt), WIRE_OK);
	wire_icmp_echo_reply(frame, &pkt);
	assert_int_not_equal(ip_sum(frame + pkt.l4_off, len - pkt.l4_off, 0), 0xffff);
}

static void other_icmp_is_plain_ip(void **state)
{
	uint8_t frame[CAP];
	struct wire_pkt pkt;

	(void)state;
	for (int family = 4; family <= 6; family += 2) {
		size_t len = make_echo(frame, family, 0, 1);
		size_t l4 = L3 + (family == 4 ? 20 : 40);
		uint8_t echo = frame[l4];

		for (unsigned type = 0; type < 256; type++) {
			frame[l4] = (uint8_t)type;
			assert_int_equal(parse_exact(frame, len, &pkt), WIRE_OK);
			assert_int_equal(pkt.kind, type == echo ? WIRE_ICMP_ECHO : WIRE_IP);
		}
		frame[l4] = echo;
		frame[l4 + 1] = 1; /* code */
		assert_int_equal(parse_exact(frame, len, &pkt), WIRE_OK);
		assert_int_equal(pkt.kind, WIRE_IP);
		frame[l4 + 1] = 0;
		for (uint16_t icmp_len = 0; icmp_len <= 8; icmp_len++) {
			if (family == 4) {
				put_be16(frame + L3 + 2, 20 + icmp_len);
				test_fix_ip4(frame + L3);
			} else {
				put_be16(frame + L3 + 4, icmp_len);
			}
			assert_int_equal(parse_exact(frame, l4 + icmp_len, &pkt), WIRE_OK);
			assert_int_equal(pkt.kind, icmp_len == 8 ? WIRE_ICMP_ECHO : WIRE_IP);
		}
	}
	/* The one family's protocol number in the other's header. */
	make_echo(frame, 4, 0, 1);
	frame[L3 + 9] = IP_PROTO_ICMP6;
	frame[L3 + 20] = 128;
	test_fix_ip4(frame + L3);
	assert_int_equal(wire_parse(frame, L3 + 20 + 8 + DATA_LEN, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_IP);
	make_echo(frame, 6, 0, 1);
	frame[L3 + 6] = IP_PROTO_ICMP;
	frame[L3 + 40] = 8;
	assert_int_equal(wire_parse(frame, L3 + 40 + 8 + DATA_LEN, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_IP);
}

int run_inplace_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forward_ipv4),
		cmocka_unit_test(forward_accepts_both_zeros),
		cmocka_unit_test(forward_ipv6_and_icrc),
		cmocka_unit_test(forward_stops_at_the_last_hop),
		cmocka_unit_test(forward_with_options),
		cmocka_unit_test(echo_is_answered),
		cmocka_unit_test(echo_mends_any_checksum),
		cmocka_unit_test(damaged_echo_stays_damaged),
		cmocka_unit_test(other_icmp_is_plain_ip),
	};

	return cmocka_run_group_tests_name("inplace", tests, NULL, NULL);
}
