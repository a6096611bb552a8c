/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctrl/agent/metrics.h"

#include <stdio.h>
#include <string.h>

#include "ctrl/agent/rpc.h"
#include "lib/ctl/metrics.h"

/* Results of methods, or lists in them (NULL: the result itself). noun: of metrics_rows; of a
 * result itself what its families have in front. */
static const struct {
	const char *method, *list, *noun;
	rpc_handler handler;
} sources[] = {
	{"status", NULL, "", rpc_status},
	{"port.list", "ports", "port", rpc_port_list},
	{"worker.list", "workers", "worker", rpc_worker_list},
	{"queue.list", "queues", "queue", rpc_queue_list},
	{"neigh.list", NULL, "neighbours_", rpc_neigh_list},
	{"mac.list", NULL, "macs_", rpc_mac_list},
	{"drops.get", "drops", "drop", rpc_drops_get},
	{"drops.get", "outcomes", "outcome", rpc_drops_get},
	{"stats.get", "nodes", "node", rpc_stats_get},
	{"group.list", "groups", "group", rpc_group_list},
	{"lease.list", "leases", "lease", rpc_lease_list},
};

static const struct ctl_field *fields_of(const char *method, const char *list)
{
	const struct ctl_field *f = ctl_find(&ctl_switch_schema, method)->result;

	while (list && strcmp(f->name, list) != 0)
		f++;
	return list ? f->fields : f;
}

static void source(struct metrics *m, struct agent *a, unsigned i)
{
	const struct ctl_field *fields = fields_of(sources[i].method, sources[i].list);
	const char *list = sources[i].list;
	/* Of stats.get the list alone is made. */
	json_t *params = json_pack("{s:s}", "what", list ? list : ""), *result = NULL;
	struct rpc_error e;

	if (sources[i].handler(a, params, &result, &e))
		result = NULL;
	if (list)
		metrics_rows(m, sources[i].noun, fields, json_object_get(result, list));
	else
		metrics_object(m, sources[i].noun, fields, result);
	json_decref(result);
	json_decref(params);
}

static void value(void *arg, enum sw_kind kind, const char *name, const char *text, uint64_t n)
{
	metrics_family(arg, name, kind == SW_COUNTER ? CTL_COUNTER : CTL_GAUGE, text);
	metrics_sample(arg, "", n);
}

/* As group.list, which says how many are left out. */
static void group_counter(struct metrics *m, struct sw *sw, enum inc_counter c, const char *text)
{
	char name[64], label[128];
	unsigned n = 0;

	snprintf(name, sizeof(name), "group_%s", inc_counter_name(c));
	metrics_family(m, name, CTL_COUNTER, text);
	for (unsigned slot = 1; slot < INC_GROUP_SLOTS && n < METRICS_MAX_ROWS; slot++) {
		const struct inc_group *g = sw_group_get(sw, slot);

		if (!g)
			continue;
		metrics_label(label, sizeof(label), 0, "group", g->name);
		metrics_sample(m, label, g->count[c]);
		n++;
	}
}

char *agent_metrics(struct agent *a, size_t *len)
{
	struct metrics *m = metrics_begin();

	if (!m)
		return NULL;
	for (unsigned i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		source(m, a, i);
	sw_values(a->sw, value, m);
#define X(sym, name, text) group_counter(m, a->sw, INC_C_##sym, text);
	INC_COUNTERS(X)
#undef X
	return metrics_end(m, len);
}
