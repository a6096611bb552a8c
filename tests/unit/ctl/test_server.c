/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent over a real socket, with clients that behave badly. */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/ctl/client.h"
#include "tests/unit/ctl/server_helper.h"

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

/* Of a socket that this process listens at, as the kernel has it. -1: the kernel does not say. */
static int backlog_of(const struct stat *st)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req ask;
	} q = {.head = {.nlmsg_len = sizeof(q),
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST},
		.ask = {.sdiag_family = AF_UNIX,
			.udiag_states = ~0u,
			.udiag_ino = (uint32_t)st->st_ino,
			.udiag_show = UDIAG_SHOW_RQLEN,
			.udiag_cookie = {~0u, ~0u}}};
	_Alignas(struct nlmsghdr) char answer[4096];
	const struct nlmsghdr *h = (struct nlmsghdr *)answer;
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	const struct rtattr *a;
	ssize_t n;
	long left;

	assert_true(fd >= 0);
	assert_int_equal(send(fd, &q, sizeof(q), 0), sizeof(q));
	n = recv(fd, answer, sizeof(answer), 0);
	close(fd);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct unix_diag_msg)) ||
		h->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -1;
	a = (const struct rtattr *)((const char *)NLMSG_DATA(h) +
				    NLMSG_ALIGN(sizeof(struct unix_diag_msg)));
	left = (long)(h->nlmsg_len - NLMSG_LENGTH(sizeof(struct unix_diag_msg)));
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == UNIX_DIAG_RQLEN)
			return (int)((const struct unix_diag_rqlen *)RTA_DATA(a))->udiag_wqueue;
	return -1;
}

/* As many may wait to be let in as the kernel allows: all ranks come at once after a restart. */
static void test_backlog(void **state)
{
	struct fixture *f = *state;
	FILE *may = fopen("/proc/sys/net/core/somaxconn", "r");
	unsigned listening = 0;
	int most = 0;

	expect_alive(f);
	assert_non_null(may);
	assert_int_equal(fscanf(may, "%d", &most), 1);
	fclose(may);
	most = most < SOMAXCONN ? most : SOMAXCONN;
	for (int fd = 3; fd < 1024; fd++) {
		socklen_t len = sizeof(int);
		int listens = 0, backlog;
		struct stat st;

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) || !listens)
			continue;
		assert_int_equal(fstat(fd, &st), 0);
		backlog = backlog_of(&st);
		if (backlog < 0)
			skip(); /* no unix_diag */
		assert_int_equal(backlog, most);
		listening++;
	}
	assert_int_equal(listening, 1);
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

/* What happens is told without being asked, beside the answers. */
static void test_subscriber(void **state)
{
	struct fixture *f = *state;
	int fd = dial(f);
	json_t *line;

	put_request(fd, 1, "event.subscribe");
	expect_id(fd, 1);
	__atomic_store_n(&f->sw->unplugged, true, __ATOMIC_RELAXED);
	line = get_line(fd);
	assert_string_equal(json_string_value(json_object_get(line, "method")), "event");
	assert_null(json_object_get(line, "id"));
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(line, "params"), "kind")),
		"port_down");
	json_decref(line);
	put_request(fd, 2, "ping");
	expect_id(fd, 2);
	close(fd);
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

	put_requests(fd, N, "schema.get");
	poll(NULL, 0, 200);
	for (int i = 0; i < N; i++)
		expect_id(fd, i);
	close(fd);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_mode),
		T(test_backlog),
		T(test_second_server),
		cmocka_unit_test_setup_teardown(test_stale_socket, setup_dir, teardown_dir),
		cmocka_unit_test_setup_teardown(test_bad_paths, setup_dir, teardown_dir),
		T(test_ticks),
		T(test_subscriber),
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
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
