/* SPDX-License-Identifier: BSD-3-Clause */
/* The interactive shell: line editing, history and completion by libedit. */
#include <histedit.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/inclinectl.h"

enum { MAX_CANDIDATES = 256 };

struct candidates {
	char *text[MAX_CANDIDATES];
	unsigned n;
};

static void collect(void *arg, const char *candidate)
{
	struct candidates *c = arg;

	if (c->n < MAX_CANDIDATES)
		c->text[c->n++] = strdup(candidate);
}

static void candidates_free(struct candidates *c)
{
	for (unsigned i = 0; i < c->n; i++)
		free(c->text[i]);
	c->n = 0;
}

static size_t common_prefix(const struct candidates *c)
{
	size_t len = strlen(c->text[0]);

	for (unsigned i = 1; i < c->n; i++) {
		size_t k = 0;

		while (k < len && c->text[0][k] == c->text[i][k])
			k++;
		len = k;
	}
	return len;
}

static void list_candidates(const struct candidates *c)
{
	putchar('\n');
	for (unsigned i = 0; i < c->n; i++)
		printf("%s%s", c->text[i], i + 1 < c->n ? "  " : "\n");
	fflush(stdout);
}

/* Puts in what all candidates have in common, or lists them. */
static unsigned char apply(EditLine *el, const struct candidates *c, size_t typed)
{
	size_t len = c->n ? common_prefix(c) : 0;
	char text[256];

	if (len > typed || c->n == 1) {
		bool done = c->n == 1 && c->text[0][len - 1] != '=';

		snprintf(text, sizeof(text), "%.*s%s", (int)(len - typed), c->text[0] + typed,
			done ? " " : "");
		return el_insertstr(el, text) ? CC_ERROR : CC_REFRESH;
	}
	if (!c->n)
		return CC_ERROR;
	list_candidates(c);
	return CC_REDISPLAY;
}

static unsigned char on_tab(EditLine *el, int ch)
{
	const LineInfo *line = el_line(el);
	struct candidates found = {.n = 0};
	Tokenizer *tok = tok_init(NULL);
	const char **argv, *partial = "";
	struct cli *cli = NULL;
	int argc = 0, word = 0, offset = 0;
	unsigned char rc = CC_ERROR;

	(void)ch;
	el_get(el, EL_CLIENTDATA, &cli);
	if (tok_line(tok, line, &argc, &argv, &word, &offset) == 0) {
		char *cut = NULL;

		if (word < argc)
			partial = cut = strndup(argv[word], (size_t)offset);
		cli_complete(cli, (unsigned)word, argv, partial, collect, &found);
		rc = apply(el, &found, strlen(partial));
		candidates_free(&found);
		free(cut);
	}
	tok_end(tok);
	return rc;
}

static char *prompt(EditLine *el)
{
	static char text[] = "incline> ";

	(void)el;
	return text;
}

static void history_path(char *buf, size_t cap)
{
	const char *home = getenv("HOME");

	snprintf(buf, cap, "%s/.inclinectl_history", home ? home : "");
	if (!home)
		buf[0] = '\0';
}

static void loop(struct cli *cli, EditLine *el, History *h)
{
	HistEvent event;
	const char *line;
	int len;

	while (!cli->quit && (line = el_gets(el, &len)) && len > 0) {
		Tokenizer *tok = tok_init(NULL);
		const char **argv;
		int argc;

		if (tok_str(tok, line, &argc, &argv) != 0) {
			fprintf(cli->err, "error: a quote is not closed\n");
		} else if (argc > 0) {
			history(h, &event, H_ENTER, line);
			cli_run(cli, (unsigned)argc, argv);
			cli_forget(cli);
		}
		tok_end(tok);
	}
}

int cli_interact(struct cli *cli)
{
	EditLine *el = el_init("inclinectl", stdin, stdout, stderr);
	History *h = history_init();
	HistEvent event;
	char path[512];

	if (!el || !h) {
		fprintf(cli->err, "error: the terminal cannot be used\n");
		return CLI_FAILED;
	}
	history_path(path, sizeof(path));
	history(h, &event, H_SETSIZE, 1000);
	history(h, &event, H_SETUNIQUE, 1);
	history(h, &event, H_LOAD, path);
	el_set(el, EL_CLIENTDATA, cli);
	el_set(el, EL_PROMPT, prompt);
	el_set(el, EL_EDITOR, "emacs");
	el_set(el, EL_SIGNAL, 1);
	el_set(el, EL_HIST, history, h);
	el_set(el, EL_ADDFN, "incline-complete", "completes commands and names", on_tab);
	el_set(el, EL_BIND, "^I", "incline-complete", NULL);
	el_source(el, NULL);
	loop(cli, el, h);
	if (!cli->quit)
		fputc('\n', cli->out);
	if (path[0])
		history(h, &event, H_SAVE, path);
	history_end(h);
	el_end(el);
	return CLI_OK;
}
