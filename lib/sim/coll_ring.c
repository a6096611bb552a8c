/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of a NetReduce communicator on the switches: inputs are the connections of the hosts
 * that hang on a switch, and the switches below it. */
#include <errno.h>
#include <stdlib.h>

#include "lib/sim/coll_priv.h"

enum { MAX_RINGS = 63, RING_ID0 = 7 };

static struct nr_in_spec host_input(
	struct sim_coll *c, const struct ccl_ring_address *at, unsigned rank, uint16_t *ranks)
{
	const struct ccl_ring_address *own = &at[rank], *next = &at[(rank + 1) % c->conf.n_ranks];

	ranks[0] = (uint16_t)rank;
	return (struct nr_in_spec){
		.host = true,
		.key = {own->ip, next->ip, next->prev_qpn},
		.reply_qpn = own->next_qpn,
		.psn_known = true,
		.psn = own->start_psn,
		.n_ranks = 1,
		.ranks = ranks,
	};
}

static struct nr_in_spec switch_input(
	struct sim_tree *t, unsigned sw, unsigned below, unsigned ring, uint16_t *ranks)
{
	const struct sim_topo *topo = t->coll->conf.sim->topo;
	struct nr_in_spec in = {
		.remote_ip = topo->sw[below].ip,
		.local_ip = topo->sw[sw].ip,
		.remote_qpn = sim_ring_qpn(ring, NR_PARENT_EP),
		.ranks = ranks,
	};

	for (unsigned r = 0; r < t->coll->conf.n_ranks; r++)
		if (t->branch[below].below[r])
			ranks[in.n_ranks++] = (uint16_t)r;
	return in;
}

static int install(struct sim_tree *t, const struct ccl_ring_address *at, unsigned sw,
	unsigned ring, char *err)
{
	struct sim_coll *c = t->coll;
	const struct sim_topo *topo = c->conf.sim->topo;
	const struct sim_branch *b = &t->branch[sw];
	const bool top = sw == t->root;
	uint16_t *ranks = calloc((size_t)b->n_child * c->conf.n_ranks, sizeof(*ranks));
	struct nr_spec spec = {
		.name = "sim",
		.id = (uint16_t)(RING_ID0 + ring),
		.mtu = c->conf.mtu,
		.m = c->conf.m,
		.w = c->conf.w,
		.n_ranks = (uint16_t)c->conf.n_ranks,
		.flags = c->conf.flags & INC_F_STALL_RNR ? NR_F_STALL_RNR : 0,
		.in = calloc(b->n_child, sizeof(*spec.in)),
		.has_parent = !top,
	};
	char why[NR_ERR_LEN] = "";
	int rc = ranks && spec.in ? 0 : -ENOMEM;

	if (!top) {
		spec.parent_ip = topo->sw[b->parent].ip;
		spec.parent_local_ip = topo->sw[sw].ip;
		spec.parent_qpn = sim_ring_qpn(ring, sim_tree_at_parent(t, sw));
	}
	for (unsigned i = 0; rc == 0 && i < b->n_child; i++) {
		uint16_t *own = ranks + (size_t)i * c->conf.n_ranks;

		spec.in[spec.n_in++] = b->child[i].host
					       ? host_input(c, at, b->child[i].index, own)
					       : switch_input(t, sw, b->child[i].index, ring, own);
	}
	if (rc == 0)
		rc = sim_ring_make(c->conf.sim, sw, &spec, ring, why);
	if (rc)
		snprintf(err, CCL_ERR_LEN, "switch %u: %s", sw, why[0] ? why : strerror(-rc));
	free(spec.in);
	free(ranks);
	return rc;
}

static unsigned free_number(const struct sim *sim)
{
	unsigned ring = 0;

	for (unsigned i = 0; i < sim->topo->n_switches; i++)
		for (const struct sim_ring *r = sim->sw[i].ring; r; r = r->next)
			ring = r->index >= ring ? r->index + 1 : ring;
	return ring;
}

/* In the header of its messages. */
uint16_t sim_coll_ring_id(const struct sim_coll *c)
{
	return (uint16_t)(RING_ID0 + free_number(c->conf.sim));
}

int sim_coll_install_ring(struct sim_coll *c, const struct ccl_ring_address *at, char *err)
{
	const unsigned ring = free_number(c->conf.sim);
	struct sim_tree t;
	int rc = sim_tree_make(c, &t, err);

	if (rc == 0 && ring > MAX_RINGS) {
		snprintf(err, CCL_ERR_LEN, "more than %d rings", MAX_RINGS);
		rc = -ENOSPC;
	}
	if (rc == 0)
		c->ring = ring + 1;
	for (unsigned i = 0; rc == 0 && i < t.n; i++)
		if (t.branch[i].used)
			rc = install(&t, at, i, ring, err);
	sim_tree_free(&t);
	return rc;
}

void sim_coll_remove_ring(struct sim_coll *c)
{
	for (unsigned i = 0; c->ring && i < c->conf.sim->topo->n_switches; i++)
		sim_ring_forget(c->conf.sim, i, c->ring - 1);
}
