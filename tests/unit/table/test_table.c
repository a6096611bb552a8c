/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/table/fixture.h"

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
	u.entry.key[0].any = true;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_find),
		T(test_insert_modify_delete),
		T(test_both_families),
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
