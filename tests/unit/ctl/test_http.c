/* SPDX-License-Identifier: BSD-3-Clause */
/* The page of counters over a real socket, and clients that behave badly. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/ctl/http.h"
#include "lib/ctl/metrics.h"
#include "tests/unit/ctl/server_helper.h"

static const char GET[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

static void path_of(const struct fixture *f, char path[108])
{
	snprintf(path, 108, "%.90s/m", f->dir);
}

static int begin(void **state, unsigned line_ms)
{
	struct fixture *f;
	char path[108];

	setup_dir(state);
	f = *state;
	path_of(f, path);
	f->limits = (struct agent_options){.line_ms = line_ms, .stall_ms = 10 * LONG_MS};
	f->config = json_pack("{s:s+}", "metrics", "unix:", path);
	start(f);
	expect_alive(f);
	return 0;
}

static int setup_patient(void **state)
{
	return begin(state, 10 * LONG_MS);
}

static int setup_hurried(void **state)
{
	return begin(state, 300);
}

/* The socket goes with the switch. */
static int end(void **state)
{
	char path[108];

	path_of(*state, path);
	assert_int_equal(access(path, F_OK), 0);
	stop(*state);
	assert_int_equal(((struct fixture *)*state)->rc, 0);
	assert_int_equal(access(path, F_OK), -1);
	return teardown_dir(state);
}

static int knock(const struct fixture *f)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	path_of(f, to.sun_path);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* All that comes until the server closes; to be freed. */
static char *answer(int fd)
{
	size_t len = 0, cap = 8 << 20;
	char *text = malloc(cap);
	ssize_t n;

	assert_non_null(text);
	do {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (poll(&p, 1, LONG_MS) != 1)
			fail_msg("the server neither answers nor closes");
		n = recv(fd, text + len, cap - len - 1, 0);
		len += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	text[len] = '\0';
	close(fd);
	return text;
}

static void expect_answer(const struct fixture *f, const char *request, const char *status)
{
	int fd = knock(f);
	char *text;

	put_text(fd, request);
	text = answer(fd);
	if (strncmp(text, "HTTP/1.1 ", 9) != 0 || strncmp(text + 9, status, strlen(status)) != 0)
		fail_msg("not %s: %.200s", status, text);
	free(text);
}

static void test_page(void **state)
{
	int fd = knock(*state);
	char *text, *body;

	put_text(fd, GET);
	text = answer(fd);
	assert_memory_equal(text, "HTTP/1.1 200 OK\r\n", 17);
	assert_non_null(strstr(text, "Content-Type: " METRICS_CONTENT_TYPE "\r\n"));
	assert_non_null(strstr(text, "Connection: close\r\n"));
	body = strstr(text, "\r\n\r\n");
	assert_non_null(body);
	assert_memory_equal(body + 4, "# TYPE incline_", 15);
	assert_string_equal(body + strlen(body) - 6, "# EOF\n");
	free(text);
}

static void test_mode(void **state)
{
	char path[108];
	struct stat st;

	path_of(*state, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
}

static void test_refused(void **state)
{
	expect_answer(*state, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "404");
	expect_answer(*state, "GET /metrics/../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "404");
	expect_answer(
		*state, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "501");
	expect_answer(*state, "nonsense\r\n\r\n", "400");
	expect_answer(*state, GET, "200");
}

/* As many as there are places, silent, and others behind them: control is served all the while, and
 * who goes makes room. */
static void test_crowd(void **state)
{
	enum { MORE = 10 };
	int fd[CTL_HTTP_CLIENTS + MORE], last;
	char byte, *text;

	for (unsigned i = 0; i < CTL_HTTP_CLIENTS + MORE; i++) {
		fd[i] = knock(*state);
		put_text(fd[i], "GET /metrics HT");
	}
	expect_alive(*state);
	last = knock(*state);
	put_text(last, GET);
	for (int i = 0; i < 3; i++)
		expect_alive(*state);
	assert_int_equal(recv(last, &byte, 1, MSG_DONTWAIT), -1); /* no place */
	assert_int_equal(errno, EAGAIN);
	for (unsigned i = 0; i < CTL_HTTP_CLIENTS + MORE; i++)
		close(fd[i]);
	text = answer(last);
	assert_memory_equal(text, "HTTP/1.1 200", 12);
	free(text);
}

/* A byte now and then is not silence, and yet it ends. */
static void test_slow(void **state)
{
	int fd = knock(*state);
	const char *at = GET;
	char *text;

	while (send(fd, at, 1, MSG_NOSIGNAL) == 1) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (poll(&p, 1, 50))
			break;
		at = at[1] == '\r' ? GET + 10 : at + 1; /* never the end of a line */
	}
	text = answer(fd);
	assert_null(strstr(text, " 200 "));
	free(text);
	expect_alive(*state);
	expect_answer(*state, GET, "200");
}

/* A header beyond the limit gets no page, and ends. */
static void test_long_header(void **state)
{
	char wide[CTL_HTTP_HEADER + 200], *text;
	int fd = knock(*state);

	snprintf(wide, sizeof(wide), "GET /metrics HTTP/1.1\r\nX: %*d\r\n\r\n", CTL_HTTP_HEADER, 1);
	put_text(fd, wide);
	text = answer(fd);
	assert_null(strstr(text, " 200 "));
	free(text);
	expect_answer(*state, GET, "200");
}

static void test_nowhere(void **state)
{
	struct fixture *f = *state;
	volatile sig_atomic_t never = 1;
	json_t *config = json_pack("{s:s+}", "metrics", "unix:/nonexistent-", "dir/m");

	assert_int_equal(agent_run(f->sw, f->path, config, &never), -ENOENT);
	assert_int_equal(access(f->path, F_OK), -1);
	json_decref(config);
}

static void test_bad_field(void **state)
{
	static const struct {
		const char *where, *why;
	} bad[] = {
		{"unix:", "metrics: path must have 1..107 bytes"},
		{"9111", "metrics: must be ADDRESS:PORT or [V6ADDRESS]:PORT"},
		{"localhost:9111", "metrics: must be ADDRESS:PORT or [V6ADDRESS]:PORT"},
		{"0.0.0.0:9111", "metrics: must be an address of this machine"},
	};
	char err[200];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_t *config = json_pack("{s:s}", "metrics", bad[i].where);

		assert_int_equal(agent_check_config(config, err, sizeof(err)), -EINVAL);
		assert_memory_equal(err, bad[i].why, strlen(bad[i].why));
		json_decref(config);
	}
	json_t *config = json_pack("{s:s}", "metrics", "[::1]:9111");
	assert_int_equal(agent_check_config(config, err, sizeof(err)), 0);
	json_decref(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_page, setup_patient, end),
		cmocka_unit_test_setup_teardown(test_mode, setup_patient, end),
		cmocka_unit_test_setup_teardown(test_refused, setup_patient, end),
		cmocka_unit_test_setup_teardown(test_crowd, setup_patient, end),
		cmocka_unit_test_setup_teardown(test_slow, setup_hurried, end),
		cmocka_unit_test_setup_teardown(test_long_header, setup_hurried, end),
		cmocka_unit_test_setup_teardown(test_nowhere, setup_dir, teardown_dir),
		cmocka_unit_test(test_bad_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
