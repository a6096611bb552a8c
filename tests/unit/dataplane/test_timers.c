/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers of groups at a worker: one that is due costs a look at its group, and at no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dataplane/runtime/worker.h"

enum { FIRST = 1, GROUPS = 4000, DUE = 1000 };

static const uint64_t FAR = 1000000000;
static struct worker *w;
static struct inc_table *table;

static struct inc_group *make(unsigned slot)
{
	struct inc_ep_spec ep[2] = {{.remote_qpn = 1, .host = true, .n_ranks = 1, .ranks = {0}},
		{.remote_qpn = 2, .host = true, .n_ranks = 1, .ranks = {1}}};
	struct inc_group_spec spec = {.name = "g", .mode = INC_MODE_3, .mtu = 256, .m = 1, .w = 2};
	struct inc_group *g;
	char err[INC_ERR_LEN];

	spec.n_ranks = spec.n_ep = 2;
	spec.ep = ep;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(wire_ip_parse("10.0.0.1", &ep[i].local_ip), 0);
		assert_int_equal(wire_ip_parse(i ? "10.0.0.3" : "10.0.0.2", &ep[i].remote_ip), 0);
	}
	assert_int_equal(inc_group_check(&spec, err), 0);
	g = calloc(1, inc_group_bytes(&spec));
	inc_group_init(g, &spec, slot, 0, INC_NO_ARENA);
	assert_int_equal(inc_group_activate(g, err), 0);
	return g;
}

/* As after a packet that has set it. */
static void set(struct inc_group *g, uint64_t at)
{
	inc_ep_at(g, 0)->timer_ns = g->timer_ns = at;
	worker_note_timer(w, g);
}

static int setup(void **state)
{
	(void)state;
	w = calloc(1, sizeof(*w));
	table = calloc(1, sizeof(*table));
	w->inc = table;
	worker_timers_init(w);
	for (unsigned i = 0; i < GROUPS; i++)
		table->group[FIRST + i] = make(FIRST + i);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < GROUPS; i++)
		free(table->group[FIRST + i]);
	free(table);
	free(w);
	return 0;
}

static void test_idle_groups_cost_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < GROUPS; i++) {
		inc_ep_at(table->group[FIRST + i], 0)->tx_high = 1; /* something is out */
		set(table->group[FIRST + i], FAR + i);
	}
	for (unsigned k = 1; k <= DUE; k++) {
		struct inc_group *g = table->group[FIRST + k * 7 % GROUPS];
		const uint64_t timeouts = g->count[INC_C_TIMEOUTS];

		w->now = k;
		set(g, k);
		assert_int_equal(w->timer_ns, k);
		worker_timers(w);
		assert_int_equal(w->timer_visits, k);
		assert_int_equal(g->count[INC_C_TIMEOUTS], timeouts + 1);
		assert_true(w->timer_ns > k && w->timer_ns <= FAR);
	}
}

/* The deadline may be early, never late: what was put off is looked at once, then in its time. */
static void test_put_off(void **state)
{
	struct inc_group *g = table->group[FIRST];

	(void)state;
	set(g, 100);
	set(g, 500);
	w->now = 100;
	worker_timers(w);
	assert_int_equal(w->timer_visits, 1);
	assert_int_equal(g->count[INC_C_TIMEOUTS], 0);
	assert_int_equal(w->timer_ns, 500);
	w->now = 500;
	worker_timers(w);
	assert_int_equal(g->count[INC_C_TIMEOUTS], 1);
	assert_int_equal(w->timer_ns, UINT64_MAX); /* nothing is out: no other */
}

/* A slot whose group has gone, or is another: that one's own timers count. */
static void test_groups_come_and_go(void **state)
{
	struct inc_group *old = table->group[FIRST], *next = make(FIRST);

	(void)state;
	set(old, 100);
	table->group[FIRST] = NULL;
	w->now = 100;
	worker_timers(w);
	assert_int_equal(w->timer_ns, UINT64_MAX);
	set(old, 200);
	table->group[FIRST] = next;
	set(next, 900);
	w->now = 200;
	worker_timers(w);
	assert_int_equal(next->count[INC_C_TIMEOUTS], 0);
	assert_int_equal(w->timer_ns, 900);
	free(old);
}

/* Nor does a worker run the timers of a group that has moved to another. */
static void test_groups_move(void **state)
{
	struct inc_group *g = table->group[FIRST];

	(void)state;
	set(g, 100);
	table->owner[FIRST] = 1;
	w->now = 100;
	worker_timers(w);
	assert_int_equal(g->count[INC_C_TIMEOUTS], 0);
	assert_int_equal(g->timer_ns, 100);
	w->index = 1; /* the new one is told */
	worker_note_timer(w, g);
	worker_timers(w);
	assert_true(g->timer_ns > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_idle_groups_cost_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_put_off, setup, teardown),
		cmocka_unit_test_setup_teardown(test_groups_come_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(test_groups_move, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
