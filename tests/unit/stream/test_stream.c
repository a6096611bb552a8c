/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: how they begin and end, what the program is told, and that the control path never
 * sees a byte of payload. */
#include <stdio.h>
#include <sys/mman.h>

#include "tests/unit/stream/net.h"

static const uint64_t second = 1000000000;

/* One end is silent after its FIN, and goes on receiving. */
static void test_half_close(void **state)
{
	struct net *n = net_new(1, NULL);
	struct program p[2];

	(void)state;
	program_init(&p[0], n, CLIENT, 0, 300000);
	program_init(&p[1], n, SERVER, 300000, 0);
	programs_connect(p);
	assert_true(programs_run(p, 100 * second));
	programs_check(p);
	net_check_empty(n);
	program_free(&p[0]);
	program_free(&p[1]);
	net_free(n);
}

static unsigned drain(struct stream *s, struct stream_completion *c, unsigned n)
{
	return stream_poll(s, c, n);
}

static void run(struct net *n, uint64_t time)
{
	const uint64_t until = n->now + time;

	while (n->now < until && net_step(n, until))
		;
}

static void test_refused(void **state)
{
	struct net *n = net_new(2, NULL);
	struct stream_completion c[4];
	uint8_t byte = 1;
	uint32_t conn;

	(void)state;
	assert_int_equal(stream_connect(n->s[0], 0, n->mac[1], &n->ip[1], 81, 0, 5, &conn), 0);
	assert_int_equal(stream_send(n->s[0], conn, &byte, 1, 6), 0);
	run(n, second);
	assert_int_equal(drain(n->s[0], c, 4), 2);
	assert_int_equal(c[0].event, STREAM_SENT);
	assert_int_equal(c[0].result, -ECONNREFUSED);
	assert_int_equal(c[0].cookie, 6);
	assert_int_equal(c[1].event, STREAM_CLOSED);
	assert_int_equal(c[1].result, -ECONNREFUSED);
	assert_int_equal(c[1].cookie, 5);
	assert_int_equal(stream_send(n->s[0], conn, &byte, 1, 6), -EBADF);
	net_check_empty(n);
	net_free(n);
}

static void connected(struct net *n, uint32_t conn[2])
{
	struct stream_completion c[2];

	assert_int_equal(stream_listen(n->s[1], 80, 9), 0);
	assert_int_equal(
		stream_connect(n->s[0], n->now, n->mac[1], &n->ip[1], 80, 0, 8, &conn[0]), 0);
	run(n, second);
	assert_int_equal(drain(n->s[0], c, 2), 1);
	assert_int_equal(c[0].event, STREAM_CONNECTED);
	assert_int_equal(drain(n->s[1], c, 2), 1);
	assert_int_equal(c[0].event, STREAM_ACCEPTED);
	conn[1] = c[0].conn;
}

static void test_abort(void **state)
{
	struct net *n = net_new(3, NULL);
	struct stream_completion c[4];
	uint8_t buf[10];
	uint32_t conn[2];

	(void)state;
	connected(n, conn);
	assert_int_equal(stream_recv(n->s[1], conn[1], buf, sizeof(buf), 77), 0);
	run(n, second);
	assert_int_equal(stream_abort(n->s[0], conn[0]), 0);
	run(n, second);
	assert_int_equal(drain(n->s[0], c, 4), 1);
	assert_int_equal(c[0].result, -ECONNABORTED);
	assert_int_equal(drain(n->s[1], c, 4), 2);
	assert_int_equal(c[0].event, STREAM_RECEIVED);
	assert_int_equal(c[0].cookie, 77);
	assert_int_equal(c[0].result, -ECONNRESET);
	assert_int_equal(c[1].event, STREAM_CLOSED);
	assert_int_equal(c[1].result, -ECONNRESET);
	net_check_empty(n);
	net_free(n);
}

/* A peer that is gone: connecting, sending, probing its window; every wait ends. */
static void test_dead_peer(void **state)
{
	struct stream_completion c[8];
	uint32_t conn[2];
	static uint8_t buf[300000];

	(void)state;
	for (unsigned phase = 0; phase < 3; phase++) {
		struct net *n = net_new(4, NULL);
		unsigned got = 0, k;

		if (phase == 0) {
			n->loss = 1000000;
			assert_int_equal(stream_connect(n->s[0], 0, n->mac[1], &n->ip[1], 80, 0, 8,
						 &conn[0]),
				0);
		} else {
			connected(n, conn);
			/* More than the peer's allowance: its window closes. */
			assert_int_equal(stream_send(n->s[0], conn[0], buf, sizeof(buf), 1), 0);
			if (phase == 2)
				run(n, 20 * second);
			if (phase == 2)
				assert_true(stream_count(n->s[0], STREAM_COUNT_PROBES) > 1);
			n->loss = 1000000;
		}
		run(n, 130 * second);
		while ((k = drain(n->s[0], c, 8)) > 0)
			for (unsigned i = 0; i < k; i++, got++)
				assert_int_equal(c[i].result, -ETIMEDOUT);
		assert_int_equal(got, phase == 0 ? 1 : 2);
		assert_int_equal(stream_conns(n->s[0]), 0);
		net_free(n);
	}
}

static void test_calls_refused(void **state)
{
	struct net *n = net_new(5, NULL);
	uint32_t conn[2];
	uint8_t b = 0;

	(void)state;
	connected(n, conn);
	assert_int_equal(stream_listen(n->s[1], 80, 0), -EADDRINUSE);
	assert_int_equal(stream_listen(n->s[1], 0, 0), -EINVAL);
	assert_int_equal(stream_unlisten(n->s[1], 81), -ENOENT);
	assert_int_equal(stream_send(n->s[0], conn[0], &b, 0, 0), -EINVAL);
	assert_int_equal(stream_send(n->s[0], conn[0] + 1, &b, 1, 0), -EBADF);
	assert_int_equal(stream_shutdown(n->s[0], conn[0]), 0);
	assert_int_equal(stream_send(n->s[0], conn[0], &b, 1, 0), -EPIPE);
	assert_int_equal(stream_recv(n->s[0], conn[0], &b, 1, 0), 0);
	assert_int_equal(stream_close(n->s[0], conn[0]), 0);
	assert_int_equal(stream_recv(n->s[0], conn[0], &b, 1, 0), -EPIPE);
	net_free(n);
}

/* ---- the control path sees headers only ---- */

struct memory {
	uint8_t *base;
	size_t len;
	struct net *n;
	unsigned shuts;
};

/* Whole pages of a stack's bounce memory. */
static void bounce_pages(struct stream *s, int access)
{
	const struct stream_path *path = stream_path(s);
	const uintptr_t from = ((uintptr_t)path->bounce + 4095) & ~(uintptr_t)4095;
	const uintptr_t to = ((uintptr_t)path->bounce + 256u * path->slot_bytes) & ~(uintptr_t)4095;

	assert_int_equal(mprotect((void *)from, to - from, access), 0);
}

static void shut(void *arg, bool closed)
{
	struct memory *m = arg;
	const int access = closed ? PROT_NONE : PROT_READ | PROT_WRITE;

	assert_int_equal(mprotect(m->base, m->len, access), 0);
	for (int i = 0; i < 2; i++)
		bounce_pages(m->n->s[i], access);
	m->shuts++;
}

static void test_headers_only(void **state)
{
	enum { LEN = 200000, ROOM = 256 * 4096 };
	struct net *n = net_new(6, NULL);
	struct memory m = {.len = ROOM, .n = n};
	struct program p[2];

	(void)state;
	m.base = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 2; i++) {
		program_init(&p[i], n, i, LEN, LEN);
		program_free(&p[i]);
		p[i].tx = m.base + i * (ROOM / 2);
		p[i].rx = p[i].tx + ROOM / 4;
		for (size_t k = 0; k < LEN; k++)
			p[i].tx[k] = net_byte(i, k);
	}
	n->shut = shut;
	n->arg = &m;
	n->loss = 10000;
	n->overtake = 50000;
	p[SERVER].recv_after = 5000000; /* some of it by the bounce path */
	p[SERVER].recv_pause = 300000;
	programs_connect(p);
	assert_true(programs_run(p, 300 * second));
	programs_check(p);
	assert_true(m.shuts > 100);
	assert_true(stream_path(n->s[SERVER])->count[STREAM_PATH_BOUNCED] > 10000);
	/* A buffer that was there in time: payload was touched once on its way in. */
	assert_int_equal(place_counters(stream_path(n->s[CLIENT])->place)->copied,
		stream_path(n->s[CLIENT])->count[STREAM_PATH_BOUNCED]);
	munmap(m.base, ROOM);
	net_free(n);
}

/* ---- many ---- */

enum { MANY = 10000 };

static unsigned count;

static void many(struct stream_config *c, int side)
{
	const struct stream_config was = *c;

	stream_defaults(c, count);
	c->max_ops = 12000;
	c->place.max_mrs = PLACE_MAX_MRS;
	memcpy(c->mac, was.mac, 6);
	c->ip = was.ip;
	c->random = was.random;
	c->random_arg = was.random_arg;
	(void)side;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void connect_many(void)
{
	static uint64_t out[MANY], in[MANY];
	static uint32_t conn[MANY];
	struct net *n = net_new(7, many);
	struct stream_completion c[64];
	unsigned closed = 0, received = 0, k;

	print_message("%u connections: %zu bytes of state a stack\n", count, stream_bytes(n->s[0]));
	n->loss = count == MANY ? 500 : 5000;
	assert_int_equal(stream_listen(n->s[1], 80, 0), 0);
	for (unsigned i = 0; i < count; i++) {
		out[i] = i * 0x9e3779b97f4a7c15;
		assert_int_equal(stream_connect(n->s[0], n->now, n->mac[1], &n->ip[1], 80,
					 (uint16_t)(2000 + i), i, &conn[i]),
			0);
		assert_int_equal(stream_send(n->s[0], conn[i], &out[i], 8, i), 0);
		assert_int_equal(stream_shutdown(n->s[0], conn[i]), 0);
		run(n, count == MANY ? 10000 : 100000);
	}
	for (unsigned turns = 0; turns < 3000 && closed < count; turns++) {
		run(n, 100000000);
		while ((k = drain(n->s[1], c, 64)) > 0)
			for (unsigned i = 0; i < k; i++) {
				if (c[i].event == STREAM_ACCEPTED) {
					const uint64_t at = c[i].conn & 0xffff;

					assert_int_equal(
						stream_recv(n->s[1], c[i].conn, &in[at], 8, at), 0);
					assert_int_equal(stream_shutdown(n->s[1], c[i].conn), 0);
				}
				received += c[i].event == STREAM_RECEIVED && c[i].result == 8;
				closed += c[i].event == STREAM_CLOSED;
			}
	}
	assert_int_equal(received, count);
	assert_int_equal(closed, count);
	qsort(in, count, sizeof(in[0]), by_size);
	qsort(out, count, sizeof(out[0]), by_size);
	assert_memory_equal(in, out, count * sizeof(in[0]));
	net_free(n);
}

static void test_many(void **state)
{
	(void)state;
	count = 1000;
	connect_many();
}

/* As many as the paper's NIC has flows. */
static void test_most(void **state)
{
	(void)state;
	count = MANY;
	connect_many();
}

/* With an argument: the long one alone. */
int main(int argc, char **argv)
{
	const struct CMUnitTest most[] = {cmocka_unit_test(test_most)};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_half_close),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_dead_peer),
		cmocka_unit_test(test_calls_refused),
		cmocka_unit_test(test_headers_only),
		cmocka_unit_test(test_many),
	};

	(void)argv;
	if (argc > 1)
		return cmocka_run_group_tests(most, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
