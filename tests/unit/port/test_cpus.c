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
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
	assert_int_equal(port_machine_read("", ports, 1, m), 0);
	assert_true(m->cpu[0].there);
	port_cpus_choose(m, 1, MAX, &got);
	assert_int_equal(got.node, -1);
	for (unsigned i = 0; i < got.n_cpus; i++)
		assert_true(m->cpu[got.cpu[i]].there);
	assert_int_equal(port_node_socket(-1), SOCKET_ID_ANY);
	free(m);
}

/* ---- what the kernel says ---- */

static int (*affinity)(cpu_set_t *set); /* NULL: the kernel's own */

int __real_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	return affinity != NULL ? affinity(set) : __real_sched_getaffinity(pid, size, set);
}

/* The list that takes most room: two, and one left out. */
static int in_pieces(cpu_set_t *set)
{
	CPU_ZERO(set);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (cpu % 3 != 0)
			CPU_SET(cpu, set);
	return 0;
}

/* What a kernel says that may have more CPUs than there is room for. */
static int too_many(cpu_set_t *set)
{
	(void)set;
	errno = EINVAL;
	return -1;
}

static void test_pieces(void **state)
{
	struct port_cpus cpus = {.n = 100, .n_cpus = 100};
	char text[PORT_LCORES_LEN];

	(void)state;
	for (int i = 0; i < 100; i++)
		cpus.cpu[i] = 1001;
	affinity = in_pieces;
	assert_int_equal(port_lcores_floating(17, text, sizeof(text)), 0);
	assert_memory_equal(text, "(0-16)@(1-2,4-5,", 16);
	assert_string_equal(text + strlen(text) - 11, ",1021-1022)");
	assert_int_equal(port_lcores_bound(&cpus, text, sizeof(text)), 0);
	assert_string_equal(text + strlen(text) - 9, ",100@1001");
	affinity = NULL;
}

static void put(const char *root, const char *at, const char *name, const char *text)
{
	char path[256], part[256];
	FILE *f;

	for (const char *end = at; (end = strchr(end + 1, '/')) != NULL;) {
		snprintf(part, sizeof(part), "%s/%.*s", root, (int)(end - at), at);
		mkdir(part, 0700);
	}
	snprintf(path, sizeof(path), "%s/%s%s", root, at, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Of what is a NIC's by its address or its interface; also where the CPUs cannot be told. */
static void test_nics(void **state)
{
	struct port_machine *m = malloc(sizeof(*m));
	const struct port_config nic = {.pci = "0000:5e:00.0"}, packet = {.iface = "eth7"},
				 tap = {.iface = "tap0"}, lies = {.iface = "eth8"};
	const struct port_config *ports[] = {&nic, &packet, &packet, &tap, &lies};
	char root[] = "/tmp/incline-cpus-XXXXXX", remove[64];

	(void)state;
	assert_non_null(mkdtemp(root));
	put(root, "sys/bus/pci/devices/0000:5e:00.0/", "numa_node", "1\n");
	put(root, "sys/class/net/eth7/device/", "numa_node", "2\n");
	put(root, "sys/class/net/eth8/device/", "numa_node", "-1\n");
	assert_int_equal(port_machine_read(root, ports, 5, m), 0);
	for (unsigned node = 0; node < PORT_NODES; node++)
		assert_int_equal(m->nics[node], node == 1 ? 1 : node == 2 ? 2 : 0);
	affinity = too_many;
	assert_int_equal(port_machine_read(root, ports, 5, m), -EINVAL);
	affinity = NULL;
	assert_int_equal(m->nics[2], 2);
	assert_false(m->cpu[0].there);
	snprintf(remove, sizeof(remove), "rm -r %s", root);
	assert_int_equal(system(remove), 0);
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
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_nics),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
