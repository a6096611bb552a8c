/* SPDX-License-Identifier: BSD-3-Clause */
/* The schema as text for people and as JSON Schema for programs. */
#include <string.h>

#include "lib/ctl/schema.h"

/* ---- markdown ---- */

/* Text of a table cell: '|' would end it. */
static void cell(FILE *out, const char *text)
{
	for (; *text; text++)
		fprintf(out, *text == '|' ? "\\|" : "%c", *text);
}

static void rows(const struct ctl_field *fields, const char *prefix, FILE *out)
{
	for (const struct ctl_field *f = fields; f && f->name; f++) {
		char type[128], path[CTL_PATH_LEN];

		fprintf(out, "| `%s%s` | ", prefix, f->name);
		cell(out, ctl_type_text(f, type, sizeof(type)));
		fprintf(out, " | %s | ", f->required ? "yes" : "");
		cell(out, f->help);
		fprintf(out, " |\n");
		if (!f->fields)
			continue;
		snprintf(path, sizeof(path), "%s%s%s.", prefix, f->name,
			f->type == CTL_LIST ? "[]" : "");
		rows(f->fields, path, out);
	}
}

static void table(const char *title, const char *always, const struct ctl_field *fields, FILE *out)
{
	if (!fields || !fields->name) {
		fprintf(out, "%s: none.\n\n", title);
		return;
	}
	fprintf(out, "%s:\n\n| field | type | %s | meaning |\n|---|---|---|---|\n", title, always);
	rows(fields, "", out);
	fprintf(out, "\n");
}

static const char *const tcp_text[] = {
	[CTL_TCP_NO] = " Not over TCP.",
	[CTL_TCP_OWN] = " Over TCP: for the owner.",
	[CTL_TCP_ANY] = "",
};

void ctl_markdown(const struct ctl_schema *schema, FILE *out)
{
	for (unsigned i = 0; i < schema->n; i++) {
		const struct ctl_method *m = &schema->methods[i];

		fprintf(out, "### %s\n\n%s", m->name, m->help);
		if (m->command)
			fprintf(out, " Command: `inclinectl %s`.", m->command);
		fprintf(out, "%s", tcp_text[m->tcp]);
		fprintf(out, "\n\n");
		table("Parameters", "required", m->params, out);
		table("Result", "always", m->result, out);
	}
}

/* ---- JSON Schema ---- */

/* file: of a file of ours, in which members whose key begins with '#' are comments. */
static json_t *describe_object(
	const struct ctl_field *fields, const struct ctl_variant *variants, bool file);

static json_t *describe_type(enum ctl_type type, const struct ctl_field *f, bool file)
{
	switch (type) {
	case CTL_BOOL:
		return json_pack("{s:s}", "type", "boolean");
	case CTL_INT:
		return json_pack("{s:s}", "type", "integer");
	case CTL_U64:
		return json_pack("{s:[{s:s,s:i},{s:s,s:s}]}", "anyOf", "type", "integer", "minimum",
			0, "type", "string", "pattern", "^([0-9]+|0[xX][0-9a-fA-F]+)$");
	case CTL_REAL:
		return json_pack("{s:s}", "type", "number");
	case CTL_STRING:
		return json_pack("{s:s}", "type", "string");
	case CTL_REF:
		return json_pack("{s:[s,s]}", "type", "string", "integer");
	case CTL_OBJECT:
		return describe_object(f->fields, f->variants, file);
	case CTL_MAP:
		return json_pack("{s:s}", "type", "object");
	case CTL_LIST:
		return json_pack("{s:s}", "type", "array");
	case CTL_ANY:
		break;
	}
	return json_object();
}

static void limit(json_t *out, const struct ctl_field *f, const char *low, const char *high)
{
	if (!f->max)
		return;
	json_object_set_new(out, low, json_integer(f->min));
	json_object_set_new(out, high, json_integer(f->max));
}

static void comments(json_t *out, bool file)
{
	if (file)
		json_object_set_new(out, "patternProperties", json_pack("{s:{}}", "^#"));
}

static json_t *words(const struct ctl_field *f)
{
	json_t *values = json_array();

	for (unsigned i = 0; f->values[i]; i++)
		json_array_append_new(values, json_string(f->values[i]));
	return values;
}

static json_t *describe_value(const struct ctl_field *f, bool file)
{
	json_t *out = describe_type(f->type, f, file);

	switch (f->type) {
	case CTL_LIST:
		json_object_set_new(out, "items", describe_type(f->item, f, file));
		limit(out, f, "minItems", "maxItems");
		break;
	case CTL_MAP:
		json_object_set_new(out, "additionalProperties", describe_type(f->item, f, file));
		comments(out, file);
		break;
	case CTL_INT:
	case CTL_REF:
	case CTL_REAL:
		limit(out, f, "minimum", "maximum");
		break;
	case CTL_STRING:
		limit(out, f, "minLength", "maxLength");
		if (f->values)
			json_object_set_new(out, "enum", words(f));
		break;
	default:
		break;
	}
	return out;
}

static json_t *describe_default(const struct ctl_field *f)
{
	json_t *value = NULL;

	if (f->type != CTL_STRING)
		value = json_loads(f->dflt, JSON_DECODE_ANY, NULL);
	return value ? value : json_string(f->dflt);
}

static json_t *describe_field(const struct ctl_field *f, bool file)
{
	json_t *out = describe_value(f, file);

	if (f->type == CTL_INT && f->values)
		out = json_pack("{s:[o,{s:o}]}", "anyOf", out, "enum", words(f));
	if (f->nullable)
		out = json_pack("{s:[o,{s:s}]}", "anyOf", out, "type", "null");
	json_object_set_new(out, "description", json_string(f->help));
	if (f->dflt)
		json_object_set_new(out, "default", describe_default(f));
	return out;
}

/* Fields that are there already stay as they are. */
static void add_fields(
	json_t *properties, json_t *required, const struct ctl_field *fields, bool file)
{
	for (const struct ctl_field *f = fields; f && f->name; f++) {
		if (!json_object_get(properties, f->name))
			json_object_set_new(properties, f->name, describe_field(f, file));
		if (f->required)
			json_array_append_new(required, json_string(f->name));
	}
}

static json_t *describe_fields(
	const struct ctl_field *first, const struct ctl_field *then, bool file)
{
	json_t *properties = json_object(), *required = json_array(), *out;

	add_fields(properties, required, first, file);
	add_fields(properties, required, then, file);
	out = json_pack("{s:s,s:o,s:o,s:b}", "type", "object", "properties", properties, "required",
		required, "additionalProperties", 0);
	comments(out, file);
	return out;
}

static json_t *describe_object(
	const struct ctl_field *fields, const struct ctl_variant *variants, bool file)
{
	json_t *types = json_array(), *cases = json_array();

	if (!variants) {
		json_decref(types);
		json_decref(cases);
		return describe_fields(fields, NULL, file);
	}
	for (const struct ctl_variant *v = variants; v->value; v++) {
		json_t *all = describe_fields(v->fields, fields, file);

		json_object_set_new(all, "description", json_string(v->help));
		json_array_append_new(types, json_string(v->value));
		json_array_append_new(cases, json_pack("{s:{s:{s:{s:s}}},s:o}", "if", "properties",
						     "type", "const", v->value, "then", all));
	}
	return json_pack("{s:s,s:{s:{s:o}},s:[s],s:o}", "type", "object", "properties", "type",
		"enum", types, "required", "type", "allOf", cases);
}

json_t *ctl_json_schema(const struct ctl_field *object, const char *title)
{
	json_t *out = json_pack("{s:s,s:s}", "$schema",
		"https://json-schema.org/draft/2020-12/schema", "title", title);
	json_t *type = describe_object(object->fields, object->variants, true);

	json_object_update(out, type);
	json_decref(type);
	return out;
}

json_t *ctl_describe(const struct ctl_schema *schema)
{
	json_t *out = json_array();

	for (unsigned i = 0; i < schema->n; i++) {
		const struct ctl_method *m = &schema->methods[i];

		json_array_append_new(
			out, json_pack("{s:s,s:s,s:b,s:o,s:o}", "name", m->name, "help", m->help,
				     "changes", m->changes, "params",
				     describe_fields(m->params, NULL, false), "result",
				     describe_fields(m->result, NULL, false)));
	}
	return out;
}
