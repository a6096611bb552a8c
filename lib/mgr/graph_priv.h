/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of lib/mgr/graph.c and graph_links.c. */
#ifndef MGR_GRAPH_PRIV_H
#define MGR_GRAPH_PRIV_H

#include "lib/mgr/graph.h"

enum { MGR_NOBODY = -1, MGR_STRANGER = -2 }; /* in peer and named */

struct mgr_claim {
	char node[MGR_NAME_LEN]; /* "": none */
	char port[MGR_NAME_LEN];
};

struct mgr_node_entry {
	struct mgr_node info; /* the name comes first: tsearch compares these */
	unsigned index, n_ports;
	unsigned *port;                     /* indices, ascending */
	unsigned tier, first_edge, n_edges; /* worked out */
};

struct mgr_port_entry {
	struct mgr_port info;
	int node; /* MGR_NOBODY: free */
	struct mgr_claim claim;
	/* Worked out. */
	int named; /* the port that this one says it is cabled to */
	int peer;
	unsigned n_namers; /* ports that name this one */
};

struct mgr_graph {
	void *by_name; /* tsearch */
	struct mgr_node_entry **node;
	unsigned n_nodes, node_room;
	struct mgr_port_entry *port;
	unsigned n_ports, port_room;
	struct mgr_edge *edge; /* as many as ports */
	unsigned *queue;       /* as many as nodes */
	uint64_t version, work;
	unsigned n_gone;      /* indices of nodes below n_nodes that are nobody's */
	unsigned n_strangers; /* claims that name no port, while not unpaired */
	bool unpaired; /* who is cabled to whom is to be worked out, and what follows is stale */
	bool stale;    /* nodes' links and tiers are */
};

/* A port's claim is another one, or the port is new: who is cabled to whom follows at once, without
 * a look at all the others, but for claims that named what was not there. */
void mgr_graph_claim_changed(struct mgr_graph *g, unsigned port);

/* NULL: no such name. */
struct mgr_node_entry *mgr_graph_entry(const struct mgr_graph *g, const char *name);
/* Speed or state of a port, or the state of a node, is another one: who is cabled to whom is not
 * worked out again for that. */
void mgr_graph_port_changed(struct mgr_graph *g, unsigned port);
void mgr_graph_node_changed(struct mgr_graph *g, const struct mgr_node_entry *node);

/* -ENOENT */
int mgr_graph_port_of(
	const struct mgr_graph *g, const struct mgr_node_entry *node, const char *port);

#endif
