/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions by a descriptor: it is readable when it should be, at no other time, and who sleeps
 * on it is woken. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/stream/event.h"
#include "tests/unit/stream/net.h"

enum { BYTES = 300000, PIECE = 7000 };

static const uint64_t second = 1000000000;
static int fd[2];

static void by_descriptor(struct stream_config *c, int side)
{
	fd[side] = stream_event_open(c);
	assert_true(fd[side] >= 0);
}

static bool readable(int side)
{
	struct pollfd p = {.fd = fd[side], .events = POLLIN};

	assert_in_range(poll(&p, 1, 0), 0, 1);
	return p.revents == POLLIN;
}

static void close_both(struct net *n)
{
	net_free(n);
	close(fd[0]);
	close(fd[1]);
}

static void run(struct net *n)
{
	const uint64_t until = n->now + second;

	while (n->now < until && net_step(n, until))
		;
}

static void test_once(void **state)
{
	struct net *n = net_new(61, by_descriptor);
	struct stream *s = n->s[SERVER];
	struct stream_completion c[4];
	uint8_t in[3];
	uint32_t conn;
	eventfd_t told;

	(void)state;
	assert_int_equal(stream_event_arm(s, fd[SERVER]), 0);
	run(n);
	assert_false(readable(SERVER));
	assert_int_equal(stream_listen(s, 80, 5), 0);
	assert_int_equal(stream_connect(n->s[CLIENT], n->now, n->mac[SERVER], &n->ip[SERVER], 80, 0,
				 1, &conn),
		0);
	run(n);
	assert_true(readable(SERVER));
	assert_false(readable(CLIENT)); /* was never armed */
	/* There is one already. */
	assert_int_equal(stream_event_arm(n->s[CLIENT], fd[CLIENT]), 0);
	assert_true(readable(CLIENT));
	assert_int_equal(stream_poll(s, c, 4), 1);
	/* Those that come before it is armed again cost nothing. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(stream_recv(s, c[0].conn, in + i, 1, 1), 0);
	assert_int_equal(stream_send(n->s[CLIENT], conn, "abc", 3, 1), 0);
	run(n);
	assert_int_equal(eventfd_read(fd[SERVER], &told), 0);
	assert_int_equal(told, 1);
	assert_false(readable(SERVER));
	assert_int_equal(stream_event_arm(s, fd[SERVER]), 0);
	assert_true(readable(SERVER));
	assert_int_equal(stream_poll(s, c, 4), 3);
	assert_int_equal(stream_event_arm(s, fd[SERVER]), 0);
	assert_false(readable(SERVER));
	assert_int_equal(stream_abort(s, c[0].conn), 0);
	run(n);
	assert_true(readable(SERVER));
	close_both(n);
}

/* No descriptor, and nobody who wants one: as before. */
static void test_without(void **state)
{
	struct net *n = net_new(62, NULL);
	uint32_t conn;

	(void)state;
	assert_true(stream_arm(n->s[CLIENT]));
	assert_int_equal(
		stream_connect(n->s[CLIENT], 0, n->mac[SERVER], &n->ip[SERVER], 80, 0, 1, &conn),
		0);
	run(n);
	assert_false(stream_arm(n->s[CLIENT])); /* refused: there is a completion */
	net_free(n);
}

/* ---- programs that sleep ---- */

struct sleeper {
	struct net *net;
	pthread_mutex_t *lock;
	int side;
	uint32_t conn;
	size_t posted, received, sent, acked;
	unsigned waits;
	bool closed, failed, asleep;
	uint8_t tx[BYTES], rx[BYTES];
};

static void go_on(struct sleeper *p)
{
	struct stream *s = p->net->s[p->side];

	while (p->sent < BYTES && p->sent - p->acked < 4 * PIECE) {
		const size_t len = BYTES - p->sent < PIECE ? BYTES - p->sent : PIECE;

		p->failed |= stream_send(s, p->conn, p->tx + p->sent, len, 0) < 0;
		p->sent += len;
	}
	while (p->posted < BYTES && p->posted - p->received < 4 * PIECE) {
		const size_t len = BYTES - p->posted < PIECE ? BYTES - p->posted : PIECE;

		p->failed |= stream_recv(s, p->conn, p->rx + p->posted, len, 0) < 0;
		p->posted += len;
	}
	if (p->acked == BYTES && p->received == BYTES)
		stream_close(s, p->conn);
}

static void on_completion(struct sleeper *p, const struct stream_completion *c)
{
	if (c->event == STREAM_ACCEPTED)
		p->conn = c->conn;
	else if (c->event == STREAM_SENT)
		p->acked += c->result > 0 ? (size_t)c->result : 0;
	else if (c->event == STREAM_RECEIVED)
		p->received += c->result > 0 ? (size_t)c->result : 0;
	p->closed |= c->event == STREAM_CLOSED;
	p->failed |= c->result < 0;
}

/* Sleeps without a limit: a completion of which it is not told is the end of the test. */
static void *sleeper(void *arg)
{
	struct pollfd in = {.events = POLLIN};
	struct sleeper *p = arg;
	struct stream_completion c;

	in.fd = fd[p->side];
	while (!p->closed && !p->failed) {
		pthread_mutex_lock(p->lock);
		p->asleep = false;
		while (stream_poll(p->net->s[p->side], &c, 1) > 0)
			on_completion(p, &c);
		if (p->conn != 0 && !p->closed)
			go_on(p);
		p->failed |= stream_event_arm(p->net->s[p->side], fd[p->side]) < 0;
		p->asleep = true;
		pthread_mutex_unlock(p->lock);
		if (!p->closed && poll(&in, 1, -1) < 0)
			p->failed = true;
		p->waits++;
	}
	return NULL;
}

/* It will do nothing before something happens. */
static bool rests(const struct sleeper *p)
{
	return p->closed || p->failed || (p->asleep && !readable(p->side));
}

/* Time goes on only while both rest: nothing depends on when a thread has the processor. */
static void run_beside(struct net *n, struct sleeper p[2], pthread_mutex_t *lock)
{
	bool over = false;

	while (!over) {
		pthread_mutex_lock(lock);
		over = (p[0].closed || p[0].failed) && (p[1].closed || p[1].failed);
		if (!over && rests(&p[0]) && rests(&p[1]) && !net_step(n, UINT64_MAX))
			fail_msg("nobody was told, and nothing will happen any more");
		pthread_mutex_unlock(lock);
		sched_yield();
	}
}

static void test_sleep(void **state)
{
	static struct sleeper p[2];
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct net *n = net_new(63, by_descriptor);
	pthread_t thread[2];

	(void)state;
	n->loss = 20000;
	assert_int_equal(stream_listen(n->s[SERVER], 80, 0), 0);
	assert_int_equal(stream_connect(n->s[CLIENT], 0, n->mac[SERVER], &n->ip[SERVER], 80, 0, 1,
				 &p[CLIENT].conn),
		0);
	for (int i = 0; i < 2; i++) {
		p[i].net = n;
		p[i].lock = &lock;
		p[i].side = i;
		for (size_t k = 0; k < BYTES; k++)
			p[i].tx[k] = net_byte(i, k);
		assert_int_equal(pthread_create(&thread[i], NULL, sleeper, &p[i]), 0);
	}
	run_beside(n, p, &lock);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		assert_false(p[i].failed);
		assert_int_equal(p[i].acked, BYTES);
		for (size_t k = 0; k < BYTES; k++)
			assert_int_equal(p[i].rx[k], net_byte(!i, k));
		assert_true(p[i].waits > 1);
	}
	close_both(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_sleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
