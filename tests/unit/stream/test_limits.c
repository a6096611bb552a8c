/* SPDX-License-Identifier: BSD-3-Clause */
/* Where something is used up, cut short or never ends: intervals, slots, completions, waits. The
 * peer is played by hand, one segment at a time. */
#include "tests/unit/stream/net.h"

static const uint64_t second = 1000000000;

/* A peer without a stack of its own, and what the server has last said to it. */
struct hand {
	struct net *n;
	struct wire_ip ip;
	uint32_t seq, conn;
	struct wire_tcp heard;
	unsigned resets;
};

static struct hand *now_playing;

static void hear(struct net *n, uint8_t *frame, size_t len, int to)
{
	struct wire_pkt pkt;

	(void)n;
	if (to == CLIENT && wire_parse(frame, len, &pkt) == WIRE_OK &&
		wire_ip_eq(&pkt.dst, &now_playing->ip)) {
		wire_tcp_parse(frame, &pkt, &now_playing->heard);
		now_playing->resets += (now_playing->heard.flags & TCP_RST) != 0;
	}
}

static void run(struct net *n, uint64_t time)
{
	const uint64_t until = n->now + time;

	while (n->now < until && net_step(n, until))
		;
}

/* at: of the peer's stream. */
static void say(struct hand *h, uint32_t at, uint8_t flags, const char *payload)
{
	net_segment(h->n, SERVER, &h->ip,
		&(struct wire_tcp){.sport = 1000,
			.dport = 80,
			.seq = h->seq + at,
			.ack = h->heard.seq + ((h->heard.flags & (TCP_SYN | TCP_FIN)) != 0),
			.flags = flags,
			.wscale = TCP_NO_WSCALE,
			.window = 60000},
		payload);
	run(h->n, 1000000);
}

/* A connection to the server, which listens at port 80. */
static void begin(struct hand *h, struct net *n, uint32_t address)
{
	struct stream_completion c;

	*h = (struct hand){.n = n, .ip = wire_ip_from4(address), .seq = 0xffffff00};
	now_playing = h;
	n->look = hear;
	h->seq--;
	say(h, 0, TCP_SYN, "");
	h->seq++;
	assert_int_equal(h->heard.flags, TCP_SYN | TCP_ACK);
	say(h, 0, TCP_ACK, "");
	assert_int_equal(stream_poll(n->s[SERVER], &c, 1), 1);
	assert_int_equal(c.event, STREAM_ACCEPTED);
	h->conn = c.conn;
}

static void expect(struct net *n, enum stream_event event, int64_t result)
{
	struct stream_completion c;

	run(n, 1000000);
	assert_int_equal(stream_poll(n->s[SERVER], &c, 1), 1);
	assert_int_equal(c.event, event);
	assert_int_equal(c.result, result);
}

static struct net *listening(void (*change)(struct stream_config *config, int side))
{
	struct net *n = net_new(21, change);

	assert_int_equal(stream_listen(n->s[SERVER], 80, 0), 0);
	return n;
}

/* What is in order is taken although every interval is in use. */
static void test_intervals(void **state)
{
	struct net *n = listening(NULL);
	uint8_t in[100];
	struct hand h;

	(void)state;
	begin(&h, n, 0x0a000009);
	assert_int_equal(stream_recv(n->s[SERVER], h.conn, in, sizeof(in), 0), 0);
	for (uint32_t i = 0; i < 33; i++)
		say(&h, 10 + 2 * i, TCP_ACK, "x");
	assert_int_equal(stream_count(n->s[SERVER], STREAM_COUNT_FORGOTTEN), 1);
	say(&h, 0, TCP_ACK, "in ord");
	assert_int_equal(h.heard.ack, h.seq + 6);
	for (uint32_t i = 6; i < 100; i++)
		say(&h, i, TCP_ACK, "y");
	expect(n, STREAM_RECEIVED, 100);
	assert_memory_equal(in, "in ordyyyyxyx", 13);
	net_free(n);
}

static void small_ring(struct stream_config *c, int side)
{
	(void)side;
	c->ring = 16;
}

/* Slots that lie over each other, more than go into the ring at once, and a buffer that ends in the
 * middle of all: what was there first is what is received, and it is there when it is told. */
static void test_overlapping_slots(void **state)
{
	struct net *n = listening(small_ring);
	uint8_t in[135], rest[35];
	char piece[41] = {0};
	struct hand h;

	(void)state;
	begin(&h, n, 0x0a000009);
	for (unsigned i = 0; i < 31; i++) {
		memset(piece, 'a' + (int)i % 26, 40);
		say(&h, 100 + i, TCP_ACK, piece);
	}
	assert_int_equal(stream_path(n->s[SERVER])->count[STREAM_PATH_BOUNCED], 31 * 40);
	assert_int_equal(stream_recv(n->s[SERVER], h.conn, in, sizeof(in), 0), 0);
	for (unsigned i = 0; i < 100; i += 20)
		say(&h, i, TCP_ACK, "----------++++++++++");
	expect(n, STREAM_RECEIVED, 135);
	for (unsigned i = 100; i < 135; i++)
		assert_int_equal(in[i], 'a');
	memset(in, 0, sizeof(in));
	assert_int_equal(stream_recv(n->s[SERVER], h.conn, rest, sizeof(rest), 0), 0);
	expect(n, STREAM_RECEIVED, 35);
	for (unsigned i = 0; i < 35; i++)
		assert_int_equal(rest[i], i < 5 ? 'a' : "bcdefghijklmnopqrstuvwxyzabcde"[i - 5]);
	for (unsigned i = 0; i < sizeof(in); i++)
		assert_int_equal(in[i], 0);
	net_free(n);
}

/* A FIN that would lie behind the window is none; payload behind a true one is not the stream's. */
static void test_behind_fin(void **state)
{
	struct net *n = listening(NULL);
	uint8_t in[30] = {0};
	struct hand h;

	(void)state;
	begin(&h, n, 0x0a000009);
	say(&h, 65530, TCP_ACK | TCP_FIN, "in the window, and behind");
	assert_int_equal(stream_recv(n->s[SERVER], h.conn, in, sizeof(in), 0), 0);
	say(&h, 10, TCP_ACK | TCP_FIN, "");
	say(&h, 11, TCP_ACK, "a lie");
	say(&h, 5, TCP_ACK, "56789 a longer lie");
	say(&h, 0, TCP_ACK, "0123456789");
	assert_int_equal(h.heard.ack, h.seq + 11);
	expect(n, STREAM_RECEIVED, 10);
	assert_memory_equal(in, "0123456789", 10);
	assert_int_equal(stream_recv(n->s[SERVER], h.conn, in, sizeof(in), 0), 0);
	expect(n, STREAM_RECEIVED, 0);
	net_free(n);
}

/* Nobody will ever fetch what is there: the peer is told so, and nothing stays. */
static void test_close_unread(void **state)
{
	struct net *n = listening(NULL);
	struct hand h;

	(void)state;
	begin(&h, n, 0x0a000009);
	say(&h, 0, TCP_ACK, "never fetched");
	assert_int_equal(stream_close(n->s[SERVER], h.conn), 0);
	expect(n, STREAM_CLOSED, -ECONNABORTED);
	assert_int_equal(h.resets, 1);
	assert_int_equal(stream_unlisten(n->s[SERVER], 80), 0);
	net_check_empty(n);
	net_free(n);
}

/* A peer that acknowledges our end and never comes to its own. */
static void test_close_no_answer(void **state)
{
	struct net *n = listening(NULL);
	struct hand h;

	(void)state;
	begin(&h, n, 0x0a000009);
	assert_int_equal(stream_close(n->s[SERVER], h.conn), 0);
	run(n, 1000000);
	assert_int_equal(h.heard.flags & TCP_FIN, TCP_FIN);
	say(&h, 0, TCP_ACK, "");
	run(n, 59 * second);
	assert_int_equal(stream_conns(n->s[SERVER]), 1);
	run(n, 2 * second);
	expect(n, STREAM_CLOSED, -ETIMEDOUT);
	net_check_empty(n);
	net_free(n);
}

/* A program that does not poll is refused, and then told of all that it asked for. */
static void test_completions(void **state)
{
	struct net *n = net_new(22, NULL);
	struct stream_completion c[64];
	unsigned posted = 0, told = 0, got;
	struct program p[2];
	uint8_t byte = 1;

	(void)state;
	program_init(&p[0], n, CLIENT, 0, 0);
	program_init(&p[1], n, SERVER, 0, 0);
	programs_connect(p);
	run(n, second);
	assert_int_equal(stream_poll(n->s[CLIENT], c, 64), 1);
	while (posted < 5000 &&
		stream_send(n->s[CLIENT], p[CLIENT].conn, &byte, 1, posted) != -ENOBUFS)
		if (++posted % 20 == 0)
			run(n, 10000000);
	assert_int_equal(posted, 1024); /* max_ops */
	run(n, second);
	while ((got = stream_poll(n->s[CLIENT], c, 64)) > 0)
		for (unsigned i = 0; i < got; i++) {
			assert_int_equal(c[i].event, STREAM_SENT);
			assert_int_equal(c[i].cookie, told++);
		}
	assert_int_equal(told, posted);
	assert_int_equal(stream_send(n->s[CLIENT], p[CLIENT].conn, &byte, 1, 0), 0);
	program_free(&p[0]);
	program_free(&p[1]);
	net_free(n);
}

static void one_conn(struct stream_config *c, int side)
{
	if (side == SERVER)
		c->max_conns = c->max_half_open = 1;
}

/* The only index there is stays the old connection's until its program has heard of the end. */
static void expect_index_kept(struct net *n, uint32_t old, int64_t result)
{
	uint32_t conn;

	assert_int_equal(stream_connect(n->s[SERVER], n->now, n->mac[CLIENT], &n->ip[CLIENT], 80, 0,
				 1, &conn),
		-ENOSPC);
	expect(n, STREAM_CLOSED, result);
	assert_int_equal(stream_connect(n->s[SERVER], n->now, n->mac[CLIENT], &n->ip[CLIENT], 80, 0,
				 1, &conn),
		0);
	assert_int_equal(conn & 0xffff, old & 0xffff);
	assert_int_not_equal(conn, old);
	net_free(n);
}

static void test_index(void **state)
{
	struct net *n = listening(one_conn);
	struct hand h;

	(void)state;
	begin(&h, n, 0x0a000009);
	say(&h, 0, TCP_RST, "");
	expect_index_kept(n, h.conn, -ECONNRESET);
	/* And where it lingers in TIME-WAIT. */
	n = listening(one_conn);
	begin(&h, n, 0x0a000009);
	assert_int_equal(stream_shutdown(n->s[SERVER], h.conn), 0);
	run(n, 1000000);
	say(&h, 0, TCP_ACK | TCP_FIN, "");
	assert_int_equal(stream_conns(n->s[SERVER]), 1);
	expect_index_kept(n, h.conn, 0);
}

/* Whoever has no connection gets no memory. */
static void test_strangers(void **state)
{
	struct net *n = listening(NULL);
	struct stream_path *path = stream_path(n->s[SERVER]);
	const struct wire_tcp tcp = {.sport = 1,
		.dport = 80,
		.seq = 1,
		.ack = 1,
		.flags = TCP_ACK,
		.wscale = TCP_NO_WSCALE};
	struct wire_flow flow = {.dst = n->ip[SERVER], .ttl = 64};
	uint8_t frame[200] = {0};

	(void)state;
	memcpy(flow.dmac, n->mac[SERVER], 6);
	for (uint32_t i = 0; i < 300; i++) {
		int headers;

		flow.src = wire_ip_from4(0x0b000000 + i);
		headers = wire_tcp_build(frame, sizeof(frame), &flow, &tcp, 100);
		wire_tcp_finish(frame, (size_t)headers + 100);
		assert_true(stream_path_rx(path, frame, (size_t)headers + 100));
	}
	assert_int_equal(path->free_slots, 256);
	assert_int_equal(path->count[STREAM_PATH_STRANGER], 300);
	net_free(n);
}

/* However many connections a program does not read from: the next one's first bytes find a slot. */
static void test_shares(void **state)
{
	struct net *n = listening(NULL);
	uint8_t in[4];
	struct hand h;

	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		begin(&h, n, 0x0a000010 + i);
		for (uint32_t k = 0; k < 64; k++)
			say(&h, k, TCP_ACK, "x");
	}
	assert_true(stream_path(n->s[SERVER])->free_slots > 0);
	begin(&h, n, 0x0a000020);
	say(&h, 0, TCP_ACK, "here");
	assert_int_equal(h.heard.ack, h.seq + 4);
	assert_int_equal(stream_recv(n->s[SERVER], h.conn, in, 4, 0), 0);
	expect(n, STREAM_RECEIVED, 4);
	assert_memory_equal(in, "here", 4);
	net_free(n);
}

/* No time to wait is so long that it would lie in the past. */
static void test_waits(void **state)
{
	static const size_t field[] = {offsetof(struct stream_config, rto_max),
		offsetof(struct stream_config, give_up), offsetof(struct stream_config, time_wait)};
	struct stream_config c;
	struct stream *s;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 3; k++) {
			const uint64_t wait[] = {STREAM_MAX_WAIT, STREAM_MAX_WAIT + 1, UINT64_MAX};

			stream_defaults(&c, 2);
			c.random = (uint32_t(*)(void *))1;
			memcpy((uint8_t *)&c + field[i], &wait[k], sizeof(wait[k]));
			assert_int_equal(stream_create(&c, &s), k == 0 ? 0 : -EINVAL);
			if (k == 0)
				stream_destroy(s);
		}
}

static void with_arrivals(struct stream_config *c, int side)
{
	(void)side;
	c->arrivals = true;
}

/* A program hears of bytes in a buffer that is not full, in order, also behind the last slot; one
 * that does not ask hears once, of all. */
static void test_arrivals(void **state)
{
	struct net *n = listening(with_arrivals);
	struct place_tuple ends;
	uint8_t in[100];
	struct hand h;

	(void)state;
	begin(&h, n, 0x0a000009);
	assert_int_equal(stream_ends(n->s[SERVER], h.conn, &ends), 0);
	assert_true(wire_ip_eq(&ends.remote, &h.ip) && ends.remote_port == 1000);
	say(&h, 0, TCP_ACK, "abc");
	assert_int_equal(stream_recv(n->s[SERVER], h.conn, in, sizeof(in), 0), 0);
	expect(n, STREAM_ARRIVED, 3);
	assert_memory_equal(in, "abc", 3);
	say(&h, 5, TCP_ACK, "fg");
	assert_int_equal(stream_poll(n->s[SERVER], &(struct stream_completion){0}, 1), 0);
	say(&h, 3, TCP_ACK, "de");
	say(&h, 7, TCP_ACK, "h");
	expect(n, STREAM_ARRIVED, 8);
	assert_memory_equal(in, "abcdefgh", 8);
	say(&h, 8, TCP_ACK | TCP_FIN, "i");
	expect(n, STREAM_ARRIVED, 9);
	expect(n, STREAM_RECEIVED, 9);
	assert_int_equal(stream_poll(n->s[SERVER], &(struct stream_completion){0}, 1), 0);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_overlapping_slots),
		cmocka_unit_test(test_behind_fin),
		cmocka_unit_test(test_close_unread),
		cmocka_unit_test(test_close_no_answer),
		cmocka_unit_test(test_completions),
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_arrivals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
