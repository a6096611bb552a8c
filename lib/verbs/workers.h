/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive workers of a device ("rx_workers"): threads that take, each for the queue pairs that are
 * its own (inc_dv_create_qp), datagrams and multicast WRITEs: ICRC, checks, the copy into the
 * program's memory and the completion. A port has one queue: whoever owns the device reads it,
 * looks at the headers of each frame (rnic_steer), and hands it over by its place in the port's
 * buffer through a ring of VERBS_WORKER_HELD entries for each worker. A frame that finds its ring
 * full is lost and counted (worker_full), as in a NIC whose queue is full; what is not a worker's
 * the owner takes itself. Buffers go back to the port when the owner next receives.
 *
 * Threads: create to stop, and destroy, by one; hand by the owner of the device; turn by the
 * workers' threads, or by the owner while there are none. */
#ifndef VERBS_WORKERS_H
#define VERBS_WORKERS_H

#include "lib/verbs/internal.h"

struct iv_workers;

/* As many as the device's rnic has. NULL with errno set. */
struct iv_workers *iv_workers_create(struct iv_dev *dev);
/* The frames that are still inside go back to the port, not taken. The threads have been stopped.
 */
void iv_workers_destroy(struct iv_workers *workers);

/* 0 or -errno, with no thread left. */
int iv_workers_start(struct iv_workers *workers);
/* Waits for a burst of each worker, and for nobody else: not for an owner that holds the workers
 * for ever. What is left of what was handed over iv_workers_turn takes. */
void iv_workers_stop(struct iv_workers *workers);

/* The frames of a burst from a port: those that are workers' are handed to them, or lost. How many
 * are left in frames, in their order, for the owner to take and to give back. */
unsigned iv_workers_hand(
	struct iv_workers *workers, unsigned port, struct rnic_rx_frame *frames, unsigned n);

/* One turn of each worker: frames taken. */
unsigned iv_workers_turn(struct iv_workers *workers, uint64_t now);

/* Counters: X(symbol, name, meaning), sums over the workers */
#define IV_WORKERS_COUNTERS(X)                                            \
	X(HANDED, "worker_handed", "frames handed to receive workers")    \
	X(FULL, "worker_full", "frames lost: the worker's ring was full") \
	X(HELD, "worker_held", "times a worker waited because the owner changed something")

unsigned iv_workers_stats(const struct iv_workers *workers, struct inc_dv_stat *stats, unsigned n);

#endif
