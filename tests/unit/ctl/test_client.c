/* SPDX-License-Identifier: BSD-3-Clause */
/* The client against servers that answer late, wrongly or not at all, and the schema's own checks.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/ctl/client.h"

enum { LONG_MS = 20000, SHORT_MS = 50 };

/* A server that accepts one client and for each line received sends the next of its answers. */
struct fixture {
	char dir[64], path[96];
	int listener;
	const char *const *answers; /* NULL at the end: closes */
	pthread_t thread;
	struct ctl_client *c;
	struct ctl_error e;
};

static void *serve(void *arg)
{
	struct fixture *f = arg;
	int fd = accept(f->listener, NULL, NULL);

	for (const char *const *a = f->answers; *a; a++) {
		char ch = 0;

		while (ch != '\n' && read(fd, &ch, 1) == 1)
			;
		if (ch != '\n')
			break;
		(void)!send(fd, *a, strlen(*a), MSG_NOSIGNAL);
	}
	close(fd);
	return NULL;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	snprintf(f->dir, sizeof(f->dir), "%s/incline-test-XXXXXX", getenv("TMPDIR") ?: "/tmp");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/s", f->dir);
	strcpy(at.sun_path, f->path);
	f->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(f->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close(f->listener);
	unlink(f->path);
	rmdir(f->dir);
	free(f);
	return 0;
}

static void start(struct fixture *f, const char *const *answers)
{
	f->answers = answers;
	assert_int_equal(listen(f->listener, 1), 0);
	assert_int_equal(ctl_connect(f->path, LONG_MS, &f->c, &f->e), 0);
	assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
}

static void finish(struct fixture *f)
{
	ctl_close(f->c);
	pthread_join(f->thread, NULL);
}

static int call(struct fixture *f, unsigned ms, json_t **result)
{
	return ctl_call(f->c, "ping", NULL, ms, result, &f->e);
}

static void test_connect(void **state)
{
	struct fixture *f = *state;
	char path[256], want[256];

	assert_int_equal(ctl_connect("/nonexistent/s", 0, &f->c, &f->e), -ENOENT);
	assert_string_equal(f->e.msg,
		"/nonexistent/s: no such socket: is the server running, and with this path?");
	assert_int_equal(f->e.code, 0);
	assert_int_equal(f->e.index, -1);
	assert_int_equal(ctl_connect(f->path, SHORT_MS, &f->c, &f->e), -ECONNREFUSED);
	snprintf(want, sizeof(want), "%s: nobody listens: the server has gone", f->path);
	assert_string_equal(f->e.msg, want);
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(ctl_connect(path, 0, &f->c, &f->e), -ENAMETOOLONG);
	assert_int_equal(ctl_connect("tcp:127.0.0.1", 0, &f->c, &f->e), -EINVAL);
	assert_string_equal(f->e.msg, "tcp:127.0.0.1: must be a path, unix:PATH or tcp:HOST:PORT");
	assert_int_equal(ctl_connect("tcp:[::1:80", 0, &f->c, &f->e), -EINVAL);
	assert_int_equal(ctl_connect("tcp:127.0.0.1:1", 0, &f->c, &f->e), -ECONNREFUSED);
	ctl_close(NULL);
}

static void *listen_late(void *arg)
{
	poll(NULL, 0, 100);
	listen(*(int *)arg, 1);
	return NULL;
}

/* A server that comes up while we try. */
static void test_connect_waits(void **state)
{
	struct fixture *f = *state;
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, listen_late, &f->listener), 0);
	assert_int_equal(ctl_connect(f->path, LONG_MS, &f->c, &f->e), 0);
	pthread_join(t, NULL);
	assert_true(ctl_fd(f->c) >= 0);
	ctl_close(f->c);
}

/* How a dial that has begun ends: 0 or -errno. */
static int await_connected(struct ctl_client *c, struct ctl_error *e)
{
	int rc;

	for (unsigned i = 0; (rc = ctl_connected(c, e)) == -EINPROGRESS && i < LONG_MS; i++)
		poll(NULL, 0, 1);
	return rc;
}

/* A listener of TCP, which hears nobody any more after these. */
static int deaf(char name[40], int caller[8])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	for (unsigned i = 0; i < 8; i++) {
		caller[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)!connect(caller[i], (struct sockaddr *)&at, len);
	}
	snprintf(name, 40, "tcp:127.0.0.1:%u", ntohs(at.sin_port));
	return fd;
}

/* A dial that is begun and not waited for: to who listens, who does not, and who says nothing. */
static void test_connect_begin(void **state)
{
	static const char *const answers[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1}}\n", NULL};
	struct fixture *f = *state;
	const struct ctl_io *io = &ctl_sockets;
	int caller[8], fd;
	char name[40];

	assert_int_equal(ctl_connect_begin(io, "/nonexistent/s", &f->c, &f->e), -ENOENT);
	assert_int_equal(ctl_connect_begin(io, f->path, &f->c, &f->e), -ECONNREFUSED);
	assert_int_equal(ctl_connect_begin(io, "tcp:127.0.0.1:1", &f->c, &f->e), 0);
	assert_int_equal(await_connected(f->c, &f->e), -ECONNREFUSED);
	assert_string_equal(f->e.msg, "tcp:127.0.0.1:1: nobody listens: the server has gone");
	ctl_close(f->c);
	fd = deaf(name, caller);
	assert_int_equal(ctl_connect_begin(io, name, &f->c, &f->e), 0);
	assert_int_equal(ctl_connected(f->c, &f->e), -EINPROGRESS);
	assert_int_equal(ctl_connected(f->c, &f->e), -EINPROGRESS);
	ctl_close(f->c);
	for (unsigned i = 0; i < 8; i++)
		close(caller[i]);
	close(fd);
	f->answers = answers;
	assert_int_equal(listen(f->listener, 1), 0);
	assert_int_equal(ctl_connect_begin(io, f->path, &f->c, &f->e), 0);
	assert_int_equal(await_connected(f->c, &f->e), 0);
	assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
	assert_int_equal(call(f, LONG_MS, NULL), 0);
	finish(f);
}

static void test_good_answers(void **state)
{
	static const char *const answers[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1}}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":null}\n", NULL};
	struct fixture *f = *state;
	json_t *result;

	start(f, answers);
	assert_int_equal(call(f, LONG_MS, &result), 0);
	assert_int_equal(json_integer_value(json_object_get(result, "a")), 1);
	json_decref(result);
	assert_int_equal(call(f, LONG_MS, NULL), 0);
	assert_int_equal(call(f, LONG_MS, &result), -ECONNRESET);
	assert_null(result);
	assert_int_equal(call(f, LONG_MS, NULL), -ECONNRESET);
	finish(f);
}

static void test_error_answers(void **state)
{
	static const char *const answers[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,\"message\":\"updates[3]."
		"key: no room\","
		"\"data\":{\"errno\":\"ENOSPC\",\"index\":3,\"path\":\"updates[3].key\"}}}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32601,\"message\":\"what?\"}}"
		"\n",
		"{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{}}\n",
		/* Of a request that the server could not read. */
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"bad\"}}"
		"\n",
		NULL};
	struct fixture *f = *state;
	json_t *result;

	start(f, answers);
	assert_int_equal(call(f, LONG_MS, &result), -ENOSPC);
	assert_null(result);
	assert_int_equal(f->e.code, CTL_REFUSED);
	assert_int_equal(f->e.index, 3);
	assert_string_equal(f->e.path, "updates[3].key");
	assert_string_equal(f->e.msg, "no room");
	assert_int_equal(call(f, LONG_MS, &result), -EREMOTEIO);
	assert_int_equal(f->e.code, CTL_UNKNOWN_METHOD);
	assert_int_equal(f->e.index, -1);
	assert_string_equal(f->e.path, "");
	assert_int_equal(call(f, LONG_MS, &result), -EREMOTEIO);
	assert_int_equal(f->e.code, CTL_INTERNAL);
	assert_int_equal(call(f, LONG_MS, &result), -EREMOTEIO);
	assert_int_equal(f->e.code, CTL_PARSE_ERROR);
	finish(f);
}

/* The answer to a call that was given up is not taken for that of the next one. */
static void test_late_answer(void **state)
{
	static const char *const answers[] = {"",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"old\":1}}\n"
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"new\":1}}\n",
		NULL};
	struct fixture *f = *state;
	json_t *result;
	char want[256];

	start(f, answers);
	assert_int_equal(call(f, SHORT_MS, &result), -ETIMEDOUT);
	snprintf(want, sizeof(want), "%s: no answer to ping within 50 ms", f->path);
	assert_string_equal(f->e.msg, want);
	assert_int_equal(call(f, LONG_MS, &result), 0);
	assert_non_null(json_object_get(result, "new"));
	json_decref(result);
	finish(f);
}

static void test_split_answer(void **state)
{
	static const char *const answers[] = {"{\"jsonrpc\":\"2.0\",\"id\":",
		"2,\"result\":{}}\n{\"jsonrpc\"", ":\"2.0\",\"id\":3,\"result\":{}}\n", NULL};
	struct fixture *f = *state;

	start(f, answers);
	assert_int_equal(call(f, SHORT_MS, NULL), -ETIMEDOUT);
	assert_int_equal(call(f, LONG_MS, NULL), 0);
	assert_int_equal(call(f, LONG_MS, NULL), 0);
	finish(f);
}

static void nonsense(void **state, const char *answer)
{
	const char *answers[] = {answer, NULL};
	struct fixture *f = *state;

	start(f, answers);
	assert_int_equal(call(f, LONG_MS, NULL), -EPROTO);
	assert_int_equal(call(f, LONG_MS, NULL), -ECONNRESET);
	finish(f);
}

static void test_nonsense(void **state)
{
	/* What follows is not believed either. */
	nonsense(state,
		"220 mail.example.org ESMTP\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n");
}

static void test_no_result(void **state)
{
	nonsense(state, "{\"jsonrpc\":\"2.0\",\"id\":1}\n");
}

static void test_truncated(void **state)
{
	static const char *const answers[] = {"{\"jsonrpc\":\"2.0\",\"id\":1,", NULL};
	struct fixture *f = *state;

	start(f, answers);
	assert_int_equal(call(f, LONG_MS, NULL), -ECONNRESET);
	finish(f);
}

static void test_too_long_request(void **state)
{
	static const char *const answers[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n", NULL};
	struct fixture *f = *state;
	char *text = calloc(1, CTL_MAX_LINE + 1);
	json_t *params;

	memset(text, 'x', CTL_MAX_LINE);
	params = json_pack("{s:s}", "a", text);
	start(f, answers);
	assert_int_equal(ctl_call(f->c, "ping", params, LONG_MS, NULL, &f->e), -E2BIG);
	assert_non_null(strstr(f->e.msg, "split it"));
	assert_int_equal(call(f, LONG_MS, NULL), 0);
	finish(f);
	json_decref(params);
	free(text);
}

/* ---- schema ---- */

static void test_u64(void **state)
{
	static const struct {
		const char *json;
		int rc;
		uint64_t u;
	} cases[] = {
		{"0", 0, 0},
		{"9007199254740993", 0, 9007199254740993},
		{"\"18446744073709551615\"", 0, UINT64_MAX},
		{"\"0xffffffffffffffff\"", 0, UINT64_MAX},
		{"\"18446744073709551616\"", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"\"-1\"", -EINVAL, 0},
		{"\"\"", -EINVAL, 0},
		{"\"0x\"", -EINVAL, 0},
		{"\"12a\"", -EINVAL, 0},
		{"\" 1\"", -EINVAL, 0},
		{"1.0", -EINVAL, 0},
		{"true", -EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *json = json_loads(cases[i].json, JSON_DECODE_ANY, NULL);
		uint64_t u = 0;

		assert_int_equal(ctl_get_u64(json, &u), cases[i].rc);
		assert_true(u == cases[i].u);
		json_decref(json);
	}
	/* 2^53 is the last integer that a double holds together with its neighbours. */
	for (uint64_t u = (1ULL << 53) - 1; u <= (1ULL << 53) + 1; u++) {
		json_t *json = ctl_u64(u);
		uint64_t back;

		assert_int_equal(json_is_string(json), u > 1ULL << 53);
		assert_int_equal(ctl_get_u64(json, &back), 0);
		assert_true(back == u);
		json_decref(json);
	}
}

/* JSON has one kind of number; ours have 64 bits wherever a request may have them. */
static void test_load(void **state)
{
	static const struct {
		const char *in, *out; /* NULL: no JSON */
	} cases[] = {
		{"{\"p\":{\"a\":9223372036854775807}}", "{\"p\":{\"a\":9223372036854775807}}"},
		{"{\"p\":{\"a\":9223372036854775808}}", "{\"p\":{\"a\":\"9223372036854775808\"}}"},
		{"{\"p\":{\"a\": [1, 18446744073709551615 ]}}",
			"{\"p\":{\"a\":[1,\"18446744073709551615\"]}}"},
		{"{\"p\":{\"\\\"9\":18446744073709551615,\"9223372036854775808\":1.5e1}}",
			"{\"p\":{\"\\\"9\":\"18446744073709551615\",\"9223372036854775808\":15.0}"
			"}"},
		{"{\"p\":{\"a\":18446744073709551616}}", NULL},
		{"{\"p\":{\"a\":-9223372036854775809}}", NULL},
		{"{\"p\":{\"a\":9223372036854775808-}}", NULL},
		{"{\"p\":{\"a\":09223372036854775808}}", NULL},
		{"{\"p\":{\"a\":9223372036854775808,\"b\":1e999}}", NULL},
		{"{\"p\":{\"a\":9223372036854775808,\"a\":1}}", NULL},
		{"{\"p\":{\"a\":9223372036854775808,\"b", NULL},
		{"{\"id\":9223372036854775808}", NULL},
		{"5", "5"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_error_t e;
		json_t *json = ctl_load(cases[i].in, strlen(cases[i].in), &e);
		char *text = json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

		if (cases[i].out)
			assert_string_equal(text, cases[i].out);
		else
			assert_null(json);
		free(text);
		json_decref(json);
	}
}

static void test_strip_comments(void **state)
{
	json_t *in = json_loads("{\"#\":1,\"a\":[{\"#b\":2,\"c\":\"#\"}]}", 0, NULL);
	json_t *out = ctl_strip_comments(in);
	char *text = json_dumps(out, JSON_COMPACT);

	(void)state;
	assert_string_equal(text, "{\"a\":[{\"c\":\"#\"}]}");
	free(text);
	json_decref(in);
	json_decref(out);
}

/* Every field has help, every range makes sense, positions count from 1 without gaps. */
static void check_fields(const struct ctl_field *fields)
{
	unsigned positions = 0, sum = 0;

	for (const struct ctl_field *f = fields; f && f->name; f++) {
		assert_non_null(f->help);
		assert_true(f->help[0]);
		assert_true(f->min <= f->max || !f->max);
		assert_true((f->type == CTL_OBJECT) <= (f->fields != NULL));
		positions += f->pos > 0;
		sum += f->pos;
		check_fields(f->fields);
	}
	assert_int_equal(sum, positions * (positions + 1) / 2);
}

static void test_schema_is_sane(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ctl_switch_schema.n; i++) {
		const struct ctl_method *m = &ctl_switch_schema.methods[i];

		assert_true(m->help[strlen(m->help) - 1] == '.');
		assert_ptr_equal(ctl_find(&ctl_switch_schema, m->name), m);
		check_fields(m->params);
		check_fields(m->result);
	}
	assert_null(ctl_find(&ctl_switch_schema, "nothing"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_connect),
		T(test_connect_waits),
		T(test_connect_begin),
		T(test_good_answers),
		T(test_error_answers),
		T(test_late_answer),
		T(test_split_answer),
		T(test_nonsense),
		T(test_no_result),
		T(test_truncated),
		T(test_too_long_request),
		cmocka_unit_test(test_u64),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_strip_comments),
		cmocka_unit_test(test_schema_is_sane),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
