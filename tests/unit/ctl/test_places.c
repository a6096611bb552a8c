/* SPDX-License-Identifier: BSD-3-Clause */
/* Places for connections: many clients, silent ones, those that hold owners, those from the
 * network. Whatever they do, the operator on this machine finds one. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/ctl/client.h"
#include "tests/unit/ctl/server_helper.h"

enum { PLACES = 512, TCP_PLACES = 384, HOLDERS = 448 };

/* Both ends of all connections are in this process. */
static int enough_descriptors(void **state)
{
	struct rlimit r;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
	r.rlim_cur = r.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
	assert_true(r.rlim_cur > 2 * (PLACES + TCP_PLACES));
	return 0;
}

static void ping(int fd)
{
	put_request(fd, 3, "ping");
	expect_id(fd, 3);
}

static void hold(int fd, unsigned who)
{
	char line[160];

	snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"owner.hold\",\"params\":{\"owner\":"
		"\"somebody-%010u\",\"owner_ms\":100}}\n",
		who);
	put_text(fd, line);
}

/* Whoever has been silent longest makes room for the next. */
static void test_crowd(void **state)
{
	enum { MORE = 20 };
	struct fixture *f = *state;
	int fd[PLACES + MORE];

	for (int i = 0; i < PLACES; i++) {
		fd[i] = dial(f);
		ping(fd[i]);
	}
	ping(fd[0]);
	for (int i = PLACES; i < PLACES + MORE; i++) {
		fd[i] = dial(f);
		ping(fd[i]);
	}
	for (int i = 1; i <= MORE; i++)
		expect_closed(fd[i]);
	ping(fd[0]);
	close(fd[0]);
	for (int i = MORE + 1; i < PLACES + MORE; i++) {
		ping(fd[i]);
		close(fd[i]);
	}
}

/* Who holds an owner stays, and cannot take all places. */
static void test_holders(void **state)
{
	struct fixture *f = *state;
	int fd[HOLDERS], other[PLACES - HOLDERS + 9];
	const int n = sizeof(other) / sizeof(other[0]);

	for (int i = 0; i < HOLDERS; i++) {
		fd[i] = dial(f);
		hold(fd[i], (unsigned)i);
		expect_id(fd[i], 4);
	}
	for (int i = 0; i < n; i++) {
		other[i] = dial(f);
		hold(other[i], HOLDERS);
		expect_error(other[i], CTL_REFUSED,
			"too many connections hold owners, the limit is 448");
	}
	expect_alive(f);
	for (int i = 0; i < HOLDERS; i++) {
		ping(fd[i]);
		close(fd[i]);
	}
	for (int i = 0; i < n; i++)
		close(other[i]);
}

/* Silence ends a connection, unless it holds an owner. */
static void test_idle(void **state)
{
	struct fixture *f = *state;
	struct ctl_client *c;
	struct ctl_error e;
	int holder, other;

	f->limits.idle_ms = 50;
	start(f);
	holder = dial(f);
	hold(holder, 1);
	expect_id(holder, 4);
	other = dial(f);
	expect_closed(other);
	/* A client sees it before it asks the next time. */
	assert_int_equal(ctl_connect(f->path, LONG_MS, &c, &e), 0);
	assert_true(ctl_is_open(c));
	assert_int_equal(poll(&(struct pollfd){.fd = ctl_fd(c), .events = POLLIN}, 1, LONG_MS), 1);
	assert_false(ctl_is_open(c));
	ctl_close(c);
	ping(holder);
	close(holder);
}

static void pass(struct fixture *f, uint64_t ms)
{
	const unsigned ticks = __atomic_load_n(&f->sw->ticks, __ATOMIC_ACQUIRE);

	__atomic_add_fetch(&f->sw->now, ms * 1000000, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < LONG_MS; i++) {
		if (__atomic_load_n(&f->sw->ticks, __ATOMIC_ACQUIRE) > ticks + 1)
			return;
		poll(NULL, 0, 1);
	}
	fail_msg("no tick");
}

/* The server's machine sleeps for ten minutes, twice: neither who was silent nor who was about to
 * ask is closed for it. Afterwards silence counts as before. */
static void test_sleep(void **state)
{
	static const char ping_2[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n";
	struct fixture *f = *state;
	int silent, asking;

	f->sw->now = 1000000000;
	f->limits.idle_ms = 5000;
	start(f);
	silent = dial(f);
	ping(silent);
	asking = dial(f);
	put(asking, ping_2, 10);
	pass(f, 500);
	for (int i = 0; i < 2; i++)
		pass(f, 600000);
	put_text(asking, ping_2 + 10);
	expect_id(asking, 2);
	ping(silent);
	for (int i = 0; i < 12; i++)
		pass(f, 500);
	expect_closed(silent);
	close(asking);
}

static unsigned lines_until_end(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	unsigned lines = 0;
	char some[4096];

	for (;;) {
		assert_int_equal(poll(&p, 1, LONG_MS), 1);
		ssize_t n = recv(fd, some, sizeof(some), 0);
		if (n <= 0)
			return lines;
		for (ssize_t i = 0; i < n; i++)
			lines += some[i] == '\n';
	}
}

/* Who takes no answers is closed, by the server's own clock; not for time in which that slept. */
static void test_stall(void **state)
{
	enum { N = 300 };
	struct fixture *f = *state;
	int late, never;

	f->sw->now = 1000000000;
	f->limits.idle_ms = 3600000;
	f->limits.stall_ms = 5000;
	start(f);
	late = dial(f);
	put_requests(late, N, "schema.get");
	ping(never = dial(f)); /* when that is answered, answers wait for the other one */
	for (int i = 0; i < 2; i++)
		pass(f, 600000);
	for (int i = 0; i < N; i++)
		expect_id(late, i);
	put_requests(never, N, "schema.get");
	ping(late);
	for (int i = 0; i < 12; i++)
		pass(f, 500);
	assert_in_range(lines_until_end(never), 0, N - 1);
	close(never);
	ping(late);
	close(late);
}

/* A connection ends, and with it, after a while, what was made over it. */
static void test_end_of_a_holder(void **state)
{
	static const char create[] =
		"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"group.create\",\"params\":{\"name\":"
		"\"g\",\"mode\":\"II\",\"kind\":\"mixed\",\"mtu\":1024,\"M\":4,\"W\":8,\"ranks\":1,"
		"\"endpoints\":[{\"ip\":\"10.0.0.1\",\"qpn\":257,\"port\":\"p0\",\"mac\":"
		"\"02:00:00:00:00:01\",\"ranks\":[0]}]}}\n";
	struct fixture *f = *state;
	json_t *result, *status = NULL;
	struct ctl_client *c;
	struct ctl_error e;
	int fd = dial(f);

	hold(fd, 1);
	expect_id(fd, 4);
	put_text(fd, create);
	expect_id(fd, 5);
	close(fd);
	assert_int_equal(ctl_connect(f->path, LONG_MS, &c, &e), 0);
	for (unsigned tries = 0; tries < LONG_MS / 10; tries++) {
		json_decref(status);
		assert_int_equal(ctl_call(c, "status", NULL, LONG_MS, &status, &e), 0);
		if (!json_integer_value(json_object_get(status, "groups")))
			break;
		poll(NULL, 0, 10);
	}
	assert_int_equal(json_integer_value(json_object_get(status, "groups")), 0);
	assert_int_equal(json_integer_value(json_object_get(status, "orphans")), 1);
	assert_int_equal(ctl_call(c, "group.list", NULL, LONG_MS, &result, &e), 0);
	assert_int_equal(json_array_size(json_object_get(result, "groups")), 0);
	json_decref(result);
	json_decref(status);
	ctl_close(c);
}

/* ---- TCP ---- */

static char tcp_name[96];
static atomic_bool tcp_ready;

static void note_ready(struct sw *sw, const char *socket_path, const char *tcp)
{
	(void)sw, (void)socket_path;
	snprintf(tcp_name, sizeof(tcp_name), "%s", tcp ? tcp : "none");
	tcp_ready = true;
}

static void start_tcp(struct fixture *f, json_t *config)
{
	f->config = config;
	f->limits.ready = note_ready;
	tcp_ready = false;
	start(f);
	for (unsigned tries = 0; tries < LONG_MS / 10 && !tcp_ready; tries++)
		poll(NULL, 0, 10);
	assert_true(tcp_ready);
}

static void expect_ping(const char *where)
{
	struct ctl_client *c;
	struct ctl_error e;

	assert_int_equal(ctl_connect(where, LONG_MS, &c, &e), 0);
	assert_int_equal(ctl_call(c, "ping", NULL, LONG_MS, NULL, &e), 0);
	ctl_close(c);
}

static int call_over_tcp(const char *method)
{
	struct ctl_error e = {0};
	struct ctl_client *c;

	assert_int_equal(ctl_connect(tcp_name, LONG_MS, &c, &e), 0);
	if (ctl_call(c, method, NULL, LONG_MS, NULL, &e) == 0)
		e.code = 0;
	ctl_close(c);
	return e.code;
}

static void test_tcp(void **state)
{
	struct fixture *f = *state;
	char unix_name[128];

	start_tcp(f, json_pack("{s:s}", "control_tcp", "127.0.0.1:0"));
	assert_memory_equal(tcp_name, "tcp:127.0.0.1:", 14);
	assert_string_not_equal(tcp_name, "tcp:127.0.0.1:0");
	expect_ping(tcp_name);
	snprintf(unix_name, sizeof(unix_name), "unix:%s", f->path);
	expect_ping(unix_name);
	expect_ping(f->path);
}

/* Clients from the network do not keep the operator out, not even those that hold owners. */
static void test_tcp_crowd(void **state)
{
	enum { N = TCP_PLACES + 8 };
	struct fixture *f = *state;
	struct ctl_client *c[N];
	struct ctl_error e;
	unsigned held = 0;

	start_tcp(f, json_pack("{s:s}", "control_tcp", "127.0.0.1:0"));
	for (int i = 0; i < N; i++) {
		json_t *params = json_pack("{s:o}", "owner", json_sprintf("somebody-%010d", i));

		assert_int_equal(ctl_connect(tcp_name, LONG_MS, &c[i], &e), 0);
		if (ctl_call(c[i], "owner.hold", params, LONG_MS, NULL, &e) == 0)
			held++;
		else
			assert_string_equal(e.msg, "too many TCP clients, the limit is 384");
		json_decref(params);
	}
	assert_int_equal(held, TCP_PLACES);
	expect_ping(f->path);
	for (int i = 0; i < N; i++)
		ctl_close(c[i]);
}

/* Without a word in the configuration, TCP is for jobs; with it, for everything. */
static void test_tcp_rights(void **state)
{
	struct fixture *f = *state;

	start_tcp(f, json_pack("{s:s}", "control_tcp", "127.0.0.1:0"));
	expect_ping(tcp_name);
	assert_int_equal(call_over_tcp("table.list"), CTL_NOT_ALLOWED);
	assert_int_equal(call_over_tcp("status"), 0);
}

static void test_tcp_full(void **state)
{
	struct fixture *f = *state;

	start_tcp(f, json_pack("{s:s, s:b}", "control_tcp", "127.0.0.1:0", "control_tcp_full", 1));
	assert_int_equal(call_over_tcp("table.list"), 0);
	assert_int_equal(call_over_tcp("drops.get"), 0);
}

static void test_tcp_refused(void **state)
{
	static const char *const bad[] = {"0.0.0.0:9", "[::]:9", "[::ffff:0.0.0.0]:9", "0:9",
		"localhost:9", "127.0.0.1", "127.0.0.1:", ":9", "127.0.0.1:x", "::1:9",
		"127.0.0.1:65536", "127.0.0.1:999999", "192.0.2.1:9", ""};
	struct fixture *f = *state;
	char err[256];

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		f->config = json_pack("{s:s}", "control_tcp", bad[i]);
		f->stop = 1;
		run(f);
		if (f->rc == 0)
			fail_msg("listens at %s", bad[i]);
		assert_int_equal(access(f->path, F_OK), -1);
		/* Whose address it is shows only when it is used. */
		if (strcmp(bad[i], "192.0.2.1:9") != 0) {
			assert_int_equal(agent_check_config(f->config, err, sizeof(err)), -EINVAL);
			assert_memory_equal(err, "control_tcp: must be ", 21);
		}
		json_decref(f->config);
	}
	f->config = NULL;
	assert_int_equal(agent_check_config(NULL, err, sizeof(err)), 0);
}

#define D(name) cmocka_unit_test_setup_teardown(name, setup_dir, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_crowd, setup, teardown),
		cmocka_unit_test_setup_teardown(test_holders, setup, teardown),
		D(test_idle),
		D(test_sleep),
		D(test_stall),
		cmocka_unit_test_setup_teardown(test_end_of_a_holder, setup, teardown),
		D(test_tcp),
		D(test_tcp_crowd),
		D(test_tcp_rights),
		D(test_tcp_full),
		cmocka_unit_test_setup_teardown(test_tcp_refused, setup_dir, teardown_dir),
	};

	return cmocka_run_group_tests(tests, enough_descriptors, NULL);
}
