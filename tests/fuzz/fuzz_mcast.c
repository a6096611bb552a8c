/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of lib/mcast among others that say and send anything: what it takes and posts stays
 * within its buffer, what it counts is what its bitmap says, and it always ends when its time is
 * over. The first bytes are its configuration, then five for each event. */
#include <string.h>

#include "lib/mcast/mcast.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_POSTED = 4096, CONFIG = 6, EVENT = 5, READS = 4 };

struct world {
	struct mcast m;
	uint64_t now, buffer;
	void *memory;
	size_t cap;
	struct mcast_request read[READS];
	unsigned n_reads, sent;
	bool all;
};

static void begin(struct world *w, uint8_t how)
{
	const struct mcast_config *c = &w->m.config;
	const uint64_t bytes = 1 + how * 3u;

	if (w->m.phase == MCAST_BARRIER || w->m.phase == MCAST_RUNNING)
		return;
	w->all = how & 1;
	w->n_reads = w->sent = 0;
	free(w->memory);
	w->cap = mcast_memory(c, w->all, bytes);
	w->memory = malloc(w->cap ? w->cap : 8);
	w->buffer = bytes * (w->all ? c->n_ranks : 1);
	if (w->all)
		mcast_begin_allgather(&w->m, bytes, w->memory, w->cap, w->now);
	else
		mcast_begin_broadcast(&w->m, how % c->n_ranks, bytes, w->memory, w->cap, w->now);
}

static void post_all(struct world *w)
{
	struct mcast_request r;
	unsigned n = 0;

	while (mcast_next(&w->m, &r)) {
		fuzz_check(++n < MAX_POSTED, "an end");
		if (r.type == MCAST_POST_MESSAGE) {
			fuzz_check(r.peer < w->m.config.n_ranks && r.peer != w->m.config.rank,
				"to another rank");
			continue;
		}
		fuzz_check(r.len > 0 && r.offset + r.len <= w->buffer, "within the buffer");
		if (r.type == MCAST_POST_SEND) {
			w->sent++;
			continue;
		}
		fuzz_check(w->n_reads < READS, "within the window");
		w->read[w->n_reads++] = r;
	}
}

static void check(const struct world *w)
{
	const struct mcast *m = &w->m;
	uint32_t blocks = 0;

	if (m->phase != MCAST_RUNNING && m->phase != MCAST_BARRIER)
		return;
	for (uint32_t b = 0; b < m->n_blocks; b++) {
		uint32_t missing = 0;

		for (uint32_t k = 0; k < m->block_chunks; k++)
			missing += !mcast_has(m, b, k);
		fuzz_check(missing == m->block[b].missing, "as the bitmap says");
		blocks += missing > 0;
	}
	fuzz_check(blocks == m->n_missing, "blocks, too");
}

/* A device says what it has placed. */
static void mark(struct world *w, const uint8_t *e)
{
	uint64_t marks[256] = {0};

	if (w->m.phase != MCAST_RUNNING && w->m.phase != MCAST_BARRIER)
		return;
	fuzz_check(mcast_marks(&w->m) <= 64 * 256, "no more chunks than bytes");
	for (uint32_t i = 0; i <= e[3] && e[2] + i < mcast_marks(&w->m); i++)
		marks[(e[2] + i) / 64] |= UINT64_C(1) << (e[2] + i) % 64;
	mcast_marked(&w->m, marks, e[4], w->now);
}

static void event(struct world *w, const uint8_t *e)
{
	struct mcast *m = &w->m;
	const struct mcast_message msg = {e[2] % 8, m->id + (e[3] & 1) - (e[3] >> 7), e[4] % 34};
	const uint32_t imm = m->id << m->config.psn_bits | (m->first_psn + e[2]);
	uint64_t offset;

	switch (e[0] % 8) {
	case 0:
		begin(w, e[1]);
		break;
	case 1:
	case 2:
		mcast_message(m, e[1] % m->config.n_ranks, &msg, w->now);
		break;
	case 3:
		mark(w, e);
		break;
	case 4:
		if (mcast_datagram(m, e[1] % m->config.n_ranks, imm ^ (uint32_t)(e[3] == 1) << 31,
			    e[4] % 16, w->now, &offset) == MCAST_TAKE)
			fuzz_check(offset + e[4] % 16 <= w->buffer, "within the buffer");
		break;
	case 5:
		mcast_sent(m, w->sent ? 1 : 0, w->now);
		w->sent -= w->sent > 0;
		break;
	case 6:
		if (w->n_reads == 0)
			break;
		w->n_reads--;
		mcast_read_done(m, w->read[w->n_reads].block, w->read[w->n_reads].first,
			w->read[w->n_reads].n, w->now);
		break;
	default:
		w->now += e[1] * 16u;
		mcast_tick(m, w->now);
	}
	post_all(w);
	check(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = {.now = 1};
	struct mcast_config c;

	if (size < CONFIG)
		return 0;
	c = (struct mcast_config){.n_ranks = 2 + data[0] % 20,
		.chains = 1 + data[2] % 3,
		.chunk = 1 + data[3] % 15,
		.psn_bits = 10 + data[4] % 10,
		.send_window = 1 + data[5] % 7,
		.read_window = READS,
		.read_bytes = 16 + data[5] * 4u,
		.link_bps = 8000000000,
		.alpha_ns = 100,
		.give_up_ns = 10000,
		.first_id = data[5],
		.first_psn = data[4] * 5u};
	c.rank = data[1] % c.n_ranks;
	if (mcast_init(&w.m, &c) < 0)
		return 0;
	begin(&w, data[1]);
	post_all(&w);
	for (size_t at = CONFIG; at + EVENT <= size; at += EVENT)
		event(&w, data + at);
	if (mcast_deadline(&w.m) != UINT64_MAX) {
		mcast_tick(&w.m, UINT64_MAX - 1);
		fuzz_check(w.m.phase == MCAST_FAILED, "time is over");
	}
	free(w.memory);
	return 0;
}

/* Ranks that join, then datagrams, a cutoff, grants and reads. */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	size_t at = CONFIG;

	if (i >= 40 || cap < 512)
		return 0;
	for (unsigned k = 0; k < CONFIG; k++)
		out[k] = (uint8_t)(i * (k + 1) * 7);
	for (unsigned k = 0; k < 60; k++, at += EVENT) {
		const uint8_t kind = k < 20 ? 1 : k < 40 ? 3 : (uint8_t)(k * 5);

		memcpy(out + at,
			(uint8_t[]){kind, (uint8_t)(i + k), (uint8_t)(k < 20 ? 0 : k), 0,
				(uint8_t)(k % 20 == 18 ? 30 : k)},
			EVENT);
	}
	return at;
}
