/* SPDX-License-Identifier: BSD-3-Clause */
/* SRv6 in the graph: each behaviour from a frame in to a frame out, the tables, the counters. What
 * becomes of the bytes of a packet in detail: tests/unit/srv6. */
#include <errno.h>
#include <string.h>

#include "harness.h"
#include "lib/wire/bytes.h"
#include "lib/wire/ip6_ext.h"

enum { UN, UA, END, DT46, VIA = 0, BLACKHOLE = 2, ENCAP = 3, L3 = ETH_HDR_LEN, IP6 = 40 };

static struct sw *sw;

static struct table_entry row(const char *prefix, unsigned bits, unsigned action)
{
	struct table_entry e = {.action = (uint16_t)action};

	e.key[0].ip = h_ip(prefix);
	e.key[0].prefix = (uint8_t)bits;
	return e;
}

static void insert(unsigned table, const struct table_entry *e)
{
	struct table_error err;

	if (h_write(sw, TABLE_INSERT, table, e, &err) != 0)
		fail_msg("%s", err.msg);
}

static void refused(unsigned table, const struct table_entry *e, const char *msg)
{
	struct table_error err;

	assert_int_equal(h_write(sw, TABLE_INSERT, table, e, &err), -EINVAL);
	assert_string_equal(err.msg, msg);
}

static void via(const char *prefix, unsigned bits, unsigned host)
{
	struct table_entry e = row(prefix, bits, VIA);

	e.param[0].ip = h_host6(host);
	insert(FWD_ROUTE6, &e);
}

/* The switch is 5012 and 5013 (which pops), sends 542a to host 1 and 5155 to host 2; e001 is the
 * way to host 2 whatever comes next, d001 the end of tunnels. */
static int start(void **state)
{
	struct table_entry e;

	(void)state;
	sw = h_start(3, NULL, NULL);
	via("fcbb:bb00:542a::", 48, 1);
	via("fcbb:bb00:5155::", 48, 2);
	e = row("fcbb:bb00:5012::", 48, UN);
	insert(FWD_LOCAL_SID, &e);
	e = row("fcbb:bb00:5013::", 48, UN);
	e.param[0].u = 1;
	insert(FWD_LOCAL_SID, &e);
	e = row("fcbb:bb00:e001::", 48, UA);
	e.param[0].ip = h_host6(2);
	insert(FWD_LOCAL_SID, &e);
	e = row("fd77::1", 128, END);
	insert(FWD_LOCAL_SID, &e);
	e = row("fcbb:bb00:d001::", 48, DT46);
	insert(FWD_LOCAL_SID, &e);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	h_check_balance(sw);
	assert_int_equal(h_value(sw, "mbufs_free"), h_value(sw, "mbufs"));
	h_stop(sw);
	return 0;
}

static unsigned to(
	uint8_t *b, const char *dst, uint8_t next, uint8_t hops, const void *payload, unsigned len)
{
	struct wire_ip src = h_host6(0), ip = h_ip(dst);

	return h_ip6(b, h_port_mac(sw, 0), &src, &ip, next, hops, payload, len);
}

static void is_to(const struct frame *f, const char *dst, unsigned hops)
{
	struct wire_ip ip;
	char text[WIRE_IP_STRLEN];

	memcpy(ip.b, f->b + L3 + 24, 16);
	assert_string_equal(wire_ip_format(&ip, text, sizeof(text)), dst);
	assert_int_equal(f->b[L3 + 7], hops);
}

static void leaves_by(const struct frame *f, unsigned host)
{
	uint8_t mac[6];

	h_host_mac(host, mac);
	assert_memory_equal(f->b, mac, 6);
	assert_memory_equal(f->b + 6, h_port_mac(sw, host), 6);
}

static void next_usid(void **state)
{
	uint8_t b[256];
	struct frame f;
	unsigned len = to(b, "fcbb:bb00:5012:542a:5155:587f::", 59, 64, "payload", 7);

	(void)state;
	h_exchange(sw, 0, b, len, 1, &f);
	assert_int_equal(f.len, len);
	is_to(&f, "fcbb:bb00:542a:5155:587f::", 63);
	leaves_by(&f, 1);
	assert_memory_equal(f.b + L3 + IP6, "payload", 7);
	/* The last hop limit is the next node's to refuse. */
	len = to(b, "fcbb:bb00:5012:542a::", 59, 2, "x", 1);
	h_exchange(sw, 0, b, len, 1, &f);
	is_to(&f, "fcbb:bb00:542a::", 1);
	len = to(b, "fcbb:bb00:5012:542a::", 59, 1, "x", 1);
	h_expect_drop(sw, 0, b, len, "srv6_hop_limit");
	/* A route without SID: another switch's uSID, on its way. */
	len = to(b, "fcbb:bb00:542a:5155::", 59, 64, "x", 1);
	h_exchange(sw, 0, b, len, 1, &f);
	is_to(&f, "fcbb:bb00:542a:5155::", 63);
	len = to(b, "fcbb:bb00:5012:7777::", 59, 64, "x", 1);
	h_expect_drop(sw, 0, b, len, "ip_no_route");
}

/* Whatever a route says of the next uSID. And two of the switch's own in a row: a hop each. */
static void adjacency(void **state)
{
	uint8_t b[256];
	struct frame f;
	unsigned len = to(b, "fcbb:bb00:e001:542a::", 59, 64, "x", 1);
	struct table_entry e = row("fcbb:bb00:e002::", 48, UA);

	(void)state;
	h_exchange(sw, 0, b, len, 2, &f);
	is_to(&f, "fcbb:bb00:542a::", 63);
	leaves_by(&f, 2);
	len = to(b, "fcbb:bb00:5012:e001:542a::", 59, 64, "x", 1);
	h_exchange(sw, 0, b, len, 2, &f);
	is_to(&f, "fcbb:bb00:542a::", 62);
	e.param[0].ip = h_ip("fd00::dead");
	insert(FWD_LOCAL_SID, &e);
	len = to(b, "fcbb:bb00:e002:542a::", 59, 64, "x", 1);
	h_expect_drop(sw, 0, b, len, "ip_no_neigh");
}

/* A SRH of two: "fd77::1" is the one that is active. */
static unsigned with_srh(uint8_t *b, const char *dst, uint8_t left, const char *last)
{
	uint8_t srh[8 + 16 + 1] = {59, 2, IP6_ROUTING_SRH, left, 0, 0, 0, 0, [24] = 'x'};
	struct wire_ip ip = h_ip(last);

	memcpy(srh + 8, ip.b, 16);
	return to(b, dst, IP_PROTO_ROUTING, 64, srh, sizeof(srh));
}

static void end_and_pop(void **state)
{
	uint8_t b[256];
	struct frame f;
	unsigned len = with_srh(b, "fd77::1", 1, "fcbb:bb00:5155::");

	(void)state;
	h_exchange(sw, 0, b, len, 2, &f);
	assert_int_equal(f.len, len);
	is_to(&f, "fcbb:bb00:5155::", 63);
	assert_int_equal(f.b[L3 + IP6 + 3], 0);
	len = with_srh(b, "fcbb:bb00:5013::", 1, "fcbb:bb00:5155::");
	h_exchange(sw, 0, b, len, 2, &f);
	assert_int_equal(f.len, len - 24);
	is_to(&f, "fcbb:bb00:5155::", 63);
	assert_int_equal(f.b[L3 + 6], 59);
	assert_int_equal(get_be16(f.b + L3 + 4), 1);
	assert_int_equal(f.b[L3 + IP6], 'x');
	leaves_by(&f, 2);
	/* With a tag, too. */
	len = with_srh(b, "fcbb:bb00:5013::", 1, "fcbb:bb00:5155::");
	len = h_tag(b, len, 0);
	h_exchange(sw, 0, b, len, 2, &f);
	assert_int_equal(f.len, len - 24 - VLAN_HDR_LEN);
	is_to(&f, "fcbb:bb00:5155::", 63);
	len = with_srh(b, "fd77::1", 2, "fcbb:bb00:5155::");
	h_expect_drop(sw, 0, b, len, "srv6_bad_srh");
	len = with_srh(b, "fd77::1", 1, "ff02::1");
	h_expect_drop(sw, 0, b, len, "srv6_segment");
	len = with_srh(b, "fd77::1", 0, "fcbb:bb00:5155::");
	h_expect_drop(sw, 0, b, len, "srv6_upper");
	/* Segments may be plain addresses of the switch: nothing takes this one. */
	len = with_srh(b, "fd77::1", 1, "fd00::1");
	h_expect_drop(sw, 0, b, len, "local_proto");
}

/* From host 0, in the tunnel, to the switch's end of it. */
static unsigned tunnelled(
	uint8_t *b, const char *sid, uint8_t next, const uint8_t *frame, unsigned len)
{
	return to(b, sid, next, 64, frame + L3, len - L3);
}

static void unpacked(void **state)
{
	struct wire_ip a4 = h_host4(0), c4 = h_host4(1), a6 = h_host6(0), c6 = h_host6(2), own;
	uint8_t in[256], b[256], ns[16 + 8] = {135};
	struct frame f;
	unsigned n, len;

	(void)state;
	n = h_ip4(in, h_port_mac(sw, 0), &a4, &c4, 99, 9, "four", 4);
	len = tunnelled(b, "fcbb:bb00:d001::", IP_PROTO_IP4, in, n);
	ip_put_tos(in + L3, IP_ECN_ECT0);
	memcpy(b + L3 + IP6, in + L3, n - L3);
	ip_put_tos(b + L3, IP_ECN_CE);
	h_exchange(sw, 0, b, len, 1, &f);
	assert_int_equal(f.len, n);
	leaves_by(&f, 1);
	assert_int_equal(get_be16(f.b + 12), ETH_TYPE_IP4);
	assert_int_equal(ip_ttl(f.b + L3), 8);
	assert_int_equal(ip_tos(f.b + L3), IP_ECN_CE);
	assert_int_equal(ip_sum(f.b + L3, 20, 0), 0xffff);
	n = h_ip6(in, h_port_mac(sw, 0), &a6, &c6, 59, 9, "six", 3);
	len = tunnelled(b, "fcbb:bb00:d001::", IP_PROTO_IP6, in, n);
	h_exchange(sw, 0, b, len, 2, &f);
	assert_int_equal(f.len, n);
	assert_int_equal(ip_ttl(f.b + L3), 8);
	assert_memory_equal(f.b + L3 + 8, in + L3 + 8, n - L3 - 8);
	ip_put_tos(b + L3, IP_ECN_CE);
	h_expect_drop(sw, 0, b, len, "srv6_ecn");
	/* Uplinks in front of it, as a host sends it through this switch alone. */
	len = tunnelled(b, "fcbb:bb00:5012:d001::", IP_PROTO_IP6, in, n);
	h_exchange(sw, 0, b, len, 2, &f);
	assert_int_equal(f.len, n);
	len = tunnelled(b, "fcbb:bb00:d001:1::", IP_PROTO_IP6, in, n);
	h_expect_drop(sw, 0, b, len, "srv6_segments");
	/* What is inside is believed no more than what is not. */
	own = h_ip("fd00::1");
	n = h_ip6(in, h_port_mac(sw, 0), &own, &c6, 59, 9, "six", 3);
	len = tunnelled(b, "fcbb:bb00:d001::", IP_PROTO_IP6, in, n);
	h_expect_drop(sw, 0, b, len, "ip_forged");
	n = h_ip6(in, h_port_mac(sw, 0), &a6, &own, IP_PROTO_ICMP6, 255, ns, sizeof(ns));
	len = tunnelled(b, "fcbb:bb00:d001::", IP_PROTO_IP6, in, n);
	h_expect_drop(sw, 0, b, len, "srv6_inner_nd");
	len = tunnelled(b, "fcbb:bb00:d001::", IP_PROTO_IP4, in, n);
	h_expect_drop(sw, 0, b, len, "srv6_inner");
}

static void packed(void **state)
{
	struct table_entry r4 = row("20.0.0.0", 8, ENCAP), r6 = row("fd20::", 16, ENCAP);
	struct wire_ip a4 = h_host4(0), d4 = h_ip("20.1.1.1");
	const unsigned room = sw->ports[2].config.mtu - IP6 - IP6 - 24;
	uint8_t b[256], *big = calloc(1, room + 1), *huge = malloc(room + 200);
	struct frame f;
	unsigned len;

	(void)state;
	r4.param[0].ip = r6.param[0].ip = h_ip("fd00::1"); /* the switch's own */
	r4.param[1].ip = h_ip("fcbb:bb00:5012:542a:587f::");
	r6.param[1].ip = h_ip("fcbb:bb00:5155::");
	r6.param[2].ip = h_ip("fd99::9");
	insert(FWD_ROUTE4, &r4);
	insert(FWD_ROUTE6, &r6);
	/* Along a path that begins with the switch itself. */
	len = h_ip4(b, h_port_mac(sw, 0), &a4, &d4, 99, 9, "four", 4);
	h_exchange(sw, 0, b, len, 1, &f);
	assert_int_equal(f.len, len + IP6);
	assert_int_equal(get_be16(f.b + 12), ETH_TYPE_IP6);
	is_to(&f, "fcbb:bb00:542a:587f::", 63);
	leaves_by(&f, 1);
	assert_int_equal(f.b[L3 + 6], IP_PROTO_IP4);
	assert_int_equal(ip_ttl(f.b + L3 + IP6), 8);
	assert_int_equal(ip_sum(f.b + L3 + IP6, 20, 0), 0xffff);
	/* With a SRH; no hop limit is taken from a header that is new. */
	len = to(b, "fd20::7", 59, 9, "six", 3);
	h_exchange(sw, 0, b, len, 2, &f);
	assert_int_equal(f.len, len + IP6 + 24);
	is_to(&f, "fcbb:bb00:5155::", 64);
	assert_int_equal(f.b[L3 + 6], IP_PROTO_ROUTING);
	assert_int_equal(f.b[L3 + IP6 + 3], 1);
	assert_int_equal(ip_ttl(f.b + L3 + IP6 + 24), 8);
	len = to(b, "fd20::7", 59, 1, "six", 3);
	h_expect_drop(sw, 0, b, len, "srv6_hop_limit");
	/* What fits without the outer header does not fit with it. */
	len = to(huge, "fd20::7", 59, 9, big, room);
	h_exchange(sw, 0, huge, len, 2, &f);
	len = to(huge, "fd20::7", 59, 9, big, room + 1);
	h_expect_drop(sw, 0, huge, len, "ip_mtu");
	free(big);
	free(huge);
}

/* A port with proxy_arp stands for what lies behind a tunnel, and for the switch's SIDs. */
static void neighbour_questions(void **state)
{
	static const char *const asked[] = {"fd20::7", "fcbb:bb00:5012:542a::", "fcbb:bb00:7777::"};
	static const uint8_t asker[6] = {2, 0, 0, 0, 0, 10};
	struct table_entry e = row("fd20::", 16, ENCAP);
	struct wire_ip host = h_host6(0);
	uint8_t b[128];
	struct frame f;

	(void)state;
	h_stop(sw);
	sw = h_start(3, NULL, "{'proxy_arp':true}");
	e.param[0].ip = h_ip("fd77::5:12");
	e.param[1].ip = h_ip("fd00::b");
	insert(FWD_ROUTE6, &e);
	e = row("fcbb:bb00:5012::", 48, UN);
	insert(FWD_LOCAL_SID, &e);
	for (unsigned i = 0; i < 3; i++) {
		struct wire_ip target = h_ip(asked[i]);
		unsigned len = (unsigned)wire_build_ns(b, sizeof(b), asker, &host, &target, 0);

		if (i == 2) /* of nobody */
			h_expect_drop(sw, 0, b, len, "neigh_unknown");
		else
			h_exchange(sw, 0, b, len, 0, &f);
	}
}

/* A tunnel whose way leads into itself, and a path of nothing but our own uSIDs. */
static void loops(void **state)
{
	struct table_entry e = row("fd30::", 16, ENCAP);
	uint8_t b[256];
	unsigned len;

	(void)state;
	e.param[0].ip = h_ip("fd00::1");
	e.param[1].ip = h_ip("fd30::1");
	insert(FWD_ROUTE6, &e);
	len = to(b, "fd30::7", 59, 64, "x", 1);
	h_expect_drop(sw, 0, b, len, "srv6_no_room");
	e = row("fcbb:bb00::", 48, UN);
	insert(FWD_LOCAL_SID, &e);
	e = row("fd77::2", 128, END);
	insert(FWD_LOCAL_SID, &e);
	len = with_srh(b, "fcbb:bb00:5012:5012:5012:5012:5012:5012", 1, "fd77::2");
	h_expect_drop(sw, 0, b, len, "srv6_upper");
	len = with_srh(b, "fcbb:bb00:5012:5012:5012:5012:5012:5012", 1,
		"fcbb:bb00:5012:5012:5012:5012:5012:5012");
	h_expect_drop(sw, 0, b, len, "srv6_loop");
}

static void echo(void **state)
{
	uint8_t b[256], icmp[12] = {128, 0, 0, 0, 1, 2, 3, 4};
	struct wire_ip src = h_host6(0), dst = h_ip("fcbb:bb00:5012::");
	struct frame f;
	unsigned len;

	(void)state;
	put_be16(icmp + 2, ip_l4_checksum(&src, &dst, IP_PROTO_ICMP6, icmp, sizeof(icmp)));
	len = to(b, "fcbb:bb00:5012::", IP_PROTO_ICMP6, 64, icmp, sizeof(icmp));
	h_exchange(sw, 0, b, len, 0, &f);
	is_to(&f, "fd00::a", 64);
	assert_int_equal(f.b[L3 + IP6], 129);
	len = to(b, "fcbb:bb00:5012::", 59, 64, "x", 1);
	h_expect_drop(sw, 0, b, len, "srv6_upper");
}

/* A SID's own count goes on while tables around it, and its own row, change. */
static void hits(void **state)
{
	struct table_entry e = row("fcbb:bb00:5000::", 48, UN),
			   un = row("fcbb:bb00:5012::", 48, UN);
	struct table_error err;
	uint8_t b[256];
	struct frame f;
	uint64_t n;
	unsigned len = to(b, "fcbb:bb00:5012:542a::", 59, 64, "x", 1);

	(void)state;
	assert_true(sw_table_hits(sw, FWD_LOCAL_SID, 0, &n));
	assert_int_equal(n, 0);
	assert_false(sw_table_hits(sw, FWD_ROUTE6, 0, &n));
	h_exchange(sw, 0, b, len, 1, &f);
	h_exchange(sw, 0, b, len, 1, &f);
	insert(FWD_LOCAL_SID, &e);
	un.param[0].u = 1;
	assert_int_equal(h_write(sw, TABLE_MODIFY, FWD_LOCAL_SID, &un, &err), 0);
	e = row("fcbb:bb00:5013::", 48, UN);
	assert_int_equal(h_write(sw, TABLE_DELETE, FWD_LOCAL_SID, &e, &err), 0);
	h_exchange(sw, 0, b, len, 1, &f);
	assert_true(sw_table_hits(sw, FWD_LOCAL_SID, 0, &n));
	assert_int_equal(n, 3);
	assert_true(sw_table_hits(sw, FWD_LOCAL_SID, 1, &n));
	assert_int_equal(n, 0);
	assert_false(sw_table_hits(sw, FWD_LOCAL_SID, 5, &n));
	e = un;
	assert_int_equal(h_write(sw, TABLE_DELETE, FWD_LOCAL_SID, &e, &err), 0);
	h_expect_drop(sw, 0, b, len, "ip_no_route");
}

static void rows(void **state)
{
	struct table_entry e = row("fcbb:bb00::", 32, UN);
	uint8_t b[256];
	struct frame f;
	unsigned len;

	(void)state;
	refused(FWD_LOCAL_SID, &e, "local_sid fcbb:bb00::: must have a length of 48 to 128");
	e = row("fcbb:bb00:1::", 56, UA);
	refused(FWD_LOCAL_SID, &e,
		"local_sid fcbb:bb00:1::: must have a length of 48 (uSID) or 64 (two uSIDs)");
	e = row("fd00::1", 128, END);
	refused(FWD_LOCAL_SID, &e, "local_sid fd00::1: is an address of the switch");
	e = row("ff05::", 48, END);
	refused(FWD_LOCAL_SID, &e, "local_sid ff05::: is multicast");
	e = row("fd40::", 16, ENCAP);
	refused(FWD_ROUTE6, &e, "route6 fd40::: data.src and data.sid1 must be addresses");
	e.param[0].ip = h_ip("fd00::1");
	e.param[2].ip = h_ip("fd00::2");
	refused(FWD_ROUTE6, &e, "route6 fd40::: data.sid1 to sid4 must be given without a gap");
	e.param[2].ip = h_ip("::");
	e.param[1].ip = h_ip("ff02::2");
	refused(FWD_ROUTE6, &e, "route6 fd40::: data.sid1 to sid4 must not be multicast");
	/* The longer of two SIDs wins, and a SID over a route of its length. */
	e = row("fcbb:bb00:5012:a::", 64, UN);
	insert(FWD_LOCAL_SID, &e);
	len = to(b, "fcbb:bb00:5012:a:542a::", 59, 64, "x", 1);
	h_exchange(sw, 0, b, len, 1, &f);
	is_to(&f, "fcbb:bb00:542a::", 63);
	e = row("fcbb:bb00:5012::", 48, BLACKHOLE);
	insert(FWD_ROUTE6, &e);
	len = to(b, "fcbb:bb00:5012:542a::", 59, 64, "x", 1);
	h_exchange(sw, 0, b, len, 1, &f);
}

/* A site's: so many that their slots are fetched ahead (match/prefix6). */
static void many_locators(void **state)
{
	enum { N = 12000 };
	struct table_update *u = calloc(N, sizeof(*u));
	struct table_error err;
	struct frame f;
	char text[64];
	uint8_t b[256];

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		snprintf(text, sizeof(text), "fcbb:bb00:%x::", 0x1000 + i);
		u[i] = (struct table_update){TABLE_INSERT, FWD_ROUTE6, row(text, 48, VIA)};
		u[i].entry.param[0].ip = h_host6(1 + i % 2);
	}
	assert_int_equal(table_write(sw->tables, u, N, &err), 0);
	free(u);
	for (unsigned i = 0; i < N; i += 379) {
		snprintf(text, sizeof(text), "fcbb:bb00:5012:%x:1::", 0x1000 + i);
		h_exchange(sw, 0, b, to(b, text, 59, 64, "x", 1), 1 + i % 2, &f);
		snprintf(text, sizeof(text), "fcbb:bb00:%x:1::", 0x1000 + i);
		is_to(&f, text, 63);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(next_usid, start, stop),
		cmocka_unit_test_setup_teardown(adjacency, start, stop),
		cmocka_unit_test_setup_teardown(end_and_pop, start, stop),
		cmocka_unit_test_setup_teardown(unpacked, start, stop),
		cmocka_unit_test_setup_teardown(packed, start, stop),
		cmocka_unit_test_setup_teardown(neighbour_questions, start, stop),
		cmocka_unit_test_setup_teardown(loops, start, stop),
		cmocka_unit_test_setup_teardown(echo, start, stop),
		cmocka_unit_test_setup_teardown(hits, start, stop),
		cmocka_unit_test_setup_teardown(rows, start, stop),
		cmocka_unit_test_setup_teardown(many_locators, start, stop),
	};

	return cmocka_run_group_tests_name("dataplane-srv6", tests, NULL, NULL);
}
