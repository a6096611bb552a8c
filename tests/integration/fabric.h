/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric in one process on virtual time: CommLib over the verbs face of the software RNIC on
 * every host, the IncEngine in every switch, and links between them that lose, duplicate, reorder
 * and corrupt as a seeded generator says. All of it is the code that ships; only the wires are made
 * up. */
#ifndef TESTS_FABRIC_H
#define TESTS_FABRIC_H

#include "dataplane/inc/engine.h"
#include "dataplane/inc/mode1.h"
#include "lib/ccl/ccl.h"
#include "lib/rnic/rnic.h"

enum { FAB_MAX_HOSTS = 32, FAB_MAX_SWITCHES = 16, FAB_FRAME = 4400, FAB_MAX_GROUPS = 65 };

/* Probabilities per frame and link direction. */
struct fab_faults {
	double loss, dup, reorder, corrupt;
};

/* A tree of switches: switch 0 is its root, parent[i] < i that of switch i > 0; hosts hang where
 * leaf_of says. */
struct fab_tree {
	const char *name;
	unsigned n_hosts, n_switches;
	uint8_t parent[FAB_MAX_SWITCHES];
	uint8_t leaf_of[FAB_MAX_HOSTS];
};

/* Four hosts under one switch, two leaves of two, and eight at all levels of a tree of depth four
 * whose branches are unequal. */
extern const struct fab_tree fab_star4, fab_tree_2x2, fab_deep;

struct fab_opts {
	unsigned n_hosts;
	unsigned n_leaves; /* 0: a star; else leaf switches under a spine, hosts spread evenly */
	const struct fab_tree *tree; /* instead of n_hosts and n_leaves */
	uint8_t mode, kind;          /* enum inc_mode, inc_kind; 0: Mode-II, SINGLE */
	/* Bit per enum ccl_collective that will be called; 0: as struct ccl_conn has it. Decides
	 * how many groups there are if kind is SINGLE. */
	unsigned collectives;
	uint16_t mtu, m, w, flags;
	uint32_t start_psn;
	uint64_t seed;
	uint64_t timeout_ns; /* CommLib's */
	unsigned link_gbps; /* of every link and direction, with a queue that never drops; 0: any */
	struct fab_faults faults;
};

struct fab_switch {
	struct inc_table table;
	struct inc_arena arena;
	struct inc_group *group;               /* the first of */
	struct inc_group *all[FAB_MAX_GROUPS]; /* as CommLib's members */
	unsigned parent;                       /* index; of switch 0: 0 */
	struct mode1_device *mode1;            /* Mode-I: the own RNIC, and connections per group */
	struct mode1 *connections[FAB_MAX_GROUPS];
	bool dead, uplink_down;
	uint64_t rx, wire_drop[WIRE_N_DROPS], inc_drop[INC_N_DROPS];
};

struct fabric;

struct fabric *fab_create(const struct fab_opts *opts);
void fab_destroy(struct fabric *fab);

unsigned fab_n_switches(const struct fabric *fab);
struct fab_switch *fab_switch(struct fabric *fab, unsigned i); /* 0: the tree root */
struct ccl_comm *fab_comm(struct fabric *fab, unsigned rank);
struct rnic *fab_rnic(struct fabric *fab, unsigned rank);
uint64_t fab_now(const struct fabric *fab);
uint64_t fab_random(struct fabric *fab);
void fab_set_faults(struct fabric *fab, const struct fab_faults *faults);

/* A host's link, or that of a switch to its parent: while it is down nothing gets through. */
void fab_set_host_link(struct fabric *fab, unsigned rank, bool up);
void fab_set_uplink(struct fabric *fab, unsigned sw, bool up);

/* Everything that enters a link is written to a pcap file with virtual time; also if the
 * environment variable FABRIC_PCAP names a directory when a fabric is made. */
void fab_capture(struct fabric *fab, const char *path);

/* Called for every frame that enters a link, before its faults; may put frames of its own with
 * fab_inject. */
typedef void (*fab_tap)(void *arg, struct fabric *fab, const uint8_t *frame, size_t len);
void fab_set_tap(struct fabric *fab, fab_tap tap, void *arg);

/* A frame from nowhere: arrives at a switch (port 0) or a host after a link's delay. */
void fab_inject_switch(struct fabric *fab, unsigned sw, const uint8_t *frame, size_t len);
void fab_inject_host(struct fabric *fab, unsigned rank, const uint8_t *frame, size_t len);

/* Runs the world until every rank's request is done: 0, or the first error of a rank; -EDEADLK when
 * nothing is left to happen, -ETIME after limit_ns of virtual time. */
int fab_wait(struct fabric *fab, const struct ccl_req *req, uint64_t limit_ns);

/* A host does nothing for a time, neither its program nor its NIC. */
void fab_freeze(struct fabric *fab, unsigned rank, uint64_t ns);

/* Lets the world run for ns, nobody waiting. */
void fab_run(struct fabric *fab, uint64_t ns);

#endif
