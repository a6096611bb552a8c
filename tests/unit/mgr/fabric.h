/* SPDX-License-Identifier: BSD-3-Clause */
/* Small fabrics, and every tree in them. */
#ifndef TESTS_MGR_FABRIC_H
#define TESTS_MGR_FABRIC_H

#include "lib/mgr/policy.h"

enum { FABRIC_SWITCHES = 9, FABRIC_HOSTS = 12 };

struct fabric {
	struct mgr_graph *g;
	struct mgr_book *b;
	struct mgr_place *p;
	unsigned n_sw, sw[FABRIC_SWITCHES];
	unsigned n_hosts, host[FABRIC_HOSTS], leaf[FABRIC_HOSTS]; /* index into sw */
};

struct fabric fabric_new(void);
void fabric_free(struct fabric *f);
unsigned fabric_switch(struct fabric *f, unsigned tier, uint64_t sram);
void fabric_host(struct fabric *f, unsigned leaf, uint64_t bps);
void fabric_link(struct fabric *f, unsigned a, unsigned b, uint64_t bps);

/* Leaves first, then spines. */
struct fabric fabric_clos(unsigned leaves, unsigned spines, unsigned hosts);

struct mgr_wish fabric_wish(const struct mgr_member *member, unsigned n);

/* The hosts in the mask. */
void fabric_members(const struct fabric *f, unsigned mask, struct mgr_member *m, unsigned *n);

/* Places a group of the hosts in the mask, which stays; why not. */
enum mgr_why fabric_place(struct fabric *f, const struct mgr_policy *policy, unsigned mask,
	struct mgr_wish wish, struct mgr_plan *plan);

/* Calls each(arg, parent, root) for every tree of switches between these members: parent[i] is an
 * index into sw, -1 for the root, -2 for switches that are not in it. Trees in which a branch leads
 * to no member are among them. */
void fabric_trees(const struct fabric *f, const struct mgr_member *member, unsigned n,
	void (*each)(void *arg, const int *parent, unsigned root), void *arg);

/* Links from switch i to the root. */
unsigned fabric_depth(const int *parent, unsigned i);

#endif
