/* SPDX-License-Identifier: BSD-3-Clause */
/* A vhost port, whoever knocks: it goes on, and the next client is heard. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/port/config.h"
#include "tests/unit/port/vhost_knock.h"

enum { MTU = 1500, ROUNDS = 40 };

static char dir[] = "/tmp/vhost-test-XXXXXX";
static char path[64];
static struct rte_mempool *pool;
static struct port port;
static struct sigaction guard; /* the port's, while cmocka has its own */
static sigjmp_buf out;

static int come(void)
{
	const int s = vhost_come(path);

	assert_true(s >= 0);
	return s;
}

static void turn(void)
{
	struct rte_mbuf *m[32];
	unsigned n = port_rx_burst(&port, m, 32);

	rte_pktmbuf_free_bulk(m, n);
}

static void knocked(void **state)
{
	int s;

	sigaction(SIGBUS, &guard, NULL);
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++)
		for (int kind = 0; kind < N_VHOST_KNOCKS; kind++) {
			s = come();
			assert_int_equal(vhost_knock(s, (enum vhost_knock)kind), 0);
			turn();
			close(s);
		}
	s = come();
	assert_true(vhost_answers(s));
	close(s);
}

/* What is lost is counted, this client is hung up on, and the next one is heard. */
static void lost_one(int s, uint64_t before)
{
	assert_int_equal(port_vhost_lost(), before + 1);
	assert_false(vhost_answers(s));
	close(s);
	s = come();
	assert_true(vhost_answers(s));
	close(s);
}

/* The vhost library's own thread reads rings that lie behind the end of the file. */
static void memory_is_shorter_than_it_says(void **state)
{
	const uint64_t before = port_vhost_lost();
	int s = come();

	sigaction(SIGBUS, &guard, NULL);
	(void)state;
	assert_int_equal(vhost_knock(s, VHOST_SHORT), 0);
	lost_one(s, before);
}

/* The thread that polls the port finds the file cut. */
static void memory_is_cut_in_use(void **state)
{
	const uint64_t before = port_vhost_lost();
	int s = come(), fd = memfd_create("memory", MFD_CLOEXEC);

	sigaction(SIGBUS, &guard, NULL);
	(void)state;
	assert_int_equal(ftruncate(fd, VHOST_REGION), 0);
	vhost_offer(s, fd);
	assert_true(vhost_answers(s));
	assert_true(port_link_up(&port));
	turn();
	assert_int_equal(port_vhost_lost(), before);
	assert_int_equal(ftruncate(fd, 0), 0);
	turn();
	turn();
	lost_one(s, before);
	close(fd);
}

static void leave(int number)
{
	siglongjmp(out, number);
}

/* What is not a client's goes to who had the signal before. */
static void other_memory_is_others_concern(void **state)
{
	const uint64_t before = port_vhost_lost();
	int fd = memfd_create("own", MFD_CLOEXEC);
	volatile char *own = mmap(NULL, VHOST_PAGE, PROT_READ, MAP_SHARED, fd, 0);

	(void)state;
	sigaction(SIGBUS, &guard, NULL);
	if (sigsetjmp(out, 1) == 0) {
		(void)*own;
		fail_msg("an empty file can be read");
	}
	assert_int_equal(port_vhost_lost(), before);
	munmap((void *)(uintptr_t)own, VHOST_PAGE);
	close(fd);
}

static int start(void)
{
	const struct port_eal eal = {.program = "test", .memory_mb = 64};
	struct port_config config;
	char err[PORT_ERR_LEN] = "";
	json_t *json;
	int rc = -1;

	signal(SIGBUS, leave);
	if (port_eal_init(&eal, err) == 0 && mkdtemp(dir) != NULL)
		pool = port_pool_create("test", 4095, MTU, SOCKET_ID_ANY, err);
	snprintf(path, sizeof(path), "%s/v.sock", dir);
	json = json_pack("{ss ss ss si}", "name", "v", "type", "vhost", "socket", path, "mtu", MTU);
	if (pool != NULL && port_config_parse(json, &config, err) == 0)
		rc = port_open(&config, pool, 5000, &port, err);
	json_decref(json);
	if (rc != 0)
		print_error("%s\n", err);
	sigaction(SIGBUS, NULL, &guard);
	return rc;
}

static int teardown(void **state)
{
	(void)state;
	port_close(&port);
	rte_mempool_free(pool);
	port_eal_fini();
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_shorter_than_it_says),
		cmocka_unit_test(memory_is_cut_in_use),
		cmocka_unit_test(other_memory_is_others_concern),
		cmocka_unit_test(knocked),
	};

	return start() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, teardown);
}
