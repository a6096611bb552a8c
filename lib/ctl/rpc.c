/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/rpc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- for handlers ---- */

int rpc_fail(struct rpc_error *e, int err, const char *path, const char *fmt, ...)
{
	va_list ap;

	e->code = err == -EINVAL ? CTL_INVALID_PARAMS : CTL_REFUSED;
	e->err = err;
	snprintf(e->path, sizeof(e->path), "%s", path);
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return err;
}

int rpc_fail_text(struct rpc_error *e, int err, const char *text)
{
	static const char path_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					 "0123456789_.[]";
	size_t n = strspn(text, path_chars);
	char path[CTL_PATH_LEN];

	if (!n || n >= sizeof(path) || strncmp(text + n, ": ", 2))
		return rpc_fail(e, err, "", "%s", text[0] ? text : strerror(-err));
	memcpy(path, text, n);
	path[n] = '\0';
	return rpc_fail(e, err, path, "%s", text + n + 2);
}

json_t *rpc_text(const char *text)
{
	json_t *out = json_string(text);
	char *copy = out ? NULL : strdup(text);

	if (!copy)
		return out;
	for (char *c = copy; *c; c++)
		if (*c & 0x80)
			*c = '?';
	out = json_string(copy);
	free(copy);
	return out;
}

bool rpc_bool(const json_t *params, const char *name, bool otherwise)
{
	const json_t *v = json_object_get(params, name);

	return v ? json_is_true(v) : otherwise;
}

int64_t rpc_int(const json_t *params, const char *name, int64_t otherwise)
{
	const json_t *v = json_object_get(params, name);

	return v ? json_integer_value(v) : otherwise;
}

const char *rpc_string(const json_t *params, const char *name)
{
	return json_string_value(json_object_get(params, name));
}

/* ---- answers ---- */

static json_t *error_data(const struct rpc_error *e)
{
	json_t *data = json_object();
	const char *name = e->err ? strerrorname_np(-e->err) : NULL;

	if (name)
		json_object_set_new(data, "errno", json_string(name));
	if (e->index >= 0)
		json_object_set_new(data, "index", json_integer(e->index));
	if (e->path[0])
		json_object_set_new(data, "path", rpc_text(e->path));
	return data;
}

/* Takes over result; id stays the caller's, NULL stands for null. */
static char *answer(const json_t *id, json_t *result, const struct rpc_error *e)
{
	json_t *out = json_pack("{s:s,s:O?}", "jsonrpc", "2.0", "id", id);
	char *text;

	if (result) {
		json_object_set_new(out, "result", result);
	} else {
		json_t *error = json_pack("{s:i,s:o}", "code", e->code, "message",
			rpc_text(e->msg[0] ? e->msg : "internal error"));
		json_t *data = error_data(e);

		if (json_object_size(data))
			json_object_set(error, "data", data);
		json_decref(data);
		json_object_set_new(out, "error", error);
	}
	text = json_dumps(out, JSON_COMPACT);
	json_decref(out);
	return text;
}

static char *bad_request(const json_t *id, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static char *bad_request(const json_t *id, int code, const char *fmt, ...)
{
	struct rpc_error e = {.code = code, .index = -1};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e.msg, sizeof(e.msg), fmt, ap);
	va_end(ap);
	return answer(id, NULL, &e);
}

char *rpc_error_line(int code, const char *message)
{
	return bad_request(NULL, code, "%s", message);
}

/* ---- requests ---- */

/* "path: reason" where a path is known: the message alone must do for a person. */
static void message_with_path(struct rpc_error *e)
{
	char msg[sizeof(e->msg)];

	if (!e->path[0])
		return;
	snprintf(msg, sizeof(msg), "%s: %.400s", e->path, e->msg);
	memcpy(e->msg, msg, sizeof(msg));
}

static int try_call(const struct rpc_service *s, void *arg, const struct ctl_method *m,
	const json_t *params, json_t **result, struct rpc_error *e)
{
	struct ctl_problem problem;
	int rc = s->may ? s->may(arg, m, NULL, e) : 0;

	if (!rc && (rc = ctl_check(m->params, params, "", &problem)))
		rpc_fail(e, rc, problem.path, "%s", problem.msg);
	if (!rc && s->may)
		rc = s->may(arg, m, params, e);
	return rc ? rc : s->call(arg, m->name, params, result, e);
}

static json_t *call(const struct rpc_service *s, void *arg, const char *name, const json_t *params,
	struct rpc_error *e)
{
	const struct ctl_method *m = ctl_find(s->schema, name);
	json_t *result = NULL;
	const int rc = m ? try_call(s, arg, m, params, &result, e) : -ENOSYS;

	if (rc == -ENOSYS) {
		e->code = CTL_UNKNOWN_METHOD;
		snprintf(e->msg, sizeof(e->msg), "method \"%.64s\" is not known", name);
		return NULL;
	}
	if (rc)
		message_with_path(e);
	if (s->done && (m->changes || (rc && e->code == CTL_NOT_ALLOWED)))
		s->done(arg, m, params, rc, e);
	return rc ? NULL : result;
}

static bool id_ok(const json_t *id)
{
	return !id || json_is_null(id) || json_is_integer(id) ||
	       (json_is_string(id) && json_string_length(id) <= 256);
}

static const char *unknown_member(const json_t *request)
{
	static const char *const known[] = {"jsonrpc", "id", "method", "params"};
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)request, key, value)
	{
		unsigned i = 0;

		while (i < 4 && strcmp(key, known[i]))
			i++;
		if (i == 4)
			return key;
	}
	return NULL;
}

static char *handle(const struct rpc_service *s, void *arg, const json_t *request)
{
	const json_t *id = json_object_get(request, "id");
	const char *version = rpc_string(request, "jsonrpc"),
		   *method = rpc_string(request, "method");
	const char *unknown = unknown_member(request);
	struct rpc_error e = {.code = CTL_INTERNAL, .index = -1};

	if (!id_ok(id))
		return bad_request(NULL, CTL_INVALID_REQUEST,
			"id: must be an integer, a string of up to 256 bytes or null");
	if (unknown)
		return bad_request(
			id, CTL_INVALID_REQUEST, "%.64s: is not a member of a request", unknown);
	if (!version || strcmp(version, "2.0"))
		return bad_request(id, CTL_INVALID_REQUEST, "jsonrpc: must be \"2.0\"");
	if (!method)
		return bad_request(id, CTL_INVALID_REQUEST, "method: must be a string");
	json_t *params = json_object_get(request, "params");
	if (params && !json_is_object(params))
		return bad_request(id, CTL_INVALID_PARAMS, "params: must be an object");
	json_t *result = call(s, arg, method, params, &e);
	if (id)
		return answer(id, result, &e);
	json_decref(result);
	return NULL;
}

char *rpc_handle_line(const struct rpc_service *s, void *arg, const char *line, size_t len)
{
	json_error_t error;
	char *out;

	while (len && (line[len - 1] == '\r' || line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	if (!len)
		return NULL;
	if (len > CTL_MAX_LINE)
		return bad_request(
			NULL, CTL_PARSE_ERROR, "request is longer than %d bytes", CTL_MAX_LINE);
	json_t *request = ctl_load(line, len, &error);
	if (!request)
		return bad_request(
			NULL, CTL_PARSE_ERROR, "byte %d: %s", error.position, error.text);
	if (json_is_array(request))
		out = bad_request(NULL, CTL_INVALID_REQUEST,
			"batches are not supported: send one request per line");
	else if (!json_is_object(request))
		out = bad_request(NULL, CTL_INVALID_REQUEST, "a request must be an object");
	else
		out = handle(s, arg, request);
	json_decref(request);
	return out;
}
