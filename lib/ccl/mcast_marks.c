/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator by multicast whose device has the receive path of multicast AllGather (section
 * V-B): for each collective every tree's queue pair gets a window, which says who sends which chunk
 * and where it goes. The device judges, places and marks; here its marks are looked at when it says
 * that a tree has brought all, when the cutoff timer ends, and when a neighbour asks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/mcast_priv.h"
#include "lib/mcast/schedule.h"

enum { LINE_WORDS = 8 }; /* trees' workers mark in cache lines of their own */

static const uint32_t NUMBERS = 1u << MC_PSN_BITS;

int mc_marks_open(struct ccl_mcast *c, char *err)
{
	if (!c->marked)
		return 0;
	c->writer = calloc(c->conf.n_ranks, sizeof(*c->writer));
	return c->writer ? 0 : mc_say(c, err, "memory", ENOMEM);
}

static int make_words(struct ccl_mcast *c)
{
	const size_t line = LINE_WORDS * sizeof(uint64_t);
	const size_t words = (mcast_marks(&c->core) / 64 + LINE_WORDS) / LINE_WORDS * LINE_WORDS;
	const size_t len = words * sizeof(uint64_t) * c->conf.trees;

	if (posix_memalign((void **)&c->mark_words, line, len)) {
		c->mark_words = NULL;
		return ENOMEM;
	}
	memset(c->mark_words, 0, len);
	for (unsigned i = 0; i < c->conf.trees; i++) {
		c->tree[i].marks = (struct inc_dv_mcast_marks){
			.bit = c->mark_words + i * words, .n_bits = mcast_marks(&c->core)};
		c->tree[i].again = 0;
	}
	return 0;
}

/* The others' blocks, of which the tree has a part each. */
static uint32_t make_writers(struct ccl_mcast *c, unsigned tree)
{
	struct inc_dv_mcast_marks *marks = &c->tree[tree].marks;
	const struct mcast *m = &c->core;
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_blocks; i++) {
		const unsigned root = mcast_root(m, i);
		struct inc_dv_mcast_writer *w = &c->writer[n];

		if (root == c->conf.rank)
			continue;
		if (n == 0)
			marks->mark_first = i * m->block_chunks;
		*w = (struct inc_dv_mcast_writer){
			.length = m->block_bytes, .qp_num = c->rank[root].group_qpn[tree]};
		memcpy(w->gid.raw, c->rank[root].ip.b, sizeof(w->gid.raw));
		w->offset = mcast_part(m, i, &w->first);
		marks->expect +=
			mcast_of_tree(w->first, m->block_chunks, MC_PSN_BITS, c->conf.trees, tree);
		n++;
	}
	if (marks->expect == 0) /* fewer chunks than trees: nothing to be told */
		marks->expect = UINT32_MAX;
	return n;
}

int mc_marks_begin(struct ccl_mcast *c)
{
	const struct mcast *m = &c->core;
	struct inc_dv_mcast_window window = {.key = c->key + m->id,
		.number_mask = NUMBERS - 1,
		.mr = c->buf_mr,
		.addr = c->buf,
		.length = m->n_blocks * m->block_bytes,
		.writer = c->writer,
		.chunk = c->mtu};
	int rc = c->marked ? make_words(c) : 0;

	for (unsigned i = 0; c->marked && rc == 0 && i < c->conf.trees; i++) {
		window.marks = &c->tree[i].marks;
		window.n_writers = make_writers(c, i);
		/* A root of datagrams does not want to hear itself. */
		if (window.n_writers > 0 || !c->conf.uc)
			rc = c->conf.window(c->tree[i].qp, &window);
	}
	return rc;
}

void mc_marks_look(struct ccl_mcast *c, uint64_t now)
{
	for (unsigned i = 0; c->mark_words && i < c->conf.trees; i++) {
		struct mc_tree *t = &c->tree[i];
		const uint64_t again = __atomic_load_n(&t->marks.again, __ATOMIC_ACQUIRE);

		mcast_marked(&c->core, t->marks.bit, again - t->again, now);
		t->again = again;
	}
}

void mc_marks_end(struct ccl_mcast *c)
{
	for (unsigned i = 0; c->marked && i < c->conf.trees; i++)
		c->conf.window(c->tree[i].qp, NULL);
	mc_marks_look(c, 0);
	free(c->mark_words);
	c->mark_words = NULL;
}
