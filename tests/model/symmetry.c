/* SPDX-License-Identifier: BSD-3-Clause */
/* Symmetry: ranks that play the same part may change places. What a node's value, a frame or a
 * queue becomes then is not worked out from their contents but from what nodes do: the initial
 * values of equal nodes correspond, and if two values and two events correspond, so must what
 * becomes of them and what is sent. Every step that is computed is mirrored and checked against
 * this, so a switch that treats its endpoints differently is noticed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

static const size_t MAP_MAX = (size_t)1 << 24;

static unsigned leaf_of(const struct mc_config *c, unsigned rank)
{
	unsigned leaf = 0;

	for (; c->n_leaf && rank >= c->hosts[leaf]; leaf++)
		rank -= c->hosts[leaf];
	return leaf;
}

/* Do the operations look the same with the ranks in other places, and is the tree the same? */
static bool keeps_all(const struct mc_config *c, const uint8_t *rank)
{
	for (unsigned a = 0; a < c->n_ranks; a++)
		for (unsigned b = 0; b < a; b++)
			if ((leaf_of(c, a) == leaf_of(c, b)) !=
				(leaf_of(c, rank[a]) == leaf_of(c, rank[b])))
				return false;
	for (unsigned a = 0; c->mode == MC_NETREDUCE && a < c->n_ranks; a++)
		if (rank[(a + 1u) % c->n_ranks] != (rank[a] + 1u) % c->n_ranks)
			return false;
	for (unsigned i = 0; i < c->n_ops; i++)
		if (c->op[i].prim != INC_AR && rank[c->op[i].root] != c->op[i].root)
			return false;
	return c->mismatch_rank == MC_NONE || rank[c->mismatch_rank] == c->mismatch_rank;
}

static unsigned find_link(const struct mc_sys *s, unsigned from, unsigned to)
{
	for (unsigned l = 0; l < s->n_links; l++)
		if (s->link[l].from == from && s->link[l].to == to)
			return l;
	return 0;
}

static void add_perm(struct mc_sys *s, const uint8_t *rank)
{
	struct mc_perm *p = &s->perm[s->n_perm++];

	p->node[0] = 0;
	for (unsigned r = 0; r < s->n_ranks; r++) {
		p->node[s->n_sw + r] = (uint8_t)(s->n_sw + rank[r]);
		if (s->cfg.n_leaf)
			p->node[1 + leaf_of(&s->cfg, r)] = (uint8_t)(1 + leaf_of(&s->cfg, rank[r]));
	}
	for (unsigned l = 0; l < s->n_links; l++) {
		const struct mc_link *a = &s->link[l], *b;

		p->link[l] = (uint8_t)find_link(s, p->node[a->from], p->node[a->to]);
		b = &s->link[p->link[l]];
		p->port[a->from][a->from_port] = b->from_port;
	}
	for (unsigned i = 0; i < s->n_nodes; i++)
		p->state[i] = mc_reserve(MAP_MAX * sizeof(uint32_t));
	p->frame = mc_reserve(MAP_MAX * sizeof(uint32_t));
	p->queue = mc_reserve(MAP_MAX * sizeof(uint32_t));
	p->queue[0] = 1; /* the empty one */
}

/* All permutations of the ranks from i on. */
static void permute(struct mc_sys *s, uint8_t *rank, unsigned i)
{
	bool same = true;

	for (unsigned k = i; k < s->n_ranks; k++) {
		uint8_t a = rank[i], b = rank[k];

		rank[i] = b;
		rank[k] = a;
		permute(s, rank, i + 1);
		rank[i] = a;
		rank[k] = b;
	}
	if (i < s->n_ranks)
		return;
	for (unsigned r = 0; r < s->n_ranks; r++)
		same = same && rank[r] == r;
	if (!same && keeps_all(&s->cfg, rank) && s->n_perm <= MC_MAX_PERMS)
		add_perm(s, rank);
}

static void broken(const char *what)
{
	fprintf(stderr,
		"incline-model: %s depends on which of several equal ranks it is: "
		"use --no-symmetry\n",
		what);
	exit(2);
}

static void define(uint32_t *map, uint32_t from, uint32_t to, const char *what)
{
	if (from >= MAP_MAX)
		broken("(a table is full) nothing");
	if (map[from] && map[from] != to + 1)
		broken(what);
	map[from] = to + 1;
}

void mc_symmetry_open(struct mc_sys *s, const uint32_t *initial)
{
	uint8_t rank[MC_MAX_RANKS];

	for (unsigned r = 0; r < MC_MAX_RANKS; r++)
		rank[r] = (uint8_t)r;
	if (s->cfg.symmetry && s->n_perm == 0 && s->n_ranks <= 5)
		permute(s, rank, 0);
	if (s->n_perm > MC_MAX_PERMS)
		s->n_perm = 0;
	for (unsigned k = 0; k < s->n_perm; k++)
		for (unsigned i = 0; i < s->n_nodes; i++)
			define(s->perm[k].state[i], initial[i], initial[s->perm[k].node[i]],
				"an initial state");
}

/* The n-th frame that goes out of one port, or NULL. */
static const struct mc_out *nth(const struct mc_result *r, unsigned port, unsigned n)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->out[i].port == port && n-- == 0)
			return &r->out[i];
	return NULL;
}

static void correspond(struct mc_sys *s, const struct mc_perm *p, unsigned node,
	const struct mc_result *a, const struct mc_result *b)
{
	unsigned seen[MC_MAX_PORTS] = {0};

	if (a->n != b->n)
		broken("how many packets a node sends");
	for (unsigned i = 0; i < a->n; i++) {
		unsigned port = a->out[i].port;
		const struct mc_out *o = nth(b, p->port[node][port], seen[port]++);

		if (o == NULL)
			broken("where a node sends packets");
		else
			define(p->frame, a->out[i].frame, o->frame, "a packet");
	}
	define(p->state[node], a->state, b->state, "a node's state");
	if (mc_is_host(s, node) &&
		mc_host_flags(s, node, a->state) != mc_host_flags(s, p->node[node], b->state))
		broken("what a host may do");
}

void mc_mirror(struct mc_sys *s, unsigned node, uint32_t state, enum mc_event ev, unsigned port,
	uint32_t frame, const struct mc_result *r)
{
	for (unsigned k = 0; k < s->n_perm; k++) {
		const struct mc_perm *p = &s->perm[k];
		uint32_t to = p->state[node][state] - 1;
		uint32_t f = ev == MC_EV_PACKET || ev == MC_EV_HOLD ? p->frame[frame] - 1 : 0;
		unsigned at = mc_is_host(s, node) ? 0 : p->port[node][port];

		correspond(s, p, node, r, mc_node_step(s, p->node[node], to, ev, at, f));
	}
}

static uint32_t mirror_queue(struct mc_sys *s, const struct mc_perm *p, uint32_t id)
{
	uint32_t len, buf[1024 + 1];
	const uint32_t *q;

	if (p->queue[id])
		return p->queue[id] - 1;
	q = intern_get(&s->queues, id, &len);
	for (uint32_t i = 0; i < len / sizeof(*q); i++)
		buf[i] = p->frame[q[i]] - 1;
	define(p->queue, id, intern_add(&s->queues, buf, len), "a queue");
	return p->queue[id] - 1;
}

int mc_canonical(struct mc_sys *s, uint32_t *v)
{
	uint32_t best[MC_MAX_WORDS], w[MC_MAX_WORDS];
	int which = -1;

	memcpy(best, v, s->words * sizeof(*v));
	w[s->words - 1] = v[s->words - 1];
	for (unsigned k = 0; k < s->n_perm; k++) {
		const struct mc_perm *p = &s->perm[k];

		for (unsigned i = 0; i < s->n_nodes; i++)
			w[p->node[i]] = p->state[i][v[i]] - 1;
		for (unsigned l = 0; l < s->n_links; l++)
			w[s->n_nodes + p->link[l]] = mirror_queue(s, p, v[s->n_nodes + l]);
		if (memcmp(w, best, s->words * sizeof(*w)) < 0) {
			memcpy(best, w, sizeof(best[0]) * s->words);
			which = (int)k;
		}
	}
	memcpy(v, best, s->words * sizeof(*v));
	return which;
}
