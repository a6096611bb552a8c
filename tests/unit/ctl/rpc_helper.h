/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to an agent without a socket. Parameters are JSON text with ' for ". */
#ifndef RPC_HELPER_H
#define RPC_HELPER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctrl/agent/agent.h"
#include "tests/unit/ctl/fake_switch.h"

struct rpc_fixture {
	struct sw *sw;
	struct agent *agent;
	struct agent_peer *peer; /* who asks */
	char dir[64], file[96];  /* start-up file */
};

int rpc_setup(void **state);
int rpc_teardown(void **state);

/* JSON from text in which ' stands for ". */
json_t *quoted(const char *text);

/* Sends a line as it is; the answer as JSON, NULL if there is none. */
json_t *send_line(struct rpc_fixture *f, const char *line, size_t len);

/* The result of a call that must succeed and fit the schema (new reference). */
json_t *call_ok(struct rpc_fixture *f, const char *method, const char *params);

/* A call that must fail with this code, errno name (or NULL), index (or -1), path (or NULL),
 * message. */
void call_bad(struct rpc_fixture *f, const char *method, const char *params, int code,
	const char *name, int index, const char *path, const char *message);

/* result must equal the quoted text. Drops the reference. */
void expect_json(json_t *result, const char *text);

#endif
