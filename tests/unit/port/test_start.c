/* SPDX-License-Identifier: BSD-3-Clause */
/* What a start costs: the drivers that are loaded, and the memory that packet buffers take. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <rte_errno.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/port/config.h"
#include "lib/port/internal.h"

enum { MTU = 4200, MEMORY_MB = 64, BUFFERS = 9000 /* of 4.5 KB each: 8 KB would be too much */ };

static bool is_loaded(const char *library)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	bool found = false;

	assert_non_null(maps);
	while (!found && fgets(line, sizeof(line), maps) != NULL)
		found = strstr(line, library) != NULL;
	fclose(maps);
	return found;
}

static struct port_config config_of(json_t *json)
{
	char err[PORT_ERR_LEN] = "";
	struct port_config config;

	assert_non_null(json);
	if (port_config_parse(json, &config, err) != 0)
		fail_msg("%s", err);
	json_decref(json);
	return config;
}

static void open_and_close(json_t *json)
{
	const struct port_config config = config_of(json);
	struct rte_mempool *pool;
	char err[PORT_ERR_LEN] = "";
	struct port port;

	pool = port_pool_create("ports", 4095, MTU, SOCKET_ID_ANY, err);
	if (pool == NULL || port_open(&config, pool, 0, &port, err) != 0)
		fail_msg("%s", err);
	port_close(&port);
	rte_mempool_free(pool);
}

/* In a process of its own, for the EAL starts once. */
static void all_are_loaded_for_options_of_the_eal(void **state)
{
	const struct port_eal eal = {
		.program = "test", .memory_mb = MEMORY_MB, .extra = "--log-level=error"};
	char err[PORT_ERR_LEN] = "";
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0)
		_exit(port_eal_init(&eal, err) == 0 && is_loaded("/librte_net_null.so") &&
					is_loaded("/librte_net_pcap.so")
				? 0
				: 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void a_start_loads_no_driver(void **state)
{
	const struct port_eal eal = {.program = "test", .memory_mb = MEMORY_MB};
	char err[PORT_ERR_LEN] = "";

	(void)state;
	if (port_eal_init(&eal, err) != 0)
		fail_msg("%s", err);
	assert_true(is_loaded("/librte_mempool_ring.so"));
	assert_true(is_loaded("/librte_mempool_stack.so"));
	assert_false(is_loaded("/librte_net_null.so"));
	assert_false(is_loaded("/librte_net_memif.so"));
}

static void a_port_loads_its_driver(void **state)
{
	(void)state;
	open_and_close(json_pack("{ssss}", "name", "n0", "type", "null"));
	assert_true(is_loaded("/librte_net_null.so"));
	assert_false(is_loaded("/librte_net_memif.so"));
	assert_false(is_loaded("/librte_net_pcap.so"));
}

static void a_driver_that_is_not_there_is_named(void **state)
{
	char err[PORT_ERR_LEN] = "";

	(void)state;
	assert_int_equal(port_drivers_load("net_nul", err), -ENODEV); /* no beginning of a name */
	assert_non_null(strstr(err, "type: DPDK's driver net_nul is not installed"));
	assert_int_equal(port_drivers_load(NULL, err), 0);
}

static void a_vdev_may_want_any(void **state)
{
	(void)state;
	open_and_close(
		json_pack("{ssssss}", "name", "v0", "type", "vdev", "args", "net_null7,no-rx=1"));
	assert_true(is_loaded("/librte_net_pcap.so"));
	assert_true(is_loaded("/librte_net_memif.so"));
}

static void buffers_lie_close(void **state)
{
	static struct rte_mbuf *all[BUFFERS];
	char err[PORT_ERR_LEN] = "";
	struct rte_mempool *pool = port_pool_create("many", BUFFERS, MTU, SOCKET_ID_ANY, err);

	(void)state;
	if (pool == NULL)
		fail_msg("%s", err);
	assert_int_equal(pool->nb_mem_chunks, 1);
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, all, BUFFERS), 0);
	assert_null(rte_pktmbuf_alloc(pool));
	for (unsigned i = 0; i < BUFFERS; i++) {
		assert_true(rte_pktmbuf_tailroom(all[i]) >= MTU + PORT_FRAME_OVERHEAD);
		memset(rte_pktmbuf_append(all[i], MTU), (int)i, MTU);
	}
	for (unsigned i = 0; i < BUFFERS; i++) {
		const uint8_t *data = rte_pktmbuf_mtod(all[i], uint8_t *);

		assert_int_equal(data[0], i & 255);
		assert_int_equal(data[MTU - 1], i & 255);
		assert_int_equal(rte_mbuf_check(all[i], 1, &(const char *){NULL}), 0);
	}
	rte_pktmbuf_free_bulk(all, BUFFERS);
	assert_true(rte_mempool_full(pool));
	rte_mempool_free(pool);
	assert_null(port_pool_create("too-many", 2 * BUFFERS, MTU, SOCKET_ID_ANY, err));
	assert_non_null(strstr(err, "raise \"memory_mb\""));
	/* Nothing has stayed. */
	pool = port_pool_create("many", BUFFERS, MTU, SOCKET_ID_ANY, err);
	assert_non_null(pool);
	rte_mempool_free(pool);
}

static void kinds_of_free_lists(void **state)
{
	struct rte_mempool *pool = port_pool_of("stack", 1023, 256, SOCKET_ID_ANY, "stack");

	(void)state;
	assert_non_null(pool);
	assert_int_equal(rte_mempool_avail_count(pool), 1023);
	rte_mempool_free(pool);
	assert_null(port_pool_of("none", 1023, 256, SOCKET_ID_ANY, "no such"));
	assert_int_equal(rte_errno, EINVAL);
}

static void what_ports_hold(void **state)
{
	static const char socket[] = "/tmp/m.sock";
	const struct port_config ports[] = {
		config_of(json_pack("{ssssssssss}", "name", "a", "type", "memif", "role", "client",
			"socket", socket, "mac", "02:00:00:00:00:01")),
		config_of(json_pack("{sssssssssb}", "name", "b", "type", "memif", "role", "client",
			"socket", socket, "zero_copy", 0)),
		config_of(json_pack(
			"{sssssisi}", "name", "r", "type", "ring", "rxd", 256, "txd", 512)),
	};

	(void)state;
	assert_int_equal(port_pool_rings(ports, 0), 0);
	assert_int_equal(port_pool_rings(ports, 1), 2048);
	assert_int_equal(port_pool_rings(ports + 1, 1), 128);
	assert_int_equal(port_pool_rings(ports + 2, 1), 768);
	assert_int_equal(port_pool_rings(ports, 3), 2048 + 128 + 768);
	assert_int_equal(port_pool_need(ports, 3), 2048 + port_pool_rings(ports, 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_loaded_for_options_of_the_eal),
		cmocka_unit_test(a_start_loads_no_driver),
		cmocka_unit_test(buffers_lie_close),
		cmocka_unit_test(a_port_loads_its_driver),
		cmocka_unit_test(a_driver_that_is_not_there_is_named),
		cmocka_unit_test(a_vdev_may_want_any),
		cmocka_unit_test(kinds_of_free_lists),
		cmocka_unit_test(what_ports_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
