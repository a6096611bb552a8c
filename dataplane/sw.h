/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch from inside: what switch.c, groups.c and stats.c share. */
#ifndef DATAPLANE_SW_H
#define DATAPLANE_SW_H

#include "dataplane/config.h"
#include "dataplane/inc/arena.h"
#include "dataplane/leases.h"
#include "dataplane/runtime/graph.h"
#include "dataplane/runtime/outbox.h"
#include "dataplane/runtime/worker.h"
#include "dataplane/switch.h"
#include "dataplane/switch_rnic.h"

/* What of the configuration the machine decides: the node where most NICs are, -1: nowhere in
 * particular; with "workers" auto how many there are, and "lcores". 0 or -errno with a message. */
int sw_workers_find(struct sw_config *config, int *node, char err[SW_ERR_LEN]);

/* What waits until no worker can see it any more, and no port what the group in a slot has sent. */
struct sw_deferred {
	struct sw_deferred *next;
	uint64_t token;
	unsigned slot; /* 0: none */
	size_t bytes;
	void (*free)(struct sw *sw, void *what);
	void *what;
};

struct sw_group_slot {
	/* ns; 0: not resting, not draining, active or without a limit. */
	uint64_t rest_until, drain_until, activate_until;
	bool stalled;
	bool moving;       /* its memory is being taken or given */
	uint64_t by_neigh; /* endpoints whose MAC addresses are those of the neighbour table */
	struct sw_lease_member lease;
};

struct sw {
	struct sw_config config;
	unsigned n_ports;
	struct port ports[SW_MAX_PORTS];
	struct impair impair[WORKER_MAX][SW_MAX_PORTS];
	rte_spinlock_t tx_lock[SW_MAX_PORTS];
	int node;   /* NUMA, where most NICs are; -1 */
	int socket; /* of memory: that node's, SOCKET_ID_ANY */
	struct rte_mempool *pool, *head_pool;
	const struct rte_memzone *arena_zone;
	struct inc_ranges *arena;
	struct inc_table *groups;
	struct sw_rnic *rnic;
	struct sw_leases *leases;
	struct sw_group_slot slot[INC_GROUP_SLOTS];
	unsigned n_groups, n_stalled;
	size_t draining_bytes; /* of the arena, held back because a port may still read them */
	struct nr_ring *ring[NR_MAX_RINGS];
	/* ns; 0: not resting, active or without a limit. */
	uint64_t ring_rest[NR_MAX_RINGS], ring_activate[NR_MAX_RINGS];
	bool ring_stalled[NR_MAX_RINGS], ring_said[NR_MAX_RINGS]; /* said: that it has failed */
	unsigned n_rings;
	_Atomic(struct nr_clt *) clt;
	struct table_registry *tables;
	_Atomic(struct published *) published;
	const struct fwd *fwd;            /* of it */
	uint64_t links;                   /* bit per port: up when fwd was made at a tick */
	struct sw_membership *membership; /* NULL: no port learns */
	const struct membership *members; /* its book */
	struct sw_neigh *neigh;           /* NULL: no port learns */
	struct sw_bridge *bridge;         /* NULL: no port is in one */
	struct sw_lldp *lldp;             /* NULL: off */
	struct wake wake;                 /* this thread */
	struct outbox out;                /* its own packets */
	struct rte_rcu_qsbr *rcu;
	struct sw_deferred *deferred;
	unsigned n_workers;
	struct worker *worker[WORKER_MAX];
	struct trace trace;
	struct sw_capture *capture[SW_MAX_CAPTURES];
	uint32_t last_capture;             /* id */
	struct sw_capture_counts captured; /* of those that have ended */
	struct rte_graph_cluster_stats *node_stats;
	bool running, closed; /* closed: no port is left */
	uint64_t started_ns, started_cycles, stalls;
	uint64_t drops_cleared[N_DROPS];
	unsigned n_seen_logged[WORKER_MAX];
};

/* Of a port by its DPDK id, which is one of the switch's. */
static inline unsigned sw_port_index(const struct sw *sw, uint16_t id)
{
	unsigned i = 0;

	while (sw->ports[i].id != id)
		i++;
	return i;
}

/* Hands `what` to `free` as soon as every worker has passed a quiescent state: within this call as
 * a rule (waits at most 1 s), else in a later sw_reclaim. Never fails. */
void sw_defer(struct sw *sw, void (*free)(struct sw *sw, void *what), void *what);
/* The same, and after every port has let go of what the group in this slot has sent by reference:
 * `bytes` of aggregation memory wait for that, for as long as a port stands still. */
void sw_defer_unread(struct sw *sw, unsigned slot, size_t bytes,
	void (*free)(struct sw *sw, void *what), void *what);
void sw_reclaim(struct sw *sw);
/* Every worker has passed a quiescent state since the call; -ETIMEDOUT after 1 s. */
int sw_quiesce(struct sw *sw);

/* in_use.c: before and after the tables change. -EBUSY names the group or ring that needs what
 * would not be there any more. */
int sw_tables_check(struct sw *sw, const struct fwd *fwd, struct table_error *err);
void sw_groups_follow(struct sw *sw);

/* switch_impair.c: the worker's share of the weather that the port's configuration asks for. */
void sw_impair_attach(struct sw *sw, struct worker *w, unsigned port);

/* groups.c: at the end. */
void sw_groups_destroy(struct sw *sw);

/* rings.c: at the end; at every tick. The last group slots are the rings': their QPNs (1.2). */
enum { SW_RING_SLOT0 = INC_GROUP_SLOTS - NR_MAX_RINGS };
void sw_rings_destroy(struct sw *sw);
void sw_rings_tick(struct sw *sw, uint64_t now);

/* mcast/sw_membership.c: after the workers; at the end; at every tick, when groups are published
 * anew if members have come or gone. */
int sw_membership_create(struct sw *sw, char err[SW_ERR_LEN]);
void sw_membership_destroy(struct sw *sw);
void sw_membership_tick(struct sw *sw, uint64_t now);

/* l2/sw_neigh.c: after the workers; at the end; at every tick. */
int sw_neigh_create(struct sw *sw, char err[SW_ERR_LEN]);
void sw_neigh_destroy(struct sw *sw);
void sw_neigh_tick(struct sw *sw, uint64_t now);
/* When workers may have notes. */
void sw_neigh_turn(struct sw *sw, uint64_t now);
/* Those that are known, for fwd_create; their adjacencies, from there, once it is published. */
void sw_neigh_list(struct sw *sw, struct fwd_sources *from);
void sw_neigh_listed(struct sw *sw);
/* Buffers that may wait. */
unsigned sw_neigh_buffers(const struct sw_config *config);

/* l2/sw_bridge.c: after the workers; at the end; when workers may have notes; at every tick. */
int sw_bridge_create(struct sw *sw, char err[SW_ERR_LEN]);
void sw_bridge_destroy(struct sw *sw);
void sw_bridge_turn(struct sw *sw, uint64_t now);
void sw_bridge_tick(struct sw *sw, uint64_t now);
/* Whether rows of mac make sense: 0, or -EINVAL with err->msg. Then what they say holds. */
int sw_bridge_check(struct sw *sw, const struct table_rows *rows, struct table_error *err);
void sw_bridge_pin(struct sw *sw, const struct table_rows *rows);
/* For views: addresses that are learnt. */
unsigned sw_bridge_learnt(const struct sw *sw);

/* l2/sw_lldp.c: after the workers; at the end; at every tick; its part of sw_values. */
int sw_lldp_create(struct sw *sw, char err[SW_ERR_LEN]);
void sw_lldp_destroy(struct sw *sw);
void sw_lldp_tick(struct sw *sw, uint64_t now);
void sw_lldp_values(const struct sw *sw, sw_value_fn fn, void *arg);

/* in_use.c: a group or ring sends to somebody by this adjacency of what is published. */
bool sw_adj_in_use(struct sw *sw, const struct adj *adj);

/* publish.c: after the ports; what is published ends when no worker runs any more. */
int sw_tables_create(struct sw *sw, char err[SW_ERR_LEN]);
void sw_tables_destroy(struct sw *sw);
/* What routes are, anew, of the tables and of what else it is made from. What does not fit into
 * memory stays as it was until the next time. */
void sw_fwd_publish(struct sw *sw);
/* At every tick: a next hop whose link has come or gone is dealt with; a memif client that has lost
 * its server looks for it. */
void sw_links_tick(struct sw *sw, uint64_t now);
/* Multicast groups anew, of the tables and of the book. -ENOMEM: they are as they were, and whoever
 * asks tries again. */
int sw_mcast_publish(struct sw *sw);

/* runtime/captures.c: when no worker runs any more; what runs, and what all have counted. */
void sw_captures_destroy(struct sw *sw);
void sw_captures_count(const struct sw *sw, unsigned *running, struct sw_capture_counts *sum);

/* stats.c, at every tick: neighbours whose MAC addresses are not what their entries say. */
void sw_log_mismatches(struct sw *sw);

/* switch_queues.c. One worker's part of n. */
struct egress_config sw_queue_share(const struct egress_config *config, unsigned n);
/* Packets that may wait for a port, each in a buffer. */
unsigned sw_queue_places(const struct egress_config *config);

/* Has worker i do this between two turns (mailbox.h); at once while none runs. -ETIMEDOUT. */
int sw_worker_call(struct sw *sw, unsigned i, void (*fn)(struct worker *w, void *arg), void *arg);

/* For tests: one turn of worker i's loop, in this thread, at this time. Instead of sw_start. */
void sw_turn(struct sw *sw, unsigned i, uint64_t now);

/* "sentence" into err; returns error. */
int sw_fail(char err[SW_ERR_LEN], int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
