/* SPDX-License-Identifier: BSD-3-Clause */
/* A server that finds a crowd at its socket: it hears those who are in before it lets in the rest.
 */
#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/ctl/server.h"

enum { CROWD = 64, TURN = 32, TICKS = 600 }; /* a minute of ticks: it hangs */

struct seen {
	unsigned come, lines, ticks;
	unsigned come_first; /* before the first line */
	volatile sig_atomic_t stop;
};

static uint64_t now(void *arg)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void come(void *arg, void *peer, const struct ctl_who *who)
{
	struct seen *s = arg;

	(void)peer, (void)who;
	s->come++;
}

static void gone(void *arg, void *peer)
{
	(void)arg, (void)peer;
}

static enum ctl_hold holds(void *arg, const void *peer)
{
	(void)arg, (void)peer;
	return CTL_HOLD_PLACE;
}

static char *line(void *arg, void *peer, const char *text, size_t len)
{
	struct seen *s = arg;

	(void)peer, (void)text, (void)len;
	if (s->lines++ == 0)
		s->come_first = s->come;
	if (s->lines == CROWD)
		s->stop = 1;
	return NULL;
}

static char *unasked(void *arg, void *peer)
{
	(void)arg, (void)peer;
	return NULL;
}

static void tick(void *arg, uint64_t at)
{
	struct seen *s = arg;

	(void)at;
	if (++s->ticks == TICKS)
		s->stop = 1;
}

/* A socket with a name that the kernel has found. */
static int listener(struct sockaddr_un *name, socklen_t *len)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)name, sizeof(name->sun_family)), 0);
	*len = sizeof(*name);
	assert_int_equal(getsockname(fd, (struct sockaddr *)name, len), 0);
	assert_int_equal(listen(fd, CROWD), 0);
	return fd;
}

static void test_crowd(void **state)
{
	static const struct ctl_server_ops ops = {.peer_bytes = 1,
		.now = now,
		.come = come,
		.gone = gone,
		.holds = holds,
		.line = line,
		.unasked = unasked,
		.tick = tick};
	struct event_base *base = event_base_new();
	struct seen seen = {0};
	struct sockaddr_un name;
	int fd[CROWD], at;
	socklen_t len;

	(void)state;
	assert_non_null(base);
	at = listener(&name, &len);
	for (unsigned i = 0; i < CROWD; i++) {
		/* None is to wait for a place in the queue: nobody accepts yet. */
		fd[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		assert_true(fd[i] >= 0);
		assert_int_equal(connect(fd[i], (struct sockaddr *)&name, len), 0);
		assert_int_equal(send(fd[i], "x\n", 2, MSG_NOSIGNAL), 2);
	}
	assert_int_equal(ctl_serve(&ops, &seen, base, &at, 1, &seen.stop,
				 &(struct ctl_server_limits){.idle_ms = 600000}),
		0);
	assert_int_equal(seen.come, CROWD);
	assert_int_equal(seen.lines, CROWD);
	assert_in_range(seen.come_first, 1, TURN);
	for (unsigned i = 0; i < CROWD; i++)
		close(fd[i]);
	event_base_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_crowd)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
