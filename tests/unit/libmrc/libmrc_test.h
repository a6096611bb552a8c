/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_LIBMRC_TEST_H
#define TESTS_LIBMRC_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/libmrc/profile.h"

int run_life_tests(void);
int run_ev_tests(void);
int run_draw_tests(void);
int run_event_tests(void);

/* Each test has a book of its own; a device of two ports. */
int book_setup(void **state);
int book_teardown(void **state);
#define BOOK_TEST(f) cmocka_unit_test_setup_teardown(f, book_setup, book_teardown)

/* A format that is ONLINE. */
void put_format(struct profiles *b, uint64_t id, enum mrc_ctl_ev_fmt_mode mode,
	const struct mrc_ctl_ev_fmt_field *fields, int n);
/* An explicit profile that is OFFLINE, with min_active 0 and no events. */
void put_explicit(struct profiles *b, uint64_t id, uint64_t fmt, uint32_t count);
/* One operation on one EV. */
int ev_one(struct profiles *b, uint64_t id, enum mrc_ctl_ev_op op, struct mrc_ctl_ev_op_entry *e);
/* Fills the first unpopulated entry. */
int fill_one(struct profiles *b, uint64_t id, uint32_t value, uint8_t port);
int set_ev_state(struct profiles *b, uint64_t id, enum mrc_ctl_profile_state state);

/* 32 bits, the most significant first. */
struct mrc_ctl_ev an_ev(uint32_t value, uint8_t port);

#endif
