/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns that jobs take with memory that they share: who gets which, that all hear of the same
 * cycle, and that they keep theirs over a restart. */
#include <stdio.h>
#include <string.h>

#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

enum { CYCLE_US = 50000 };

static struct world w;
static struct store store;

static int setup(void **state)
{
	(void)state;
	assert_int_equal(store_memory_open(&store), 0);
	world_open_with(&w, &store);
	json_object_set_new(w.config, "policy", json_string("temporal"));
	json_object_set_new(w.config, "cycle_ms", json_integer(CYCLE_US / 1000));
	world_kill_manager(&w);
	world_start_manager(&w);
	world_pass(&w, 1500);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < JOBS * RANKS; i++)
		json_decref(w.job[i / RANKS].rank[i % RANKS].window);
	world_close(&w);
	store.close(store.arg);
	return 0;
}

static void start(unsigned j, int duty)
{
	w.job[j].duty = duty;
	world_start_job(&w, j);
	world_pass(&w, 300);
	assert_true(world_active(&w, j));
}

/* Every rank of a job was told this; and of the one cycle that there is. */
static void expect(unsigned j, const char *lease, unsigned start_us, unsigned length_us)
{
	for (unsigned r = 0; r < RANKS; r++) {
		const struct world_rank *k = &w.job[j].rank[r];

		assert_non_null(k->window);
		assert_string_equal(rpc_string(k->window, "lease"), lease);
		assert_int_equal(rpc_int(k->window, "cycle_us", 0), CYCLE_US);
		assert_int_equal(rpc_int(k->window, "start_us", -1), start_us);
		assert_int_equal(rpc_int(k->window, "length_us", -1), length_us);
		assert_int_equal(rpc_int(k->window, "at_us", -1), k->told / 1000 % CYCLE_US);
	}
}

static void turns(void **state)
{
	char line[512];

	(void)state;
	start(0, 400);
	start(1, 500);
	expect(0, "manager-1", 0, 20000);
	expect(1, "manager-1", 20000, 25000);
	/* No part of the first block's cycle is long enough, but there is memory for another. */
	start(2, 300);
	expect(2, "manager-2", 0, 15000);
	json_t *e = world_ask(&w, "job.explain", json_pack("{s:s}", "job", "job1"));

	snprintf(line, sizeof(line), "%s", rpc_string(e, "line"));
	json_decref(e);
	if (!strstr(line, "shared as block 1, 400 to 900 of 1000"))
		fail_msg("%s", line);
	/* Whoever comes when one has gone gets its turn. */
	world_end_job(&w, 0);
	world_end_job(&w, 2);
	world_pass(&w, 3000);
	start(2, 300);
	expect(2, "manager-1", 0, 15000);
	expect(1, "manager-1", 20000, 25000);
	for (unsigned j = 1; j < JOBS; j++)
		world_end_job(&w, j);
	world_pass(&w, 3000);
	world_expect_clean(&w);
}

static void over_a_restart(void **state)
{
	(void)state;
	start(0, 300);
	start(1, 300);
	world_end_job(&w, 0);
	world_pass(&w, 3000);
	world_kill_manager(&w);
	world_start_manager(&w);
	world_pass(&w, 1500);
	expect(1, "manager-1", 15000, 15000);
	start(0, 400); /* behind it: before it is too little */
	expect(0, "manager-1", 30000, 20000);
}

static uint64_t promised_at(const char *name)
{
	json_t *t = world_ask(&w, "topology.get", NULL), *row;
	uint64_t bytes = 0;
	size_t i;

	json_array_foreach(
		json_object_get(t, "nodes"), i, row) if (!strcmp(rpc_string(row, "name"), name))
		ctl_get_u64(json_object_get(row, "promised_bytes"), &bytes);
	json_decref(t);
	return bytes;
}

/* A block is as large as it was for one who has gone, for the next manager too: the switch keeps
 * that as long as anybody has the lease there. */
static void large_over_a_restart(void **state)
{
	uint64_t large, after;

	(void)state;
	w.job[1].mbps = 1000; /* a tenth of the other one */
	start(0, 300);
	large = promised_at("leaf0");
	start(1, 300);
	world_end_job(&w, 0);
	world_pass(&w, 3000);
	assert_int_equal(promised_at("leaf0"), large);
	for (unsigned i = 0; i < 2; i++) { /* the second goes on with what the first had read */
		world_kill_manager(&w);
		world_start_manager(&w);
		world_pass(&w, 1500);
		assert_int_equal(promised_at("leaf0"), large);
		assert_int_equal(promised_at("leaf1"), large);
	}
	world_end_job(&w, 1);
	world_pass(&w, 3000);
	assert_int_equal(promised_at("leaf0"), 0);
	start(1, 300);
	after = promised_at("leaf0");
	assert_true(after > 0 && after < large);
	world_kill_manager(&w);
	world_start_manager(&w);
	world_pass(&w, 1500);
	assert_int_equal(promised_at("leaf0"), after);
}

/* Who does not say that it can let go of memory has its own, all the time. */
static void without(void **state)
{
	(void)state;
	start(0, 0);
	assert_null(w.job[0].rank[0].window);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(turns), T(over_a_restart), T(large_over_a_restart), T(without)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
