/* SPDX-License-Identifier: BSD-3-Clause */
/* What a manager asks beside groups: who this is, what has happened, epochs of jobs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctrl/agent/group_json.h"
#include "ctrl/agent/table_json.h"

/* ---- node.hello ---- */

/* A neighbour that LLDP tells of. */
static json_t *lldp_json(const struct sw_lldp_info *info, const char *port_field)
{
	json_t *row = json_pack("{s:o,s:o,s:I}", "chassis", rpc_text(info->chassis), port_field,
		rpc_text(info->port), "age_s", (json_int_t)(info->age_ns / 1000000000));

	if (info->system[0])
		json_object_set_new(row, "system", rpc_text(info->system));
	return row;
}

static json_t *ports_json(struct sw *sw)
{
	json_t *list = json_array(), *row, *lldp;
	char mac[WIRE_MAC_STRLEN];
	struct sw_lldp_info info;
	struct sw_port p;

	for (unsigned i = 0; i < sw_n_ports(sw); i++) {
		unsigned at = 0;

		if (sw_port_get(sw, i, &p))
			continue;
		row = json_pack("{s:o,s:s,s:i,s:s}", "name", rpc_text(p.name), "mac",
			wire_mac_format(p.mac, mac, sizeof(mac)), "mtu", (int)p.mtu, "link",
			p.link ? "up" : "down");
		if (p.mbps)
			json_object_set_new(row, "mbps", json_integer(p.mbps));
		lldp = json_array();
		while (sw_lldp_get(sw, i, &at, &info) == 0)
			json_array_append_new(lldp, lldp_json(&info, "port"));
		if (json_array_size(lldp) > 0)
			json_object_set(row, "lldp", lldp);
		json_decref(lldp);
		json_array_append_new(list, row);
	}
	return list;
}

/* Rows of table neigh, flat. */
static json_t *neighbours_json(struct sw *sw)
{
	const struct table_registry *reg = sw_tables(sw);
	const int table = table_find(reg, "neigh");
	json_t *list = json_array();
	struct port_names ports;
	struct table_rows rows;

	if (table < 0)
		return list;
	table_rows(reg, (unsigned)table, &rows);
	port_names_read(sw, &ports);
	for (uint32_t i = 0; i < rows.n; i++) {
		json_t *row = table_entry_to_json(rows.desc, &rows.entry[i], &ports);
		const json_t *data = json_object_get(row, "data");
		const char *ip = rpc_string(json_object_get(row, "key"), "ip");

		if (ip && rpc_string(data, "mac") && rpc_string(data, "port"))
			json_array_append_new(list,
				json_pack("{s:s,s:s,s:s}", "ip", ip, "mac", rpc_string(data, "mac"),
					"port", rpc_string(data, "port")));
		json_decref(row);
	}
	return list;
}

static json_t *workers_json(struct sw *sw)
{
	json_t *list = json_array(), *row;
	struct sw_worker w;

	for (unsigned i = 0; i < sw_n_workers(sw); i++) {
		if (sw_worker_get(sw, i, &w))
			continue;
		row = json_object();
		if (w.cpu >= 0)
			json_object_set_new(row, "cpu", json_integer(w.cpu));
		if (w.cpu >= 0 && w.socket >= 0)
			json_object_set_new(row, "socket", json_integer(w.socket));
		json_array_append_new(list, row);
	}
	return list;
}

static unsigned n_groups(struct sw *sw)
{
	unsigned n = 0;

	for (unsigned slot = 1; slot < INC_GROUP_SLOTS; slot++)
		n += sw_group_get(sw, slot) != NULL;
	return n;
}

int rpc_node_hello(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	uint64_t size = 0, used = 0;
	json_t *modes = json_array();
	char boot[20], chassis[SW_LLDP_TEXT];

	(void)params, (void)e;
	for (unsigned i = 0; group_modes[i]; i++)
		json_array_append_new(modes, json_string(group_modes[i]));
	sw_arena_usage(a->sw, &size, &used);
	snprintf(boot, sizeof(boot), "%016llx", (unsigned long long)a->boot);
	*result = json_pack("{s:o,s:s,s:s,s:o,s:i,s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:o}", "name",
		rpc_text(sw_name(a->sw)), "boot", boot, "version", INCLINE_VERSION, "modes", modes,
		"max_groups", INC_GROUP_SLOTS - 1 - NR_MAX_RINGS, "max_endpoints", INC_MAX_EP,
		"groups", (int)n_groups(a->sw), "arena_bytes", ctl_u64(size), "arena_used_bytes",
		ctl_u64(used), "events", ctl_u64(a->events.next), "ports", ports_json(a->sw),
		"neighbours", neighbours_json(a->sw), "workers", workers_json(a->sw));
	if (sw_lldp_chassis(a->sw, chassis)[0])
		json_object_set_new(*result, "chassis", rpc_text(chassis));
	return 0;
}

int rpc_lldp_list(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	json_t *list = json_array(), *row;
	char chassis[SW_LLDP_TEXT];
	struct sw_lldp_info info;
	struct sw_port p;

	(void)params, (void)e;
	for (unsigned i = 0; i < sw_n_ports(a->sw); i++) {
		unsigned at = 0;

		if (sw_port_get(a->sw, i, &p))
			continue;
		while (sw_lldp_get(a->sw, i, &at, &info) == 0) {
			row = lldp_json(&info, "peer_port");
			json_object_set_new(row, "port", rpc_text(p.name));
			json_array_append_new(list, row);
		}
	}
	*result = json_pack("{s:o}", "neighbours", list);
	if (sw_lldp_chassis(a->sw, chassis)[0])
		json_object_set_new(*result, "chassis", rpc_text(chassis));
	return 0;
}

/* ---- events ---- */

int rpc_event_list(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const json_t *asked = json_object_get(params, "from");
	uint64_t from = 0, missed;
	json_t *list;

	(void)e;
	if (asked)
		ctl_get_u64(asked, &from);
	list = events_list(&a->events, &from, &missed);
	*result = json_pack("{s:o,s:o,s:o}", "next", ctl_u64(from), "missed",
		ctl_u64(asked ? missed : 0), "events", list);
	return 0;
}

int rpc_event_subscribe(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	(void)params;
	if (!a->peer)
		return rpc_fail(e, -EOPNOTSUPP, "", "there is no connection to be told events");
	if (!a->peer->subscribed)
		a->peer->next_event = a->events.next;
	a->peer->subscribed = true;
	*result = json_pack("{s:o}", "next", ctl_u64(a->peer->next_event));
	return 0;
}

/* ---- epochs ---- */

/* As epoch_check. */
static int check(
	struct agent *a, const char *path, const char *job, uint64_t epoch, struct rpc_error *e)
{
	uint64_t newest = 0;
	const int rc = epoch_check(&a->epochs, a->sw, job, epoch, &newest);

	return rc == -ESTALE
		       ? rpc_fail(e, rc, path, "%llu of job \"%s\" is over, the newest is %llu",
				 (unsigned long long)epoch, job, (unsigned long long)newest)
		       : rc;
}

int rpc_epoch_check(struct agent *a, const json_t *params, struct rpc_error *e)
{
	const char *job = rpc_string(params, "job");
	const json_t *of = json_object_get(params, "epoch");
	uint64_t epoch = 0;
	int rc;

	if (!job != !of)
		return rpc_fail(e, -EINVAL, job ? "epoch" : "job", "is missing: both or none");
	if (!job)
		return 0;
	ctl_get_u64(of, &epoch);
	rc = check(a, "epoch", job, epoch, e);
	if (rc == -ENOSPC)
		rpc_fail(e, rc, "job", "%d jobs have groups here, there is no place for another",
			EPOCH_MAX_JOBS);
	return rc;
}

int rpc_epoch_check_group(struct agent *a, unsigned slot, struct rpc_error *e)
{
	uint64_t epoch;
	const char *job = epoch_of(&a->epochs, slot, &epoch);

	return job ? check(a, "group", job, epoch, e) : 0;
}

void rpc_epoch_note(struct agent *a, const json_t *params, unsigned slot)
{
	uint64_t epoch = 0;

	ctl_get_u64(json_object_get(params, "epoch"), &epoch);
	epoch_note(&a->epochs, a->sw, slot, rpc_string(params, "job"), epoch);
}

int rpc_epoch_end(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	uint64_t epoch = 0;
	int n;

	ctl_get_u64(json_object_get(params, "epoch"), &epoch);
	n = epoch_end(&a->epochs, a->sw, rpc_string(params, "job"), epoch,
		rpc_bool(params, "remove", false));
	if (n < 0)
		return rpc_fail(e, n, "job",
			"%d jobs have groups here, there is no place for another", EPOCH_MAX_JOBS);
	if (rpc_string(params, "tenant"))
		epoch_set_tenant(
			&a->epochs, rpc_string(params, "job"), rpc_string(params, "tenant"));
	*result = json_pack("{s:i}", "groups", n);
	return 0;
}

int rpc_epoch_list(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	json_t *list = json_array();

	(void)params, (void)e;
	for (unsigned i = 0; i < EPOCH_MAX_JOBS; i++) {
		const struct epoch_job *j = &a->epochs.job[i];
		unsigned failed, n;

		if (!j->name[0])
			continue;
		n = epoch_groups(&a->epochs, a->sw, i, &failed);
		json_array_append_new(list, json_pack("{s:s,s:o,s:b,s:i,s:i}", "job", j->name,
						    "epoch", ctl_u64(j->newest), "ended", j->ended,
						    "groups", (int)n, "failed", (int)failed));
	}
	*result = json_pack("{s:o}", "jobs", list);
	return 0;
}
