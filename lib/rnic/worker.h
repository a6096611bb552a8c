/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: receive workers (worker.c). What a worker reads is changed by the owner
 * while all of them stand still: queue pairs and their attributes, groups, regions, windows. */
#ifndef RNIC_WORKER_H
#define RNIC_WORKER_H

#include <stdatomic.h>

#include "lib/rnic/device.h"
#include "lib/rnic/rnic.h"

/* What it counts is a part of the counter of that name; only it writes. */
struct rnic_worker {
	_Alignas(64) atomic_bool inside; /* rnic_worker_rx, and has seen that it may */
	struct cq_gather gather;
	_Atomic uint64_t count[RNIC_N_COUNTERS], drop[RNIC_N_DROPS];
	_Atomic uint64_t port_count[RNIC_MAX_PORTS][RNIC_N_PORT_COUNTERS];
};

int workers_alloc(struct rnic *rnic, unsigned n);
void workers_free(struct rnic *rnic);

/* Owner: no worker is inside from hold until let_go, which nest. Waits for the bursts that are
 * being taken, and for nothing else. */
void workers_wait(struct rnic *rnic);
void workers_resume(struct rnic *rnic);
static inline void workers_hold(struct rnic *rnic)
{
	if (rnic->n_workers > 0 && rnic->holds++ == 0)
		workers_wait(rnic);
}
static inline void workers_let_go(struct rnic *rnic)
{
	if (rnic->n_workers > 0 && --rnic->holds == 0)
		workers_resume(rnic);
}

/* Owner, for a frame that is also a worker's: no worker is inside until the call that brought the
 * frame is done with all that it was given. */
static inline void workers_hold_rx(struct rnic *rnic)
{
	if (!rnic->rx_holds)
		workers_hold(rnic);
	rnic->rx_holds = true;
}
static inline void workers_let_go_rx(struct rnic *rnic)
{
	if (rnic->rx_holds)
		workers_let_go(rnic);
	rnic->rx_holds = false;
}

/* That of the worker's completion queues; 0: of the owner's. */
struct cq_gather *worker_gather(struct rnic *rnic, unsigned worker);
/* Whether a new queue pair may have the worker that it asks for: 0 or -EINVAL. */
int worker_check(
	const struct rnic *rnic, const struct rnic_qp_init *init, const struct transport_ops *ops);

/* A frame for this device, and if RoCE with the right ICRC: 0 or the drop reason. */
unsigned worker_take(struct rnic *rnic, unsigned worker, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now);

/* Sums over the workers. */
uint64_t workers_count(const struct rnic *rnic, enum rnic_counter c);
uint64_t workers_drop(const struct rnic *rnic, unsigned drop);
uint64_t workers_port_count(const struct rnic *rnic, unsigned port, enum rnic_port_counter c);

#endif
