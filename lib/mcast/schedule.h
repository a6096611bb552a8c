/* SPDX-License-Identifier: BSD-3-Clause */
/* Who multicasts when, and what the protocol keeps in memory: plain functions (multicast AllGather,
 * section III-D, appendix A, figure 7). */
#ifndef MCAST_SCHEDULE_H
#define MCAST_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* P ranks in M chains, P mod M = 0: chain j is the ranks jR .. jR + R - 1, R = P/M; at step i the
 * i-th of each chain multicasts. */
static inline unsigned mcast_chain_len(unsigned n_ranks, unsigned chains)
{
	return n_ranks / chains;
}

static inline unsigned mcast_step_of(unsigned rank, unsigned n_ranks, unsigned chains)
{
	return rank % mcast_chain_len(n_ranks, chains);
}

/* The rank that goes on when this one is ready; false: it is its chain's last. */
static inline bool mcast_chain_next(
	unsigned rank, unsigned n_ranks, unsigned chains, unsigned *next)
{
	const unsigned len = mcast_chain_len(n_ranks, chains);

	*next = rank + 1;
	return rank % len != len - 1;
}

/* Immediate data is 32 bits: the chunk's number in the low psn_bits, the collective's above. What a
 * number of bits can address, and what a bitmap of all of that takes. */
static inline uint64_t mcast_max_bytes(unsigned psn_bits, uint32_t chunk)
{
	return (UINT64_C(1) << psn_bits) * chunk;
}

static inline uint64_t mcast_max_bitmap(unsigned psn_bits)
{
	return (UINT64_C(1) << psn_bits) / 8;
}

/* Trees take chunks in turn, by their numbers, which wrap (not in step with the trees, if these are
 * no power of two). Whether this is the last of its tree, of whose block `left` more come. */
static inline bool mcast_last_of_tree(
	uint32_t psn, uint32_t left, unsigned psn_bits, unsigned trees)
{
	const uint32_t mask = (uint32_t)((UINT64_C(1) << psn_bits) - 1);

	for (uint32_t k = 1; k <= left && k < 2 * trees; k++)
		if (((psn + k) & mask) % trees == (psn & mask) % trees)
			return false;
	return true;
}

/* Of the numbers below n those of the tree. */
static inline uint32_t mcast_below_of_tree(uint32_t n, unsigned trees, unsigned tree)
{
	return n / trees + (n % trees > tree);
}

/* Of n numbers from first on, 2^psn_bits at most, those of the tree. */
static inline uint32_t mcast_of_tree(
	uint32_t first, uint32_t n, unsigned psn_bits, unsigned trees, unsigned tree)
{
	const uint32_t numbers = 1u << psn_bits, from = first & (numbers - 1);
	const uint32_t rest = numbers - from, before = mcast_below_of_tree(from, trees, tree);

	if (n <= rest)
		return mcast_below_of_tree(from + n, trees, tree) - before;
	return mcast_below_of_tree(numbers, trees, tree) - before +
	       mcast_below_of_tree(n - rest, trees, tree);
}

/* Staging: as many chunks as the receive queue is deep. */
static inline uint64_t mcast_staging_bytes(uint32_t depth, uint32_t chunk)
{
	return (uint64_t)depth * chunk;
}

static inline uint32_t mcast_chunks(uint64_t bytes, uint32_t chunk)
{
	return (uint32_t)((bytes + chunk - 1) / chunk);
}

#endif
