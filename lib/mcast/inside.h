/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/mcast only: mcast.c begins collectives, hears messages and the time; barrier.c has the
 * barrier and who takes part in it; blocks.c keeps what has come; post.c says what to post. */
#ifndef MCAST_INSIDE_H
#define MCAST_INSIDE_H

#include "lib/mcast/mcast.h"
#include "lib/mcast/schedule.h"

enum block_state { BLOCK_OPEN, BLOCK_ASK, BLOCK_ASKED, BLOCK_GRANTED, BLOCK_WHOLE };
enum { SAY_MAX = 64 };

static inline unsigned left_of(const struct mcast_config *c)
{
	return (c->rank + c->n_ranks - 1) % c->n_ranks;
}

static inline unsigned right_of(const struct mcast_config *c)
{
	return (c->rank + 1) % c->n_ranks;
}

static inline uint32_t mask(unsigned bits)
{
	return (uint32_t)((UINT64_C(1) << bits) - 1);
}

static inline uint64_t chunk_len(const struct mcast *m, uint32_t chunk)
{
	const uint64_t at = (uint64_t)chunk * m->config.chunk, left = m->block_bytes - at;

	return left < m->config.chunk ? left : m->config.chunk;
}

static inline uint64_t chunk_offset(const struct mcast *m, uint32_t block, uint32_t chunk)
{
	return block * m->block_bytes + (uint64_t)chunk * m->config.chunk;
}

static inline unsigned root_of(const struct mcast *m, uint32_t block)
{
	return m->all ? block : m->root;
}

static inline bool is_root(const struct mcast *m)
{
	return m->all || m->root == m->config.rank;
}

static inline void progress(struct mcast *m, uint64_t now)
{
	m->now = now;
	m->give_up_at = now + m->config.give_up_ns;
}

/* mcast.c. A message to a rank, to be posted; whether the collective is over, after anything that
 * may have ended it. */
void mcast_say(struct mcast *m, unsigned to, uint8_t type, uint32_t arg);
void mcast_settle(struct mcast *m);

/* barrier.c. Goes on as far as what was heard lets it; whether this rank gets that word from there.
 */
void mcast_barrier(struct mcast *m, uint64_t now);
bool mcast_barrier_from(const struct mcast_config *c, unsigned from, uint32_t arg);

#endif
