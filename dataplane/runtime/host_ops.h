/* SPDX-License-Identifier: BSD-3-Clause */
/* What groups.c, rings.c and leases.c stand on: the ports, addresses and memory of the switch that
 * they keep the books of, and when its packet path has let go of something. They know nothing else
 * of it, and nothing of DPDK, so that the same books are kept in the program (host_ops.c, switch.c,
 * switch_rnic.c), on virtual time (lib/sim/agent.c) and in the model checker. Whoever links them
 * brings these functions, sw_now (switch.h), and sw_defer and sw_reclaim (sw.h). */
#ifndef DATAPLANE_HOST_OPS_H
#define DATAPLANE_HOST_OPS_H

#include "dataplane/switch.h"

struct sw_host_port {
	char name[PORT_NAME_LEN];
	uint8_t mac[6];
	uint16_t mtu; /* largest IP packet */
};
/* The port with this id; -ENOENT. */
int sw_host_port(const struct sw *sw, uint16_t id, struct sw_host_port *port);

struct sw_host_path {
	uint16_t port, mtu, vlan; /* vlan 0: untagged */
	uint8_t dmac[6];          /* of the next hop */
};
/* How packets get to an address; -ENOENT: it is no neighbour and has no route. */
int sw_host_path(const struct sw *sw, const struct wire_ip *ip, struct sw_host_path *path);

bool sw_host_is_local(const struct sw *sw, const struct wire_ip *ip);
/* The switch's first address of the same family; -ENOENT. */
int sw_host_address(const struct sw *sw, const struct wire_ip *like, struct wire_ip *ip);

/* Whether a port may still read results that the group in this slot, or the one before it, has sent
 * from where they lie. Steady once no worker works with the group. */
bool sw_host_is_read(const struct sw *sw, unsigned slot);

/* The worker that is to own a new group, or ring. By its own address (the switch's, of its first
 * endpoint), where there are several of that family, so that one address is one worker's, and a NIC
 * can tell them apart; else, or with NULL, the worker with the fewest. */
unsigned sw_host_place(const struct sw *sw, const struct wire_ip *own);

/* Blocks of groups and rings: zeroed, aligned to a cache line. NULL without memory. */
void *sw_host_alloc(size_t bytes);
void sw_host_free(void *block);

#endif
