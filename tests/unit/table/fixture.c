/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/table/fixture.h"

const struct table_desc neigh = {
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

const struct table_desc route = {
	.name = "route",
	.size = 200000,
	.n_keys = 1,
	.keys = {{.name = "dst", .type = TABLE_IP, .match = TABLE_LPM}},
	.n_actions = 1,
	.actions = {{.name = "via", .n_params = 1, .params = {{.name = "hop", .type = TABLE_IP}}}},
};

const struct table_desc acl = {
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

int setup(void **state)
{
	static const struct table_desc *const descs[] = {&neigh, &route, &acl};
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(table_registry_create(descs, 3, publish, &f->seen, &f->reg), 0);
	*state = f;
	return 0;
}

int teardown(void **state)
{
	struct fixture *f = *state;

	table_registry_destroy(f->reg);
	free(f);
	return 0;
}

struct wire_ip ip(const char *text)
{
	struct wire_ip out;

	assert_int_equal(wire_ip_parse(text, &out), 0);
	return out;
}

struct table_update neigh_up(enum table_verb verb, const char *addr, unsigned port)
{
	struct table_update u = {.verb = verb, .table = NEIGH};

	u.entry.key[0].ip = ip(addr);
	u.entry.param[1].u = port;
	return u;
}

struct table_update route_up(enum table_verb verb, const char *net, unsigned prefix)
{
	struct table_update u = {.verb = verb, .table = ROUTE};

	u.entry.key[0].ip = ip(net);
	u.entry.key[0].prefix = (uint8_t)prefix;
	u.entry.param[0].ip = ip("10.0.0.9");
	return u;
}

struct table_update acl_up(enum table_verb verb, int priority)
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

int write1(struct fixture *f, struct table_update u)
{
	return table_write(f->reg, &u, 1, &f->err);
}

uint32_t count(struct fixture *f, unsigned table)
{
	struct table_rows rows;

	table_rows(f->reg, table, &rows);
	return rows.n;
}
