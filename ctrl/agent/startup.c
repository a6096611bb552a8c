/* SPDX-License-Identifier: BSD-3-Clause */
/* The entries of a configuration's "tables": inserted at the start, put in the place of what is
 * there by config.load. Either is one batch. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/agent/table_json.h"
#include "ctrl/config/switch_config.h"

static const struct ctl_field config_entry[] = {{"key", CTL_MAP, .item = CTL_ANY, .required = true},
	{"action", CTL_STRING, .required = true}, {"data", CTL_MAP, .item = CTL_ANY},
	{"priority", CTL_INT, .min = INT32_MIN, .max = INT32_MAX}, {0}};

struct startup {
	struct table_registry *reg;
	struct port_names ports;
	const json_t *config; /* of the switch: which rows are its own */
	struct table_update *updates;
	size_t n, removed; /* of them, first: rows that are there now */
	size_t back;       /* of those, that the new entries bring back */
	struct table_change change;
};

/* Is it there, and not to be removed first? */
static bool stays(const struct startup *s, unsigned table, const struct table_entry *now)
{
	struct table_rows rows;

	if (!now || !s->removed)
		return now;
	table_rows(s->reg, table, &rows);
	return table_row_is_own(s->config, &rows, (uint32_t)(now - rows.entry));
}

static void compare(struct startup *s, const struct table_entry *now, const struct table_entry *to)
{
	if (!now)
		s->change.added++;
	else if (now->action == to->action && now->priority == to->priority &&
		 !memcmp(now->param, to->param, sizeof(now->param)))
		s->change.kept++;
	else
		s->change.changed++;
}

static int entry(
	struct startup *s, unsigned table, const json_t *json, const char *at, struct rpc_error *e)
{
	const struct table_desc *d = table_desc(s->reg, table);
	struct table_update *u = &s->updates[s->n];
	const struct table_entry *now;
	struct ctl_problem problem;
	char path[CTL_PATH_LEN];

	if (ctl_check(config_entry, json, at, &problem))
		return rpc_fail(e, -EINVAL, problem.path, "%s", problem.msg);
	u->verb = TABLE_INSERT;
	u->table = table;
	u->entry.priority = (int32_t)rpc_int(json, "priority", 0);
	snprintf(path, sizeof(path), "%s.key", at);
	int rc = table_key_from_json(
		d, json_object_get(json, "key"), path, &s->ports, &u->entry, NULL, e);
	if (!rc)
		rc = table_action_from_json(d, rpc_string(json, "action"),
			json_object_get(json, "data"), at, &s->ports, &u->entry, e);
	s->n++;
	if (rc)
		return rc;
	now = table_lookup(s->reg, table, &u->entry);
	compare(s, now, &u->entry);
	if (stays(s, table, now))
		u->verb = TABLE_MODIFY;
	else
		s->back += now != NULL;
	return 0;
}

/* Path of the n-th entry of the batch: counted again, as errors are rare. */
static void entry_path(const json_t *tables, size_t n, char *at, size_t cap)
{
	const char *name;
	json_t *list;

	json_object_foreach((json_t *)tables, name, list)
	{
		if (n < json_array_size(list)) {
			snprintf(at, cap, "tables.%.40s[%zu]", name, n);
			return;
		}
		n -= json_array_size(list);
	}
	snprintf(at, cap, "tables");
}

static int entries(struct startup *s, const json_t *tables, struct rpc_error *e)
{
	const char *name;
	json_t *list, *item;
	char at[80];
	size_t i;

	json_object_foreach((json_t *)tables, name, list)
	{
		int table = table_find(s->reg, name);

		snprintf(at, sizeof(at), "tables.%.40s", name);
		if (table < 0)
			return rpc_no_table(s->reg, name, at, e);
		if (!json_is_array(list))
			return rpc_fail(e, -EINVAL, at, "must be a list of entries");
		json_array_foreach(list, i, item)
		{
			snprintf(at, sizeof(at), "tables.%.40s[%zu]", name, i);
			int rc = entry(s, (unsigned)table, item, at, e);
			if (rc)
				return rc;
		}
	}
	return 0;
}

static int write_batch(struct startup *s, const json_t *tables, struct rpc_error *e)
{
	struct table_error err;
	char at[80];
	int rc = table_write(s->reg, s->updates, (unsigned)s->n, &err);

	if (!rc)
		return 0;
	if (err.index != TABLE_NO_INDEX && err.index >= s->removed)
		entry_path(tables, err.index - s->removed, at, sizeof(at));
	else
		snprintf(at, sizeof(at), "tables");
	return rpc_write_failed(rc, &err, at, e);
}

/* All rows but the switch's own: DELETE, or only their number if updates is NULL. */
static size_t rows_to_remove(const struct startup *s, struct table_update *updates)
{
	size_t n = 0;

	for (unsigned t = 0; t < table_count(s->reg); t++) {
		struct table_rows rows;

		table_rows(s->reg, t, &rows);
		for (uint32_t i = 0; i < rows.n; i++) {
			if (table_row_is_own(s->config, &rows, i))
				continue;
			if (updates)
				updates[n] = (struct table_update){TABLE_DELETE, t, rows.entry[i]};
			n++;
		}
	}
	return n;
}

/* replace: what is there goes first. */
static int apply(struct startup *s, const json_t *tables, bool replace, struct rpc_error *e)
{
	const char *name;
	json_t *list;
	size_t n = replace ? rows_to_remove(s, NULL) : 0;

	json_object_foreach((json_t *)tables, name, list) n += json_array_size(list);
	s->updates = calloc(n + 1, sizeof(*s->updates));
	if (!s->updates)
		return rpc_fail(e, -ENOMEM, "", "out of memory");
	if (replace)
		s->n = s->removed = rows_to_remove(s, s->updates);
	int rc = entries(s, tables, e);
	if (!rc)
		rc = write_batch(s, tables, e);
	s->change.removed = (unsigned)(s->removed - s->back);
	free(s->updates);
	return rc;
}

int tables_replace(
	struct sw *sw, const json_t *tables, struct table_change *change, struct rpc_error *e)
{
	json_t *config = sw_config_json(sw), *plain = tables ? ctl_strip_comments(tables) : NULL;
	struct startup s = {.reg = sw_tables(sw), .config = config};

	port_names_read(sw, &s.ports);
	int rc = apply(&s, plain, true, e);
	json_decref(plain);
	json_decref(config);
	*change = s.change;
	return rc;
}

int agent_apply_tables(struct sw *sw, const json_t *tables, char *err, size_t cap)
{
	struct startup s = {.reg = sw_tables(sw)};
	struct rpc_error e = {.index = -1};
	json_t *plain;

	if (!tables)
		return 0;
	if (!json_is_object(tables)) {
		snprintf(err, cap, "tables: must be an object of lists");
		return -EINVAL;
	}
	plain = ctl_strip_comments(tables);
	port_names_read(sw, &s.ports);
	int rc = apply(&s, plain, false, &e);
	if (rc)
		snprintf(err, cap, "%s%s%s", e.path, e.path[0] ? ": " : "", e.msg);
	json_decref(plain);
	return rc;
}
