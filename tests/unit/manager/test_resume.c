/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs that go on by the ring of their hosts when the network fails ("resume" of a group file):
 * they stay the manager's, who says since when and why, over its own end too; nothing of them stays
 * on switches, and other jobs do not notice. */
#include <stdio.h>
#include <string.h>

#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

static struct world w;
static struct store store;

static int setup(void **state)
{
	(void)state;
	assert_int_equal(store_memory_open(&store), 0);
	world_open_with(&w, &store);
	for (unsigned j = 0; j < JOBS; j++) {
		w.job[j].resume = j == 0;
		w.job[j].again = true;
		world_start_job(&w, j);
		world_pass(&w, 300);
		assert_true(world_active(&w, j));
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	world_close(&w);
	store.close(store.arg);
	return 0;
}

/* What all ranks have heard, and what an operator hears. */
static void expect(const char *phase, const char *says)
{
	json_t *r = world_ask(&w, "job.explain", json_pack("{s:s}", "job", "job0"));

	for (unsigned i = 0; i < RANKS; i++)
		if (w.job[0].rank[i].alive)
			assert_string_equal(w.job[0].rank[i].phase, phase);
	if (!strstr(rpc_string(r, "line"), says))
		fail_msg("\"%s\" lacks \"%s\"", rpc_string(r, "line"), says);
	json_decref(r);
}

static void nothing_of_job0(void)
{
	for (unsigned i = 0; i < SWITCHES; i++)
		if (w.sw[i].sw)
			assert_int_equal(sw_group_find(w.sw[i].sw, "job0"), -2);
}

static void lose_spine(void)
{
	world_kill_switch(&w, world_spine(&w, 0));
	world_pass(&w, 3500); /* and what is left is drained */
}

static void end_all(void)
{
	for (unsigned j = 0; j < JOBS; j++)
		world_leave_job(&w, j);
	world_pass(&w, 3000);
	world_expect_clean(&w);
}

static void test_goes_on(void **state)
{
	uint64_t epoch[JOBS];

	(void)state;
	for (unsigned j = 0; j < JOBS; j++)
		epoch[j] = w.job[j].rank[0].epoch;
	lose_spine();
	expect("ring", "job0, epoch ");
	expect("ring", ", going on by the hosts' ring for 3 s: the link between ");
	nothing_of_job0();
	world_pass(&w, 60000);
	expect("ring", ", going on by the hosts' ring for 63 s: ");
	for (unsigned j = 0; j < JOBS; j++) {
		assert_true(j == 0 || world_active(&w, j));
		assert_int_equal(w.job[j].rank[0].epoch, epoch[j]);
	}
	end_all();
	w.job[0].rank[0].alive = w.job[0].rank[1].alive = false;
	expect("over", ", over: all ranks left");
}

/* His successor knows it from the store, but not since when: clocks differ. */
static void test_outlives_the_manager(void **state)
{
	uint64_t epoch;

	(void)state;
	lose_spine();
	epoch = w.job[0].rank[0].epoch;
	world_kill_manager(&w);
	world_pass(&w, 3000);
	world_start_manager(&w);
	world_pass(&w, 10000);
	expect("ring", ", going on by the hosts' ring since before this manager was started: the ");
	assert_int_equal(w.job[0].rank[0].epoch, epoch);
	end_all();
}

/* A ring needs all of its hosts: who has lost one joins again. */
static void test_rank_dies(void **state)
{
	(void)state;
	lose_spine();
	w.job[0].again = false;
	world_kill_rank(&w, 0, 1);
	world_pass(&w, 3300);
	expect("over", ", over: rank 1 was not heard of any more");
	end_all();
}

/* It fails before all ranks are connected: by the ring from its beginning. */
static void test_never_began(void **state)
{
	(void)state;
	world_leave_job(&w, 0);
	world_pass(&w, 3000);
	world_start_job(&w, 0);
	w.job[0].rank[1].alive =
		false; /* has joined, and takes its time: its connection is there */
	world_pass(&w, 500);
	assert_string_equal(w.job[0].rank[0].phase, "connecting");
	lose_spine();
	w.job[0].rank[1].alive = true;
	world_pass(&w, 500);
	expect("ring", ", by the hosts' ring: the link between ");
	end_all();
}

/* All ranks or none. */
static void test_of_one_mind(void **state)
{
	(void)state;
	world_leave_job(&w, 0);
	world_start_rank(&w, 0, 0);
	w.job[0].resume = false;
	world_start_rank(&w, 0, 1);
	assert_string_equal(w.job[0].rank[0].phase, "joining");
	assert_false(w.job[0].rank[1].connected);
	w.job[0].resume = true;
	world_pass(&w, 500);
	assert_true(world_active(&w, 0));
	end_all();
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {T(test_goes_on), T(test_outlives_the_manager),
		T(test_rank_dies), T(test_never_began), T(test_of_one_mind)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
