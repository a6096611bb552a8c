/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/client.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/ctl/address.h"

enum { RETRY_MS = 20, DIAL_MS = 500, MAX_ANSWER = 256 << 20 };

struct ctl_client {
	int fd;
	bool broken;
	json_int_t id;
	char *path; /* as the caller named it, for messages */
	char *buf;  /* received and not yet used */
	size_t len, cap;
};

/* ---- errors and time ---- */

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

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until fd is ready for events. 0, -ETIMEDOUT at the deadline, or another errno. */
static int wait_fd(int fd, short events, int64_t deadline)
{
	struct pollfd p = {.fd = fd, .events = events};

	for (;;) {
		int64_t left = deadline - now_ms();
		int n = poll(&p, 1, left < 0 ? 0 : left > 60000 ? 60000 : (int)left);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (left <= 0)
			return -ETIMEDOUT;
	}
}

/* ---- connecting ---- */

/* The end of a connect that was under way. */
static int await_connect(int fd, int64_t deadline)
{
	int error = 0;
	socklen_t len = sizeof(error);
	int rc = wait_fd(fd, POLLOUT, deadline);

	if (!rc && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
		return -errno;
	return rc ? rc : -error;
}

/* A descriptor, or -errno. A peer that answers nothing at all costs DIAL_MS at least. */
static int try_connect(const struct ctl_address *to, int64_t deadline)
{
	const int64_t soonest = now_ms() + DIAL_MS;
	const int on = 1;
	int fd = socket(to->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&to->sa, to->len))
		rc = -errno;
	if (rc == -EINPROGRESS)
		rc = await_connect(fd, deadline > soonest ? deadline : soonest);
	if (rc) {
		close(fd);
		return rc;
	}
	if (to->tcp)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static const char *connect_hint(int rc)
{
	switch (rc) {
	case -ENOENT:
		return "no such socket: is the server running, and with this path?";
	case -ECONNREFUSED:
		return "nobody listens: the server has gone";
	case -EACCES:
		return "permission denied: be root or in the socket's group";
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

int ctl_connect(
	const char *path, unsigned timeout_ms, struct ctl_client **client, struct ctl_error *error)
{
	int64_t deadline = now_ms() + timeout_ms;
	struct ctl_address to;
	int fd = ctl_address_parse(path, &to);

	while (!fd) {
		fd = try_connect(&to, deadline);
		if ((fd != -ENOENT && fd != -ECONNREFUSED && fd != -EAGAIN) || now_ms() >= deadline)
			break;
		poll(NULL, 0, RETRY_MS);
		fd = 0;
	}
	if (fd < 0)
		return fail(error, fd, "%.128s: %s", path, connect_hint(fd));
	struct ctl_client *c = calloc(1, sizeof(*c));
	if (c)
		c->path = strdup(path);
	if (!c || !c->path) {
		free(c);
		close(fd);
		return fail(error, -ENOMEM, "%s: out of memory", path);
	}
	c->fd = fd;
	*client = c;
	return 0;
}

void ctl_close(struct ctl_client *client)
{
	if (!client)
		return;
	close(client->fd);
	free(client->buf);
	free(client->path);
	free(client);
}

int ctl_fd(const struct ctl_client *client)
{
	return client->fd;
}

/* ---- calls ---- */

static int send_all(struct ctl_client *c, const char *buf, size_t len, int64_t deadline)
{
	while (len) {
		ssize_t n = send(c->fd, buf, len, MSG_NOSIGNAL);

		if (n > 0) {
			buf += n;
			len -= (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return errno == EPIPE ? -ECONNRESET : -errno;
		int rc = wait_fd(c->fd, POLLOUT, deadline);
		if (rc)
			return rc;
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
	for (;;) {
		ssize_t n = recv(c->fd, c->buf + c->len, c->cap - c->len, 0);

		if (n > 0) {
			c->len += (size_t)n;
			return 0;
		}
		if (n == 0)
			return -ECONNRESET;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		int rc = wait_fd(c->fd, POLLIN, deadline);
		if (rc)
			return rc;
	}
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
	int64_t deadline = now_ms() + timeout_ms;
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
