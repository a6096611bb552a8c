/* SPDX-License-Identifier: BSD-3-Clause */
/* One of all that can die, or be cut off, does so at any moment of three jobs' lives, and comes
 * back, or not. The manager's own code and the agents' own, on virtual time: what docs/manager.md
 * says is seen, told and collected within its bound; whoever is not concerned never notices; and
 * afterwards groups, leases and memory of every switch are as before, though nobody tidied up.
 *
 *	test_manager_kills [RUNS [BY TURNS]]	from seed 1 on; 40 unless told, and 12 under the
 *						policy temporal: each kind of death once */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

enum {
	STEP_MS = 20,
	WATCH_MS = 500,     /* CommLib's */
	TCP_GONE_MS = 3000, /* until a connection without a peer ends: ctl_tcp_watch */
	DRAIN_MS = 1000,    /* the world's */
	AFTER_MS = 20000,   /* looked at after a strike */
	ETCD_MS = 1000,     /* until another member is asked: store_etcd.c */
	NEVER = UINT32_MAX,
};

enum kind {
	RANK,
	RANK_0,
	RANK_CUT,
	SWITCH,
	LINK,
	AGENT,
	AGENT_RANK,
	ETCD,
	ETCD_RANK,
	MANAGER,
	MANAGER_RANK,
	MANAGER_LINK,
	KINDS
};

/* In ms after the strike, or, where who has to act was away, after it is back. */
static const struct bound {
	const char *name;
	unsigned seen, told, collected;
	bool after_back;
} bounds[KINDS] = {
	[RANK] = {"rank", 3300, 3800, 3300 + DRAIN_MS + 300},
	[RANK_0] = {"rank 0", 3300, 3800, 3300 + DRAIN_MS + 300},
	[RANK_CUT] = {"rank's host", 6300, 6800, 6300 + DRAIN_MS + 300},
	[SWITCH] = {"switch", 2000, 2500, 2000 + DRAIN_MS + 300},
	[LINK] = {"link", 300, 800, 300 + DRAIN_MS + 300},
	/* Jobs go on. Seen: no tree is placed there. */
	[AGENT] = {"agent cut off", 3300, NEVER, NEVER},
	[AGENT_RANK] = {"agent, rank", 3300, 3800, 3300 + DRAIN_MS + 800, true},
	/* Jobs go on. Else one write more than there is takes so long. */
	[ETCD] = {"etcd member", NEVER, NEVER, NEVER},
	[ETCD_RANK] = {"etcd member, rank", 3300 + ETCD_MS, 3800 + ETCD_MS,
		3300 + ETCD_MS + DRAIN_MS + 300},
	[MANAGER] = {"manager", NEVER, NEVER, NEVER},
	[MANAGER_RANK] = {"manager, rank", 5300, 5800, 5300 + DRAIN_MS + 300, true},
	[MANAGER_LINK] = {"manager, link", 300, 800, 300 + DRAIN_MS + 300, true},
};

static struct world w;
/* An etcd as it looks to a manager: the member that it asks dies, and what it asks next, by a write
 * or for its lease, waits for that one before another is asked, which answers at once. Nothing else
 * happens meanwhile. */
static struct store etcd;
static bool member_is_dead;

static void ask_etcd(void)
{
	if (member_is_dead)
		w.now += ETCD_MS * 1000000ull;
	member_is_dead = false;
}

static int late_commit(void *arg)
{
	ask_etcd();
	return etcd.commit(arg);
}

static int late_alive(void *arg)
{
	(void)arg;
	ask_etcd();
	return 0;
}

static uint64_t worst[KINDS][3];
static unsigned runs[KINDS], hits[KINDS];
static bool by_turns;                      /* the policy is temporal, and most jobs share memory */
static unsigned took_lease, installations; /* installations: struck in their middle */

/* ---- one run ---- */

static struct run {
	unsigned seed;
	enum kind kind;
	unsigned job, rank, leaf, at; /* who is struck; at: a switch */
	bool again;                   /* who is told, and who died, joins anew */
	unsigned step;                /* of the job's installation it strikes after; 0: any time */
	uint64_t struck, back;        /* times */
	bool is_back, rank_lost;
	struct watched {
		bool runs, hit; /* runs: it is active, or being installed */
		uint64_t epoch;
		json_t *window;                 /* block and turn, NULL: none */
		uint64_t seen, told, collected; /* times, 0: not yet */
	} job_of[JOBS];
	uint64_t down; /* when the manager knew that the agent is cut off */
} run;

static uint64_t roll(uint64_t n)
{
	w.random = w.random * 6364136223846793005u + 1442695040888963407u;
	return (w.random >> 33) % n;
}

static const char *what(void)
{
	static char text[160];

	snprintf(text, sizeof(text), "seed %u: %s: job %u, rank %u, switch %u, leaf %u, step %u",
		run.seed, bounds[run.kind].name, run.job, run.rank, run.at, run.leaf, run.step);
	return text;
}

/* ---- what switches have ---- */

static bool is_on(unsigned i, unsigned j, uint64_t epoch)
{
	char name[16];

	snprintf(name, sizeof(name), "job%u", j);
	return world_has(&w, i, name, epoch);
}

static bool is_anywhere(unsigned j, uint64_t epoch)
{
	for (unsigned i = 0; i < SWITCHES; i++)
		if (is_on(i, j, epoch))
			return true;
	return false;
}

/* ---- what the manager and the ranks know ---- */

static bool is_over(const char *phase)
{
	return !strcmp(phase, "over") || !strcmp(phase, "ring");
}

static bool manager_saw(uint64_t epoch)
{
	json_t *list = world_ask(&w, "job.list", NULL), *row;
	bool saw = true; /* it does not know it any more */
	size_t k;

	json_array_foreach(json_object_get(list, "jobs"), k, row)
	{
		uint64_t is;

		if (!ctl_get_u64(json_object_get(row, "epoch"), &is) && is == epoch)
			saw = is_over(rpc_string(row, "phase"));
	}
	json_decref(list);
	return saw;
}

static bool is_down(unsigned i)
{
	json_t *t = world_ask(&w, "topology.get", NULL);
	/* switches come first, in the file's order */
	const bool down = !strcmp(
		rpc_string(json_array_get(json_object_get(t, "nodes"), i), "state"), "down");

	json_decref(t);
	return down;
}

static bool was_told(unsigned j)
{
	for (unsigned r = 0; r < RANKS; r++) {
		const struct world_rank *k = &w.job[j].rank[r];

		if (run.rank_lost && j == run.job && r == run.rank)
			continue;
		if (!is_over(k->phase) && k->epoch == run.job_of[j].epoch)
			return false;
	}
	return true;
}

static void note(uint64_t *at, bool yes)
{
	if (!*at && yes)
		*at = w.now;
}

static void observe(void)
{
	for (unsigned j = 0; j < JOBS; j++) {
		struct watched *x = &run.job_of[j];

		if (!x->hit || (run.kind >= MANAGER_RANK && !run.is_back))
			continue;
		note(&x->seen, w.m && !x->seen && manager_saw(x->epoch));
		note(&x->told, was_told(j));
		note(&x->collected, !is_anywhere(j, x->epoch));
	}
	if (run.kind == AGENT && !run.is_back)
		note(&run.down, !run.down && is_down(run.at));
}

/* ---- striking ---- */

static bool is_link(void)
{
	return run.kind == LINK || run.kind == MANAGER_LINK;
}

static bool on_link(unsigned j)
{
	return world_spine(&w, j) == run.at;
}

/* Its rank 0 has made some groups of its tree, perhaps not all, or not all are activated. */
static bool is_begun(unsigned j)
{
	const struct world_job *job = &w.job[j];

	return job->steps && job->installing == job->rank[0].epoch &&
	       !strcmp(job->rank[0].phase, "connecting");
}

static void aim(void)
{
	for (unsigned j = 0; j < JOBS; j++) {
		struct watched *x = &run.job_of[j];

		*x = (struct watched){.runs = world_active(&w, j) || is_begun(j),
			.epoch = w.job[j].rank[0].epoch,
			.window = json_incref(w.job[j].rank[0].window)};
		if (run.kind == SWITCH)
			x->hit = x->runs && (run.at < LEAVES || on_link(j));
		else if (is_link())
			x->hit = x->runs && on_link(j);
		else
			x->hit = x->runs && run.rank_lost && j == run.job;
	}
}

static void strike(void)
{
	run.struck = w.now;
	run.back = w.now + (200 + STEP_MS * roll(390)) * 1000000;
	run.is_back = false;
	run.down = 0;
	run.rank_lost = run.kind <= RANK_CUT || run.kind == AGENT_RANK || run.kind == ETCD_RANK ||
			run.kind == MANAGER_RANK;
	member_is_dead = run.kind == ETCD || run.kind == ETCD_RANK;
	aim();
	if (run.kind == SWITCH)
		world_kill_switch(&w, run.at);
	if (is_link())
		world_cut(&w, run.leaf, run.at, true);
	if (run.kind == AGENT || run.kind == AGENT_RANK)
		world_cut_off(&w, run.at, true);
	if (run.kind >= MANAGER)
		world_kill_manager(&w);
	if (run.kind == RANK_CUT) /* nothing says that it has gone, but the time */
		w.job[run.job].rank[run.rank].alive = false;
	else if (run.rank_lost)
		world_kill_rank(&w, run.job, run.rank);
}

static void come_back(void)
{
	run.is_back = true;
	if (run.kind == SWITCH) {
		world_start_switch(&w, run.at);
		world_install_static(&w, run.at);
	}
	if (run.kind == LINK)
		world_cut(&w, run.leaf, run.at, false);
	if (run.kind == AGENT || run.kind == AGENT_RANK)
		world_cut_off(&w, run.at, false);
	if (run.kind >= MANAGER) /* who finds the link as it is */
		world_start_manager(&w);
	if (run.rank_lost && run.again) {
		if (run.kind == RANK_CUT)
			world_kill_rank(&w, run.job, run.rank);
		world_start_rank(&w, run.job, run.rank);
	}
}

static void watch(void)
{
	const uint64_t end = w.now + AFTER_MS * 1000000ull;
	bool gone = run.kind != RANK_CUT;

	while (w.now < end) {
		world_pass(&w, STEP_MS);
		if (!run.is_back && w.now >= run.back) {
			come_back();
			gone |= run.again;
		}
		if (!gone && w.now >= run.struck + TCP_GONE_MS * 1000000ull) {
			world_kill_rank(&w, run.job, run.rank);
			gone = true;
		}
		observe();
	}
}

/* ---- judging ---- */

static void within(unsigned which, uint64_t at, unsigned bound)
{
	static const char *const names[] = {"seen", "told", "collected"};
	const uint64_t from =
		bounds[run.kind].after_back && run.back > run.struck ? run.back : run.struck;
	const uint64_t ms = at > from ? (at - from) / 1000000 : 0;

	if (bound == NEVER)
		return;
	if (!at)
		fail_msg("%s: never %s", what(), names[which]);
	if (ms > bound)
		fail_msg("%s: %s after %llu ms, the bound is %u", what(), names[which],
			(unsigned long long)ms, bound);
	if (ms > worst[run.kind][which])
		worst[run.kind][which] = ms;
}

/* ---- turns ---- */

static bool same_turn(const json_t *a, const json_t *b)
{
	static const char *const fields[] = {"lease", "start_us", "length_us"};

	for (unsigned i = 0; a && b && i < 3; i++)
		if (!json_equal(json_object_get(a, fields[i]), json_object_get(b, fields[i])))
			return false;
	return !a == !b;
}

static bool overlap(const json_t *a, const json_t *b)
{
	const int64_t from = rpc_int(a, "start_us", 0), other = rpc_int(b, "start_us", 0);

	return !strcmp(rpc_string(a, "lease"), rpc_string(b, "lease")) &&
	       from < other + rpc_int(b, "length_us", 0) &&
	       other < from + rpc_int(a, "length_us", 0);
}

/* Whoever goes on keeps his turn, and nobody has a part of another's: all trees share the leaves.
 */
static void judge_turns(void)
{
	for (unsigned j = 0; j < JOBS; j++) {
		const struct watched *x = &run.job_of[j];
		const json_t *is = w.job[j].rank[0].window;

		took_lease += w.job[j].acquired;
		if (!world_active(&w, j))
			continue;
		if (x->runs && w.job[j].rank[0].epoch == x->epoch && !same_turn(x->window, is))
			fail_msg("%s: job %u has another turn than before", what(), j);
		for (unsigned k = 0; k < j; k++)
			if (world_active(&w, k) && is && w.job[k].rank[0].window &&
				overlap(is, w.job[k].rank[0].window))
				fail_msg("%s: jobs %u and %u have one turn", what(), k, j);
	}
}

static void judge(void)
{
	const struct bound *b = &bounds[run.kind];

	runs[run.kind]++;
	for (unsigned j = 0; j < JOBS; j++) {
		const struct watched *x = &run.job_of[j];

		if (x->hit) {
			hits[run.kind]++;
			within(0, x->seen, b->seen);
			within(1, x->told, b->told);
			within(2, x->collected, b->collected);
		} else if (x->runs &&
			   (w.job[j].rank[0].epoch != x->epoch || !world_active(&w, j)) &&
			   strcmp(w.job[j].rank[0].phase, "adopted") != 0) {
			fail_msg("%s: job %u had nothing to do with it and is %s: %s", what(), j,
				w.job[j].rank[0].phase, w.job[j].rank[0].line);
		}
		/* Who tries again gets there: on another tree, or by the ring if there was none. */
		if (run.again && !world_active(&w, j) &&
			strcmp(w.job[j].rank[0].phase, "ring") != 0 &&
			strcmp(w.job[j].rank[0].phase, "adopted") != 0)
			fail_msg("%s: job %u did not come back: %s: %s", what(), j,
				w.job[j].rank[0].phase, w.job[j].rank[0].line);
	}
	if (run.kind == AGENT && run.back - run.struck > (b->seen + STEP_MS) * 1000000ull)
		within(0, run.down, b->seen);
	if (run.kind == AGENT)
		assert_false(is_down(run.at));
	judge_turns();
}

/* The manager anew, with that policy. */
static void share_by_turns(void)
{
	json_object_set_new(w.config, "policy", json_string("temporal"));
	json_object_set_new(w.config, "cycle_ms", json_integer(50));
	world_kill_manager(&w);
	world_start_manager(&w);
	world_pass(&w, 1500);
}

/* Who is struck, and how; which jobs share memory, one of four does not. */
static void choose(void)
{
	run.job = (unsigned)roll(JOBS);
	run.rank = run.kind == RANK_0 ? 0 : run.kind == RANK ? 1 : (unsigned)roll(RANKS);
	run.again = roll(2);
	run.leaf = (unsigned)roll(LEAVES);
	/* Each kind of death in one of four of its runs. Three groups are made, then activated. */
	run.step = (run.seed % KINDS + run.seed / KINDS) % 4 ? 0 : 1 + (unsigned)roll(5);
	run.at = is_link() ? LEAVES + (unsigned)roll(SPINES) : (unsigned)roll(SWITCHES);
	for (unsigned j = 0; by_turns && j < JOBS; j++)
		w.job[j].duty = roll(4) ? 150 + (int)roll(350) : 0;
}

static void wait_for_moment(void)
{
	const uint64_t latest = w.now + 2000000000;

	if (!run.step)
		world_pass(&w, STEP_MS * roll(150));
	while (w.job[run.job].steps < run.step) {
		world_pass(&w, STEP_MS);
		if (w.now > latest)
			fail_msg("%s: there was nothing to be installed: %s", what(),
				w.job[run.job].rank[0].line);
	}
	if (run.step)
		installations++;
}

static void forget_windows(void)
{
	for (unsigned j = 0; j < JOBS; j++) {
		json_decref(run.job_of[j].window);
		for (unsigned r = 0; r < RANKS; r++)
			json_decref(w.job[j].rank[r].window);
	}
}

static void one(unsigned seed)
{
	char *before[SWITCHES], *after;
	struct store store = {0};

	run = (struct run){.seed = seed, .kind = seed % KINDS};
	const bool by_etcd = run.kind == ETCD || run.kind == ETCD_RANK;
	const bool kept = run.kind >= MANAGER_RANK || by_etcd || seed % 2;

	if (kept)
		assert_int_equal(store_memory_open(&store), 0);
	etcd = store;
	member_is_dead = false;
	if (by_etcd)
		store.commit = late_commit;
	if (by_etcd && seed / KINDS % 2)
		store.alive = late_alive;
	world_open_with(&w, kept ? &store : NULL);
	w.random = 20261124 + seed;
	w.step_ms = STEP_MS;
	w.watch_ms = WATCH_MS;
	w.slowly = true;
	if (by_turns)
		share_by_turns();
	choose();
	for (unsigned i = 0; i < SWITCHES; i++) {
		world_install_static(&w, i);
		before[i] = world_inventory(&w, i);
	}
	for (unsigned j = 0; j < JOBS; j++) {
		w.job[j].again = run.again;
		world_start_job(&w, j);
	}
	wait_for_moment();
	strike();
	watch();
	judge();
	for (unsigned j = 0; j < JOBS; j++)
		world_leave_job(&w, j);
	world_pass(&w, 12000);
	for (unsigned i = 0; i < SWITCHES; i++) {
		after = world_inventory(&w, i);
		if (strcmp(before[i], after) != 0)
			fail_msg("%s: switch %u had\n%s\nand has\n%s", what(), i, before[i], after);
		free(after);
		free(before[i]);
	}
	world_expect_nothing_promised(&w);
	assert_false(member_is_dead); /* it was asked */
	forget_windows();
	world_close(&w);
	if (kept)
		store.close(store.arg);
}

/* ---- all ---- */

static unsigned n_runs = 40, n_by_turns = KINDS;

static void cell(uint64_t ms, unsigned bound, bool any)
{
	if (bound == NEVER || !any)
		printf(" %15s", "-");
	else
		printf(" %7llu of %4u", (unsigned long long)ms, bound);
}

static void kill_all(unsigned n)
{
	memset(worst, 0, sizeof(worst));
	memset(runs, 0, sizeof(runs));
	memset(hits, 0, sizeof(hits));
	installations = 0;
	for (unsigned seed = 1; seed <= n; seed++)
		one(seed);
	printf("%-18s %5s %5s %15s %15s %15s\n", "dies", "runs", "jobs", "seen (ms)", "told",
		"collected");
	for (unsigned k = 0; k < KINDS; k++) {
		printf("%-18s %5u %5u", bounds[k].name, runs[k], hits[k]);
		cell(worst[k][0], bounds[k].seen, runs[k]);
		cell(worst[k][1], bounds[k].told, hits[k]);
		cell(worst[k][2], bounds[k].collected, hits[k]);
		printf("\n");
	}
	printf("%u runs, %u of them in the middle of an installation: nothing was left\n", n,
		installations);
	assert_true(installations >= n / 6);
}

static void test_kills(void **state)
{
	(void)state;
	by_turns = false;
	kill_all(n_runs);
	assert_int_equal(took_lease, 0);
}

static void test_kills_by_turns(void **state)
{
	(void)state;
	by_turns = true;
	kill_all(n_by_turns);
	printf("under the policy temporal: leases were taken %u times\n", took_lease);
	assert_true(took_lease > n_by_turns);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kills), cmocka_unit_test(test_kills_by_turns)};

	if (argc > 1)
		n_runs = (unsigned)atoi(argv[1]);
	if (argc > 2)
		n_by_turns = (unsigned)atoi(argv[2]);
	return n_runs && n_by_turns ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
