/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/ctl/server_helper.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void *run(void *arg)
{
	struct fixture *f = arg;

	f->rc = agent_run_with(f->sw, f->path, f->config, &f->stop, &f->limits);
	return NULL;
}

int setup_dir(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "%s/incline-test-XXXXXX", getenv("TMPDIR") ?: "/tmp");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/s", f->dir);
	f->sw = fake_switch_create();
	*state = f;
	return 0;
}

void start(struct fixture *f)
{
	assert_int_equal(pthread_create(&f->thread, NULL, run, f), 0);
}

void stop(struct fixture *f)
{
	f->stop = 1;
	pthread_join(f->thread, NULL);
	f->stop = 0;
}

int setup(void **state)
{
	setup_dir(state);
	/* The server's own patience must not decide: a crowded machine may let a thread wait for
	 * seconds. */
	((struct fixture *)*state)->limits =
		(struct agent_options){.line_ms = 10 * LONG_MS, .stall_ms = 10 * LONG_MS};
	start(*state);
	return 0;
}

int setup_impatient(void **state)
{
	setup_dir(state);
	((struct fixture *)*state)->limits = (struct agent_options){50, 50};
	start(*state);
	return 0;
}

int teardown_dir(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	assert_int_equal(rmdir(f->dir), 0);
	fake_switch_destroy(f->sw);
	json_decref(f->config);
	free(f);
	return 0;
}

int teardown(void **state)
{
	struct fixture *f = *state;

	stop(f);
	assert_int_equal(f->rc, 0);
	assert_int_equal(access(f->path, F_OK), -1);
	return teardown_dir(state);
}

/* ---- raw clients ---- */

int dial(const struct fixture *f)
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
void put(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n < 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

void put_text(int fd, const char *text)
{
	put(fd, text, strlen(text));
}

static size_t request(char *line, size_t cap, int id, const char *method)
{
	return (size_t)snprintf(
		line, cap, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\"}\n", id, method);
}

void put_request(int fd, int id, const char *method)
{
	char line[128];

	put(fd, line, request(line, sizeof(line), id, method));
}

void put_requests(int fd, int n, const char *method)
{
	const size_t cap = (size_t)n * 128;
	char *text = malloc(cap);
	size_t len = 0;

	for (int i = 0; i < n; i++)
		len += request(text + len, cap - len, i, method);
	put(fd, text, len);
	free(text);
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
json_t *get_line(int fd)
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

void expect_id(int fd, int id)
{
	json_t *line = get_line(fd);

	assert_non_null(line);
	assert_int_equal(json_integer_value(json_object_get(line, "id")), id);
	assert_non_null(json_object_get(line, "result"));
	json_decref(line);
}

void expect_error(int fd, int code, const char *message)
{
	json_t *line = get_line(fd), *error = json_object_get(line, "error");

	assert_int_equal(json_integer_value(json_object_get(error, "code")), code);
	if (message)
		assert_string_equal(json_string_value(json_object_get(error, "message")), message);
	json_decref(line);
}

void expect_closed(int fd)
{
	assert_null(get_line(fd));
	close(fd);
}

void expect_alive(struct fixture *f)
{
	int fd = dial(f);

	put_request(fd, 7, "ping");
	expect_id(fd, 7);
	close(fd);
}
