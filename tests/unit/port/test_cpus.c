/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CPUs the workers get, of machines that are not this one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <rte_memory.h>
#include <stdlib.h>
#include <string.h>

#include "lib/port/cpus.h"

enum { MAX = 16 };

/* Two nodes of four cores of two threads each: CPUs 0-3 and 8-11 are node 0's, core i has i and
 * i + 8. */
static struct port_machine *two_nodes(void)
{
	struct port_machine *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	for (int i = 0; i < 16; i++)
		m->cpu[i] = (struct port_cpu){
			.there = true, .allowed = true, .node = i % 8 / 4, .core = i % 8};
	return m;
}

static void isolate(struct port_machine *m, int from, int to)
{
	for (int i = from; i <= to; i++) {
		m->cpu[i].isolated = true;
		m->cpu[i].allowed = false;
	}
}

static void expect(struct port_machine *m, unsigned n_ports, const char *want)
{
	struct port_cpus got;
	char text[256] = "";
	size_t len = 0;

	port_cpus_choose(m, n_ports, MAX, &got);
	for (unsigned i = 0; i < got.n_cpus; i++)
		len += (size_t)snprintf(
			text + len, sizeof(text) - len, "%s%d", i ? "," : "", got.cpu[i]);
	assert_string_equal(text, want);
	assert_int_equal(got.n, got.n_cpus ? got.n_cpus : 1);
	free(m);
}

/* Nothing is known of NICs: all nodes are alike. The first core stays free, one thread a core. */
static void test_none_isolated(void **state)
{
	(void)state;
	expect(two_nodes(), 2, "1,2");
	expect(two_nodes(), 64, "1,2,3,4,5,6,7");
	expect(two_nodes(), 1, "1");
}

static void test_near_the_nics(void **state)
{
	struct port_machine *m = two_nodes();
	struct port_cpus got;

	(void)state;
	m->nics[1] = 2;
	port_cpus_choose(m, 8, MAX, &got);
	assert_int_equal(got.node, 1);
	expect(m, 8, "4,5,6,7");
	/* Both nodes have some: cores of both, memory where more are. */
	m = two_nodes();
	m->nics[0] = 1, m->nics[1] = 2;
	port_cpus_choose(m, 3, MAX, &got);
	assert_int_equal(got.node, 1);
	expect(m, 16, "1,2,3,4,5,6,7");
	/* As many, the first. */
	m = two_nodes();
	m->nics[0] = 1, m->nics[1] = 1;
	port_cpus_choose(m, 1, MAX, &got);
	assert_int_equal(got.node, 0);
	free(m);
}

/* What an operator has isolated is for this: all of it that is near, the second threads left. */
static void test_isolated(void **state)
{
	struct port_machine *m = two_nodes();
	struct port_cpus got;

	(void)state;
	isolate(m, 2, 5);
	isolate(m, 10, 13);
	port_cpus_choose(m, 1, MAX, &got);
	assert_true(got.isolated);
	expect(m, 1, "2,3,4,5");
	m = two_nodes();
	isolate(m, 2, 5);
	m->nics[0] = 1;
	expect(m, 1, "2,3");
	/* None is near: those that there are, rather than ones that are not isolated. */
	m = two_nodes();
	isolate(m, 1, 3);
	m->nics[1] = 1;
	expect(m, 1, "1,2,3");
	/* Only the second thread of a core. */
	m = two_nodes();
	isolate(m, 9, 9);
	expect(m, 1, "9");
}

static void test_limits(void **state)
{
	struct port_machine *m = two_nodes();
	struct port_cpus got;

	(void)state;
	isolate(m, 1, 7);
	port_cpus_choose(m, 1, 3, &got);
	assert_int_equal(got.n, 3);
	free(m);
	/* One core: nothing to spare, one that floats. */
	m = calloc(1, sizeof(*m));
	m->cpu[0] = (struct port_cpu){.there = true, .allowed = true};
	expect(m, 4, "");
	/* Facts that cannot be: no CPU at all, cores and nodes out of any range. */
	expect(calloc(1, sizeof(*m)), 4, "");
	m = two_nodes();
	for (int i = 0; i < 16; i++)
		m->cpu[i].core = i % 2 ? -1 : PORT_CPUS, m->cpu[i].node = PORT_NODES + i;
	m->nics[3] = 1;
	expect(m, 4, "1,2,3,4");
	/* Only some may be used: a container. */
	m = two_nodes();
	for (int i = 0; i < 16; i++)
		m->cpu[i].allowed = i == 5 || i == 13 || i == 6;
	expect(m, 4, "6");
}

static void test_lcores(void **state)
{
	struct port_cpus cpus = {.n = 2, .n_cpus = 2, .cpu = {3, 12}};
	char text[256], floating[200], want[256];

	(void)state;
	assert_int_equal(port_lcores_floating(1, floating, sizeof(floating)), 0);
	assert_int_equal(port_lcores_bound(&cpus, text, sizeof(text)), 0);
	snprintf(want, sizeof(want), "%s,1@3,2@12", floating);
	assert_string_equal(text, want);
	assert_int_equal(port_lcores_bound(&cpus, text, strlen(want)), -ENOSPC);
	assert_int_equal(port_lcores_bound(&cpus, text, 4), -ENOSPC);
}

/* This machine, whatever it is: what is chosen exists. */
static void test_this_machine(void **state)
{
	struct port_machine *m = malloc(sizeof(*m));
	struct port_config port = {.pci = "ffff:ff:1f.7"};
	const struct port_config *ports[] = {&port};
	struct port_cpus got;

	(void)state;
	assert_int_equal(port_machine_read(ports, 1, m), 0);
	assert_true(m->cpu[0].there);
	port_cpus_choose(m, 1, MAX, &got);
	assert_int_equal(got.node, -1);
	for (unsigned i = 0; i < got.n_cpus; i++)
		assert_true(m->cpu[got.cpu[i]].there);
	assert_int_equal(port_node_socket(-1), SOCKET_ID_ANY);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none_isolated),
		cmocka_unit_test(test_near_the_nics),
		cmocka_unit_test(test_isolated),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_lcores),
		cmocka_unit_test(test_this_machine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
