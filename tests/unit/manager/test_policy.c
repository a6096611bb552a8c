/* SPDX-License-Identifier: BSD-3-Clause */
/* A policy that is set while the manager runs: for trees to come, kept over a restart until the
 * file names another, and not for everybody to set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

static struct world w;
static struct store store;

static void start_manager(void)
{
	world_start_manager(&w);
	world_pass(&w, 1500);
}

static int setup(void **state)
{
	(void)state;
	assert_int_equal(store_memory_open(&store), 0);
	world_open_with(&w, &store);
	world_kill_manager(&w);
	start_manager();
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

/* The answer's error (new reference), or its result. */
static json_t *set_as(enum ctl_role role, const char *policy)
{
	struct manager_peer peer = {.who = {.role = role, .name = "x"}};
	json_t *r = json_pack("{s:s,s:i,s:s,s:{s:s}}", "jsonrpc", "2.0", "id", 1, "method",
		       "policy.set", "params", "policy", policy),
	       *answer, *out;
	char *line = json_dumps(r, JSON_COMPACT),
	     *text = manager_line(w.m, &peer, line, strlen(line), w.now);

	answer = json_loads(text, 0, NULL);
	out = json_incref(json_object_get(answer, "error") ?: json_object_get(answer, "result"));
	json_decref(answer);
	json_decref(r);
	free(line);
	free(text);
	return out;
}

static void expect_refused(enum ctl_role role, const char *policy, const char *why)
{
	json_t *e = set_as(role, policy);

	if (!strstr(rpc_string(e, "message") ?: "", why))
		fail_msg("\"%s\" lacks \"%s\"", rpc_string(e, "message"), why);
	json_decref(e);
}

static void set(const char *policy, const char *before)
{
	json_t *r = set_as(CTL_OPERATOR, policy);

	assert_string_equal(rpc_string(r, "policy"), policy);
	assert_string_equal(rpc_string(r, "before"), before);
	json_decref(r);
}

static void expect(const char *policy)
{
	static const char *const says[] = {"version", "manager.who"};

	for (unsigned i = 0; i < 2; i++) {
		json_t *r = world_ask(&w, says[i], NULL);

		assert_string_equal(rpc_string(r, "policy"), policy);
		json_decref(r);
	}
}

static void start(unsigned j, int duty, bool shares)
{
	w.job[j].duty = duty;
	world_start_job(&w, j);
	world_pass(&w, 500);
	assert_true(world_active(&w, j));
	assert_true((w.job[j].rank[0].window != NULL) == shares);
}

/* Jobs that run keep what they have; who comes is placed as the policy now is. */
static void for_jobs_to_come(void **state)
{
	uint64_t epoch;

	(void)state;
	start(0, 300, false);
	epoch = w.job[0].rank[0].epoch;
	set("temporal", "spatial");
	start(1, 300, true);
	assert_true(world_active(&w, 0));
	assert_null(w.job[0].rank[0].window);
	expect_refused(CTL_OPERATOR, "edt",
		"jobs that run since before the manager was started may yet be heard of: in ");
	world_pass(&w, 5000);
	set("edt", "temporal");
	/* Each leaf has one link to each of three spines, and two of those are others'. */
	start(2, 0, false);
	world_pass(&w, 3000);
	for (unsigned j = 0; j < JOBS; j++)
		assert_true(world_active(&w, j));
	assert_true(w.job[0].rank[0].epoch == epoch);
	assert_int_not_equal(world_spine(&w, 2), world_spine(&w, 0));
	assert_int_not_equal(world_spine(&w, 2), world_spine(&w, 1));
	for (unsigned j = 0; j < JOBS; j++)
		world_end_job(&w, j);
	world_pass(&w, 3000);
	world_expect_clean(&w);
}

static void over_a_restart(void **state)
{
	(void)state;
	set("temporal", "spatial");
	for (unsigned i = 0; i < 2; i++) {
		world_kill_manager(&w);
		start_manager();
		expect("temporal");
	}
	start(0, 300, true);
	world_end_job(&w, 0);
	/* The file names another one: that holds, and what was set before is forgotten. */
	world_kill_manager(&w);
	json_object_set_new(w.config, "policy", json_string("edt"));
	start_manager();
	expect("edt");
	world_kill_manager(&w);
	json_object_set_new(w.config, "policy", json_string("spatial"));
	start_manager();
	expect("spatial");
	/* What the file has anyway is nothing to keep. */
	set("temporal", "spatial");
	set("spatial", "temporal");
	world_kill_manager(&w);
	json_object_set_new(w.config, "policy", json_string("temporal"));
	start_manager();
	expect("temporal");
}

static void refused(void **state)
{
	(void)state;
	expect_refused(CTL_STRANGER, "edt", "not allowed over TCP");
	expect_refused(CTL_TENANT, "edt", "a tenant's certificate is not allowed");
	expect_refused(CTL_AGENT, "edt", "a switch's certificate is not allowed");
	expect_refused(CTL_OPERATOR, "fair", "policy: \"fair\" must be edt or spatial or temporal");
	expect("spatial");
}

/* Jobs that nobody has written down: EDT cannot leave their links alone. */
static void beside_adopted(void **state)
{
	(void)state;
	w.store = NULL;
	world_kill_manager(&w);
	start_manager();
	start(0, 0, false);
	world_kill_manager(&w);
	start_manager();
	assert_string_equal(w.job[0].rank[0].phase, "adopted");
	expect_refused(CTL_OPERATOR, "edt",
		"policy: edt gives a link to one tree, and which links 1 jobs have that run since");
	expect("spatial");
	set("temporal", "spatial");
	world_end_job(&w, 0);
	world_pass(&w, 5000);
	set("edt", "temporal");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(for_jobs_to_come), T(over_a_restart), T(refused), T(beside_adopted)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
