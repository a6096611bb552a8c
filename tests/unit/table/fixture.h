/* SPDX-License-Identifier: BSD-3-Clause */
/* A registry of two small tables and a large one, and updates for them. */
#ifndef TESTS_TABLE_FIXTURE_H
#define TESTS_TABLE_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dataplane/table.h"

enum { NEIGH, ROUTE, ACL };
extern const struct table_desc neigh, route, acl;

struct seen {
	unsigned calls;
	int rc;
	const char *msg;
	unsigned index;
	bool set_index;
	struct table_rows rows[3];
};

struct fixture {
	struct table_registry *reg;
	struct seen seen;
	struct table_error err;
};

int setup(void **state);
int teardown(void **state);
struct wire_ip ip(const char *text);
struct table_update neigh_up(enum table_verb verb, const char *addr, unsigned port);
struct table_update route_up(enum table_verb verb, const char *net, unsigned prefix);
struct table_update acl_up(enum table_verb verb, int priority);
int write1(struct fixture *f, struct table_update u);
uint32_t count(struct fixture *f, unsigned table);

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
