/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mgr/book_priv.h"

/* A promise's number is its age and its index: numbers ascend, and lead to the entry. */
enum { INDEX_BITS = 16, FIRST_ROOM = 64 };

struct mgr_book *mgr_book_new(unsigned n_nodes, unsigned n_links)
{
	struct mgr_book *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->account = calloc((size_t)n_nodes + n_links + 1, sizeof(b->account[0]));
	b->blocks = calloc((size_t)n_nodes + 1, sizeof(b->blocks[0]));
	if (b->account == NULL || b->blocks == NULL) {
		free(b->account);
		free(b->blocks);
		free(b);
		return NULL;
	}
	b->n_nodes = n_nodes;
	b->n_links = n_links;
	b->free = -1;
	return b;
}

void mgr_book_free(struct mgr_book *b)
{
	if (b == NULL)
		return;
	for (unsigned i = 0; i < b->n_nodes + b->n_links; i++)
		free(b->account[i].holder);
	for (unsigned i = 0; i < b->n_promises; i++)
		free(b->promise[i].account);
	mgr_heap_free(&b->reserved);
	free(b->account);
	free(b->blocks);
	free(b->promise);
	free(b);
}

static struct mgr_account *of_switch(const struct mgr_book *b, unsigned node)
{
	return node < b->n_nodes ? &b->account[node] : NULL;
}

static struct mgr_account *of_link(const struct mgr_book *b, unsigned link)
{
	return link < b->n_links ? &b->account[b->n_nodes + link] : NULL;
}

static uint64_t need(const struct mgr_account *a)
{
	uint64_t pool = (a->weighted + MGR_DUTY - 1) / MGR_DUTY;

	pool = pool > a->largest ? pool : a->largest;
	return a->alone + (pool > a->blocks ? pool : a->blocks);
}

/* What one more could have. Of what is shared he can have no more than a block can be: the largest
 * that there is, and what is in none. */
static uint64_t room_for(const struct mgr_account *a, unsigned duty, bool whole)
{
	uint64_t now = need(a), pool, by_duty, block;

	if (a->n >= a->limit || a->whole || (whole && a->n > 0) || now > a->total)
		return 0;
	if (duty >= MGR_DUTY)
		return a->total - now;
	pool = a->total - a->alone;
	by_duty = (pool * MGR_DUTY - a->weighted) / (duty ? duty : 1);
	block = pool - a->blocks + a->block;
	return block < by_duty ? block : by_duty;
}

/* An account may be full for any amount but zero. */
static bool fits(const struct mgr_account *a, uint64_t amount, unsigned duty, bool whole)
{
	return a->n < a->limit && !a->whole && !(whole && a->n > 0) && need(a) <= a->total &&
	       amount <= room_for(a, duty, whole);
}

static int set(struct mgr_account *a, uint64_t total, unsigned limit)
{
	a->total = total < MGR_MOST ? total : MGR_MOST;
	a->limit = limit;
	if (a->n <= limit && need(a) <= a->total)
		return 0;
	return (int)a->n;
}

int mgr_book_set_switch(struct mgr_book *b, unsigned node, uint64_t sram, unsigned groups)
{
	struct mgr_account *a = of_switch(b, node);

	return a ? set(a, sram, groups) : -ERANGE;
}

int mgr_book_set_link(struct mgr_book *b, unsigned link, uint64_t bps)
{
	struct mgr_account *a = of_link(b, link);

	return a ? set(a, bps, bps ? MGR_MAX_PROMISES : 0) : -ERANGE;
}

struct mgr_promised *mgr_book_find(const struct mgr_book *b, mgr_promise p)
{
	unsigned at = (unsigned)(p & ((1u << INDEX_BITS) - 1));

	return p != 0 && at < b->n_promises && b->promise[at].number == p ? &b->promise[at] : NULL;
}

static int new_promise(struct mgr_book *b)
{
	unsigned room = b->room ? 2 * b->room : FIRST_ROOM;
	struct mgr_promised *more;
	int at = b->free;

	if (at >= 0) {
		b->free = b->promise[at].next_free;
		return at;
	}
	if (b->n_promises == MGR_MAX_PROMISES)
		return -EMFILE;
	if (b->n_promises == b->room) {
		more = realloc(b->promise, room * sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		b->promise = more;
		b->room = room;
	}
	b->promise[b->n_promises] = (struct mgr_promised){.number = 0};
	return (int)b->n_promises++;
}

static void give_back(struct mgr_book *b, unsigned at)
{
	b->promise[at] = (struct mgr_promised){.next_free = b->free};
	b->free = (int)at;
}

/* Room for one more holder everywhere, so that promising cannot fail half-way. */
static int make_room(struct mgr_book *b, const struct mgr_promised *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		struct mgr_account *a = &b->account[p->account[i]];
		unsigned room = a->room ? 2 * a->room : 4;
		struct mgr_holder *more;

		if (a->n < a->room)
			continue;
		more = realloc(a->holder, room * sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		a->holder = more;
		a->room = room;
	}
	return 0;
}

static bool named_before(struct mgr_book *b, struct mgr_account *a)
{
	bool before = a->seen == b->mark;

	a->seen = b->mark;
	return before;
}

/* Accounts that a demand names, each once and within range. */
static int check(struct mgr_book *b, const struct mgr_demand *d)
{
	if (d->n_sw + d->n_link == 0 || d->n_sw > MGR_MAX_DEMANDS || d->n_link > MGR_MAX_DEMANDS ||
		d->duty == 0 || d->duty > MGR_DUTY || d->bps > MGR_MOST)
		return -EINVAL;
	b->mark++;
	for (unsigned i = 0; i < d->n_sw; i++) {
		struct mgr_account *a = of_switch(b, d->sw[i].node);

		if (a == NULL)
			return -ERANGE;
		if (named_before(b, a) || d->sw[i].bytes > MGR_MOST)
			return -EINVAL;
	}
	for (unsigned i = 0; i < d->n_link; i++) {
		struct mgr_account *a = of_link(b, d->link[i]);

		if (a == NULL)
			return -ERANGE;
		if (named_before(b, a))
			return -EINVAL;
	}
	return 0;
}

static int all_fit(const struct mgr_book *b, const struct mgr_demand *d, int *node, int *link)
{
	*node = *link = -1;
	for (unsigned i = 0; i < d->n_sw; i++) {
		if (!fits(of_switch(b, d->sw[i].node), d->sw[i].bytes, d->duty, false)) {
			*node = (int)d->sw[i].node;
			return -ENOSPC;
		}
	}
	for (unsigned i = 0; i < d->n_link; i++) {
		if (!fits(of_link(b, d->link[i]), d->bps, d->duty, d->whole)) {
			*link = (int)d->link[i];
			return -ENOSPC;
		}
	}
	return 0;
}

static void hold(
	struct mgr_account *a, mgr_promise number, uint64_t amount, unsigned duty, bool whole)
{
	a->holder[a->n++] = (struct mgr_holder){number, amount, duty};
	a->whole = whole;
	if (duty == MGR_DUTY) {
		a->alone += amount;
		return;
	}
	a->weighted += amount * duty;
	if (amount > a->largest)
		a->largest = amount;
}

static void let_go(struct mgr_account *a, mgr_promise number)
{
	struct mgr_holder gone;
	unsigned at = 0;

	while (a->holder[at].promise != number)
		at++;
	gone = a->holder[at];
	memmove(a->holder + at, a->holder + at + 1, (--a->n - at) * sizeof(gone));
	a->whole = false; /* nobody else was there */
	if (gone.duty == MGR_DUTY) {
		a->alone -= gone.amount;
		return;
	}
	a->weighted -= gone.amount * gone.duty;
	if (gone.amount < a->largest)
		return;
	a->largest = 0;
	for (unsigned i = 0; i < a->n; i++) {
		const struct mgr_holder *h = &a->holder[i];

		if (h->duty < MGR_DUTY && h->amount > a->largest)
			a->largest = h->amount;
	}
}

static void promise_all(struct mgr_book *b, struct mgr_promised *p, const struct mgr_demand *d)
{
	for (unsigned i = 0; i < d->n_sw; i++)
		hold(of_switch(b, d->sw[i].node), p->number, d->sw[i].bytes, d->duty, false);
	for (unsigned i = 0; i < d->n_link; i++)
		hold(of_link(b, d->link[i]), p->number, d->bps, d->duty, d->whole);
}

static int enter(
	struct mgr_book *b, const struct mgr_demand *d, uint64_t deadline, mgr_promise *out)
{
	struct mgr_promised *p;
	int at = new_promise(b);

	if (at < 0)
		return at;
	p = &b->promise[at];
	p->n = d->n_sw + d->n_link;
	p->account = malloc(p->n * sizeof(p->account[0]));
	for (unsigned i = 0; p->account && i < p->n; i++)
		p->account[i] = i < d->n_sw ? d->sw[i].node : b->n_nodes + d->link[i - d->n_sw];
	if (p->account == NULL || make_room(b, p) ||
		mgr_heap_set(&b->reserved, (unsigned)at, deadline)) {
		free(p->account);
		give_back(b, (unsigned)at);
		return -ENOMEM;
	}
	p->number = ++b->age << INDEX_BITS | (unsigned)at;
	p->state = MGR_RESERVED;
	promise_all(b, p, d);
	*out = p->number;
	return 0;
}

int mgr_book_reserve(struct mgr_book *b, const struct mgr_demand *d, uint64_t deadline,
	mgr_promise *out, int *node, int *link)
{
	int rc = check(b, d);

	*node = *link = -1;
	if (rc == 0)
		rc = all_fit(b, d, node, link);
	return rc ? rc : enter(b, d, deadline, out);
}

int mgr_book_restore(struct mgr_book *b, const struct mgr_demand *d, mgr_promise *out)
{
	int rc = check(b, d);

	if (rc == 0)
		rc = enter(b, d, UINT64_MAX, out);
	return rc ? rc : mgr_book_commit(b, *out);
}

int mgr_book_commit(struct mgr_book *b, mgr_promise number)
{
	struct mgr_promised *p = mgr_book_find(b, number);

	if (p == NULL)
		return -ENOENT;
	p->state = MGR_COMMITTED;
	mgr_heap_remove(&b->reserved, (unsigned)(p - b->promise));
	return 0;
}

static void let_go_at(struct mgr_book *b, unsigned account, mgr_promise number)
{
	let_go(&b->account[account], number);
	if (b->account[account].blocks)
		mgr_book_count_blocks(b, &b->account[account]);
}

int mgr_book_release(struct mgr_book *b, mgr_promise number)
{
	struct mgr_promised *p = mgr_book_find(b, number);

	if (p == NULL)
		return -ENOENT;
	for (unsigned i = 0; i < p->n; i++)
		let_go_at(b, p->account[i], number);
	free(p->account);
	mgr_heap_remove(&b->reserved, (unsigned)(p - b->promise));
	give_back(b, (unsigned)(p - b->promise));
	return 0;
}

/* Accounts from first up to end that the promise holds. */
static int release_part(struct mgr_book *b, mgr_promise number, unsigned first, unsigned end)
{
	struct mgr_promised *p = mgr_book_find(b, number);
	unsigned kept = 0, n = p ? p->n : 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned account = p->account[i];

		if (account >= first && account < end)
			let_go_at(b, account, number);
		else
			p->account[kept++] = account;
	}
	if (kept == n)
		return -ENOENT;
	p->n = kept;
	return kept == 0 ? mgr_book_release(b, number) : 0;
}

int mgr_book_release_switch(struct mgr_book *b, mgr_promise p, unsigned node)
{
	return node < b->n_nodes ? release_part(b, p, node, node + 1) : -ENOENT;
}

int mgr_book_release_links(struct mgr_book *b, mgr_promise p)
{
	return release_part(b, p, b->n_nodes, b->n_nodes + b->n_links);
}

mgr_promise mgr_book_sweep(struct mgr_book *b, uint64_t now)
{
	unsigned at;
	uint64_t deadline;
	mgr_promise number;

	if (!mgr_heap_first(&b->reserved, &at, &deadline) || deadline > now)
		return 0;
	number = b->promise[at].number;
	mgr_book_release(b, number);
	return number;
}

enum mgr_promise_state mgr_book_state(const struct mgr_book *b, mgr_promise number)
{
	const struct mgr_promised *p = mgr_book_find(b, number);

	return p ? p->state : MGR_NO_PROMISE;
}

uint64_t mgr_book_free_bytes(const struct mgr_book *b, unsigned node, unsigned duty)
{
	const struct mgr_account *a = of_switch(b, node);

	return a ? room_for(a, duty, false) : 0;
}

uint64_t mgr_book_free_bps(const struct mgr_book *b, unsigned link, unsigned duty, bool whole)
{
	const struct mgr_account *a = of_link(b, link);

	return a ? room_for(a, duty, whole) : 0;
}

unsigned mgr_book_link_holders(const struct mgr_book *b, unsigned link)
{
	const struct mgr_account *a = of_link(b, link);

	return a ? a->n : 0;
}

unsigned mgr_book_switch_holders(const struct mgr_book *b, unsigned node)
{
	const struct mgr_account *a = of_switch(b, node);

	return a ? a->n : 0;
}

uint64_t mgr_book_used_bytes(const struct mgr_book *b, unsigned node)
{
	const struct mgr_account *a = of_switch(b, node);

	return a ? need(a) : 0;
}

static mgr_promise next(const struct mgr_account *a, mgr_promise after)
{
	for (unsigned i = 0; a && i < a->n; i++) {
		if (a->holder[i].promise > after)
			return a->holder[i].promise;
	}
	return 0;
}

mgr_promise mgr_book_next_on_switch(const struct mgr_book *b, unsigned node, mgr_promise p)
{
	return next(of_switch(b, node), p);
}

mgr_promise mgr_book_next_on_link(const struct mgr_book *b, unsigned link, mgr_promise p)
{
	return next(of_link(b, link), p);
}
