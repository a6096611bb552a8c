/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mgr/job_priv.h"
#include "lib/wire/siphash.h"

enum { HASHES = 1 << 14 };

/* Epochs ascend one by one. */
static struct mgr_run **epoch_chain(const struct mgr_jobs *js, uint64_t epoch)
{
	return &js->by_epoch[epoch & (HASHES - 1)];
}

static struct mgr_run **name_chain(const struct mgr_jobs *js, const char *name)
{
	const uint64_t hash = wire_siphash(js->config.key, name, strnlen(name, MGR_NAME_LEN));

	return &js->by_name[hash % HASHES];
}

struct mgr_jobs *mgr_jobs_new(struct mgr_graph *g, struct mgr_book *b, struct mgr_place *p,
	const struct mgr_jobs_config *config)
{
	struct mgr_jobs *js = calloc(1, sizeof(*js));

	if (js == NULL)
		return NULL;
	*js = (struct mgr_jobs){
		.g = g, .b = b, .p = p, .config = *config, .epoch = config->first_epoch};
	js->by_epoch = calloc(HASHES, sizeof(js->by_epoch[0]));
	js->by_name = calloc(HASHES, sizeof(js->by_name[0]));
	js->due = calloc(1, sizeof(*js->due));
	if (js->by_epoch == NULL || js->by_name == NULL || js->due == NULL) {
		mgr_jobs_free(js);
		return NULL;
	}
	return js;
}

void mgr_run_touch(struct mgr_jobs *js, struct mgr_run *r)
{
	mgr_heap_set(js->due, r->slot, 0); /* has been in it: cannot fail */
	mgr_run_note(js, r);
}

void mgr_jobs_set_policy(struct mgr_jobs *js, const struct mgr_policy *policy)
{
	js->config.policy = policy;
}

void mgr_jobs_free(struct mgr_jobs *js)
{
	if (js == NULL)
		return;
	mgr_run_free_gone(js);
	while (js->run != NULL) {
		struct mgr_run *r = js->run;

		js->run = r->next;
		mgr_run_free(js, r);
	}
	if (js->due != NULL)
		mgr_heap_free(js->due);
	free(js->due);
	free(js->by_epoch);
	free(js->by_name);
	free(js->slot);
	free(js->free_slot);
	free(js);
}

/* Room for one more run everywhere. */
static int make_room(struct mgr_jobs *js)
{
	unsigned room = js->n_slots ? 2 * js->n_slots : 64;
	struct mgr_run **slot;
	unsigned *free_slot;
	int rc;

	if (js->n_free > 0)
		return 0;
	rc = mgr_heap_set(js->due, room - 1, UINT64_MAX); /* all below it fit from now on */
	mgr_heap_remove(js->due, room - 1);
	slot = rc ? NULL : realloc(js->slot, room * sizeof(*slot));
	js->slot = slot ? slot : js->slot;
	free_slot = slot ? realloc(js->free_slot, room * sizeof(*free_slot)) : NULL;
	if (free_slot == NULL)
		return -ENOMEM;
	js->free_slot = free_slot;
	while (js->n_slots < room) {
		js->slot[js->n_slots] = NULL;
		js->free_slot[js->n_free++] = js->n_slots++;
	}
	return 0;
}

static void add_run(struct mgr_jobs *js, struct mgr_run *r)
{
	struct mgr_run **epoch = epoch_chain(js, r->epoch), **name = name_chain(js, r->job.name);

	r->next = js->run;
	if (js->run != NULL)
		js->run->before = r;
	js->run = r;
	r->next_epoch = *epoch;
	*epoch = r;
	r->next_name = *name;
	*name = r;
	r->slot = js->free_slot[--js->n_free];
	js->slot[r->slot] = r;
	js->n_runs++;
	mgr_run_touch(js, r);
}

void mgr_run_take_out(struct mgr_jobs *js, struct mgr_run *r)
{
	struct mgr_run **epoch = epoch_chain(js, r->epoch), **name = name_chain(js, r->job.name);

	if (r->before != NULL)
		r->before->next = r->next;
	else
		js->run = r->next;
	if (r->next != NULL)
		r->next->before = r->before;
	while (*epoch != r)
		epoch = &(*epoch)->next_epoch;
	*epoch = r->next_epoch;
	while (*name != r)
		name = &(*name)->next_name;
	*name = r->next_name;
	mgr_heap_remove(js->due, r->slot);
	js->slot[r->slot] = NULL;
	js->free_slot[js->n_free++] = r->slot;
	js->n_runs--;
}

struct mgr_run *mgr_run_find(const struct mgr_jobs *js, uint64_t epoch)
{
	struct mgr_run *r = *epoch_chain(js, epoch);

	while (r != NULL && r->epoch != epoch)
		r = r->next_epoch;
	return r;
}

/* The last run, over or not. */
static struct mgr_run *last_run(const struct mgr_jobs *js, const char *name)
{
	struct mgr_run *r = *name_chain(js, name);

	while (r != NULL && strcmp(r->job.name, name) != 0)
		r = r->next_name;
	return r;
}

int mgr_run_new(
	struct mgr_jobs *js, const struct mgr_job *job, uint64_t epoch, struct mgr_run **out)
{
	struct mgr_run *r;

	if (js->n_runs >= js->config.max_runs)
		return -ENOSPC;
	if (make_room(js))
		return -ENOMEM;
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	r->rank = calloc(job->n_ranks, sizeof(r->rank[0]));
	if (r->rank == NULL) {
		free(r);
		return -ENOMEM;
	}
	r->job = *job;
	r->epoch = epoch;
	r->phase = MGR_JOINING;
	r->phase_by = r->remove_at = r->forget_at = r->since = UINT64_MAX;
	add_run(js, r);
	*out = r;
	return 0;
}

static bool job_ok(const struct mgr_job *job, const struct mgr_rank *rank)
{
	return job->name[0] != '\0' && memchr(job->name, '\0', MGR_NAME_LEN) != NULL &&
	       job->n_ranks > 0 && job->n_ranks <= MGR_MAX_MEMBERS && rank->rank < job->n_ranks &&
	       mgr_shape_check(&job->shape) == 0 && job->duty > 0 && job->duty <= MGR_DUTY &&
	       !(job->want_bps && job->want_bps < job->least_bps);
}

static bool same_job(const struct mgr_job *a, const struct mgr_job *b)
{
	const struct mgr_shape *s = &a->shape, *t = &b->shape;

	return !strcmp(a->owner, b->owner) && a->n_ranks == b->n_ranks &&
	       a->want_bps == b->want_bps && a->least_bps == b->least_bps && a->duty == b->duty &&
	       a->promised == b->promised && a->low == b->low && a->ring == b->ring &&
	       s->mtu == t->mtu && s->m == t->m && s->hop_ns == t->hop_ns &&
	       s->loss_ppm == t->loss_ppm && s->reproducible == t->reproducible &&
	       s->half == t->half;
}

static bool is_there(const struct mgr_run_rank *at)
{
	return at->joined && !at->left && !at->gone;
}

/* Somebody is at the place, or, if there is no such place, at any. */
static bool is_taken(const struct mgr_run *r, unsigned rank)
{
	if (rank < r->job.n_ranks)
		return is_there(&r->rank[rank]);
	for (unsigned i = 0; i < r->job.n_ranks; i++) {
		if (is_there(&r->rank[i]))
			return true;
	}
	return false;
}

int mgr_jobs_join(struct mgr_jobs *js, const struct mgr_job *job, const struct mgr_rank *rank,
	uint64_t now, uint64_t *epoch)
{
	struct mgr_run *r;
	struct mgr_run_rank *place;
	int rc;

	if (!job_ok(job, rank))
		return -EINVAL;
	r = last_run(js, job->name);
	if (r != NULL && r->phase != MGR_OVER) {
		place = rank->rank < r->job.n_ranks ? &r->rank[rank->rank] : NULL;
		if (place && place->joined && place->info.who == rank->who) {
			place->seen = now;
			*epoch = r->epoch;
			return 0;
		}
		if (rank->yields && is_taken(r, rank->rank))
			return -EBUSY;
		if (r->phase != MGR_JOINING) {
			mgr_run_fail(js, r, MGR_END_RANK_AGAIN, rank->rank, now);
			mgr_run_touch(js, r);
			r = NULL;
		} else if (!same_job(&r->job, job)) {
			return -EINVAL;
		}
	} else {
		r = NULL;
	}
	rc = r ? 0 : mgr_run_new(js, job, js->epoch, &r);
	if (rc)
		return rc;
	if (r->epoch == js->epoch) {
		js->epoch++;
		r->phase_by = now + js->config.join_ns;
	}
	place = &r->rank[rank->rank];
	r->n_joined += !place->joined;
	*place = (struct mgr_run_rank){.info = *rank, .seen = now, .joined = true};
	*epoch = r->epoch;
	mgr_run_advance(js, r, now);
	mgr_run_touch(js, r);
	return 0;
}

void mgr_jobs_hold(struct mgr_jobs *js, uint64_t ns, uint64_t now)
{
	struct mgr_run *r = js->run;

	js->hold_ns = ns;
	js->hold_until = ns ? now + ns : 0;
	while (r != NULL && r->next != NULL)
		r = r->next;
	for (; r != NULL; r = r->before) { /* who came first is placed first */
		if (r->phase != MGR_JOINING)
			continue;
		mgr_run_advance(js, r, now);
		mgr_run_touch(js, r);
	}
}

/* Of a run that goes on. */
static int rank_of(struct mgr_jobs *js, uint64_t epoch, unsigned rank, uint64_t now,
	struct mgr_run **run, struct mgr_run_rank **out)
{
	struct mgr_run *r = mgr_run_find(js, epoch);

	if (r == NULL || r->phase == MGR_OVER)
		return -ESTALE;
	if (rank >= r->job.n_ranks || !r->rank[rank].joined || r->rank[rank].left)
		return -EINVAL;
	*run = r;
	*out = &r->rank[rank];
	(*out)->seen = now;
	(*out)->gone = false;
	return 0;
}

int mgr_jobs_ready(struct mgr_jobs *js, uint64_t epoch, unsigned rank, uint64_t now)
{
	struct mgr_run *r;
	struct mgr_run_rank *at;
	int rc = rank_of(js, epoch, rank, now, &r, &at);

	if (rc)
		return rc;
	r->n_ready += !at->ready;
	at->ready = true;
	mgr_run_advance(js, r, now);
	mgr_run_touch(js, r);
	return 0;
}

int mgr_jobs_heartbeat(struct mgr_jobs *js, uint64_t epoch, unsigned rank, uint64_t now)
{
	struct mgr_run *r;
	struct mgr_run_rank *at;

	return rank_of(js, epoch, rank, now, &r, &at);
}

int mgr_jobs_leave(struct mgr_jobs *js, uint64_t epoch, unsigned rank, uint64_t now)
{
	struct mgr_run *r;
	struct mgr_run_rank *at;
	int rc = rank_of(js, epoch, rank, now, &r, &at);

	if (rc)
		return rc;
	if (r->phase == MGR_JOINING) { /* nobody is placed with who has left */
		at->joined = false;
		r->n_joined--;
	} else {
		at->left = true;
		r->n_left++;
	}
	mgr_run_advance(js, r, now);
	mgr_run_touch(js, r);
	return 0;
}

int mgr_jobs_gone(struct mgr_jobs *js, uint64_t epoch, unsigned rank, uint64_t now)
{
	struct mgr_run *r;
	struct mgr_run_rank *at;
	int rc = rank_of(js, epoch, rank, now, &r, &at);

	if (rc)
		return rc;
	at->gone = true;
	if (r->phase != MGR_JOINING)
		return -EALREADY;
	at->joined = false;
	r->n_joined--;
	if (mgr_run_all_left(r))
		mgr_run_fail(js, r, MGR_END_RANK_SILENT, rank, now);
	mgr_run_touch(js, r);
	return 0;
}

struct mgr_run_sw *mgr_run_switch(struct mgr_run *r, unsigned node)
{
	for (unsigned i = 0; r && i < r->n_sw; i++) {
		if (r->sw[i].node == node)
			return &r->sw[i];
	}
	return NULL;
}

int mgr_jobs_answer(struct mgr_jobs *js, uint64_t epoch, unsigned node, enum mgr_action_kind what,
	int rc, uint64_t now)
{
	static const enum mgr_step step[] = {[MGR_INSTALL] = MGR_STEP_INSTALLED,
		[MGR_ACTIVATE] = MGR_STEP_ACTIVE,
		[MGR_FAIL] = MGR_STEP_FAILED,
		[MGR_REMOVE] = MGR_STEP_GONE};
	struct mgr_run *r = mgr_run_find(js, epoch);
	struct mgr_run_sw *s = mgr_run_switch(r, node);

	if (s == NULL || what > MGR_REMOVE || !s->asked || step[what] <= s->at)
		return -ESTALE;
	/* What is not there need not be failed or removed. */
	if ((what == MGR_FAIL || what == MGR_REMOVE) && rc == -ENOENT)
		rc = 0;
	if (rc == 0)
		mgr_run_step(js, r, s, step[what]);
	else if (what < MGR_FAIL)
		mgr_run_fail(js, r, MGR_END_REFUSED, node, now);
	mgr_run_advance(js, r, now);
	mgr_run_touch(js, r);
	return 0;
}

unsigned mgr_jobs_group_failed(struct mgr_jobs *js, uint64_t epoch, unsigned node, uint64_t now)
{
	struct mgr_run *r = mgr_run_find(js, epoch);
	struct mgr_run_sw *s = mgr_run_switch(r, node);

	if (s == NULL || r->want >= MGR_STEP_FAILED)
		return 0;
	mgr_run_step(js, r, s, MGR_STEP_FAILED);
	mgr_run_fail(js, r, MGR_END_GROUP_FAILED, node, now);
	mgr_run_touch(js, r);
	return 1;
}

unsigned mgr_jobs_switch_lost(struct mgr_jobs *js, unsigned node, uint64_t now)
{
	unsigned n = 0;

	for (struct mgr_run *r = js->run; r != NULL; r = r->next) {
		bool in = false;

		for (unsigned i = 0; r->placed && i < r->plan.tree.n_sw; i++)
			in = in || r->plan.tree.sw[i].node == node;
		if (!in)
			continue;
		n += r->want < MGR_STEP_FAILED;
		mgr_run_fail(js, r, MGR_END_SWITCH_LOST, node, now);
		if (mgr_run_switch(r, node) != NULL) /* it took all that it had with it */
			mgr_run_step(js, r, mgr_run_switch(r, node), MGR_STEP_GONE);
		mgr_run_touch(js, r);
	}
	return n;
}

static bool uses_link(const struct mgr_run *r, unsigned link)
{
	const struct mgr_tree *t = &r->plan.tree;

	for (unsigned i = 1; i < t->n_sw; i++) {
		if (t->sw[i].link == link)
			return true;
	}
	for (unsigned i = 0; i < t->n_members; i++) {
		if (t->member[i].link == link)
			return true;
	}
	return false;
}

unsigned mgr_jobs_link_down(struct mgr_jobs *js, unsigned link, uint64_t now)
{
	unsigned n = 0;

	for (struct mgr_run *r = js->run; r != NULL; r = r->next) {
		if (!r->placed || r->want >= MGR_STEP_FAILED || !uses_link(r, link))
			continue;
		mgr_run_fail(js, r, MGR_END_LINK_DOWN, link, now);
		mgr_run_touch(js, r);
		n++;
	}
	return n;
}

bool mgr_jobs_next(struct mgr_jobs *js, uint64_t now, struct mgr_action *out)
{
	unsigned slot;
	uint64_t due;

	while (mgr_heap_first(js->due, &slot, &due) && due <= now && due < UINT64_MAX) {
		struct mgr_run *r = js->slot[slot];

		mgr_run_time(js, r, now);
		mgr_run_note(js, r);
		if (mgr_run_action(js, r, now, out)) {
			mgr_run_touch(js, r); /* there may be more */
			return true;
		}
		if (mgr_run_forgotten(r, now)) {
			mgr_run_take_out(js, r);
			mgr_run_gone(js, r);
			continue;
		}
		due = mgr_run_deadline(js, r);
		mgr_heap_set(js->due, slot, due);
	}
	return false;
}

/* Signs of life put deadlines off, and are not noted in the heap: that would be for each of them.
 */
uint64_t mgr_jobs_deadline(const struct mgr_jobs *js)
{
	unsigned slot;
	uint64_t due;

	while (mgr_heap_first(js->due, &slot, &due)) {
		uint64_t at = mgr_run_deadline(js, js->slot[slot]);

		if (at <= due)
			return at;
		mgr_heap_set(js->due, slot, at);
	}
	return UINT64_MAX;
}

uint64_t mgr_jobs_find(const struct mgr_jobs *js, const char *name)
{
	const struct mgr_run *r = last_run(js, name);

	return r ? r->epoch : 0;
}
