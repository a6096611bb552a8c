/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "lib/mgr/book_priv.h"

/* A switch's account of a promise, and what it has there; NULL: link i, or memory of its own. */
static const struct mgr_account *shared_at(const struct mgr_book *b, const struct mgr_promised *p,
	unsigned i, const struct mgr_holder **out)
{
	const struct mgr_account *a = &b->account[p->account[i]];

	if (p->account[i] >= b->n_nodes)
		return NULL;
	for (unsigned k = 0; k < a->n; k++) {
		*out = &a->holder[k];
		if ((*out)->promise == p->number)
			return (*out)->duty < MGR_DUTY ? a : NULL;
	}
	return NULL;
}

static const struct mgr_window *window_of(const struct mgr_book *b, const struct mgr_holder *h)
{
	return &mgr_book_find(b, h->promise)->window;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* How large each block is at a switch, with what the promise would have of block mine, and all of
 * them together. One that somebody has there is as large as it was for any since it was nobody's:
 * a switch enlarges the range of a lease, and frees it with the last member (dataplane/leases.h).
 */
static uint64_t measure(const struct mgr_book *b, const struct mgr_account *a,
	const struct mgr_holder *self, unsigned mine, struct mgr_blocks *out)
{
	const struct mgr_blocks *before = &b->blocks[a - b->account];
	uint64_t sum = 0;

	*out = (struct mgr_blocks){0};
	for (unsigned k = 0; k < a->n; k++) {
		const struct mgr_holder *h = &a->holder[k];
		const unsigned block = window_of(b, h)->block;

		if (block && (h != self || block == mine))
			out->size[block - 1] = larger(
				out->size[block - 1], larger(h->amount, before->size[block - 1]));
	}
	if (self)
		out->size[mine - 1] = larger(out->size[mine - 1], self->amount);
	for (unsigned i = 0; i < MGR_MAX_BLOCKS; i++)
		sum += out->size[i];
	return sum;
}

static bool has_room(const struct mgr_book *b, const struct mgr_account *a,
	const struct mgr_holder *self, unsigned mine)
{
	struct mgr_blocks would;

	return a->alone <= a->total && measure(b, a, self, mine, &would) <= a->total - a->alone;
}

/* What of these sizes stays: those that leave had theirs before this book was made, and how large
 * blocks were for them mgr_book_restore_block knows. */
static void keep_sizes(
	const struct mgr_book *b, const struct mgr_account *a, struct mgr_blocks *kept)
{
	const struct mgr_blocks before = *kept;

	*kept = (struct mgr_blocks){0};
	for (unsigned k = 0; k < a->n; k++) {
		const struct mgr_promised *p = mgr_book_find(b, a->holder[k].promise);
		const unsigned i = p->window.block - 1;

		if (!p->window.block)
			continue;
		kept->size[i] = larger(kept->size[i], before.size[i]);
		if (!p->leaves)
			kept->size[i] = larger(kept->size[i], a->holder[k].amount);
	}
}

void mgr_book_count_blocks(struct mgr_book *b, struct mgr_account *a)
{
	struct mgr_blocks now;

	a->blocks = measure(b, a, NULL, 0, &now);
	a->block = 0;
	for (unsigned i = 0; i < MGR_MAX_BLOCKS; i++)
		a->block = larger(a->block, now.size[i]);
	keep_sizes(b, a, &b->blocks[a - b->account]);
}

/* On all its switches. */
static void set_window(struct mgr_book *b, struct mgr_promised *p, const struct mgr_window *w)
{
	p->window = *w;
	for (unsigned i = 0; i < p->n; i++)
		if (p->account[i] < b->n_nodes)
			mgr_book_count_blocks(b, &b->account[p->account[i]]);
}

/* Parts of the cycle that others have of the block at a switch; how many have it. */
static unsigned mark(const struct mgr_book *b, const struct mgr_account *a,
	const struct mgr_holder *self, unsigned block, bool taken[MGR_DUTY])
{
	unsigned n = 0;

	for (unsigned k = 0; k < a->n; k++) {
		const struct mgr_window *w = window_of(b, &a->holder[k]);

		if (&a->holder[k] == self || w->block != block)
			continue;
		memset(taken + w->start, true, w->length);
		n++;
	}
	return n;
}

static bool find_gap(const bool taken[MGR_DUTY], unsigned length, unsigned *start)
{
	unsigned run = 0;

	for (unsigned i = 0; i < MGR_DUTY; i++) {
		run = taken[i] ? 0 : run + 1;
		if (run == length) {
			*start = i + 1 - length;
			return true;
		}
	}
	return false;
}

/* A window in a block; else with length 0 that there is room to contend; *n: others that have the
 * block. */
static bool try_block(const struct mgr_book *b, const struct mgr_promised *p, unsigned block,
	struct mgr_window *w, unsigned *n)
{
	bool taken[MGR_DUTY] = {0};
	unsigned duty = 0;

	*n = 0;
	for (unsigned i = 0; i < p->n; i++) {
		const struct mgr_holder *self;
		const struct mgr_account *a = shared_at(b, p, i, &self);

		if (a == NULL)
			continue;
		if (!has_room(b, a, self, block))
			return false;
		*n += mark(b, a, self, block, taken);
		duty = self->duty;
	}
	*w = (struct mgr_window){.block = block};
	if (find_gap(taken, duty, &w->start))
		w->length = duty;
	return true;
}

static bool shares(const struct mgr_book *b, const struct mgr_promised *p)
{
	const struct mgr_holder *ignored;

	for (unsigned i = 0; p && i < p->n; i++)
		if (shared_at(b, p, i, &ignored))
			return true;
	return false;
}

int mgr_book_give_window(struct mgr_book *b, mgr_promise number, struct mgr_window *out)
{
	struct mgr_promised *p = mgr_book_find(b, number);
	struct mgr_window w, best = {0};
	unsigned n, least = 0;

	if (!shares(b, p))
		return -ENOENT;
	for (unsigned block = 1; block <= MGR_MAX_BLOCKS && !best.length; block++) {
		if (!try_block(b, p, block, &w, &n))
			continue;
		if (!best.block || w.length || n < least) {
			best = w;
			least = n;
		}
	}
	if (!best.block)
		return -ENOSPC;
	set_window(b, p, &best);
	*out = best;
	return 0;
}

int mgr_book_restore_window(
	struct mgr_book *b, mgr_promise number, const struct mgr_window *w, bool leaves)
{
	struct mgr_promised *p = mgr_book_find(b, number);

	if (p == NULL)
		return -ENOENT;
	if (w->block > MGR_MAX_BLOCKS || w->start > MGR_DUTY || w->length > MGR_DUTY - w->start ||
		(!w->block && (w->start || w->length)))
		return -EINVAL;
	p->leaves = leaves;
	set_window(b, p, w);
	return 0;
}

uint64_t mgr_book_block_bytes(const struct mgr_book *b, unsigned node, unsigned block)
{
	return node < b->n_nodes && block >= 1 && block <= MGR_MAX_BLOCKS
		       ? b->blocks[node].size[block - 1]
		       : 0;
}

int mgr_book_restore_block(struct mgr_book *b, unsigned node, unsigned block, uint64_t bytes)
{
	if (node >= b->n_nodes || block < 1 || block > MGR_MAX_BLOCKS || bytes > MGR_MOST)
		return -EINVAL;
	b->blocks[node].size[block - 1] = larger(b->blocks[node].size[block - 1], bytes);
	mgr_book_count_blocks(b, &b->account[node]);
	return 0;
}
