/* SPDX-License-Identifier: BSD-3-Clause */
/* Text follows the schema of the result, so it has the same fields as the JSON: single values as
 * lines, lists of objects as tables, what nests deeper as blocks. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "apps/inclinectl_cmd.h"

/* ---- one value as text ---- */

static bool is_scalar(enum ctl_type type)
{
	return type == CTL_BOOL || type == CTL_INT || type == CTL_U64 || type == CTL_REAL ||
	       type == CTL_STRING || type == CTL_REF;
}

static bool is_number(enum ctl_type type)
{
	return type == CTL_INT || type == CTL_U64 || type == CTL_REAL;
}

static bool is_table(const struct ctl_field *f)
{
	return f->type == CTL_LIST && f->item == CTL_OBJECT;
}

/* Strings of the switch are shown as they are, but a terminal must not take orders from them. */
static void put_string(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc(iscntrl((unsigned char)*text) ? '?' : *text, out);
}

static void put_value(FILE *out, const json_t *v);

static void put_pairs(FILE *out, const json_t *v)
{
	const char *key, *sep = "";
	json_t *item;

	json_object_foreach((json_t *)v, key, item)
	{
		fprintf(out, "%s%s=", sep, key);
		put_value(out, item);
		sep = " ";
	}
	if (!*sep)
		fputc('-', out);
}

static void put_value(FILE *out, const json_t *v)
{
	json_t *item;
	size_t i;

	switch (json_typeof(v)) {
	case JSON_OBJECT:
		put_pairs(out, v);
		break;
	case JSON_ARRAY:
		if (!json_array_size(v))
			fputc('-', out);
		json_array_foreach(v, i, item)
		{
			if (i)
				fputc(',', out);
			put_value(out, item);
		}
		break;
	case JSON_STRING:
		put_string(out, json_string_length(v) ? json_string_value(v) : "-");
		break;
	case JSON_INTEGER:
		fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		break;
	case JSON_REAL:
		fprintf(out, "%.2f", json_real_value(v));
		break;
	default:
		fputs(json_is_null(v) ? "-" : json_is_true(v) ? "true" : "false", out);
	}
}

void cli_value_text(FILE *out, const json_t *value)
{
	put_value(out, value);
}

/* To be freed. */
static char *value_text(const json_t *v)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (v)
		put_value(out, v);
	else
		fputc('-', out);
	fclose(out);
	return text;
}

/* ---- tables ---- */

enum { MAX_COLUMNS = 32 };

/* A column is there if its field always is, or if some row has it. */
static bool has_column(const struct ctl_field *f, const json_t *rows)
{
	json_t *row;
	size_t i;

	if (f->required)
		return true;
	json_array_foreach(rows, i, row) if (json_object_get(row, f->name)) return true;
	return false;
}

static void put_cell(FILE *out, const char *text, int width, bool right, bool last)
{
	if (right)
		fprintf(out, "%*s", width, text);
	else
		fprintf(out, "%-*s", last ? 0 : width, text);
	fputs(last ? "\n" : "  ", out);
}

static void put_table(FILE *out, const struct ctl_field *fields, const json_t *rows, int indent)
{
	const struct ctl_field *column[MAX_COLUMNS];
	size_t n_rows = json_array_size(rows), n = 0, i;
	int width[MAX_COLUMNS];
	json_t *row;

	for (; fields->name && n < MAX_COLUMNS; fields++)
		if (has_column(fields, rows))
			column[n++] = fields;
	char **cells = calloc(n_rows * n + 1, sizeof(*cells));
	for (size_t c = 0; c < n; c++)
		width[c] = (int)strlen(column[c]->name);
	json_array_foreach(rows, i, row)
	{
		for (size_t c = 0; c < n; c++) {
			char *text = value_text(json_object_get(row, column[c]->name));
			int len = (int)strlen(text);

			cells[i * n + c] = text;
			width[c] = len > width[c] ? len : width[c];
		}
	}
	fprintf(out, "%*s", indent, "");
	for (size_t c = 0; c < n; c++)
		put_cell(out, column[c]->name, width[c], is_number(column[c]->type), c + 1 == n);
	for (i = 0; i < n_rows; i++) {
		fprintf(out, "%*s", indent, "");
		for (size_t c = 0; c < n; c++) {
			put_cell(out, cells[i * n + c], width[c], is_number(column[c]->type),
				c + 1 == n);
			free(cells[i * n + c]);
		}
	}
	free(cells);
}

/* ---- objects ---- */

static void put_object(FILE *out, const struct ctl_field *fields, const json_t *o, int indent);

/* Does an item hold tables itself? Then it becomes a block instead of a row. */
static bool nests(const struct ctl_field *fields)
{
	for (; fields->name; fields++)
		if (is_table(fields))
			return true;
	return false;
}

static void put_list(FILE *out, const struct ctl_field *f, const json_t *list, int indent)
{
	json_t *item;
	size_t i;

	if (!nests(f->fields)) {
		put_table(out, f->fields, list, indent);
		return;
	}
	json_array_foreach(list, i, item)
	{
		if (i && !indent)
			fputc('\n', out);
		put_object(out, f->fields, item, indent);
	}
}

static void put_any(FILE *out, const json_t *v)
{
	json_dumpf(v, out, JSON_INDENT(2) | JSON_ENCODE_ANY);
	fputc('\n', out);
}

static int label_width(const struct ctl_field *fields, const json_t *o)
{
	int width = 0;

	for (; fields->name; fields++)
		if (json_object_get(o, fields->name) && !is_table(fields) &&
			(int)strlen(fields->name) > width)
			width = (int)strlen(fields->name);
	return width;
}

static void put_map(FILE *out, const json_t *map, int indent)
{
	const char *key;
	json_t *v;
	int width = 0;

	json_object_foreach((json_t *)map, key, v) width =
		(int)strlen(key) > width ? (int)strlen(key) : width;
	json_object_foreach((json_t *)map, key, v)
	{
		fprintf(out, "%*s%-*s  ", indent, "", width, key);
		put_value(out, v);
		fputc('\n', out);
	}
}

/* What follows the single values, each under its name. */
static void put_section(FILE *out, const struct ctl_field *f, const json_t *v, int indent)
{
	fprintf(out, "%*s%s:\n", indent, "", f->name);
	if (f->type == CTL_MAP)
		put_map(out, v, indent + 2);
	else if (f->type == CTL_OBJECT)
		put_object(out, f->fields, v, indent + 2);
	else
		put_list(out, f, v, indent + 2);
}

static void put_object(FILE *out, const struct ctl_field *fields, const json_t *o, int indent)
{
	int width = label_width(fields, o);

	for (const struct ctl_field *f = fields; f->name; f++) {
		const json_t *v = json_object_get(o, f->name);

		if (!v || (!is_scalar(f->type) && !(f->type == CTL_LIST && is_scalar(f->item))))
			continue;
		fprintf(out, "%*s%-*s  ", indent, "", width, f->name);
		put_value(out, v);
		fputc('\n', out);
	}
	for (const struct ctl_field *f = fields; f->name; f++) {
		const json_t *v = json_object_get(o, f->name);

		if (v && (f->type == CTL_MAP || f->type == CTL_OBJECT || is_table(f)))
			put_section(out, f, v, indent);
		else if (v && f->type == CTL_ANY)
			put_any(out, v);
	}
}

void cli_text(FILE *out, const struct ctl_field *fields, const json_t *result)
{
	if (!json_object_size(result))
		fputs("ok\n", out);
	else if (json_object_size(result) == 1 && is_table(fields) && !fields[1].name)
		put_list(out, fields, json_object_get(result, fields->name), 0);
	else
		put_object(out, fields, result, 0);
}
