/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of profiles of each kind: every transition, what is needed, what may change when. */
#include "tests/unit/libmrc/libmrc_test.h"

#include <errno.h>
#include <math.h>

enum {
	INIT = MRC_CTL_PROFILE_INIT,
	OFFLINE = MRC_CTL_PROFILE_OFFLINE,
	ONLINE = MRC_CTL_PROFILE_ONLINE
};
enum { ID = 17, FMT = 3 };

static const struct mrc_ctl_ev_fmt_field halves[2] = {{16}, {16}};
static struct mrc_ctl_ev_field fields[2] = {
	{.width = 16, .init_val = 0x1000, .max_val = 255, .mask = 0x0f0f},
	{.width = 16, .init_val = 0x2000, .max_val = 255, .mask = 0x0f0f}};
static const struct mrc_ctl_cc_nscc_cfg nscc = {.base_rtt = 10000};

/* Calls on one profile of a kind. all: with everything that every state needs. */
struct kind {
	int (*state)(struct profiles *b, int to, bool all);
	int (*state_if)(struct profiles *b, int to, int cur);
	int (*query)(struct profiles *b);
	int (*bits)(struct profiles *b, int mask);
};

static int fmt_call(struct profiles *b, int to, int cur, int mask)
{
	struct mrc_ctl_ev_fmt_profile_attr a = {.profile_state = (enum mrc_ctl_profile_state)to,
		.cur_profile_state = (enum mrc_ctl_profile_state)cur,
		.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV,
		.ev_fmt_op = {
			.fmt_fields = (struct mrc_ctl_ev_fmt_field *)halves, .fmt_field_count = 2}};

	return fmt_modify(b, ID, &a, mask);
}

static int fmt_state(struct profiles *b, int to, bool all)
{
	return fmt_call(b, to, 0,
		MRC_CTL_EV_FMT_PROFILE_STATE |
			(all ? MRC_CTL_EV_FMT_PROFILE_MODE | MRC_CTL_EV_FMT_PROFILE_OP : 0));
}

static int fmt_state_if(struct profiles *b, int to, int cur)
{
	return fmt_call(
		b, to, cur, MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_CUR_STATE);
}

static int fmt_bits(struct profiles *b, int mask)
{
	return fmt_call(b, 0, 0, mask);
}

static int fmt_state_of(struct profiles *b)
{
	struct mrc_ctl_ev_fmt_profile_attr a = {.profile_state = (enum mrc_ctl_profile_state)9};

	assert_int_equal(fmt_query(b, ID, &a, MRC_CTL_EV_FMT_PROFILE_STATE), 0);
	return (int)a.profile_state;
}

static int ev_call(struct profiles *b, int to, int cur, int mask)
{
	struct mrc_ctl_ev_op_entry e = {.state = MRC_CTL_EV_GOOD};
	struct mrc_ctl_ev_profile_attr a = {.profile_state = (enum mrc_ctl_profile_state)to,
		.cur_profile_state = (enum mrc_ctl_profile_state)cur,
		.ev_mode = MRC_CTL_EV_MODE_GEN,
		.ev_fmt_profile_id = FMT,
		.ev_count = 8,
		.ev_min_active = 2,
		.ev_event_mask = MRC_CTL_EV_GOOD,
		.ev_op = {.op = MRC_CTL_EV_OP_MODIFY_EV_STATE, .entries = &e, .entry_count = 1},
		.ev_fields_op = {.fields = fields, .field_count = 2}};

	return ev_modify(b, ID, &a, mask);
}

static int ev_state(struct profiles *b, int to, bool all)
{
	return ev_call(b, to, 0,
		MRC_CTL_EV_PROFILE_STATE |
			(all ? MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID |
						MRC_CTL_EV_PROFILE_COUNT |
						MRC_CTL_EV_PROFILE_MIN_ACTIVE |
						MRC_CTL_EV_PROFILE_EVENT_MASK |
						MRC_CTL_EV_PROFILE_EV_FIELDS_OP
			     : 0));
}

static int ev_state_if(struct profiles *b, int to, int cur)
{
	return ev_call(b, to, cur, MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_CUR_STATE);
}

static int ev_bits(struct profiles *b, int mask)
{
	return ev_call(b, 0, 0, mask);
}

static int ev_state_of(struct profiles *b)
{
	struct mrc_ctl_ev_profile_attr a = {.profile_state = (enum mrc_ctl_profile_state)9};

	assert_int_equal(ev_query(b, ID, &a, MRC_CTL_EV_PROFILE_STATE), 0);
	return (int)a.profile_state;
}

static int cc_call(struct profiles *b, int to, int cur, int mask)
{
	struct mrc_ctl_cc_profile_attr a = {.profile_state = (enum mrc_ctl_profile_state)to,
		.cur_profile_state = (enum mrc_ctl_profile_state)cur,
		.algorithm = "uet-1.0-nscc",
		.cc_config = &nscc};

	return cc_modify(b, ID, &a, mask);
}

static int cc_state(struct profiles *b, int to, bool all)
{
	return cc_call(b, to, 0,
		MRC_CTL_CC_PROFILE_STATE |
			(all ? MRC_CTL_CC_PROFILE_ALGORITHM | MRC_CTL_CC_PROFILE_CONFIG : 0));
}

static int cc_state_if(struct profiles *b, int to, int cur)
{
	return cc_call(b, to, cur, MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_CUR_STATE);
}

static int cc_bits(struct profiles *b, int mask)
{
	return cc_call(b, 0, 0, mask);
}

static int cc_state_of(struct profiles *b)
{
	struct mrc_ctl_cc_profile_attr a = {.profile_state = (enum mrc_ctl_profile_state)9};

	assert_int_equal(cc_query(b, ID, &a, MRC_CTL_CC_PROFILE_STATE), 0);
	return (int)a.profile_state;
}

static const struct kind kinds[] = {
	{fmt_state, fmt_state_if, fmt_state_of, fmt_bits},
	{ev_state, ev_state_if, ev_state_of, ev_bits},
	{cc_state, cc_state_if, cc_state_of, cc_bits},
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

/* Brings a profile from INIT to a state. */
static void bring(struct profiles *b, const struct kind *k, int to)
{
	if (to >= OFFLINE)
		assert_int_equal(k->state(b, OFFLINE, true), 0);
	if (to == ONLINE)
		assert_int_equal(k->state(b, ONLINE, false), 0);
	assert_int_equal(k->query(b), to);
}

static void drop(struct profiles *b, const struct kind *k, int from)
{
	if (from == ONLINE)
		assert_int_equal(k->state(b, OFFLINE, false), 0);
	if (from >= OFFLINE)
		assert_int_equal(k->state(b, INIT, false), 0);
	assert_int_equal(k->query(b), INIT);
}

static void every_transition(void **state)
{
	/* [from][to] of a call that says nothing but the state, on a profile that has it all. */
	static const int want[3][3] = {
		{0, -EINVAL, -EINVAL}, /* OFFLINE without attributes */
		{0, 0, 0},
		{-EINVAL, 0, 0},
	};

	put_format(*state, FMT, MRC_CTL_EV_FMT_MODE_STEV, halves, 2);
	for (unsigned k = 0; k < KINDS; k++) {
		for (int from = INIT; from <= ONLINE; from++) {
			for (int to = INIT; to <= ONLINE; to++) {
				int ret;

				bring(*state, &kinds[k], from);
				ret = kinds[k].state(*state, to, false);
				assert_int_equal(ret, want[from][to]);
				assert_int_equal(kinds[k].query(*state), ret ? from : to);
				drop(*state, &kinds[k], ret ? from : to);
			}
			bring(*state, &kinds[k], from);
			assert_int_equal(kinds[k].state(*state, 3, false), -EINVAL);
			assert_int_equal(kinds[k].state(*state, -1, false), -EINVAL);
			drop(*state, &kinds[k], from);
		}
	}
}

static void current_state_is_compared(void **state)
{
	put_format(*state, FMT, MRC_CTL_EV_FMT_MODE_STEV, halves, 2);
	for (unsigned k = 0; k < KINDS; k++) {
		bring(*state, &kinds[k], OFFLINE);
		assert_int_equal(kinds[k].state_if(*state, ONLINE, ONLINE), -EINVAL);
		assert_int_equal(kinds[k].state_if(*state, ONLINE, INIT), -EINVAL);
		assert_int_equal(kinds[k].query(*state), OFFLINE);
		assert_int_equal(kinds[k].state_if(*state, ONLINE, OFFLINE), 0);
		assert_int_equal(kinds[k].query(*state), ONLINE);
	}
}

/* Masks: bits that nobody knows; attributes in INIT, and with the way to INIT; of ONLINE. */
static void masks(void **state)
{
	put_format(*state, FMT, MRC_CTL_EV_FMT_MODE_STEV, halves, 2);
	for (unsigned k = 0; k < KINDS; k++) {
		assert_int_equal(kinds[k].bits(*state, 1 << 12), -EINVAL);
		assert_int_equal(kinds[k].bits(*state, 1 << 2), -EINVAL);
		bring(*state, &kinds[k], OFFLINE);
		assert_int_equal(kinds[k].bits(*state, 1 << 12), -EINVAL);
		assert_int_equal(kinds[k].bits(*state, 1 << 2), 0);
		assert_int_equal(kinds[k].bits(*state, INT32_MIN), 0);
		assert_int_equal(kinds[k].bits(*state, 1 << 2 | 1 << 0), -EINVAL); /* to INIT */
		assert_int_equal(kinds[k].state(*state, ONLINE, false), 0);
		assert_int_equal(kinds[k].bits(*state, 1 << 2), -EINVAL);
		assert_int_equal(kinds[k].bits(*state, INT32_MIN), 0);
	}
	assert_int_equal(fmt_bits(*state, MRC_CTL_EV_FMT_PROFILE_OP), -EINVAL);
	assert_int_equal(ev_bits(*state, MRC_CTL_EV_PROFILE_COUNT), -EINVAL);
	assert_int_equal(ev_bits(*state, MRC_CTL_EV_PROFILE_MIN_ACTIVE), -EINVAL);
	assert_int_equal(ev_bits(*state, MRC_CTL_EV_PROFILE_FMT_ID), -EINVAL);
	/* The options that the device has. */
	assert_int_equal(ev_bits(*state, MRC_CTL_EV_PROFILE_EVENT_MASK), 0);
	assert_int_equal(ev_bits(*state, MRC_CTL_EV_PROFILE_EV_FIELDS_OP), 0);
	assert_int_equal(cc_bits(*state, MRC_CTL_CC_PROFILE_CONFIG), 0);
}

/* What is needed may come with the transition or before, and not later. */
static void needs(void **state)
{
	struct profiles *b = *state;

	put_format(b, FMT, MRC_CTL_EV_FMT_MODE_STEV, halves, 2);
	assert_int_equal(fmt_call(b, OFFLINE, 0, MRC_CTL_EV_FMT_PROFILE_STATE), -EINVAL);
	assert_int_equal(
		fmt_call(b, OFFLINE, 0, MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_MODE),
		0);
	assert_int_equal(fmt_call(b, ONLINE, 0, MRC_CTL_EV_FMT_PROFILE_STATE), -EINVAL);
	assert_int_equal(
		fmt_call(b, ONLINE, 0, MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_OP),
		0);

	assert_int_equal(
		cc_call(b, OFFLINE, 0, MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_CONFIG),
		-EINVAL);
	assert_int_equal(
		cc_call(b, OFFLINE, 0, MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_ALGORITHM), 0);
	assert_int_equal(cc_call(b, ONLINE, 0, MRC_CTL_CC_PROFILE_STATE), -EINVAL);
	assert_int_equal(
		cc_call(b, ONLINE, 0, MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_CONFIG), 0);

	/* EVs: each attribute of OFFLINE missing in turn, then each of ONLINE. */
	for (int bit = MRC_CTL_EV_PROFILE_MODE; bit <= MRC_CTL_EV_PROFILE_EV_FIELDS_OP; bit <<= 1) {
		int all = MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID |
			  MRC_CTL_EV_PROFILE_COUNT | MRC_CTL_EV_PROFILE_EV_FIELDS_OP;

		if (all & bit)
			assert_int_equal(ev_call(b, OFFLINE, 0, (all & ~bit) | 1), -EINVAL);
	}
	assert_int_equal(
		ev_call(b, OFFLINE, 0,
			1 | MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID |
				MRC_CTL_EV_PROFILE_COUNT | MRC_CTL_EV_PROFILE_EV_FIELDS_OP),
		0);
	assert_int_equal(ev_call(b, ONLINE, 0, 1), -EINVAL);
	assert_int_equal(ev_call(b, ONLINE, 0, 1 | MRC_CTL_EV_PROFILE_MIN_ACTIVE), -EINVAL);
	assert_int_equal(ev_call(b, ONLINE, 0, 1 | MRC_CTL_EV_PROFILE_EVENT_MASK), -EINVAL);
	assert_int_equal(ev_call(b, ONLINE, 0,
				 1 | MRC_CTL_EV_PROFILE_EVENT_MASK | MRC_CTL_EV_PROFILE_MIN_ACTIVE),
		0);
}

/* Who uses a profile keeps it ONLINE. */
static void busy(void **state)
{
	struct profiles *b = *state;
	struct ev_profile *ev;
	struct cc_profile *cc;

	put_format(b, FMT, MRC_CTL_EV_FMT_MODE_STEV, halves, 2);
	bring(b, &kinds[1], OFFLINE);
	ev = (struct ev_profile *)&ev;
	assert_int_equal(ev_get(b, ID, &ev), -EINVAL);
	assert_null(ev);
	assert_int_equal(ev_get(b, 99, &ev), -EINVAL);
	assert_int_equal(ev_state(b, ONLINE, false), 0);
	assert_int_equal(ev_get(b, ID, &ev), 0);
	assert_int_equal(ev_state(b, OFFLINE, false), -EBUSY);
	{
		struct mrc_ctl_ev_fmt_profile_attr a = {.profile_state = MRC_CTL_PROFILE_OFFLINE};

		assert_int_equal(fmt_modify(b, FMT, &a, MRC_CTL_EV_FMT_PROFILE_STATE), -EBUSY);
		ev_put(ev);
		assert_int_equal(ev_state(b, OFFLINE, false), 0);
		assert_int_equal(fmt_modify(b, FMT, &a, MRC_CTL_EV_FMT_PROFILE_STATE), 0);
		/* A format that is not ONLINE. */
		assert_int_equal(ev_state(b, ONLINE, false), -EINVAL);
	}
	bring(b, &kinds[2], ONLINE);
	assert_int_equal(cc_get(b, ID, &cc), 0);
	assert_int_equal(cc_state(b, OFFLINE, false), -EBUSY);
	cc_put(cc);
	assert_int_equal(cc_state(b, OFFLINE, false), 0);
	assert_int_equal(cc_get(b, ID, &cc), -EINVAL);
	/* 0 stands for the built-in ones. */
	assert_int_equal(cc_get(b, 0, &cc), 0);
	assert_null(cc);
	assert_int_equal(ev_get(b, 0, &ev), 0);
	assert_null(ev);
}

static void format_fields(void **state)
{
	struct profiles *b = *state;
	struct mrc_ctl_ev_fmt_field f[PROFILES_FIELDS + 1], out[2];
	struct mrc_ctl_ev_fmt_profile_attr a = {.profile_state = MRC_CTL_PROFILE_OFFLINE,
		.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_UDP,
		.ev_fmt_op = {.fmt_fields = f}};
	int mask = MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_MODE |
		   MRC_CTL_EV_FMT_PROFILE_OP;
	static const struct {
		int mode, n, width, want;
	} cases[] = {{1, 2, 16, 0}, {1, 2, 17, -E2BIG}, {1, 33, 1, -E2BIG}, {1, 0, 1, -EINVAL},
		{1, -1, 1, -EINVAL}, {1, 1, 0, -EINVAL}, {4, 2, 8, 0}, {4, 1, 17, -E2BIG},
		{2, 2, 128, 0}, {2, 2, 129, -E2BIG}, {3, 1, 8, -EINVAL}, {0, 1, 8, -EINVAL}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		for (int j = 0; j < (int)(sizeof(f) / sizeof(*f)); j++)
			f[j].width = (uint8_t)cases[i].width;
		a.ev_fmt_mode = (enum mrc_ctl_ev_fmt_mode)cases[i].mode;
		a.ev_fmt_op.fmt_field_count = cases[i].n;
		assert_int_equal(fmt_modify(b, 100 + i, &a, mask), cases[i].want);
	}
	/* A refused change changes nothing; a query that has too little room says how much. */
	a.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_UDP;
	assert_int_equal(fmt_modify(b, 100, &a, MRC_CTL_EV_FMT_PROFILE_MODE), -E2BIG);
	a.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_QUERY_FIELDS;
	assert_int_equal(fmt_modify(b, 100, &a, MRC_CTL_EV_FMT_PROFILE_OP), -EINVAL);
	a.ev_fmt_op.fmt_fields = out;
	a.ev_fmt_op.fmt_field_count = 1;
	assert_int_equal(fmt_query(b, 100, &a, MRC_CTL_EV_FMT_PROFILE_OP), -E2BIG);
	assert_int_equal(a.ev_fmt_op.fmt_field_count, 2);
	assert_int_equal(
		fmt_query(b, 100, &a, MRC_CTL_EV_FMT_PROFILE_OP | MRC_CTL_EV_FMT_PROFILE_MODE), 0);
	assert_int_equal(a.ev_fmt_mode, MRC_CTL_EV_FMT_MODE_STEV);
	assert_int_equal(out[1].width, 16);
	a.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_MODIFY_FIELDS;
	assert_int_equal(fmt_query(b, 100, &a, MRC_CTL_EV_FMT_PROFILE_OP), -EINVAL);
	assert_int_equal(fmt_query(b, 9999, &a, MRC_CTL_EV_FMT_PROFILE_MODE), -EINVAL);
}

static void as_many_as_there_may_be(void **state)
{
	struct profiles *b = *state;
	struct mrc_ctl_cc_profile_attr cc = {.profile_state = MRC_CTL_PROFILE_OFFLINE};
	int mask = MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_ALGORITHM;

	for (unsigned i = 0; i < PROFILES_FMT; i++)
		put_format(b, i, MRC_CTL_EV_FMT_MODE_STEV, halves, 2);
	assert_int_equal(fmt_state(b, OFFLINE, false), 0); /* ID is one of them */
	drop(b, &kinds[0], OFFLINE);
	bring(b, &kinds[0], OFFLINE);
	{
		struct mrc_ctl_ev_fmt_profile_attr a = {.profile_state = MRC_CTL_PROFILE_OFFLINE,
			.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV};

		assert_int_equal(
			fmt_modify(b, 4711, &a,
				MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_MODE),
			-E2BIG);
	}
	for (unsigned i = 1; i <= PROFILES_CC; i++)
		assert_int_equal(cc_modify(b, i, &cc, mask), 0);
	assert_int_equal(cc_modify(b, 4711, &cc, mask), -EIO);
	for (unsigned i = 1; i <= PROFILES_EVS / PROFILES_EVS_PROFILE; i++)
		put_explicit(b, i, 0, PROFILES_EVS_PROFILE);
	assert_int_equal(b->n_evs, PROFILES_EVS);
	drop(b, &kinds[0], OFFLINE); /* a place for the format that the call names */
	put_format(b, FMT + 1000, MRC_CTL_EV_FMT_MODE_STEV, halves, 2);
	assert_int_equal(ev_state(b, OFFLINE, true), -E2BIG);
	assert_int_equal(set_ev_state(b, 1, MRC_CTL_PROFILE_INIT), 0);
	assert_int_equal(ev_state(b, OFFLINE, true), 0);
	assert_int_equal(b->n_evs, PROFILES_EVS - PROFILES_EVS_PROFILE + 8);
}

static void congestion_control(void **state)
{
	struct profiles *b = *state;
	struct mrc_ctl_cc_nscc_cfg bad = {.gamma = 1.5f};
	struct mrc_ctl_cc_profile_attr a = {
		.profile_state = MRC_CTL_PROFILE_OFFLINE, .algorithm = "reno"};
	int mask = MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_ALGORITHM;
	int config = MRC_CTL_CC_PROFILE_CONFIG;

	assert_int_equal(cc_modify(b, ID, &a, mask), -EINVAL);
	a.algorithm = "uet-1.0-nscc";
	assert_int_equal(cc_modify(b, 0, &a, mask), -EINVAL); /* built in */
	assert_int_equal(cc_modify(b, ID, &a, mask), 0);
	assert_int_equal(cc_modify(b, ID, &a, config), -EINVAL); /* NULL */
	a.cc_config = &bad;
	assert_int_equal(cc_modify(b, ID, &a, config), -EINVAL);
	bad.gamma = NAN;
	assert_int_equal(cc_modify(b, ID, &a, config), -EINVAL);
	a.cc_config = &nscc;
	assert_int_equal(cc_modify(b, ID, &a, config), 0);
	a.cc_config = &bad;
	assert_int_equal(cc_modify(b, ID, &a, config), -EINVAL);
	a = (struct mrc_ctl_cc_profile_attr){0};
	assert_int_equal(cc_query(b, ID, &a, config | MRC_CTL_CC_PROFILE_ALGORITHM), 0);
	assert_string_equal(a.algorithm, "uet-1.0-nscc");
	assert_memory_equal(a.cc_config, &nscc, sizeof(nscc));
	assert_int_equal(cc_query(b, 0, &a, mask), 0);
	assert_int_equal(a.profile_state, MRC_CTL_PROFILE_ONLINE);
	/* None at all needs no numbers. */
	a = (struct mrc_ctl_cc_profile_attr){.profile_state = MRC_CTL_PROFILE_OFFLINE};
	assert_int_equal(cc_modify(b, 5, &a, mask), 0);
	a.profile_state = MRC_CTL_PROFILE_ONLINE;
	assert_int_equal(cc_modify(b, 5, &a, MRC_CTL_CC_PROFILE_STATE), 0);
	a.algorithm = "x";
	assert_int_equal(cc_query(b, 5, &a, MRC_CTL_CC_PROFILE_ALGORITHM), 0);
	assert_null(a.algorithm);
}

int run_life_tests(void)
{
	const struct CMUnitTest tests[] = {
		BOOK_TEST(every_transition),
		BOOK_TEST(current_state_is_compared),
		BOOK_TEST(masks),
		BOOK_TEST(needs),
		BOOK_TEST(busy),
		BOOK_TEST(format_fields),
		BOOK_TEST(as_many_as_there_may_be),
		BOOK_TEST(congestion_control),
	};

	return cmocka_run_group_tests_name("life of profiles", tests, NULL, NULL);
}
