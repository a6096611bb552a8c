/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-II AllReduce, packet by packet (docs/inc-protocol.md, sections 2, 3 and 10). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/inc/fixture.h"

static const struct fx_opts star2 = {.n_hosts = 2,
	.mtu = 256,
	.m = 1,
	.w = 4,
	.start_psn = 256,
	.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR};

static void assert_out(const struct fx *fx, unsigned i, unsigned ep, uint8_t opcode, uint32_t psn)
{
	assert_true(i < fx->n_out);
	assert_int_equal(fx->out[i].ep, ep);
	assert_int_equal(fx->out[i].pkt.opcode, opcode);
	assert_int_equal(fx->out[i].pkt.psn, psn);
}

/* Both hosts' control of an operation of n full packets. */
static void begin(struct fx *fx, uint32_t psn, uint8_t seq, unsigned n)
{
	for (unsigned ep = 0; ep + 1 < fx->g->n_ep; ep++)
		assert_int_equal(fx_control(fx, ep, psn, seq, n * 256), INC_DROP_CONSUMED);
	assert_int_equal(fx_control(fx, fx->g->n_ep - 1u, psn, seq, n * 256), INC_DROP_DONE);
	assert_int_equal(fx->n_out, fx->g->n_ep);
	assert_out(fx, 0, 0, ROCE_SEND_ONLY_IMM, psn);
	assert_int_equal(fx->out[0].pkt.imm, fx_imm(seq, REDUCE_SUM, REDUCE_INT32));
	assert_int_equal(fx->out[0].pkt.pay_len, INC_CTRL_LEN);
}

/* Section 10: h0's 258 is lost upward. */
static void test_worked_trace(void **state)
{
	struct fx fx;

	(void)state;
	fx_open(&fx, &star2);
	begin(&fx, 256, 0, 3);
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_ONLY, 100, 64), INC_DROP_CONSUMED);
	assert_int_equal(fx_data(&fx, 1, 257, ROCE_SEND_ONLY, 1000, 64), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 2);
	assert_out(&fx, 1, 1, ROCE_SEND_ONLY, 257);
	assert_int_equal(fx.out[1].pkt.dqpn, FX_HOST_QPN + 1);
	assert_true(fx.out[1].pkt.ackreq);
	for (unsigned k = 0; k < 64; k++)
		assert_int_equal(fx_word(&fx.out[1], k), 1100 + 2 * (int)k);

	assert_int_equal(fx_data(&fx, 1, 258, ROCE_SEND_ONLY, 2, 64), INC_DROP_CONSUMED);
	assert_int_equal(fx_data(&fx, 0, 259, ROCE_SEND_ONLY, 5, 64), INC_DROP_CONSUMED);
	assert_int_equal(fx_data(&fx, 1, 259, ROCE_SEND_ONLY, 6, 64), INC_DROP_DONE);
	assert_int_equal(fx_ack(&fx, 0, 257, ROCE_AETH_ACK | 0x0a), INC_DROP_DONE);
	assert_out(&fx, 0, 0, ROCE_ACK, 257);
	assert_int_equal(fx.out[0].pkt.syndrome, 0x1f);
	assert_int_equal(fx.out[0].pkt.msn, 5);
	assert_int_equal(fx_ack(&fx, 1, 258, ROCE_AETH_NAK), INC_DROP_DONE);
	assert_out(&fx, 0, 1, ROCE_ACK, 258);
	assert_int_equal(fx.out[0].pkt.syndrome, ROCE_AETH_NAK);

	/* The late packet completes 258 and flushes 259 behind it. */
	assert_int_equal(fx_data(&fx, 0, 258, ROCE_SEND_ONLY, 1, 64), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 4);
	assert_out(&fx, 0, 0, ROCE_SEND_ONLY, 258);
	assert_out(&fx, 2, 0, ROCE_SEND_ONLY, 259);
	assert_int_equal(fx_word(&fx.out[3], 1), 13);
	/* Duplicates are answered to the asker alone, with the same result. */
	assert_int_equal(fx_data(&fx, 1, 258, ROCE_SEND_ONLY, 2, 64), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_out(&fx, 0, 1, ROCE_SEND_ONLY, 258);
	assert_int_equal(fx_word(&fx.out[0], 0), 3);
	fx_close(&fx);
}

/* Many laps of the ring and the PSN wrap, in operations of several messages with a short tail. */
static void test_laps_and_wrap(void **state)
{
	struct fx_opts opts = {
		.n_hosts = 3, .mtu = 256, .m = 4, .w = 2, .start_psn = 0xffff00, .ip6 = true};
	struct fx fx;
	uint32_t psn = opts.start_psn;

	(void)state;
	fx_open(&fx, &opts);
	for (unsigned op = 0; op < 300; op++) {
		const uint64_t bytes =
			256 * 9 + 8; /* FIRST MIDDLE MIDDLE LAST, twice, FIRST LAST */
		const uint8_t kinds[4] = {
			ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_MIDDLE, ROCE_SEND_LAST};

		for (unsigned ep = 0; ep < 3; ep++)
			assert_int_equal(fx_control(&fx, ep, psn, (uint8_t)op, bytes),
				ep == 2 ? INC_DROP_DONE : INC_DROP_CONSUMED);
		psn = psn_add(psn, 1);
		for (unsigned k = 0; k < 10; k++, psn = psn_add(psn, 1)) {
			uint8_t opcode = k == 9 ? ROCE_SEND_LAST : kinds[k % 4];
			unsigned words = k == 9 ? 2 : 64;

			for (unsigned ep = 0; ep < 3; ep++)
				assert_int_equal(
					fx_data(&fx, ep, psn, opcode, (int)(op * 1000 + ep), words),
					ep == 2 ? INC_DROP_DONE : INC_DROP_CONSUMED);
			assert_int_equal(fx.n_out, 3);
			assert_out(&fx, 0, 0, opcode, psn);
			assert_int_equal(fx.out[0].pkt.ackreq, opcode == ROCE_SEND_LAST);
			assert_int_equal(fx.out[0].pkt.pay_len, words * 4);
			assert_int_equal(fx_word(&fx.out[2], 1), (int)(op * 3000 + 3 + 3));
		}
	}
	assert_true(psn < opts.start_psn); /* it did wrap */
	assert_int_equal(fx.g->count[INC_C_CONTROLS], 300);
	fx_close(&fx);
}

static void test_stale_is_acknowledged_never_answered_from_the_slot(void **state)
{
	struct fx fx;

	(void)state;
	fx_open(&fx, &star2); /* N = 8 */
	begin(&fx, 256, 0, 20);
	for (uint32_t psn = 257; psn <= 266; psn++) {
		fx_data(&fx, 0, psn, ROCE_SEND_ONLY, 1, 64);
		assert_int_equal(fx_data(&fx, 1, psn, ROCE_SEND_ONLY, 1, 64), INC_DROP_DONE);
	}
	assert_int_equal(fx_data(&fx, 1, 257, ROCE_SEND_ONLY, 1, 64), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_out(&fx, 0, 1, ROCE_ACK, 257);
	assert_int_equal(fx.out[0].pkt.syndrome, 0x1f);
	assert_int_equal(fx_control(&fx, 0, 256, 0, 20 * 256), INC_DROP_DONE);
	assert_out(&fx, 0, 0, ROCE_ACK, 256);
	/* The slot's present owner is unharmed: 265 maps to the slot of 257. */
	assert_int_equal(fx_data(&fx, 0, 265, ROCE_SEND_ONLY, 1, 64), INC_DROP_DONE);
	assert_out(&fx, 0, 0, ROCE_SEND_ONLY, 265);
	assert_int_equal(fx.g->count[INC_C_STALE], 2);
	fx_close(&fx);
}

/* A duplicate is never added twice; only the oldest unacknowledged PSN draws an RNR NAK. */
static void test_duplicate_and_stall(void **state)
{
	struct fx fx;

	(void)state;
	fx_open(&fx, &star2);
	begin(&fx, 256, 0, 3);
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_ONLY, 10, 64), INC_DROP_CONSUMED);
	assert_int_equal(fx_data(&fx, 0, 258, ROCE_SEND_ONLY, 10, 64), INC_DROP_CONSUMED);
	/* 256 is not acknowledged yet: an RNR NAK for 257 would acknowledge it falsely. */
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_ONLY, 10, 64), INC_DROP_DUP_WAIT);
	assert_int_equal(fx.n_out, 0);
	fx_ack(&fx, 0, 256, 0x1f);
	assert_int_equal(fx_data(&fx, 0, 258, ROCE_SEND_ONLY, 10, 64), INC_DROP_DUP_WAIT);
	assert_int_equal(fx.n_out, 0);
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_ONLY, 10, 64), INC_DROP_DUP_WAIT);
	assert_int_equal(fx.n_out, 1);
	assert_out(&fx, 0, 0, ROCE_ACK, 257);
	assert_int_equal(fx.out[0].pkt.syndrome, ROCE_AETH_RNR | 14);
	assert_int_equal(fx_data(&fx, 1, 257, ROCE_SEND_ONLY, 1, 64), INC_DROP_DONE);
	assert_int_equal(fx_word(&fx.out[0], 0), 11);
	fx_close(&fx);
}

/* A receiver that has posted no receive refuses every packet; the sender hears it once, until it
 * has tried again. */
static void test_told_to_wait(void **state)
{
	struct fx fx;

	(void)state;
	fx_open(&fx, &star2);
	begin(&fx, 256, 0, 3);
	assert_int_equal(fx_ack(&fx, 0, 256, ROCE_AETH_RNR | 12), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_int_equal(fx_ack(&fx, 0, 256, ROCE_AETH_RNR | 12), INC_DROP_ACK_TOLD);
	assert_int_equal(fx_ack(&fx, 0, 256, ROCE_AETH_NAK), INC_DROP_ACK_TOLD);
	assert_int_equal(fx.n_out, 0);
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_ONLY, 1, 64), INC_DROP_CONSUMED);
	assert_int_equal(fx_ack(&fx, 0, 256, ROCE_AETH_RNR | 12), INC_DROP_ACK_TOLD);
	assert_int_equal(fx_ack(&fx, 1, 256, ROCE_AETH_RNR | 12), INC_DROP_DONE); /* the other */
	assert_int_equal(fx_control(&fx, 0, 256, 0, 3 * 256), INC_DROP_DONE);     /* tries again */
	assert_int_equal(fx_ack(&fx, 0, 256, ROCE_AETH_RNR | 12), INC_DROP_DONE);
	assert_int_equal(fx_ack(&fx, 0, 256, ROCE_AETH_ACK), INC_DROP_DONE);
	assert_int_equal(inc_ep_at(fx.g, 0)->rnr_told, false); /* it has what it waited for */
	assert_int_equal(inc_ep_at(fx.g, 1)->rnr_told, true);
	assert_int_equal(fx_ack(&fx, 0, 257, ROCE_AETH_NAK), INC_DROP_DONE);
	fx_close(&fx);
}

static void test_data_needs_its_own_control(void **state)
{
	struct fx fx;

	(void)state;
	fx_open(&fx, &star2);
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_ONLY, 1, 64), INC_DROP_NO_CONTROL);
	assert_int_equal(fx_control(&fx, 0, 256, 0, 3 * 256), INC_DROP_CONSUMED);
	assert_int_equal(fx_data(&fx, 1, 257, ROCE_SEND_ONLY, 1, 64), INC_DROP_NO_CONTROL);
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_ONLY, 1, 64), INC_DROP_CONSUMED);
	/* A later operation cannot overtake. */
	assert_int_equal(fx_control(&fx, 0, 261, 2, 3 * 256), INC_DROP_NO_CONTROL);
	fx_close(&fx);
}

static void test_mismatch_fails_the_group(void **state)
{
	struct fx fx;

	(void)state;
	fx_open(&fx, &star2);
	assert_int_equal(fx_control(&fx, 0, 256, 0, 3 * 256), INC_DROP_CONSUMED);
	assert_int_equal(fx_control(&fx, 1, 256, 0, 2 * 256), INC_DROP_CTRL_INVALID);
	assert_int_equal(fx.g->state, INC_FAILED);
	assert_int_equal(fx.g->fail_reason, INC_FAIL_CTRL_MISMATCH);
	assert_int_equal(fx.g->fail_ep, 1);
	/* Senders are told once in 10 ms. */
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_ONLY, 1, 64), INC_DROP_GROUP_FAILED);
	assert_int_equal(fx.n_out, 1);
	assert_int_equal(fx.out[0].pkt.syndrome, 0x63);
	assert_int_equal(fx.out[0].pkt.psn, 257);
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_ONLY, 1, 64), INC_DROP_GROUP_FAILED);
	assert_int_equal(fx.n_out, 0);
	fx.now += 10000000;
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_ONLY, 1, 64), INC_DROP_GROUP_FAILED);
	assert_int_equal(fx.n_out, 1);
	fx_close(&fx);
}

/* Every field of the control message, one wrong at a time; nothing is installed. */
static void test_control_fields(void **state)
{
	static const struct {
		unsigned offset;
		uint8_t value;
	} bad[] = {
		{0, 'X'},
		{4, 4},
		{8, 1} /* not whole elements */,
		{13, 0xff},
		{16, 1} /* WRITE */,
		{16, 4},
		{20, 0},
		{20, 9} /* M beyond the group's */,
		{21, 1},
	};
	const uint32_t good = fx_imm(0, REDUCE_SUM, REDUCE_INT32);
	const uint32_t imms[] = {good ^ 3u << 29, good | 1u << 26, good | 6u << 23,
		good | 12u << 19, good | 1u << 8, good + 1, fx_imm(0, REDUCE_NONE, REDUCE_BYTES)};
	uint8_t payload[INC_CTRL_LEN + 4] = {0};
	struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY_IMM, .psn = 256, .imm = good};
	struct fx fx;

	(void)state;
	fx_open(&fx, &star2);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		fx_ctrl_payload(&fx, 3 * 256, payload);
		payload[bad[i].offset] = bad[i].value;
		assert_int_equal(
			fx_packet(&fx, 0, &hdr, payload, INC_CTRL_LEN), INC_DROP_CTRL_INVALID);
	}
	fx_ctrl_payload(&fx, 3 * 256, payload);
	for (unsigned i = 0; i < sizeof(imms) / sizeof(imms[0]); i++) {
		hdr.imm = imms[i];
		assert_int_equal(
			fx_packet(&fx, 0, &hdr, payload, INC_CTRL_LEN), INC_DROP_CTRL_INVALID);
	}
	hdr.imm = good;
	assert_int_equal(fx_packet(&fx, 0, &hdr, payload, INC_CTRL_LEN + 4), INC_DROP_CTRL_INVALID);
	assert_int_equal(fx_packet(&fx, 0, &hdr, payload, INC_CTRL_LEN - 4), INC_DROP_CTRL_INVALID);
	assert_int_equal(fx.g->count[INC_C_CONTROLS], 0);
	assert_int_equal(fx_packet(&fx, 0, &hdr, payload, INC_CTRL_LEN), INC_DROP_CONSUMED);
	fx_close(&fx);
}

/* Barrier: an operation without data, of any type that is defined. */
static void test_barrier(void **state)
{
	struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY_IMM, .psn = 256};
	uint8_t payload[INC_CTRL_LEN];
	struct fx fx;

	(void)state;
	fx_open(&fx, &star2);
	fx_ctrl_payload(&fx, 0, payload);
	hdr.imm = fx_imm(0, REDUCE_NONE, REDUCE_BYTES);
	assert_int_equal(fx_packet(&fx, 0, &hdr, payload, INC_CTRL_LEN), INC_DROP_CONSUMED);
	assert_int_equal(fx_packet(&fx, 1, &hdr, payload, INC_CTRL_LEN), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 2);
	assert_int_equal(fx_control(&fx, 0, 257, 1, 256), INC_DROP_CONSUMED);
	fx_close(&fx);
}

static void test_position(void **state)
{
	struct fx_opts opts = star2;
	struct fx fx;

	(void)state;
	opts.m = 4;
	fx_open(&fx, &opts);
	begin(&fx, 256, 0, 6); /* FIRST MIDDLE MIDDLE LAST FIRST LAST */
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_ONLY, 1, 64), INC_DROP_OPCODE_POS);
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_MIDDLE, 1, 64), INC_DROP_OPCODE_POS);
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_FIRST, 1, 63), INC_DROP_LENGTH_POS);
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_FIRST, 1, 65), INC_DROP_LENGTH);
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_FIRST, 1, 64), INC_DROP_CONSUMED);
	assert_int_equal(fx_data(&fx, 0, 262, ROCE_SEND_LAST, 1, 64), INC_DROP_CONSUMED);
	assert_int_equal(fx_data(&fx, 0, 263, ROCE_SEND_FIRST, 1, 64), INC_DROP_NO_CONTROL);
	assert_int_equal(fx_control(&fx, 0, 258, 1, 256), INC_DROP_OPCODE_POS);
	fx_close(&fx);
}

/* Nobody but a member touches a group. */
static void test_lookup(void **state)
{
	uint8_t frame[FX_FRAME];
	struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY, .psn = 257};
	struct wire_flow flow;
	struct inc_ep *ep;
	struct fx fx;
	const struct {
		uint32_t qpn;
		enum inc_drop drop;
	} qpns[] = {
		{inc_qpn(FX_SLOT + 1, 0, FX_GEN), INC_DROP_NO_GROUP},
		{inc_qpn(FX_SLOT, 0, FX_GEN + 1), INC_DROP_GENERATION},
		{inc_qpn(FX_SLOT, 2, FX_GEN), INC_DROP_NO_ENDPOINT},
		{inc_qpn(FX_SLOT, 1, FX_GEN), INC_DROP_SOURCE},
	};

	(void)state;
	fx_open(&fx, &star2);
	ep = inc_ep_at(fx.g, 0);
	flow = ep->flow;
	flow.src = ep->flow.dst;
	flow.dst = ep->flow.src;
	for (unsigned i = 0; i < sizeof(qpns) / sizeof(qpns[0]); i++) {
		int len;

		hdr.dqpn = qpns[i].qpn;
		len = wire_build_frame(frame, sizeof(frame), &flow, &hdr, frame, 0);
		assert_int_equal(fx_frame(&fx, frame, (size_t)len), qpns[i].drop);
	}
	hdr = (struct wire_hdr){.opcode = ROCE_READ_REQUEST, .psn = 257};
	assert_int_equal(fx_packet(&fx, 0, &hdr, NULL, 0), INC_DROP_OPCODE);
	hdr.opcode = ROCE_WRITE_ONLY;
	assert_int_equal(fx_packet(&fx, 0, &hdr, frame, 4), INC_DROP_OPCODE);
	fx.g->flags |=
		INC_F_STRICT_PORT; /* the fixture delivers on port 0, endpoint 1 is on port 1 */
	assert_int_equal(fx_ack(&fx, 1, 256, 0x1f), INC_DROP_PORT);
	fx.g->state = INC_INSTALLED;
	assert_int_equal(fx_ack(&fx, 0, 256, 0x1f), INC_DROP_GROUP_STATE);
	fx_close(&fx);
}

static void test_acks(void **state)
{
	struct fx fx;
	struct wire_hdr cnp = {.opcode = ROCE_CNP};
	const uint8_t zeros[ROCE_CNP_LEN] = {0};

	(void)state;
	fx_open(&fx, &star2);
	assert_int_equal(fx_ack(&fx, 0, 256, 0x1f), INC_DROP_ACK_RANGE);
	begin(&fx, 256, 0, 3);
	assert_int_equal(fx_ack(&fx, 0, 260, 0x1f), INC_DROP_ACK_RANGE);
	/* Behind the last that was sent: it would acknowledge what nobody has. */
	assert_int_equal(fx_ack(&fx, 0, 260, ROCE_AETH_NAK), INC_DROP_ACK_RANGE);
	assert_int_equal(fx_ack(&fx, 0, 257, 0x1f), INC_DROP_ACK_RANGE);
	assert_int_equal(fx_ack(&fx, 0, 257, ROCE_AETH_NAK), INC_DROP_DONE);
	assert_int_equal(fx_ack(&fx, 0, 255, 0x1f), INC_DROP_ACK_RANGE);
	assert_int_equal(fx_ack(&fx, 1, 257, ROCE_AETH_RNR | 12), INC_DROP_DONE);
	assert_int_equal(fx.out[0].pkt.syndrome, ROCE_AETH_RNR | 12);
	assert_int_equal(fx_packet(&fx, 0, &cnp, zeros, sizeof(zeros)), INC_DROP_DONE);
	assert_out(&fx, 0, 0, ROCE_CNP, 0);
	assert_int_equal(fx_packet(&fx, 0, &cnp, zeros, sizeof(zeros)), INC_DROP_CNP_RATE);
	fx_close(&fx);
}

/* An interior switch sends sums up and replicates what comes down without storing it. */
static void test_interior(void **state)
{
	struct fx_opts opts = star2;
	uint8_t payload[INC_CTRL_LEN];
	struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY_IMM, .psn = 256};
	struct fx fx;

	(void)state;
	opts.parent = true;
	fx_open(&fx, &opts);
	assert_int_equal(fx_control(&fx, 0, 256, 0, 256), INC_DROP_CONSUMED);
	assert_int_equal(fx_control(&fx, 1, 256, 0, 256), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_out(&fx, 0, 2, ROCE_SEND_ONLY_IMM, 256);
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_ONLY, 1, 64), INC_DROP_CONSUMED);
	assert_int_equal(fx_data(&fx, 1, 257, ROCE_SEND_ONLY, 2, 64), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_out(&fx, 0, 2, ROCE_SEND_ONLY, 257);
	assert_int_equal(fx_word(&fx.out[0], 0), 3);
	/* Data may come down before the control's result did. */
	assert_int_equal(fx_data(&fx, 2, 257, ROCE_SEND_ONLY, 50, 64), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 2);
	assert_int_equal(fx_word(&fx.out[1], 0), 50);
	fx_ctrl_payload(&fx, 256, payload);
	hdr.imm = fx_imm(0, REDUCE_SUM, REDUCE_INT32);
	assert_int_equal(fx_packet(&fx, 2, &hdr, payload, INC_CTRL_LEN), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 2);
	/* A duplicate goes up again, and the host is told to wait once 256 is acknowledged. */
	fx_ack(&fx, 0, 256, 0x1f);
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_ONLY, 1, 64), INC_DROP_DONE);
	assert_out(&fx, 0, 2, ROCE_SEND_ONLY, 257);
	assert_int_equal(fx_word(&fx.out[0], 0), 3);
	assert_out(&fx, 1, 0, ROCE_ACK, 257);
	assert_int_equal(fx.out[1].pkt.syndrome, ROCE_AETH_RNR | 14);
	assert_int_equal(fx_ack(&fx, 2, 257, 0x1f), INC_DROP_ACK_CLASS);
	fx_close(&fx);
}

/* Floats added in endpoint order whatever the order of arrival. */
static void test_reproducible(void **state)
{
	static const float part[3] = {1e8f, 1.0f, -1e8f};
	static const unsigned orders[3][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
	const float want = (part[0] + part[1]) + part[2];
	struct fx_opts opts = star2;
	struct fx fx;

	(void)state;
	opts.n_hosts = 3;
	opts.flags |= INC_F_REPRODUCIBLE;
	fx_open(&fx, &opts);
	for (unsigned op = 0; op < 3; op++) {
		uint8_t payload[INC_CTRL_LEN];
		uint32_t psn = 256 + 2 * op;
		struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY_IMM,
			.psn = psn,
			.imm = fx_imm((uint8_t)op, REDUCE_SUM, REDUCE_FP32)};
		float got;

		fx_ctrl_payload(&fx, 4, payload);
		for (unsigned ep = 0; ep < 3; ep++)
			fx_packet(&fx, ep, &hdr, payload, INC_CTRL_LEN);
		hdr = (struct wire_hdr){.opcode = ROCE_SEND_ONLY, .psn = psn + 1};
		for (unsigned i = 0; i < 3; i++)
			fx_packet(&fx, orders[op][i], &hdr, &part[orders[op][i]], 4);
		assert_int_equal(fx.n_out, 3);
		memcpy(&got, fx.out[2].frame + fx.out[2].pkt.pay_off, 4);
		assert_memory_equal(&got, &want, 4);
	}
	fx_close(&fx);
}

/* 2049 halves' sum is exact in fp32 and rounded once; with a step of rounding it would stay 2048. A
 * whole packet's halves take twice their bytes in the switch: neighbours must not notice. */
static void test_half_precision(void **state)
{
	enum { N = 128, ONE = 0x3c00, K2048 = 0x6800, K2050 = 0x6801 };
	const struct wire_hdr hdr = {.opcode = ROCE_SEND_FIRST, .psn = 257},
			      hdr2 = {.opcode = ROCE_SEND_LAST, .psn = 258};
	struct fx_opts opts = star2;
	uint16_t big[N], one[N];
	struct fx fx;

	(void)state;
	opts.n_hosts = 3;
	opts.m = 2;
	for (unsigned i = 0; i < N; i++) {
		big[i] = i % 2 ? K2048 : ONE;
		one[i] = ONE;
	}
	for (unsigned turn = 0; turn < 3; turn++) {
		uint8_t payload[INC_CTRL_LEN];
		struct wire_hdr ctrl = {.opcode = ROCE_SEND_ONLY_IMM, .ackreq = true, .psn = 256};

		opts.flags = (uint16_t)(star2.flags | (turn == 0          ? 0
							      : turn == 1 ? INC_F_HALF
									  : INC_F_REPRODUCIBLE));
		fx_open(&fx, &opts);
		ctrl.imm = fx_imm(0, REDUCE_SUM, REDUCE_FP16);
		fx_ctrl_payload(&fx, 300, payload);
		for (unsigned ep = 0; ep < 3; ep++)
			assert_int_equal(fx_packet(&fx, ep, &ctrl, payload, sizeof(payload)),
				turn == 0 ? INC_DROP_CTRL_INVALID
				: ep == 2 ? INC_DROP_DONE
					  : INC_DROP_CONSUMED);
		for (unsigned ep = 0; ep < 3 && turn > 0; ep++) {
			fx_packet(&fx, ep, &hdr2, one, 300 - 256);
			fx_packet(&fx, ep, &hdr, ep == 1 ? big : one, sizeof(one));
		}
		for (unsigned i = 0; i < N && turn > 0; i++) {
			uint16_t got;

			memcpy(&got, fx.out[0].frame + fx.out[0].pkt.pay_off + 2 * i, 2);
			assert_int_equal(got, i % 2 ? K2050 : 0x4200 /* 3 */);
		}
		if (turn > 0) { /* the short packet behind it, flushed with it: all threes */
			assert_int_equal(fx.n_out, 6);
			assert_int_equal(fx_packet(&fx, 0, &hdr2, one, 300 - 256), INC_DROP_DONE);
			assert_int_equal(fx_word(&fx.out[0], 10), 0x42004200);
		}
		fx_close(&fx);
	}
}

static void test_draining(void **state)
{
	struct fx fx;

	(void)state;
	fx_open(&fx, &star2);
	begin(&fx, 256, 0, 1);
	fx.g->state = INC_DRAINING;
	assert_int_equal(fx_data(&fx, 0, 257, ROCE_SEND_ONLY, 1, 64), INC_DROP_CONSUMED);
	assert_int_equal(fx_data(&fx, 1, 257, ROCE_SEND_ONLY, 1, 64), INC_DROP_DONE);
	assert_int_equal(fx_control(&fx, 0, 258, 1, 256), INC_DROP_DRAINING);
	fx_close(&fx);
}

static void test_missing(void **state)
{
	struct fx_opts opts = star2;
	uint32_t psn;
	char ranks[16];
	struct fx fx;

	(void)state;
	opts.n_hosts = 4;
	fx_open(&fx, &opts);
	assert_true(inc_group_missing(fx.g, &psn) == 0);
	fx_control(&fx, 1, 256, 0, 256);
	fx_control(&fx, 3, 256, 0, 256);
	fx_data(&fx, 1, 257, ROCE_SEND_ONLY, 1, 64);
	assert_true(inc_group_missing(fx.g, &psn) == 0x5);
	assert_int_equal(psn, 256);
	inc_group_ranks_of(fx.g, 0x5, ranks, sizeof(ranks));
	assert_string_equal(ranks, "0,2");
	fx_close(&fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_worked_trace),
		cmocka_unit_test(test_laps_and_wrap),
		cmocka_unit_test(test_stale_is_acknowledged_never_answered_from_the_slot),
		cmocka_unit_test(test_duplicate_and_stall),
		cmocka_unit_test(test_told_to_wait),
		cmocka_unit_test(test_data_needs_its_own_control),
		cmocka_unit_test(test_mismatch_fails_the_group),
		cmocka_unit_test(test_control_fields),
		cmocka_unit_test(test_barrier),
		cmocka_unit_test(test_position),
		cmocka_unit_test(test_lookup),
		cmocka_unit_test(test_acks),
		cmocka_unit_test(test_interior),
		cmocka_unit_test(test_reproducible),
		cmocka_unit_test(test_half_precision),
		cmocka_unit_test(test_draining),
		cmocka_unit_test(test_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
