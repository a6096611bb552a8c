/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of several hosts, each a device of its own, with lib/ccl/nodes.h on top: on a topology
 * tree:NxM the hosts below a switch are a node, its switch what joins them inside, and the link
 * above that the node's network. The node's switch only passes NetReduce on: were it one of the
 * ring's, it would sum its one rank, and the result would cross the node's link once more on its
 * way to the next rank. */
#ifndef SIM_NODES_H
#define SIM_NODES_H

#include "lib/ccl/nodes.h"
#include "lib/sim/coll.h"

struct sim_nodes_conf {
	struct sim *sim;
	unsigned n_nodes, n_local; /* hosts 0 .. n_local - 1 are the first node, and so on */
	enum ccl_nodes_way way;
	enum ccl_mode across; /* CCL_MODE_NETREDUCE or CCL_MODE_RING */
	unsigned root;        /* NetReduce: switch that is the trees' root */
	uint16_t mtu, m, w;
	uint64_t timeout_ns; /* 0: CommLib's */
};

struct sim_nodes;

/* Not to be called by an app; -errno with the reason in err. */
int sim_nodes_create(
	const struct sim_nodes_conf *conf, struct sim_nodes **nodes, char err[CCL_ERR_LEN]);
void sim_nodes_destroy(struct sim_nodes *nodes);

/* An AllReduce of count int32 sums at all ranks, in place or not, then a barrier; *ns: until the
 * last rank has the sum. -EBADMSG: a rank has another. As sim_run otherwise. */
int sim_nodes_allreduce(
	struct sim_nodes *nodes, uint64_t count, bool in_place, uint64_t limit_ns, uint64_t *ns);
/* A rank's, for other collectives than that; what is issued there needs a sim_kick of the host. */
struct ccl_nodes *sim_nodes_rank(const struct sim_nodes *nodes, unsigned rank);
/* What the first rank that failed says, or "". */
const char *sim_nodes_error(const struct sim_nodes *nodes);

#endif
