/* SPDX-License-Identifier: BSD-3-Clause */
/* Table acl in a switch: what it lets in, which packets meet it, what is counted, and how it
 * changes with the other tables. */
#include <errno.h>
#include <string.h>

#include "collective.h"
#include "lib/wire/bytes.h"
#include "lib/wire/multicast.h"

enum { N = 4, L3 = ETH_HDR_LEN, TTL = 9, TOS = 0x68, SPORT = 1111, DPORT = 2222 };
enum { SRC, DST, PROTOCOL, SPORTS, DPORTS, HAS_PORTS, DSCP, PORT, VLAN };

/* ---- rows ---- */

/* Everything, until something is named. */
static struct table_entry row(int32_t priority, enum acl_action action)
{
	struct table_entry e = {.priority = priority, .action = action};

	e.key[SRC].any = e.key[DST].any = true;
	e.key[SPORTS].high = e.key[DPORTS].high = UINT16_MAX;
	return e;
}

static struct table_entry with(struct table_entry e, unsigned key, uint64_t value, uint64_t mask)
{
	e.key[key].u = value;
	e.key[key].mask = mask; /* of a range: its upper end */
	return e;
}

static struct table_entry prefix(struct table_entry e, unsigned key, const char *ip, uint8_t bits)
{
	e.key[key] = (struct table_value){.ip = h_ip(ip), .prefix = bits};
	return e;
}

static void put(enum table_verb verb, const struct table_entry e)
{
	struct table_error why;

	if (h_write(sw, verb, FWD_ACL, &e, &why) != 0)
		fail_msg("%s", why.msg);
}

static void refused(const struct table_entry e, const char *why)
{
	struct table_error err;

	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_ACL, &e, &err), -EINVAL);
	assert_string_equal(err.msg, why);
}

static uint64_t hits(unsigned i)
{
	uint64_t n;

	assert_true(sw_table_hits(sw, FWD_ACL, i, &n));
	return n;
}

/* ---- packets ---- */

static const uint8_t ports[8] = {SPORT >> 8, SPORT & 255, DPORT >> 8, DPORT & 255, 0, 8, 0, 0};

static unsigned packet4(uint8_t *b, unsigned from, unsigned to, uint8_t proto)
{
	const struct wire_ip src = h_host4(from), dst = h_host4(to);

	return h_ip4(b, h_port_mac(sw, from), &src, &dst, proto, TTL, ports, sizeof(ports));
}

static unsigned packet6(uint8_t *b, unsigned from, unsigned to, uint8_t proto)
{
	const struct wire_ip src = h_host6(from), dst = h_host6(to);

	return h_ip6(b, h_port_mac(sw, from), &src, &dst, proto, TTL, ports, sizeof(ports));
}

static void passes(unsigned in, const uint8_t *b, unsigned len, unsigned out)
{
	struct frame f;

	h_exchange(sw, in, b, len, out, &f);
}

static void dropped(unsigned in, const uint8_t *b, unsigned len)
{
	h_expect_drop(sw, in, b, len, "acl_denied");
}

static uint64_t node_packets;

static void count_node(
	void *arg, const char *node, uint64_t calls, uint64_t packets, uint64_t cycles)
{
	(void)calls, (void)cycles;
	if (strcmp(node, arg) == 0)
		node_packets = packets;
}

static uint64_t seen_by_node(void)
{
	char name[] = "acl";

	sw_nodes(sw, count_node, name);
	return node_packets;
}

/* ---- what it lets in ---- */

/* Each key alone: the row has a packet that fits, and no other. */
static void every_key(void **state)
{
	const struct {
		struct table_entry e;
		bool tcp4,
			udp6; /* denied: TCP of host 0 to 1 in IPv4, UDP of host 2 to 3 in IPv6 */
	} rows[] = {
		{row(0, ACL_DENY), true, true},
		{prefix(row(0, ACL_DENY), SRC, "10.0.0.8", 29), true, false},
		{prefix(row(0, ACL_DENY), SRC, "fd00::", 16), false, true},
		{prefix(row(0, ACL_DENY), SRC, "0.0.0.0", 0), true, false},
		{prefix(row(0, ACL_DENY), SRC, "::", 0), false, true},
		{prefix(row(0, ACL_DENY), DST, "10.0.0.11", 32), true, false},
		{prefix(row(0, ACL_DENY), DST, "fd00::d", 128), false, true},
		{prefix(row(0, ACL_DENY), DST, "fd00::e", 128), false, false},
		{with(row(0, ACL_DENY), PROTOCOL, IP_PROTO_TCP, 255), true, false},
		{with(row(0, ACL_DENY), PROTOCOL, 0, 2), false, true},
		{with(row(0, ACL_DENY), SPORTS, SPORT, SPORT), true, true},
		{with(row(0, ACL_DENY), SPORTS, 0, SPORT - 1), false, false},
		{with(row(0, ACL_DENY), DPORTS, 2000, DPORT), true, true},
		{with(row(0, ACL_DENY), DPORTS, DPORT + 1, 9999), false, false},
		{with(row(0, ACL_DENY), HAS_PORTS, 1, 1), true, true},
		{with(row(0, ACL_DENY), HAS_PORTS, 0, 1), false, false},
		{with(row(0, ACL_DENY), DSCP, TOS >> 2, 63), true, false},
		{with(row(0, ACL_DENY), DSCP, 0, 63), false, true},
		{with(row(0, ACL_DENY), PORT, sw->ports[0].id, UINT16_MAX), true, false},
		{with(row(0, ACL_DENY), PORT, sw->ports[2].id, UINT16_MAX), false, true},
		{with(row(0, ACL_DENY), VLAN, 0, 4095), true, true},
		{with(row(0, ACL_DENY), VLAN, 7, 4095), false, false},
	};
	uint8_t four[H_FRAME_MAX], six[H_FRAME_MAX];
	const unsigned len4 = packet4(four, 0, 1, IP_PROTO_TCP);
	const unsigned len6 = packet6(six, 2, 3, IP_PROTO_UDP);

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put(TABLE_INSERT, rows[i].e);
		if (rows[i].tcp4)
			dropped(0, four, len4);
		else
			passes(0, four, len4, 1);
		if (rows[i].udp6)
			dropped(2, six, len6);
		else
			passes(2, six, len6, 3);
		assert_int_equal(hits(0), rows[i].tcp4 + rows[i].udp6);
		put(TABLE_DELETE, rows[i].e);
	}
}

static void priorities(void **state)
{
	const struct table_entry deny = row(-5, ACL_DENY);
	const struct table_entry tcp = with(row(3, ACL_PERMIT), PROTOCOL, IP_PROTO_TCP, 255);
	const struct table_entry to1 = prefix(row(3, ACL_DENY), DST, "10.0.0.11", 32);
	uint8_t b[H_FRAME_MAX];
	unsigned len;

	(void)state;
	put(TABLE_INSERT, deny);
	put(TABLE_INSERT, tcp);
	put(TABLE_INSERT, to1);
	len = packet4(b, 0, 1, IP_PROTO_TCP);
	passes(0, b, len, 1); /* of equals, the older */
	len = packet4(b, 0, 1, IP_PROTO_UDP);
	dropped(0, b, len);
	len = packet4(b, 0, 2, IP_PROTO_UDP);
	dropped(0, b, len);
	assert_int_equal(hits(0), 1);
	assert_int_equal(hits(1), 1);
	assert_int_equal(hits(2), 1);
	/* Inserted anew, it is the youngest. */
	put(TABLE_DELETE, tcp);
	put(TABLE_INSERT, tcp);
	len = packet4(b, 0, 1, IP_PROTO_TCP);
	dropped(0, b, len);
	assert_int_equal(hits(0), 1);
	assert_int_equal(hits(1), 2);
	assert_int_equal(hits(2), 0);
}

static void marks(void **state)
{
	struct table_entry e = row(0, ACL_DSCP);
	uint8_t b[H_FRAME_MAX];
	struct wire_pkt pkt;
	struct frame f;
	unsigned len;

	(void)state;
	e.param[0].u = 46;
	put(TABLE_INSERT, e);
	for (unsigned v6 = 0; v6 < 2; v6++) {
		len = v6 ? packet6(b, 0, 1, IP_PROTO_UDP) : packet4(b, 0, 1, IP_PROTO_UDP);
		ip_put_tos(b + L3, 0x21); /* ECT(1) */
		h_exchange(sw, 0, b, len, 1, &f);
		assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK); /* the checksum too */
		assert_int_equal(pkt.tos, 46 << 2 | 1);
		assert_memory_equal(f.b + len - sizeof(ports), ports, sizeof(ports));
	}
	assert_int_equal(hits(0), 2);
}

static void refused_rows(void **state)
{
	(void)state;
	refused(prefix(prefix(row(0, ACL_DENY), SRC, "10.0.0.0", 8), DST, "fd00::", 8),
		"acl: key.src and key.dst must be of one family");
	refused(with(with(row(0, ACL_DENY), SPORTS, 1, 2), HAS_PORTS, 0, 1),
		"acl: key.sport and key.dport need packets that have ports");
	refused(prefix(row(0, ACL_DENY), SRC, "10.0.0.1", 8),
		"10.0.0.1/8 has host bits set, the network is 10.0.0.0/8");
	refused(with(row(0, ACL_DENY), SPORTS, 9, 8), "range 9..8 is empty");
	refused(with(row(0, ACL_DENY), VLAN, 0, 8191), "mask 0x1fff is wider than 0xfff");
}

/* ---- which packets meet it ---- */

/* What is for the switch itself, groups, and what is learnt of neighbours. */
static void kinds(void **state)
{
	const struct wire_ip host = h_host4(0), own = h_ip("10.0.0.1"), group = h_ip("239.1.2.3");
	const struct wire_ip host6 = h_host6(0), own6 = h_ip("fd00::1");
	uint8_t b[H_FRAME_MAX], mac[6], hmac[6];
	const uint8_t echo[8] = {8, 0, 0xf7, 0xff};
	struct frame f;
	unsigned len;

	(void)state;
	put(TABLE_INSERT, row(0, ACL_DENY));
	len = h_ip4(b, h_port_mac(sw, 0), &host, &own, IP_PROTO_ICMP, TTL, echo, sizeof(echo));
	dropped(0, b, len);
	wire_multicast_mac(&group, mac);
	len = h_ip4(b, mac, &host, &group, 99, TTL, "x", 1);
	dropped(0, b, len);
	h_exchange(sw, 0, b, h_arp(b, ARP_REQUEST, &host, &own, 0), 0, &f);
	h_host_mac(0, hmac);
	len = (unsigned)wire_build_ns(b, sizeof(b), hmac, &host6, &own6, 0);
	h_exchange(sw, 0, b, len, 0, &f);
	assert_int_equal(hits(0), 2);
}

/* No way around a port: what hides it is looked behind, what has none can be named. */
static void hidden_ports(void **state)
{
	const uint8_t behind[24] = {IP_PROTO_UDP, 0, 0, 0, 0, 0, 0, 0, SPORT >> 8, SPORT & 255,
		DPORT >> 8, DPORT & 255};
	const uint8_t fragment[32] = {60, 0, 0, 1, 0, 0, 0, 5, IP_PROTO_UDP, 0, 0, 0, 0, 0, 0, 0,
		SPORT >> 8, SPORT & 255, DPORT >> 8, DPORT & 255};
	const struct wire_ip src = h_host6(0), dst = h_host6(1);
	uint8_t b[H_FRAME_MAX];
	unsigned len;

	(void)state;
	put(TABLE_INSERT, with(row(2, ACL_DENY), DPORTS, DPORT, DPORT));
	put(TABLE_INSERT, with(with(row(2, ACL_DENY), DPORTS, 0, 0), PROTOCOL, IP_PROTO_UDP, 255));
	len = h_ip6(b, h_port_mac(sw, 0), &src, &dst, 60, TTL, behind, sizeof(behind));
	dropped(0, b, len);
	b[L3 + 6] = 44; /* the same bytes are a first fragment's header */
	dropped(0, b, len);
	put_be16(b + L3 + 42, 8 << 3); /* a later one: its bytes are no ports, not even 0 */
	passes(0, b, len, 1);
	len = h_ip6(b, h_port_mac(sw, 0), &src, &dst, 44, TTL, fragment, sizeof(fragment));
	dropped(0, b, len);
	put_be16(b + L3 + 42, 8 << 3); /* a later one that does not say what it is of */
	passes(0, b, len, 1);
	put(TABLE_INSERT, with(row(1, ACL_DENY), PROTOCOL, 44, 255));
	dropped(0, b, len);
	len = packet4(b, 0, 1, IP_PROTO_UDP);
	put_be16(b + L3 + 6, 0x2000);
	put_be16(b + L3 + 10, 0);
	put_be16(b + L3 + 10, (uint16_t)~ip_sum(b + L3, 20, 0));
	dropped(0, b, len);
	put_be16(b + L3 + 6, 7);
	put_be16(b + L3 + 10, 0);
	put_be16(b + L3 + 10, (uint16_t)~ip_sum(b + L3, 20, 0));
	passes(0, b, len, 1);
	put(TABLE_INSERT, with(row(1, ACL_DENY), HAS_PORTS, 0, 1));
	dropped(0, b, len);
}

/* A host that is not the switch's business. */
static unsigned foreign(uint8_t *b, unsigned from)
{
	const unsigned len = packet4(b, from, 1, IP_PROTO_UDP);

	memcpy(b, (uint8_t[]){2, 9, 9, 9, 9, 9}, 6);
	memcpy(b + 6, (uint8_t[]){2, 9, 9, 9, 9, (uint8_t)from}, 6);
	return len;
}

static unsigned bridged(unsigned in, const uint8_t *b, unsigned len)
{
	unsigned reached = 0;
	struct frame f;

	h_inject(sw, in, b, len);
	h_run(sw);
	for (unsigned i = 0; i < N; i++)
		while (h_take(sw, i, &f))
			reached |= 1u << i;
	h_check_balance(sw);
	return reached;
}

/* Frames of a bridge meet it too, and those that lie about what they are do not get past it. */
static void bridges(void **state)
{
	uint8_t b[H_FRAME_MAX];
	unsigned len = foreign(b, 0);

	(void)state;
	assert_int_equal(bridged(0, b, len), 0xe);
	b[L3 + 8]++; /* a wrong checksum is its receiver's business */
	assert_int_equal(bridged(0, b, len), 0xe);
	put(TABLE_INSERT, prefix(row(0, ACL_DENY), SRC, "10.0.0.0", 8));
	assert_int_equal(bridged(0, b, len), 0); /* but cannot be looked up */
	assert_int_equal(h_drop(sw, "parse_ipsum"), 1);
	len = foreign(b, 0);
	dropped(0, b, len);
	assert_int_equal(hits(0), 1);
	put_be16(b + 12, 0x88b5); /* not IP */
	assert_int_equal(bridged(0, b, len), 0xe);
	put(TABLE_MODIFY, prefix(row(0, ACL_PERMIT), SRC, "10.0.0.0", 8));
	len = foreign(b, 0);
	assert_int_equal(bridged(0, b, len), 0xe);
	assert_int_equal(hits(0), 2);
}

/* A collective, whose packets other workers hand over: each is looked up once. */
static void collective(void **state)
{
	uint8_t payload[CTRL_LEN], b[H_FRAME_MAX];
	unsigned slot, len;
	uint32_t imm;

	(void)state;
	c_spec(N, 1024, false, false);
	slot = c_create();
	put(TABLE_INSERT, row(0, ACL_PERMIT));
	put(TABLE_INSERT, prefix(row(1, ACL_DENY), SRC, "10.0.0.13", 32));
	imm = c_control(payload, 1024, 1024, 0);
	for (unsigned i = 0; i < N; i++) {
		len = c_host_frame(
			b, slot, i, ROCE_SEND_ONLY_IMM, START_PSN, imm, payload, CTRL_LEN);
		h_inject(sw, i, b, len);
		h_run(sw);
	}
	assert_int_equal(hits(0), N - 1);
	assert_int_equal(hits(1), 1);
	assert_int_equal(h_drop(sw, "acl_denied"), 1);
	assert_int_equal(sw_group_get(sw, slot)->count[INC_C_RX], N - 1);
}

/* ---- how it changes ---- */

/* Without rows nothing comes by the node; with rows everything that it is for does. */
static void empty(void **state)
{
	const struct table_entry e = with(row(0, ACL_DENY), VLAN, 9, 4095);
	uint8_t b[H_FRAME_MAX];
	const unsigned len = packet4(b, 0, 1, IP_PROTO_UDP);
	uint64_t n, none;

	(void)state;
	passes(0, b, len, 1);
	n = seen_by_node();
	assert_int_equal(n, 0);
	put(TABLE_INSERT, e);
	passes(0, b, len, 1);
	assert_int_equal(seen_by_node(), n + 1);
	assert_int_equal(hits(0), 0);
	put(TABLE_DELETE, e);
	passes(0, b, len, 1);
	assert_int_equal(seen_by_node(), n + 1);
	assert_false(sw_table_hits(sw, FWD_ACL, 0, &none));
}

/* Rows keep their counts while others come and go, and are changed; anew they begin at 0. */
static void counts_stay(void **state)
{
	const struct table_entry a = prefix(row(1, ACL_PERMIT), SRC, "10.0.0.10", 32);
	const struct table_entry b = prefix(row(1, ACL_PERMIT), SRC, "10.0.0.11", 32);
	struct table_entry changed = b;
	uint8_t f[H_FRAME_MAX];
	unsigned len;

	(void)state;
	put(TABLE_INSERT, a);
	put(TABLE_INSERT, b);
	for (unsigned i = 0; i < 3; i++) {
		len = packet4(f, i % 2, 2, IP_PROTO_UDP);
		passes(i % 2, f, len, 2);
	}
	put(TABLE_DELETE, a);
	assert_int_equal(hits(0), 1);
	put(TABLE_INSERT, a);
	changed.action = ACL_DENY;
	put(TABLE_MODIFY, changed);
	assert_int_equal(hits(0), 1);
	assert_int_equal(hits(1), 0);
	len = packet4(f, 1, 2, IP_PROTO_UDP);
	dropped(1, f, len);
	assert_int_equal(hits(0), 2);
}

/* With other tables in a batch: all or nothing; and each table alone makes what it is for anew. */
static void batches(void **state)
{
	struct table_update u[3] = {{.table = FWD_ACL, .entry = row(0, ACL_DENY)},
		{.table = FWD_ROUTE4}, {.table = FWD_ROUTE4}};
	const struct wire_ip host = h_host4(0), far = h_ip("20.0.0.1");
	const struct fwd *fwd = sw->fwd;
	const struct acl *acl;
	struct table_error why;
	uint8_t b[H_FRAME_MAX];
	unsigned len;

	(void)state;
	u[1].entry.key[0] = (struct table_value){.ip = h_ip("20.0.0.0"), .prefix = 8};
	u[1].entry.param[0].ip = h_host4(1);
	u[2].entry.key[0] = (struct table_value){.ip = h_ip("10.0.0.1"), .prefix = 32};
	u[2].entry.param[0].ip = h_host4(1);
	assert_int_equal(table_write(sw_tables(sw), u, 3, &why), -EINVAL); /* our own address */
	assert_ptr_equal(sw->fwd, fwd);
	len = h_ip4(b, h_port_mac(sw, 0), &host, &far, 99, TTL, "x", 1);
	h_expect_drop(sw, 0, b, len, "ip_no_route");
	u[0].entry.key[DST] = (struct table_value){.ip = h_ip("20.0.0.0"), .prefix = 8};
	u[0].entry.key[SRC] = (struct table_value){.ip = h_ip("fd00::"), .prefix = 8};
	assert_int_equal(table_write(sw_tables(sw), u, 2, &why), -EINVAL);
	assert_ptr_equal(sw->fwd, fwd);
	h_expect_drop(sw, 0, b, len, "ip_no_route");
	u[0].entry.key[SRC] = (struct table_value){.any = true};
	assert_int_equal(table_write(sw_tables(sw), u, 2, &why), 0);
	assert_ptr_not_equal(sw->fwd, fwd);
	dropped(0, b, len);
	fwd = sw->fwd;
	acl = atomic_load(&sw->published)->acl;
	put(TABLE_INSERT, row(-1, ACL_DSCP));
	assert_ptr_equal(sw->fwd, fwd);
	acl = atomic_load(&sw->published)->acl;
	u[1].verb = TABLE_DELETE;
	assert_int_equal(table_write(sw_tables(sw), &u[1], 1, &why), 0);
	assert_ptr_equal(atomic_load(&sw->published)->acl, acl);
	assert_ptr_not_equal(sw->fwd, fwd);
	dropped(0, b, len);
	assert_int_equal(hits(0), 2);
}

/* As many as there may be, all different, and one more. */
static void full(void **state)
{
	static struct table_update u[1024];
	struct table_error why;
	uint8_t b[H_FRAME_MAX];
	unsigned len;

	(void)state;
	for (unsigned i = 0; i < 1024; i++) {
		u[i].table = FWD_ACL;
		u[i].entry = with(row((int32_t)i, ACL_DENY), DPORTS, 3000 + i, 3000 + i + i % 3);
		if (i % 3 == 0)
			u[i].entry = prefix(u[i].entry, SRC,
				i % 2 ? "10.0.0.0" : "fd00::", (uint8_t)(8 + i % 9));
	}
	assert_int_equal(table_write(sw_tables(sw), u, 1024, &why), 0);
	len = packet4(b, 0, 1, IP_PROTO_UDP);
	passes(0, b, len, 1);
	put_be16(b + L3 + 22, 3001);
	dropped(0, b, len);
	u[0].entry.priority = -1;
	assert_int_equal(table_write(sw_tables(sw), u, 1, &why), -ENOSPC);
	assert_string_equal(why.msg, "table acl is full, its size is 1024");
}

/* Rows that would keep the control thread for minutes are refused, and nothing changes. */
static void crossing(void **state)
{
	static struct table_update u[512];
	struct table_error why;
	uint8_t b[H_FRAME_MAX];

	(void)state;
	for (unsigned i = 0; i < 512; i++) {
		u[i].table = FWD_ACL;
		u[i].entry = with(row((int32_t)i, ACL_DENY), DPORTS, 3000 - i, 3000 + 2 * i);
		u[i].entry = with(u[i].entry, SPORTS, i, 65535 - i);
		u[i].entry = prefix(u[i].entry, SRC, "10.0.0.0", (uint8_t)(8 + i % 17));
	}
	put(TABLE_INSERT, row(-1, ACL_DSCP));
	assert_int_equal(table_write(sw_tables(sw), u, 512, &why), -ENOSPC);
	assert_non_null(strstr(why.msg, "too many rows cross one another"));
	passes(0, b, packet4(b, 0, 1, IP_PROTO_UDP), 1);
	assert_int_equal(hits(0), 1);
}

static int refusal; /* of the matcher, if not 0 */

int __real_ternary_create(const struct table_rows *rows, const struct ternary_layout *layout,
	size_t max_bytes, struct ternary **t);
int __wrap_ternary_create(const struct table_rows *rows, const struct ternary_layout *layout,
	size_t max_bytes, struct ternary **t);
int __wrap_ternary_create(const struct table_rows *rows, const struct ternary_layout *layout,
	size_t max_bytes, struct ternary **t)
{
	*t = NULL;
	return refusal != 0 ? refusal : __real_ternary_create(rows, layout, max_bytes, t);
}

/* Who writes rows is told what is the matter, and of memory only if it is that. */
static void reasons(void **state)
{
	const struct table_entry e = row(0, ACL_DENY);
	struct table_error err;

	(void)state;
	refusal = -ENOMEM;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_ACL, &e, &err), -ENOMEM);
	assert_non_null(strstr(err.msg, "memory"));
	refusal = -EINVAL;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_ACL, &e, &err), -EINVAL);
	assert_null(strstr(err.msg, "memory"));
	refusal = 0;
	put(TABLE_INSERT, e);
}

/* ---- the switch ---- */

static int start(void **state)
{
	(void)state;
	sw = h_start(N, NULL, NULL);
	return 0;
}

static int start_bridged(void **state)
{
	(void)state;
	sw = h_start(N, NULL, "{'bridge':[0]}");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	h_stop_whole(sw);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
		T(every_key),
		T(priorities),
		T(marks),
		T(refused_rows),
		T(kinds),
		T(hidden_ports),
		T(empty),
		T(counts_stay),
		T(batches),
		T(full),
		T(crossing),
		T(reasons),
#undef T
		cmocka_unit_test_setup_teardown(bridges, start_bridged, stop),
		cmocka_unit_test_setup_teardown(collective, c_start, c_stop),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
