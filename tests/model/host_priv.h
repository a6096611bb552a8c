/* SPDX-License-Identifier: BSD-3-Clause */
/* What a host's parts share: which PSNs it sends and receives, and when CommLib lets it. Positions
 * are indices of mc_program. */
#ifndef MODEL_HOST_PRIV_H
#define MODEL_HOST_PRIV_H

#include "tests/model/model.h"

static inline unsigned mc_rank_of(const struct mc_sys *s, unsigned node)
{
	return node - s->n_sw;
}

static inline bool mc_sends(const struct mc_sys *s, unsigned r, unsigned i)
{
	return s->prog.psn[i].senders >> r & 1;
}

static inline bool mc_receives(const struct mc_sys *s, unsigned r, unsigned i)
{
	return s->prog.psn[i].receivers >> r & 1;
}

/* Where the host's queue pair has begun, and what it cannot reach without beginning anew (--resync;
 * else the whole program). */
unsigned mc_host_begin(const struct mc_sys *s, const struct mc_host_state *h);
unsigned mc_host_end(const struct mc_sys *s, const struct mc_host_state *h);

/* The next PSN from i on that the rank sends, or receives; the end if none is left. */
uint8_t mc_next_send(const struct mc_sys *s, const struct mc_host_state *h, unsigned r, unsigned i);
uint8_t mc_next_receive(
	const struct mc_sys *s, const struct mc_host_state *h, unsigned r, unsigned i);

/* Messages that the rank has sent, or received, before i: what an MSN counts. */
uint32_t mc_messages_sent(
	const struct mc_sys *s, const struct mc_host_state *h, unsigned r, unsigned i);
uint32_t mc_messages_received(
	const struct mc_sys *s, const struct mc_host_state *h, unsigned r, unsigned i);

/* ---- CommLib (docs/inc-protocol.md, 2.3, 2.4) ---- */
/* Everything before PSN i is over for this rank: acknowledged and delivered. */
bool mc_finished_before(
	const struct mc_sys *s, const struct mc_host_state *h, unsigned r, unsigned i);
/* May the message that begins at PSN i be posted? */
bool mc_admitted(const struct mc_sys *s, const struct mc_host_state *h, unsigned r, unsigned i);

#endif
