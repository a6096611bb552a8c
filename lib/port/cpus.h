/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CPUs the workers of a switch have, and on which NUMA node its memory lies: chosen from what
 * the machine is, before the EAL starts. What is chosen follows from the facts alone. */
#ifndef PORT_CPUS_H
#define PORT_CPUS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/port/port.h"

enum { PORT_CPUS = 1024, PORT_NODES = 64 };

struct port_cpu {
	bool there;    /* such a CPU exists */
	bool allowed;  /* to this thread */
	bool isolated; /* from the scheduler (isolcpus), and to be had by asking for it */
	int node;      /* NUMA, -1: unknown */
	int core;      /* the first CPU of the same core */
};

struct port_machine {
	struct port_cpu cpu[PORT_CPUS];
	unsigned nics[PORT_NODES]; /* ports whose device is on a node */
};

struct port_cpus {
	unsigned n; /* workers, 1 at least */
	/* One for each worker, ascending. n_cpus 0: there is none to spare, they float. */
	unsigned n_cpus;
	int cpu[PORT_CPUS];
	int node;      /* where most of the NICs are, -1: nowhere in particular */
	bool isolated; /* the CPUs are */
};

/* What this machine is, by libnuma and the sysfs below root ("": its own); the ports' devices.
 * Where libnuma knows no nodes, all CPUs are on node 0. 0; -errno where its CPUs cannot be told:
 * then no CPU is there, but the devices' nodes are. */
int port_machine_read(const char *root, const struct port_config *const *ports, unsigned n_ports,
	struct port_machine *machine);

/* One worker a core: the isolated cores, however many ports there are; without those, the allowed
 * ones but the first, and no more than ports. Cores on nodes of NICs, if there is any; max at
 * most. */
void port_cpus_choose(
	const struct port_machine *machine, unsigned n_ports, unsigned max, struct port_cpus *out);

/* EAL --lcores text: lcore 0 floats over the allowed CPUs, each other is bound to a CPU of its own.
 * 0, or -errno as port_lcores_floating. */
int port_lcores_bound(const struct port_cpus *cpus, char *buf, size_t cap);

/* For what a port's device reads and writes; a socket in the EAL's words, SOCKET_ID_ANY where it is
 * on none, or where the EAL has no memory by sockets (without hugepages). */
int port_device_socket(uint16_t port_id);
/* The same of a node. */
int port_node_socket(int node);

#endif
