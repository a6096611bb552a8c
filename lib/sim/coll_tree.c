/* SPDX-License-Identifier: BSD-3-Clause */
/* The groups of a communicator on the switches: what the manager does in a real fabric. */
#include <errno.h>
#include <stdlib.h>

#include "lib/sim/coll_priv.h"

enum { GROUP_GEN = 5 };

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

unsigned sim_tree_at_parent(const struct sim_tree *t, unsigned sw)
{
	const struct sim_branch *up = &t->branch[t->branch[sw].parent];
	unsigned i = 0;

	while (up->child[i].host || up->child[i].index != sw)
		i++;
	return i;
}

static void fill_host(
	struct sim_tree *t, struct inc_ep_spec *ep, unsigned sw, unsigned rank, unsigned g)
{
	struct sim *sim = t->coll->conf.sim;
	struct ccl_member member;

	ccl_member(t->coll->rank[rank].comm, g, &member);
	ep->remote_ip = sim->topo->host[sim_coll_host(t->coll, rank)].ip;
	ep->remote_qpn = member.qpn;
	ep->port = (uint16_t)sim_port_to_host(sim, sw, sim_coll_host(t->coll, rank));
	ep->host = true;
	sim_host_mac(sim_coll_host(t->coll, rank), ep->dmac);
	ep->ranks[ep->n_ranks++] = (uint16_t)rank;
}

static void fill_switch(struct sim_tree *t, struct inc_ep_spec *ep, unsigned sw, unsigned peer,
	unsigned peer_ep, unsigned g)
{
	struct sim *sim = t->coll->conf.sim;
	const bool up = peer != sw && t->branch[sw].parent == peer && ep->parent;
	const uint8_t *below = t->branch[up ? sw : peer].below;

	ep->remote_ip = sim->topo->sw[peer].ip;
	if (t->coll->conf.mode != CCL_MODE_1) /* else its queue pair is still to be made */
		ep->remote_qpn = inc_qpn(t->coll->first_slot + g, peer_ep, GROUP_GEN);
	ep->port = (uint16_t)sim_port_to_switch(sim, sw, peer);
	sim_switch_mac(peer, ep->dmac);
	for (unsigned r = 0; r < t->coll->conf.n_ranks; r++)
		if (below[r] != up)
			ep->ranks[ep->n_ranks++] = (uint16_t)r;
}

static void fill_eps(struct sim_tree *t, struct inc_group_spec *spec, unsigned sw, unsigned g)
{
	const struct sim_branch *b = &t->branch[sw];
	const bool top = sw == t->root;

	spec->n_ep = (uint8_t)(b->n_child + !top);
	memset(spec->ep, 0, spec->n_ep * sizeof(*spec->ep));
	for (unsigned i = 0; i < spec->n_ep; i++) {
		struct inc_ep_spec *ep = &spec->ep[i];

		ep->local_ip = t->coll->conf.sim->topo->sw[sw].ip;
		sim_switch_mac(sw, ep->smac);
		ep->parent = i == b->n_child;
		if (ep->parent)
			fill_switch(t, ep, sw, b->parent, sim_tree_at_parent(t, sw), g);
		else if (b->child[i].host)
			fill_host(t, ep, sw, b->child[i].index, g);
		else /* the parent's endpoint is the last one over there */
			fill_switch(t, ep, sw, b->child[i].index,
				t->branch[b->child[i].index].n_child, g);
	}
}

static int install(
	struct sim_tree *t, struct inc_group_spec *spec, unsigned sw, unsigned g, char *err)
{
	struct sim_switch *s = sim_switch(t->coll->conf.sim, sw);
	const unsigned slot = t->coll->first_slot + g;
	struct inc_group *group;
	uint64_t offset;
	char why[INC_ERR_LEN];
	int rc = inc_group_check(spec, why);

	if (rc) {
		refuse(err, sw, why);
		return rc;
	}
	rc = sim_switch_memory(t->coll->conf.sim, sw, inc_group_payload_bytes(spec), &offset);
	group = rc == 0 ? calloc(1, inc_group_bytes(spec)) : NULL;
	if (!group)
		return -ENOMEM;
	inc_group_init(group, spec, (uint16_t)slot, GROUP_GEN, offset);
	inc_table_set(&s->table, (uint16_t)slot, group);
	if (s->n_slots <= slot)
		s->n_slots = slot + 1;
	rc = spec->mode == INC_MODE_1 ? sim_mode1_make(t->coll->conf.sim, sw, group, why) : 0;
	if (rc)
		refuse(err, sw, why);
	return rc;
}

/* Once all switches have theirs: Mode-I's queue pairs have numbers then. */
static int activate(struct sim_tree *t, unsigned sw, unsigned slot, char *err)
{
	struct sim *sim = t->coll->conf.sim;
	const struct sim_branch *b = &t->branch[sw];
	struct inc_group *group = sim_switch(sim, sw)->table.group[slot], *peer;
	char why[INC_ERR_LEN];
	int rc;

	for (unsigned i = 0; group->mode == INC_MODE_1 && i < group->n_ep; i++) {
		const bool up = i == b->n_child;

		if (!up && b->child[i].host)
			continue;
		peer = sim_switch(sim, up ? b->parent : b->child[i].index)->table.group[slot];
		inc_ep_at(group, i)->remote_qpn =
			inc_ep_at(peer, up ? sim_tree_at_parent(t, sw) : peer->n_ep - 1u)
				->local_qpn;
	}
	rc = inc_group_activate(group, why);
	if (rc == 0 && group->mode == INC_MODE_1)
		rc = sim_mode1_connect(sim, sw, group, why);
	if (rc)
		refuse(err, sw, why);
	return rc;
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

uint32_t sim_coll_start_psn(const struct sim_coll *c, unsigned g)
{
	return (c->conf.start_psn + g * 0x10001) & PSN_MASK;
}

static int install_group(struct sim_tree *t, const struct ccl_member *member, unsigned g, char *err)
{
	const struct sim_coll_conf *conf = &t->coll->conf;
	struct inc_group_spec spec = {
		.name = "sim",
		.mode = (uint8_t)conf->mode,
		.kind = conf->kind == CCL_MIXED ? INC_MIXED : INC_SINGLE,
		.prim = (uint8_t)member->prim,
		.root = (uint16_t)member->root,
		.mtu = conf->mtu,
		.m = conf->m,
		.w = conf->w,
		.flags = conf->flags,
		.slots = conf->slots,
		.start_psn = sim_coll_start_psn(t->coll, g),
		.n_ranks = (uint16_t)conf->n_ranks,
		.ep = calloc(INC_MAX_EP, sizeof(*spec.ep)),
	};
	int rc = spec.ep ? 0 : -ENOMEM;

	for (unsigned i = 0; rc == 0 && i < t->n; i++)
		if (t->branch[i].used) {
			fill_eps(t, &spec, i, g);
			rc = install(t, &spec, i, g, err);
		}
	for (unsigned i = 0; rc == 0 && i < t->n; i++)
		if (t->branch[i].used)
			rc = activate(t, i, t->coll->first_slot + g, err);
	free(spec.ep);
	return rc;
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

int sim_coll_install(struct sim_coll *c, char *err)
{
	struct sim_tree t;
	struct ccl_member member;
	int rc = sim_tree_make(c, &t, err);

	c->first_slot = 1;
	for (unsigned i = 0; i < t.n; i++)
		if (sim_switch(c->conf.sim, i)->n_slots > c->first_slot)
			c->first_slot = sim_switch(c->conf.sim, i)->n_slots;
	while (rc == 0 && ccl_member(c->rank[0].comm, c->n_groups, &member) == 0) {
		const unsigned g = c->n_groups++;

		rc = g < SIM_MAX_GROUPS && c->first_slot + g < INC_GROUP_SLOTS
			     ? install_group(&t, &member, g, err)
			     : refuse(err, 0, "too many groups");
	}
	sim_tree_free(&t);
	return rc;
}

void sim_coll_remotes(struct sim_coll *c, unsigned rank, struct ccl_remote *remote)
{
	struct sim *sim = c->conf.sim;
	struct sim_switch *s = sim_switch(sim, sim->topo->host_switch[sim_coll_host(c, rank)]);

	for (unsigned g = 0; g < c->n_groups; g++) {
		struct inc_group *group = s->table.group[c->first_slot + g];

		remote[g] =
			(struct ccl_remote){inc_ep_at(group, inc_rank_ep(group)[rank])->local_qpn,
				sim_coll_start_psn(c, g)};
	}
}

void sim_coll_remove(struct sim_coll *c)
{
	struct sim *sim = c->conf.sim;

	for (unsigned i = 0; i < sim->topo->n_switches; i++)
		for (unsigned g = c->n_groups; g-- > 0;)
			sim_switch_forget(sim, i, c->first_slot + g);
}
