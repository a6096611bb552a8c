/* SPDX-License-Identifier: BSD-3-Clause */
/* The preload's calls on a device of the test's: a server's stack behind them, and a client that
 * uses lib/stream itself, on virtual time. Nothing happens but in turns, so that a test says what
 * has happened when a call comes to a point. */
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/sockets/sockets.h"
#include "tests/unit/stream/net.h"

enum { PORT = 80, CONNS = 64, BYTES = 1 << 20 };

static struct {
	struct net *net;
	struct stack stack;
	struct sock *by_conn[CONNS];
	uint32_t client; /* its end of the connection */
	size_t sent;     /* by the client */
	bool connected, client_eof;
	uint8_t client_rx[1];
	unsigned turns;
	void (*before)(unsigned turn); /* the device's turn of this number, from 1 on */
	bool busy;                     /* with something else, always */
	int listener, fd;
	struct sock *s; /* of fd */
} dev;

static uint8_t bytes[BYTES], buf[BYTES];

/* ---- the device ---- */

pthread_mutex_t sockets_lock = PTHREAD_MUTEX_INITIALIZER;

bool sockets_configured(void)
{
	return true;
}

bool sockets_own(const struct wire_ip *ip)
{
	return wire_ip_eq(ip, &dev.net->ip[SERVER]);
}

bool sockets_reaches(const struct wire_ip *ip)
{
	(void)ip;
	return false;
}

int sockets_open(void)
{
	return 0;
}

unsigned sockets_stacks(struct stack **stacks)
{
	*stacks = &dev.stack;
	return 1;
}

struct stack *sockets_source(const struct wire_ip *ip)
{
	(void)ip;
	return NULL;
}

uint64_t sockets_now(void)
{
	return dev.net->now;
}

int sockets_resolve(const struct wire_ip *ip, uint8_t mac[6])
{
	(void)ip;
	(void)mac;
	return -EHOSTUNREACH;
}

bool sockets_forked(void)
{
	return false;
}

bool sockets_foreign(void)
{
	return false;
}

static void client_events(void)
{
	struct stream_completion c;

	while (stream_poll(dev.net->s[CLIENT], &c, 1) > 0) {
		dev.connected |= c.event == STREAM_CONNECTED;
		dev.client_eof |= c.event == STREAM_RECEIVED && c.result == 0;
	}
}

/* One step of the network, or on to the next one. */
static bool step(void)
{
	const bool more = net_step(dev.net, dev.net->now + 1000000);
	struct stream_completion c;

	while (stream_poll(dev.net->s[SERVER], &c, 1) > 0)
		sock_event(&dev.stack, &c);
	client_events();
	sock_sync(false);
	return more;
}

unsigned sockets_turn(void)
{
	dev.turns++;
	if (dev.before != NULL)
		dev.before(dev.turns);
	return step() || dev.busy;
}

/* ---- both ends ---- */

/* Until nothing more happens, or only something of tenths of a second. */
static void run(void)
{
	const uint64_t until = dev.net->now + 50000000;

	while (step() && dev.net->now < until)
		;
}

static void client_sends(size_t len)
{
	assert_int_equal(stream_send(dev.net->s[CLIENT], dev.client, bytes + dev.sent, len, 0), 0);
	dev.sent += len;
}

static void arrivals(struct stream_config *c, int side)
{
	c->arrivals = side == SERVER;
}

static int open_both(void **state)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct net *n = net_new(1, arrivals);

	(void)state;
	memset(&dev, 0, sizeof(dev));
	memset(buf, 0, sizeof(buf));
	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = net_byte(CLIENT, i);
	dev.net = n;
	dev.stack =
		(struct stack){.stream = n->s[SERVER], .ip = n->ip[SERVER], .by_conn = dev.by_conn};
	in.sin_addr.s_addr = htonl(wire_ip_to4(&n->ip[SERVER]));
	dev.listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(dev.listener, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(dev.listener, 1), 0);
	assert_int_equal(stream_connect(n->s[CLIENT], n->now, n->mac[SERVER], &n->ip[SERVER], PORT,
				 0, 0, &dev.client),
		0);
	assert_int_equal(
		stream_recv(n->s[CLIENT], dev.client, dev.client_rx, sizeof(dev.client_rx), 0), 0);
	run();
	assert_true(dev.connected);
	dev.fd = accept(dev.listener, NULL, NULL);
	assert_true(dev.fd >= 0);
	dev.s = sock_of(dev.fd);
	assert_non_null(dev.s);
	return 0;
}

static int close_both(void **state)
{
	(void)state;
	dev.before = NULL;
	if (dev.fd >= 0)
		close(dev.fd);
	close(dev.listener);
	stream_abort(dev.net->s[CLIENT], dev.client);
	run();
	assert_false(sock_lingering(false));
	net_free(dev.net);
	return 0;
}

/* ---- a waiting call's own buffer ---- */

/* The peer's last bytes and its end are here, and with that the connection is over; but the call
 * that ends has not been told of them, nor has anybody: they are the next call's. */
static void ends_before_it_is_told(size_t room, size_t told, size_t later)
{
	const uint64_t from = dev.s->rx_have;
	const uint8_t *expected = bytes + from;
	unsigned turns = 0;

	assert_int_equal(shutdown(dev.fd, SHUT_WR), 0);
	run();
	assert_true(sock_direct_begin(dev.s, buf, room));
	client_sends(told);
	run();
	assert_int_equal(dev.s->rx_have, from + told);
	client_sends(later);
	stream_close(dev.net->s[CLIENT], dev.client);
	while (stream_ends(dev.stack.stream, dev.s->conn, &(struct place_tuple){0}) == 0 &&
		turns++ < 1000)
		step();
	assert_true(dev.s->has_conn && dev.s->rx_have == from + told);
	assert_int_equal(sock_direct_end(dev.s, true), told);
	assert_memory_equal(buf, expected, told);
	memset(buf, 0, room);
	run();
	assert_int_equal(recv(dev.fd, buf, BYTES, MSG_WAITALL), later);
	assert_memory_equal(buf, expected + told, later);
	assert_int_equal(recv(dev.fd, buf, BYTES, 0), 0);
}

static void test_end_in_the_buffer(void **state)
{
	(void)state;
	ends_before_it_is_told(65536, 1000, 5000);
}

/* Some of them in the buffer, some in the ring behind it. */
static void test_end_behind_the_buffer(void **state)
{
	(void)state;
	ends_before_it_is_told(SOCKETS_DIRECT, SOCKETS_DIRECT - 2000, 5000);
}

/* The positions of the buffer are at both ends of the ring. */
static void test_end_around_the_ring(void **state)
{
	const size_t before = SOCKETS_BUFFER - 5000;

	(void)state;
	client_sends(before);
	run();
	assert_int_equal(recv(dev.fd, buf, before, MSG_WAITALL), before);
	assert_memory_equal(buf, bytes, before);
	ends_before_it_is_told(65536, 1000, 60000);
}

/* ---- a reset after some bytes ---- */

static void reset_by_client(void)
{
	assert_int_equal(stream_abort(dev.net->s[CLIENT], dev.client), 0);
	run();
	assert_int_equal(dev.s->error, ECONNRESET);
}

static void assert_reset_once(void)
{
	assert_int_equal(recv(dev.fd, buf, BYTES, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(recv(dev.fd, buf, BYTES, 0), 0);
}

static void test_reset_waitall(void **state)
{
	(void)state;
	client_sends(1000);
	run();
	reset_by_client();
	assert_int_equal(recv(dev.fd, buf, 2000, MSG_WAITALL), 1000);
	assert_memory_equal(buf, bytes, 1000);
	assert_reset_once();
}

static void test_reset_vector(void **state)
{
	const struct iovec pieces[] = {{buf, 1000}, {buf + 1000, 1000}};

	(void)state;
	client_sends(1000);
	run();
	reset_by_client();
	assert_int_equal(readv(dev.fd, pieces, 2), 1000);
	assert_memory_equal(buf, bytes, 1000);
	assert_reset_once();
}

/* While the call waits for room. */
static void reset_in_time(unsigned turn)
{
	(void)turn;
	if (dev.s->tx_put - dev.s->tx_acked == SOCKETS_BUFFER)
		stream_abort(dev.net->s[CLIENT], dev.client);
}

static void test_reset_send(void **state)
{
	ssize_t n;

	(void)state;
	dev.before = reset_in_time;
	n = send(dev.fd, bytes, BYTES, MSG_NOSIGNAL);
	assert_true(n > 0 && n < BYTES);
	assert_reset_once();
	assert_int_equal(send(dev.fd, bytes, 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
}

/* What is no error of the socket is not kept. */
static void test_no_error(void **state)
{
	(void)state;
	client_sends(1000);
	run();
	assert_int_equal(recv(dev.fd, buf, 2000, MSG_WAITALL | MSG_DONTWAIT), 1000);
	assert_int_equal(recv(dev.fd, buf, 2000, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(dev.s->error, 0);
}

/* ---- threads that are cancelled ---- */

struct call {
	size_t len;
	bool asleep; /* when it is cancelled; else before the call begins */
	ssize_t got;
};

static void *reader(void *arg)
{
	struct call *c = arg;

	if (!c->asleep)
		pthread_cancel(pthread_self());
	c->got = recv(dev.fd, buf, c->len, 0);
	pthread_testcancel();
	return NULL;
}

static void *acceptor(void *arg)
{
	struct call *c = arg;

	pthread_cancel(pthread_self());
	c->got = accept(dev.listener, NULL, NULL);
	return NULL;
}

static void *poller(void *arg)
{
	struct pollfd p = {.fd = dev.fd, .events = POLLIN};
	struct call *c = arg;

	pthread_cancel(pthread_self());
	c->got = poll(&p, 1, -1);
	return NULL;
}

static void *closer(void *arg)
{
	struct call *c = arg;

	pthread_cancel(pthread_self());
	c->got = close(dev.fd);
	return NULL;
}

/* Who has the lock and finds the socket watched knows that the call has gone to sleep. */
static void until_asleep(void)
{
	bool asleep = false;

	while (!asleep) {
		sched_yield();
		sockets_enter();
		asleep = dev.s->watched;
		sockets_leave();
	}
}

/* Who is stuck fails by the test's time. */
static void cancel(void *(*call)(void *), struct call *c)
{
	pthread_t thread;
	void *result;

	c->got = -2;
	dev.turns = 0;
	assert_int_equal(pthread_create(&thread, NULL, call, c), 0);
	if (c->asleep) {
		until_asleep();
		pthread_cancel(thread);
	}
	pthread_join(thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(pthread_mutex_trylock(&sockets_lock), 0);
	pthread_mutex_unlock(&sockets_lock);
}

/* The next long call is worth a buffer of its own. */
static void read_bulk(void)
{
	client_sends(SOCKETS_BULK);
	run();
	assert_int_equal(recv(dev.fd, buf, BYTES, 0), SOCKETS_BULK);
	assert_true(dev.s->bulk);
}

/* The socket is as before: it reads, and its end is the connection's. */
static void assert_whole(void)
{
	const size_t from = dev.sent;

	assert_null(dev.s->direct);
	assert_int_equal(dev.s->refs, 1);
	client_sends(3000);
	run();
	assert_int_equal(recv(dev.fd, buf, BYTES, 0), 3000);
	assert_memory_equal(buf, bytes + from, 3000);
	close(dev.fd);
	dev.fd = -1;
	run();
	assert_true(dev.client_eof);
}

static void test_cancelled_at_once(void **state)
{
	struct call c = {.len = 100};

	(void)state;
	cancel(reader, &c);
	assert_int_equal(c.got, -2);
	assert_whole();
}

static void test_cancelled_direct(void **state)
{
	struct call c = {.len = BYTES};

	(void)state;
	read_bulk();
	cancel(reader, &c);
	assert_int_equal(c.got, -2);
	assert_whole();
}

static void test_cancelled_asleep(void **state)
{
	struct call c = {.len = BYTES, .asleep = true};

	(void)state;
	read_bulk();
	cancel(reader, &c);
	assert_int_equal(c.got, -2);
	assert_whole();
}

/* Others' packets never let it sleep. */
static void test_cancelled_busy(void **state)
{
	struct call c = {.len = BYTES};

	(void)state;
	dev.busy = true;
	cancel(reader, &c);
	assert_int_equal(c.got, -2);
	assert_whole();
}

static void test_cancelled_accept(void **state)
{
	struct call c = {.asleep = false};

	(void)state;
	cancel(acceptor, &c);
	assert_int_equal(c.got, -2);
	assert_int_equal(sock_of(dev.listener)->refs, 1);
}

/* What makes the descriptor readable is libc's, and called with the lock. */
static void test_cancelled_poll(void **state)
{
	struct call c = {.asleep = false};

	(void)state;
	client_sends(1000);
	run();
	cancel(poller, &c);
	assert_int_equal(c.got, -2);
	assert_int_equal(recv(dev.fd, buf, BYTES, 0), 1000);
	assert_whole();
}

static void test_cancelled_close(void **state)
{
	struct call c = {.asleep = false};

	(void)state;
	cancel(closer, &c);
	assert_null(sock_of(dev.fd));
	dev.fd = -1;
	run();
	assert_true(dev.client_eof);
}

/* Bytes come with the turn in which the call waits first: what tells others of them is libc's, and
 * a point of cancellation, but the call ends as if nobody had asked. */
static void in_second_turn(unsigned turn)
{
	if (turn != 2)
		return;
	client_sends(1000);
	run();
}

static void test_cancelled_too_late(void **state)
{
	struct call c = {.len = BYTES};
	const size_t from = SOCKETS_BULK;

	(void)state;
	read_bulk();
	dev.s->watched = true;
	sock_sync(true); /* says nothing: the next byte is worth a call */
	dev.before = in_second_turn;
	cancel(reader, &c);
	dev.before = NULL;
	assert_int_equal(c.got, 1000);
	assert_memory_equal(buf, bytes + from, 1000);
	assert_whole();
}

/* What has come to a call that is given up is the next one's. */
static void test_given_up(void **state)
{
	(void)state;
	assert_true(sock_direct_begin(dev.s, buf, BYTES));
	client_sends(1000);
	run();
	assert_int_equal(dev.s->rx_have, 1000);
	assert_int_equal(sock_direct_end(dev.s, false), 0);
	memset(buf, 0, BYTES);
	client_sends(1000);
	run();
	assert_int_equal(recv(dev.fd, buf, BYTES, 0), 2000);
	assert_memory_equal(buf, bytes, 2000);
	assert_whole();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)
		TEST(test_end_in_the_buffer),
		TEST(test_end_behind_the_buffer),
		TEST(test_end_around_the_ring),
		TEST(test_reset_waitall),
		TEST(test_reset_vector),
		TEST(test_reset_send),
		TEST(test_no_error),
		TEST(test_cancelled_at_once),
		TEST(test_cancelled_direct),
		TEST(test_cancelled_asleep),
		TEST(test_cancelled_busy),
		TEST(test_cancelled_accept),
		TEST(test_cancelled_poll),
		TEST(test_cancelled_close),
		TEST(test_cancelled_too_late),
		TEST(test_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
