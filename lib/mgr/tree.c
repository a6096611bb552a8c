/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mgr/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct mgr_finder {
	struct mgr_graph *g;
	const struct mgr_book *b;
	unsigned room; /* of the arrays, by node */
	unsigned *seen, mark;
	unsigned *depth, *from, *link; /* of a node that was seen: links to the root, next there */
	int *index;                    /* in the tree, -1: not in it */
	unsigned *queue;
	unsigned *sifted, *reached; /* members that reach it, and in which sifting that was */
	unsigned sifting, sifters;
	const uint64_t *most; /* mgr_finder_limit */
};

enum { SIFTERS = 6 };

struct mgr_finder *mgr_finder_new(struct mgr_graph *g, const struct mgr_book *b)
{
	struct mgr_finder *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->g = g;
	f->b = b;
	return f;
}

void mgr_finder_free(struct mgr_finder *f)
{
	if (f == NULL)
		return;
	free(f->seen);
	free(f);
}

void mgr_finder_limit(struct mgr_finder *f, const uint64_t *most)
{
	f->most = most;
}

uint64_t mgr_finder_free_bytes(const struct mgr_finder *f, unsigned node, unsigned duty)
{
	const uint64_t bytes = mgr_book_free_bytes(f->b, node, duty);

	return f->most && f->most[node] < bytes ? f->most[node] : bytes;
}

void mgr_finder_sync(struct mgr_graph *g, struct mgr_book *b)
{
	for (unsigned i = 0; i < mgr_graph_bound(g); i++) {
		const struct mgr_node *n = mgr_graph_node(g, i);
		bool on = n != NULL && n->kind == MGR_SWITCH && n->up;

		mgr_book_set_switch(b, i, on ? n->sram : 0, on ? n->groups : 0);
	}
	for (unsigned i = 0; i < mgr_graph_link_bound(g); i++) {
		struct mgr_link l;
		bool on = mgr_graph_link(g, i, &l) == 0 && l.up;

		mgr_book_set_link(b, i, on ? l.bps : 0);
	}
}

static int make_room(struct mgr_finder *f)
{
	unsigned n = mgr_graph_bound(f->g);

	if (n <= f->room)
		return 0;
	free(f->seen);
	f->seen = calloc((size_t)n * 8, sizeof(unsigned));
	f->room = f->seen ? n : 0;
	f->mark = f->sifting = 0;
	if (f->seen == NULL)
		return -ENOMEM;
	f->depth = f->seen + n;
	f->from = f->depth + n;
	f->link = f->from + n;
	f->index = (int *)(f->link + n);
	f->queue = (unsigned *)f->index + n;
	f->sifted = f->queue + n;
	f->reached = f->sifted + n;
	return 0;
}

uint64_t mgr_link_share(
	const struct mgr_finder *f, const struct mgr_edge *e, const struct mgr_bar *bar)
{
	uint64_t free_bps;

	if (!e->up || e->bps == 0)
		return 0;
	if (bar->ignore_links)
		return e->bps;
	free_bps = mgr_book_free_bps(f->b, e->link, bar->duty, bar->whole);
	if (bar->promised || bar->whole || free_bps == 0)
		return free_bps;
	return free_bps / (mgr_book_link_holders(f->b, e->link) + 1);
}

static bool link_passes(
	const struct mgr_finder *f, const struct mgr_edge *e, const struct mgr_bar *bar)
{
	uint64_t share = mgr_link_share(f, e, bar);

	return share > 0 && share >= bar->bps;
}

/* Between switches. */
static bool inner_passes(
	const struct mgr_finder *f, const struct mgr_edge *e, const struct mgr_bar *bar)
{
	uint64_t share = mgr_link_share(f, e, bar);

	return share > 0 && share >= bar->bps && share >= bar->inner_bps;
}

/* Whether a switch can take part: aggregate and replicate. */
static bool takes_part(const struct mgr_node *n, const struct mgr_bar *bar)
{
	return bar->mode == 0 || (n->modes & bar->mode) != 0;
}

static bool switch_passes(
	const struct mgr_finder *f, unsigned node, const struct mgr_bar *bar, unsigned max_tier)
{
	const struct mgr_node *n = mgr_graph_node(f->g, node);

	if (n == NULL || n->kind != MGR_SWITCH || !n->up || mgr_graph_tier(f->g, node) > max_tier)
		return false;
	if (!takes_part(n, bar) || bar->ignore_memory)
		return true;
	return mgr_book_switch_holders(f->b, node) < n->groups &&
	       mgr_finder_free_bytes(f, node, bar->duty) >= bar->bytes;
}

/* Breadth first over switches, at most so deep that hosts can hang below. */
static void spread(struct mgr_finder *f, unsigned root, const struct mgr_bar *bar)
{
	unsigned head = 0, tail = 0;

	f->mark++;
	f->seen[root] = f->mark;
	f->depth[root] = 0;
	f->index[root] = -1;
	f->queue[tail++] = root;
	while (head < tail) {
		const struct mgr_edge *e;
		unsigned at = f->queue[head++], n = mgr_graph_edges(f->g, at, &e);

		if (f->depth[at] + 2 > bar->max_height)
			return;
		for (unsigned i = 0; i < n; i++) {
			unsigned to = e[i].peer;

			if (f->seen[to] == f->mark || !inner_passes(f, &e[i], bar) ||
				!switch_passes(f, to, bar, bar->max_tier))
				continue;
			f->seen[to] = f->mark;
			f->depth[to] = f->depth[at] + 1;
			f->from[to] = at;
			f->link[to] = e[i].link;
			f->index[to] = -1;
			f->queue[tail++] = to;
		}
	}
}

static bool port_fits(
	const struct mgr_finder *f, const struct mgr_member *m, const struct mgr_edge *e)
{
	struct mgr_link l;

	return m->port < 0 ||
	       (mgr_graph_link(f->g, e->link, &l) == 0 &&
		       (l.port[0] == (unsigned)m->port || l.port[1] == (unsigned)m->port));
}

/* The link of a member's host whose switch is nearest to the root. */
static const struct mgr_edge *attach(
	const struct mgr_finder *f, const struct mgr_member *m, const struct mgr_bar *bar)
{
	const struct mgr_edge *e, *best = NULL;
	const struct mgr_node *host = mgr_graph_node(f->g, m->node);
	unsigned n = host && host->kind == MGR_HOST ? mgr_graph_edges(f->g, m->node, &e) : 0;

	for (unsigned i = 0; i < n; i++) {
		if (f->seen[e[i].peer] != f->mark || !link_passes(f, &e[i], bar) ||
			!port_fits(f, m, &e[i]))
			continue;
		if (best == NULL || f->depth[e[i].peer] < f->depth[best->peer])
			best = &e[i];
	}
	return best;
}

static void reach(struct mgr_finder *f, unsigned node, unsigned depth, unsigned *tail)
{
	f->seen[node] = f->mark;
	f->depth[node] = depth;
	f->queue[(*tail)++] = node;
	f->reached[node] = f->sifted[node] == f->sifting ? f->reached[node] + 1 : 1;
	f->sifted[node] = f->sifting;
}

/* Switches from which a member is no farther than the bar says. */
static bool sift_from(
	struct mgr_finder *f, const struct mgr_member *member, const struct mgr_bar *bar)
{
	const struct mgr_edge *e = NULL;
	unsigned head = 0, tail = 0, n = mgr_graph_edges(f->g, member->node, &e);

	f->mark++;
	for (unsigned i = 0; i < n; i++) {
		if (f->seen[e[i].peer] != f->mark && link_passes(f, &e[i], bar) &&
			port_fits(f, member, &e[i]) &&
			switch_passes(f, e[i].peer, bar, bar->max_tier))
			reach(f, e[i].peer, 1, &tail);
	}
	while (head < tail) {
		unsigned at = f->queue[head++];

		if (f->depth[at] >= bar->max_height)
			break;
		n = mgr_graph_edges(f->g, at, &e);
		for (unsigned i = 0; i < n; i++) {
			if (f->seen[e[i].peer] != f->mark && inner_passes(f, &e[i], bar) &&
				switch_passes(f, e[i].peer, bar, bar->max_tier))
				reach(f, e[i].peer, f->depth[at] + 1, &tail);
		}
	}
	return tail > 0;
}

bool mgr_tree_sift(struct mgr_finder *f, const struct mgr_member *member, unsigned n,
	const struct mgr_bar *bar)
{
	if (make_room(f))
		return true; /* which growing says */
	f->sifting++;
	f->sifters = n < SIFTERS ? n : SIFTERS;
	for (unsigned i = 0; i < f->sifters; i++) {
		unsigned at = f->sifters > 1 ? i * (n - 1) / (f->sifters - 1) : 0;

		if (!sift_from(f, &member[at], bar))
			return false;
	}
	return true;
}

bool mgr_tree_may_root(const struct mgr_finder *f, unsigned root)
{
	return root >= f->room || (f->sifted[root] == f->sifting && f->reached[root] == f->sifters);
}

uint64_t mgr_tree_ceiling(const struct mgr_finder *f, const struct mgr_member *member, unsigned n,
	const struct mgr_bar *bar)
{
	uint64_t ceiling = UINT64_MAX;

	for (unsigned i = 0; i < n; i++) {
		const struct mgr_edge *e = NULL;
		unsigned n_edges = mgr_graph_edges(f->g, member[i].node, &e);
		uint64_t best = 0;

		for (unsigned k = 0; k < n_edges; k++) {
			uint64_t share = mgr_link_share(f, &e[k], bar);

			if (share > best && share >= bar->bps && port_fits(f, &member[i], &e[k]) &&
				switch_passes(f, e[k].peer, bar, bar->max_tier))
				best = share;
		}
		ceiling = best < ceiling ? best : ceiling;
	}
	return ceiling;
}

bool mgr_tree_possible(const struct mgr_finder *f, const struct mgr_member *member, unsigned n,
	const struct mgr_bar *bar)
{
	return mgr_tree_ceiling(f, member, n, bar) > 0;
}

/* Puts the way from a switch to the root into the tree; what is in it already stays. */
static unsigned add_way(struct mgr_finder *f, struct mgr_tree *t, unsigned node, unsigned root)
{
	if (f->index[node] >= 0)
		return (unsigned)f->index[node];
	if (node == root) {
		t->sw[t->n_sw] = (struct mgr_tree_sw){.node = node, .parent = -1};
	} else {
		unsigned parent = add_way(f, t, f->from[node], root);

		t->sw[parent].n_children++;
		t->sw[t->n_sw] = (struct mgr_tree_sw){
			.node = node, .parent = (int)parent, .link = f->link[node]};
	}
	f->index[node] = (int)t->n_sw;
	return t->n_sw++;
}

static int fill(struct mgr_finder *f, const struct mgr_member *member, unsigned n, unsigned root,
	const struct mgr_bar *bar, struct mgr_tree *t)
{
	add_way(f, t, root, root);
	for (unsigned i = 0; i < n; i++) {
		const struct mgr_edge *e = attach(f, &member[i], bar);
		unsigned sw;

		if (e == NULL)
			return -ENOENT;
		sw = add_way(f, t, e->peer, root);
		t->sw[sw].n_children++;
		t->member[i].sw = sw;
		t->member[i].link = e->link;
		if (f->depth[e->peer] + 1 > t->height)
			t->height = f->depth[e->peer] + 1;
	}
	t->n_members = n;
	return 0;
}

/* Who only forwards, and whether the tree can be. */
static int judge(const struct mgr_finder *f, const struct mgr_bar *bar, struct mgr_tree *t)
{
	if (t->sw[0].n_children < 2)
		return -ENOENT;
	for (unsigned i = 0; i < t->n_sw; i++) {
		struct mgr_tree_sw *s = &t->sw[i];

		s->transit = !takes_part(mgr_graph_node(f->g, s->node), bar);
		if (s->n_children > (s->transit ? 1 : MGR_MAX_CHILDREN))
			return -ENOENT;
		if (s->n_children > t->n_children)
			t->n_children = s->n_children;
	}
	return 0;
}

int mgr_tree_grow(struct mgr_finder *f, const struct mgr_member *member, unsigned n, unsigned root,
	const struct mgr_bar *bar, struct mgr_tree *out)
{
	struct mgr_tree t = {.n_sw = 0};
	int rc = make_room(f);
	unsigned most;

	if (rc)
		return rc;
	if (n == 0 || n > MGR_MAX_MEMBERS || bar->max_height == 0 ||
		bar->max_height > MGR_MAX_HEIGHT || !switch_passes(f, root, bar, bar->max_tier))
		return -ENOENT;
	spread(f, root, bar);
	for (unsigned i = 0; i < n; i++) { /* most roots fail here, without any heap */
		if (attach(f, &member[i], bar) == NULL)
			return -ENOENT;
	}
	most = n * MGR_MAX_HEIGHT < f->room ? n * MGR_MAX_HEIGHT + 1 : f->room;
	t.sw = malloc(most * sizeof(t.sw[0]));
	t.member = malloc(n * sizeof(t.member[0]));
	rc = t.sw && t.member ? fill(f, member, n, root, bar, &t) : -ENOMEM;
	if (rc == 0)
		rc = judge(f, bar, &t);
	if (rc)
		mgr_tree_free(&t);
	else
		*out = t;
	return rc;
}

void mgr_tree_free(struct mgr_tree *t)
{
	free(t->sw);
	free(t->member);
	t->sw = NULL;
	t->member = NULL;
}
