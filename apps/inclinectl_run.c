/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <histedit.h>
#include <stdlib.h>
#include <string.h>

#include "apps/inclinectl_cmd.h"

void cli_forget(struct cli *cli)
{
	json_decref(cli->pipeline);
	cli->pipeline = NULL;
}

static void print_result(struct cli *cli, const struct ctl_method *method, json_t *result)
{
	if (cli->watch) {
		cli_watch_print(cli, method, result);
	} else if (cli->json) {
		json_dumpf(result, cli->out, JSON_INDENT(2));
		fputc('\n', cli->out);
	} else {
		cli_text(cli->out, method->result, result);
	}
	fflush(cli->out);
}

/* ---- paging ---- */

/* Methods that answer page by page: without an explicit limit, all pages are fetched. */
static const struct {
	const char *method, *cursor, *list;
	bool final; /* `next` stays in the result */
} paged[] = {
	{"table.read", "offset", "entries", false},
	{"trace.read", "from", "records", true},
};

enum { PAGE = 1000 };

static int find_paged(const char *method, const json_t *params)
{
	for (int i = 0; i < (int)(sizeof(paged) / sizeof(paged[0])); i++)
		if (!strcmp(paged[i].method, method) && !json_object_get(params, "limit"))
			return i;
	return -1;
}

static int call_paged(
	struct cli *cli, int which, const json_t *params, json_t **result, struct ctl_error *e)
{
	json_t *ask = json_copy((json_t *)params), *all = NULL;
	int rc;

	json_object_set_new(ask, "limit", json_integer(PAGE));
	for (;;) {
		json_t *page = NULL;

		rc = cli->call(cli->arg, paged[which].method, ask, &page, e);
		if (rc)
			break;
		const json_t *list = json_object_get(page, paged[which].list);
		json_t *next = json_object_get(page, "next");
		bool last = !next || !json_array_size(list);

		json_object_set(ask, paged[which].cursor, next);
		if (!all) {
			all = json_incref(page);
		} else {
			json_array_extend(json_object_get(all, paged[which].list), (json_t *)list);
			json_object_set(all, "next", next);
		}
		json_decref(page);
		if (last)
			break;
	}
	json_decref(ask);
	if (rc) {
		json_decref(all);
		return rc;
	}
	if (!paged[which].final)
		json_object_del(all, "next");
	*result = all;
	return 0;
}

/* ---- commands ---- */

static int run_help(struct cli *cli, unsigned argc, const char *const *argv)
{
	const bool found = cli_help(cli->out, argc, argv);

	fflush(cli->out);
	if (!found)
		fprintf(cli->err, "error: %shelp: no command begins with \"%s\"\n", cli->where,
			argv[0]);
	return found ? CLI_OK : CLI_USAGE;
}

static int run_words(struct cli *cli, unsigned argc, const char *const *argv)
{
	const struct cli_command *command;
	json_t *params = NULL, *result = NULL;
	struct ctl_error e;
	char err[CLI_ERR_LEN];

	if (argc && (!strcmp(argv[0], "quit") || !strcmp(argv[0], "exit"))) {
		cli->quit = true;
		return CLI_OK;
	}
	if (argc && !strcmp(argv[0], "help"))
		return run_help(cli, argc - 1, argv + 1);
	if (argc && !strcmp(argv[0], "capture"))
		return cli_capture(cli, argc, argv);
	if (argc && cli_is_follow(argc, argv))
		return cli_follow(cli, argc, argv);
	int rc = cli_parse(argc, argv, &command, &params, err);
	if (rc) {
		fprintf(cli->err, "error: %s%s\n", cli->where, err);
		return rc == -EINVAL ? CLI_USAGE : CLI_FAILED;
	}
	if (command->run) {
		rc = command->run(cli, params);
		json_decref(params);
		return rc;
	}
	int pages = find_paged(command->method->name, params);
	if (pages < 0)
		rc = cli->call(cli->arg, command->method->name, params, &result, &e);
	else
		rc = call_paged(cli, pages, params, &result, &e);
	if (rc)
		fprintf(cli->err, "error: %s%s: %s%s%s\n", cli->where, command->words, e.path,
			e.path[0] ? ": " : "", e.msg);
	else
		print_result(cli, command->method, result);
	json_decref(params);
	json_decref(result);
	return rc ? CLI_FAILED : CLI_OK;
}

/* ---- lines ---- */

static int run_line(struct cli *cli, const char *line)
{
	Tokenizer *tok = tok_init(NULL);
	const char **argv;
	int argc, rc = CLI_OK;

	if (tok_str(tok, line, &argc, &argv) != 0) {
		fprintf(cli->err, "error: %sa quote is not closed\n", cli->where);
		rc = CLI_USAGE;
	} else if (argc > 0) {
		rc = cli_run(cli, (unsigned)argc, argv);
	}
	tok_end(tok);
	return rc;
}

int cli_run(struct cli *cli, unsigned argc, const char *const *argv)
{
	const bool json = cli->json;
	const char *words[CLI_MAX_WORDS];
	unsigned n = 0;
	int rc;

	for (unsigned i = 0; i < argc; i++) {
		if (!strcmp(argv[i], "-j") || !strcmp(argv[i], "--json")) {
			cli->json = true;
		} else if (n == CLI_MAX_WORDS) {
			fprintf(cli->err, "error: %sthe command has more than %d words\n",
				cli->where, CLI_MAX_WORDS);
			cli->json = json;
			return CLI_USAGE;
		} else {
			words[n++] = argv[i];
		}
	}
	/* A whole command in quotes. It ends, for each line is shorter than the one before. */
	rc = n == 1 && strpbrk(words[0], " \t") ? run_line(cli, words[0])
						: run_words(cli, n, words);
	cli->json = json;
	return rc;
}

/* ---- files of commands ---- */

int cli_run_file(struct cli *cli, const char *path, bool keep)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *in = is_stdin ? stdin : fopen(path, "re");
	char *line = NULL, where[300];
	size_t cap = 0;
	ssize_t len;
	int worst = CLI_OK;

	if (!in) {
		fprintf(cli->err, "error: %s: %s\n", path, strerror(errno));
		return CLI_FAILED;
	}
	for (unsigned n = 1; !cli->quit && (len = getline(&line, &cap, in)) >= 0; n++) {
		if (len && line[len - 1] == '\n')
			line[len - 1] = '\0';
		if (line[strspn(line, " \t")] == '#')
			continue;
		snprintf(where, sizeof(where), "%.256s:%u: ", path, n);
		cli->where = where;
		int rc = run_line(cli, line);
		worst = rc > worst ? rc : worst;
		if (rc && !keep)
			break;
	}
	cli->where = "";
	free(line);
	if (!is_stdin)
		fclose(in);
	return worst;
}
