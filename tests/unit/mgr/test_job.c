/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs, set up, taken away, and through each thing that can fail by itself. */
#include <errno.h>

#include "tests/unit/mgr/job_world.h"

static const uint64_t GBPS = TEST_GBPS;

static void whole_life(void **state)
{
	struct world w;
	struct mgr_job job = world_job_of("train", 3);
	char line[MGR_LINE_LEN];
	uint64_t epoch;

	(void)state;
	world_open(&w);
	epoch = world_start(&w, &job, 0, 4, 1);
	assert_int_equal(epoch, 100);
	for (unsigned s = 0; s < 4; s++)
		assert_int_equal(w.group[s][0].is, MGR_ACTIVATE);
	assert_int_equal(mgr_jobs_explain(w.js, "train", w.now, line, sizeof(line)), 0);
	assert_string_equal(line, "train, epoch 100, active: in the network: height 2, 4 "
				  "switches, root first: s3 s0 s1 s2; mode II, M 4, W 4, 131072 "
				  "bytes in all, 10.0 Gbit/s");
	world_beat(&w, epoch, 3, w.now + 20000 * MS);
	assert_int_equal(world_phase(&w, epoch), MGR_ACTIVE);
	assert_int_equal(mgr_jobs_leave(w.js, epoch, 2, w.now), 0);
	world_beat(&w, epoch, 2, w.now + 5000 * MS); /* who left is not missed */
	assert_int_equal(world_phase(&w, epoch), MGR_ACTIVE);
	assert_int_equal(mgr_jobs_leave(w.js, epoch, 2, w.now), -EINVAL);
	assert_int_equal(mgr_jobs_leave(w.js, epoch, 0, w.now), 0);
	assert_int_equal(mgr_jobs_leave(w.js, epoch, 1, w.now), 0);
	world_settle(&w);
	world_nothing_left(&w);
	assert_false(world_told(&w, epoch, MGR_TELL_OVER)); /* they know */
	mgr_jobs_explain(w.js, "train", w.now, line, sizeof(line));
	assert_string_equal(line, "train, epoch 100, over: all ranks left");
	world_until(&w, w.now + 1000 * MS);
	assert_int_equal(mgr_jobs_count(w.js), 0);
	assert_int_equal(mgr_jobs_explain(w.js, "train", w.now, line, sizeof(line)), -ENOENT);
	assert_int_equal(mgr_jobs_heartbeat(w.js, epoch, 0, w.now), -ESTALE);
	world_close(&w);
}

/* Any rank, the first too: told within the bound, nothing left. */
static void rank_dies(void **state)
{
	(void)state;
	for (unsigned dead = 0; dead < 3; dead++) {
		struct world w;
		struct mgr_job job = world_job_of("train", 3);
		uint64_t epoch, died;

		world_open(&w);
		job.ring = true; /* does not help: a rank is missing */
		epoch = world_start(&w, &job, 0, 4, 1);
		died = w.now;
		while (!world_told(&w, epoch, MGR_TELL_OVER)) {
			for (unsigned i = 0; i < 3; i++) {
				if (i != dead)
					assert_int_equal(
						mgr_jobs_heartbeat(w.js, epoch, i, w.now), 0);
			}
			world_until(&w, w.now + 100 * MS);
		}
		assert_true(w.now - died <= 3100 * MS);
		for (unsigned s = 0; s < 4; s++)
			assert_int_equal(w.group[s][0].is, MGR_FAIL);
		world_until(&w, w.now + world_config.drain_ns);
		world_nothing_left(&w);
		world_close(&w);
	}
}

/* Who is gone before all have come is not waited with, nor placed. */
static void gone_before_all_came(void **state)
{
	struct mgr_job job = world_job_of("train", 2), other = world_job_of("train", 3);
	struct mgr_rank rank = {.who = 7, .modes = MGR_MODES};
	struct world w;
	uint64_t a, b;

	(void)state;
	world_open(&w);
	rank.at = (struct mgr_member){w.f.host[0], -1};
	assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &a), 0);
	assert_int_equal(mgr_jobs_gone(w.js, a, 1, w.now), -EINVAL);
	assert_int_equal(mgr_jobs_gone(w.js, a, 0, w.now), 0);
	assert_int_equal(mgr_jobs_gone(w.js, a, 0, w.now), -ESTALE);
	assert_int_equal(world_phase(&w, a), MGR_OVER); /* with the last one */
	assert_int_equal(mgr_jobs_join(w.js, &other, &rank, w.now, &b), 0);
	assert_true(b > a);
	rank.rank = 1;
	assert_int_equal(mgr_jobs_join(w.js, &other, &rank, w.now, &b), 0);
	assert_int_equal(mgr_jobs_gone(w.js, b, 0, w.now), 0);
	rank.rank = 2;
	assert_int_equal(mgr_jobs_join(w.js, &other, &rank, w.now, &b), 0);
	world_settle(&w);
	assert_int_equal(world_phase(&w, b), MGR_JOINING);
	rank = (struct mgr_rank){.who = 8, .modes = MGR_MODES, .at = {w.f.host[1], -1}};
	assert_int_equal(mgr_jobs_join(w.js, &other, &rank, w.now, &a), 0);
	assert_int_equal(a, b);
	world_settle(&w);
	assert_int_not_equal(world_phase(&w, b), MGR_JOINING);
	assert_int_equal(mgr_jobs_gone(w.js, b, 0, w.now), -EALREADY);

	other = world_job_of("next", 3);
	assert_int_equal(mgr_jobs_join(w.js, &other, &rank, w.now, &a), 0);
	rank.rank = 1;
	assert_int_equal(mgr_jobs_join(w.js, &other, &rank, w.now, &a), 0);
	assert_int_equal(mgr_jobs_leave(w.js, a, 0, w.now), 0);
	assert_int_equal(world_phase(&w, a), MGR_JOINING);
	assert_int_equal(mgr_jobs_gone(w.js, a, 1, w.now), 0);
	assert_int_equal(world_phase(&w, a), MGR_OVER); /* who has left does not come again */

	/* Nor is anybody placed with him: another one may come in his place. */
	other = world_job_of("last", 3);
	for (unsigned i = 0; i < 4; i++) {
		rank = (struct mgr_rank){
			.rank = i % 3, .who = 20 + i, .modes = MGR_MODES, .at = {w.f.host[i], -1}};
		assert_int_equal(mgr_jobs_join(w.js, &other, &rank, w.now, &a), 0);
		world_settle(&w);
		assert_int_equal(world_phase(&w, a) == MGR_JOINING, i < 3);
		if (i == 0)
			b = a;
		assert_int_equal(a, b);
		if (i == 1)
			assert_int_equal(mgr_jobs_leave(w.js, a, 0, w.now), 0);
	}
	world_close(&w);
}

static void place_of_a_rank(void **state)
{
	struct world w;
	struct mgr_job job = world_job_of("train", 2), other = job;
	struct mgr_rank rank = {.who = 7, .modes = MGR_MODES};
	struct mgr_action action;
	uint64_t a, b, c;

	(void)state;
	world_open(&w);
	rank.at = (struct mgr_member){w.f.host[0], -1};
	assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &a), 0);
	assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &b), 0); /* again */
	assert_int_equal(a, b);
	rank.who = 8; /* started anew, before the others came */
	assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &b), 0);
	assert_int_equal(a, b);
	other.n_ranks = 3;
	rank.rank = 2;
	assert_int_equal(mgr_jobs_join(w.js, &other, &rank, w.now, &b), -EINVAL);
	rank.rank = 1;
	rank.at.node = w.f.host[1];
	assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &b), 0);
	world_settle(&w);
	assert_int_equal(world_phase(&w, a), MGR_CONNECTING);
	/* Now it would be another run. */
	rank.who = 9;
	assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &c), 0);
	assert_true(c > a);
	world_settle(&w);
	assert_true(world_told(&w, a, MGR_TELL_OVER));
	assert_int_equal(mgr_jobs_ready(w.js, a, 0, w.now), -ESTALE);
	assert_int_equal(mgr_jobs_find(w.js, "train"), c);
	/* And another, before any switch was asked: none has to be told, nothing is held. */
	rank.rank = 0;
	rank.at.node = w.f.host[0];
	assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &b), 0);
	assert_int_equal(b, c);
	assert_int_equal(world_phase(&w, c), MGR_INSTALLING);
	rank.who = 10;
	assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &b), 0);
	assert_true(b > c);
	while (mgr_jobs_next(w.js, w.now, &action))
		assert_true(action.epoch != c || action.kind == MGR_TELL_OVER);
	job.duty = 0;
	assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &c), -EINVAL);
	world_close(&w);
}

/* Who yields takes no place of who is there, in whatever phase; of who has left or gone he does. */
static void who_yields(void **state)
{
	struct world w;
	struct mgr_job job = world_job_of("train", 2), larger = world_job_of("train", 3);
	struct mgr_rank rank = {.who = 7, .modes = MGR_MODES}, other;
	uint64_t a, b;

	(void)state;
	world_open(&w);
	rank.at = (struct mgr_member){w.f.host[0], -1};
	other = rank;
	other.who = 9;
	other.yields = true;
	assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &a), 0);
	assert_int_equal(mgr_jobs_join(w.js, &job, &other, w.now, &b), -EBUSY);
	assert_false(mgr_jobs_is_other(w.js, a, 0, 7));
	assert_true(mgr_jobs_is_other(w.js, a, 0, 9));
	assert_false(mgr_jobs_is_other(w.js, a, 1, 9)); /* nobody yet */
	assert_false(mgr_jobs_is_other(w.js, a + 1, 0, 9));
	rank.rank = 1;
	rank.at.node = w.f.host[1];
	assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &a), 0);
	world_settle(&w);
	assert_int_equal(mgr_jobs_join(w.js, &job, &other, w.now, &b), -EBUSY);
	other.rank = 2; /* there is no such place: all have to be gone */
	assert_int_equal(mgr_jobs_join(w.js, &larger, &other, w.now, &b), -EBUSY);
	assert_int_equal(mgr_jobs_gone(w.js, a, 0, w.now), -EALREADY);
	assert_int_equal(mgr_jobs_join(w.js, &larger, &other, w.now, &b), -EBUSY);
	assert_int_equal(mgr_jobs_heartbeat(w.js, a, 0, w.now), 0); /* it is back */
	other.rank = 0;
	assert_int_equal(mgr_jobs_join(w.js, &job, &other, w.now, &b), -EBUSY);
	assert_int_equal(world_phase(&w, a), MGR_CONNECTING);
	assert_int_equal(mgr_jobs_gone(w.js, a, 0, w.now), -EALREADY);
	assert_int_equal(mgr_jobs_join(w.js, &job, &other, w.now, &b), 0);
	assert_true(b > a);
	assert_int_equal(world_phase(&w, a), MGR_OVER);
	world_close(&w);
}

/* A spine dies: its job is placed on the other one, with a new epoch; the other job goes on. */
static void re_placed(void **state)
{
	struct world w;
	struct mgr_job one = world_job_of("one", 3), two = world_job_of("two", 2);
	struct mgr_node n;
	uint64_t a, b, again;
	unsigned spine, s;

	(void)state;
	world_open(&w);
	a = world_start(&w, &one, 0, 4, 1);
	b = world_start(&w, &two, 1, 1, 50); /* on the first leaf */
	spine = world_root_of(&w, a);
	s = world_index_of(&w, spine);
	n = *mgr_graph_node(w.f.g, spine);
	n.up = false;
	mgr_graph_set_node(w.f.g, &n);
	w.n_groups[s] = 0; /* and all that it had */
	w.deaf[s] = true;
	assert_int_equal(mgr_jobs_switch_lost(w.js, spine, w.now), 1);
	world_settle(&w);
	assert_true(world_told(&w, a, MGR_TELL_OVER));
	again = world_start(&w, &one, 0, 4, 1);
	assert_true(again > b);
	assert_int_not_equal(world_root_of(&w, again), spine);
	assert_int_equal(world_phase(&w, b), MGR_ACTIVE);
	/* What the first run says now changes nothing. */
	assert_int_equal(mgr_jobs_ready(w.js, a, 0, w.now), -ESTALE);
	assert_int_equal(mgr_jobs_answer(w.js, a, spine, MGR_INSTALL, 0, w.now), -ESTALE);
	assert_int_equal(mgr_jobs_group_failed(w.js, a, w.f.sw[0], w.now), 0);
	world_until(&w, w.now + 600 * MS);
	assert_int_equal(world_find_group(&w, 0, a), -ENOENT); /* removed where it still was */
	assert_true(world_find_group(&w, 0, again) >= 0);
	assert_int_equal(mgr_book_switch_holders(w.f.b, spine), 0);
	world_close(&w);
}

/* A group that fails on one switch is failed on the others at once, and ranks told after that. */
static void failure_spreads(void **state)
{
	struct world w;
	struct mgr_job job = world_job_of("train", 3);
	struct mgr_action a;
	uint64_t epoch;
	char line[MGR_LINE_LEN];

	(void)state;
	world_open(&w);
	job.ring = true;
	epoch = world_start(&w, &job, 0, 4, 1);
	w.group[1][0].is = MGR_FAIL;
	assert_int_equal(mgr_jobs_group_failed(w.js, epoch, w.f.sw[1], w.now), 1);
	assert_int_equal(mgr_jobs_group_failed(w.js, epoch, w.f.sw[2], w.now), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(mgr_jobs_next(w.js, w.now, &a));
		assert_int_equal(a.kind, MGR_FAIL);
		assert_int_not_equal(a.node, w.f.sw[1]);
	}
	assert_true(mgr_jobs_next(w.js, w.now, &a));
	assert_int_equal(a.kind, MGR_TELL_RING); /* as the job asked */
	mgr_jobs_explain(w.js, "train", w.now, line, sizeof(line));
	assert_string_equal(line,
		"train, epoch 100, going on by the hosts' ring for 0 s: its group failed on s1");
	world_beat(&w, epoch, 3, w.now + 5000 * MS);
	mgr_jobs_explain(w.js, "train", w.now, line, sizeof(line));
	assert_non_null(strstr(line, "going on by the hosts' ring for 5 s: its group failed"));
	world_nothing_left(&w);
	assert_int_equal(world_phase(&w, epoch), MGR_RING); /* goes on */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(mgr_jobs_leave(w.js, epoch, i, w.now), 0);
	world_until(&w, w.now + 1000 * MS);
	assert_int_equal(mgr_jobs_count(w.js), 0);
	world_close(&w);
}

static void link_goes_down(void **state)
{
	struct world w;
	struct mgr_job one = world_job_of("one", 3), two = world_job_of("two", 2);
	uint64_t a, b, again;
	unsigned spine;
	int link;

	(void)state;
	world_open(&w);
	a = world_start(&w, &one, 0, 4, 1);
	b = world_start(&w, &two, 1, 1, 50);
	spine = world_root_of(&w, a);
	link = test_link(w.f.g, w.f.sw[1], spine);
	test_port(w.f.g, w.f.sw[1], spine, 0, 100 * GBPS, false);
	assert_int_equal(mgr_jobs_link_down(w.js, (unsigned)link, w.now), 1);
	assert_int_equal(mgr_jobs_link_down(w.js, (unsigned)link, w.now), 0);
	world_settle(&w);
	assert_true(world_told(&w, a, MGR_TELL_OVER));
	assert_false(world_told(&w, b, MGR_TELL_OVER));
	again = world_start(&w, &one, 0, 4, 1);
	assert_int_not_equal(world_root_of(&w, again), spine);
	world_close(&w);
}

/* Before it is active the ranks get the ring, and the reason. */
static void refused_or_silent(void **state)
{
	(void)state;
	for (unsigned silent = 0; silent < 2; silent++) {
		struct world w;
		struct mgr_job job = world_job_of("train", 3);
		struct mgr_run_view v;
		uint64_t epoch;

		world_open(&w);
		w.refuse = silent ? -1 : 1;
		w.deaf[1] = silent;
		epoch = world_join_all(&w, &job, 0, 4, 1);
		world_until(&w, w.now + world_config.answer_ns);
		assert_true(world_told(&w, epoch, MGR_TELL_RING));
		assert_true(mgr_jobs_view(w.js, epoch, &v));
		assert_int_equal(v.end, silent ? MGR_END_SWITCH_SILENT : MGR_END_REFUSED);
		assert_int_equal(v.culprit, w.f.sw[1]);
		world_beat(&w, epoch, 3, w.now + 2000 * MS);
		/* The silent one may have it: only that one's share is still held. */
		for (unsigned s = 0; s < w.f.n_sw; s++)
			assert_int_equal(
				mgr_book_switch_holders(w.f.b, w.f.sw[s]), silent && s == 1);
		w.deaf[1] = false;
		world_beat(&w, epoch, 3, w.now + 1000 * MS);
		world_nothing_left(&w);
		world_close(&w);
	}
}

static void not_in_the_network(void **state)
{
	struct world w;
	struct mgr_job job = world_job_of("train", 3);
	char line[MGR_LINE_LEN];
	uint64_t epoch;

	(void)state;
	world_open(&w);
	job.least_bps = job.want_bps = 500 * GBPS;
	epoch = world_join_all(&w, &job, 0, 4, 1);
	assert_int_equal(world_phase(&w, epoch), MGR_RING);
	assert_true(world_told(&w, epoch, MGR_TELL_RING));
	mgr_jobs_explain(w.js, "train", w.now, line, sizeof(line));
	assert_non_null(strstr(line, "by the hosts' ring: not in the network: the widest tree"));
	world_nothing_left(&w);
	/* Some never come. */
	job = world_job_of("late", 4);
	job.n_ranks = 4;
	{
		struct mgr_rank rank = {.who = 1, .at = {w.f.host[0], -1}, .modes = MGR_MODES};
		uint64_t end = w.now + world_config.join_ns;

		assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &epoch), 0);
		while (w.now < end) {
			mgr_jobs_heartbeat(w.js, epoch, 0, w.now);
			world_until(&w, w.now + 500 * MS);
		}
	}
	assert_true(world_told(&w, epoch, MGR_TELL_OVER));
	world_close(&w);
}

int run_job_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(whole_life),
		cmocka_unit_test(rank_dies), cmocka_unit_test(place_of_a_rank),
		cmocka_unit_test(who_yields), cmocka_unit_test(gone_before_all_came),
		cmocka_unit_test(re_placed), cmocka_unit_test(failure_spreads),
		cmocka_unit_test(link_goes_down), cmocka_unit_test(refused_or_silent),
		cmocka_unit_test(not_in_the_network)};

	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
