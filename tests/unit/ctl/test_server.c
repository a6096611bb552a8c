/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent over a real socket, with clients that behave badly. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctrl/agent/agent.h"
#include "lib/ctl/client.h"
#include "tests/unit/ctl/fake_switch.h"

enum { LONG_MS = 20000 }; /* nothing takes that long unless it is broken */

struct fixture {
	char dir[64], path[96];
	struct sw *sw;
	struct agent_options limits;
	json_t *config;
	volatile sig_atomic_t stop;
	pthread_t thread;
	int rc;
};

static void *run(void *arg)
{
	struct fixture *f = arg;

	f->rc = agent_run_with(f->sw, f->path, f->config, &f->stop, &f->limits);
	return NULL;
}

static int setup_dir(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "%s/incline-test-XXXXXX", getenv("TMPDIR") ?: "/tmp");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/s", f->dir);
	f->sw = fake_switch_create();
	*state = f;
	return 0;
}

static void start(struct fixture *f)
{
	assert_int_equal(pthread_create(&f->thread, NULL, run, f), 0);
}

static void stop(struct fixture *f)
{
	f->stop = 1;
	pthread_join(f->thread, NULL);
	f->stop = 0;
}

static int setup(void **state)
{
	setup_dir(state);
	start(*state);
	return 0;
}

static int setup_impatient(void **state)
{
	setup_dir(state);
	((struct fixture *)*state)->limits = (struct agent_options){50, 50};
	start(*state);
	return 0;
}

static int teardown_dir(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	assert_int_equal(rmdir(f->dir), 0);
	fake_switch_destroy(f->sw);
	json_decref(f->config);
	free(f);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	stop(f);
	assert_int_equal(f->rc, 0);
	assert_int_equal(access(f->path, F_OK), -1);
	return teardown_dir(state);
}

/* ---- raw clients ---- */

static int dial(const struct fixture *f)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", f->path);
	for (unsigned i = 0; i < LONG_MS / 10; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		if (!connect(fd, (struct sockaddr *)&to, sizeof(to)))
			return fd;
		close(fd);
		poll(NULL, 0, 10);
	}
	fail_msg("nobody listens at %s", f->path);
	return -1;
}

/* Sends all of it, or as much as the server takes before it closes. */
static void put(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n < 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

static void put_text(int fd, const char *text)
{
	put(fd, text, strlen(text));
}

static void put_request(int fd, int id, const char *method)
{
	char line[128];

	snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\"}\n", id,
		method);
	put_text(fd, line);
}

/* What is there, up to and with the next newline; 0 when the server has closed. */
static size_t get_some(int fd, char *buf, size_t cap)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (poll(&p, 1, LONG_MS) != 1)
		fail_msg("the server says nothing");
	ssize_t n = recv(fd, buf, cap, MSG_PEEK);
	if (n <= 0)
		return 0;
	char *end = memchr(buf, '\n', (size_t)n);
	return (size_t)recv(fd, buf, end ? (size_t)(end - buf) + 1 : (size_t)n, 0);
}

/* The next line as JSON, NULL when the server has closed. */
static json_t *get_line(int fd)
{
	size_t len = 0, n, cap = 1 << 20;
	char *buf = malloc(cap);
	json_t *out = NULL;

	do {
		assert_true(len < cap);
		n = get_some(fd, buf + len, cap - len);
		len += n;
	} while (n && buf[len - 1] != '\n');
	assert_true(n || len == 0);
	if (len)
		out = json_loadb(buf, len, JSON_REJECT_DUPLICATES, NULL);
	assert_true(len == 0 || json_is_object(out));
	free(buf);
	return out;
}

static void expect_id(int fd, int id)
{
	json_t *line = get_line(fd);

	assert_non_null(line);
	assert_int_equal(json_integer_value(json_object_get(line, "id")), id);
	assert_non_null(json_object_get(line, "result"));
	json_decref(line);
}

static void expect_error(int fd, int code, const char *message)
{
	json_t *line = get_line(fd), *error = json_object_get(line, "error");

	assert_int_equal(json_integer_value(json_object_get(error, "code")), code);
	if (message)
		assert_string_equal(json_string_value(json_object_get(error, "message")), message);
	json_decref(line);
}

static void expect_closed(int fd)
{
	assert_null(get_line(fd));
	close(fd);
}

static void expect_alive(struct fixture *f)
{
	int fd = dial(f);

	put_request(fd, 7, "ping");
	expect_id(fd, 7);
	close(fd);
}

/* ---- the socket itself ---- */

static void test_mode(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	expect_alive(f);
	assert_int_equal(stat(f->path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0660);
}

static void test_second_server(void **state)
{
	struct fixture *f = *state;
	volatile sig_atomic_t never = 1;

	expect_alive(f);
	assert_int_equal(agent_run(f->sw, f->path, NULL, &never), -EADDRINUSE);
	expect_alive(f);
}

static void test_stale_socket(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", f->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	close(fd);
	start(f);
	expect_alive(f);
	stop(f);
	assert_int_equal(f->rc, 0);
	assert_int_equal(access(f->path, F_OK), -1);
}

static void test_bad_paths(void **state)
{
	struct fixture *f = *state;
	volatile sig_atomic_t now = 1;
	char path[256];

	assert_int_equal(close(open(f->path, O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(agent_run(f->sw, f->path, NULL, &now), -EEXIST);
	assert_int_equal(access(f->path, F_OK), 0);
	snprintf(path, sizeof(path), "%s/none/s", f->dir);
	assert_int_equal(agent_run(f->sw, path, NULL, &now), -ENOENT);
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(agent_run(f->sw, path, NULL, &now), -ENAMETOOLONG);
	assert_int_equal(agent_run(f->sw, "", NULL, &now), -ENAMETOOLONG);
}

static void test_ticks(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < LONG_MS; i++) {
		if (__atomic_load_n(&f->sw->ticks, __ATOMIC_RELAXED) > 2)
			return;
		poll(NULL, 0, 1);
	}
	fail_msg("sw_tick is not called");
}

/* ---- framing ---- */

static void test_many_in_one_write(void **state)
{
	struct fixture *f = *state;
	int fd = dial(f);

	put_text(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n\r\n"
		     "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}\r\n"
		     "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"version\"}\n");
	expect_id(fd, 1);
	expect_id(fd, 2);
	close(fd);
}

static void test_byte_by_byte(void **state)
{
	static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}\n";
	int fd = dial(*state);

	for (size_t i = 0; i < sizeof(line) - 1; i++)
		put(fd, line + i, 1);
	expect_id(fd, 3);
	close(fd);
}

static void test_goes_on_after_nonsense(void **state)
{
	int fd = dial(*state);

	put_text(fd, "GET / HTTP/1.0\n[1,2\n\x01\x02\xff\n");
	for (unsigned i = 0; i < 3; i++)
		expect_error(fd, CTL_PARSE_ERROR, NULL);
	put_request(fd, 1, "ping");
	expect_id(fd, 1);
	close(fd);
}

/* More requests than one turn serves; the client has said that it sends no more. */
static void test_half_close(void **state)
{
	enum { N = 500 };
	int fd = dial(*state);

	for (int i = 0; i < N; i++)
		put_request(fd, i, "ping");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	for (int i = 0; i < N; i++)
		expect_id(fd, i);
	expect_closed(fd);
}

static char *big_line(size_t len)
{
	static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}";
	char *line = malloc(len);

	memset(line, ' ', len);
	memcpy(line, head, sizeof(head) - 1);
	return line;
}

static void test_longest_line(void **state)
{
	int fd = dial(*state);
	char *line = big_line(CTL_MAX_LINE);

	put(fd, line, CTL_MAX_LINE);
	put_text(fd, "\n");
	expect_id(fd, 4);
	free(line);
	close(fd);
}

static void test_too_long_line(void **state)
{
	struct fixture *f = *state;
	char *line = big_line(10 << 20);
	int fd = dial(f);

	put(fd, line, 10 << 20);
	put_text(fd, "\n");
	expect_error(fd, CTL_INVALID_REQUEST, "request is longer than 1048576 bytes");
	expect_closed(fd);
	/* One byte too many, with its newline. */
	fd = dial(f);
	line[CTL_MAX_LINE + 1] = '\n';
	put(fd, line, CTL_MAX_LINE + 2);
	expect_error(fd, CTL_INVALID_REQUEST, "request is longer than 1048576 bytes");
	expect_closed(fd);
	free(line);
	expect_alive(f);
}

/* ---- clients that go away, stall, or come in crowds ---- */

static unsigned n_routes(struct fixture *f)
{
	struct ctl_client *c;
	struct ctl_error e;
	json_t *params = json_pack("{s:s}", "table", "routes"), *result;

	assert_int_equal(ctl_connect(f->path, LONG_MS, &c, &e), 0);
	assert_int_equal(ctl_call(c, "table.read", params, LONG_MS, &result, &e), 0);
	unsigned n = (unsigned)json_integer_value(json_object_get(result, "total"));
	json_decref(result);
	json_decref(params);
	ctl_close(c);
	return n;
}

#define INSERT                                                                               \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"table.write\",\"params\":{\"updates\":[" \
	"{\"op\":\"insert\",\"table\":\"routes\",\"key\":{\"dst\":\"10.0.0.0/8\"},"          \
	"\"action\":\"blackhole\"}]}}"

static void test_gone_mid_line(void **state)
{
	struct fixture *f = *state;

	for (size_t len = 1; len <= strlen(INSERT); len += 7) {
		int fd = dial(f);

		put(fd, INSERT, len);
		close(fd);
	}
	/* All but the newline, then half-closed: not a request either. */
	int fd = dial(f);
	put_text(fd, INSERT);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	expect_closed(fd);
	assert_int_equal(n_routes(f), 0);
	/* With the newline it counts, even if nobody waits for the answer. */
	fd = dial(f);
	put_text(fd, INSERT "\n");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	expect_id(fd, 1);
	expect_closed(fd);
	assert_int_equal(n_routes(f), 1);
}

static void test_slow_line(void **state)
{
	struct fixture *f = *state;
	int fd = dial(f);

	put_text(fd, "{\"jsonrpc\":");
	expect_error(fd, CTL_INVALID_REQUEST, "line was not finished in time");
	expect_closed(fd);
	/* Silence between lines is no offence. */
	fd = dial(f);
	poll(NULL, 0, 300);
	put_request(fd, 1, "ping");
	expect_id(fd, 1);
	close(fd);
}

/* A byte now and then does not make a line that never ends acceptable. */
static void test_trickle(void **state)
{
	int fd = dial(*state);
	bool open = true;

	for (unsigned i = 0; open && i < LONG_MS / 5; i++) {
		open = send(fd, " ", 1, MSG_NOSIGNAL) == 1;
		poll(NULL, 0, 5);
	}
	assert_false(open);
	expect_error(fd, CTL_INVALID_REQUEST, "line was not finished in time");
	expect_closed(fd);
}

/* Asks without end and takes no answer: is closed, and nobody else notices. */
static void test_stalled_reader(void **state)
{
	struct fixture *f = *state;
	static const char ask[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"schema.get\"}\n";
	struct pollfd p = {.events = POLLOUT};
	size_t sent = 0;

	p.fd = dial(f);
	assert_int_equal(fcntl(p.fd, F_SETFL, O_NONBLOCK), 0);
	for (;;) {
		ssize_t n = send(p.fd, ask, sizeof(ask) - 1, MSG_NOSIGNAL);

		if (n > 0)
			sent += (size_t)n;
		else if (errno != EAGAIN)
			break;
		else if (poll(&p, 1, LONG_MS) != 1)
			fail_msg("the server does not close a stalled client");
		/* What the server takes in is bounded by its buffers, and the kernel's. */
		assert_true(sent < 64 << 20);
		if (sent % (1000 * (sizeof(ask) - 1)) == 0)
			expect_alive(f);
	}
	close(p.fd);
	expect_alive(f);
}

/* The same, but the client reads in the end: nothing is lost. */
static void test_held_reader(void **state)
{
	enum { N = 300 };
	int fd = dial(*state);

	for (int i = 0; i < N; i++)
		put_request(fd, i, "schema.get");
	poll(NULL, 0, 200);
	for (int i = 0; i < N; i++)
		expect_id(fd, i);
	close(fd);
}

/* The client tells what the server said, not merely that it has closed. */
static void expect_refusal(struct fixture *f)
{
	struct ctl_client *c;
	struct ctl_error e;

	assert_int_equal(ctl_connect(f->path, LONG_MS, &c, &e), 0);
	struct pollfd p = {.fd = ctl_fd(c)};
	assert_int_equal(poll(&p, 1, LONG_MS), 1);
	assert_true(p.revents & POLLHUP);
	assert_int_equal(ctl_call(c, "ping", NULL, LONG_MS, NULL, &e), -EREMOTEIO);
	assert_int_equal(e.code, CTL_REFUSED);
	assert_string_equal(e.msg, "too many clients, the limit is 64");
	ctl_close(c);
}

static void test_crowd(void **state)
{
	enum { N = 100, LIMIT = 64 };
	struct fixture *f = *state;
	int fd[N];

	for (int i = 0; i < N; i++)
		fd[i] = dial(f);
	for (int i = 0; i < LIMIT; i++) {
		put_request(fd[i], i, "ping");
		expect_id(fd[i], i);
	}
	for (int i = LIMIT; i < N; i++) {
		expect_error(fd[i], CTL_REFUSED, "too many clients, the limit is 64");
		expect_closed(fd[i]);
	}
	expect_refusal(f);
	for (int i = 0; i < LIMIT; i++)
		close(fd[i]);
	/* The places become free; how soon is the server's business. */
	for (unsigned tries = 0; tries < LONG_MS / 10; tries++) {
		int again = dial(f);

		put_request(again, 5, "ping");
		json_t *line = get_line(again);
		bool served = json_object_get(line, "result") != NULL;
		json_decref(line);
		close(again);
		if (served)
			return;
		poll(NULL, 0, 10);
	}
	fail_msg("places do not become free");
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

static void start_tcp(struct fixture *f, const char *where)
{
	f->config = json_pack("{s:s}", "control_tcp", where);
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

static void test_tcp(void **state)
{
	struct fixture *f = *state;
	char unix_name[128];

	start_tcp(f, "127.0.0.1:0");
	assert_memory_equal(tcp_name, "tcp:127.0.0.1:", 14);
	assert_string_not_equal(tcp_name, "tcp:127.0.0.1:0");
	expect_ping(tcp_name);
	snprintf(unix_name, sizeof(unix_name), "unix:%s", f->path);
	expect_ping(unix_name);
	expect_ping(f->path);
}

/* Clients from the network do not keep the operator out. */
static void test_tcp_crowd(void **state)
{
	enum { N = 70, LIMIT = 48 };
	struct fixture *f = *state;
	struct ctl_client *c[N];
	struct ctl_error e;
	unsigned served = 0;

	start_tcp(f, "127.0.0.1:0");
	for (int i = 0; i < N; i++) {
		assert_int_equal(ctl_connect(tcp_name, LONG_MS, &c[i], &e), 0);
		if (ctl_call(c[i], "ping", NULL, LONG_MS, NULL, &e) == 0)
			served++;
		else
			assert_string_equal(e.msg, "too many TCP clients, the limit is 48");
	}
	assert_int_equal(served, LIMIT);
	expect_ping(f->path);
	for (int i = 0; i < N; i++)
		ctl_close(c[i]);
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
	f->config = json_pack("{s:i}", "control_tcp", 9);
	assert_int_equal(agent_check_config(f->config, err, sizeof(err)), -EINVAL);
	assert_int_equal(agent_check_config(NULL, err, sizeof(err)), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_mode),
		T(test_second_server),
		cmocka_unit_test_setup_teardown(test_stale_socket, setup_dir, teardown_dir),
		cmocka_unit_test_setup_teardown(test_bad_paths, setup_dir, teardown_dir),
		T(test_ticks),
		T(test_many_in_one_write),
		T(test_byte_by_byte),
		T(test_goes_on_after_nonsense),
		T(test_half_close),
		T(test_longest_line),
		T(test_too_long_line),
		T(test_gone_mid_line),
		cmocka_unit_test_setup_teardown(test_slow_line, setup_impatient, teardown),
		cmocka_unit_test_setup_teardown(test_trickle, setup_impatient, teardown),
		cmocka_unit_test_setup_teardown(test_stalled_reader, setup_impatient, teardown),
		T(test_held_reader),
		T(test_crowd),
		cmocka_unit_test_setup_teardown(test_tcp, setup_dir, teardown),
		cmocka_unit_test_setup_teardown(test_tcp_crowd, setup_dir, teardown),
		cmocka_unit_test_setup_teardown(test_tcp_refused, setup_dir, teardown_dir),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
