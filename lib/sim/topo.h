/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is linked to whom: from the lab's JSON file, or made up. Hosts hang on one switch each;
 * switches are linked in any connected way without parallel links. With several planes that is so
 * in each of them: no link joins two planes but at the hosts, which have a port in every one. */
#ifndef SIM_TOPO_H
#define SIM_TOPO_H

#include "lib/wire/ip.h"

enum {
	SIM_ERR_LEN = 256,
	SIM_NAME_LEN = 24,
	SIM_MAX_NODES = 65536,
	SIM_MAX_UPLINKS = 64,
	SIM_MAX_PLANES = 8
};

struct sim_topo_node {
	char name[SIM_NAME_LEN];
	struct wire_ip ip;
};

struct sim_topo {
	char name[64];
	unsigned mtu; /* largest IP packet */
	unsigned n_hosts, n_switches, n_edges;
	struct sim_topo_node *host, *sw;
	unsigned n_planes;     /* 0 stands for 1; switches of a plane are numbered together */
	unsigned *host_switch; /* [host * planes + plane] */
	unsigned (*edge)[2];
	unsigned root; /* switch at which groups are rooted */
};

/* A path that ends in .json, or one of
 *	star:N           N hosts on one switch
 *	tree:F0xF1x..xFn a tree: F0 switches below the root, F1 below each, Fn hosts on each last
 *	clos2:LxHxS      L leaves of H hosts, each linked to all S spines
 *	fattree:K        three tiers of switches with K ports, K^3 / 4 hosts
 *	planes:PxLxHxS   P planes of such a Clos, clos2:LxHxS, for the same L x H hosts; in each
 *	                 plane T1s (spines) are numbered before T0s. Addresses are IPv6.
 * 0, or -errno with the reason in err. Freed with sim_topo_free. */
int sim_topo_make(const char *what, struct sim_topo *topo, char err[SIM_ERR_LEN]);
void sim_topo_free(struct sim_topo *topo);

static inline unsigned sim_topo_planes(const struct sim_topo *t)
{
	return t->n_planes ? t->n_planes : 1;
}

/* The switch that a host's port of a plane hangs on. */
static inline unsigned sim_topo_leaf(const struct sim_topo *t, unsigned host, unsigned plane)
{
	return t->host_switch[host * sim_topo_planes(t) + plane];
}

static inline unsigned sim_topo_plane_of(const struct sim_topo *t, unsigned sw)
{
	return sw / (t->n_switches / sim_topo_planes(t));
}

#endif
