/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside the commands: inclinectl_cmd.c finds and parses them, with inclinectl_own.c and
 * inclinectl_word.c. */
#ifndef APPS_INCLINECTL_CMD_H
#define APPS_INCLINECTL_CMD_H

#include "apps/inclinectl.h"

/* ---- inclinectl_own.c: commands whose words are not their method's parameters ---- */

struct cli_own {
	const char *words, *method, *syntax, *help; /* as in struct cli_command */
	int (*parse)(unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN]);
};

extern const struct cli_own cli_own[]; /* words NULL: the end */

/* ---- commands of inclinectl itself ---- */

/* inclinectl_top.c */
extern const struct ctl_method cli_top;
extern const char *const cli_top_shorts[];
int cli_run_top(struct cli *cli, const json_t *params);

/* inclinectl_doctor.c */
extern const struct ctl_method cli_doctor;
extern const char *const cli_doctor_shorts[];
int cli_run_doctor(struct cli *cli, const json_t *params);

/* ---- inclinectl_word.c: words become values ---- */

/* err has CLI_ERR_LEN bytes. Returns code. */
int cli_refuse(char *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* 0, or -EINVAL if it is no integer. */
int cli_int(const char *text, json_int_t *n);

/* What a CTL_REF field takes: a number or a name. */
json_t *cli_ref(const char *word);

/* As the field's type says; NULL if the word is not UTF-8. */
json_t *cli_value(const struct ctl_field *f, const char *word);

/* inclinectl_follow.c: "events -f", and is this that? */
bool cli_is_follow(unsigned argc, const char *const *argv);
int cli_follow(struct cli *cli, unsigned argc, const char *const *argv);

/* inclinectl_capture.c: "capture PORT FILE", and the parameters of capture.start in its words. */
int cli_capture(struct cli *cli, unsigned argc, const char *const *argv);
int cli_parse_capture(
	unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN]);

/* inclinectl_watch.c: "2026-01-31T12:00:00.000Z", as JSON. */
json_t *cli_time_text(const struct cli_time *t);
/* Begins a page that takes the place of the last one: on a terminal on a clear screen, else behind
 * an empty line, unless it is the first. */
void cli_new_screen(struct cli *cli, bool first);
/* While cli->watch is there: a result, with what has changed since the last one. */
void cli_watch_print(struct cli *cli, const struct ctl_method *method, json_t *result);

/* inclinectl_text.c: one value as it is shown. */
void cli_value_text(FILE *out, const json_t *value);

/* "name=value", which has its '=', into a map; -EINVAL if the name is there already. */
int cli_set_pair(json_t *map, const char *word, char *err);

#endif
