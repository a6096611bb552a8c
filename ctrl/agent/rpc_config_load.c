/* SPDX-License-Identifier: BSD-3-Clause */
/* The start-up file, read again while the switch runs. */
#include <errno.h>
#include <string.h>

#include "ctrl/agent/table_json.h"
#include "ctrl/config/switch_config.h"
#include "lib/ctl/config.h"

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
