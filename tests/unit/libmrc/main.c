/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/libmrc/libmrc_test.h"

#include <stdlib.h>

#include "lib/wire/bytes.h"

int book_setup(void **state)
{
	struct profiles *b = malloc(sizeof(*b));

	profiles_init(b, 2, 7);
	*state = b;
	return 0;
}

int book_teardown(void **state)
{
	profiles_fini(*state);
	free(*state);
	return 0;
}

void put_format(struct profiles *b, uint64_t id, enum mrc_ctl_ev_fmt_mode mode,
	const struct mrc_ctl_ev_fmt_field *fields, int n)
{
	struct mrc_ctl_ev_fmt_profile_attr a = {
		.profile_state = MRC_CTL_PROFILE_OFFLINE,
		.ev_fmt_mode = mode,
		.ev_fmt_op = {.fmt_fields = (struct mrc_ctl_ev_fmt_field *)fields,
			.fmt_field_count = n},
	};

	assert_int_equal(fmt_modify(b, id, &a,
				 MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_MODE |
					 MRC_CTL_EV_FMT_PROFILE_OP),
		0);
	a.profile_state = MRC_CTL_PROFILE_ONLINE;
	assert_int_equal(fmt_modify(b, id, &a, MRC_CTL_EV_FMT_PROFILE_STATE), 0);
}

void put_explicit(struct profiles *b, uint64_t id, uint64_t fmt, uint32_t count)
{
	struct mrc_ctl_ev_profile_attr a = {
		.profile_state = MRC_CTL_PROFILE_OFFLINE,
		.ev_mode = MRC_CTL_EV_MODE_EXP,
		.ev_fmt_profile_id = fmt,
		.ev_count = count,
	};

	assert_int_equal(
		ev_modify(b, id, &a,
			MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE |
				MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT |
				MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK),
		0);
}

int ev_one(struct profiles *b, uint64_t id, enum mrc_ctl_ev_op op, struct mrc_ctl_ev_op_entry *e)
{
	struct mrc_ctl_ev_profile_attr a = {.ev_op = {.op = op, .entries = e, .entry_count = 1}};

	return ev_modify(b, id, &a, MRC_CTL_EV_PROFILE_EV_OP);
}

struct mrc_ctl_ev an_ev(uint32_t value, uint8_t port)
{
	struct mrc_ctl_ev ev = {.port = port};

	put_be32(ev.val, value);
	return ev;
}

int fill_one(struct profiles *b, uint64_t id, uint32_t value, uint8_t port)
{
	struct mrc_ctl_ev_op_entry e = {.ev = MRC_CTL_EV_UNPOPULATED,
		.ev_new = an_ev(value, port),
		.state = MRC_CTL_EV_GOOD};

	return ev_one(b, id, MRC_CTL_EV_OP_REPLACE_EV, &e);
}

int set_ev_state(struct profiles *b, uint64_t id, enum mrc_ctl_profile_state state)
{
	struct mrc_ctl_ev_profile_attr a = {.profile_state = state};

	return ev_modify(b, id, &a, MRC_CTL_EV_PROFILE_STATE);
}

int main(void)
{
	return run_life_tests() + run_ev_tests() + run_draw_tests() + run_event_tests() != 0;
}
