/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators of nodes with several ranks: a ring inside each node, parallel rings across them,
 * which CommLib's own code puts on the switches. */
#include <errno.h>
#include <stdlib.h>

#include "lib/sim/coll_priv.h"

static int open_rank(struct sim_coll *c, unsigned r, struct ccl_ring_address *inside,
	struct ccl_ring_address *across, char *err)
{
	const struct ccl_conn conn = sim_coll_connection(c, r);
	const struct ccl_ring_conf conf = {.context = conn.context,
		.gid_index = conn.gid_index,
		.rank = r,
		.n_ranks = c->conf.n_ranks,
		.mtu = c->conf.mtu,
		.m = c->conf.m,
		.w = c->conf.w,
		.timeout_ns = c->conf.timeout_ns,
		.start_psn = (c->conf.start_psn + 77 * r) & PSN_MASK,
		.netreduce = true,
		.ring_id = ccl_rings_id(c->group, r),
		.first_msg = c->conf.first_msg};
	struct ccl_comm **comm = &c->rank[r].comm;
	int rc = ccl_comm_new(&conn, comm, err);

	if (rc == 0)
		rc = ccl_over_nodes(*comm, &conf, c->conf.rings, CCL_ALL_COLLECTIVES, err);
	if (rc == 0)
		ccl_over_nodes_addresses(*comm, &inside[r], &across[r]);
	return rc;
}

static int connect_rank(struct sim_coll *c, unsigned r, const struct ccl_ring_address *inside,
	const struct ccl_ring_address *across, char *err)
{
	struct ccl_comm *comm = c->rank[r].comm;
	int rc;

	for (unsigned i = 0; i < c->conf.n_ranks; i++)
		sim_coll_know(c, r, &inside[i].ip);
	rc = ccl_over_nodes_connect(comm, inside, across, c->conf.mtu, err);
	comm->connected = rc == 0;
	return rc;
}

int sim_coll_open_nodes(struct sim_coll *c, char *err)
{
	const unsigned n = c->conf.n_ranks;
	struct ccl_ring_address *inside = calloc(n, sizeof(*inside)),
				*across = calloc(n, sizeof(*across));
	int rc = inside && across ? sim_coll_describe(c, err) : -ENOMEM;

	for (unsigned r = 0; rc == 0 && r < n; r++)
		rc = open_rank(c, r, inside, across, err);
	if (rc == 0)
		rc = sim_coll_install_rings(c, across, err);
	for (unsigned r = 0; rc == 0 && r < n; r++)
		rc = connect_rank(c, r, inside, across, err);
	free(inside);
	free(across);
	return rc;
}
