/* SPDX-License-Identifier: BSD-3-Clause */
/* EV profiles: operations on their entries, limits, what a refused call leaves. */
#include "tests/unit/libmrc/libmrc_test.h"

#include <errno.h>

enum { ID = 5, FMT = 3, N = 4 };

static const struct mrc_ctl_ev_fmt_field whole[1] = {{32}};
static const struct mrc_ctl_ev none;

static void setup(struct profiles *b)
{
	put_format(b, FMT, MRC_CTL_EV_FMT_MODE_STEV, whole, 1);
	put_explicit(b, ID, FMT, N);
}

static void fill(struct profiles *b)
{
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(fill_one(b, ID, 0x1000 + i, (uint8_t)(i % 2 + 1)), 0);
}

static int query_array(struct profiles *b, struct mrc_ctl_ev_op_entry *e, int *n)
{
	struct mrc_ctl_ev_profile_attr a = {
		.ev_op = {.op = MRC_CTL_EV_OP_QUERY_EV_ARRAY, .entries = e, .entry_count = *n}};
	int ret = ev_query(b, ID, &a, MRC_CTL_EV_PROFILE_EV_OP);

	*n = a.ev_op.entry_count;
	return ret;
}

static enum mrc_ctl_ev_state state_of(struct profiles *b, uint32_t value, uint8_t port)
{
	struct mrc_ctl_ev_op_entry e = {.ev = an_ev(value, port)};

	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_QUERY_EV_STATE, &e), 0);
	return e.state;
}

static void explicit_is_filled(void **state)
{
	struct profiles *b = *state;
	struct mrc_ctl_ev_op_entry e[N];
	int n = N;

	setup(b);
	assert_int_equal(query_array(b, e, &n), 0);
	assert_int_equal(n, N);
	for (int i = 0; i < N; i++)
		assert_memory_equal(&e[i].ev, &none, sizeof(none));
	assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_ONLINE), -EINVAL);
	fill(b);
	assert_int_equal(fill_one(b, ID, 7, 1), -ENOENT); /* full */
	assert_int_equal(query_array(b, e, &n), 0);
	for (uint32_t i = 0; i < N; i++) {
		struct mrc_ctl_ev want = an_ev(0x1000 + i, (uint8_t)(i % 2 + 1));

		assert_memory_equal(&e[i].ev, &want, sizeof(want));
		assert_int_equal(e[i].state, MRC_CTL_EV_UNKNOWN);
	}
	n = N - 1;
	assert_int_equal(query_array(b, e, &n), -E2BIG);
	assert_int_equal(n, N);
	assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_ONLINE), 0);
}

static void replaced_and_changed(void **state)
{
	struct profiles *b = *state;
	struct mrc_ctl_ev_op_entry e = {.ev = an_ev(0x1000, 2), .ev_new = an_ev(9, 1)};

	setup(b);
	fill(b);
	e.state = MRC_CTL_EV_GOOD;
	/* An EV is its value and its port. */
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_REPLACE_EV, &e), -ENOENT);
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_MODIFY_EV_STATE, &e), -ENOENT);
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_QUERY_EV_STATE, &e), -ENOENT);
	e.ev.port = 1;
	e.ev_new.port = 0;
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_REPLACE_EV, &e), -EINVAL);
	e.ev_new.port = 3; /* of two */
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_REPLACE_EV, &e), -EINVAL);
	e.ev_new = an_ev(9, 1);
	e.ev_new.val[4] = 1; /* behind the format's 32 bits */
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_REPLACE_EV, &e), -EINVAL);
	e.ev_new = an_ev(9, 1);
	e.flags = 2;
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_REPLACE_EV, &e), -EINVAL);
	e.flags = 0;
	e.state = MRC_CTL_EV_UNKNOWN;
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_REPLACE_EV, &e), -EINVAL);
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_MODIFY_EV_STATE, &e), -EINVAL);
	assert_int_equal(ev_one(b, ID, (enum mrc_ctl_ev_op)4, &e), -EINVAL);
	e.state = MRC_CTL_EV_DENIED;
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_REPLACE_EV, &e), 0);
	assert_int_equal(state_of(b, 9, 1), MRC_CTL_EV_DENIED);
	assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_ONLINE), 0);
	/* ONLINE all of it goes on, but no entry becomes empty. */
	e.ev = e.ev_new;
	e.ev_new = none;
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_REPLACE_EV, &e), -EINVAL);
	e.state = MRC_CTL_EV_GOOD;
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_MODIFY_EV_STATE, &e), 0);
	assert_int_equal(state_of(b, 9, 1), MRC_CTL_EV_UNKNOWN);
	e.ev_new = an_ev(10, 2);
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_REPLACE_EV, &e), 0);
	assert_int_equal(state_of(b, 10, 2), MRC_CTL_EV_UNKNOWN);
	e.state = MRC_CTL_EV_ASSUMED_BAD;
	e.ev = e.ev_new;
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_MODIFY_EV_STATE, &e), 0);
}

/* Two entries with the same EV: one, or both. */
static void copies(void **state)
{
	struct profiles *b = *state;
	struct mrc_ctl_ev_op_entry e[N] = {{.ev = an_ev(8, 1), .state = MRC_CTL_EV_DENIED}};
	int n = N;

	setup(b);
	for (int i = 0; i < N; i++)
		assert_int_equal(fill_one(b, ID, 8, 1), 0);
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_MODIFY_EV_STATE, e), 0);
	assert_int_equal(query_array(b, e, &n), 0);
	assert_int_equal(e[0].state, MRC_CTL_EV_DENIED);
	assert_int_equal(e[1].state, MRC_CTL_EV_UNKNOWN);
	e[0].flags = MRC_CTL_EV_OP_F_ALL_COPIES;
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_MODIFY_EV_STATE, e), 0);
	assert_int_equal(query_array(b, e, &n), 0);
	for (int i = 0; i < N; i++)
		assert_int_equal(e[i].state, MRC_CTL_EV_DENIED);
}

/* Entries are applied in order up to the first that fails. */
static void batches(void **state)
{
	struct profiles *b = *state;
	struct mrc_ctl_ev_op_entry e[3] = {{.ev_new = an_ev(1, 1), .state = MRC_CTL_EV_GOOD},
		{.ev = an_ev(4711, 1), .ev_new = an_ev(2, 1), .state = MRC_CTL_EV_GOOD},
		{.ev_new = an_ev(3, 1), .state = MRC_CTL_EV_GOOD}};
	struct mrc_ctl_ev_profile_attr a = {
		.ev_op = {.op = MRC_CTL_EV_OP_REPLACE_EV, .entries = e, .entry_count = 3}};
	struct mrc_ctl_ev_op_entry out[N];
	int n = N;

	setup(b);
	assert_int_equal(ev_modify(b, ID, &a, MRC_CTL_EV_PROFILE_EV_OP), -ENOENT);
	assert_int_equal(query_array(b, out, &n), 0);
	assert_memory_equal(&out[0].ev, &e[0].ev_new, sizeof(none));
	assert_memory_equal(&out[1].ev, &none, sizeof(none));
	a.ev_op.entry_count = 0;
	assert_int_equal(ev_modify(b, ID, &a, MRC_CTL_EV_PROFILE_EV_OP), -EINVAL);
	a.ev_op.entry_count = 1;
	a.ev_op.entries = NULL;
	assert_int_equal(ev_modify(b, ID, &a, MRC_CTL_EV_PROFILE_EV_OP), -EINVAL);
	a.ev_op.entries = e;
	assert_int_equal(ev_query(b, ID, &a, MRC_CTL_EV_PROFILE_EV_OP), -EINVAL); /* REPLACE */
	a.ev_op.op = MRC_CTL_EV_OP_QUERY_EV_ARRAY;
	assert_int_equal(
		ev_modify(b, ID, &a, MRC_CTL_EV_PROFILE_EV_OP | MRC_CTL_EV_PROFILE_EV_FIELDS_OP),
		-EINVAL);
	assert_int_equal(
		ev_query(b, ID, &a, MRC_CTL_EV_PROFILE_EV_OP | MRC_CTL_EV_PROFILE_EV_FIELDS_OP),
		-EINVAL);
}

/* Filled and ONLINE in one call, and OFFLINE with entries in one. */
static void all_in_one_call(void **state)
{
	struct profiles *b = *state;
	struct mrc_ctl_ev_op_entry e[2] = {{.ev_new = an_ev(1, 1), .state = MRC_CTL_EV_GOOD},
		{.ev_new = an_ev(2, 2), .state = MRC_CTL_EV_GOOD}};
	struct mrc_ctl_ev_profile_attr a = {.profile_state = MRC_CTL_PROFILE_OFFLINE,
		.ev_mode = MRC_CTL_EV_MODE_EXP,
		.ev_fmt_profile_id = FMT,
		.ev_count = 2,
		.ev_op = {.op = MRC_CTL_EV_OP_REPLACE_EV, .entries = e, .entry_count = 1}};
	int mask = MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID |
		   MRC_CTL_EV_PROFILE_COUNT | MRC_CTL_EV_PROFILE_EV_OP;

	put_format(b, FMT, MRC_CTL_EV_FMT_MODE_STEV, whole, 1);
	assert_int_equal(ev_modify(b, ID, &a, mask), 0);
	a.profile_state = MRC_CTL_PROFILE_ONLINE;
	a.ev_op.entries = e + 1;
	a.ev_event_mask = MRC_CTL_EV_DENIED; /* no event of it */
	mask = MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MIN_ACTIVE |
	       MRC_CTL_EV_PROFILE_EVENT_MASK | MRC_CTL_EV_PROFILE_EV_OP;
	assert_int_equal(ev_modify(b, ID, &a, mask), -EINVAL);
	a.ev_event_mask = MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD;
	a.ev_min_active = 3;
	assert_int_equal(ev_modify(b, ID, &a, mask), -EINVAL);
	a.ev_min_active = 2;
	assert_int_equal(ev_modify(b, ID, &a, mask), 0);
	memset(&a, 0, sizeof(a));
	assert_int_equal(ev_query(b, ID, &a, mask & ~MRC_CTL_EV_PROFILE_EV_OP), 0);
	assert_int_equal(a.profile_state, MRC_CTL_PROFILE_ONLINE);
	assert_int_equal(a.ev_min_active, 2);
	assert_int_equal(a.ev_event_mask, 3);
}

static void counts(void **state)
{
	struct profiles *b = *state;
	struct mrc_ctl_ev_profile_attr a = {0};
	struct mrc_ctl_ev_op_entry e[N + 2];
	int n = N + 2;

	setup(b);
	fill(b);
	assert_int_equal(ev_modify(b, ID, &a, MRC_CTL_EV_PROFILE_COUNT), -EINVAL);
	a.ev_count = PROFILES_EVS_PROFILE + 1;
	assert_int_equal(ev_modify(b, ID, &a, MRC_CTL_EV_PROFILE_COUNT), -E2BIG);
	a.ev_fmt_profile_id = 4711; /* does not exist */
	assert_int_equal(ev_modify(b, ID, &a, MRC_CTL_EV_PROFILE_FMT_ID), -EINVAL);
	a.ev_mode = (enum mrc_ctl_ev_mode)3;
	assert_int_equal(ev_modify(b, ID, &a, MRC_CTL_EV_PROFILE_MODE), -EINVAL);
	a.ev_count = N + 2; /* those that are there stay */
	assert_int_equal(ev_modify(b, ID, &a, MRC_CTL_EV_PROFILE_COUNT), 0);
	assert_int_equal(query_array(b, e, &n), 0);
	assert_int_equal(e[N - 1].ev.val[2], 0x10);
	assert_memory_equal(&e[N].ev, &none, sizeof(none));
	assert_int_equal(b->n_evs, N + 2);
	assert_int_equal(ev_modify(b, 0, &a, MRC_CTL_EV_PROFILE_COUNT), -EINVAL);
	assert_int_equal(ev_query(b, 4711, &a, MRC_CTL_EV_PROFILE_COUNT), -EINVAL);
	assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_INIT), 0);
	assert_int_equal(b->n_evs, 0);
}

/* What connections say of an EV, as a query tells it. */
static void health(void **state)
{
	struct profiles *b = *state;
	struct ev_path path[PROFILES_EVS_QP];
	struct mrc_ctl_ev_op_entry e = {
		.ev = an_ev(0x1000, 1), .ev_new = an_ev(77, 1), .state = MRC_CTL_EV_GOOD};
	struct ev_profile *p;

	setup(b);
	fill(b);
	assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_ONLINE), 0);
	assert_int_equal(ev_get(b, ID, &p), 0);
	assert_int_equal(ev_paths(b, p, false, path), N);
	assert_int_equal(path[0].ev, 0x1000);
	for (int i = 0; i < 3; i++)
		ev_note(p, &path[0], 1, 0);
	assert_int_equal(state_of(b, 0x1000, 1), MRC_CTL_EV_GOOD);
	assert_int_equal(state_of(b, 0x1001, 2), MRC_CTL_EV_UNKNOWN);
	ev_note(p, &path[0], 0, 1);
	assert_int_equal(state_of(b, 0x1000, 1), MRC_CTL_EV_GOOD);
	ev_note(p, &path[0], 0, 1); /* two of three */
	assert_int_equal(state_of(b, 0x1000, 1), MRC_CTL_EV_ASSUMED_BAD);
	/* Another EV in its place: what is said of the old one is not of the new one. */
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_REPLACE_EV, &e), 0);
	ev_note(p, &path[0], -1, -1);
	assert_int_equal(state_of(b, 77, 1), MRC_CTL_EV_UNKNOWN);
	ev_put(p);
}

int run_ev_tests(void)
{
	const struct CMUnitTest tests[] = {
		BOOK_TEST(explicit_is_filled),
		BOOK_TEST(replaced_and_changed),
		BOOK_TEST(copies),
		BOOK_TEST(batches),
		BOOK_TEST(all_in_one_call),
		BOOK_TEST(counts),
		BOOK_TEST(health),
	};

	return cmocka_run_group_tests_name("EV profiles", tests, NULL, NULL);
}
