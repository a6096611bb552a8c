/* SPDX-License-Identifier: BSD-3-Clause */
/* Breadth-first exploration with hash compaction: of a visited state a 64-bit hash, its parent and
 * the step from there are kept, the state itself only until it was expanded. All edges are kept, so
 * that it can be told from which states no final one is reachable. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/model/model.h"

enum { MAX_ACTIONS = 512, FREE_STEP = 64 << 20 };
static const size_t EDGES_MAX = (size_t)1 << 32;

struct graph {
	struct mc_sys *s;
	struct mc_outcome *o;
	size_t vec_bytes, freed;
	uint8_t *vec; /* states by number, given back once expanded */
	uint64_t *hash;
	uint32_t *parent;
	struct mc_action *step;
	uint16_t *degree;
	uint8_t *good;  /* final, or a final state can be reached */
	uint64_t *slot; /* half of a state's hash, its number + 1 in the other; 0: free */
	uint32_t *edge;
	uint64_t n, mask, n_edges;
	double began, said;
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void graph_open(struct graph *g, struct mc_sys *s, struct mc_outcome *o)
{
	size_t max = (size_t)s->cfg.max_states + MAX_ACTIONS;

	*g = (struct graph){.s = s, .o = o, .mask = (1 << 16) - 1};
	g->vec_bytes = s->words * sizeof(uint32_t);
	g->vec = mc_reserve(max * g->vec_bytes);
	g->hash = mc_reserve(max * sizeof(*g->hash));
	g->parent = mc_reserve(max * sizeof(*g->parent));
	g->step = mc_reserve(max * sizeof(*g->step));
	g->degree = mc_reserve(max * sizeof(*g->degree));
	g->good = mc_reserve(max);
	g->edge = mc_reserve(EDGES_MAX * sizeof(*g->edge));
	g->slot = mc_reserve((g->mask + 1) * sizeof(*g->slot));
	g->began = g->said = seconds();
}

static void graph_close(struct graph *g)
{
	size_t max = (size_t)g->s->cfg.max_states + MAX_ACTIONS;

	munmap(g->vec, max * g->vec_bytes);
	munmap(g->hash, max * sizeof(*g->hash));
	munmap(g->parent, max * sizeof(*g->parent));
	munmap(g->step, max * sizeof(*g->step));
	munmap(g->degree, max * sizeof(*g->degree));
	munmap(g->good, max);
	munmap(g->edge, EDGES_MAX * sizeof(*g->edge));
	munmap(g->slot, (g->mask + 1) * sizeof(*g->slot));
}

static uint64_t slot_word(uint64_t hash, uint64_t state)
{
	return (hash & ~(uint64_t)UINT32_MAX) | (uint32_t)(state + 1);
}

static void slots_grow(struct graph *g)
{
	uint64_t mask = g->mask * 2 + 1;

	munmap(g->slot, (g->mask + 1) * sizeof(*g->slot));
	g->slot = mc_reserve((mask + 1) * sizeof(*g->slot));
	for (uint64_t i = 0; i < g->n; i++) {
		uint64_t at = g->hash[i] & mask;

		while (g->slot[at])
			at = (at + 1) & mask;
		g->slot[at] = slot_word(g->hash[i], i);
	}
	g->mask = mask;
}

/* The number of a state, known or new. */
static uint32_t visit(struct graph *g, const uint32_t *v, uint32_t parent, struct mc_action step)
{
	uint64_t hash = mc_hash(v, g->vec_bytes, 1), at;

	for (at = hash & g->mask; g->slot[at]; at = (at + 1) & g->mask) {
		uint32_t state = (uint32_t)g->slot[at] - 1;

		if (g->slot[at] >> 32 == hash >> 32 && g->hash[state] == hash)
			return state;
	}
	g->slot[at] = slot_word(hash, g->n);
	g->hash[g->n] = hash;
	g->parent[g->n] = parent;
	g->step[g->n] = step;
	memcpy(g->vec + g->n * g->vec_bytes, v, g->vec_bytes);
	if (++g->n > g->mask / 3 * 2)
		slots_grow(g);
	return (uint32_t)g->n - 1;
}

/* The steps of a path through canonical states, as those of one run: there the ranks keep their
 * places. node[i] is where node i of the run is in the canonical state, link[i] likewise. */
static void undo_symmetry(struct graph *g, struct mc_action *step, unsigned n)
{
	struct mc_sys *s = g->s;
	uint8_t node[MC_MAX_NODES], link[MC_MAX_LINKS];
	uint32_t v[MC_MAX_WORDS], to[MC_MAX_WORDS];
	const struct mc_result *r;

	for (unsigned i = 0; i < MC_MAX_NODES; i++)
		node[i] = (uint8_t)i;
	for (unsigned i = 0; i < MC_MAX_LINKS; i++)
		link[i] = (uint8_t)i;
	mc_initial(s, v);
	for (unsigned k = 0; k < n; k++) {
		const bool on_link = step[k].kind <= MC_HOLD;
		const struct mc_action canonical = step[k];
		int perm;

		for (unsigned i = 0; i < (on_link ? s->n_links : s->n_nodes); i++)
			if ((on_link ? link : node)[i] == canonical.index)
				step[k].index = (uint8_t)i;
		for (unsigned i = 0; canonical.kind == MC_TICK && i < MC_MAX_PORTS; i++)
			if (link[s->out_link[step[k].index][i]] ==
				s->out_link[canonical.index][canonical.port])
				step[k].port = (uint8_t)i;
		if (k == n - 1)
			break; /* what follows may be a violation */
		mc_apply(s, v, canonical, to, &r);
		perm = mc_canonical(s, to);
		memcpy(v, to, s->words * sizeof(*v));
		for (unsigned i = 0; perm >= 0 && i < s->n_nodes; i++)
			node[i] = s->perm[perm].node[node[i]];
		for (unsigned i = 0; perm >= 0 && i < s->n_links; i++)
			link[i] = s->perm[perm].link[link[i]];
	}
}

/* The shortest way to a state, and one step more if last is given. */
static void make_trace(struct graph *g, uint32_t state, const struct mc_action *last)
{
	struct mc_outcome *o = g->o;
	unsigned n = 0, at;

	for (uint32_t i = state; i != 0; i = g->parent[i])
		n++;
	o->n_trace = n + (last != NULL);
	o->trace = calloc(o->n_trace + 1, sizeof(*o->trace));
	if (last)
		o->trace[n] = *last;
	at = n;
	for (uint32_t i = state; i != 0; i = g->parent[i])
		o->trace[--at] = g->step[i];
	undo_symmetry(g, o->trace, o->n_trace);
}

static void progress(struct graph *g, uint32_t at, unsigned depth)
{
	double now = seconds();

	if (g->s->cfg.quiet || now - g->said < 5)
		return;
	g->said = now;
	fprintf(stderr, "%llu states, %llu to expand, depth %u, %.0f states/s\n",
		(unsigned long long)g->n, (unsigned long long)(g->n - at), depth,
		(double)g->n / (now - g->began));
}

/* No packet is in flight, nobody has one to send or is held: what goes on is a retransmission. */
static bool only_timers(struct mc_sys *s, const uint32_t *v)
{
	for (unsigned i = s->n_sw; i < s->n_nodes; i++)
		if (mc_host_flags(s, i, v[i]) & (MC_H_SEND | MC_H_RNR | MC_H_ANSWER))
			return false;
	for (unsigned i = 0; i < s->n_sw; i++)
		if (mc_switch_flags(s, i, v[i]) & MC_S_HELD)
			return false;
	return mc_quiet(s, v);
}

/* All steps of one state. False: a violation. */
static bool expand(struct graph *g, uint32_t at)
{
	struct mc_action actions[MAX_ACTIONS];
	uint32_t to[MC_MAX_WORDS], *v = (uint32_t *)(g->vec + at * g->vec_bytes);
	unsigned n;

	if (mc_final(g->s, v, &g->o->violation)) {
		g->good[at] = 1;
		g->o->finals++;
		if (g->o->violation)
			make_trace(g, at, NULL);
		return g->o->violation == NULL;
	}
	if (g->s->cfg.prompt && only_timers(g->s, v)) {
		g->o->violation = g->s->cfg.loss ? "what was lost shows, but only a timer goes on"
						 : "nothing was lost, but only a timer goes on";
		make_trace(g, at, NULL);
		return false;
	}
	n = mc_actions(g->s, v, actions);
	for (unsigned k = 0; k < n; k++) {
		const struct mc_result *r;

		g->o->violation = mc_apply(g->s, v, actions[k], to, &r);
		if (g->o->violation) {
			make_trace(g, at, &actions[k]);
			return false;
		}
		mc_canonical(g->s, to);
		g->edge[g->n_edges++] = visit(g, to, at, actions[k]);
	}
	g->degree[at] = (uint16_t)n;
	return true;
}

/* Marks what can reach a final state, backwards until nothing changes: steps mostly lead to later
 * states, so a few rounds do. */
static void reach_back(struct graph *g)
{
	struct mc_outcome *o = g->o;
	uint32_t first = 0;
	bool again = true;

	while (again) {
		uint64_t e = g->n_edges;

		again = false;
		for (uint64_t i = g->n; i-- > 0;) {
			bool good = g->good[i];

			e -= g->degree[i];
			for (unsigned k = 0; !good && k < g->degree[i]; k++)
				good = g->good[g->edge[e + k]];
			again |= good != (bool)g->good[i];
			g->good[i] = good;
		}
	}
	for (uint64_t i = g->n; i-- > 0;) {
		if (g->good[i])
			continue;
		o->doomed++;
		first = (uint32_t)i;
	}
	if (o->doomed) {
		o->violation = "no final state can be reached any more";
		make_trace(g, first, NULL);
	}
}

void mc_explore(struct mc_sys *s, struct mc_outcome *o)
{
	uint32_t v[MC_MAX_WORDS];
	uint64_t at = 0, level_end = 1;
	struct graph g;

	*o = (struct mc_outcome){0};
	graph_open(&g, s, o);
	mc_initial(s, v);
	visit(&g, v, 0, (struct mc_action){0});
	for (; at < g.n && g.n < s->cfg.max_states && expand(&g, (uint32_t)at); at++) {
		if (at == level_end) {
			o->depth++;
			level_end = g.n;
		}
		if ((at & 0xffff) == 0)
			progress(&g, (uint32_t)at, o->depth);
		if ((at + 1) * g.vec_bytes - g.freed > FREE_STEP) {
			madvise(g.vec + g.freed, FREE_STEP, MADV_DONTNEED);
			g.freed += FREE_STEP;
		}
	}
	o->complete = o->violation == NULL && at == g.n;
	if (o->complete)
		reach_back(&g);
	o->states = g.n;
	o->transitions = g.n_edges;
	o->seconds = seconds() - g.began;
	o->collision = (double)g.n * (double)g.n / ldexp(1, 65);
	o->bytes = g.n * (sizeof(*g.hash) + sizeof(*g.parent) + sizeof(*g.step) +
				 sizeof(*g.degree) + 1) +
		   (g.mask + 1) * sizeof(*g.slot) + g.n_edges * sizeof(*g.edge) + s->results_used +
		   s->chunks.used + s->queues.used;
	for (unsigned i = 0; i < s->n_nodes; i++)
		o->bytes += s->nodes[i].used + s->memo[i].mask * sizeof(struct memo_entry);
	graph_close(&g);
}
