/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-I, rule by rule (docs/inc-protocol.md, section 5): what fails a group, ends it, or is
 * refused. */
#include <errno.h>
#include <string.h>

#include "tests/unit/inc/mode1_box.h"

static void test_mismatch(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, &star3);
	all_receive(&b, 4, 512);
	control(&b, 0, imm_of(INC_AR, 0, 0), 512);
	control(&b, 1, imm_of(INC_AR, 0, 0), 256);
	run(&b, 2 * MS);
	assert_failed(&b, INC_FAIL_CTRL_MISMATCH, 1);
	assert_int_equal(b.peer[0].n_in, 0);
	/* Everybody has learnt it from its own queue pair, who waits like who did wrong. */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(b.peer[i].bad, IBV_WC_WR_FLUSH_ERR);
	close_box(&b);
}

enum mistake { NO_CONTROL, CONTROL_INSIDE, SHORT, LONG, SHORT_CONTROL, NEVER_SENDS };

static void mistake(enum mistake what)
{
	const uint32_t imm = what == NEVER_SENDS ? imm_of(INC_BC, 0, 0) : imm_of(INC_AR, 0, 0);
	struct box b;

	open_box(&b, &star3);
	all_receive(&b, 4, 512);
	if (what == SHORT_CONTROL)
		send_bytes(&b, 1, "x", 1, imm);
	else if (what != NO_CONTROL)
		control(&b, 1, imm, 1024);
	for (unsigned i = 0; i < 3 && what != NO_CONTROL && what != SHORT_CONTROL; i += 2)
		control(&b, i, imm, 1024); /* so that the next message comes to the front */
	if (what == CONTROL_INSIDE)
		control(&b, 1, imm_of(INC_AR, 0, 1), 0);
	else
		data(&b, 1, 1, what == SHORT ? 127 : what == LONG ? 129 : 128);
	run(&b, 2 * MS);
	if (what == LONG) { /* more than any message of the group */
		assert_failed(&b, INC_FAIL_MODE1_QP, 1);
		assert_int_equal(b.g->fail_status, IBV_WC_LOC_LEN_ERR);
	} else {
		assert_failed(&b, INC_FAIL_MODE1_SEQUENCE, 1);
	}
	close_box(&b);
}

static void test_sequence(void **state)
{
	(void)state;
	for (enum mistake what = NO_CONTROL; what <= NEVER_SENDS; what++)
		mistake(what);
}

static void test_invalid(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, &star3);
	control(&b, 2, imm_of(INC_AR, 0, 1), 0); /* the first has number 0 */
	run(&b, MS);
	assert_failed(&b, INC_FAIL_CTRL_INVALID, 2);
	close_box(&b);
}

/* A rank that died: its receiver half is missed by the retry count. */
static void test_dead(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, &star3);
	all_receive(&b, 4, 256);
	for (unsigned i = 0; i < 3; i++) {
		control(&b, i, imm_of(INC_AR, 0, 0), 0);
		if (i == 1) {
			run(&b, MS);
			b.peer[0].dead = true;
		}
	}
	run(&b, 3000 * MS);
	assert_failed(&b, INC_FAIL_MODE1_QP, 0);
	assert_int_equal(b.g->fail_status, IBV_WC_RETRY_EXC_ERR);
	assert_string_equal(inc_fail_status_name(b.g->fail_status), "peer does not answer");
	close_box(&b);
}

/* A group that is being destroyed finishes what has begun and begins nothing. */
static void test_draining(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, &star3);
	all_receive(&b, 4, 256);
	control(&b, 0, imm_of(INC_AR, 0, 0), 0);
	run(&b, MS);
	assert_true(inc_group_set_state(b.g, INC_ACTIVE, INC_DRAINING));
	for (unsigned i = 1; i < 3; i++)
		control(&b, i, imm_of(INC_AR, 0, 0), 0);
	for (unsigned i = 0; i < 3; i++)
		control(&b, i, imm_of(INC_AR, 0, 1), 0);
	run(&b, 5 * MS);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(b.peer[i].n_in, 1);
	close_box(&b);
}

/* What the checks refuse by name. */
static void test_refused(void **state)
{
	struct inc_ep_spec ep = {
		.remote_ip = ip_of(10), .local_ip = ip_of(1), .host = true, .n_ranks = 1};
	const struct inc_group_spec good = {.name = "x",
		.mode = INC_MODE_1,
		.kind = INC_MIXED,
		.mtu = MTU,
		.m = 1,
		.w = 1,
		.n_ranks = 1,
		.n_ep = 1,
		.ep = &ep};
	struct inc_group_spec s = good;
	char err[INC_ERR_LEN];

	(void)state;
	assert_int_equal(inc_group_check(&s, err), 0);
	s = good;
	s.w = MODE1_MAX_W + 1;
	assert_int_equal(inc_group_check(&s, err), -EINVAL);
	s = good;
	s.m = 0;
	assert_int_equal(inc_group_check(&s, err), -EINVAL);
	s = good;
	s.slots = 64;
	assert_int_equal(inc_group_check(&s, err), -EOPNOTSUPP);
	s = good;
	s.unbound = true;
	assert_int_equal(inc_group_check(&s, err), -EOPNOTSUPP);
	s = good;
	ep.vlan = 5; /* who has the device sees to it */
	assert_int_equal(inc_group_check(&s, err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mismatch),
		cmocka_unit_test(test_sequence),
		cmocka_unit_test(test_invalid),
		cmocka_unit_test(test_dead),
		cmocka_unit_test(test_draining),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
