/* SPDX-License-Identifier: BSD-3-Clause */
/* One worker of several: its graph, the ports it polls, the groups it owns and its counters. It
 * sends on all ports. Everything here is written by the worker alone, except where said. Counters
 * are plain numbers that other threads read as they are: each is at most one loop turn old, and no
 * two need fit together. */
#ifndef DATAPLANE_WORKER_H
#define DATAPLANE_WORKER_H

#include <rte_graph.h>
#include <rte_mbuf.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>
#include <rte_spinlock.h>
#include <stdatomic.h>

#include "dataplane/egress/queue.h"
#include "dataplane/inc/engine.h"
#include "dataplane/netreduce/clt.h"
#include "dataplane/port/impair.h"
#include "dataplane/published.h"
#include "dataplane/runtime/drop.h"
#include "dataplane/runtime/mailbox.h"
#include "dataplane/runtime/trace.h"
#include "dataplane/runtime/wake.h"
#include "lib/port/port.h"
#include "lib/rnic/timer.h"

enum {
	WORKER_MAX = 16,
	WORKER_RX_BURST = 32,
	WORKER_TX_BURST = 32,
	/* Packets of one turn: as many as a node's stream holds without growing. */
	WORKER_MAX_PACKETS = 256,
	WORKER_MAX_SEEN = 64, /* more wrong MAC addresses are counted only */
};

/* What is known of a packet, beside its mbuf: entries belong to a turn of the loop, and
 * mbuf->hash.usr is the index. An array of its own, and not room in each mbuf, keeps it in the
 * L1/L2 cache whatever buffers the packets lie in, and lets a port receive mbufs of anybody's pool.
 */
struct meta {
	struct wire_pkt pkt;
	struct inc_look look;
	uint32_t trace; /* number, 0: not traced */
	uint8_t drop;   /* enum drop, for node drop */
	struct {
		uint8_t passes : 4; /* own segments and tunnels met */
		bool hop_taken : 1; /* the hop limit is that of the next hop already */
		bool own : 1;       /* the outer header is the switch's */
	} srv6;
	union {
		uint16_t adj;   /* index, for rewrite */
		uint16_t owner; /* worker, for handoff */
		struct {
			uint8_t up;   /* edge that parse has chosen, for bridge */
			uint8_t next; /* the same, or bridge's, for acl */
		};
	};
} __rte_cache_aligned;

static_assert(sizeof(struct meta) == 192, "three lines, so that a turn's stay in the first caches");
static_assert(N_DROPS <= UINT8_MAX, "meta.drop");

struct bridge;

struct lport {
	const struct port *port; /* NULL: no such port */
	struct impair *impair;   /* this worker's; NULL: none */
	rte_spinlock_t *tx_lock; /* of the queue that all workers send by; NULL: there is one */
	bool proxy_arp, mcast_learn, neigh_learn;
	uint16_t notes_left; /* l2/neigh_note.h: that may be made, from the time on */
	uint64_t notes_at;
	struct egress_bucket icmp_errors; /* about packets that have come by it */
	uint16_t mac_notes_left;          /* l2/bridge.h: as notes_left */
	uint64_t mac_notes_at, mac_noted; /* the last one's address */
	struct egress_bucket flood;       /* frames, that have come by it */
	uint16_t lldp_left;               /* l2/lldp_note.h: as notes_left */
	uint64_t lldp_at;
	uint16_t n_tx;
	struct egress egress; /* what waits */
	uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes, tx_drops;
	uint64_t mac_mismatch; /* packets from neighbours with another MAC than their entries' */
	uint64_t mac_unlisted; /* of these, whose neighbour found worker.seen full */
	struct rte_mbuf *tx[WORKER_TX_BURST];
};

/* Segments that refer to a group's results in the arena: a port that does not copy what it sends
 * reads them long after. Each has the record of its reference in the buffer that it does not need
 * for data, so that segments of different ports share no line but this one. */
struct worker_lent {
	uint64_t given;    /* by the worker */
	uint64_t returned; /* by whoever frees them */
};

/* A neighbour that sends from another MAC address than its entry says: nothing gets to it. Entries
 * are written once; the control thread reads the first n_seen. */
struct worker_seen {
	struct wire_ip ip;
	uint16_t port; /* DPDK port id */
	uint8_t mac[6];
};

struct worker {
	unsigned index;
	struct rte_graph *graph;
	_Atomic(struct published *) *published; /* by control; of this turn: */
	const struct fwd *fwd;
	const struct mcast_fwd *mcast;        /* NULL: no groups */
	const struct acl *acl;                /* NULL: no rows */
	_Atomic(struct nr_clt *) *shared_clt; /* published by control */
	const struct nr_clt *clt;             /* of this turn; NULL: there is no NetReduce ring */
	struct rte_ring *reports;             /* of members, to control; NULL: none */
	struct rte_ring *neigh_notes;         /* to control; NULL: neighbours are not learnt */
	struct rte_ring *lldp_notes;          /* to control; NULL: LLDP is off */
	struct wake *wake;                    /* control, for notes */
	const struct bridge *bridge;          /* NULL: no port is in one */
	uint64_t bridge_hits;                 /* packets for addresses that are learnt */
	uint64_t bridge_held;                 /* sources not noted: too many at the port */
	bool icmp;                            /* errors are sent */
	uint64_t icmp_sent, icmp_held;        /* sent; not sent, for there were too many */
	const struct inc_table *inc;
	struct sw_rnic *rnic;   /* the switch's own, of worker 0; NULL: another's */
	uint64_t rnic_deadline; /* when it wants to be asked again */
	uint64_t tx_deadline;   /* when a rate lets a waiting packet go */
	uint64_t rng;           /* state of worker_random */
	struct inc_arena arena;
	rte_iova_t arena_iova;
	struct rte_mempool *pool;      /* whole frames */
	struct rte_mempool *head_pool; /* headers, trailers, references to payload */
	struct trace *trace;           /* of all workers */
	struct tap *taps;              /* runtime/tap.h: captures; NULL: none runs */
	uint64_t now;
	uint64_t timer_ns;    /* no group's timer ends before; UINT64_MAX: none runs */
	struct timers timers; /* of groups, in */
	struct timer_slot timer_slot[INC_GROUP_SLOTS];
	struct timer group_timer[INC_GROUP_SLOTS]; /* by group slot; may be early */
	uint64_t timer_visits;                     /* groups whose timers were looked at */
	bool tracing;                              /* some packet of this turn is traced */
	unsigned n_meta, work;
	unsigned n_over; /* of this turn's metadata, the first: of packets handed over */
	uint16_t ip_id;  /* of the next emission: all its packets have one, each to its receiver */
	unsigned n_rx, next_rx;
	uint16_t rx_id[RTE_MAX_ETHPORTS]; /* the n_rx ports that it polls */
	unsigned n_ports;
	uint16_t port_id[RTE_MAX_ETHPORTS]; /* all */
	/* handoff.h. By worker: packets for it, from it; NULL: this one. */
	struct rte_ring *to[WORKER_MAX], *from[WORKER_MAX];
	unsigned n_workers, next_from;
	uint64_t handed_over, taken_over;
	uint64_t turn_end, busy_cycles, idle_cycles; /* TSC; sleeping is idle */
	uint64_t turns, idle_turns, emitted, flush_calls, flush_packets, flush_cycles;
	uint64_t doubled, overtaken, corrupted; /* on purpose, by bad weather */
	uint64_t drops[N_DROPS];
	struct worker_seen seen[WORKER_MAX_SEEN];
	atomic_uint n_seen;
	struct lport port[RTE_MAX_ETHPORTS]; /* by DPDK port id */
	struct meta meta[WORKER_MAX_PACKETS];
	/* the loop */
	struct rte_rcu_qsbr *rcu;
	unsigned lcore_id; /* EAL's */
	enum port_idle idle;
	struct mailbox mailbox;
	atomic_bool stop; /* set by control */
	atomic_bool reap; /* set by control: let ports free what they sent */
	struct worker_lent lent[INC_GROUP_SLOTS]; /* by group slot */
};

static inline struct meta *meta_of(struct worker *w, const struct rte_mbuf *m)
{
	return &w->meta[m->hash.usr];
}

/* A packet for a port; sent when there are enough, or at the end of the turn. What the port does
 * not take waits in its queues. */
void worker_flush(struct worker *w, struct lport *lp);

/* transmit.c: the packets in tx from `first` on come to wait. worker_serve sends what waits, as far
 * as the port takes it; worker_wait ends with that. */
void worker_wait(struct worker *w, struct lport *lp, unsigned first);
void worker_serve(struct worker *w, struct lport *lp);
/* port_tx_burst until the port takes no more, with the port's counters; lengths of the n packets
 * into bytes. Returns how many were sent. */
unsigned worker_send(struct worker *w, struct lport *lp, struct rte_mbuf **mbufs, unsigned n,
	uint32_t bytes[WORKER_TX_BURST]);

static inline void worker_tx(struct worker *w, uint16_t port, struct rte_mbuf *m)
{
	struct lport *lp = &w->port[port];

	lp->tx[lp->n_tx++] = m;
	if (lp->n_tx == WORKER_TX_BURST)
		worker_flush(w, lp);
}

/* A group that this worker has worked on may have set a timer. Costs a comparison if not. */
static inline void worker_note_timer(struct worker *w, const struct inc_group *g)
{
	struct timer *timer = &w->group_timer[g->slot];

	if (likely(g->timer_ns >= timer->at))
		return;
	timer_set(&w->timers, timer, g->timer_ns);
	if (g->timer_ns < w->timer_ns)
		w->timer_ns = g->timer_ns;
}

/* A packet from this neighbour came from this MAC address; for rare packets. */
void worker_note_mac(
	struct worker *w, uint16_t port, const struct wire_ip *ip, const uint8_t mac[6]);

/* None runs. */
void worker_timers_init(struct worker *w);

/* Runs the timers that are due; node_inc_engine.c. What it costs does not depend on groups that
 * have none. */
void worker_timers(struct worker *w);

/* One turn of the loop at this time: receive, walk the graph, run timers, send. */
void worker_turn(struct worker *w, uint64_t now);

/* The loop, until stop. For rte_eal_remote_launch: arg is the worker. */
int worker_main(void *arg);

#endif
