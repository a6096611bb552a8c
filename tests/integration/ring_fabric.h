/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts in a ring (lib/ccl/ring.h over lib/verbs over lib/rnic), routers between them, and the
 * time: one process, one thread, one seed, as fabric.h. Routers forward by address. */
#ifndef TESTS_RING_FABRIC_H
#define TESTS_RING_FABRIC_H

#include "dataplane/netreduce/engine.h"
#include "lib/ccl/ring.h"
#include "lib/rnic/rnic.h"

enum { RF_MAX_HOSTS = 16, RF_MAX_SWITCHES = 5, RF_FRAME = 4400 };

struct rf_faults {
	double loss, dup, reorder, corrupt;
};

struct rf_opts {
	unsigned n_hosts;
	unsigned n_leaves; /* 0: a star; else leaves under a spine, hosts spread evenly */
	uint16_t mtu, m, w;
	uint32_t start_psn, first_msg;
	uint64_t seed, timeout_ns;
	bool netreduce;
	bool psn_known; /* the switches are told where the connections' PSNs begin */
	struct rf_faults faults;
};

struct rf_switch {
	struct inc_arena arena;
	struct nr_ring *ring;
	unsigned n_rows;
	struct nr_key key[NR_MAX_ROWS];
	struct nr_look look[NR_MAX_ROWS];
	bool dead;
	uint64_t drop[NR_N_DROPS + 1]; /* [NR_FORWARD]: registered, but forwarded */
};

struct ring_fabric;

struct ring_fabric *rf_create(const struct rf_opts *opts);
void rf_destroy(struct ring_fabric *f);

struct ccl_ring *rf_ring(struct ring_fabric *f, unsigned rank);
struct rnic *rf_rnic(struct ring_fabric *f, unsigned rank);
uint64_t rf_now(const struct ring_fabric *f);
uint64_t rf_random(struct ring_fabric *f);
/* A host's link, or that of a leaf to the spine: while it is down nothing gets through. Everything
 * that enters a link is captured as fabric.h says. */
void rf_set_host_link(struct ring_fabric *f, unsigned rank, bool up);
void rf_set_uplink(struct ring_fabric *f, unsigned leaf, bool up);
void rf_set_faults(struct ring_fabric *f, const struct rf_faults *faults);
struct rf_switch *rf_switch(struct ring_fabric *f, unsigned sw); /* 0: the root */
unsigned rf_leaf_of(const struct ring_fabric *f, unsigned rank);
uint64_t rf_link_bytes(const struct ring_fabric *f); /* over all links */

/* Called for every frame that enters a link, before its faults. */
typedef void (*rf_tap)(void *arg, struct ring_fabric *f, const uint8_t *frame, size_t len);
void rf_set_tap(struct ring_fabric *f, rf_tap tap, void *arg);
/* A frame from nowhere, to a switch. */
void rf_inject(struct ring_fabric *f, unsigned sw, const uint8_t *frame, size_t len);

/* Runs the world until req[r] of every rank of the mask is done: 0, or the first error of a rank;
 * -EDEADLK when nothing is left to happen, -ETIME after limit_ns of virtual time. */
int rf_wait(struct ring_fabric *f, const struct ccl_req *req, uint64_t limit_ns);
void rf_run(struct ring_fabric *f, uint64_t ns);

#endif
