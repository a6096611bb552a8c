/* SPDX-License-Identifier: BSD-3-Clause */
/* A group that was read: who is where in its tree, its end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/ccl/group.h"

static int by_min_rank(const void *a, const void *b)
{
	const struct ccl_child *x = a, *y = b;

	return (x->min_rank > y->min_rank) - (x->min_rank < y->min_rank);
}

unsigned ccl_group_order(struct ccl_group *g, unsigned i)
{
	struct ccl_switch *sw = &g->sw[i];

	for (unsigned c = 0; c < sw->n_children; c++) {
		struct ccl_child *child = &sw->child[c];

		child->min_rank = child->host ? child->index : ccl_group_order(g, child->index);
	}
	qsort(sw->child, sw->n_children, sizeof(*sw->child), by_min_rank);
	sw->min_rank = sw->child[0].min_rank;
	return sw->min_rank;
}

unsigned ccl_group_first_hop(const struct ccl_group *g, unsigned rank)
{
	for (unsigned i = 0; i < g->n_switches; i++)
		for (unsigned c = 0; c < g->sw[i].n_children; c++)
			if (g->sw[i].child[c].host && g->sw[i].child[c].index == rank)
				return i;
	return g->root; /* cannot be: check_tree has placed every rank */
}

static void add_ranks(const struct ccl_group *g, const struct ccl_child *child, uint8_t *has)
{
	if (child->host) {
		has[child->index] = 1;
		return;
	}
	for (unsigned c = 0; c < g->sw[child->index].n_children; c++)
		add_ranks(g, &g->sw[child->index].child[c], has);
}

json_t *ccl_group_ranks_below(const struct ccl_group *g, const struct ccl_child *child)
{
	uint8_t *has = calloc(g->n_ranks, 1);
	json_t *list = json_array();

	if (!has || !list) {
		free(has);
		json_decref(list);
		return NULL;
	}
	add_ranks(g, child, has);
	for (unsigned r = 0; r < g->n_ranks; r++)
		if (has[r])
			json_array_append_new(list, json_integer((json_int_t)r));
	free(has);
	return list;
}

void ccl_group_take_ring(struct ccl_group *own)
{
	snprintf(own->mode, sizeof(own->mode), "ring");
	own->mode_id = CCL_MODE_RING;
}

void ccl_group_drop_tree(struct ccl_group *own)
{
	for (unsigned i = 0; i < own->n_switches; i++)
		free(own->sw[i].child);
	free(own->sw);
	own->sw = NULL;
	own->n_switches = 0;
}

int ccl_group_set_timeout(struct ccl_group *g, uint64_t timeout_ns)
{
	if (timeout_ns < 1000000 || timeout_ns > 3600000000000)
		return -EINVAL;
	g->timeout_ns = timeout_ns;
	return 0;
}

void ccl_group_free(struct ccl_group *g)
{
	if (!g)
		return;
	ccl_group_drop_tree(g);
	free(g->rank_ip);
	json_decref(g->flags);
	free(g);
}
