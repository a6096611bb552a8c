/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-II Reduce and Broadcast, alone and in mixed groups, packet by packet
 * (docs/inc-protocol.md, sections 3 and 10). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/inc/fixture.h"

enum { FLAGS = INC_F_LATE_FLUSH | INC_F_STALL_RNR, ONLY = ROCE_SEND_ONLY, NO_CREDITS = 0x1f };

/* Three hosts; with a parent they are ranks 0..2 of a leaf switch, rank 3 is elsewhere. */
static struct fx_opts options(enum inc_kind kind, enum inc_prim prim, unsigned root, bool parent)
{
	return (struct fx_opts){.n_hosts = 3,
		.parent = parent,
		.kind = kind,
		.prim = prim,
		.root = (uint16_t)root,
		.mtu = 256,
		.m = 1,
		.w = 4,
		.start_psn = 0xfffffe, /* every test goes over the wrap */
		.flags = FLAGS};
}

static uint32_t at(unsigned k) /* k-th PSN of the group */
{
	return psn_add(0xfffffe, (int32_t)k);
}

static void assert_out(const struct fx *fx, unsigned i, unsigned ep, uint8_t opcode, unsigned k)
{
	assert_true(i < fx->n_out);
	assert_int_equal(fx->out[i].ep, ep);
	assert_int_equal(fx->out[i].pkt.opcode, opcode);
	assert_int_equal(fx->out[i].pkt.psn, at(k));
}

static void assert_ack(const struct fx *fx, unsigned i, unsigned ep, uint8_t syndrome, unsigned k)
{
	assert_out(fx, i, ep, ROCE_ACK, k);
	assert_int_equal(fx->out[i].pkt.syndrome, syndrome);
}

/* ---- reduce ---- */

/* Section 10's trace with one more sender: the root's result is lost, and asked for again. */
static void test_reduce(void **state)
{
	const struct fx_opts opts = options(INC_SINGLE, INC_RED, 1, false);
	struct fx fx;

	(void)state;
	fx_open(&fx, &opts);
	assert_int_equal(fx_control_of(&fx, 0, at(0), 0, 512, INC_RED, 1), INC_DROP_CONSUMED);
	assert_int_equal(fx_control_of(&fx, 2, at(0), 0, 512, INC_RED, 1), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_out(&fx, 0, 1, ROCE_SEND_ONLY_IMM, 0);
	assert_int_equal(fx_data(&fx, 2, at(1), ONLY, 100, 64), INC_DROP_CONSUMED);
	assert_int_equal(fx_data(&fx, 0, at(1), ONLY, 10, 64), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_out(&fx, 0, 1, ONLY, 1);
	assert_int_equal(fx_word(&fx.out[0], 63), 110 + 2 * 63);
	/* What the root says holds for all senders; its credits do not. */
	assert_int_equal(fx_ack(&fx, 1, at(0), ROCE_AETH_ACK | 3), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 2);
	assert_ack(&fx, 0, 0, NO_CREDITS, 0);
	assert_ack(&fx, 1, 2, NO_CREDITS, 0);
	assert_int_equal(fx.out[1].pkt.msn, 5);
	assert_int_equal(fx_ack(&fx, 1, at(1), ROCE_AETH_NAK), INC_DROP_DONE);
	assert_ack(&fx, 0, 0, ROCE_AETH_NAK, 1);
	assert_ack(&fx, 1, 2, ROCE_AETH_NAK, 1);
	/* Duplicates of a complete slot: the sum once more, whoever asks. */
	assert_int_equal(fx_data(&fx, 0, at(1), ONLY, 10, 64), INC_DROP_DONE);
	assert_out(&fx, 0, 1, ONLY, 1);
	assert_int_equal(fx_word(&fx.out[0], 0), 110);
	/* Nobody else acknowledges, and the root sends no data. */
	assert_int_equal(fx_ack(&fx, 0, at(1), ROCE_AETH_ACK), INC_DROP_ACK_CLASS);
	assert_int_equal(fx_data(&fx, 1, at(1), ONLY, 1, 64), INC_DROP_WRONG_ENDPOINT);
	assert_int_equal(fx_control_of(&fx, 1, at(3), 1, 512, INC_RED, 1), INC_DROP_WRONG_ENDPOINT);
	assert_int_equal(fx.g->count[INC_C_CONTROLS], 1);
	fx_close(&fx);
}

/* A stale packet goes to the root as it came: its acknowledgement is the answer (3.3). */
static void test_reduce_stale(void **state)
{
	const struct fx_opts opts = options(INC_SINGLE, INC_RED, 0, false);
	struct fx fx;

	(void)state;
	fx_open(&fx, &opts);
	for (unsigned op = 0; op < 12; op++)
		for (unsigned ep = 1; ep < 3; ep++) {
			fx_control_of(&fx, ep, at(2 * op), (uint8_t)op, 256, INC_RED, 0);
			fx_data(&fx, ep, at(2 * op + 1), ONLY, (int)op, 64);
		}
	for (unsigned k = 15; k <= 21; k += 6) { /* in a known operation, and in a forgotten one */
		const int word = (int)k;

		assert_int_equal(fx_data(&fx, 2, at(k - 14), ONLY, word, 64), INC_DROP_DONE);
		assert_int_equal(fx.n_out, 1);
		assert_out(&fx, 0, 0, ONLY, k - 14);
		assert_int_equal(fx_word(&fx.out[0], 0), word);
	}
	assert_int_equal(fx.g->count[INC_C_STALE], 2);
	assert_int_equal(fx_data(&fx, 0, at(1), ONLY, 1, 64), INC_DROP_WRONG_ENDPOINT);
	fx_close(&fx);
}

/* A leaf switch below the root rank's: children go up; above it: the parent's sum is a
 * contribution, too. */
static void test_reduce_in_a_tree(void **state)
{
	struct fx_opts opts = options(INC_SINGLE, INC_RED, 3, true);
	struct fx fx;

	(void)state;
	fx_open(&fx, &opts);
	for (unsigned ep = 0; ep < 3; ep++)
		fx_control_of(&fx, ep, at(0), 0, 256, INC_RED, 3);
	assert_out(&fx, 0, 3, ROCE_SEND_ONLY_IMM, 0);
	assert_int_equal(fx_control_of(&fx, 3, at(0), 0, 256, INC_RED, 3), INC_DROP_WRONG_ENDPOINT);
	assert_int_equal(fx_ack(&fx, 3, at(0), ROCE_AETH_ACK), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 3);
	fx_close(&fx);

	opts.root = 1;
	fx_open(&fx, &opts);
	for (unsigned ep = 0; ep < 4; ep++)
		if (ep != 1)
			fx_control_of(&fx, ep, at(0), 0, 256, INC_RED, 1);
	assert_out(&fx, 0, 1, ROCE_SEND_ONLY_IMM, 0);
	fx_data(&fx, 3, at(1), ONLY, 1000, 64);
	fx_data(&fx, 0, at(1), ONLY, 1, 64);
	assert_int_equal(fx_data(&fx, 2, at(1), ONLY, 10, 64), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_out(&fx, 0, 1, ONLY, 1);
	assert_int_equal(fx_word(&fx.out[0], 0), 1011);
	assert_int_equal(fx_ack(&fx, 1, at(1), ROCE_AETH_ACK), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 3);
	assert_ack(&fx, 2, 3, NO_CREDITS, 1);
	fx_close(&fx);
}

/* Results that overtook the late one are sent again where the root is a host's (3.4). */
static void test_reduce_late_flush(void **state)
{
	struct fx_opts opts = options(INC_SINGLE, INC_RED, 1, false);
	struct fx fx;

	(void)state;
	for (unsigned interior = 0; interior < 2; interior++) {
		opts.parent = interior != 0;
		opts.root = interior ? 3 : 1;
		fx_open(&fx, &opts);
		for (unsigned ep = 0; ep < 3; ep++)
			if (ep != opts.root)
				fx_control_of(&fx, ep, at(0), 0, 768, INC_RED, opts.root);
		for (unsigned ep = 0; ep < 3; ep++)
			for (unsigned k = ep == 0 ? 2 : 1; k <= 3 && ep != opts.root; k++)
				fx_data(&fx, ep, at(k), ONLY, (int)k, 64);
		assert_int_equal(fx_data(&fx, 0, at(1), ONLY, 1, 64), INC_DROP_DONE);
		assert_int_equal(fx.n_out, interior ? 1 : 3);
		fx_close(&fx);
	}
}

/* ---- broadcast ---- */

/* Section 10's trace: what all receivers have goes up, and is said again when it is asked for. */
static void test_broadcast(void **state)
{
	const struct fx_opts opts = options(INC_SINGLE, INC_BC, 0, false);
	uint32_t psn;
	struct fx fx;

	(void)state;
	fx_open(&fx, &opts);
	assert_int_equal(fx_control_of(&fx, 0, at(0), 0, 512, INC_BC, 0), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 2);
	assert_out(&fx, 0, 1, ROCE_SEND_ONLY_IMM, 0);
	assert_int_equal(fx_data(&fx, 0, at(1), ONLY, 7, 64), INC_DROP_DONE);
	assert_out(&fx, 1, 2, ONLY, 1);
	assert_int_equal(fx_word(&fx.out[1], 1), 8);
	assert_true(inc_group_missing(fx.g, &psn) == 0x6);
	assert_int_equal(fx_ack(&fx, 1, at(1), ROCE_AETH_ACK), INC_DROP_ACK_MERGED);
	assert_int_equal(fx.n_out, 0);
	assert_true(inc_group_missing(fx.g, &psn) == 0x4);
	assert_int_equal(psn, at(0));
	assert_int_equal(fx_ack(&fx, 2, at(0), ROCE_AETH_ACK), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_ack(&fx, 0, 0, NO_CREDITS, 0);
	assert_int_equal(fx_ack(&fx, 2, at(0), ROCE_AETH_ACK), INC_DROP_ACK_MERGED);
	assert_int_equal(fx_data(&fx, 0, at(2), ONLY, 9, 64), INC_DROP_DONE);
	assert_int_equal(fx_ack(&fx, 1, at(2), ROCE_AETH_ACK), INC_DROP_ACK_MERGED);
	assert_int_equal(fx_ack(&fx, 2, at(2), ROCE_AETH_ACK), INC_DROP_DONE);
	assert_ack(&fx, 0, 0, NO_CREDITS, 2);
	assert_true(inc_group_missing(fx.g, &psn) == 0);
	/* The sender did not hear it: only it is answered (T5). */
	assert_int_equal(fx_data(&fx, 0, at(2), ONLY, 9, 64), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_ack(&fx, 0, 0, NO_CREDITS, 2);
	assert_int_equal(fx_data(&fx, 1, at(2), ONLY, 9, 64), INC_DROP_WRONG_ENDPOINT);
	assert_int_equal(fx_ack(&fx, 0, at(2), ROCE_AETH_ACK), INC_DROP_ACK_CLASS);
	fx_close(&fx);
}

/* An acknowledgement that was overtaken takes no MSN back. */
static void test_overtaken_msn(void **state)
{
	const struct fx_opts bc = options(INC_SINGLE, INC_BC, 0, false);
	struct wire_hdr ack = {.opcode = ROCE_ACK, .psn = at(2), .msn = 3};
	struct fx fx;

	(void)state;
	fx_open(&fx, &bc);
	fx_control_of(&fx, 0, at(0), 0, 512, INC_BC, 0);
	fx_data(&fx, 0, at(1), ONLY, 7, 64);
	fx_data(&fx, 0, at(2), ONLY, 9, 64);
	fx_packet(&fx, 1, &ack, NULL, 0);
	fx_packet(&fx, 2, &ack, NULL, 0);
	ack.psn = at(0);
	ack.msn = 1;
	assert_int_equal(fx_packet(&fx, 1, &ack, NULL, 0), INC_DROP_ACK_MERGED);
	fx_data(&fx, 0, at(2), ONLY, 9, 64);
	assert_ack(&fx, 0, 0, NO_CREDITS, 2);
	assert_int_equal(fx.out[0].pkt.msn, 3);
	fx_close(&fx);
}

/* A NAK acknowledges everything before it, for all receivers (T4). */
static void test_broadcast_nak(void **state)
{
	const struct fx_opts opts = options(INC_SINGLE, INC_BC, 2, false);
	struct fx fx;

	(void)state;
	fx_open(&fx, &opts);
	fx_control_of(&fx, 2, at(0), 0, 1024, INC_BC, 2);
	for (unsigned k = 1; k <= 4; k++)
		fx_data(&fx, 2, at(k), ONLY, (int)k, 64);
	assert_int_equal(fx_ack(&fx, 0, at(1), ROCE_AETH_ACK), INC_DROP_ACK_MERGED);
	/* Host 0 lacks 3, host 1 has said nothing: all is to be sent again. */
	assert_int_equal(fx_ack(&fx, 0, at(3), ROCE_AETH_NAK), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_ack(&fx, 0, 2, ROCE_AETH_NAK, 0);
	assert_int_equal(fx_ack(&fx, 0, at(3), ROCE_AETH_NAK), INC_DROP_ACK_MERGED);
	fx.now += 100001;
	assert_int_equal(fx_ack(&fx, 0, at(3), ROCE_AETH_NAK), INC_DROP_DONE);
	assert_int_equal(fx_ack(&fx, 1, at(2), ROCE_AETH_RNR | 9), INC_DROP_DONE);
	assert_ack(&fx, 0, 2, ROCE_AETH_RNR | 9, 2);
	/* NAK of an operation that has not begun: no further than the slowest. */
	assert_int_equal(fx_ack(&fx, 0, at(5), ROCE_AETH_NAK), INC_DROP_ACK_MERGED);
	fx.now += 100001;
	fx_data(&fx, 2, at(2), ONLY, 2, 64); /* it has waited */
	assert_int_equal(fx_ack(&fx, 0, at(5), ROCE_AETH_NAK), INC_DROP_DONE);
	assert_ack(&fx, 0, 2, ROCE_AETH_NAK, 2);
	assert_int_equal(fx_ack(&fx, 0, at(6), ROCE_AETH_NAK), INC_DROP_ACK_RANGE);
	assert_int_equal(fx_ack(&fx, 0, at(5), ROCE_AETH_ACK), INC_DROP_ACK_RANGE);
	fx_close(&fx);
}

/* Later operations' acknowledgements never cover what this one's sender has yet to send (T18). */
static void test_broadcast_clamped(void **state)
{
	const struct fx_opts opts = options(INC_MIXED, INC_AR, 0, false);
	struct fx fx;

	(void)state;
	fx_open(&fx, &opts);
	for (unsigned ep = 0; ep < 3; ep++)
		fx_control_of(&fx, ep, at(0), 0, 256, INC_BC, 0);
	fx_data(&fx, 0, at(1), ONLY, 1, 64);
	for (unsigned ep = 0; ep < 3; ep++)
		fx_control_of(&fx, ep, at(2), 1, 256, INC_AR, 0);
	fx_ack(&fx, 1, at(2), ROCE_AETH_ACK); /* reflected; covers the broadcast */
	assert_out(&fx, 0, 1, ROCE_ACK, 2);
	assert_int_equal(fx_ack(&fx, 2, at(2), ROCE_AETH_ACK), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	/* The sender asks again: it hears of its own broadcast, no more. */
	assert_int_equal(fx_data(&fx, 0, at(1), ONLY, 1, 64), INC_DROP_DONE);
	assert_ack(&fx, 0, 0, NO_CREDITS, 1);
	/* A repeated acknowledgement within the broadcast is clamped alike. */
	assert_int_equal(fx_ack(&fx, 2, at(1), ROCE_AETH_ACK), INC_DROP_DONE);
	assert_ack(&fx, 0, 2, NO_CREDITS, 0); /* of its own control */
	assert_int_equal(fx.n_out, 2);
	assert_ack(&fx, 1, 0, NO_CREDITS, 1);
	fx_close(&fx);
}

/* The sender is behind the parent: a switch, told what the subtree has. */
static void test_broadcast_in_a_tree(void **state)
{
	struct fx_opts opts = options(INC_SINGLE, INC_BC, 3, true);
	struct fx fx;

	(void)state;
	fx_open(&fx, &opts);
	assert_int_equal(fx_control_of(&fx, 3, at(0), 0, 256, INC_BC, 3), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 3);
	assert_int_equal(fx_control_of(&fx, 0, at(0), 0, 256, INC_BC, 3), INC_DROP_WRONG_ENDPOINT);
	for (unsigned ep = 0; ep < 3; ep++)
		assert_int_equal(fx_ack(&fx, ep, at(0), ROCE_AETH_ACK),
			ep == 2 ? INC_DROP_DONE : INC_DROP_ACK_MERGED);
	assert_ack(&fx, 0, 3, NO_CREDITS, 0);
	assert_int_equal(fx_control_of(&fx, 3, at(0), 0, 256, INC_BC, 3), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_ack(&fx, 0, 3, NO_CREDITS, 0);
	fx_close(&fx);

	opts.root = 1; /* a host of this leaf; the rest of the tree acknowledges as one */
	fx_open(&fx, &opts);
	assert_int_equal(fx_control_of(&fx, 1, at(0), 0, 256, INC_BC, 1), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 3);
	assert_out(&fx, 2, 3, ROCE_SEND_ONLY_IMM, 0);
	fx_ack(&fx, 0, at(0), ROCE_AETH_ACK);
	fx_ack(&fx, 2, at(0), ROCE_AETH_ACK);
	assert_int_equal(fx_ack(&fx, 3, at(0), ROCE_AETH_ACK), INC_DROP_DONE);
	assert_ack(&fx, 0, 1, NO_CREDITS, 0);
	fx_close(&fx);
}

/* Only resent data draw an answer, but the longest history must not confuse old and new. */
static void test_broadcast_after_many_operations(void **state)
{
	const struct fx_opts opts = options(INC_MIXED, INC_AR, 0, true);
	uint32_t psn = opts.start_psn;
	unsigned seq = 0;
	struct fx fx;

	(void)state;
	fx_open(&fx, &opts);
	/* Three operations of 2^22 - 1 packets each, of which none is sent. */
	for (; seq < 3; seq++) {
		const uint64_t bytes = (uint64_t)INC_MAX_OP_PACKETS * 256;

		for (unsigned ep = 0; ep < 3; ep++)
			fx_control_of(&fx, ep, psn, (uint8_t)seq, bytes, INC_BC, 1);
		assert_int_equal(fx.n_out, 1); /* upward */
		psn = psn_add(psn, 1 << 22);
	}
	for (unsigned ep = 0; ep < 3; ep++)
		fx_control_of(&fx, ep, psn, (uint8_t)seq, 256, INC_BC, 0);
	assert_int_equal(fx_data(&fx, 0, psn_add(psn, 1), ONLY, 5, 64), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 3);
	for (unsigned ep = 1; ep < 4; ep++)
		fx_ack(&fx, ep, psn_add(psn, 1), ROCE_AETH_ACK);
	assert_int_equal(fx.n_out, 1);
	assert_int_equal(fx.out[0].ep, 0);
	assert_int_equal(fx.out[0].pkt.psn, psn_add(psn, 1));
	fx_close(&fx);
}

/* Broadcasts use no slots, for more than half of the PSN space: then an allreduce does again. */
static void test_slots_unused_for_long(void **state)
{
	const struct fx_opts opts = options(INC_MIXED, INC_AR, 0, false);
	uint32_t psn = opts.start_psn;
	unsigned seq = 0;
	struct fx fx;

	(void)state;
	fx_open(&fx, &opts);
	for (; seq < 3; seq++) {
		const uint64_t bytes = (uint64_t)INC_MAX_OP_PACKETS * 256;

		for (unsigned ep = 0; ep < 3; ep++)
			fx_control_of(&fx, ep, psn, (uint8_t)seq, bytes, INC_BC, 0);
		assert_int_equal(fx.n_out, 3);
		psn = psn_add(psn, 1 << 22);
		for (unsigned ep = 1; ep < 3; ep++) /* all have all of it */
			fx_ack(&fx, ep, psn_add(psn, -1), ROCE_AETH_ACK);
	}
	for (unsigned ep = 0; ep < 3; ep++)
		fx_control_of(&fx, ep, psn, (uint8_t)seq, 256, INC_AR, 0);
	for (unsigned ep = 0; ep < 3; ep++)
		assert_int_equal(fx_data(&fx, ep, psn_add(psn, 1), ONLY, 5, 64),
			ep == 2 ? INC_DROP_DONE : INC_DROP_CONSUMED);
	assert_int_equal(fx.n_out, 3);
	assert_int_equal(fx_word(&fx.out[0], 0), 15);
	fx_close(&fx);
}

/* ---- mixed groups ---- */

/* Every control is an allreduce of all ranks, whatever follows (2.2, rule 4). */
static void test_mixed_sequence(void **state)
{
	const struct fx_opts opts = options(INC_MIXED, INC_AR, 0, false);
	static const struct {
		enum inc_prim prim;
		unsigned root;
	} ops[] = {{INC_AR, 0}, {INC_RED, 2}, {INC_BC, 1}, {INC_RED, 0}, {INC_AR, 0}};
	struct fx fx;

	(void)state;
	fx_open(&fx, &opts);
	for (unsigned i = 0; i < 5; i++) {
		unsigned k = 3 * i;

		for (unsigned ep = 0; ep < 3; ep++)
			fx_control_of(&fx, ep, at(k), (uint8_t)i, 512, ops[i].prim, ops[i].root);
		assert_int_equal(fx.n_out, 3);
		for (unsigned p = 1; p <= 2; p++) {
			int want = 0;

			for (unsigned ep = 0; ep < 3; ep++) {
				bool sends = ops[i].prim == INC_AR ||
					     (ops[i].prim == INC_RED) == (ep != ops[i].root);
				enum inc_drop drop = fx_data(&fx, ep, at(k + p), ONLY, 1 << ep, 64);

				assert_int_equal(drop == INC_DROP_WRONG_ENDPOINT, !sends);
				want += sends ? 1 << ep : 0;
				if (drop == INC_DROP_DONE)
					assert_int_equal(fx_word(&fx.out[0], 0), want);
			}
		}
	}
	assert_int_equal(fx.g->count[INC_C_COMPLETED], 5 + 2 * 4);
	fx_close(&fx);
}

/* T6: a host's acknowledgement within a broadcast may be the only one of its own control. */
static void test_mixed_acks_are_reflected_too(void **state)
{
	const struct fx_opts opts = options(INC_MIXED, INC_AR, 0, true);
	struct fx fx;

	(void)state;
	fx_open(&fx, &opts);
	for (unsigned ep = 0; ep < 3; ep++)
		fx_control_of(&fx, ep, at(0), 0, 256, INC_RED, 1);
	/* Nobody can have received what was not sent. */
	assert_int_equal(fx_ack(&fx, 0, at(0), ROCE_AETH_ACK), INC_DROP_ACK_RANGE);
	fx_data(&fx, 3, at(1), ONLY, 1, 64); /* no control of the parent's came: still a member */
	assert_int_equal(fx_control_of(&fx, 3, at(0), 0, 256, INC_RED, 1), INC_DROP_DONE);
	fx_data(&fx, 0, at(1), ONLY, 1, 64);
	assert_int_equal(fx_data(&fx, 2, at(1), ONLY, 1, 64), INC_DROP_DONE);
	assert_int_equal(fx_ack(&fx, 1, at(1), ROCE_AETH_ACK), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 4);      /* itself, and the three who sent */
	assert_out(&fx, 0, 1, ROCE_ACK, 0); /* of what it sent: the control, without the message */
	assert_int_equal(fx.out[0].pkt.msn, 4);
	assert_out(&fx, 1, 0, ROCE_ACK, 1);
	assert_int_equal(fx.out[1].pkt.msn, 5);
	assert_int_equal(fx_ack(&fx, 0, at(1), ROCE_AETH_ACK), INC_DROP_DONE);
	assert_int_equal(fx.n_out, 1);
	assert_out(&fx, 0, 0, ROCE_ACK, 1); /* whoever sends says what it means */
	assert_int_equal(fx_ack(&fx, 0, at(1), ROCE_AETH_NAK), INC_DROP_ACK_CLASS);
	assert_int_equal(fx_ack(&fx, 3, at(1), ROCE_AETH_ACK), INC_DROP_ACK_CLASS);
	fx_close(&fx);
}

/* 3.6 over ranges in which the host only receives: they are not in the way of its RNR NAK. */
static void test_mixed_stall(void **state)
{
	const struct fx_opts opts = options(INC_MIXED, INC_AR, 0, false);
	struct fx fx;

	(void)state;
	fx_open(&fx, &opts);
	for (unsigned ep = 0; ep < 3; ep++)
		fx_control_of(&fx, ep, at(0), 0, 512, INC_BC, 0);
	for (unsigned ep = 0; ep < 3; ep++)
		fx_ack(&fx, ep, at(0), ROCE_AETH_ACK);
	fx_control_of(&fx, 1, at(3), 1, 256, INC_AR, 0);
	fx_control_of(&fx, 0, at(3), 1, 256, INC_AR, 0);
	assert_int_equal(fx_control_of(&fx, 1, at(3), 1, 256, INC_AR, 0), INC_DROP_DUP_WAIT);
	assert_int_equal(fx.n_out, 1); /* host 1 receives the broadcast: 3 is its oldest */
	assert_ack(&fx, 0, 1, ROCE_AETH_RNR | 14, 3);
	assert_int_equal(fx_control_of(&fx, 0, at(3), 1, 256, INC_AR, 0), INC_DROP_DUP_WAIT);
	assert_int_equal(fx.n_out, 0); /* host 0 sent it: an RNR NAK would acknowledge it */
	fx_close(&fx);
}

static void test_mixed_refuses(void **state)
{
	const struct fx_opts opts = options(INC_MIXED, INC_AR, 0, false);
	uint8_t payload[INC_CTRL_LEN];
	struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY_IMM, .ackreq = true, .psn = at(0)};
	struct fx fx;

	(void)state;
	fx_open(&fx, &opts);
	assert_int_equal(fx_control_of(&fx, 0, at(0), 0, 256, INC_RED, 3), INC_DROP_CTRL_INVALID);
	assert_int_equal(fx_control_of(&fx, 0, at(0), 0, 256, INC_AR, 1), INC_DROP_CTRL_INVALID);
	assert_int_equal(
		fx_control_of(&fx, 0, at(0), 0, 256, (enum inc_prim)3, 0), INC_DROP_CTRL_INVALID);
	/* A broadcast adds nothing. */
	fx_ctrl_payload(&fx, 256, payload);
	hdr.imm = fx_imm(0, REDUCE_SUM, REDUCE_INT32) | INC_BC << 26;
	assert_int_equal(fx_packet(&fx, 0, &hdr, payload, INC_CTRL_LEN), INC_DROP_CTRL_INVALID);
	assert_int_equal(fx_control_of(&fx, 0, at(0), 0, 256, INC_RED, 2), INC_DROP_CONSUMED);
	assert_int_equal(fx_control_of(&fx, 1, at(0), 0, 256, INC_RED, 1), INC_DROP_CTRL_INVALID);
	assert_int_equal(fx.g->state, INC_FAILED); /* they disagree */
	fx_close(&fx);
}

/* Who is sending hears of congestion (3.8). */
static void test_cnp(void **state)
{
	static const uint8_t zeros[ROCE_CNP_LEN];
	const struct wire_hdr cnp = {.opcode = ROCE_CNP, .becn = true};
	static const struct {
		enum inc_prim prim;
		uint64_t to; /* from host 1, root 1 or 0 */
	} cases[] = {{INC_AR, 0x2}, {INC_RED, 0x5}, {INC_BC, 0x1}};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		const unsigned root = cases[i].prim == INC_RED;
		const struct fx_opts opts = options(INC_SINGLE, cases[i].prim, root, false);
		uint64_t to = 0;
		struct fx fx;

		fx_open(&fx, &opts);
		assert_int_equal(fx_packet(&fx, 1, &cnp, zeros, sizeof(zeros)), INC_DROP_DONE);
		for (unsigned k = 0; k < fx.n_out; k++) {
			assert_int_equal(fx.out[k].pkt.opcode, ROCE_CNP);
			to |= 1ULL << fx.out[k].ep;
		}
		assert_true(to == cases[i].to);
		assert_int_equal(fx_packet(&fx, 1, &cnp, zeros, sizeof(zeros)), INC_DROP_CNP_RATE);
		fx_close(&fx);
	}
}

/* Each sender's payload is kept: the sum does not depend on who came first. */
static void reproducible_reduce(unsigned root)
{
	struct fx_opts opts = options(INC_SINGLE, INC_RED, root, true);
	float sum[2];

	opts.flags |= INC_F_REPRODUCIBLE;
	for (unsigned turn = 0; turn < 2; turn++) {
		static const float value[4] = {1e8f, 1e8f, 1.0f, -1e8f};
		const struct wire_hdr hdr = {.opcode = ONLY, .psn = at(1)};
		struct wire_hdr ctrl = {.opcode = ROCE_SEND_ONLY_IMM, .ackreq = true, .psn = at(0)};
		uint8_t payload[INC_CTRL_LEN];
		struct fx fx;

		fx_open(&fx, &opts);
		fx_ctrl_payload(&fx, 4, payload);
		ctrl.imm = fx_imm(0, REDUCE_SUM, REDUCE_FP32) | INC_RED << 26 | root << 8;
		for (unsigned i = 0; i < 4; i++)
			if (i != root)
				fx_packet(&fx, i, &ctrl, payload, sizeof(payload));
		for (unsigned i = 0; i < 4; i++) {
			unsigned ep = turn ? 3 - i : i;

			if (ep != root)
				fx_packet(&fx, ep, &hdr, &value[ep], 4);
		}
		assert_int_equal(fx.n_out, 1);
		memcpy(&sum[turn], fx.out[0].frame + fx.out[0].pkt.pay_off, 4);
		fx_close(&fx);
	}
	assert_memory_equal(&sum[0], &sum[1], 4);
	assert_true(sum[0] == 0); /* (1e8 + 1) - 1e8 in fp32 */
}

static void test_reproducible_reduce(void **state)
{
	(void)state;
	reproducible_reduce(1);
	reproducible_reduce(0); /* the lowest endpoint is the receiver */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reduce),
		cmocka_unit_test(test_reduce_stale),
		cmocka_unit_test(test_reduce_in_a_tree),
		cmocka_unit_test(test_reduce_late_flush),
		cmocka_unit_test(test_broadcast),
		cmocka_unit_test(test_overtaken_msn),
		cmocka_unit_test(test_broadcast_nak),
		cmocka_unit_test(test_broadcast_clamped),
		cmocka_unit_test(test_broadcast_in_a_tree),
		cmocka_unit_test(test_broadcast_after_many_operations),
		cmocka_unit_test(test_slots_unused_for_long),
		cmocka_unit_test(test_mixed_sequence),
		cmocka_unit_test(test_mixed_acks_are_reflected_too),
		cmocka_unit_test(test_mixed_stall),
		cmocka_unit_test(test_mixed_refuses),
		cmocka_unit_test(test_cnp),
		cmocka_unit_test(test_reproducible_reduce),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
