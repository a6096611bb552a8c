/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mcast/mcast.h"

#include <errno.h>
#include <string.h>

#include "lib/mcast/schedule.h"

enum block_state { BLOCK_OPEN, BLOCK_ASK, BLOCK_ASKED, BLOCK_GRANTED, BLOCK_WHOLE };
enum { SAY_MAX = 64 };

static const uint64_t NS = UINT64_C(1000000000);

static unsigned left_of(const struct mcast_config *c)
{
	return (c->rank + c->n_ranks - 1) % c->n_ranks;
}

static unsigned right_of(const struct mcast_config *c)
{
	return (c->rank + 1) % c->n_ranks;
}

/* The largest power of two that is not above the ranks. */
static unsigned folded_ranks(const struct mcast_config *c)
{
	return 1u << (31 - __builtin_clz(c->n_ranks));
}

static uint32_t mask(unsigned bits)
{
	return (uint32_t)((UINT64_C(1) << bits) - 1);
}

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

static uint64_t chunk_len(const struct mcast *m, uint32_t chunk)
{
	const uint64_t at = (uint64_t)chunk * m->config.chunk, left = m->block_bytes - at;

	return left < m->config.chunk ? left : m->config.chunk;
}

static uint64_t chunk_offset(const struct mcast *m, uint32_t block, uint32_t chunk)
{
	return block * m->block_bytes + (uint64_t)chunk * m->config.chunk;
}

static unsigned root_of(const struct mcast *m, uint32_t block)
{
	return m->all ? block : m->root;
}

/* ---- messages ---- */

static void say(struct mcast *m, unsigned to, uint8_t type, uint32_t arg)
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
	say(m, left_of(&m->config), MCAST_MSG_ABORT, 0);
	if (right_of(&m->config) != left_of(&m->config))
		say(m, right_of(&m->config), MCAST_MSG_ABORT, 0);
}

void mcast_fail(struct mcast *m, int error)
{
	fail(m, error);
}

static void progress(struct mcast *m, uint64_t now)
{
	m->give_up_at = now + m->config.give_up_ns;
}

/* ---- the end ---- */

static void settle(struct mcast *m)
{
	const struct mcast_config *c = &m->config;

	if (m->phase != MCAST_RUNNING || m->n_missing > 0 || m->reading > 0)
		return;
	if (!m->final_said)
		say(m, left_of(c), MCAST_MSG_FINAL, 0);
	m->final_said = true;
	if (m->final_heard && m->handed_on && m->say_head == m->say_tail)
		m->phase = MCAST_DONE;
}

/* ---- sending ---- */

static bool is_root(const struct mcast *m)
{
	return m->all || m->root == m->config.rank;
}

/* The last of the own chunks is out: the next of the chain, if there is one. */
static void hand_on(struct mcast *m)
{
	unsigned next;

	if (m->handed_on || !m->active || m->to_send > 0 || m->sending > 0)
		return;
	m->handed_on = true;
	if (m->all && mcast_chain_next(m->config.rank, m->config.n_ranks, m->config.chains, &next))
		say(m, next, MCAST_MSG_ACTIVATE, 0);
}

void mcast_sent(struct mcast *m, uint32_t n, uint64_t now)
{
	m->sending -= n < m->sending ? n : m->sending;
	if (m->phase != MCAST_RUNNING)
		return;
	progress(m, now);
	hand_on(m);
	settle(m);
}

/* ---- the barrier ---- */

/* Everybody has receives posted. */
static void run(struct mcast *m, uint64_t now)
{
	const struct mcast_config *c = &m->config;
	const uint64_t blocks = m->all ? m->n_blocks - 1 : 1;
	const __uint128_t bits = (__uint128_t)blocks * m->block_bytes * 8;

	m->phase = MCAST_RUNNING;
	m->cutoff_at = now + (uint64_t)(bits * NS / c->link_bps) + c->alpha_ns;
	if (!is_root(m))
		m->handed_on = true;
	else if (!m->all || mcast_step_of(c->rank, c->n_ranks, c->chains) == 0)
		m->active = true;
	settle(m);
}

static void barrier(struct mcast *m, uint64_t now)
{
	const struct mcast_config *c = &m->config;
	const unsigned power = folded_ranks(c);
	const bool has_folded = c->rank + power < c->n_ranks;

	if (m->phase != MCAST_BARRIER)
		return;
	if (c->rank >= power) {
		if (!m->folded)
			say(m, c->rank - power, MCAST_MSG_BARRIER, MCAST_FOLD);
		m->folded = true;
		if (m->heard >> MCAST_UNFOLD & 1)
			run(m, now);
		return;
	}
	if (has_folded && !(m->heard >> MCAST_FOLD & 1))
		return;
	for (; 1u << m->round < power; m->round++, m->folded = false) {
		if (!m->folded)
			say(m, c->rank ^ 1u << m->round, MCAST_MSG_BARRIER, m->round);
		m->folded = true;
		if (!(m->heard >> m->round & 1))
			return;
	}
	if (has_folded)
		say(m, c->rank + power, MCAST_MSG_BARRIER, MCAST_UNFOLD);
	run(m, now);
}

/* Whether this rank gets that from there. */
static bool barrier_from(const struct mcast_config *c, unsigned from, uint32_t arg)
{
	const unsigned power = folded_ranks(c);

	if (arg == MCAST_FOLD)
		return from == c->rank + power;
	if (arg == MCAST_UNFOLD)
		return c->rank >= power && from == c->rank - power;
	return arg < MCAST_FOLD && 1u << arg < power && c->rank < power &&
	       from == (c->rank ^ 1u << arg);
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
		.sending = m->sending};
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
	barrier(m, now);
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

/* ---- receiving ---- */

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

static enum mcast_verdict judge(struct mcast *m, unsigned from, uint32_t imm, uint64_t len,
	uint32_t *block, uint32_t *chunk)
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
	if (from != root_of(m, *block))
		return MCAST_FORGED;
	return len == chunk_len(m, *chunk) ? MCAST_TAKE : MCAST_LENGTH;
}

enum mcast_verdict mcast_datagram(
	struct mcast *m, unsigned from, uint32_t imm, uint64_t len, uint64_t now, uint64_t *offset)
{
	uint64_t *const counter[] = {&m->count.taken, &m->count.duplicate, &m->count.stale,
		&m->count.range, &m->count.length, &m->count.forged};
	uint32_t block = 0, chunk = 0;
	enum mcast_verdict verdict = judge(m, from, imm, len, &block, &chunk);

	if (verdict == MCAST_TAKE && !mark(m, block, chunk))
		verdict = MCAST_DUPLICATE;
	++*counter[verdict];
	if (verdict == MCAST_TAKE) {
		*offset = chunk_offset(m, block, chunk);
		progress(m, now);
		settle(m);
	}
	return verdict;
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
	settle(m);
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
		if (!barrier_from(c, from, msg->arg))
			return false;
		m->heard |= 1u << msg->arg;
		barrier(m, now);
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
		barrier_from(&m->config, from, msg->arg)) {
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
		settle(m);
	}
	return 0;
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
		settle(m);
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

/* ---- time ---- */

static void cut_off(struct mcast *m)
{
	m->cut = true;
	m->count.cutoffs += m->n_missing > 0;
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
		cut_off(m);
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
