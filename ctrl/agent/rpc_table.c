/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables: their list, reading, writing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/agent/table_json.h"

/* ---- description ---- */

int rpc_no_table(
	const struct table_registry *reg, const char *name, const char *path, struct rpc_error *e)
{
	char all[256] = "none";
	size_t at = 0;

	for (unsigned i = 0; i < table_count(reg) && at < sizeof(all); i++)
		at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%s", i ? ", " : "",
			table_desc(reg, i)->name);
	return rpc_fail(e, -ENOENT, path, "no table is named \"%.48s\", there are: %s", name, all);
}

int rpc_table_list(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const struct table_registry *reg = sw_tables(a->sw);
	json_t *tables = json_array();

	(void)params, (void)e;
	for (unsigned i = 0; i < table_count(reg); i++) {
		json_t *keys = json_array(), *actions = json_array();
		struct table_rows rows;

		table_rows(reg, i, &rows);
		const struct table_desc *d = rows.desc;
		for (unsigned k = 0; k < d->n_keys; k++)
			json_array_append_new(keys, json_string(d->keys[k].name));
		for (unsigned k = 0; k < d->n_actions; k++)
			json_array_append_new(actions, json_string(d->actions[k].name));
		json_array_append_new(tables,
			json_pack("{s:s,s:I,s:I,s:o,s:o,s:o}", "name", d->name, "entries",
				(json_int_t)rows.n, "size", (json_int_t)d->size, "keys", keys,
				"actions", actions, "help", rpc_text(d->help ? d->help : "")));
	}
	*result = json_pack("{s:o}", "tables", tables);
	return 0;
}

/* ---- reading ---- */

struct filter {
	struct table_entry entry;
	unsigned any; /* key fields that are not compared, bits */
	int action;   /* -1: any */
};

static int read_filter(const struct table_desc *d, const json_t *params,
	const struct port_names *ports, struct filter *f, struct rpc_error *e)
{
	const char *action = rpc_string(params, "action");
	int rc = table_key_from_json(
		d, json_object_get(params, "key"), "key", ports, &f->entry, &f->any, e);

	f->action = -1;
	if (rc || !action)
		return rc;
	for (unsigned i = 0; i < d->n_actions; i++)
		if (!strcmp(d->actions[i].name, action))
			f->action = (int)i;
	if (f->action < 0)
		return rpc_fail(e, -EINVAL, "action", "\"%.48s\" is not an action of table %s",
			action, d->name);
	return 0;
}

static bool passes(const struct filter *f, const struct table_desc *d, const struct table_entry *e)
{
	if (f->action >= 0 && e->action != f->action)
		return false;
	for (unsigned i = 0; i < d->n_keys; i++)
		if (!(f->any >> i & 1) &&
			memcmp(&e->key[i], &f->entry.key[i], sizeof(e->key[i])) != 0)
			return false;
	return true;
}

int rpc_table_read(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const struct table_registry *reg = sw_tables(a->sw);
	const char *name = rpc_string(params, "table");
	int64_t offset = rpc_int(params, "offset", 0), limit = rpc_int(params, "limit", 100);
	int64_t found = 0;
	int table = table_find(reg, name);
	struct filter filter = {.any = 0};
	struct port_names ports;
	struct table_rows rows;

	if (table < 0)
		return rpc_no_table(reg, name, "table", e);
	table_rows(reg, (unsigned)table, &rows);
	port_names_read(a->sw, &ports);
	int rc = read_filter(rows.desc, params, &ports, &filter, e);
	if (rc)
		return rc;
	json_t *entries = json_array();
	for (uint32_t i = 0; i < rows.n; i++) {
		if (!passes(&filter, rows.desc, &rows.entry[i]))
			continue;
		if (found >= offset && found < offset + limit) {
			json_t *entry = table_entry_to_json(rows.desc, &rows.entry[i], &ports);
			uint64_t hits;

			if (sw_table_hits(a->sw, (unsigned)table, i, &hits))
				json_object_set_new(entry, "hits", ctl_u64(hits));
			json_array_append_new(entries, entry);
		}
		found++;
	}
	*result = json_pack(
		"{s:s,s:I,s:o}", "table", name, "total", (json_int_t)found, "entries", entries);
	if (found > offset + limit)
		json_object_set_new(*result, "next", json_integer(offset + limit));
	return 0;
}

/* ---- writing ---- */

static int update_from_json(const struct table_registry *reg, const json_t *json, const char *at,
	const struct port_names *ports, struct table_update *u, struct rpc_error *e)
{
	const char *op = rpc_string(json, "op"), *table = rpc_string(json, "table");
	const char *action = rpc_string(json, "action");
	const json_t *data = json_object_get(json, "data");
	char path[CTL_PATH_LEN];
	int index = table_find(reg, table);

	memset(u, 0, sizeof(*u));
	u->verb = op[0] == 'i' ? TABLE_INSERT : op[0] == 'm' ? TABLE_MODIFY : TABLE_DELETE;
	snprintf(path, sizeof(path), "%s.table", at);
	if (index < 0)
		return rpc_no_table(reg, table, path, e);
	u->table = (unsigned)index;
	u->entry.priority = (int32_t)rpc_int(json, "priority", 0);
	snprintf(path, sizeof(path), "%s.key", at);
	const struct table_desc *d = table_desc(reg, u->table);
	int rc = table_key_from_json(
		d, json_object_get(json, "key"), path, ports, &u->entry, NULL, e);
	if (rc || u->verb != TABLE_DELETE)
		return rc ? rc : table_action_from_json(d, action, data, at, ports, &u->entry, e);
	snprintf(path, sizeof(path), "%s.%s", at, action ? "action" : "data");
	if (action || data)
		return rpc_fail(e, -EINVAL, path, "is not for delete");
	return 0;
}

int rpc_write_failed(int rc, const struct table_error *err, const char *at, struct rpc_error *e)
{
	char path[CTL_PATH_LEN];

	if (err->index == TABLE_NO_INDEX)
		return rpc_fail(e, rc, "", "%s", err->msg);
	snprintf(path, sizeof(path), "%s%s%s", at, err->path[0] ? "." : "", err->path);
	return rpc_fail(e, rc, path, "%s", err->msg);
}

int rpc_table_write(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	struct table_registry *reg = sw_tables(a->sw);
	const json_t *list = json_object_get(params, "updates");
	size_t n = json_array_size(list);
	struct table_update *updates = calloc(n, sizeof(*updates));
	struct table_error err;
	struct port_names ports;
	char at[32];
	int rc = updates ? 0 : rpc_fail(e, -ENOMEM, "", "out of memory");

	port_names_read(a->sw, &ports);
	for (size_t i = 0; i < n && !rc; i++) {
		snprintf(at, sizeof(at), "updates[%zu]", i);
		e->index = (long)i;
		rc = update_from_json(reg, json_array_get(list, i), at, &ports, &updates[i], e);
	}
	if (!rc) {
		e->index = -1;
		rc = table_write(reg, updates, (unsigned)n, &err);
		if (rc) {
			snprintf(at, sizeof(at), "updates[%u]", err.index);
			e->index = err.index == TABLE_NO_INDEX ? -1 : (long)err.index;
			rc = rpc_write_failed(rc, &err, at, e);
		}
	}
	free(updates);
	if (rc)
		return rc;
	*result = json_pack("{s:I}", "applied", (json_int_t)n);
	if (sw_routes_nowhere(a->sw) > 0)
		json_object_set_new(*result, "routes_without_neighbour",
			json_integer(sw_routes_nowhere(a->sw)));
	return 0;
}
