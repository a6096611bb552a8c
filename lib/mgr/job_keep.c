/* SPDX-License-Identifier: BSD-3-Clause */
/* What of runs has to be known after a restart, and going on with it. */
#include <errno.h>
#include <stdlib.h>

#include "lib/mgr/job_priv.h"

/* ---- what has changed ---- */

static void list(struct mgr_jobs *js, struct mgr_run *r)
{
	if (r->listed)
		return;
	r->listed = true;
	r->next_changed = js->changed;
	js->changed = r;
}

void mgr_run_note(struct mgr_jobs *js, struct mgr_run *r)
{
	if (js->config.kept && r->phase != MGR_JOINING)
		list(js, r);
}

void mgr_run_gone(struct mgr_jobs *js, struct mgr_run *r)
{
	r->gone = true;
	if (r->known)
		list(js, r);
	else if (!r->listed)
		mgr_run_free(js, r);
}

static void free_last(struct mgr_jobs *js)
{
	if (js->freed != NULL)
		mgr_run_free(js, js->freed);
	js->freed = NULL;
}

void mgr_run_free_gone(struct mgr_jobs *js)
{
	free_last(js);
	while (js->changed != NULL) {
		struct mgr_run *r = js->changed;

		js->changed = r->next_changed;
		r->listed = false;
		if (r->gone)
			mgr_run_free(js, r);
	}
}

static struct mgr_run_mark mark(const struct mgr_run *r)
{
	return (struct mgr_run_mark){r->phase, r->want, r->end, r->culprit, r->n_ready, r->n_left};
}

static bool same(const struct mgr_run_mark *a, const struct mgr_run_mark *b)
{
	return a->phase == b->phase && a->want == b->want && a->end == b->end &&
	       a->culprit == b->culprit && a->n_ready == b->n_ready && a->n_left == b->n_left;
}

static uint64_t who(const void *ranks, unsigned rank)
{
	return ((const struct mgr_run_rank *)ranks)[rank].info.who;
}

static bool ready(const void *ranks, unsigned rank)
{
	return ((const struct mgr_run_rank *)ranks)[rank].ready;
}

static bool left(const void *ranks, unsigned rank)
{
	return ((const struct mgr_run_rank *)ranks)[rank].left;
}

static void show(const struct mgr_run *r, struct mgr_run_kept *out)
{
	*out = (struct mgr_run_kept){.epoch = r->epoch,
		.job = r->job,
		.plan = r->placed ? &r->plan : NULL,
		.phase = r->phase,
		.want = r->want,
		.why = r->why,
		.end = r->end,
		.culprit = r->culprit,
		.who = who,
		.ready = ready,
		.left = left,
		.ranks = r->rank};
}

/* Of a run that ended before it had a plan or the ring nothing was promised to anybody. */
static bool matters(const struct mgr_run *r)
{
	return r->known || r->placed || r->phase == MGR_RING;
}

bool mgr_jobs_changed(struct mgr_jobs *js, struct mgr_run_kept *out, bool *first, bool *gone)
{
	free_last(js);
	while (js->changed != NULL) {
		struct mgr_run *r = js->changed;
		const struct mgr_run_mark now = mark(r);

		js->changed = r->next_changed;
		r->listed = false;
		*gone = r->gone;
		*first = !r->known;
		if (r->gone)
			js->freed = r;
		if (matters(r) && !(r->gone && !r->known) &&
			(*first || *gone || !same(&now, &r->given))) {
			show(r, out);
			r->known = true;
			r->given = now;
			return true;
		}
		free_last(js);
	}
	return false;
}

uint64_t mgr_jobs_next_epoch(const struct mgr_jobs *js)
{
	return js->epoch;
}

/* ---- going on ---- */

static bool fits_together(const struct mgr_jobs *js, const struct mgr_run_kept *k)
{
	const bool out = k->phase == MGR_OVER || k->phase == MGR_RING;
	static const enum mgr_step want[] = {[MGR_INSTALLING] = MGR_STEP_INSTALLED,
		[MGR_CONNECTING] = MGR_STEP_INSTALLED,
		[MGR_STARTING] = MGR_STEP_ACTIVE,
		[MGR_ACTIVE] = MGR_STEP_ACTIVE};

	if (k->phase == MGR_JOINING || k->phase > MGR_OVER || k->want > MGR_STEP_GONE ||
		k->end >= MGR_ENDS || k->why >= MGR_WHYS || k->job.n_ranks == 0 ||
		k->job.n_ranks > MGR_MAX_MEMBERS || mgr_shape_check(&k->job.shape) ||
		k->epoch >= js->epoch || (js->run != NULL && js->run->epoch >= k->epoch))
		return false;
	if (k->plan == NULL)
		return out;
	return k->plan->tree.n_members == k->job.n_ranks &&
	       (out ? k->want >= MGR_STEP_FAILED : k->want == want[k->phase]);
}

/* Who has not left is alive until he should have been heard of. */
static void restore_ranks(
	const struct mgr_jobs *js, struct mgr_run *r, const struct mgr_run_kept *k, uint64_t now)
{
	for (unsigned i = 0; i < r->job.n_ranks; i++) {
		r->rank[i] = (struct mgr_run_rank){.info = {.rank = i, .who = k->who(k->ranks, i)},
			.seen = now + MGR_GRACE * js->config.heartbeat_ns,
			.joined = true,
			.ready = k->ready(k->ranks, i),
			.left = k->left(k->ranks, i)};
		r->n_ready += r->rank[i].ready;
		r->n_left += r->rank[i].left;
	}
	r->n_joined = r->job.n_ranks;
}

/* What a switch has surely done; all may have more, and are told again. */
static enum mgr_step surely(enum mgr_phase phase)
{
	return phase == MGR_ACTIVE                                ? MGR_STEP_ACTIVE
	       : phase == MGR_CONNECTING || phase == MGR_STARTING ? MGR_STEP_INSTALLED
								  : MGR_STEP_NONE;
}

static int restore_plan(struct mgr_jobs *js, struct mgr_run *r, const struct mgr_run_kept *k)
{
	int rc;

	r->plan = *k->plan;
	rc = mgr_place_restore(js->p, &r->job.shape, r->job.promised, &r->plan, &r->promise);
	if (rc == 0 && mgr_book_restore_window(
			       js->b, r->promise, &r->plan.window, r->want >= MGR_STEP_FAILED)) {
		mgr_book_release(js->b, r->promise);
		rc = -EINVAL;
	}
	if (rc == 0 && mgr_run_list_switches(r)) {
		mgr_book_release(js->b, r->promise);
		rc = -ENOMEM;
	}
	if (rc)
		return rc == -ENOMEM ? rc : -EINVAL;
	r->placed = true;
	for (unsigned i = 0; i < r->n_sw; i++) {
		r->sw[i].asked = true;
		r->sw[i].at = surely(r->phase);
	}
	if (r->want == MGR_STEP_GONE)
		mgr_book_release_links(js->b, r->promise);
	return 0;
}

int mgr_jobs_restore(struct mgr_jobs *js, const struct mgr_run_kept *k, uint64_t now)
{
	const uint64_t grace = mgr_return_ns(js->config.heartbeat_ns);
	struct mgr_run *r;
	int rc = fits_together(js, k) ? mgr_run_new(js, &k->job, k->epoch, &r) : -EINVAL;

	if (rc)
		return rc;
	r->phase = k->phase;
	r->want = k->want;
	r->why = k->why;
	r->end = k->end;
	r->culprit = k->culprit;
	if (k->phase == MGR_INSTALLING || k->phase == MGR_STARTING)
		r->phase_by = now + grace + js->config.answer_ns;
	if (k->phase == MGR_OVER)
		r->forget_at = now + js->config.linger_ns;
	if (k->want == MGR_STEP_FAILED)
		r->remove_at = now + js->config.drain_ns;
	restore_ranks(js, r, k, now);
	rc = k->plan ? restore_plan(js, r, k) : 0;
	if (rc) {
		mgr_run_take_out(js, r);
		r->placed = false;
		mgr_run_free(js, r);
		return rc;
	}
	r->known = true;
	r->given = mark(r);
	return 0;
}

/* ---- switches are the fact ---- */

static bool expects(struct mgr_run *r, unsigned node)
{
	return r->phase == MGR_ACTIVE && r->want == MGR_STEP_ACTIVE &&
	       mgr_run_switch(r, node) != NULL;
}

uint64_t mgr_jobs_expected(const struct mgr_jobs *js, unsigned node, uint64_t before)
{
	struct mgr_run *from = mgr_run_find(js, before); /* of which it was told */

	for (struct mgr_run *r = from ? from->next : js->run; r != NULL; r = r->next) {
		if (r->epoch < before && expects(r, node))
			return r->epoch;
	}
	return 0;
}

unsigned mgr_jobs_missing(struct mgr_jobs *js, uint64_t epoch, unsigned node, uint64_t now)
{
	struct mgr_run *r = mgr_run_find(js, epoch);

	if (r == NULL || !expects(r, node))
		return 0;
	mgr_run_fail(js, r, MGR_END_GROUP_GONE, node, now);
	mgr_run_step(js, r, mgr_run_switch(r, node), MGR_STEP_GONE);
	mgr_run_touch(js, r);
	return 1;
}
