/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of commands, the request that a line is, and the help. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/inclinectl_cmd.h"
#include "lib/ctl/manager_schema.h"
#include "lib/ctl/near.h"

/* ---- the list of commands ---- */

static struct cli_command *commands; /* until the process ends */
static unsigned n_commands;

static int by_words(const void *a, const void *b)
{
	return strcmp(
		((const struct cli_command *)a)->words, ((const struct cli_command *)b)->words);
}

static void add_methods(const struct ctl_schema *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->methods[i].command)
			commands[n_commands++] =
				(struct cli_command){.words = s->methods[i].command,
					.method = &s->methods[i],
					.help = s->methods[i].help};
}

static const struct cli_command local[] = {
	{"doctor", &cli_doctor, .run = cli_run_doctor, .shorts = cli_doctor_shorts},
	{"top", &cli_top, .run = cli_run_top, .shorts = cli_top_shorts},
};

enum { N_LOCAL = sizeof(local) / sizeof(local[0]) };

static void build_commands(void)
{
	const struct ctl_schema *s = &ctl_switch_schema;
	unsigned most = s->n + ctl_manager_schema.n + N_LOCAL;

	for (const struct cli_own *own = cli_own; own->words; own++)
		most++;
	commands = calloc(most, sizeof(commands[0]));
	if (!commands)
		return;
	add_methods(s);
	add_methods(&ctl_manager_schema);
	for (const struct cli_own *own = cli_own; own->words; own++)
		commands[n_commands++] = (struct cli_command){.words = own->words,
			.method = ctl_find(s, own->method),
			.syntax = own->syntax,
			.help = own->help,
			.parse = own->parse};
	for (unsigned i = 0; i < N_LOCAL; i++) {
		commands[n_commands] = local[i];
		commands[n_commands++].help = local[i].method->help;
	}
	qsort(commands, n_commands, sizeof(commands[0]), by_words);
}

unsigned cli_n_commands(void)
{
	if (!n_commands)
		build_commands();
	return n_commands;
}

const struct cli_command *cli_command(unsigned i)
{
	return i < cli_n_commands() ? &commands[i] : NULL;
}

/* Number of words of a command if argv begins with them, else 0. */
static unsigned match(const char *words, unsigned argc, const char *const *argv)
{
	unsigned n = 0;

	while (*words) {
		size_t len = strcspn(words, " ");

		if (n == argc || strlen(argv[n]) != len || strncmp(argv[n], words, len) != 0)
			return 0;
		n++;
		words += len;
		words += strspn(words, " ");
	}
	return n;
}

static const struct cli_command *find_words(const char *words)
{
	for (unsigned i = 0; i < cli_n_commands(); i++)
		if (!strcmp(commands[i].words, words))
			return &commands[i];
	return NULL;
}

static const struct {
	const char *word, *command, *extra;
} aliases[] = {
	{"tables", "table list", NULL},
	{"groups", "group list", NULL},
	{"rings", "ring list", NULL},
	{"nodes", "stats", "nodes"},
};

const struct cli_command *cli_find(
	unsigned argc, const char *const *argv, unsigned *used, const char **extra)
{
	unsigned show = argc && !strcmp(argv[0], "show");

	*used = show;
	*extra = NULL;
	if (argc == show)
		return find_words("status");
	for (unsigned i = 0; i < cli_n_commands(); i++) {
		unsigned n = match(commands[i].words, argc - show, argv + show);

		if (!n)
			continue;
		*used = show + n;
		return &commands[i];
	}
	*used = show + 1;
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
		if (strcmp(aliases[i].word, argv[show]) != 0)
			continue;
		*extra = aliases[i].extra;
		return find_words(aliases[i].command);
	}
	/* "show group NAME" reads well. */
	if (show && !strcmp(argv[1], "group"))
		return find_words("group show");
	if (show && !strcmp(argv[1], "ring"))
		return find_words("ring show");
	if (show && !strcmp(argv[1], "table"))
		return find_words("table read");
	return NULL;
}

/* ---- words as the schema says ---- */

static const struct ctl_field *field_at(const struct ctl_field *fields, unsigned pos)
{
	for (; fields->name; fields++)
		if (fields->pos == pos)
			return fields;
	return NULL;
}

static const struct ctl_field *map_field(const struct ctl_field *fields)
{
	for (; fields->name; fields++)
		if (fields->type == CTL_MAP)
			return fields;
	return NULL;
}

static int set_once(json_t *params, const struct ctl_field *f, const char *word, char *err)
{
	json_t *value = cli_value(f, word);

	if (!value)
		return cli_refuse(err, -EINVAL, "%s: is not UTF-8", f->name);
	if (json_object_get(params, f->name)) {
		json_decref(value);
		return cli_refuse(err, -EINVAL, "%s: is given twice", f->name);
	}
	json_object_set_new(params, f->name, value);
	return 0;
}

static int not_an_option(const struct ctl_field *fields, const char *word, size_t len, char *err)
{
	char name[CTL_NEAR_LONGEST + 2];
	const char *near = NULL;

	snprintf(name, sizeof(name), "%.*s", (int)len, word + 2);
	for (; fields->name; fields++)
		if (!fields->pos)
			near = ctl_nearer(name, near, fields->name);
	return cli_refuse(err, -EINVAL, "%s: is not an option%s%s", word,
		near ? "; did you mean --" : "", near ? near : "");
}

/* "--name", "--name=value" or "--name value"; *i is moved over what was used. */
static int parse_option(const struct ctl_field *fields, unsigned argc, const char *const *argv,
	unsigned *i, json_t *params, char *err)
{
	const char *name = argv[*i] + 2, *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct ctl_field *f = fields;

	while (f->name && (f->pos || strlen(f->name) != len || strncmp(f->name, name, len) != 0))
		f++;
	if (!f->name)
		return not_an_option(fields, argv[*i], len, err);
	if (equals)
		return set_once(params, f, equals + 1, err);
	if (f->type == CTL_BOOL)
		return set_once(params, f, "true", err);
	if (*i + 1 == argc)
		return cli_refuse(err, -EINVAL, "%s: wants a value", argv[*i]);
	return set_once(params, f, argv[++*i], err);
}

/* "-n" becomes "--count". */
static const char *long_word(const char *const *shorts, const char *word)
{
	for (; shorts && shorts[0]; shorts += 2)
		if (!strcmp(shorts[0], word))
			return shorts[1];
	return word;
}

static int parse_generic(const struct ctl_field *fields, unsigned argc, const char *const *argv,
	json_t *params, char *err)
{
	const struct ctl_field *map = map_field(fields);
	unsigned pos = 1;
	int rc = 0;

	for (unsigned i = 0; i < argc && !rc; i++) {
		const struct ctl_field *f = field_at(fields, pos);

		if (!strncmp(argv[i], "--", 2)) {
			rc = parse_option(fields, argc, argv, &i, params, err);
		} else if (f) {
			rc = set_once(params, f, argv[i], err);
			pos++;
		} else if (map && strchr(argv[i], '=')) {
			if (!json_object_get(params, map->name))
				json_object_set_new(params, map->name, json_object());
			rc = cli_set_pair(json_object_get(params, map->name), argv[i], err);
		} else {
			rc = cli_refuse(err, -EINVAL, "%s: is one word too many", argv[i]);
		}
	}
	return rc;
}

/* The first word of a command is this but for a slip. */
static bool is_like(const char *words, const char *given)
{
	char first[CTL_NEAR_LONGEST + 1];

	snprintf(first, sizeof(first), "%.*s", (int)strcspn(words, " "), words);
	return ctl_distance(first, given) <= (strlen(given) < 4 ? 1 : 2);
}

/* Commands that begin with the word, or that look like it. */
static int not_a_command(const char *first, const char *word, char err[CLI_ERR_LEN])
{
	const size_t n = strlen(first);
	const char *sep = "; did you mean: ";
	size_t at;

	cli_refuse(err, -EINVAL, "%.64s: is not a command, see \"help\"", word);
	at = strlen(err);
	for (unsigned i = 0; i < cli_n_commands() && n; i++) {
		const char *words = commands[i].words;

		if (strncmp(words, first, n) && !is_like(words, first))
			continue;
		if (at + strlen(sep) + strlen(words) >= CLI_ERR_LEN)
			break;
		at += (size_t)snprintf(err + at, CLI_ERR_LEN - at, "%s%s", sep, words);
		sep = ", ";
	}
	return -EINVAL;
}

int cli_parse(unsigned argc, const char *const *argv, const struct cli_command **command,
	json_t **params, char err[CLI_ERR_LEN])
{
	const char *words[CLI_MAX_WORDS + 1], *extra;
	struct ctl_problem problem;
	char why[CLI_ERR_LEN];
	unsigned used, n = 0;
	const struct cli_command *c = cli_find(argc, argv, &used, &extra);

	if (!c)
		return not_a_command(argv[0], argv[used - 1], err);
	if (extra)
		words[n++] = extra;
	for (unsigned i = used; i < argc && n < CLI_MAX_WORDS; i++)
		words[n++] = long_word(c->shorts, argv[i]);
	json_t *out = json_object();
	int rc = c->parse ? c->parse(n, words, out, why)
			  : parse_generic(c->method->params, n, words, out, why);
	if (rc) {
		cli_refuse(err, rc, "%s: %s", c->words, why);
	} else if (ctl_check(c->method->params, out, "", &problem)) {
		rc = cli_refuse(err, -EINVAL, "%s: %s: %s", c->words, problem.path, problem.msg);
	}
	if (rc) {
		json_decref(out);
		return rc;
	}
	*command = c;
	*params = out;
	return 0;
}

/* ---- help ---- */

static void upper(const char *name, char *buf, size_t cap)
{
	size_t i = 0;

	for (; name[i] && i + 1 < cap; i++)
		buf[i] = (char)toupper((unsigned char)name[i]);
	buf[i] = '\0';
}

static size_t add_syntax(char *buf, size_t cap, size_t at, const struct ctl_field *f)
{
	char name[64];
	int n;

	upper(f->name, name, sizeof(name));
	if (f->pos)
		n = snprintf(buf + at, cap - at, f->required ? " %s" : " [%s]", name);
	else if (f->type == CTL_MAP)
		n = snprintf(buf + at, cap - at, " [FIELD=VALUE...]");
	else if (f->type == CTL_BOOL)
		n = snprintf(buf + at, cap - at, " [--%s]", f->name);
	else
		n = snprintf(buf + at, cap - at, " [--%s %s]", f->name, name);
	at += (size_t)n;
	return at < cap ? at : cap - 1;
}

const char *cli_syntax(const struct cli_command *command, char *buf, size_t cap)
{
	const struct ctl_field *f = command->method->params;
	size_t at = 0;

	buf[0] = '\0';
	if (command->syntax) {
		snprintf(buf, cap, " %s", command->syntax);
		return buf;
	}
	for (unsigned pos = 1; field_at(f, pos); pos++)
		at = add_syntax(buf, cap, at, field_at(f, pos));
	for (; f->name; f++)
		if (!f->pos)
			at = add_syntax(buf, cap, at, f);
	return buf;
}

static void help_one(FILE *out, const struct cli_command *c)
{
	char text[256];

	fprintf(out, "%s%s\n    %s\n", c->words, cli_syntax(c, text, sizeof(text)), c->help);
	if (c->syntax) {
		fprintf(out, "    Sends %s; its parameters are in docs/control-socket.md.\n",
			c->method->name);
		return;
	}
	for (const struct ctl_field *f = c->method->params; f->name; f++)
		fprintf(out, "    %s%-10s %s: %s\n", f->pos || f->type == CTL_MAP ? "  " : "--",
			f->name, ctl_type_text(f, text, sizeof(text)), f->help);
	for (const char *const *s = c->shorts; s && s[0]; s += 2)
		fprintf(out, "    %-12s short for %s\n", s[0], s[1]);
}

bool cli_help(FILE *out, unsigned argc, const char *const *argv)
{
	bool found = false;
	char text[256];

	if (argc && !strcmp(argv[0], "--markdown")) {
		ctl_markdown(&ctl_switch_schema, out);
		return true;
	}
	for (unsigned i = 0; i < cli_n_commands() && argc; i++) {
		const struct cli_command *c = &commands[i];
		unsigned n = 0;
		const char *at = c->words;

		/* All commands that begin with the words given. */
		while (n < argc && *at && !strncmp(at, argv[n], strlen(argv[n])) &&
			strchr(" ", at[strlen(argv[n])])) {
			at += strlen(argv[n++]);
			at += strspn(at, " ");
		}
		if (n < argc)
			continue;
		help_one(out, c);
		found = true;
	}
	for (unsigned i = 0; i < cli_n_commands() && !argc; i++)
		fprintf(out, "%s%s\n    %s\n", commands[i].words,
			cli_syntax(&commands[i], text, sizeof(text)), commands[i].help);
	if (!argc)
		fprintf(out,
			"help [COMMAND]\n    Explains a command.\nquit\n    Ends inclinectl.\n");
	return found || !argc;
}
