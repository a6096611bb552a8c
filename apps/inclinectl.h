/* SPDX-License-Identifier: BSD-3-Clause */
/* inclinectl in parts: words become a request, its result becomes text or JSON, a half-typed line
 * gets candidates. All of it follows ctl_switch_schema; only what is handier to type than a
 * method's parameters has a command of its own here. */
#ifndef APPS_INCLINECTL_H
#define APPS_INCLINECTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "lib/ctl/client.h"

struct cli_watch;

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_ERR_LEN = 768, CLI_MAX_WORDS = 512 };

/* ---- inclinectl_cmd.c: commands ---- */

struct cli;

struct cli_command {
	const char *words; /* "table insert" */
	const struct ctl_method *method;
	const char *syntax; /* after the words; NULL: follows from the parameters */
	const char *help;
	/* NULL: words become parameters as the schema says. Else fills in params; 0 or -EINVAL with
	 * err "what: why", or another errno if a file cannot be read. */
	int (*parse)(unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN]);
	/* Of inclinectl itself, which calls what it needs; method then only says what its words and
	 * its result are. NULL: the method is called. */
	int (*run)(struct cli *cli, const json_t *params);
	const char *const *shorts; /* pairs "-n", "--count", up to NULL; or NULL */
};

unsigned cli_n_commands(void);
const struct cli_command *cli_command(unsigned i);

/* The command that words begin with, *used words of them; NULL if there is none. "show" in front
 * and the plurals ("tables", "groups", "nodes") are understood too; for those, *extra is a word to
 * put before the rest, else NULL. */
const struct cli_command *cli_find(
	unsigned argc, const char *const *argv, unsigned *used, const char **extra);

/* Words to a command and its checked parameters (new reference). 0, -EINVAL (usage) or the errno of
 * a file, with one line in err. */
int cli_parse(unsigned argc, const char *const *argv, const struct cli_command **command,
	json_t **params, char err[CLI_ERR_LEN]);

/* "TABLE [FIELD=VALUE...] [--limit N]"; returns buf. */
const char *cli_syntax(const struct cli_command *command, char *buf, size_t cap);
/* false: no command begins with these words. */
bool cli_help(FILE *out, unsigned argc, const char *const *argv);

/* ---- inclinectl_text.c: results as text ---- */

/* Every value of the result, named as in its JSON. */
void cli_text(FILE *out, const struct ctl_field *fields, const json_t *result);

/* ---- inclinectl_run.c: calls ---- */

typedef int (*cli_call_fn)(void *arg, const char *method, const json_t *params, json_t **result,
	struct ctl_error *error);

struct cli_time {
	uint64_t ns;      /* never goes back; since some time */
	uint64_t unix_ms; /* of the calendar */
};

struct cli {
	cli_call_fn call;
	/* For commands that go on until they are interrupted, to be called before anything is to be
	 * finished: waits so long (0: not at all); true: that has happened. */
	bool (*pause)(void *arg, unsigned ms);
	/* The time. */
	void (*clock)(void *arg, struct cli_time *now);
	void *arg;
	FILE *out, *err;
	bool json;               /* results as JSON */
	const char *where;       /* "file:12: " in front of errors, or "" */
	bool quit;               /* set by the command "quit" */
	json_t *pipeline;        /* for completion; cli_forget drops it */
	struct cli_watch *watch; /* cli_watch's, else NULL */
};

/* Runs one command: CLI_OK, CLI_FAILED or CLI_USAGE, after printing result or error. No words: the
 * summary. Among the words, -j and --json mean cli.json for this command; a single word with blanks
 * is a line of words. */
int cli_run(struct cli *cli, unsigned argc, const char *const *argv);

/* ---- inclinectl_watch.c: the same again ---- */

/* Runs a command every so many ms until it fails, or is interrupted. A number that has changed
 * since the run before is shown with its change per second: as text "17 (+3.00/s)", in JSON as
 * another member "NAME_per_s". The first run has none, nor have counters that began anew. */
int cli_watch(struct cli *cli, unsigned ms, unsigned argc, const char *const *argv);

/* Runs each line of a file; '#' begins a comment line. Stops at the first that fails unless keep.
 */
int cli_run_file(struct cli *cli, const char *path, bool keep);

void cli_forget(struct cli *cli);

/* ---- inclinectl_complete.c ---- */

typedef void (*cli_offer_fn)(void *arg, const char *candidate);

/* Offers what may stand for the last word, given the words before it. Asks the switch for names. */
void cli_complete(struct cli *cli, unsigned argc, const char *const *argv, const char *partial,
	cli_offer_fn offer, void *arg);

/* ---- inclinectl_edit.c ---- */

/* Reads commands from the terminal until its end or "quit". */
int cli_interact(struct cli *cli);

#endif
