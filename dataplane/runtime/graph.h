/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DATAPLANE_GRAPH_H
#define DATAPLANE_GRAPH_H

#include "dataplane/runtime/worker.h"

/* Makes the graph of a worker (w->graph), named "workerN". -errno with DPDK's rte_errno. */
int graph_create(struct worker *w);
void graph_destroy(struct worker *w);

/* Statistics by node, summed over the graphs of all workers, which exist. -ENOMEM. */
int graph_stats_create(struct rte_graph_cluster_stats **stats);

typedef void (*graph_node_fn)(
	void *arg, const char *node, uint64_t calls, uint64_t packets, uint64_t cycles);
void graph_nodes(struct rte_graph_cluster_stats *stats, graph_node_fn fn, void *arg);

enum { GRAPH_MAX_NODES = 64, GRAPH_MAX_EDGES = 16 };

struct graph_stage {
	const char *name;
	unsigned n_next;
	const char *next[GRAPH_MAX_EDGES]; /* nodes, in the order of its edges */
};

/* The nodes of a worker's graph in an order in which packets pass them: each before those that it
 * gives packets to, but for ways back. Returns how many there are; the names live as the graph. */
unsigned graph_stages(const struct worker *w, struct graph_stage stages[GRAPH_MAX_NODES]);

#endif
