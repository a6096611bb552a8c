/* SPDX-License-Identifier: BSD-3-Clause */
/* inclinectl against the agent, without a socket. */
#ifndef CLI_HELPER_H
#define CLI_HELPER_H

#include "apps/inclinectl.h"
#include "tests/unit/ctl/rpc_helper.h"

struct fixture {
	struct rpc_fixture *rpc;
	struct cli cli;
	char *out, *err;
	size_t out_len, err_len;
	bool down;                         /* the switch cannot be reached */
	bool (*paused)(struct fixture *f); /* a command waits; true: it is interrupted */
	unsigned pauses;                   /* for paused to count */
	uint64_t ms;                       /* that it has waited */
	char file[128];
};

int setup(void **state);
int teardown(void **state);

/* Splits at blanks; no quotes here. */
unsigned split(char *line, const char **argv);

/* Runs a line; what it prints is in f->out and f->err. The second must succeed, the third fail with
 * this status and this error, and nothing else. */
int run(struct fixture *f, const char *line);
void run_ok(struct fixture *f, const char *line);
void run_bad(struct fixture *f, const char *line, int status, const char *err);

/* f->file holds this text. */
void write_file(struct fixture *f, const char *text);

/* Group 1, job-7, of two ranks; one packet has arrived. */
void create_group(struct fixture *f);

#endif
