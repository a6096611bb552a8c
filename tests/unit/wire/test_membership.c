/* SPDX-License-Identifier: BSD-3-Clause */
/* IGMP and MLD: what is built is read as it was meant, old versions are understood, bad messages
 * refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka needs the above first */
#include <cmocka.h>

#include "lib/wire/bytes.h"
#include "lib/wire/checksum.h"
#include "lib/wire/frame.h"
#include "lib/wire/membership.h"
#include "lib/wire/multicast.h"

enum { L3 = ETH_HDR_LEN, CAP = 256 };

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 7};

static struct wire_ip ip(const char *text)
{
	struct wire_ip out;

	assert_int_equal(wire_ip_parse(text, &out), 0);
	return out;
}

static void addresses(void **state)
{
	uint8_t got[6];
	struct wire_ip a = ip("239.129.2.3"), b = ip("ff0e::ffff:102:304");

	(void)state;
	wire_multicast_mac(&a, got);
	assert_memory_equal(got, ((uint8_t[]){1, 0, 0x5e, 1, 2, 3}), 6);
	wire_multicast_mac(&b, got);
	assert_memory_equal(got, ((uint8_t[]){0x33, 0x33, 1, 2, 3, 4}), 6);
	a = ip("224.0.0.255");
	assert_true(wire_is_multicast(&a) && wire_multicast_stays(&a));
	a = ip("224.0.1.0");
	assert_true(wire_is_multicast(&a) && !wire_multicast_stays(&a));
	a = ip("240.0.0.1");
	assert_false(wire_is_multicast(&a));
	a = ip("223.255.255.255");
	assert_false(wire_is_multicast(&a));
	a = ip("ff12::1");
	assert_true(wire_is_multicast(&a) && wire_multicast_stays(&a));
	a = ip("ff15::1");
	assert_true(wire_is_multicast(&a) && !wire_multicast_stays(&a));
}

static void reports(void **state)
{
	static const struct {
		const char *src, *group;
	} of[] = {{"10.0.0.7", "239.1.2.3"}, {"fe80::7", "ff0e::7:5"}};
	struct wire_membership m;
	struct wire_ip src, group, got;
	uint8_t b[CAP];
	bool joins;
	int len;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		src = ip(of[i / 2].src);
		group = ip(of[i / 2].group);
		len = wire_build_membership_report(b, CAP, mac, &src, &group, i & 1);
		assert_in_range(len, 30, WIRE_MEMBERSHIP_LEN);
		assert_int_equal(wire_membership_parse(b + L3, (size_t)len - L3, &m), 0);
		assert_int_equal(m.kind, MEMBERSHIP_REPORT);
		assert_true(wire_ip_eq(&m.src, &src));
		assert_true(wire_membership_next(&m, &got, &joins));
		assert_true(wire_ip_eq(&got, &group));
		assert_int_equal(joins, i & 1);
		assert_false(wire_membership_next(&m, &got, &joins));
		for (size_t cut = 0; cut < (size_t)len - L3; cut++)
			assert_int_equal(wire_membership_parse(b + L3, cut, &m), -EINVAL);
	}
	assert_int_equal(wire_build_membership_report(b, 40, mac, &src, &group, true), -ENOSPC);
	group = ip("239.1.2.3");
	assert_int_equal(wire_build_membership_report(b, CAP, mac, &src, &group, true), -EINVAL);
}

static void queries(void **state)
{
	static const uint32_t ms[] = {0, 100, 1000, 10000, 12700, 25600, 3174400};
	struct wire_ip src = ip("10.0.0.1"), none = {0}, group = ip("239.1.2.3");
	struct wire_membership m;
	uint8_t b[CAP];
	int len;

	(void)state;
	for (unsigned family = 0; family < 2; family++) {
		for (unsigned i = 0; i < 2 * sizeof(ms) / sizeof(ms[0]); i++) {
			const struct wire_ip *g = i & 1 ? &group : &none;

			len = wire_build_membership_query(b, CAP, mac, &src, g, ms[i / 2]);
			assert_true(len > 0);
			assert_int_equal(wire_membership_parse(b + L3, (size_t)len - L3, &m), 0);
			assert_int_equal(m.kind, MEMBERSHIP_QUERY);
			assert_true(wire_ip_eq(&m.group, g));
			/* Rounded down to what 4 or 12 bits of mantissa hold. */
			assert_in_range(m.max_response_ms, ms[i / 2] - ms[i / 2] / 16, ms[i / 2]);
		}
		src = ip("fe80::1");
		group = ip("ff0e::7:5");
	}
}

/* IGMP messages of 8 bytes behind an IPv4 header without options. */
static size_t old(uint8_t *p, uint8_t type, uint8_t code, const char *group)
{
	const struct wire_ip g = ip(group);

	memset(p, 0, 28);
	p[0] = 0x45;
	p[3] = 28;
	p[8] = 1;
	p[9] = 2;
	memcpy(p + 12, "\x0a\0\0\x09\xef\1\2\3", 8);
	put_be16(p + 10, (uint16_t)~ip_sum(p, 20, 0));
	p[20] = type;
	p[21] = code;
	memcpy(p + 24, g.b + 12, 4);
	put_be16(p + 22, (uint16_t)~ip_sum(p + 20, 8, 0));
	return 28;
}

static void old_versions(void **state)
{
	static const struct {
		uint8_t type;
		bool joins;
	} of[] = {{0x12, true}, {0x16, true}, {0x17, false}};
	struct wire_membership m;
	struct wire_ip group, want = ip("239.1.2.3");
	uint8_t b[CAP];
	bool joins;
	size_t len;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		len = old(b, of[i].type, 0, "239.1.2.3");
		assert_int_equal(wire_membership_parse(b, len, &m), 0);
		assert_true(wire_membership_next(&m, &group, &joins));
		assert_true(wire_ip_eq(&group, &want));
		assert_int_equal(joins, of[i].joins);
		assert_false(wire_membership_next(&m, &group, &joins));
		/* Whatever bit is wrong, a checksum, a length or the hop limit tells. */
		for (unsigned bit = 0; bit < len * 8; bit++) {
			b[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_equal(wire_membership_parse(b, len, &m), -EINVAL);
			b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		len = old(b, of[i].type, 0, "10.1.2.3");
		assert_int_equal(wire_membership_parse(b, len, &m), -EINVAL);
	}
	len = old(b, 0x11, 100, "0.0.0.0");
	assert_int_equal(wire_membership_parse(b, len, &m), 0);
	assert_int_equal(m.max_response_ms, 10000);
	assert_true(wire_ip_is_zero(&m.group));
	len = old(b, 0x22, 0, "0.0.0.0"); /* version 3 without router alert */
	assert_int_equal(wire_membership_parse(b, len, &m), -EINVAL);
	len = old(b, 0x13, 0, "239.1.2.3"); /* DVMRP */
	assert_int_equal(wire_membership_parse(b, len, &m), -EINVAL);
}

/* A version 3 report of n records, made by hand: type, sources; each with one auxiliary word. */
static size_t records(uint8_t *p, const uint8_t (*r)[2], unsigned n)
{
	size_t at = 32;

	memset(p, 0, CAP);
	p[0] = 0x46;
	p[8] = 1;
	p[9] = 2;
	p[20] = 0x94;
	p[21] = 4;
	p[24] = 0x22;
	put_be16(p + 30, (uint16_t)n);
	for (unsigned i = 0; i < n; i++) {
		p[at] = r[i][0];
		p[at + 1] = 1;
		put_be16(p + at + 2, r[i][1]);
		put_be32(p + at + 4, 0xef000000 + i);
		at += 8 + r[i][1] * 4u + 4;
	}
	put_be16(p + 2, (uint16_t)at);
	put_be16(p + 10, (uint16_t)~ip_sum(p, 24, 0));
	put_be16(p + 26, (uint16_t)~ip_sum(p + 24, at - 24, 0));
	return at;
}

static void record_types(void **state)
{
	/* type, sources: who is a member afterwards (1), is not (0), or is not spoken of (2) */
	static const uint8_t r[][2] = {{1, 0}, {1, 2}, {2, 0}, {2, 1}, {3, 0}, {3, 1}, {4, 0},
		{4, 3}, {5, 1}, {5, 0}, {6, 1}, {7, 1}, {0, 1}};
	static const uint8_t want[] = {0, 1, 1, 1, 0, 1, 1, 1, 1, 2, 2, 2, 2};
	enum { N = sizeof(want) };
	struct wire_membership m;
	struct wire_ip group;
	uint8_t b[CAP];
	bool joins;
	size_t len = records(b, r, N);

	(void)state;
	assert_int_equal(wire_membership_parse(b, len, &m), 0);
	for (unsigned i = 0; i < N; i++) {
		const struct wire_ip g = wire_ip_from4(0xef000000 + i);

		if (want[i] == 2)
			continue;
		assert_true(wire_membership_next(&m, &group, &joins));
		assert_true(wire_ip_eq(&group, &g));
		assert_int_equal(joins, want[i]);
	}
	assert_false(wire_membership_next(&m, &group, &joins));
	/* More records, or more sources, than there are bytes. */
	put_be16(b + 30, N + 1);
	put_be16(b + 26, 0);
	put_be16(b + 26, (uint16_t)~ip_sum(b + 24, len - 24, 0));
	assert_int_equal(wire_membership_parse(b, len, &m), -EINVAL);
	len = records(b, r, 1);
	put_be16(b + 34, 0xffff);
	put_be16(b + 26, 0);
	put_be16(b + 26, (uint16_t)~ip_sum(b + 24, len - 24, 0));
	assert_int_equal(wire_membership_parse(b, len, &m), -EINVAL);
}

static void bad_mld(void **state)
{
	const struct wire_ip src = ip("fe80::7"), global = ip("fd00::7"), group = ip("ff0e::1");
	struct wire_membership m;
	uint8_t b[CAP], bad[CAP];
	const int len = wire_build_membership_report(b, CAP, mac, &src, &group, true);
	static const struct {
		uint8_t at, value;
	} no[] = {{6, 58}, {7, 2}, {7, 0}, {40, 17}, {41, 1}, {41, 255}, {42, 6}, {43, 3}, {43, 9},
		{48, 128}, {51, 1}, {55, 2}};

	(void)state;
	assert_int_equal(wire_membership_parse(b + L3, (size_t)len - L3, &m), 0);
	for (unsigned i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		memcpy(bad, b, CAP);
		bad[L3 + no[i].at] = no[i].value;
		assert_int_equal(wire_membership_parse(bad + L3, (size_t)len - L3, &m), -EINVAL);
	}
	/* From an address that is not of the link. */
	assert_int_equal(wire_build_membership_report(b, CAP, mac, &global, &group, true), len);
	assert_int_equal(wire_membership_parse(b + L3, (size_t)len - L3, &m), -EINVAL);
}

/* ::ffff:a.b.c.d is an IPv4 address here: MLD names no group by it, and asks for none. */
static void mapped_group(void **state)
{
	const struct wire_ip src = ip("fe80::7"), group = ip("ff0e::1");
	static const char *const no[] = {"::ffff:233.1.2.3", "::ffff:0.0.0.0"};
	struct wire_membership m;
	uint8_t b[CAP], bad[CAP];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		const struct wire_ip other = ip(no[i % 2]);
		const bool query = i / 2;
		const int len =
			query ? wire_build_membership_query(b, CAP, mac, &src, &group, 100)
			      : wire_build_membership_report(b, CAP, mac, &src, &group, true);
		const size_t l4 = L3 + 48, at = l4 + (query ? 8 : 12);
		struct wire_ip from, to;

		assert_int_equal(wire_membership_parse(b + L3, (size_t)len - L3, &m), 0);
		memcpy(bad, b, CAP);
		assert_memory_equal(bad + at, group.b, 16);
		memcpy(bad + at, other.b, 16);
		memcpy(from.b, bad + L3 + 8, 16);
		memcpy(to.b, bad + L3 + 24, 16);
		put_be16(bad + l4 + 2, 0);
		put_be16(bad + l4 + 2, (uint16_t)ip_l4_checksum(&from, &to, IP_PROTO_ICMP6,
					       bad + l4, (size_t)len - l4));
		assert_int_equal(wire_membership_parse(bad + L3, (size_t)len - L3, &m), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),
		cmocka_unit_test(reports),
		cmocka_unit_test(queries),
		cmocka_unit_test(old_versions),
		cmocka_unit_test(record_types),
		cmocka_unit_test(bad_mld),
		cmocka_unit_test(mapped_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
