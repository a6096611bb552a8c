/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 20, MAX_ANSWER = 256 << 20 };

struct ctl_client {
	const struct ctl_io *io;
	int fd; /* the connection's number */
	bool broken;
	json_int_t id;
	char *path; /* as the caller named it, for messages */
	char *buf;  /* received and not yet used */
	size_t len, cap;
};

/* ---- errors ---- */

static int fail(struct ctl_error *e, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct ctl_error *e, int code, const char *fmt, ...)
{
	va_list ap;

	*e = (struct ctl_error){.index = -1};
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return code;
}

/* ---- connecting ---- */

static const char *connect_hint(int rc)
{
	switch (rc) {
	case -ENOENT:
		return "no such socket: is the server running, and with this path?";
	case -ECONNREFUSED:
		return "nobody listens: the server has gone";
	case -EACCES:
		return "permission denied: be root or in the socket's group; over TCP, one end "
		       "does "
		       "not trust the other's certificate (INCLINE_TLS)";
	case -EPROTO:
		return "does not speak TLS 1.3 there (INCLINE_TLS is set)";
	case -EINVAL:
		return "must be a path, unix:PATH or tcp:HOST:PORT";
	case -EADDRNOTAVAIL:
		return "no such host";
	case -ENAMETOOLONG:
		return "path longer than 107 bytes";
	case -EAGAIN:
		return "the server does not accept connections";
	}
	return strerror(-rc);
}

static int not_connected(struct ctl_error *e, int rc, const char *path)
{
	return fail(e, rc, "%.128s: %s", path, connect_hint(rc));
}

/* Of a connection, or of why there is none. */
static int new_client(const struct ctl_io *io, const char *path, int fd, struct ctl_client **client,
	struct ctl_error *error)
{
	struct ctl_client *c;

	if (fd < 0)
		return not_connected(error, fd, path);
	c = calloc(1, sizeof(*c));
	if (c)
		c->path = strdup(path);
	if (!c || !c->path) {
		free(c);
		io->close(io->arg, fd);
		return fail(error, -ENOMEM, "%s: out of memory", path);
	}
	c->io = io;
	c->fd = fd;
	*client = c;
	return 0;
}

int ctl_connect_over(const struct ctl_io *io, const char *path, unsigned timeout_ms,
	struct ctl_client **client, struct ctl_error *error)
{
	const int64_t deadline = io->now_ms(io->arg) + timeout_ms;
	int fd;

	for (;;) {
		fd = io->open(io->arg, path, deadline);
		if ((fd != -ENOENT && fd != -ECONNREFUSED && fd != -EAGAIN) ||
			io->now_ms(io->arg) >= deadline)
			break;
		io->sleep_ms(io->arg, RETRY_MS);
	}
	return new_client(io, path, fd, client, error);
}

int ctl_connect(
	const char *path, unsigned timeout_ms, struct ctl_client **client, struct ctl_error *error)
{
	return ctl_connect_over(&ctl_sockets, path, timeout_ms, client, error);
}

int ctl_connect_begin(const struct ctl_io *io, const char *path, struct ctl_client **client,
	struct ctl_error *error)
{
	const int fd =
		io->begin ? io->begin(io->arg, path) : io->open(io->arg, path, io->now_ms(io->arg));

	return new_client(io, path, fd, client, error);
}

int ctl_connected(struct ctl_client *client, struct ctl_error *error)
{
	const struct ctl_io *io = client->io;
	const int rc = io->ready ? io->ready(io->arg, client->fd, io->now_ms(io->arg)) : 0;

	if (rc == -ETIMEDOUT)
		return -EINPROGRESS;
	return rc ? not_connected(error, rc, client->path) : 0;
}

void ctl_close(struct ctl_client *client)
{
	if (!client)
		return;
	client->io->close(client->io->arg, client->fd);
	free(client->buf);
	free(client->path);
	free(client);
}

bool ctl_is_open(const struct ctl_client *client)
{
	return !client->broken && client->io->is_open(client->io->arg, client->fd);
}

int ctl_fd(const struct ctl_client *client)
{
	return client->fd;
}

/* ---- calls ---- */

static int send_all(struct ctl_client *c, const char *buf, size_t len, int64_t deadline)
{
	while (len) {
		const ssize_t n = c->io->send(c->io->arg, c->fd, buf, len, deadline);

		if (n < 0)
			return (int)n;
		buf += n;
		len -= (size_t)n;
	}
	return 0;
}

static int receive_more(struct ctl_client *c, int64_t deadline)
{
	if (c->cap - c->len < 4096) {
		size_t cap = c->cap ? c->cap * 2 : 16384;
		char *buf = cap > MAX_ANSWER ? NULL : realloc(c->buf, cap);

		if (!buf)
			return -ENOBUFS;
		c->buf = buf;
		c->cap = cap;
	}
	const ssize_t n =
		c->io->receive(c->io->arg, c->fd, c->buf + c->len, c->cap - c->len, deadline);
	if (n <= 0)
		return n ? (int)n : -ECONNRESET;
	c->len += (size_t)n;
	return 0;
}

/* The next line as JSON. */
static int receive_line(struct ctl_client *c, int64_t deadline, json_t **line)
{
	size_t seen = 0;
	char *end;

	while (!c->len || !(end = memchr(c->buf + seen, '\n', c->len - seen))) {
		seen = c->len;
		int rc = receive_more(c, deadline);
		if (rc)
			return rc;
	}
	size_t used = (size_t)(end - c->buf) + 1;
	*line = json_loadb(c->buf, used, JSON_REJECT_DUPLICATES, NULL);
	memmove(c->buf, c->buf + used, c->len - used);
	c->len -= used;
	return json_is_object(*line) ? 0 : -EPROTO;
}

static int errno_from_name(const char *name)
{
	for (int e = 1; name && e < 134; e++) {
		const char *known = strerrorname_np(e);

		if (known && !strcmp(known, name))
			return -e;
	}
	return -EREMOTEIO;
}

static int take_error(const json_t *object, struct ctl_error *e)
{
	const json_t *data = json_object_get(object, "data");
	const char *msg = json_string_value(json_object_get(object, "message"));
	const char *path = json_string_value(json_object_get(data, "path"));
	const json_t *index = json_object_get(data, "index");
	json_int_t code = json_integer_value(json_object_get(object, "code"));
	size_t n = path ? strlen(path) : 0;

	/* The message alone must do for a person; here the path is apart. */
	if (n && msg && !strncmp(msg, path, n) && !strncmp(msg + n, ": ", 2))
		msg += n + 2;
	int rc = fail(e, errno_from_name(json_string_value(json_object_get(data, "errno"))), "%s",
		msg ? msg : "error without a message");

	e->code = code ? (int)code : CTL_INTERNAL;
	if (path)
		snprintf(e->path, sizeof(e->path), "%s", path);
	if (json_is_integer(index))
		e->index = (long)json_integer_value(index);
	return rc;
}

/* Reads until the answer to the call with this id. An answer without id tells that the server could
 * not read the request. */
static int receive_answer(struct ctl_client *c, json_int_t id, int64_t deadline, json_t **answer)
{
	for (;;) {
		json_t *line = NULL;
		int rc = receive_line(c, deadline, &line);

		if (!rc) {
			const json_t *got = json_object_get(line, "id");

			if (json_is_null(got) ||
				(json_is_integer(got) && json_integer_value(got) == id)) {
				*answer = line;
				return 0;
			}
		}
		json_decref(line);
		if (rc)
			return rc;
	}
}

static int call_failed(
	struct ctl_client *c, int rc, const char *method, unsigned timeout_ms, struct ctl_error *e)
{
	if (rc == -ETIMEDOUT)
		return fail(e, rc, "%s: no answer to %s within %u ms", c->path, method, timeout_ms);
	c->broken = true;
	if (rc == -ECONNRESET)
		return fail(e, rc, "%s: the server has closed the connection during %s", c->path,
			method);
	if (rc == -EPROTO)
		return fail(e, rc, "%s: the answer to %s is not JSON-RPC", c->path, method);
	if (rc == -EACCES)
		return fail(e, rc, "%s: the server does not accept our certificate (INCLINE_TLS)",
			c->path);
	return fail(e, rc, "%s: %s: %s", c->path, method, strerror(-rc));
}

/* The request as one line, *len bytes; NULL if it cannot be made. */
static char *request_line(json_int_t id, const char *method, const json_t *params, size_t *len)
{
	json_t *request = json_pack("{s:s,s:I,s:s}", "jsonrpc", "2.0", "id", id, "method", method);
	char *text;

	if (params)
		json_object_set(request, "params", (json_t *)params);
	text = json_dumps(request, JSON_COMPACT);
	json_decref(request);
	if (!text)
		return NULL;
	*len = strlen(text);
	text[(*len)++] = '\n'; /* in place of the terminator */
	return text;
}

int ctl_call(struct ctl_client *client, const char *method, const json_t *params,
	unsigned timeout_ms, json_t **result, struct ctl_error *error)
{
	struct ctl_client *c = client;
	int64_t deadline = c->io->now_ms(c->io->arg) + timeout_ms;
	json_t *answer = NULL;
	size_t len = 0;

	if (result)
		*result = NULL;
	if (c->broken)
		return fail(error, -ECONNRESET, "%s: the connection is lost", c->path);
	char *line = request_line(++c->id, method, params, &len);
	if (!line)
		return fail(error, -EINVAL, "%s: the parameters are not valid JSON", method);
	if (len > CTL_MAX_LINE) {
		free(line);
		return fail(error, -E2BIG, "%s: request of %zu bytes is longer than %d: split it",
			method, len, CTL_MAX_LINE);
	}
	int rc = send_all(c, line, len, deadline);
	free(line);
	if (rc == -ETIMEDOUT)
		c->broken = true; /* the server may have half a line */
	/* A server that closes says why first. */
	if (!rc || rc == -ECONNRESET)
		rc = receive_answer(c, c->id, deadline, &answer);
	if (rc)
		return call_failed(c, rc, method, timeout_ms, error);
	json_t *bad = json_object_get(answer, "error"), *good = json_object_get(answer, "result");
	if (bad)
		rc = take_error(bad, error);
	else if (!good)
		rc = call_failed(c, -EPROTO, method, timeout_ms, error);
	else if (result)
		*result = json_incref(good);
	json_decref(answer);
	return rc;
}
