/* SPDX-License-Identifier: BSD-3-Clause */
/* An af_packet port whose interface goes down, shrinks and disappears: a veth in a network
 * namespace of this test's own. Needs root; without it the test is skipped and says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/port/config.h"
#include "lib/port/iface.h"

enum { MTU = 1500, WAIT_MS = 10000, SKIPPED = 77 };

static struct rte_mempool *pool;
static struct port port;

static void ip(const char *what)
{
	char command[128];

	snprintf(command, sizeof(command), "ip link %s", what);
	assert_int_equal(system(command), 0);
}

static bool sends(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	unsigned n;

	assert_non_null(m);
	memset(rte_pktmbuf_append(m, 100), 2, 100);
	n = port_tx_burst(&port, &m, 1);
	if (n == 0)
		rte_pktmbuf_free(m);
	return n == 1;
}

static void await_link(bool up)
{
	for (unsigned ms = 0; ms < WAIT_MS && port_link_up(&port) != up; ms++)
		usleep(1000);
	assert_int_equal(port_link_up(&port), up);
}

static void down_and_up(void **state)
{
	(void)state;
	await_link(true);
	assert_true(sends());
	ip("set uxb down"); /* the peer */
	await_link(false);
	assert_false(sends());
	ip("set uxb up");
	await_link(true);
	assert_true(sends());
	ip("set uxa down");
	await_link(false);
	ip("set uxa up");
	await_link(true);
	assert_true(sends());
}

static void mtu(void **state)
{
	(void)state;
	assert_int_equal(port_mtu(&port), MTU);
	ip("set uxa mtu 1000");
	for (unsigned ms = 0; ms < WAIT_MS && port_mtu(&port) != 1000; ms++)
		usleep(1000);
	assert_int_equal(port_mtu(&port), 1000);
	ip("set uxa mtu 9000");
	for (unsigned ms = 0; ms < WAIT_MS && port_mtu(&port) != MTU; ms++)
		usleep(1000);
	assert_int_equal(port_mtu(&port), MTU); /* what it was configured for */
}

static void gone(void **state)
{
	(void)state;
	ip("del uxa");
	await_link(false);
	assert_false(sends());
	ip("add uxa type veth peer name uxb");
	ip("set uxb up");
	ip("set uxa up");
	assert_false(port_link_up(&port));
	assert_false(sends());
}

static int setup(void **state)
{
	const struct port_eal eal = {.program = "test", .memory_mb = 64};
	struct port_config config;
	char err[PORT_ERR_LEN] = "";
	json_t *json = json_pack("{ss ss ss si si si}", "name", "a", "type", "af_packet", "iface",
		"uxa", "mtu", MTU, "rxd", 64, "txd", 64);

	(void)state;
	ip("add uxa type veth peer name uxb");
	ip("set uxb up");
	ip("set uxa up");
	if (port_eal_init(&eal, err) == 0)
		pool = port_pool_create("test", 1023, MTU, SOCKET_ID_ANY, err);
	if (pool == NULL || port_config_parse(json, &config, err) != 0 ||
		port_open(&config, pool, 0, &port, err) != 0) {
		print_error("%s\n", err);
		return -1;
	}
	json_decref(json);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	port_close(&port);
	rte_mempool_free(pool);
	port_eal_fini();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(down_and_up),
		cmocka_unit_test(mtu),
		cmocka_unit_test(gone),
	};

	if (unshare(CLONE_NEWNET) != 0) {
		print_error("SKIPPED: a network namespace of its own needs root\n");
		return SKIPPED;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
