/* SPDX-License-Identifier: BSD-3-Clause */
/* MIXED groups in Mode-II of NICs that leave no PSNs out (docs/inc-protocol.md, 3.7): what they are
 * told within an operation, and how they begin anew behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/inc/fixture.h"

enum { ONLY = ROCE_SEND_ONLY, NO_CREDITS = 0x1f };

static struct fx fx;

static uint32_t at(unsigned k) /* k-th PSN of the group, which goes over the wrap */
{
	return psn_add(0xfffffe, (int32_t)k);
}

static void open_group(unsigned m)
{
	const struct fx_opts opts = {.n_hosts = 3,
		.kind = INC_MIXED,
		.mtu = 256,
		.m = (uint16_t)m,
		.w = 4,
		.start_psn = at(0),
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR};

	fx_open(&fx, &opts);
}

static void assert_ack(unsigned i, unsigned ep, unsigned k, unsigned msn)
{
	assert_true(i < fx.n_out);
	assert_int_equal(fx.out[i].ep, ep);
	assert_int_equal(fx.out[i].pkt.opcode, ROCE_ACK);
	assert_int_equal(fx.out[i].pkt.syndrome, NO_CREDITS);
	assert_int_equal(fx.out[i].pkt.psn, at(k));
	assert_int_equal(fx.out[i].pkt.msn, msn);
}

static enum inc_drop ack(unsigned ep, unsigned k, unsigned msn)
{
	const struct wire_hdr hdr = {
		.opcode = ROCE_ACK, .psn = at(k), .syndrome = ROCE_AETH_ACK, .msn = msn};

	return fx_packet(&fx, ep, &hdr, NULL, 0);
}

static enum inc_drop nak(unsigned ep, unsigned k, unsigned msn)
{
	const struct wire_hdr hdr = {
		.opcode = ROCE_ACK, .psn = at(k), .syndrome = ROCE_AETH_NAK, .msn = msn};

	return fx_packet(&fx, ep, &hdr, NULL, 0);
}

static void controls(unsigned k, uint8_t seq, uint64_t bytes, enum inc_prim prim, unsigned msn)
{
	for (unsigned ep = 0; ep < 3; ep++)
		fx_control_of(&fx, ep, at(k), seq, bytes, prim, 1);
	assert_int_equal(fx.n_out, 3);
	for (unsigned ep = 0; ep < 3; ep++) {
		assert_int_equal(ack(ep, k, msn), INC_DROP_DONE);
		assert_int_equal(fx.n_out, 1);
		assert_ack(0, ep, k, msn);
	}
}

/* A broadcast of two messages, the second of which is short: what its receivers are told of their
 * own control with each acknowledgement. Their counts go over the wrap, too. */
static void test_receivers(void **state)
{
	(void)state;
	open_group(2);
	controls(0, 0, 700, INC_BC, 0xffffff);
	fx_data(&fx, 1, at(1), ROCE_SEND_FIRST, 1, 64);
	fx_data(&fx, 1, at(2), ROCE_SEND_LAST, 1, 64);
	fx_data(&fx, 1, at(3), ONLY, 1, 47);
	assert_int_equal(fx.n_out, 2);
	for (unsigned k = 1; k <= 3; k++) {
		assert_int_equal(ack(2, k, (0xfffffe + k) & 0xffffff), INC_DROP_DONE);
		assert_int_equal(fx.n_out, 1);
		assert_ack(0, 2, 0, k == 1 ? 0xfffffe + 1 : 0xffffff);
	}
	ack(0, 3, 1);
	assert_int_equal(fx.n_out, 2);
	assert_ack(0, 0, 0, 0xffffff);
	assert_ack(1, 1, 3, 1); /* everybody has it */
	fx_close(&fx);
}

static unsigned slots_in_use(void)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < 1u << fx.g->log2n; i++)
		n += inc_slot_at(fx.g, i)->arrived != 0;
	return n;
}

static void reduce(void)
{
	controls(0, 0, 512, INC_RED, 1);
	for (unsigned k = 1; k <= 2; k++) {
		fx_data(&fx, 0, at(k), ONLY, 1, 64);
		assert_int_equal(fx_data(&fx, 2, at(k), ONLY, 1, 64), INC_DROP_DONE);
	}
	assert_int_equal(ack(1, 2, 3), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 3);
	assert_ack(0, 1, 0, 1); /* the receiver: its control */
	assert_ack(1, 0, 2, 3);
	assert_ack(2, 2, 2, 3);
}

/* Behind a reduce the root's connection has other PSNs each way than those of the others. */
static void test_resync(void **state)
{
	uint64_t eps;
	uint32_t psn;

	(void)state;
	open_group(1);
	assert_true(inc_group_is_anew(fx.g));
	reduce();
	assert_false(inc_group_busy(fx.g, &psn, &eps));
	assert_false(inc_group_is_anew(fx.g));
	assert_true(slots_in_use() > 0);
	inc_group_rebind(fx.g, fx.g->pay_off); /* which leaves what hosts have counted */
	assert_false(inc_group_is_anew(fx.g));
	inc_group_resync(fx.g);
	assert_true(inc_group_is_anew(fx.g));
	assert_int_equal(slots_in_use(), 0);
	/* What was on its way is known, and not taken for anything new. */
	assert_int_equal(fx_data(&fx, 0, at(2), ONLY, 1, 64), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_ack(0, 0, 2, 0);
	assert_int_equal(ack(1, 2, 3), INC_DROP_ACK_RANGE);
	assert_true(inc_group_is_anew(fx.g));
	fx_close(&fx);
}

/* The root has sent nothing before its next control: it may be held from that on. */
static void test_held(void **state)
{
	(void)state;
	open_group(1);
	reduce();
	inc_group_resync(fx.g);
	fx_control_of(&fx, 1, at(3), 1, 256, INC_BC, 1);
	assert_int_equal(fx_control_of(&fx, 1, at(3), 1, 256, INC_BC, 1), INC_DROP_DUP_WAIT);
	assert_int_equal(fx.n_out, 1);
	assert_int_equal(fx.out[0].pkt.syndrome & ROCE_AETH_CLASS, ROCE_AETH_RNR);
	assert_int_equal(fx.out[0].pkt.psn, at(3));
	fx_close(&fx);
}

/* The sender of a broadcast is held for a receiver whose acknowledgement of the control has not
 * come: the NAK counts what it acknowledges. */
static void test_sender_held(void **state)
{
	(void)state;
	open_group(1);
	for (unsigned ep = 0; ep < 3; ep++)
		fx_control_of(&fx, ep, at(0), 0, 256, INC_BC, 1);
	assert_int_equal(ack(1, 0, 1), INC_DROP_DONE);
	fx_data(&fx, 1, at(1), ONLY, 1, 64);
	fx.now += 1000000000;
	fx_data(&fx, 1, at(1), ONLY, 1, 64);
	assert_int_equal(fx.n_out, 3);
	assert_int_equal(fx.out[2].ep, 1);
	assert_int_equal(fx.out[2].pkt.syndrome & ROCE_AETH_CLASS, ROCE_AETH_RNR);
	assert_int_equal(fx.out[2].pkt.psn, at(1));
	assert_int_equal(fx.out[2].pkt.msn, 1);
	fx_close(&fx);
}

/* Nor does a NAK of the first data say that a message is missing that the sender knows was taken.
 */
static void test_asked_again(void **state)
{
	(void)state;
	open_group(1);
	for (unsigned ep = 0; ep < 3; ep++)
		fx_control_of(&fx, ep, at(0), 0, 512, INC_BC, 1);
	assert_int_equal(ack(1, 0, 1), INC_DROP_DONE);
	fx_data(&fx, 1, at(2), ONLY, 1, 64);
	assert_int_equal(nak(2, 1, 1), INC_DROP_DONE);
	assert_int_equal(fx.out[fx.n_out - 1].ep, 1);
	assert_int_equal(fx.out[fx.n_out - 1].pkt.psn, at(1));
	assert_int_equal(fx.out[fx.n_out - 1].pkt.msn, 1);
	fx_close(&fx);
}

/* Who sends to a reduce is held with the count of what the root has. */
static void test_reduce_held(void **state)
{
	(void)state;
	open_group(1);
	controls(0, 0, 512, INC_RED, 1);
	for (unsigned ep = 0; ep < 3; ep += 2)
		fx_data(&fx, ep, at(1), ONLY, 1, 64);
	assert_int_equal(ack(1, 1, 2), INC_DROP_DONE);
	assert_int_equal(ack(0, 0, 1), INC_DROP_DONE); /* of a control that came twice */
	fx_data(&fx, 0, at(2), ONLY, 1, 64);
	fx.now += 1000000000;
	fx_data(&fx, 0, at(2), ONLY, 1, 64);
	assert_int_equal(fx.n_out, 1);
	assert_int_equal(fx.out[0].pkt.syndrome & ROCE_AETH_CLASS, ROCE_AETH_RNR);
	assert_int_equal(fx.out[0].pkt.psn, at(2));
	assert_int_equal(fx.out[0].pkt.msn, 2);
	fx_close(&fx);
}

/* Counts of messages begin anew, in whatever comes then. */
static void test_goes_on(void **state)
{
	(void)state;
	open_group(1);
	reduce();
	inc_group_resync(fx.g);
	controls(3, 1, 256, INC_BC, 1);
	fx_data(&fx, 1, at(4), ONLY, 1, 64);
	assert_int_equal(fx.n_out, 2);
	ack(0, 4, 2);
	assert_int_equal(fx.n_out, 1);
	assert_ack(0, 0, 3, 1);
	ack(2, 4, 2);
	assert_int_equal(fx.n_out, 2);
	assert_ack(0, 2, 3, 1);
	assert_ack(1, 1, 4, 2);
	fx_close(&fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_receivers),
		cmocka_unit_test(test_resync),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_sender_held),
		cmocka_unit_test(test_asked_again),
		cmocka_unit_test(test_reduce_held),
		cmocka_unit_test(test_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
