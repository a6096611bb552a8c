/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "apps/inclinectl.h"

static int refuse(char *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int refuse(char *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, CLI_ERR_LEN, fmt, ap);
	va_end(ap);
	return code;
}

static bool all_digits(const char *text)
{
	return text[0] && !text[strspn(text, "0123456789")];
}

static int parse_int(const char *text, json_int_t *n)
{
	char *end;

	errno = 0;
	*n = strtoll(text, &end, 0);
	return errno || end == text || *end ? -EINVAL : 0;
}

/* ---- commands that are not their method's parameters ---- */

static int load_file(const char *path, json_t **out, char *err)
{
	bool is_stdin = !strcmp(path, "-");
	json_error_t error;
	json_t *json;
	FILE *in = is_stdin ? stdin : fopen(path, "re");

	if (!in)
		return refuse(err, -errno, "%s: %s", path, strerror(errno));
	json = json_loadf(in, JSON_REJECT_DUPLICATES, &error);
	if (!is_stdin)
		fclose(in);
	if (!json)
		return refuse(err, -EINVAL, "%s: line %d, column %d: %s", path, error.line,
			error.column, error.text);
	*out = ctl_strip_comments(json);
	json_decref(json);
	return 0;
}

/* A file that holds the parameters. */
static int parse_file(unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	json_t *file = NULL;

	if (argc != 1)
		return refuse(err, -EINVAL, "wants one file");
	int rc = load_file(argv[0], &file, err);
	if (!rc && !json_is_object(file))
		rc = refuse(err, -EINVAL, "%s: must hold one object", argv[0]);
	if (!rc)
		json_object_update(params, file);
	json_decref(file);
	return rc;
}

/* The file holds the parameters, or just the list of updates. */
static int parse_table_write(
	unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	json_t *file = NULL;

	if (argc != 1)
		return refuse(err, -EINVAL, "wants one file");
	int rc = load_file(argv[0], &file, err);
	if (!rc && json_is_array(file))
		json_object_set(params, "updates", file);
	else if (!rc)
		json_object_update(params, file);
	json_decref(file);
	return rc;
}

/* "INDEX=QPN" */
static int parse_endpoint(const char *word, json_t *list, char *err)
{
	const char *equals = strchr(word, '=');
	char index[16];
	json_int_t i, qpn;

	if (!equals || (size_t)(equals - word) >= sizeof(index))
		return refuse(err, -EINVAL, "%s: must be INDEX=QPN", word);
	memcpy(index, word, (size_t)(equals - word));
	index[equals - word] = '\0';
	if (parse_int(index, &i) || parse_int(equals + 1, &qpn))
		return refuse(err, -EINVAL, "%s: must be INDEX=QPN", word);
	json_array_append_new(list, json_pack("{s:I,s:I}", "index", i, "qpn", qpn));
	return 0;
}

static json_t *group_ref(const char *word)
{
	return all_digits(word) ? json_integer(strtoll(word, NULL, 10)) : json_string(word);
}

static int parse_group_activate(
	unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	json_t *list = json_array();
	int rc = 0;

	if (argc)
		json_object_set_new(params, "group", group_ref(argv[0]));
	for (unsigned i = 1; i < argc && !rc; i++)
		rc = parse_endpoint(argv[i], list, err);
	if (json_array_size(list))
		json_object_set(params, "endpoints", list);
	json_decref(list);
	return rc;
}

/* "INPUT=QPN", or "parent=QPN" */
static int parse_ring_activate(
	unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	json_t *list = json_array();
	json_int_t qpn, input;
	int rc = 0;

	if (argc)
		json_object_set_new(params, "ring", group_ref(argv[0]));
	for (unsigned i = 1; i < argc && !rc; i++) {
		const char *equals = strchr(argv[i], '=');
		char word[16] = "";

		if (equals && (size_t)(equals - argv[i]) < sizeof(word))
			memcpy(word, argv[i], (size_t)(equals - argv[i]));
		if (!equals || parse_int(equals + 1, &qpn) ||
			(strcmp(word, "parent") != 0 && parse_int(word, &input)))
			rc = refuse(err, -EINVAL, "%s: must be INPUT=QPN or parent=QPN", argv[i]);
		else if (!strcmp(word, "parent"))
			json_object_set_new(params, "parent_qpn", json_integer(qpn));
		else
			json_array_append_new(
				list, json_pack("{s:I,s:I}", "input", input, "qpn", qpn));
	}
	if (json_array_size(list))
		json_object_set(params, "leaves", list);
	json_decref(list);
	return rc;
}

static int set_pair(json_t *map, const char *word, char *err)
{
	const char *equals = strchr(word, '=');
	json_t *value = json_string(equals + 1);
	char *name = strndup(word, (size_t)(equals - word));
	int rc = 0;

	if (json_object_get(map, name))
		rc = refuse(err, -EINVAL, "%s: is given twice", name);
	else if (!value || json_object_set(map, name, value))
		rc = refuse(err, -EINVAL, "%s: is not UTF-8", name);
	json_decref(value);
	free(name);
	return rc;
}

/* TABLE FIELD=VALUE... [ACTION [PARAM=VALUE...]] [--priority N]: pairs before the action's name are
 * the key, those behind it its data. */
static int parse_update(unsigned argc, const char *const *argv, const char *op, json_t *params,
	char err[CLI_ERR_LEN])
{
	json_t *key = json_object(), *data = NULL;
	json_t *u = json_pack("{s:s,s:o}", "op", op, "key", key);
	json_int_t n;
	int rc = 0;

	json_object_set_new(params, "updates", json_pack("[o]", u));
	if (argc)
		json_object_set_new(u, "table", json_string(argv[0]));
	for (unsigned i = 1; i < argc && !rc; i++) {
		if (!strcmp(argv[i], "--priority")) {
			if (++i == argc || parse_int(argv[i], &n))
				rc = refuse(err, -EINVAL, "--priority: wants an integer");
			else
				json_object_set_new(u, "priority", json_integer(n));
		} else if (strchr(argv[i], '=')) {
			rc = set_pair(data ? data : key, argv[i], err);
		} else if (data) {
			rc = refuse(err, -EINVAL, "%s: must be PARAM=VALUE", argv[i]);
		} else {
			json_object_set_new(u, "action", json_string(argv[i]));
			data = json_object();
			json_object_set_new(u, "data", data);
		}
	}
	return rc;
}

static int parse_insert(
	unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	return parse_update(argc, argv, "insert", params, err);
}

static int parse_modify(
	unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	return parse_update(argc, argv, "modify", params, err);
}

static int parse_delete(
	unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	return parse_update(argc, argv, "delete", params, err);
}

static const struct {
	const char *words, *method, *syntax, *help;
	int (*parse)(unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN]);
} own[] = {
	{"table insert", "table.write",
		"TABLE FIELD=VALUE... ACTION [PARAM=VALUE...] [--priority N]",
		"Adds an entry; fails if there is one with this key.", parse_insert},
	{"table modify", "table.write",
		"TABLE FIELD=VALUE... ACTION [PARAM=VALUE...] [--priority N]",
		"Replaces the action of an entry.", parse_modify},
	{"table delete", "table.write", "TABLE FIELD=VALUE... [--priority N]", "Removes an entry.",
		parse_delete},
	{"table write", "table.write", "FILE",
		"Applies the updates in a JSON file (- for standard input): all or none.",
		parse_table_write},
	{"group create", "group.create", "FILE",
		"Installs the INC group in a JSON file (- for standard input).", parse_file},
	{"ring create", "ring.create", "FILE",
		"Installs the NetReduce ring in a JSON file (- for standard input).", parse_file},
	{"ring activate", "ring.activate", "RING [INPUT=QPN...] [parent=QPN]",
		"Starts an installed ring, with the QPNs not known before.", parse_ring_activate},
	{"group activate", "group.activate", "GROUP [INDEX=QPN...]",
		"Starts an installed group, with the QPNs not known before.", parse_group_activate},
};

enum { N_OWN = sizeof(own) / sizeof(own[0]), MAX_COMMANDS = 64 };

/* ---- the list of commands ---- */

static struct cli_command commands[MAX_COMMANDS];
static unsigned n_commands;

static int by_words(const void *a, const void *b)
{
	return strcmp(
		((const struct cli_command *)a)->words, ((const struct cli_command *)b)->words);
}

static void build_commands(void)
{
	const struct ctl_schema *s = &ctl_switch_schema;

	for (unsigned i = 0; i < s->n && n_commands < MAX_COMMANDS; i++)
		if (s->methods[i].command)
			commands[n_commands++] =
				(struct cli_command){.words = s->methods[i].command,
					.method = &s->methods[i],
					.help = s->methods[i].help};
	for (unsigned i = 0; i < N_OWN && n_commands < MAX_COMMANDS; i++)
		commands[n_commands++] = (struct cli_command){.words = own[i].words,
			.method = ctl_find(s, own[i].method),
			.syntax = own[i].syntax,
			.help = own[i].help,
			.parse = own[i].parse};
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

static json_t *value_of(const struct ctl_field *f, const char *word)
{
	json_int_t n;

	switch (f->type) {
	case CTL_BOOL:
		if (!strcmp(word, "true") || !strcmp(word, "false"))
			return json_boolean(word[0] == 't');
		break;
	case CTL_INT:
		if (!parse_int(word, &n))
			return json_integer(n);
		break;
	case CTL_REF:
		return group_ref(word);
	default:
		break;
	}
	return json_string(word); /* if it should not be one, ctl_check says so */
}

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
	json_t *value = value_of(f, word);

	if (!value)
		return refuse(err, -EINVAL, "%s: is not UTF-8", f->name);
	if (json_object_get(params, f->name)) {
		json_decref(value);
		return refuse(err, -EINVAL, "%s: is given twice", f->name);
	}
	json_object_set_new(params, f->name, value);
	return 0;
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
		return refuse(err, -EINVAL, "%s: is not an option", argv[*i]);
	if (equals)
		return set_once(params, f, equals + 1, err);
	if (f->type == CTL_BOOL)
		return set_once(params, f, "true", err);
	if (*i + 1 == argc)
		return refuse(err, -EINVAL, "%s: wants a value", argv[*i]);
	return set_once(params, f, argv[++*i], err);
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
			rc = set_pair(json_object_get(params, map->name), argv[i], err);
		} else {
			rc = refuse(err, -EINVAL, "%s: is one word too many", argv[i]);
		}
	}
	return rc;
}

/* Is one the other with at most so many letters changed, left out or put in? */
static bool is_like(const char *a, const char *b, unsigned changes)
{
	while (*a && *a == *b)
		a++, b++;
	if (!*a && !*b)
		return true;
	if (!changes--)
		return false;
	return (*a && is_like(a + 1, b, changes)) || (*b && is_like(a, b + 1, changes)) ||
	       (*a && *b && is_like(a + 1, b + 1, changes));
}

/* Commands that begin with the word, or that look like it. */
static int not_a_command(const char *first, const char *word, char err[CLI_ERR_LEN])
{
	const size_t n = strlen(first);
	const char *sep = "; did you mean: ";
	size_t at;

	refuse(err, -EINVAL, "%.64s: is not a command, see \"help\"", word);
	at = strlen(err);
	for (unsigned i = 0; i < cli_n_commands() && n; i++) {
		const char *words = commands[i].words;

		if (strncmp(words, first, n) && !is_like(words, first, n < 4 ? 1 : 2))
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
		words[n++] = argv[i];
	json_t *out = json_object();
	int rc = c->parse ? c->parse(n, words, out, why)
			  : parse_generic(c->method->params, n, words, out, why);
	if (rc) {
		refuse(err, rc, "%s: %s", c->words, why);
	} else if (ctl_check(c->method->params, out, "", &problem)) {
		rc = refuse(err, -EINVAL, "%s: %s: %s", c->words, problem.path, problem.msg);
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
