/* SPDX-License-Identifier: BSD-3-Clause */
/* Client of a control socket: JSON-RPC 2.0 over a UNIX or TCP stream socket, one object per line
 * (docs/control-socket.md). Calls block, but never longer than their timeout. A client belongs to
 * one thread at a time. No signal is raised when the server goes away. */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

#include <jansson.h>

#include "lib/ctl/client_io.h"
#include "lib/ctl/schema.h"

struct ctl_client;

struct ctl_error {
	int code;                /* JSON-RPC code if the server answered with an error, else 0 */
	char path[CTL_PATH_LEN]; /* field at fault, "" if none was named */
	long index;              /* of the item at fault in a batch, -1 if none was named */
	char msg[CTL_MSG_LEN];   /* why, without the path; for local failures it names the socket */
};

/* Connects to a path, unix:PATH or tcp:HOST:PORT. While nobody listens there, tries again until
 * timeout_ms have passed (0: one try, which over TCP may take half a second).
 * 0, or -ENOENT, -ECONNREFUSED (nobody listens), -EACCES, -ENAMETOOLONG, -ETIMEDOUT, -EINVAL ... */
int ctl_connect(
	const char *path, unsigned timeout_ms, struct ctl_client **client, struct ctl_error *error);
/* The same over connections of another kind. */
int ctl_connect_over(const struct ctl_io *io, const char *path, unsigned timeout_ms,
	struct ctl_client **client, struct ctl_error *error);
/* Begins to connect, once, and does not wait for it, but for a name to be looked up. 0: it is under
 * way, and nothing is called before ctl_connected says 0; or -errno as above. */
int ctl_connect_begin(const struct ctl_io *io, const char *path, struct ctl_client **client,
	struct ctl_error *error);
/* 0: it is connected; -EINPROGRESS: not yet, and waits for nothing; else -errno as above: it is
 * only to be closed. */
int ctl_connected(struct ctl_client *client, struct ctl_error *error);
void ctl_close(struct ctl_client *client);

/* Calls a method and waits for its answer. params: an object or NULL, stays the caller's. On
 * success 0 and *result is a new reference (result may be NULL if it does not matter). An error
 * answer gives the negative errno that the server named (-EREMOTEIO if it named none) with
 * error->code != 0. Local failures, code 0: -ETIMEDOUT (error->msg says what was waited for; the
 * client can go on to be used, a late answer is thrown away), -ECONNRESET (server has closed),
 * -EPROTO (answer is no JSON-RPC), -E2BIG (request longer than CTL_MAX_LINE: nothing was sent).
 * After -ECONNRESET and -EPROTO every further call fails: close and connect again. */
int ctl_call(struct ctl_client *client, const char *method, const json_t *params,
	unsigned timeout_ms, json_t **result, struct ctl_error *error);

/* As far as is known, the server is still there. */
bool ctl_is_open(const struct ctl_client *client);

/* The socket's descriptor, to poll for the server's going away. */
int ctl_fd(const struct ctl_client *client);

#endif
