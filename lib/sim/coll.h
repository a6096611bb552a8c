/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on a simulated fabric: CommLib on the hosts, its groups on the switches along a tree
 * of shortest ways; or a ring of the hosts. */
#ifndef SIM_COLL_H
#define SIM_COLL_H

#include "lib/ccl/ccl.h"
#include "lib/sim/sim.h"

struct sim_coll;

struct sim_coll_conf {
	struct sim *sim;
	enum ccl_mode mode;   /* also CCL_MODE_RING: the hosts by themselves */
	unsigned n_ranks;     /* hosts 0 .. n_ranks - 1 */
	unsigned collectives; /* bit per enum ccl_collective that will be called */
	enum ccl_kind kind;   /* CCL_SINGLE or CCL_MIXED */
	unsigned root;        /* switch that is the tree's root */
	uint16_t mtu, m, w, flags;
	uint32_t start_psn;
	uint64_t timeout_ns;
};

/* -EOPNOTSUPP with the reason in err: a mode that is not built here or in the switch. */
int sim_coll_create(
	const struct sim_coll_conf *conf, struct sim_coll **coll, char err[CCL_ERR_LEN]);
void sim_coll_destroy(struct sim_coll *coll);

/* All ranks issue one collective of int32 sums at the same time; root is rank 0. bytes is the whole
 * vector: what every rank gives to AllReduce, Reduce, ReduceScatter, and what every rank has
 * after Broadcast and AllGather. *ns: until the last rank has finished. As sim_run, or the
 * communicator's error. To be followed by sim_coll_check. */
int sim_coll_run(struct sim_coll *coll, enum ccl_collective op, uint64_t bytes, uint64_t limit_ns,
	uint64_t *ns);

/* After a run that succeeded: -EBADMSG if a rank's result is wrong. Frees the run's memory. */
int sim_coll_check(struct sim_coll *coll);

/* What the failed rank says; "" if none failed. */
const char *sim_coll_error(const struct sim_coll *coll);

#endif
