/* SPDX-License-Identifier: BSD-3-Clause */
/* One communicator on a simulated fabric (lib/sim): CommLib over the verbs face of the software
 * RNIC on every host, its groups or ring on every switch, and links between them that lose,
 * duplicate, reorder and corrupt as a seeded generator says. What is made here is only the topology
 * and what tests do to it; the simulation and the communicator are there to be used directly. */
#ifndef TESTS_FABRIC_H
#define TESTS_FABRIC_H

#include "lib/ccl/ring.h"
#include "lib/sim/coll.h"

enum { FAB_MAX_HOSTS = 32, FAB_MAX_SWITCHES = 16, FAB_FRAME = 4400 };

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
/* Hosts spread evenly over leaves under a spine; no leaves: a star. */
struct fab_tree fab_leaves(unsigned n_hosts, unsigned n_leaves);

struct fab_opts {
	struct fab_tree tree;
	bool ipv6;
	enum ccl_mode mode; /* 0: Mode-II */
	enum ccl_kind kind;
	unsigned collectives; /* bit per enum ccl_collective that will be called */
	uint16_t mtu, m, w, flags;
	uint32_t start_psn, first_msg;
	unsigned rings; /* NetReduce: parallel ones; 0: 1 */
	uint64_t seed;
	uint64_t timeout_ns; /* CommLib's */
	unsigned link_gbps; /* of every link and direction, with a queue that never drops; 0: any */
	struct fab_faults faults;
};

struct fabric {
	struct fab_opts opts;
	unsigned n; /* hosts */
	struct sim_topo topo;
	struct sim *sim;
	struct sim_coll *coll;
	uint64_t rng; /* for the test's own dice: sim_random */
};

/* If the environment variable FABRIC_PCAP names a directory, everything that enters a link is
 * captured there, to a file per fabric. */
struct fabric *fab_create(const struct fab_opts *opts);
void fab_destroy(struct fabric *fab);
/* Takes the communicator away, after which nothing must be left on any switch. Mends links and
 * hosts, and makes it anew. */
void fab_renew(struct fabric *fab);

struct ccl_comm *fab_comm(struct fabric *fab, unsigned rank);
struct ccl_ring *fab_ring(struct fabric *fab, unsigned rank); /* of a ring or NetReduce */
struct rnic *fab_rnic(struct fabric *fab, unsigned rank);
const char *fab_error(struct fabric *fab, unsigned rank);
int fab_test(struct fabric *fab, unsigned rank, struct ccl_req req);
/* The first group on a switch. */
struct inc_group *fab_group(struct fabric *fab, unsigned sw);
uint64_t fab_link_bytes(struct fabric *fab); /* over all links */

/* From now on, on all links. */
void fab_set_faults(struct fabric *fab, const struct fab_faults *faults);
/* A host's link, or that of a switch to its parent: while it is down nothing gets through. */
void fab_set_host_link(struct fabric *fab, unsigned rank, bool up);
void fab_set_uplink(struct fabric *fab, unsigned sw, bool up);
/* Nothing gets to a switch, or out of it, any more. */
void fab_kill(struct fabric *fab, unsigned sw);

/* A frame from nowhere (elsewhere: sim_inject). */
void fab_inject_host(struct fabric *fab, unsigned rank, const uint8_t *frame, size_t len);

/* Runs the world until every rank's request is done: 0, or the first error of a rank; -EDEADLK when
 * nothing is left to happen, -ETIME after limit_ns of virtual time. */
int fab_wait(struct fabric *fab, const struct ccl_req *req, uint64_t limit_ns);
/* Of an error: fails the test with what every rank says, and the seed. */
void fab_must(struct fabric *fab, int rc);

/* Lets the world run for ns, nobody waiting. */
void fab_run(struct fabric *fab, uint64_t ns);

#endif
