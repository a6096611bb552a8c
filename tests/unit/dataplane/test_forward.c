/* SPDX-License-Identifier: BSD-3-Clause */
/* Routing: frames in, frames out, and every reason to drop one. */
#include <errno.h>
#include <string.h>

#include "harness.h"
#include "lib/port/iface.h"
#include "lib/wire/bytes.h"
#include <rte_ring.h>

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static struct sw *sw;

static int start(void **state)
{
	(void)state;
	sw = h_start(3, NULL, NULL);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	h_stop_whole(sw);
	return 0;
}

/* ---- routing ---- */

static void route4(void **state)
{
	struct wire_ip a = h_host4(0), c = h_host4(1);
	uint8_t payload[100] = {1, 2, 3}, b[256], mac[6];
	struct frame f;
	unsigned len = h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, payload, sizeof(payload));

	(void)state;
	h_exchange(sw, 0, b, len, 1, &f);
	assert_int_equal(f.len, len);
	h_host_mac(1, mac);
	assert_memory_equal(f.b, mac, 6);
	assert_memory_equal(f.b + 6, h_port_mac(sw, 1), 6);
	assert_int_equal(f.b[22], 8); /* TTL */
	assert_int_equal(ip_sum(f.b + 14, 20, 0), 0xffff);
	assert_memory_equal(f.b + 26, b + 26, len - 26);
	/* Out through the port it came from is routing as well. */
	len = h_ip4(b, h_port_mac(sw, 1), &a, &c, 99, 2, payload, sizeof(payload));
	h_exchange(sw, 1, b, len, 1, &f);
	assert_int_equal(f.b[22], 1);
	len = h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 1, payload, sizeof(payload));
	h_expect_drop(sw, 0, b, len, "ip_ttl");
}

static void route6(void **state)
{
	struct wire_ip a = h_host6(0), c = h_host6(2);
	uint8_t payload[100] = {1, 2, 3}, b[256];
	struct frame f;
	unsigned len = h_ip6(b, h_port_mac(sw, 0), &a, &c, 59, 64, payload, sizeof(payload));

	(void)state;
	h_exchange(sw, 0, b, len, 2, &f);
	assert_int_equal(f.b[21], 63);
	assert_memory_equal(f.b + 22, b + 22, len - 22);
	len = h_ip6(b, h_port_mac(sw, 0), &a, &c, 59, 1, payload, sizeof(payload));
	h_expect_drop(sw, 0, b, len, "ip_ttl");
}

static struct table_entry route(const char *dst, unsigned prefix, unsigned action)
{
	struct table_entry e = {.action = (uint16_t)action};

	e.key[0].ip = h_ip(dst);
	e.key[0].prefix = (uint8_t)prefix;
	return e;
}

static void longest_prefix(void **state)
{
	struct table_entry net = route("20.0.0.0", 8, 0), hole = route("20.1.0.0", 16, 2),
			   host = route("20.1.2.3", 32, 0), dead = route("30.0.0.0", 8, 0),
			   direct = route("40.0.0.0", 8, 1);
	struct wire_ip a = h_host4(0), dst;
	struct table_error e;
	uint8_t b[128];
	struct frame f;
	unsigned len;

	(void)state;
	net.param[0].ip = h_host4(1);
	host.param[0].ip = h_host4(2);
	dead.param[0].ip = h_ip("10.0.0.200");
	direct.param[0].u = sw->ports[1].id;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_ROUTE4, &net, &e), 0);
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_ROUTE4, &hole, &e), 0);
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_ROUTE4, &host, &e), 0);
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_ROUTE4, &dead, &e), 0);
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_ROUTE4, &direct, &e), 0);

	dst = h_ip("20.2.0.1");
	len = h_ip4(b, h_port_mac(sw, 0), &a, &dst, 99, 9, "x", 1);
	h_exchange(sw, 0, b, len, 1, &f);
	dst = h_ip("20.1.2.3");
	len = h_ip4(b, h_port_mac(sw, 0), &a, &dst, 99, 9, "x", 1);
	h_exchange(sw, 0, b, len, 2, &f);
	dst = h_ip("20.1.2.4");
	len = h_ip4(b, h_port_mac(sw, 0), &a, &dst, 99, 9, "x", 1);
	h_expect_drop(sw, 0, b, len, "ip_blackhole");
	dst = h_ip("30.1.2.4");
	len = h_ip4(b, h_port_mac(sw, 0), &a, &dst, 99, 9, "x", 1);
	h_expect_drop(sw, 0, b, len, "ip_no_neigh");
	dst = h_ip("40.1.2.4");
	len = h_ip4(b, h_port_mac(sw, 0), &a, &dst, 99, 9, "x", 1);
	h_expect_drop(sw, 0, b, len, "ip_no_neigh");
	dst = h_ip("50.1.2.4");
	len = h_ip4(b, h_port_mac(sw, 0), &a, &dst, 99, 9, "x", 1);
	h_expect_drop(sw, 0, b, len, "ip_no_route");

	/* A host route that says "direct" of a neighbour changes nothing. */
	direct = route("10.0.0.11", 32, 1);
	direct.param[0].u = sw->ports[1].id;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_ROUTE4, &direct, &e), 0);
	dst = h_host4(1);
	len = h_ip4(b, h_port_mac(sw, 0), &a, &dst, 99, 9, "x", 1);
	h_exchange(sw, 0, b, len, 1, &f);

	assert_int_equal(h_write(sw, TABLE_DELETE, FWD_ROUTE4, &host, &e), 0);
	dst = h_ip("20.1.2.3");
	len = h_ip4(b, h_port_mac(sw, 0), &a, &dst, 99, 9, "x", 1);
	h_expect_drop(sw, 0, b, len, "ip_blackhole");
	/* The neighbour of a next hop may come later than the route. */
	host = (struct table_entry){0};
	host.key[0].ip = h_ip("10.0.0.200");
	host.param[0].u = sw->ports[2].id;
	h_host_mac(9, host.param[1].mac);
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_NEIGH, &host, &e), 0);
	dst = h_ip("30.1.2.4");
	len = h_ip4(b, h_port_mac(sw, 0), &a, &dst, 99, 9, "x", 1);
	h_exchange(sw, 0, b, len, 2, &f);
}

/* A table that is large enough for the library's direct tables gives the same answers. */
static void many_routes(void **state)
{
	enum { N = 2000 };
	struct table_update *u = calloc(2 * N, sizeof(*u));
	struct wire_ip a = h_host4(0), a6 = h_host6(0), dst;
	struct table_error e;
	uint8_t b[128];
	struct frame f;
	unsigned len;

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		struct table_entry *v4 = &u[2 * i].entry, *v6 = &u[2 * i + 1].entry;

		u[2 * i].table = FWD_ROUTE4;
		v4->key[0].ip = wire_ip_from4(0x30000000 + (i << 8));
		v4->key[0].prefix = 24;
		v4->param[0].ip = h_host4(1 + i % 2);
		u[2 * i + 1].table = FWD_ROUTE6;
		v6->key[0].ip = h_ip("2001:db8::");
		put_be16(v6->key[0].ip.b + 4, (uint16_t)i);
		v6->key[0].prefix = 48;
		v6->param[0].ip = h_host6(1 + i % 2);
	}
	if (table_write(sw_tables(sw), u, 2 * N, &e) != 0)
		fail_msg("%s", e.msg);
	for (unsigned i = 0; i < N; i += 97) {
		dst = u[2 * i].entry.key[0].ip;
		dst.b[15] = 7;
		len = h_ip4(b, h_port_mac(sw, 0), &a, &dst, 99, 9, "x", 1);
		h_exchange(sw, 0, b, len, 1 + i % 2, &f);
		dst = u[2 * i + 1].entry.key[0].ip;
		dst.b[15] = 7;
		len = h_ip6(b, h_port_mac(sw, 0), &a6, &dst, 59, 9, "x", 1);
		h_exchange(sw, 0, b, len, 1 + i % 2, &f);
	}
	dst = h_ip("49.0.0.1");
	len = h_ip4(b, h_port_mac(sw, 0), &a, &dst, 99, 9, "x", 1);
	h_expect_drop(sw, 0, b, len, "ip_no_route");
	dst = h_ip("2001:db9::1");
	len = h_ip6(b, h_port_mac(sw, 0), &a6, &dst, 59, 9, "x", 1);
	h_expect_drop(sw, 0, b, len, "ip_no_route");
	free(u);
}

static void not_for_us(void **state)
{
	static const char *const stay[] = {
		"224.0.0.5", "255.255.255.255", "127.0.0.1", "0.1.2.3", "169.254.1.1"};
	static const char *const stay6[] = {"ff02::1", "fe80::1", "::1", "::"};
	struct wire_ip a = h_host4(0), c = h_host4(1), a6 = h_host6(0), dst;
	uint8_t b[128], other[6] = {2, 9, 9, 9, 9, 9};
	unsigned len = h_ip4(b, other, &a, &c, 99, 9, "x", 1);

	(void)state;
	h_expect_drop(sw, 0, b, len, "l2_not_ours");
	for (unsigned i = 0; i < sizeof(stay) / sizeof(stay[0]); i++) {
		dst = h_ip(stay[i]);
		len = h_ip4(b, h_port_mac(sw, 0), &a, &dst, 99, 9, "x", 1);
		h_expect_drop(sw, 0, b, len, "ip_not_routable");
		len = h_ip4(b, h_port_mac(sw, 0), &dst, &c, 99, 9, "x", 1);
		h_expect_drop(sw, 0, b, len, "ip_not_routable");
	}
	for (unsigned i = 0; i < sizeof(stay6) / sizeof(stay6[0]); i++) {
		dst = h_ip(stay6[i]);
		len = h_ip6(b, h_port_mac(sw, 0), &a6, &dst, 59, 9, "x", 1);
		h_expect_drop(sw, 0, b, len, "ip_not_routable");
	}
	/* Nobody but the switch is the switch. */
	dst = h_ip("10.0.0.1");
	len = h_ip4(b, h_port_mac(sw, 0), &dst, &c, 99, 9, "x", 1);
	h_expect_drop(sw, 0, b, len, "ip_forged");
	/* What was sent to all, all routers would send on. */
	len = h_ip4(b, broadcast, &a, &c, 99, 9, "x", 1);
	h_expect_drop(sw, 0, b, len, "l2_group");
	len = h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, "x", 1);
	b[6] |= 1;
	h_expect_drop(sw, 0, b, len, "l2_source");
	memset(b, 0, sizeof(b));
	put_be16(b + 12, 0x88cc);
	h_expect_drop(sw, 0, b, 60, "l2_unknown");
}

static void too_large(void **state)
{
	static uint8_t payload[1600], b[2000];
	struct wire_ip a = h_host4(0), c = h_host4(1);
	struct frame f;
	unsigned len;

	(void)state;
	h_stop(sw);
	sw = h_start(3, NULL, "{'mtu':1500}");
	len = h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, payload, 1480);
	h_exchange(sw, 0, b, len, 1, &f);
	len = h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, payload, 1481);
	h_expect_drop(sw, 0, b, len, "ip_mtu");
}

/* As a driver leaves it that has a buffer for so much only. */
static void cut_off(void **state)
{
	static uint8_t payload[1600], b[2000];
	struct wire_ip a = h_host4(0), c = h_host4(1), a6 = h_host6(0), c6 = h_host6(1);

	(void)state;
	h_stop(sw);
	sw = h_start(3, NULL, "{'mtu':1500}");
	h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, payload, 1600);
	h_expect_drop(sw, 0, b, 1514, "rx_oversize");
	h_tag(b, 1514, 7);
	h_expect_drop(sw, 0, b, 1514, "rx_oversize");
	h_ip6(b, h_port_mac(sw, 0), &a6, &c6, 59, 9, payload, 1600);
	h_expect_drop(sw, 0, b, 1514, "rx_oversize");
	h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, payload, 1480);
	h_expect_drop(sw, 0, b, 1500, "parse_short");
}

/* ---- VLANs ---- */

static void neighbour_vlan(unsigned i, unsigned vlan)
{
	struct table_entry entry = {
		.key[0].ip = h_host4(i), .param = {{.u = sw->ports[i].id}, {.u = 0}, {.u = vlan}}};
	struct table_error e;

	h_host_mac(i, entry.param[1].mac);
	assert_int_equal(h_write(sw, TABLE_MODIFY, FWD_NEIGH, &entry, &e), 0);
}

/* The table says in which VLAN a packet leaves; its own tag says nothing. */
static void vlans(void **state)
{
	struct wire_ip a = h_host4(0), c = h_host4(1);
	struct wire_pkt pkt;
	struct frame f;
	uint8_t b[128];
	unsigned len;

	(void)state;
	len = h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, "x", 1);
	h_tag(b, len, 7);
	h_expect_drop(sw, 0, b, len + 4, "l2_vlan");
	neighbour_vlan(0, 7);
	h_expect_drop(sw, 1, b, len + 4, "l2_not_ours");
	h_exchange(sw, 0, b, len + 4, 1, &f); /* out of it */
	assert_int_equal(f.len, len);
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_int_equal(pkt.l3_off, ETH_HDR_LEN);
	assert_int_equal(pkt.ttl, 8);
	assert_memory_equal(f.b + 6, h_port_mac(sw, 1), 6);
	b[15] = 99;
	h_expect_drop(sw, 0, b, len + 4, "l2_vlan");

	len = h_ip4(b, h_port_mac(sw, 1), &c, &a, 99, 9, "x", 1);
	h_exchange(sw, 1, b, len, 0, &f); /* into it */
	assert_int_equal(f.len, len + 4);
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_int_equal(pkt.vlan, 7);
	assert_true(wire_ip_eq(&pkt.dst, &a));

	neighbour_vlan(1, 99); /* from one into another; the priority stays */
	h_tag(b, len, 5 << 13 | 99);
	h_exchange(sw, 1, b, len + 4, 0, &f);
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_int_equal(pkt.vlan, 5 << 13 | 7);
}

/* ---- bad frames ---- */

static unsigned roce(uint8_t *out, const uint8_t dmac[6], const struct wire_ip *src,
	const struct wire_ip *dst, uint32_t dqpn)
{
	struct wire_flow flow = {.src = *src, .dst = *dst, .ttl = 64, .sport = 0xc001};
	const struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY, .dqpn = dqpn, .psn = 7, .mig = true};

	memcpy(flow.dmac, dmac, 6);
	return (unsigned)wire_build_frame(out, H_FRAME_MAX, &flow, &hdr, "hello", 5);
}

static void bad_roce(void **state)
{
	struct wire_ip a = h_host4(0), own = h_ip("10.0.0.1");
	const uint8_t *mac = h_port_mac(sw, 0);
	uint8_t b[256];
	unsigned len;

	(void)state;
	len = roce(b, mac, &a, &own, 0x1000);
	h_expect_drop(sw, 0, b, len, "inc_no_group");
	h_expect_drop(sw, 0, b, len - 8, "parse_short");
	b[24] ^= 1;
	h_expect_drop(sw, 0, b, len, "parse_ipsum");
	len = roce(b, mac, &a, &own, 0x1000);
	b[42] = 0x1f;
	h_expect_drop(sw, 0, b, len, "bth_opcode");
	len = roce(b, mac, &a, &own, 0x1000);
	b[43] |= 1;
	h_expect_drop(sw, 0, b, len, "bth_version");
	len = roce(b, mac, &a, &own, 0x1000);
	b[44] = 0;
	h_expect_drop(sw, 0, b, len, "bth_pkey");
	len = roce(b, mac, &a, &own, 0x1000);
	put_be16(b + 40, 0x1234);
	h_expect_drop(sw, 0, b, len, "parse_udpsum");
	for (unsigned n = 14; n < 58; n++) {
		struct frame f;

		h_inject(sw, 0, b, n);
		h_run(sw);
		assert_false(h_take(sw, 0, &f));
	}
}

/* What only concerns the receiver is not a router's business. */
static void transit_roce(void **state)
{
	struct wire_ip a = h_host4(0), c = h_host4(1);
	uint8_t b[256];
	struct frame f;
	unsigned len = roce(b, h_port_mac(sw, 0), &a, &c, 0x1000);

	(void)state;
	h_exchange(sw, 0, b, len, 1, &f);
	assert_memory_equal(f.b + 26, b + 26, len - 26);
	b[42] = 0x1f;       /* opcode */
	b[44] = 0;          /* P_Key */
	b[len - 1] ^= 0xff; /* ICRC */
	h_exchange(sw, 0, b, len, 1, &f);
	assert_memory_equal(f.b + 26, b + 26, len - 26);
	put_be16(b + 40, 0x1234); /* UDP checksum */
	h_exchange(sw, 0, b, len, 1, &f);
	/* Trimmed on its way: the IP header says so, the UDP header says what it was. */
	put_be16(b + 16, 32);
	put_be16(b + 24, 0);
	put_be16(b + 24, (uint16_t)~ip_sum(b + 14, 20, 0));
	h_exchange(sw, 0, b, 46, 1, &f);
	assert_int_equal(f.len, 46);
	assert_memory_equal(f.b + 26, b + 26, 20);
}

/* ---- the tables say no ---- */

static void refused(void **state)
{
	struct wire_ip a = h_host4(0), c = h_host4(1);
	struct table_error e = {0};
	struct table_entry entry = {0};
	uint8_t b[128];
	struct frame f;

	(void)state;
	entry.key[0].ip = h_ip("10.0.0.50");
	entry.param[0].u = 31;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_NEIGH, &entry, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "10.0.0.50"));
	assert_non_null(strstr(e.msg, "no such port"));
	entry.param[0].u = sw->ports[0].id;
	entry.param[1].mac[0] = 1;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_NEIGH, &entry, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "multicast"));
	entry = route("60.0.0.0", 8, 1);
	entry.param[0].u = 31;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_ROUTE4, &entry, &e), -EINVAL);
	entry = route("10.0.0.1", 32, 2);
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_ROUTE4, &entry, &e), -EINVAL);
	/* And nothing has changed. */
	h_exchange(sw, 0, b, h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, "x", 1), 1, &f);
}

/* A burst of everything at once: each packet finds its way, in order. */
static void mixed_burst(void **state)
{
	struct wire_ip a = h_host4(0), c = h_host4(1), d = h_host4(2), own = h_ip("10.0.0.1");
	unsigned n[3] = {0};
	struct frame f;

	(void)state;
	for (unsigned i = 0; i < 120; i++) {
		uint8_t b[128], tag[4] = {(uint8_t)i};
		unsigned len;

		if (i % 5 == 0)
			len = h_arp(b, ARP_REQUEST, &a, &own, 0);
		else if (i % 5 == 1)
			len = h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 1, tag, 4);
		else
			len = h_ip4(b, h_port_mac(sw, 0), &a, i % 5 == 2 ? &c : &d, 99, 9, tag, 4);
		h_inject(sw, 0, b, len);
	}
	h_run(sw);
	for (unsigned port = 0, last = 0; port < 3; port++, last = 0) {
		while (h_take(sw, port, &f)) {
			n[port]++;
			if (port == 0)
				continue;
			assert_true(f.b[34] > last);
			last = f.b[34];
		}
	}
	assert_int_equal(n[0], 24);
	assert_int_equal(n[1], 24);
	assert_int_equal(n[2], 48);
	assert_int_equal(h_drop(sw, "ip_ttl"), 24);
	sw_drops_clear(sw);
	assert_int_equal(h_drop(sw, "ip_ttl"), 0);
	sw->drops_cleared[DROP_IP_TTL] = 0; /* for the balance */
}

/* A packet that is shared, chained or larger than a buffer. */
static void foreign_mbufs(void **state)
{
	struct wire_ip a = h_host4(0), c = h_host4(1);
	struct rte_mbuf *m = rte_pktmbuf_alloc(sw->pool), *tail = rte_pktmbuf_alloc(sw->pool);
	struct rte_ring *rx = rte_ring_lookup("p0.rx");
	uint8_t b[512], payload[300];
	struct frame f, g;
	unsigned len;

	(void)state;
	memset(payload, 0x5a, sizeof(payload));
	len = h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, payload, sizeof(payload));
	memcpy(rte_pktmbuf_append(m, 30), b, 30);
	memcpy(rte_pktmbuf_append(tail, (uint16_t)(len - 30)), b + 30, len - 30);
	rte_pktmbuf_chain(m, tail);
	rte_pktmbuf_refcnt_update(m, 1); /* ours as well */
	assert_int_equal(rte_ring_enqueue(rx, m), 0);
	h_run(sw);
	assert_true(h_take(sw, 1, &f));
	assert_int_equal(f.len, len);
	assert_memory_equal(f.b + 26, b + 26, len - 26);
	/* What we hold has not been written to. */
	assert_memory_equal(rte_pktmbuf_read(m, 0, len, g.b), b, 30);
	rte_pktmbuf_free(m);

	/* In one piece, but not ours alone. */
	m = rte_pktmbuf_alloc(sw->pool);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), b, len);
	rte_pktmbuf_refcnt_update(m, 1);
	assert_int_equal(rte_ring_enqueue(rx, m), 0);
	h_run(sw);
	assert_true(h_take(sw, 1, &f));
	assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *), b, len);
	rte_pktmbuf_free(m);

	m = rte_pktmbuf_alloc(sw->pool);
	tail = rte_pktmbuf_alloc(sw->pool);
	rte_pktmbuf_append(m, rte_pktmbuf_tailroom(m));
	rte_pktmbuf_append(tail, 10);
	rte_pktmbuf_chain(m, tail);
	assert_int_equal(rte_ring_enqueue(rx, m), 0);
	h_run(sw);
	assert_int_equal(h_drop(sw, "rx_oversize"), 1);
}

/* As of an af_packet port: what its interface does not carry is not handed to it. */
static void interface(void **state)
{
	struct wire_ip a = h_host4(0), c = h_host4(1);
	struct port_iface iface = {.up = false, .mtu = 1500};
	uint8_t b[2048], payload[1500] = {0};
	struct sw_port port;
	struct frame f;
	unsigned len;

	(void)state;
	sw->ports[1].iface = &iface;
	len = h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, payload, 1400);
	h_inject(sw, 0, b, len);
	h_run(sw);
	assert_false(h_take(sw, 1, &f));
	assert_int_equal(h_drop(sw, "tx_link_down"), 1);
	assert_int_equal(sw_port_get(sw, 1, &port), 0);
	assert_false(port.link);
	atomic_store(&iface.up, true);
	h_exchange(sw, 0, b, len, 1, &f);
	atomic_store(&iface.mtu, 1419); /* of 20 + 1400 */
	h_inject(sw, 0, b, len);
	h_run(sw);
	assert_false(h_take(sw, 1, &f));
	assert_int_equal(h_drop(sw, "tx_mtu"), 1);
	assert_int_equal(sw_port_get(sw, 1, &port), 0);
	assert_true(port.link);
	assert_int_equal(port.mtu, 1419);
	assert_int_equal(port.tx_drops, 2);
	atomic_store(&iface.mtu, 1420);
	h_exchange(sw, 0, b, len, 1, &f);
	sw->ports[1].iface = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
		T(route4),
		T(route6),
		T(longest_prefix),
		T(many_routes),
		T(not_for_us),
		T(too_large),
		T(cut_off),
		T(vlans),
		T(bad_roce),
		T(transit_roce),
		T(refused),
		T(mixed_burst),
		T(foreign_mbufs),
		T(interface),
#undef T
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
