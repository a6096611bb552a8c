/* SPDX-License-Identifier: BSD-3-Clause */
/* What to post: messages, questions and grants, multicasts, READs; and whose turn it is when the
 * own multicasts are out. */
#include "lib/mcast/inside.h"

/* The last of the own chunks is out: the next of the chain, if there is one. */
static void hand_on(struct mcast *m)
{
	unsigned next;

	if (m->handed_on || !m->active || m->to_send > 0 || m->sending > 0)
		return;
	m->handed_on = true;
	if (m->all && mcast_chain_next(m->config.rank, m->config.n_ranks, m->config.chains, &next))
		mcast_say(m, next, MCAST_MSG_ACTIVATE, 0);
}

void mcast_sent(struct mcast *m, uint32_t n, uint64_t now)
{
	m->sending -= n < m->sending ? n : m->sending;
	if (m->phase != MCAST_RUNNING)
		return;
	progress(m, now);
	hand_on(m);
	mcast_settle(m);
}

/* ---- what to post ---- */

static bool next_message(struct mcast *m, struct mcast_request *r)
{
	const unsigned at = m->say_head % SAY_MAX;

	if (m->say_head == m->say_tail)
		return false;
	*r = (struct mcast_request){
		.type = MCAST_POST_MESSAGE, .peer = m->say_to[at], .message = m->say[at]};
	m->say_head++;
	return true;
}

/* The next block for which a grant or a question is due, from where the last one was. */
static bool next_of_block(struct mcast *m, struct mcast_request *r)
{
	for (uint32_t i = 0; i < m->n_blocks; i++) {
		const uint32_t at = (m->ask_from + i) % m->n_blocks;
		struct mcast_block *b = &m->block[at];
		const bool grant = b->grant_due;

		if (!grant && b->state != BLOCK_ASK)
			continue;
		*r = (struct mcast_request){.type = MCAST_POST_MESSAGE,
			.peer = grant ? right_of(&m->config) : left_of(&m->config),
			.message = {grant ? MCAST_MSG_GRANT : MCAST_MSG_ASK, m->id, at}};
		m->ask_from = at;
		if (grant) {
			b->grant_due = false;
			m->grants_due--;
		} else {
			b->state = BLOCK_ASKED;
			m->asks_due--;
			m->count.asked++;
		}
		return true;
	}
	return false;
}

static bool next_send(struct mcast *m, struct mcast_request *r)
{
	const unsigned bits = m->config.psn_bits;
	const uint32_t block = m->all ? m->config.rank : 0, chunk = m->block_chunks - m->to_send;
	const uint32_t psn = m->first_psn + block * m->block_chunks + chunk;

	*r = (struct mcast_request){.type = MCAST_POST_SEND,
		.offset = chunk_offset(m, block, chunk),
		.len = chunk_len(m, chunk),
		.imm = m->id << bits | (psn & mask(bits))};
	m->to_send--;
	m->sending++;
	return true;
}

/* The next run of chunks that a granted block lacks, as far as one READ goes. */
static bool next_read(struct mcast *m, struct mcast_request *r)
{
	const uint32_t most = m->config.read_bytes / m->config.chunk;

	for (uint32_t i = 0; i < m->n_blocks; i++) {
		struct mcast_block *b = &m->block[i];
		uint32_t end;

		if (b->state != BLOCK_GRANTED)
			continue;
		while (b->cursor < m->block_chunks && mcast_has(m, i, b->cursor))
			b->cursor++;
		end = b->cursor;
		while (end < m->block_chunks && end - b->cursor < most && !mcast_has(m, i, end))
			end++;
		if (end == b->cursor)
			continue;
		*r = (struct mcast_request){.type = MCAST_POST_READ,
			.peer = left_of(&m->config),
			.offset = chunk_offset(m, i, b->cursor),
			.len = (uint64_t)(end - b->cursor - 1) * m->config.chunk +
			       chunk_len(m, end - 1),
			.block = i,
			.first = b->cursor,
			.n = end - b->cursor};
		b->cursor = end;
		m->reading++;
		return true;
	}
	return false;
}

bool mcast_next(struct mcast *m, struct mcast_request *r)
{
	if (next_message(m, r)) {
		mcast_settle(m);
		return true;
	}
	if (m->phase != MCAST_RUNNING)
		return false;
	if (m->grants_due + m->asks_due > 0 && next_of_block(m, r))
		return true;
	if (m->active && m->to_send > 0 && m->sending < m->config.send_window)
		return next_send(m, r);
	return m->granted > 0 && m->reading < m->config.read_window && next_read(m, r);
}
