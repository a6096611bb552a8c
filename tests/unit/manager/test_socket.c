/* SPDX-License-Identifier: BSD-3-Clause */
/* The manager at its own sockets: more ranks than a server has places for otherwise, each with its
 * connection, and who is one too many is told so; who sends nonsense gets an error and no more; who
 * is too slow is let go of, and ranks beside him go on. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctrl/manager/serve.h"
#include "lib/ctl/address.h"
#include "lib/ctl/manager_schema.h"
#include "lib/ctl/rpc.h"

/* Three of four may come over TCP. */
enum { CLIENTS = 2672, RANKS = CLIENTS / 4 * 3, HOSTS = 2, PATIENCE_S = 60 };
_Static_assert(RANKS > 2000, "as many as that");

static char dir[] = "/tmp/incline-socket-XXXXXX", tcp_at[CTL_ADDRESS_STRLEN];
static int listens[2];
static volatile sig_atomic_t stop;
static pthread_t thread;
static struct manager_times times; /* as ever, but for what a test makes shorter */

static json_t *config(unsigned clients)
{
	struct ctl_problem p;
	json_t *c = json_pack("{s:s+,s:s,s:s,s:i,s:[{s:s,s:s+,s:s}],s:[{s:s,s:s},{s:s,s:s}],"
			      "s:[{s:s,s:s,s:s},{s:s,s:s,s:s}]}",
		"listen", dir, "/m", "listen_tcp", "127.0.0.1:0", "store", "memory", "clients",
		(int)clients, "switches", "name", "s", "control", dir, "/nobody", "ip", "10.2.0.1",
		"hosts", "name", "h0", "ip", "10.1.0.0", "name", "h1", "ip", "10.1.0.1", "links",
		"a", "s", "a_port", "p0", "b", "h0", "a", "s", "a_port", "p1", "b", "h1");

	assert_non_null(c);
	assert_int_equal(ctl_check_value(&ctl_manager_config, c, "", &p), 0);
	return c;
}

static void note_ready(const char *path, const char *tcp)
{
	(void)path;
	snprintf(tcp_at, sizeof(tcp_at), "%s", tcp);
	assert_int_equal(write(listens[1], "l", 1), 1);
}

static void *manage(void *c)
{
	return (void *)(intptr_t)manager_run(c, &stop, NULL, note_ready, &times);
}

static void start(json_t *c)
{
	char byte;

	stop = 0;
	assert_int_equal(pthread_create(&thread, NULL, manage, c), 0);
	assert_int_equal(read(listens[0], &byte, 1), 1);
}

static void end(json_t *c)
{
	void *rc;

	stop = 1;
	pthread_join(thread, &rc);
	assert_int_equal((intptr_t)rc, 0);
	json_decref(c);
}

/* ---- clients ---- */

static uint32_t roll(uint32_t *state)
{
	return *state = *state * 1664525u + 1013904223u, *state >> 8;
}

static int dial_unix(void)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/m", dir);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return connect(fd, (struct sockaddr *)&at, sizeof(at)) ? -1 : fd;
}

static int dial(void)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	struct ctl_address at;
	int fd;

	assert_int_equal(ctl_address_parse(tcp_at, &at), 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at.sa, at.len), 0);
	return fd;
}

/* The answer (new reference), of a line or less. */
static json_t *hear(int fd)
{
	char text[2048];
	size_t len = 0;
	ssize_t n;
	json_t *a;

	do {
		n = recv(fd, text + len, sizeof(text) - 1 - len, 0);
		assert_true(n > 0);
		len += (size_t)n;
	} while (text[len - 1] != '\n');
	a = json_loadb(text, len, 0, NULL);
	assert_non_null(a);
	return a;
}

static void say(int fd, unsigned i)
{
	char line[256];
	const int n = snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.join\",\"params\":{\"job\":\"j%u\","
		"\"ranks\":2,\"rank\":%u,\"who\":%u,\"ip\":\"10.1.0.%u\",\"mtu\":1024}}\n",
		i / 2, i % 2, 1 + i, i % HOSTS);

	assert_int_equal(send(fd, line, (size_t)n, MSG_NOSIGNAL), n);
}

static void join(int fd, unsigned i)
{
	json_t *a;

	say(fd, i);
	a = hear(fd);
	if (!json_object_get(json_object_get(a, "result"), "epoch"))
		fail_msg("%u: %s", i, rpc_string(json_object_get(a, "error"), "message"));
	json_decref(a);
}

static void expect_no_place(void)
{
	char says[64];
	const int fd = dial();
	json_t *a = hear(fd);

	snprintf(says, sizeof(says), "too many TCP clients, the limit is %u", RANKS);
	assert_string_equal(rpc_string(json_object_get(a, "error"), "message"), says);
	json_decref(a);
	close(fd);
}

/* The place of one that has gone is free, when the manager has seen that he has. */
static void expect_place(unsigned i)
{
	for (;;) {
		const int fd = dial();
		char byte;

		say(fd, i);
		if (recv(fd, &byte, 1, MSG_PEEK) == 1) {
			json_t *a = hear(fd);
			const bool in = json_object_get(a, "result") != NULL;

			json_decref(a);
			close(fd);
			if (in)
				return;
		} else {
			close(fd); /* closed with what it has not read */
		}
	}
}

/* ---- tests ---- */

static void test_all_have_a_place(void **state)
{
	static int fd[RANKS];
	json_t *c = config(CLIENTS);

	(void)state;
	start(c);
	for (unsigned i = 0; i < RANKS; i++) {
		fd[i] = dial();
		join(fd[i], i);
	}
	expect_no_place();
	/* All are there still, and are known. */
	for (unsigned i = 0; i < RANKS; i++)
		join(fd[i], i);
	close(fd[0]);
	expect_place(RANKS);
	for (unsigned i = 1; i < RANKS; i++)
		close(fd[i]);
	end(c);
}

/* A line that is no request, or one that makes no sense, or (strange: who comes over TCP) one that
 * only others may ask. */
static void nonsense(int fd, bool strange, uint32_t *r)
{
	static const char *const text[] = {"{", "[]", "null", "\"x\"", "{\"jsonrpc\":\"2.0\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.join\",\"params\":[]}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.join\",\"params\":{\"job\":\"\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.join\",\"params\":{\"job\":\"j0\","
		"\"ranks\":-1,\"rank\":0,\"who\":1,\"ip\":\"10.1.0.0\",\"mtu\":1024}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.leave\",\"params\":{\"job\":\"j0\","
		"\"epoch\":18446744073709551616,\"rank\":0,\"who\":1}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.heartbeat\",\"params\":{\"job\":7}"
		"}",
		"{\"a\":1,\"a\":2}", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\u0000\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.join\",\"params\":{\"job\":\"j0\","
		"\"ranks\":2,\"rank\":0,\"who\":99,\"ip\":\"10.1.0.0\",\"mtu\":1024}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"topology.get\"}"};
	char line[600];
	size_t n = roll(r) % 500 + 1;
	json_t *a;

	if (roll(r) % 2) {
		n = (size_t)snprintf(line, sizeof(line), "%s",
			text[roll(r) % (sizeof(text) / sizeof(*text) - (strange ? 0 : 2))]);
	} else {
		line[0] = '!';
		for (size_t i = 1; i < n; i++)
			line[i] = (char)(roll(r) % 255 + 1);
		for (size_t i = 1; i < n; i++)
			line[i] = line[i] == '\n' ? ' ' : line[i];
	}
	line[n] = '\n';
	assert_int_equal(send(fd, line, n + 1, MSG_NOSIGNAL), n + 1);
	a = hear(fd);
	if (!json_object_get(a, "error"))
		fail_msg("%.*s", (int)n, line);
	json_decref(a);
}

/* Longer than a line may be: told so, and closed. */
static void oversized(int fd)
{
	static char big[CTL_MAX_LINE + 1]; /* all is read before it is refused */
	json_t *a;

	memset(big, 'x', sizeof(big));
	assert_int_equal(send(fd, big, sizeof(big), MSG_NOSIGNAL), sizeof(big));
	a = hear(fd);
	assert_string_equal(rpc_string(json_object_get(a, "error"), "message"),
		"request is longer than 1048576 bytes");
	json_decref(a);
	close(fd);
}

static uint64_t epoch_of(int fd, unsigned i)
{
	uint64_t epoch = 0;
	json_t *a;

	say(fd, i);
	a = hear(fd);
	ctl_get_u64(json_object_get(json_object_get(a, "result"), "epoch"), &epoch);
	json_decref(a);
	return epoch;
}

/* A job that is there meanwhile does not notice. */
static void test_nonsense(void **state)
{
	enum { N = 10000, OVERSIZED = 20 };
	json_t *c = config(CLIENTS);
	uint32_t r = 20261127;
	uint64_t epoch;
	int rank[2], fd[2];

	(void)state;
	start(c);
	for (unsigned i = 0; i < 2; i++)
		join(rank[i] = dial(), i);
	epoch = epoch_of(rank[0], 0);
	assert_true(epoch > 0);
	fd[0] = dial();
	fd[1] = dial_unix();
	for (unsigned i = 0; i < N - OVERSIZED; i++)
		nonsense(fd[i % 2], i % 2 == 0, &r);
	for (unsigned i = 0; i < OVERSIZED; i++)
		oversized(i % 2 ? dial_unix() : dial());
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(epoch_of(rank[i], i), epoch);
		close(rank[i]);
		close(fd[i]);
	}
	end(c);
}

/* ---- who is slow ---- */

static bool is_closed(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	return poll(&p, 1, 10) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/* Never the end of it. */
static void send_a_byte(int fd)
{
	(void)!send(fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Answers that nobody reads: until no more requests are taken, either. */
static void ask_and_stall(int fd)
{
	static const char ask[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"version\"}\n";

	for (unsigned i = 0; i < 2048; i++)
		if (send(fd, ask, sizeof(ask) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return;
}

/* Over each socket one that holds half a line, one that sends a byte now and then, one that asks
 * and takes no answer. Each is let go of, however long that takes here; ranks beside them are
 * answered all the time. */
static void test_slow(void **state)
{
	enum { SLOW = 6 };
	static const char half[] = "{\"jsonrpc\":\"2.0\",";
	json_t *c = config(CLIENTS);
	bool closed[SLOW] = {false};
	int rank[2], fd[SLOW];
	unsigned n = 0, turns = 0;
	uint64_t epoch;

	(void)state;
	times.line_ms = times.stall_ms = 300;
	start(c);
	for (unsigned i = 0; i < 2; i++)
		join(rank[i] = dial(), i);
	epoch = epoch_of(rank[0], 0);
	for (unsigned i = 0; i < SLOW; i++)
		fd[i] = i % 2 ? dial_unix() : dial();
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(send(fd[i], half, sizeof(half), MSG_NOSIGNAL), sizeof(half));
	for (; n < SLOW && turns < PATIENCE_S * 100 / SLOW; turns++)
		for (unsigned i = 0; i < SLOW; i++) {
			if (!closed[i] && i / 2 == 1)
				send_a_byte(fd[i]);
			if (!closed[i] && i / 2 == 2)
				ask_and_stall(fd[i]);
			if (!closed[i] && is_closed(fd[i])) {
				closed[i] = true;
				n++;
			}
			assert_int_equal(epoch_of(rank[i % 2], i % 2), epoch);
		}
	assert_int_equal(n, SLOW);
	for (unsigned i = 0; i < SLOW; i++)
		close(fd[i]);
	for (unsigned i = 0; i < 2; i++)
		close(rank[i]);
	end(c);
}

/* A process of another user, if we may make one: 0 as its exit when it was answered. */
static void join_as(uid_t uid, bool become)
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		char byte;
		int fd;

		if (become && setresuid(uid, uid, uid))
			_exit(1);
		fd = dial_unix();
		if (fd < 0)
			_exit(2);
		say(fd, 0);
		_exit(recv(fd, &byte, 1, 0) == 1 ? 0 : 3);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Who comes by the UNIX socket is known by the kernel's word. */
static void test_uid(void **state)
{
	const bool root = geteuid() == 0;
	const uid_t uid = root ? 65534 : geteuid();
	json_t *c = config(CLIENTS), *row;
	char path[64], line[512] = "";
	FILE *log;

	(void)state;
	snprintf(path, sizeof(path), "%s/audit", dir);
	json_object_set_new(c, "audit", json_string(path));
	start(c);
	if (root) { /* let him in */
		snprintf(path, sizeof(path), "%s/m", dir);
		assert_int_equal(chmod(dir, 0711), 0);
		assert_int_equal(chmod(path, 0666), 0);
	}
	join_as(uid, root);
	end(c);
	snprintf(path, sizeof(path), "%s/audit", dir);
	log = fopen(path, "r");
	assert_non_null(log);
	assert_non_null(fgets(line, sizeof(line), log));
	fclose(log);
	unlink(path);
	row = json_loads(line, 0, NULL);
	assert_string_equal(rpc_string(row, "method"), "job.join");
	assert_string_equal(rpc_string(row, "role"), "local");
	assert_int_equal(rpc_int(row, "uid", -1), uid);
	assert_null(json_object_get(json_object_get(row, "about"), "who")); /* a secret */
	json_decref(row);
}

/* What there are not descriptors for is refused before anybody comes. */
static void test_no_descriptors(void **state)
{
	struct rlimit may = {2000, 2000};
	char err[MANAGER_ERR_LEN] = "";
	json_t *c = config(CLIENTS);

	(void)state;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &may), 0);
	assert_int_equal(manager_check(c, err), -EMFILE);
	assert_string_equal(err, "clients: with all else that makes 2753 descriptors, the limit is "
				 "2000 (ulimit -n, LimitNOFILE)");
	json_decref(c);
	c = config(CLIENTS / 2);
	assert_int_equal(manager_check(c, err), 0);
	json_decref(c);
}

static int patient_again(void **state)
{
	(void)state;
	times = manager_times;
	return 0;
}

/* Both ends of all connections are in this process. */
static int set_up(void **state)
{
	struct rlimit may;

	patient_again(state);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(pipe(listens), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &may), 0);
	if (may.rlim_max < 2 * CLIENTS)
		fail_msg("wants %d descriptors, the hard limit is %llu", 2 * CLIENTS,
			(unsigned long long)may.rlim_max);
	if (may.rlim_cur < 2 * CLIENTS)
		may.rlim_cur = 2 * CLIENTS;
	return setrlimit(RLIMIT_NOFILE, &may);
}

static int tear_down(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_have_a_place),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test_setup_teardown(test_slow, NULL, patient_again),
		cmocka_unit_test(test_uid),
		cmocka_unit_test(test_no_descriptors),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
