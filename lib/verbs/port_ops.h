/* SPDX-License-Identifier: BSD-3-Clause */
/* What a verbs device needs from below: something that carries frames and tells the time. The
 * DPDK port (dpdk_port.c) is one; tests wire several devices and a switch together in one process
 * on virtual time with another.
 *
 * Threads: rx_burst .. tx_flush and reconnect are called by the owner of the device only
 * (lib/verbs/README.md, "Locking"), never by two threads at once, but not always by the same
 * thread. now and link_up may be called by any thread, wait and idle by any thread without
 * ownership. */
#ifndef VERBS_PORT_OPS_H
#define VERBS_PORT_OPS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/mrc/transport.h"
#include "lib/port/port.h"
#include "lib/rnic/rnic.h"
#include "lib/verbs/incline_dv.h"

struct iv_netdev;

enum { VERBS_BURST = 32, VERBS_WORKER_HELD = 256 };

struct verbs_port_ops {
	/* Up to n (<= VERBS_BURST) frames, each one contiguous piece of memory, the port's (as is
	 * priv) until rx_free; every burst is followed by rx_free of all of them. With
	 * receive workers up to VERBS_WORKER_HELD for each are outstanding, of several bursts, and
	 * come back in any order. */
	unsigned (*rx_burst)(void *port, struct rnic_rx_frame *frames, unsigned n);
	void (*rx_free)(void *port, const struct rnic_rx_frame *frames, unsigned n);
	/* How many frames tx will take now; it must take that many. 0 holds the device back
	 * without losing anything. */
	unsigned (*tx_room)(void *port);
	/* Copies the frame before it returns, with rnic_frame_flatten. */
	void (*tx)(void *port, const struct rnic_frame *frame);
	/* End of a burst: pass on what tx has taken. Returns the frames that are left. */
	unsigned (*tx_flush)(void *port);
	/* Any monotonic clock, nanoseconds; it may stand still between calls of wait and idle. */
	uint64_t (*now)(void *port);
	/* A call that blocks (modify_qp to RTR, get_cq_event without thread) has nothing to do
	 * until then. Sleeps, or runs the rest of the simulated world, and must let time advance;
	 * may return earlier. May call incline_verbs_progress of any device. */
	void (*wait)(void *port, uint64_t until);
	/* A CQ was polled in vain and the turn after it found nothing. NULL: nothing to do. Lets a
	 * single-threaded simulation run the others while one of them spins on its CQ. */
	void (*idle)(void *port);
	bool (*link_up)(void *port); /* NULL: always */
	/* By the owner, twice a second while the link is down: try to get it back. May be NULL. */
	void (*reconnect)(void *port);
	/* Counters of the port's own, at most n of them; returns how many there are. May be NULL.
	 */
	unsigned (*stats)(void *port, struct inc_dv_stat *stats, unsigned n);
	void (*close)(void *port); /* after the last call on this port; may be NULL */
};

struct verbs_open_attr {
	const char *name;        /* of the device; NULL: "incline0" */
	struct rnic_config rnic; /* its events are replaced */
	/* The second port and those behind it, if rnic.n_ports says that there are more than one.
	 * Time, waiting and sleeping are the first one's. */
	void *more[RNIC_MAX_PORTS - 1];
	bool thread;              /* run a background datapath thread */
	enum port_idle idle;      /* behaviour of the thread and of polling in vain */
	struct iv_netdev *netdev; /* shares the port (netdev.h); outlives the device. NULL: none.
				   * One port then */
	/* rnic.n_workers: receive workers (workers.h), with threads if there is one; no
	 * iwarp then. */
	bool iwarp; /* queue pairs over TCP (iwarp_dev.h); no netdev then, and one port */
	struct rnic_mrc_config mrc; /* as rnic; ports are planes */
};

/* A device of its own, opened. Its ports must outlive it. NULL with errno set as rnic_create.
 * Without thread everything happens inside the verbs calls of the caller: ibv_poll_cq on an empty
 * CQ and incline_verbs_progress run the datapath. Closed with ibv_close_device. */
struct ibv_context *incline_verbs_open_port(
	const struct verbs_port_ops *ops, void *port, const struct verbs_open_attr *attr);

/* rdma_* work on the context's device from now on, as on that of INCLINE_RNIC. 0 or -errno. */
int incline_verbs_cm_add(struct ibv_context *context);

/* One turn of the datapath: receive, timers, send. Returns frames moved; 0 also when another thread
 * owns the device. */
unsigned incline_verbs_progress(struct ibv_context *context);

/* When the device next has something to do by itself, as of the last turn; UINT64_MAX: never. */
uint64_t incline_verbs_deadline(struct ibv_context *context);

/* The core below, for tests: to be touched by the thread that runs the datapath only. */
struct rnic *incline_verbs_rnic(struct ibv_context *context);

#endif
