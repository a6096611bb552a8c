/* SPDX-License-Identifier: BSD-3-Clause */
/* A tree of switches between the hosts of a group (EPIC 3.1), grown from a given root by the
 * shortest ways over what a bar lets pass. Heap for the tree, and in the finder. One owner. */
#ifndef MGR_TREE_H
#define MGR_TREE_H

#include "lib/mgr/book.h"
#include "lib/mgr/graph.h"
#include "lib/mgr/size.h"

enum { MGR_MAX_MEMBERS = 2048 };

/* A rank's host; the same host may come again. */
struct mgr_member {
	unsigned node;
	int port; /* of the graph, for hosts with several; -1: the first that passes the bar */
};

struct mgr_tree_sw {
	unsigned node;
	int parent;          /* index into sw; -1: the root */
	unsigned link;       /* to the parent */
	unsigned n_children; /* switches and members */
	bool transit;        /* only forwards: takes no part, has one child */
};

struct mgr_tree {
	unsigned n_sw, n_members;
	struct mgr_tree_sw *sw; /* parents before their children: sw[0] is the root */
	struct {
		unsigned sw, link;
	} * member;          /* in the order given */
	unsigned height;     /* links from the farthest member to the root */
	unsigned n_children; /* of the switch with most */
};

/* What switches and links must have to be used. */
struct mgr_bar {
	unsigned max_tier;
	unsigned max_height; /* 1 to MGR_MAX_HEIGHT */
	unsigned mode;      /* a switch that takes part offers it; 0: all do, whatever they offer */
	uint64_t bytes;     /* free on each */
	uint64_t bps;       /* share of each link */
	uint64_t inner_bps; /* of each link between switches, if that is more */
	unsigned duty;      /* in whose sense bytes and bps are free */
	bool promised;      /* the link's share is what is not promised; else an equal part of it */
	bool whole;         /* no other tree on the link */
	bool ignore_memory, ignore_links; /* to find out what is missing */
};

struct mgr_finder;

/* The graph and the book outlive it. NULL without memory. */
struct mgr_finder *mgr_finder_new(struct mgr_graph *g, const struct mgr_book *b);
void mgr_finder_free(struct mgr_finder *f);

/* By node, how much whoever asks may have at most, whatever is free; NULL: all of it. Not copied.
 */
void mgr_finder_limit(struct mgr_finder *f, const uint64_t *most);
/* As mgr_book_free_bytes, within that. */
uint64_t mgr_finder_free_bytes(const struct mgr_finder *f, unsigned node, unsigned duty);

/* The book's capacities as the graph has them now: what is down or gone has none. */
void mgr_finder_sync(struct mgr_graph *g, struct mgr_book *b);

/* 0: *out is the caller's, freed with mgr_tree_free. -ENOENT: there is none with this root, among
 * them one whose root had a single child, a switch that branches but only forwards, or one with
 * more than MGR_MAX_CHILDREN; -ENOMEM. */
int mgr_tree_grow(struct mgr_finder *f, const struct mgr_member *member, unsigned n, unsigned root,
	const struct mgr_bar *bar, struct mgr_tree *out);
void mgr_tree_free(struct mgr_tree *t);

/* Of a link, in the bar's sense; 0: not to be used. */
uint64_t mgr_link_share(
	const struct mgr_finder *f, const struct mgr_edge *e, const struct mgr_bar *bar);

/* Leaves out roots from which some members cannot be reached within the bar: a breadth-first search
 * from each of a few members, for as many from roots. Then mgr_tree_may_root is false only for
 * roots with which mgr_tree_grow finds nothing, until the next call of this. Says whether any is
 * left. */
bool mgr_tree_sift(struct mgr_finder *f, const struct mgr_member *member, unsigned n,
	const struct mgr_bar *bar);
bool mgr_tree_may_root(const struct mgr_finder *f, unsigned root);

/* False: no root can have a tree within the bar, as a member's links, or the switches there, do not
 * pass. True says nothing. */
bool mgr_tree_possible(const struct mgr_finder *f, const struct mgr_member *member, unsigned n,
	const struct mgr_bar *bar);

/* The widest rate that members' links let pass, 0: one has none; in the bar's sense of a share. */
uint64_t mgr_tree_ceiling(const struct mgr_finder *f, const struct mgr_member *member, unsigned n,
	const struct mgr_bar *bar);

/* Endpoints of a group on a switch of the tree: its children and its parent. */
static inline unsigned mgr_tree_endpoints(const struct mgr_tree_sw *s)
{
	return s->n_children + (s->parent >= 0);
}

#endif
