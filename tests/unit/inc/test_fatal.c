/* SPDX-License-Identifier: BSD-3-Clause */
/* NAKs that end a group (docs/inc-protocol.md, 1.5 and 8.1): those that name a packet which their
 * endpoint was sent and has not acknowledged. Every test goes over the wrap of PSNs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/inc/fixture.h"

enum { START = 0xfffffe, WORDS = 64, N_CODES = 32, FAR = 1 << 22 };

static const uint8_t codes[] = {ROCE_NAK_INVALID_REQUEST, ROCE_NAK_REMOTE_ACCESS,
	ROCE_NAK_REMOTE_OPERATION, ROCE_NAK_INVALID_RD};
static struct fx fx;

static uint32_t at(int k) /* k-th PSN of the group */
{
	return psn_add(START, k);
}

static void open_fx(enum inc_mode mode, enum inc_kind kind, enum inc_prim prim, bool parent)
{
	const struct fx_opts opts = {.n_hosts = 2,
		.parent = parent,
		.mode = (uint8_t)mode,
		.kind = (uint8_t)kind,
		.prim = (uint8_t)prim,
		.mtu = 256,
		.m = 1,
		.w = 4,
		.start_psn = START};

	fx_open(&fx, &opts);
}

static enum inc_drop nak(unsigned ep, int k, uint8_t code)
{
	return fx_ack(&fx, ep, at(k), ROCE_AETH_NAK | code);
}

static enum inc_drop data(unsigned ep, int k)
{
	return fx_data(&fx, ep, at(k), ROCE_SEND_ONLY, k, WORDS);
}

/* An operation of three packets: the control and the first have gone to both hosts, the second came
 * from one of them. */
static void begin(void)
{
	for (unsigned ep = 0; ep < 2; ep++)
		fx_control(&fx, ep, at(0), 0, 3 * 256);
	for (unsigned ep = 0; ep < 2; ep++)
		data(ep, 1);
	data(0, 2);
}

/* Whatever it names but these two, and whatever its code, nothing comes of it. */
static void assert_only(unsigned ep, int first, int last)
{
	const int others[] = {-FAR, -1000, -2, -1, 0, 1, 2, 3, 4, 5, 1000, FAR};

	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		for (uint8_t code = ROCE_NAK_INVALID_REQUEST; code < N_CODES; code++) {
			if (code <= ROCE_NAK_INVALID_RD && others[i] >= first && others[i] <= last)
				continue;
			assert_int_equal(nak(ep, others[i], code), code <= ROCE_NAK_INVALID_RD
									   ? INC_DROP_ACK_RANGE
									   : INC_DROP_NAK_CODE);
			assert_int_equal(fx.n_out, 0);
			assert_int_equal(fx.g->state, INC_ACTIVE);
		}
}

static void assert_ends(unsigned ep, int k, uint8_t code)
{
	assert_int_equal(nak(ep, k, code), INC_DROP_GROUP_FAILED);
	assert_int_equal(fx.g->state, INC_FAILED);
	assert_int_equal(fx.g->fail_reason, INC_FAIL_FATAL_NAK);
	assert_int_equal(fx.g->fail_ep, ep);
	fx_close(&fx);
}

static void test_allreduce(void **state)
{
	const enum inc_mode modes[] = {INC_MODE_2, INC_MODE_3};

	(void)state;
	for (unsigned m = 0; m < 2; m++)
		for (unsigned i = 0; i < sizeof(codes); i++) {
			open_fx(modes[m], INC_SINGLE, INC_AR, false);
			assert_only(0, 1, 0); /* before the first packet */
			begin();
			assert_only(0, 0, 1);
			fx_ack(&fx, 0, at(0), 0x1f);
			assert_only(0, 1, 1);
			assert_only(1, 0, 1);
			assert_ends(0, 1, codes[i]);
			open_fx(modes[m], INC_SINGLE, INC_AR, false);
			begin();
			assert_ends(1, 0, codes[i]);
		}
}

/* All acknowledged: nothing is outstanding, until there is more. */
static void test_between_operations(void **state)
{
	const enum inc_mode modes[] = {INC_MODE_2, INC_MODE_3};

	(void)state;
	for (unsigned m = 0; m < 2; m++) {
		open_fx(modes[m], INC_SINGLE, INC_AR, false);
		begin();
		data(1, 2);
		data(0, 3);
		data(1, 3);
		fx_ack(&fx, 0, at(3), 0x1f);
		assert_only(0, 1, 0);
		fx_ack(&fx, 1, at(3), 0x1f);
		fx_control(&fx, 0, at(4), 1, 256);
		assert_only(0, 1, 0);
		fx_control(&fx, 1, at(4), 1, 256);
		assert_only(0, 4, 4);
		assert_ends(0, 4, ROCE_NAK_REMOTE_OPERATION);
	}
}

/* A switch that has failed answers the packets of those around it: both ways. */
static void test_between_switches(void **state)
{
	const enum inc_mode modes[] = {INC_MODE_2, INC_MODE_3};

	(void)state;
	for (unsigned m = 0; m < 2; m++) {
		open_fx(modes[m], INC_SINGLE, INC_AR, true);
		begin();
		assert_only(0, 1, 0); /* the sums went up, nothing came down */
		assert_only(2, 0, 1);
		assert_ends(2, 1, ROCE_NAK_REMOTE_OPERATION);
	}
}

/* Only the root gets what is reduced, only the others what is broadcast. */
static void test_roots(void **state)
{
	const enum inc_mode modes[] = {INC_MODE_2, INC_MODE_3};

	(void)state;
	for (unsigned m = 0; m < 2; m++) {
		open_fx(modes[m], INC_MIXED, INC_AR, false);
		for (unsigned ep = 0; ep < 2; ep++)
			fx_control_of(&fx, ep, at(0), 0, 2 * 256, INC_RED, 0);
		data(1, 1);
		assert_only(1, 0, 0);
		assert_only(0, 0, 1);
		fx_ack(&fx, 0, at(1), 0x1f);
		assert_only(0, 1, 0);
		data(1, 2);
		assert_ends(0, 2, ROCE_NAK_REMOTE_ACCESS);

		open_fx(modes[m], INC_MIXED, INC_AR, false);
		for (unsigned ep = 0; ep < 2; ep++)
			fx_control_of(&fx, ep, at(0), 0, 2 * 256, INC_BC, 0);
		data(0, 1);
		assert_only(0, 0, 0);
		assert_only(1, 0, 1);
		assert_ends(1, 1, ROCE_NAK_REMOTE_ACCESS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allreduce),
		cmocka_unit_test(test_between_operations),
		cmocka_unit_test(test_between_switches),
		cmocka_unit_test(test_roots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
