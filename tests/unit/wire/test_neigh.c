/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP and neighbour discovery. */
#include <errno.h>

#include "lib/wire/bytes.h"
#include "tests/unit/wire/wire_test.h"

enum { CAP = 256, L3 = ETH_HDR_LEN, ICMP6 = L3 + 40 };

static const uint8_t mac_a[6] = {0x02, 0, 0, 0, 0, 0x0a};
static const uint8_t mac_b[6] = {0x02, 0, 0, 0, 0, 0x0b};

static struct wire_ip ip(const char *text)
{
	struct wire_ip addr;

	assert_int_equal(wire_ip_parse(text, &addr), 0);
	return addr;
}

static bool same_ip(const struct wire_ip *a, const char *text)
{
	struct wire_ip b = ip(text);

	return wire_ip_eq(a, &b);
}

static void arp_request_layout(void **state)
{
	static const uint8_t expected[ETH_MIN_LEN] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0,
		0, 0, 0, 0x0a, 0x08, 0x06,            /* Ethernet */
		0, 1, 0x08, 0x00, 6, 4, 0, 1,         /* request */
		0x02, 0, 0, 0, 0, 0x0a, 10, 77, 0, 1, /* sender */
		0, 0, 0, 0, 0, 0, 10, 77, 0, 2};      /* target */
	struct wire_ip a = ip("10.77.0.1"), b = ip("10.77.0.2");
	uint8_t out[CAP];

	(void)state;
	memset(out, 0xa5, sizeof(out));
	assert_int_equal(
		wire_build_arp(out, CAP, ARP_REQUEST, mac_a, &a, mac_b, &b, 0), ETH_MIN_LEN);
	assert_memory_equal(out, expected, sizeof(expected));
	assert_int_equal(wire_build_arp(out, ETH_MIN_LEN - 1, ARP_REQUEST, mac_a, &a, mac_b, &b, 0),
		-ENOSPC);
}

static void arp_parses(void **state)
{
	struct wire_ip a = ip("10.77.0.1"), b = ip("10.77.0.2");
	uint8_t out[CAP];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		unsigned op = i & 1 ? ARP_REPLY : ARP_REQUEST;
		uint16_t vlan = i & 2 ? 0x2005 : 0;
		size_t l3 = wire_l3_off(vlan);
		int len = wire_build_arp(out, CAP, op, mac_a, &a, mac_b, &b, vlan);
		struct wire_pkt pkt;

		assert_int_equal(len, ETH_MIN_LEN);
		assert_int_equal(parse_exact(out, ETH_MIN_LEN, &pkt), WIRE_OK);
		assert_int_equal(pkt.kind, WIRE_ARP);
		assert_int_equal(pkt.vlan, vlan);
		assert_int_equal(pkt.l3_off, l3);
		assert_int_equal(pkt.arp_op, op);
		assert_int_equal(pkt.ip_ver, 0);
		assert_memory_equal(pkt.arp_sha, mac_a, 6);
		assert_true(same_ip(&pkt.src, "10.77.0.1"));
		assert_true(same_ip(&pkt.dst, "10.77.0.2"));
		if (op == ARP_REPLY) {
			assert_memory_equal(out, mac_b, 6);
			assert_memory_equal(out + l3 + 18, mac_b, 6);
		}
		for (size_t cut = 0; cut < l3 + 28; cut++)
			assert_int_equal(parse_exact(out, cut, &pkt), WIRE_PARSE_SHORT);
		assert_int_equal(parse_exact(out, l3 + 28, &pkt), WIRE_OK);
		assert_int_equal(pkt.kind, WIRE_ARP);
	}
}

static void foreign_arp_is_l2(void **state)
{
	static const unsigned offsets[] = {0, 1, 2, 3, 4, 5};
	struct wire_ip a = ip("10.77.0.1"), b = ip("10.77.0.2");
	uint8_t out[CAP];

	(void)state;
	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
		struct wire_pkt pkt;

		wire_build_arp(out, CAP, ARP_REQUEST, mac_a, &a, mac_b, &b, 0);
		out[L3 + offsets[i]] ^= 2;
		assert_int_equal(parse_exact(out, ETH_MIN_LEN, &pkt), WIRE_OK);
		assert_int_equal(pkt.kind, WIRE_L2);
	}
}

static void ns_layout(void **state)
{
	static const uint8_t expected[] = {0x33, 0x33, 0xff, 0x11, 0x22, 0x33, 0x02, 0, 0, 0, 0,
		0x0a, 0x86, 0xdd,                                                 /* Ethernet */
		0x60, 0, 0, 0, 0, 32, 58, 255,                                    /* IPv6 */
		0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,             /* source */
		0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0x11, 0x22, 0x33, /* group */
		135, 0, 0, 0, 0, 0, 0, 0,                                         /* NS */
		0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x22, 0x33,    /* target */
		1, 1, 0x02, 0, 0, 0, 0, 0x0a}; /* source link-layer address */
	struct wire_ip src = ip("fd77::1"), target = ip("fd77::11:2233");
	struct wire_ip group = ip("ff02::1:ff11:2233");
	uint8_t out[CAP], want[sizeof(expected)];

	(void)state;
	memcpy(want, expected, sizeof(want));
	put_be16(want + ICMP6 + 2, ip_l4_checksum(&src, &group, IP_PROTO_ICMP6, want + ICMP6, 32));
	assert_int_equal(wire_build_ns(out, CAP, mac_a, &src, &target, 0), sizeof(expected));
	assert_memory_equal(out, want, sizeof(want));
	for (size_t cap = 0; cap < sizeof(expected); cap++) {
		uint8_t *exact = malloc(cap + 1);

		assert_int_equal(wire_build_ns(exact, cap, mac_a, &src, &target, 0), -ENOSPC);
		free(exact);
	}
}

static void nd_parses(void **state)
{
	struct wire_ip a = ip("fd77::1"), b = ip("fd77::2");
	uint8_t out[CAP];

	(void)state;
	for (int i = 0; i < 4; i++) {
		uint16_t vlan = i & 2 ? 7 : 0;
		bool na = i & 1;
		int len = na ? wire_build_na(out, CAP, mac_b, mac_a, &b, &a, vlan)
			     : wire_build_ns(out, CAP, mac_a, &a, &b, vlan);
		struct wire_pkt pkt;

		assert_true(len >= ETH_MIN_LEN);
		assert_int_equal(parse_exact(out, (size_t)len, &pkt), WIRE_OK);
		assert_int_equal(pkt.kind, na ? WIRE_ND_NA : WIRE_ND_NS);
		assert_int_equal(pkt.vlan, vlan);
		assert_int_equal(pkt.ttl, 255);
		assert_true(same_ip(&pkt.nd_target, "fd77::2"));
		assert_true(same_ip(&pkt.src, na ? "fd77::2" : "fd77::1"));
		assert_true(same_ip(&pkt.dst, na ? "fd77::1" : "ff02::1:ff00:2"));
		assert_int_equal(pkt.has_lladdr, 1);
		assert_memory_equal(pkt.nd_lladdr, na ? mac_b : mac_a, 6);
		if (na)
			assert_int_equal(out[pkt.l4_off + 4], 0x60); /* solicited, override */
		for (size_t cut = 0; cut < (size_t)len; cut++)
			assert_int_equal(parse_exact(out, cut, &pkt), WIRE_PARSE_SHORT);
	}
}

static void address_detection_and_announcement(void **state)
{
	struct wire_ip none = ip("::"), target = ip("fd77::2"), all = ip("ff02::1");
	static const uint8_t all_mac[6] = {0x33, 0x33, 0, 0, 0, 1};
	uint8_t out[CAP];
	struct wire_pkt pkt;
	int len = wire_build_ns(out, CAP, mac_a, &none, &target, 0);

	(void)state;
	assert_int_equal(len, ICMP6 + 24);
	assert_int_equal(parse_exact(out, (size_t)len, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_ND_NS);
	assert_int_equal(pkt.has_lladdr, 0);
	len = wire_build_na(out, CAP, mac_b, all_mac, &target, &all, 0);
	assert_int_equal(parse_exact(out, (size_t)len, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_ND_NA);
	assert_int_equal(out[ICMP6 + 4], 0x20); /* override only */
}

/* A good option does not survive a bad one behind it. */
static void option_before_a_bad_one(void **state)
{
	struct wire_ip a = ip("fd77::1"), b = ip("fd77::2");
	struct wire_ip group = ip("ff02::1:ff00:2");
	uint8_t out[CAP] = {0};
	struct wire_pkt pkt;
	int len = wire_build_ns(out, CAP, mac_a, &a, &b, 0) + 8;

	(void)state;
	out[len - 8] = 14; /* of length 0 */
	put_be16(out + L3 + 4, 40);
	put_be16(out + ICMP6 + 2, 0);
	put_be16(out + ICMP6 + 2, ip_l4_checksum(&a, &group, IP_PROTO_ICMP6, out + ICMP6, 40));
	assert_int_equal(parse_exact(out, (size_t)len, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_IP);
	assert_int_equal(pkt.has_lladdr, 0);
}

/* Changes one byte, puts the checksum right again if told so, and wants no more than WIRE_IP. */
static void expect_invalid(unsigned offset, uint8_t value, bool fix)
{
	struct wire_ip a = ip("fd77::1"), b = ip("fd77::2");
	struct wire_ip group = ip("ff02::1:ff00:2");
	uint8_t out[CAP];
	struct wire_pkt pkt;
	int len = wire_build_ns(out, CAP, mac_a, &a, &b, 0);

	out[offset] = value;
	if (fix) {
		put_be16(out + ICMP6 + 2, 0);
		put_be16(out + ICMP6 + 2,
			ip_l4_checksum(&a, &group, IP_PROTO_ICMP6, out + ICMP6, 32));
	}
	assert_int_equal(parse_exact(out, (size_t)len, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_IP);
	assert_int_equal(pkt.has_lladdr, 0);
}

static void invalid_nd_is_plain_ip(void **state)
{
	(void)state;
	expect_invalid(L3 + 7, 254, false);      /* came through a router */
	expect_invalid(ICMP6 + 1, 1, true);      /* code */
	expect_invalid(ICMP6 + 8, 0xff, true);   /* multicast target */
	expect_invalid(ICMP6 + 25, 0, true);     /* option of length 0 */
	expect_invalid(ICMP6 + 25, 2, true);     /* option past the end */
	expect_invalid(ICMP6 + 25, 255, true);   /* far past the end */
	expect_invalid(ICMP6 + 2, 0x12, false);  /* checksum */
	expect_invalid(ICMP6 + 31, 0x0c, false); /* checksum */
	expect_invalid(ICMP6 + 0, 134, true);    /* a router advertisement */
}

static void odd_nd_options(void **state)
{
	struct wire_ip a = ip("fd77::1"), b = ip("fd77::2");
	struct wire_ip group = ip("ff02::1:ff00:2");
	uint8_t out[CAP];
	struct wire_pkt pkt;
	int len = wire_build_ns(out, CAP, mac_a, &a, &b, 0);

	(void)state;
	/* Another option of 16 bytes first: skipped. */
	memmove(out + ICMP6 + 40, out + ICMP6 + 24, 8);
	memset(out + ICMP6 + 24, 0, 16);
	out[ICMP6 + 24] = 14;
	out[ICMP6 + 25] = 2;
	put_be16(out + L3 + 4, 48);
	put_be16(out + ICMP6 + 2, 0);
	put_be16(out + ICMP6 + 2, ip_l4_checksum(&a, &group, IP_PROTO_ICMP6, out + ICMP6, 48));
	assert_int_equal(parse_exact(out, (size_t)len + 16, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_ND_NS);
	assert_int_equal(pkt.has_lladdr, 1);
	assert_memory_equal(pkt.nd_lladdr, mac_a, 6);
	/* Cut within the last option, lengths and checksum consistent. */
	for (uint16_t icmp_len = 0; icmp_len < 48; icmp_len++) {
		put_be16(out + L3 + 4, icmp_len);
		put_be16(out + ICMP6 + 2, 0);
		put_be16(out + ICMP6 + 2,
			ip_l4_checksum(&a, &group, IP_PROTO_ICMP6, out + ICMP6, icmp_len));
		assert_int_equal(parse_exact(out, ICMP6 + (size_t)icmp_len, &pkt), WIRE_OK);
		assert_int_equal(pkt.kind, icmp_len == 24 || icmp_len == 40 ? WIRE_ND_NS : WIRE_IP);
		assert_int_equal(pkt.has_lladdr, 0);
	}
}

int run_neigh_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arp_request_layout),
		cmocka_unit_test(arp_parses),
		cmocka_unit_test(foreign_arp_is_l2),
		cmocka_unit_test(ns_layout),
		cmocka_unit_test(nd_parses),
		cmocka_unit_test(address_detection_and_announcement),
		cmocka_unit_test(invalid_nd_is_plain_ip),
		cmocka_unit_test(odd_nd_options),
		cmocka_unit_test(option_before_a_bad_one),
	};

	return cmocka_run_group_tests_name("neigh", tests, NULL, NULL);
}
