/* SPDX-License-Identifier: BSD-3-Clause */
/* A case of the soak, run. */
#include <errno.h>
#include <string.h>

#include "apps/sim_soak_case.h"

static const uint64_t LIMIT_NS = 300000000000; /* of virtual time */

struct running {
	const struct soak_case *c;
	struct sim *sim;
	struct sim_coll *coll[SOAK_MAX_JOBS];
	unsigned n_left;
	bool checked[SOAK_MAX_JOBS];
	bool confessed; /* that something could not be deleted */
	int rc;
	struct soak_outcome *out;
};

static void apply(const struct soak_fault *f, struct sim_link_conf *link, uint64_t now)
{
	switch (f->kind) {
	case SOAK_LOSS:
		link->loss = f->p;
		break;
	case SOAK_BURST:
		link->burst_enter = f->p;
		link->burst_leave = 0.5;
		link->burst_loss = 0.5;
		break;
	case SOAK_NTH:
		link->lose_nth = f->from;
		break;
	case SOAK_DUP:
		link->dup = f->p;
		break;
	case SOAK_REORDER:
		link->reorder = f->p;
		break;
	case SOAK_CORRUPT:
		link->corrupt = f->p;
		break;
	case SOAK_DOWN:
		if (link->n_down < SIM_MAX_DOWN) {
			link->down[link->n_down].from = now + f->from;
			link->down[link->n_down++].until = now + f->from + f->len;
		}
		break;
	default:
		link->queue_bytes = f->from;
		break;
	}
}

static void set_faults(const struct soak_case *c, struct sim *sim)
{
	const unsigned n = sim_n_links(sim);

	for (unsigned i = 0; i < c->n_faults; i++)
		for (unsigned l = 0; l < n; l++)
			if (c->fault[i].link == SOAK_ALL_LINKS || c->fault[i].link % n == l)
				apply(&c->fault[i], &sim_link(sim, l)->conf, sim_now(sim));
}

/* Control messages may fail three times in a row. */
static bool may_fail(const struct sim_control_conf *k)
{
	return k->loss > 0 || k->brk > 0 || k->silent > 0 || k->late_nth || k->n_down;
}

/* Nothing stays on a switch but what somebody could not delete, and has said so. */
static int look_for_leaks(struct running *r)
{
	const int rc = sim_run(r->sim, NULL, NULL, UINT64_MAX - 1);

	if (rc != -EDEADLK) {
		snprintf(r->out->text, sizeof(r->out->text), "after the end: %s", strerror(-rc));
		return rc ? rc : -EIO;
	}
	for (unsigned i = 0; i < sim_topo(r->sim)->n_switches && !r->confessed; i++) {
		const struct sim_switch *s = sim_switch(r->sim, i);

		if (!s->arena_used && !s->n_groups && !s->n_rings)
			continue;
		snprintf(r->out->text, sizeof(r->out->text),
			"left on switch %u: %u groups, %u rings, %zu bytes", i, s->n_groups,
			s->n_rings, s->arena_used);
		return -ENOTEMPTY;
	}
	return 0;
}

static int open_job(struct running *r, unsigned i)
{
	const struct soak_job *job = &r->c->job[i];
	struct sim_coll_conf conf = {
		.sim = r->sim,
		.mode = job->mode,
		.kind = job->kind,
		.first_host = job->first_host,
		.n_ranks = job->n_ranks,
		.collectives = CCL_ALL_COLLECTIVES,
		.root = sim_topo(r->sim)->root,
		.mtu = job->mtu,
		.m = job->m,
		.w = job->w,
		.flags = job->flags,
		.start_psn = job->start_psn,
	};
	char why[CCL_ERR_LEN] = "";
	int rc = sim_coll_create(&conf, &r->coll[i], why);

	if (rc && may_fail(&r->c->control) && strstr(why, "switch ")) {
		r->confessed |= strstr(why, "could not be deleted") != NULL;
		r->out->refused++;
		r->coll[i] = NULL;
		r->checked[i] = true;
		r->n_left--;
		return 0;
	}
	if (rc)
		memcpy(r->out->text, why, sizeof(why));
	for (unsigned k = 0; rc == 0 && k < job->n_work; k++)
		rc = sim_coll_issue(r->coll[i], &job->work[k], job->skew_ns);
	return rc;
}

/* Everybody done? Results are checked as soon as they are there. */
static bool all_done(void *arg)
{
	struct running *r = arg;

	for (unsigned i = 0; i < r->c->n_jobs && r->rc == 0; i++) {
		if (r->checked[i] || !sim_coll_done(r->coll[i], NULL))
			continue;
		r->rc = sim_coll_check(r->coll[i]);
		r->checked[i] = true;
		r->n_left--;
		if (r->rc)
			snprintf(r->out->text, sizeof(r->out->text), "job %u: a wrong result", i);
	}
	return r->n_left == 0 || r->rc;
}

static void explain(struct running *r)
{
	unsigned waiting = 0;

	for (unsigned i = 0; i < r->c->n_jobs && !r->out->text[0]; i++) {
		const char *why = r->coll[i] ? sim_coll_error(r->coll[i]) : "";

		waiting += r->coll[i] && !r->checked[i];
		if (why[0])
			snprintf(r->out->text, sizeof(r->out->text), "job %u: %.400s", i, why);
	}
	if (!r->out->text[0])
		snprintf(r->out->text, sizeof(r->out->text), "%s, %u jobs wait", strerror(-r->rc),
			waiting);
}

static void run_jobs(struct running *r)
{
	r->n_left = r->c->n_jobs;
	for (unsigned i = 0; r->rc == 0 && i < r->c->n_jobs; i++)
		r->rc = open_job(r, i);
	if (r->rc == 0) {
		int rc = sim_run(r->sim, all_done, r, sim_now(r->sim) + LIMIT_NS);

		r->rc = r->rc ? r->rc : rc;
	}
	if (r->rc)
		explain(r);
	for (unsigned i = 0; i < r->c->n_jobs; i++) {
		char why[CCL_ERR_LEN];
		const int rc = r->coll[i] ? sim_coll_close(r->coll[i], why) : 0;

		r->confessed |= rc != 0;
		if (rc && r->rc == 0 && !may_fail(&r->c->control)) {
			r->rc = rc;
			memcpy(r->out->text, why, sizeof(why));
		}
	}
	if (r->rc == 0)
		r->rc = look_for_leaks(r);
}

void soak_case_run(const struct soak_case *c, const char *pcap, struct soak_outcome *out)
{
	struct running r = {.c = c, .out = out};
	struct sim_topo topo;
	struct sim_conf conf = {.topo = &topo,
		.link = {.mbps = c->mbps, .delay_ns = c->delay_ns},
		.seed = c->seed,
		.max_qp = 256,
		.control = c->control};

	memset(out, 0, sizeof(*out));
	out->rc = sim_topo_make(c->topology, &topo, out->text);
	if (out->rc)
		return;
	r.rc = sim_create(&conf, &r.sim, out->text);
	if (r.rc == 0) {
		set_faults(c, r.sim);
		if (pcap && (r.rc = sim_capture(r.sim, pcap)))
			snprintf(out->text, sizeof(out->text), "%.200s: %s", pcap, strerror(-r.rc));
		else
			run_jobs(&r);
		out->hash = sim_trace_hash(r.sim);
		out->hops = sim_hops(r.sim);
		out->virtual_ns = sim_now(r.sim);
		sim_destroy(r.sim);
	}
	out->rc = r.rc;
	sim_topo_free(&topo);
}
