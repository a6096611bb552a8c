/* SPDX-License-Identifier: BSD-3-Clause */
/* What the switch answers for itself: address resolution and echo requests, and whom it does not
 * answer. */
#include <errno.h>
#include <string.h>

#include "harness.h"
#include "lib/wire/bytes.h"

static const uint8_t asker[6] = {2, 0, 0, 0, 0, 10};

static struct sw *sw;

static int start(void **state)
{
	(void)state;
	sw = h_start(3, NULL, "{'proxy_arp':true}");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	h_stop_whole(sw);
	return 0;
}

/* ---- ARP and ND ---- */

static void arp_own(void **state)
{
	struct wire_ip host = h_host4(0), own = h_ip("10.0.0.1");
	struct wire_pkt pkt;
	struct frame f;
	uint8_t b[128];

	(void)state;
	for (unsigned port = 0; port < 3; port++) {
		h_exchange(sw, port, b, h_arp(b, ARP_REQUEST, &host, &own, 0), port, &f);
		assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
		assert_int_equal(pkt.kind, WIRE_ARP);
		assert_int_equal(pkt.arp_op, ARP_REPLY);
		assert_true(wire_ip_eq(&pkt.src, &own));
		assert_true(wire_ip_eq(&pkt.dst, &host));
		assert_memory_equal(pkt.arp_sha, h_port_mac(sw, port), 6);
		assert_memory_equal(f.b, asker, 6);
	}
	h_exchange(sw, 0, b, h_arp(b, ARP_REQUEST, &host, &own, 5), 0, &f);
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_int_equal(pkt.vlan, 5);
}

static void arp_proxy(void **state)
{
	struct wire_ip host = h_host4(0), far = h_host4(1), here = h_ip("10.0.0.10"),
		       nobody = h_ip("10.0.0.99");
	struct wire_pkt pkt;
	struct frame f;
	uint8_t b[128];

	(void)state;
	h_exchange(sw, 0, b, h_arp(b, ARP_REQUEST, &host, &far, 0), 0, &f);
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_true(wire_ip_eq(&pkt.src, &far));
	assert_memory_equal(pkt.arp_sha, h_port_mac(sw, 0), 6);
	/* Who is at the asking port answers for himself; nobody answers for nobody. */
	far = h_ip("10.0.0.77");
	h_expect_drop(sw, 0, b, h_arp(b, ARP_REQUEST, &far, &here, 0), "neigh_unknown");
	h_expect_drop(sw, 0, b, h_arp(b, ARP_REQUEST, &host, &nobody, 0), "neigh_unknown");
	/* Announcements and answers. */
	h_expect_drop(sw, 0, b, h_arp(b, ARP_REQUEST, &host, &host, 0), "neigh_ignored");
	h_expect_drop(sw, 0, b, h_arp(b, ARP_REPLY, &host, &here, 0), "neigh_ignored");
}

static void no_proxy(void **state)
{
	struct wire_ip host = h_host4(0), far = h_host4(1), own = h_ip("10.0.0.1");
	struct frame f;
	uint8_t b[128];

	(void)state;
	h_stop(sw);
	sw = h_start(3, NULL, NULL); /* the default */
	h_expect_drop(sw, 0, b, h_arp(b, ARP_REQUEST, &host, &far, 0), "neigh_unknown");
	h_exchange(sw, 0, b, h_arp(b, ARP_REQUEST, &host, &own, 0), 0, &f);
}

static void nd(void **state)
{
	struct wire_ip host = h_host6(0), own = h_ip("fd00::1"), far = h_host6(2);
	struct wire_pkt pkt;
	struct frame f;
	uint8_t b[128];
	int len;

	(void)state;
	len = wire_build_ns(b, sizeof(b), asker, &host, &own, 0);
	h_exchange(sw, 1, b, (unsigned)len, 1, &f);
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_ND_NA);
	assert_true(wire_ip_eq(&pkt.nd_target, &own));
	assert_true(wire_ip_eq(&pkt.dst, &host));
	assert_memory_equal(pkt.nd_lladdr, h_port_mac(sw, 1), 6);
	assert_memory_equal(f.b, asker, 6);

	len = wire_build_ns(b, sizeof(b), asker, &host, &far, 0);
	h_exchange(sw, 0, b, (unsigned)len, 0, &f);
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_true(wire_ip_eq(&pkt.nd_target, &far));
	h_expect_drop(sw, 2, b, (unsigned)len, "neigh_unknown");
	len = wire_build_na(b, sizeof(b), asker, h_port_mac(sw, 0), &host, &own, 0);
	h_expect_drop(sw, 0, b, (unsigned)len, "neigh_ignored");
}

/* ---- echo ---- */

static void echo(void **state)
{
	struct wire_ip host = h_host4(0), own = h_ip("10.0.0.1"), host6 = h_host6(0),
		       own6 = h_ip("fd00::1");
	uint8_t icmp[64] = {8, 0, 0, 0, 1, 2, 3, 4}, b[256];
	struct wire_pkt pkt;
	struct frame f;
	unsigned len;

	(void)state;
	put_be16(icmp + 2, (uint16_t)~ip_sum(icmp, sizeof(icmp), 0));
	len = h_ip4(b, h_port_mac(sw, 0), &host, &own, IP_PROTO_ICMP, 64, icmp, sizeof(icmp));
	h_exchange(sw, 0, b, len, 0, &f);
	assert_int_equal(f.len, len);
	assert_int_equal(f.b[34], 0); /* echo reply */
	assert_int_equal(ip_sum(f.b + 34, sizeof(icmp), 0), 0xffff);
	assert_int_equal(ip_sum(f.b + 14, 20, 0), 0xffff);
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_true(wire_ip_eq(&pkt.src, &own));
	assert_true(wire_ip_eq(&pkt.dst, &host));
	assert_memory_equal(f.b + 6, h_port_mac(sw, 0), 6);

	icmp[0] = 128;
	put_be16(icmp + 2, 0);
	put_be16(icmp + 2, ip_l4_checksum(&host6, &own6, IP_PROTO_ICMP6, icmp, sizeof(icmp)));
	len = h_ip6(b, h_port_mac(sw, 2), &host6, &own6, IP_PROTO_ICMP6, 64, icmp, sizeof(icmp));
	h_exchange(sw, 2, b, len, 2, &f);
	assert_int_equal(f.b[54], 129);
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_true(wire_ip_eq(&pkt.dst, &host6));
}

static void local_other(void **state)
{
	struct wire_ip host = h_host4(0), own = h_ip("10.0.0.1");
	uint8_t tcp[20] = {0}, b[128];
	unsigned len = h_ip4(b, h_port_mac(sw, 0), &host, &own, IP_PROTO_TCP, 64, tcp, 20);

	(void)state;
	h_expect_drop(sw, 0, b, len, "local_proto");
}

static void many_addresses(void **state)
{
	struct wire_ip host = h_host4(0);
	struct table_error e;
	struct frame f;
	uint8_t b[128];

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		struct table_entry entry = {0};

		entry.key[0].ip = wire_ip_from4(0x0b000001 + i);
		assert_int_equal(h_write(sw, TABLE_INSERT, FWD_LOCAL_ADDR, &entry, &e), 0);
		for (unsigned j = 0; j <= i; j++) {
			struct wire_ip own = wire_ip_from4(0x0b000001 + j);

			h_exchange(sw, 0, b, h_arp(b, ARP_REQUEST, &host, &own, 0), 0, &f);
		}
	}
}

/* ---- who is not answered ---- */

static unsigned ping(uint8_t *b, const uint8_t dmac[6], const struct wire_ip *from)
{
	struct wire_ip own = h_ip(wire_ip_is4(from) ? "10.0.0.1" : "fd00::1");
	uint8_t icmp[64] = {8, 0, 0, 0, 1, 2, 3, 4};

	if (wire_ip_is4(from)) {
		put_be16(icmp + 2, (uint16_t)~ip_sum(icmp, sizeof(icmp), 0));
		return h_ip4(b, dmac, from, &own, IP_PROTO_ICMP, 64, icmp, sizeof(icmp));
	}
	icmp[0] = 128;
	put_be16(icmp + 2, ip_l4_checksum(from, &own, IP_PROTO_ICMP6, icmp, sizeof(icmp)));
	return h_ip6(b, dmac, from, &own, IP_PROTO_ICMP6, 64, icmp, sizeof(icmp));
}

static void echo_sources(void **state)
{
	static const struct {
		const char *from, *reason;
	} bad[] = {{"255.255.255.255", "ip_source"}, {"224.0.0.1", "ip_source"},
		{"0.0.0.0", "ip_source"}, {"127.0.0.1", "ip_source"}, {"10.0.0.1", "ip_forged"},
		{"ff02::1", "ip_source"}, {"::", "ip_source"}, {"::1", "ip_source"},
		{"fd00::1", "ip_forged"}};
	uint8_t b[256];

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct wire_ip from = h_ip(bad[i].from);
		unsigned len = ping(b, h_port_mac(sw, 0), &from);

		h_expect_drop(sw, 0, b, len, bad[i].reason);
	}
}

static void echo_broken(void **state)
{
	struct wire_ip host[] = {h_host4(0), h_host6(0)};
	uint8_t b[256], group[6] = {0x33, 0x33, 0, 0, 0, 1};
	struct frame f;
	unsigned len;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		len = ping(b, h_port_mac(sw, 0), &host[i]);
		b[len - 1] ^= 1;
		h_expect_drop(sw, 0, b, len, "icmp_checksum");
		b[len - 1] ^= 1;
		memcpy(b + 6, group, 6);
		h_expect_drop(sw, 0, b, len, "l2_source");
		memset(b + 6, 0xff, 6);
		h_expect_drop(sw, 0, b, len, "l2_source");
		len = ping(b, group, &host[i]);
		h_expect_drop(sw, 0, b, len, "l2_group");
		len = ping(b, h_port_mac(sw, 0), &host[i]);
		h_exchange(sw, 0, b, len, 0, &f);
	}
}

static void neigh_sources(void **state)
{
	struct wire_ip own = h_ip("10.0.0.1"), own6 = h_ip("fd00::1"), host = h_host4(0),
		       host6 = h_host6(0), from;
	uint8_t b[128];
	struct frame f;
	unsigned len;

	(void)state;
	from = h_ip("224.0.0.1");
	h_expect_drop(sw, 0, b, h_arp(b, ARP_REQUEST, &from, &own, 0), "ip_source");
	from = h_ip("255.255.255.255");
	h_expect_drop(sw, 0, b, h_arp(b, ARP_REQUEST, &from, &own, 0), "ip_source");
	h_expect_drop(sw, 0, b, h_arp(b, ARP_REQUEST, &own, &own, 0), "ip_forged");
	len = h_arp(b, ARP_REQUEST, &host, &own, 0);
	b[22] |= 1; /* the address in the message */
	h_expect_drop(sw, 0, b, len, "l2_source");
	b[22] &= 0xfe;
	b[6] |= 1;
	h_expect_drop(sw, 0, b, len, "l2_source");
	/* Who probes for an address of the switch hears that it is taken (RFC 5227). */
	from = h_ip("0.0.0.0");
	h_exchange(sw, 0, b, h_arp(b, ARP_REQUEST, &from, &own, 0), 0, &f);
	own = h_host4(1);
	h_expect_drop(sw, 0, b, h_arp(b, ARP_REQUEST, &from, &own, 0), "ip_source");

	len = (unsigned)wire_build_ns(b, sizeof(b), asker, &own6, &own6, 0);
	h_expect_drop(sw, 0, b, len, "ip_forged");
	from = h_ip("ff02::7");
	len = (unsigned)wire_build_ns(b, sizeof(b), asker, &from, &own6, 0);
	h_expect_drop(sw, 0, b, len, "ip_source");
	len = (unsigned)wire_build_ns(b, sizeof(b), asker, &host6, &own6, 0);
	b[6] |= 1;
	h_expect_drop(sw, 0, b, len, "l2_source");
}

/* Nobody stands in for a host in a VLAN that has no business here. */
static void proxy_vlan(void **state)
{
	struct wire_ip host = h_host4(0), far = h_host4(1);
	uint8_t b[128];

	(void)state;
	h_expect_drop(sw, 0, b, h_arp(b, ARP_REQUEST, &host, &far, 7), "neigh_unknown");
}

/* ---- a neighbour entry that is wrong ---- */

static void mac_mismatch(void **state)
{
	struct wire_ip host = h_host4(0), own = h_ip("10.0.0.1");
	struct table_entry entry = {0};
	struct table_error e;
	struct sw_port port;
	uint8_t b[128];
	struct frame f;

	(void)state;
	h_exchange(sw, 0, b, h_arp(b, ARP_REQUEST, &host, &own, 0), 0, &f);
	assert_int_equal(sw_port_get(sw, 0, &port), 0);
	assert_int_equal(port.mac_mismatch, 0);
	assert_string_equal(port.mismatch, "");

	entry.key[0].ip = host;
	entry.param[0].u = sw->ports[0].id;
	memcpy(entry.param[1].mac, (uint8_t[]){2, 0, 0, 0, 0, 0x77}, 6);
	assert_int_equal(h_write(sw, TABLE_MODIFY, FWD_NEIGH, &entry, &e), 0);
	for (unsigned i = 0; i < 3; i++)
		h_exchange(sw, 0, b, h_arp(b, ARP_REQUEST, &host, &own, 0), 0, &f);
	sw_port_get(sw, 0, &port);
	assert_int_equal(port.mac_mismatch, 3);
	assert_string_equal(port.mismatch, "10.0.0.10 from 02:00:00:00:00:0a");
	sw_tick(sw, port_now_ns());
	assert_int_equal(sw->n_seen_logged[0], 1); /* port 0 is worker 0's */

	/* Mended: nothing is wrong any more. */
	h_host_mac(0, entry.param[1].mac);
	assert_int_equal(h_write(sw, TABLE_MODIFY, FWD_NEIGH, &entry, &e), 0);
	sw_port_get(sw, 0, &port);
	assert_string_equal(port.mismatch, "");
}

/* The list of wrong addresses ends; what is not in it any more is counted. */
static void mac_unlisted(void **state)
{
	struct wire_ip host = h_host4(0), own = h_ip("10.0.0.1");
	struct sw_port port;
	uint8_t b[128];
	struct frame f;

	(void)state;
	for (unsigned i = 0; i < WORKER_MAX_SEEN + 3; i++) {
		size_t len = h_arp(b, ARP_REQUEST, &host, &own, 0);

		b[9] = b[25] = (uint8_t)(1 + i % (WORKER_MAX_SEEN + 2)); /* of Ethernet, of ARP */
		h_exchange(sw, 0, b, len, 0, &f);
	}
	sw_port_get(sw, 0, &port);
	assert_int_equal(port.mac_mismatch, WORKER_MAX_SEEN + 3);
	assert_int_equal(port.mac_unlisted, 2);
	sw_tick(sw, port_now_ns());
	assert_int_equal(sw->n_seen_logged[0], WORKER_MAX_SEEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
		T(arp_own),
		T(arp_proxy),
		T(no_proxy),
		T(nd),
		T(echo),
		T(local_other),
		T(many_addresses),
		T(echo_sources),
		T(echo_broken),
		T(neigh_sources),
		T(proxy_vlan),
		T(mac_mismatch),
		T(mac_unlisted),
#undef T
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
