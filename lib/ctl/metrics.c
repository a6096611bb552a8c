/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/metrics.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_LEN = 128, LABELS_LEN = 512 };

struct metrics {
	FILE *out;
	char *text;
	size_t len;
	char family[NAME_LEN]; /* that samples are of */
	enum ctl_metric type;
	uint64_t per_unit; /* values are so many of its unit */
	uint64_t left_out;
};

/* What the end of a counter's name says of its unit; in metrics that is a base unit. */
static const struct {
	const char *end, *unit;
	uint64_t per_unit;
} units[] = {
	{"_ns", "seconds", 1000000000},
	{"_us", "seconds", 1000000},
	{"_ms", "seconds", 1000},
	{"_s", "seconds", 1},
	{"_hz", "hertz", 1},
	{"_bytes", "bytes", 1},
	{"_packets", "packets", 1},
	{"_cycles", "cycles", 1},
};

struct metrics *metrics_begin(void)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (m)
		m->out = open_memstream(&m->text, &m->len);
	if (m && m->out)
		return m;
	free(m);
	return NULL;
}

char *metrics_end(struct metrics *m, size_t *len)
{
	char *text;
	int failed;

	metrics_family(m, "metrics_rows_left_out", CTL_GAUGE,
		"Groups and others of which this page has no samples: there are too many.");
	metrics_sample(m, "", m->left_out);
	fputs("# EOF\n", m->out);
	failed = ferror(m->out);
	failed |= fclose(m->out);
	text = m->text;
	*len = m->len;
	free(m);
	if (!failed && *len <= METRICS_MAX_BYTES)
		return text;
	free(text);
	return NULL;
}

/* As values of labels and help are written. */
static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", out);
		else
			fprintf(out, "%s%c", *text == '\\' || *text == '"' ? "\\" : "", *text);
	}
}

/* "port_held_ms" becomes "incline_port_held", and the unit that it names. */
static const char *set_name(struct metrics *m, const char *name)
{
	const char *unit = NULL;
	size_t len = strlen(name);

	m->per_unit = 1;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		const size_t n = strlen(units[i].end);

		if (len <= n || strcmp(name + len - n, units[i].end) != 0)
			continue;
		unit = units[i].unit;
		m->per_unit = units[i].per_unit;
		len -= n;
		break;
	}
	snprintf(m->family, sizeof(m->family), "incline_%.*s%s%s", (int)len, name, unit ? "_" : "",
		unit ? unit : "");
	for (char *c = m->family; *c; c++)
		if (!isalnum((unsigned char)*c))
			*c = '_';
	return unit;
}

void metrics_family(struct metrics *m, const char *name, enum ctl_metric type, const char *help)
{
	static const char *const types[] = {
		[CTL_GAUGE] = "gauge", [CTL_COUNTER] = "counter", [CTL_STATES] = "stateset"};
	const char *unit = set_name(m, name);

	m->type = type;
	fprintf(m->out, "# TYPE %s %s\n", m->family, types[type]);
	if (unit)
		fprintf(m->out, "# UNIT %s %s\n", m->family, unit);
	fprintf(m->out, "# HELP %s ", m->family);
	put_escaped(m->out, help);
	fputc('\n', m->out);
}

void metrics_sample(struct metrics *m, const char *labels, uint64_t value)
{
	/* Too much already: metrics_end says so. */
	if (ftell(m->out) > METRICS_MAX_BYTES)
		return;
	fprintf(m->out, "%s%s", m->family, m->type == CTL_COUNTER ? "_total" : "");
	if (labels[0])
		fprintf(m->out, "{%s}", labels);
	if (m->per_unit == 1)
		fprintf(m->out, " %" PRIu64 "\n", value);
	else
		fprintf(m->out, " %" PRIu64 ".%09" PRIu64 "\n", value / m->per_unit,
			value % m->per_unit * (1000000000 / m->per_unit));
}

size_t metrics_label(char *buf, size_t cap, size_t used, const char *name, const char *value)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	buf[used] = '\0';
	if (!out)
		return used;
	fprintf(out, "%s%s=\"", used ? "," : "", name);
	put_escaped(out, value);
	fputc('"', out);
	if (!fclose(out) && len < cap - used) {
		memcpy(buf + used, text, len + 1);
		used += len;
	}
	free(text);
	return used;
}

/* ---- results of methods ---- */

static size_t row_labels(
	char buf[LABELS_LEN], const char *noun, const struct ctl_field *fields, const json_t *row)
{
	char number[24];
	size_t used = 0;

	buf[0] = '\0';
	for (const struct ctl_field *f = fields; f->name; f++) {
		const json_t *v = json_object_get(row, f->name);
		const char *text = json_string_value(v);

		if (f->metric != CTL_LABEL || !v)
			continue;
		if (!text) {
			snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
				json_integer_value(v));
			text = number;
		}
		used = metrics_label(
			buf, LABELS_LEN, used, strcmp(f->name, "name") ? f->name : noun, text);
	}
	return used;
}

/* A sample for each state that it can be in; the label is called as the family is. */
static void states(struct metrics *m, const struct ctl_field *f, char labels[LABELS_LEN],
	size_t used, const json_t *v)
{
	for (unsigned i = 0; f->values[i]; i++) {
		metrics_label(labels, LABELS_LEN, used, m->family, f->values[i]);
		metrics_sample(m, labels, !strcmp(f->values[i], json_string_value(v)));
		labels[used] = '\0';
	}
}

static void row_sample(struct metrics *m, const char *noun, const struct ctl_field *fields,
	const struct ctl_field *f, const json_t *row)
{
	const json_t *v = json_object_get(row, f->name);
	char labels[LABELS_LEN];
	size_t used = row_labels(labels, noun, fields, row);
	uint64_t u;

	if (m->type == CTL_STATES && json_is_string(v))
		states(m, f, labels, used, v);
	else if (json_is_boolean(v))
		metrics_sample(m, labels, json_is_true(v));
	else if (v && !ctl_get_u64(v, &u))
		metrics_sample(m, labels, u);
}

static bool is_metric(const struct ctl_field *f)
{
	return f->metric == CTL_GAUGE || f->metric == CTL_COUNTER || f->metric == CTL_STATES;
}

size_t metrics_fit(struct metrics *m, size_t rows)
{
	if (rows <= METRICS_MAX_ROWS)
		return rows;
	m->left_out += rows - METRICS_MAX_ROWS;
	return METRICS_MAX_ROWS;
}

void metrics_rows(
	struct metrics *m, const char *noun, const struct ctl_field *fields, const json_t *rows)
{
	const size_t n = json_array_size(rows);
	char name[NAME_LEN];
	json_t *row;
	size_t i;

	for (const struct ctl_field *f = fields; f->name; f++) {
		if (!is_metric(f))
			continue;
		if (!strcmp(f->name, "count"))
			snprintf(name, sizeof(name), "%ss", noun);
		else
			snprintf(name, sizeof(name), "%s_%s", noun, f->name);
		metrics_family(m, name, f->metric, f->help);
		json_array_foreach(rows, i, row)
		{
			if (i < METRICS_MAX_ROWS)
				row_sample(m, noun, fields, f, row);
		}
	}
	metrics_fit(m, n);
}

void metrics_object(
	struct metrics *m, const char *prefix, const struct ctl_field *fields, const json_t *object)
{
	char name[NAME_LEN];

	for (const struct ctl_field *f = fields; f->name; f++) {
		if (!is_metric(f))
			continue;
		/* "total" says how many there are; at a metric's end it is a counter's word. */
		if (!strcmp(f->name, "total"))
			snprintf(name, sizeof(name), "%.*s", (int)strcspn(prefix, "_"), prefix);
		else
			snprintf(name, sizeof(name), "%s%s", prefix, f->name);
		metrics_family(m, name, f->metric, f->help);
		row_sample(m, "", fields, f, object);
	}
}
