/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/mgr/job_world.h"

#include <errno.h>

static const uint64_t GBPS = TEST_GBPS;

const struct mgr_jobs_config world_config = {.policy = &mgr_policy_spatial,
	.max_runs = 32,
	.first_epoch = 100,
	.heartbeat_ns = 1000 * 1000000ull,
	.join_ns = 10000 * 1000000ull,
	.answer_ns = 2000 * 1000000ull,
	.retry_ns = 200 * 1000000ull,
	.drain_ns = 500 * 1000000ull,
	.linger_ns = 1000 * 1000000ull};

void world_open(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->f = fabric_clos(3, 2, 4);
	w->js = mgr_jobs_new(w->f.g, w->f.b, w->f.p, &world_config);
	w->random = 15;
	w->refuse = -1;
	assert_non_null(w->js);
}

void world_close(struct world *w)
{
	mgr_jobs_free(w->js);
	fabric_free(&w->f);
}

static bool lost(struct world *w)
{
	return test_random(&w->random) % 1000 < w->lose;
}

int world_find_group(const struct world *w, unsigned s, uint64_t epoch)
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
	int at = world_find_group(w, s, a->epoch);

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

unsigned world_index_of(const struct world *w, unsigned node)
{
	unsigned s = 0;

	while (w->f.sw[s] != node)
		assert_true(++s < w->f.n_sw);
	return s;
}

void world_settle(struct world *w)
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
		s = world_index_of(w, a.node);
		if (w->deaf[s] || lost(w))
			continue;
		rc = obey(w, s, &a);
		if (!lost(w))
			mgr_jobs_answer(w->js, a.epoch, a.node, a.kind, rc, w->now);
	}
}

bool world_told(const struct world *w, uint64_t epoch, enum mgr_action_kind kind)
{
	for (unsigned i = 0; i < w->n_told && i < MAX_TOLD; i++) {
		if (w->told[i].epoch == epoch && w->told[i].kind == kind)
			return true;
	}
	return false;
}

void world_until(struct world *w, uint64_t end)
{
	world_settle(w);
	while (mgr_jobs_deadline(w->js) <= end) {
		uint64_t at = mgr_jobs_deadline(w->js);

		assert_true(at > w->now); /* or it would never get on */
		w->now = at;
		world_settle(w);
	}
	w->now = end;
}

struct mgr_job world_job_of(const char *name, unsigned n)
{
	struct mgr_job job = {.n_ranks = n,
		.shape = {.mtu = 1024, .m = 4, .hop_ns = 2500},
		.want_bps = 10 * GBPS,
		.duty = MGR_DUTY};

	snprintf(job.name, sizeof(job.name), "%s", name);
	return job;
}

uint64_t world_join_all(
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
	world_settle(w);
	return epoch;
}

enum mgr_phase world_phase(const struct world *w, uint64_t epoch)
{
	struct mgr_run_view v;

	return mgr_jobs_view(w->js, epoch, &v) ? v.phase : MGR_OVER;
}

uint64_t world_start(
	struct world *w, const struct mgr_job *job, unsigned first, unsigned step, uint64_t who)
{
	uint64_t epoch = world_join_all(w, job, first, step, who);

	assert_int_equal(world_phase(w, epoch), MGR_CONNECTING);
	assert_true(world_told(w, epoch, MGR_TELL_PLAN));
	for (unsigned i = 0; i < job->n_ranks; i++)
		assert_int_equal(mgr_jobs_ready(w->js, epoch, i, w->now), 0);
	world_settle(w);
	assert_int_equal(world_phase(w, epoch), MGR_ACTIVE);
	assert_true(world_told(w, epoch, MGR_TELL_START));
	return epoch;
}

void world_nothing_left(const struct world *w)
{
	for (unsigned s = 0; s < w->f.n_sw; s++) {
		assert_int_equal(w->n_groups[s], 0);
		assert_int_equal(mgr_book_used_bytes(w->f.b, w->f.sw[s]), 0);
		assert_int_equal(mgr_book_switch_holders(w->f.b, w->f.sw[s]), 0);
	}
	for (unsigned i = 0; i < mgr_graph_link_bound(w->f.g); i++)
		assert_int_equal(mgr_book_link_holders(w->f.b, i), 0);
}

unsigned world_root_of(const struct world *w, uint64_t epoch)
{
	struct mgr_run_view v;

	assert_true(mgr_jobs_view(w->js, epoch, &v));
	assert_non_null(v.plan);
	return v.plan->tree.sw[0].node;
}

void world_beat(struct world *w, uint64_t epoch, unsigned n, uint64_t end)
{
	while (w->now < end) {
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(mgr_jobs_heartbeat(w->js, epoch, i, w->now), 0);
		world_until(w, w->now + 500 * MS < end ? w->now + 500 * MS : end);
	}
}
