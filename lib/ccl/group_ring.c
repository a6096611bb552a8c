/* SPDX-License-Identifier: BSD-3-Clause */
/* One of several parallel rings, cut out of the tree of its group. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/group.h"

enum { SUFFIX_LEN = 4 }; /* ".r63" */

int ccl_group_check_rings(const struct ccl_group *g, char err[CCL_ERR_LEN])
{
	const char *why = NULL;

	if (g->rings == 1)
		return 0;
	if (g->mode_id != CCL_MODE_NETREDUCE)
		why = "are for mode netreduce";
	else if (g->n_ranks % g->rings || g->n_ranks / g->rings < 2)
		why = "must divide the number of ranks, into two nodes or more";
	else if (g->collectives_given &&
		 (g->collectives & ~(1u << CCL_ALLREDUCE | 1u << CCL_BARRIER)))
		why = "are for \"collectives\" allreduce and barrier";
	else if (strlen(g->name) + SUFFIX_LEN >= sizeof(g->name))
		why = "are named after the group, whose name must have at most 27 bytes for that";
	if (!why)
		return 0;
	snprintf(err, CCL_ERR_LEN, "rings: %u %s", g->rings, why);
	return -EINVAL;
}

void ccl_group_ring_name(const struct ccl_group *g, unsigned i, char name[CCL_NAME_LEN])
{
	if (g->rings > 1)
		snprintf(name, CCL_NAME_LEN, "%.*s.r%u", CCL_NAME_LEN - SUFFIX_LEN - 1, g->name, i);
	else
		snprintf(name, CCL_NAME_LEN, "%s", g->name);
}

struct cut {
	const struct ccl_group *from;
	struct ccl_group *ring;
	unsigned index; /* of the ring: the place in a node */
};

static int cut_switch(struct cut *cut, unsigned i, struct ccl_child *as, bool *any);

/* What is left of a child. */
static int cut_child(
	struct cut *cut, const struct ccl_child *child, struct ccl_child *as, bool *any)
{
	const unsigned step = cut->from->rings;

	if (!child->host)
		return cut_switch(cut, child->index, as, any);
	*any = child->index % step == cut->index;
	*as = (struct ccl_child){.host = true, .index = child->index / step};
	return 0;
}

static void add_switch(struct cut *cut, unsigned i, struct ccl_child *child, unsigned n)
{
	struct ccl_group *ring = cut->ring;
	const unsigned k = ring->n_switches++;

	ring->sw[k] = cut->from->sw[i];
	ring->sw[k].parent = -1;
	ring->sw[k].child = child;
	ring->sw[k].n_children = n;
	for (unsigned c = 0; c < n; c++)
		if (!child[c].host)
			ring->sw[child[c].index].parent = (int)k;
	ring->root = k; /* the last one is above all others */
}

/* As a child of who is above: itself, or the only one that is left below it. */
static int cut_switch(struct cut *cut, unsigned i, struct ccl_child *as, bool *any)
{
	const struct ccl_switch *sw = &cut->from->sw[i];
	struct ccl_child *child = calloc(sw->n_children, sizeof(*child));
	unsigned n = 0;
	int rc = child ? 0 : -ENOMEM;

	for (unsigned c = 0; rc == 0 && c < sw->n_children; c++) {
		bool some = false;

		rc = cut_child(cut, &sw->child[c], &child[n], &some);
		memcpy(child[n].port, sw->child[c].port, sizeof(child[n].port));
		n += rc == 0 && some;
	}
	*any = n > 0;
	if (n > 0)
		*as = child[0];
	if (rc || n < 2) {
		free(child);
		return rc;
	}
	*as = (struct ccl_child){.index = cut->ring->n_switches};
	add_switch(cut, i, child, n);
	return 0;
}

int ccl_group_ring(const struct ccl_group *g, unsigned i, struct ccl_group **out)
{
	struct ccl_group *ring = malloc(sizeof(*ring));
	struct cut cut = {g, ring, i};
	struct ccl_child root;
	bool any;
	int rc;

	if (!ring)
		return -ENOMEM;
	*ring = *g;
	ring->flags = json_incref(g->flags);
	ring->rings = 1;
	ring->n_ranks = g->n_ranks / g->rings;
	ring->of.first = i;
	ring->of.step = g->rings;
	ccl_group_ring_name(g, i, ring->name);
	ring->n_switches = 0;
	ring->sw = calloc(g->n_switches, sizeof(*ring->sw));
	ring->rank_ip = calloc(ring->n_ranks, sizeof(*ring->rank_ip));
	rc = ring->sw && ring->rank_ip ? cut_switch(&cut, g->root, &root, &any) : -ENOMEM;
	if (rc) {
		ccl_group_free(ring);
		return rc;
	}
	for (unsigned r = 0; r < ring->n_ranks; r++)
		ring->rank_ip[r] = g->rank_ip[i + r * g->rings];
	ccl_group_order(ring, ring->root);
	*out = ring;
	return 0;
}
