/* SPDX-License-Identifier: BSD-3-Clause */
/* From profiles to packets: worked examples of the expansion, EVs that are drawn. */
#include "tests/unit/libmrc/libmrc_test.h"

#include <errno.h>

enum { ID = 5, FMT = 3 };

static const struct mrc_ctl_ev_fmt_field halves[2] = {{16}, {16}};
static struct mrc_ctl_ev_field two[2] = {
	{.width = 16, .init_val = 0x1000, .max_val = 255, .mask = 0x0f0f},
	{.width = 16, .init_val = 0x2000, .max_val = 255, .mask = 0x0f0f}};

/* To ONLINE; without fields in EXP and AUTO. */
static int online(struct profiles *b, enum mrc_ctl_ev_mode mode, uint32_t count,
	struct mrc_ctl_ev_field *fields, int n)
{
	struct mrc_ctl_ev_profile_attr a = {.profile_state = MRC_CTL_PROFILE_OFFLINE,
		.ev_mode = mode,
		.ev_fmt_profile_id = FMT,
		.ev_count = count,
		.ev_fields_op = {.fields = fields, .field_count = n}};
	int ret = ev_modify(b, ID, &a,
		MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID |
			MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK |
			(count ? MRC_CTL_EV_PROFILE_COUNT : 0) |
			(n ? MRC_CTL_EV_PROFILE_EV_FIELDS_OP : 0));

	return ret                           ? ret
	       : mode == MRC_CTL_EV_MODE_EXP ? 0
					     : set_ev_state(b, ID, MRC_CTL_PROFILE_ONLINE);
}

static void expansion_of_two_fields(void **state)
{
	struct profiles *b = *state;
	struct ev_path path[PROFILES_EVS_QP];
	struct ev_profile *p;

	put_format(b, FMT, MRC_CTL_EV_FMT_MODE_STEV, halves, 2);
	assert_int_equal(online(b, MRC_CTL_EV_MODE_EXP, 1, two, 2), 0);
	assert_int_equal(fill_one(b, ID, 0x35a70001, 1), -EINVAL); /* more bits than the masks */
	assert_int_equal(fill_one(b, ID, 0x35a70000, 2), 0);
	assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_ONLINE), 0);
	assert_int_equal(ev_get(b, ID, &p), 0);
	assert_int_equal(ev_paths(b, p, false, path), 1);
	assert_int_equal(path[0].ev, 0x13052a07);
	assert_int_equal(path[0].port, 1); /* from 0 on */
	assert_int_equal(path[0].n_segments, 0);
	assert_int_equal(ev_paths(b, p, true, path), -EINVAL); /* no flow label in IPv4 */
	ev_put(p);
}

static void expansion_to_an_address(void **state)
{
	struct profiles *b = *state;
	static const struct mrc_ctl_ev_fmt_field widths[5] = {{32}, {16}, {16}, {16}, {16}};
	struct mrc_ctl_ev_field fields[5] = {{.width = 32, .init_val = 0xfcbbbb00},
		{.width = 16, .init_val = 0x0012, .max_val = 15, .mask = 0xf000},
		{.width = 16, .init_val = 0x0400, .max_val = 0x3ff, .mask = 0xf3ff},
		{.width = 16, .init_val = 0x0155, .max_val = 15, .mask = 0xf000},
		{.width = 16, .init_val = 0x087f, .max_val = 15, .mask = 0xf000}};
	static const uint8_t address[16] = {
		0xfc, 0xbb, 0xbb, 0, 0x50, 0x12, 0x54, 0x2a, 0x51, 0x55, 0x58, 0x7f};
	struct ev_path path[PROFILES_EVS_QP];
	struct ev_profile *p;

	/* The third field has 14 bits, so 0x3ff is too low a bound for 01 0100 0010 1010. */
	put_format(b, FMT, MRC_CTL_EV_FMT_MODE_SRV6, widths, 5);
	assert_int_equal(online(b, MRC_CTL_EV_MODE_EXP, 1, fields, 5), 0);
	assert_int_equal(fill_one(b, ID, 0x550a9540, 1), -EINVAL);
	assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_INIT), 0);
	fields[2].max_val = 0x3fff;
	assert_int_equal(online(b, MRC_CTL_EV_MODE_EXP, 1, fields, 5), 0);
	assert_int_equal(fill_one(b, ID, 0x550a9540, 1), 0);
	assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_ONLINE), 0);
	assert_int_equal(ev_get(b, ID, &p), 0);
	assert_int_equal(ev_paths(b, p, false, path), 1);
	assert_int_equal(path[0].ev, 0x550a9540); /* the handle: what fits in 32 bits */
	assert_int_equal(path[0].n_segments, 1);
	assert_memory_equal(path[0].segment[0], address, sizeof(address));
	ev_put(p);
}

/* Whole addresses: the handle is the place in the array; the second half is a segment. */
static void addresses_one_by_one(void **state)
{
	struct profiles *b = *state;
	static const struct mrc_ctl_ev_fmt_field widths[2] = {{128}, {128}};
	struct mrc_ctl_ev_op_entry e[2] = {{.ev_new = {{0xfc, 1}, 1}, .state = MRC_CTL_EV_GOOD},
		{.ev_new = {{0xfc, 2}, 2}, .state = MRC_CTL_EV_DENIED}};
	struct ev_path path[PROFILES_EVS_QP];
	struct ev_profile *p;

	e[1].ev_new.val[16] = 0xfd;
	put_format(b, FMT, MRC_CTL_EV_FMT_MODE_SRV6, widths, 2);
	assert_int_equal(online(b, MRC_CTL_EV_MODE_EXP, 2, NULL, 0), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_REPLACE_EV, &e[i]), 0);
	assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_ONLINE), 0);
	assert_int_equal(ev_get(b, ID, &p), 0);
	assert_int_equal(ev_paths(b, p, false, path), 2);
	assert_int_equal(path[0].ev, 0);
	assert_int_equal(path[1].ev, 1);
	assert_int_equal(path[0].n_segments, 1);
	assert_int_equal(path[1].n_segments, 2);
	assert_memory_equal(path[1].segment, e[1].ev_new.val, 32);
	assert_true(path[1].denied && !path[0].denied);
	ev_put(p);
}

/* Fields that their format cannot have. */
static void field_rules(void **state)
{
	struct profiles *b = *state;
	static const struct {
		struct mrc_ctl_ev_field f;
		int want;
	} cases[] = {{{16, 0, 0, 15, 0xf}, 0}, {{17, 0, 0, 15, 0xf}, -EINVAL},
		{{16, 0x10000, 0, 15, 0xf}, -EINVAL}, {{16, 0, 0, 15, 0x1000f}, -EINVAL},
		{{16, 0, 0, 16, 0xf}, -EINVAL}, {{16, 0, 9, 8, 0xf}, -EINVAL},
		{{33, 0, 0, 15, 0xf}, -EINVAL}};
	struct mrc_ctl_ev_field three[3] = {{.width = 8}, {.width = 8}, {.width = 8}};

	put_format(b, FMT, MRC_CTL_EV_FMT_MODE_STEV, halves, 2);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct mrc_ctl_ev_field f = cases[i].f;

		assert_int_equal(online(b, MRC_CTL_EV_MODE_GEN, 4, &f, 1), cases[i].want);
		if (!cases[i].want) {
			assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_OFFLINE), 0);
			assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_INIT), 0);
		}
	}
	assert_int_equal(online(b, MRC_CTL_EV_MODE_GEN, 4, three, 3), -EINVAL);
	assert_int_equal(online(b, MRC_CTL_EV_MODE_AUTO, 4, two, 2), -EINVAL);
	/* 16 values are not 17. */
	assert_int_equal(online(b, MRC_CTL_EV_MODE_GEN, 17,
				 &(struct mrc_ctl_ev_field){16, 0, 0, 15, 0xf}, 1),
		-E2BIG);
}

static void generated(void **state)
{
	struct profiles *b = *state;
	struct mrc_ctl_ev_field fields[2] = {
		{.width = 16, .init_val = 0x0100, .min_val = 3, .max_val = 10, .mask = 0x00f0},
		{.width = 16, .init_val = 0x8000, .min_val = 1, .max_val = 62, .mask = 0x003f}};
	static struct mrc_ctl_ev_op_entry e[8 * 62], again[8 * 62];
	struct mrc_ctl_ev_profile_attr a = {
		.ev_op = {.op = MRC_CTL_EV_OP_QUERY_EV_ARRAY, .entries = e, .entry_count = 8 * 62}};
	struct ev_path path[PROFILES_EVS_QP];
	unsigned of_port[2] = {0}, seen[16] = {0};
	struct ev_profile *p;

	/* All that there are: then they are each value once. */
	put_format(b, FMT, MRC_CTL_EV_FMT_MODE_STEV, halves, 2);
	assert_int_equal(online(b, MRC_CTL_EV_MODE_GEN, 8 * 62, fields, 2), 0);
	assert_int_equal(ev_query(b, ID, &a, MRC_CTL_EV_PROFILE_EV_OP), 0);
	assert_int_equal(a.ev_op.entry_count, 8 * 62);
	for (int i = 0; i < 8 * 62; i++)
		seen[e[i].ev.val[0] >> 4]++;
	for (unsigned v = 0; v < 16; v++)
		assert_int_equal(seen[v], v >= 3 && v <= 10 ? 62 : 0);
	/* A connection takes as many as it may, of each port the same. */
	assert_int_equal(ev_get(b, ID, &p), 0);
	assert_int_equal(ev_paths(b, p, false, path), PROFILES_EVS_QP);
	for (unsigned i = 0; i < PROFILES_EVS_QP; i++) {
		assert_int_equal(path[i].ev & 0xff0fffc0, 0x01008000);
		of_port[path[i].port]++;
		for (unsigned j = 0; j < i; j++)
			assert_int_not_equal(path[i].ev, path[j].ev);
	}
	assert_int_equal(of_port[0], of_port[1]);
	/* The array stays over OFFLINE, and is drawn anew for other fields. */
	ev_put(p);
	assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_OFFLINE), 0);
	assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_ONLINE), 0);
	a.ev_op.entries = again;
	assert_int_equal(ev_query(b, ID, &a, MRC_CTL_EV_PROFILE_EV_OP), 0);
	assert_memory_equal(e, again, sizeof(e));
	a.ev_fields_op.fields = fields;
	a.ev_fields_op.field_count = 2;
	fields[0].init_val = 0x0200;
	assert_int_equal(ev_modify(b, ID, &a, MRC_CTL_EV_PROFILE_EV_FIELDS_OP), 0);
	assert_int_equal(ev_get(b, ID, &p), 0);
	assert_int_equal(ev_paths(b, p, false, path), PROFILES_EVS_QP);
	assert_int_equal(path[0].ev >> 24, 2);
	ev_put(p);
	/* Its EVs are the library's. */
	e[0].ev_new = an_ev(1, 1);
	e[0].state = MRC_CTL_EV_GOOD;
	assert_int_equal(ev_one(b, ID, MRC_CTL_EV_OP_REPLACE_EV, e), -EINVAL);
}

static void automatic(void **state)
{
	struct profiles *b = *state;
	struct ev_path path[PROFILES_EVS_QP];
	struct mrc_ctl_ev_profile_attr a = {
		.profile_state = MRC_CTL_PROFILE_OFFLINE, .ev_mode = MRC_CTL_EV_MODE_AUTO};
	struct ev_profile *p;
	unsigned of_port[2] = {0};
	int n;

	/* Neither a format nor a number is needed. */
	assert_int_equal(
		ev_modify(b, ID, &a,
			MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE |
				MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK),
		0);
	assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_ONLINE), 0);
	assert_int_equal(ev_get(b, ID, &p), 0);
	assert_int_equal(p->count, PROFILES_EVS_AUTO);
	for (int ip4 = 0; ip4 < 2; ip4++) {
		n = ev_paths(b, p, ip4, path);
		assert_in_range(n, PROFILES_EVS_AUTO - 8, PROFILES_EVS_AUTO);
		for (int i = 0; i < n; i++) {
			of_port[path[i].port]++;
			assert_int_equal(path[i].ev & 0x8000, 0x8000);
			assert_true(!ip4 || path[i].ev < 0x10000);
		}
	}
	assert_in_range(of_port[0] - of_port[1] + 8, 0, 16);
	ev_put(p);
	assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_OFFLINE), 0);
	assert_int_equal(set_ev_state(b, ID, MRC_CTL_PROFILE_INIT), 0);
	/* Of a format: in UDP the first 16 bits; nobody guesses addresses. */
	put_format(b, FMT, MRC_CTL_EV_FMT_MODE_UDP, halves, 1);
	assert_int_equal(online(b, MRC_CTL_EV_MODE_AUTO, 10, NULL, 0), 0);
	assert_int_equal(ev_get(b, ID, &p), 0);
	assert_int_equal(ev_paths(b, p, true, path), 10);
	for (int i = 0; i < 10; i++)
		assert_in_range(path[i].ev, 0x8000, 0xffff);
	ev_put(p);
	put_format(b, FMT + 1, MRC_CTL_EV_FMT_MODE_SRV6, halves, 2);
	a.ev_fmt_profile_id = FMT + 1;
	assert_int_equal(ev_modify(b, ID + 1, &a,
				 MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE |
					 MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_MIN_ACTIVE |
					 MRC_CTL_EV_PROFILE_EVENT_MASK),
		0);
	assert_int_equal(set_ev_state(b, ID + 1, MRC_CTL_PROFILE_ONLINE), -EINVAL);
}

int run_draw_tests(void)
{
	const struct CMUnitTest tests[] = {
		BOOK_TEST(expansion_of_two_fields),
		BOOK_TEST(expansion_to_an_address),
		BOOK_TEST(addresses_one_by_one),
		BOOK_TEST(field_rules),
		BOOK_TEST(generated),
		BOOK_TEST(automatic),
	};

	return cmocka_run_group_tests_name("EVs for connections", tests, NULL, NULL);
}
