/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dataplane/table.h"

/* ---- two small tables ---- */

static const struct table_desc neigh = {
	.name = "neigh",
	.size = 4,
	.n_keys = 1,
	.keys = {{.name = "ip", .type = TABLE_IP}},
	.n_actions = 2,
	.actions = {{.name = "set",
			    .n_params = 3,
			    .params = {{.name = "mac", .type = TABLE_MAC},
				    {.name = "port", .type = TABLE_PORT},
				    {.name = "vlan", .min = 1, .max = 4094, .optional = true}}},
		{.name = "drop"}},
};

static const struct table_desc route = {
	.name = "route",
	.size = 200000,
	.n_keys = 1,
	.keys = {{.name = "dst", .type = TABLE_IP, .match = TABLE_LPM}},
	.n_actions = 1,
	.actions = {{.name = "via", .n_params = 1, .params = {{.name = "hop", .type = TABLE_IP}}}},
};

static const struct table_desc acl = {
	.name = "acl",
	.size = 100,
	.n_keys = 4,
	.keys = {{.name = "type", .match = TABLE_TERNARY, .max = 0xffff},
		{.name = "dport", .match = TABLE_RANGE, .max = 65535},
		{.name = "tagged", .type = TABLE_BOOL},
		{.name = "src", .type = TABLE_IP4, .match = TABLE_LPM}},
	.n_actions = 1,
	.actions = {{.name = "mark",
		.n_params = 2,
		.params = {{.name = "dscp", .max = 63},
			{.name = "to", .type = TABLE_IP6, .optional = true}}}},
};

enum { NEIGH, ROUTE, ACL };

struct seen {
	unsigned calls;
	int rc;
	const char *msg;
	unsigned index;
	bool set_index;
	struct table_rows rows[3];
};

static int publish(void *arg, const struct table_rows *tables, unsigned n, struct table_error *err)
{
	struct seen *s = arg;

	s->calls++;
	assert_int_equal(n, 3);
	for (unsigned i = 0; i < n; i++)
		s->rows[i] = tables[i];
	if (s->msg)
		snprintf(err->msg, sizeof(err->msg), "%s", s->msg);
	if (s->set_index)
		err->index = s->index;
	return s->rc;
}

struct fixture {
	struct table_registry *reg;
	struct seen seen;
	struct table_error err;
};

static int setup(void **state)
{
	static const struct table_desc *const descs[] = {&neigh, &route, &acl};
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(table_registry_create(descs, 3, publish, &f->seen, &f->reg), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	table_registry_destroy(f->reg);
	free(f);
	return 0;
}

static struct wire_ip ip(const char *text)
{
	struct wire_ip out;

	assert_int_equal(wire_ip_parse(text, &out), 0);
	return out;
}

static struct table_update neigh_up(enum table_verb verb, const char *addr, unsigned port)
{
	struct table_update u = {.verb = verb, .table = NEIGH};

	u.entry.key[0].ip = ip(addr);
	u.entry.param[1].u = port;
	return u;
}

static struct table_update route_up(enum table_verb verb, const char *net, unsigned prefix)
{
	struct table_update u = {.verb = verb, .table = ROUTE};

	u.entry.key[0].ip = ip(net);
	u.entry.key[0].prefix = (uint8_t)prefix;
	u.entry.param[0].ip = ip("10.0.0.9");
	return u;
}

static struct table_update acl_up(enum table_verb verb, int priority)
{
	struct table_update u = {.verb = verb, .table = ACL};

	u.entry.key[0].u = 0x0800;
	u.entry.key[0].mask = 0xfc00;
	u.entry.key[1].u = 1;
	u.entry.key[1].high = 1023;
	u.entry.key[3].ip = ip("10.0.0.0");
	u.entry.key[3].prefix = 8;
	u.entry.priority = priority;
	return u;
}

static int write1(struct fixture *f, struct table_update u)
{
	return table_write(f->reg, &u, 1, &f->err);
}

static uint32_t count(struct fixture *f, unsigned table)
{
	struct table_rows rows;

	table_rows(f->reg, table, &rows);
	return rows.n;
}

/* ---- tests ---- */

static void test_create_refuses_nonsense(void **state)
{
	struct table_registry *reg = NULL;
	struct table_desc d = neigh;
	const struct table_desc *one[] = {&d}, *twice[] = {&neigh, &neigh};

	(void)state;
	assert_int_equal(table_registry_create(twice, 2, NULL, NULL, &reg), -EEXIST);
	d.size = 0;
	assert_int_equal(table_registry_create(one, 1, NULL, NULL, &reg), -EINVAL);
	d = neigh;
	d.n_keys = 0;
	assert_int_equal(table_registry_create(one, 1, NULL, NULL, &reg), -EINVAL);
	d.n_keys = TABLE_MAX_KEYS + 1;
	assert_int_equal(table_registry_create(one, 1, NULL, NULL, &reg), -EINVAL);
	d = neigh;
	d.keys[0].match = TABLE_TERNARY;
	assert_int_equal(table_registry_create(one, 1, NULL, NULL, &reg), -EINVAL);
	d = neigh;
	d.keys[0].type = TABLE_MAC;
	d.keys[0].match = TABLE_LPM;
	assert_int_equal(table_registry_create(one, 1, NULL, NULL, &reg), -EINVAL);
	d = neigh;
	d.actions[1].name = "set";
	assert_int_equal(table_registry_create(one, 1, NULL, NULL, &reg), -EINVAL);
	d = neigh;
	d.actions[0].params[1].name = "mac";
	assert_int_equal(table_registry_create(one, 1, NULL, NULL, &reg), -EINVAL);
	assert_null(reg);
	d = neigh;
	assert_int_equal(table_registry_create(one, 1, NULL, NULL, &reg), 0);
	table_registry_destroy(reg);
	table_registry_destroy(NULL);
}

static void test_find(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(table_count(f->reg), 3);
	assert_int_equal(table_find(f->reg, "acl"), ACL);
	assert_int_equal(table_find(f->reg, "nat"), -ENOENT);
	assert_ptr_equal(table_desc(f->reg, ROUTE), &route);
	assert_null(table_desc(f->reg, 3));
}

static void test_insert_modify_delete(void **state)
{
	struct fixture *f = *state;
	struct table_rows rows;

	assert_int_equal(write1(f, neigh_up(TABLE_INSERT, "10.0.0.1", 3)), 0);
	assert_int_equal(f->seen.calls, 1);
	assert_int_equal(f->seen.rows[NEIGH].n, 1);
	assert_int_equal(f->seen.rows[ROUTE].n, 0);

	assert_int_equal(write1(f, neigh_up(TABLE_INSERT, "10.0.0.1", 4)), -EEXIST);
	assert_int_equal(f->err.index, 0);
	assert_string_equal(f->err.path, "key");
	assert_string_equal(f->err.msg, "table neigh has an entry with this key");
	assert_int_equal(f->seen.calls, 1);

	assert_int_equal(write1(f, neigh_up(TABLE_MODIFY, "10.0.0.1", 4)), 0);
	table_rows(f->reg, NEIGH, &rows);
	assert_ptr_equal(rows.desc, &neigh);
	assert_int_equal(rows.n, 1);
	assert_int_equal(rows.entry[0].param[1].u, 4);

	assert_int_equal(write1(f, neigh_up(TABLE_MODIFY, "10.0.0.2", 4)), -ENOENT);
	assert_string_equal(f->err.msg, "table neigh has no entry with this key");
	assert_int_equal(write1(f, neigh_up(TABLE_DELETE, "10.0.0.2", 4)), -ENOENT);
	assert_int_equal(write1(f, neigh_up(TABLE_DELETE, "10.0.0.1", 0)), 0);
	assert_int_equal(count(f, NEIGH), 0);
	assert_int_equal(f->seen.rows[NEIGH].n, 0);
	assert_int_equal(write1(f, neigh_up(TABLE_DELETE, "10.0.0.1", 0)), -ENOENT);
}

/* An IPv4 and an IPv6 default route are two keys although both have prefix length 0. */
static void test_both_families(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(write1(f, route_up(TABLE_INSERT, "0.0.0.0", 0)), 0);
	assert_int_equal(write1(f, route_up(TABLE_INSERT, "::", 0)), 0);
	assert_int_equal(write1(f, route_up(TABLE_INSERT, "10.0.0.0", 8)), 0);
	assert_int_equal(write1(f, route_up(TABLE_INSERT, "10.0.0.0", 9)), 0);
	assert_int_equal(write1(f, route_up(TABLE_INSERT, "10.0.0.0", 8)), -EEXIST);
	assert_int_equal(count(f, ROUTE), 4);
}

static void expect_bad(
	struct fixture *f, struct table_update u, int rc, const char *path, const char *msg)
{
	struct table_update batch[3] = {
		route_up(TABLE_INSERT, "10.1.0.0", 16), u, route_up(TABLE_INSERT, "10.2.0.0", 16)};
	unsigned calls = f->seen.calls;
	uint32_t before[3] = {count(f, 0), count(f, 1), count(f, 2)};

	assert_int_equal(table_write(f->reg, batch, 3, &f->err), rc);
	assert_int_equal(f->err.index, 1);
	assert_string_equal(f->err.path, path);
	assert_string_equal(f->err.msg, msg);
	assert_int_equal(f->seen.calls, calls);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(count(f, i), before[i]);
}

static void test_bad_lpm(void **state)
{
	struct fixture *f = *state;

	expect_bad(f, route_up(TABLE_INSERT, "10.0.0.1", 24), -EINVAL, "key.dst",
		"10.0.0.1/24 has host bits set, the network is 10.0.0.0/24");
	expect_bad(f, route_up(TABLE_INSERT, "fd00::1:0", 96), -EINVAL, "key.dst",
		"fd00::1:0/96 has host bits set, the network is fd00::/96");
	expect_bad(f, route_up(TABLE_INSERT, "0.0.0.1", 0), -EINVAL, "key.dst",
		"0.0.0.1/0 has host bits set, the network is 0.0.0.0/0");
	expect_bad(f, route_up(TABLE_INSERT, "10.0.0.0", 33), -EINVAL, "key.dst",
		"prefix length 33 > 32");
	expect_bad(f, route_up(TABLE_DELETE, "fd00::", 129), -EINVAL, "key.dst",
		"prefix length 129 > 128");
	assert_int_equal(write1(f, route_up(TABLE_INSERT, "10.0.0.1", 32)), 0);
	assert_int_equal(write1(f, route_up(TABLE_INSERT, "fd00::1", 128)), 0);
}

static void test_bad_ternary_and_range(void **state)
{
	struct fixture *f = *state;
	struct table_update u = acl_up(TABLE_INSERT, 0);

	u.entry.key[0].mask = 0x10000;
	u.entry.key[0].u = 0;
	expect_bad(f, u, -EINVAL, "key.type", "mask 0x10000 is wider than 0xffff");
	u.entry.key[0].mask = 0x0f00;
	u.entry.key[0].u = 0x1800;
	expect_bad(f, u, -EINVAL, "key.type", "value 0x1800 has bits outside its mask 0xf00");
	u = acl_up(TABLE_INSERT, 0);
	u.entry.key[1].u = 9;
	u.entry.key[1].high = 8;
	expect_bad(f, u, -EINVAL, "key.dport", "range 9..8 is empty");
	u.entry.key[1].high = 65536;
	expect_bad(f, u, -EINVAL, "key.dport", "65536 is not in 0..65535");
	u = acl_up(TABLE_INSERT, 0);
	u.entry.key[2].u = 2;
	expect_bad(f, u, -EINVAL, "key.tagged", "2 is not a boolean");
	u = acl_up(TABLE_INSERT, 0);
	u.entry.key[3].ip = ip("fd00::");
	expect_bad(f, u, -EINVAL, "key.src", "fd00:: is not an IPv4 address");
}

static void test_bad_action_and_data(void **state)
{
	struct fixture *f = *state;
	struct table_update u = acl_up(TABLE_INSERT, 0);

	u.entry.action = 1;
	expect_bad(f, u, -EINVAL, "action", "table acl has no action 1");
	u = acl_up(TABLE_INSERT, 0);
	u.entry.param[0].u = 64;
	expect_bad(f, u, -EINVAL, "data.dscp", "64 is not in 0..63");
	u = acl_up(TABLE_INSERT, 0);
	u.entry.param[1].ip = ip("10.0.0.1");
	expect_bad(f, u, -EINVAL, "data.to", "10.0.0.1 is not an IPv6 address");
	u = neigh_up(TABLE_INSERT, "10.0.0.1", 65536);
	expect_bad(f, u, -EINVAL, "data.port", "65536 is not a port id");
	u = neigh_up(TABLE_INSERT, "10.0.0.1", 1);
	u.entry.param[2].u = 4095;
	expect_bad(f, u, -EINVAL, "data.vlan", "4095 is not in 1..4094");
	u.entry.priority = 1;
	u.entry.param[2].u = 0; /* absent */
	expect_bad(f, u, -EINVAL, "priority",
		"table neigh has no ternary or range key, so no priorities");
	u.entry.priority = 0;
	assert_int_equal(write1(f, u), 0);
	u.table = 3;
	expect_bad(f, u, -EINVAL, "table", "3 is unknown");
	u.table = NEIGH;
	u.verb = (enum table_verb)3;
	expect_bad(f, u, -EINVAL, "verb", "3 is unknown");
}

static void test_priority_is_part_of_identity(void **state)
{
	struct fixture *f = *state;
	struct table_rows rows;

	assert_int_equal(write1(f, acl_up(TABLE_INSERT, 5)), 0);
	assert_int_equal(write1(f, acl_up(TABLE_INSERT, -5)), 0);
	assert_int_equal(write1(f, acl_up(TABLE_INSERT, 5)), -EEXIST);
	assert_string_equal(f->err.msg, "table acl has an entry with this key and priority");
	assert_int_equal(write1(f, acl_up(TABLE_DELETE, 4)), -ENOENT);
	assert_int_equal(write1(f, acl_up(TABLE_DELETE, 5)), 0);
	table_rows(f->reg, ACL, &rows);
	assert_int_equal(rows.n, 1);
	assert_int_equal(rows.entry[0].priority, -5);
}

/* Bytes that match and type do not use are not part of the key. */
static void test_canonical(void **state)
{
	struct fixture *f = *state;
	struct table_update u = neigh_up(TABLE_INSERT, "10.0.0.1", 3);
	struct table_rows rows;

	u.entry.key[0].prefix = 9;
	u.entry.key[0].mask = 9;
	u.entry.key[0].high = 9;
	u.entry.key[1].u = 77; /* the table has one key field */
	memset(&u.entry.param[1], 0xff, sizeof(u.entry.param[1]));
	u.entry.param[1].u = 3;
	u.entry.param[3].u = 1;
	assert_int_equal(write1(f, u), 0);
	assert_int_equal(write1(f, neigh_up(TABLE_INSERT, "10.0.0.1", 3)), -EEXIST);
	table_rows(f->reg, NEIGH, &rows);
	struct table_value zero = {.u = 3};
	assert_int_equal(rows.entry[0].key[0].prefix, 0);
	assert_int_equal(rows.entry[0].key[1].u, 0);
	assert_memory_equal(&rows.entry[0].param[1], &zero, sizeof(zero));
	assert_int_equal(rows.entry[0].param[3].u, 0);
}

static void test_order_within_batch(void **state)
{
	struct fixture *f = *state;
	struct table_update move[] = {
		neigh_up(TABLE_INSERT, "10.0.0.1", 1),
		neigh_up(TABLE_MODIFY, "10.0.0.1", 2),
		neigh_up(TABLE_DELETE, "10.0.0.1", 0),
		neigh_up(TABLE_INSERT, "10.0.0.1", 3),
		neigh_up(TABLE_INSERT, "10.0.0.2", 4),
	};
	struct table_update again[] = {
		neigh_up(TABLE_DELETE, "10.0.0.1", 0),
		neigh_up(TABLE_MODIFY, "10.0.0.1", 5),
	};
	struct table_rows rows;

	assert_int_equal(table_write(f->reg, move, 5, &f->err), 0);
	table_rows(f->reg, NEIGH, &rows);
	assert_int_equal(rows.n, 2);
	assert_int_equal(rows.entry[0].param[1].u, 3);
	assert_int_equal(rows.entry[1].param[1].u, 4);

	assert_int_equal(table_write(f->reg, again, 2, &f->err), -ENOENT);
	assert_int_equal(f->err.index, 1);
	assert_int_equal(count(f, NEIGH), 2);
}

static void test_size_limit(void **state)
{
	struct fixture *f = *state;
	struct table_update five[] = {
		neigh_up(TABLE_INSERT, "10.0.0.1", 1),
		neigh_up(TABLE_INSERT, "10.0.0.2", 1),
		neigh_up(TABLE_INSERT, "10.0.0.3", 1),
		neigh_up(TABLE_INSERT, "10.0.0.4", 1),
		neigh_up(TABLE_INSERT, "10.0.0.5", 1),
	};
	struct table_update swap[] = {
		neigh_up(TABLE_DELETE, "10.0.0.2", 1),
		neigh_up(TABLE_INSERT, "10.0.0.5", 1),
	};

	assert_int_equal(table_write(f->reg, five, 5, &f->err), -ENOSPC);
	assert_int_equal(f->err.index, 4);
	assert_string_equal(f->err.msg, "table neigh is full, its size is 4");
	assert_int_equal(count(f, NEIGH), 0);
	assert_int_equal(table_write(f->reg, five, 4, &f->err), 0);
	assert_int_equal(write1(f, five[4]), -ENOSPC);
	assert_int_equal(table_write(f->reg, swap, 2, &f->err), 0);
	assert_int_equal(count(f, NEIGH), 4);
}

static void test_publish_refuses(void **state)
{
	struct fixture *f = *state;
	struct table_update u[] = {
		neigh_up(TABLE_INSERT, "10.0.0.2", 1), route_up(TABLE_INSERT, "10.0.0.0", 8)};
	struct table_rows before, after;

	assert_int_equal(write1(f, neigh_up(TABLE_INSERT, "10.0.0.1", 1)), 0);
	table_rows(f->reg, NEIGH, &before);
	f->seen.rc = -ENOMEM;
	f->seen.msg = "no room for the route";
	assert_int_equal(table_write(f->reg, u, 2, &f->err), -ENOMEM);
	assert_string_equal(f->err.msg, "no room for the route");
	assert_int_equal(f->err.index, TABLE_NO_INDEX);
	assert_int_equal(f->seen.rows[NEIGH].n, 2);
	table_rows(f->reg, NEIGH, &after);
	assert_int_equal(after.n, 1);
	assert_ptr_equal(after.entry, before.entry);
	assert_int_equal(count(f, ROUTE), 0);

	f->seen.set_index = true;
	f->seen.index = 1;
	assert_int_equal(table_write(f->reg, u, 2, &f->err), -ENOMEM);
	assert_int_equal(f->err.index, 1);
	f->seen.set_index = false;
	f->seen.msg = NULL;
	assert_int_equal(write1(f, u[0]), -ENOMEM);
	assert_int_equal(f->err.index, 0);
	assert_string_equal(f->err.msg, "the dataplane refused the tables: Cannot allocate memory");

	f->seen.rc = 0;
	assert_int_equal(table_write(f->reg, u, 2, &f->err), 0);
	assert_int_equal(count(f, NEIGH), 2);
	assert_int_equal(count(f, ROUTE), 1);
}

static void test_empty_batch(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(table_write(f->reg, NULL, 0, &f->err), 0);
	assert_int_equal(f->seen.calls, 0);
}

static void test_lookup(void **state)
{
	struct fixture *f = *state;
	struct table_update a = acl_up(TABLE_INSERT, 5), n = neigh_up(TABLE_INSERT, "10.0.0.1", 3);

	assert_null(table_lookup(f->reg, NEIGH, &n.entry));
	assert_int_equal(write1(f, n), 0);
	assert_int_equal(write1(f, a), 0);
	n.entry.key[0].prefix = 9; /* not used by an exact key */
	assert_int_equal(table_lookup(f->reg, NEIGH, &n.entry)->param[1].u, 3);
	n.entry.key[0].ip = ip("10.0.0.2");
	assert_null(table_lookup(f->reg, NEIGH, &n.entry));
	assert_non_null(table_lookup(f->reg, ACL, &a.entry));
	a.entry.priority = 4;
	assert_null(table_lookup(f->reg, ACL, &a.entry));
	a.entry.key[1].high = 0; /* no valid key */
	assert_null(table_lookup(f->reg, ACL, &a.entry));
	assert_null(table_lookup(f->reg, 3, &a.entry));
	assert_int_equal(write1(f, neigh_up(TABLE_DELETE, "10.0.0.1", 0)), 0);
	n.entry.key[0].ip = ip("10.0.0.1");
	assert_null(table_lookup(f->reg, NEIGH, &n.entry));
	/* Entries move up when one before them goes. */
	struct table_update some[] = {neigh_up(TABLE_INSERT, "10.0.0.1", 1),
		neigh_up(TABLE_INSERT, "10.0.0.2", 2), neigh_up(TABLE_INSERT, "10.0.0.3", 3)};
	assert_int_equal(table_write(f->reg, some, 3, &f->err), 0);
	assert_int_equal(write1(f, neigh_up(TABLE_DELETE, "10.0.0.1", 0)), 0);
	assert_null(table_lookup(f->reg, NEIGH, &some[0].entry));
	assert_int_equal(table_lookup(f->reg, NEIGH, &some[1].entry)->param[1].u, 2);
	assert_int_equal(table_lookup(f->reg, NEIGH, &some[2].entry)->param[1].u, 3);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Random batches against a plain array of flags as the oracle. */
static void test_against_oracle(void **state)
{
	enum { KEYS = 64, ROUNDS = 3000, BATCH = 8 };
	struct fixture *f = *state;
	uint32_t seed = 1;
	int value[KEYS];

	for (unsigned i = 0; i < KEYS; i++)
		value[i] = -1;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct table_update batch[BATCH];
		int next[KEYS], expect = 0;
		unsigned n = 1 + next_random(&seed) % BATCH, bad = 0;

		memcpy(next, value, sizeof(next));
		for (unsigned i = 0; i < n; i++) {
			unsigned k = next_random(&seed) % KEYS;
			enum table_verb verb = next_random(&seed) % 3;

			batch[i] = route_up(verb, "10.0.0.0", 32);
			batch[i].entry.key[0].ip.b[15] = (uint8_t)k;
			batch[i].entry.param[0].ip.b[15] = (uint8_t)round;
			if (expect)
				continue;
			if ((verb == TABLE_INSERT) == (next[k] >= 0)) {
				expect = verb == TABLE_INSERT ? -EEXIST : -ENOENT;
				bad = i;
				continue;
			}
			next[k] = verb == TABLE_DELETE ? -1 : (int)(uint8_t)round;
		}
		assert_int_equal(table_write(f->reg, batch, n, &f->err), expect);
		if (expect)
			assert_int_equal(f->err.index, bad);
		else
			memcpy(value, next, sizeof(value));

		struct table_rows rows;
		unsigned live = 0;
		table_rows(f->reg, ROUTE, &rows);
		for (unsigned k = 0; k < KEYS; k++)
			live += value[k] >= 0;
		assert_int_equal(rows.n, live);
		for (unsigned i = 0; i < rows.n; i++)
			assert_int_equal(value[rows.entry[i].key[0].ip.b[15]],
				rows.entry[i].param[0].ip.b[15]);
	}
}

static void test_hundred_thousand(void **state)
{
	enum { N = 100000 };
	struct fixture *f = *state;
	struct table_update *u = calloc(N, sizeof(*u));

	for (unsigned i = 0; i < N; i++) {
		u[i] = route_up(TABLE_INSERT, "10.0.0.0", 32);
		u[i].entry.key[0].ip = wire_ip_from4(0x0a000000 + i);
	}
	assert_int_equal(table_write(f->reg, u, N, &f->err), 0);
	assert_int_equal(count(f, ROUTE), N);
	assert_int_equal(write1(f, u[N - 1]), -EEXIST);
	for (unsigned i = 0; i < N; i++)
		u[i].verb = i % 2 ? TABLE_DELETE : TABLE_MODIFY;
	assert_int_equal(table_write(f->reg, u, N, &f->err), 0);
	assert_int_equal(count(f, ROUTE), N / 2);
	assert_int_equal(write1(f, u[1]), -ENOENT);
	free(u);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_refuses_nonsense),
		T(test_find),
		T(test_insert_modify_delete),
		T(test_both_families),
		T(test_bad_lpm),
		T(test_bad_ternary_and_range),
		T(test_bad_action_and_data),
		T(test_priority_is_part_of_identity),
		T(test_canonical),
		T(test_order_within_batch),
		T(test_size_limit),
		T(test_publish_refuses),
		T(test_empty_batch),
		T(test_lookup),
		T(test_against_oracle),
		T(test_hundred_thousand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
