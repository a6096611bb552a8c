/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_COLL_PRIV_H
#define SIM_COLL_PRIV_H

#include "lib/ccl/ring.h"
#include "lib/sim/coll.h"
#include "lib/sim/priv.h"

enum { SIM_MAX_GROUPS = 129 };

struct sim_rank {
	struct sim_coll *coll;
	struct ccl_comm *comm;
	struct ccl_ring *ring;
	struct ccl_req req;
	bool waits;
	int32_t *in, *out;
};

struct sim_coll {
	struct sim_coll_conf conf;
	unsigned n_groups, n_waiting;
	uint64_t finished;      /* when the last rank had */
	enum ccl_collective op; /* the last one, and its elements */
	uint64_t n;
	struct sim_rank *rank;
};

/* The switches' side. */
int sim_coll_install(struct sim_coll *c, char *err);
void sim_coll_remotes(struct sim_coll *c, unsigned rank, struct ccl_remote *remote);
uint32_t sim_coll_start_psn(const struct sim_coll *c, unsigned g);
void sim_coll_remove(struct sim_coll *c);

#endif
