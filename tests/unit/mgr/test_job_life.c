/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs that live and die while all that can fail does. */
#include <errno.h>

#include "tests/unit/mgr/job_world.h"

static const uint64_t GBPS = TEST_GBPS;

/* Everything at once, with a tenth of the messages to and from switches lost. */
enum { JOBS = 6, ROUNDS = 20000 };

struct life {
	struct mgr_job job;
	unsigned first, step;
	uint64_t epoch, dead; /* ranks, a bit each */
};

static bool is_over(const struct world *w, uint64_t epoch)
{
	return world_phase(w, epoch) == MGR_OVER;
}

static void live(struct world *w, struct life *l, unsigned i)
{
	struct mgr_rank rank = {.modes = MGR_MODES};

	if (l->epoch == 0 || is_over(w, l->epoch)) {
		l->dead = 0;
		rank.rank = test_random(&w->random) % l->job.n_ranks;
		rank.who = w->now + i;
		rank.at = (struct mgr_member){w->f.host[l->first + rank.rank * l->step], -1};
		if (mgr_jobs_join(w->js, &l->job, &rank, w->now, &l->epoch))
			l->epoch = 0; /* all runs are taken by what is being removed */
		return;
	}
	for (unsigned r = 0; r < l->job.n_ranks; r++) {
		struct mgr_run_view v;

		if (l->dead >> r & 1 || !mgr_jobs_view(w->js, l->epoch, &v))
			continue;
		if (mgr_jobs_heartbeat(w->js, l->epoch, r, w->now) == -EINVAL &&
			v.phase == MGR_JOINING) {
			rank.rank = r;
			rank.who = w->now + 1000 + r;
			rank.at = (struct mgr_member){w->f.host[l->first + r * l->step], -1};
			mgr_jobs_join(w->js, &l->job, &rank, w->now, &l->epoch);
		} else if (v.phase == MGR_CONNECTING) {
			mgr_jobs_ready(w->js, l->epoch, r, w->now);
		} else if (v.phase == MGR_ACTIVE && test_random(&w->random) % 50 == 0) {
			mgr_jobs_leave(w->js, l->epoch, r, w->now);
		}
	}
}

static void restart_switch(struct world *w, unsigned s)
{
	struct mgr_node n = *mgr_graph_node(w->f.g, w->f.sw[s]);

	n.boot++;
	mgr_graph_set_node(w->f.g, &n);
	w->n_groups[s] = 0;
	mgr_jobs_switch_lost(w->js, w->f.sw[s], w->now);
}

static void flap(struct world *w, unsigned leaf, bool up)
{
	unsigned spine = w->f.sw[3 + test_random(&w->random) % 2];
	int link = test_link(w->f.g, w->f.sw[leaf], spine);

	test_port(w->f.g, w->f.sw[leaf], spine, 0, 100 * GBPS, up);
	if (!up)
		mgr_jobs_link_down(w->js, (unsigned)link, w->now);
}

static void harm(struct world *w, struct life *l)
{
	unsigned s = test_random(&w->random) % w->f.n_sw;
	struct life *victim = &l[test_random(&w->random) % JOBS];

	switch (test_random(&w->random) % 200) {
	case 0:
		restart_switch(w, s);
		return;
	case 1:
		flap(w, s % 3, false);
		return;
	case 2:
		victim->dead |= 1ull << test_random(&w->random) % victim->job.n_ranks;
		return;
	case 3:
		w->deaf[s] = true;
		return;
	case 10 ... 29:
		memset(w->deaf, 0, sizeof(w->deaf));
		return;
	case 30 ... 39:
		flap(w, s % 3, true);
		return;
	case 4:
		if (w->n_groups[s]) {
			unsigned g = test_random(&w->random) % w->n_groups[s];

			w->group[s][g].is = MGR_FAIL;
			mgr_jobs_group_failed(w->js, w->group[s][g].epoch, w->f.sw[s], w->now);
		}
		return;
	default:
		return;
	}
}

/* No switch works for a run that is over without having been told to stop. */
static void sound(const struct world *w)
{
	for (unsigned s = 0; s < w->f.n_sw; s++) {
		const struct mgr_node *n = mgr_graph_node(w->f.g, w->f.sw[s]);

		assert_true(mgr_book_used_bytes(w->f.b, w->f.sw[s]) <= n->sram);
		/* What is on a switch is in the book. */
		assert_true(w->n_groups[s] <= mgr_book_switch_holders(w->f.b, w->f.sw[s]));
	}
}

static void everything(void **state)
{
	static struct world w; /* large */
	struct life life[JOBS];
	unsigned started = 0;

	(void)state;
	world_open(&w);
	w.lose = 100;
	for (unsigned i = 0; i < JOBS; i++) {
		char name[MGR_NAME_LEN];

		snprintf(name, sizeof(name), "job%u", i);
		life[i] = (struct life){
			.job = world_job_of(name, 2 + i % 2), .first = i % 4, .step = 4};
		life[i].job.ring = i % 3 == 0;
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < JOBS; i++)
			live(&w, &life[i], i);
		harm(&w, life);
		world_until(&w, w.now + 100 * MS);
		sound(&w);
	}
	for (unsigned i = 0; i < w.n_told && i < MAX_TOLD; i++)
		started += w.told[i].kind == MGR_TELL_START;
	assert_true(started > 100);
	/* All ranks die, all switches can hear again: nothing is left, nobody cleaned up. */
	memset(w.deaf, 0, sizeof(w.deaf));
	world_until(&w, w.now + 60000 * MS);
	world_nothing_left(&w);
	assert_int_equal(mgr_jobs_count(w.js), 0);
	world_close(&w);
}

/* What a switch should have, run after run, from the newest on; also when the one just told of has
 * ended, and from one that nobody knows any more. */
static void expected(void **state)
{
	enum { N = 4 };
	struct mgr_job job[N];
	uint64_t epoch[N], at;
	struct world w;
	unsigned leaf;

	(void)state;
	world_open(&w);
	leaf = w.f.sw[0];
	for (unsigned i = 0; i < N; i++) {
		char name[8];

		snprintf(name, sizeof(name), "job%u", i);
		job[i] = world_job_of(name, 2);
		epoch[i] =
			world_start(&w, &job[i], i, 4, 10 * i); /* two leaves, the first is one */
	}
	at = mgr_jobs_expected(w.js, leaf, UINT64_MAX);
	for (unsigned i = N; i-- > 0; at = mgr_jobs_expected(w.js, leaf, at)) {
		assert_int_equal(at, epoch[i]);
		assert_int_equal(mgr_jobs_expected(w.js, leaf, at + 1), at);
		if (i == 2) /* the switch has it not */
			assert_int_equal(mgr_jobs_missing(w.js, at, leaf, w.now), 1);
	}
	assert_int_equal(at, 0);
	assert_int_equal(mgr_jobs_expected(w.js, leaf, epoch[3]), epoch[1]);
	assert_int_equal(mgr_jobs_expected(w.js, leaf, epoch[0]), 0);
	assert_int_equal(mgr_jobs_expected(w.js, w.f.sw[2], UINT64_MAX), 0);
	world_close(&w);
}

/* Those who are all there wait for the graph, for longer than ranks may take to join, and ranks are
 * watched meanwhile; those who are not all there do not wait for it. */
static void held(void **state)
{
	struct mgr_job one = world_job_of("one", 2), two = world_job_of("two", 2),
		       half = world_job_of("half", 2);
	struct mgr_rank rank = {.who = 1, .at = {0, -1}, .modes = MGR_MODES};
	uint64_t a, b, c, free_at;
	char line[MGR_LINE_LEN];
	struct world w;

	(void)state;
	world_open(&w);
	free_at = w.now + world_config.join_ns + 1000 * MS;
	mgr_jobs_hold(w.js, free_at - w.now, w.now);
	a = world_join_all(&w, &one, 0, 4, 1);
	b = world_join_all(&w, &two, 1, 4, 10);
	rank.at = (struct mgr_member){w.f.host[2], -1};
	assert_int_equal(mgr_jobs_join(w.js, &half, &rank, w.now, &c), 0);
	assert_int_equal(world_phase(&w, a), MGR_JOINING);
	world_beat(&w, a, 2, w.now + 1000 * MS); /* nobody beats for b */
	world_beat(&w, a, 2, free_at - 1 * MS);
	assert_int_equal(world_phase(&w, a), MGR_JOINING);
	assert_int_equal(world_phase(&w, b), MGR_OVER);
	assert_int_equal(world_phase(&w, c), MGR_OVER);
	world_beat(&w, a, 2, free_at + 1000 * MS);
	assert_int_equal(world_phase(&w, a), MGR_CONNECTING);
	/* Or as soon as it is known. */
	mgr_jobs_hold(w.js, 6500 * MS, w.now);
	b = world_join_all(&w, &two, 1, 4, 20);
	assert_int_equal(world_phase(&w, b), MGR_JOINING);
	assert_int_equal(mgr_jobs_explain(w.js, "two", w.now, line, sizeof(line)), 0);
	assert_non_null(strstr(line, ", has heard all switches, in 7 s at most"));
	mgr_jobs_hold(w.js, 0, w.now);
	world_settle(&w);
	assert_int_equal(world_phase(&w, b), MGR_CONNECTING);
	world_close(&w);
}

/* Two that were held want all of the same links: who came first has them. */
static void held_in_turn(void **state)
{
	struct mgr_job job[2] = {world_job_of("first", 2), world_job_of("second", 2)};
	uint64_t epoch[2];
	struct world w;

	(void)state;
	world_open(&w);
	mgr_jobs_hold(w.js, 1000 * MS, w.now);
	for (unsigned i = 0; i < 2; i++) {
		job[i].promised = true;
		job[i].least_bps = job[i].want_bps = 100 * GBPS;
		epoch[i] = world_join_all(&w, &job[i], 0, 4, 1 + 10 * i);
	}
	mgr_jobs_hold(w.js, 0, w.now);
	world_settle(&w);
	assert_int_equal(world_phase(&w, epoch[0]), MGR_CONNECTING);
	assert_int_equal(world_phase(&w, epoch[1]), MGR_RING);
	world_close(&w);
}

int run_job_life_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(everything), cmocka_unit_test(expected),
		cmocka_unit_test(held), cmocka_unit_test(held_in_turn)};

	return cmocka_run_group_tests_name("job life", tests, NULL, NULL);
}
