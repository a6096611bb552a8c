/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of switches between the ranks of a communicator. */
#include <errno.h>
#include <stdlib.h>

#include "lib/sim/coll_priv.h"

static int refuse(char *err, unsigned sw, const char *why)
{
	snprintf(err, CCL_ERR_LEN, "switch %u: %s", sw, why);
	return -EOPNOTSUPP;
}

/* The switch next to sw on the way to the root. */
static unsigned parent_of(const struct sim *sim, unsigned sw, unsigned root)
{
	const struct sim_node_switch *s = &sim->sw[sw];

	return s->port[s->n_hosts + (unsigned)__builtin_ctzll(s->next[root])].node -
	       sim->topo->n_hosts;
}

static int add_child(
	struct sim_branch *b, unsigned sw, bool host, unsigned index, unsigned rank, char *err)
{
	for (unsigned i = 0; i < b->n_child; i++)
		if (b->child[i].host == host && b->child[i].index == index)
			return 0;
	if (b->n_child == INC_MAX_EP - 1)
		return refuse(err, sw, "more than 63 children in the tree");
	b->child[b->n_child++] = (struct sim_child){host, index, rank};
	return 0;
}

/* In order of ranks: children come in the order of their lowest one. */
static int grow(struct sim_tree *t, unsigned rank, char *err)
{
	struct sim *sim = t->coll->conf.sim;
	const unsigned root = t->coll->conf.root;
	unsigned at = sim->topo->host_switch[sim_coll_host(t->coll, rank)], index = rank;

	if (t->coll->conf.pass_first && at != root)
		at = parent_of(sim, at, root);
	for (bool host = true;; host = false) {
		struct sim_branch *b = &t->branch[at];
		int rc;

		if (!b->below)
			b->below = calloc(t->coll->conf.n_ranks, 1);
		if (!b->below)
			return -ENOMEM;
		b->used = true;
		b->below[rank] = 1;
		rc = add_child(b, at, host, index, rank, err);
		if (rc || at == root)
			return rc;
		b->parent = parent_of(sim, at, root);
		index = at;
		at = b->parent;
	}
}

/* Switches above the lowest that all ranks have in common are not needed. */
static void cut_top(struct sim_tree *t)
{
	struct sim_branch *b = &t->branch[t->root];

	while (b->n_child == 1 && !b->child[0].host) {
		b->used = false;
		t->root = b->child[0].index;
		b = &t->branch[t->root];
	}
}

int sim_tree_make(struct sim_coll *c, struct sim_tree *t, char *err)
{
	int rc = 0;

	*t = (struct sim_tree){.coll = c, .n = c->conf.sim->topo->n_switches, .root = c->conf.root};
	t->branch = calloc(t->n, sizeof(*t->branch));
	if (!t->branch)
		return -ENOMEM;
	for (unsigned r = 0; rc == 0 && r < c->conf.n_ranks; r++)
		rc = grow(t, r, err);
	if (rc == 0)
		cut_top(t);
	return rc;
}

void sim_tree_free(struct sim_tree *t)
{
	for (unsigned i = 0; t->branch && i < t->n; i++)
		free(t->branch[i].below);
	free(t->branch);
}
