/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point traffic: RDMA writes from host to host over reliable connections. */
#ifndef SIM_RDMA_H
#define SIM_RDMA_H

#include "lib/sim/sim.h"

struct sim_flow {
	unsigned from, to; /* hosts */
	uint64_t bytes;
	uint64_t start_ns; /* from the start of the run on */
	uint64_t acked;    /* out: bytes */
	uint64_t done_ns;  /* out: after the start of the run; 0: not finished */
};

/* Permutation: every host to one other, everybody receives once; incast: hosts 1 .. n to host 0.
 * Fills at most n_hosts flows; returns how many. */
unsigned sim_permutation(
	const struct sim *sim, uint64_t bytes, uint64_t seed, struct sim_flow *flow);
unsigned sim_incast(const struct sim *sim, unsigned n, uint64_t bytes, struct sim_flow *flow);

/* All flows, each from its start on, until the last write is acknowledged. Takes the hosts' apps.
 * 0, as sim_run, or -EIO if a write failed. */
int sim_rdma_run(
	struct sim *sim, struct sim_flow *flow, unsigned n, enum ibv_mtu mtu, uint64_t limit_ns);

#endif
