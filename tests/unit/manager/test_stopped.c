/* SPDX-License-Identifier: BSD-3-Clause */
/* A manager that did not run for a while (a signal, a disk that hung) and then goes on, by whatever
 * comes first: nobody was silent who could not be heard. */
#include <string.h>

#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

static const uint64_t MS = 1000000;

static struct world w;
static uint64_t begun, epoch[JOBS];

static int setup(void **state)
{
	(void)state;
	world_open(&w);
	begun = w.now - 500 * MS;
	for (unsigned j = 0; j < JOBS; j++) {
		w.job[j].again = true;
		world_start_job(&w, j);
		world_pass(&w, 300);
		epoch[j] = w.job[j].rank[0].epoch;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	world_close(&w);
	return 0;
}

static void all_go_on(void)
{
	for (unsigned j = 0; j < JOBS; j++)
		assert_true(world_active(&w, j) && w.job[j].rank[0].epoch == epoch[j]);
}

/* Ranks that are connected, and one that was about to come back. */
static void by_a_line(void **state)
{
	json_t *r;

	(void)state;
	manager_gone(w.m, &w.job[1].rank[1].peer);
	w.now += 3500 * MS;
	r = world_ask(&w, "manager.who", NULL);
	assert_int_equal(rpc_int(r, "leads_s", -1), (w.now - begun) / (1000 * MS));
	assert_int_equal(rpc_int(r, "switches", -1), SWITCHES);
	json_decref(r);
	world_pass(&w, 1000);
	all_go_on();
}

static void by_a_switch(void **state)
{
	(void)state;
	w.now += 3500 * MS;
	manager_heard(w.m, 0, "{}", 2, w.now);
	world_pass(&w, 1000);
	all_go_on();
}

/* And no switch is dropped that only was not read. */
static void by_a_tick(void **state)
{
	json_t *r;

	(void)state;
	manager_gone(w.m, &w.job[1].rank[1].peer);
	w.now += 3500 * MS;
	manager_tick(w.m, w.now);
	r = world_ask(&w, "manager.who", NULL);
	assert_int_equal(rpc_int(r, "switches", -1), SWITCHES);
	json_decref(r);
	world_pass(&w, 1000);
	all_go_on();
}

/* Each line takes its time, and no tick comes between. */
static void by_many_lines(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		w.now += 900 * MS;
		manager_heard(w.m, 0, "{}", 2, w.now);
	}
	world_pass(&w, 1000);
	all_go_on();
}

/* From then on time counts as ever. */
static void then_dies(void **state)
{
	json_t *r;

	(void)state;
	w.now += 3500 * MS;
	json_decref(world_ask(&w, "job.list", NULL));
	w.job[2].again = false;
	world_kill_rank(&w, 2, 1);
	world_pass(&w, 3300);
	r = world_ask(&w, "job.explain", json_pack("{s:s}", "job", "job2"));
	assert_non_null(strstr(rpc_string(r, "line"), "over: rank 1 was not heard of any more"));
	json_decref(r);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(by_a_line), T(by_a_switch), T(by_a_tick), T(by_many_lines), T(then_dies)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
