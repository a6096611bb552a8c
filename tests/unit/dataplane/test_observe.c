/* SPDX-License-Identifier: BSD-3-Clause */
/* What the control plane sees of the packet path: traces, nodes, ports. */
#include <errno.h>
#include <string.h>

#include "harness.h"

static struct sw *sw;

static int start(void **state)
{
	(void)state;
	sw = h_start(3, NULL, NULL);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	h_stop(sw);
	return 0;
}

static void trace(void **state)
{
	static const char *const nodes[] = {"port_rx", "parse", "ip_forward", "rewrite", "port_tx"};
	struct wire_ip a = h_host4(0), c = h_host4(1), nowhere = h_ip("99.0.0.1");
	struct sw_trace_rec rec[32];
	char err[SW_ERR_LEN];
	uint8_t b[128];
	struct frame f;
	unsigned n;

	(void)state;
	assert_int_equal(sw_trace_start(sw, 0, 0, err), -EINVAL);
	assert_int_equal(sw_trace_start(sw, 3, 1, err), -ENOENT);
	assert_int_equal(sw_trace_start(sw, 0, 2, err), 0);
	h_inject(sw, 1, b, h_ip4(b, h_port_mac(sw, 1), &c, &a, 99, 9, "x", 1));
	h_run(sw);
	assert_int_equal(sw_trace_read(sw, 0, rec, 32), 0); /* another port */
	assert_true(h_take(sw, 0, &f));
	h_exchange(sw, 0, b, h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, "x", 1), 1, &f);
	n = sw_trace_read(sw, 0, rec, 32);
	assert_int_equal(n, 5);
	for (unsigned i = 0; i < n; i++) {
		assert_string_equal(rec[i].node, nodes[i]);
		assert_int_equal(rec[i].packet, 1);
	}
	assert_non_null(strstr(rec[1].text, "10.0.0.10 > 10.0.0.11"));
	assert_non_null(strstr(rec[4].text, "p1"));
	h_expect_drop(
		sw, 0, b, h_ip4(b, h_port_mac(sw, 0), &a, &nowhere, 99, 9, "x", 1), "ip_no_route");
	n = sw_trace_read(sw, 5, rec, 32);
	assert_int_equal(n, 3);
	assert_string_equal(rec[2].node, "end");
	assert_int_equal(rec[2].packet, 2);
	assert_non_null(strstr(rec[2].text, "drop ip_no_route"));
	/* Two were asked for. */
	h_exchange(sw, 0, b, h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, "x", 1), 1, &f);
	assert_int_equal(sw_trace_read(sw, 8, rec, 32), 0);
	assert_int_equal(sw_trace_read(sw, 4000000, rec, 32), 0);
}

static void count_nodes(
	void *arg, const char *node, uint64_t calls, uint64_t packets, uint64_t cycles)
{
	uint64_t *seen = arg;

	(void)cycles;
	assert_true(calls > 0 || packets == 0);
	seen[0]++;
	if (strcmp(node, "ip_forward") == 0)
		seen[1] = packets;
	if (strcmp(node, "port_tx_flush") == 0)
		seen[2] = packets;
}

static void nodes(void **state)
{
	struct wire_ip a = h_host4(0), c = h_host4(1);
	uint64_t seen[3] = {0};
	struct frame f;
	uint8_t b[128];

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		h_exchange(sw, 0, b, h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, "x", 1), 1, &f);
	sw_nodes(sw, count_nodes, seen);
	assert_int_equal(seen[0], 21);
	assert_int_equal(seen[1], 3);
	assert_int_equal(seen[2], 3);
}

static void ports(void **state)
{
	struct sw_port port;

	(void)state;
	assert_int_equal(sw_n_ports(sw), 3);
	assert_int_equal(sw_port_find(sw, "p2"), 2);
	assert_int_equal(sw_port_find(sw, "p3"), -ENOENT);
	assert_int_equal(sw_port_get(sw, 3, &port), -ENOENT);
	assert_int_equal(sw_port_get(sw, 1, &port), 0);
	assert_string_equal(port.name, "p1");
	assert_string_equal(port.type, "ring");
	assert_int_equal(port.mtu, 4200);
	assert_true(port.link);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(trace, start, stop),
		cmocka_unit_test_setup_teardown(nodes, start, stop),
		cmocka_unit_test_setup_teardown(ports, start, stop),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
