/* SPDX-License-Identifier: BSD-3-Clause */
/* A memif server, whoever knocks: real ports, and a client at work all the time. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <rte_malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/port/config.h"
#include "lib/port/internal.h"
#include "tests/unit/port/knock.h"

enum { MTU = 1500, FRAME = 1000, KNOCK_ROUNDS = 323, WAIT_MS = 10000 };
static_assert(KNOCK_ROUNDS * N_KNOCKS >= 10000, "ten thousand");

static char dir[] = "/tmp/door-test-XXXXXX";
static char path[64];
static struct rte_mempool *pool;
static struct sigaction guard; /* a server's, while cmocka has its own */

static int try_open_as(
	const char *name, const char *role, int id, bool zero_copy, struct port *port, char *err)
{
	struct port_config config;
	json_t *json = json_pack("{ss ss ss ss si si sb si si}", "name", name, "type", "memif",
		"socket", path, "role", role, "id", id, "mtu", MTU, "zero_copy", zero_copy, "rxd",
		64, "txd", 64);
	int rc = port_config_parse(json, &config, err);

	json_decref(json);
	return rc ? rc : port_open(&config, pool, 5000, port, err);
}

static int try_open(const char *name, const char *role, int id, struct port *port, char *err)
{
	return try_open_as(name, role, id, false, port, err);
}

static void open_zero_copy(const char *name, struct port *port)
{
	char err[PORT_ERR_LEN] = "";

	if (try_open_as(name, "client", 0, true, port, err) != 0)
		fail_msg("%s: %s", name, err);
	assert_true(port->config.zero_copy);
}

static void open_ok(const char *name, const char *role, int id, struct port *port)
{
	char err[PORT_ERR_LEN] = "";

	if (try_open(name, role, id, port, err) != 0)
		fail_msg("%s: %s", name, err);
}

static unsigned open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

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

static bool await(bool (*so)(const void *), const void *of)
{
	for (unsigned ms = 0; ms < WAIT_MS && !so(of); ms++)
		usleep(1000);
	return so(of);
}

static bool is_up(const void *port)
{
	return port_link_up(port);
}

static bool is_down(const void *port)
{
	return !port_link_up(port);
}

/* ---- traffic ---- */

struct traffic {
	uint32_t sent, seen;
};

/* Sends numbered frames and takes them, in order and none missing. */
static void move(struct traffic *t, const struct port *from, const struct port *to)
{
	struct rte_mbuf *m[32];
	unsigned n;

	if (t->sent - t->seen < 32) {
		m[0] = rte_pktmbuf_alloc(pool);
		assert_non_null(m[0]);
		memset(rte_pktmbuf_append(m[0], FRAME), (int)(t->sent & 0xff), FRAME);
		memcpy(rte_pktmbuf_mtod(m[0], void *), &t->sent, sizeof(t->sent));
		n = port_tx_burst(from, m, 1);
		t->sent += n;
		if (n == 0)
			rte_pktmbuf_free(m[0]);
	}
	n = port_rx_burst(to, m, 32);
	for (unsigned i = 0; i < n; i++) {
		uint32_t number;

		assert_int_equal(m[i]->pkt_len, FRAME);
		memcpy(&number, rte_pktmbuf_mtod(m[i], void *), sizeof(number));
		assert_int_equal(number, t->seen);
		t->seen++;
		assert_int_equal(rte_pktmbuf_mtod(m[i], uint8_t *)[FRAME - 1], number & 0xff);
		rte_pktmbuf_free(m[i]);
	}
}

static void move_all(struct traffic *t, const struct port *from, const struct port *to)
{
	uint32_t target = t->sent + 1000;

	for (unsigned i = 0; t->seen < target && i < 10000000; i++)
		move(t, from, to);
	assert_true(t->seen >= target);
}

/* ---- knocking ---- */

struct knocker {
	atomic_bool done;
	unsigned rounds;
	enum knock kind; /* that had no answer */
	int rc;
};

static void *knock_on(void *arg)
{
	struct knocker *k = arg;

	for (unsigned round = 0; round < k->rounds && k->rc == 0; round++)
		for (int i = 0; i < N_KNOCKS && k->rc == 0; i++) {
			k->kind = (enum knock)i;
			k->rc = knock(path, k->kind, 1, 0);
		}
	atomic_store(&k->done, true);
	return NULL;
}

/* Each knock by itself: it is counted as what it is, once. */
static void knocks_counted(void **state)
{
	struct port server, other, client;

	(void)state;
	open_ok("s", "server", 0, &server);
	open_ok("o", "server", 1, &other);
	open_ok("c", "client", 0, &client);
	assert_true(await(is_up, &server));
	for (int i = 0; i < N_KNOCKS; i++) {
		const char *why = knock_counted[i];
		uint64_t before = why ? refused(why) : 0;
		int rc = knock(path, (enum knock)i, 1, 0);

		if (rc != 0)
			fail_msg("%s: %s", knock_text[i], strerror(-rc));
		for (unsigned ms = 0; why && ms < WAIT_MS && refused(why) == before; ms++)
			usleep(1000);
		if (why && refused(why) != before + 1)
			fail_msg("%s: %s is counted %u times", knock_text[i], why,
				(unsigned)(refused(why) - before));
	}
	assert_true(port_link_up(&client));
	port_close(&client);
	port_close(&other);
	port_close(&server);
}

/* Ten thousand, while a client of the same socket sends and receives. */
static void knocks_under_traffic(void **state)
{
	struct knocker k = {.rounds = KNOCK_ROUNDS};
	struct traffic there = {0}, back = {0}, late = {0};
	struct port server, other, client, second;
	struct rte_mbuf *none[1];
	unsigned files;
	pthread_t thread;

	(void)state;
	open_ok("s", "server", 0, &server);
	open_ok("o", "server", 1, &other);
	open_ok("c", "client", 0, &client);
	assert_true(await(is_up, &server));
	files = open_files();
	assert_int_equal(pthread_create(&thread, NULL, knock_on, &k), 0);
	while (!atomic_load(&k.done)) {
		move(&there, &client, &server);
		move(&back, &server, &client);
		assert_int_equal(port_rx_burst(&other, none, 1), 0);
	}
	pthread_join(thread, NULL);
	if (k.rc != 0)
		fail_msg("%s: %s", knock_text[k.kind], strerror(-k.rc));
	move_all(&there, &client, &server);
	move_all(&back, &server, &client);
	assert_true(await(is_down, &other));
	for (unsigned ms = 0; ms < WAIT_MS && open_files() > files; ms++)
		usleep(1000);
	assert_int_equal(open_files(), files);
	open_ok("d", "client", 1, &second);
	assert_true(await(is_up, &other));
	move_all(&late, &second, &other);
	port_close(&second);
	port_close(&client);
	port_close(&other);
	port_close(&server);
}

/* A client that comes while the one before is going waits for that, every time. */
static void again_and_again(void **state)
{
	struct traffic t;
	struct port server, client;

	(void)state;
	open_ok("s", "server", 0, &server);
	for (unsigned i = 0; i < 50; i++) {
		open_ok("c", "client", 0, &client);
		assert_true(port_link_up(&client));
		t = (struct traffic){0};
		assert_true(await(is_up, &server));
		move_all(&t, &client, &server);
		port_close(&client);
	}
	port_close(&server);
}

/* More conversations that nobody ends than there are places: the oldest goes, a client gets in. */
static void crowd(void **state)
{
	enum { IDLE = 100 };
	uint64_t before = refused("crowd");
	struct port server, client;
	int idle[IDLE];

	(void)state;
	open_ok("s", "server", 0, &server);
	for (unsigned i = 0; i < IDLE; i++) {
		idle[i] = knock_connect(path);
		assert_true(idle[i] >= 0);
	}
	open_ok("c", "client", 0, &client);
	assert_true(port_link_up(&client));
	assert_true(refused("crowd") > before);
	for (unsigned i = 0; i < IDLE; i++)
		close(idle[i]);
	port_close(&client);
	port_close(&server);
}

static unsigned take(const struct port *port)
{
	struct rte_mbuf *m[32];
	const unsigned n = port_rx_burst(port, m, 32);

	rte_pktmbuf_free_bulk(m, n);
	return n;
}

/* The thread that polls the port finds the client's file cut: it goes on, that client is hung up
 * on, and the next one is heard. */
static void buffers_are_cut_in_use(void **state)
{
	const uint64_t before = port_memif_lost();
	int fd = memfd_create("buffers", MFD_CLOEXEC), s;
	struct port server, client;
	struct traffic t = {0};
	char byte;
	void *rings;

	(void)state;
	sigaction(SIGBUS, &guard, NULL);
	assert_int_equal(ftruncate(fd, 4096), 0);
	open_ok("s", "server", 0, &server);
	s = knock_with_buffers(path, 0, fd, &rings);
	assert_true(s >= 0);
	assert_true(await(is_up, &server));
	knock_send(rings);
	assert_int_equal(take(&server), 1);
	assert_int_equal(port_memif_lost(), before);
	assert_int_equal(ftruncate(fd, 0), 0);
	knock_send(rings);
	take(&server);
	assert_int_equal(port_memif_lost(), before + 1);
	while (recv(s, &byte, 1, 0) > 0)
		continue; /* why */
	assert_int_equal(recv(s, &byte, 1, 0), 0);
	close(s);
	munmap(rings, KNOCK_RINGS_LEN);
	close(fd);
	open_ok("c", "client", 0, &client);
	assert_true(await(is_up, &server));
	move_all(&t, &client, &server);
	port_close(&client);
	port_close(&server);
}

/* Nothing is left in the file system, and nobody else gets in between. */
static void names(void **state)
{
	char name[80], err[PORT_ERR_LEN] = "";
	struct port server, twin;
	struct stat st;

	(void)state;
	open_ok("s", "server", 0, &server);
	snprintf(name, sizeof(name), "%s.d", path);
	assert_int_equal(stat(name, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(try_open("t", "server", 0, &twin, err), -EEXIST);
	assert_string_equal(strstr(err, "id: 0 is that of another port") ? "" : err, "");
	port_close(&server);
	assert_int_not_equal(stat(name, &st), 0);
	assert_int_not_equal(stat(path, &st), 0);
	snprintf(name, sizeof(name), "%s.lock", path);
	assert_int_not_equal(stat(name, &st), 0);
}

/* ---- threads in bursts ---- */

static void *one_burst(void *arg)
{
	struct rte_mbuf *none[1];

	assert_int_equal(port_rx_burst(arg, none, 1), 0);
	return NULL;
}

/* Slots of threads that have ended are there for others, however many there were. */
static void short_lived_threads(void **state)
{
	unsigned before = port_burst_slots();
	struct port server;

	(void)state;
	open_ok("s", "server", 0, &server);
	for (unsigned i = 0; i < 600; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, one_burst, &server), 0);
		pthread_join(thread, NULL);
		assert_int_equal(port_burst_slots(), before);
	}
	port_close(&server);
}

static pthread_barrier_t all_begun, may_end;

static void *long_burst(void *arg)
{
	port_burst_begin();
	pthread_barrier_wait(&all_begun);
	pthread_barrier_wait(&may_end);
	port_burst_end();
	return arg;
}

/* More threads than slots: none is overlooked. */
static void many_threads(void **state)
{
	enum { THREADS = 300 };
	pthread_t threads[THREADS];

	(void)state;
	pthread_barrier_init(&all_begun, NULL, THREADS + 1);
	pthread_barrier_init(&may_end, NULL, THREADS + 1);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, long_burst, NULL), 0);
	pthread_barrier_wait(&all_begun);
	assert_int_equal(port_bursts_under_way(), THREADS);
	pthread_barrier_wait(&may_end);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(port_bursts_under_way(), 0);
}

static int no_unmap(void *addr, size_t len)
{
	(void)addr, (void)len;
	return -1;
}

/* The driver's munmap is ours as soon as there is a memif, and only the driver's. */
static void unmapping_is_held(void **state)
{
	char err[PORT_ERR_LEN];
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct port server;

	(void)state;
	open_ok("h", "server", 0, &server);
	assert_int_equal(port_bursts_hold(err), 0);
	assert_int_equal(
		port_hook("librte_net_memif", "no_such_function", (void *)no_unmap), -ENOENT);
	assert_int_equal(port_hook("librte_no_such_library", "munmap", (void *)no_unmap), -ENOENT);
	assert_true(port_hook("librte_net_memif", "munmap", (void *)no_unmap) > 0);
	assert_int_equal(munmap(page, 4096), 0);
	assert_int_equal(port_bursts_hold(err), 0);
	port_close(&server);
}

/* ---- what has been sent ---- */

struct sent {
	struct rte_mbuf_ext_shared_info info;
	unsigned freed, outside; /* outside: not in a burst, the rings may go away */
};

static void given_back(void *addr, void *opaque)
{
	struct sent *s = opaque;

	s->freed++;
	s->outside += port_bursts_under_way() == 0;
	rte_free(addr);
}

static struct rte_mbuf *lend(struct sent *s)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	void *data = rte_zmalloc(NULL, FRAME, 0);

	assert_true(m != NULL && data != NULL);
	rte_mbuf_ext_refcnt_set(&s->info, 1);
	s->info.free_cb = given_back;
	s->info.fcb_opaque = s;
	rte_pktmbuf_attach_extbuf(m, data, rte_malloc_virt2iova(data), FRAME, &s->info);
	assert_non_null(rte_pktmbuf_append(m, FRAME));
	return m;
}

/* A port without copies keeps what it sent until its peer has read it, and gives it back when
 * asked: in a burst, so that the rings that say how far the peer has read do not go away meanwhile.
 */
static void reaped_in_a_burst(void **state)
{
	struct sent sent = {.freed = 0};
	struct port server, client;
	struct rte_mbuf *m;

	(void)state;
	open_ok("s", "server", 0, &server);
	open_zero_copy("z", &client);
	assert_true(await(is_up, &server));
	m = lend(&sent);
	assert_int_equal(port_tx_burst(&client, &m, 1), 1);
	port_tx_reap(&client);
	assert_int_equal(sent.freed, 0); /* the peer has not read it */
	for (unsigned ms = 0; ms < WAIT_MS && port_rx_burst(&server, &m, 1) == 0; ms++)
		usleep(1000);
	assert_int_equal(m->pkt_len, FRAME);
	rte_pktmbuf_free(m);
	port_tx_reap(&client);
	assert_int_equal(sent.freed, 1);
	assert_int_equal(sent.outside, 0);
	port_close(&server);
	assert_true(await(is_down, &client));
	port_tx_reap(&client);
	port_close(&client);
}

static int setup(void **state)
{
	const struct port_eal eal = {.program = "test", .memory_mb = 64};
	char err[PORT_ERR_LEN] = "";
	struct port first;

	(void)state;
	if (port_eal_init(&eal, err) != 0 || mkdtemp(dir) == NULL) {
		print_error("%s\n", err);
		return -1;
	}
	snprintf(path, sizeof(path), "%s/memif.sock", dir);
	pool = port_pool_create("test", 4095, MTU, SOCKET_ID_ANY, err);
	if (pool == NULL || try_open("s", "server", 0, &first, err) != 0)
		return -1;
	sigaction(SIGBUS, NULL, &guard);
	port_close(&first);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rte_mempool_free(pool);
	port_eal_fini();
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knocks_counted),
		cmocka_unit_test(knocks_under_traffic),
		cmocka_unit_test(again_and_again),
		cmocka_unit_test(crowd),
		cmocka_unit_test(buffers_are_cut_in_use),
		cmocka_unit_test(names),
		cmocka_unit_test(short_lived_threads),
		cmocka_unit_test(many_threads),
		cmocka_unit_test(unmapping_is_held),
		cmocka_unit_test(reaped_in_a_burst),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
