/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mgr/graph_priv.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

static bool name_ok(const char *name)
{
	return name[0] != '\0' && memchr(name, '\0', MGR_NAME_LEN) != NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Of a claim, or of a node or port that no claim has named: who is cabled to whom is known. */
static void changed(struct mgr_graph *g)
{
	g->stale = true;
	g->version++;
	if (g->n_strangers)
		g->unpaired = true;
}

uint64_t mgr_graph_work(const struct mgr_graph *g)
{
	return g->work;
}

uint64_t mgr_graph_version(const struct mgr_graph *g)
{
	return g->version;
}

struct mgr_graph *mgr_graph_new(void)
{
	return calloc(1, sizeof(struct mgr_graph));
}

static void nothing(void *node)
{
	(void)node;
}

static void free_node(struct mgr_node_entry *n)
{
	free(n->port);
	free(n);
}

void mgr_graph_free(struct mgr_graph *g)
{
	if (g == NULL)
		return;
	tdestroy(g->by_name, nothing);
	for (unsigned i = 0; i < g->n_nodes; i++) {
		if (g->node[i] != NULL)
			free_node(g->node[i]);
	}
	free(g->node);
	free(g->port);
	free(g->edge);
	free(g->queue);
	free(g);
}

struct mgr_node_entry *mgr_graph_entry(const struct mgr_graph *g, const char *name)
{
	struct mgr_node_entry *const *found = tfind(name, &g->by_name, by_name);

	return found ? *found : NULL;
}

int mgr_graph_port_of(const struct mgr_graph *g, const struct mgr_node_entry *n, const char *name)
{
	for (unsigned i = 0; i < n->n_ports; i++) {
		if (strcmp(g->port[n->port[i]].info.name, name) == 0)
			return (int)n->port[i];
	}
	return -ENOENT;
}

static struct mgr_node_entry *entry_at(const struct mgr_graph *g, unsigned node)
{
	return node < g->n_nodes ? g->node[node] : NULL;
}

/* Room for one more, twice as much as before; the array may move. */
static int grow(void **array, unsigned room, size_t each)
{
	void *more = realloc(*array, room * each);

	if (more == NULL)
		return -ENOMEM;
	*array = more;
	return 0;
}

static int node_place(struct mgr_graph *g)
{
	unsigned room = g->node_room ? 2 * g->node_room : FIRST_ROOM;

	for (unsigned i = 0; g->n_gone && i < g->n_nodes; i++) {
		g->work++;
		if (g->node[i] == NULL)
			return (int)i;
	}
	if (g->n_nodes == MGR_MAX_NODES)
		return -ENOSPC;
	if (g->n_nodes == g->node_room) {
		if (grow((void **)&g->node, room, sizeof(g->node[0])) ||
			grow((void **)&g->queue, room, sizeof(g->queue[0])))
			return -ENOMEM;
		g->node_room = room;
	}
	g->node[g->n_nodes] = NULL;
	g->n_gone++;
	return (int)g->n_nodes++;
}

static int add_node(struct mgr_graph *g, const struct mgr_node *info)
{
	int at = node_place(g);
	struct mgr_node_entry *n;

	if (at < 0)
		return at;
	n = calloc(1, sizeof(*n));
	if (n == NULL)
		return -ENOMEM;
	n->info = *info;
	n->index = (unsigned)at;
	if (tsearch(n, &g->by_name, by_name) == NULL) {
		free(n);
		return -ENOMEM;
	}
	g->node[at] = n;
	g->n_gone--;
	changed(g);
	return 1;
}

static bool node_ok(const struct mgr_node *n)
{
	if (!name_ok(n->name) || n->tier >= MGR_NO_TIER || n->modes & ~(unsigned)MGR_MODES)
		return false;
	return n->kind == MGR_SWITCH || (n->kind == MGR_HOST && n->tier == 0 && n->modes == 0);
}

static bool same_node(const struct mgr_node *a, const struct mgr_node *b)
{
	return a->up == b->up && a->tier == b->tier && a->modes == b->modes && a->sram == b->sram &&
	       a->groups == b->groups && a->boot == b->boot;
}

int mgr_graph_set_node(struct mgr_graph *g, const struct mgr_node *info)
{
	struct mgr_node_entry *n;
	bool at_rest;

	if (!node_ok(info))
		return -EINVAL;
	n = mgr_graph_entry(g, info->name);
	if (n == NULL)
		return add_node(g, info);
	if (n->info.kind != info->kind)
		return -EEXIST;
	if (same_node(&n->info, info))
		return 0;
	at_rest = n->info.tier == info->tier;
	n->info = *info;
	if (at_rest)
		mgr_graph_node_changed(g, n);
	else
		changed(g);
	return 1;
}

/* A free index: a port's that was removed, else the next. */
static int port_place(struct mgr_graph *g)
{
	unsigned room = g->port_room ? 2 * g->port_room : FIRST_ROOM;

	if (g->n_ports < g->port_room)
		return (int)g->n_ports++;
	for (unsigned i = 0; i < g->n_ports; i++) {
		if (g->port[i].node == MGR_NOBODY)
			return (int)i;
	}
	if (g->n_ports == MGR_MAX_PORTS)
		return -ENOSPC;
	if (grow((void **)&g->port, room, sizeof(g->port[0])) ||
		grow((void **)&g->edge, room, sizeof(g->edge[0])))
		return -ENOMEM;
	g->port_room = room;
	return (int)g->n_ports++;
}

static int add_port(struct mgr_graph *g, struct mgr_node_entry *n, const struct mgr_port *info)
{
	unsigned room = n->n_ports;
	int at;

	if (n->n_ports == MGR_MAX_NODE_PORTS)
		return -ENOSPC;
	/* Powers of two are when it is full. */
	if ((room & (room - 1)) == 0 &&
		grow((void **)&n->port, room ? 2 * room : 1, sizeof(n->port[0])))
		return -ENOMEM;
	at = port_place(g);
	if (at < 0)
		return at;
	g->port[at] = (struct mgr_port_entry){
		.info = *info, .node = (int)n->index, .named = MGR_NOBODY, .peer = MGR_NOBODY};
	for (room = n->n_ports++; room > 0 && n->port[room - 1] > (unsigned)at; room--)
		n->port[room] = n->port[room - 1];
	n->port[room] = (unsigned)at;
	changed(g);
	return 1;
}

int mgr_graph_set_port(struct mgr_graph *g, unsigned node, const struct mgr_port *info)
{
	struct mgr_node_entry *n = entry_at(g, node);
	struct mgr_port *p;
	int at;

	if (n == NULL)
		return -ENOENT;
	if (!name_ok(info->name))
		return -EINVAL;
	at = mgr_graph_port_of(g, n, info->name);
	if (at < 0)
		return add_port(g, n, info);
	p = &g->port[at].info;
	if (p->bps == info->bps && p->up == info->up)
		return 0;
	*p = *info;
	mgr_graph_port_changed(g, (unsigned)at);
	return 1;
}

bool mgr_graph_has_port(const struct mgr_graph *g, unsigned node, const char *port)
{
	const struct mgr_node_entry *n = entry_at(g, node);

	return n != NULL && mgr_graph_port_of(g, n, port) >= 0;
}

int mgr_graph_claim(struct mgr_graph *g, unsigned node, const char *port, const char *peer_node,
	const char *peer_port)
{
	struct mgr_node_entry *n = entry_at(g, node);
	struct mgr_claim claim = {"", ""};
	int at = n ? mgr_graph_port_of(g, n, port) : -ENOENT;

	if (at < 0)
		return at;
	if ((peer_node == NULL) != (peer_port == NULL))
		return -EINVAL;
	if (peer_node != NULL) {
		size_t a = strnlen(peer_node, MGR_NAME_LEN), b = strnlen(peer_port, MGR_NAME_LEN);

		if (a == 0 || b == 0 || a == MGR_NAME_LEN || b == MGR_NAME_LEN ||
			(strcmp(peer_node, n->info.name) == 0 && strcmp(peer_port, port) == 0))
			return -EINVAL;
		memcpy(claim.node, peer_node, a);
		memcpy(claim.port, peer_port, b);
	}
	if (memcmp(&g->port[at].claim, &claim, sizeof(claim)) == 0)
		return 0;
	g->port[at].claim = claim;
	changed(g);
	mgr_graph_claim_changed(g, (unsigned)at);
	return 1;
}

int mgr_graph_remove(struct mgr_graph *g, unsigned node)
{
	struct mgr_node_entry *n = entry_at(g, node);

	if (n == NULL)
		return -ENOENT;
	for (unsigned i = 0; i < n->n_ports; i++)
		g->port[n->port[i]].node = MGR_NOBODY;
	tdelete(n->info.name, &g->by_name, by_name);
	free_node(n);
	g->node[node] = NULL;
	g->n_gone++;
	changed(g);
	g->unpaired = true;
	return 1;
}

int mgr_graph_find(const struct mgr_graph *g, const char *name)
{
	const struct mgr_node_entry *n = mgr_graph_entry(g, name);

	return n ? (int)n->index : -ENOENT;
}

unsigned mgr_graph_bound(const struct mgr_graph *g)
{
	return g->n_nodes;
}

unsigned mgr_graph_link_bound(const struct mgr_graph *g)
{
	return g->n_ports;
}

const struct mgr_node *mgr_graph_node(const struct mgr_graph *g, unsigned node)
{
	const struct mgr_node_entry *n = entry_at(g, node);

	return n ? &n->info : NULL;
}

const struct mgr_port *mgr_graph_port(const struct mgr_graph *g, unsigned port)
{
	return port < g->n_ports && g->port[port].node != MGR_NOBODY ? &g->port[port].info : NULL;
}
