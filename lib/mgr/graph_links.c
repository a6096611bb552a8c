/* SPDX-License-Identifier: BSD-3-Clause */
/* Links, tiers and conflicts: worked out from what nodes and sources have said. */
#include "lib/mgr/graph_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The port that a claim names. */
static int claimed(const struct mgr_graph *g, const struct mgr_claim *claim)
{
	const struct mgr_node_entry *n = mgr_graph_entry(g, claim->node);
	int at = n ? mgr_graph_port_of(g, n, claim->port) : -ENOENT;

	return at < 0 ? MGR_STRANGER : at;
}

static int named_by(const struct mgr_graph *g, const struct mgr_port_entry *p)
{
	return p->node == MGR_NOBODY || p->claim.node[0] == '\0' ? MGR_NOBODY
								 : claimed(g, &p->claim);
}

static void name_peers(struct mgr_graph *g)
{
	g->n_strangers = 0;
	for (unsigned i = 0; i < g->n_ports; i++)
		g->port[i].n_namers = 0;
	for (unsigned i = 0; i < g->n_ports; i++) {
		struct mgr_port_entry *p = &g->port[i];

		p->named = named_by(g, p);
		if (p->named >= 0)
			g->port[p->named].n_namers++;
		g->n_strangers += p->named == MGR_STRANGER;
	}
}

/* The link that a port's claim makes. */
static void pair_one(struct mgr_graph *g, unsigned i)
{
	struct mgr_port_entry *p = &g->port[i], *q;

	if (p->named < 0)
		return;
	q = &g->port[p->named];
	if (q->named == (int)i || (q->named == MGR_NOBODY && q->n_namers == 1)) {
		p->peer = p->named;
		q->peer = (int)i;
	}
}

static void pair(struct mgr_graph *g)
{
	for (unsigned i = 0; i < g->n_ports; i++)
		g->port[i].peer = MGR_NOBODY;
	for (unsigned i = 0; i < g->n_ports; i++)
		pair_one(g, i);
}

static void part(struct mgr_graph *g, unsigned i)
{
	const int peer = g->port[i].peer;

	if (peer < 0)
		return;
	g->port[i].peer = g->port[peer].peer = MGR_NOBODY;
}

/* How many name a port that names nobody decides whether one of them has it: which one that is only
 * a look at all tells. */
static bool is_simple(const struct mgr_graph *g, int named)
{
	return named < 0 || g->port[named].n_namers == 0;
}

void mgr_graph_claim_changed(struct mgr_graph *g, unsigned port)
{
	struct mgr_port_entry *p = &g->port[port];
	const int was = p->named;

	if (g->unpaired)
		return;
	g->work++;
	g->n_strangers -= was == MGR_STRANGER;
	part(g, port);
	if (was >= 0) {
		part(g, (unsigned)was);
		g->port[was].n_namers--;
	}
	if (!is_simple(g, was) || p->n_namers > 1)
		g->unpaired = true;
	p->named = named_by(g, p);
	g->n_strangers += p->named == MGR_STRANGER;
	if (p->named >= 0) {
		if (g->port[p->named].n_namers++ > 0)
			g->unpaired = true;
		part(g, (unsigned)p->named);
	}
	if (g->unpaired)
		return;
	pair_one(g, port);
	if (was >= 0)
		pair_one(g, (unsigned)was);
	if (p->named >= 0)
		pair_one(g, (unsigned)p->named);
	/* Who alone names this port, which may have named another until now. */
	if (p->n_namers == 1 && p->peer < 0)
		g->unpaired = true;
}

static uint64_t slower(const struct mgr_port_entry *p, const struct mgr_port_entry *q)
{
	return p->info.bps < q->info.bps ? p->info.bps : q->info.bps;
}

static bool link_up(
	const struct mgr_graph *g, const struct mgr_port_entry *p, const struct mgr_port_entry *q)
{
	return p->info.up && q->info.up && g->node[p->node]->info.up && g->node[q->node]->info.up;
}

static void list_edges(struct mgr_graph *g)
{
	unsigned at = 0;

	for (unsigned i = 0; i < g->n_nodes; i++) {
		struct mgr_node_entry *n = g->node[i];

		if (n == NULL)
			continue;
		n->first_edge = at;
		for (unsigned k = 0; k < n->n_ports; k++) {
			unsigned port = n->port[k];
			const struct mgr_port_entry *p = &g->port[port], *q;

			if (p->peer < 0)
				continue;
			q = &g->port[p->peer];
			g->edge[at++] = (struct mgr_edge){.peer = (unsigned)q->node,
				.link = port < (unsigned)p->peer ? port : (unsigned)p->peer,
				.bps = slower(p, q),
				.up = link_up(g, p, q)};
		}
		n->n_edges = at - n->first_edge;
	}
}

/* Breadth first from all hosts at once; what is given stays, and counts for those above. */
static void find_tiers(struct mgr_graph *g)
{
	unsigned head = 0, tail = 0;

	for (unsigned i = 0; i < g->n_nodes; i++) {
		struct mgr_node_entry *n = g->node[i];

		if (n == NULL)
			continue;
		n->tier = n->info.kind == MGR_HOST ? 0 : MGR_NO_TIER;
		if (n->tier == 0)
			g->queue[tail++] = i;
	}
	while (head < tail) {
		const struct mgr_node_entry *n = g->node[g->queue[head++]];

		for (unsigned k = 0; k < n->n_edges; k++) {
			struct mgr_node_entry *up = g->node[g->edge[n->first_edge + k].peer];

			if (up->tier != MGR_NO_TIER)
				continue;
			up->tier = n->tier + 1 < MGR_NO_TIER ? n->tier + 1 : MGR_NO_TIER - 1;
			g->queue[tail++] = up->index;
		}
	}
	for (unsigned i = 0; i < g->n_nodes; i++) {
		if (g->node[i] != NULL && g->node[i]->info.tier != 0)
			g->node[i]->tier = g->node[i]->info.tier;
	}
}

static void work_out_pairs(struct mgr_graph *g)
{
	if (!g->unpaired)
		return;
	g->work += g->n_ports;
	name_peers(g);
	pair(g);
	g->unpaired = false;
}

static void work_out(struct mgr_graph *g)
{
	work_out_pairs(g);
	if (!g->stale)
		return;
	g->work += g->n_ports + g->n_nodes;
	list_edges(g);
	find_tiers(g);
	g->stale = false;
}

static void set_edges(struct mgr_graph *g, int node, unsigned link, uint64_t bps, bool up)
{
	const struct mgr_node_entry *n = g->node[node];

	for (unsigned i = 0; i < n->n_edges; i++) {
		struct mgr_edge *e = &g->edge[n->first_edge + i];

		if (e->link == link) {
			e->bps = bps;
			e->up = up;
		}
	}
}

void mgr_graph_port_changed(struct mgr_graph *g, unsigned port)
{
	const struct mgr_port_entry *p = &g->port[port], *q;
	unsigned link;

	g->version++;
	if (g->stale || p->peer < 0)
		return;
	q = &g->port[p->peer];
	link = port < (unsigned)p->peer ? port : (unsigned)p->peer;
	set_edges(g, p->node, link, slower(p, q), link_up(g, p, q));
	set_edges(g, q->node, link, slower(p, q), link_up(g, p, q));
}

void mgr_graph_node_changed(struct mgr_graph *g, const struct mgr_node_entry *n)
{
	g->version++;
	for (unsigned i = 0; i < n->n_ports; i++)
		mgr_graph_port_changed(g, n->port[i]);
}

int mgr_graph_link_at(struct mgr_graph *g, unsigned node, const char *port)
{
	const struct mgr_node_entry *n = node < g->n_nodes ? g->node[node] : NULL;
	int at = n ? mgr_graph_port_of(g, n, port) : -ENOENT, peer;

	if (at < 0)
		return at;
	work_out_pairs(g);
	peer = g->port[at].peer;
	return peer < 0 ? -ENOENT : peer < at ? peer : at;
}

unsigned mgr_graph_tier(struct mgr_graph *g, unsigned node)
{
	work_out(g);
	return node < g->n_nodes && g->node[node] ? g->node[node]->tier : MGR_NO_TIER;
}

unsigned mgr_graph_edges(struct mgr_graph *g, unsigned node, const struct mgr_edge **edge)
{
	work_out(g);
	if (node >= g->n_nodes || g->node[node] == NULL)
		return 0;
	*edge = g->edge + g->node[node]->first_edge;
	return g->node[node]->n_edges;
}

int mgr_graph_link(struct mgr_graph *g, unsigned link, struct mgr_link *out)
{
	const struct mgr_port_entry *p, *q;
	unsigned peer;

	work_out_pairs(g);
	if (link >= g->n_ports || g->port[link].node == MGR_NOBODY ||
		g->port[link].peer <= (int)link)
		return -ENOENT;
	p = &g->port[link];
	peer = (unsigned)p->peer;
	q = &g->port[peer];
	*out = (struct mgr_link){.node = {(unsigned)p->node, (unsigned)q->node},
		.port = {link, peer},
		.bps = slower(p, q),
		.up = link_up(g, p, q)};
	return 0;
}

static void say(const struct mgr_graph *g, unsigned port, enum mgr_conflict_kind kind,
	struct mgr_conflict *out)
{
	const struct mgr_port_entry *p = &g->port[port];
	const struct mgr_claim *claim = &p->claim;
	int n = snprintf(out->line, sizeof(out->line), "%s:%s is cabled to %s:%s",
		g->node[p->node]->info.name, p->info.name, claim->node, claim->port);
	char *rest = out->line + n;
	size_t room = sizeof(out->line) - (size_t)n;

	out->kind = kind;
	out->node = (unsigned)p->node;
	out->port = port;
	switch (kind) {
	case MGR_C_ENDS:
		claim = &g->port[p->named].claim;
		snprintf(rest, room, ", which says %s:%s: not used", claim->node, claim->port);
		break;
	case MGR_C_CLAIMED:
		snprintf(rest, room, ", and so are %u others: not used",
			g->port[p->named].n_namers - 1);
		break;
	case MGR_C_UNKNOWN:
		snprintf(rest, room, ", which nobody has reported: not used");
		break;
	case MGR_C_SPEED:
		snprintf(rest, room, ", at %llu and %llu bit/s: the lower is used",
			(unsigned long long)p->info.bps,
			(unsigned long long)g->port[p->peer].info.bps);
		break;
	}
}

/* What is wrong with a port, if anything, the worst first. */
static bool wrong(const struct mgr_graph *g, unsigned port, enum mgr_conflict_kind *kind)
{
	const struct mgr_port_entry *p = &g->port[port];

	if (p->node == MGR_NOBODY)
		return false;
	if (p->named == MGR_STRANGER)
		*kind = MGR_C_UNKNOWN;
	else if (p->named >= 0 && p->peer != p->named)
		*kind = g->port[p->named].named == MGR_NOBODY ? MGR_C_CLAIMED : MGR_C_ENDS;
	else if (p->named >= 0 && p->info.bps != g->port[p->peer].info.bps &&
		 (p->peer > (int)port || g->port[p->peer].named == MGR_NOBODY))
		*kind = MGR_C_SPEED;
	else
		return false;
	return true;
}

bool mgr_graph_conflict(struct mgr_graph *g, unsigned *at, struct mgr_conflict *out)
{
	enum mgr_conflict_kind kind;

	work_out(g);
	for (; *at < g->n_ports; (*at)++) {
		if (wrong(g, *at, &kind)) {
			say(g, (*at)++, kind, out);
			return true;
		}
	}
	return false;
}
