/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs that come right after the manager: they are placed on a fabric that it knows, and do not
 * wait for a switch that never comes. */
#include <stdio.h>
#include <string.h>

#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

enum { SETTLE_MS = 3000, DEAD_MS = 1000 };

static struct world w;

static int setup(void **state)
{
	(void)state;
	world_open(&w);
	world_kill_manager(&w);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	world_close(&w);
	return 0;
}

static bool explains(const char *says)
{
	json_t *r = world_ask(&w, "job.explain", json_pack("{s:s}", "job", "job0"));
	const bool is = strstr(rpc_string(r, "line"), says) != NULL;

	json_decref(r);
	return is;
}

static void expect_waiting(void)
{
	assert_true(explains(", joining: all 2 ranks have joined; it is placed when the manager, "
			     "which has just started, has heard all switches, in 3 s at most"));
}

/* No switch was heard when the last rank joins. */
static void before_the_first(void **state)
{
	(void)state;
	world_start_manager(&w);
	world_start_job(&w, 0);
	expect_waiting();
	world_pass(&w, 500);
	assert_true(world_active(&w, 0));
	world_end_job(&w, 0);
	world_pass(&w, 500);
	world_expect_clean(&w);
}

/* A rank that gives up meanwhile is not placed. */
static void one_leaves(void **state)
{
	(void)state;
	world_start_manager(&w);
	world_start_job(&w, 0);
	world_kill_rank(&w, 0, 1);
	assert_true(explains(", joining: 1 of 2 ranks have joined"));
	world_pass(&w, 500);
	assert_true(explains(", joining: 1 of 2 ranks have joined"));
}

/* A spine takes its connection and says nothing. */
static void one_is_mute(void **state)
{
	(void)state;
	world_cut_off(&w, LEAVES, true);
	world_start_manager(&w);
	world_start_job(&w, 0);
	world_pass(&w, SETTLE_MS - 200);
	expect_waiting();
	world_pass(&w, 700);
	assert_true(world_active(&w, 0));
	assert_int_not_equal(world_spine(&w, 0), LEAVES);
	world_cut_off(&w, LEAVES, false);
}

/* Nobody listens there: that is known sooner. */
static void one_is_dead(void **state)
{
	(void)state;
	world_kill_switch(&w, LEAVES);
	world_start_manager(&w);
	world_start_job(&w, 0);
	world_pass(&w, DEAD_MS - 300);
	expect_waiting();
	world_pass(&w, 1000);
	assert_true(world_active(&w, 0));
	assert_int_not_equal(world_spine(&w, 0), LEAVES);
}

/* Once it knows the fabric, who goes later keeps nobody waiting. */
static void one_goes_later(void **state)
{
	(void)state;
	world_start_manager(&w);
	world_pass(&w, 300);
	world_kill_switch(&w, LEAVES);
	world_pass(&w, 100);
	world_start_job(&w, 0);
	world_pass(&w, 300);
	assert_true(world_active(&w, 0));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {T(before_the_first), T(one_leaves), T(one_is_mute),
		T(one_is_dead), T(one_goes_later)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
