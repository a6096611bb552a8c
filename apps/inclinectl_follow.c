/* SPDX-License-Identifier: BSD-3-Clause */
/* "events -f": what has happened, and then what happens, a line each. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "apps/inclinectl_cmd.h"

enum { PAUSE_MS = 200 };

static bool is_follow(const char *word)
{
	return !strcmp(word, "-f") || !strcmp(word, "--follow");
}

bool cli_is_follow(unsigned argc, const char *const *argv)
{
	bool follow = false;

	for (unsigned i = 1; i < argc; i++)
		follow |= is_follow(argv[i]);
	return follow && !strcmp(argv[0], "events");
}

/* "12 71823000112 port_down port=h0" */
static void put_event(struct cli *cli, const json_t *event)
{
	const struct ctl_field *f = ctl_find(&ctl_switch_schema, "event.list")->result;
	const char *sep = "";

	if (cli->json) {
		json_dumpf(event, cli->out, JSON_COMPACT);
		fputc('\n', cli->out);
		return;
	}
	while (strcmp(f->name, "events") != 0)
		f++;
	for (f = f->fields; f->name; f++) {
		const json_t *v = json_object_get(event, f->name);

		if (!v)
			continue;
		fputs(sep, cli->out);
		if (!f->required)
			fprintf(cli->out, "%s=", f->name);
		cli_value_text(cli->out, v);
		sep = " ";
	}
	fputc('\n', cli->out);
}

static void put_missed(struct cli *cli, uint64_t missed)
{
	if (missed && cli->json)
		fprintf(cli->out, "{\"missed\":%" PRIu64 "}\n", missed);
	else if (missed)
		fprintf(cli->out, "missed %" PRIu64 "\n", missed);
}

/* One look. A switch that was started again counts from 0: then *again is true, and what has
 * happened since its start is still to be asked for. */
static int look(struct cli *cli, json_t *params, bool *again, struct ctl_error *e)
{
	uint64_t asked = 0, next = 0, missed = 0;
	const bool has_from = ctl_get_u64(json_object_get(params, "from"), &asked) == 0;
	json_t *result = NULL, *event;
	size_t i;
	int rc = cli->call(cli->arg, "event.list", params, &result, e);

	if (rc)
		return rc;
	ctl_get_u64(json_object_get(result, "next"), &next);
	ctl_get_u64(json_object_get(result, "missed"), &missed);
	*again = has_from && next < asked;
	put_missed(cli, missed);
	json_array_foreach(json_object_get(result, "events"), i, event) put_event(cli, event);
	json_object_set_new(params, "from", ctl_u64(*again ? 0 : next));
	if (*again)
		fprintf(cli->err, "%sevents: the switch was started again\n", cli->where);
	fflush(cli->out);
	json_decref(result);
	return 0;
}

int cli_follow(struct cli *cli, unsigned argc, const char *const *argv)
{
	const struct cli_command *command;
	const char *words[CLI_MAX_WORDS];
	char err[CLI_ERR_LEN];
	struct ctl_error e;
	json_t *params = NULL;
	unsigned n = 0;
	bool again = false;

	for (unsigned i = 0; i < argc && n < CLI_MAX_WORDS; i++)
		if (!is_follow(argv[i]))
			words[n++] = argv[i];
	int rc = cli_parse(n, words, &command, &params, err);
	if (rc) {
		fprintf(cli->err, "error: %s%s\n", cli->where, err);
		return CLI_USAGE;
	}
	cli->pause(cli->arg, 0);
	do
		rc = look(cli, params, &again, &e);
	while (!rc && (again || !cli->pause(cli->arg, PAUSE_MS)));
	if (rc)
		fprintf(cli->err, "error: %sevents: %s%s%s\n", cli->where, e.path,
			e.path[0] ? ": " : "", e.msg);
	json_decref(params);
	return rc ? CLI_FAILED : CLI_OK;
}
