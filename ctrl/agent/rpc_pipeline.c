/* SPDX-License-Identifier: BSD-3-Clause */
/* pipeline.get: the parser, the stages, and the tables, as they are registered. */
#include <string.h>

#include "ctrl/agent/table_json.h"

/* ---- tables ---- */

static json_t *describe_field(const struct table_field *f, bool key)
{
	bool optional = key ? f->match == TABLE_TERNARY || f->match == TABLE_RANGE : f->optional;
	json_t *out = json_pack("{s:s,s:s}", "name", f->name, "type", table_type_name(f->type));

	if (key)
		json_object_set_new(out, "match", json_string(table_match_name(f->match)));
	if (f->type == TABLE_UINT) {
		json_object_set_new(out, "min", ctl_u64(f->min));
		json_object_set_new(out, "max", ctl_u64(f->max ? f->max : UINT64_MAX));
	}
	json_object_set_new(out, "optional", json_boolean(optional));
	json_object_set_new(out, "help", rpc_text(f->help ? f->help : ""));
	return out;
}

static json_t *describe_fields(const struct table_field *f, unsigned n, bool key)
{
	json_t *out = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(out, describe_field(&f[i], key));
	return out;
}

static json_t *describe_actions(const struct table_desc *d)
{
	json_t *out = json_array();

	for (unsigned i = 0; i < d->n_actions; i++) {
		const struct table_action *a = &d->actions[i];

		json_array_append_new(out, json_pack("{s:s,s:o,s:o}", "name", a->name, "help",
						   rpc_text(a->help ? a->help : ""), "params",
						   describe_fields(a->params, a->n_params, false)));
	}
	return out;
}

static json_t *describe_table(const struct table_desc *d, uint64_t entries)
{
	json_t *out = json_pack("{s:s,s:o,s:I,s:o,s:b,s:o,s:o}", "name", d->name, "help",
		rpc_text(d->help ? d->help : ""), "size", (json_int_t)d->size, "entries",
		ctl_u64(entries), "priorities", table_has_priority(d), "keys",
		describe_fields(d->keys, d->n_keys, true), "actions", describe_actions(d));

	if (d->node)
		json_object_set_new(out, "node", json_string(d->node));
	if (d->miss)
		json_object_set_new(out, "miss", json_string(d->miss));
	return out;
}

/* Of all rows, if this table counts. */
static void put_hits(json_t *out, const struct sw *sw, unsigned table, unsigned n)
{
	uint64_t hits, sum = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!sw_table_hits(sw, table, i, &hits))
			return;
		sum += hits;
	}
	if (n)
		json_object_set_new(out, "hits", ctl_u64(sum));
}

static json_t *tables_json(struct sw *sw, const char *only)
{
	const struct table_registry *reg = sw_tables(sw);
	json_t *out = json_array();

	for (unsigned i = 0; i < table_count(reg); i++) {
		struct table_rows rows;

		table_rows(reg, i, &rows);
		if (only && strcmp(only, rows.desc->name))
			continue;
		json_t *table = describe_table(rows.desc, rows.n);
		put_hits(table, sw, i, rows.n);
		json_array_append_new(out, table);
	}
	return out;
}

static json_t *views_json(const struct sw *sw)
{
	json_t *out = json_array();
	struct sw_view view;

	for (unsigned i = 0; !sw_view_get(sw, i, &view); i++) {
		json_t *table = describe_table(view.desc, view.entries);

		json_object_set_new(table, "hits", ctl_u64(view.hits));
		json_array_append_new(out, table);
	}
	return out;
}

/* ---- parser and stages ---- */

static json_t *parser_json(void)
{
	json_t *out = json_array();
	struct parse_state s;

	for (unsigned i = 0; parse_state(i, &s); i++) {
		json_t *state = json_pack(
			"{s:s,s:s,s:s}", "state", s.name, "others", s.others, "help", s.help);

		if (s.ours)
			json_object_set_new(state, "ours", json_string(s.ours));
		json_array_append_new(out, state);
	}
	return out;
}

/* Names of those tables and views that are looked up by a node. */
static void add_tables(json_t *names, const json_t *tables, const char *node)
{
	const json_t *table;
	size_t i;

	json_array_foreach(tables, i, table)
	{
		const char *of = json_string_value(json_object_get(table, "node"));

		if (of && !strcmp(of, node))
			json_array_append(names, json_object_get(table, "name"));
	}
}

static json_t *stages_json(struct sw *sw, const json_t *tables, const json_t *views)
{
	json_t *out = json_array();
	struct sw_stage s;

	for (unsigned i = 0; !sw_stage_get(sw, i, &s); i++) {
		json_t *next = json_array(), *names = json_array();

		for (unsigned k = 0; k < s.n_next; k++)
			json_array_append_new(next, json_string(s.next[k]));
		add_tables(names, tables, s.name);
		add_tables(names, views, s.name);
		json_array_append_new(
			out, json_pack("{s:s,s:o,s:o,s:o}", "node", s.name, "next", next, "tables",
				     names, "packets", ctl_u64(s.packets)));
	}
	return out;
}

int rpc_pipeline_get(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const struct table_registry *reg = sw_tables(a->sw);
	const char *only = rpc_string(params, "table");
	json_t *tables, *views;

	if (only && table_find(reg, only) < 0)
		return rpc_no_table(reg, only, "table", e);
	tables = tables_json(a->sw, only);
	if (only) {
		*result = json_pack("{s:o}", "tables", tables);
		return 0;
	}
	views = views_json(a->sw);
	*result = json_pack(
		"{s:o,s:o}", "parser", parser_json(), "stages", stages_json(a->sw, tables, views));
	json_object_set_new(*result, "tables", tables);
	json_object_set_new(*result, "views", views);
	return 0;
}
