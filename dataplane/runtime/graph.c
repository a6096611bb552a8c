/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/runtime/graph.h"

#include <assert.h>
#include <errno.h>
#include <rte_errno.h>
#include <stdio.h>

#include "dataplane/runtime/node.h"

/* The others follow from its edges. */
static const char source[] = "port_rx";

/* Node constructors have no argument of ours. */
static struct worker *building;

static struct {
	graph_node_fn fn;
	void *arg;
} reader;

int node_init(const struct rte_graph *graph, struct rte_node *node)
{
	(void)graph;
	memcpy(node->ctx, &building, sizeof(building));
	return 0;
}

static int one_node(
	bool is_first, bool is_last, void *cookie, const struct rte_graph_cluster_node_stats *stats)
{
	(void)is_first;
	(void)is_last;
	(void)cookie;
	reader.fn(reader.arg, stats->name, stats->calls, stats->objs, stats->cycles);
	return 0;
}

int graph_create(struct worker *w)
{
	static const char *patterns[] = {source};
	struct rte_graph_param param = {
		.socket_id = SOCKET_ID_ANY,
		.nb_node_patterns = 1,
		.node_patterns = patterns,
	};
	char name[RTE_GRAPH_NAMESIZE];

	snprintf(name, sizeof(name), "worker%u", w->index);
	building = w;
	if (rte_graph_create(name, &param) == RTE_GRAPH_ID_INVALID)
		return rte_errno ? -rte_errno : -EINVAL;
	w->graph = rte_graph_lookup(name);
	return 0;
}

void graph_destroy(struct worker *w)
{
	if (w->graph != NULL)
		rte_graph_destroy(rte_graph_from_name(w->graph->name));
	w->graph = NULL;
}

int graph_stats_create(struct rte_graph_cluster_stats **stats)
{
	static const char *graphs[] = {"worker*"};
	struct rte_graph_cluster_stats_param param = {
		.socket_id = SOCKET_ID_ANY,
		.fn = one_node,
		.nb_graph_patterns = 1,
		.graph_patterns = graphs,
	};

	*stats = rte_graph_cluster_stats_create(&param);
	return *stats ? 0 : -ENOMEM;
}

void graph_nodes(struct rte_graph_cluster_stats *stats, graph_node_fn fn, void *arg)
{
	reader.fn = fn;
	reader.arg = arg;
	rte_graph_cluster_stats_get(stats, false);
}

/* ---- its order ---- */

struct walk {
	unsigned n_seen, n_done;
	const struct rte_node *seen[GRAPH_MAX_NODES];
	const struct rte_node *done[GRAPH_MAX_NODES]; /* each behind all that come after it */
};

/* Depth first, the last edge first: so what is done last is the source, then its first edge. */
static void visit(struct walk *walk, const struct rte_node *node)
{
	for (unsigned i = 0; i < walk->n_seen; i++)
		if (walk->seen[i] == node)
			return;
	assert(walk->n_seen < GRAPH_MAX_NODES && node->nb_edges <= GRAPH_MAX_EDGES);
	walk->seen[walk->n_seen++] = node;
	for (unsigned i = node->nb_edges; i > 0; i--)
		visit(walk, node->nodes[i - 1]);
	walk->done[walk->n_done++] = node;
}

unsigned graph_stages(const struct worker *w, struct graph_stage stages[GRAPH_MAX_NODES])
{
	struct walk walk = {0};

	visit(&walk, rte_graph_node_get_by_name(w->graph->name, source));
	for (unsigned i = 0; i < walk.n_done; i++) {
		const struct rte_node *node = walk.done[walk.n_done - 1 - i];

		stages[i] = (struct graph_stage){.name = node->name, .n_next = node->nb_edges};
		for (unsigned k = 0; k < node->nb_edges; k++)
			stages[i].next[k] = node->nodes[k]->name;
	}
	return walk.n_done;
}
