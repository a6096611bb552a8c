/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives that are taken back: a server swaps the memory behind what is posted, again and again,
 * under loss and overtaking, and brings along what has come behind holes. Each byte is where it was
 * told to be when it is told; what was taken back is never written again. */
#include "tests/unit/stream/net.h"

enum { BYTES = 150000, AHEAD = 60000, MEMORIES = 3, POISON = 0xa5 };

static struct server {
	struct net *n;
	uint32_t conn;
	bool open, end, closed;
	uint8_t memory[MEMORIES][BYTES + AHEAD];
	uint8_t owner[BYTES + AHEAD]; /* by position: in which memory it is posted */
	uint8_t now;                  /* the memory that is posted next */
	uint64_t told, posted;
	unsigned recalled, brought;
	bool direct; /* recalls are wanted */
} server;

static void arrivals(struct stream_config *c, int side)
{
	(void)side;
	c->arrivals = true;
	c->rto_min = 5000000;
}

/* Bytes that the program has, up to here. */
static void check_to(uint64_t to)
{
	for (; server.told < to; server.told++)
		assert_int_equal(server.memory[server.owner[server.told]][server.told],
			net_byte(CLIENT, server.told));
}

static void post(uint64_t to)
{
	while (server.posted < to) {
		uint64_t len = 1 + net_random(server.n, 9000);

		if (len > to - server.posted)
			len = to - server.posted;
		if (stream_recv(server.n->s[SERVER], server.conn,
			    server.memory[server.now] + server.posted, len, server.posted) < 0)
			return;
		memset(server.owner + server.posted, server.now, len);
		server.posted += len;
	}
}

static void poison(unsigned memory, uint64_t from, uint64_t to)
{
	memset(server.memory[memory] + from, POISON, to - from);
}

/* Nothing was written to what is posted no more: all that is not told is posted in one memory. */
static void check_poison(void)
{
	static uint8_t poisoned[BYTES + AHEAD];

	memset(poisoned, POISON, sizeof(poisoned));
	for (unsigned m = 0; m < MEMORIES; m++) {
		const uint64_t from = m != server.now               ? server.told
				      : server.posted > server.told ? server.posted
								    : server.told;

		assert_memory_equal(server.memory[m] + from, poisoned, sizeof(poisoned) - from);
	}
}

static void swap(void)
{
	struct stream_recalled r;
	const uint8_t was = server.now;
	const uint64_t posted = server.posted;

	if (stream_recall(server.n->s[SERVER], server.conn, &r) < 0)
		return;
	assert_true(r.from >= server.told && r.to >= r.from && r.to <= posted);
	check_to(r.from);
	server.now = (uint8_t)((was + 1 + net_random(server.n, MEMORIES - 1)) % MEMORIES);
	memcpy(server.memory[server.now] + r.from, server.memory[was] + r.from, r.to - r.from);
	poison(was, r.from, posted);
	server.recalled++;
	server.brought += r.to > r.from;
	server.posted = r.from;
	if (!server.end)
		post(posted);
}

static void act_server(void)
{
	struct stream *s = server.n->s[SERVER];
	struct stream_completion c;

	while (stream_poll(s, &c, 1) > 0) {
		if (c.event == STREAM_ACCEPTED) {
			server.conn = c.conn;
			server.open = true;
		} else if (c.event == STREAM_RECEIVED && c.result >= 0) {
			if (c.result > 0)
				check_to(c.cookie + (uint64_t)c.result);
			server.end |= server.told == BYTES && c.result == 0;
		} else if (c.event == STREAM_ARRIVED) {
			check_to((uint64_t)c.result);
		} else if (c.event == STREAM_CLOSED) {
			server.closed = true;
			server.open = false;
			assert_int_equal(c.result, 0);
		}
	}
	if (!server.open)
		return;
	if (server.direct && net_random(server.n, 3) == 0)
		swap();
	post(server.told + 1 + net_random(server.n, AHEAD));
	if (server.told == BYTES)
		stream_close(s, server.conn);
}

static void act_client(
	struct net *n, uint32_t conn, const uint8_t *bytes, uint64_t *sent, bool *open)
{
	struct stream_completion c;

	while (stream_poll(n->s[CLIENT], &c, 1) > 0)
		*open |= c.event == STREAM_CONNECTED;
	while (*open && *sent < BYTES) {
		const size_t len = BYTES - *sent < 7000 ? BYTES - *sent : 7000;

		if (stream_send(n->s[CLIENT], conn, bytes + *sent, len, 0) < 0)
			return;
		*sent += len;
	}
	if (*open && *sent == BYTES)
		stream_close(n->s[CLIENT], conn);
}

static void play(uint64_t seed, uint32_t loss, uint64_t late, bool direct)
{
	static uint8_t bytes[BYTES];
	struct net *n = net_new(seed, arrivals);
	const uint64_t until = 100000000000;
	uint64_t sent = 0;
	bool open = false;
	uint32_t conn;

	memset(&server, 0, sizeof(server));
	memset(server.memory, POISON, sizeof(server.memory));
	server.n = n;
	server.direct = direct;
	n->loss = loss;
	n->overtake = 2 * loss;
	n->repeat = loss;
	for (unsigned i = 0; i < BYTES; i++)
		bytes[i] = net_byte(CLIENT, i);
	assert_int_equal(stream_listen(n->s[SERVER], 80, 0), 0);
	assert_int_equal(stream_connect(n->s[CLIENT], n->now, n->mac[SERVER], &n->ip[SERVER], 80, 0,
				 1, &conn),
		0);
	while (n->now < until && !server.closed) {
		act_client(n, conn, bytes, &sent, &open);
		if (n->now >= late)
			act_server();
		check_poison();
		if (!net_step(n, n->now + 200000))
			n->now += 200000;
	}
	assert_true(server.closed);
	assert_int_equal(server.told, BYTES);
	net_free(n);
}

static void test_swapped(void **state)
{
	unsigned brought = 0, recalled = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		play(seed, seed % 3 == 0 ? 0 : seed % 3 == 1 ? 20000 : 100000, 0, true);
		brought += server.brought;
		recalled += server.recalled;
	}
	assert_true(recalled > 300 && brought > 30);
}

/* The peer has filled bounce memory before anything is posted: copies are under way, too. */
static void test_late(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++)
		play(seed, seed % 2 * 20000, 20000000, true);
	play(1, 20000, 0, false);
	assert_int_equal(server.recalled, 0);
}

static void test_refused(void **state)
{
	struct net *n = net_new(1, NULL);
	struct stream_recalled r;
	uint32_t conn;

	(void)state;
	assert_int_equal(stream_connect(n->s[CLIENT], n->now, n->mac[SERVER], &n->ip[SERVER], 80, 0,
				 1, &conn),
		0);
	assert_int_equal(stream_recall(n->s[CLIENT], conn, &r), -EAGAIN);
	assert_int_equal(stream_recall(n->s[CLIENT], conn + 1, &r), -EBADF);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_swapped),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
