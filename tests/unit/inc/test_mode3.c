/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-III packet by packet: the tables of docs/inc-protocol.md 4.2 to 4.5, the traps of section 11
 * that are Mode-III's, and the trace of section 10. Every test goes over the wrap of PSNs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/inc/fixture.h"

enum { START = 0xfffffe, NO_CREDITS = 0x1f, NAK = 0x60, RNR = 0x20, WORDS = 64, N = 4 };

static struct fx fx;

static uint32_t at(unsigned k) /* k-th PSN of the group */
{
	return psn_add(START, (int32_t)k);
}

/* Pipes of four slots, hosts that may send one packet ahead. With a parent it is endpoint 2 and
 * rank 2 is behind it. */
static void open_fx(enum inc_kind kind, enum inc_prim prim, bool parent)
{
	const struct fx_opts opts = {.n_hosts = 2,
		.parent = parent,
		.mode = INC_MODE_3,
		.kind = kind,
		.prim = prim,
		.mtu = 256,
		.m = 1,
		.w = 1,
		.slots = N,
		.start_psn = START};

	fx_open(&fx, &opts);
}

static void assert_out(unsigned i, unsigned ep, uint8_t opcode, unsigned k)
{
	assert_true(i < fx.n_out);
	assert_int_equal(fx.out[i].ep, ep);
	assert_int_equal(fx.out[i].pkt.opcode, opcode);
	assert_int_equal(fx.out[i].pkt.psn, at(k));
}

static void assert_ack(unsigned i, unsigned ep, uint8_t syndrome, unsigned k, unsigned msn)
{
	assert_out(i, ep, ROCE_ACK, k);
	assert_int_equal(fx.out[i].pkt.syndrome, syndrome);
	assert_int_equal(fx.out[i].pkt.msn, msn);
}

static enum inc_drop ctrl(unsigned ep, unsigned k, unsigned n)
{
	return fx_control(&fx, ep, at(k), fx.op_seq, n * 256);
}

static enum inc_drop data(unsigned ep, unsigned k)
{
	return fx_data(&fx, ep, at(k), ROCE_SEND_ONLY, (int32_t)(1000 * ep + k), WORDS);
}

static enum inc_drop ack(unsigned ep, unsigned k)
{
	return fx_ack(&fx, ep, at(k), NO_CREDITS);
}

static void tick(uint64_t ns)
{
	fx.now += ns;
	fx_tick(&fx);
}

/* An operation of n packets has begun in a star; both hosts have its control, and said so. */
static void begin(unsigned n)
{
	ctrl(0, 0, n);
	assert_ack(0, 0, NO_CREDITS, 0, 1);
	ctrl(1, 0, n);
	assert_int_equal(fx.n_out, 3);
	ack(0, 0);
	ack(1, 0);
	assert_int_equal(fx.n_out, 0);
}

/* Section 10: h0's third packet is lost on the way up. */
static void test_trace(void **state)
{
	(void)state;
	open_fx(INC_SINGLE, INC_AR, false);
	begin(3);
	data(0, 1);
	assert_ack(0, 0, NO_CREDITS, 1, 2);
	data(1, 1);
	assert_ack(0, 1, NO_CREDITS, 1, 2);
	assert_out(1, 0, ROCE_SEND_ONLY, 1);
	assert_out(2, 1, ROCE_SEND_ONLY, 1);
	assert_int_equal(fx_word(&fx.out[1], 3), 1 + 1001 + 2 * 3);
	data(1, 2);
	data(0, 3); /* 2 is lost: kept, one NAK for what is missing (T14 of the paper) */
	assert_int_equal(fx.n_out, 1);
	assert_ack(0, 0, NAK, 2, 2);
	assert_int_equal(data(0, 3), INC_DROP_DUP_WAIT); /* not added again (T21) */
	assert_int_equal(fx.n_out, 0);
	data(1, 3);
	assert_int_equal(fx.n_out, 1); /* complete, but not before the one before it (T16) */
	assert_ack(0, 1, NO_CREDITS, 3, 4);
	data(0, 2);
	assert_int_equal(fx.n_out, 5);
	assert_ack(0, 0, NO_CREDITS, 3, 4);
	assert_out(1, 0, ROCE_SEND_ONLY, 2); /* to each in order, made once for both */
	assert_out(2, 1, ROCE_SEND_ONLY, 2);
	assert_out(3, 0, ROCE_SEND_ONLY, 3);
	assert_out(4, 1, ROCE_SEND_ONLY, 3);
	assert_int_equal(fx_word(&fx.out[3], 0), 3 + 1003);
	data(0, 3); /* what h0 sends again draws an ACK, nothing else */
	assert_int_equal(fx.n_out, 1);
	assert_ack(0, 0, NO_CREDITS, 3, 4);
	ack(0, 3);
	ack(1, 3);
	assert_int_equal(fx.g->psn_start[INC_AGG], at(4));
	assert_int_equal(fx.g->psn_start[INC_BCAST], at(4));
	tick(1000000000);
	assert_int_equal(fx.n_out, 0);
	fx_close(&fx);
}

/* 4.2, row 1: below the pipe's start, too (T12). Row 2: no control. */
static void test_duplicates_and_strangers(void **state)
{
	(void)state;
	open_fx(INC_SINGLE, INC_AR, false);
	assert_int_equal(data(0, 1), INC_DROP_NO_CONTROL);
	assert_ack(0, 0, NAK, 0, 0);
	assert_int_equal(data(0, 2), INC_DROP_NO_CONTROL); /* one NAK per gap (T20) */
	assert_int_equal(fx.n_out, 0);
	begin(2);
	assert_int_equal(data(0, 3), INC_DROP_NO_CONTROL); /* beyond the operation */
	assert_ack(0, 0, NAK, 1, 1);                       /* the former gap was closed */
	data(0, 1);
	data(1, 1);
	ack(0, 1);
	ack(1, 1);
	assert_int_equal(fx.g->psn_start[INC_BCAST], at(2));
	assert_int_equal(data(0, 1), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_ack(0, 0, NO_CREDITS, 1, 2);
	assert_int_equal(ctrl(1, 0, 2), INC_DROP_DONE);
	assert_ack(0, 1, NO_CREDITS, 1, 2);
	assert_int_equal(fx.g->count[INC_C_CONSUMED], 4);
	fx_close(&fx);
}

/* A rank whose own control was lost gets nothing in (check 14, T22), but a NAK. */
static void test_own_control(void **state)
{
	(void)state;
	open_fx(INC_SINGLE, INC_AR, false);
	ctrl(0, 0, 2);
	assert_int_equal(data(1, 1), INC_DROP_NO_CONTROL);
	assert_ack(0, 1, NAK, 0, 0);
	assert_int_equal(inc_slot_at(fx.g, at(1))->arrived, 0);
	fx_close(&fx);
}

/* Rows 6 and 7: RNR NAK and CNP for the next in order, NAK for others. */
static void test_ahead(void **state)
{
	(void)state;
	open_fx(INC_SINGLE, INC_AR, false);
	ctrl(0, 0, 20);
	for (unsigned k = 1; k < N; k++)
		assert_int_equal(data(0, k), INC_DROP_CONSUMED);
	assert_int_equal(data(0, N + 1), INC_DROP_PSN_AHEAD);
	assert_ack(0, 0, NAK, N - 1, N - 1); /* from what was not acknowledged on */
	assert_int_equal(data(0, N), INC_DROP_PSN_AHEAD);
	assert_int_equal(fx.n_out, 2);
	assert_ack(0, 0, RNR | 6, N, N);
	assert_int_equal(fx.out[1].pkt.opcode, ROCE_CNP);
	assert_int_equal(data(0, N), INC_DROP_PSN_AHEAD);
	assert_int_equal(fx.n_out, 1); /* CNPs 50 us apart */
	ctrl(1, 0, 20);                /* the control completes and leaves the first pipe at once */
	assert_int_equal(data(0, N), INC_DROP_CONSUMED);
	assert_int_equal(fx.n_out, 0); /* what it may send then would be ahead again */
	data(1, 1);
	for (unsigned ep = 0; ep < 2; ep++) {
		ack(ep, 1);
		assert_int_equal(fx.n_out, ep);
	}
	assert_ack(0, 0, NO_CREDITS, N, N + 1);
	fx_close(&fx);
}

/* The second pipe is full: sums wait in the first, nothing is overwritten (T15, T13b). */
static void test_back_pressure(void **state)
{
	(void)state;
	open_fx(INC_SINGLE, INC_AR, false);
	begin(20);
	for (unsigned k = 1; k <= 2 * N; k++) {
		data(0, k);
		data(1, k);
		assert_int_equal(fx.n_out, k < N ? 3 : k == N ? 2 : 0); /* the ACK, two results */
	}
	assert_int_equal(fx.g->psn_start[INC_AGG], at(N + 1));
	assert_int_equal(data(0, 2 * N + 1), INC_DROP_PSN_AHEAD);
	ack(0, N);
	assert_int_equal(fx.n_out, 0); /* h1 has nothing yet */
	assert_int_equal(fx.g->psn_start[INC_BCAST], at(1));
	fx_ack(&fx, 1, at(2), NAK); /* it lacks 2: resent, and 1 is released, so 5 follows */
	assert_int_equal(fx.n_out, 6);
	assert_ack(5, 1, NO_CREDITS, N, N + 1); /* there is room for one more */
	assert_out(0, 1, ROCE_SEND_ONLY, 2);
	assert_out(2, 1, ROCE_SEND_ONLY, 4);
	assert_out(3, 0, ROCE_SEND_ONLY, 5);
	assert_out(4, 1, ROCE_SEND_ONLY, 5);
	assert_int_equal(fx_word(&fx.out[0], 0), 2 + 1002);
	ack(1, 5);
	for (unsigned i = 0; i < fx.n_out && fx.out[i].pkt.opcode != ROCE_ACK; i++)
		assert_int_equal(
			fx_word(&fx.out[i], 0), 1000 + 2 * psn_diff(fx.out[i].pkt.psn, START));
	fx_close(&fx);
}

/* 4.3: what is out of range, old, a NAK's meaning (T13), the 20 us after a resend. */
static void test_acks(void **state)
{
	(void)state;
	open_fx(INC_SINGLE, INC_AR, false);
	begin(4);
	for (unsigned k = 1; k < 4; k++) {
		data(0, k);
		data(1, k);
	}
	assert_int_equal(ack(0, 4), INC_DROP_ACK_RANGE);
	assert_int_equal(fx_ack(&fx, 0, at(5), NAK), INC_DROP_ACK_RANGE);
	assert_int_equal(fx_ack(&fx, 0, at(2), NAK), INC_DROP_DONE);
	assert_int_equal(inc_ep_at(fx.g, 0)->tx_una, at(2));
	assert_int_equal(fx.n_out, 2);
	assert_out(0, 0, ROCE_SEND_ONLY, 2);
	assert_out(1, 0, ROCE_SEND_ONLY, 3);
	fx_ack(&fx, 0, at(2), NAK);
	assert_int_equal(fx.n_out, 0);
	fx.now += 30000;
	fx_ack(&fx, 0, at(2), NAK);
	assert_int_equal(fx.n_out, 2);
	assert_int_equal(ack(0, 1), INC_DROP_ACK_OLD);
	assert_int_equal(ack(0, 3), INC_DROP_DONE);
	assert_int_equal(inc_ep_at(fx.g, 0)->timer_ns, 0);
	assert_int_equal(fx.g->psn_start[INC_BCAST], at(1)); /* the other has not */
	fx_close(&fx);
}

/* An RNR NAK: silence for as long as it says, then from there on. */
static void test_rnr(void **state)
{
	(void)state;
	open_fx(INC_SINGLE, INC_AR, false);
	begin(4);
	data(0, 1);
	data(1, 1);
	fx_ack(&fx, 0, at(1), RNR | 6);
	assert_int_equal(fx.n_out, 0);
	data(0, 2);
	data(1, 2);
	assert_int_equal(fx.n_out, 2); /* ACK, and the sum to the other host */
	assert_out(1, 1, ROCE_SEND_ONLY, 2);
	tick(70000);
	assert_int_equal(fx.n_out, 0);
	tick(20000);
	assert_int_equal(fx.n_out, 2);
	assert_out(0, 0, ROCE_SEND_ONLY, 1);
	assert_out(1, 0, ROCE_SEND_ONLY, 2);
	assert_int_equal(inc_ep_at(fx.g, 0)->retries, 0);
	fx_close(&fx);
}

/* 4.5: go back to the oldest, twice as late each time (T19); after the last the group fails. */
static void test_timers(void **state)
{
	uint64_t wait = 1000000, last = fx.now;
	unsigned n = 0;

	(void)state;
	open_fx(INC_SINGLE, INC_AR, false);
	begin(2);
	data(0, 1);
	data(1, 1);
	ack(1, 1);
	last = fx.now;
	assert_true(fx.g->timer_ns > fx.now);
	for (; n < 200 && fx.g->state == INC_ACTIVE; n++) {
		fx.now = fx.g->timer_ns;
		fx_tick(&fx);
		if (fx.n_out == 0)
			continue; /* the deadline of a timer that was put off */
		assert_int_equal(fx.n_out, 1);
		assert_out(0, 0, ROCE_SEND_ONLY, 1);
		assert_in_range(fx.now - last, wait, wait + wait / 8);
		last = fx.now;
		wait = wait < 64000000 ? 2 * wait : wait;
	}
	assert_int_equal(fx.g->state, INC_FAILED);
	assert_int_equal(fx.g->fail_reason, INC_FAIL_RETRY_EXHAUSTED);
	assert_int_equal(fx.g->fail_ep, 0);
	assert_string_equal(inc_fail_name(fx.g->fail_reason), "retry_exhausted");
	assert_true(fx.g->timer_ns == UINT64_MAX);
	assert_int_equal(data(1, 2), INC_DROP_GROUP_FAILED);
	assert_ack(0, 1, 0x63, 2, 0);
	fx_close(&fx);
}

/* A word from the peer starts it all over, but for the back-off: that stays until a round trip has
 * been timed of a packet that was sent once (Karn). */
static void test_timer_restarts(void **state)
{
	(void)state;
	open_fx(INC_SINGLE, INC_AR, false);
	begin(3);
	for (unsigned k = 1; k < 3; k++) {
		data(0, k);
		data(1, k);
	}
	ack(1, 2);
	tick(2000000);
	assert_int_equal(fx.n_out, 2);
	assert_int_equal(inc_ep_at(fx.g, 0)->retries, 1);
	ack(0, 1);
	assert_int_equal(inc_ep_at(fx.g, 0)->retries, 0);
	tick(1900000);
	assert_int_equal(fx.n_out, 0);
	tick(400000);
	assert_int_equal(fx.n_out, 1);
	assert_out(0, 0, ROCE_SEND_ONLY, 2);
	ack(0, 2);
	data(0, 3);
	data(1, 3);
	ack(0, 3);
	assert_int_equal(inc_ep_at(fx.g, 0)->rto_shift, 0);
	fx_close(&fx);
}

/* A host that takes 5 ms to answer is given twice that. */
static void test_measured_timeout(void **state)
{
	(void)state;
	open_fx(INC_SINGLE, INC_AR, false);
	begin(4);
	data(0, 1);
	data(1, 1);
	fx.now += 5000000;
	ack(0, 1);
	ack(1, 1);
	assert_int_equal(inc_ep_at(fx.g, 0)->rtt_ns, 5000000);
	data(0, 2);
	data(1, 2);
	tick(9900000);
	assert_int_equal(fx.n_out, 0);
	tick(1500000);
	assert_int_equal(fx.n_out, 2);
	fx_close(&fx);
}

/* What is held back: a host that asks again waits, as long as the switch is told to say so. */
static void test_held(void **state)
{
	(void)state;
	for (unsigned stall = 0; stall < 2; stall++) {
		open_fx(INC_SINGLE, INC_AR, false);
		fx.g->flags = stall ? INC_F_STALL_RNR : 0;
		ctrl(0, 0, 20);
		for (unsigned k = 1; k < N; k++)
			data(0, k);
		assert_int_equal(fx.n_out, 0);
		assert_int_equal(data(0, 1), INC_DROP_DONE);
		assert_ack(0, 0, NO_CREDITS, N - 2, N - 1); /* as far as it was */
		assert_int_equal(data(0, N - 1), stall ? INC_DROP_DONE : INC_DROP_DUP_WAIT);
		assert_int_equal(fx.n_out, stall);
		if (stall)
			assert_ack(0, 0, RNR | 14, N - 1, N - 1);
		assert_int_equal(fx.g->count[INC_C_STALL_RNR], stall);
		fx_close(&fx);
	}
}

/* Four operations ahead of one that is not over: the fifth's control is not acknowledged before. */
static void test_operations_ahead(void **state)
{
	const struct fx_opts opts = {.n_hosts = 2,
		.mode = INC_MODE_3,
		.prim = INC_BC,
		.mtu = 256,
		.m = 1,
		.w = 1,
		.slots = 64,
		.start_psn = START};

	(void)state;
	fx_open(&fx, &opts);
	for (unsigned k = 0; k < 5; k++) {
		fx_control_of(&fx, 0, at(k), (uint8_t)k, 0, INC_BC, 0);
		assert_int_equal(fx.n_out, k < 4 ? 2 : 1);
	}
	ack(1, 0);
	assert_int_equal(fx.n_out, 1);
	assert_ack(0, 0, NO_CREDITS, 4, 5);
	fx_close(&fx);
}

/* A switch has no more under way to another than half a pipe, so nothing it sends is ahead. */
static void test_credit_of_a_switch(void **state)
{
	(void)state;
	open_fx(INC_SINGLE, INC_AR, true);
	ctrl(0, 0, 3);
	ctrl(1, 0, 3);
	for (unsigned k = 1; k <= 3; k++) {
		data(0, k);
		data(1, k);
		assert_int_equal(fx.n_out > 0 && fx.out[fx.n_out - 1].ep == 2, k < N / 2);
	}
	ack(2, 0);
	assert_out(0, 2, ROCE_SEND_ONLY, 2);
	ack(2, 2);
	assert_out(0, 2, ROCE_SEND_ONLY, 3);
	fx_close(&fx);
}

/* An interior switch: the sum goes up, the result comes down, both acknowledged hop by hop. */
static void test_interior(void **state)
{
	(void)state;
	open_fx(INC_SINGLE, INC_AR, true);
	ctrl(0, 0, 2);
	ctrl(1, 0, 2);
	assert_out(1, 2, ROCE_SEND_ONLY_IMM, 0);
	data(0, 1);
	data(1, 1);
	assert_out(1, 2, ROCE_SEND_ONLY, 1);
	assert_int_equal(fx.g->psn_start[INC_AGG], at(0)); /* sent is not acknowledged */
	data(2, 1); /* overtakes the result of the control: kept, and asked for */
	assert_int_equal(fx.n_out, 1);
	assert_ack(0, 2, NAK, 0, 0);
	ctrl(2, 0, 2);
	assert_int_equal(fx.n_out, 5);
	assert_ack(0, 2, NO_CREDITS, 1, 2);
	assert_out(1, 0, ROCE_SEND_ONLY_IMM, 0);
	assert_out(2, 1, ROCE_SEND_ONLY_IMM, 0);
	assert_out(3, 0, ROCE_SEND_ONLY, 1);
	assert_out(4, 1, ROCE_SEND_ONLY, 1);
	assert_int_equal(fx_word(&fx.out[3], 0), 2001);
	ack(2, 1);
	assert_int_equal(fx.g->psn_start[INC_AGG], at(2));
	ack(0, 1);
	ack(1, 1);
	assert_int_equal(fx.g->psn_start[INC_BCAST], at(2));
	fx_close(&fx);
}

/* A mixed group: PSNs that a flow does not carry are stepped over, both ways (4.1). */
static void test_idle_flows(void **state)
{
	(void)state;
	open_fx(INC_MIXED, INC_AR, false);
	fx_control_of(&fx, 0, at(0), 0, 2 * 256, INC_BC, 0);
	fx_control_of(&fx, 1, at(0), 0, 2 * 256, INC_BC, 0);
	ack(0, 0);
	ack(1, 0);
	assert_int_equal(data(1, 1), INC_DROP_DONE); /* h1 only receives: as a duplicate */
	assert_ack(0, 1, NO_CREDITS, 0, 1);          /* never what it has not sent (T7) */
	data(0, 1);
	assert_int_equal(fx.n_out, 2);
	assert_ack(0, 0, NO_CREDITS, 1, 2);
	assert_out(1, 1, ROCE_SEND_ONLY, 1);
	data(0, 2);
	ack(1, 2);
	assert_int_equal(fx.g->psn_start[INC_BCAST], at(3));
	/* h1's next is the next control, although it has sent nothing since the last. */
	assert_int_equal(fx_control_of(&fx, 1, at(3), 1, 256, INC_RED, 0), INC_DROP_CONSUMED);
	assert_int_equal(fx_control_of(&fx, 0, at(3), 1, 256, INC_RED, 0), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 3);
	data(1, 4);
	assert_int_equal(fx.n_out, 2);
	assert_out(1, 0, ROCE_SEND_ONLY, 4);
	ack(1, 3);
	ack(0, 4);
	assert_int_equal(fx.g->psn_start[INC_AGG], at(5));
	fx_close(&fx);
}

/* Eight operations and more, of which one endpoint only sees the beginnings: descriptors come round
 * (2.2, rule 7), and one that is still needed is not overwritten. */
static void test_descriptors(void **state)
{
	unsigned k = 0;

	(void)state;
	open_fx(INC_SINGLE, INC_BC, false);
	for (unsigned i = 0; i < 40; i++, k += 2) {
		assert_int_equal(
			fx_control_of(&fx, 0, at(k), (uint8_t)i, 256, INC_BC, 0), INC_DROP_DONE);
		assert_int_equal(data(0, k + 1), INC_DROP_DONE);
		assert_out(1, 1, ROCE_SEND_ONLY, k + 1);
		ack(1, k + 1);
	}
	for (unsigned i = 40; i < 48; i++, k++) /* eight without data, half of them in the pipe */
		if (fx_control_of(&fx, 0, at(k), (uint8_t)i, 0, INC_BC, 0) == INC_DROP_PSN_AHEAD)
			break;
	assert_int_equal(k, 84);
	assert_ack(0, 0, RNR | 6, k, 84);
	fx_close(&fx);
}

/* Messages of half a pipe: the switch asks for acknowledgements before their end (T17). */
static void test_asks_often(void **state)
{
	const struct fx_opts opts = {.n_hosts = 2,
		.mode = INC_MODE_3,
		.prim = INC_AR,
		.mtu = 256,
		.m = 8,
		.w = 1,
		.slots = 16,
		.start_psn = START};

	(void)state;
	fx_open(&fx, &opts);
	begin(8);
	for (unsigned k = 1; k < 6; k++) {
		const uint8_t opcode = k == 1 ? ROCE_SEND_FIRST : ROCE_SEND_MIDDLE;

		fx_data(&fx, 0, at(k), opcode, 1, WORDS);
		fx_data(&fx, 1, at(k), opcode, 1, WORDS);
		assert_int_equal(fx.n_out, 2);
		assert_int_equal(fx.out[0].pkt.ackreq, at(k) % 4 == 0);
	}
	fx_close(&fx);
}

/* CE from a host draws a CNP to it; a CNP goes to whoever feeds the pipe. */
static void test_congestion(void **state)
{
	const uint8_t zeros[ROCE_CNP_LEN] = {0};
	const struct wire_hdr cnp = {.opcode = ROCE_CNP, .becn = true};

	(void)state;
	open_fx(INC_SINGLE, INC_AR, true);
	ctrl(0, 0, 1);
	fx.now += 100000;
	assert_int_equal(fx_packet(&fx, 0, &cnp, zeros, sizeof(zeros)), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_int_equal(fx.out[0].ep, 2); /* results for h0 come from the parent */
	assert_int_equal(fx_packet(&fx, 2, &cnp, zeros, sizeof(zeros)), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 2); /* what goes to the parent comes from the hosts */
	assert_int_equal(fx_packet(&fx, 2, &cnp, zeros, sizeof(zeros)), INC_DROP_CNP_RATE);
	fx_close(&fx);
}

#define T(name) cmocka_unit_test(test_##name)

int main(void)
{
	const struct CMUnitTest tests[] = {T(trace), T(duplicates_and_strangers), T(own_control),
		T(ahead), T(back_pressure), T(acks), T(rnr), T(timers), T(timer_restarts),
		T(measured_timeout), T(held), T(operations_ahead), T(credit_of_a_switch),
		T(interior), T(idle_flows), T(descriptors), T(asks_often), T(congestion)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
