/* SPDX-License-Identifier: BSD-3-Clause */
/* What operators see. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctrl/manager/priv.h"
#include "lib/ctl/manager_schema.h"

/* What a job that has no tree might have had. */
static void add_cabling(const struct manager *m, const char *job, char *line, size_t cap)
{
	const size_t at = strlen(line);
	const struct mg_cable *c;
	struct mgr_run_view v;
	unsigned n;

	if (mg_tenant(m) || !mgr_jobs_view(m->jobs, mgr_jobs_find(m->jobs, job), &v) ||
		v.phase != MGR_RING || !(c = mg_cable_unused(m, &n)))
		return;
	if (n == 1)
		snprintf(line + at, cap - at, "; %s", c->line);
	else
		snprintf(line + at, cap - at, "; %s, and %u links more", c->line, n - 1);
}

static int explain(struct manager *m, const char *job, json_t **result, struct rpc_error *e)
{
	char line[2 * MGR_LINE_LEN + 128];
	struct mg_adopted *a;
	struct mgr_run_view v;

	if (mg_tenant(m) && (!mgr_jobs_view(m->jobs, mgr_jobs_find(m->jobs, job), &v) ||
				    strcmp(v.job->owner, mg_tenant(m)) != 0))
		return rpc_fail(e, -ENOENT, "job", "no job is named \"%s\"", job);
	if (!mgr_jobs_explain(m->jobs, job, m->now, line, sizeof(line))) {
		add_cabling(m, job, line, sizeof(line));
		*result = json_pack("{s:o}", "line", rpc_text(line));
		return 0;
	}
	LIST_FOREACH(a, &m->adopted, link)
	if (!strcmp(a->job, job)) {
		snprintf(line, sizeof(line),
			"%s, epoch %llu, adopted: it runs since before the manager was started",
			job, (unsigned long long)a->epoch);
		*result = json_pack("{s:o}", "line", rpc_text(line));
		return 0;
	}
	return rpc_fail(e, -ENOENT, "job", "no job is named \"%s\"", job);
}

static void add_plan(const struct manager *m, const struct mgr_run_view *v, json_t *out)
{
	json_t *names = json_array();

	for (unsigned i = 0; i < v->plan->tree.n_sw; i++) {
		const struct mgr_node *n = mgr_graph_node(m->g, v->plan->tree.sw[i].node);

		json_array_append_new(names, json_string(n ? n->name : "?"));
	}
	json_object_set_new(out, "mode", json_string(mgr_mode_name(v->plan->size.mode)));
	json_object_set_new(out, "bytes", ctl_u64(mgr_plan_bytes(v->plan, &v->job->shape)));
	json_object_set_new(out, "switches", names);
}

static json_t *jobs_json(const struct manager *m)
{
	json_t *list = json_array();
	struct mgr_run_view v;
	struct mg_adopted *a;

	for (uint64_t epoch = mgr_jobs_before(m->jobs, UINT64_MAX); epoch;
		epoch = mgr_jobs_before(m->jobs, epoch)) {
		if (!mgr_jobs_view(m->jobs, epoch, &v) ||
			(mg_tenant(m) && strcmp(v.job->owner, mg_tenant(m)) != 0))
			continue;
		json_t *row = json_pack("{s:o,s:o,s:s,s:i}", "job", rpc_text(v.job->name), "epoch",
			ctl_u64(epoch), "phase", mg_phase_name(v.phase), "ranks",
			(int)v.job->n_ranks);
		if (v.job->owner[0])
			json_object_set_new(row, "tenant", rpc_text(v.job->owner));
		if (v.plan)
			add_plan(m, &v, row);
		json_array_append_new(list, row);
	}
	LIST_FOREACH(a, &m->adopted, link)
	if (!mg_tenant(m))
		json_array_append_new(
			list, json_pack("{s:o,s:o,s:s,s:i}", "job", rpc_text(a->job), "epoch",
				      ctl_u64(a->epoch), "phase", "adopted", "ranks", 0));
	return list;
}

static json_t *node_json(struct manager *m, unsigned i, const struct mgr_node *n)
{
	json_t *out = json_pack("{s:o,s:s,s:s}", "name", rpc_text(n->name), "kind",
		n->kind == MGR_HOST ? "host" : "switch", "state", n->up ? "up" : "down");
	char boot[20];

	if (n->kind == MGR_HOST)
		return out;
	snprintf(boot, sizeof(boot), "%016llx", (unsigned long long)n->boot);
	json_object_set_new(out, "tier", json_integer(mgr_graph_tier(m->g, i)));
	json_object_set_new(out, "boot", json_string(boot));
	json_object_set_new(out, "arena_bytes", ctl_u64(n->sram));
	json_object_set_new(out, "promised_bytes", ctl_u64(mgr_book_used_bytes(m->b, i)));
	json_object_set_new(out, "groups", json_integer(mgr_book_switch_holders(m->b, i)));
	if (mg_switch_of(m, i) && mg_switch_of(m, i)->workers)
		json_object_set(out, "workers", mg_switch_of(m, i)->workers);
	return out;
}

static json_t *link_json(struct manager *m, unsigned i, const struct mgr_link *l)
{
	return json_pack("{s:o,s:o,s:o,s:o,s:I,s:s,s:i,s:s}", "a",
		rpc_text(mgr_graph_node(m->g, l->node[0])->name), "a_port",
		rpc_text(mgr_graph_port(m->g, l->port[0])->name), "b",
		rpc_text(mgr_graph_node(m->g, l->node[1])->name), "b_port",
		rpc_text(mgr_graph_port(m->g, l->port[1])->name), "mbps",
		(json_int_t)(l->bps / 1000000), "state", l->up ? "up" : "down", "trees",
		(int)mgr_book_link_holders(m->b, i), "by", mg_is_learnt(m, i) ? "lldp" : "file");
}

static json_t *topology_json(struct manager *m)
{
	json_t *nodes = json_array(), *links = json_array(), *conflicts = json_array();
	const struct mg_cable *cable = NULL;
	struct mgr_conflict c;
	struct mgr_link l;

	for (unsigned i = 0; i < mgr_graph_bound(m->g); i++)
		if (mgr_graph_node(m->g, i))
			json_array_append_new(nodes, node_json(m, i, mgr_graph_node(m->g, i)));
	for (unsigned i = 0; i < mgr_graph_link_bound(m->g); i++)
		if (!mgr_graph_link(m->g, i, &l))
			json_array_append_new(links, link_json(m, i, &l));
	for (unsigned at = 0; mgr_graph_conflict(m->g, &at, &c);)
		json_array_append_new(conflicts, rpc_text(c.line));
	while ((cable = mg_cable_next(m, cable)))
		json_array_append_new(conflicts, rpc_text(cable->line));
	return json_pack("{s:o,s:o,s:o}", "nodes", nodes, "links", links, "conflicts", conflicts);
}

static json_t *who_json(const struct manager *m)
{
	int switches = 0;

	for (unsigned i = 0; i < m->n_sw; i++)
		switches += m->sw[i].known;
	return json_pack("{s:o,s:I,s:i,s:s,s:o,s:o}", "name", rpc_text(m->io.name ?: ""), "leads_s",
		(json_int_t)((m->now + m->slept - m->started) / 1000000000), "switches", switches,
		"policy", m->policy->name, "not_the_rank", ctl_u64(m->not_the_rank), "place_taken",
		ctl_u64(m->place_taken));
}

int mg_show(struct manager *m, const char *method, const json_t *params, json_t **result,
	struct rpc_error *e)
{
	if (!strcmp(method, "ping"))
		*result = json_object();
	else if (!strcmp(method, "version"))
		*result = json_pack("{s:s,s:s,s:s}", "server", ctl_manager_schema.server, "version",
			INCLINE_VERSION, "policy", m->policy->name);
	else if (!strcmp(method, "manager.who"))
		*result = who_json(m);
	else if (!strcmp(method, "job.explain"))
		return explain(m, rpc_string(params, "job"), result, e);
	else if (!strcmp(method, "job.list"))
		*result = json_pack("{s:o}", "jobs", jobs_json(m));
	else if (!strcmp(method, "topology.get"))
		*result = topology_json(m);
	else
		return -ENOSYS;
	return 0;
}
