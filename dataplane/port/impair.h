/* SPDX-License-Identifier: BSD-3-Clause */
/* Bad weather on a port, from a seed: received packets are lost, corrupted in one bit, doubled or
 * overtaken by up to four later ones; those to be sent are lost. For tests of what is behind the
 * port. A BTH opcode may have a loss of its own: to meet ACKs, say. And what it costs to compute
 * every ICRC anew. */
#ifndef DATAPLANE_IMPAIR_H
#define DATAPLANE_IMPAIR_H

#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>

enum { IMPAIR_HELD = 8, IMPAIR_LOSE_MAX = 16 };

/* Received RoCE packets with this opcode are lost with this probability of 2^32. */
struct impair_lose {
	uint8_t opcode;
	uint64_t loss;
};

struct impair {
	uint64_t loss, dup, reorder, corrupt, tx_loss; /* probabilities of 2^32 */
	uint64_t rng;
	bool icrc; /* of received RoCE packets is computed anew, whatever it was */
	bool over; /* fine weather, but for what is held from before */
	unsigned n_lose;
	struct impair_lose lose[IMPAIR_LOSE_MAX];
	unsigned n_held;
	struct {
		struct rte_mbuf *mbuf;
		unsigned left;  /* packets that may still overtake it */
		bool overtaken; /* by one at least */
		uint64_t until_ns;
	} held[IMPAIR_HELD];
};

struct impair_result {
	unsigned out;                    /* packets in out */
	unsigned lost, doubled, no_mbuf; /* doubled counts copies wanted, no_mbuf those not made */
	unsigned overtaken, corrupted;   /* packets, each once */
};

/* Weather is as `to` says from now on, NULL: fine. What is held stays, and is let go as before. */
void impair_change(struct impair *im, const struct impair *to);

/* n received packets become those in out (room for 2 n + IMPAIR_HELD). To be called with n = 0 as
 * well, so that nothing is held for long. */
struct impair_result impair_apply(struct impair *im, struct rte_mbuf **in, unsigned n,
	struct rte_mbuf **out, struct rte_mempool *pool, uint64_t now);

/* Is this packet, to be sent, lost? The caller frees it. */
bool impair_loses(struct impair *im);

void impair_free_held(struct impair *im);

#endif
