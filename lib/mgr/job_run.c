/* SPDX-License-Identifier: BSD-3-Clause */
/* One run: its phases, what its switches are told, what time does to it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mgr/job_priv.h"

static void enter(struct mgr_run *r, enum mgr_phase phase, uint64_t by)
{
	r->phase = phase;
	r->phase_by = by;
	r->tell = phase == MGR_CONNECTING || phase >= MGR_ACTIVE;
}

/* Its switches are wanted somewhere else: they are told at once. */
static void want(struct mgr_run *r, enum mgr_step step)
{
	r->want = step;
	for (unsigned i = 0; i < r->n_sw; i++)
		r->sw[i].tell_at = 0;
}

int mgr_run_list_switches(struct mgr_run *r)
{
	const struct mgr_tree *t = &r->plan.tree;

	r->sw = calloc(t->n_sw, sizeof(r->sw[0]));
	if (r->sw == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < t->n_sw; i++) {
		if (!t->sw[i].transit)
			r->sw[r->n_sw++].node = t->sw[i].node;
	}
	return 0;
}

static void take_off(uint64_t *from, uint64_t bytes)
{
	*from -= bytes < *from ? bytes : *from;
}

/* What the owner's other jobs leave of its limit on each switch: those that share memory by duty
 * count with all that they may use. NULL: no limit. -ENOMEM. */
static int limits(const struct mgr_jobs *js, const struct mgr_run *of, uint64_t **out)
{
	const unsigned n = mgr_graph_bound(js->g);

	*out = NULL;
	if (!js->config.owner_bytes || !of->job.owner[0])
		return 0;
	*out = malloc((n + 1) * sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		(*out)[i] = js->config.owner_bytes;
	for (struct mgr_run *r = js->run; r != NULL; r = r->next) {
		if (!r->placed || strcmp(r->job.owner, of->job.owner) != 0)
			continue;
		for (unsigned i = 0; i < r->plan.tree.n_sw; i++) {
			const struct mgr_tree_sw *t = &r->plan.tree.sw[i];
			const struct mgr_run_sw *s = mgr_run_switch(r, t->node);

			if (s != NULL && s->at < MGR_STEP_GONE)
				take_off(&(*out)[t->node],
					mgr_size_bytes(&r->job.shape, &r->plan.size,
						mgr_tree_endpoints(t)));
		}
	}
	return 0;
}

static int place(struct mgr_jobs *js, struct mgr_run *r)
{
	struct mgr_member *member = malloc(r->job.n_ranks * sizeof(*member));
	struct mgr_wish wish = {.member = member,
		.n_members = r->job.n_ranks,
		.shape = r->job.shape,
		.modes = MGR_MODES,
		.want_bps = r->job.want_bps,
		.least_bps = r->job.least_bps,
		.promised = r->job.promised,
		.duty = r->job.duty,
		.low = r->job.low,
		.turns = true};
	uint64_t *most;
	int rc;

	r->why = MGR_WHY_NO_ROOM;
	if (member == NULL || limits(js, r, &most)) {
		free(member);
		return -ENOMEM;
	}
	wish.most = most;
	for (unsigned i = 0; i < r->job.n_ranks; i++) {
		member[i] = r->rank[i].info.at;
		wish.modes &= r->rank[i].info.modes;
	}
	/* Mode I stores whole messages: where nothing else is left. */
	if (wish.modes & ~(unsigned)MGR_MODE_I)
		wish.modes &= ~(unsigned)MGR_MODE_I;
	else
		wish.duty = MGR_DUTY; /* nor can it let go of them */
	rc = mgr_place_group(
		js->p, js->config.policy, &wish, UINT64_MAX, &r->plan, &r->promise, &r->why);
	free(most);
	free(member);
	return rc;
}

void mgr_run_place(struct mgr_jobs *js, struct mgr_run *r, uint64_t now)
{
	if (place(js, r)) {
		enter(r, MGR_RING, UINT64_MAX);
		return;
	}
	if (mgr_run_list_switches(r)) {
		r->why = MGR_WHY_NO_ROOM;
		mgr_book_release(js->b, r->promise);
		mgr_plan_free(&r->plan);
		enter(r, MGR_RING, UINT64_MAX);
		return;
	}
	r->placed = true;
	enter(r, MGR_INSTALLING, now + js->config.answer_ns);
	want(r, MGR_STEP_INSTALLED);
}

void mgr_run_step(struct mgr_jobs *js, struct mgr_run *r, struct mgr_run_sw *s, enum mgr_step at)
{
	if (at <= s->at)
		return;
	s->at = at;
	s->tell_at = 0;
	if (at == MGR_STEP_GONE)
		mgr_book_release_switch(js->b, r->promise, s->node);
}

/* Links carry nothing any more; switches give back what they have one by one. */
static void take_away(struct mgr_jobs *js, struct mgr_run *r)
{
	want(r, MGR_STEP_GONE);
	r->remove_at = UINT64_MAX;
	mgr_book_release_links(js->b, r->promise);
}

/* Switches that were never asked have nothing to fail or remove. */
static void excuse(struct mgr_jobs *js, struct mgr_run *r)
{
	for (unsigned i = 0; i < r->n_sw; i++) {
		if (!r->sw[i].asked)
			mgr_run_step(js, r, &r->sw[i], MGR_STEP_GONE);
	}
}

/* What the ranks do: only where the network failed them can the hosts' ring help. */
static bool ring_helps(const struct mgr_run *r, enum mgr_end end)
{
	return end >= MGR_END_GROUP_FAILED && (r->phase < MGR_ACTIVE || r->job.ring);
}

void mgr_run_fail(
	struct mgr_jobs *js, struct mgr_run *r, enum mgr_end end, unsigned culprit, uint64_t now)
{
	bool network = r->placed && r->want < MGR_STEP_FAILED;

	if (r->phase == MGR_OVER || (end >= MGR_END_GROUP_FAILED && !network))
		return;
	r->end = end;
	r->culprit = culprit;
	if (ring_helps(r, end)) {
		r->since = now;
		enter(r, MGR_RING, UINT64_MAX);
	} else {
		enter(r, MGR_OVER, UINT64_MAX);
		r->forget_at = now + js->config.linger_ns;
	}
	if (!network)
		return;
	want(r, MGR_STEP_FAILED);
	r->remove_at = now + js->config.drain_ns;
	excuse(js, r);
}

static bool all_at(const struct mgr_run *r, enum mgr_step step)
{
	for (unsigned i = 0; i < r->n_sw; i++) {
		if (r->sw[i].at < step)
			return false;
	}
	return true;
}

static bool all_ready(const struct mgr_run *r)
{
	for (unsigned i = 0; i < r->job.n_ranks; i++) {
		if (!r->rank[i].ready)
			return false;
	}
	return true;
}

static bool all_joined(const struct mgr_run *r)
{
	return r->phase == MGR_JOINING && r->n_joined == r->job.n_ranks;
}

bool mgr_run_is_held(const struct mgr_jobs *js, const struct mgr_run *r)
{
	return all_joined(r) && js->hold_until > 0;
}

bool mgr_run_all_left(const struct mgr_run *r)
{
	for (unsigned i = 0; i < r->job.n_ranks; i++) {
		if (r->rank[i].joined && !r->rank[i].left)
			return false;
	}
	return true;
}

/* Nothing failed: switches need not fail it first. */
static void leave(struct mgr_jobs *js, struct mgr_run *r, uint64_t now)
{
	r->end = MGR_END_LEFT;
	enter(r, MGR_OVER, UINT64_MAX);
	r->tell = false;
	r->forget_at = now + js->config.linger_ns;
	if (r->placed && r->want < MGR_STEP_FAILED) {
		take_away(js, r);
		excuse(js, r);
	}
}

void mgr_run_advance(struct mgr_jobs *js, struct mgr_run *r, uint64_t now)
{
	if (r->phase != MGR_OVER && mgr_run_all_left(r))
		leave(js, r, now);
	if (all_joined(r) && js->hold_until <= now)
		mgr_run_place(js, r, now);
	if (r->phase == MGR_INSTALLING && all_at(r, MGR_STEP_INSTALLED))
		enter(r, MGR_CONNECTING, UINT64_MAX);
	if (r->phase == MGR_CONNECTING && all_ready(r)) {
		mgr_book_commit(js->b, r->promise);
		enter(r, MGR_STARTING, now + js->config.answer_ns);
		want(r, MGR_STEP_ACTIVE);
	}
	if (r->phase == MGR_STARTING && all_at(r, MGR_STEP_ACTIVE))
		enter(r, MGR_ACTIVE, UINT64_MAX);
}

/* The switch that keeps the phase waiting. */
static unsigned laggard(const struct mgr_run *r)
{
	for (unsigned i = 0; i < r->n_sw; i++) {
		if (r->sw[i].at < r->want)
			return r->sw[i].node;
	}
	return 0;
}

static uint64_t dead_at(const struct mgr_jobs *js, const struct mgr_run_rank *rank)
{
	return rank->joined && !rank->left ? rank->seen + MGR_MISSED * js->config.heartbeat_ns
					   : UINT64_MAX;
}

void mgr_run_time(struct mgr_jobs *js, struct mgr_run *r, uint64_t now)
{
	for (unsigned i = 0; r->phase != MGR_OVER && i < r->job.n_ranks; i++) {
		if (dead_at(js, &r->rank[i]) <= now)
			mgr_run_fail(js, r, MGR_END_RANK_SILENT, i, now);
	}
	if (all_joined(r))
		mgr_run_advance(js, r, now);
	else if (r->phase_by <= now && r->phase == MGR_JOINING)
		mgr_run_fail(js, r, MGR_END_JOIN_TIME, r->n_joined, now);
	else if (r->phase_by <= now)
		mgr_run_fail(js, r, MGR_END_SWITCH_SILENT, laggard(r), now);
	if (r->want == MGR_STEP_FAILED && r->remove_at <= now)
		take_away(js, r);
}

/* What brings a switch one step nearer to where it is wanted. */
static enum mgr_action_kind towards(const struct mgr_run *r, const struct mgr_run_sw *s)
{
	if (r->want == MGR_STEP_GONE)
		return MGR_REMOVE;
	if (r->want == MGR_STEP_FAILED)
		return MGR_FAIL;
	return s->at == MGR_STEP_NONE ? MGR_INSTALL : MGR_ACTIVATE;
}

static enum mgr_action_kind news(enum mgr_phase phase)
{
	return phase == MGR_CONNECTING ? MGR_TELL_PLAN
	       : phase == MGR_ACTIVE   ? MGR_TELL_START
	       : phase == MGR_RING     ? MGR_TELL_RING
				       : MGR_TELL_OVER;
}

bool mgr_run_action(struct mgr_jobs *js, struct mgr_run *r, uint64_t now, struct mgr_action *out)
{
	/* Switches first: who hears that a run is over finds nothing of it that still works. */
	for (unsigned i = 0; i < r->n_sw; i++) {
		struct mgr_run_sw *s = &r->sw[i];

		if (s->at >= r->want || s->tell_at > now)
			continue;
		s->tell_at = now + js->config.retry_ns;
		s->asked = true;
		*out = (struct mgr_action){towards(r, s), r->epoch, s->node};
		return true;
	}
	if (!r->tell)
		return false;
	r->tell = false;
	*out = (struct mgr_action){.kind = news(r->phase), .epoch = r->epoch};
	return true;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t mgr_run_deadline(const struct mgr_jobs *js, const struct mgr_run *r)
{
	uint64_t at = r->tell ? 0 : all_joined(r) ? js->hold_until : r->phase_by;

	for (unsigned i = 0; r->phase != MGR_OVER && i < r->job.n_ranks; i++)
		at = sooner(at, dead_at(js, &r->rank[i]));
	for (unsigned i = 0; i < r->n_sw; i++) {
		if (r->sw[i].at < r->want)
			at = sooner(at, r->sw[i].tell_at);
	}
	if (r->want == MGR_STEP_FAILED)
		at = sooner(at, r->remove_at);
	if (r->phase == MGR_OVER && all_at(r, MGR_STEP_GONE))
		at = sooner(at, r->forget_at);
	return at;
}

bool mgr_run_forgotten(const struct mgr_run *r, uint64_t now)
{
	return r->phase == MGR_OVER && !r->tell && r->forget_at <= now && all_at(r, MGR_STEP_GONE);
}

void mgr_run_free(struct mgr_jobs *js, struct mgr_run *r)
{
	if (r->placed) {
		mgr_book_release(js->b, r->promise); /* if anything is left of it */
		mgr_plan_free(&r->plan);
	}
	free(r->sw);
	free(r->rank);
	free(r);
}
