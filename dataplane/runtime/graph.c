/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/runtime/graph.h"

#include <errno.h>
#include <rte_errno.h>
#include <stdio.h>

#include "dataplane/runtime/node.h"

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
	/* The source; the others follow from its edges. */
	static const char *patterns[] = {"port_rx"};
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
