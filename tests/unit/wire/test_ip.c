/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and checksums. */
#include <errno.h>

#include "lib/wire/bytes.h"
#include "lib/wire/ip.h"
#include "tests/unit/wire/wire_test.h"

static void bytes_are_big_endian(void **state)
{
	uint8_t b[9] = {0xee, 1, 2, 3, 4, 5, 6, 7, 8};

	(void)state;
	assert_int_equal(get_be16(b + 1), 0x0102);
	assert_int_equal(get_be24(b + 1), 0x010203);
	assert_int_equal(get_be32(b + 1), 0x01020304);
	assert_int_equal(get_be64(b + 1), UINT64_C(0x0102030405060708));
	put_be16(b + 1, 0x2122);
	put_be24(b + 3, 0x232425);
	assert_memory_equal(b, "\xee\x21\x22\x23\x24\x25\x06", 7);
	put_be32(b + 1, 0x31323334);
	assert_memory_equal(b + 1, "\x31\x32\x33\x34\x25", 5);
	put_be64(b + 1, UINT64_C(0x4142434445464748));
	assert_memory_equal(b, "\xee\x41\x42\x43\x44\x45\x46\x47\x48", 9);
}

static void addresses_round_trip(void **state)
{
	static const char *const texts[] = {"0.0.0.0", "10.77.0.1", "255.255.255.255", "::", "::1",
		"fd77::1", "fe80::ff:fe00:a", "1:2:3:4:5:6:7:8",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"};
	char buf[WIRE_IP_STRLEN];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct wire_ip ip;

		assert_int_equal(wire_ip_parse(texts[i], &ip), 0);
		assert_int_equal(wire_ip_is4(&ip), strchr(texts[i], ':') == NULL);
		assert_string_equal(wire_ip_format(&ip, buf, sizeof(buf)), texts[i]);
	}
}

static void mapped_form_is_ipv4(void **state)
{
	struct wire_ip a, b = wire_ip_from4(0x0a4d0001);
	char buf[WIRE_IP_STRLEN];

	(void)state;
	assert_int_equal(wire_ip_parse("::ffff:10.77.0.1", &a), 0);
	assert_true(wire_ip_eq(&a, &b));
	assert_true(wire_ip_is4(&a));
	assert_int_equal(wire_ip_to4(&a), 0x0a4d0001);
	assert_string_equal(wire_ip_format(&a, buf, sizeof(buf)), "10.77.0.1");
	a.b[3] = 1;
	assert_false(wire_ip_is4(&a));
	assert_false(wire_ip_is_zero(&a));
	assert_int_equal(wire_ip_parse("::", &a), 0);
	assert_true(wire_ip_is_zero(&a));
}

static void bad_addresses_change_nothing(void **state)
{
	static const char *const texts[] = {"", " ", "10.0.0", "10.0.0.256", "10.0.0.1 ", "1:2",
		"fd77::1::2", "fd77::g", "10.0.0.1/24", "::ffff:10.0.0", "localhost",
		"00000000000000000000000000000000000000000000000000000000000000000000:1"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct wire_ip ip = wire_ip_from4(42), before = ip;

		assert_int_equal(wire_ip_parse(texts[i], &ip), -EINVAL);
		assert_true(wire_ip_eq(&ip, &before));
	}
}

static void short_buffers_stay_strings(void **state)
{
	struct wire_ip ip = wire_ip_from4(0x0a4d0001);
	char buf[16] = "untouched";

	(void)state;
	assert_string_equal(wire_ip_format(&ip, buf, 9), ""); /* needs 10 */
	assert_string_equal(wire_ip_format(&ip, buf, 10), "10.77.0.1");
	strcpy(buf, "untouched");
	wire_ip_format(&ip, buf, 0);
	assert_string_equal(buf, "untouched");
}

static void macs_round_trip(void **state)
{
	static const char *const bad[] = {"", "0", "02", "02:", "02:00:00:00:00",
		"02:00:00:00:00:", "02:00:00:00:00:1", "02:00:00:00:00:001",
		"02:00:00:00:00:01:", "02-00-00-00-00-01", "g2:00:00:00:00:01", "02:00:00:00:00:0g",
		"020000000001", " 02:00:00:00:00:01"};
	uint8_t mac[6];
	char buf[WIRE_MAC_STRLEN];

	(void)state;
	assert_int_equal(wire_mac_parse("02:aB:9f:00:Ff:1e", mac), 0);
	assert_memory_equal(mac, "\x02\xab\x9f\x00\xff\x1e", 6);
	assert_string_equal(wire_mac_format(mac, buf, sizeof(buf)), "02:ab:9f:00:ff:1e");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char *exact = strdup(bad[i]); /* ASan watches its end */

		assert_int_equal(wire_mac_parse(exact, mac), -EINVAL);
		assert_memory_equal(mac, "\x02\xab\x9f\x00\xff\x1e", 6);
		free(exact);
	}
}

static void link_local_is_eui64(void **state)
{
	const uint8_t mac[6] = {0x02, 0x11, 0x22, 0x33, 0x44, 0x0a};
	struct wire_ip ip = wire_ip_link_local(mac), expected;

	(void)state;
	assert_int_equal(wire_ip_parse("fe80::11:22ff:fe33:440a", &expected), 0);
	assert_true(wire_ip_eq(&ip, &expected));
}

/* RFC 1071 by the book, 16 bits at a time. */
static uint16_t slow_sum(const uint8_t *p, size_t len, uint16_t start)
{
	uint32_t sum = start;

	for (size_t i = 0; i < len; i++) {
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return (uint16_t)sum;
}

static void sums_match_the_book(void **state)
{
	uint64_t seed = 1;
	uint8_t data[300];

	(void)state;
	for (size_t len = 0; len < sizeof(data); len++) {
		uint8_t *exact = malloc(len + 1);
		uint16_t start = (uint16_t)test_random(&seed);

		test_fill(&seed, data, sizeof(data));
		if (len % 3 == 0)
			memset(data, 0xff, sizeof(data)); /* all carries */
		memcpy(exact + 1, data, len);             /* unaligned, exact end */
		assert_int_equal(ip_sum(exact + 1, len, start), slow_sum(data, len, start));
		assert_int_equal(ip_sum(exact + 1, len, 0xffff), slow_sum(data, len, 0xffff));
		free(exact);
	}
}

static void l4_checksums_cover_the_pseudo_header(void **state)
{
	/* UDP 10.0.0.1:1 > 10.0.0.2:2, "hi!"; ICMPv6 echo fe80::1 > fe80::2. By hand. */
	static const uint8_t udp[] = {0, 1, 0, 2, 0, 11, 0, 0, 'h', 'i', '!'};
	static const uint8_t echo[] = {128, 0, 0, 0, 0x12, 0x34, 0, 1};
	struct wire_ip src = wire_ip_from4(0x0a000001), dst = wire_ip_from4(0x0a000002);
	uint32_t sum = 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 17 + 11 + 1 + 2 + 11 + 0x6869 + 0x2100;

	(void)state;
	assert_int_equal(
		ip_l4_checksum(&src, &dst, IP_PROTO_UDP, udp, sizeof(udp)), (uint16_t)~sum);
	assert_int_equal(wire_ip_parse("fe80::1", &src), 0);
	assert_int_equal(wire_ip_parse("fe80::2", &dst), 0);
	sum = 0xfe80 + 1 + 0xfe80 + 2 + 58 + 8 + 0x8000 + 0x1234 + 1;
	sum = (sum & 0xffff) + (sum >> 16);
	assert_int_equal(
		ip_l4_checksum(&src, &dst, IP_PROTO_ICMP6, echo, sizeof(echo)), (uint16_t)~sum);
}

static void udp_checksum_zero_is_sent_as_ones(void **state)
{
	uint8_t udp[10] = {0, 1, 0, 2, 0, 10};
	struct wire_ip src = wire_ip_from4(0x0a000001), dst = wire_ip_from4(0x0a000002);

	(void)state;
	/* Two bytes of payload that bring the sum to 0xffff. */
	put_be16(udp + 8, ip_l4_checksum(&src, &dst, IP_PROTO_UDP, udp, sizeof(udp)));
	assert_int_equal(ip_l4_checksum(&src, &dst, IP_PROTO_UDP, udp, sizeof(udp)), 0xffff);
	/* The same words under another protocol whose number is added back. */
	put_be16(udp + 8, 0);
	put_be16(udp + 8, ip_l4_checksum(&src, &dst, IP_PROTO_ICMP6, udp, sizeof(udp)));
	assert_int_equal(ip_l4_checksum(&src, &dst, IP_PROTO_ICMP6, udp, sizeof(udp)), 0);
}

int run_ip_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_big_endian),
		cmocka_unit_test(addresses_round_trip),
		cmocka_unit_test(mapped_form_is_ipv4),
		cmocka_unit_test(bad_addresses_change_nothing),
		cmocka_unit_test(short_buffers_stay_strings),
		cmocka_unit_test(macs_round_trip),
		cmocka_unit_test(link_local_is_eui64),
		cmocka_unit_test(sums_match_the_book),
		cmocka_unit_test(l4_checksums_cover_the_pseudo_header),
		cmocka_unit_test(udp_checksum_zero_is_sent_as_ones),
	};

	return cmocka_run_group_tests_name("ip", tests, NULL, NULL);
}
