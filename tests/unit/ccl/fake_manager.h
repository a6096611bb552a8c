/* SPDX-License-Identifier: BSD-3-Clause */
/* Managers on a clock of their own, in place of the client of the control socket (--wrap:
 * meson.build), and a job of two ranks that has them. */
#ifndef TESTS_CCL_FAKE_MANAGER_H
#define TESTS_CCL_FAKE_MANAGER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <jansson.h>

#include "lib/ccl/managed.h"

enum { FAKE_DIAL_MS = 500 }; /* that one has who is silent */

#define FAKE_STALE "stale" /* an answer: the run is over */

/* Managers: who does not listen, and who listens and answers nothing or hangs up (addresses of one
 * letter; NULL: none; "": all). */
extern struct fake_manager {
	const char *answers[4]; /* in turn, the last one again; JSON with ' for " */
	unsigned n_calls;
	int64_t clock_ms;
	const char *nobody_at, *hangs_at, *resets_at;
	bool silent;              /* all but /a and /b: no word at all */
	int nobody_rc, resets_rc; /* what a dial of nobody, a call of who hangs up comes to */
	unsigned looks;           /* at a dial, before it is a connection */
	bool is_open;
	unsigned turn_at;   /* from this call on the first one hangs up, 0: never */
	unsigned taken;     /* that many times a rank may not join */
	const char *busy;   /* for this field's sake */
	char asked[256];    /* addresses that were called, and the last letter of the method */
	json_t *asked_with; /* parameters of the last call */
} fake;

extern struct fake_job {
	struct wire_ip ips[2];
	struct ccl_group group; /* of the manager /m */
	struct ccl_managed *managed;
} job;

/* Of text with ' for ". */
json_t *fake_json(const char *text);

/* Both as they are at first; time goes on. */
void fake_manager_start(void);

/* Rank 0 joins; the manager gives these answers, NULL: the first again. */
int fake_manager_join(const char *first, const char *second, char err[CCL_ERR_LEN]);

/* It leaves if it is there, and nothing is kept. */
void fake_manager_stop(void);

#endif
