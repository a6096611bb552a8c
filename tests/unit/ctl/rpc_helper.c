/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/ctl/rpc_helper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl/schema.h"

int rpc_setup(void **state)
{
	struct rpc_fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "%s/incline-test-XXXXXX", getenv("TMPDIR") ?: "/tmp");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->file, sizeof(f->file), "%s/switch.json", f->dir);
	f->sw = fake_switch_create();
	assert_int_equal(agent_create(f->sw, f->file, &f->agent), 0);
	*state = f;
	return 0;
}

int rpc_teardown(void **state)
{
	struct rpc_fixture *f = *state;

	agent_destroy(f->agent);
	fake_switch_destroy(f->sw);
	unlink(f->file);
	rmdir(f->dir);
	free(f);
	return 0;
}

json_t *quoted(const char *text)
{
	char *copy = strdup(text);
	json_error_t error;

	for (char *c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	json_t *out = json_loads(copy, JSON_DECODE_ANY, &error);
	if (!out)
		fail_msg("%s in %s", error.text, copy);
	free(copy);
	return out;
}

json_t *send_line(struct rpc_fixture *f, const char *line, size_t len)
{
	char *text = agent_handle_line(f->agent, f->peer, line, len);
	json_t *out;

	if (!text)
		return NULL;
	assert_null(strchr(text, '\n'));
	out = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_true(json_is_object(out));
	assert_string_equal(json_string_value(json_object_get(out, "jsonrpc")), "2.0");
	free(text);
	return out;
}

static json_t *request(struct rpc_fixture *f, const char *method, const char *params)
{
	static int id;
	json_t *r = json_pack("{s:s,s:i,s:s}", "jsonrpc", "2.0", "id", ++id, "method", method);

	if (params)
		json_object_set_new(r, "params", quoted(params));
	char *line = json_dumps(r, 0);
	json_t *answer = send_line(f, line, strlen(line));
	free(line);
	json_decref(r);
	assert_int_equal(json_integer_value(json_object_get(answer, "id")), id);
	return answer;
}

json_t *call_ok(struct rpc_fixture *f, const char *method, const char *params)
{
	const struct ctl_method *m = ctl_find(&ctl_switch_schema, method);
	json_t *answer = request(f, method, params);
	json_t *error = json_object_get(answer, "error");
	json_t *result = json_object_get(answer, "result");
	struct ctl_problem p;

	if (error)
		fail_msg("%s %s: %s", method, params ? params : "",
			json_string_value(json_object_get(error, "message")));
	if (ctl_check(m->result, result, "", &p))
		fail_msg("result of %s: %s %s", method, p.path, p.msg);
	json_incref(result);
	json_decref(answer);
	return result;
}

void call_bad(struct rpc_fixture *f, const char *method, const char *params, int code,
	const char *name, int index, const char *path, const char *message)
{
	json_t *answer = request(f, method, params);
	json_t *error = json_object_get(answer, "error"), *data = json_object_get(error, "data");
	const json_t *at = json_object_get(data, "index");

	assert_null(json_object_get(answer, "result"));
	assert_non_null(error);
	assert_string_equal(json_string_value(json_object_get(error, "message")), message);
	assert_int_equal(json_integer_value(json_object_get(error, "code")), code);
	if (name)
		assert_string_equal(json_string_value(json_object_get(data, "errno")), name);
	assert_int_equal(at ? json_integer_value(at) : -1, index);
	if (path)
		assert_string_equal(json_string_value(json_object_get(data, "path")), path);
	else
		assert_null(json_object_get(data, "path"));
	json_decref(answer);
}

void expect_json(json_t *result, const char *text)
{
	json_t *want = quoted(text);
	char *got = json_dumps(result, JSON_ENCODE_ANY | JSON_SORT_KEYS);
	char *wanted = json_dumps(want, JSON_ENCODE_ANY | JSON_SORT_KEYS);

	assert_string_equal(got, wanted);
	free(got);
	free(wanted);
	json_decref(want);
	json_decref(result);
}
