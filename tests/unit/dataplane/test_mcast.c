/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast in the graph: who gets copies, what is in them, who may send, and what is counted. */
#include <errno.h>
#include <rte_ring.h>
#include <string.h>

#include "harness.h"
#include "lib/port/iface.h"
#include "lib/wire/bytes.h"
#include "lib/wire/multicast.h"

enum { N = 4, L3 = ETH_HDR_LEN, TTL = 9, MTU = 1500, PROTO = 253 };

#define GROUP4 "239.129.2.3"
#define GROUP6 "ff0e::7:5"

static struct sw *sw;

static int start(void **state)
{
	(void)state;
	sw = h_start(N, NULL, NULL);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	h_stop_whole(sw);
	return 0;
}

static struct table_entry member(const char *group, unsigned port, unsigned vlan)
{
	struct table_entry e = {0};

	e.key[0].ip = h_ip(group);
	e.key[1].u = sw->ports[port].id;
	e.param[0].u = vlan;
	return e;
}

static struct table_entry sender(const char *group, const struct wire_ip *src, unsigned port)
{
	struct table_entry e = {0};

	e.key[0].ip = h_ip(group);
	e.key[1].ip = *src;
	e.param[0].u = sw->ports[port].id;
	return e;
}

static void write_row(enum table_verb verb, unsigned table, const struct table_entry *e)
{
	struct table_error err;

	if (h_write(sw, verb, table, e, &err) != 0)
		fail_msg("%s", err.msg);
}

static void join(const char *group, unsigned port, unsigned vlan)
{
	const struct table_entry e = member(group, port, vlan);

	write_row(TABLE_INSERT, FWD_MCAST_GROUP, &e);
}

static void leave(const char *group, unsigned port)
{
	const struct table_entry e = member(group, port, 0);

	write_row(TABLE_DELETE, FWD_MCAST_GROUP, &e);
}

static void join_all(const char *group)
{
	for (unsigned i = 0; i < N; i++)
		join(group, i, 0);
}

/* To a group, from a host of its family. */
static unsigned packet(uint8_t *b, const char *group, unsigned host, uint8_t ttl, unsigned len)
{
	const struct wire_ip dst = h_ip(group), src4 = h_host4(host), src6 = h_host6(host);
	uint8_t payload[H_FRAME_MAX], mac[6];

	for (unsigned i = 0; i < len; i++)
		payload[i] = (uint8_t)(i * 7 + i / 256);
	wire_multicast_mac(&dst, mac);
	return wire_ip_is4(&dst) ? h_ip4(b, mac, &src4, &dst, PROTO, ttl, payload, len)
				 : h_ip6(b, mac, &src6, &dst, PROTO, ttl, payload, len);
}

/* What a copy of an untagged packet looks like at an untagged port: all as it was but for the
 * source MAC address and the hop. */
static void is_copy(const struct frame *f, const uint8_t *b, unsigned len, unsigned port)
{
	uint8_t want[H_FRAME_MAX];

	memcpy(want, b, len);
	memcpy(want + 6, h_port_mac(sw, port), 6);
	if (b[L3] >> 4 == 4) {
		want[L3 + 8]--;
		put_be16(want + L3 + 10, 0);
		put_be16(want + L3 + 10, (uint16_t)~ip_sum(want + L3, 20, 0));
	} else {
		want[L3 + 7]--;
	}
	assert_int_equal(f->len, len);
	assert_memory_equal(f->b, want, len);
}

/* Comes in at a port; the ports of the mask get it once each, nobody else anything. */
static void reaches(unsigned in, const uint8_t *b, unsigned len, unsigned ports)
{
	struct frame f;

	h_inject(sw, in, b, len);
	h_run(sw);
	for (unsigned i = 0; i < N; i++) {
		if (ports >> i & 1) {
			assert_true(h_take(sw, i, &f));
			is_copy(&f, b, len, i);
		}
		assert_false(h_take(sw, i, &f));
	}
	h_check_balance(sw);
}

static uint64_t hits(unsigned table, const struct table_entry *e)
{
	struct table_rows rows;
	uint64_t n;

	table_rows(sw_tables(sw), table, &rows);
	for (unsigned i = 0; i < rows.n; i++)
		if (memcmp(rows.entry[i].key, e->key, sizeof(e->key)) == 0) {
			assert_true(sw_table_hits(sw, table, i, &n));
			return n;
		}
	fail_msg("no such row");
	return 0;
}

static void members_and_nobody_else(void **state)
{
	static const char *const groups[] = {GROUP4, GROUP6};
	uint8_t b[H_FRAME_MAX];
	unsigned len;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		join(groups[i], 1, 0);
		join(groups[i], 3, 0);
		len = packet(b, groups[i], 0, TTL, 100);
		reaches(0, b, len, 0xa);
		/* Never back: a member that sends. */
		len = packet(b, groups[i], 1, TTL, 100);
		reaches(1, b, len, 0x8);
		join(groups[i], 0, 0);
		len = packet(b, groups[i], 2, TTL, 1000);
		reaches(2, b, len, 0xb);
		leave(groups[i], 3);
		reaches(2, b, len, 0x3);
		leave(groups[i], 0);
		leave(groups[i], 1);
		h_expect_drop(sw, 2, b, len, "mcast_unknown");
	}
	assert_int_equal(h_drop(sw, "mcast_done"), 8);
}

/* Copied or shared, up to the MTU: the bytes are those that came. */
static void every_length(void **state)
{
	static const char *const groups[] = {GROUP4, GROUP6};
	uint8_t b[H_FRAME_MAX];
	struct frame f;

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		const unsigned header = k == 0 ? 20 : 40;

		join_all(groups[k]);
		for (unsigned n = 0; n <= MTU - header; n += n < 520 || n > 600 ? 37 : 1) {
			const unsigned len = packet(b, groups[k], 0, TTL, n);

			h_inject(sw, 0, b, len);
			h_run(sw);
			for (unsigned i = 1; i < N; i++) {
				assert_true(h_take(sw, i, &f));
				is_copy(&f, b, len, i);
				assert_int_equal(f.segs, header + n > 72 + 512 ? 2 : 1);
			}
			assert_false(h_take(sw, 0, &f));
		}
	}
}

/* A RoCEv2 datagram stays whole: nothing of what its ICRC covers changes. */
static void roce(void **state)
{
	struct wire_flow flow = {.ttl = 64, .sport = 0xc123, .tos = 0x68};
	const struct wire_hdr hdr = {.opcode = ROCE_UD | ROCE_SEND_ONLY_IMM,
		.dqpn = 0xffffff,
		.psn = 0xfffffe,
		.imm = 0x12345678,
		.qkey = 7,
		.sqpn = 99};
	static const char *const groups[] = {GROUP4, GROUP6};
	uint8_t b[H_FRAME_MAX], payload[1024];
	struct wire_pkt pkt;
	struct frame f;
	int len;

	(void)state;
	memset(payload, 0x3c, sizeof(payload));
	for (unsigned k = 0; k < 2; k++) {
		join_all(groups[k]);
		flow.dst = h_ip(groups[k]);
		flow.src = k == 0 ? h_host4(0) : h_host6(0);
		wire_multicast_mac(&flow.dst, flow.dmac);
		len = wire_build_frame(b, sizeof(b), &flow, &hdr, payload, sizeof(payload));
		h_inject(sw, 0, b, (unsigned)len);
		h_run(sw);
		for (unsigned i = 1; i < N; i++) {
			assert_true(h_take(sw, i, &f));
			is_copy(&f, b, (unsigned)len, i);
			assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
			assert_int_equal(pkt.kind, WIRE_ROCE);
			assert_true(wire_icrc_ok(f.b, &pkt));
			assert_int_equal(pkt.imm, 0x12345678);
		}
	}
}

/* What each port has of a burst of several groups is in order. */
static void bursts(void **state)
{
	uint8_t b[H_FRAME_MAX];
	struct frame f;
	unsigned len;

	(void)state;
	join(GROUP4, 1, 0);
	join(GROUP4, 2, 0);
	join(GROUP6, 2, 0);
	join(GROUP6, 3, 0);
	for (unsigned i = 0; i < 30; i++) {
		len = packet(b, i & 1 ? GROUP6 : GROUP4, 0, (uint8_t)(TTL + i), 900);
		h_inject(sw, 0, b, len);
	}
	h_run(sw);
	for (unsigned i = 0; i < 30; i++) {
		len = packet(b, i & 1 ? GROUP6 : GROUP4, 0, (uint8_t)(TTL + i), 900);
		for (unsigned port = i & 1 ? 2 : 1; port <= (i & 1 ? 3 : 2); port++) {
			assert_true(h_take(sw, port, &f));
			is_copy(&f, b, len, port);
		}
	}
	for (unsigned i = 0; i < N; i++)
		assert_false(h_take(sw, i, &f));
}

static void vlans(void **state)
{
	const unsigned prio = 5 << 13;
	uint8_t b[H_FRAME_MAX], want[H_FRAME_MAX];
	struct frame f;
	unsigned len, tagged;

	(void)state;
	join(GROUP4, 0, 7);
	join(GROUP4, 1, 0);
	join(GROUP4, 2, 8);
	/* From untagged: the member's tag. */
	len = packet(b, GROUP4, 1, TTL, 700);
	h_inject(sw, 1, b, len);
	h_run(sw);
	memcpy(want, b, len);
	for (unsigned i = 0; i <= 2; i += 2) {
		assert_true(h_take(sw, i, &f));
		assert_int_equal(f.len, len + VLAN_HDR_LEN);
		assert_int_equal(get_be16(f.b + 12), ETH_TYPE_VLAN);
		assert_int_equal(get_be16(f.b + 14), i == 0 ? 7 : 8);
		memmove(f.b + 12, f.b + 16, len - 12);
		f.len -= VLAN_HDR_LEN;
		is_copy(&f, b, len, i);
	}
	/* From the member's VLAN: other tags, of the same priority; or none. */
	memcpy(want, b, len);
	tagged = h_tag(b, len, (uint16_t)(prio | 7));
	h_inject(sw, 0, b, tagged);
	h_run(sw);
	assert_true(h_take(sw, 1, &f));
	is_copy(&f, want, len, 1);
	assert_true(h_take(sw, 2, &f));
	assert_int_equal(get_be16(f.b + 14), prio | 8);
	/* From a VLAN that nobody is in. */
	put_be16(b + 14, 8);
	h_expect_drop(sw, 0, b, tagged, "l2_vlan");
	h_expect_drop(sw, 3, b, tagged, "l2_vlan");
}

static void hops(void **state)
{
	static const char *const groups[] = {GROUP4, GROUP6};
	uint8_t b[H_FRAME_MAX];
	unsigned len;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		join_all(groups[i]);
		for (uint8_t ttl = 0; ttl < 2; ttl++) {
			len = packet(b, groups[i], 0, ttl, 8);
			h_expect_drop(sw, 0, b, len, "ip_ttl");
		}
		len = packet(b, groups[i], 0, 2, 8);
		reaches(0, b, len, 0xe);
	}
}

/* Ports 1 and 2 are the ends of one cable, against the rules for trees: packets go around both
 * ways, but do not become more, and end when their hops do. */
static void loop(void **state)
{
	uint8_t b[H_FRAME_MAX];
	unsigned len = packet(b, GROUP4, 0, TTL, 600), n = 0, moved;
	struct frame f;

	(void)state;
	join(GROUP4, 1, 0);
	join(GROUP4, 2, 0);
	h_inject(sw, 0, b, len);
	do {
		h_run(sw);
		moved = 0;
		for (unsigned i = 1; i <= 2; i++)
			if (h_take(sw, i, &f)) {
				h_inject(sw, 3 - i, f.b, f.len);
				moved++;
			}
		n += moved;
	} while (moved > 0);
	assert_int_equal(n, 2 * (TTL - 1));
	assert_int_equal(h_drop(sw, "ip_ttl"), 2);
	assert_false(h_take(sw, 0, &f));
}

static void senders(void **state)
{
	const struct wire_ip zero = h_host4(0), one = h_host4(1);
	const struct table_entry e = sender(GROUP4, &zero, 0), e1 = sender(GROUP4, &one, 1);
	uint8_t b[H_FRAME_MAX];
	unsigned len;

	(void)state;
	join_all(GROUP4);
	write_row(TABLE_INSERT, FWD_MCAST_SENDER, &e);
	len = packet(b, GROUP4, 0, TTL, 600);
	reaches(0, b, len, 0xe);
	h_expect_drop(sw, 2, b, len, "mcast_sender"); /* his address, another's port */
	len = packet(b, GROUP4, 1, TTL, 600);
	h_expect_drop(sw, 1, b, len, "mcast_sender");
	write_row(TABLE_INSERT, FWD_MCAST_SENDER, &e1);
	reaches(1, b, len, 0xd);
	assert_int_equal(hits(FWD_MCAST_SENDER, &e), 1);
	assert_int_equal(hits(FWD_MCAST_SENDER, &e1), 1);
	/* The last name gone, everybody is heard. */
	write_row(TABLE_DELETE, FWD_MCAST_SENDER, &e);
	write_row(TABLE_DELETE, FWD_MCAST_SENDER, &e1);
	len = packet(b, GROUP4, 2, TTL, 600);
	reaches(2, b, len, 0xb);
}

static void refused_packets(void **state)
{
	static const char *const link[] = {"224.0.0.251", "ff02::fb", "ff01::1"};
	uint8_t b[H_FRAME_MAX], other[6] = {1, 0, 0x5e, 1, 2, 4};
	const struct wire_ip self = h_ip("10.0.0.1"), none = h_ip("0.0.0.0");
	struct wire_ip dst = h_ip(GROUP4);
	uint8_t mac[6];
	unsigned len;

	(void)state;
	join_all(GROUP4);
	for (unsigned i = 0; i < 3; i++) {
		len = packet(b, link[i], 0, TTL, 8);
		h_expect_drop(sw, 0, b, len, "ip_not_routable");
	}
	len = packet(b, "239.129.2.4", 0, TTL, 8);
	h_expect_drop(sw, 0, b, len, "mcast_unknown");
	len = packet(b, GROUP4, 0, TTL, 8);
	memcpy(b, other, 6); /* of 239.1.2.4 */
	h_expect_drop(sw, 0, b, len, "mcast_mac");
	memcpy(b, h_port_mac(sw, 0), 6);
	h_expect_drop(sw, 0, b, len, "mcast_mac");
	len = packet(b, GROUP4, 0, TTL, 8);
	b[6] |= 1;
	h_expect_drop(sw, 0, b, len, "l2_source");
	wire_multicast_mac(&dst, mac);
	len = h_ip4(b, mac, &self, &dst, PROTO, TTL, "12345678", 8);
	h_expect_drop(sw, 0, b, len, "ip_forged");
	len = h_ip4(b, mac, &none, &dst, PROTO, TTL, "12345678", 8);
	h_expect_drop(sw, 0, b, len, "ip_not_routable");
	len = h_ip4(b, mac, &dst, &dst, PROTO, TTL, "12345678", 8);
	h_expect_drop(sw, 0, b, len, "ip_not_routable");
}

static void refused_rows(void **state)
{
	static const char *const no[] = {"10.0.0.1", "224.0.0.9", "ff02::1:2", "fd00::1"};
	const struct wire_ip four = h_host4(0), six = h_host6(0), group = h_ip(GROUP4);
	struct table_update u[3] = {
		{.table = FWD_MCAST_GROUP}, {.table = FWD_NEIGH}, {.table = FWD_MCAST_GROUP}};
	struct table_entry e;
	struct table_error err;
	struct table_rows rows;
	uint8_t b[H_FRAME_MAX];
	unsigned len;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		e = member(no[i], 1, 0);
		assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MCAST_GROUP, &e, &err), -EINVAL);
		assert_non_null(strstr(err.msg, i == 0 || i == 3 ? "not a multicast" : "its link"));
		e = sender(no[i], &four, 1);
		assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MCAST_SENDER, &e, &err), -EINVAL);
	}
	e = sender(GROUP4, &six, 1);
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MCAST_SENDER, &e, &err), -EINVAL);
	assert_string_equal(err.msg,
		"mcast_sender " GROUP4 ": key.src must be a host's address of the same family");
	e = sender(GROUP4, &group, 1);
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MCAST_SENDER, &e, &err), -EINVAL);
	e = member(GROUP4, 1, 4095);
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MCAST_GROUP, &e, &err), -EINVAL);
	e = member(GROUP4, 1, 0);
	e.key[1].u = 77;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MCAST_GROUP, &e, &err), -EINVAL);
	assert_string_equal(err.msg, "mcast_group " GROUP4 ": there is no such port");

	/* A batch with a bad last row: neither the group nor the neighbour before it are there. */
	u[0].entry = member(GROUP4, 1, 0);
	u[1].entry.key[0].ip = h_ip("10.0.0.99");
	u[1].entry.param[0].u = sw->ports[1].id;
	u[2].entry = member("224.0.0.9", 1, 0);
	assert_int_equal(table_write(sw_tables(sw), u, 3, &err), -EINVAL);
	table_rows(sw_tables(sw), FWD_MCAST_GROUP, &rows);
	assert_int_equal(rows.n, 0);
	len = packet(b, GROUP4, 0, TTL, 8);
	h_expect_drop(sw, 0, b, len, "mcast_unknown");
	u[2].entry = member(GROUP4, 2, 0);
	assert_int_equal(table_write(sw_tables(sw), u, 3, &err), 0);
	reaches(0, b, len, 0x6);
}

/* Two trees for the same members, and a row's packets are counted for as long as it is there. */
static void counted(void **state)
{
	const struct table_entry one = member(GROUP4, 1, 0), three = member(GROUP4, 3, 0);
	const struct table_entry other = member("239.129.2.4", 1, 0);
	const struct wire_ip zero = h_host4(0);
	const struct table_entry from = sender(GROUP4, &zero, 0);
	uint8_t b[H_FRAME_MAX];
	unsigned len = packet(b, GROUP4, 0, TTL, 100);

	(void)state;
	join(GROUP4, 3, 0);
	join(GROUP4, 1, 0);
	join("239.129.2.4", 1, 0);
	join("239.129.2.4", 2, 0);
	reaches(0, b, len, 0xa);
	reaches(0, b, len, 0xa);
	write_row(TABLE_INSERT, FWD_MCAST_SENDER, &from);
	reaches(0, b, len, 0xa);
	join(GROUP4, 0, 0); /* before the others in the order of ports */
	leave(GROUP4, 3);
	reaches(0, b, len, 0x2);
	assert_int_equal(hits(FWD_MCAST_GROUP, &one), 4);
	assert_int_equal(hits(FWD_MCAST_SENDER, &from), 2);
	join(GROUP4, 3, 0);
	assert_int_equal(hits(FWD_MCAST_GROUP, &three), 0);
	len = packet(b, "239.129.2.4", 0, TTL, 100);
	reaches(0, b, len, 0x6);
	assert_int_equal(hits(FWD_MCAST_GROUP, &other), 1);
	assert_int_equal(hits(FWD_MCAST_GROUP, &one), 4);
}

/* One port is down, or takes smaller packets: the others have theirs. */
static void one_port_fails(void **state)
{
	struct port_iface iface = {.up = false, .mtu = MTU};
	const uint16_t mtu = sw->ports[2].config.mtu;
	uint8_t b[H_FRAME_MAX];
	unsigned len = packet(b, GROUP4, 0, TTL, 1400);

	(void)state;
	sw->ports[2].config.mtu = 1000;
	join_all(GROUP4);
	sw->ports[2].config.mtu = mtu;
	sw->ports[1].iface = &iface;
	reaches(0, b, len, 0x8);
	assert_int_equal(h_drop(sw, "tx_link_down"), 1);
	assert_int_equal(h_drop(sw, "ip_mtu"), 1);
	atomic_store(&iface.up, true);
	reaches(0, b, len, 0xa);
	sw->ports[1].iface = NULL;
}

/* Received in pieces, and held by somebody else as well. */
static void foreign_mbufs(void **state)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(sw->pool), *tail = rte_pktmbuf_alloc(sw->pool);
	uint8_t b[H_FRAME_MAX], held[H_FRAME_MAX];
	unsigned len = packet(b, GROUP6, 0, TTL, 1000);
	struct frame f;

	(void)state;
	join_all(GROUP6);
	memcpy(rte_pktmbuf_append(m, 30), b, 30);
	memcpy(rte_pktmbuf_append(tail, (uint16_t)(len - 30)), b + 30, len - 30);
	rte_pktmbuf_chain(m, tail);
	rte_pktmbuf_refcnt_update(m, 1);
	assert_int_equal(rte_ring_enqueue(rte_ring_lookup("p0.rx"), m), 0);
	h_run(sw);
	for (unsigned i = 1; i < N; i++) {
		assert_true(h_take(sw, i, &f));
		is_copy(&f, b, len, i);
	}
	assert_memory_equal(rte_pktmbuf_read(m, 0, 30, held), b, 30);
	rte_pktmbuf_free(m);
}

/* Nothing half-sent, nothing lost for good. */
static void no_buffers(void **state)
{
	const unsigned n = rte_mempool_avail_count(sw->head_pool) - 3;
	struct rte_mbuf **all = calloc(n, sizeof(struct rte_mbuf *));
	uint8_t b[H_FRAME_MAX];
	unsigned len = packet(b, GROUP4, 0, TTL, 1400);

	(void)state;
	join_all(GROUP4);
	assert_int_equal(rte_pktmbuf_alloc_bulk(sw->head_pool, all, n), 0);
	reaches(0, b, len, 0x2); /* three heads: for one copy and a half */
	assert_int_equal(h_drop(sw, "no_mbuf"), 2);
	rte_pktmbuf_free_bulk(all, n);
	free(all);
	reaches(0, b, len, 0xe);
}

/* Copies wait, and are marked each for itself. */
static void marked_alone(void **state)
{
	uint8_t b[H_FRAME_MAX];
	struct frame f;
	unsigned len, marked[N] = {0};

	(void)state;
	h_stop_whole(sw);
	sw = h_start(N, NULL, "{'txd':64,'queue':{'mark_max_kb':1}}");
	join_all(GROUP4);
	len = packet(b, GROUP4, 0, TTL, 1400);
	b[L3 + 1] = 2; /* ECT(0) */
	put_be16(b + L3 + 10, 0);
	put_be16(b + L3 + 10, (uint16_t)~ip_sum(b + L3, 20, 0));
	/* Port 1 stands still, so its queue grows. */
	struct rte_ring *tx = rte_ring_lookup("p1.tx");
	unsigned room = rte_ring_free_count(tx);

	for (unsigned i = 0; i < room + 4; i++) {
		h_inject(sw, 0, b, len);
		h_run(sw);
		for (unsigned port = 2; port < N; port++) {
			assert_true(h_take(sw, port, &f));
			is_copy(&f, b, len, port);
		}
	}
	for (unsigned i = 0; i < room + 4; i++) {
		while (!h_take(sw, 1, &f))
			h_run(sw);
		marked[1] += (f.b[L3 + 1] & 3) == 3;
	}
	assert_in_range(marked[1], 1, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
		T(members_and_nobody_else),
		T(every_length),
		T(roce),
		T(bursts),
		T(vlans),
		T(hops),
		T(loop),
		T(senders),
		T(refused_packets),
		T(refused_rows),
		T(counted),
		T(one_port_fails),
		T(foreign_mbufs),
		T(no_buffers),
		T(marked_alone),
#undef T
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
