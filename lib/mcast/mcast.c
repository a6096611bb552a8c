/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mcast/mcast.h"

#include <errno.h>
#include <string.h>

#include "lib/mcast/inside.h"

int mcast_init(struct mcast *m, const struct mcast_config *c)
{
	if (c->n_ranks < MCAST_MIN_RANKS || c->n_ranks > MCAST_MAX_RANKS || c->rank >= c->n_ranks)
		return -EINVAL;
	if (c->chains == 0 || c->n_ranks % c->chains != 0 || c->chunk == 0)
		return -EINVAL;
	if (c->psn_bits < 1 || c->psn_bits > 31 || c->send_window == 0 || c->read_window == 0)
		return -EINVAL;
	if (c->link_bps == 0 || c->give_up_ns == 0 || c->read_bytes < c->chunk)
		return -EINVAL;
	*m = (struct mcast){
		.config = *c, .id = c->first_id - 1, .next_psn = c->first_psn & mask(c->psn_bits)};
	return 0;
}

/* ---- memory ---- */

static size_t blocks_size(uint32_t n_blocks)
{
	return (n_blocks * sizeof(struct mcast_block) + 7) & ~(size_t)7;
}

size_t mcast_memory(const struct mcast_config *c, bool all, uint64_t block_bytes)
{
	const uint64_t blocks = all ? c->n_ranks : 1;
	const uint64_t of_block = block_bytes / c->chunk + (block_bytes % c->chunk != 0);

	if (of_block > (uint64_t)mask(c->psn_bits) + 1 ||
		blocks * of_block > (uint64_t)mask(c->psn_bits) + 1)
		return 0;
	return blocks_size((uint32_t)blocks) + (size_t)((blocks * of_block + 63) / 64 * 8);
}

/* ---- messages ---- */

void mcast_say(struct mcast *m, unsigned to, uint8_t type, uint32_t arg)
{
	const unsigned at = m->say_tail++ % SAY_MAX;

	m->say[at] = (struct mcast_message){type, m->id, arg};
	m->say_to[at] = to;
}

static void fail(struct mcast *m, int error)
{
	if (m->phase != MCAST_BARRIER && m->phase != MCAST_RUNNING)
		return;
	m->phase = MCAST_FAILED;
	m->error = error;
	m->say_head = m->say_tail;
	mcast_say(m, left_of(&m->config), MCAST_MSG_ABORT, 0);
	if (right_of(&m->config) != left_of(&m->config))
		mcast_say(m, right_of(&m->config), MCAST_MSG_ABORT, 0);
}

void mcast_fail(struct mcast *m, int error)
{
	fail(m, error);
}

/* ---- the end ---- */

void mcast_settle(struct mcast *m)
{
	const struct mcast_config *c = &m->config;

	if (m->phase != MCAST_RUNNING || m->n_missing > 0 || m->reading > 0)
		return;
	if (m->handed_on && m->times.whole == 0)
		m->times.whole = m->now;
	if (!m->final_said)
		mcast_say(m, left_of(c), MCAST_MSG_FINAL, 0);
	m->final_said = true;
	if (m->final_heard && m->handed_on && m->say_head == m->say_tail)
		m->phase = MCAST_DONE;
}

/* ---- beginning ---- */

static void own_block(struct mcast *m, uint32_t block)
{
	for (uint32_t i = 0; i < m->block_chunks; i++) {
		const uint64_t at = (uint64_t)block * m->block_chunks + i;

		m->bitmap[at / 64] |= UINT64_C(1) << at % 64;
	}
	m->block[block].missing = 0;
	m->block[block].state = BLOCK_WHOLE;
	m->n_missing--;
	m->to_send = m->block_chunks;
}

static int begin(struct mcast *m, bool all, unsigned root, uint64_t bytes, void *memory, size_t cap,
	uint64_t now)
{
	const struct mcast_config *c = &m->config;
	const size_t need = bytes > 0 && root < c->n_ranks ? mcast_memory(c, all, bytes) : 0;
	const uint32_t early = m->heard_early;

	if (m->phase == MCAST_BARRIER || m->phase == MCAST_RUNNING)
		return -EBUSY;
	if (m->phase == MCAST_FAILED)
		return -ECONNABORTED;
	if (bytes == 0 || root >= c->n_ranks)
		return -EINVAL;
	if (need == 0)
		return -EMSGSIZE;
	if (cap < need)
		return -ENOSPC;
	*m = (struct mcast){.config = *c,
		.count = m->count,
		.phase = MCAST_BARRIER,
		.id = m->id + 1,
		.next_psn = m->next_psn,
		.heard = early,
		.all = all,
		.root = root,
		.block_bytes = bytes,
		.first_psn = m->next_psn,
		.n_blocks = all ? c->n_ranks : 1,
		.block_chunks = mcast_chunks(bytes, c->chunk),
		.sending = m->sending,
		.times.begun = now};
	memset(memory, 0, need);
	m->block = memory;
	m->bitmap = (uint64_t *)((uint8_t *)memory + blocks_size(m->n_blocks));
	m->next_psn = (m->next_psn + m->n_blocks * m->block_chunks) & mask(c->psn_bits);
	m->n_missing = m->n_blocks;
	for (uint32_t i = 0; i < m->n_blocks; i++)
		m->block[i].missing = m->block_chunks;
	if (is_root(m))
		own_block(m, all ? c->rank : 0);
	progress(m, now);
	mcast_barrier(m, now);
	return 0;
}

int mcast_begin_allgather(
	struct mcast *m, uint64_t block_bytes, void *memory, size_t cap, uint64_t now)
{
	return begin(m, true, 0, block_bytes, memory, cap, now);
}

int mcast_begin_broadcast(
	struct mcast *m, unsigned root, uint64_t bytes, void *memory, size_t cap, uint64_t now)
{
	return begin(m, false, root, bytes, memory, cap, now);
}

/* ---- messages that come ---- */

static bool asked_by_right(struct mcast *m, uint32_t block)
{
	struct mcast_block *b;

	if (block >= m->n_blocks)
		return false;
	b = &m->block[block];
	if (b->wanted || b->grant_due)
		return false;
	b->wanted = b->state != BLOCK_WHOLE;
	b->grant_due = !b->wanted;
	m->grants_due += b->grant_due;
	return true;
}

static bool granted_by_left(struct mcast *m, uint32_t block)
{
	if (block >= m->n_blocks)
		return false;
	if (m->block[block].state == BLOCK_WHOLE) /* the rest came meanwhile */
		return true;
	if (m->block[block].state != BLOCK_ASKED)
		return false;
	m->block[block].state = BLOCK_GRANTED;
	m->granted++;
	return true;
}

/* He has everything, so nothing is due to him any more. */
static void final_of_right(struct mcast *m)
{
	m->final_heard = true;
	for (uint32_t i = 0; i < m->n_blocks; i++)
		m->block[i].wanted = m->block[i].grant_due = false;
	m->grants_due = 0;
}

static bool hear(struct mcast *m, unsigned from, const struct mcast_message *msg, uint64_t now)
{
	const struct mcast_config *c = &m->config;
	const bool right = from == right_of(c), left = from == left_of(c);

	switch (msg->type) {
	case MCAST_MSG_BARRIER:
		if (!mcast_barrier_from(c, from, msg->arg))
			return false;
		m->heard |= 1u << msg->arg;
		mcast_barrier(m, now);
		return true;
	case MCAST_MSG_ACTIVATE:
		if (!m->all || !left || mcast_step_of(c->rank, c->n_ranks, c->chains) == 0)
			return false;
		m->active = true;
		return true;
	case MCAST_MSG_ASK:
		return right && asked_by_right(m, msg->arg);
	case MCAST_MSG_GRANT:
		return left && granted_by_left(m, msg->arg);
	case MCAST_MSG_FINAL:
		if (right)
			final_of_right(m);
		return right;
	case MCAST_MSG_ABORT:
		if (left || right)
			fail(m, -ECONNABORTED);
		return left || right;
	default:
		return false;
	}
}

int mcast_message(struct mcast *m, unsigned from, const struct mcast_message *msg, uint64_t now)
{
	const bool busy = m->phase == MCAST_BARRIER || m->phase == MCAST_RUNNING;

	/* Nobody is ahead by more than the barrier of the next one. */
	if (msg->id == m->id + 1 && msg->type == MCAST_MSG_BARRIER &&
		mcast_barrier_from(&m->config, from, msg->arg)) {
		m->heard_early |= 1u << msg->arg;
		return 0;
	}
	/* A yes to what has come by itself since. */
	if (msg->type == MCAST_MSG_GRANT && from == left_of(&m->config) &&
		(msg->id == m->id - 1 || (msg->id == m->id && m->phase == MCAST_DONE)))
		return 0;
	if (!busy || msg->id != m->id || !hear(m, from, msg, now)) {
		m->count.bad_message++;
		return -EPROTO;
	}
	if (m->phase == MCAST_BARRIER || m->phase == MCAST_RUNNING) {
		progress(m, now);
		mcast_settle(m);
	}
	return 0;
}

/* ---- time ---- */

static void cut_off(struct mcast *m, uint64_t now)
{
	m->cut = true;
	m->count.cutoffs += m->n_missing > 0;
	if (m->n_missing > 0)
		m->times.cut = now;
	for (uint32_t i = 0; i < m->n_blocks; i++)
		if (m->block[i].state == BLOCK_OPEN) {
			m->block[i].state = BLOCK_ASK;
			m->asks_due++;
		}
}

void mcast_tick(struct mcast *m, uint64_t now)
{
	if (m->phase != MCAST_BARRIER && m->phase != MCAST_RUNNING)
		return;
	if (m->phase == MCAST_RUNNING && !m->cut && now >= m->cutoff_at)
		cut_off(m, now);
	if (now >= m->give_up_at)
		fail(m, -ETIMEDOUT);
}

uint64_t mcast_deadline(const struct mcast *m)
{
	if (m->phase != MCAST_BARRIER && m->phase != MCAST_RUNNING)
		return UINT64_MAX;
	if (m->phase == MCAST_RUNNING && !m->cut && m->n_missing > 0 &&
		m->cutoff_at < m->give_up_at)
		return m->cutoff_at;
	return m->give_up_at;
}
