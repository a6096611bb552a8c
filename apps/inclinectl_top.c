/* SPDX-License-Identifier: BSD-3-Clause */
/* "top": reads the switch's counters again and again, and shows the rates between two reads. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "apps/inclinectl_cmd.h"
#include "apps/inclinectl_rates.h"

static const struct ctl_field top_params[] = {
	{"count", CTL_INT, .min = 1, .max = INT32_MAX,
		.help = "end after so many; default: go on until it is interrupted"},
	{"once", CTL_BOOL, .help = "as --count 1"},
	{"interval", CTL_INT, .min = 1, .max = 3600,
		.help = "seconds between two reads; default 1"},
	{0}};

const struct ctl_method cli_top = {"top", "top",
	"Shows what the switch does now: rates of ports, groups and who they wait for, workers, "
	"losses that go on. With --json a line for each time.",
	false, top_params, rates_result};

const char *const cli_top_shorts[] = {"-n", "--count", "-i", "--interval", NULL};

/* Puts a method's result, or a list of it, into the read. What this connection may not know is
 * left out. */
static int ask(struct cli *cli, json_t *read, const char *name, const char *method,
	const json_t *params, const char *member, struct ctl_error *e)
{
	json_t *result = NULL;
	int rc = cli->call(cli->arg, method, params, &result, e);

	if (rc)
		return e->code == CTL_NOT_ALLOWED ? 0 : rc;
	json_t *value = member ? json_object_get(result, member) : result;
	if (value)
		json_object_set(read, name, value);
	json_decref(result);
	return 0;
}

/* A group that has ended since it was listed waits for nobody. */
static int ask_waiting(struct cli *cli, json_t *read, struct ctl_error *e)
{
	json_t *waiting = json_object(), *group;
	size_t i;
	int rc = 0;

	json_object_set_new(read, "waiting", waiting);
	json_array_foreach(json_object_get(read, "groups"), i, group)
	{
		const char *name = json_string_value(json_object_get(group, "name"));
		const char *state = json_string_value(json_object_get(group, "state"));
		json_t *params;

		if (i == RATES_MAX_GROUPS || rc)
			break;
		if (!name || !state || strcmp(state, "active") != 0)
			continue;
		params = json_pack("{s:s}", "group", name);
		rc = ask(cli, waiting, name, "group.show", params, "waiting", e);
		if (rc && e->code == CTL_REFUSED)
			rc = 0;
		json_decref(params);
	}
	return rc;
}

/* New reference, or NULL and the error. */
static json_t *read_switch(struct cli *cli, struct ctl_error *e)
{
	static const struct {
		const char *name, *method, *member;
	} parts[] = {
		{"status", "status", NULL},
		{"ports", "port.list", "ports"},
		{"workers", "worker.list", "workers"},
		{"groups", "group.list", "groups"},
		{"drops", "drops.get", "drops"},
	};
	json_t *read = json_object();
	struct cli_time now;
	int rc = 0;

	cli->clock(cli->arg, &now);
	json_object_set_new(read, "ns", ctl_u64(now.ns));
	json_object_set_new(read, "time", cli_time_text(&now));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !rc; i++)
		rc = ask(cli, read, parts[i].name, parts[i].method, NULL, parts[i].member, e);
	if (!rc)
		rc = ask_waiting(cli, read, e);
	if (!rc)
		return read;
	json_decref(read);
	return NULL;
}

static void show(struct cli *cli, const json_t *before, const json_t *after, bool first)
{
	json_t *rates = rates_between(before, after);

	if (!rates)
		return;
	if (cli->json) {
		json_dumpf(rates, cli->out, JSON_COMPACT);
		fputc('\n', cli->out);
	} else {
		cli_new_screen(cli, first);
		cli_text(cli->out, rates_result, rates);
	}
	fflush(cli->out);
	json_decref(rates);
}

int cli_run_top(struct cli *cli, const json_t *params)
{
	json_int_t count = json_integer_value(json_object_get(params, "count"));
	json_int_t interval = json_integer_value(json_object_get(params, "interval"));
	struct ctl_error e = {0};
	json_t *before, *after;
	bool first = true;

	if (json_is_true(json_object_get(params, "once"))) {
		if (count) {
			fprintf(cli->err, "error: %stop: count: not with once\n", cli->where);
			return CLI_USAGE;
		}
		count = 1;
	}
	cli->pause(cli->arg, 0);
	before = read_switch(cli, &e);
	while (before) {
		if (cli->pause(cli->arg, (unsigned)(interval ? interval : 1) * 1000)) {
			json_decref(before);
			return CLI_OK;
		}
		after = read_switch(cli, &e);
		if (after)
			show(cli, before, after, first);
		first = false;
		json_decref(before);
		before = after;
		if (before && count && --count == 0) {
			json_decref(before);
			return CLI_OK;
		}
	}
	fprintf(cli->err, "error: %stop: %s%s%s\n", cli->where, e.path, e.path[0] ? ": " : "",
		e.msg);
	return CLI_FAILED;
}
