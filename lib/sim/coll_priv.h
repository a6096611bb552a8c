/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_COLL_PRIV_H
#define SIM_COLL_PRIV_H

#include "lib/ccl/comm.h"
#include "lib/ccl/install.h"
#include "lib/ccl/ring.h"
#include "lib/ccl/rings.h"
#include "lib/sim/coll.h"
#include "lib/sim/control_priv.h"
#include "lib/sim/priv.h"

enum { SIM_MAX_GROUPS = 129 };

/* A rank's part in one piece of work. */
struct sim_call {
	struct ccl_req req;
	uint64_t at, done_at; /* when it is issued, and was finished */
	bool done;
	int32_t *in, *out;
};

struct sim_rank {
	struct sim_coll *coll;
	unsigned index;
	struct ccl_comm *comm;
	struct ccl_ring *ring;
	struct ccl_mcast *mcast;
	struct ccl_tree *tree;
	unsigned n_issued; /* they are issued in order */
	struct sim_call call[SIM_MAX_WORK];
};

struct sim_coll {
	struct sim_coll_conf conf;
	struct ccl_group *group; /* NULL: a ring of the hosts */
	struct ccl_install install;
	struct ccl_rings *rings;    /* NetReduce */
	unsigned n_work, n_waiting; /* calls that are not done */
	uint64_t started, finished; /* when the first was issued, and the last one done */
	uint64_t rng;
	struct wire_ip multicast;
	struct sim_work work[SIM_MAX_WORK];
	struct sim_rank *rank;
};

static inline unsigned sim_coll_host(const struct sim_coll *c, unsigned rank)
{
	return c->conf.first_host + rank * (c->conf.host_step ? c->conf.host_step : 1);
}

/* What a rank's communicator is made of. */
struct ccl_conn sim_coll_connection(const struct sim_coll *c, unsigned rank);

/* A ring of the hosts: each rank's. */
int sim_coll_open_ring(struct sim_coll *c, char *err);

/* ---- coll_resync.c ---- */

int sim_coll_attach_resync(struct sim_coll *c, char *err);

/* ---- coll_nodes.c ---- */

int sim_coll_open_nodes(struct sim_coll *c, char *err);

/* ---- coll_hosts.c ---- */

static inline bool sim_coll_by_hosts(const struct sim_coll *c)
{
	return c->conf.algorithm == CCL_BY_MULTICAST || c->conf.algorithm == CCL_BY_TREE;
}
int sim_coll_open_hosts(struct sim_coll *c, char *err);
void sim_coll_close_hosts(struct sim_coll *c);
int sim_coll_issue_hosts(
	struct sim_rank *rank, const struct sim_work *w, uint64_t block, struct sim_call *k);
int sim_coll_progress_hosts(struct sim_rank *rank, uint64_t now);
int sim_coll_test_hosts(const struct sim_rank *rank, struct ccl_req req);
/* The rank's host learns the MAC address of another one: its switch's. */
void sim_coll_know(struct sim_coll *c, unsigned rank, const struct wire_ip *ip);

/* What every rank does whenever something happened at its host. */
int sim_coll_app(void *rank, uint64_t now);
/* Forgets all work. */
void sim_coll_let_go(struct sim_coll *c);

/* What hangs below a switch, in ascending order of the lowest rank. */
struct sim_child {
	bool host;
	unsigned index, min_rank;
};

struct sim_branch {
	bool used;
	unsigned parent, n_child;
	struct sim_child child[INC_MAX_EP];
	uint8_t *below; /* [rank] */
};

struct sim_tree {
	struct sim_coll *coll;
	struct sim_branch *branch; /* per switch */
	unsigned n, root;
};

/* Of the switches between all ranks. -errno with a reason; to be freed in any case. */
int sim_tree_make(struct sim_coll *c, struct sim_tree *t, char *err);
void sim_tree_free(struct sim_tree *t);
/* The tree as a group of CommLib's: c->group. */
int sim_coll_describe(struct sim_coll *c, char *err);
/* The groups on the switches; or the rings, by all ranks' addresses. */
int sim_coll_install(struct sim_coll *c, char *err);
int sim_coll_install_rings(struct sim_coll *c, const struct ccl_ring_address *at, char *err);
/* How many. */
unsigned sim_coll_remotes(struct sim_coll *c, unsigned rank, struct ccl_remote *remote);
/* What of that is there. */
int sim_coll_remove(struct sim_coll *c, char *err);

#endif
