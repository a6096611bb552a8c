/* SPDX-License-Identifier: BSD-3-Clause */
/* Learning bridges through the graph: who gets what, who is learnt, and what stays with the switch.
 * Ports 0, 1 and 2 are in the bridge of untagged frames and in that of VLAN 7; port 3 is in none.
 */
#include <errno.h>
#include <rte_ethdev.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/l2/bridge.h"
#include "harness.h"
#include "lib/wire/bytes.h"
#include "lib/wire/multicast.h"

enum { PORTS = 4, ANYTHING = 253, VLAN = 7, TYPE = 0x88b5 };

static const uint64_t SECOND = UINT64_C(1000000000);
static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static struct sw *sw;
static uint64_t now;

static void tick(uint64_t later)
{
	h_run(sw);
	sw_tick(sw, now += later);
	h_run(sw);
}

/* more: of ports 0 and 2. */
static void begin(const char *more0, const char *more2)
{
	char ports[512];

	snprintf(ports, sizeof(ports),
		"{'ports':["
		"{'type':'ring','name':'p0','neigh_learn':false,'bridge':[0,7]%s},"
		"{'type':'ring','name':'p1','neigh_learn':false,'bridge':[0,7]},"
		"{'type':'ring','name':'p2','neigh_learn':false,'bridge':[0,7]%s},"
		"{'type':'ring','name':'p3','neigh_learn':false}]}",
		more0, more2);
	sw = h_start(PORTS, ports, NULL);
	now = port_now_ns();
	tick(0);
}

static int start(void **state)
{
	(void)state;
	begin("", "");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	h_stop_whole(sw);
	return 0;
}

/* A frame of a protocol that the switch does not know; vlan 0: untagged. */
static unsigned frame_of(uint8_t *b, const uint8_t *to, const uint8_t *from, uint16_t vlan)
{
	unsigned len = 60;

	memset(b, 0x5a, len);
	memcpy(b, to, 6);
	memcpy(b + 6, from, 6);
	put_be16(b + 12, TYPE);
	return vlan != 0 ? h_tag(b, len, vlan) : len;
}

/* It comes by a port, and the ports of a mask get it as it is, once each, nobody else anything. */
static void reaches(unsigned in, const uint8_t *b, unsigned len, unsigned ports)
{
	struct frame f;

	h_inject(sw, in, b, len);
	h_run(sw);
	for (unsigned i = 0; i < PORTS; i++) {
		const bool got = h_take(sw, i, &f);

		if (got != (ports >> i & 1))
			fail_msg("port %u: %s", i, got ? "got it" : "did not get it");
		if (!got)
			continue;
		assert_int_equal(f.len, len);
		assert_memory_equal(f.b, b, len);
		assert_false(h_take(sw, i, &f));
	}
	h_check_balance(sw);
}

static void host(unsigned i, uint8_t mac[6])
{
	memcpy(mac, (uint8_t[]){2, 0, 0, 0, 9, (uint8_t)i}, 6);
}

/* Host a at port `in` sends to host b. */
static void says(unsigned in, unsigned a, unsigned b, uint16_t vlan, unsigned ports)
{
	uint8_t frame[128], from[6], to[6];

	host(a, from);
	host(b, to);
	reaches(in, frame, frame_of(frame, to, from, vlan), ports);
}

static unsigned macs(struct mac_counters *count)
{
	uint64_t held;

	return sw_macs(sw, count, &held);
}

static void learns(void **state)
{
	struct mac_counters count;
	struct sw_mac_info info;
	unsigned at = 0;

	(void)state;
	says(0, 1, 2, 0, 0x6); /* nobody is known: to all others of the bridge */
	sw_notes_turn(sw, now);
	says(1, 2, 1, 0, 0x1);
	sw_notes_turn(sw, now);
	says(0, 1, 2, 0, 0x2);
	says(2, 3, 1, 0, 0x1);
	assert_int_equal(macs(&count), 2);
	sw_notes_turn(sw, now);
	assert_int_equal(macs(&count), 3);
	assert_int_equal(count.learnt, 3);
	assert_int_equal(sw_mac_get(sw, &at, &info), 0);
	assert_string_equal(info.port, "p0");
	assert_false(info.is_static);
	assert_int_equal(h_drop(sw, "bridge_flooded"), 1);
	assert_int_equal(h_losses(sw), 0);
}

static void moves(void **state)
{
	struct mac_counters count;

	(void)state;
	says(0, 1, 9, 0, 0x6);
	tick(0);
	says(1, 2, 1, 0, 0x1);
	says(2, 1, 9, 0, 0x3); /* it is there now */
	tick(0);
	says(1, 2, 1, 0, 0x4);
	assert_int_equal(macs(&count), 2);
	assert_int_equal(count.moved, 1);
	says(2, 4, 1, 0, 0); /* both are behind port 2 */
	assert_int_equal(h_drop(sw, "bridge_stays"), 1);
}

static void ages(void **state)
{
	struct mac_counters count;

	(void)state;
	says(0, 1, 9, 0, 0x6);
	tick(0);
	tick(200 * SECOND);
	says(0, 1, 9, 0, 0x6); /* heard of */
	tick(200 * SECOND);
	assert_int_equal(macs(&count), 1);
	says(1, 2, 1, 0, 0x1);
	tick(299 * SECOND);
	tick(2 * SECOND);
	assert_int_equal(count.aged, 0);
	assert_int_equal(
		macs(&count), 1); /* who was spoken to has kept silent, who spoke did so later */
	assert_int_equal(count.aged, 1);
	says(1, 2, 1, 0, 0x5);
}

/* The same addresses in two VLANs are two hosts; other VLANs and ports are in no bridge. */
static void vlans(void **state)
{
	uint8_t b[128], from[6];

	(void)state;
	says(0, 1, 9, 0, 0x6);
	says(1, 1, 9, VLAN, 0x5);
	tick(0);
	says(2, 2, 1, 0, 0x1);
	says(2, 2, 1, VLAN, 0x2);
	says(2, 2, 1, 8, 0);
	says(3, 2, 1, 0, 0);
	assert_int_equal(h_drop(sw, "l2_unknown"), 2);
	host(1, from);
	/* Priority alone is untagged; priority and VLAN stay as they are. */
	reaches(0, b, frame_of(b, broadcast, from, 0x6000), 0x6);
	reaches(0, b, frame_of(b, broadcast, from, 0x6000 | VLAN), 0x6);
}

/* What no switch believes. */
static void sources(void **state)
{
	static const uint8_t group[6] = {3, 0, 0, 0, 0, 1}, zero[6],
			     reserved[6] = {1, 0x80, 0xc2, 0, 0, 0xe};
	struct mac_counters count;
	uint8_t b[128], to[6];

	(void)state;
	host(2, to);
	h_expect_drop(sw, 0, b, frame_of(b, to, group, 0), "l2_source");
	h_expect_drop(sw, 0, b, frame_of(b, to, h_port_mac(sw, 3), 0), "bridge_own_mac");
	reaches(0, b, frame_of(b, to, zero, 0), 0x6);
	h_expect_drop(sw, 0, b, frame_of(b, reserved, to, 0), "bridge_reserved");
	sw_notes_turn(sw, now);
	assert_int_equal(macs(&count), 1); /* who spoke to the reserved address */
}

/* Flooding is bounded, by port; what is known goes through. */
static void flood_limit(void **state)
{
	uint8_t b[128], from[6];
	struct frame f;
	unsigned n = 0;

	(void)state;
	h_stop(sw);
	begin(",'flood_pps':100", "");
	says(1, 2, 9, 0, 0x5);
	tick(0);
	host(1, from);
	/* All at one time: a tenth of a second's, and one. */
	for (unsigned i = 0; i < 50; i++) {
		h_inject(sw, 0, b, frame_of(b, broadcast, from, 0));
		for (unsigned k = 0; k < sw->n_workers; k++)
			sw_turn(sw, k, now);
	}
	while (h_take(sw, 1, &f))
		n++;
	while (h_take(sw, 2, &f))
		;
	assert_int_equal(n, 11);
	assert_int_equal(h_drop(sw, "bridge_flood"), 39);
	for (unsigned i = 0; i < 20; i++) {
		uint8_t to[6];

		host(2, to);
		h_inject(sw, 0, b, frame_of(b, to, from, 0));
		for (unsigned k = 0; k < sw->n_workers; k++)
			sw_turn(sw, k, now);
		assert_true(h_take(sw, 1, &f));
	}
	for (unsigned k = 0; k < sw->n_workers; k++)
		sw_turn(sw, k, now + SECOND / 20); /* five more, and what was owed */
	for (unsigned i = 0; i < 20; i++) {
		h_inject(sw, 0, b, frame_of(b, broadcast, from, 0));
		for (unsigned k = 0; k < sw->n_workers; k++)
			sw_turn(sw, k, now + SECOND / 20);
	}
	for (n = 0; h_take(sw, 1, &f); n++)
		;
	while (h_take(sw, 2, &f))
		;
	assert_int_equal(n, 5);
	h_check_balance(sw);
}

/* ---- the switch itself ---- */

/* ARP and ND between hosts are the hosts' own; what asks for the switch is answered, and not
 * flooded. */
static void arp(void **state)
{
	const struct wire_ip a = h_ip("10.0.0.200"), b_ip = h_ip("10.0.0.201"),
			     own = h_ip("10.0.0.1");
	struct wire_pkt pkt;
	uint8_t b[128], mac[6];
	struct frame f;
	unsigned len;

	(void)state;
	host(1, mac);
	len = (unsigned)wire_build_arp(b, sizeof(b), ARP_REQUEST, mac, &a, broadcast, &b_ip, 0);
	memcpy(b, broadcast, 6);
	reaches(0, b, len, 0x6);
	tick(0);
	host(2, mac);
	uint8_t to[6];
	host(1, to);
	len = (unsigned)wire_build_arp(b, sizeof(b), ARP_REPLY, mac, &b_ip, to, &a, 0);
	reaches(1, b, len, 0x1);
	len = (unsigned)wire_build_arp(b, sizeof(b), ARP_REQUEST, mac, &b_ip, broadcast, &own, 0);
	memcpy(b, broadcast, 6);
	h_exchange(sw, 1, b, len, 1, &f);
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_int_equal(pkt.arp_op, ARP_REPLY);
	assert_memory_equal(pkt.arp_sha, h_port_mac(sw, 1), 6);
	/* Word of himself that all may hear: the switch does, too. */
	len = (unsigned)wire_build_arp(b, sizeof(b), ARP_REQUEST, mac, &b_ip, broadcast, &b_ip, 0);
	memcpy(b, broadcast, 6);
	reaches(1, b, len, 0x5);
	assert_int_equal(h_drop(sw, "neigh_ignored"), 1);
	assert_int_equal(h_losses(sw), 0);
}

static void nd(void **state)
{
	const struct wire_ip a = h_ip("fe80::9:1"), b_ip = h_ip("fe80::9:2"), own = h_ip("fd00::1");
	uint8_t b[128], mac[6], other[6];
	struct wire_pkt pkt;
	struct frame f;

	(void)state;
	host(1, mac);
	host(2, other);
	reaches(0, b, (unsigned)wire_build_ns(b, sizeof(b), mac, &a, &b_ip, 0), 0x6);
	tick(0);
	reaches(1, b, (unsigned)wire_build_na(b, sizeof(b), other, mac, &b_ip, &a, 0), 0x1);
	h_exchange(sw, 0, b, (unsigned)wire_build_ns(b, sizeof(b), mac, &a, &own, 0), 0, &f);
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_ND_NA);
	assert_int_equal(h_losses(sw), 0);
}

/* To the switch's MAC address: routed, wherever it goes; echo requests are answered. */
static void routed(void **state)
{
	const struct wire_ip src = h_host4(0), dst = h_host4(3), own = h_ip("10.0.0.1");
	struct mac_counters count;
	struct wire_pkt pkt;
	uint8_t b[256], other[6];
	struct frame f;
	unsigned len;

	(void)state;
	len = h_ip4(b, h_port_mac(sw, 0), &src, &dst, ANYTHING, 9, "payload", 7);
	h_host_mac(0, b + 6);
	h_exchange(sw, 0, b, len, 3, &f);
	wire_parse(f.b, f.len, &pkt);
	assert_int_equal(pkt.ttl, 8);
	assert_memory_equal(f.b + 6, h_port_mac(sw, 3), 6);
	/* To another host's, of the same subnet: not touched, whatever the switch has of it. */
	host(5, other);
	len = h_ip4(b, other, &src, &dst, ANYTHING, 1, "payload", 7);
	h_host_mac(0, b + 6);
	reaches(0, b, len, 0x6);
	b[ETH_HDR_LEN + 10] ^= 1; /* nor if its checksum is wrong */
	reaches(0, b, len, 0x6);
	/* To the switch's own IP address: taken. */
	len = h_ip4(b, other, &src, &own, ANYTHING, 9, "payload", 7);
	h_host_mac(0, b + 6);
	h_expect_drop(sw, 0, b, len, "local_proto");
	sw_notes_turn(sw, now);
	assert_int_equal(macs(&count), 1);
}

/* ---- multicast ---- */

static void groups(void **state)
{
	const struct wire_ip src = h_host4(0), known = h_ip("239.1.1.1"), other = h_ip("239.1.1.2");
	struct table_entry e = {0};
	struct table_error err;
	struct wire_pkt pkt;
	uint8_t b[256], mac[6];
	struct frame f;
	unsigned len;

	(void)state;
	h_stop(sw);
	begin("", ",'mcast_learn':true");
	while (h_take(sw, 2, &f)) /* who is there? */
		;
	e.key[0].ip = known;
	e.key[1].u = sw->ports[1].id;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MCAST_GROUP, &e, &err), 0);
	wire_multicast_mac(&other, mac);
	len = h_ip4(b, mac, &src, &other, ANYTHING, 1, "payload", 7);
	h_host_mac(0, b + 6);
	reaches(0, b, len, 0x6);
	/* A group with members goes to these. */
	wire_multicast_mac(&known, mac);
	len = h_ip4(b, mac, &src, &known, ANYTHING, 9, "payload", 7);
	h_host_mac(0, b + 6);
	h_exchange(sw, 0, b, len, 1, &f);
	wire_parse(f.b, f.len, &pkt);
	assert_int_equal(pkt.ttl, 8);
	/* A report where members are learnt is the control plane's. */
	len = h_ip4(b, mac, &src, &known, 2, 1, "report..", 8);
	h_host_mac(2, b + 6);
	reaches(2, b, len, 0);
	assert_int_equal(h_drop(sw, "mcast_report"), 1);
	tick(0);
	while (h_take(sw, 2, &f))
		;
}

/* ---- table mac ---- */

static void rows(void **state)
{
	struct table_entry e = {0};
	struct table_error err;
	struct mac_counters count;

	(void)state;
	host(1, e.key[0].mac);
	e.param[0].u = sw->ports[2].id;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MAC, &e, &err), 0);
	says(0, 1, 2, 0, 0x6); /* he lies, or is wrong */
	tick(0);
	says(1, 2, 1, 0, 0x4);
	tick(0);
	assert_int_equal(macs(&count), 2);
	assert_int_equal(count.moved, 0);
	tick(400 * SECOND);
	tick(400 * SECOND);
	assert_int_equal(macs(&count), 1);
	says(1, 2, 1, 0, 0x4);
	assert_int_equal(h_write(sw, TABLE_DELETE, FWD_MAC, &e, &err), 0);
	says(1, 2, 1, 0, 0x5);
	/* What makes no sense changes nothing. */
	e.param[0].u = sw->ports[3].id;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MAC, &e, &err), -EINVAL);
	assert_string_equal(
		err.msg, "mac 02:00:00:00:09:01 in VLAN 0: its port is in no bridge of this VLAN");
	e.param[0].u = sw->ports[2].id;
	e.key[1].u = 8;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MAC, &e, &err), -EINVAL);
	e.key[1].u = 0;
	memcpy(e.key[0].mac, broadcast, 6);
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MAC, &e, &err), -EINVAL);
	assert_string_equal(err.msg, "mac ff:ff:ff:ff:ff:ff in VLAN 0: is no address of a host");
	memcpy(e.key[0].mac, h_port_mac(sw, 0), 6);
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MAC, &e, &err), -EINVAL);
	assert_int_equal(macs(&count), 0);
}

/* ---- too many ---- */

/* Somebody makes addresses up: few are noted at a time, a port has its limit, and all come back. */
static void made_up(void **state)
{
	struct mac_counters count;
	uint8_t b[128], from[6], to[6];
	struct frame f;
	uint64_t held;

	(void)state;
	host(2, to);
	for (unsigned i = 0; i < 3000; i++) {
		memcpy(from, (uint8_t[]){2, 0, 0, 7, (uint8_t)(i >> 8), (uint8_t)i}, 6);
		h_inject(sw, 0, b, frame_of(b, to, from, 0));
		h_run(sw);
		for (unsigned k = 1; k < 3; k++)
			while (h_take(sw, k, &f))
				;
		if (i % 16 == 0)
			tick(SECOND / 100);
	}
	tick(0);
	assert_in_range(sw_macs(sw, &count, &held), 1, 1024);
	assert_int_equal(count.learnt + count.refused + held, 3000);
	h_check_balance(sw);
	/* Others are learnt yet. */
	says(1, 2, 2, 0, 0x5);
	tick(0);
	says(2, 3, 2, 0, 0x2);
}

/* More addresses come and go than workers' table has places. */
static void places_come_back(void **state)
{
	struct table_update *u = calloc(MAC_MAX_STATIC, sizeof(*u));
	struct table_error err;
	uint8_t b[128], from[6];

	(void)state;
	assert_non_null(u);
	host(1, from);
	for (unsigned round = 0; round < 8; round++) {
		for (unsigned i = 0; i < MAC_MAX_STATIC; i++) {
			const uint8_t mac[6] = {
				2, 0, 1, (uint8_t)round, (uint8_t)(i >> 8), (uint8_t)i};

			u[i] = (struct table_update){.verb = TABLE_INSERT, .table = FWD_MAC};
			memcpy(u[i].entry.key[0].mac, mac, 6);
			u[i].entry.param[0].u = sw->ports[1].id;
		}
		assert_int_equal(table_write(sw_tables(sw), u, MAC_MAX_STATIC, &err), 0);
		reaches(0, b, frame_of(b, u[MAC_MAX_STATIC - 1].entry.key[0].mac, from, 0), 0x2);
		for (unsigned i = 0; i < MAC_MAX_STATIC; i++)
			u[i].verb = TABLE_DELETE;
		assert_int_equal(table_write(sw_tables(sw), u, MAC_MAX_STATIC, &err), 0);
		reaches(0, b, frame_of(b, u[MAC_MAX_STATIC - 1].entry.key[0].mac, from, 0), 0x6);
	}
	free(u);
}

/* Nobody is behind a port without a link, and who was is looked for elsewhere. */
static void link_down(void **state)
{
	struct mac_counters count;

	(void)state;
	says(0, 1, 9, 0, 0x6);
	tick(0);
	says(1, 2, 1, 0, 0x1);
	rte_eth_dev_set_link_down(sw->ports[0].id);
	says(1, 2, 9, 0, 0x4);
	tick(SECOND / 10);
	assert_int_equal(macs(&count), 1);
	assert_int_equal(count.flushed, 1);
	says(1, 2, 1, 0, 0x4);
	rte_eth_dev_set_link_up(sw->ports[0].id);
	tick(SECOND / 10);
	says(1, 2, 1, 0, 0x5);
}

/* Frames too large for a port do not go there; tags do not count. */
static void mtu(void **state)
{
	static uint8_t b[H_FRAME_MAX];
	uint8_t from[6];

	(void)state;
	sw->ports[1].config.mtu = 1000;
	host(1, from);
	frame_of(b, broadcast, from, 0);
	reaches(0, b, 1014, 0x6);
	reaches(0, b, 1015, 0x4);
	frame_of(b, broadcast, from, VLAN);
	reaches(0, b, 1018, 0x6);
	says(1, 2, 9, 0, 0x5);
	tick(0);
	uint8_t to[6];
	host(2, to);
	frame_of(b, to, from, 0);
	h_expect_drop(sw, 0, b, 1015, "ip_mtu");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {T(learns), T(moves), T(ages), T(vlans), T(sources),
		T(flood_limit), T(arp), T(nd), T(routed), T(groups), T(rows), T(made_up),
		T(places_come_back), T(link_down), T(mtu)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
