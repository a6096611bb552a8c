/* SPDX-License-Identifier: BSD-3-Clause */
/* State of the program as a whole: who it is, ports, counters, drops, traces. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/agent/table_json.h"
#include "lib/reduce/reduce.h"
#include "lib/wire/icrc.h"

/* ---- the program ---- */

int rpc_ping(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	(void)a, (void)params, (void)e;
	*result = json_object();
	return 0;
}

int rpc_version(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	(void)params, (void)e;
	*result = json_pack("{s:s,s:o,s:s,s:[i],s:s,s:s}", "server", ctl_switch_schema.server,
		"name", rpc_text(sw_name(a->sw)), "version", INCLINE_VERSION, "api", CTL_API,
		"icrc", icrc_kernel_name(), "reduce", reduce_isa_name(reduce_isa_best()));
	return 0;
}

int rpc_schema_get(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	(void)a, (void)params, (void)e;
	*result = json_pack("{s:o}", "methods", ctl_describe(&ctl_switch_schema));
	return 0;
}

static void add_drop(void *arg, const char *name, const char *text, uint64_t count)
{
	uint64_t *sum = arg;

	(void)name, (void)text;
	*sum += count;
}

static void status_ports(json_t *out, struct sw *sw)
{
	unsigned n = sw_n_ports(sw), up = 0;
	struct sw_port p;

	for (unsigned i = 0; i < n; i++)
		up += !sw_port_get(sw, i, &p) && p.link;
	json_object_set_new(out, "ports", json_integer(n));
	json_object_set_new(out, "ports_up", json_integer(up));
}

static void status_tables(json_t *out, const struct table_registry *reg)
{
	json_int_t entries = 0;

	for (unsigned i = 0; i < table_count(reg); i++) {
		struct table_rows rows;

		table_rows(reg, i, &rows);
		entries += rows.n;
	}
	json_object_set_new(out, "tables", json_integer(table_count(reg)));
	json_object_set_new(out, "entries", json_integer(entries));
}

static void status_groups(json_t *out, struct sw *sw, const struct owners *owners)
{
	unsigned n = 0, active = 0, failed = 0, rings = 0;

	for (unsigned slot = 1; slot < INC_GROUP_SLOTS; slot++) {
		const struct inc_group *g = sw_group_get(sw, slot);

		n += g != NULL;
		active += g && g->state == INC_ACTIVE;
		failed += g && g->state == INC_FAILED;
	}
	for (unsigned i = 0; i < NR_MAX_RINGS; i++)
		rings += sw_ring_get(sw, i) && sw_ring_get(sw, i)->state == NR_FAILED;
	json_object_set_new(out, "groups", json_integer(n));
	json_object_set_new(out, "groups_active", json_integer(active));
	json_object_set_new(out, "groups_failed", json_integer(failed));
	json_object_set_new(out, "rings_failed", json_integer(rings));
	json_object_set_new(out, "owners", json_integer(owners->n));
	json_object_set_new(out, "orphans", ctl_u64(owners->orphans));
}

int rpc_status(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	uint64_t size = 0, used = 0, drops = 0, outcomes = 0;
	json_t *out = json_object();

	(void)params, (void)e;
	json_object_set_new(out, "name", rpc_text(sw_name(a->sw)));
	json_object_set_new(out, "version", json_string(INCLINE_VERSION));
	json_object_set_new(out, "uptime_s", ctl_u64((sw_now(a->sw) - a->started_ns) / 1000000000));
	status_ports(out, a->sw);
	status_tables(out, sw_tables(a->sw));
	status_groups(out, a->sw, &a->owners);
	sw_arena_usage(a->sw, &size, &used);
	sw_drops(a->sw, add_drop, &drops);
	sw_outcomes(a->sw, add_drop, &outcomes);
	json_object_set_new(out, "arena_bytes", ctl_u64(size));
	json_object_set_new(out, "arena_used_bytes", ctl_u64(used));
	json_object_set_new(out, "drops", ctl_u64(drops));
	json_object_set_new(out, "outcomes", ctl_u64(outcomes));
	*result = out;
	return 0;
}

/* ---- ports ---- */

static json_t *port_json(const struct sw_port *p)
{
	char mac[WIRE_MAC_STRLEN];
	json_t *out = json_object();

	json_object_set_new(out, "name", rpc_text(p->name));
	json_object_set_new(out, "type", rpc_text(p->type));
	json_object_set_new(out, "id", json_integer(p->id));
	json_object_set_new(out, "mac", json_string(wire_mac_format(p->mac, mac, sizeof(mac))));
	json_object_set_new(out, "mtu", json_integer(p->mtu));
	json_object_set_new(out, "link", json_string(p->link ? "up" : "down"));
	json_object_set_new(out, "rx_packets", ctl_u64(p->rx_packets));
	json_object_set_new(out, "rx_bytes", ctl_u64(p->rx_bytes));
	json_object_set_new(out, "tx_packets", ctl_u64(p->tx_packets));
	json_object_set_new(out, "tx_bytes", ctl_u64(p->tx_bytes));
	json_object_set_new(out, "tx_drops", ctl_u64(p->tx_drops));
	json_object_set_new(out, "rx_missed", ctl_u64(p->rx_missed));
	json_object_set_new(out, "rx_errors", ctl_u64(p->rx_errors));
	json_object_set_new(out, "rx_nombuf", ctl_u64(p->rx_nombuf));
	json_object_set_new(out, "mac_mismatch", ctl_u64(p->mac_mismatch));
	json_object_set_new(out, "mac_unlisted", ctl_u64(p->mac_unlisted));
	if (p->mismatch[0])
		json_object_set_new(out, "mismatch", rpc_text(p->mismatch));
	return out;
}

int rpc_port_list(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	json_t *list = json_array();
	struct sw_port p;

	(void)params, (void)e;
	for (unsigned i = 0; i < sw_n_ports(a->sw); i++)
		if (!sw_port_get(a->sw, i, &p))
			json_array_append_new(list, port_json(&p));
	*result = json_pack("{s:o}", "ports", list);
	return 0;
}

/* ---- workers ---- */

static json_t *worker_json(unsigned i, const struct sw_worker *w)
{
	json_t *out = json_object();

	json_object_set_new(out, "worker", json_integer(i));
	if (w->cpu >= 0)
		json_object_set_new(out, "cpu", json_integer(w->cpu));
	if (w->cpu >= 0 && w->socket >= 0)
		json_object_set_new(out, "socket", json_integer(w->socket));
	json_object_set_new(out, "turns", ctl_u64(w->turns));
	json_object_set_new(out, "busy_cycles", ctl_u64(w->busy_cycles));
	json_object_set_new(out, "idle_cycles", ctl_u64(w->idle_cycles));
	json_object_set_new(out, "rx_packets", ctl_u64(w->rx_packets));
	json_object_set_new(out, "tx_packets", ctl_u64(w->tx_packets));
	json_object_set_new(out, "handed_over", ctl_u64(w->handed_over));
	json_object_set_new(out, "taken_over", ctl_u64(w->taken_over));
	json_object_set_new(out, "handoff_full", ctl_u64(w->handoff_full));
	json_object_set_new(out, "groups", json_integer(w->groups));
	json_object_set_new(out, "rings", json_integer(w->rings));
	json_object_set_new(out, "arena_bytes", ctl_u64(w->arena_bytes));
	return out;
}

int rpc_worker_list(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	json_t *list = json_array();
	struct sw_worker w;

	(void)params, (void)e;
	for (unsigned i = 0; i < sw_n_workers(a->sw); i++)
		if (!sw_worker_get(a->sw, i, &w))
			json_array_append_new(list, worker_json(i, &w));
	*result = json_pack("{s:o}", "workers", list);
	return 0;
}

/* ---- what waits for ports ---- */

static json_t *queue_json(const struct sw_queue *q)
{
	json_t *out = json_object();

	json_object_set_new(out, "port", rpc_text(q->port));
	json_object_set_new(out, "queue", rpc_text(q->name));
	json_object_set_new(out, "packets", ctl_u64(q->packets));
	json_object_set_new(out, "bytes", ctl_u64(q->bytes));
	json_object_set_new(out, "limit_bytes", ctl_u64(q->limit_bytes));
#define X(field, text) json_object_set_new(out, #field, ctl_u64(q->count.field));
	EGRESS_COUNTERS(X)
#undef X
	return out;
}

int rpc_queue_list(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	json_t *list = json_array();
	struct sw_queue q;

	(void)params, (void)e;
	for (unsigned i = 0; i < sw_n_ports(a->sw); i++)
		for (unsigned k = 0; !sw_queue_get(a->sw, i, k, &q); k++)
			json_array_append_new(list, queue_json(&q));
	*result = json_pack("{s:o}", "queues", list);
	return 0;
}

/* ---- counters ---- */

static void add_value(
	void *arg, enum sw_kind kind, const char *name, const char *text, uint64_t value)
{
	json_array_append_new(arg,
		json_pack("{s:o,s:o,s:s,s:o}", "name", rpc_text(name), "value", ctl_u64(value),
			"kind", kind == SW_COUNTER ? "counter" : "gauge", "help", rpc_text(text)));
}

/* Two digits are enough to read, and the same everywhere. */
static json_t *mean(uint64_t sum, uint64_t n)
{
	return json_real(n ? round(100.0 * (double)sum / (double)n) / 100.0 : 0.0);
}

static void add_node(void *arg, const char *node, uint64_t calls, uint64_t packets, uint64_t cycles)
{
	json_array_append_new(
		arg, json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "node", rpc_text(node), "calls",
			     ctl_u64(calls), "packets", ctl_u64(packets), "cycles", ctl_u64(cycles),
			     "packets_per_call", mean(packets, calls), "cycles_per_packet",
			     mean(cycles, packets)));
}

static json_t *group_stats(struct sw *sw)
{
	json_t *list = json_array();

	for (unsigned slot = 1; slot < INC_GROUP_SLOTS; slot++) {
		const struct inc_group *g = sw_group_get(sw, slot);

		if (g)
			json_array_append_new(list,
				json_pack("{s:i,s:o,s:o}", "group", slot, "name", rpc_text(g->name),
					"counters", rpc_group_counters(g)));
	}
	return list;
}

int rpc_stats_get(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const char *what = rpc_string(params, "what");
	json_t *out = json_object(), *list;

	(void)e;
	if (!what || !strcmp(what, "values")) {
		list = json_array();
		sw_values(a->sw, add_value, list);
		json_object_set_new(out, "values", list);
	}
	if (!what || !strcmp(what, "nodes")) {
		list = json_array();
		sw_nodes(a->sw, add_node, list);
		json_object_set_new(out, "nodes", list);
	}
	if (!what || !strcmp(what, "groups"))
		json_object_set_new(out, "groups", group_stats(a->sw));
	*result = out;
	return 0;
}

struct drop_list {
	const char *key;
	json_t *list;
	bool nonzero;
};

static void list_drop(void *arg, const char *name, const char *text, uint64_t count)
{
	struct drop_list *d = arg;

	if (count || !d->nonzero)
		json_array_append_new(
			d->list, json_pack("{s:o,s:o,s:o}", d->key, rpc_text(name), "count",
					 ctl_u64(count), "help", rpc_text(text)));
}

int rpc_drops_get(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const bool nonzero = rpc_bool(params, "nonzero", false);
	struct drop_list drops = {"reason", json_array(), nonzero};
	struct drop_list outcomes = {"outcome", json_array(), nonzero};

	(void)e;
	sw_drops(a->sw, list_drop, &drops);
	sw_outcomes(a->sw, list_drop, &outcomes);
	if (rpc_bool(params, "clear", false))
		sw_drops_clear(a->sw);
	*result = json_pack("{s:o,s:o}", "drops", drops.list, "outcomes", outcomes.list);
	return 0;
}

/* ---- trace ---- */

int rpc_trace_start(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const char *name = rpc_string(params, "port");
	int64_t count = rpc_int(params, "count", 1);
	char text[SW_ERR_LEN] = "";
	int port = name ? sw_port_find(a->sw, name) : -1;

	if (name && port < 0)
		return rpc_fail(e, -ENOENT, "port", "no port is named \"%.48s\"", name);
	int rc = sw_trace_start(a->sw, port, (unsigned)count, text);
	if (rc)
		return rpc_fail_text(e, rc, text);
	*result = json_pack("{s:I}", "count", (json_int_t)count);
	return 0;
}

int rpc_trace_read(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	unsigned from = (unsigned)rpc_int(params, "from", 0);
	unsigned limit = (unsigned)rpc_int(params, "limit", 200);
	struct sw_trace_rec *rec = calloc(limit, sizeof(*rec));

	if (!rec)
		return rpc_fail(e, -ENOMEM, "", "out of memory");
	unsigned n = sw_trace_read(a->sw, from, rec, limit);
	json_t *list = json_array();
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(
			list, json_pack("{s:I,s:o,s:o,s:o}", "packet", (json_int_t)rec[i].packet,
				      "ns", ctl_u64(rec[i].ns), "node", rpc_text(rec[i].node),
				      "text", rpc_text(rec[i].text)));
	free(rec);
	*result = json_pack("{s:I,s:o}", "next", (json_int_t)from + n, "records", list);
	return 0;
}
