/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-I, rule by rule (docs/inc-protocol.md, section 5): what it does for collectives. End to end
 * they are in tests/integration. */
#include "tests/unit/inc/mode1_box.h"

/* Nothing goes on before all have sent; two packets are one message. The numbers wrap. */
static void test_allreduce(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, &star3);
	all_receive(&b, 6, 512);
	for (unsigned i = 0; i < 3; i++) {
		control(&b, i, imm_of(INC_AR, 0, 0), 512 + 100);
		data(&b, i, 100 * (int)i, 128);
		run(&b, 2 * MS);
		assert_int_equal(b.peer[0].n_in, i < 2 ? 0 : 2);
	}
	for (unsigned i = 0; i < 3; i++)
		data(&b, i, 7, 25);
	run(&b, 2 * MS);
	for (unsigned i = 0; i < 3; i++) {
		expect_control(&b, i, 0, imm_of(INC_AR, 0, 0));
		expect(&b, i, 1, 300, 3, 128);
		expect(&b, i, 2, 21, 3, 25);
		assert_int_equal(b.peer[i].n_sent, 3);
	}
	assert_int_equal(b.g->count[INC_C_CONTROLS], 1);
	assert_int_equal(b.g->count[INC_C_COMPLETED], 3);
	assert_int_equal(b.g->next_ctrl, 1);
	close_box(&b);
}

/* A root's data may be there before the others have agreed: they wait, behind the control. */
static void test_mixed_roots(void **state)
{
	const uint32_t bc = imm_of(INC_BC, 1, 0), red = imm_of(INC_RED, 2, 1);
	struct box b;

	(void)state;
	open_box(&b, &star3);
	all_receive(&b, 8, 512);
	control(&b, 1, bc, 512);
	data(&b, 1, 5, 128);
	run(&b, 2 * MS);
	assert_int_equal(b.peer[0].n_in, 0);
	control(&b, 0, bc, 512);
	control(&b, 0, red, 512);
	data(&b, 0, 1000, 128);
	control(&b, 1, red, 512);
	data(&b, 1, 1, 128);
	run(&b, 2 * MS);
	assert_int_equal(b.peer[2].n_in, 0); /* its own control is missing */
	control(&b, 2, bc, 512);
	control(&b, 2, red, 512);
	run(&b, 2 * MS);
	expect_control(&b, 0, 0, bc);
	expect(&b, 0, 1, 5, 1, 128);
	expect_control(&b, 0, 2, red);
	assert_int_equal(b.peer[0].n_in, 3);
	expect_control(&b, 1, 0, bc);
	expect_control(&b, 1, 1, red);
	assert_int_equal(b.peer[1].n_in, 2);
	expect(&b, 2, 1, 5, 1, 128);
	expect(&b, 2, 3, 1001, 2, 128);
	assert_int_equal(b.peer[2].n_in, 4);
	close_box(&b);
}

/* An interior switch: the sum goes up, what comes from the parent goes down. */
static void test_interior(void **state)
{
	static const struct shape inner = {.n = 3, .parent = true, .m = 1, .w = 2, .start = 9};
	const uint32_t imm = imm_of(INC_AR, 0, 0), red = imm_of(INC_RED, 0, 1);
	struct box b;

	(void)state;
	open_box(&b, &inner);
	all_receive(&b, 6, 256);
	for (unsigned i = 0; i < 2; i++) {
		control(&b, i, imm, 256);
		data(&b, i, 10, 64);
	}
	run(&b, 2 * MS);
	expect_control(&b, 2, 0, imm);
	expect(&b, 2, 1, 20, 2, 64);
	assert_int_equal(b.peer[0].n_in, 0);
	control(&b, 2, imm, 256);
	data(&b, 2, 4711, 64);
	run(&b, 2 * MS);
	for (unsigned i = 0; i < 2; i++)
		expect(&b, i, 1, 4711, 1, 64);
	/* Rank 0 is below: the parent's data are added to rank 1's. */
	for (unsigned i = 0; i < 2; i++)
		control(&b, i, red, 256);
	data(&b, 1, 100, 64);
	run(&b, 2 * MS);
	control(&b, 2, red, 256);
	data(&b, 2, 1, 64);
	run(&b, 2 * MS);
	expect(&b, 0, 3, 101, 2, 64);
	assert_int_equal(b.peer[2].n_in, 3);
	close_box(&b);
}

/* Many laps with the smallest window; one rank is slow, the others run into RNR and no further. */
static void window(unsigned m, unsigned w, unsigned laps)
{
	const struct shape s = {.n = 2, .m = (uint16_t)m, .w = (uint16_t)w, .start = 0xfffff0};
	unsigned words = m * MTU / 4, in = 0;
	struct box b;

	open_box(&b, &s);
	all_receive(&b, laps + 1, words * 4);
	for (unsigned i = 0; i < 2; i++)
		control(&b, i, imm_of(INC_AR, 0, 0), laps * words * 4);
	for (unsigned k = 0; k < laps; k++)
		data(&b, 0, (int)k, words);
	run(&b, 20 * MS);
	/* W + 2 receives after the control was given back. */
	assert_int_equal(b.peer[0].n_sent, 1 + w + 2);
	assert_true(rnic_count(mode1_rnic(b.dev), RNIC_C_RNR_TX) > 0);
	for (unsigned k = 0; k < laps; k++) {
		data(&b, 1, 1, words);
		run(&b, 1 * MS);
	}
	run(&b, 50 * MS);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(b.peer[i].n_sent, laps + 1);
		for (unsigned k = 0; k < laps; k++)
			expect(&b, i, 1 + k, (int)k + 1, 2, words);
		in += b.peer[i].n_in;
	}
	assert_int_equal(in, 2 * (laps + 1));
	assert_int_equal(b.g->state, INC_ACTIVE);
	close_box(&b);
}

static void test_windows(void **state)
{
	(void)state;
	window(1, 1, 40);
	window(2, 1, 20);
	window(1, 2, 40);
	window(3, 5, 20);
}

/* A receiver that posts nothing: W results wait for it, and the senders are held. */
static void test_slow_receiver(void **state)
{
	static const struct shape s = {.n = 2, .m = 1, .w = 2, .start = 0};
	struct box b;
	uint32_t psn;

	(void)state;
	open_box(&b, &s);
	post_receives(&b, 0, 13, 256);
	for (unsigned i = 0; i < 2; i++) {
		control(&b, i, imm_of(INC_AR, 0, 0), 12 * 256);
		for (unsigned k = 0; k < 12; k++)
			data(&b, i, (int)k, 64);
	}
	run(&b, 100 * MS);
	assert_int_equal(b.peer[0].n_in, 3);
	assert_true(b.peer[0].n_sent < 13);
	assert_int_equal(inc_group_missing(b.g, &psn), 3); /* all contributed: results are stuck */
	post_receives(&b, 1, 13, 256);
	run(&b, 100 * MS);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(b.peer[i].n_in, 13);
		assert_int_equal(b.peer[i].n_sent, 13);
	}
	close_box(&b);
}

/* Twenty operations of nothing but a control, sent ahead as far as the switch takes them. */
static void test_barriers(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, &star3);
	all_receive(&b, 20, 256);
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < 20; k++)
			control(&b, i, imm_of(INC_AR, 0, k), 0);
		run(&b, 2 * MS);
	}
	run(&b, 50 * MS);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 20; k++)
			expect_control(&b, i, k, imm_of(INC_AR, 0, k));
	close_box(&b);
}

static void test_missing(void **state)
{
	struct box b;
	uint32_t psn;

	(void)state;
	open_box(&b, &star3);
	all_receive(&b, 4, 256);
	assert_int_equal(inc_group_missing(b.g, &psn), 0);
	control(&b, 0, imm_of(INC_AR, 0, 0), 0);
	control(&b, 2, imm_of(INC_AR, 0, 0), 0);
	run(&b, MS);
	assert_int_equal(inc_group_missing(b.g, &psn), 2);
	assert_int_equal(psn, 0xfffffe);
	close_box(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allreduce),
		cmocka_unit_test(test_mixed_roots),
		cmocka_unit_test(test_interior),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_slow_receiver),
		cmocka_unit_test(test_barriers),
		cmocka_unit_test(test_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
