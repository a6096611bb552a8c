/* SPDX-License-Identifier: BSD-3-Clause */
/* The manager's decisions for many:
 *	scale GROUPS EVENTS [SEED]
 * GROUPS groups on a fabric of 1008 switches, then as many jobs from joining to leaving; EVENTS
 * random events on a small fabric, after each of which nothing may be promised twice and what was
 * refused may have changed nothing. Prints rates; they decide nothing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/flowsim/fabric.h"
#include "lib/mgr/job.h"

enum { MEMBERS = 8 };
static const uint64_t SECOND = 1000000000;
/* 16 pods of 31 leaves and 16 spines, 256 cores: 1008 switches, 1984 hosts. */
static const struct fs_shape large = {16, 31, 4, 16, 16, 100000000000, 4096, (uint64_t)1 << 40};
static const struct fs_shape little = {2, 3, 4, 2, 2, 100000000000, 3, 1 << 20};

#define CHECK(what)                                                              \
	do {                                                                     \
		if (!(what)) {                                                   \
			printf("line %d: does not hold: %s\n", __LINE__, #what); \
			exit(1);                                                 \
		}                                                                \
	} while (0)

static uint32_t number(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct fs_fabric *fabric_of(const struct fs_shape *shape)
{
	struct fs_fabric *f;
	char err[FS_ERR_LEN];

	CHECK(fs_fabric_new(shape, &f, err) == 0);
	return f;
}

static struct mgr_wish wish_of(
	const struct fs_fabric *f, struct mgr_member m[MEMBERS], uint64_t *random)
{
	struct mgr_wish w = {.member = m,
		.n_members = 2 + number(random) % (MEMBERS - 1),
		.shape = {.mtu = 1024, .hop_ns = 2500},
		.modes = MGR_MODES,
		.want_bps = 10000000000,
		.duty = number(random) % 2 ? MGR_DUTY : 100 + number(random) % 800};
	unsigned first = number(random) % f->n_hosts;

	for (unsigned i = 0; i < w.n_members; i++) /* near, or anywhere */
		m[i] = (struct mgr_member){
			f->host[number(random) % 4 ? (first + i) % f->n_hosts
						   : number(random) % f->n_hosts],
			-1};
	return w;
}

/* Groups on switches, as the trees have them and as the book has them. */
static uint64_t held(const struct fs_fabric *f)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < mgr_graph_bound(f->g); i++)
		n += mgr_book_switch_holders(f->b, i);
	return n;
}

static unsigned taking_part(const struct mgr_plan *plan)
{
	unsigned n = 0;

	for (unsigned i = 0; i < plan->tree.n_sw; i++)
		n += !plan->tree.sw[i].transit;
	return n;
}

static void many_groups(unsigned n)
{
	struct fs_fabric *f = fabric_of(&large);
	mgr_promise *promise = calloc(n, sizeof(*promise));
	uint64_t random = 91, expected = 0;
	double start = seconds(), placed;

	CHECK(promise != NULL && f->n_switches == 1008);
	for (unsigned i = 0; i < n; i++) {
		struct mgr_member m[MEMBERS];
		struct mgr_wish w = wish_of(f, m, &random);
		struct mgr_plan plan;
		enum mgr_why why;

		CHECK(mgr_place_group(f->p, i % 2 ? &mgr_policy_spatial : &mgr_policy_temporal, &w,
			      UINT64_MAX, &plan, &promise[i], &why) == 0);
		CHECK(mgr_book_commit(f->b, promise[i]) == 0);
		expected += taking_part(&plan);
		mgr_plan_free(&plan);
	}
	placed = seconds();
	CHECK(held(f) == expected);
	for (unsigned i = 0; i < n; i++)
		CHECK(mgr_book_release(f->b, promise[i]) == 0);
	CHECK(held(f) == 0);
	printf("%u groups on %u switches: %.0f placed per second, %.0f released\n", n,
		f->n_switches, n / (placed - start), n / (seconds() - placed));
	free(promise);
	fs_fabric_free(f);
}

struct told {
	unsigned kind[MGR_TELL_OVER + 1];
};

/* Does as told at once, until nothing is to be done. */
static void obey(struct mgr_jobs *js, uint64_t now, struct told *t)
{
	struct mgr_action a;

	while (mgr_jobs_next(js, now, &a)) {
		t->kind[a.kind]++;
		if (a.kind <= MGR_REMOVE)
			CHECK(mgr_jobs_answer(js, a.epoch, a.node, a.kind, 0, now) == 0);
		if (a.kind == MGR_TELL_PLAN) {
			for (unsigned rank = 0; rank < 2; rank++)
				CHECK(mgr_jobs_ready(js, a.epoch, rank, now) == 0);
		}
	}
}

static void many_jobs(unsigned n)
{
	struct fs_fabric *f = fabric_of(&large);
	struct mgr_jobs_config config = {.policy = &mgr_policy_spatial,
		.max_runs = n,
		.first_epoch = 1,
		.heartbeat_ns = SECOND,
		.join_ns = 30 * SECOND,
		.answer_ns = 5 * SECOND,
		.retry_ns = SECOND,
		.drain_ns = SECOND,
		.linger_ns = SECOND};
	struct mgr_jobs *js = mgr_jobs_new(f->g, f->b, f->p, &config);
	uint64_t now = SECOND, *epoch = calloc(n, sizeof(*epoch));
	struct told t = {{0}};
	double start = seconds(), active, beaten;

	CHECK(js != NULL && epoch != NULL);
	for (unsigned i = 0; i < n; i++) {
		struct mgr_job job = {.n_ranks = 2,
			.shape = {.mtu = 1024, .hop_ns = 2500},
			.duty = MGR_DUTY,
			.want_bps = SECOND};

		snprintf(job.name, sizeof(job.name), "job%u", i);
		for (unsigned rank = 0; rank < 2; rank++) {
			struct mgr_rank r = {.rank = rank,
				.who = 2 * i + rank,
				.at = {f->host[(i * 2 + rank) % f->n_hosts], -1},
				.modes = MGR_MODES};

			CHECK(mgr_jobs_join(js, &job, &r, now, &epoch[i]) == 0);
		}
		obey(js, now, &t);
	}
	active = seconds();
	CHECK(mgr_jobs_count(js) == n && t.kind[MGR_TELL_START] == n && t.kind[MGR_INSTALL] == n);
	/* One sign of life per rank and second; no job ends. */
	for (unsigned beat = 0; beat < 5; beat++) {
		now += SECOND;
		for (unsigned i = 0; i < 2 * n; i++)
			CHECK(mgr_jobs_heartbeat(js, epoch[i / 2], i % 2, now) == 0);
		obey(js, now, &t);
		CHECK(mgr_jobs_deadline(js) == now + MGR_MISSED * SECOND);
	}
	beaten = seconds();
	CHECK(t.kind[MGR_TELL_OVER] == 0);
	/* Every second job leaves, the rest falls silent. */
	for (unsigned i = 0; i < n; i += 2) {
		for (unsigned rank = 0; rank < 2; rank++)
			CHECK(mgr_jobs_leave(js, epoch[i], rank, now) == 0);
	}
	while (mgr_jobs_deadline(js) < UINT64_MAX) {
		now = mgr_jobs_deadline(js) > now ? mgr_jobs_deadline(js) : now;
		obey(js, now, &t);
	}
	CHECK(mgr_jobs_count(js) == 0 && held(f) == 0);
	CHECK(t.kind[MGR_TELL_OVER] == n / 2 && t.kind[MGR_FAIL] == n / 2 &&
		t.kind[MGR_REMOVE] == n);
	printf("%u jobs: %.0f started per second, %.0f heartbeats, %.0f ended\n", n,
		n / (active - start), 10.0 * n / (beaten - active), n / (seconds() - beaten));
	free(epoch);
	mgr_jobs_free(js);
	fs_fabric_free(f);
}

enum { LIVE = 16 };

struct world {
	struct fs_fabric *f;
	uint64_t random;
	struct {
		mgr_promise promise;
		struct mgr_plan plan;
	} live[LIVE];
	unsigned placed, refused, changed;
};

/* What each switch and link has is no more than it can; trees' own. */
static void sound(const struct world *w)
{
	static unsigned groups[256], trees[1024];
	const struct fs_fabric *f = w->f;

	memset(groups, 0, sizeof(groups));
	memset(trees, 0, sizeof(trees));
	for (unsigned k = 0; k < LIVE; k++) {
		const struct mgr_tree *t = &w->live[k].plan.tree;
		unsigned seen[MEMBERS], n_seen = 0;

		if (w->live[k].promise == 0)
			continue;
		for (unsigned i = 0; i < t->n_sw; i++) {
			groups[t->sw[i].node] += !t->sw[i].transit;
			if (i > 0)
				trees[t->sw[i].link]++;
		}
		for (unsigned i = 0; i < t->n_members; i++) {
			bool before = false;

			for (unsigned m = 0; m < n_seen; m++)
				before = before || seen[m] == t->member[i].link;
			if (before)
				continue;
			seen[n_seen++] = t->member[i].link;
			trees[t->member[i].link]++;
		}
	}
	for (unsigned i = 0; i < mgr_graph_bound(f->g); i++)
		CHECK(mgr_book_switch_holders(f->b, i) == groups[i]);
	for (unsigned i = 0; i < mgr_graph_link_bound(f->g); i++)
		CHECK(mgr_book_link_holders(f->b, i) == trees[i]);
}

static void place_one(struct world *w, unsigned at)
{
	static const struct mgr_policy *const policy[] = {
		&mgr_policy_edt, &mgr_policy_spatial, &mgr_policy_temporal};
	struct mgr_member m[MEMBERS];
	struct mgr_wish wish = wish_of(w->f, m, &w->random);
	uint64_t before = held(w->f);
	struct mgr_plan plan;
	mgr_promise promise;
	enum mgr_why why;

	wish.promised = number(&w->random) % 3 == 0;
	if (mgr_place_group(w->f->p, policy[number(&w->random) % 3], &wish, UINT64_MAX, &plan,
		    &promise, &why)) {
		CHECK(held(w->f) == before); /* nothing of it */
		w->refused++;
		return;
	}
	CHECK(held(w->f) == before + taking_part(&plan)); /* all of it */
	for (unsigned i = 0; i < plan.tree.n_sw; i++) {
		unsigned node = plan.tree.sw[i].node;
		const struct mgr_node *n = mgr_graph_node(w->f->g, node);

		CHECK(n->up && mgr_book_used_bytes(w->f->b, node) <= n->sram);
		CHECK(mgr_book_switch_holders(w->f->b, node) <= n->groups);
	}
	w->live[at].promise = promise;
	w->live[at].plan = plan;
	w->placed++;
}

/* Another capacity, or up and down: what is promised stays. */
static void change_switch(struct world *w)
{
	unsigned at = w->f->n_hosts + number(&w->random) % w->f->n_switches;
	uint64_t before = held(w->f);
	struct mgr_node n = *mgr_graph_node(w->f->g, at);

	CHECK(n.kind == MGR_SWITCH);
	n.sram = (uint64_t)1 << (15 + number(&w->random) % 10);
	n.groups = number(&w->random) % 8;
	n.up = number(&w->random) % 8 != 0;
	CHECK(mgr_graph_set_node(w->f->g, &n) >= 0);
	CHECK(held(w->f) == before);
	w->changed++;
}

static void events(unsigned n, uint64_t seed)
{
	struct world w = {.f = fabric_of(&little), .random = seed};
	double start = seconds();

	for (unsigned k = 0; k < n; k++) {
		unsigned at = number(&w.random) % LIVE;

		if (number(&w.random) % 50 == 0) {
			change_switch(&w);
		} else if (w.live[at].promise == 0) {
			place_one(&w, at);
		} else {
			if (number(&w.random) % 2)
				CHECK(mgr_book_commit(w.f->b, w.live[at].promise) == 0);
			CHECK(mgr_book_release(w.f->b, w.live[at].promise) == 0);
			CHECK(mgr_book_release(w.f->b, w.live[at].promise) == -ENOENT);
			mgr_plan_free(&w.live[at].plan);
			w.live[at].promise = 0;
		}
		sound(&w);
	}
	printf("%u events in %.1f s: %u groups placed, %u refused, %u changes of switches\n", n,
		seconds() - start, w.placed, w.refused, w.changed);
	CHECK(w.placed >= n / 10 && w.refused >= n / 100);
	for (unsigned i = 0; i < LIVE; i++) {
		if (w.live[i].promise == 0)
			continue;
		CHECK(mgr_book_release(w.f->b, w.live[i].promise) == 0);
		mgr_plan_free(&w.live[i].plan);
	}
	CHECK(held(w.f) == 0);
	fs_fabric_free(w.f);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3) {
		fputs("scale GROUPS EVENTS [SEED]\n", stderr);
		return 2;
	}
	many_groups((unsigned)strtoul(argv[1], NULL, 0));
	many_jobs((unsigned)strtoul(argv[1], NULL, 0));
	events((unsigned)strtoul(argv[2], NULL, 0), argc > 3 ? strtoull(argv[3], NULL, 0) : 1);
	return 0;
}
