/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/flowsim/flowsim.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/flowsim/priv.h"

static const double BITS = 8, NS_PER_S = 1e9;

static int check(
	const struct fs_fabric *f, const struct fs_job *job, unsigned n, char err[FS_ERR_LEN])
{
	for (unsigned i = 0; i < n; i++) {
		const struct fs_job *j = &job[i];
		const char *what = NULL;

		if (j->tp == 0 || j->tp != job[0].tp || f->shape.hosts % j->tp)
			what = "tp: wants the first job's, and to divide a leaf's hosts";
		else if (j->gpus == 0 || j->gpus % j->tp || j->gpus > f->n_hosts)
			what = "gpus: wants whole groups of tp, and no more than there are";
		else if (!(j->tp_bytes >= 0) || !(j->dp_bytes >= 0) || isinf(j->tp_bytes) ||
			 isinf(j->dp_bytes))
			what = "bytes: wants 0 or more";
		else if (i > 0 && j->submit_ns < job[i - 1].submit_ns)
			what = "submit_ns: is before that of the job before";
		if (what == NULL)
			continue;
		snprintf(err, FS_ERR_LEN, "job %u: %s", i, what);
		return -EINVAL;
	}
	return 0;
}

int fs_sim_new(struct fs_fabric *f, const struct fs_config *config, const struct fs_job *job,
	unsigned n, struct fs_sim **out, char err[FS_ERR_LEN])
{
	int rc = check(f, job, n, err);
	struct fs_sim *s = rc ? NULL : calloc(1, sizeof(*s));

	if (rc)
		return rc;
	snprintf(err, FS_ERR_LEN, "out of memory");
	if (s == NULL)
		return -ENOMEM;
	*s = (struct fs_sim){
		.f = f, .config = *config, .job = job, .n_jobs = n, .random = config->seed};
	if (s->config.scaleup_bps == 0)
		s->config.scaleup_bps = FS_SCALEUP_BPS;
	s->n_blocks = s->n_free = n ? f->n_hosts / job[0].tp : 0;
	s->run = calloc((size_t)n + 1, sizeof(s->run[0]));
	s->result = calloc((size_t)n + 1, sizeof(s->result[0]));
	s->busy = calloc((size_t)s->n_blocks + 1, sizeof(s->busy[0]));
	if (s->run == NULL || s->result == NULL || s->busy == NULL) {
		fs_sim_free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void fs_sim_free(struct fs_sim *s)
{
	unsigned flow;
	uint64_t due;

	if (s == NULL)
		return;
	while (mgr_heap_first(&s->flows, &flow, &due)) { /* if it was not run to its end */
		fs_water_remove(s->f->water, (int)flow);
		mgr_heap_remove(&s->flows, flow);
	}
	for (unsigned i = 0; s->run && i < s->n_jobs; i++)
		fs_run_end(s, i);
	mgr_heap_free(&s->flows);
	mgr_heap_free(&s->jobs);
	free(s->run);
	free(s->result);
	free(s->busy);
	free(s->flow);
	free(s->way);
	free(s);
}

/* The next one that is free, or any. */
static unsigned take_block(struct fs_sim *s)
{
	unsigned skip = s->config.scatter ? (unsigned)(fs_random(&s->random) % s->n_free) : 0;
	unsigned at = 0;

	while (s->busy[at] || skip-- > 0)
		at++;
	s->busy[at] = true;
	s->n_free--;
	return at;
}

static int ascending(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

static int start_job(struct fs_sim *s, unsigned job)
{
	const struct fs_job *j = &s->job[job];
	struct fs_run *r = &s->run[job];
	unsigned blocks = j->gpus / j->tp;
	int rc = fs_run_new(s, job);

	if (rc)
		return rc;
	for (unsigned i = 0; i < blocks; i++)
		r->block[i] = take_block(s);
	qsort(r->block, blocks, sizeof(r->block[0]), ascending);
	for (unsigned i = 0; i < r->n_groups; i++) {
		struct fs_group *g = &r->group[i];
		bool tensor = i < r->n_tensor;

		for (unsigned k = 0; k < g->n; k++)
			g->host[k] = tensor ? r->block[i] * j->tp + k
					    : r->block[k] * j->tp + i - r->n_tensor;
	}
	s->result[job].start_ns = s->now;
	fs_run_place(s, job);
	r->phase = FS_COMPUTE;
	return mgr_heap_set(&s->jobs, job, s->now + (j->iterations ? j->compute_ns : 0));
}

static void end_job(struct fs_sim *s, unsigned job)
{
	unsigned blocks = s->job[job].gpus / s->job[job].tp;

	for (unsigned i = 0; i < blocks; i++)
		s->busy[s->run[job].block[i]] = false;
	s->n_free += blocks;
	fs_run_end(s, job);
	s->result[job].end_ns = s->now;
	s->ended++;
}

/* In the order in which they came. */
static int admit(struct fs_sim *s)
{
	int rc = 0;

	while (s->submitted < s->n_jobs && s->job[s->submitted].submit_ns <= s->now) {
		s->result[s->submitted].submit_ns = s->job[s->submitted].submit_ns;
		s->submitted++;
	}
	while (rc == 0 && s->started < s->submitted &&
		s->job[s->started].gpus / s->job[s->started].tp <= s->n_free)
		rc = start_job(s, s->started++);
	return rc;
}

static int start_groups(struct fs_sim *s, unsigned job, unsigned first, unsigned end)
{
	int rc = 0;

	s->run[job].pending = end - first;
	for (unsigned i = first; rc == 0 && i < end; i++)
		rc = fs_group_start(s, job, i);
	return rc;
}

static uint64_t scaleup_ns(const struct fs_sim *s, const struct fs_job *j)
{
	double times = s->config.scaleup_inc ? 1 : s->config.exact ? 2.0 * (j->tp - 1) / j->tp : 2;

	return (uint64_t)(times * j->tp_bytes * BITS / (double)s->config.scaleup_bps * NS_PER_S);
}

/* Every data group has a rank in every tensor group: no rank is in another phase than the rest, so
 * the job as a whole goes from one to the next. */
static int next_phase(struct fs_sim *s, unsigned job)
{
	const struct fs_job *j = &s->job[job];
	struct fs_run *r = &s->run[job];

	if (r->phase == FS_COMPUTE && r->n_tensor > 0 && r->iteration < j->iterations) {
		r->phase = FS_TENSOR;
		if (s->config.scaleup)
			return mgr_heap_set(&s->jobs, job, s->now + scaleup_ns(s, j));
		return start_groups(s, job, 0, r->n_tensor);
	}
	if (r->phase != FS_DATA && r->n_groups > r->n_tensor && r->iteration < j->iterations) {
		r->phase = FS_DATA;
		return start_groups(s, job, r->n_tensor, r->n_groups);
	}
	r->iteration++;
	if (r->iteration >= j->iterations) {
		end_job(s, job);
		return 0;
	}
	r->phase = FS_COMPUTE;
	return mgr_heap_set(&s->jobs, job, s->now + j->compute_ns);
}

static int end_flows(struct fs_sim *s)
{
	unsigned flow;
	uint64_t due;
	int rc = 0;

	while (rc == 0 && mgr_heap_first(&s->flows, &flow, &due) && due <= s->now) {
		unsigned job = s->flow[flow].job;

		fs_water_remove(s->f->water, (int)flow);
		mgr_heap_remove(&s->flows, flow);
		fs_group_over(s, job, s->flow[flow].group);
		if (--s->run[job].pending == 0)
			rc = mgr_heap_set(&s->jobs, job, s->now);
		s->totals.events++;
	}
	return rc;
}

static int settle(struct fs_sim *s)
{
	const int *changed;
	int n = fs_water_settle(s->f->water, &changed), rc = 0;

	for (int i = 0; rc == 0 && i < n; i++) {
		struct fs_flow *f = &s->flow[changed[i]];

		f->left -= f->rate * (double)(s->now - f->since);
		f->left = f->left > 0 ? f->left : 0;
		f->since = s->now;
		f->rate = fs_water_rate(s->f->water, changed[i]);
		rc = mgr_heap_set(&s->flows, (unsigned)changed[i],
			s->now + (uint64_t)ceil(f->left / f->rate));
	}
	return n < 0 ? n : rc;
}

/* What is over goes before what begins: it leaves links and memory. */
int fs_sim_step(struct fs_sim *s)
{
	uint64_t at = UINT64_MAX, due;
	unsigned id;
	int rc;

	if (s->submitted < s->n_jobs)
		at = s->job[s->submitted].submit_ns;
	if (mgr_heap_first(&s->flows, &id, &due) && due < at)
		at = due;
	if (mgr_heap_first(&s->jobs, &id, &due) && due < at)
		at = due;
	if (at == UINT64_MAX)
		return 0;
	s->now = at;
	rc = end_flows(s);
	while (rc == 0 && mgr_heap_first(&s->jobs, &id, &due) && due <= s->now) {
		mgr_heap_remove(&s->jobs, id);
		s->totals.events++;
		rc = next_phase(s, id);
	}
	if (rc == 0)
		rc = admit(s);
	if (rc == 0)
		rc = settle(s);
	return rc ? rc : 1;
}

unsigned fs_sim_ended(const struct fs_sim *s)
{
	return s->ended;
}

const struct fs_result *fs_sim_result(const struct fs_sim *s, unsigned job)
{
	return &s->result[job];
}

struct fs_totals fs_sim_totals(const struct fs_sim *s)
{
	struct fs_totals t = s->totals;
	double now = s->now ? (double)s->now : 1, last = (double)(s->now - s->since);

	t.now_ns = s->now;
	t.mean_groups = (s->group_ns + last * (double)s->groups) / now;
	t.mean_bytes = (s->byte_ns + last * (double)s->bytes) / now;
	return t;
}
