/* SPDX-License-Identifier: BSD-3-Clause */
/* From the text of a request to the text of its answer: what every server of a control socket has
 * in common (docs/control-socket.md). Parameters have passed ctl_check against the schema when a
 * handler sees them, so types and simple ranges are right. No I/O, no state. */
#ifndef CTL_RPC_H
#define CTL_RPC_H

#include <jansson.h>

#include "lib/ctl/schema.h"

struct rpc_error {
	int code;   /* JSON-RPC code */
	int err;    /* negative errno, 0: none */
	long index; /* in a batch, -1: none */
	char path[CTL_PATH_LEN];
	char msg[512];
};

struct rpc_service {
	const struct ctl_schema *schema;
	/* May whoever asks call this? Asked before the parameters are checked (NULL) and after. 0,
	 * or rpc_fail's result. NULL: everybody may. */
	int (*may)(
		void *arg, const struct ctl_method *m, const json_t *params, struct rpc_error *e);
	/* 0 and *result a new reference; else nothing has changed and *e is filled in by rpc_fail.
	 * -ENOSYS: no such method. */
	int (*call)(void *arg, const char *method, const json_t *params, json_t **result,
		struct rpc_error *e);
	/* What became of a request that changes something, or that `may` refused; params as they
	 * came. NULL: nobody wants to know. */
	void (*done)(void *arg, const struct ctl_method *m, const json_t *params, int rc,
		const struct rpc_error *e);
};

/* Handles one request of len bytes, without its newline. Returns the answer without newline, to be
 * freed by the caller; NULL if there is none to send (a notification, an empty line). */
char *rpc_handle_line(const struct rpc_service *s, void *arg, const char *line, size_t len);

/* An error answer without id, as for a request that could not be read. */
char *rpc_error_line(int code, const char *message);

/* Sets *e and returns err (negative). The code follows from err: -EINVAL is CTL_INVALID_PARAMS,
 * anything else CTL_REFUSED. */
int rpc_fail(struct rpc_error *e, int err, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The same from a message "path: reason" as the dataplane words them. */
int rpc_fail_text(struct rpc_error *e, int err, const char *text);

/* A string of any bytes: what is not UTF-8 is replaced. */
json_t *rpc_text(const char *text);

/* Members of checked parameters, with a default. */
bool rpc_bool(const json_t *params, const char *name, bool otherwise);
int64_t rpc_int(const json_t *params, const char *name, int64_t otherwise);
const char *rpc_string(const json_t *params, const char *name); /* NULL if absent */

#endif
