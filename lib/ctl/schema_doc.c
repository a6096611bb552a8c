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

static json_t *describe_fields(const struct ctl_field *fields);

static json_t *describe_type(enum ctl_type type, const struct ctl_field *f)
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
		return describe_fields(f->fields);
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

static json_t *words(const struct ctl_field *f)
{
	json_t *values = json_array();

	for (unsigned i = 0; f->values[i]; i++)
		json_array_append_new(values, json_string(f->values[i]));
	return values;
}

/* An integer within its limits, or one of its words. */
static json_t *describe_int_or_word(const struct ctl_field *f)
{
	json_t *number = describe_type(f->type, f);

	limit(number, f, "minimum", "maximum");
	return json_pack(
		"{s:[o,{s:o}],s:s}", "anyOf", number, "enum", words(f), "description", f->help);
}

static json_t *describe_field(const struct ctl_field *f)
{
	if (f->type == CTL_INT && f->values)
		return describe_int_or_word(f);

	json_t *out = describe_type(f->type, f);

	json_object_set_new(out, "description", json_string(f->help));
	switch (f->type) {
	case CTL_LIST:
		json_object_set_new(out, "items", describe_type(f->item, f));
		limit(out, f, "minItems", "maxItems");
		break;
	case CTL_MAP:
		json_object_set_new(out, "additionalProperties", describe_type(f->item, f));
		break;
	case CTL_INT:
	case CTL_REF:
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

static json_t *describe_fields(const struct ctl_field *fields)
{
	json_t *properties = json_object(), *required = json_array();

	for (const struct ctl_field *f = fields; f && f->name; f++) {
		json_object_set_new(properties, f->name, describe_field(f));
		if (f->required)
			json_array_append_new(required, json_string(f->name));
	}
	return json_pack("{s:s,s:o,s:o,s:b}", "type", "object", "properties", properties,
		"required", required, "additionalProperties", 0);
}

json_t *ctl_describe(const struct ctl_schema *schema)
{
	json_t *out = json_array();

	for (unsigned i = 0; i < schema->n; i++) {
		const struct ctl_method *m = &schema->methods[i];

		json_array_append_new(
			out, json_pack("{s:s,s:s,s:b,s:o,s:o}", "name", m->name, "help", m->help,
				     "changes", m->changes, "params", describe_fields(m->params),
				     "result", describe_fields(m->result)));
	}
	return out;
}
