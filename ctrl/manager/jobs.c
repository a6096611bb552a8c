/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks say, and what they hear. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/manager/priv.h"
#include "lib/ctl/manager_schema.h"
#include "lib/wire/ip.h"

enum { MAX_ADOPTED = 16384 };

/* ---- jobs from before ---- */

static struct mg_adopted *adopt(struct manager *m, const char *job, uint64_t epoch)
{
	struct mg_adopted *a;

	/* Of what is younger than the store, the store would know. */
	if (epoch >= m->born || m->n_adopted == MAX_ADOPTED || !mg_learns_for(m))
		return NULL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	snprintf(a->job, sizeof(a->job), "%s", job);
	a->epoch = epoch;
	LIST_INSERT_HEAD(&m->adopted, a, link);
	m->n_adopted++;
	mg_say(m, JOURNAL_NOTICE, "job %s, epoch %llu, runs since before this manager", job,
		(unsigned long long)epoch);
	return a;
}

static bool has_ranks(const struct manager *m, const struct mg_adopted *a)
{
	const struct manager_peer *p;

	LIST_FOREACH(p, &m->peers, link)
	if (p->epoch == a->epoch && !strcmp(p->job, a->job))
		return true;
	return false;
}

/* A rank of such a job has gone, or speaks for another. As long as anybody may say that jobs are
 * there, those of which no switch has told take no more room than there are connections. */
static void forget(struct manager *m, const char *job, uint64_t epoch)
{
	struct mg_adopted *a = mg_learns_for(m) ? mg_adopted_find(m, job, epoch) : NULL;

	if (a && !a->there && !has_ranks(m, a))
		mg_adopted_end(m, a, "its ranks have gone, and no switch has told of it");
}

/* ---- what they hear ---- */

static json_t *plan_json(const struct manager *m, const struct mgr_plan *plan)
{
	return json_pack("{s:s,s:i,s:i,s:o}", "mode", mgr_mode_name(plan->size.mode), "M",
		(int)plan->size.m, "W", (int)plan->size.w, "switches",
		mg_tree_json(m, &plan->tree));
}

/* When the job may use the memory that it shares, by this manager's clock, which all ranks hear of
 * as they ask: where in the cycle it is now. */
static json_t *window_json(const struct manager *m, const struct mgr_window *w)
{
	const uint64_t cycle = (uint64_t)m->cycle_ms * 1000, part = cycle / MGR_DUTY;
	char lease[32];

	snprintf(lease, sizeof(lease), "manager-%u", w->block);
	return json_pack("{s:s,s:I,s:I,s:I,s:I}", "lease", lease, "cycle_us", (json_int_t)cycle,
		"at_us", (json_int_t)((m->now + m->slept) / 1000 % cycle), "start_us",
		(json_int_t)(w->start * part), "length_us", (json_int_t)(w->length * part));
}

static json_t *state_json(const struct manager *m, uint64_t epoch)
{
	char line[MGR_LINE_LEN + 64] = "";
	struct mgr_run_view v;
	json_t *out;

	if (!mgr_jobs_view(m->jobs, epoch, &v))
		return NULL;
	if (mgr_jobs_find(m->jobs, v.job->name) == epoch)
		mgr_jobs_explain(m->jobs, v.job->name, m->now, line, sizeof(line));
	else
		snprintf(line, sizeof(line), "%s, epoch %llu, over: it was set up anew",
			v.job->name, (unsigned long long)epoch);
	out = json_pack("{s:o,s:s,s:o}", "epoch", ctl_u64(epoch), "phase", mg_phase_name(v.phase),
		"line", rpc_text(line));
	if (v.phase == MGR_CONNECTING && v.plan)
		json_object_set_new(out, "plan", plan_json(m, v.plan));
	if (v.plan && v.plan->window.block)
		json_object_set_new(out, "window", window_json(m, &v.plan->window));
	return out;
}

/* ---- what they say ---- */

static void let_go(struct manager *m, struct manager_peer *p)
{
	if (!p->joined)
		return;
	LIST_REMOVE(p, link);
	p->joined = false;
	forget(m, p->job, p->epoch);
}

static void stand_for(
	struct manager *m, const char *job, uint64_t epoch, unsigned rank, uint64_t process)
{
	struct manager_peer *p = m->peer;

	if (!p)
		return;
	if (p->epoch != epoch || strcmp(p->job, job) != 0)
		let_go(m, p);
	if (!p->joined)
		LIST_INSERT_HEAD(&m->peers, p, link);
	p->joined = true;
	p->epoch = epoch;
	p->process = process;
	p->rank = rank;
	snprintf(p->job, sizeof(p->job), "%s", job);
}

/* Of a run: who has joined another one since stays in that. */
static void let_go_of(struct manager *m, uint64_t epoch, unsigned rank)
{
	if (m->peer && m->peer->epoch == epoch && m->peer->rank == rank)
		let_go(m, m->peer);
}

/* This connection is its rank's, if no other process has taken the place since. */
static bool stands(const struct manager *m, const struct manager_peer *p)
{
	return p->joined && !mgr_jobs_is_other(m->jobs, p->epoch, p->rank, p->process);
}

/* Who has come over TCP without TLS takes no place from anybody but himself. */
static bool yields(const struct manager *m, const char *job, unsigned rank)
{
	const struct manager_peer *p = m->peer;
	const uint64_t epoch = mgr_jobs_find(m->jobs, job);

	/* There is no run 0, whoever may speak for it. */
	return p && p->who.role == CTL_STRANGER &&
	       !(epoch && stands(m, p) && p->rank == rank && p->epoch == epoch);
}

static int read_join(struct manager *m, const json_t *params, struct mgr_job *job,
	struct mgr_rank *rank, struct rpc_error *e)
{
	const struct mg_host *host;
	char text[MANAGER_IP_LEN];
	struct wire_ip ip;

	if (wire_ip_parse(rpc_string(params, "ip"), &ip))
		return rpc_fail(e, -EINVAL, "ip", "is not an IP address");
	host = mg_host_by_ip(m, wire_ip_format(&ip, text, sizeof(text)));
	if (!host && m->discover)
		return rpc_fail(e, -EBUSY, "ip", "no switch has told of %s yet", text);
	if (!host)
		return rpc_fail(e, -ENOENT, "ip", "%s is no host's of this fabric", text);
	*job = (struct mgr_job){.n_ranks = (unsigned)rpc_int(params, "ranks", 0),
		.shape = m->shape,
		.want_bps = (uint64_t)rpc_int(params, "mbps", 0) * 1000000,
		.duty = MGR_DUTY,
		.ring = rpc_bool(params, "resume", false)};
	snprintf(job->name, sizeof(job->name), "%s", rpc_string(params, "job"));
	snprintf(job->owner, sizeof(job->owner), "%s", mg_tenant(m) ?: "");
	/* Who cannot let go of memory between its collectives has it all the time. */
	if (rpc_bool(params, "lease", false))
		job->duty = (unsigned)rpc_int(params, "duty", MGR_DUTY);
	job->shape.mtu = (unsigned)rpc_int(params, "mtu", 0);
	job->shape.m = (unsigned)rpc_int(params, "M", 0);
	job->shape.reproducible = rpc_bool(params, "reproducible", false);
	job->shape.half = rpc_bool(params, "half", true);
	*rank = (struct mgr_rank){
		.rank = (unsigned)rpc_int(params, "rank", 0), .at = {host->node, -1}};
	rank->yields = yields(m, job->name, rank->rank);
	ctl_get_u64(json_object_get(params, "who"), &rank->who);
	return mg_device_modes(params, &rank->modes, e);
}

static int not_yours(struct rpc_error *e, const char *path, const char *what)
{
	rpc_fail(e, -EPERM, path, "%s belongs to somebody else", what);
	e->code = CTL_NOT_ALLOWED;
	return -EPERM;
}

/* Another process has this rank, and said so with a number that this one does not know. */
static int not_the_rank(struct manager *m, const char *job, unsigned rank, struct rpc_error *e)
{
	m->not_the_rank++;
	rpc_fail(e, -EPERM, "who", "rank %u of job \"%s\" is another process", rank, job);
	e->code = CTL_NOT_ALLOWED;
	return -EPERM;
}

static int place_taken(struct manager *m, const char *job, unsigned rank, struct rpc_error *e)
{
	m->place_taken++;
	return rpc_fail(e, -EBUSY, "rank",
		"%u of job \"%s\" is there: over TCP without TLS another process takes its place "
		"when its connection has ended",
		rank, job);
}

/* A job from before: are ranks of it there, or may be? */
static bool adopted_lives(const struct manager *m, const struct mg_adopted *a)
{
	return mg_learns_for(m) || has_ranks(m, a);
}

/* May whoever asks join this job, or begin it? */
static int may_join(struct manager *m, const struct mgr_job *job, const struct mgr_rank *rank,
	struct rpc_error *e)
{
	const char *tenant = mg_tenant(m);
	struct mgr_run_view v;
	struct mg_adopted *a;
	unsigned ranks, jobs;

	if (mgr_jobs_view(m->jobs, mgr_jobs_find(m->jobs, job->name), &v) && v.phase != MGR_OVER)
		return strcmp(v.job->owner, job->owner) ? not_yours(e, "job", "the name") : 0;
	LIST_FOREACH(a, &m->adopted, link)
	if (tenant && !strcmp(a->job, job->name))
		return not_yours(e, "job", "the name");
	else if (rank->yields && !strcmp(a->job, job->name) && adopted_lives(m, a))
		return place_taken(m, job->name, rank->rank, e);
	if (!tenant)
		return 0;
	jobs = mgr_jobs_of(m->jobs, tenant, &ranks);
	if (jobs >= m->tenant_jobs)
		return rpc_fail(e, -EDQUOT, "job", "%s has %u jobs, the limit is %u", tenant, jobs,
			m->tenant_jobs);
	if (ranks + job->n_ranks > m->tenant_ranks)
		return rpc_fail(e, -EDQUOT, "ranks",
			"the jobs of %s would have %u ranks, the limit is %u", tenant,
			ranks + job->n_ranks, m->tenant_ranks);
	return 0;
}

static int join(struct manager *m, const json_t *params, json_t **result, struct rpc_error *e)
{
	struct mg_adopted *a, *next;
	struct mgr_run_view v;
	struct mgr_rank rank;
	struct mgr_job job;
	uint64_t epoch;
	int rc = read_join(m, params, &job, &rank, e);

	if (!rc)
		rc = may_join(m, &job, &rank, e);
	if (rc)
		return rc;
	rc = mgr_jobs_join(m->jobs, &job, &rank, m->now, &epoch);
	if (rc == -EBUSY)
		return place_taken(m, job.name, rank.rank, e);
	if (rc == -EINVAL && mgr_jobs_view(m->jobs, mgr_jobs_find(m->jobs, job.name), &v) &&
		v.job->shape.mtu != job.shape.mtu)
		return rpc_fail(e, rc, "mtu",
			"%u, where other ranks of the job have said %u: their group files have to "
			"name one that all devices can do",
			job.shape.mtu, v.job->shape.mtu);
	if (rc == -EINVAL)
		return rpc_fail(e, rc, "",
			"makes no sense, or is not what the other ranks of the job have said");
	if (rc)
		return rpc_fail(e, rc, "", "too many jobs, the limit is %d", MANAGER_MAX_RUNS);
	for (a = LIST_FIRST(&m->adopted); a; a = next) {
		next = LIST_NEXT(a, link);
		if (!strcmp(a->job, job.name))
			mg_adopted_end(m, a, "a rank joined anew");
	}
	stand_for(m, job.name, epoch, rank.rank, rank.who);
	mg_act(m);
	*result = state_json(m, epoch);
	return *result ? 0 : rpc_fail(e, -ESTALE, "", "the job is over");
}

/* A sign of life of a rank that the manager does not know: it has been there longer. */
static int adopted_state(struct manager *m, const char *job, uint64_t epoch, unsigned rank,
	uint64_t process, json_t **result, struct rpc_error *e)
{
	const struct manager_peer *p;
	struct mg_adopted *a = NULL;

	LIST_FOREACH(p, &m->peers, link)
	if (!mg_tenant(m) && p->epoch == epoch && p->rank == rank && p->process != process)
		return not_the_rank(m, job, rank, e);
	if (!mg_tenant(m)) /* nobody has written down whose those were */
		a = mg_adopted_find(m, job, epoch) ?: adopt(m, job, epoch);
	if (!a)
		return rpc_fail(e, -ESTALE, "epoch", "%llu of job \"%s\" is over",
			(unsigned long long)epoch, job);
	a->seen = m->now;
	stand_for(m, job, epoch, rank, process);
	*result = json_pack("{s:o,s:s,s:s}", "epoch", ctl_u64(epoch), "phase", "adopted", "line",
		"it runs since before the manager was started");
	return 0;
}

static int from_rank(struct manager *m, const char *method, const json_t *params, json_t **result,
	struct rpc_error *e)
{
	const unsigned rank = (unsigned)rpc_int(params, "rank", 0);
	const bool leaves = !strcmp(method, "job.leave");
	const char *job = rpc_string(params, "job");
	struct mgr_run_view v;
	uint64_t epoch = 0, process = 0;
	int rc;

	ctl_get_u64(json_object_get(params, "epoch"), &epoch);
	ctl_get_u64(json_object_get(params, "who"), &process);
	if (!mgr_jobs_view(m->jobs, epoch, &v)) {
		rc = adopted_state(m, job, epoch, rank, process, result, e);
		if (rc || !leaves)
			return rc;
		let_go_of(m, epoch, rank);
		return json_object_clear(*result);
	}
	if (strcmp(v.job->name, job) != 0)
		return rpc_fail(
			e, -ESTALE, "epoch", "%llu is another job's", (unsigned long long)epoch);
	if (mg_tenant(m) && strcmp(v.job->owner, mg_tenant(m)) != 0)
		return not_yours(e, "job", "it");
	if (mgr_jobs_is_other(m->jobs, epoch, rank, process))
		return not_the_rank(m, job, rank, e);
	if (leaves)
		rc = mgr_jobs_leave(m->jobs, epoch, rank, m->now);
	else
		rc = !strcmp(method, "job.ready")
			     ? mgr_jobs_ready(m->jobs, epoch, rank, m->now)
			     : mgr_jobs_heartbeat(m->jobs, epoch, rank, m->now);
	if (rc == -EINVAL)
		return rpc_fail(e, rc, "rank", "%u has not joined, or has left", rank);
	if (!leaves && rc == 0)
		stand_for(m, job, epoch, rank, process);
	else
		let_go_of(m, epoch, rank);
	mg_act(m);
	*result = leaves ? json_object() : state_json(m, epoch);
	return *result ? 0 : rpc_fail(e, -ESTALE, "epoch", "is over");
}

int mg_call(
	void *arg, const char *method, const json_t *params, json_t **result, struct rpc_error *e)
{
	static const char *const ranks[] = {"job.heartbeat", "job.ready", "job.leave"};
	struct manager *m = arg;

	if (!strcmp(method, "job.join"))
		return join(m, params, result, e);
	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(method, ranks[i]))
			return from_rank(m, method, params, result, e);
	if (!strcmp(method, "policy.set"))
		return mg_policy_set(m, params, result, e);
	return mg_show(m, method, params, result, e);
}

/* ---- time ---- */

/* A connection that is there is a sign of life. */
void mg_jobs_tick(struct manager *m)
{
	struct mg_adopted *a, *next;
	struct manager_peer *p, *after;

	for (p = LIST_FIRST(&m->peers); p; p = after) {
		after = LIST_NEXT(p, link);
		a = mg_adopted_find(m, p->job, p->epoch);
		if (a)
			a->seen = m->now;
		else if (!stands(m, p) || mgr_jobs_heartbeat(m->jobs, p->epoch, p->rank, m->now))
			let_go(m, p);
	}
	for (a = LIST_FIRST(&m->adopted); a; a = next) {
		next = LIST_NEXT(a, link);
		if (m->now - a->seen >= MGR_MISSED * m->heartbeat_ns)
			mg_adopted_end(m, a, "its ranks were not heard of any more");
	}
}

/* Another connection of the rank. */
static bool is_stood_for(const struct manager *m, uint64_t epoch, unsigned rank)
{
	const struct manager_peer *p;

	LIST_FOREACH(p, &m->peers, link)
	if (p->epoch == epoch && p->rank == rank && stands(m, p))
		return true;
	return false;
}

void manager_gone(struct manager *m, struct manager_peer *peer)
{
	const bool stood = stands(m, peer);

	let_go(m, peer);
	if (stood && !is_stood_for(m, peer->epoch, peer->rank))
		mgr_jobs_gone(m->jobs, peer->epoch, peer->rank, m->now);
}
