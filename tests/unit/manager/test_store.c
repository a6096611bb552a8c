/* SPDX-License-Identifier: BSD-3-Clause */
/* What a manager has promised outlives it: killed at any write, at any line to a switch, its
 * successor goes on; switches are the fact, and files that are not ours are refused by name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

/* ---- a store with which the manager dies ---- */

static struct world w;

static struct mortal {
	struct store inner;
	json_t *pending;         /* [key, value or null] */
	unsigned writes, die_at; /* 0: at none */
	bool written;            /* dies after that write, not before */
} mortal;

static int each(void *arg, int (*take)(void *to, const char *key, const char *value), void *to)
{
	(void)arg;
	return mortal.inner.each(mortal.inner.arg, take, to);
}

static int put(void *arg, const char *key, const char *value)
{
	(void)arg;
	json_array_append_new(
		mortal.pending, json_pack("[s,o]", key, value ? json_string(value) : json_null()));
	return 0;
}

static int commit(void *arg)
{
	json_t *row;
	size_t i;
	int rc = 0;

	(void)arg;
	if (w.dying || !json_array_size(mortal.pending)) {
		json_array_clear(mortal.pending);
		return w.dying ? -EIO : 0;
	}
	w.dying = ++mortal.writes == mortal.die_at;
	json_array_foreach(mortal.pending, i, row) if (!w.dying || mortal.written) rc |=
		mortal.inner.put(mortal.inner.arg, json_string_value(json_array_get(row, 0)),
			json_string_value(json_array_get(row, 1)));
	json_array_clear(mortal.pending);
	rc |= mortal.inner.commit(mortal.inner.arg);
	return w.dying ? -EIO : rc;
}

static void shut(void *arg)
{
	(void)arg;
}

static struct store mortal_store = {NULL, each, put, commit, shut};

static void open_all(void)
{
	memset(&mortal, 0, sizeof(mortal));
	assert_int_equal(store_memory_open(&mortal.inner), 0);
	mortal.pending = json_array();
	world_open_with(&w, &mortal_store);
}

static void close_all(void)
{
	world_close(&w);
	json_decref(mortal.pending);
	mortal.inner.close(mortal.inner.arg);
}

static int setup(void **state)
{
	(void)state;
	open_all();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_all();
	return 0;
}

/* ---- one restart ---- */

static char *explain(const char *job)
{
	static char line[512];
	json_t *r = world_ask(&w, "job.explain", json_pack("{s:s}", "job", job));

	snprintf(line, sizeof(line), "%s", rpc_string(r, "line"));
	json_decref(r);
	return line;
}

static char *promised(void)
{
	json_t *t = world_ask(&w, "topology.get", NULL), *list = json_array(), *row;
	char *text;
	size_t i;

	json_array_foreach(json_object_get(t, "nodes"), i,
		row) if (json_object_get(row, "promised_bytes")) json_array_append_new(list,
		json_pack("[O,O,O]", json_object_get(row, "name"),
			json_object_get(row, "promised_bytes"), json_object_get(row, "groups")));
	json_array_foreach(json_object_get(t, "links"), i, row)
		json_array_append(list, json_object_get(row, "trees"));
	text = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	json_decref(t);
	return text;
}

static void start_all(void)
{
	for (unsigned j = 0; j < JOBS; j++) {
		w.job[j].again = true;
		world_start_job(&w, j);
		world_pass(&w, 300);
		assert_true(world_active(&w, j));
	}
}

static void end_all(void)
{
	for (unsigned j = 0; j < JOBS; j++)
		world_end_job(&w, j);
	world_pass(&w, 4000);
	world_expect_clean(&w);
}

/* As if nothing had been: the same runs, the same promises, on switches and on links. */
static void test_goes_on(void **state)
{
	char *before, *after, line[512];
	uint64_t epoch[JOBS];

	(void)state;
	start_all();
	for (unsigned j = 0; j < JOBS; j++)
		epoch[j] = w.job[j].rank[0].epoch;
	before = promised();
	snprintf(line, sizeof(line), "%s", explain("job1"));
	world_kill_manager(&w);
	world_pass(&w, 10000);
	world_start_manager(&w);
	after = promised();
	assert_string_equal(before, after);
	assert_string_equal(explain("job1"), line);
	world_pass(&w, 10000);
	for (unsigned j = 0; j < JOBS; j++)
		assert_true(world_active(&w, j) && w.job[j].rank[0].epoch == epoch[j]);
	free(before);
	free(after);
	end_all();
}

/* What happened while nobody looked: a rank died; a switch started anew; a group was deleted; all
 * ranks of a job left. */
static void test_meanwhile(void **state)
{
	uint64_t epoch[JOBS];
	char err[SW_ERR_LEN];

	(void)state;
	start_all();
	for (unsigned j = 0; j < JOBS; j++)
		epoch[j] = w.job[j].rank[0].epoch;
	const unsigned spine = world_spine(&w, 1);

	w.job[0].again = false;
	world_kill_manager(&w);
	world_kill_rank(&w, 0, 0);
	world_kill_switch(&w, spine);
	world_start_switch(&w, spine);
	assert_int_equal(
		sw_group_delete(w.sw[1].sw, (unsigned)sw_group_find(w.sw[1].sw, "job2"), true, err),
		0);
	world_start_manager(&w);
	world_pass(&w, 300);
	assert_true(world_active(&w, 1) && w.job[1].rank[0].epoch > epoch[1]);
	assert_true(world_active(&w, 2) && w.job[2].rank[0].epoch > epoch[2]);
	world_pass(&w, 5000);
	assert_non_null(strstr(explain("job0"), "over: "));
	for (unsigned i = 0; i < SWITCHES; i++)
		assert_true(
			i == spine || sw_group_find(w.sw[i].sw, "job0") < 0 ||
			w.sw[i].sw->group[sw_group_find(w.sw[i].sw, "job0")]->state == INC_FAILED);
	world_kill_rank(&w, 0, 1);
	end_all();
}

/* A link went down while nobody looked, and is down still: who runs over it is told, and goes on by
 * another spine; who does not never notices. */
static void test_link_meanwhile(void **state)
{
	uint64_t epoch[JOBS];
	unsigned from[JOBS];

	(void)state;
	start_all();
	for (unsigned j = 0; j < JOBS; j++) {
		epoch[j] = w.job[j].rank[0].epoch;
		from[j] = world_spine(&w, j);
	}
	world_kill_manager(&w);
	world_cut(&w, 0, from[0], true);
	world_pass(&w, 1000);
	world_start_manager(&w);
	world_pass(&w, 1500);
	for (unsigned j = 0; j < JOBS; j++) {
		assert_true(world_active(&w, j));
		assert_int_equal(w.job[j].rank[0].epoch > epoch[j], from[j] == from[0]);
	}
	assert_true(world_spine(&w, 0) != from[0]);
	end_all();
}

/* The clock was set back, and nobody has groups to tell it by: epochs ascend all the same. */
static void test_epochs_ascend(void **state)
{
	uint64_t epoch;

	(void)state;
	start_all();
	epoch = w.job[2].rank[0].epoch;
	end_all();
	world_pass(&w, 120000); /* and nobody remembers the runs */
	world_kill_manager(&w);
	w.late = 0;
	world_start_manager(&w);
	world_pass(&w, 300);
	world_start_job(&w, 0);
	world_pass(&w, 500);
	assert_true(world_active(&w, 0));
	assert_true(w.job[0].rank[0].epoch > epoch);
	end_all();
}

/* ---- who is deposed and does not know ---- */

static bool deposed, ends_epochs;

static int commit_while_ours(void *arg)
{
	json_array_clear(mortal.pending);
	(void)arg;
	return deposed ? -ESTALE : 0;
}

static int by_the_clock(void *arg)
{
	(void)arg;
	return 0;
}

static void note_end(void *arg, unsigned i, const char *text)
{
	(void)arg, (void)i;
	ends_epochs = ends_epochs || strstr(text, "epoch.end");
}

static void drop_nothing(void *arg, unsigned i)
{
	(void)arg, (void)i;
}

static void say_nothing(void *arg, enum journal_level level, const char *text)
{
	(void)arg, (void)level, (void)text;
}

/* He was stopped, his clock with him, and reads what a switch has of his successor's. */
static void test_successors_groups(void **state)
{
	static const char groups[] = "{\"jsonrpc\":\"2.0\",\"id\":\"epochs\",\"result\":{\"jobs\":"
				     "[{\"job\":\"x\",\"epoch\":70001,\"groups\":1}]}}";
	const struct manager_io io = {NULL, note_end, drop_nothing, say_nothing, NULL};
	struct store shared = {NULL, each, put, commit_while_ours, shut, by_the_clock};
	char err[MANAGER_ERR_LEN];
	struct manager *m;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		deposed = ends_epochs = false;
		assert_int_equal(manager_create(w.config, &io, &shared, 1, w.now, &m, err), 0);
		manager_up(m, 0, w.now);
		deposed = i;
		manager_heard(m, 0, groups, sizeof(groups) - 1, w.now);
		assert_int_equal(ends_epochs, !deposed); /* nobody's, if he leads */
		assert_int_equal(manager_failed(m), deposed ? -ESTALE : 0);
		manager_destroy(m);
	}
}

static int away(void *arg, int (*take)(void *to, const char *key, const char *value), void *to)
{
	(void)arg, (void)take, (void)to;
	return -ETIMEDOUT;
}

static int unwritten(void *arg, const char *key, const char *value)
{
	(void)arg, (void)key, (void)value;
	return -ETIMEDOUT;
}

/* A store that does not answer is not memory that has run out. */
static void test_says_what_fails(void **state)
{
	static const char *const says[] = {"store: cannot be read: Connection timed out",
		"store: cannot be written to: Connection timed out"};
	const struct manager_io io = {.name = "here:7"};
	char err[MANAGER_ERR_LEN] = "";
	struct store empty;
	struct manager *m;

	(void)state;
	assert_int_equal(store_memory_open(&empty), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct store lost = empty;

		lost.each = i ? empty.each : away;
		lost.put = unwritten;
		assert_int_equal(
			manager_create(w.config, &io, &lost, 1, w.now, &m, err), -ETIMEDOUT);
		assert_string_equal(err, says[i]);
	}
	empty.close(empty.arg);
}

/* ---- anywhere ---- */

/* All that is written: jobs begin, one fails, one loses a rank, one leaves, all end. */
static void story(void)
{
	for (unsigned j = 0; j < JOBS; j++) {
		w.job[j].again = true;
		world_start_job(&w, j);
		world_pass(&w, 150);
	}
	world_pass(&w, 1500);
	if (sw_group_find(w.sw[0].sw, "job0") > 0)
		inc_group_fail(w.sw[0].sw->group[sw_group_find(w.sw[0].sw, "job0")],
			INC_FAIL_CTRL_MISMATCH, 0);
	world_pass(&w, 1500);
	world_end_job(&w, 1);
	world_kill_rank(&w, 2, 1);
	world_pass(&w, 6000);
	/* Whoever is there gets on, wherever the manager died; by the ring, if that came before it
	 * was active. */
	if (!world_active(&w, 0) && strcmp(w.job[0].rank[0].phase, "ring") != 0)
		fail_msg("write %u %s, line %u: job0 is not active: %s", mortal.die_at,
			mortal.written ? "done" : "not done", w.die_at_line, w.job[0].rank[0].line);
	world_end_job(&w, 0);
	world_kill_rank(&w, 2, 0);
	world_pass(&w, 9000);
	world_expect_clean(&w);
}

static void test_matrix(void **state)
{
	unsigned writes, lines;

	(void)state;
	open_all();
	story();
	writes = mortal.writes;
	lines = w.lines;
	close_all();
	for (unsigned i = 0; i < 2 * writes; i++) {
		open_all();
		mortal.die_at = 1 + i / 2 + mortal.writes;
		mortal.written = i % 2;
		story();
		close_all();
	}
	for (unsigned i = 0; i < lines; i += 3) {
		open_all();
		w.die_at_line = 1 + i;
		story();
		close_all();
	}
	printf("killed before and after each of %u writes and at %u of %u lines: nothing was "
	       "left\n",
		writes, (lines + 2) / 3, lines);
}

/* ---- records that make no sense ---- */

struct rows {
	json_t *all;
};

static int note(void *to, const char *key, const char *value)
{
	return json_object_set_new(((struct rows *)to)->all, key, json_string(value));
}

static void expect_refused(const char *key, const char *value, const char *says)
{
	const struct manager_io io = {0};
	char err[MANAGER_ERR_LEN] = "";
	struct manager *m;

	put(NULL, key, value);
	assert_int_equal(commit(NULL), 0);
	const int rc = manager_create(w.config, &io, &mortal_store, 1, w.now, &m, err);
	if (rc != -EBADMSG)
		fail_msg("%s = %s: %d", key, value ? value : "nothing", rc);
	if (!strstr(err, says))
		fail_msg("%s = %s: \"%s\" lacks \"%s\"", key, value ? value : "nothing", err, says);
}

static void test_damaged_records(void **state)
{
	struct rows rows = {json_object()};
	char run[40] = "", key[48], *good, *bad;
	const char *name;
	json_t *value, *record;

	(void)state;
	start_all();
	world_kill_manager(&w);
	assert_int_equal(each(NULL, note, &rows), 0);
	json_object_foreach(rows.all, name, value) if (!strncmp(name, "run/", 4))
		snprintf(run, sizeof(run), "%s", name);
	assert_true(run[0]);
	good = strdup(json_string_value(json_object_get(rows.all, run)));
	expect_refused(run, "{", "run/");
	expect_refused(run, "{}", "job: is missing");
	record = json_loads(good, 0, NULL);
	json_object_set_new(json_object_get(record, "plan"), "mode", json_integer(99));
	bad = json_dumps(record, 0);
	expect_refused(run, bad, "plan.mode: 99 is not in");
	free(bad);
	json_array_append_new(json_object_get(record, "who"), json_integer(1));
	json_object_set_new(json_object_get(record, "plan"), "mode", json_integer(4));
	bad = json_dumps(record, 0);
	expect_refused(run, bad, "contradicts itself");
	free(bad);
	json_decref(record);
	put(NULL, run, good);
	snprintf(key, sizeof(key), "state/%s", run + 4);
	value = json_object_get(rows.all, key);
	expect_refused(key, NULL, "its \"state\" is missing");
	expect_refused(key, "{\"phase\":4}", "is missing");
	put(NULL, key, json_string_value(value));
	expect_refused("run/x", "{}", "\"run/x\": is not known");
	put(NULL, "run/x", NULL);
	expect_refused("epoch", "-1", "\"epoch\": is no number");
	put(NULL, "epoch", "70000");
	assert_int_equal(commit(NULL), 0);
	world_start_manager(&w);
	world_pass(&w, 1000);
	for (unsigned j = 0; j < JOBS; j++)
		assert_true(world_active(&w, j));
	free(good);
	json_decref(rows.all);
	end_all();
}

/* A switch that runs go over is not in the configuration any more: they are over, all others go on,
 * and what they had is taken away. */
static void test_smaller_fabric(void **state)
{
	unsigned spine;
	json_t *links, *l;
	size_t i;

	(void)state;
	start_all();
	spine = world_spine(&w, 0);
	w.job[0].again = false;
	world_kill_manager(&w);
	links = json_object_get(w.config, "links");
	for (i = json_array_size(links); i-- > 0;) {
		l = json_array_get(links, i);
		if (!strcmp(rpc_string(l, "b"), spine == LEAVES       ? "spine0"
						: spine == LEAVES + 1 ? "spine1"
								      : "spine2"))
			json_array_remove(links, i);
	}
	world_start_manager(&w);
	world_pass(&w, 3000);
	assert_string_equal(w.job[0].rank[0].phase, "over");
	assert_true(world_active(&w, 1) && world_active(&w, 2));
	for (i = 0; i < SWITCHES; i++)
		assert_int_equal(sw_group_find(w.sw[i].sw, "job0"), -2);
	for (unsigned r = 0; r < RANKS; r++)
		world_kill_rank(&w, 0, r);
	end_all();
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_goes_on),
		T(test_meanwhile),
		T(test_link_meanwhile),
		T(test_epochs_ascend),
		T(test_successors_groups),
		T(test_says_what_fails),
		T(test_damaged_records),
		T(test_smaller_fabric),
		cmocka_unit_test(test_matrix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
