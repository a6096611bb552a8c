/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of a job: who is in them, where they go. */
#include <errno.h>
#include <stdlib.h>

#include "lib/flowsim/priv.h"

/* What packets are like, for the manager to size by. */
static const struct mgr_shape shape = {.mtu = 1024, .hop_ns = 2500};

int fs_run_new(struct fs_sim *s, unsigned job)
{
	const struct fs_job *j = &s->job[job];
	struct fs_run *r = &s->run[job];
	unsigned blocks = j->gpus / j->tp, n_data = blocks > 1 && j->dp_bytes > 0 ? j->tp : 0;

	r->n_tensor = j->tp > 1 && j->tp_bytes > 0 ? blocks : 0;
	r->n_groups = r->n_tensor + n_data;
	r->block = calloc(blocks, sizeof(r->block[0]));
	r->group = calloc(r->n_groups + 1, sizeof(r->group[0]));
	if (r->block == NULL || r->group == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < r->n_groups; i++) {
		struct fs_group *g = &r->group[i];

		g->n = i < r->n_tensor ? j->tp : blocks;
		g->bytes = i < r->n_tensor ? j->tp_bytes : j->dp_bytes;
		g->host = calloc(g->n, sizeof(g->host[0]));
		if (g->host == NULL)
			return -ENOMEM;
	}
	return 0;
}

/* What is held on all switches together, over time. */
static void hold(struct fs_sim *s, const struct mgr_plan *plan, bool more)
{
	uint64_t bytes = mgr_plan_bytes(plan, &shape);
	double dt = (double)(s->now - s->since);
	unsigned n = plan->tree.n_sw;

	s->group_ns += dt * (double)s->groups;
	s->byte_ns += dt * (double)s->bytes;
	s->since = s->now;
	s->groups = more ? s->groups + n : s->groups - n;
	s->bytes = more ? s->bytes + bytes : s->bytes - bytes;
	if (!more)
		return;
	if (s->bytes > s->totals.peak_bytes)
		s->totals.peak_bytes = s->bytes;
	for (unsigned i = 0; i < n; i++) {
		unsigned holders = mgr_book_switch_holders(s->f->b, plan->tree.sw[i].node);

		if (holders > s->totals.peak_groups)
			s->totals.peak_groups = holders;
	}
}

static void place(struct fs_sim *s, struct fs_group *g)
{
	struct mgr_member *member = malloc(g->n * sizeof(*member));
	struct mgr_wish wish = {.member = member,
		.n_members = g->n,
		.shape = shape,
		.modes = MGR_MODE_II,
		.want_bps = s->f->shape.bps,
		.duty = MGR_DUTY};
	enum mgr_why why;

	if (member == NULL)
		return; /* by the ring */
	for (unsigned i = 0; i < g->n; i++)
		member[i] = (struct mgr_member){s->f->host[g->host[i]], -1};
	g->placed = mgr_place_group(s->f->p, s->config.policy, &wish, UINT64_MAX, &g->plan,
			    &g->promise, &why) == 0;
	free(member);
	if (g->placed)
		hold(s, &g->plan, true);
	s->totals.placed += g->placed;
	s->totals.refused += !g->placed;
}

static void release(struct fs_sim *s, struct fs_group *g)
{
	if (!g->placed)
		return;
	mgr_book_release(s->f->b, g->promise);
	hold(s, &g->plan, false);
	mgr_plan_free(&g->plan);
	g->placed = false;
}

static bool by_fabric(const struct fs_sim *s, const struct fs_run *r, unsigned group)
{
	return group >= r->n_tensor || !s->config.scaleup;
}

void fs_run_place(struct fs_sim *s, unsigned job)
{
	struct fs_run *r = &s->run[job];

	for (unsigned i = 0; s->config.policy && i < r->n_groups; i++) {
		if (!s->config.policy->shared && by_fabric(s, r, i))
			place(s, &r->group[i]);
	}
}

void fs_run_end(struct fs_sim *s, unsigned job)
{
	struct fs_run *r = &s->run[job];

	for (unsigned i = 0; r->group && i < r->n_groups; i++) {
		release(s, &r->group[i]);
		free(r->group[i].host);
	}
	free(r->group);
	free(r->block);
	r->group = NULL;
	r->block = NULL;
}

static int way_room(struct fs_sim *s, unsigned n)
{
	unsigned *more;

	if (n <= s->way_room)
		return 0;
	more = realloc(s->way, n * sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	s->way = more;
	s->way_room = n;
	return 0;
}

/* Each link of the tree, both ways. */
static int add_tree(struct fs_sim *s, const struct fs_group *g)
{
	const struct mgr_tree *t = &g->plan.tree;
	unsigned n = 0;

	if (way_room(s, 2 * (t->n_sw + t->n_members)))
		return -ENOMEM;
	for (unsigned i = 0; i < t->n_sw - 1 + t->n_members; i++) {
		unsigned link =
			i < t->n_members ? t->member[i].link : t->sw[i - t->n_members + 1].link;

		s->way[n++] = fs_directed(link, false);
		s->way[n++] = fs_directed(link, true);
	}
	return fs_water_add(s->f->water, s->way, n);
}

static uint64_t hash_of(const struct fs_sim *s, unsigned job, unsigned group, unsigned edge)
{
	uint64_t state = s->config.seed;

	state = fs_random(&state) ^ job;
	state = fs_random(&state) ^ group;
	state = fs_random(&state) ^ edge;
	return fs_random(&state) | 1;
}

/* From each host to the next. */
static int add_ring(struct fs_sim *s, unsigned job, unsigned group)
{
	const struct fs_group *g = &s->run[job].group[group];
	unsigned n = 0;

	if (way_room(s, FS_MAX_WAY * g->n))
		return -ENOMEM;
	for (unsigned i = 0; i < g->n; i++)
		n += fs_way(s->f, g->host[i], g->host[(i + 1) % g->n],
			s->config.hashed ? hash_of(s, job, group, i) : 0, s->way + n);
	return fs_water_add(s->f->water, s->way, n);
}

static int flow_room(struct fs_sim *s, unsigned flow)
{
	unsigned room = s->flow_room ? s->flow_room : 64;
	struct fs_flow *more;

	if (flow < s->flow_room)
		return 0;
	while (room <= flow)
		room *= 2;
	more = realloc(s->flow, room * sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	s->flow = more;
	s->flow_room = room;
	return 0;
}

int fs_group_start(struct fs_sim *s, unsigned job, unsigned group)
{
	struct fs_group *g = &s->run[job].group[group];
	struct fs_result *result = &s->result[job];
	double times = 2;
	int flow;

	if (s->config.policy && s->config.policy->shared)
		place(s, g);
	flow = g->placed ? add_tree(s, g) : add_ring(s, job, group);
	if (flow < 0 || flow_room(s, (unsigned)flow))
		return -ENOMEM;
	if (s->config.exact)
		times = 2.0 * (g->n - 1) / g->n;
	s->flow[flow] = (struct fs_flow){.job = job,
		.group = group,
		.left = g->placed ? g->bytes : times * g->bytes,
		.since = s->now};
	result->groups++;
	result->in_network += g->placed;
	result->bytes += g->bytes;
	result->in_network_bytes += g->placed ? g->bytes : 0;
	return 0;
}

void fs_group_over(struct fs_sim *s, unsigned job, unsigned group)
{
	if (s->config.policy && s->config.policy->shared)
		release(s, &s->run[job].group[group]);
}
