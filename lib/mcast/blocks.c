/* SPDX-License-Identifier: BSD-3-Clause */
/* What has come: chunks by multicast and by READ, whose bits are set once. */
#include "lib/mcast/inside.h"

/* A block has all its chunks: whoever has asked for it may have it. */
static void whole(struct mcast *m, struct mcast_block *b)
{
	if (b->state == BLOCK_ASK)
		m->asks_due--;
	if (b->state == BLOCK_GRANTED)
		m->granted--;
	b->state = BLOCK_WHOLE;
	m->n_missing--;
	if (b->wanted) {
		b->wanted = false;
		b->grant_due = true;
		m->grants_due++;
	}
}

/* False: it is there. */
static bool mark(struct mcast *m, uint32_t block, uint32_t chunk)
{
	const uint64_t at = (uint64_t)block * m->block_chunks + chunk, bit = UINT64_C(1) << at % 64;
	struct mcast_block *b = &m->block[block];

	if (m->bitmap[at / 64] & bit)
		return false;
	m->bitmap[at / 64] |= bit;
	if (--b->missing == 0)
		whole(m, b);
	return true;
}

/* Which chunk of this collective the immediate data means. */
static enum mcast_verdict find_chunk(
	const struct mcast *m, uint32_t imm, uint32_t *block, uint32_t *chunk)
{
	const unsigned bits = m->config.psn_bits;
	uint32_t n;

	if (m->phase != MCAST_RUNNING && m->phase != MCAST_BARRIER)
		return MCAST_STALE;
	if (imm >> bits != (m->id & mask(32 - bits)))
		return MCAST_STALE;
	n = (imm - m->first_psn) & mask(bits);
	if (n / m->block_chunks >= m->n_blocks)
		return MCAST_RANGE;
	*block = n / m->block_chunks;
	*chunk = n % m->block_chunks;
	return MCAST_TAKE;
}

static enum mcast_verdict judge(struct mcast *m, unsigned from, uint32_t imm, uint64_t len,
	uint32_t *block, uint32_t *chunk)
{
	const enum mcast_verdict verdict = find_chunk(m, imm, block, chunk);

	if (verdict != MCAST_TAKE)
		return verdict;
	if (from != root_of(m, *block))
		return MCAST_FORGED;
	return len == chunk_len(m, *chunk) ? MCAST_TAKE : MCAST_LENGTH;
}

/* Marks what is to be taken, and counts. */
static enum mcast_verdict take(
	struct mcast *m, enum mcast_verdict verdict, uint32_t block, uint32_t chunk, uint64_t now)
{
	uint64_t *const counter[] = {&m->count.taken, &m->count.duplicate, &m->count.stale,
		&m->count.range, &m->count.length, &m->count.forged};

	if (verdict == MCAST_TAKE && !mark(m, block, chunk))
		verdict = MCAST_DUPLICATE;
	++*counter[verdict];
	if (verdict == MCAST_TAKE) {
		m->times.came = now;
		progress(m, now);
		mcast_settle(m);
	}
	return verdict;
}

enum mcast_verdict mcast_datagram(
	struct mcast *m, unsigned from, uint32_t imm, uint64_t len, uint64_t now, uint64_t *offset)
{
	uint32_t block = 0, chunk = 0;
	enum mcast_verdict verdict = judge(m, from, imm, len, &block, &chunk);

	verdict = take(m, verdict, block, chunk, now);
	if (verdict == MCAST_TAKE)
		*offset = chunk_offset(m, block, chunk);
	return verdict;
}

/* Bits that are set, of n from `from` on. */
static uint32_t count_bits(const uint64_t *bitmap, uint64_t from, uint32_t n)
{
	uint32_t bits = 0;

	while (n > 0) {
		const unsigned at = from % 64, of_word = n < 64 - at ? n : 64 - at;
		const uint64_t word = bitmap[from / 64] >> at;

		bits += (uint32_t)__builtin_popcountll(
			of_word < 64 ? word & ((UINT64_C(1) << of_word) - 1) : word);
		from += of_word;
		n -= of_word;
	}
	return bits;
}

void mcast_marked(struct mcast *m, const uint64_t *marks, uint64_t again, uint64_t now)
{
	const uint32_t words = (mcast_marks(m) + 63) / 64;
	uint64_t taken = 0;

	m->count.duplicate += again;
	if (m->phase != MCAST_RUNNING && m->phase != MCAST_BARRIER)
		return;
	for (uint32_t i = 0; i < words; i++) {
		const uint64_t new = __atomic_load_n(&marks[i], __ATOMIC_ACQUIRE) & ~m->bitmap[i];

		m->bitmap[i] |= new;
		taken += (unsigned)__builtin_popcountll(new);
	}
	if (taken == 0)
		return;
	m->count.taken += taken;
	m->times.came = now;
	for (uint32_t i = 0; i < m->n_blocks; i++) {
		struct mcast_block *b = &m->block[i];

		if (b->missing == 0)
			continue;
		b->missing = m->block_chunks -
			     count_bits(m->bitmap, (uint64_t)i * m->block_chunks, m->block_chunks);
		if (b->missing == 0)
			whole(m, b);
	}
	progress(m, now);
	mcast_settle(m);
}

uint64_t mcast_part(const struct mcast *m, uint32_t block, uint32_t *imm)
{
	const unsigned bits = m->config.psn_bits;

	*imm = m->id << bits | ((m->first_psn + block * m->block_chunks) & mask(bits));
	return chunk_offset(m, block, 0);
}

unsigned mcast_root(const struct mcast *m, uint32_t block)
{
	return root_of(m, block);
}

void mcast_read_done(struct mcast *m, uint32_t block, uint32_t first, uint32_t n, uint64_t now)
{
	if (m->reading > 0)
		m->reading--;
	if (m->phase != MCAST_RUNNING)
		return;
	for (uint32_t i = first; i < first + n; i++)
		m->count.fetched += mark(m, block, i);
	progress(m, now);
	mcast_settle(m);
}
