/* SPDX-License-Identifier: BSD-3-Clause */
/* What others may send: floods, forged resets, lies about data, numbers of all kinds. State stays
 * bounded, the stream stays exact, and nothing is written where nothing was posted. */
#include <sys/mman.h>

#include "tests/unit/stream/net.h"

static const uint64_t second = 1000000000;

static struct wire_tcp last; /* what the client sent last, as the network has seen it */

static void spy(struct net *n, uint8_t *frame, size_t len, int to)
{
	struct wire_pkt pkt;

	(void)n;
	if (to == SERVER && wire_parse(frame, len, &pkt) == WIRE_OK)
		wire_tcp_parse(frame, &pkt, &last);
}

static void forge(struct net *n, unsigned step);

/* counters: of the server, those that the attack must have moved, ended by STREAM_N_COUNTERS. */
static void play(void (*attack)(struct net *n, unsigned step), unsigned steps,
	const enum stream_counter *counters)
{
	struct net *n = net_new(11, NULL);
	struct program p[2];

	n->look = spy;
	program_init(&p[0], n, CLIENT, 300000, 100000);
	program_init(&p[1], n, SERVER, 100000, 300000);
	p[SERVER].recv_pause = 1000000;
	programs_connect(p);
	for (unsigned i = 0; i < steps && !p[1].closed; i++) {
		programs_run(p, n->now + 20000);
		if (p[SERVER].open)
			attack(n, i);
	}
	assert_true(programs_run(p, n->now + 500 * second));
	programs_check(p);
	if (attack == forge)
		assert_true(stream_path(n->s[SERVER])->count[STREAM_PATH_DOUBTED] > 100);
	for (; *counters != STREAM_N_COUNTERS; counters++)
		if (stream_count(n->s[SERVER], *counters) < 20)
			fail_msg("%s: only %lu", stream_counter_name(*counters),
				(unsigned long)stream_count(n->s[SERVER], *counters));
	net_check_empty(n);
	program_free(&p[0]);
	program_free(&p[1]);
	net_free(n);
}

/* SYNs from everywhere: half-open ones are bounded, and the connection that is there goes on. */
static unsigned most_half;

static void flood(struct net *n, unsigned step)
{
	for (unsigned i = 0; i < 50; i++) {
		const struct wire_ip from = wire_ip_from4(0x0b000000 + step * 50 + i);

		net_segment(n, SERVER, &from,
			&(struct wire_tcp){.sport = 1000,
				.dport = 80,
				.seq = i,
				.flags = TCP_SYN,
				.wscale = TCP_NO_WSCALE,
				.window = 1000},
			i % 2 ? "" : "data in it");
	}
	if (stream_half_open(n->s[SERVER]) > most_half)
		most_half = stream_half_open(n->s[SERVER]);
	assert_true(stream_conns(n->s[SERVER]) <= 64);
}

static void test_syn_flood(void **state)
{
	(void)state;
	play(flood, 300, (const enum stream_counter[]){STREAM_COUNT_COOKIES, STREAM_N_COUNTERS});
	assert_int_equal(most_half, 32);
}

/* Resets, SYNs and acknowledgements from one who knows the ports, not the numbers. */
static void forge(struct net *n, unsigned step)
{
	static const uint8_t flags[] = {TCP_RST, TCP_RST | TCP_ACK, TCP_SYN, TCP_SYN | TCP_ACK,
		TCP_FIN, TCP_FIN | TCP_ACK, TCP_ACK};
	struct wire_tcp tcp = last;

	tcp.n_sack = 0;
	for (unsigned i = 0; i < 40; i++) {
		tcp.flags = flags[(step + i) % sizeof(flags)];
		/* In the window, but not at its edge: the client is not that far; or anywhere. */
		tcp.seq = i % 2 ? last.seq + 20000 + i : net_random(n, UINT32_MAX);
		tcp.ack = last.ack + 0x1000000 + net_random(n, 0x70000000);
		net_segment(n, SERVER, &n->ip[CLIENT], &tcp, i % 3 ? "" : "forged");
	}
}

static void test_forged(void **state)
{
	(void)state;
	play(forge, 400,
		(const enum stream_counter[]){STREAM_COUNT_RST_DOUBTED, STREAM_COUNT_BAD_ACK,
			STREAM_COUNT_OUTSIDE, STREAM_N_COUNTERS});
}

/* Payload outside of the window; selective acknowledgements of what was never sent. */
static void outside(struct net *n, unsigned step)
{
	struct wire_tcp tcp = last;

	tcp.flags = TCP_ACK;
	tcp.seq = last.seq + 0x100000 * (1 + step % 1000);
	net_segment(n, SERVER, &n->ip[CLIENT], &tcp, "far away");
	tcp.seq = last.seq - 0x1000 * (1 + step % 1000);
	net_segment(n, SERVER, &n->ip[CLIENT], &tcp, "");
	tcp.n_sack = 4;
	for (unsigned i = 0; i < 4; i++) {
		tcp.sack[i].from = net_random(n, UINT32_MAX);
		tcp.sack[i].to = net_random(n, UINT32_MAX);
	}
	tcp.seq = last.seq;
	net_segment(n, SERVER, &n->ip[CLIENT], &tcp, "");
}

static void test_outside(void **state)
{
	(void)state;
	play(outside, 400, (const enum stream_counter[]){STREAM_COUNT_OUTSIDE, STREAM_N_COUNTERS});
}

/* Bits change on the way. */
static unsigned corrupted;

static void corrupt(struct net *n, uint8_t *frame, size_t len, int to)
{
	(void)to;
	if (net_random(n, 20) == 0) {
		frame[14 + net_random(n, (uint32_t)len - 14)] ^= (uint8_t)(1 + net_random(n, 255));
		corrupted++;
	}
}

static void test_corruption(void **state)
{
	struct net *n = net_new(12, NULL);
	struct program p[2];

	(void)state;
	n->look = corrupt;
	program_init(&p[0], n, CLIENT, 500000, 200000);
	program_init(&p[1], n, SERVER, 200000, 500000);
	programs_connect(p);
	assert_true(programs_run(p, 500 * second));
	programs_check(p);
	assert_true(corrupted > 20);
	program_free(&p[0]);
	program_free(&p[1]);
	net_free(n);
}

/* Data ahead of a hole, twice, with other bytes the second time: whatever of it is taken, bytes
 * that were told stay, and none goes where nothing is posted. */
static void test_overlapping_lies(void **state)
{
	struct net *n = net_new(13, NULL);
	struct stream_completion c[4];
	uint32_t conn[2];
	uint8_t buf[64];
	struct wire_tcp tcp;

	(void)state;
	memset(buf, '.', sizeof(buf));
	n->look = spy;
	assert_int_equal(stream_listen(n->s[1], 80, 9), 0);
	assert_int_equal(stream_connect(n->s[0], 0, n->mac[1], &n->ip[1], 80, 0, 8, &conn[0]), 0);
	while (n->now < second && net_step(n, second))
		;
	assert_int_equal(stream_poll(n->s[1], c, 4), 1);
	conn[1] = c[0].conn;
	assert_int_equal(stream_recv(n->s[1], conn[1], buf + 8, 16, 1), 0);
	assert_int_equal(stream_recv(n->s[1], conn[1], buf + 40, 8, 2), 0);
	while (n->now < 2 * second && net_step(n, 2 * second))
		;
	tcp = last;
	tcp.flags = TCP_ACK;
	tcp.seq = last.seq + 4;
	net_segment(n, 1, &n->ip[0], &tcp,
		"efghijklmnopqrstuvwxyz"); /* beyond what is posted: bounced */
	net_segment(n, 1, &n->ip[0], &tcp, "EFGH");
	tcp.seq = last.seq + 6;
	net_segment(n, 1, &n->ip[0], &tcp, "ghijkl");
	tcp.seq = last.seq;
	net_segment(n, 1, &n->ip[0], &tcp, "abcdEF");
	while (n->now < 3 * second && net_step(n, 3 * second))
		;
	assert_int_equal(stream_poll(n->s[1], c, 4), 2);
	assert_int_equal(c[0].result, 16);
	assert_memory_equal(buf + 8, "abcd", 4);
	for (unsigned i = 4; i < 16; i++) /* one of the two */
		assert_int_equal(buf[8 + i] | 0x20, 'a' + (int)i);
	/* Told is told. */
	tcp.seq = last.seq + 2;
	net_segment(n, 1, &n->ip[0], &tcp, "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX");
	buf[8] = '!';
	while (n->now < 4 * second && net_step(n, 4 * second))
		;
	assert_memory_equal(buf + 8, "!bcd", 4);
	for (unsigned i = 0; i < sizeof(buf); i++)
		if (i < 8 || (i >= 24 && i < 40) || i >= 48)
			assert_int_equal(buf[i], '.');
	net_free(n);
}

/* The program takes its memory back when it has been told; frames go on coming. */
static void test_memory_gone(void **state)
{
	enum { LEN = 64 * 4096 };
	struct net *n = net_new(14, NULL);
	struct stream_completion c[16];
	uint8_t *in = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *out = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t conn[2];
	unsigned told[2] = {0}, k;

	(void)state;
	assert_int_equal(stream_listen(n->s[1], 80, 9), 0);
	assert_int_equal(stream_connect(n->s[0], 0, n->mac[1], &n->ip[1], 80, 0, 8, &conn[0]), 0);
	while (n->now < second && net_step(n, second))
		;
	assert_int_equal(stream_poll(n->s[0], c, 16), 1);
	assert_int_equal(stream_poll(n->s[1], c, 16), 1);
	conn[1] = c[0].conn;
	assert_int_equal(stream_recv(n->s[1], conn[1], in, LEN, 1), 0);
	assert_int_equal(stream_send(n->s[0], conn[0], out, LEN, 1), 0);
	for (unsigned i = 0; i < 12; i++)
		net_step(n, UINT64_MAX);
	assert_true(n->queue != NULL);
	/* Both ends give up in the middle. */
	stream_abort(n->s[1], conn[1]);
	stream_abort(n->s[0], conn[0]);
	for (unsigned i = 0; i < 2000; i++) {
		net_step(n, UINT64_MAX);
		for (int side = 0; side < 2; side++)
			while ((k = stream_poll(n->s[side], c, 1)) > 0) {
				if (c[0].event == STREAM_RECEIVED || c[0].event == STREAM_SENT)
					assert_int_equal(munmap(side ? in : out, LEN), 0);
				told[side]++;
			}
	}
	assert_int_equal(told[0], 2);
	assert_int_equal(told[1], 2);
	net_check_empty(n);
	net_free(n);
}

/* Frames of random bytes behind a right start; checksums are mended, so that all is looked at. */
static void test_noise(void **state)
{
	struct net *n = net_new(15, NULL);
	uint32_t conn;

	(void)state;
	assert_int_equal(stream_listen(n->s[1], 80, 9), 0);
	assert_int_equal(stream_connect(n->s[0], 0, n->mac[1], &n->ip[1], 80, 0, 8, &conn), 0);
	for (unsigned i = 0; i < 30000; i++) {
		uint8_t frame[200];
		struct wire_flow flow = {.src = n->ip[0], .dst = n->ip[1], .ttl = 9};
		struct wire_tcp tcp = {.sport = last.sport,
			.dport = 80,
			.seq = last.seq + net_random(n, 300) - 150,
			.ack = last.ack,
			.wscale = TCP_NO_WSCALE,
			.mss = 1,
			.sack_ok = true};
		const unsigned len = 54 + net_random(n, 140);
		int headers;

		n->look = spy;
		headers = wire_tcp_build(frame, sizeof(frame), &flow, &tcp, len - 54);
		assert_true(headers > 0);
		for (unsigned k = 0; k < 1 + i % 8; k++)
			frame[46 + net_random(n, 24)] = (uint8_t)net_random(n, 256);
		if (i % 4)
			wire_tcp_finish(frame, len);
		net_inject(n, SERVER, frame, len);
		net_step(n, UINT64_MAX);
		assert_true(stream_conns(n->s[1]) <= 64);
	}
	stream_abort(n->s[0], conn);
	n->look = NULL;
	stream_unlisten(n->s[1], 80);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_syn_flood),
		cmocka_unit_test(test_forged),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_corruption),
		cmocka_unit_test(test_overlapping_lies),
		cmocka_unit_test(test_memory_gone),
		cmocka_unit_test(test_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
