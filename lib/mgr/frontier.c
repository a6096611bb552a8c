/* SPDX-License-Identifier: BSD-3-Clause */
/* The Pareto frontier of height and path width (EPIC 6.2). The widest tree of a height is found by
 * bisection over the widths that switches and links can have at all: a tree of width w is one over
 * those that have as much. Exact where memory does not depend on the number of endpoints (Modes II
 * and III, sums in any order); else a bound is searched with, and the tree found sized as it is. */
#include <errno.h>
#include <stdlib.h>

#include "lib/mgr/place_priv.h"

enum { LEAST_ENDPOINTS = 2 };

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int room_for_widths(struct mgr_place *p)
{
	unsigned n = mgr_graph_bound(p->g) + mgr_graph_link_bound(p->g) + 1;
	uint64_t *more;

	if (n <= p->width_room)
		return 0;
	more = realloc(p->width, n * sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	p->width = more;
	p->width_room = n;
	return 0;
}

/* Neighbours' widths are often the same. */
static void note(struct mgr_place *p, unsigned *n, uint64_t width)
{
	if (*n == 0 || p->width[*n - 1] != width)
		p->width[(*n)++] = width;
}

static unsigned sort_once(uint64_t *v, unsigned n)
{
	unsigned kept = 0;

	qsort(v, n, sizeof(v[0]), ascending);
	for (unsigned i = 0; i < n; i++) {
		if (v[i] > 0 && (kept == 0 || v[kept - 1] != v[i]))
			v[kept++] = v[i];
	}
	return kept;
}

/* All shares below this one that links between switches have, ascending. */
static unsigned inner_widths(struct mgr_place *p, const struct mgr_bar *bar, uint64_t below)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->n_roots; i++) {
		const struct mgr_edge *e;
		unsigned n_edges = mgr_graph_edges(p->g, p->root[i], &e);

		for (unsigned k = 0; k < n_edges; k++) {
			uint64_t share;

			if (e[k].peer < p->root[i] ||
				mgr_graph_node(p->g, e[k].peer)->kind != MGR_SWITCH)
				continue;
			share = mgr_link_share(p->f, &e[k], bar);
			if (share > bar->bps && share < below)
				note(p, &n, share);
		}
	}
	return sort_once(p->width, n);
}

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* All widths that a tree of this height can have, ascending. */
static unsigned widths(struct mgr_place *p, const struct mgr_bar *bar, uint64_t most,
	const struct mgr_shape *shape)
{
	unsigned n = 0;

	for (unsigned i = 0; i < mgr_graph_bound(p->g); i++) {
		const struct mgr_node *node = mgr_graph_node(p->g, i);
		const struct mgr_edge *e;
		unsigned n_edges = mgr_graph_edges(p->g, i, &e);

		for (unsigned k = 0; k < n_edges; k++) {
			/* Each link from the end with the lower index. */
			if (e[k].peer > i)
				note(p, &n, lower(mgr_link_share(p->f, &e[k], bar), most));
		}
		if (node != NULL && node->kind == MGR_SWITCH && node->modes & bar->mode)
			note(p, &n,
				lower(mgr_size_rate(shape, bar->mode, bar->max_height,
					      mgr_finder_free_bytes(p->f, i, bar->duty),
					      LEAST_ENDPOINTS),
					most));
	}
	return sort_once(p->width, n);
}

/* The first root, from the lowest tier up, with a tree within the bar, whose memory is for its bps.
 */
static int any_tree(
	struct mgr_place *p, const struct mgr_wish *wish, struct mgr_bar *bar, struct mgr_tree *out)
{
	unsigned n_roots;
	const unsigned *root = mgr_place_roots(p, &n_roots);
	struct mgr_size size;
	int rc = -ENOENT;

	if (mgr_size_for(&wish->shape, bar->mode, bar->max_height, bar->bps, &size))
		return -ENOENT;
	bar->bytes = mgr_size_bytes(&wish->shape, &size, LEAST_ENDPOINTS);
	if (!mgr_tree_possible(p->f, wish->member, wish->n_members, bar) ||
		!mgr_tree_sift(p->f, wish->member, wish->n_members, bar))
		return -ENOENT;
	for (unsigned i = 0; i < n_roots && rc == -ENOENT; i++) {
		if (mgr_tree_may_root(p->f, root[i]))
			rc = mgr_tree_grow(p->f, wish->member, wish->n_members, root[i], bar, out);
	}
	return rc;
}

/* The widest tree of those for which p->width has the widths, in the bar's bps or inner_bps:
 * whichever *what is. What is there already stays unless a wider one is found. */
static int bisect(struct mgr_place *p, const struct mgr_wish *wish, struct mgr_bar *bar,
	uint64_t *what, unsigned n, struct mgr_tree *best)
{
	unsigned low = 0, high = n; /* index: below low it works, from high on it does not */
	uint64_t found = *what;

	while (low < high) {
		unsigned mid = low + (high - low) / 2;
		struct mgr_tree tree;
		int rc;

		*what = p->width[mid];
		rc = any_tree(p, wish, bar, &tree);
		if (rc == -ENOMEM)
			return rc;
		if (rc) {
			high = mid;
			continue;
		}
		mgr_tree_free(best);
		*best = tree;
		found = p->width[mid];
		low = mid + 1;
	}
	*what = found;
	return 0;
}

static uint64_t widest_inner(struct mgr_place *p, const struct mgr_bar *bar)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < p->n_roots; i++) {
		const struct mgr_edge *e;
		unsigned n = mgr_graph_edges(p->g, p->root[i], &e);

		for (unsigned k = 0; k < n; k++) {
			uint64_t share = e[k].bps > most ? mgr_link_share(p->f, &e[k], bar) : 0;

			if (share > most && mgr_graph_node(p->g, e[k].peer)->kind == MGR_SWITCH)
				most = share;
		}
	}
	return most;
}

/* Of trees that are as wide, the one whose links between switches are shared least: hosts' links
 * are shared by groups of one job that often do not communicate at the same time. */
static int spread_out(struct mgr_place *p, const struct mgr_wish *wish, struct mgr_bar *bar,
	struct mgr_tree *best)
{
	uint64_t most;
	struct mgr_tree tree;
	int rc;

	if (best->n_sw == 1 || bar->promised)
		return 0;
	most = widest_inner(p, bar);
	if (most <= bar->bps)
		return 0;
	bar->inner_bps = most;
	rc = any_tree(p, wish, bar, &tree);
	if (rc == 0) {
		mgr_tree_free(best);
		*best = tree;
	} else if (rc == -ENOENT) {
		bar->inner_bps = 0;
		rc = bisect(p, wish, bar, &bar->inner_bps, inner_widths(p, bar, most), best);
	}
	bar->inner_bps = 0;
	return rc;
}

/* The widest tree that is no higher than the bar says, if it can be wider than that at all. */
static int widest(struct mgr_place *p, const struct mgr_wish *wish, struct mgr_bar *bar,
	uint64_t than, struct mgr_plan *plan)
{
	uint64_t most = mgr_tree_ceiling(p->f, wish->member, wish->n_members, bar);
	int rc;

	plan->tree = (struct mgr_tree){.n_sw = 0};
	if (wish->want_bps && wish->want_bps < most)
		most = wish->want_bps;
	if (most <= than)
		return -ENOENT;
	bar->bps = most; /* which is there more often than not */
	rc = any_tree(p, wish, bar, &plan->tree);
	if (rc == -ENOENT && most > 1) {
		bar->bps = 1; /* any at all? Often there is none of this height */
		rc = any_tree(p, wish, bar, &plan->tree);
		if (rc == 0)
			rc = bisect(p, wish, bar, &bar->bps, widths(p, bar, most, &wish->shape),
				&plan->tree);
	}
	if (rc == 0)
		rc = spread_out(p, wish, bar, &plan->tree);
	if (rc)
		mgr_plan_free(plan);
	return rc;
}

/* In the best mode. */
static int best_of_height(struct mgr_place *p, const struct mgr_wish *wish, unsigned height,
	unsigned duty, uint64_t than, struct mgr_plan *best)
{
	static const unsigned modes[] = {MGR_MODE_II, MGR_MODE_III, MGR_MODE_I};
	int found = -ENOENT;

	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct mgr_bar bar = {.max_tier = MGR_NO_TIER,
			.max_height = height,
			.mode = modes[i],
			.duty = duty,
			.promised = wish->promised};
		struct mgr_plan plan = {.duty = duty};
		int rc = wish->modes & bar.mode ? widest(p, wish, &bar, than, &plan) : -ENOENT;

		if (rc == -ENOMEM) {
			if (found == 0)
				mgr_plan_free(best);
			return rc;
		}
		if (rc)
			continue;
		if (!mgr_place_size(p, wish, &bar, &plan) ||
			(found == 0 && !mgr_plan_better(&plan, best, &wish->shape))) {
			mgr_plan_free(&plan);
			continue;
		}
		if (found == 0)
			mgr_plan_free(best);
		*best = plan;
		found = 0;
	}
	return found;
}

int mgr_place_frontier(struct mgr_place *p, const struct mgr_wish *wish, unsigned duty,
	struct mgr_plan plan[MGR_MAX_PLANS])
{
	int n = 0, rc = room_for_widths(p);

	for (unsigned height = 1; rc != -ENOMEM && height <= MGR_MAX_HEIGHT; height++) {
		rc = best_of_height(p, wish, height, duty, n ? plan[n - 1].goodput : 0, &plan[n]);
		if (rc)
			continue;
		if (n > 0 && plan[n].goodput <= plan[n - 1].goodput)
			mgr_plan_free(&plan[n]);
		else
			n++;
	}
	if (rc != -ENOMEM)
		return n;
	while (n > 0)
		mgr_plan_free(&plan[--n]);
	return rc;
}
