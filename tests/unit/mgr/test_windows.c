/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of the cycle, for those that share memory (book.h). */
#include <errno.h>
#include <string.h>

#include "lib/mgr/book.h"
#include "tests/unit/mgr/mgr_test.h"

enum { SWITCHES = 5, SRAM = 1000, FAR = 1000000 };

static struct mgr_book *make(void)
{
	struct mgr_book *b = mgr_book_new(SWITCHES, 0);

	for (unsigned i = 0; i < SWITCHES; i++)
		assert_int_equal(mgr_book_set_switch(b, i, SRAM, 1000), 0);
	return b;
}

/* On the switches of a mask, the same bytes on each. */
static int promise(struct mgr_book *b, unsigned mask, uint64_t bytes, unsigned duty, mgr_promise *p)
{
	struct mgr_demand_sw sw[SWITCHES];
	struct mgr_demand d = {.sw = sw, .duty = duty};
	int node, link;

	for (unsigned i = 0; i < SWITCHES; i++)
		if (mask & 1u << i)
			sw[d.n_sw++] = (struct mgr_demand_sw){i, bytes};
	return mgr_book_reserve(b, &d, FAR, p, &node, &link);
}

static mgr_promise given(struct mgr_book *b, unsigned mask, uint64_t bytes, unsigned duty,
	unsigned block, unsigned start, unsigned length)
{
	struct mgr_window w;
	mgr_promise p;

	assert_int_equal(promise(b, mask, bytes, duty, &p), 0);
	assert_int_equal(mgr_book_give_window(b, p, &w), 0);
	assert_int_equal(w.block, block);
	assert_int_equal(w.start, start);
	assert_int_equal(w.length, length);
	return p;
}

/* Three that together have more duty than the cycle has parts, on memory for one: the third
 * contends, until a window is free. On another switch it has one at once. */
static void in_turn(void **state)
{
	struct mgr_book *b = make();
	mgr_promise first, third;

	(void)state;
	first = given(b, 3, 600, 400, 1, 0, 400);
	given(b, 3, 600, 500, 1, 400, 500);
	third = given(b, 1, 600, 300, 1, 0, 0);
	given(b, 4, 600, 300, 1, 0, 300);
	/* A tree over both kinds of switches takes no part of anybody's. */
	given(b, 6, 600, 100, 1, 900, 100);
	assert_int_equal(mgr_book_release(b, third), 0);
	assert_int_equal(mgr_book_release(b, first), 0);
	given(b, 1, 600, 300, 1, 0, 300);
	mgr_book_free(b);
}

/* Where there is memory for two, the third has a block of its own; what that takes is nobody else's
 * when those who were there first have gone, though by duty they need less. */
static void blocks(void **state)
{
	struct mgr_book *b = make();
	mgr_promise one, two, p;
	struct mgr_window w;

	(void)state;
	one = given(b, 1, 400, 500, 1, 0, 500);
	two = given(b, 1, 400, 500, 1, 500, 500);
	given(b, 1, 400, 500, 2, 0, 500);
	assert_int_equal(mgr_book_used_bytes(b, 0), 800);
	assert_int_equal(promise(b, 1, 201, MGR_DUTY, &p), -ENOSPC);
	mgr_book_release(b, two);
	assert_int_equal(mgr_book_used_bytes(b, 0), 800);
	assert_int_equal(promise(b, 1, 201, MGR_DUTY, &p), -ENOSPC);
	mgr_book_release(b, one);
	assert_int_equal(mgr_book_used_bytes(b, 0), 400);
	assert_int_equal(promise(b, 1, 600, MGR_DUTY, &p), 0);
	assert_int_equal(mgr_book_release(b, p), 0);
	assert_int_equal(promise(b, 1, 500, MGR_DUTY, &p), 0);
	assert_int_equal(promise(b, 1, 500, 100, &p), 0);
	assert_int_equal(mgr_book_give_window(b, p, &w), 0);
	assert_int_equal(w.block, 2); /* which grows */
	mgr_book_free(b);
}

/* What a block has grown to for one who has gone is nobody else's while another has it there; with
 * the last it is free, and so is what was said of its size. */
static void stays_large(void **state)
{
	struct mgr_book *b = make();
	mgr_promise large, small, p;

	(void)state;
	large = given(b, 3, 600, 300, 1, 0, 300);
	small = given(b, 1, 100, 300, 1, 300, 300);
	mgr_book_release(b, large);
	assert_int_equal(mgr_book_used_bytes(b, 0), 600);
	assert_int_equal(mgr_book_used_bytes(b, 1), 0);
	assert_int_equal(promise(b, 1, 401, MGR_DUTY, &p), -ENOSPC);
	assert_int_equal(promise(b, 1, 400, MGR_DUTY, &p), 0);
	given(b, 1, 600, 300, 1, 0, 300); /* of what is there anyway */
	mgr_book_release(b, p);
	mgr_book_release(b, small);
	mgr_book_free(b);

	b = make();
	large = given(b, 1, 600, 300, 1, 0, 300);
	small = given(b, 1, 100, 300, 1, 300, 300);
	mgr_book_release(b, large);
	mgr_book_release(b, small);
	assert_int_equal(mgr_book_used_bytes(b, 0), 0);
	small = given(b, 1, 100, 300, 1, 0, 300);
	assert_int_equal(mgr_book_used_bytes(b, 0), 100);
	mgr_book_release_switch(b, small, 0);
	assert_int_equal(mgr_book_used_bytes(b, 0), 0);
	mgr_book_free(b);
}

/* A book that is made anew knows how large a block was, of those that somebody has. */
static void large_again(void **state)
{
	const struct mgr_window second = {.block = 2, .start = 300, .length = 300},
				first = {.block = 1, .start = 300, .length = 300};
	struct mgr_book *b = make();
	mgr_promise small, p;

	(void)state;
	assert_int_equal(promise(b, 3, 100, 300, &small), 0);
	assert_int_equal(mgr_book_restore_window(b, small, &second, false), 0);
	for (unsigned block = 1; block <= 2; block++)
		assert_int_equal(mgr_book_restore_block(b, 0, block, 600), 0);
	assert_int_equal(mgr_book_block_bytes(b, 0, 1), 0);
	assert_int_equal(mgr_book_block_bytes(b, 0, 2), 600);
	assert_int_equal(mgr_book_block_bytes(b, 1, 2), 100);
	assert_int_equal(promise(b, 1, 401, MGR_DUTY, &p), -ENOSPC);
	assert_int_equal(promise(b, 2, 401, MGR_DUTY, &p), 0);
	assert_int_equal(mgr_book_restore_block(b, 0, 2, 50), 0); /* no smaller than it is */
	assert_int_equal(mgr_book_block_bytes(b, 0, 2), 600);
	mgr_book_release(b, small);
	assert_int_equal(mgr_book_used_bytes(b, 0), 0);
	given(b, 1, 100, 300, 1, 0, 300);
	assert_int_equal(mgr_book_used_bytes(b, 0), 100);
	/* One that is only restored to be released makes no block larger for longer than that. */
	assert_int_equal(promise(b, 1, 500, 300, &p), 0);
	assert_int_equal(mgr_book_restore_window(b, p, &first, true), 0);
	assert_int_equal(mgr_book_used_bytes(b, 0), 500);
	assert_int_equal(mgr_book_block_bytes(b, 0, 1), 100);
	mgr_book_release(b, p);
	assert_int_equal(mgr_book_used_bytes(b, 0), 100);
	assert_int_equal(mgr_book_restore_block(b, SWITCHES, 1, 1), -EINVAL);
	assert_int_equal(mgr_book_restore_block(b, 0, 0, 1), -EINVAL);
	assert_int_equal(mgr_book_restore_block(b, 0, MGR_MAX_BLOCKS + 1, 1), -EINVAL);
	assert_int_equal(mgr_book_restore_block(b, 0, 1, UINT64_MAX), -EINVAL);
	assert_int_equal(mgr_book_block_bytes(b, SWITCHES, 1), 0);
	mgr_book_free(b);
}

/* All memory is in two blocks: who comes is offered the larger one, not all that there is. */
static void offered(void **state)
{
	struct mgr_book *b = make();
	mgr_promise p;

	(void)state;
	given(b, 1, 600, 600, 1, 0, 600);
	p = given(b, 1, 400, 600, 2, 0, 600);
	assert_int_equal(mgr_book_free_bytes(b, 0, 300), 600);
	assert_int_equal(promise(b, 1, 601, 300, &p), -ENOSPC);
	given(b, 1, 600, 300, 1, 600, 300);
	given(b, 1, 600, 200, 1, 0, 0);
	mgr_book_free(b);
}

static void refused(void **state)
{
	struct mgr_book *b = make();
	const struct mgr_window bad[] = {
		{.block = 0, .length = 1}, {MGR_MAX_BLOCKS + 1, 0, 0}, {1, 900, 101}, {1, 1001, 0}};
	struct mgr_window w;
	mgr_promise p;

	(void)state;
	assert_int_equal(mgr_book_give_window(b, 7, &w), -ENOENT);
	assert_int_equal(promise(b, 1, 100, MGR_DUTY, &p), 0);
	assert_int_equal(mgr_book_give_window(b, p, &w), -ENOENT);
	assert_int_equal(promise(b, 1, 100, 300, &p), 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(mgr_book_restore_window(b, p, &bad[i], false), -EINVAL);
	w = (struct mgr_window){3, 100, 300};
	assert_int_equal(mgr_book_restore_window(b, p, &w, false), 0);
	/* Who comes later keeps clear of it, or contends where there is no memory for another. */
	mgr_book_release(b, given(b, 1, 800, 900, 1, 0, 900));
	given(b, 1, 801, 950, 3, 0, 0);
	mgr_book_free(b);
}

/* ---- at random ---- */

enum { LIVE = 24, EVENTS = 20000 };

struct live {
	mgr_promise p;
	unsigned mask, bytes, duty;
	struct mgr_window w;
};

static struct live all[LIVE];
static unsigned n;
static unsigned was[SWITCHES][MGR_MAX_BLOCKS + 1]; /* how large it was, since it was nobody's */

static bool is_held(unsigned sw, unsigned block)
{
	for (unsigned i = 0; i < n; i++)
		if ((all[i].mask & 1u << sw) && all[i].w.block == block)
			return true;
	return false;
}

static unsigned block_bytes(unsigned sw, unsigned block, const struct live *more, unsigned as)
{
	const unsigned adds = more && (more->mask & 1u << sw) && as == block ? more->bytes : 0;

	return adds > was[sw][block] ? adds : was[sw][block];
}

/* After somebody has come or gone. */
static void note_blocks(void)
{
	for (unsigned sw = 0; sw < SWITCHES; sw++)
		for (unsigned block = 1; block <= MGR_MAX_BLOCKS; block++)
			was[sw][block] = is_held(sw, block) ? was[sw][block] : 0;
	for (unsigned i = 0; i < n; i++)
		for (unsigned sw = 0; sw < SWITCHES; sw++)
			if (all[i].w.block && (all[i].mask & 1u << sw))
				was[sw][all[i].w.block] =
					block_bytes(sw, all[i].w.block, &all[i], all[i].w.block);
}

static unsigned alone(unsigned sw)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += all[i].duty == MGR_DUTY && (all[i].mask & 1u << sw) ? all[i].bytes : 0;
	return sum;
}

static unsigned sum_of(unsigned sw, const struct live *more, unsigned as)
{
	unsigned sum = alone(sw);

	for (unsigned block = 1; block <= MGR_MAX_BLOCKS; block++)
		sum += block_bytes(sw, block, more, as);
	return sum;
}

static bool may_have(const struct live *l, unsigned block)
{
	for (unsigned sw = 0; sw < SWITCHES; sw++)
		if ((l->mask & 1u << sw) && sum_of(sw, l, block) > SRAM)
			return false;
	return true;
}

static bool is_free(const struct live *l, const struct mgr_window *w)
{
	for (unsigned i = 0; i < n; i++)
		if (all[i].w.block == w->block && (all[i].mask & l->mask) &&
			w->start < all[i].w.start + all[i].w.length &&
			all[i].w.start < w->start + w->length)
			return false;
	return true;
}

static bool any_window(const struct live *l)
{
	for (unsigned block = 1; block <= MGR_MAX_BLOCKS; block++)
		for (unsigned start = 0; may_have(l, block) && start + l->duty <= MGR_DUTY; start++)
			if (is_free(l, &(struct mgr_window){block, start, l->duty}))
				return true;
	return false;
}

static void add(struct mgr_book *b, uint64_t *random)
{
	struct live l = {.mask = 1 + test_random(random) % ((1u << SWITCHES) - 1),
		.bytes = 1 + test_random(random) % 500,
		.duty = test_random(random) % 6 ? 50 + test_random(random) % 600 : MGR_DUTY};
	int rc;

	if (n == LIVE || promise(b, l.mask, l.bytes, l.duty, &l.p))
		return;
	rc = l.duty == MGR_DUTY ? 0 : mgr_book_give_window(b, l.p, &l.w);
	if (rc) {
		assert_int_equal(rc, -ENOSPC);
		assert_int_not_equal(l.mask & (l.mask - 1), 0); /* of one switch it was offered */
		for (unsigned block = 1; block <= MGR_MAX_BLOCKS; block++)
			assert_false(may_have(&l, block));
		mgr_book_release(b, l.p);
		return;
	}
	if (l.duty < MGR_DUTY) {
		assert_true(may_have(&l, l.w.block) && is_free(&l, &l.w));
		assert_true(l.w.length == l.duty || (l.w.length == 0 && !any_window(&l)));
	}
	all[n++] = l;
}

/* Nobody has a part of another's window, and all blocks are in memory and in the book. */
static void at_random(void **state)
{
	struct mgr_book *b = make();
	uint64_t random = 6;
	unsigned windows = 0, contend = 0;

	(void)state;
	n = 0;
	for (unsigned k = 0; k < EVENTS; k++) {
		if (n > 0 && test_random(&random) % 2) {
			const unsigned i = test_random(&random) % n;

			assert_int_equal(mgr_book_release(b, all[i].p), 0);
			all[i] = all[--n];
		} else {
			add(b, &random);
		}
		note_blocks();
		for (unsigned sw = 0; sw < SWITCHES; sw++) {
			assert_true(sum_of(sw, NULL, 0) <= SRAM);
			assert_true(mgr_book_used_bytes(b, sw) >= sum_of(sw, NULL, 0));
			assert_true(mgr_book_used_bytes(b, sw) <= SRAM);
		}
		if (n > 0 && all[n - 1].duty < MGR_DUTY) {
			windows += all[n - 1].w.length > 0;
			contend += all[n - 1].w.length == 0;
		}
	}
	assert_true(windows > EVENTS / 4 && contend > EVENTS / 100);
	mgr_book_free(b);
}

int run_windows_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(in_turn), cmocka_unit_test(blocks),
		cmocka_unit_test(stays_large), cmocka_unit_test(large_again),
		cmocka_unit_test(offered), cmocka_unit_test(refused), cmocka_unit_test(at_random)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
