/* SPDX-License-Identifier: BSD-3-Clause */
/* The barrier before a collective, and the ranks that a rank talks to. */
#include "lib/mcast/inside.h"

static const uint64_t NS = UINT64_C(1000000000);

/* The largest power of two that is not above the ranks. */
static unsigned folded_ranks(const struct mcast_config *c)
{
	return 1u << (31 - __builtin_clz(c->n_ranks));
}

static bool add_peer(unsigned *peer, unsigned *n, unsigned rank, unsigned self)
{
	for (unsigned i = 0; i < *n; i++)
		if (peer[i] == rank)
			return false;
	if (rank != self)
		peer[(*n)++] = rank;
	return true;
}

unsigned mcast_peers(const struct mcast_config *c, unsigned peer[MCAST_MAX_PEERS])
{
	const unsigned power = folded_ranks(c);
	unsigned n = 0;

	add_peer(peer, &n, left_of(c), c->rank);
	add_peer(peer, &n, right_of(c), c->rank);
	if (c->rank >= power) {
		add_peer(peer, &n, c->rank - power, c->rank);
		return n;
	}
	for (unsigned bit = 1; bit < power; bit <<= 1)
		add_peer(peer, &n, c->rank ^ bit, c->rank);
	if (c->rank + power < c->n_ranks)
		add_peer(peer, &n, c->rank + power, c->rank);
	return n;
}

/* ---- the barrier ---- */

/* Everybody has receives posted. */
static void run(struct mcast *m, uint64_t now)
{
	const struct mcast_config *c = &m->config;
	const uint64_t blocks = m->all ? m->n_blocks - 1 : 1;
	const __uint128_t bits = (__uint128_t)blocks * m->block_bytes * 8;

	m->phase = MCAST_RUNNING;
	m->now = m->times.running = now;
	m->cutoff_at = now + (uint64_t)(bits * NS / c->link_bps) + c->alpha_ns;
	if (!is_root(m))
		m->handed_on = true;
	else if (!m->all || mcast_step_of(c->rank, c->n_ranks, c->chains) == 0)
		m->active = true;
	mcast_settle(m);
}

void mcast_barrier(struct mcast *m, uint64_t now)
{
	const struct mcast_config *c = &m->config;
	const unsigned power = folded_ranks(c);
	const bool has_folded = c->rank + power < c->n_ranks;

	if (m->phase != MCAST_BARRIER)
		return;
	if (c->rank >= power) {
		if (!m->folded)
			mcast_say(m, c->rank - power, MCAST_MSG_BARRIER, MCAST_FOLD);
		m->folded = true;
		if (m->heard >> MCAST_UNFOLD & 1)
			run(m, now);
		return;
	}
	if (has_folded && !(m->heard >> MCAST_FOLD & 1))
		return;
	for (; 1u << m->round < power; m->round++, m->folded = false) {
		if (!m->folded)
			mcast_say(m, c->rank ^ 1u << m->round, MCAST_MSG_BARRIER, m->round);
		m->folded = true;
		if (!(m->heard >> m->round & 1))
			return;
	}
	if (has_folded)
		mcast_say(m, c->rank + power, MCAST_MSG_BARRIER, MCAST_UNFOLD);
	run(m, now);
}

/* Whether this rank gets that from there. */
bool mcast_barrier_from(const struct mcast_config *c, unsigned from, uint32_t arg)
{
	const unsigned power = folded_ranks(c);

	if (arg == MCAST_FOLD)
		return from == c->rank + power;
	if (arg == MCAST_UNFOLD)
		return c->rank >= power && from == c->rank - power;
	return arg < MCAST_FOLD && 1u << arg < power && c->rank < power &&
	       from == (c->rank ^ 1u << arg);
}
