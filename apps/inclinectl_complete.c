/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "apps/inclinectl.h"

struct offer {
	const char *partial;
	cli_offer_fn fn;
	void *arg;
};

static void offer(const struct offer *o, const char *candidate)
{
	if (!strncmp(candidate, o->partial, strlen(o->partial)))
		o->fn(o->arg, candidate);
}

/* ---- what the switch knows ---- */

static json_t *ask(struct cli *cli, const char *method)
{
	struct ctl_error e;
	json_t *result = NULL;

	return cli->call(cli->arg, method, NULL, &result, &e) ? NULL : result;
}

/* Names in a list of objects. */
static void offer_names(const struct offer *o, const json_t *list)
{
	json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		const char *name = json_string_value(json_object_get(item, "name"));

		if (name)
			offer(o, name);
	}
}

static void offer_from(struct cli *cli, const struct offer *o, const char *method, const char *list)
{
	json_t *result = ask(cli, method);

	offer_names(o, json_object_get(result, list));
	json_decref(result);
}

/* Tables as pipeline.get describes them; borrowed. */
static const json_t *tables(struct cli *cli)
{
	if (!cli->pipeline)
		cli->pipeline = ask(cli, "pipeline.get");
	return json_object_get(cli->pipeline, "tables");
}

static const json_t *named(const json_t *list, const char *name)
{
	json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		const char *have = json_string_value(json_object_get(item, "name"));

		if (have && !strcmp(have, name))
			return item;
	}
	return NULL;
}

/* ---- fields of tables: FIELD=VALUE ---- */

/* Is "name=..." among the words already? */
static bool is_given(const char *name_equals, unsigned argc, const char *const *argv)
{
	for (unsigned i = 0; i < argc; i++)
		if (!strncmp(argv[i], name_equals, strlen(name_equals)))
			return true;
	return false;
}

/* "in=" while the name is typed, then "in=p0" for what has names. */
static void offer_fields(struct cli *cli, const struct offer *o, const json_t *fields,
	unsigned argc, const char *const *argv)
{
	const char *equals = strchr(o->partial, '=');
	char text[256];
	json_t *item;
	size_t i;

	json_array_foreach(fields, i, item)
	{
		const char *name = json_string_value(json_object_get(item, "name"));
		const char *type = json_string_value(json_object_get(item, "type"));

		snprintf(text, sizeof(text), "%s=", name ? name : "");
		if (!equals) {
			if (!is_given(text, argc, argv))
				offer(o, text);
			continue;
		}
		if (strncmp(text, o->partial, strlen(text)) != 0 || !type)
			continue;
		json_t *ports = strcmp(type, "port") ? NULL : ask(cli, "port.list"), *port;
		size_t k;
		json_array_foreach(json_object_get(ports, "ports"), k, port)
		{
			snprintf(text, sizeof(text), "%s=%s", name,
				json_string_value(json_object_get(port, "name")));
			offer(o, text);
		}
		json_decref(ports);
		if (!strcmp(type, "bool")) {
			snprintf(text, sizeof(text), "%s=true", name);
			offer(o, text);
			snprintf(text, sizeof(text), "%s=false", name);
			offer(o, text);
		}
	}
}

/* The words after "table insert|modify|delete|read TABLE". */
static void offer_entry(struct cli *cli, const struct offer *o, const char *table, unsigned argc,
	const char *const *argv, bool with_action)
{
	const json_t *t = named(tables(cli), table), *action = NULL;
	unsigned i = 0;

	while (i < argc && with_action && !action) {
		if (!strchr(argv[i], '=') && argv[i][0] != '-')
			action = named(json_object_get(t, "actions"), argv[i]);
		i++;
	}
	if (action) {
		offer_fields(cli, o, json_object_get(action, "params"), argc - i, argv + i);
		return;
	}
	offer_fields(cli, o, json_object_get(t, "keys"), argc, argv);
	if (with_action)
		offer_names(o, json_object_get(t, "actions"));
}

/* ---- parameters ---- */

static void offer_value(struct cli *cli, const struct offer *o, const struct ctl_field *f)
{
	for (unsigned i = 0; f->values && f->values[i]; i++)
		offer(o, f->values[i]);
	if (!f->complete)
		return;
	if (!strcmp(f->complete, "table"))
		offer_names(o, tables(cli));
	else if (!strcmp(f->complete, "group"))
		offer_from(cli, o, "group.list", "groups");
	else if (!strcmp(f->complete, "ring"))
		offer_from(cli, o, "ring.list", "rings");
	else if (!strcmp(f->complete, "port"))
		offer_from(cli, o, "port.list", "ports");
}

static void offer_options(const struct offer *o, const struct ctl_field *fields)
{
	char text[64];

	for (; fields->name; fields++) {
		if (fields->pos || fields->type == CTL_MAP)
			continue;
		snprintf(text, sizeof(text), "--%s", fields->name);
		offer(o, text);
	}
}

static const struct ctl_field *option_named(const struct ctl_field *fields, const char *word)
{
	for (; fields->name && !strncmp(word, "--", 2); fields++)
		if (!fields->pos && !strcmp(fields->name, word + 2) && fields->type != CTL_BOOL)
			return fields;
	return NULL;
}

static void offer_generic(struct cli *cli, const struct offer *o, const struct cli_command *c,
	unsigned argc, const char *const *argv)
{
	const struct ctl_field *fields = c->method->params, *f;
	unsigned pos = 1;

	f = argc ? option_named(fields, argv[argc - 1]) : NULL;
	if (f) {
		offer_value(cli, o, f);
		return;
	}
	for (unsigned i = 0; i < argc; i++) {
		if (option_named(fields, argv[i]))
			i++; /* and its value */
		else if (strncmp(argv[i], "--", 2) != 0)
			pos++;
	}
	for (f = fields; f->name; f++)
		if (f->pos == pos)
			offer_value(cli, o, f);
	if (argc && !strcmp(c->words, "table read"))
		offer_entry(cli, o, argv[0], argc - 1, argv + 1, false);
	offer_options(o, fields);
}

static void offer_own(struct cli *cli, const struct offer *o, const struct cli_command *c,
	unsigned argc, const char *const *argv)
{
	bool table = !strncmp(c->syntax, "TABLE", 5);

	if (table && !argc)
		offer_names(o, tables(cli));
	else if (table)
		offer_entry(
			cli, o, argv[0], argc - 1, argv + 1, strcmp(c->words, "table delete") != 0);
	else if (!strncmp(c->syntax, "GROUP", 5) && !argc)
		offer_from(cli, o, "group.list", "groups");
	else if (!strncmp(c->syntax, "PORT", 4) && !argc)
		offer_from(cli, o, "port.list", "ports");
	else if (!strncmp(c->syntax, "RING", 4) && !argc)
		offer_from(cli, o, "ring.list", "rings");
}

/* ---- commands ---- */

/* The next word of every command that begins with the words before. */
static void offer_commands(const struct offer *o, unsigned argc, const char *const *argv)
{
	const char *before = NULL;
	size_t before_len = 0;

	for (unsigned i = 0; i < cli_n_commands(); i++) {
		const char *at = cli_command(i)->words;
		char word[64];
		unsigned n = 0;

		while (n < argc && !strncmp(at, argv[n], strlen(argv[n])) &&
			at[strlen(argv[n])] == ' ')
			at += strlen(argv[n++]) + 1;
		size_t len = strcspn(at, " ");
		bool again = before && before_len == len && !strncmp(before, at, len);
		if (n < argc || again || len >= sizeof(word))
			continue;
		memcpy(word, at, len);
		word[len] = '\0';
		offer(o, word);
		before = at; /* the commands are sorted */
		before_len = len;
	}
}

void cli_complete(struct cli *cli, unsigned argc, const char *const *argv, const char *partial,
	cli_offer_fn fn, void *arg)
{
	struct offer o = {partial, fn, arg};
	const struct cli_command *c;
	const char *extra;
	unsigned used;

	bool prefix = argc && (!strcmp(argv[0], "show") || !strcmp(argv[0], "help"));

	offer_commands(&o, argc - prefix, argv + prefix);
	if (!argc) {
		offer(&o, "help");
		offer(&o, "quit");
		offer(&o, "show");
	}
	bool command = argc > prefix && strcmp(argv[0], "help") != 0;
	c = command ? cli_find(argc, argv, &used, &extra) : NULL;
	if (!c)
		return;
	if (c->parse)
		offer_own(cli, &o, c, argc - used, argv + used);
	else
		offer_generic(cli, &o, c, argc - used, argv + used);
}
