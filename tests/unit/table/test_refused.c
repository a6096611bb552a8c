/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables and entries that are refused, and what is said of them. */
#include "tests/unit/table/fixture.h"

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
	d.keys[0].match = TABLE_RANGE;
	assert_int_equal(table_registry_create(one, 1, NULL, NULL, &reg), -EINVAL);
	d = neigh;
	d.keys[0].type = TABLE_MAC;
	d.keys[0].match = TABLE_LPM;
	assert_int_equal(table_registry_create(one, 1, NULL, NULL, &reg), -EINVAL);
	d.keys[0].match = TABLE_TERNARY;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_refuses_nonsense),
		T(test_bad_lpm),
		T(test_bad_ternary_and_range),
		T(test_bad_action_and_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
