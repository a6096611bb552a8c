/* SPDX-License-Identifier: BSD-3-Clause */
/* A command again and again, with what has changed since the last time. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/inclinectl_cmd.h"
#include "apps/inclinectl_rates.h"

struct cli_watch {
	json_t *result; /* of the last run; NULL: there was none */
	struct cli_time time;
};

json_t *cli_time_text(const struct cli_time *t)
{
	const time_t s = (time_t)(t->unix_ms / 1000);
	char day[32], text[48];
	struct tm tm;

	if (!gmtime_r(&s, &tm) || !strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm))
		return json_string("-");
	snprintf(text, sizeof(text), "%s.%03uZ", day, (unsigned)(t->unix_ms % 1000));
	return json_string(text);
}

void cli_new_screen(struct cli *cli, bool first)
{
	if (isatty(fileno(cli->out)))
		fputs("\033[H\033[2J", cli->out);
	else if (!first)
		fputc('\n', cli->out);
}

/* ---- what has changed ---- */

struct change {
	double seconds;
	bool text; /* into the values; else members beside them */
};

/* Change of a number; false: none, or it cannot be told. */
static bool changed(
	const struct ctl_field *f, const json_t *before, const json_t *after, double *by)
{
	uint64_t a, b, up;

	if (json_is_real(after) || json_is_real(before)) {
		if (!json_is_number(before) || !json_is_number(after))
			return false;
		*by = json_number_value(after) - json_number_value(before);
		return *by < 0 || *by > 0;
	}
	if (ctl_get_u64(before, &a) || ctl_get_u64(after, &b) || a == b)
		return false;
	if (!rates_grown(a, b, &up))
		*by = (double)up;
	else if (f->metric == CTL_COUNTER)
		return false;
	else
		*by = -(double)(a - b);
	return true;
}

static void note(const struct change *c, const struct ctl_field *f, const char *name,
	const json_t *before, json_t *out)
{
	const json_t *was = json_object_get(before, name), *is = json_object_get(out, name);
	char text[128];
	double by;

	if (!was || !is || !changed(f, was, is, &by))
		return;
	if (!c->text) {
		snprintf(text, sizeof(text), "%.100s_per_s", name);
		json_object_set_new(out, text, rates_number(by / c->seconds));
		return;
	}
	if (json_is_real(is))
		snprintf(
			text, sizeof(text), "%.2f (%+.2f/s)", json_real_value(is), by / c->seconds);
	else if (json_is_integer(is))
		snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT " (%+.2f/s)",
			json_integer_value(is), by / c->seconds);
	else
		snprintf(text, sizeof(text), "%.24s (%+.2f/s)", json_string_value(is),
			by / c->seconds);
	json_object_set_new(out, name, json_string(text));
}

static bool tells_apart(const struct ctl_field *f, bool has_labels)
{
	return has_labels ? f->metric == CTL_LABEL : !strcmp(f->name, "name");
}

/* The row of the same thing: its labels are the same, or if it has none its name. */
static const json_t *row_before(
	const struct ctl_field *fields, const json_t *list, const json_t *row)
{
	bool has_labels = false;
	json_t *other;
	size_t i;

	for (const struct ctl_field *f = fields; f->name; f++)
		has_labels |= f->metric == CTL_LABEL;
	json_array_foreach(list, i, other)
	{
		bool found = false, differs = false;

		for (const struct ctl_field *f = fields; f->name; f++) {
			const json_t *value = json_object_get(row, f->name);

			if (!tells_apart(f, has_labels))
				continue;
			found |= value != NULL;
			differs |= !json_equal(value, json_object_get(other, f->name));
		}
		if (found && !differs)
			return other;
	}
	return NULL;
}

static void note_all(
	const struct change *c, const struct ctl_field *fields, const json_t *before, json_t *out);

static void note_map(
	const struct change *c, const struct ctl_field *f, const json_t *before, json_t *map)
{
	const struct ctl_field item = {.name = f->name, .type = f->item};
	const char *key;
	json_t *value;

	/* By what was there before: the map gets members meanwhile. */
	json_object_foreach((json_t *)before, key, value) note(c, &item, key, before, map);
}

static void note_list(
	const struct change *c, const struct ctl_field *f, const json_t *before, json_t *list)
{
	json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
		note_all(c, f->fields, row_before(f->fields, before, row), row);
}

static void note_all(
	const struct change *c, const struct ctl_field *fields, const json_t *before, json_t *out)
{
	for (const struct ctl_field *f = fields; before && f->name; f++) {
		const json_t *was = json_object_get(before, f->name);
		json_t *is = json_object_get(out, f->name);

		if (f->type == CTL_INT || f->type == CTL_U64 || f->type == CTL_REAL)
			note(c, f, f->name, before, out);
		else if (f->type == CTL_OBJECT && is)
			note_all(c, f->fields, was, is);
		else if (f->type == CTL_MAP && f->item == CTL_U64)
			note_map(c, f, was, is);
		else if (f->type == CTL_LIST && f->item == CTL_OBJECT)
			note_list(c, f, was, is);
	}
}

/* ---- again ---- */

void cli_watch_print(struct cli *cli, const struct ctl_method *method, json_t *result)
{
	struct cli_watch *w = cli->watch;
	struct change c = {.text = !cli->json};
	json_t *shown = json_deep_copy(result), *time;
	struct cli_time now;

	cli->clock(cli->arg, &now);
	time = cli_time_text(&now);
	c.seconds = (double)(now.ns - w->time.ns) / 1e9;
	if (w->result && now.ns > w->time.ns)
		note_all(&c, method->result, w->result, shown);
	if (cli->json) {
		json_t *line = json_pack("{s:O,s:O}", "time", time, "result", shown);

		json_dumpf(line, cli->out, JSON_COMPACT);
		fputc('\n', cli->out);
		json_decref(line);
	} else {
		cli_new_screen(cli, !w->result);
		fprintf(cli->out, "%s\n", json_string_value(time));
		cli_text(cli->out, method->result, shown);
	}
	json_decref(time);
	json_decref(shown);
	json_decref(w->result);
	w->result = json_incref(result);
	w->time = now;
}

int cli_watch(struct cli *cli, unsigned ms, unsigned argc, const char *const *argv)
{
	struct cli_watch watch = {0};
	int rc;

	cli->watch = &watch;
	cli->pause(cli->arg, 0);
	do
		rc = cli_run(cli, argc, argv);
	while (!rc && !cli->quit && !cli->pause(cli->arg, ms));
	cli->watch = NULL;
	json_decref(watch.result);
	return rc;
}
