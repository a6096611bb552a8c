/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch as its control plane sees it: made from a configuration, started, asked and told.
 * All functions are for the one control thread unless said otherwise; none blocks longer than one
 * quiescent period of the workers (bounded: 1 s, then -ETIMEDOUT). Errors are negative errno with
 * one sentence in err. */
#ifndef DATAPLANE_SWITCH_H
#define DATAPLANE_SWITCH_H

#include "dataplane/egress/queue.h"
#include "dataplane/inc/group.h"
#include "dataplane/l2/mac_table.h"
#include "dataplane/l2/neigh_cache.h"
#include "dataplane/netreduce/ring.h"
#include "dataplane/parse/parse.h"
#include "dataplane/table.h"
#include "lib/port/port.h"

struct sw;
struct sw_config; /* dataplane/config.h */
struct impair;

enum { SW_MAX_PORTS = 64, SW_ERR_LEN = 256, SW_MISMATCH_TEXT = 80 };

/* Starts the EAL and opens the ports; sw_start launches the workers, and takes the calling thread
 * off the CPUs that "lcores" gives to them. What the configuration holds is the switch's from now
 * on, and freed when this fails. */
int sw_create(const struct sw_config *config, struct sw **sw, char err[SW_ERR_LEN]);
/* The same, but all ports are checked as far as that is possible without opening them, and then
 * are connected to nothing: no device, socket, interface, hugepage or lock is touched. */
int sw_create_unplugged(const struct sw_config *config, struct sw **sw, char err[SW_ERR_LEN]);
int sw_start(struct sw *sw, char err[SW_ERR_LEN]);
/* Stops the workers, closes the ports, frees everything. Bounded. */
void sw_destroy(struct sw *sw);
/* The same as the last thing that a process does: DPDK would zero the memory of packets and groups,
 * page by page, that is the kernel's in a moment. */
void sw_destroy_last(struct sw *sw);
const char *sw_name(const struct sw *sw);
/* Its clock, in nanoseconds: what times in here are counted by. */
uint64_t sw_now(const struct sw *sw);
/* EAL --lcores text of the CPUs that its threads are bound to, as configured or as found; "": they
 * float. */
const char *sw_lcores(const struct sw *sw);
/* What its configuration brought along. */
void *sw_given(const struct sw *sw);

/* Tables: local addresses, neighbours, routes (see dataplane/tables.c for the descriptors). */
struct table_registry *sw_tables(struct sw *sw);
/* Packets that have matched a row (its number in table_rows) since it is there, whatever else has
 * changed. False: rows of this table are not counted. */
bool sw_table_hits(const struct sw *sw, unsigned table, unsigned row, uint64_t *hits);
/* Routes whose next hops are no neighbours, and lie at no port where they can be asked for. */
unsigned sw_routes_nowhere(const struct sw *sw);

/* ---- the pipeline ---- */
/* What is registered, as it is: the parser's states are parse_state's. */
enum { SW_STAGE_EDGES = 16 };
struct sw_stage {
	const char *name; /* of the graph node */
	unsigned n_next;
	const char *next[SW_STAGE_EDGES]; /* nodes that it gives packets to */
	uint64_t packets;                 /* that it has handled, by all workers */
};
/* Stage i in the order in which packets pass them, but for ways back; -ENOENT behind the last one.
 */
int sw_stage_get(struct sw *sw, unsigned i, struct sw_stage *stage);

/* What a node looks packets up in and the control plane does not write: described as a table. */
struct sw_view {
	const struct table_desc *desc;
	uint64_t entries, hits; /* now; packets that have matched the present ones */
};
/* -ENOENT behind the last one. */
int sw_view_get(const struct sw *sw, unsigned i, struct sw_view *view);

/* ---- ports ---- */
struct sw_port {
	char name[PORT_NAME_LEN];
	char type[16];
	uint16_t id;
	uint8_t mac[6];
	uint16_t mtu;
	bool link;
	uint32_t mbps; /* of a NIC's link; 0: nobody knows */
	uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes, tx_drops;
	/* Lost by the driver before the switch saw them: its queue was full, the frame was bad, no
	 * buffer was left. */
	uint64_t rx_missed, rx_errors, rx_nombuf;
	/* Packets from neighbours with another MAC address than their neigh entries', and the
	 * latest such address that still differs: "10.0.0.7 from 02:00:00:00:00:07"; "": none.
	 * The list of such addresses ends; unlisted: packets from those that found it full. */
	uint64_t mac_mismatch, mac_unlisted;
	char mismatch[SW_MISMATCH_TEXT];
};
unsigned sw_n_ports(const struct sw *sw);
int sw_port_get(struct sw *sw, unsigned i, struct sw_port *port);
int sw_port_find(struct sw *sw, const char *name); /* port index or -ENOENT */

/* Bad weather on a port from now on (NULL: none). Packets held back for others to overtake go on
 * their way. -ENOENT; -ETIMEDOUT: a worker hangs, others may have it already. */
int sw_port_impair(struct sw *sw, unsigned port, const struct impair *impair, char err[SW_ERR_LEN]);

/* ---- what waits for a port ---- */
struct sw_queue {
	char port[PORT_NAME_LEN];
	const char *name; /* "control", "data" */
	uint64_t packets, bytes, limit_bytes;
	struct egress_count count;
};
/* Queue 0, 1 ... of a port (index); -ENOENT behind the last one. */
int sw_queue_get(struct sw *sw, unsigned port, unsigned which, struct sw_queue *queue);

/* ---- workers ---- */
struct sw_worker {
	int cpu, socket; /* -1: it floats over several; not started */
	uint64_t turns, busy_cycles, idle_cycles;
	uint64_t rx_packets, tx_packets;
	uint64_t handed_over, taken_over, handoff_full; /* packets of groups of other workers, of
							   its own from others; lost on the way */
	unsigned groups, rings;                         /* that it owns */
	uint64_t arena_bytes;                           /* of these groups, bound now */
};
unsigned sw_n_workers(const struct sw *sw);
int sw_worker_get(struct sw *sw, unsigned i, struct sw_worker *worker);

/* ---- counters ---- */
/* Every reason of the program for which a packet is lost (wire, inc, switch), and every way in
 * which one that is not sent on has served (taken by a collective, answered ...), each in one fixed
 * order, zero or not. */
typedef void (*sw_drop_fn)(void *arg, const char *name, const char *text, uint64_t count);
void sw_drops(struct sw *sw, sw_drop_fn fn, void *arg);
void sw_outcomes(struct sw *sw, sw_drop_fn fn, void *arg);
void sw_drops_clear(struct sw *sw); /* both */
/* Per graph node: calls, packets, cycles (rte_graph cluster statistics), summed over workers. */
typedef void (*sw_node_fn)(
	void *arg, const char *node, uint64_t calls, uint64_t packets, uint64_t cycles);
void sw_nodes(struct sw *sw, sw_node_fn fn, void *arg);
/* Program-wide values: uptime_ns, worker turns, idle turns, arena size and use, mbufs free ... */
enum sw_kind { SW_GAUGE, SW_COUNTER }; /* goes up and down; only grows */
typedef void (*sw_value_fn)(
	void *arg, enum sw_kind kind, const char *name, const char *text, uint64_t value);
void sw_values(struct sw *sw, sw_value_fn fn, void *arg);

/* ---- neighbours that are learnt ---- */
struct sw_neigh_info {
	struct wire_ip ip;
	char port[PORT_NAME_LEN];
	uint8_t mac[6]; /* if it is known */
	uint16_t vlan;  /* 0: untagged */
	bool known;
	const char *state; /* of l2/neigh_cache.h */
	uint64_t state_ns; /* since when */
	unsigned waiting;  /* packets */
};
/* How many there are. */
unsigned sw_neighs(const struct sw *sw, struct neigh_counters *count);
/* The next one, from *at = 0 on; -ENOENT: there are no more. */
int sw_neigh_get(const struct sw *sw, unsigned *at, struct sw_neigh_info *info);

/* ---- who is at the other end of ports, by LLDP ---- */
enum { SW_LLDP_TEXT = 64 }; /* what is longer is cut off */
struct sw_lldp_info {
	char chassis[SW_LLDP_TEXT], port[SW_LLDP_TEXT], system[SW_LLDP_TEXT]; /* system "": none */
	uint64_t age_ns; /* since it was heard last */
};
/* What the switch says of itself as its chassis; "": LLDP is off. Returns text. */
const char *sw_lldp_chassis(const struct sw *sw, char text[SW_LLDP_TEXT]);
/* The next neighbour of port (index), from *at = 0 on; -ENOENT: there are no more. */
int sw_lldp_get(const struct sw *sw, unsigned port, unsigned *at, struct sw_lldp_info *info);

/* ---- addresses that bridges have learnt ---- */
struct sw_mac_info {
	uint8_t mac[6];
	uint16_t vlan; /* 0: untagged */
	char port[PORT_NAME_LEN];
	bool is_static;   /* a row of mac */
	uint64_t idle_ns; /* since it was heard of last, as far as that is looked at */
};
/* How many there are. held: sources that workers have not noted in time. */
unsigned sw_macs(const struct sw *sw, struct mac_counters *count, uint64_t *held);
/* The next one, from *at = 0 on; -ENOENT: there are no more. */
int sw_mac_get(const struct sw *sw, unsigned *at, struct sw_mac_info *info);

/* To be called when this descriptor is readable (-1: never): workers have notes, of neighbours that
 * are wanted or addresses that have come, that should not wait for the next tick. */
int sw_notes_fd(const struct sw *sw);
void sw_notes_turn(struct sw *sw, uint64_t now);

/* ---- members of multicast groups that are learnt ---- */
struct sw_member {
	struct wire_ip group;
	char port[PORT_NAME_LEN];
	uint16_t vlan; /* 0: untagged */
	bool leaving;
	uint64_t left_ns; /* until it is forgotten, if it keeps silent */
};
#define SW_MEMBER_COUNTERS(X) X(joined) X(left) X(expired) X(refused) X(bad) X(deferred)
struct sw_member_counters {
#define X(field) uint64_t field;
	SW_MEMBER_COUNTERS(X)
#undef X
};
/* How many there are. */
unsigned sw_members(const struct sw *sw, struct sw_member_counters *count);
/* -ENOENT behind the last one. */
int sw_member_get(const struct sw *sw, unsigned i, struct sw_member *member);

/* ---- trace: one packet through all nodes ---- */
enum { SW_TRACE_TEXT = 160, SW_TRACE_MAX = 4096 };
struct sw_trace_rec {
	uint64_t ns;
	uint32_t packet; /* records of one packet share a number */
	char node[32];
	char text[SW_TRACE_TEXT];
};
/* Traces the next n packets (1..SW_TRACE_MAX) received on port (index, or -1: all). */
int sw_trace_start(struct sw *sw, int port, unsigned n, char err[SW_ERR_LEN]);
/* Up to n records from `from` on; returns how many. Never blocks the worker. */
unsigned sw_trace_read(struct sw *sw, unsigned from, struct sw_trace_rec *rec, unsigned n);

/* ---- captures: copies of what comes and goes by a port ---- */
enum {
	SW_MAX_CAPTURES = 8, /* at a time */
	SW_CAPTURE_SNAPLEN = 65535,
	SW_CAPTURE_FILTER = 512, /* instructions */
	SW_CAPTURE_RING_MIN = 128 << 10,
	SW_CAPTURE_RING_MAX = 16 << 20,
};
struct bpf_insn; /* pcap/bpf.h */
struct sw_capture_spec {
	unsigned port; /* index */
	bool in, out;
	uint32_t snaplen;    /* bytes of a packet that are kept */
	uint32_t ring_bytes; /* of each worker, for what is not read yet: a power of two */
	const struct bpf_insn *filter; /* classic BPF on the frame; not used after the call */
	unsigned n_filter;             /* 0: everything */
};
struct sw_capture_counts {
	uint64_t captured, dropped, filtered; /* packets: copied; found the ring full; left out */
};
struct sw_capture_info {
	uint32_t id; /* 0: place i is free */
	char port[PORT_NAME_LEN];
	bool in, out;
	uint32_t snaplen;
	struct sw_capture_counts count;
};
struct sw_captured {
	uint64_t ns; /* sw_now, of the turn of the worker's loop */
	uint32_t len, cap;
	const uint8_t *data;
	bool out;        /* sent, not received */
	const char *end; /* received, and ended here: drop reason or outcome; else NULL */
	bool lost;       /* that is a drop reason */
};
typedef void (*sw_captured_fn)(void *arg, const struct sw_captured *packet);
/* What comes in is seen as the switch sees it, what goes out as a port has taken it. Packets are
 * copied by the workers, which never wait. -EINVAL, -ENOENT, -EBUSY, -ENOMEM, -ETIMEDOUT. */
int sw_capture_start(
	struct sw *sw, const struct sw_capture_spec *spec, uint32_t *id, char err[SW_ERR_LEN]);
/* Gives fn up to n of the packets that are there, oldest first, and while they are not more than so
 * many bytes (but one). Returns how many, or -ENOENT. */
int sw_capture_read(
	struct sw *sw, uint32_t id, unsigned n, size_t bytes, sw_captured_fn fn, void *arg);
/* What is not read is lost. -ENOENT; -ETIMEDOUT: not yet, call again. */
int sw_capture_stop(struct sw *sw, uint32_t id);
/* Place i; -ENOENT behind the last one. */
int sw_capture_get(struct sw *sw, unsigned i, struct sw_capture_info *info);

/* ---- groups ---- */
/* Checks the spec, takes arena memory, installs everything or nothing. smac/dmac of endpoints that
 * are all zero are filled from the port and the neighbour table (-ENOENT naming the endpoint if
 * unknown); local_ip that is zero becomes the switch's first address of the same family. On success
 * the group is INSTALLED, or ACTIVE if activate; *slot identifies it. */
int sw_group_create(struct sw *sw, struct inc_group_spec *spec, bool activate, unsigned *slot,
	char err[SW_ERR_LEN]);
/* Where the generations of the slots begin, for groups and rings: to be called before there are
 * any, with another number at each start (docs/inc-protocol.md, 8.3). Without it they begin at 0.
 */
void sw_groups_begin(struct sw *sw, uint64_t seed);
/* Fills in remote QPNs that were 0 (qpn[i] == 0: leave) and activates. */
int sw_group_activate(
	struct sw *sw, unsigned slot, const uint32_t *qpn, unsigned n_qpn, char err[SW_ERR_LEN]);
/* Gives the group aggregation memory or takes it away, between operations (EPIC section 6, the
 * indirection layer); bound although it has some: moves it to the lowest free place. First come,
 * first served: -ENOSPC and nothing changed if there is not enough. -EBUSY: an operation is not
 * finished. The caller sees to it that all ranks have finished. Meanwhile, well below a
 * millisecond as a rule, the group's packets are dropped as of a group that is not active.
 * -EOPNOTSUPP: the group has a lease, or is of mode I. */
int sw_group_rebind(struct sw *sw, unsigned slot, bool bound, char err[SW_ERR_LEN]);
/* The queue pairs of the group's hosts begin anew, with no message counted, at the next operation's
 * PSN, which is psn: -EINVAL if it is another. They have met: nobody sends before *done, which a
 * later call with the same PSN says if this one does not. -EBUSY: an operation is not finished, for
 * all that is known here (an acknowledgement may still be on its way). -ECANCELED: the group has
 * failed, or ends. -EOPNOTSUPP: as above. */
int sw_group_resync(struct sw *sw, unsigned slot, uint32_t psn, bool *done, char err[SW_ERR_LEN]);
/* ACTIVE -> DRAINING, freed after drain_ms by sw_tick; force: freed at once. */
int sw_group_delete(struct sw *sw, unsigned slot, bool force, char err[SW_ERR_LEN]);
int sw_group_fail(struct sw *sw, unsigned slot, char err[SW_ERR_LEN]);
/* To another worker, in the middle of whatever it does: its worker lets go of it between two turns,
 * and hands over what still comes. -EOPNOTSUPP: of mode I, which is where the RNIC is. */
int sw_group_move(struct sw *sw, unsigned slot, unsigned worker, char err[SW_ERR_LEN]);
unsigned sw_group_worker(const struct sw *sw, unsigned slot);
/* The block itself, for reading only and until the next call that deletes or ticks; NULL if free.
 */
struct inc_group *sw_group_get(struct sw *sw, unsigned slot);
/* Slot of a group by name, or -ENOENT. Names are unique. */
int sw_group_find(struct sw *sw, const char *name);
void sw_arena_usage(struct sw *sw, uint64_t *size, uint64_t *used);

/* ---- leases: memory that groups share, one tenant at a time ---- */
enum { SW_MAX_LEASES = 64, SW_LEASE_MS = 10000 };

/* A group whose spec names a lease has memory while its tenant holds the lease; all groups of a
 * tenant get and lose it together. First come, first served, and nobody is put in a queue: -EBUSY
 * with the holder's name, and nothing changed but a counter, if another tenant holds it or a group
 * of this one is not active yet; -ESTALE if one is not any more.
 * Whoever holds it already keeps it, its time begins anew. -ENOENT: no such lease or tenant. */
int sw_lease_acquire(struct sw *sw, const char *lease, const char *tenant, char err[SW_ERR_LEN]);
/* The caller sees to it that all ranks of the tenant have finished. pending: some acknowledgement
 * is still under way; the lease is free once it has come, or its time is over. Nothing to do if the
 * tenant does not hold it. A holder whose groups make no progress for lease_ms loses the lease:
 * they fail, with the reason lease_expired, and nobody else gets the memory before. */
int sw_lease_release(
	struct sw *sw, const char *lease, const char *tenant, bool *pending, char err[SW_ERR_LEN]);

/* X(field, meaning) */
#define SW_LEASE_COUNTERS(X)                             \
	X(acquired, "times that a tenant got it")        \
	X(refused, "times that a tenant did not get it") \
	X(released, "times that its holder let it go")   \
	X(taken_back, "times that it was taken from a holder in silence")
struct sw_lease_counters {
#define X(field, text) uint64_t field;
	SW_LEASE_COUNTERS(X)
#undef X
};
struct sw_lease_info {
	char name[INC_NAME_LEN];   /* "": entry i is free */
	char holder[INC_NAME_LEN]; /* "": nobody */
	uint64_t bytes, offset;    /* of the range */
	unsigned members;          /* groups */
	bool releasing;
	uint64_t held_ns;
	struct sw_lease_counters count;
};
/* Entry i; -ENOENT behind the last one. */
int sw_lease_get(struct sw *sw, unsigned i, struct sw_lease_info *info);
/* The lease and the tenant of a group, "" if it has none. */
const char *sw_group_lease(struct sw *sw, unsigned slot, const char **tenant);

/* ---- NetReduce rings ---- */
/* Checks the spec, takes arena memory, installs everything or nothing. local_ip that is zero
 * becomes the switch's first address of the same family; every address must have a route. On
 * success the ring is INSTALLED, or ACTIVE if activate (then all QPNs must be known); *ring
 * identifies it. */
int sw_ring_create(
	struct sw *sw, struct nr_spec *spec, bool activate, unsigned *ring, char err[SW_ERR_LEN]);
/* Fills in QPNs that were 0 (by input; 0: leave) and activates. */
int sw_ring_activate(struct sw *sw, unsigned ring, const uint32_t qpn[NR_MAX_IN],
	uint32_t parent_qpn, char err[SW_ERR_LEN]);
/* ACTIVE to FAILED, so that ranks are told: no sum is made any more, and nothing of its connections
 * passes that would be taken for one. Else no effect. It stays until it is deleted. */
int sw_ring_fail(struct sw *sw, unsigned ring, char err[SW_ERR_LEN]);
/* At once: packets of its connections are forwarded like others from now on. */
int sw_ring_delete(struct sw *sw, unsigned ring, char err[SW_ERR_LEN]);
/* As sw_group_get and sw_group_find. */
struct nr_ring *sw_ring_get(struct sw *sw, unsigned ring);
int sw_ring_find(struct sw *sw, const char *name);

/* Housekeeping, to be called about every 100 ms: ends draining, rests slots, notes stalls. */
void sw_tick(struct sw *sw, uint64_t now_ns);

#endif
