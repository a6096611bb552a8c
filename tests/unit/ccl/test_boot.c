/* SPDX-License-Identifier: BSD-3-Clause */
/* The bootstrap between threads that stand for processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/ccl/boot.h"
#include "lib/ccl/boot_peer.h"

enum { N = 4 };

static char address[100];

static int set_address(void **state)
{
	static unsigned n;

	(void)state;
	snprintf(address, sizeof(address), "unix:/tmp/ccl-boot-%d-%u", getpid(), n++);
	return 0;
}

struct rank {
	pthread_t thread;
	unsigned rank, n, timeout_ms;
	const char *complaint; /* tells this error instead of its object */
	int rc;
	int heard; /* "answer" of the object heard */
	char err[CCL_BOOT_ERR_LEN];
};

/* Rank 0 answers each with ten times what it said. */
static void lead(struct rank *me, struct ccl_boot *b)
{
	json_t *all[N] = {0};

	me->rc = ccl_boot_gather(b, all, me->err);
	if (me->rc) {
		ccl_boot_abort(b, me->err);
		return;
	}
	for (unsigned r = 1; r < me->n; r++) {
		const int said = (int)json_integer_value(json_object_get(all[r], "say"));

		json_decref(all[r]);
		all[r] = json_pack("{s:i}", "answer", said * 10);
	}
	me->rc = ccl_boot_scatter(b, all, me->err);
	for (unsigned r = 1; r < me->n; r++)
		json_decref(all[r]);
}

static void follow(struct rank *me, struct ccl_boot *b)
{
	json_t *say = json_pack("{s:i}", "say", (int)me->rank), *answer = NULL;

	if (me->complaint)
		ccl_boot_abort(b, me->complaint);
	else
		me->rc = ccl_boot_tell(b, say, me->err);
	if (!me->rc)
		me->rc = ccl_boot_hear(b, &answer, me->err);
	me->heard = (int)json_integer_value(json_object_get(answer, "answer"));
	json_decref(answer);
	json_decref(say);
}

static void *rank_main(void *arg)
{
	struct rank *me = arg;
	struct ccl_boot *b;

	me->rc = ccl_boot_open(address, me->rank, me->n, me->timeout_ms, &b, me->err);
	if (me->rc)
		return NULL;
	if (me->rank == 0)
		lead(me, b);
	else
		follow(me, b);
	for (int i = 0; i < 3 && !me->rc; i++)
		me->rc = ccl_boot_barrier(b, me->err);
	ccl_boot_close(b);
	return NULL;
}

/* Starts the ranks of a mask and waits for them. */
static void run(struct rank *r, unsigned mask, unsigned timeout_ms)
{
	for (unsigned i = 0; i < N; i++) {
		r[i].rank = i;
		r[i].n = N;
		r[i].timeout_ms = timeout_ms;
		if (mask & 1u << i)
			assert_int_equal(pthread_create(&r[i].thread, NULL, rank_main, &r[i]), 0);
	}
	for (unsigned i = 0; i < N; i++)
		if (mask & 1u << i)
			pthread_join(r[i].thread, NULL);
}

static void everybody_comes(void **state)
{
	struct rank r[N] = {0};

	(void)state;
	run(r, 0xf, 10000);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(r[i].rc, 0);
	for (unsigned i = 1; i < N; i++)
		assert_int_equal(r[i].heard, 10 * i);
	assert_int_not_equal(access(address + 5, F_OK), 0); /* the socket is gone */
}

static void over_tcp(void **state)
{
	struct rank r[N] = {0};

	(void)state;
	snprintf(address, sizeof(address), "tcp:[::1]:%d", 20000 + getpid() % 20000);
	run(r, 0xf, 10000);
	for (unsigned i = 0; i < N; i++)
		if (r[i].rc)
			fail_msg("rank %u: %s", i, r[i].err);
}

static void missing_ranks_are_named(void **state)
{
	struct rank r[N] = {0};

	(void)state;
	run(r, 0x3, 150);
	assert_int_equal(r[0].rc, -ETIMEDOUT);
	assert_non_null(strstr(r[0].err, "for ranks 2,3"));
	assert_int_equal(r[1].rc, -ECONNABORTED);
	assert_string_equal(r[1].err, r[0].err); /* the same at every rank */
}

static void no_rank_0(void **state)
{
	struct rank r[N] = {0};

	(void)state;
	run(r, 0x4, 100);
	assert_int_equal(r[2].rc, -ENOENT);
	assert_non_null(strstr(r[2].err, "rank 2 cannot reach rank 0 at unix:"));
}

static void an_error_reaches_all(void **state)
{
	struct rank r[N] = {[2].complaint = "rank 2: no device"};

	(void)state;
	run(r, 0xf, 10000);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(r[i].rc, -ECONNABORTED);
		assert_string_equal(r[i].err, "rank 2: no device");
	}
}

static int dial(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", address + 5);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void hears(int fd, const char *part)
{
	char buf[1024] = "";
	size_t n = 0;
	ssize_t got;

	while ((got = recv(fd, buf + n, sizeof(buf) - 1 - n, 0)) > 0 && !strchr(buf, '\n'))
		n += (size_t)got;
	if (!strstr(buf, part))
		fail_msg("\"%s\" lacks \"%s\"", buf, part);
}

static void expect(int fd, const char *part)
{
	hears(fd, part);
	close(fd);
}

/* Strangers and doubles do not disturb those who belong together. */
static void strangers(void **state)
{
	struct rank r[N] = {0};
	struct ccl_boot *b;
	json_t *all[2] = {0};
	int fd[5];
	char err[CCL_BOOT_ERR_LEN];

	(void)state;
	r[0].rc = ccl_boot_open(address, 0, 2, 5000, &b, err);
	assert_int_equal(r[0].rc, 0);
	for (int i = 0; i < 5; i++)
		fd[i] = dial();
	say(fd[0], "GET / HTTP/1.0\r\n\r\n");
	say(fd[1], "{\"rank\":7}\n");
	say(fd[2], "{\"rank\":\"1\"}\n");
	shutdown(fd[3], SHUT_RDWR);
	say(fd[4], "{\"rank\":1,\"say\":");
	say(fd[4], "5}\n{\"rank\":1}\n"); /* and already the line of the next gathering */
	assert_int_equal(ccl_boot_gather(b, all, err), 0);
	assert_int_equal(json_integer_value(json_object_get(all[1], "say")), 5);
	json_decref(all[1]);
	assert_int_equal(ccl_boot_barrier(b, err), 0);
	expect(fd[1], "expects ranks 1 to 1");
	expect(fd[2], "expects ranks 1 to 1");
	ccl_boot_close(b);
	for (int i = 0; i < 5; i++)
		if (i != 1 && i != 2)
			close(fd[i]);
}

static void started_twice(void **state)
{
	struct ccl_boot *b, *b2;
	json_t *all[3] = {0};
	int fd[2];
	char err[CCL_BOOT_ERR_LEN];

	(void)state;
	assert_int_equal(ccl_boot_open(address, 0, 3, 200, &b, err), 0);
	assert_int_equal(ccl_boot_open(address, 0, 3, 200, &b2, err), -EADDRINUSE);
	fd[0] = dial();
	fd[1] = dial();
	say(fd[0], "{\"rank\":1}\n");
	say(fd[1], "{\"rank\":1}\n");
	assert_int_equal(ccl_boot_gather(b, all, err), -ETIMEDOUT);
	assert_non_null(strstr(err, "for rank 2"));
	expect(fd[1], "was it started twice");
	close(fd[0]);
	ccl_boot_close(b);
}

/* A socket file that a killed process has left is no obstacle; a living rank 0 is. */
static void stale_socket(void **state)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct ccl_boot *b;
	char err[CCL_BOOT_ERR_LEN];

	(void)state;
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", address + 5);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	close(fd);
	assert_int_equal(ccl_boot_open(address, 0, 2, 100, &b, err), 0);
	ccl_boot_close(b);
}

static void watching(void **state)
{
	struct ccl_boot *b;
	json_t *all[2] = {0};
	char err[CCL_BOOT_ERR_LEN];
	int fd;

	(void)state;
	assert_int_equal(ccl_boot_open(address, 0, 2, 5000, &b, err), 0);
	fd = dial();
	say(fd, "{\"rank\":1}\n");
	assert_int_equal(ccl_boot_gather(b, all, err), 0);
	json_decref(all[1]);
	assert_int_equal(ccl_boot_watch(b, err), 0);
	say(fd, "{\"rank\":1,\"err");
	assert_int_equal(ccl_boot_watch(b, err), 0);
	say(fd, "or\":\"out of paper\"}\n");
	for (int i = 0; i < 2; i++) { /* it stays to be seen */
		assert_int_equal(ccl_boot_watch(b, err), -ECONNABORTED);
		assert_string_equal(err, "out of paper");
	}
	assert_int_equal(ccl_boot_barrier(b, err), -ECONNABORTED);
	assert_string_equal(err, "out of paper");
	close(fd);
	ccl_boot_close(b);
}

static void who_has_gone(void **state)
{
	struct ccl_boot *b;
	json_t *all[4] = {0};
	char err[CCL_BOOT_ERR_LEN], gone[64];
	int fd[4];

	(void)state;
	assert_int_equal(ccl_boot_open(address, 0, 4, 5000, &b, err), 0);
	for (int r = 1; r < 4; r++) {
		char line[32];

		fd[r] = dial();
		snprintf(line, sizeof(line), "{\"rank\":%d}\n", r);
		say(fd[r], line);
	}
	assert_int_equal(ccl_boot_gather(b, all, err), 0);
	for (int r = 1; r < 4; r++)
		json_decref(all[r]);
	ccl_boot_gone(b, gone, sizeof(gone));
	assert_string_equal(gone, "");
	say(fd[2], "{\"rank\":2}\n"); /* at the barrier already: that is no reason to worry */
	assert_int_equal(ccl_boot_watch(b, err), 0);
	close(fd[1]);
	assert_int_equal(ccl_boot_watch(b, err), -ECONNABORTED);
	assert_string_equal(err, "rank 1 has gone away");
	close(fd[3]);
	ccl_boot_gone(b, gone, sizeof(gone));
	assert_string_equal(gone, "1,3");
	assert_int_equal(ccl_boot_barrier(b, err), -ECONNABORTED);
	assert_string_equal(err, "rank 1 has gone away");
	expect(fd[2], "has gone away");
	ccl_boot_close(b);
}

/* Three ranks that have met. */
static struct ccl_boot *met(int fd[4])
{
	struct ccl_boot *b;
	json_t *all[4] = {0};
	char err[CCL_BOOT_ERR_LEN], line[32];

	assert_int_equal(ccl_boot_open(address, 0, 4, 5000, &b, err), 0);
	for (int r = 1; r < 4; r++) {
		fd[r] = dial();
		snprintf(line, sizeof(line), "{\"rank\":%d}\n", r);
		say(fd[r], line);
	}
	assert_int_equal(ccl_boot_gather(b, all, err), 0);
	for (int r = 1; r < 4; r++)
		json_decref(all[r]);
	return b;
}

/* A rank calls: rank 0, who waits for all, calls the others, and whoever watches is told. */
static void calling(void **state)
{
	json_t *all[4] = {0};
	char err[CCL_BOOT_ERR_LEN];
	struct ccl_boot *b;
	int fd[4];

	(void)state;
	b = met(fd);
	say(fd[2], "{\"rank\":2,\"call\":\"no network\"}\n");
	assert_int_equal(ccl_boot_watch(b, err), -ESTALE);
	assert_string_equal(err, "no network");
	say(fd[1], "{\"rank\":1}\n"); /* of their own */
	say(fd[3], "{\"rank\":3}\n");
	assert_int_equal(ccl_boot_gather_called(b, NULL, all, err), 0);
	assert_string_equal(json_string_value(json_object_get(all[2], "call")), "no network");
	for (int r = 1; r < 4; r++) {
		hears(fd[r], "{\"call\":\"no network\"}\n");
		json_decref(all[r]);
	}
	/* Rank 0 itself; a rank that is gone ends it for all. */
	close(fd[2]);
	say(fd[1], "{\"rank\":1}\n");
	say(fd[3], "{\"rank\":3}\n");
	assert_int_equal(ccl_boot_gather_called(b, "likewise", all, err), -ECONNABORTED);
	assert_string_equal(err, "rank 2 has gone away");
	expect(fd[1], "{\"call\":\"likewise\"}\n");
	ccl_boot_close(b);
	close(fd[3]);
}

/* Who is called while he waits for rank 0's answer hears the answer. */
static void called(void **state)
{
	struct ccl_boot *b[2];
	json_t *all[2] = {0}, *call = json_pack("{s:s}", "call", "x"), *answer;
	json_t *said = json_pack("{s:i}", "answer", 7);
	char err[CCL_BOOT_ERR_LEN];

	(void)state;
	assert_int_equal(ccl_boot_open(address, 0, 2, 5000, &b[0], err), 0);
	assert_int_equal(ccl_boot_open(address, 1, 2, 5000, &b[1], err), 0);
	assert_int_equal(ccl_boot_tell(b[1], said, err), 0);
	assert_int_equal(ccl_boot_gather(b[0], all, err), 0);
	assert_int_equal(ccl_boot_broadcast(b[0], call, err), 0);
	assert_int_equal(ccl_boot_broadcast(b[0], said, err), 0);
	assert_int_equal(ccl_boot_watch(b[1], err), -ESTALE);
	assert_int_equal(ccl_boot_hear_called(b[1], &answer, err), 0);
	assert_int_equal(json_integer_value(json_object_get(answer, "answer")), 7);
	json_decref(answer);
	json_decref(all[1]);
	json_decref(call);
	json_decref(said);
	ccl_boot_close(b[1]);
	ccl_boot_close(b[0]);
}

/* ---- long lines ---- */

struct talker {
	pthread_t thread;
	unsigned rank, rc;
	size_t len; /* of its object's text */
	json_t *all;
	char err[CCL_BOOT_ERR_LEN];
};

static void *talk(void *arg)
{
	struct talker *me = arg;
	char *text = malloc(me->len + 1);
	json_t *own;
	struct ccl_boot *b;

	memset(text, 'a' + (int)me->rank, me->len);
	text[me->len] = '\0';
	own = json_pack("{s:s}", "text", text);
	free(text);
	me->rc = (unsigned)-ccl_boot_open(address, me->rank, N, 20000, &b, me->err);
	assert_int_equal(me->rc, 0);
	/* It is known by then who speaks. */
	assert_int_equal(ccl_boot_barrier(b, me->err), 0);
	me->rc = (unsigned)-ccl_boot_exchange(b, own, &me->all, me->err);
	if (me->rc)
		ccl_boot_abort(b, me->err);
	ccl_boot_close(b);
	return NULL;
}

static void exchange(struct talker *t, size_t len)
{
	for (unsigned i = 0; i < N; i++) {
		t[i] = (struct talker){.rank = i, .len = len};
		assert_int_equal(pthread_create(&t[i].thread, NULL, talk, &t[i]), 0);
	}
	for (unsigned i = 0; i < N; i++)
		pthread_join(t[i].thread, NULL);
}

/* As much as 2048 ranks of parallel rings say, and more. */
static void long_lines(void **state)
{
	enum { LEN = 800000 };
	struct talker t[N];

	(void)state;
	exchange(t, LEN);
	for (unsigned i = 0; i < N; i++) {
		if (t[i].rc)
			fail_msg("rank %u: %s", i, t[i].err);
		for (unsigned r = 0; r < N; r++) {
			const char *text = json_string_value(
				json_object_get(json_array_get(t[i].all, r), "text"));

			assert_int_equal(strlen(text), LEN);
			assert_int_equal(text[LEN - 1], 'a' + (int)r);
		}
		json_decref(t[i].all);
	}
}

/* What is too long for one line ends with an error that says so, at all ranks. */
static void too_long_lines(void **state)
{
	struct talker t[N];

	(void)state;
	exchange(t, CCL_BOOT_MAX_LINE / N);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(t[i].rc, i ? ECONNABORTED : EMSGSIZE);
		if (!strstr(t[i].err, "rank 0's line has 41") ||
			!strstr(t[i].err, "at most 4194304 can be sent"))
			fail_msg("rank %u: %s", i, t[i].err);
		json_decref(t[i].all);
	}
	exchange(t, CCL_BOOT_MAX_LINE);
	for (unsigned i = 0; i < N; i++) {
		assert_int_not_equal(t[i].rc, 0);
		json_decref(t[i].all);
	}
	assert_int_equal(t[1].rc, EMSGSIZE);
	assert_non_null(strstr(t[1].err, "rank 1's line has 41"));
}

/* Rank 0 has no memory for what it has to say to one, or to all. */
static void nothing_to_say(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		struct ccl_boot b = {.n_ranks = 3, .n_peers = 2, .listener = -1};
		struct boot_peer peer[2], other[2];
		json_t *each[3] = {NULL, json_object(), NULL};
		char err[CCL_BOOT_ERR_LEN] = "";

		b.peer = peer;
		for (unsigned i = 0; i < 2; i++) {
			int fd[2];

			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
			peer[i] = (struct boot_peer){.fd = fd[0], .rank = (int)i + 1};
			other[i] = (struct boot_peer){.fd = fd[1], .rank = 0};
		}
		assert_int_equal(
			k ? ccl_boot_broadcast(&b, NULL, err) : ccl_boot_scatter(&b, each, err),
			-ENOMEM);
		for (unsigned i = 0; i < 2; i++) {
			json_t *object = NULL;

			if (k == 0 && i == 0) { /* its own first */
				assert_int_equal(boot_read(&other[i], &object), 1);
				assert_null(boot_error(object));
				json_decref(object);
			}
			assert_int_equal(boot_read(&other[i], &object), 1);
			assert_string_equal(boot_error(object), "rank 0: out of memory");
			assert_string_equal(boot_error(object), err);
			json_decref(object);
			boot_peer_close(&other[i]);
			boot_peer_close(&peer[i]);
		}
		json_decref(each[1]);
	}
}

/* Who has not said who it is cannot make rank 0 keep megabytes. */
static void a_strangers_long_line(void **state)
{
	static char text[BOOT_STRANGERS_LINE];
	struct boot_peer p = {.rank = -1};
	json_t *object;
	int fd[2], rc;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	p.fd = fd[0];
	memset(text, 'x', sizeof(text));
	assert_int_equal(send(fd[1], text, sizeof(text), MSG_NOSIGNAL), sizeof(text));
	do {
		rc = boot_read(&p, &object);
		assert_true(rc < 1);
	} while (rc == 0);
	assert_int_equal(rc, -EMSGSIZE);
	assert_int_equal(p.cap, sizeof(text));
	close(fd[1]);
	boot_peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(everybody_comes, set_address),
		cmocka_unit_test_setup(over_tcp, set_address),
		cmocka_unit_test_setup(missing_ranks_are_named, set_address),
		cmocka_unit_test_setup(no_rank_0, set_address),
		cmocka_unit_test_setup(an_error_reaches_all, set_address),
		cmocka_unit_test_setup(strangers, set_address),
		cmocka_unit_test_setup(started_twice, set_address),
		cmocka_unit_test_setup(stale_socket, set_address),
		cmocka_unit_test_setup(watching, set_address),
		cmocka_unit_test_setup(who_has_gone, set_address),
		cmocka_unit_test_setup(calling, set_address),
		cmocka_unit_test_setup(called, set_address),
		cmocka_unit_test_setup(long_lines, set_address),
		cmocka_unit_test_setup(too_long_lines, set_address),
		cmocka_unit_test(nothing_to_say),
		cmocka_unit_test_setup(a_strangers_long_line, set_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
