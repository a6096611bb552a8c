/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on a simulated fabric: CommLib on the hosts, its groups on the switches along a tree
 * of shortest ways; or a ring of the hosts. */
#ifndef SIM_COLL_H
#define SIM_COLL_H

#include "lib/ccl/ccl.h"
#include "lib/ccl/mcast.h"
#include "lib/ccl/tree.h"
#include "lib/sim/sim.h"

struct ccl_ring;
struct sim_coll;

enum { SIM_MAX_WORK = 16 };

struct sim_coll_conf {
	struct sim *sim;
	/* MULTICAST, TREE: the hosts by themselves, mode and kind are not looked at; else as mode
	 * says. */
	enum ccl_algorithm algorithm;
	unsigned chains;            /* multicast; 0: 1 */
	unsigned trees;             /* likewise */
	bool uc;                    /* multicast: WRITEs, not datagrams */
	bool staged;                /* likewise: datagrams that CommLib takes, not the device */
	uint32_t first_psn;         /* likewise: of the first chunk */
	struct ccl_tree_shape tree; /* tree */
	bool any_root;              /* tree: not only rank 0 */
	enum ccl_mode mode;         /* any; CCL_MODE_RING: the hosts by themselves */
	unsigned first_host;        /* that is rank 0; the next ones follow */
	unsigned host_step;         /* so many hosts further each; 0: 1. Multicast: 1 */
	/* The hosts' own switches are no part of the tree, those above them have the ranks. */
	bool pass_first;
	unsigned n_ranks;
	unsigned collectives; /* bit per enum ccl_collective that will be called */
	enum ccl_kind kind;   /* CCL_SINGLE or CCL_MIXED */
	/* CCL_MIXED: hosts leave no PSNs out, queue pairs begin anew (lib/ccl/resync.h). */
	bool resync;
	unsigned root;             /* switch that is the tree's root, also of multicast */
	uint16_t mtu, m, w, flags; /* flags: enum inc_group_flags */
	uint32_t slots;            /* of the groups; 0: twice the window */
	uint32_t start_psn;
	uint32_t first_msg; /* NetReduce: number of the first message */
	unsigned rings;     /* NetReduce: parallel ones, ranks of a node; 0: 1 */
	uint64_t timeout_ns;
};

/* Groups are made over control connections (control.h), so the simulation may run meanwhile; not to
 * be called by an app. -errno with the reason in err; nothing is left on the switches then that
 * they do not take away by themselves. */
int sim_coll_create(
	const struct sim_coll_conf *conf, struct sim_coll **coll, char err[CCL_ERR_LEN]);
void sim_coll_destroy(struct sim_coll *coll);
/* The same, with what the switches said to the deletion of its groups. */
int sim_coll_close(struct sim_coll *coll, char err[CCL_ERR_LEN]);

/* A rank's, for collectives other than those below; NULL: it has the other one. What is issued
 * there needs a sim_kick of the host. */
struct ccl_comm *sim_coll_comm(const struct sim_coll *coll, unsigned rank);
/* By multicast; NULL: it is another one. */
const struct ccl_mcast *sim_coll_mcast(const struct sim_coll *coll, unsigned rank);
struct ccl_ring *sim_coll_ring(const struct sim_coll *coll, unsigned rank);

/* One collective of int32 sums. bytes is the whole vector: what every rank gives to AllReduce,
 * Reduce, ReduceScatter, and what every rank has after Broadcast and AllGather. */
struct sim_work {
	enum ccl_collective op;
	unsigned root;
	uint64_t bytes;
};

/* Every rank issues the work, after what it was given before and without waiting for that; up to
 * skew_ns from now, each at a time of its own. -EAGAIN: SIM_MAX_WORK are there. What a rank's
 * communicator refuses, it refuses while the simulation runs. */
int sim_coll_issue(struct sim_coll *coll, const struct sim_work *work, uint64_t skew_ns);
/* All ranks have finished all of it; *ns, if not NULL: how long that took. */
bool sim_coll_done(const struct sim_coll *coll, uint64_t *ns);
/* Where a rank's result of the work that was issued as number `work` is, until sim_coll_check. */
const void *sim_coll_result(const struct sim_coll *coll, unsigned rank, unsigned work);
/* Once it is done: -EBADMSG if a rank's result is wrong, or a barrier ended before all had reached
 * it. Forgets the work and frees its memory. */
int sim_coll_check(struct sim_coll *coll);

/* Issues one collective, root rank 0, at all ranks at once and runs until it is done. *ns: until
 * the last rank has finished. As sim_run, or the communicator's error. To be followed by
 * sim_coll_check. */
int sim_coll_run(struct sim_coll *coll, enum ccl_collective op, uint64_t bytes, uint64_t limit_ns,
	uint64_t *ns);

/* What the failed rank says; "" if none failed. */
const char *sim_coll_error(const struct sim_coll *coll);

#endif
