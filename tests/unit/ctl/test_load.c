/* SPDX-License-Identifier: BSD-3-Clause */
/* The start-up file, read again while the switch runs; and whether its workers turn. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctrl/agent/liveness.h"
#include "lib/ctl/notify.h"
#include "lib/ctl/schema.h"
#include "tests/unit/ctl/rpc_helper.h"

enum { INVALID = CTL_INVALID_PARAMS, REFUSED = CTL_REFUSED };

#define ROUTE(dst, more) "{'key':{'dst':'" dst "'},'action':" more "}"
#define HEAD                                                                                   \
	"{'name':'leaf1','addresses':['10.0.0.254'],'control':'/run/s','ports':[{'name':'p0'," \
	"'type':'null'}]"

static void write_file(const struct rpc_fixture *f, const char *text)
{
	FILE *out = fopen(f->file, "w");

	assert_non_null(out);
	for (; *text; text++)
		fputc(*text == '\'' ? '"' : *text, out);
	assert_int_equal(fclose(out), 0);
}

static void start_with(struct rpc_fixture *f, const char *tables)
{
	json_t *json = quoted(tables);
	char err[256];

	assert_int_equal(agent_apply_tables(f->sw, json, err, sizeof(err)), 0);
	json_decref(json);
}

static void expect_routes(struct rpc_fixture *f, const char *entries)
{
	json_t *got = call_ok(f, "config.get", NULL);

	expect_json(json_incref(json_object_get(
			    json_object_get(json_object_get(got, "config"), "tables"), "routes")),
		entries);
	json_decref(got);
}

/* The switch's own address stays, though the file does not name it. */
static void test_tables_become_the_files(void **state)
{
	struct rpc_fixture *f = *state;
	char expected[512];

	start_with(f, "{'routes':[" ROUTE("10.1.0.0/16", "'blackhole'") "," ROUTE("10.2.0.0/16",
			      "'via','data':{'hop':'10.0.0.1'}") "," ROUTE("10.3.0.0/16",
			      "'blackhole'") "]}");
	const unsigned before = f->sw->publishes;
	write_file(f, HEAD ",'# note':'x','tables':{'routes':[{'# a':1,'key':{'dst':'10.2.0.0/16'},"
			   "'action':'via','data':{'hop':'10.0.0.9'}}," ROUTE("10.3.0.0/16",
				   "'blackhole'") "," ROUTE("10.4.0.0/16", "'blackhole'") "]}}");
	snprintf(expected, sizeof(expected),
		"{'file':'%s','added':1,'changed':1,'removed':1,'kept':1,'restart':['control',"
		"'ports','arena_kb']}",
		f->file);
	expect_json(call_ok(f, "config.load", NULL), expected);
	assert_int_equal(f->sw->publishes, before + 1);
	expect_routes(f, "[" ROUTE("10.2.0.0/16", "'via','data':{'hop':'10.0.0.9'}") "," ROUTE(
				 "10.3.0.0/16", "'blackhole','data':{}") "," ROUTE("10.4.0.0/16",
				 "'blackhole','data':{}") "]");
	/* No tables at all: nothing but the switch's own rows is left. */
	write_file(f, HEAD ",'arena_kb':64}");
	json_t *result = call_ok(f, "config.load", NULL);
	assert_int_equal(json_integer_value(json_object_get(result, "removed")), 3);
	json_decref(result);
	json_t *got = call_ok(f, "config.get", NULL);
	assert_int_equal(
		json_object_size(json_object_get(json_object_get(got, "config"), "tables")), 0);
	json_decref(got);
}

static void test_own_rows_stay(void **state)
{
	struct rpc_fixture *f = *state;
	struct table_rows rows;
	const int local = table_find(f->sw->tables, "local_addr");

	assert_true(local >= 0);
	write_file(f, HEAD ",'tables':{}}");
	json_t *result = call_ok(f, "config.load", NULL);
	assert_int_equal(json_integer_value(json_object_get(result, "removed")), 0);
	json_decref(result);
	table_rows(f->sw->tables, (unsigned)local, &rows);
	assert_int_equal(rows.n, 1);
}

/* A bad file is refused by name, and nothing has changed. */
static void test_refused(void **state)
{
	static const struct {
		const char *text, *path, *message; /* %s: the file */
		int code;
		const char *name;
	} cases[] = {
		{"{'name':", NULL, "%s:1:8: unexpected token near end of file", INVALID, NULL},
		{"{'name':'a','name':'b'}", NULL, "%s:1:18: duplicate object key near '\"name\"'",
			INVALID, NULL},
		{HEAD ",'colour':1}", "colour", "colour: is not a known field", INVALID, NULL},
		{"{'name':7}", "name", "name: must be string, not an integer", INVALID, NULL},
		{HEAD ",'tables':{'nat':[]}}", "tables.nat",
			"tables.nat: no table is named \"nat\", there are: neighbours, routes, "
			"classes, local_addr",
			REFUSED, "ENOENT"},
		{HEAD ",'tables':{'routes':[" ROUTE("10.9.0.0/16", "'blackhole'") "," ROUTE(
			 "10.9.0.0/8", "'blackhole'") "]}}",
			"tables.routes[1].key.dst",
			"tables.routes[1].key.dst: 10.9.0.0/8 has host bits set, the network is "
			"10.0.0.0/8",
			INVALID, NULL},
		/* The same key twice, also if it is there already. */
		{HEAD ",'tables':{'routes':[" ROUTE("10.1.0.0/16", "'blackhole'") "," ROUTE(
			 "10.1.0.0/16", "'blackhole'") "]}}",
			"tables.routes[1].key",
			"tables.routes[1].key: table routes has an entry with this key", REFUSED,
			"EEXIST"},
	};
	struct rpc_fixture *f = *state;
	char message[512];

	start_with(f, "{'routes':[" ROUTE("10.1.0.0/16", "'blackhole'") "]}");
	const unsigned before = f->sw->publishes;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_file(f, cases[i].text);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(message, sizeof(message), cases[i].message, f->file);
#pragma GCC diagnostic pop
		call_bad(f, "config.load", NULL, cases[i].code, cases[i].name, -1, cases[i].path,
			message);
	}
	/* The dataplane says no. */
	write_file(f, HEAD ",'tables':{'routes':[" ROUTE("10.4.0.0/16", "'blackhole'") "]}}");
	f->sw->refuse = f->sw->publishes + 1;
	json_t *answer =
		send_line(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"config.load\"}", 47);
	assert_non_null(json_object_get(answer, "error"));
	json_decref(answer);
	f->sw->refuse = 0;
	unlink(f->file);
	snprintf(message, sizeof(message), "unable to open %s: No such file or directory", f->file);
	call_bad(f, "config.load", NULL, REFUSED, "ENOENT", -1, NULL, message);
	assert_true(f->sw->publishes <= before + 1);
	expect_routes(f, "[" ROUTE("10.1.0.0/16", "'blackhole','data':{}") "]");
	agent_destroy(f->agent);
	assert_int_equal(agent_create(f->sw, NULL, &f->agent), 0);
	call_bad(f, "config.load", NULL, REFUSED, "ENOENT", -1, NULL,
		"the switch was started without a configuration file to load");
}

static void expect_said(struct rpc_fixture *f, const char *expected)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	agent_load(f->agent, out);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

/* What the journal gets. */
static void test_said(void **state)
{
	struct rpc_fixture *f = *state;
	char expected[512];

	write_file(f, HEAD
		",'arena_kb':64,'tables':{'routes':[" ROUTE("10.4.0.0/16", "'blackhole'") "]}}");
	snprintf(expected, sizeof(expected),
		"incline-switch: %s: tables loaded: 1 added, 0 changed, 0 removed, 0 kept; take a "
		"restart: control, ports\n",
		f->file);
	expect_said(f, expected);
	write_file(f, "{}");
	snprintf(expected, sizeof(expected),
		"incline-switch: %s: not loaded, nothing has changed: ports: is missing\n",
		f->file);
	expect_said(f, expected);
	expect_routes(f, "[" ROUTE("10.4.0.0/16", "'blackhole','data':{}") "]");
}

static void test_restricted(void **state)
{
	struct rpc_fixture *f = *state;
	struct agent_peer peer = {.restricted = true};

	f->peer = &peer;
	json_t *answer =
		send_line(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"config.load\"}", 47);
	assert_non_null(json_object_get(answer, "error"));
	json_decref(answer);
	f->peer = NULL;
}

static void test_liveness(void **state)
{
	struct rpc_fixture *f = *state;
	struct liveness l = {0};

	assert_int_equal(liveness_stuck(&l, f->sw, 1000, 50), -1);
	f->sw->turns[0]++, f->sw->turns[1]++;
	assert_int_equal(liveness_stuck(&l, f->sw, 1040, 50), -1);
	f->sw->turns[0]++;
	assert_int_equal(liveness_stuck(&l, f->sw, 1089, 50), -1);
	f->sw->turns[0]++;
	assert_int_equal(liveness_stuck(&l, f->sw, 1090, 50), 1);
	f->sw->turns[1]++;
	assert_int_equal(liveness_stuck(&l, f->sw, 1100, 50), -1);
	assert_int_equal(liveness_stuck(&l, f->sw, 1150, 50), 0);
}

/* Has the service manager been told? */
static bool told(int fd)
{
	char said[32];
	const ssize_t n = recv(fd, said, sizeof(said), MSG_DONTWAIT);

	if (n < 0)
		return false;
	assert_int_equal(n, 10);
	assert_memory_equal(said, "WATCHDOG=1", 10);
	return true;
}

/* A worker that is stuck withholds it, though the control thread turns; until it turns again. */
static void test_watchdog_withheld(void **state)
{
	static const char error[] = "error: worker 1 does not turn: the watchdog is told no more\n";
	struct rpc_fixture *f = *state;
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct watchdog w = {.every_ns = 50, .stuck = -1}, nobody = {.stuck = -1};
	const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	char *text = NULL;
	size_t len;
	FILE *log = open_memstream(&text, &len);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/notify", f->dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	setenv("NOTIFY_SOCKET", at.sun_path, 1);
	for (uint64_t now = 1000; now < 1300; now += 10) {
		f->sw->turns[0]++, f->sw->turns[1]++;
		watchdog_turn(&nobody, f->sw, now, "test", log);
		watchdog_turn(&w, f->sw, now, "test", log);
		assert_int_equal(told(fd), now % 50 == 0);
	}
	/* Worker 1 stops at 1290: what is due at 1300 is still said, later nothing is. */
	for (uint64_t now = 1300; now < 2000; now += 10) {
		f->sw->turns[0]++;
		watchdog_turn(&w, f->sw, now, "test", log);
		assert_int_equal(told(fd), now == 1300);
	}
	f->sw->turns[1]++;
	watchdog_turn(&w, f->sw, 2000, "test", log);
	assert_true(told(fd));
	fclose(log);
	assert_string_equal(text, error);
	free(text);
	unsetenv("NOTIFY_SOCKET");
	close(fd);
	unlink(at.sun_path);
}

static void test_watchdog(void **state)
{
	static const struct {
		const char *usec;
		uint64_t ns;
	} cases[] = {{"30000000", 15000000000}, {"3", 1000}, {"1", 0}, {"0", 0}, {"", 0}, {"-3", 0},
		{"3s", 0}, {"18446744073709551615", 0}, {"18446744073709551616", 0}};
	char pid[16];

	(void)state;
	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
	assert_int_equal(ctl_watchdog_ns(), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setenv("WATCHDOG_USEC", cases[i].usec, 1);
		assert_int_equal(ctl_watchdog_ns(), cases[i].ns);
	}
	setenv("WATCHDOG_USEC", "2000000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(ctl_watchdog_ns(), 0);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(ctl_watchdog_ns(), 1000000000);
	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
}

#define T(name) cmocka_unit_test_setup_teardown(name, rpc_setup, rpc_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(test_tables_become_the_files),
		T(test_own_rows_stay),
		T(test_refused),
		T(test_said),
		T(test_restricted),
		T(test_liveness),
		T(test_watchdog_withheld),
		cmocka_unit_test(test_watchdog),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
