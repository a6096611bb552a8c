/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbours that are learnt: through the graph, on the control plane's virtual time. */
#include <string.h>

#include "hangs.h"
#include "harness.h"
#include "lib/wire/bytes.h"

enum { PORTS = 3, ANYTHING = 253, PLAIN = 59 };

static const uint64_t SECOND = UINT64_C(1000000000);
static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static struct sw *sw;
static uint64_t now;

static int start(void **state)
{
	(void)state;
	sw = h_start(PORTS, NULL, "{'neigh_learn':true}");
	now = 1000 * SECOND;
	return 0;
}

static int stop(void **state)
{
	(void)state;
	h_stop_whole(sw);
	return 0;
}

static void put(unsigned table, struct table_entry e)
{
	struct table_error why;

	if (h_write(sw, TABLE_INSERT, table, &e, &why) != 0)
		fail_msg("%s", why.msg);
}

/* 10.1.0.0/16 or fd01::/64 are at port 1. */
static void direct(bool six, uint16_t vlan)
{
	struct table_entry e = {.action = 1};

	e.key[0].ip = h_ip(six ? "fd01::" : "10.1.0.0");
	e.key[0].prefix = six ? 64 : 16;
	e.param[0].u = sw->ports[1].id;
	e.param[1].u = vlan;
	put(six ? FWD_ROUTE6 : FWD_ROUTE4, e);
}

/* Control's turn, and what comes of it. */
static void tick(uint64_t later)
{
	h_run(sw);
	sw_tick(sw, now += later);
	h_run(sw);
}

static unsigned packet(uint8_t *b, const struct wire_ip *dst)
{
	const struct wire_ip src = wire_ip_is4(dst) ? h_host4(0) : h_host6(0);

	if (wire_ip_is4(dst))
		return h_ip4(b, h_port_mac(sw, 0), &src, dst, ANYTHING, 9, "payload", 7);
	return h_ip6(b, h_port_mac(sw, 0), &src, dst, PLAIN, 9, "payload", 7);
}

static void send(const struct wire_ip *dst)
{
	uint8_t b[256];

	h_inject(sw, 0, b, packet(b, dst));
	h_run(sw);
}

static void expect_request(struct frame *f, const struct wire_ip *for_ip, const uint8_t *dmac)
{
	struct wire_pkt pkt;

	assert_true(h_take(sw, 1, f));
	assert_int_equal(wire_parse(f->b, f->len, &pkt), WIRE_OK);
	if (wire_ip_is4(for_ip)) {
		const struct wire_ip own = h_ip("10.0.0.1");

		assert_int_equal(pkt.kind, WIRE_ARP);
		assert_int_equal(pkt.arp_op, ARP_REQUEST);
		assert_true(wire_ip_eq(&pkt.src, &own));
		assert_true(wire_ip_eq(&pkt.dst, for_ip));
		assert_memory_equal(pkt.arp_sha, h_port_mac(sw, 1), 6);
		assert_memory_equal(f->b, dmac, 6);
	} else {
		assert_int_equal(pkt.kind, WIRE_ND_NS);
		assert_true(wire_ip_eq(&pkt.nd_target, for_ip));
		assert_memory_equal(pkt.nd_lladdr, h_port_mac(sw, 1), 6);
	}
}

/* The neighbour with this last byte of its MAC address speaks: op or, in IPv6, an advertisement. */
static void speak(unsigned op, const struct wire_ip *ip, const struct wire_ip *to, uint8_t mac)
{
	const uint8_t sender[6] = {2, 0, 0, 0, 9, mac};
	uint8_t b[128];
	int len;

	if (wire_ip_is4(ip))
		len = wire_build_arp(b, sizeof(b), op, sender, ip, h_port_mac(sw, 1), to, 0);
	else
		len = wire_build_na(b, sizeof(b), sender, h_port_mac(sw, 1), ip, to, 0);
	h_inject(sw, 1, b, (unsigned)len);
	h_run(sw);
}

static void expect_packet(uint8_t mac)
{
	struct wire_pkt pkt;
	struct frame f;

	assert_true(h_take(sw, 1, &f));
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_int_equal(pkt.ttl, 8);
	assert_memory_equal(f.b, ((uint8_t[]){2, 0, 0, 0, 9, mac}), 6);
	assert_memory_equal(f.b + 6, h_port_mac(sw, 1), 6);
	assert_memory_equal(f.b + pkt.l4_off, "payload", 7);
	if (pkt.ip_ver == 4)
		assert_int_equal(ip_sum(f.b + pkt.l3_off, 20, 0), 0xffff);
}

static void expect_silence(void)
{
	struct frame f;

	for (unsigned i = 0; i < PORTS; i++)
		assert_false(h_take(sw, i, &f));
}

static void resolved(void **state)
{
	(void)state;
	for (unsigned six = 0; six < 2; six++) {
		const struct wire_ip host = h_ip(six ? "fd01::5" : "10.1.0.5");
		const struct wire_ip own = h_ip(six ? "fd00::1" : "10.0.0.1");
		struct frame f;

		direct(six, 0);
		send(&host);
		send(&host);
		expect_silence();
		tick(0);
		expect_request(&f, &host, broadcast);
		expect_silence();
		speak(ARP_REPLY, &host, &own, 5);
		tick(0);
		expect_packet(5);
		expect_packet(5);
		send(&host); /* from now on at once */
		expect_packet(5);
		expect_silence();
		h_check_balance(sw);
	}
	assert_int_equal(h_drop(sw, "neigh_wait"), 4);
	assert_int_equal(h_losses(sw), 0);
}

static void in_a_vlan(void **state)
{
	const struct wire_ip host = h_ip("10.1.0.5"), own = h_ip("10.0.0.1");
	const uint8_t mac[6] = {2, 0, 0, 0, 9, 5};
	struct wire_pkt pkt;
	struct frame f;
	uint8_t b[128];
	int len;

	(void)state;
	direct(false, 7);
	send(&host);
	tick(0);
	expect_request(&f, &host, broadcast);
	wire_parse(f.b, f.len, &pkt);
	assert_int_equal(pkt.vlan, 7);
	speak(ARP_REPLY, &host, &own, 5); /* untagged: somebody else */
	tick(0);
	expect_silence();
	len = wire_build_arp(b, sizeof(b), ARP_REPLY, mac, &host, h_port_mac(sw, 1), &own, 7);
	h_inject(sw, 1, b, (unsigned)len);
	tick(0);
	assert_true(h_take(sw, 1, &f));
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_int_equal(pkt.vlan, 7);
	assert_int_equal(pkt.ttl, 8);
}

static void silent(void **state)
{
	const struct wire_ip host = h_ip("10.1.0.5");
	struct frame f;

	(void)state;
	direct(false, 0);
	send(&host);
	tick(0);
	for (unsigned i = 0; i < 3; i++) {
		expect_request(&f, &host, broadcast);
		assert_int_equal(h_drop(sw, "ip_no_neigh"), 0);
		tick(SECOND);
	}
	expect_silence();
	assert_int_equal(h_drop(sw, "ip_no_neigh"), 1);
	send(&host);
	tick(0);
	assert_int_equal(h_drop(sw, "ip_no_neigh"), 2);
	expect_silence();
}

/* A host that asks for the switch will want its answers. */
static void asks_us(void **state)
{
	const struct wire_ip host = h_ip("10.1.0.5"), own = h_ip("10.0.0.1");
	struct frame f;

	(void)state;
	direct(false, 0);
	speak(ARP_REQUEST, &host, &own, 5);
	assert_true(h_take(sw, 1, &f)); /* the reply */
	tick(0);
	send(&host);
	expect_packet(5);
	expect_silence();
}

/* What is configured stays, and whoever claims it is counted. */
static void static_wins(void **state)
{
	const struct wire_ip host = h_ip("10.1.0.5"), own = h_ip("10.0.0.1");
	struct table_entry e = {0};
	struct sw_port port;

	(void)state;
	direct(false, 0);
	e.key[0].ip = host;
	e.param[0].u = sw->ports[1].id;
	memcpy(e.param[1].mac, (uint8_t[]){2, 0, 0, 0, 9, 1}, 6);
	put(FWD_NEIGH, e);
	speak(ARP_REPLY, &host, &host, 66); /* gratuitous */
	speak(ARP_REPLY, &host, &own, 66);
	tick(0);
	send(&host);
	expect_packet(1);
	expect_silence();
	sw_port_get(sw, 1, &port);
	assert_int_equal(port.mac_mismatch, 2);
	assert_string_equal(port.mismatch, "10.1.0.5 from 02:00:00:00:09:42");
}

/* Gratuitous ARP does not move a neighbour that answers, but one that does not any more. */
static void claimed(void **state)
{
	const struct wire_ip host = h_ip("10.1.0.5"), own = h_ip("10.0.0.1");
	const uint8_t mac[6] = {2, 0, 0, 0, 9, 5};
	struct frame f;

	(void)state;
	direct(false, 0);
	speak(ARP_REQUEST, &host, &own, 5);
	assert_true(h_take(sw, 1, &f));
	tick(0);
	for (unsigned moved = 0; moved < 2; moved++) {
		speak(ARP_REPLY, &host, &host, 66);
		tick(0);
		expect_request(&f, &host, mac);
		send(&host);
		expect_packet(5);
		if (!moved)
			speak(ARP_REPLY, &host, &own, 5);
		tick(5 * SECOND);
		if (!moved)
			expect_silence();
	}
	expect_request(&f, &host, mac);
	tick(SECOND);
	expect_request(&f, &host, mac);
	tick(SECOND);
	expect_request(&f, &host, broadcast);
	speak(ARP_REPLY, &host, &own, 66);
	tick(0);
	send(&host);
	expect_packet(66);
}

/* Only where a direct route leads may somebody be learnt: not who says that he is in another
 * network, or at another port. */
static void elsewhere(void **state)
{
	const struct wire_ip stranger = h_ip("10.2.0.5"), host = h_ip("10.1.0.5");
	const struct wire_ip own = h_ip("10.0.0.1");
	struct neigh_counters count;
	const uint8_t mac[6] = {2, 0, 0, 0, 9, 5};
	struct frame f;
	uint8_t b[128];

	(void)state;
	direct(false, 0);
	speak(ARP_REQUEST, &stranger, &own, 5);
	h_take(sw, 1, &f);
	h_inject(sw, 2, b,
		(unsigned)wire_build_arp(b, sizeof(b), ARP_REQUEST, mac, &host, mac, &own, 0));
	tick(0);
	h_take(sw, 2, &f);
	assert_int_equal(sw_neighs(sw, &count), 0);
}

/* A next hop is asked for before there is something for it; routes over it follow. */
static void next_hop(void **state)
{
	const struct wire_ip hop = h_ip("10.1.0.254"), own = h_ip("10.0.0.1");
	const struct wire_ip far = h_ip("99.1.2.3"), many = h_ip("98.1.2.3");
	struct table_entry e = {.action = 0}, ecmp = {.action = 4};
	struct frame f;

	(void)state;
	direct(false, 0);
	e.key[0].ip = h_ip("99.0.0.0");
	e.key[0].prefix = 8;
	e.param[0].ip = hop;
	put(FWD_ROUTE4, e);
	ecmp.key[0].ip = h_ip("98.0.0.0");
	ecmp.key[0].prefix = 8;
	ecmp.param[0].ip = hop;
	put(FWD_ROUTE4, ecmp);
	tick(0);
	expect_request(&f, &hop, broadcast);
	send(&far);
	send(&many);
	tick(0);
	expect_silence();
	speak(ARP_REPLY, &hop, &own, 254);
	tick(0);
	expect_packet(254);
	expect_packet(254);
	send(&far);
	send(&many);
	expect_packet(254);
	expect_packet(254);
	expect_silence();
}

/* Somebody sends to every address: few wait, few requests go out, all buffers come back. */
static void scan(void **state)
{
	struct neigh_counters count;
	struct frame f;
	unsigned requests = 0;

	(void)state;
	direct(false, 0);
	for (unsigned i = 0; i < 2000; i++) {
		const struct wire_ip host = wire_ip_from4(0x0a010000 + i);

		send(&host);
		if (i % 20 == 0)
			tick(0);
	}
	for (unsigned i = 0; i < 100; i++)
		tick(SECOND / 10);
	while (h_take(sw, 1, &f))
		requests++;
	assert_int_equal(sw_neighs(sw, &count), 0);
	assert_in_range(requests, 1, NEIGH_BURST + 5 * NEIGH_RATE);
	assert_int_equal(count.requests, requests);
	assert_int_equal(h_drop(sw, "ip_no_neigh") + h_drop(sw, "neigh_full"), 2000);
	h_check_balance(sw);
}

/* A neighbour is known as long as a direct route leads there. */
static void route_goes(void **state)
{
	const struct wire_ip host = h_ip("10.1.0.5"), own = h_ip("10.0.0.1");
	struct table_entry e = {.action = 1};
	struct table_error why;
	struct frame f;

	(void)state;
	direct(false, 0);
	speak(ARP_REQUEST, &host, &own, 5);
	assert_true(h_take(sw, 1, &f));
	tick(0);
	send(&host);
	expect_packet(5);
	e.key[0].ip = h_ip("10.1.0.0");
	e.key[0].prefix = 16;
	assert_int_equal(h_write(sw, TABLE_DELETE, FWD_ROUTE4, &e, &why), 0);
	send(&host);
	expect_silence();
	assert_int_equal(h_drop(sw, "ip_no_route"), 1);
}

/* A worker that takes no calls costs one call until the next tick, whoever has something to send:
 * neighbours, of whom there are many, LLDP, questions for members, and a turn in between. Then it
 * goes on. */
static void hanging(void **state)
{
	struct frame f;

	stop(state);
	sw = h_start(PORTS, "{'lldp':true}", "{'neigh_learn':true,'mcast_learn':true}");
	direct(false, 0);
	for (unsigned i = 0; i < 4 * OUTBOX; i++) {
		const struct wire_ip host = wire_ip_from4(0x0a010000 + i);

		send(&host);
	}
	calls = 0;
	hangs = true;
	tick(0);
	for (unsigned i = 0; i < 3; i++) {
		const struct wire_ip host = wire_ip_from4(0x0a011000 + i);

		send(&host);
		sw_notes_turn(sw, now);
	}
	hangs = false;
	assert_int_equal(calls, 1);
	expect_silence();
	tick(SECOND);
	assert_true(h_take(sw, 1, &f));
	for (unsigned i = 0; i < 10; i++) { /* nobody answers */
		tick(SECOND);
		for (unsigned k = 0; k < PORTS; k++)
			while (h_take(sw, k, &f))
				;
	}
	assert_int_not_equal(h_drop(sw, "ip_no_neigh"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(resolved, start, stop),
		cmocka_unit_test_setup_teardown(in_a_vlan, start, stop),
		cmocka_unit_test_setup_teardown(silent, start, stop),
		cmocka_unit_test_setup_teardown(asks_us, start, stop),
		cmocka_unit_test_setup_teardown(static_wins, start, stop),
		cmocka_unit_test_setup_teardown(claimed, start, stop),
		cmocka_unit_test_setup_teardown(elsewhere, start, stop),
		cmocka_unit_test_setup_teardown(next_hop, start, stop),
		cmocka_unit_test_setup_teardown(scan, start, stop),
		cmocka_unit_test_setup_teardown(route_goes, start, stop),
		cmocka_unit_test_setup_teardown(hanging, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
