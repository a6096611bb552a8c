/* SPDX-License-Identifier: BSD-3-Clause */
/* A memif client whose server goes, and comes again: in one process, on time that is given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <rte_malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/port/config.h"
#include "tests/unit/port/serve_knock.h"

enum { MTU = 1500, BURST = 32, TRIES = 60000, LEN = 600, SERVERS = 20, CUTS = 100 };
static const uint64_t TICK = 100000000, SECOND = 1000000000;

static char dir[] = "/tmp/port-test-XXXXXX";
static struct sockaddr_un path = {.sun_family = AF_UNIX};
static struct rte_mempool *pool;
static struct port server, client;
static uint64_t now = 1;

static void open_within(unsigned ms, const char *role, struct port *port)
{
	struct port_config config;
	char err[PORT_ERR_LEN] = "";
	json_t *json = json_pack("{ss ss ss ss si}", "name", role, "type", "memif", "socket",
		path.sun_path, "role", role, "mtu", MTU);

	assert_non_null(json);
	assert_int_equal(port_config_parse(json, &config, err), 0);
	json_decref(json);
	if (port_open(&config, pool, ms, port, err) != 0)
		fail_msg("%s", err);
}

static void open_role(const char *role, struct port *port)
{
	open_within(2000, role, port);
}

static void tick(void)
{
	now += TICK;
	port_tick(&client, now);
}

static void until_attempt_ends(void)
{
	for (unsigned i = 0; i < TRIES && client.away == PORT_AWAY; i++)
		usleep(1000);
	assert_int_not_equal(client.away, PORT_AWAY);
}

/* The driver has an end of a conversation that it has not closed yet. */
static bool talks(void)
{
	struct stat st;

	until_attempt_ends();
	return client.again.inode != 0 && fstat(client.again.fd, &st) == 0 &&
	       st.st_ino == client.again.inode;
}

/* The driver has a thread of its own: for what that does, time waits. */
static void until_up(void)
{
	for (unsigned i = 0; i < TRIES && !(port_link_up(&client) && port_link_up(&server)); i++) {
		if (!talks())
			tick();
		usleep(1000);
	}
	assert_true(port_link_up(&client) && port_link_up(&server));
	tick(); /* sees it */
}

/* And the driver has closed its end: that takes it a moment more, for which time waits. */
static void until_down(void)
{
	for (unsigned i = 0; i < TRIES && (port_link_up(&client) || talks()); i++)
		usleep(1000);
	assert_false(port_link_up(&client));
	assert_false(talks());
}

/* As many ticks as there are within so much time, each attempt at its tick. */
static void pass_time(uint64_t ns)
{
	for (const uint64_t until = now + ns; now < until;) {
		tick();
		until_attempt_ends();
	}
}

static struct rte_mbuf *frame(uint8_t fill)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	assert_non_null(m);
	memset(rte_pktmbuf_append(m, LEN), fill, LEN);
	return m;
}

static void pass(const struct port *from, const struct port *to, uint8_t fill)
{
	struct rte_mbuf *m = frame(fill);

	/* The client gives the server buffers to fill when it first receives. */
	assert_int_equal(port_rx_burst(&client, &(struct rte_mbuf *){NULL}, 1), 0);
	assert_int_equal(port_tx_burst(from, &m, 1), 1);
	for (unsigned i = 0; i < TRIES; i++) {
		if (port_rx_burst(to, &m, 1) == 1)
			break;
		usleep(1000);
		assert_int_not_equal(i, TRIES - 1);
	}
	assert_int_equal(m->pkt_len, LEN);
	assert_int_equal(rte_pktmbuf_mtod(m, uint8_t *)[LEN - 1], fill);
	rte_pktmbuf_free(m);
}

/* ---- zero copy ---- */

static unsigned lent;

static void returned(void *addr, void *opaque)
{
	(void)addr, (void)opaque;
	lent--;
}

static struct rte_mbuf *lending(struct rte_mbuf_ext_shared_info *ref)
{
	static uint8_t memory[LEN];
	struct rte_mbuf *m = frame(0), *tail = rte_pktmbuf_alloc(pool);

	assert_non_null(tail);
	*ref = (struct rte_mbuf_ext_shared_info){.free_cb = returned};
	rte_mbuf_ext_refcnt_set(ref, 1);
	tail->port = RTE_MBUF_PORT_INVALID;
	rte_pktmbuf_attach_extbuf(tail, memory, RTE_BAD_IOVA, LEN, ref);
	rte_pktmbuf_append(tail, LEN);
	assert_int_equal(rte_pktmbuf_chain(m, tail), 0);
	lent++;
	return m;
}

/* It comes again as one that copies; what it had lent is given back, the rest of its rings is lost
 * once. */
static void zero_copy(void **state)
{
	static struct rte_mbuf_ext_shared_info refs[BURST];
	const unsigned rings = client.config.rxd + client.config.txd;
	struct rte_mbuf *m[BURST];
	uint8_t mac[6];

	(void)state;
	assert_true(client.config.zero_copy);
	memcpy(mac, client.mac, sizeof(mac));
	for (unsigned i = 0; i < BURST; i++)
		m[i] = lending(&refs[i]);
	assert_int_equal(port_tx_burst(&client, m, BURST), BURST);
	port_close(&server);
	until_down();
	pass_time(SECOND); /* in vain */
	assert_false(port_link_up(&client));
	assert_int_equal(lent, BURST);
	port_tx_lost(&client, pool);
	assert_int_equal(lent, 0);
	open_role("server", &server);
	until_up();
	assert_int_equal(client.again.times, 1);
	assert_memory_equal(client.mac, mac, sizeof(mac));
	assert_false(client.config.zero_copy);
	pass(&client, &server, 1);
	pass(&server, &client, 2);
	assert_true(rte_mempool_in_use_count(pool) <= rings);
}

/* ---- again and again ---- */

static atomic_bool stop;
static atomic_uint heard; /* frames */

/* What a worker does, whatever becomes of the link. */
static void *polls(void *arg)
{
	struct rte_mbuf *m[BURST];
	unsigned n;

	(void)arg;
	while (!stop) {
		n = port_rx_burst(&client, m, BURST);
		rte_pktmbuf_free_bulk(m, n);
		heard += n;
		m[0] = rte_pktmbuf_alloc(pool);
		rte_pktmbuf_append(m[0], LEN);
		if (port_tx_burst(&client, m, 1) == 0)
			rte_pktmbuf_free(m[0]);
		port_tx_reap(&client);
	}
	return NULL;
}

static unsigned drain(void)
{
	struct rte_mbuf *m[BURST];
	const unsigned n = port_rx_burst(&server, m, BURST);

	rte_pktmbuf_free_bulk(m, n);
	return n;
}

/* Frames go both ways. */
static void until_both_hear(void)
{
	const unsigned before = heard;
	unsigned got = 0;

	for (unsigned i = 0; i < TRIES && (got == 0 || heard == before); i++) {
		struct rte_mbuf *m = frame(3);

		if (port_tx_burst(&server, &m, 1) == 0)
			rte_pktmbuf_free(m);
		got += drain();
		usleep(100);
	}
	assert_true(got > 0 && heard != before);
}

static unsigned descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static size_t heap(void)
{
	struct rte_malloc_socket_stats stats;

	assert_int_equal(rte_malloc_get_socket_stats(0, &stats), 0);
	return stats.heap_allocsz_bytes;
}

static unsigned number(const char *name, unsigned usual)
{
	const char *text = getenv(name);

	return text != NULL ? (unsigned)atoi(text) : usual;
}

/* The server ends, and is there at once or later; or the two lose each other. No buffer, descriptor
 * or memory stays behind, but for what the driver keeps of each server that is closed. */
static void many_times(void **state)
{
	const unsigned n = number("SERVERS", SERVERS), cuts = number("CUTS", CUTS);
	const unsigned fds = descriptors(), held = rte_mempool_in_use_count(pool);
	const uint64_t times = client.again.times;
	pthread_t thread;
	size_t bytes;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, polls, NULL), 0);
	for (unsigned i = 0; i < n; i++) {
		until_both_hear();
		port_close(&server);
		if (i % 2 == 0)
			pass_time(SECOND);
		open_role("server", &server);
		until_up();
	}
	bytes = heap();
	for (unsigned i = 0; i < cuts; i++) {
		until_both_hear();
		shutdown(client.again.fd, SHUT_RDWR);
		until_down();
		until_up();
	}
	stop = true;
	pthread_join(thread, NULL);
	while (drain() > 0)
		continue;
	assert_int_equal(client.again.times, times + n + cuts);
	assert_int_equal(rte_mempool_in_use_count(pool), held);
	assert_int_equal(descriptors(), fds + n); /* the sockets that they listened at */
	/* Pieces that are too small for the list of free ones stay with their neighbours; what
	 * leaks with each cut would be twice this at least, with its header. */
	assert_in_range(heap(), 0, bytes + cuts * RTE_CACHE_LINE_SIZE);
}

/* ---- a server that hangs ---- */

static int serve_in_vain(int backlog)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)&path, sizeof(path)), 0);
	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

static unsigned callers(int fd)
{
	unsigned n = 0;

	for (int c; (c = accept(fd, NULL, NULL)) >= 0; n++)
		close(c);
	return n;
}

/* It has time to answer; and one whose queue is full keeps nobody waiting. */
static void hangs(void **state)
{
	int fd;

	(void)state;
	port_close(&server);
	until_down();
	fd = serve_in_vain(64);
	pass_time(4 * SECOND);
	assert_int_equal(callers(fd), 1); /* which is sent away: the next attempt comes at once */
	close(fd);
	unlink(path.sun_path);
	fd = serve_in_vain(0);
	pass_time(60 * SECOND);
	close(fd);
	unlink(path.sun_path);
	open_role("server", &server);
	until_up();
	pass(&client, &server, 4);
	pass(&server, &client, 5);
}

/* Who tells it to connect does so again and again, and ends no conversation by that. */
static void is_told_to(void **state)
{
	unsigned begun = 0;
	int fd;

	(void)state;
	port_close(&server);
	until_down();
	fd = serve_in_vain(64);
	for (unsigned i = 0; i < 20; i++) {
		const int rc = port_reconnect(&client);

		begun += rc == 0;
		assert_true(rc == 0 || rc == -EINPROGRESS);
	}
	assert_int_equal(begun, 1);
	assert_int_equal(callers(fd), 1); /* which is sent away */
	for (unsigned i = 0; i < TRIES && port_reconnect(&client) == -EINPROGRESS; i++)
		usleep(1000);
	assert_int_equal(callers(fd), 1);
	close(fd);
	unlink(path.sun_path);
	open_role("server", &server);
	until_up();
	pass(&client, &server, 6);
	pass(&server, &client, 7);
}

/* The conversation of port_open is one, too, as long as the server may yet take it up. */
static void is_told_to_at_once(void **state)
{
	int fd;

	(void)state;
	port_close(&client);
	port_close(&server);
	fd = serve_in_vain(64);
	open_within(1, "client", &client);
	assert_false(port_link_up(&client));
	assert_int_equal(port_reconnect(&client), -EINPROGRESS);
	assert_int_equal(callers(fd), 1);
	close(fd);
	unlink(path.sun_path);
	open_role("server", &server);
	until_up();
	pass(&client, &server, 8);
	pass(&server, &client, 9);
}

/* ---- a server that is none ---- */

static uint64_t refused(const char *why)
{
	const char *name, *text;
	uint64_t count;

	for (unsigned i = 0;; i++) {
		count = port_memif_refused(i, &name, &text);
		assert_non_null(name);
		if (strcmp(name, why) == 0)
			return count;
	}
}

static void turn(void)
{
	struct rte_mbuf *m[BURST];

	rte_pktmbuf_free_bulk(m, port_rx_burst(&client, m, BURST));
	for (unsigned i = 0; i < BURST; i++)
		m[i] = frame((uint8_t)i);
	for (unsigned sent = port_tx_burst(&client, m, BURST); sent < BURST; sent++)
		rte_pktmbuf_free(m[sent]);
	port_tx_reap(&client);
}

static void turn_when_up(void)
{
	for (unsigned i = 0; i < TRIES && !port_link_up(&client); i++)
		usleep(1000);
	assert_true(port_link_up(&client));
	turn();
}

static int await_caller(int fd)
{
	int s = -1;

	for (unsigned i = 0; i < TRIES && s < 0; i++) {
		tick();
		until_attempt_ends();
		s = accept(fd, NULL, NULL);
	}
	assert_true(s >= 0);
	return s;
}

/* Whatever it says the client goes on, counts what was wrong, leaves nothing behind, and finds the
 * next server. */
static void is_lied_to(void **state)
{
	unsigned fds = 0;
	int fd;

	(void)state;
	port_close(&server);
	until_down();
	fd = serve_in_vain(64);
	for (int kind = 0; kind < N_SERVE_KNOCKS; kind++) {
		const char *why = serve_knock_counted[kind];
		const uint64_t before = why ? refused(why) : 0;
		const int rc = serve_knock(await_caller(fd), (enum serve_knock)kind, turn_when_up);

		if (rc != 0)
			fail_msg("%s: %s", serve_knock_text[kind], strerror(-rc));
		until_down();
		turn();
		if (why && refused(why) != before + 1)
			fail_msg("%s: %s is counted %u times", serve_knock_text[kind], why,
				(unsigned)(refused(why) - before));
		if (kind == 0)
			fds = descriptors();
		for (unsigned i = 0; i < TRIES && descriptors() > fds; i++)
			usleep(1000); /* the driver's thread closes some a moment later */
		if (descriptors() > fds)
			fail_msg("%s: %u descriptors are left", serve_knock_text[kind],
				descriptors() - fds);
	}
	close(fd);
	unlink(path.sun_path);
	open_role("server", &server);
	until_up();
	pass(&client, &server, 10);
	pass(&server, &client, 11);
}

static int setup(void **state)
{
	const struct port_eal eal = {.program = "test_again", .memory_mb = 128};
	char err[PORT_ERR_LEN] = "";

	(void)state;
	if (mkdtemp(dir) == NULL || port_eal_init(&eal, err) != 0)
		return -1;
	snprintf(path.sun_path, sizeof(path.sun_path), "%s/memif.sock", dir);
	pool = port_pool_create("packets", 16384, MTU, SOCKET_ID_ANY, err);
	if (pool == NULL)
		return -1;
	open_role("server", &server);
	open_role("client", &client);
	until_up();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	port_close(&client);
	port_close(&server);
	rte_mempool_free(pool);
	port_eal_fini();
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zero_copy),
		cmocka_unit_test(many_times),
		cmocka_unit_test(hangs),
		cmocka_unit_test(is_told_to),
		cmocka_unit_test(is_told_to_at_once),
		cmocka_unit_test(is_lied_to),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
