/* SPDX-License-Identifier: BSD-3-Clause */
/* What is promised: all of it or nothing, never more than there is; by example, and through a
 * million random events beside a list of promises that is added up anew each time. */
#include <errno.h>
#include <stdlib.h>

#include "lib/mgr/book.h"
#include "tests/unit/mgr/mgr_test.h"

enum { SWITCHES = 6, LINKS = 8, SRAM = 1000, GROUPS = 6, BPS = 100, FAR = 1 << 30 };

static struct mgr_book *make(void)
{
	struct mgr_book *b = mgr_book_new(SWITCHES, LINKS);

	assert_non_null(b);
	for (unsigned i = 0; i < SWITCHES; i++)
		assert_int_equal(mgr_book_set_switch(b, i, SRAM, GROUPS), 0);
	for (unsigned i = 0; i < LINKS; i++)
		assert_int_equal(mgr_book_set_link(b, i, BPS), 0);
	return b;
}

/* On switches 0 and 1 and the link between them. */
static int ask(
	struct mgr_book *b, uint64_t bytes, uint64_t bps, unsigned duty, bool whole, mgr_promise *p)
{
	const struct mgr_demand_sw sw[] = {{0, bytes}, {1, bytes}};
	const unsigned link[] = {3};
	const struct mgr_demand d = {2, 1, sw, link, bps, duty, whole};
	int node, at;

	return mgr_book_reserve(b, &d, FAR, p, &node, &at);
}

static void all_or_nothing(void **state)
{
	struct mgr_book *b = make();
	const struct mgr_demand_sw sw[] = {{0, 600}, {2, 600}, {1, 600}};
	const struct mgr_demand d = {.n_sw = 3, .sw = sw, .duty = MGR_DUTY};
	mgr_promise p, q;
	int node, link;

	(void)state;
	assert_int_equal(ask(b, 500, 40, MGR_DUTY, false, &p), 0);
	assert_int_equal(mgr_book_reserve(b, &d, FAR, &q, &node, &link), -ENOSPC);
	assert_int_equal(node, 0);
	assert_int_equal(link, -1);
	assert_int_equal(mgr_book_used_bytes(b, 2), 0);
	assert_int_equal(mgr_book_used_bytes(b, 1), 500);
	assert_int_equal(ask(b, 100, 61, MGR_DUTY, false, &q), -ENOSPC); /* the link */
	assert_int_equal(mgr_book_used_bytes(b, 0), 500);
	assert_int_equal(mgr_book_state(b, p), MGR_RESERVED);
	assert_int_equal(mgr_book_commit(b, p), 0);
	assert_int_equal(mgr_book_commit(b, p), 0);
	assert_int_equal(mgr_book_state(b, p), MGR_COMMITTED);
	assert_int_equal(mgr_book_release(b, p), 0);
	assert_int_equal(mgr_book_release(b, p), -ENOENT);
	assert_int_equal(mgr_book_commit(b, p), -ENOENT);
	assert_int_equal(mgr_book_reserve(b, &d, FAR, &q, &node, &link), 0);
	assert_int_not_equal(p, q); /* though the place is the same */
	assert_int_equal(mgr_book_state(b, p), MGR_NO_PROMISE);
	mgr_book_free(b);
}

static void groups_limit(void **state)
{
	struct mgr_book *b = make();
	mgr_promise p;

	(void)state;
	for (unsigned i = 0; i < GROUPS; i++)
		assert_int_equal(ask(b, 0, 0, MGR_DUTY, false, &p), 0);
	assert_int_equal(mgr_book_free_bytes(b, 0, MGR_DUTY), 0);
	assert_int_equal(ask(b, 0, 0, MGR_DUTY, false, &p), -ENOSPC);
	assert_int_equal(mgr_book_switch_holders(b, 0), GROUPS);
	assert_int_equal(mgr_book_link_holders(b, 3), GROUPS);
	mgr_book_free(b);
}

static void whole_links(void **state)
{
	struct mgr_book *b = make();
	mgr_promise p, q;

	(void)state;
	assert_int_equal(ask(b, 1, 0, MGR_DUTY, true, &p), 0);
	assert_int_equal(ask(b, 1, 0, MGR_DUTY, true, &q), -ENOSPC);
	assert_int_equal(ask(b, 1, 0, MGR_DUTY, false, &q), -ENOSPC);
	mgr_book_release(b, p);
	assert_int_equal(ask(b, 1, 0, MGR_DUTY, false, &p), 0);
	assert_int_equal(ask(b, 1, 0, MGR_DUTY, true, &q), -ENOSPC);
	assert_int_equal(mgr_book_free_bps(b, 3, MGR_DUTY, true), 0);
	assert_int_equal(mgr_book_free_bps(b, 3, MGR_DUTY, false), BPS);
	mgr_book_free(b);
}

/* Four that communicate a quarter of the time fit where one fits, and the largest has room. */
static void shared(void **state)
{
	struct mgr_book *b = make();
	mgr_promise p[4], q;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(mgr_book_free_bytes(b, 0, 250), SRAM);
		assert_int_equal(ask(b, SRAM, BPS, 250, false, &p[i]), 0);
	}
	assert_int_equal(mgr_book_used_bytes(b, 0), SRAM);
	assert_int_equal(mgr_book_free_bytes(b, 0, 250), 0);
	assert_int_equal(ask(b, 1, 0, 250, false, &q), -ENOSPC);
	mgr_book_release(b, p[0]);
	assert_int_equal(mgr_book_used_bytes(b, 0), SRAM); /* the largest */
	assert_int_equal(mgr_book_free_bytes(b, 0, MGR_DUTY), 0);
	for (unsigned i = 1; i < 4; i++)
		mgr_book_release(b, p[i]);
	assert_int_equal(ask(b, 400, 0, MGR_DUTY, false, &q), 0);
	assert_int_equal(mgr_book_free_bytes(b, 0, 250), 600);
	assert_int_equal(ask(b, 601, 0, 250, false, &p[0]), -ENOSPC);
	assert_int_equal(ask(b, 600, 0, 1, false, &p[0]), 0);
	mgr_book_free(b);
}

static void shrinks(void **state)
{
	struct mgr_book *b = make();
	mgr_promise p, q, r;

	(void)state;
	assert_int_equal(ask(b, 400, 40, MGR_DUTY, false, &p), 0);
	assert_int_equal(ask(b, 400, 40, MGR_DUTY, false, &q), 0);
	assert_int_equal(mgr_book_set_switch(b, 0, 800, GROUPS), 0);
	assert_int_equal(mgr_book_set_switch(b, 0, 799, GROUPS), 2);
	assert_int_equal(mgr_book_used_bytes(b, 0), 800); /* nothing is taken from anybody */
	assert_int_equal(ask(b, 0, 0, MGR_DUTY, false, &r), -ENOSPC);
	assert_int_equal(mgr_book_next_on_switch(b, 0, 0), p);
	mgr_book_release(b, p);
	assert_int_equal(mgr_book_next_on_switch(b, 0, p), q);
	assert_int_equal(mgr_book_next_on_switch(b, 0, q), 0);
	assert_int_equal(mgr_book_set_link(b, 3, 0), 1);
	assert_int_equal(mgr_book_next_on_link(b, 3, 0), q);
	assert_int_equal(ask(b, 0, 0, MGR_DUTY, false, &r), -ENOSPC);
	assert_int_equal(mgr_book_set_link(b, 3, BPS), 0);
	assert_int_equal(ask(b, 399, 0, MGR_DUTY, false, &r), 0);
	assert_int_equal(mgr_book_set_link(b, LINKS, BPS), -ERANGE);
	mgr_book_free(b);
}

static void swept(void **state)
{
	struct mgr_book *b = make();
	const struct mgr_demand_sw sw = {4, 10};
	const struct mgr_demand d = {.n_sw = 1, .sw = &sw, .duty = MGR_DUTY};
	mgr_promise p, q;
	int node, link;

	(void)state;
	assert_int_equal(mgr_book_reserve(b, &d, 50, &p, &node, &link), 0);
	assert_int_equal(mgr_book_reserve(b, &d, 50, &q, &node, &link), 0);
	assert_int_equal(mgr_book_commit(b, q), 0);
	assert_int_equal(mgr_book_sweep(b, 49), 0);
	assert_int_equal(mgr_book_sweep(b, 50), p);
	assert_int_equal(mgr_book_sweep(b, 50), 0);
	assert_int_equal(mgr_book_used_bytes(b, 4), 10);
	mgr_book_free(b);
}

static void refused(void **state)
{
	struct mgr_book *b = make();
	const struct mgr_demand_sw twice[] = {{0, 1}, {0, 1}}, outside = {SWITCHES, 1};
	const unsigned links[] = {2, 2};
	struct mgr_demand d = {.n_sw = 2, .sw = twice, .duty = MGR_DUTY};
	mgr_promise p;
	int node, link;

	(void)state;
	assert_int_equal(mgr_book_reserve(b, &d, FAR, &p, &node, &link), -EINVAL);
	d.n_sw = 1;
	d.duty = 0;
	assert_int_equal(mgr_book_reserve(b, &d, FAR, &p, &node, &link), -EINVAL);
	d.duty = MGR_DUTY + 1;
	assert_int_equal(mgr_book_reserve(b, &d, FAR, &p, &node, &link), -EINVAL);
	d = (struct mgr_demand){.n_link = 2, .link = links, .duty = 1};
	assert_int_equal(mgr_book_reserve(b, &d, FAR, &p, &node, &link), -EINVAL);
	d = (struct mgr_demand){.n_sw = 1, .sw = &outside, .duty = 1};
	assert_int_equal(mgr_book_reserve(b, &d, FAR, &p, &node, &link), -ERANGE);
	d = (struct mgr_demand){.duty = 1};
	assert_int_equal(mgr_book_reserve(b, &d, FAR, &p, &node, &link), -EINVAL);
	assert_int_equal(mgr_book_release(b, 0), -ENOENT);
	mgr_book_free(b);
}

static void too_many(void **state)
{
	struct mgr_book *b = mgr_book_new(1, 1);
	const struct mgr_demand_sw sw = {0, 1};
	const struct mgr_demand d = {.n_sw = 1, .sw = &sw, .duty = MGR_DUTY};
	mgr_promise p, first = 0;
	int node, link;

	(void)state;
	mgr_book_set_switch(b, 0, (uint64_t)MGR_MAX_PROMISES * 2, MGR_MAX_PROMISES * 2);
	for (unsigned i = 0; i < MGR_MAX_PROMISES; i++) {
		assert_int_equal(mgr_book_reserve(b, &d, FAR, &p, &node, &link), 0);
		first = first ? first : p;
	}
	assert_int_equal(mgr_book_reserve(b, &d, FAR, &p, &node, &link), -EMFILE);
	assert_int_equal(mgr_book_release(b, first), 0);
	assert_int_equal(mgr_book_reserve(b, &d, FAR, &p, &node, &link), 0);
	mgr_book_free(b);
}

/* The oracle: live promises as they were asked for. */
enum { EVENTS = 1000000, LIVE = 48 };

struct live {
	mgr_promise number;
	bool committed, whole;
	unsigned duty, bps, deadline;
	unsigned bytes[SWITCHES]; /* 0: not on it; else one more than asked for */
	bool link[LINKS];
};

struct oracle {
	struct live live[LIVE];
	unsigned n, sram[SWITCHES], bps[LINKS];
};

/* What account i (switches, then links) needs with one more promise, if that is not NULL. */
static bool too_much(const struct oracle *o, unsigned i, const struct live *more)
{
	unsigned n = 0, whole = 0, alone = 0, weighted = 0, largest = 0;
	bool sw = i < SWITCHES;

	for (unsigned k = 0; k <= o->n; k++) {
		const struct live *l = k < o->n ? &o->live[k] : more;
		unsigned amount;

		if (l == NULL || !(sw ? l->bytes[i] : l->link[i - SWITCHES]))
			continue;
		amount = sw ? l->bytes[i] - 1 : l->bps;
		n++;
		whole += !sw && l->whole;
		if (l->duty == MGR_DUTY) {
			alone += amount;
			continue;
		}
		weighted += amount * l->duty;
		largest = amount > largest ? amount : largest;
	}
	if (largest * MGR_DUTY > weighted)
		weighted = largest * MGR_DUTY;
	if (sw)
		return n > (o->sram[i] ? GROUPS : 0) ||
		       alone * MGR_DUTY + weighted > o->sram[i] * MGR_DUTY;
	i -= SWITCHES;
	return (o->bps[i] == 0 && n) || (whole && n > 1) ||
	       alone * MGR_DUTY + weighted > o->bps[i] * MGR_DUTY;
}

static void wish(struct live *l, struct mgr_demand *d, struct mgr_demand_sw *sw, unsigned *link,
	uint64_t *random)
{
	*l = (struct live){
		.duty = test_random(random) % 2 ? MGR_DUTY : 1 + test_random(random) % 999,
		.bps = test_random(random) % 3 ? test_random(random) % 30 : 0,
		.whole = test_random(random) % 24 == 0};
	*d = (struct mgr_demand){
		.sw = sw, .link = link, .bps = l->bps, .duty = l->duty, .whole = l->whole};
	for (unsigned i = 0; i < SWITCHES; i++) {
		if (test_random(random) % 3)
			continue;
		l->bytes[i] = 1 + test_random(random) % 400;
		sw[d->n_sw++] = (struct mgr_demand_sw){i, l->bytes[i] - 1};
	}
	for (unsigned i = 0; i < LINKS; i++) {
		l->link[i] = test_random(random) % 4 == 0;
		if (l->link[i])
			link[d->n_link++] = i;
	}
}

static void reserve(struct mgr_book *b, struct oracle *o, unsigned now, uint64_t *random)
{
	struct mgr_demand_sw sw[SWITCHES];
	unsigned link[LINKS];
	struct mgr_demand d;
	struct live l;
	bool fits = true;
	int node, at, rc;

	wish(&l, &d, sw, link, random);
	if (d.n_sw + d.n_link == 0 || o->n == LIVE)
		return;
	for (unsigned i = 0; i < SWITCHES + LINKS; i++)
		fits = fits &&
		       !((i < SWITCHES ? l.bytes[i] : l.link[i - SWITCHES]) && too_much(o, i, &l));
	l.deadline = now + test_random(random) % 4000;
	rc = mgr_book_reserve(b, &d, l.deadline, &l.number, &node, &at);
	if (rc != (fits ? 0 : -ENOSPC))
		fail_msg("%d, though it %s", rc, fits ? "fits" : "does not fit");
	if (fits)
		o->live[o->n++] = l;
}

static void forget(struct oracle *o, mgr_promise number)
{
	unsigned at = 0;

	while (o->live[at].number != number)
		assert_true(++at < o->n);
	o->live[at] = o->live[--o->n];
}

static void resize(struct mgr_book *b, struct oracle *o, uint64_t *random)
{
	unsigned i = test_random(random) % (SWITCHES + LINKS), holders = 0;
	unsigned share = test_random(random) % 8; /* down, half, mostly whole */
	bool sw = i < SWITCHES;

	if (sw)
		o->sram[i] = share == 0 ? 0 : share == 1 ? SRAM / 2 : SRAM;
	else
		o->bps[i - SWITCHES] = share == 0 ? 0 : share == 1 ? BPS / 2 : BPS;
	for (unsigned k = 0; k < o->n; k++)
		holders += sw ? o->live[k].bytes[i] != 0 : o->live[k].link[i - SWITCHES];
	assert_int_equal(sw ? mgr_book_set_switch(b, i, o->sram[i], o->sram[i] ? GROUPS : 0)
			    : mgr_book_set_link(b, i - SWITCHES, o->bps[i - SWITCHES]),
		too_much(o, i, NULL) ? holders : 0);
}

/* One switch of it, or all links. */
static void release_part(struct mgr_book *b, struct oracle *o, struct live *l, uint64_t *random)
{
	unsigned node = test_random(random) % SWITCHES, left = 0, links = 0;
	bool sw = test_random(random) % 2;

	for (unsigned i = 0; i < LINKS; i++)
		links += l->link[i];
	if (sw) {
		assert_int_equal(
			mgr_book_release_switch(b, l->number, node), l->bytes[node] ? 0 : -ENOENT);
		l->bytes[node] = 0;
	} else {
		assert_int_equal(mgr_book_release_links(b, l->number), links ? 0 : -ENOENT);
		memset(l->link, 0, sizeof(l->link));
		links = 0;
	}
	for (unsigned i = 0; i < SWITCHES; i++)
		left += l->bytes[i] != 0;
	if (left + links == 0)
		forget(o, l->number);
}

static void step(struct mgr_book *b, struct oracle *o, unsigned now, uint64_t *random)
{
	unsigned what = test_random(random) % 256;
	struct live *l = o->n ? &o->live[test_random(random) % o->n] : NULL;
	mgr_promise number;

	if (what == 0)
		resize(b, o, random);
	else if (what < 160 || l == NULL)
		reserve(b, o, now, random);
	else if (what < 230) {
		assert_int_equal(mgr_book_commit(b, l->number), 0);
		l->committed = true;
	} else if (what < 238) {
		release_part(b, o, l, random);
	} else {
		number = l->number;
		assert_int_equal(mgr_book_release(b, number), 0);
		forget(o, number);
		assert_int_equal(mgr_book_state(b, number), MGR_NO_PROMISE);
	}
	while ((number = mgr_book_sweep(b, now)) != 0)
		forget(o, number);
	for (unsigned k = 0; k < o->n; k++) {
		l = &o->live[k];
		assert_true(l->committed || l->deadline > now);
		assert_int_equal(
			mgr_book_state(b, l->number), l->committed ? MGR_COMMITTED : MGR_RESERVED);
	}
}

static void million_events(void **state)
{
	struct mgr_book *b = make();
	struct oracle o = {.n = 0};
	uint64_t random = 2026;

	(void)state;
	for (unsigned i = 0; i < SWITCHES; i++)
		o.sram[i] = SRAM;
	for (unsigned i = 0; i < LINKS; i++)
		o.bps[i] = BPS;
	for (unsigned now = 1; now <= EVENTS; now++)
		step(b, &o, now, &random);
	while (o.n > 0) {
		assert_int_equal(mgr_book_release(b, o.live[0].number), 0);
		forget(&o, o.live[0].number);
	}
	for (unsigned i = 0; i < SWITCHES; i++) {
		assert_int_equal(mgr_book_used_bytes(b, i), 0);
		assert_int_equal(mgr_book_switch_holders(b, i), 0);
	}
	mgr_book_free(b);
}

int run_book_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_or_nothing),
		cmocka_unit_test(groups_limit), cmocka_unit_test(whole_links),
		cmocka_unit_test(shared), cmocka_unit_test(shrinks), cmocka_unit_test(swept),
		cmocka_unit_test(refused), cmocka_unit_test(too_many),
		cmocka_unit_test(million_events)};

	return cmocka_run_group_tests_name("book", tests, NULL, NULL);
}
