/* SPDX-License-Identifier: BSD-3-Clause */
/* Discrete-event simulation of a fabric: the software RNIC and CommLib in every host, the IncEngine
 * in every switch, all of it the code that ships, and links as in link.h between them. Only the
 * wires and the time are made up; hosts and switches take no time themselves.
 *
 * The same seed gives the same run: sim_trace_hash() covers time, link and bytes of every frame and
 * of every control message (but for virtual addresses in RETH, which are pointers of this process,
 * and the ICRC over them).
 *
 * One thread per simulation. Time is virtual nanoseconds. Errors are negative errno. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "dataplane/inc/engine.h"
#include "dataplane/netreduce/engine.h"
#include "lib/rnic/rnic.h"
#include "lib/sim/control.h"
#include "lib/sim/link.h"
#include "lib/sim/topo.h"

struct sim;
struct mrc_settings;

struct sim_conf {
	const struct sim_topo *topo; /* must outlive the simulation */
	struct sim_link_conf link;   /* every link and direction, until sim_set_link */
	uint64_t seed;
	struct rnic_congestion congestion; /* of every RNIC; line_mbps 0: the link's */
	uint32_t rnic_window;              /* 0: the RNIC's default */
	uint32_t rnic_quantum;             /* likewise */
	uint32_t max_qp;                   /* of every RNIC; 0: 64 */
	unsigned rx_workers;               /* likewise, without threads */
	/* Switches send no CNP to a host for running ahead of a pipe (EPIC's table 35). */
	bool no_rate_sync;
	struct sim_control_conf control; /* of the switches' agents; sim_set_control */
	/* MRC's of every RNIC. NULL: lib/mrc's defaults, read once; the rate is the links' of all
	 * planes, where they have one; base RTT 0: that of mrc. */
	const struct mrc_settings *mrc;
	uint64_t mrc_base_rtt_ns;
};

int sim_create(const struct sim_conf *conf, struct sim **sim, char err[SIM_ERR_LEN]);
void sim_destroy(struct sim *sim);

uint64_t sim_now(const struct sim *sim);
const struct sim_topo *sim_topo(const struct sim *sim);
uint64_t sim_trace_hash(const struct sim *sim);
uint64_t sim_hops(const struct sim *sim); /* frames that have entered a link */

/* Directed links: those of host h are 2 h (up) and 2 h + 1 (down), then of edge e of the topology
 * 2 (n_hosts + e) (down) and one more (up). With several planes h counts the hosts' ports, those of
 * one host together: the two functions below. */
unsigned sim_host_link(const struct sim *sim, unsigned host, unsigned plane);
unsigned sim_edge_link(const struct sim *sim, unsigned edge);

unsigned sim_n_links(const struct sim *sim);
struct sim_link *sim_link(struct sim *sim, unsigned i);
void sim_set_link(struct sim *sim, unsigned i, const struct sim_link_conf *conf);
void sim_link_name(const struct sim *sim, unsigned i, char *buf, size_t cap);

/* Everything that enters a link goes to a pcapng file, with nanoseconds and the link's name as the
 * interface's. -errno of the file. */
int sim_capture(struct sim *sim, const char *path);

/* Called for every frame that enters a link, before its faults. NULL: nobody looks. */
typedef void (*sim_tap)(void *arg, unsigned link, const uint8_t *frame, unsigned len);
void sim_set_tap(struct sim *sim, sim_tap tap, void *arg);
/* A frame from nowhere: arrives at the end of a link after the link's delay, past its queue and its
 * faults. */
void sim_inject(struct sim *sim, unsigned link, const uint8_t *frame, unsigned len);

/* Called every so many nanoseconds while the simulation runs, from now on. */
typedef void (*sim_sampler)(void *arg, uint64_t now);
void sim_set_sampler(struct sim *sim, uint64_t every_ns, sim_sampler look, void *arg);

/* ---- hosts ---- */

struct ibv_context *sim_context(struct sim *sim, unsigned host);

enum { SIM_MAX_APPS = 16 };
/* What runs on a host: called whenever something happened there. Returns how much it did, or an
 * error that ends the run. */
typedef int (*sim_app)(void *arg, uint64_t now);
/* -ENOSPC: the host has SIM_MAX_APPS. */
int sim_add_app(struct sim *sim, unsigned host, sim_app app, void *arg);
/* The one that was added with arg, if there is one. */
void sim_remove_app(struct sim *sim, unsigned host, const void *arg);
/* Lets a host run at the present time; its work was posted from outside. */
void sim_kick(struct sim *sim, unsigned host);
/* Lets it run at that time, unless it runs earlier: an app that waits says so whenever it runs. */
void sim_wake(struct sim *sim, unsigned host, uint64_t at);
/* A host's port of a plane. Down: nothing goes either way, and the host's NIC knows at once. */
void sim_set_port(struct sim *sim, unsigned host, unsigned plane, bool up);
/* It does nothing until that time, neither its apps nor its NIC. */
void sim_freeze(struct sim *sim, unsigned host, uint64_t until);

/* ---- switches ---- */

struct sim_switch {
	struct inc_table table;
	unsigned n_slots; /* of the table that may have groups: those with timers are asked */
	struct inc_arena arena;
	/* What its agent has installed: aggregation memory, groups, rings. */
	size_t arena_used;
	unsigned n_groups, n_rings;
	bool stopped; /* forwards nothing, though its links are up */
	uint64_t rx, forwarded, unroutable, stopped_drop;
	uint64_t wire_drop[WIRE_N_DROPS], inc_drop[INC_N_DROPS], nr_drop[NR_N_DROPS];
	uint64_t rnic_rx; /* for the connections of its Mode-I groups */
};
struct sim_switch *sim_switch(struct sim *sim, unsigned i);
/* The first of its NetReduce rings that are active; NULL: there is none. */
struct nr_ring *sim_switch_ring(struct sim *sim, unsigned i);
void sim_host_mac(unsigned host, uint8_t mac[6]); /* of its first port */
void sim_host_port_mac(unsigned host, unsigned plane, uint8_t mac[6]);
void sim_switch_mac(unsigned sw, uint8_t mac[6]);

/* A group whose packets the switches copy to the n hosts from first_host on, along a tree of
 * shortest ways to the switch root; never back. -EINVAL, -EEXIST, -ENETUNREACH. */
int sim_multicast_add(struct sim *sim, const struct wire_ip *group, unsigned first_host, unsigned n,
	unsigned root);
void sim_multicast_remove(struct sim *sim, const struct wire_ip *group);

/* Bytes that all ports of all switches have sent and received, as their counters say: a link
 * between two switches is seen by both. As SIM_L_BYTES. */
uint64_t sim_port_bytes(struct sim *sim);

/* Runs until done(arg) is true (asked after every point in time), 0; or the first error of an app;
 * -EDEADLK: nothing is left to happen; -ETIME: virtual time is until. After any of them the
 * simulation can be run on. */
int sim_run(struct sim *sim, bool (*done)(void *arg), void *arg, uint64_t until);

#endif
