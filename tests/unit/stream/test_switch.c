/* SPDX-License-Identifier: BSD-3-Clause */
/* A thousand connections at once between two stacks, through a switch that is the real one, graph
 * and queues: every byte both ways, in a time that is known. Twice as many as may be half-open, so
 * that half of them begin with a SYN cookie. One process, virtual time. */
#include <stdio.h>

#include "tests/unit/dataplane/harness.h"
#include "tests/unit/stream/net.h"

enum { CONNS = 1000, ROOM = 1024, PORT = 80, FIRST_PORT = 10000, LONGEST = 24000, STEP = 1000 };

/* One end of a connection. */
struct end {
	uint32_t conn;
	bool open, closed, eof;
	uint8_t *tx, *rx;
	size_t tx_len, rx_len, acked, received;
	int64_t result;
};

struct world {
	struct net *net;
	struct sw *sw;
	uint64_t clock; /* of the switch, when the net's was 0 */
	struct end end[2][CONNS];
	unsigned closed, broken;
};

static struct world w;

static uint8_t byte_of(int side, unsigned i, size_t at)
{
	return (uint8_t)(at * 131 + (at >> 8) * 7 + i * 29 + (unsigned)side * 77);
}

/* ---- the switch ---- */

static void turn_switch(void)
{
	static struct frame out;

	do
		sw_turn(w.sw, 0, w.clock + w.net->now);
	while (w.sw->worker[0]->work > 0);
	for (int to = 0; to < 2; to++)
		while (h_take(w.sw, (unsigned)to, &out))
			net_put(w.net, to, out.b, out.len, w.net->now + w.net->delay);
}

/* Whatever a stack sends goes there; what comes of it is put into the net above. */
static uint64_t into_switch(struct net *n, const uint8_t *frame, size_t len, int to)
{
	(void)n;
	h_inject(w.sw, !to, frame, (unsigned)len);
	turn_switch();
	return NET_DROP;
}

/* ---- programs ---- */

static void opened(int side, const struct stream_completion *c, struct end *e)
{
	struct stream *s = w.net->s[side];

	e->conn = c->conn;
	e->open = true;
	assert_int_equal(stream_send(s, e->conn, e->tx, e->tx_len, c->cookie), 0);
	assert_int_equal(stream_recv(s, e->conn, e->rx, e->rx_len, c->cookie), 0);
	assert_int_equal(stream_recv(s, e->conn, e->rx + e->rx_len, 1, c->cookie), 0);
	assert_int_equal(stream_shutdown(s, e->conn), 0);
}

/* Of an accepted one by the peer's port; of all others by the cookie. */
static void on_completion(int side, struct stream_completion *c)
{
	struct place_tuple ends;
	struct end *e;

	if (c->event == STREAM_ACCEPTED) {
		assert_int_equal(stream_ends(w.net->s[side], c->conn, &ends), 0);
		c->cookie = ends.remote_port - FIRST_PORT;
		assert_in_range(c->cookie, 0, CONNS - 1);
		assert_false(w.end[side][c->cookie].open);
		stream_set_cookie(w.net->s[side], c->conn, c->cookie);
	}
	e = &w.end[side][c->cookie];
	if (c->event == STREAM_ACCEPTED || c->event == STREAM_CONNECTED) {
		opened(side, c, e);
	} else if (c->event == STREAM_SENT) {
		e->acked += c->result > 0 ? (size_t)c->result : 0;
	} else if (c->event == STREAM_RECEIVED) {
		e->received += c->result > 0 ? (size_t)c->result : 0;
		e->eof |= c->result == 0;
	} else if (c->event == STREAM_CLOSED) {
		e->closed = true;
		e->result = c->result;
		w.closed++;
		w.broken += c->result != 0;
	}
}

static void poll_all(void)
{
	struct stream_completion c[32];
	unsigned n;

	for (int side = 0; side < 2; side++)
		while ((n = stream_poll(w.net->s[side], c, 32)) > 0)
			for (unsigned i = 0; i < n; i++)
				on_completion(side, &c[i]);
}

/* ---- both together ---- */

/* The addresses are those of the harness's hosts. */
static void roomy(struct stream_config *c, int side)
{
	struct stream_config more;

	stream_defaults(&more, ROOM);
	more.random = c->random;
	more.random_arg = c->random_arg;
	more.ip = h_host4((unsigned)side);
	h_host_mac((unsigned)side, more.mac);
	more.ring = NET_FRAMES; /* all that comes at one instant */
	*c = more;
}

static void start(uint64_t seed, const char *port)
{
	memset(&w, 0, sizeof(w));
	w.sw = h_start(2, NULL, port);
	w.clock = port_now_ns();
	w.net = net_new(seed, roomy);
	w.net->delay = 10000;
	w.net->fate = into_switch;
	for (int side = 0; side < 2; side++)
		for (unsigned i = 0; i < CONNS; i++) {
			struct end *e = &w.end[side][i], *peer = &w.end[!side][i];

			e->tx_len = peer->rx_len = 1 + net_random(w.net, LONGEST);
			e->tx = malloc(e->tx_len);
			peer->rx = calloc(1, peer->rx_len + 1);
			for (size_t k = 0; k < e->tx_len; k++)
				e->tx[k] = byte_of(side, i, k);
		}
}

static void connect_all(void)
{
	const struct wire_ip server = h_host4(SERVER);

	assert_int_equal(stream_listen(w.net->s[SERVER], PORT, 0), 0);
	for (unsigned i = 0; i < CONNS; i++)
		assert_int_equal(stream_connect(w.net->s[CLIENT], w.net->now,
					 h_port_mac(w.sw, CLIENT), &server, PORT,
					 (uint16_t)(FIRST_PORT + i), i, &w.end[CLIENT][i].conn),
			0);
}

static void run_all(uint64_t limit)
{
	while (w.closed < 2 * CONNS && w.net->now < limit) {
		const uint64_t next = w.net->now + STEP;

		while (w.net->now < next && net_step(w.net, next))
			poll_all();
		w.net->now = next;
		turn_switch();
	}
	poll_all();
}

static void check(int side, unsigned i)
{
	const struct end *e = &w.end[side][i];

	if (!e->closed || e->result != 0 || e->acked != e->tx_len || e->received != e->rx_len)
		fail_msg("side %d, connection %u: %s, %ld; %zu of %zu acknowledged, %zu of %zu "
			 "received",
			side, i, e->closed ? "closed" : "not closed", (long)e->result, e->acked,
			e->tx_len, e->received, e->rx_len);
	assert_true(e->eof);
	for (size_t k = 0; k < e->rx_len; k++)
		if (e->rx[k] != byte_of(!side, i, k))
			fail_msg("side %d, connection %u: byte %zu is wrong", side, i, k);
}

static void end_all(void)
{
	for (int side = 0; side < 2; side++)
		for (unsigned i = 0; i < CONNS; i++) {
			check(side, i);
			free(w.end[side][i].tx);
			free(w.end[side][i].rx);
		}
	h_check_balance(w.sw);
	h_stop_whole(w.sw);
	net_free(w.net);
}

static uint64_t counted(int side, enum stream_counter counter)
{
	return stream_count(w.net->s[side], counter);
}

static uint64_t full(unsigned port)
{
	struct sw_queue q;

	assert_int_equal(sw_queue_get(w.sw, port, EGRESS_Q_DATA, &q), 0);
	return q.count.full;
}

/* What all of them send takes 20 ms of 10 Gb/s. */
static void through(const char *name, const char *port, uint64_t limit, bool drops)
{
	uint64_t lost;

	start(81, port);
	connect_all();
	run_all(limit);
	lost = port != NULL ? full(0) + full(1) : 0;
	printf("# %s: %d connections in %.1f ms, %lu by cookies; the switch had no room for %lu "
	       "frames; sent again %lu, timeouts %lu\n",
		name, CONNS, (double)w.net->now / 1e6,
		(unsigned long)counted(SERVER, STREAM_COUNT_COOKIES_TAKEN), (unsigned long)lost,
		(unsigned long)(counted(0, STREAM_COUNT_RETRANSMITTED) +
				counted(1, STREAM_COUNT_RETRANSMITTED)),
		(unsigned long)(counted(0, STREAM_COUNT_TIMEOUTS) +
				counted(1, STREAM_COUNT_TIMEOUTS)));
	assert_int_equal(w.broken, 0);
	assert_int_equal(counted(CLIENT, STREAM_COUNT_RST_TAKEN), 0);
	assert_in_range(counted(SERVER, STREAM_COUNT_COOKIES_TAKEN), 1, CONNS / 2);
	assert_int_equal(lost > 0, drops);
	end_all();
}

static void test_wide(void **state)
{
	(void)state;
	through("no queue", NULL, 100000000, false);
}

static void test_narrow(void **state)
{
	(void)state;
	through("10 Gb/s, 256 KB",
		"{'rxd':1024,'txd':1024,'queue':{'rate_mbps':10000,'burst_kb':4,'data_kb':256,"
		"'control_kb':1024,'hold_ms':3600000}}",
		20000000000, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wide),
		cmocka_unit_test(test_narrow),
	};
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
