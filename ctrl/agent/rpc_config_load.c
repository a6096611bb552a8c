/* SPDX-License-Identifier: BSD-3-Clause */
/* The start-up file, read again while the switch runs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/agent/table_json.h"
#include "ctrl/config/switch_config.h"
#include "lib/ctl/config.h"
#include "lib/journal/journal.h"

/* The file, as a start would take it, without comments; NULL: *e says what is wrong. */
static json_t *read_file(const char *file, struct rpc_error *e)
{
	struct ctl_problem problem;
	json_error_t where;
	json_t *raw = json_load_file(file, JSON_REJECT_DUPLICATES, &where), *config;

	if (!raw && where.line > 0)
		rpc_fail(
			e, -EINVAL, "", "%s:%d:%d: %s", file, where.line, where.column, where.text);
	else if (!raw)
		rpc_fail(e, -ENOENT, "", "%s", where.text);
	if (!raw)
		return NULL;
	config = ctl_strip_comments(raw);
	json_decref(raw);
	if (!config)
		rpc_fail(e, -ENOMEM, "", "out of memory");
	else if (ctl_check_value(&ctl_switch_config, config, "", &problem)) {
		rpc_fail(e, -EINVAL, problem.path, "%s", problem.msg);
		json_decref(config);
		config = NULL;
	}
	return config;
}

static void note_differences(const json_t *of, const json_t *to, bool only_missing, json_t *names)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)of, key, value)
	{
		const json_t *other = json_object_get(to, key);

		if (!strcmp(key, "tables") || !strcmp(key, "startup_file"))
			continue;
		if (!other || (!only_missing && !json_equal(value, (json_t *)other)))
			json_array_append_new(names, json_string(key));
	}
}

/* Keys in which the file is not what the switch was started with. */
static json_t *restart_for(struct sw *sw, const json_t *config)
{
	json_t *given = sw_config_json(sw), *running = ctl_strip_comments(given);
	json_t *names = json_array();

	note_differences(config, running, false, names);
	note_differences(running, config, true, names);
	json_decref(running);
	json_decref(given);
	return names;
}

int rpc_config_load(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	struct table_change change;
	json_t *config;
	int rc;

	(void)params;
	if (!a->startup_file[0])
		return rpc_fail(e, -ENOENT, "",
			"the switch was started without a configuration file to load");
	config = read_file(a->startup_file, e);
	if (!config)
		return e->err;
	rc = tables_replace(a->sw, json_object_get(config, "tables"), &change, e);
	if (!rc)
		*result = json_pack("{s:o,s:i,s:i,s:i,s:i,s:o}", "file", rpc_text(a->startup_file),
			"added", (int)change.added, "changed", (int)change.changed, "removed",
			(int)change.removed, "kept", (int)change.kept, "restart",
			restart_for(a->sw, config));
	json_decref(config);
	return rc;
}

/* What has become of it, in a line that may be long. */
static void say_loaded(const json_t *result, FILE *out)
{
	const char *file, *name;
	int added, changed, removed, kept;
	json_t *restart, *item;
	size_t i;

	if (json_unpack((json_t *)result, "{s:s,s:i,s:i,s:i,s:i,s:o}", "file", &file, "added",
		    &added, "changed", &changed, "removed", &removed, "kept", &kept, "restart",
		    &restart))
		return;
	fprintf(out, "incline-switch: %s: tables loaded: %d added, %d changed, %d removed, %d kept",
		file, added, changed, removed, kept);
	json_array_foreach(restart, i, item)
	{
		name = json_string_value(item);
		fprintf(out, "%s%s", i ? ", " : "; take a restart: ", name);
	}
	fputc('\n', out);
}

void agent_load(struct agent *a, FILE *out)
{
	static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"config.load\"}";
	char *answer = agent_handle_line(a, NULL, request, sizeof(request) - 1);
	json_t *json = answer ? json_loads(answer, 0, NULL) : NULL;
	const json_t *result = json_object_get(json, "result");
	const char *why =
		json_string_value(json_object_get(json_object_get(json, "error"), "message"));

	if (result)
		say_loaded(result, out);
	else
		journal_to(out, JOURNAL_ERR,
			"incline-switch: %s: not loaded, nothing has changed: %s", a->startup_file,
			why ? why : "out of memory");
	json_decref(json);
	free(answer);
}
