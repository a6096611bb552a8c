/* SPDX-License-Identifier: BSD-3-Clause */
/* More callers than may be half-open: they are answered with SYN cookies, nothing is kept of them,
 * and none who means it is reset. */
#include "lib/stream/cookie.h"
#include "tests/unit/stream/net.h"

static const uint64_t second = 1000000000;

/* ---- the cookie itself ---- */

static const uint64_t key[2] = {0x0123456789abcdef, 0xfedcba9876543210};

static struct place_tuple tuple_of(uint32_t peer)
{
	return (struct place_tuple){.local = wire_ip_from4(0x0a000002),
		.remote = wire_ip_from4(peer),
		.local_port = 80,
		.remote_port = 1000,
		.proto = IP_PROTO_TCP};
}

static void test_said(void **state)
{
	static const uint16_t mss[][2] = {{0, 536}, {1, 64}, {536, 536}, {1219, 536}, {1220, 1220},
		{1459, 1440}, {1460, 1460}, {8960, 8940}, {65535, 8940}};
	static const uint8_t wscale[][2] = {{TCP_NO_WSCALE, TCP_NO_WSCALE}, {0, 0}, {1, 0}, {5, 4},
		{7, 7}, {9, 8}, {10, 10}, {14, 10}};
	const struct place_tuple t = tuple_of(1);

	(void)state;
	for (unsigned i = 0; i < sizeof(mss) / sizeof(mss[0]); i++)
		for (unsigned k = 0; k < 2 * sizeof(wscale) / sizeof(wscale[0]); k++) {
			const struct wire_tcp syn = {.seq = 77 * i,
				.mss = mss[i][0],
				.wscale = wscale[k / 2][0],
				.sack_ok = k % 2};
			const uint32_t cookie = cookie_make(key, &t, 5 * second, &syn);
			struct wire_tcp got;

			assert_true(cookie_read(key, &t, 6 * second, cookie, 77 * i, &got));
			assert_int_equal(got.mss, mss[i][1]);
			assert_int_equal(got.wscale, wscale[k / 2][1]);
			assert_int_equal(got.sack_ok, k % 2);
		}
}

static void test_sealed(void **state)
{
	static const uint64_t other[2] = {0x0123456789abcdef, 0xfedcba9876543211};
	const struct place_tuple t = tuple_of(1), u = tuple_of(2);
	const struct wire_tcp syn = {.seq = 9, .mss = 1460, .wscale = 7};
	const uint32_t cookie = cookie_make(key, &t, second, &syn);
	struct wire_tcp got;
	unsigned believed = 0;

	(void)state;
	assert_false(cookie_read(other, &t, second, cookie, 9, &got));
	assert_false(cookie_read(key, &u, second, cookie, 9, &got));
	assert_false(cookie_read(key, &t, second, cookie, 10, &got));
	for (unsigned bit = 0; bit < 32; bit++)
		assert_false(cookie_read(key, &t, second, cookie ^ 1u << bit, 9, &got));
	/* One of 2^24 is right. */
	for (uint32_t i = 0; i < 1u << 16; i++)
		believed += cookie_read(key, &t, second, cookie + (i + 1) * 40503, 9, &got);
	assert_true(believed <= 1);
}

/* Good in its step and the next; the bit that tells steps apart comes round, the cookie does not.
 */
static void test_age(void **state)
{
	const uint64_t from[] = {0, 255, 256, UINT64_MAX / COOKIE_STEP - 300};
	const struct place_tuple t = tuple_of(1);
	const struct wire_tcp syn = {.seq = 1, .mss = 1460, .wscale = 7};
	struct wire_tcp got;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		const uint32_t cookie = cookie_make(key, &t, from[i] * COOKIE_STEP + second, &syn);

		for (uint64_t age = 0; age < 300; age++)
			assert_int_equal(cookie_read(key, &t, (from[i] + age) * COOKIE_STEP, cookie,
						 1, &got),
				age < 2);
		if (from[i] > 0)
			assert_false(
				cookie_read(key, &t, from[i] * COOKIE_STEP - 1, cookie, 1, &got));
	}
	/* Before the first step there is none. */
	assert_false(cookie_read(key, &t, 0, cookie_make(key, &t, COOKIE_STEP, &syn), 1, &got));
}

/* ---- callers, played by hand ---- */

enum { CALLERS = 48, FORGED = 0x0b000000, HONEST = 0x0c000000 };

struct caller {
	struct wire_ip ip;
	uint32_t seq;
	struct wire_tcp heard;
	unsigned answers, resets, sacked;
	size_t longest;
};

static struct caller callers[CALLERS];
static unsigned resets; /* to the client */

static void hear(struct net *n, uint8_t *frame, size_t len, int to)
{
	struct wire_pkt pkt;
	struct wire_tcp tcp;

	if (to != CLIENT || wire_parse(frame, len, &pkt) != WIRE_OK)
		return;
	wire_tcp_parse(frame, &pkt, &tcp);
	if (wire_ip_eq(&pkt.dst, &n->ip[CLIENT]))
		resets += (tcp.flags & TCP_RST) != 0;
	for (unsigned i = 0; i < CALLERS; i++) {
		struct caller *c = &callers[i];

		if (!wire_ip_eq(&pkt.dst, &c->ip))
			continue;
		if (tcp.flags & TCP_SYN)
			c->heard = tcp;
		c->answers++;
		c->resets += (tcp.flags & TCP_RST) != 0;
		c->sacked += tcp.n_sack > 0;
		if (pkt.pay_len > c->longest)
			c->longest = pkt.pay_len;
	}
}

static void run(struct net *n, uint64_t time)
{
	const uint64_t until = n->now + time;

	while (n->now < until && net_step(n, until))
		;
	n->now = until; /* also if nothing happens any more */
}

/* `at` of its stream, of which the SYN is byte 0. */
static void say(struct net *n, unsigned i, uint32_t at, uint8_t flags, const char *payload)
{
	struct wire_tcp tcp = {.sport = 1000,
		.dport = 80,
		.seq = callers[i].seq + at,
		.flags = flags,
		.wscale = TCP_NO_WSCALE,
		.window = 60000};

	if (flags & TCP_SYN) {
		tcp.mss = 1300;
		tcp.wscale = 7;
		tcp.sack_ok = true;
	} else {
		tcp.ack = callers[i].heard.seq + 1;
		tcp.window = 400;
	}
	net_segment(n, SERVER, &callers[i].ip, &tcp, payload);
}

static void forged_syns(struct net *n, unsigned from, unsigned count)
{
	for (unsigned i = from; i < from + count; i++) {
		const struct wire_ip ip = wire_ip_from4(FORGED + i);

		net_segment(n, SERVER, &ip,
			&(struct wire_tcp){.sport = 1000,
				.dport = 80,
				.seq = i,
				.flags = TCP_SYN,
				.wscale = TCP_NO_WSCALE,
				.window = 1000},
			i % 2 ? "" : "data in it");
	}
}

static uint64_t counted(const struct net *n, enum stream_counter counter)
{
	return stream_count(n->s[SERVER], counter);
}

static struct net *listening(void (*change)(struct stream_config *config, int side))
{
	struct net *n = net_new(31, change);

	n->look = hear;
	resets = 0;
	memset(callers, 0, sizeof(callers));
	for (unsigned i = 0; i < CALLERS; i++) {
		callers[i].ip = wire_ip_from4(HONEST + i);
		callers[i].seq = 0xfffffff0 + 1000 * i;
	}
	assert_int_equal(stream_listen(n->s[SERVER], 80, 4711), 0);
	return n;
}

static void few(struct stream_config *c, int side)
{
	if (side == SERVER)
		c->max_half_open = 4;
}

static uint32_t accepted(struct net *n)
{
	struct stream_completion c;

	assert_int_equal(stream_poll(n->s[SERVER], &c, 1), 1);
	assert_int_equal(c.event, STREAM_ACCEPTED);
	assert_int_equal(c.cookie, 4711);
	return c.conn;
}

static void none(struct net *n)
{
	struct stream_completion c;

	assert_int_equal(stream_poll(n->s[SERVER], &c, 1), 0);
}

/* Ten times as many as may be half-open call at once, and take their time: all are accepted. */
static void test_many_honest(void **state)
{
	struct net *n = listening(few);

	(void)state;
	for (unsigned i = 0; i < CALLERS; i++)
		say(n, i, 0, TCP_SYN, "");
	run(n, second / 10);
	assert_int_equal(stream_half_open(n->s[SERVER]), 4);
	assert_int_equal(stream_conns(n->s[SERVER]), 4);
	for (unsigned i = 0; i < CALLERS; i++) {
		const unsigned k = i * 29 % CALLERS;

		assert_int_equal(callers[k].answers, 1);
		say(n, k, 1, TCP_ACK, "");
		run(n, second / 100);
		accepted(n);
	}
	for (unsigned i = 0; i < CALLERS; i++)
		assert_int_equal(callers[i].resets, 0);
	assert_int_equal(counted(n, STREAM_COUNT_COOKIES), CALLERS - 4);
	assert_int_equal(counted(n, STREAM_COUNT_COOKIES_TAKEN), CALLERS - 4);
	assert_int_equal(stream_half_open(n->s[SERVER]), 0);
	net_free(n);
}

static void fill(struct net *n)
{
	forged_syns(n, 0, 4);
	run(n, second / 1000);
	assert_int_equal(stream_half_open(n->s[SERVER]), 4);
}

/* Frames come twice. What a SYN offered is remembered by the one who sent it. */
static void test_again(void **state)
{
	struct net *n = listening(few);
	static uint8_t out[4000];
	uint32_t cookie, conn;

	(void)state;
	fill(n);
	say(n, 0, 0, TCP_SYN, "");
	run(n, second);
	cookie = callers[0].heard.seq;
	assert_int_equal(callers[0].heard.ack, callers[0].seq + 1);
	assert_int_equal(callers[0].heard.mss, 1460);
	assert_true(callers[0].heard.sack_ok && callers[0].heard.wscale == 10);
	say(n, 0, 0, TCP_SYN, "");
	run(n, second);
	assert_int_equal(callers[0].answers, 2);
	assert_int_equal(callers[0].heard.seq, cookie);
	none(n);
	say(n, 0, 1, TCP_ACK, "");
	say(n, 0, 1, TCP_ACK, "");
	run(n, second / 10);
	conn = accepted(n);
	say(n, 0, 1, TCP_ACK, "");
	say(n, 0, 0, TCP_SYN, ""); /* late: answered with what is the case */
	run(n, second / 10);
	none(n);
	assert_int_equal(stream_conns(n->s[SERVER]), 5);
	/* Window scale 7 of 400; segments of 1220, of those that a cookie can say. */
	assert_int_equal(stream_send(n->s[SERVER], conn, out, sizeof(out), 1), 0);
	run(n, second / 10);
	assert_int_equal(callers[0].longest, 1220);
	/* A hole is told. */
	say(n, 0, 5, TCP_ACK, "efgh");
	run(n, second / 10);
	assert_true(callers[0].sacked > 0);
	assert_int_equal(callers[0].resets, 0);
	net_free(n);
}

/* The third packet has data, or is lost and data comes in its place, or is overtaken. */
static void test_data(void **state)
{
	struct net *n = listening(few);
	struct stream_completion c;
	uint8_t in[9] = "........";
	uint32_t conn;

	(void)state;
	fill(n);
	say(n, 0, 0, TCP_SYN, "");
	run(n, second);
	say(n, 0, 5, TCP_ACK, "efgh"); /* from whom? */
	run(n, second / 10);
	none(n);
	assert_int_equal(counted(n, STREAM_COUNT_COOKIES_REFUSED), 1);
	say(n, 0, 1, TCP_ACK, "abcd");
	run(n, second / 10);
	conn = accepted(n);
	assert_int_equal(stream_recv(n->s[SERVER], conn, in, 8, 1), 0);
	run(n, second / 10);
	/* Its bytes came before there was somebody to keep them for: they come again. */
	say(n, 0, 5, TCP_ACK, "efgh");
	say(n, 0, 1, TCP_ACK, "abcd");
	say(n, 0, 9, TCP_ACK | TCP_FIN, "");
	run(n, second / 10);
	assert_int_equal(stream_poll(n->s[SERVER], &c, 1), 1);
	assert_int_equal(c.event, STREAM_RECEIVED);
	assert_int_equal(c.result, 8);
	assert_string_equal((char *)in, "abcdefgh");
	assert_int_equal(callers[0].resets, 0);
	net_free(n);
}

/* A connection ends, and its cookie makes another of the same numbers, between what the data path
 * sees and what the control path hears: what was placed for the one is not the other's. */
static void test_twice(void **state)
{
	struct net *n = listening(few);
	struct stream_completion c;
	uint8_t first[9] = "........", second_in[9] = "........";
	uint32_t conn, before;
	unsigned reset = 0;

	(void)state;
	fill(n);
	say(n, 0, 0, TCP_SYN, "");
	run(n, second);
	say(n, 0, 1, TCP_ACK, "");
	run(n, second / 10);
	conn = before = accepted(n);
	assert_int_equal(stream_recv(n->s[SERVER], conn, first, 8, 1), 0);
	run(n, second / 10);
	say(n, 0, 1, TCP_RST, "");
	say(n, 0, 1, TCP_ACK, "abcdefgh");
	run(n, second / 10);
	while (stream_poll(n->s[SERVER], &c, 1) == 1) {
		reset += c.event == STREAM_CLOSED && c.result == -ECONNRESET;
		if (c.event == STREAM_ACCEPTED)
			conn = c.conn;
	}
	assert_int_equal(reset, 1);
	assert_int_not_equal(conn, before);
	assert_int_equal(stream_recv(n->s[SERVER], conn, second_in, 8, 2), 0);
	run(n, second / 10);
	assert_int_equal(stream_poll(n->s[SERVER], &c, 1), 0);
	say(n, 0, 1, TCP_ACK, "ABCDEFGH");
	run(n, second / 10);
	assert_int_equal(stream_poll(n->s[SERVER], &c, 1), 1);
	assert_int_equal(c.result, 8);
	assert_string_equal((char *)second_in, "ABCDEFGH");
	net_free(n);
}

/* Too late, or invented: refused, counted, nothing is kept. When no cookie is out any more,
 * strangers are reset as ever. */
static void test_refused(void **state)
{
	struct net *n = listening(few);
	unsigned i;

	(void)state;
	fill(n);
	say(n, 0, 0, TCP_SYN, "");
	run(n, second);
	for (i = 1; i < CALLERS; i++)
		say(n, i, 1, TCP_ACK, i % 2 ? "" : "invented");
	run(n, second);
	assert_int_equal(counted(n, STREAM_COUNT_COOKIES_REFUSED), CALLERS - 1);
	for (; n->now < 2 * COOKIE_STEP; run(n, second))
		forged_syns(n, i++, 8);
	say(n, 0, 1, TCP_ACK, "");
	run(n, second);
	assert_int_equal(counted(n, STREAM_COUNT_COOKIES_REFUSED), CALLERS);
	assert_int_equal(callers[0].resets, 0);
	none(n);
	run(n, 2 * COOKIE_STEP);
	say(n, 0, 1, TCP_ACK, "");
	run(n, second);
	assert_int_equal(callers[0].resets, 1);
	none(n);
	net_check_empty(n);
	net_free(n);
}

static void tiny(struct stream_config *c, int side)
{
	if (side != SERVER)
		return;
	c->max_conns = 6;
	c->max_half_open = 4;
}

/* Who brings a cookie has the place of one that is half-open; where none is left, who sends it
 * again has one later. */
static void test_no_room(void **state)
{
	enum { ALL = 6 };
	struct net *n = listening(tiny);
	struct stream_completion c;
	uint32_t conn = 0;

	(void)state;
	fill(n);
	for (unsigned i = 0; i <= ALL; i++)
		say(n, i, 0, TCP_SYN, "");
	run(n, second / 10);
	for (unsigned i = 0; i <= ALL; i++)
		say(n, i, 1, TCP_ACK, "");
	run(n, second / 10);
	for (unsigned i = 0; i < ALL; i++)
		conn = accepted(n);
	none(n);
	assert_int_equal(counted(n, STREAM_COUNT_NO_ROOM), 1);
	assert_int_equal(stream_half_open(n->s[SERVER]), 0);
	assert_int_equal(stream_abort(n->s[SERVER], conn), 0);
	run(n, second / 10);
	assert_int_equal(stream_poll(n->s[SERVER], &c, 1), 1);
	assert_int_equal(c.event, STREAM_CLOSED);
	say(n, ALL, 1, TCP_ACK, "abcd");
	run(n, second / 10);
	assert_int_equal(callers[ALL].resets, 0);
	assert_int_equal(counted(n, STREAM_COUNT_COOKIES_TAKEN), ALL + 1);
	net_free(n);
}

/* Of a SYN that came twice one is answered with a cookie, the other finds a place: the caller holds
 * to what it has heard first. */
static void test_both(void **state)
{
	struct net *n = listening(few);
	struct wire_tcp heard;

	(void)state;
	fill(n);
	say(n, 0, 0, TCP_SYN, "");
	run(n, second / 10);
	heard = callers[0].heard;
	run(n, 100 * second); /* the strangers have given up */
	assert_int_equal(stream_half_open(n->s[SERVER]), 0);
	say(n, 0, 0, TCP_SYN, "");
	run(n, second / 10);
	assert_int_equal(stream_half_open(n->s[SERVER]), 1);
	assert_int_not_equal(callers[0].heard.seq, heard.seq);
	callers[0].heard = heard;
	say(n, 0, 1, TCP_ACK, "");
	run(n, second / 10);
	accepted(n);
	assert_int_equal(callers[0].resets, 0);
	assert_int_equal(stream_half_open(n->s[SERVER]), 0);
	assert_int_equal(stream_conns(n->s[SERVER]), 1);
	net_free(n);
}

/* ---- a flood ---- */

/* Of 10 000 forged SYNs, `each` at a time, beside an honest peer that begins in the middle of
 * it. */
static void flooded(uint64_t seed, uint32_t loss, unsigned each, uint64_t pause)
{
	struct net *n = net_new(seed, NULL);
	const size_t bytes = stream_bytes(n->s[SERVER]);
	struct program p[2];

	n->look = hear;
	resets = 0;
	n->loss = n->repeat = n->overtake = loss;
	program_init(&p[0], n, CLIENT, 300000, 100000);
	program_init(&p[1], n, SERVER, 100000, 300000);
	forged_syns(n, 0, each);
	programs_connect(p);
	for (unsigned i = each; i < 10000; i += each) {
		const uint64_t next = n->now + pause;

		if (programs_run(p, next)) /* already */
			run(n, next - n->now);
		forged_syns(n, i, each);
		assert_true(stream_conns(n->s[SERVER]) <= 33);
		assert_true(stream_half_open(n->s[SERVER]) <= 32);
	}
	assert_true(programs_run(p, n->now + 500 * second));
	programs_check(p);
	assert_int_equal(resets, 0);
	assert_int_equal(counted(n, STREAM_COUNT_COOKIES_TAKEN), 1);
	assert_int_equal(stream_bytes(n->s[SERVER]), bytes);
	net_check_empty(n);
	assert_true(counted(n, STREAM_COUNT_COOKIES) + counted(n, STREAM_COUNT_NO_ROOM) +
			    stream_path(n->s[SERVER])->count[STREAM_PATH_NO_NOTE] >=
		    10000 - 32);
	program_free(&p[0]);
	program_free(&p[1]);
	net_free(n);
}

static void test_flood(void **state)
{
	(void)state;
	flooded(41, 0, 50, 20000);
	flooded(42, 0, 2000, 20000); /* more at once than the rings hold */
	for (uint64_t seed = 50; seed < 70; seed++)
		flooded(seed, 50000, 50, 2000000);
}

static void narrow(struct stream_config *c, int side)
{
	few(c, side);
	c->ring = 64;
}

/* SYNs come faster than the data path sends: the ring of requests never has room for all. Who is
 * connected gets his share of it; a SYN that finds no room is one that is sent again. */
static void test_ring(void **state)
{
	enum { BYTES = 100000, ROUNDS = 300, EACH = 32 };
	static uint8_t out[BYTES], in[BYTES];
	struct net *n = listening(narrow);
	struct stream_completion c;
	uint32_t conn, server;
	unsigned round = 0;

	(void)state;
	assert_int_equal(stream_connect(n->s[CLIENT], n->now, n->mac[SERVER], &n->ip[SERVER], 80, 0,
				 1, &conn),
		0);
	run(n, 10000000);
	server = accepted(n);
	assert_int_equal(stream_poll(n->s[CLIENT], &c, 1), 1);
	forged_syns(n, 0, 200);
	run(n, 1000000);
	memset(out, 7, sizeof(out));
	assert_int_equal(stream_send(n->s[SERVER], server, out, BYTES, 0), 0);
	assert_int_equal(stream_recv(n->s[CLIENT], conn, in, BYTES, 0), 0);
	n->tx_most = EACH / 2;
	while (stream_poll(n->s[CLIENT], &c, 1) == 0 && round < ROUNDS) {
		forged_syns(n, 200 + round++ * EACH, EACH);
		net_step(n, n->now + 1);
		n->now += 10000;
	}
	print_message("%d bytes beside a flood: %u rounds\n", BYTES, round);
	assert_true(round < ROUNDS);
	assert_int_equal(c.result, BYTES);
	assert_memory_equal(in, out, BYTES);
	/* The flood is answered as well, as far as there is room. */
	assert_true(counted(n, STREAM_COUNT_COOKIES) > round);
	assert_true(counted(n, STREAM_COUNT_NO_ROOM) > round);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_said),
		cmocka_unit_test(test_sealed),
		cmocka_unit_test(test_age),
		cmocka_unit_test(test_many_honest),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
