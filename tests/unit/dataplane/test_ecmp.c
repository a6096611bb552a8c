/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes over several next hops: which flow takes which, and what moves it. */
#include <errno.h>
#include <rte_ethdev.h>
#include <string.h>

#include "harness.h"
#include "lib/wire/bytes.h"
#include "lib/wire/mrc.h"
#include "lib/wire/random.h"

enum {
	MAX_PORTS = 1 + FWD_MAX_NEXTHOPS,
	PORTS = 5,
	FLOWS = 1024,
	UDP_LEN = 12,
	PLAIN = 59 /* IPv6: no next header */
};

static struct sw *sw;
static unsigned n_ports;

static int start_named(unsigned ports, const char *more)
{
	n_ports = ports;
	sw = h_start(ports, more, NULL);
	return 0;
}

static int start(void **state)
{
	(void)state;
	return start_named(PORTS, NULL);
}

static int stop(void **state)
{
	(void)state;
	h_stop_whole(sw);
	return 0;
}

/* 20.0.0.0/8 or 2001:db8::/32 over hosts 1 to n. */
static struct table_entry route(bool six, unsigned n)
{
	struct table_entry e = {.action = 4};

	e.key[0].ip = h_ip(six ? "2001:db8::" : "20.0.0.0");
	e.key[0].prefix = six ? 32 : 8;
	for (unsigned i = 0; i < n; i++)
		e.param[i].ip = six ? h_host6(i + 1) : h_host4(i + 1);
	return e;
}

static void put(enum table_verb verb, unsigned table, const struct table_entry *e)
{
	struct table_error why;

	if (h_write(sw, verb, table, e, &why) != 0)
		fail_msg("%s", why.msg);
}

/* The port that an injected frame has left by, n_ports: none. */
static unsigned way(const uint8_t *b, unsigned len)
{
	unsigned at = n_ports;
	struct frame f;

	h_inject(sw, 0, b, len);
	h_run(sw);
	for (unsigned i = 0; i < n_ports; i++)
		while (h_take(sw, i, &f)) {
			assert_int_equal(at, n_ports);
			at = i;
		}
	return at;
}

static void set_link(unsigned port, bool up)
{
	if (up)
		assert_int_equal(rte_eth_dev_set_link_up(sw->ports[port].id), 0);
	else
		assert_int_equal(rte_eth_dev_set_link_down(sw->ports[port].id), 0);
	assert_int_equal(port_link_up(&sw->ports[port]), up);
	sw_tick(sw, port_now_ns());
}

/* A RoCE-like datagram of this flow; frag: of the IPv4 header. */
static unsigned way4(uint16_t sport, unsigned host, uint16_t frag)
{
	const struct wire_ip src = h_host4(0), dst = wire_ip_from4(20u << 24 | host);
	uint8_t udp[UDP_LEN] = {0}, b[128];
	unsigned len;

	put_be16(udp, sport);
	put_be16(udp + 2, 4790);
	put_be16(udp + 4, UDP_LEN);
	len = h_ip4(b, h_port_mac(sw, 0), &src, &dst, 17, 9, udp, sizeof(udp));
	put_be16(b + 14 + 6, frag);
	put_be16(b + 14 + 10, 0);
	put_be16(b + 14 + 10, (uint16_t)~ip_sum(b + 14, 20, 0));
	return way(b, len);
}

static unsigned way6(uint32_t label, unsigned host)
{
	const struct wire_ip src = h_host6(0);
	struct wire_ip dst = h_ip("2001:db8::");
	uint8_t b[128];
	unsigned len;

	put_be16(dst.b + 14, (uint16_t)host);
	len = h_ip6(b, h_port_mac(sw, 0), &src, &dst, PLAIN, 9, "x", 1);
	put_be32(b + 14, 6u << 28 | label);
	return way(b, len);
}

/* Each of n next hops has its part of all flows, within a quarter. */
static void check_shares(const unsigned *count, unsigned n)
{
	for (unsigned i = 1; i <= n; i++)
		assert_in_range(count[i], FLOWS / n * 3 / 4, FLOWS / n * 5 / 4);
	assert_int_equal(count[0] + count[PORTS], 0);
}

static void shares(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 4; n++) {
		unsigned by_port[PORTS + 1] = {0}, by_host[PORTS + 1] = {0};
		unsigned by_label[PORTS + 1] = {0};
		struct table_entry four = route(false, n), six = route(true, n);

		put(TABLE_INSERT, FWD_ROUTE4, &four);
		put(TABLE_INSERT, FWD_ROUTE6, &six);
		for (unsigned i = 0; i < FLOWS; i++) {
			by_port[way4((uint16_t)(0xc000 + i), 1, 0)]++;
			by_host[way4(0xc000, i + 1, 0)]++;
			by_label[way6(i, 1)]++;
		}
		check_shares(by_port, n);
		check_shares(by_host, n);
		check_shares(by_label, n);
		put(TABLE_DELETE, FWD_ROUTE4, &four);
		put(TABLE_DELETE, FWD_ROUTE6, &six);
	}
}

static void a_flow_stays(void **state)
{
	struct table_entry e = route(false, 4), again = e;
	unsigned at[64];

	(void)state;
	put(TABLE_INSERT, FWD_ROUTE4, &e);
	for (unsigned i = 0; i < 64; i++)
		at[i] = way4((uint16_t)i, 7, 0);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(way4((uint16_t)i, 7, 0), at[i]);
	/* The order in which they are named is of no account. */
	again.param[0] = e.param[3];
	again.param[3] = e.param[0];
	put(TABLE_MODIFY, FWD_ROUTE4, &again);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(way4((uint16_t)i, 7, 0), at[i]);
	put(TABLE_DELETE, FWD_ROUTE4, &again);
}

/* A next hop that goes takes no other's flows with it, and has its own again when it is back: by
 * its entry, then by its link. */
static void others_stay(void **state)
{
	struct table_entry e = route(false, 4), two = {0};
	unsigned at[FLOWS];

	(void)state;
	two.key[0].ip = h_host4(2);
	two.param[0].u = sw->ports[2].id;
	h_host_mac(2, two.param[1].mac);
	put(TABLE_INSERT, FWD_ROUTE4, &e);
	for (unsigned i = 0; i < FLOWS; i++)
		at[i] = way4((uint16_t)i, 3, 0);
	for (unsigned links = 0; links < 2; links++) {
		if (links)
			set_link(2, false);
		else
			put(TABLE_DELETE, FWD_NEIGH, &two);
		for (unsigned i = 0; i < FLOWS; i++) {
			const unsigned now = way4((uint16_t)i, 3, 0);

			assert_int_not_equal(now, 2);
			assert_int_not_equal(now, PORTS);
			assert_true(at[i] == 2 || now == at[i]);
		}
		if (links)
			set_link(2, true);
		else
			put(TABLE_INSERT, FWD_NEIGH, &two);
		for (unsigned i = 0; i < FLOWS; i++)
			assert_int_equal(way4((uint16_t)i, 3, 0), at[i]);
	}
	put(TABLE_DELETE, FWD_ROUTE4, &e);
}

/* Where no link is left nothing is gained by using none: what is lost is the ports' to count. */
static void no_link_left(void **state)
{
	struct table_entry e = route(false, 2);

	(void)state;
	put(TABLE_INSERT, FWD_ROUTE4, &e);
	set_link(1, false);
	set_link(2, false);
	assert_in_range(way4(1, 1, 0), 1, 2);
	set_link(1, true);
	set_link(2, true);
	put(TABLE_DELETE, FWD_ROUTE4, &e);
}

/* Only the first fragment shows ports: all go by their addresses. */
static void fragments_stay_together(void **state)
{
	enum { MORE = 0x2000 };
	struct table_entry e = route(false, 4);

	(void)state;
	put(TABLE_INSERT, FWD_ROUTE4, &e);
	for (unsigned i = 0; i < 64; i++) {
		const unsigned first = way4((uint16_t)i, 9, MORE);

		assert_in_range(first, 1, 4);
		assert_int_equal(way4((uint16_t)(i * 77), 9, MORE | 1), first);
		assert_int_equal(way4((uint16_t)(i * 99), 9, 2), first);
	}
	put(TABLE_DELETE, FWD_ROUTE4, &e);
}

/* Who has no neigh entry gets nothing, and the others all of it; without any nothing goes. */
static void unknown_neighbours(void **state)
{
	struct table_entry e = route(false, 2), late = {0};
	unsigned count[PORTS + 1] = {0};

	(void)state;
	e.param[2].ip = h_ip("10.0.0.200");
	put(TABLE_INSERT, FWD_ROUTE4, &e);
	for (unsigned i = 0; i < FLOWS; i++)
		count[way4((uint16_t)i, 1, 0)]++;
	check_shares(count, 2);
	late.key[0].ip = e.param[2].ip;
	late.param[0].u = sw->ports[3].id;
	h_host_mac(9, late.param[1].mac);
	put(TABLE_INSERT, FWD_NEIGH, &late);
	memset(count, 0, sizeof(count));
	for (unsigned i = 0; i < FLOWS; i++)
		count[way4((uint16_t)i, 1, 0)]++;
	check_shares(count, 3);
	put(TABLE_DELETE, FWD_NEIGH, &late);
	put(TABLE_DELETE, FWD_ROUTE4, &e);

	e = route(false, 0);
	e.param[0].ip = h_ip("10.0.0.201");
	e.param[5].ip = h_ip("10.0.0.202");
	put(TABLE_INSERT, FWD_ROUTE4, &e);
	assert_int_equal(way4(1, 1, 0), PORTS);
	assert_int_equal(h_drop(sw, "ip_no_neigh"), 1);
	put(TABLE_DELETE, FWD_ROUTE4, &e);
}

/* What one address of the group's is looked up by: always the same next hop. */
static void the_control_plane_sees_one(void **state)
{
	struct table_entry e = route(false, 4);
	const struct wire_ip dst = h_ip("20.1.1.1");
	const struct adj *adj;

	(void)state;
	put(TABLE_INSERT, FWD_ROUTE4, &e);
	adj = fwd_lookup(sw->fwd, &dst);
	assert_int_equal(adj->kind, ADJ_REWRITE);
	assert_int_equal(adj->port, sw->ports[1].id);
	put(TABLE_DELETE, FWD_ROUTE4, &e);
}

/* Two switches behind one another: of the flows that take one way at the first, the second sends as
 * many each way. */
static void names_part_ways(void **state)
{
	enum { BIT = FLOWS / 8 };
	struct table_entry e = route(false, 2);
	uint8_t first[FLOWS];
	unsigned both[2][2] = {0};

	(void)state;
	h_stop_whole(sw);
	for (unsigned k = 0; k < 2; k++) {
		start_named(PORTS, k ? "{'name': 'spine1'}" : "{'name': 'leaf1'}");
		put(TABLE_INSERT, FWD_ROUTE4, &e);
		for (unsigned i = 0; i < FLOWS; i++) {
			const unsigned at = way4((uint16_t)i, 1, 0) - 1;

			assert_in_range(at, 0, 1);
			if (k)
				both[first[i]][at]++;
			else
				first[i] = (uint8_t)at;
		}
		if (k == 0)
			h_stop_whole(sw);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(both[i / 2][i % 2], 2 * BIT * 3 / 4, 2 * BIT * 5 / 4);
}

/* A data packet of MRC's with this EV, as the NIC builds it. */
static unsigned way_of_ev(bool six, uint32_t ev)
{
	const struct mrc_flow flow = {.src = six ? h_host6(0) : h_host4(0),
		.dst = h_ip(six ? "2001:db8::1" : "20.0.0.1"),
		.ttl = 9,
		.udp_port = 4791,
		.ev = ev};
	const struct mrc_pkt pkt = {.kind = MRC_KIND_DATA,
		.data = {.place = MRC_ONLY, .dqpn = 5, .psn = 7, .dmalen = 4, .pay_len = 4}};
	uint8_t b[256];
	int n;

	memcpy(b, h_port_mac(sw, 0), 6);
	memset(b + 6, 0x0e, 6);
	put_be16(b + 12, six ? ETH_TYPE_IP6 : ETH_TYPE_IP4);
	n = mrc_build(
		b + ETH_HDR_LEN, sizeof(b) - ETH_HDR_LEN, &mrc_codec_ocp_r1, &flow, &pkt, "data");
	assert_true(n > 0);
	return way(b, ETH_HDR_LEN + (unsigned)n);
}

/* As libmrc draws them (AUTO): the half that is the source port has its upper bit set, of UDP's
 * there is no other. */
static uint32_t draw_ev(bool stev, uint64_t *seed)
{
	const uint32_t ev = (uint32_t)wire_random(seed) | 0x80008000;

	return stev ? ev : ev & UINT16_MAX;
}

/* EVs of both formats, by a leaf of eight uplinks and a spine with eight more: the 256 that a queue
 * pair may have are spread evenly over the leaf's links, and many over all 64 ways. Bounds are four
 * deviations of a fair draw. */
static void spread_of_evs(void **state)
{
	enum { WAYS = FWD_MAX_NEXTHOPS, EVS = 256, MANY = 4096, MEAN = MANY / WAYS / WAYS };
	static const struct {
		bool six, stev;
	} format[] = {{false, false}, {true, false}, {true, true}};
	static uint8_t leaf[sizeof(format) / sizeof(format[0])][MANY];

	(void)state;
	h_stop_whole(sw);
	for (unsigned tier = 0; tier < 2; tier++) {
		start_named(MAX_PORTS, tier ? "{'name': 'spine3'}" : "{'name': 'leaf3'}");
		for (unsigned k = 0; k < sizeof(format) / sizeof(format[0]); k++) {
			const bool six = format[k].six;
			struct table_entry e = route(six, WAYS);
			unsigned few[WAYS] = {0}, many[WAYS][WAYS] = {{0}};
			uint64_t seed = 42;

			put(TABLE_INSERT, six ? FWD_ROUTE6 : FWD_ROUTE4, &e);
			for (unsigned i = 0; i < MANY; i++) {
				const unsigned at =
					way_of_ev(six, draw_ev(format[k].stev, &seed)) - 1;

				assert_in_range(at, 0, WAYS - 1);
				if (tier)
					many[leaf[k][i]][at]++;
				else
					leaf[k][i] = (uint8_t)at;
				few[at] += i < EVS;
			}
			put(TABLE_DELETE, six ? FWD_ROUTE6 : FWD_ROUTE4, &e);
			for (unsigned i = 0; i < WAYS; i++)
				assert_in_range(few[i], EVS / WAYS - 21, EVS / WAYS + 21);
			for (unsigned i = 0; tier && i < WAYS * WAYS; i++)
				assert_in_range(many[i / WAYS][i % WAYS], MEAN / 2, MEAN * 3 / 2);
		}
		if (tier == 0)
			h_stop_whole(sw);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares),
		cmocka_unit_test(a_flow_stays),
		cmocka_unit_test(others_stay),
		cmocka_unit_test(no_link_left),
		cmocka_unit_test(fragments_stay_together),
		cmocka_unit_test(unknown_neighbours),
		cmocka_unit_test(the_control_plane_sees_one),
		cmocka_unit_test(names_part_ways),
		cmocka_unit_test(spread_of_evs),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
