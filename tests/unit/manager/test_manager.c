/* SPDX-License-Identifier: BSD-3-Clause */
/* The manager's own code, the switches' agents' own code, on virtual time: jobs without a tree get
 * one, and whatever dies leaves nothing behind.
 *
 *	test_manager [RUNS]	of all at random; 200 unless told */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

static struct world w;

static int setup(void **state)
{
	(void)state;
	world_open(&w);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	world_close(&w);
	return 0;
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

static char *explain(const char *job)
{
	static char line[512];
	json_t *r = world_ask(&w, "job.explain", json_pack("{s:s}", "job", job));

	snprintf(line, sizeof(line), "%s", rpc_string(r, "line"));
	json_decref(r);
	return line;
}

static void test_three_jobs(void **state)
{
	(void)state;
	start_all();
	/* One spine each: the widest tree is where nobody else is. */
	assert_int_not_equal(world_spine(&w, 0), world_spine(&w, 1));
	assert_int_not_equal(world_spine(&w, 0), world_spine(&w, 2));
	assert_int_not_equal(world_spine(&w, 1), world_spine(&w, 2));
	for (unsigned i = 0; i < SWITCHES; i++)
		assert_int_equal(sw_group_find(w.sw[i].sw, "job0") > 0,
			i < LEAVES || i == world_spine(&w, 0));
	assert_non_null(strstr(explain("job1"), "active"));
	assert_non_null(strstr(explain("job1"), "spine"));
	for (unsigned j = 0; j < JOBS; j++)
		world_end_job(&w, j);
	world_pass(&w, 500);
	world_expect_clean(&w);
	assert_non_null(strstr(explain("job1"), "all ranks left"));
}

/* Who answers, since when, with how many switches. */
static void test_who(void **state)
{
	json_t *r;

	(void)state;
	world_kill_manager(&w);
	world_pass(&w, 5000);
	world_start_manager(&w);
	world_kill_switch(&w, LEAVES);
	world_pass(&w, 2500);
	r = world_ask(&w, "manager.who", NULL);
	assert_string_equal(rpc_string(r, "name"), "here:7");
	assert_int_equal(rpc_int(r, "leads_s", -1), 2);
	assert_int_equal(rpc_int(r, "switches", -1), SWITCHES - 1);
	json_decref(r);
	/* Where switches' workers run, of those that have said so. */
	r = world_ask(&w, "topology.get", NULL);
	for (unsigned i = 0; i < SWITCHES; i++) {
		const json_t *row = json_array_get(json_object_get(r, "nodes"), i),
			     *workers = json_object_get(row, "workers");

		assert_int_equal(json_array_size(workers), i == LEAVES ? 0 : 2);
		for (unsigned k = 0; i != LEAVES && k < 2; k++)
			assert_int_equal(
				json_integer_value(json_array_get(workers, k)), k ? 0 : -1);
	}
	json_decref(r);
}

/* A rank that waited for the others has died; the job is started anew, the other rank first: it is
 * not placed with the dead one, to hear that the living one has joined anew. */
static void test_died_while_joining(void **state)
{
	uint64_t epoch;

	(void)state;
	world_start_rank(&w, 0, 0);
	world_pass(&w, 100);
	world_kill_rank(&w, 0, 0);
	world_start_rank(&w, 0, 1);
	world_pass(&w, 100);
	assert_string_equal(w.job[0].rank[1].phase, "joining");
	epoch = w.job[0].rank[1].epoch;
	world_start_rank(&w, 0, 0);
	world_pass(&w, 300);
	assert_true(world_active(&w, 0) && w.job[0].rank[0].epoch == epoch);
	world_end_job(&w, 0);
	world_pass(&w, 500);
	world_expect_clean(&w);
}

/* Another tree, another epoch, for who was there; the others have not noticed. */
static void moved(unsigned hit, uint64_t epoch[JOBS], unsigned from)
{
	for (unsigned j = 0; j < JOBS; j++) {
		assert_true(world_active(&w, j));
		if (j == hit)
			assert_true(w.job[j].rank[0].epoch > epoch[j]);
		else
			assert_int_equal(w.job[j].rank[0].epoch, epoch[j]);
	}
	assert_int_not_equal(world_spine(&w, hit), from);
}

static void remember(uint64_t epoch[JOBS])
{
	for (unsigned j = 0; j < JOBS; j++)
		epoch[j] = w.job[j].rank[0].epoch;
}

static void test_spine_dies(void **state)
{
	uint64_t epoch[JOBS];
	unsigned spine;

	(void)state;
	start_all();
	spine = world_spine(&w, 1);
	remember(epoch);
	world_kill_switch(&w, spine);
	world_pass(&w, 3000);
	moved(1, epoch, spine);
	world_start_switch(&w, spine);
	world_pass(&w, 3000);
	for (unsigned j = 0; j < JOBS; j++)
		world_end_job(&w, j);
	world_pass(&w, 3000);
	world_expect_clean(&w);
}

static void test_link_cut(void **state)
{
	uint64_t epoch[JOBS];
	unsigned spine;

	(void)state;
	start_all();
	spine = world_spine(&w, 2);
	remember(epoch);
	world_cut(&w, 1, spine, true);
	world_pass(&w, 1000);
	moved(2, epoch, spine);
	for (unsigned j = 0; j < JOBS; j++)
		world_end_job(&w, j);
	world_pass(&w, 3000);
	world_expect_clean(&w);
}

/* A switch fails a group: it fails on all others, and ranks hear of it. */
static void test_failure_spreads(void **state)
{
	unsigned spine;

	(void)state;
	start_all();
	w.job[0].again = false;
	spine = world_spine(&w, 0);
	inc_group_fail(
		w.sw[0].sw->group[sw_group_find(w.sw[0].sw, "job0")], INC_FAIL_CTRL_MISMATCH, 0);
	world_pass(&w, 200);
	assert_int_equal(
		w.sw[spine].sw->group[sw_group_find(w.sw[spine].sw, "job0")]->state, INC_FAILED);
	assert_string_equal(w.job[0].rank[1].phase, "over");
	assert_non_null(strstr(w.job[0].rank[1].line, "its group failed on leaf0"));
	world_pass(&w, 2000);
	assert_int_equal(sw_group_find(w.sw[spine].sw, "job0"), -2);
	assert_true(world_active(&w, 1) && world_active(&w, 2));
}

/* Whoever of a job dies: what it had goes, within the bound, and the others stay. */
static void test_rank_dies(void **state)
{
	for (unsigned r = 0; r < RANKS; r++) {
		start_all();
		w.job[1].again = false;
		world_kill_rank(&w, 1, r);
		world_pass(&w, 3300);
		assert_string_equal(w.job[1].rank[!r].phase, "over");
		world_pass(&w, 2000);
		for (unsigned i = 0; i < SWITCHES; i++)
			assert_int_equal(sw_group_find(w.sw[i].sw, "job1"), -2);
		assert_true(world_active(&w, 0) && world_active(&w, 2));
		for (unsigned j = 0; j < JOBS; j++)
			world_end_job(&w, j);
		world_pass(&w, 2000);
		world_expect_clean(&w);
	}
	(void)state;
}

/* The manager is not needed for what runs, and its successor learns from ranks and switches. */
static void test_manager_dies(void **state)
{
	uint64_t epoch[JOBS];

	(void)state;
	start_all();
	remember(epoch);
	world_kill_manager(&w);
	world_pass(&w, 10000);
	world_kill_rank(&w, 2, 0);
	world_kill_rank(&w, 2, 1);
	world_start_manager(&w);
	world_pass(&w, 500);
	assert_string_equal(w.job[0].rank[1].phase, "adopted");
	assert_non_null(strstr(explain("job0"), "adopted"));
	world_pass(&w, 20000);
	assert_true(sw_group_find(w.sw[0].sw, "job0") > 0);
	assert_true(sw_group_find(w.sw[0].sw, "job1") > 0);
	assert_int_equal(sw_group_find(w.sw[0].sw, "job2"), -2);
	/* Failures of what it has adopted spread as well; jobs come back under its own epochs. */
	inc_group_fail(
		w.sw[1].sw->group[sw_group_find(w.sw[1].sw, "job0")], INC_FAIL_CTRL_MISMATCH, 0);
	world_pass(&w, 3000);
	assert_true(world_active(&w, 0));
	assert_true(w.job[0].rank[0].epoch > epoch[0]);
	world_kill_rank(&w, 1, 0);
	world_kill_rank(&w, 1, 1);
	world_pass(&w, 5500);
	world_end_job(&w, 0);
	world_pass(&w, 2000);
	world_expect_clean(&w);
}

/* Cut off from the manager only: nothing happens to who works; nobody is placed there. */
static void test_cut_off(void **state)
{
	uint64_t epoch[JOBS];
	unsigned spine;

	(void)state;
	start_all();
	remember(epoch);
	spine = world_spine(&w, 0);
	w.sw[spine].cut_off = true;
	world_pass(&w, 10000);
	for (unsigned j = 0; j < JOBS; j++)
		assert_true(world_active(&w, j) && w.job[j].rank[0].epoch == epoch[j]);
	world_end_job(&w, 0);
	world_pass(&w, 500);
	world_start_job(&w, 0);
	world_pass(&w, 1000);
	assert_true(world_active(&w, 0));
	assert_int_not_equal(world_spine(&w, 0), spine);
	w.sw[spine].cut_off = false;
	for (unsigned j = 0; j < JOBS; j++)
		world_end_job(&w, j);
	world_pass(&w, 3000);
	world_expect_clean(&w);
}

/* Nothing is there that all reach: the ring, and why. */
static void test_no_tree(void **state)
{
	(void)state;
	for (unsigned s = 0; s < SPINES; s++)
		world_cut(&w, 0, LEAVES + s, true);
	world_pass(&w, 500);
	world_start_job(&w, 0);
	world_pass(&w, 500);
	assert_string_equal(w.job[0].rank[0].phase, "ring");
	assert_non_null(strstr(explain("job0"), "by the hosts' ring"));
}

/* Switches and ranks that talk nonsense: a clear error, or nothing, and all goes on. */
static void test_nonsense(void **state)
{
	static const char *const answers[] = {"", "x", "[]", "{}", "{\"id\":\"hello\"}",
		"{\"id\":\"hello\",\"result\":[]}",
		"{\"id\":\"hello\",\"result\":{\"boot\":\"zz\"}}",
		"{\"id\":\"hello\",\"result\":{\"boot\":\"1\",\"max_groups\":-1}}",
		"{\"id\":\"epochs\",\"result\":{\"jobs\":[1,{},{\"job\":\"job0\",\"groups\":9},"
		"{\"job\":7,\"epoch\":{},\"groups\":9}]}}",
		"{\"method\":\"event\"}", "{\"method\":\"event\",\"params\":{\"kind\":9}}",
		"{\"method\":\"event\",\"params\":{\"kind\":\"port_down\",\"port\":\"none\"}}",
		"{\"method\":\"event\",\"params\":{\"kind\":\"group_failed\",\"job\":\"x\","
		"\"epoch\":1}}",
		"{\"id\":\"18446744073709551616:9\",\"result\":{}}",
		"{\"id\":\":1\",\"result\":{}}", "{\"id\":\"1000:0\",\"error\":7}"};
	static const struct {
		const char *line, *says;
	} bad[] = {
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.join\",\"params\":{\"job\":\"j\","
		 "\"ranks\":2,\"rank\":0,\"who\":1,\"ip\":\"10.9.9.9\",\"mtu\":1024}}",
			"10.9.9.9 is no host's of this fabric"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.join\",\"params\":{\"job\":\"j\","
		 "\"ranks\":2,\"rank\":2,\"who\":1,\"ip\":\"10.1.0.0\",\"mtu\":1024}}",
			"makes no sense"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.join\",\"params\":{\"job\":\"j\","
		 "\"ranks\":2049,\"rank\":0,\"who\":1,\"ip\":\"10.1.0.0\",\"mtu\":1024}}",
			"2049 is not in 1..2048"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.ready\",\"params\":{\"job\":"
		 "\"job1\","
		 "\"epoch\":1000,\"rank\":0,\"who\":1}}",
			"is another job's"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.leave\",\"params\":{\"job\":"
		 "\"job0\","
		 "\"epoch\":1000,\"rank\":9,\"who\":1}}",
			"9 has not joined"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.explain\",\"params\":{\"job\":"
		 "\"x\"}}",
			"no job is named"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.create\"}", "is not known"},
		{"nonsense", "byte"},
	};
	struct manager_peer stranger = {.who = {.role = CTL_STRANGER}};
	char *answer;

	(void)state;
	start_all();
	for (unsigned i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		manager_heard(w.m, i % SWITCHES, answers[i], strlen(answers[i]), w.now);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		answer = manager_line(w.m, &stranger, bad[i].line, strlen(bad[i].line), w.now);
		if (!strstr(answer, bad[i].says))
			fail_msg("%s: %s lacks \"%s\"", bad[i].line, answer, bad[i].says);
		free(answer);
	}
	static const char list[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.list\"}";
	answer = manager_line(w.m, &stranger, list, strlen(list), w.now);
	assert_non_null(strstr(answer, "not allowed over TCP"));
	free(answer);
	manager_gone(w.m, &stranger);
	world_pass(&w, 3000);
	for (unsigned j = 0; j < JOBS; j++)
		assert_true(world_active(&w, j));
}

/* ---- why ---- */

struct why {
	const char *mode[RANKS], *policy;
	unsigned mtu, arena; /* 0: as ever */
	bool cut, gone;      /* all spines; the host's own leaf */
	const char *says;
};

static void why_join(unsigned j, unsigned r, const struct why *y, struct manager_peer *peer)
{
	char line[320], *answer;

	snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.join\",\"params\":{\"job\":"
		"\"why%u\",\"ranks\":2,\"rank\":%u,\"who\":%u,\"ip\":\"10.1.%u.%u\","
		"\"mtu\":%u%s%s%s}}",
		j, r, 1 + r, r, j, y->mtu ? y->mtu : 1024, y->mode[r] ? ",\"mode\":\"" : "",
		y->mode[r] ?: "", y->mode[r] ? "\"" : "");
	answer = manager_line(w.m, peer, line, strlen(line), w.now);
	if (!strstr(answer, "\"result\""))
		fail_msg("%s: %s", line, answer);
	free(answer);
}

static void expect_why(const struct why *y)
{
	struct manager_peer peer[JOBS][RANKS];
	const unsigned jobs = y->policy && !strcmp(y->policy, "edt") ? JOBS : 1;
	char name[16];

	memset(peer, 0, sizeof(peer));
	world_open(&w);
	world_kill_manager(&w);
	json_object_set_new(w.config, "policy", json_string(y->policy ?: "spatial"));
	for (unsigned i = 0; i < SWITCHES; i++)
		w.sw[i].sw->arena = y->arena ? y->arena : 1 << 20;
	for (unsigned s = 0; s < SPINES; s++)
		world_cut(&w, 0, LEAVES + s, y->cut || (jobs > 1 && s > 0));
	if (y->gone)
		world_kill_switch(&w, 0);
	world_start_manager(&w);
	world_pass(&w, 1500); /* one that has gone is known to be dead */
	for (unsigned j = 0; j < jobs; j++)
		for (unsigned r = 0; r < RANKS; r++)
			why_join(j, r, y, &peer[j][r]);
	world_pass(&w, 200);
	snprintf(name, sizeof(name), "why%u", jobs - 1);
	if (!strstr(explain(name), y->says))
		fail_msg("\"%s\" lacks \"%s\"", explain(name), y->says);
	for (unsigned j = 0; j < jobs; j++)
		for (unsigned r = 0; r < RANKS; r++)
			manager_gone(w.m, &peer[j][r]);
	world_close(&w);
}

/* What a job's line says, and what would have to change. */
static void test_why(void **state)
{
	static const struct why all[] = {
		{.says = ", connecting: in the network: height 2, 3 switches, root first: spine"},
		{.mode = {"III", "III"}, .says = " leaf0 leaf1; mode III, M "},
		{.says = " bytes in all, "},
		{.cut = true,
			.says = ", by the hosts' ring: not in the network: no common switch: none "
				"that is up reaches all ranks within 4 levels and 63 children "
				"each; a link or a switch has to come back"},
		{.gone = true, .says = "a rank's host is unknown, down, or without a link"},
		{.arena = 2048, .says = "no memory or no group left; it would fit when another"},
		{.mode = {"II", "III"},
			.says = "the ranks' devices have no mode in common; their group files "
				"have to ask for the same one"},
		{.policy = "edt",
			.says = "the policy edt gives a link to one tree, and every tree needs one "
				"that is taken; it would fit when another group ends, or with the "
				"policy spatial"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
		expect_why(&all[i]);
}

/* ---- one connection, two runs ---- */

static uint64_t hand_join(struct manager_peer *peer, unsigned rank, uint64_t who)
{
	char line[256], *answer;
	json_t *a;
	uint64_t epoch = 0;

	snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.join\",\"params\":{\"job\":"
		"\"hand\","
		"\"ranks\":2,\"rank\":%u,\"who\":%llu,\"ip\":\"10.1.%u.0\",\"mtu\":1024}}",
		rank, (unsigned long long)who, rank);
	answer = manager_line(w.m, peer, line, strlen(line), w.now);
	a = json_loads(answer, 0, NULL);
	ctl_get_u64(json_object_get(json_object_get(a, "result"), "epoch"), &epoch);
	json_decref(a);
	free(answer);
	return epoch;
}

static void hand_say(
	struct manager_peer *peer, const char *method, unsigned rank, uint64_t who, uint64_t epoch)
{
	char line[256];

	snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{\"job\":\"hand\","
		"\"epoch\":%llu,\"rank\":%u,\"who\":%llu}}",
		method, (unsigned long long)epoch, rank, (unsigned long long)who);
	free(manager_line(w.m, peer, line, strlen(line), w.now));
}

/* Who joins a new run and then says of the old one that it leaves, or is alive, stays in the new
 * one by its connection alone. */
static void test_leaves_the_old_run(void **state)
{
	static const char *const last_words[] = {"job.leave", "job.heartbeat", "job.ready"};
	struct manager_peer peer[2];
	uint64_t old = 0, now = 0;

	(void)state;
	memset(peer, 0, sizeof(peer));
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned r = 0; r < 2; r++)
			old = hand_join(&peer[r], r, 10 + 10 * i + r);
		for (unsigned r = 0; r < 2; r++)
			now = hand_join(&peer[r], r, 15 + 10 * i + r);
		assert_true(now > old);
		for (unsigned r = 0; r < 2; r++)
			hand_say(&peer[r], last_words[i], r, 10 + 10 * i + r, old);
		world_pass(&w, 10000);
		if (!strstr(explain("hand"), "connecting"))
			fail_msg("after %s: %s", last_words[i], explain("hand"));
	}
	for (unsigned r = 0; r < 2; r++)
		manager_gone(w.m, &peer[r]);
	world_pass(&w, 6000);
	world_expect_clean(&w);
}

/* ---- anything, at any time ---- */

static uint64_t roll(uint64_t n)
{
	w.random = w.random * 6364136223846793005u + 1442695040888963407u;
	return (w.random >> 33) % n;
}

static void strike(unsigned *what)
{
	const unsigned s = (unsigned)roll(SWITCHES), j = (unsigned)roll(JOBS);

	what[0]++;
	switch (roll(5)) {
	case 0:
		world_kill_rank(&w, j, (unsigned)roll(RANKS));
		break;
	case 1:
		world_kill_rank(&w, j, 0);
		break;
	case 2:
		if (w.sw[s].sw)
			world_kill_switch(&w, s);
		break;
	case 3:
		if (w.m)
			world_kill_manager(&w);
		break;
	default:
		if (w.sw[0].sw && w.sw[LEAVES + s % SPINES].sw)
			world_cut(&w, 0, LEAVES + s % SPINES, roll(2));
	}
}

static void mend(void)
{
	for (unsigned i = 0; i < SWITCHES; i++)
		if (!w.sw[i].sw)
			world_start_switch(&w, i);
	for (unsigned s = 0; s < SPINES; s++)
		world_cut(&w, 0, LEAVES + s, false);
	if (!w.m)
		world_start_manager(&w);
}

static unsigned n_runs = 200;

static void test_matrix(void **state)
{
	unsigned strikes = 0;

	(void)state;
	w.random = 20261123;
	for (unsigned run = 0; run < n_runs; run++) {
		for (unsigned j = 0; j < JOBS; j++) {
			w.job[j].again = true;
			world_start_job(&w, j);
		}
		for (unsigned n = (unsigned)roll(4) + 1; n; n--) {
			world_pass(&w, 50 * roll(40));
			strike(&strikes);
		}
		mend();
		for (unsigned j = 0; j < JOBS; j++)
			for (unsigned r = 0; r < RANKS; r++)
				world_kill_rank(&w, j, r);
		/* Ranks are missed, groups drained; and a new manager waits for ranks first. */
		world_pass(&w, 12000);
		world_expect_clean(&w);
	}
	printf("%u runs, %u strikes: nothing was left\n", n_runs, strikes);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(test_three_jobs),
		T(test_who),
		T(test_died_while_joining),
		T(test_spine_dies),
		T(test_link_cut),
		T(test_failure_spreads),
		T(test_rank_dies),
		T(test_manager_dies),
		T(test_cut_off),
		T(test_no_tree),
		T(test_nonsense),
		cmocka_unit_test(test_why),
		T(test_leaves_the_old_run),
		T(test_matrix),
	};

	if (argc > 1)
		n_runs = (unsigned)atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
