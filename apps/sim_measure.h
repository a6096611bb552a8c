/* SPDX-License-Identifier: BSD-3-Clause */
/* One collective on a simulated fabric of its own, as the tables and the models want it. */
#ifndef SIM_MEASURE_H
#define SIM_MEASURE_H

#include "lib/sim/coll.h"

struct sim_job {
	const char *topology; /* lib/sim/topo.h */
	struct sim_conf conf; /* its topology is that */
	struct sim_coll_conf
		group;    /* its simulation and root are filled in; n_ranks 0: all hosts */
	unsigned n_other; /* the first links, which are as other says */
	struct sim_link_conf other;
	enum ccl_collective op;
	uint64_t bytes;
};

struct sim_measured {
	double ns;     /* virtual; NAN if it cannot be had */
	size_t memory; /* for aggregation, at the switch that has most */
};

/* err says why it cannot be had. */
struct sim_measured sim_measure(const struct sim_job *job, char err[CCL_ERR_LEN]);

#endif
