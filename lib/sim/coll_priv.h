/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_COLL_PRIV_H
#define SIM_COLL_PRIV_H

#include "lib/ccl/ring.h"
#include "lib/sim/coll.h"
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
	unsigned n_issued; /* they are issued in order */
	struct sim_call call[SIM_MAX_WORK];
};

struct sim_coll {
	struct sim_coll_conf conf;
	unsigned n_groups, first_slot; /* on the switches */
	unsigned n_work, n_waiting;    /* calls that are not done */
	uint64_t started, finished;    /* when the first was issued, and the last one done */
	uint64_t rng;
	struct sim_work work[SIM_MAX_WORK];
	struct sim_rank *rank;
};

static inline unsigned sim_coll_host(const struct sim_coll *c, unsigned rank)
{
	return c->conf.first_host + rank;
}

/* What every rank does whenever something happened at its host. */
int sim_coll_app(void *rank, uint64_t now);
/* Forgets all work. */
void sim_coll_let_go(struct sim_coll *c);

/* The switches' side. */
int sim_coll_install(struct sim_coll *c, char *err);
void sim_coll_remotes(struct sim_coll *c, unsigned rank, struct ccl_remote *remote);
uint32_t sim_coll_start_psn(const struct sim_coll *c, unsigned g);
void sim_coll_remove(struct sim_coll *c);

#endif
