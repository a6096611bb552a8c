/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DATAPLANE_GRAPH_H
#define DATAPLANE_GRAPH_H

#include "dataplane/lcore.h"

/* Makes the graph of a worker (lc->graph) and its statistics. One worker's graph at a time, named
 * "lcoreN". -errno with DPDK's rte_errno. */
int graph_create(struct lcore *lc, unsigned index, struct rte_graph_cluster_stats **stats);
void graph_destroy(struct lcore *lc, struct rte_graph_cluster_stats *stats);

typedef void (*graph_node_fn)(
	void *arg, const char *node, uint64_t calls, uint64_t packets, uint64_t cycles);
void graph_nodes(struct rte_graph_cluster_stats *stats, graph_node_fn fn, void *arg);

#endif
