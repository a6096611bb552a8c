/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/port/cpus.h"

#include <assert.h>
#include <errno.h>
#include <numa.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_memory.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "lib/ctl/tree.h"
#include "lib/port/internal.h"

static_assert(PORT_CPUS == CPU_SETSIZE, "every CPU that may be asked for");

/* ---- what the machine is ---- */

static int first_of_core(const char *root, int cpu)
{
	char line[256];
	int first;

	tree_line(root, line, sizeof(line),
		"/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
	return sscanf(line, "%d", &first) == 1 ? first : cpu;
}

/* A CPU that is not online, or not of this container, is not. */
static bool can_be_had(int cpu, const cpu_set_t *allowed)
{
	cpu_set_t one;
	bool can;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	can = sched_setaffinity(0, sizeof(one), &one) == 0;
	sched_setaffinity(0, sizeof(*allowed), allowed);
	return can;
}

static void note_isolated(struct port_machine *m, const char *root, const cpu_set_t *allowed)
{
	char line[4096];
	struct bitmask *mask;

	tree_line(root, line, sizeof(line), "/sys/devices/system/cpu/isolated");
	mask = line[0] != '\0' ? numa_parse_cpustring_all(line) : NULL;
	if (mask == NULL)
		return;
	for (unsigned cpu = 0; cpu < PORT_CPUS && cpu < mask->size; cpu++)
		m->cpu[cpu].isolated =
			numa_bitmask_isbitset(mask, cpu) != 0 && can_be_had((int)cpu, allowed);
	numa_bitmask_free(mask);
}

static void note_nic(struct port_machine *m, const char *root, const struct port_config *port)
{
	int64_t node = -1;

	if (port->pci[0] != '\0')
		tree_number(root, &node, "/sys/bus/pci/devices/%s/numa_node", port->pci);
	else if (port->iface[0] != '\0')
		tree_number(root, &node, "/sys/class/net/%s/device/numa_node", port->iface);
	if (node >= 0 && node < PORT_NODES)
		m->nics[node]++;
}

int port_machine_read(const char *root, const struct port_config *const *ports, unsigned n_ports,
	struct port_machine *m)
{
	const bool nodes = numa_available() >= 0;
	cpu_set_t set;

	memset(m, 0, sizeof(*m));
	for (unsigned i = 0; i < n_ports; i++)
		note_nic(m, root, ports[i]);
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return -errno;
	for (int cpu = 0; cpu < PORT_CPUS && cpu < numa_num_possible_cpus(); cpu++)
		m->cpu[cpu] = (struct port_cpu){.there = true,
			.allowed = CPU_ISSET(cpu, &set),
			.node = nodes ? numa_node_of_cpu(cpu) : 0,
			.core = first_of_core(root, cpu)};
	note_isolated(m, root, &set);
	return 0;
}

/* ---- choosing ---- */

static int home_of(const struct port_machine *m)
{
	int home = -1;

	for (int node = 0; node < PORT_NODES; node++)
		if (m->nics[node] > (home < 0 ? 0 : m->nics[home]))
			home = node;
	return home;
}

static bool has_nic(const struct port_machine *m, int node)
{
	return node >= 0 && node < PORT_NODES && m->nics[node] > 0;
}

/* The first CPUs of their cores: isolated ones, or those of others that may be used. */
static unsigned candidates(
	const struct port_machine *m, bool isolated, bool near, unsigned max, int *cpu)
{
	bool taken[PORT_CPUS] = {false}, spared = isolated;
	unsigned n = 0;

	for (int i = 0; i < PORT_CPUS; i++) {
		const struct port_cpu *c = &m->cpu[i];
		const int core = c->core >= 0 && c->core < PORT_CPUS ? c->core : i;

		if (!c->there || !(isolated ? c->isolated : c->allowed) || taken[core])
			continue;
		taken[core] = true;
		if (!spared) /* the control thread and the rest of the machine live there */
			spared = true;
		else if ((!near || has_nic(m, c->node)) && n < max)
			cpu[n++] = i;
	}
	return n;
}

void port_cpus_choose(
	const struct port_machine *m, unsigned n_ports, unsigned max, struct port_cpus *out)
{
	const unsigned few = n_ports < max ? n_ports : max;

	memset(out, 0, sizeof(*out));
	out->node = home_of(m);
	out->isolated = candidates(m, true, false, 1, out->cpu) > 0;
	for (int near = out->node >= 0; near >= 0 && out->n_cpus == 0; near--)
		out->n_cpus = candidates(
			m, out->isolated, near != 0, out->isolated ? max : few, out->cpu);
	out->n = out->n_cpus > 0 ? out->n_cpus : 1;
}

int port_lcores_bound(const struct port_cpus *cpus, char *buf, size_t cap)
{
	int rc = port_lcores_floating(1, buf, cap);
	size_t len = rc == 0 ? strlen(buf) : 0;

	for (unsigned i = 0; rc == 0 && i < cpus->n_cpus; i++) {
		int w = snprintf(buf + len, cap - len, ",%u@%d", i + 1, cpus->cpu[i]);

		if (w < 0 || (size_t)w >= cap - len)
			rc = -ENOSPC;
		else
			len += (size_t)w;
	}
	return rc;
}

/* ---- memory ---- */

int port_node_socket(int node)
{
	if (node < 0 || !rte_eal_has_hugepages())
		return SOCKET_ID_ANY;
	for (unsigned i = 0; i < rte_socket_count(); i++)
		if (rte_socket_id_by_idx(i) == node)
			return node;
	return SOCKET_ID_ANY;
}

int port_device_socket(uint16_t port_id)
{
	return port_node_socket(rte_eth_dev_socket_id(port_id));
}
