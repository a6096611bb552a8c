/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipeline as it is registered: stages from the graph, views from their nodes. */
#include <errno.h>
#include <string.h>

#include "dataplane/sw.h"
#include "dataplane/views.h"

static_assert(SW_STAGE_EDGES >= (int)GRAPH_MAX_EDGES, "all of a node's edges");

struct wanted {
	const char *node;
	uint64_t packets;
};

static void match(void *arg, const char *node, uint64_t calls, uint64_t packets, uint64_t cycles)
{
	struct wanted *w = arg;

	(void)calls, (void)cycles;
	if (strcmp(node, w->node) == 0)
		w->packets = packets;
}

int sw_stage_get(struct sw *sw, unsigned i, struct sw_stage *stage)
{
	struct graph_stage stages[GRAPH_MAX_NODES];
	/* All workers' graphs are alike. */
	const unsigned n = graph_stages(sw->worker[0], stages);
	struct wanted wanted;

	if (i >= n)
		return -ENOENT;
	wanted = (struct wanted){.node = stages[i].name};
	sw_nodes(sw, match, &wanted);
	*stage = (struct sw_stage){
		.name = stages[i].name, .n_next = stages[i].n_next, .packets = wanted.packets};
	memcpy(stage->next, stages[i].next, stage->n_next * sizeof(stage->next[0]));
	return 0;
}

/* ---- views ---- */

static void endpoints(const struct sw *sw, struct sw_view *view)
{
	for (unsigned slot = 1; slot < INC_GROUP_SLOTS; slot++) {
		const struct inc_group *g = sw->groups->group[slot];

		if (g == NULL || g->mode == INC_MODE_1)
			continue;
		view->entries += g->n_ep;
		view->hits += g->count[INC_C_RX];
	}
}

static void connections(const struct sw *sw, struct sw_view *view)
{
	const struct nr_clt *clt = atomic_load(&sw->clt);

	view->entries = clt != NULL ? clt->n : 0;
	for (unsigned i = 0; i < NR_MAX_RINGS; i++)
		if (sw->ring[i] != NULL)
			view->hits += sw->ring[i]->count[NR_C_RX];
}

static void addresses(const struct sw *sw, struct sw_view *view)
{
	view->entries = sw_bridge_learnt(sw);
	for (unsigned i = 0; i < sw->n_workers; i++)
		view->hits += sw->worker[i]->bridge_hits;
}

static const struct {
	const struct table_desc *desc;
	void (*fill)(const struct sw *sw, struct sw_view *view);
} views[] = {
	{&inc_endpoint_view, endpoints},
	{&nr_connection_view, connections},
	{&mac_learnt_view, addresses},
};

int sw_view_get(const struct sw *sw, unsigned i, struct sw_view *view)
{
	if (i >= RTE_DIM(views))
		return -ENOENT;
	*view = (struct sw_view){.desc = views[i].desc};
	views[i].fill(sw, view);
	return 0;
}
