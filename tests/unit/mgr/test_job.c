/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs on a small Clos fabric whose switches are tables of groups: set up, taken away, and through
 * everything that can fail, on virtual time, with messages that get lost. */
#include <errno.h>

#include "lib/mgr/job.h"
#include "tests/unit/mgr/fabric.h"
#include "tests/unit/mgr/mgr_test.h"

static const uint64_t MS = 1000000, GBPS = TEST_GBPS;

enum { MAX_GROUPS = 64, MAX_TOLD = 4096 };

struct world {
	struct fabric f;
	struct mgr_jobs *js;
	uint64_t now, random;
	unsigned lose; /* of messages with switches, per thousand */
	bool deaf[FABRIC_SWITCHES];
	int refuse; /* index of a switch that has no room */
	struct {
		uint64_t epoch;
		enum mgr_action_kind is; /* MGR_INSTALL, MGR_ACTIVATE or MGR_FAIL */
	} group[FABRIC_SWITCHES][MAX_GROUPS];
	unsigned n_groups[FABRIC_SWITCHES];
	struct mgr_action told[MAX_TOLD]; /* ranks */
	uint64_t told_at[MAX_TOLD];
	unsigned n_told;
};

static const struct mgr_jobs_config config = {.policy = &mgr_policy_spatial,
	.max_runs = 32,
	.first_epoch = 100,
	.heartbeat_ns = 1000 * 1000000ull,
	.join_ns = 10000 * 1000000ull,
	.answer_ns = 2000 * 1000000ull,
	.retry_ns = 200 * 1000000ull,
	.drain_ns = 500 * 1000000ull,
	.linger_ns = 1000 * 1000000ull};

static void open_world(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->f = fabric_clos(3, 2, 4);
	w->js = mgr_jobs_new(w->f.g, w->f.b, w->f.p, &config);
	w->random = 15;
	w->refuse = -1;
	assert_non_null(w->js);
}

static void close_world(struct world *w)
{
	mgr_jobs_free(w->js);
	fabric_free(&w->f);
}

static bool lost(struct world *w)
{
	return test_random(&w->random) % 1000 < w->lose;
}

static int find_group(const struct world *w, unsigned s, uint64_t epoch)
{
	for (unsigned i = 0; i < w->n_groups[s]; i++) {
		if (w->group[s][i].epoch == epoch)
			return (int)i;
	}
	return -ENOENT;
}

/* What a switch does, idempotently, as its agent. */
static int obey(struct world *w, unsigned s, const struct mgr_action *a)
{
	int at = find_group(w, s, a->epoch);

	if (a->kind == MGR_INSTALL && w->refuse == (int)s)
		return -ENOSPC;
	if (a->kind == MGR_INSTALL && at < 0) {
		assert_true(w->n_groups[s] < MAX_GROUPS);
		w->group[s][w->n_groups[s]].epoch = a->epoch;
		w->group[s][w->n_groups[s]++].is = MGR_INSTALL;
		return 0;
	}
	if (at < 0)
		return at;
	if (a->kind == MGR_REMOVE)
		w->group[s][at] = w->group[s][--w->n_groups[s]];
	else if (a->kind > w->group[s][at].is)
		w->group[s][at].is = a->kind;
	return 0;
}

static unsigned index_of(const struct world *w, unsigned node)
{
	unsigned s = 0;

	while (w->f.sw[s] != node)
		assert_true(++s < w->f.n_sw);
	return s;
}

/* Until nothing is to be done at this time. */
static void settle(struct world *w)
{
	struct mgr_action a;

	while (mgr_jobs_next(w->js, w->now, &a)) {
		unsigned s;
		int rc;

		if (a.kind >= MGR_TELL_PLAN) {
			w->told[w->n_told % MAX_TOLD] = a;
			w->told_at[w->n_told++ % MAX_TOLD] = w->now;
			continue;
		}
		s = index_of(w, a.node);
		if (w->deaf[s] || lost(w))
			continue;
		rc = obey(w, s, &a);
		if (!lost(w))
			mgr_jobs_answer(w->js, a.epoch, a.node, a.kind, rc, w->now);
	}
}

static bool told(const struct world *w, uint64_t epoch, enum mgr_action_kind kind)
{
	for (unsigned i = 0; i < w->n_told && i < MAX_TOLD; i++) {
		if (w->told[i].epoch == epoch && w->told[i].kind == kind)
			return true;
	}
	return false;
}

/* From deadline to deadline. */
static void until(struct world *w, uint64_t end)
{
	settle(w);
	while (mgr_jobs_deadline(w->js) <= end) {
		uint64_t at = mgr_jobs_deadline(w->js);

		assert_true(at > w->now); /* or it would never get on */
		w->now = at;
		settle(w);
	}
	w->now = end;
}

static struct mgr_job job_of(const char *name, unsigned n)
{
	struct mgr_job job = {.n_ranks = n,
		.shape = {.mtu = 1024, .m = 4, .hop_ns = 2500},
		.want_bps = 10 * GBPS,
		.duty = MGR_DUTY};

	snprintf(job.name, sizeof(job.name), "%s", name);
	return job;
}

/* Hosts first, first + step ... join as one process each. */
static uint64_t join_all(
	struct world *w, const struct mgr_job *job, unsigned first, unsigned step, uint64_t who)
{
	uint64_t epoch = 0;

	for (unsigned i = 0; i < job->n_ranks; i++) {
		struct mgr_rank rank = {.rank = i,
			.who = who + i,
			.at = {w->f.host[first + i * step], -1},
			.modes = MGR_MODES};

		assert_int_equal(mgr_jobs_join(w->js, job, &rank, w->now, &epoch), 0);
	}
	settle(w);
	return epoch;
}

static enum mgr_phase phase(const struct world *w, uint64_t epoch)
{
	struct mgr_run_view v;

	return mgr_jobs_view(w->js, epoch, &v) ? v.phase : MGR_OVER;
}

static uint64_t start(
	struct world *w, const struct mgr_job *job, unsigned first, unsigned step, uint64_t who)
{
	uint64_t epoch = join_all(w, job, first, step, who);

	assert_int_equal(phase(w, epoch), MGR_CONNECTING);
	assert_true(told(w, epoch, MGR_TELL_PLAN));
	for (unsigned i = 0; i < job->n_ranks; i++)
		assert_int_equal(mgr_jobs_ready(w->js, epoch, i, w->now), 0);
	settle(w);
	assert_int_equal(phase(w, epoch), MGR_ACTIVE);
	assert_true(told(w, epoch, MGR_TELL_START));
	return epoch;
}

/* As before anything was there. */
static void nothing_left(const struct world *w)
{
	for (unsigned s = 0; s < w->f.n_sw; s++) {
		assert_int_equal(w->n_groups[s], 0);
		assert_int_equal(mgr_book_used_bytes(w->f.b, w->f.sw[s]), 0);
		assert_int_equal(mgr_book_switch_holders(w->f.b, w->f.sw[s]), 0);
	}
	for (unsigned i = 0; i < mgr_graph_link_bound(w->f.g); i++)
		assert_int_equal(mgr_book_link_holders(w->f.b, i), 0);
}

static unsigned root_of(const struct world *w, uint64_t epoch)
{
	struct mgr_run_view v;

	assert_true(mgr_jobs_view(w->js, epoch, &v));
	assert_non_null(v.plan);
	return v.plan->tree.sw[0].node;
}

static void beat(struct world *w, uint64_t epoch, unsigned n, uint64_t end)
{
	while (w->now < end) {
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(mgr_jobs_heartbeat(w->js, epoch, i, w->now), 0);
		until(w, w->now + 500 * MS < end ? w->now + 500 * MS : end);
	}
}

static void whole_life(void **state)
{
	struct world w;
	struct mgr_job job = job_of("train", 3);
	char line[MGR_LINE_LEN];
	uint64_t epoch;

	(void)state;
	open_world(&w);
	epoch = start(&w, &job, 0, 4, 1);
	assert_int_equal(epoch, 100);
	for (unsigned s = 0; s < 4; s++)
		assert_int_equal(w.group[s][0].is, MGR_ACTIVATE);
	assert_int_equal(mgr_jobs_explain(w.js, "train", line, sizeof(line)), 0);
	assert_string_equal(line, "train, epoch 100, active: in the network: root s3, height 2, 4 "
				  "switches, mode II, M 4, W 4, 131072 bytes in all, 10.0 Gbit/s");
	beat(&w, epoch, 3, w.now + 20000 * MS);
	assert_int_equal(phase(&w, epoch), MGR_ACTIVE);
	assert_int_equal(mgr_jobs_leave(w.js, epoch, 2, w.now), 0);
	beat(&w, epoch, 2, w.now + 5000 * MS); /* who left is not missed */
	assert_int_equal(phase(&w, epoch), MGR_ACTIVE);
	assert_int_equal(mgr_jobs_leave(w.js, epoch, 2, w.now), -EINVAL);
	assert_int_equal(mgr_jobs_leave(w.js, epoch, 0, w.now), 0);
	assert_int_equal(mgr_jobs_leave(w.js, epoch, 1, w.now), 0);
	settle(&w);
	nothing_left(&w);
	assert_false(told(&w, epoch, MGR_TELL_OVER)); /* they know */
	mgr_jobs_explain(w.js, "train", line, sizeof(line));
	assert_string_equal(line, "train, epoch 100, over: all ranks left");
	until(&w, w.now + 1000 * MS);
	assert_int_equal(mgr_jobs_count(w.js), 0);
	assert_int_equal(mgr_jobs_explain(w.js, "train", line, sizeof(line)), -ENOENT);
	assert_int_equal(mgr_jobs_heartbeat(w.js, epoch, 0, w.now), -ESTALE);
	close_world(&w);
}

/* Any rank, the first too: told within the bound, nothing left. */
static void rank_dies(void **state)
{
	(void)state;
	for (unsigned dead = 0; dead < 3; dead++) {
		struct world w;
		struct mgr_job job = job_of("train", 3);
		uint64_t epoch, died;

		open_world(&w);
		job.ring = true; /* does not help: a rank is missing */
		epoch = start(&w, &job, 0, 4, 1);
		died = w.now;
		while (!told(&w, epoch, MGR_TELL_OVER)) {
			for (unsigned i = 0; i < 3; i++) {
				if (i != dead)
					assert_int_equal(
						mgr_jobs_heartbeat(w.js, epoch, i, w.now), 0);
			}
			until(&w, w.now + 100 * MS);
		}
		assert_true(w.now - died <= 3100 * MS);
		for (unsigned s = 0; s < 4; s++)
			assert_int_equal(w.group[s][0].is, MGR_FAIL);
		until(&w, w.now + config.drain_ns);
		nothing_left(&w);
		close_world(&w);
	}
}

static void place_of_a_rank(void **state)
{
	struct world w;
	struct mgr_job job = job_of("train", 2), other = job;
	struct mgr_rank rank = {.who = 7, .modes = MGR_MODES};
	struct mgr_action action;
	uint64_t a, b, c;

	(void)state;
	open_world(&w);
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
	settle(&w);
	assert_int_equal(phase(&w, a), MGR_CONNECTING);
	/* Now it would be another run. */
	rank.who = 9;
	assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &c), 0);
	assert_true(c > a);
	settle(&w);
	assert_true(told(&w, a, MGR_TELL_OVER));
	assert_int_equal(mgr_jobs_ready(w.js, a, 0, w.now), -ESTALE);
	assert_int_equal(mgr_jobs_find(w.js, "train"), c);
	/* And another, before any switch was asked: none has to be told, nothing is held. */
	rank.rank = 0;
	rank.at.node = w.f.host[0];
	assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &b), 0);
	assert_int_equal(b, c);
	assert_int_equal(phase(&w, c), MGR_INSTALLING);
	rank.who = 10;
	assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &b), 0);
	assert_true(b > c);
	while (mgr_jobs_next(w.js, w.now, &action))
		assert_true(action.epoch != c || action.kind == MGR_TELL_OVER);
	job.duty = 0;
	assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &c), -EINVAL);
	close_world(&w);
}

/* A spine dies: its job is placed on the other one, with a new epoch; the other job goes on. */
static void re_placed(void **state)
{
	struct world w;
	struct mgr_job one = job_of("one", 3), two = job_of("two", 2);
	struct mgr_node n;
	uint64_t a, b, again;
	unsigned spine, s;

	(void)state;
	open_world(&w);
	a = start(&w, &one, 0, 4, 1);
	b = start(&w, &two, 1, 1, 50); /* on the first leaf */
	spine = root_of(&w, a);
	s = index_of(&w, spine);
	n = *mgr_graph_node(w.f.g, spine);
	n.up = false;
	mgr_graph_set_node(w.f.g, &n);
	w.n_groups[s] = 0; /* and all that it had */
	w.deaf[s] = true;
	assert_int_equal(mgr_jobs_switch_lost(w.js, spine, w.now), 1);
	settle(&w);
	assert_true(told(&w, a, MGR_TELL_OVER));
	again = start(&w, &one, 0, 4, 1);
	assert_true(again > b);
	assert_int_not_equal(root_of(&w, again), spine);
	assert_int_equal(phase(&w, b), MGR_ACTIVE);
	/* What the first run says now changes nothing. */
	assert_int_equal(mgr_jobs_ready(w.js, a, 0, w.now), -ESTALE);
	assert_int_equal(mgr_jobs_answer(w.js, a, spine, MGR_INSTALL, 0, w.now), -ESTALE);
	assert_int_equal(mgr_jobs_group_failed(w.js, a, w.f.sw[0], w.now), 0);
	until(&w, w.now + 600 * MS);
	assert_int_equal(find_group(&w, 0, a), -ENOENT); /* removed where it still was */
	assert_true(find_group(&w, 0, again) >= 0);
	assert_int_equal(mgr_book_switch_holders(w.f.b, spine), 0);
	close_world(&w);
}

/* A group that fails on one switch is failed on the others at once, and ranks told after that. */
static void failure_spreads(void **state)
{
	struct world w;
	struct mgr_job job = job_of("train", 3);
	struct mgr_action a;
	uint64_t epoch;
	char line[MGR_LINE_LEN];

	(void)state;
	open_world(&w);
	job.ring = true;
	epoch = start(&w, &job, 0, 4, 1);
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
	mgr_jobs_explain(w.js, "train", line, sizeof(line));
	assert_string_equal(line, "train, epoch 100, by the hosts' ring: its group failed on s1");
	beat(&w, epoch, 3, w.now + 5000 * MS);
	nothing_left(&w);
	assert_int_equal(phase(&w, epoch), MGR_RING); /* goes on */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(mgr_jobs_leave(w.js, epoch, i, w.now), 0);
	until(&w, w.now + 1000 * MS);
	assert_int_equal(mgr_jobs_count(w.js), 0);
	close_world(&w);
}

static void link_goes_down(void **state)
{
	struct world w;
	struct mgr_job one = job_of("one", 3), two = job_of("two", 2);
	uint64_t a, b, again;
	unsigned spine;
	int link;

	(void)state;
	open_world(&w);
	a = start(&w, &one, 0, 4, 1);
	b = start(&w, &two, 1, 1, 50);
	spine = root_of(&w, a);
	link = test_link(w.f.g, w.f.sw[1], spine);
	test_port(w.f.g, w.f.sw[1], spine, 0, 100 * GBPS, false);
	assert_int_equal(mgr_jobs_link_down(w.js, (unsigned)link, w.now), 1);
	assert_int_equal(mgr_jobs_link_down(w.js, (unsigned)link, w.now), 0);
	settle(&w);
	assert_true(told(&w, a, MGR_TELL_OVER));
	assert_false(told(&w, b, MGR_TELL_OVER));
	again = start(&w, &one, 0, 4, 1);
	assert_int_not_equal(root_of(&w, again), spine);
	close_world(&w);
}

/* Before it is active the ranks get the ring, and the reason. */
static void refused_or_silent(void **state)
{
	(void)state;
	for (unsigned silent = 0; silent < 2; silent++) {
		struct world w;
		struct mgr_job job = job_of("train", 3);
		struct mgr_run_view v;
		uint64_t epoch;

		open_world(&w);
		w.refuse = silent ? -1 : 1;
		w.deaf[1] = silent;
		epoch = join_all(&w, &job, 0, 4, 1);
		until(&w, w.now + config.answer_ns);
		assert_true(told(&w, epoch, MGR_TELL_RING));
		assert_true(mgr_jobs_view(w.js, epoch, &v));
		assert_int_equal(v.end, silent ? MGR_END_SWITCH_SILENT : MGR_END_REFUSED);
		assert_int_equal(v.culprit, w.f.sw[1]);
		beat(&w, epoch, 3, w.now + 2000 * MS);
		/* The silent one may have it: only that one's share is still held. */
		for (unsigned s = 0; s < w.f.n_sw; s++)
			assert_int_equal(
				mgr_book_switch_holders(w.f.b, w.f.sw[s]), silent && s == 1);
		w.deaf[1] = false;
		beat(&w, epoch, 3, w.now + 1000 * MS);
		nothing_left(&w);
		close_world(&w);
	}
}

static void not_in_the_network(void **state)
{
	struct world w;
	struct mgr_job job = job_of("train", 3);
	char line[MGR_LINE_LEN];
	uint64_t epoch;

	(void)state;
	open_world(&w);
	job.least_bps = job.want_bps = 500 * GBPS;
	epoch = join_all(&w, &job, 0, 4, 1);
	assert_int_equal(phase(&w, epoch), MGR_RING);
	assert_true(told(&w, epoch, MGR_TELL_RING));
	mgr_jobs_explain(w.js, "train", line, sizeof(line));
	assert_non_null(strstr(line, "by the hosts' ring: not in the network: the widest tree"));
	nothing_left(&w);
	/* Some never come. */
	job = job_of("late", 4);
	job.n_ranks = 4;
	{
		struct mgr_rank rank = {.who = 1, .at = {w.f.host[0], -1}, .modes = MGR_MODES};
		uint64_t end = w.now + config.join_ns;

		assert_int_equal(mgr_jobs_join(w.js, &job, &rank, w.now, &epoch), 0);
		while (w.now < end) {
			mgr_jobs_heartbeat(w.js, epoch, 0, w.now);
			until(&w, w.now + 500 * MS);
		}
	}
	assert_true(told(&w, epoch, MGR_TELL_OVER));
	close_world(&w);
}

/* Everything at once, with a tenth of the messages to and from switches lost. */
enum { JOBS = 6, ROUNDS = 20000 };

struct life {
	struct mgr_job job;
	unsigned first, step;
	uint64_t epoch, dead; /* ranks, a bit each */
};

static bool is_over(const struct world *w, uint64_t epoch)
{
	return phase(w, epoch) == MGR_OVER;
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
	open_world(&w);
	w.lose = 100;
	for (unsigned i = 0; i < JOBS; i++) {
		char name[MGR_NAME_LEN];

		snprintf(name, sizeof(name), "job%u", i);
		life[i] = (struct life){.job = job_of(name, 2 + i % 2), .first = i % 4, .step = 4};
		life[i].job.ring = i % 3 == 0;
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < JOBS; i++)
			live(&w, &life[i], i);
		harm(&w, life);
		until(&w, w.now + 100 * MS);
		sound(&w);
	}
	for (unsigned i = 0; i < w.n_told && i < MAX_TOLD; i++)
		started += w.told[i].kind == MGR_TELL_START;
	assert_true(started > 100);
	/* All ranks die, all switches can hear again: nothing is left, nobody cleaned up. */
	memset(w.deaf, 0, sizeof(w.deaf));
	until(&w, w.now + 60000 * MS);
	nothing_left(&w);
	assert_int_equal(mgr_jobs_count(w.js), 0);
	close_world(&w);
}

int run_job_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(whole_life),
		cmocka_unit_test(rank_dies), cmocka_unit_test(place_of_a_rank),
		cmocka_unit_test(re_placed), cmocka_unit_test(failure_spreads),
		cmocka_unit_test(link_goes_down), cmocka_unit_test(refused_or_silent),
		cmocka_unit_test(not_in_the_network), cmocka_unit_test(everything)};

	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
