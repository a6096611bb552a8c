/* SPDX-License-Identifier: BSD-3-Clause */
/* The node srv6_local has a short way for most packets of a burst, and one by one for all others,
 * which is also that of what is traced: bursts of all kinds of packets are sent by both, and the
 * same comes out, byte for byte and by every counter. */
#include <rte_graph_worker.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "lib/wire/bytes.h"
#include "lib/wire/ip6_ext.h"

enum { UN, UA, END, DT46, VIA = 0, BLACKHOLE = 2, ENCAP = 3, ECMP = 4 };
enum { N_PORTS = 4, N_SIDS = 8, BURST = 96, ROUNDS = 300, CAP = 400, SMALL_MTU = 200, L3 = 14 };

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

static void via(const char *prefix, unsigned bits, struct wire_ip nexthop)
{
	struct table_entry e = row(prefix, bits, VIA);

	e.param[0].ip = nexthop;
	insert(FWD_ROUTE6, &e);
}

static void sid(const char *prefix, unsigned bits, unsigned action, const char *nexthop)
{
	struct table_entry e = row(prefix, bits, action);

	if (nexthop != NULL)
		e.param[0].ip = h_ip(nexthop);
	insert(FWD_LOCAL_SID, &e);
}

static int start(void **state)
{
	struct table_entry e;

	(void)state;
	sw = h_start(N_PORTS, NULL, NULL);
	sw->ports[2].config.mtu = SMALL_MTU;
	sid("fcbb:bb00:5012::", 48, UN, NULL);
	sid("fcbb:bb00:5012:a::", 64, UN, NULL);
	sid("fcbb:bb00:e001::", 48, UA, "fd00::b");
	sid("fcbb:bb00:e002::", 48, UA, "fd00::dead");
	sid("fcbb:bb00:e003::", 48, UA, "fd00::c");
	sid("fcbb:bb00:d001::", 48, DT46, NULL);
	sid("fd77::1", 128, END, NULL);
	sid("0:0:5012::", 48, UN, NULL);
	via("::", 3, h_host6(1)); /* also for what looks like IPv4 after the shift */
	via("fcbb:bb00:542a::", 48, h_host6(1));
	via("fcbb:bb00:5155::", 48, h_host6(2));
	via("fcbb:bb00:6003::", 48, h_ip("fd00::dead"));
	e = row("fcbb:bb00:6000::", 48, ECMP);
	for (unsigned i = 1; i < N_PORTS; i++)
		e.param[i - 1].ip = h_host6(i);
	insert(FWD_ROUTE6, &e);
	e = row("fcbb:bb00:6001::", 48, BLACKHOLE);
	insert(FWD_ROUTE6, &e);
	e = row("fcbb:bb00:6002::", 48, ENCAP);
	e.param[0].ip = h_ip("fd00::1");
	e.param[1].ip = h_ip("fcbb:bb00:5012:542a::");
	insert(FWD_ROUTE6, &e);
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

/* ---- packets ---- */

struct packet {
	unsigned len;
	uint8_t b[CAP];
};

static unsigned pick(unsigned n)
{
	return (unsigned)rand() % n;
}

/* Mostly short paths of uSIDs that mean something. */
static struct wire_ip destination(void)
{
	static const uint16_t first[] = {
		0x5012, 0x5012, 0x5012, 0xe001, 0xe002, 0xe003, 0xd001, 0x542a};
	static const uint16_t then[] = {0x542a, 0x5155, 0x542a, 0x5155, 0x6000, 0x6001, 0x6002,
		0x6003, 0x7777, 0x5012, 0xe001, 0x000a, 0};
	struct wire_ip ip = {{0}};

	if (pick(20) == 0)
		return h_ip(pick(2) ? "0:0:5012:0:0:0:ffff:a00" : "0:0:5012:fd00:0:0:0:0");
	put_be32(ip.b, pick(50) == 0 ? 0xfe800000 : 0xfcbbbb00);
	put_be16(ip.b + 4, first[pick(sizeof(first) / sizeof(*first))]);
	for (unsigned i = 6; i < 16 && (i == 6 || pick(3) != 0); i += 2)
		put_be16(ip.b + i, then[pick(sizeof(then) / sizeof(*then))]);
	return ip;
}

/* What is behind the header: sometimes a SRH with a segment left, or something to unpack. */
static uint8_t payload(uint8_t b[CAP], unsigned *len)
{
	static const uint8_t protos[] = {59, IP_PROTO_UDP, IP_PROTO_TCP, IP_PROTO_ICMP6, 44};
	const struct wire_ip segment = h_ip(pick(2) ? "fcbb:bb00:5155::" : "fd77::1");
	const uint8_t srh[8] = {59, 2, IP6_ROUTING_SRH, 1, 0, 0, 0, 0};

	for (unsigned i = 0; i < CAP; i++)
		b[i] = (uint8_t)rand();
	*len = pick(8) == 0 ? SMALL_MTU - 40 + pick(3) - 1 : pick(100);
	if (pick(6) == 0) {
		memcpy(b, srh, sizeof(srh));
		memcpy(b + sizeof(srh), segment.b, sizeof(segment.b));
		return IP_PROTO_ROUTING;
	}
	if (pick(8) == 0) {
		*len = 40;
		memset(b, 0, 40);
		b[0] = 0x60;
		b[7] = 9;
		memcpy(b + 8, h_host6(0).b, 16);
		memcpy(b + 24, segment.b, 16);
		return IP_PROTO_IP6;
	}
	if (pick(2))
		b[0] = 128; /* echo, of ICMPv6 */
	return protos[pick(sizeof(protos))];
}

static struct packet packet(void)
{
	static const uint8_t hops[] = {0, 1, 2, 3, 64, 64, 64, 255};
	const struct wire_ip src = pick(30) ? h_host6(0) : h_ip("fd00::1"), dst = destination();
	uint8_t b[CAP], mac[6];
	struct packet p = {0};
	unsigned len;
	const uint8_t next = payload(b, &len);

	memcpy(mac, h_port_mac(sw, 0), sizeof(mac));
	if (pick(30) == 0)
		mac[pick(2) * 5] ^= 1;
	p.len = h_ip6(p.b, mac, &src, &dst, next, hops[pick(sizeof(hops))], b, len);
	put_be32(p.b + L3, 6u << 28 | ((uint32_t)rand() & 0xfffffff));
	if (pick(10) == 0)
		p.len = h_tag(p.b, p.len, pick(4) == 0 ? 5 : 0);
	return p;
}

/* ---- what comes of them ---- */

struct outcome {
	unsigned n[N_PORTS];
	struct packet out[N_PORTS][BURST];
	uint64_t drops[N_DROPS], hits[N_SIDS], tx_bytes[N_PORTS];
};

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct packet));
}

/* Counters as they are, less those of before. */
static void count(struct outcome *o)
{
	struct sw_port port;
	uint64_t hits;

	for (unsigned i = 0; i < N_DROPS; i++)
		o->drops[i] = sw->worker[0]->drops[i] - o->drops[i];
	for (unsigned i = 0; i < N_SIDS; i++) {
		assert_true(sw_table_hits(sw, FWD_LOCAL_SID, i, &hits));
		o->hits[i] = hits - o->hits[i];
	}
	for (unsigned i = 0; i < N_PORTS; i++) {
		assert_int_equal(sw_port_get(sw, i, &port), 0);
		o->tx_bytes[i] = port.tx_bytes - o->tx_bytes[i];
	}
}

static void send(const struct packet *p, unsigned n, struct outcome *o)
{
	static struct frame f;

	memset(o, 0, sizeof(*o));
	count(o);
	for (unsigned i = 0; i < n; i++)
		h_inject(sw, 0, p[i].b, p[i].len);
	h_run(sw);
	for (unsigned i = 0; i < N_PORTS; i++) {
		while (h_take(sw, i, &f)) {
			struct packet *to = &o->out[i][o->n[i]++];

			assert_in_range(f.len, 1, CAP);
			to->len = f.len;
			memcpy(to->b, f.b, f.len);
		}
		/* Those of one flow stay in order, others may overtake one another. */
		qsort(o->out[i], o->n[i], sizeof(o->out[i][0]), by_bytes);
	}
	count(o);
}

static void both_ways(void **state)
{
	static struct packet p[BURST];
	static struct outcome slow, fast;
	char err[SW_ERR_LEN];
	unsigned sent = 0;

	(void)state;
	srand(9800);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < BURST; i++)
			p[i] = packet();
		assert_int_equal(sw_trace_start(sw, -1, BURST, err), 0);
		send(p, BURST, &slow);
		send(p, BURST, &fast);
		assert_memory_equal(&fast, &slow, sizeof(fast));
		for (unsigned i = 0; i < N_PORTS; i++)
			sent += fast.n[i];
	}
	/* The test is of something. */
	assert_in_range(sent, ROUNDS * BURST / 4, ROUNDS * BURST);
}

static uint64_t passed(const char *node)
{
	return rte_graph_node_get_by_name(sw->worker[0]->graph->name, node)->total_objs;
}

/* The short way is taken: ip_forward sees such a packet once. */
static void once(void **state)
{
	const struct wire_ip src = h_host6(0), dst = h_ip("fcbb:bb00:5012:542a:1::");
	const uint64_t routed = passed("ip_forward"), local = passed("srv6_local"),
		       rewritten = passed("rewrite");
	struct packet p = {0};
	struct frame f;

	(void)state;
	p.len = h_ip6(p.b, h_port_mac(sw, 0), &src, &dst, 59, 64, "x", 1);
	h_exchange(sw, 0, p.b, p.len, 1, &f);
	assert_int_equal(passed("ip_forward") - routed, 1);
	assert_int_equal(passed("srv6_local") - local, 1);
	assert_int_equal(passed("rewrite") - rewritten, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_ways, start, stop),
		cmocka_unit_test_setup_teardown(once, start, stop),
	};

	return cmocka_run_group_tests_name("dataplane-srv6-ways", tests, NULL, NULL);
}
