/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a group's tree goes and what it gets there (EPIC 6.2, appendix G): policies name
 * candidates, placing takes the one that the job likes best and writes it into the book, or says
 * why there is none. Policies change nothing and are chosen by name. One owner, no clock, no I/O;
 * heap for trees. */
#ifndef MGR_POLICY_H
#define MGR_POLICY_H

#include "lib/mgr/tree.h"

enum { MGR_MAX_PLANS = 16 };

/* What a job asks for. */
struct mgr_wish {
	const struct mgr_member *member; /* one per rank */
	unsigned n_members;
	struct mgr_shape shape;
	unsigned modes;       /* that ranks' devices can do */
	uint64_t want_bps;    /* more is of no use; 0: as much as there is */
	uint64_t least_bps;   /* below it the network is of no use */
	bool promised;        /* the rate is promised on every link, not an equal share of it */
	unsigned duty;        /* share of the time in which it communicates, 1 to MGR_DUTY */
	bool low;             /* the lowest tree before the widest: latency before throughput */
	bool turns;           /* memory that is shared is for windows of the cycle (book.h) */
	const uint64_t *most; /* bytes that it may get, by node, whatever is free; NULL: all */
};

/* A tree with what it needs. */
struct mgr_plan {
	struct mgr_tree tree;
	struct mgr_size size;
	uint64_t bps; /* path width: what links and memory let through, at most what is wanted */
	uint64_t goodput; /* of it, with the fabric's loss */
	unsigned duty;    /* by which memory is shared; MGR_DUTY: not */
	bool whole;
	struct mgr_window window; /* of memory that is shared, if the wish has turns */
};

enum mgr_why {
	MGR_WHY_OK,
	MGR_WHY_RANKS,   /* fewer than two, or too many */
	MGR_WHY_HOST,    /* a rank's host is not known, down, or has no link that is up */
	MGR_WHY_MODE,    /* no mode that the ranks can do is offered on a common tree */
	MGR_WHY_TREE,    /* no switch is reachable by all */
	MGR_WHY_LINKS,   /* rates, or (EDT) links, are promised to others */
	MGR_WHY_MEMORY,  /* memory or groups are */
	MGR_WHY_WIDTH,   /* what could be had is less than least_bps */
	MGR_WHY_NO_ROOM, /* of the manager itself: its own memory, or MGR_MAX_PROMISES */
	MGR_WHY_DEVICE,  /* the ranks' devices have no mode in common */
	MGR_WHY_POLICY,  /* EDT: links of every tree are taken; another policy would share them */
	MGR_WHY_OWNER,   /* memory that its owner may have is all promised to its other jobs */
	MGR_WHYS         /* written down by number: new ones come last */
};

struct mgr_place;

/* A policy: pure but for the heap. Fills up to MGR_MAX_PLANS plans of this wish, lowest tree first,
 * and returns how many (0: none), or -ENOMEM. The wish is checked. */
struct mgr_policy {
	const char *name;
	bool whole;  /* trees share no link */
	bool shared; /* memory is shared by duty */
	int (*candidates)(struct mgr_place *p, const struct mgr_wish *wish,
		struct mgr_plan plan[MGR_MAX_PLANS]);
};

/* Edge-disjoint trees: no link has two; the lowest level at which switches reach all members
 * without going higher; memory is bound afterwards. */
extern const struct mgr_policy mgr_policy_edt;
/* Spatial multiplexing: the Pareto frontier of height and path width; memory is the group's own. */
extern const struct mgr_policy mgr_policy_spatial;
/* Temporal multiplexing: the same, with memory and rates shared by duty. */
extern const struct mgr_policy mgr_policy_temporal;

/* By name; NULL: none. */
const struct mgr_policy *mgr_policy_find(const char *name);

/* Both outlive it. NULL without memory. */
struct mgr_place *mgr_place_new(struct mgr_graph *g, struct mgr_book *b);
void mgr_place_free(struct mgr_place *p);

/* Finds a plan and reserves what it needs, until the deadline unless committed. 0; *plan is the
 * caller's, freed with mgr_plan_free. -EINVAL: the wish is malformed. -ENOENT: *why says why not.
 * What has changed in the graph is brought into the book first. */
int mgr_place_group(struct mgr_place *p, const struct mgr_policy *policy,
	const struct mgr_wish *wish, uint64_t deadline, struct mgr_plan *plan, mgr_promise *promise,
	enum mgr_why *why);
void mgr_plan_free(struct mgr_plan *plan);

/* Writes a plan that was reserved before the book was made into it, as mgr_book_restore. */
int mgr_place_restore(struct mgr_place *p, const struct mgr_shape *shape, bool promised,
	const struct mgr_plan *plan, mgr_promise *promise);

/* Bytes on the switches of a plan, together. */
uint64_t mgr_plan_bytes(const struct mgr_plan *plan, const struct mgr_shape *shape);

/* One line, at most len bytes with the NUL: tree, mode, switches (as many names as fit into 80
 * bytes), bytes; or why not, and what would have to change. */
void mgr_plan_line(const struct mgr_place *p, const struct mgr_wish *wish,
	const struct mgr_plan *plan, char *line, unsigned len);
const char *mgr_why_line(enum mgr_why why);

/* For policies. */

struct mgr_finder *mgr_place_finder(struct mgr_place *p);
/* Switches that are up, by ascending tier; *n of them, until the next change of the graph. */
const unsigned *mgr_place_roots(struct mgr_place *p, unsigned *n);
unsigned mgr_place_tier(struct mgr_place *p, unsigned node);

/* What the plan's tree gives in the bar's mode: fills all but the tree. False: nothing, or less
 * than the wish's least. */
bool mgr_place_size(struct mgr_place *p, const struct mgr_wish *wish, const struct mgr_bar *bar,
	struct mgr_plan *plan);

/* Whether a is better than b: more goodput, or as much with less memory. */
bool mgr_plan_better(
	const struct mgr_plan *a, const struct mgr_plan *b, const struct mgr_shape *shape);

/* For each height the tree and mode with most goodput, if that is more than lower ones have. */
int mgr_place_frontier(struct mgr_place *p, const struct mgr_wish *wish, unsigned duty,
	struct mgr_plan plan[MGR_MAX_PLANS]);

#endif
