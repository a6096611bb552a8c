/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP errors byte for byte, and about what there are none. */
#include <string.h>

#include "harness.h"
#include "lib/wire/bytes.h"

enum { PORTS = 2, MTU = 1300, UDP = 17, ICMP6 = 58, L4_4 = 14 + 20, L4_6 = 14 + 40, QUOTED = 8 };

static struct sw *sw;

static int start(void **state)
{
	(void)state;
	sw = h_start(PORTS, "{'icmp_errors':true}", "{'mtu':1300}");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	h_stop_whole(sw);
	return 0;
}

static uint8_t b[2048];
static unsigned len;

/* From host 0 to dst, with this hop limit and so many bytes behind the IP header. */
static void make(const char *dst, uint8_t ttl, uint8_t proto, unsigned n)
{
	static uint8_t payload[1400] = {8, 7, 6, 5, 4, 3, 2, 1};
	const struct wire_ip to = h_ip(dst);
	const struct wire_ip from = wire_ip_is4(&to) ? h_host4(0) : h_host6(0);

	if (wire_ip_is4(&to))
		len = h_ip4(b, h_port_mac(sw, 0), &from, &to, proto, ttl, payload, n);
	else
		len = h_ip6(b, h_port_mac(sw, 0), &from, &to, proto, ttl, payload, n);
}

static void mend4(void)
{
	put_be16(b + 24, 0);
	put_be16(b + 24, (uint16_t)~ip_sum(b + 14, 20, 0));
}

static void set_frag(uint16_t frag)
{
	put_be16(b + 20, frag);
	mend4();
}

/* The packet is lost for this reason; what host 0 is told. */
static void told(const char *reason, struct frame *f)
{
	const uint64_t before = h_drop(sw, reason);

	h_inject(sw, 0, b, len);
	h_run(sw);
	assert_int_equal(h_drop(sw, reason), before + 1);
	assert_true(h_take(sw, 0, f));
	h_check_balance(sw);
}

static void silence(const char *reason)
{
	h_expect_drop(sw, 0, b, len, reason);
}

/* Host 0 has this from the switch: type, code, the second word, and a quote of so many bytes. */
static void check4(const struct frame *f, unsigned type, unsigned code, uint32_t word, unsigned n)
{
	const struct wire_ip own = h_ip("10.0.0.1"), host = h_host4(0);
	uint8_t mac[6], want[L4_4 + QUOTED] = {0};
	const unsigned l3 = 20 + QUOTED + n;

	h_host_mac(0, mac);
	memcpy(want, mac, 6);
	memcpy(want + 6, h_port_mac(sw, 0), 6);
	memcpy(want + 12, (uint8_t[]){8, 0, 0x45, 0xc0}, 4);
	put_be16(want + 16, (uint16_t)l3);
	memcpy(want + 20, (uint8_t[]){0x40, 0, 64, 1}, 4);
	memcpy(want + 26, own.b + 12, 4);
	memcpy(want + 30, host.b + 12, 4);
	put_be16(want + 24, (uint16_t)~ip_sum(want + 14, 20, 0));
	want[L4_4] = (uint8_t)type;
	want[L4_4 + 1] = (uint8_t)code;
	put_be32(want + L4_4 + 4, word);
	memcpy(want + L4_4 + 2, f->b + L4_4 + 2, 2); /* checked below */
	assert_int_equal(f->len, 14 + l3);
	assert_memory_equal(f->b, want, sizeof(want));
	assert_int_equal(ip_sum(f->b + L4_4, QUOTED + n, 0), 0xffff);
	assert_memory_equal(f->b + L4_4 + QUOTED, b + 14, n);
}

static void check6(const struct frame *f, unsigned type, unsigned code, uint32_t word, unsigned n)
{
	const struct wire_ip own = h_ip("fd00::1"), host = h_host6(0);
	uint8_t mac[6], want[L4_6 + QUOTED] = {0};

	h_host_mac(0, mac);
	memcpy(want, mac, 6);
	memcpy(want + 6, h_port_mac(sw, 0), 6);
	memcpy(want + 12, (uint8_t[]){0x86, 0xdd, 0x60}, 3);
	put_be16(want + 18, (uint16_t)(QUOTED + n));
	want[20] = ICMP6;
	want[21] = 64;
	memcpy(want + 22, own.b, 16);
	memcpy(want + 38, host.b, 16);
	want[L4_6] = (uint8_t)type;
	want[L4_6 + 1] = (uint8_t)code;
	put_be32(want + L4_6 + 4, word);
	memcpy(want + L4_6 + 2, f->b + L4_6 + 2, 2);
	assert_int_equal(f->len, L4_6 + QUOTED + n);
	assert_memory_equal(f->b, want, sizeof(want));
	assert_int_equal(ip_l4_checksum(&own, &host, ICMP6, f->b + L4_6, QUOTED + n), 0);
	assert_memory_equal(f->b + L4_6 + QUOTED, b + 14, n);
}

/* What traceroute lives by. */
static void time_exceeded(void **state)
{
	struct frame f;

	(void)state;
	make("10.0.0.11", 1, UDP, 30);
	told("ip_ttl", &f);
	check4(&f, 11, 0, 0, 50);
	make("fd00::b", 1, UDP, 30);
	told("ip_ttl", &f);
	check6(&f, 3, 0, 0, 70);
}

static void unreachable(void **state)
{
	struct table_entry e = {.action = 1};
	struct table_error why;
	struct frame f;

	(void)state;
	make("99.1.1.1", 9, UDP, 30);
	told("ip_no_route", &f);
	check4(&f, 3, 0, 0, 50);
	make("2001:db8::1", 9, UDP, 30);
	told("ip_no_route", &f);
	check6(&f, 1, 0, 0, 70);
	e.key[0].ip = h_ip("99.0.0.0");
	e.key[0].prefix = 8;
	e.param[0].u = sw->ports[1].id;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_ROUTE4, &e, &why), 0);
	make("99.1.1.1", 9, UDP, 30);
	told("ip_no_neigh", &f);
	check4(&f, 3, 1, 0, 50);
	e.key[0].ip = h_ip("2001:db8::");
	e.key[0].prefix = 32;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_ROUTE6, &e, &why), 0);
	make("2001:db8::1", 9, UDP, 30);
	told("ip_no_neigh", &f);
	check6(&f, 1, 3, 0, 70);
	/* A blackhole says nothing. */
	e.key[0].ip = h_ip("98.0.0.0");
	e.key[0].prefix = 8;
	e.action = 2;
	e.param[0].u = 0;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_ROUTE4, &e, &why), 0);
	make("98.1.1.1", 9, UDP, 30);
	silence("ip_blackhole");
}

/* What path MTU discovery and ping -M do live by; quotes end at 576 and 1280 bytes of IP. */
static void too_big(void **state)
{
	struct frame f;

	(void)state;
	make("10.0.0.11", 9, UDP, 1281);
	set_frag(IP4_DF);
	told("ip_mtu", &f);
	check4(&f, 3, 4, MTU, 576 - 28);
	set_frag(0);
	silence("ip_mtu");
	make("fd00::b", 9, UDP, 1261);
	told("ip_mtu", &f);
	check6(&f, 2, 0, MTU, 1280 - 48);
	make("fd00::b", 9, UDP, 1260);
	h_exchange(sw, 0, b, len, 1, &f);
}

static void never(void **state)
{
	const uint8_t icmp4[] = {3, 4, 5, 11, 12}, icmp6[] = {1, 2, 3, 4, 127, 137};
	struct frame f;

	(void)state;
	for (unsigned i = 0; i < sizeof(icmp4); i++) {
		make("10.0.0.11", 1, 1, 16);
		b[L4_4] = icmp4[i];
		silence("ip_ttl");
	}
	make("10.0.0.11", 1, 1, 16); /* an echo request is no error */
	told("ip_ttl", &f);
	for (unsigned i = 0; i < sizeof(icmp6); i++) {
		make("fd00::b", 1, ICMP6, 16);
		b[L4_6] = icmp6[i];
		silence("ip_ttl");
	}
	/* Behind an extension header as well, and one that lies about its length. */
	make("fd00::b", 1, 60, 16);
	memcpy(b + L4_6, (uint8_t[]){ICMP6, 0, 1, 4, 0, 0, 0, 0, 1}, 9);
	silence("ip_ttl");
	b[L4_6 + 1] = 9;
	silence("ip_ttl");
	make("fd00::b", 1, 44, 24); /* and in a first fragment */
	memcpy(b + L4_6, (uint8_t[]){60, 0, 0, 1, 0, 0, 0, 5, ICMP6, 0, 1, 4, 0, 0, 0, 0, 1}, 17);
	silence("ip_ttl");
	/* Fragments: the first only. */
	make("10.0.0.11", 1, UDP, 16);
	set_frag(0x2000);
	told("ip_ttl", &f);
	set_frag(0x2001);
	silence("ip_ttl");
	make("fd00::b", 1, 44, 16);
	memcpy(b + L4_6, (uint8_t[]){UDP, 0, 0, 8}, 4);
	silence("ip_ttl");
	memcpy(b + L4_6, (uint8_t[]){UDP, 0, 0, 1}, 4);
	told("ip_ttl", &f);
}

/* Sources that are no host, or that nobody knows the way to. */
static void sources(void **state)
{
	const uint32_t bad[] = {0x0a0000ff + 0xf0000000, 0xffffffff, 0x7f000001, 0x00000001};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		make("10.0.0.11", 1, UDP, 16);
		put_be32(b + 26, bad[i]);
		mend4();
		silence("ip_not_routable");
	}
	make("10.0.0.11", 1, UDP, 16);
	put_be32(b + 26, 0x63010101);
	mend4();
	silence("ip_ttl");
}

static void local_sid(const char *prefix, unsigned action)
{
	struct table_entry e = {.action = (uint16_t)action};
	struct table_error err;

	e.key[0].ip = h_ip(prefix);
	e.key[0].prefix = action == 2 ? 128 : 48;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_LOCAL_SID, &e, &err), 0);
}

/* To a segment of the switch, with an SRH of one entry and so many segments left. */
static void make_srh(const char *dst, uint8_t left)
{
	uint8_t srh[25] = {17, 2, 4, left, 0};
	const struct wire_ip to = h_ip(dst), from = h_host6(0), next = h_ip("fd00::b");

	memcpy(srh + 8, next.b, 16);
	len = h_ip6(b, h_port_mac(sw, 0), &from, &to, 43, 64, srh, sizeof(srh));
}

/* What a segment endpoint has to say (RFC 8986, 4.1 and 4.1.1). */
static void segments(void **state)
{
	struct frame f;

	(void)state;
	local_sid("fcbb:bb00:5012::", 0);
	local_sid("fd77::1", 2);
	/* No hop left for the next uSID; nor for the next segment. */
	make("fcbb:bb00:5012:542a::", 1, UDP, 30);
	told("srv6_hop_limit", &f);
	check6(&f, 3, 0, 0, 70);
	make_srh("fd77::1", 1);
	b[21] = 1;
	told("srv6_hop_limit", &f);
	check6(&f, 3, 0, 0, 65);
	/* More segments left than there are: the field, wherever the SRH is. */
	make_srh("fd77::1", 2);
	told("srv6_bad_srh", &f);
	check6(&f, 4, 0, 43, 65);
	b[L4_6] = ICMP6; /* perhaps an error itself */
	silence("srv6_bad_srh");
	/* The last segment, and nothing here takes it: where that begins. */
	make("fcbb:bb00:5012::", 64, UDP, 30);
	told("srv6_upper", &f);
	check6(&f, 4, 4, 40, 70);
	make_srh("fd77::1", 0);
	told("srv6_upper", &f);
	check6(&f, 4, 4, 64, 65);
	/* Other refusals are nobody's fault that has a field; nor has a packet another's error. */
	make_srh("fd77::1", 1);
	b[L4_6 + 8] = 0xff; /* a group */
	silence("srv6_segment");
	make("fcbb:bb00:5012::", 64, ICMP6, 30);
	b[L4_6] = 1;
	silence("srv6_upper");
}

static void rate(void **state)
{
	const unsigned n = 500;
	struct frame f;
	unsigned errors = 0;

	(void)state;
	make("10.0.0.11", 1, UDP, 16);
	for (unsigned i = 0; i < n; i++) {
		h_inject(sw, 0, b, len);
		sw_turn(sw, 0, 1); /* time stands still */
	}
	while (h_take(sw, 0, &f))
		errors++;
	assert_int_equal(h_drop(sw, "ip_ttl"), n);
	assert_in_range(errors, 1, 51);
	assert_int_equal(h_value(sw, "icmp_errors"), errors);
	assert_int_equal(h_value(sw, "icmp_errors_held"), n - errors);
}

static void off(void **state)
{
	(void)state;
	h_stop(sw);
	sw = h_start(PORTS, NULL, NULL);
	make("10.0.0.11", 1, UDP, 16);
	silence("ip_ttl");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(time_exceeded, start, stop),
		cmocka_unit_test_setup_teardown(unreachable, start, stop),
		cmocka_unit_test_setup_teardown(too_big, start, stop),
		cmocka_unit_test_setup_teardown(never, start, stop),
		cmocka_unit_test_setup_teardown(sources, start, stop),
		cmocka_unit_test_setup_teardown(segments, start, stop),
		cmocka_unit_test_setup_teardown(rate, start, stop),
		cmocka_unit_test_setup_teardown(off, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
