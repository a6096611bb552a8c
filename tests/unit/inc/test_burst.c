/* SPDX-License-Identifier: BSD-3-Clause */
/* What one packet may set off (docs/inc-protocol.md, 1.7): results behind a late one are sent again
 * once, however many come late; what is sent again is spread over turns, so that no member takes
 * the worker from other groups; a slot stays with its owner until that is complete. Counted in
 * packets, a turn being one point of virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/inc/fixture.h"

enum { START = 0xffff00, WORDS = 64, HOSTS = 4, WINDOW = 256, ENOUGH = 10000 };

static const struct fx_opts star = {.n_hosts = HOSTS,
	.mtu = 256,
	.m = 1,
	.w = WINDOW,
	.start_psn = START,
	.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR};

static uint32_t at(unsigned k) /* k-th PSN of the group */
{
	return psn_add(START, (int32_t)k);
}

static void begin(struct fx *fx, unsigned n)
{
	for (unsigned ep = 0; ep < HOSTS; ep++)
		fx_control(fx, ep, at(0), 0, n * 256);
}

static enum inc_drop data(struct fx *fx, unsigned ep, unsigned k)
{
	return fx_data(fx, ep, at(k), ROCE_SEND_ONLY, (int32_t)k, WORDS);
}

/* All but host 0 have sent [1, n]. */
static void others(struct fx *fx, unsigned n)
{
	for (unsigned ep = 1; ep < HOSTS; ep++)
		for (unsigned k = 1; k <= n; k++)
			assert_int_equal(data(fx, ep, k), INC_DROP_CONSUMED);
}

static bool unfinished(const struct fx *fx)
{
	return fx->g->timer_ns <= fx->now + 1;
}

/* Turns until nothing is left to send; how many packets. None sends more than a burst. */
static unsigned finish(struct fx *fx)
{
	unsigned sent = 0;

	for (unsigned turns = 0; unfinished(fx); turns++) {
		assert_true(turns < ENOUGH);
		fx->now++;
		fx_tick(fx);
		assert_true(fx->n_out <= INC_BURST);
		sent += fx->n_out;
	}
	return sent;
}

/* The receiver's side of go-back-N: what is not the next is discarded. */
static uint32_t receive(const struct fx *fx, uint32_t next)
{
	for (unsigned i = 0; i < fx->n_out; i++)
		if (fx->out[i].ep == 0 && fx->out[i].pkt.opcode != ROCE_ACK &&
			fx->out[i].pkt.psn == next)
			next = psn_add(next, 1);
	return next;
}

/* A window in any order: each result leaves twice at most, and nobody needs a third time. */
static void test_flush_is_linear(void **state)
{
	(void)state;
	for (unsigned step = 1; step < WINDOW; step += 2) { /* descending, then all kinds */
		uint32_t next = at(1);
		unsigned sent = 0;
		struct fx fx;

		fx_open(&fx, &star);
		begin(&fx, WINDOW - 1);
		others(&fx, WINDOW - 1);
		for (unsigned i = 1, k = 0; i < WINDOW; i++) {
			do
				k = (k + WINDOW - step) % WINDOW;
			while (k == 0);
			fx.now++;
			assert_int_equal(data(&fx, 0, k), INC_DROP_DONE);
			assert_true(fx.n_out <= HOSTS + INC_BURST + HOSTS);
			sent += fx.n_out;
			next = receive(&fx, next);
			while (unfinished(&fx)) {
				fx.now++;
				fx_tick(&fx);
				assert_true(fx.n_out > 0 && fx.n_out <= INC_BURST);
				sent += fx.n_out;
				next = receive(&fx, next);
			}
		}
		assert_int_equal(next, at(WINDOW));
		assert_true(sent <= 2 * (WINDOW - 1) * HOSTS);
		fx_close(&fx);
	}
}

/* What completes while the flush is under way goes behind it, not ahead. */
static void test_flush_in_order(void **state)
{
	uint32_t next = at(1);
	unsigned sent = 0, k;
	struct fx fx;

	(void)state;
	fx_open(&fx, &star);
	begin(&fx, WINDOW - 1);
	others(&fx, WINDOW - 1);
	for (k = 2; k < 100; k++)
		data(&fx, 0, k);
	fx.now++;
	data(&fx, 0, 1);
	next = receive(&fx, next);
	assert_true(unfinished(&fx));
	assert_int_equal(fx.g->count[INC_C_CUT], 1);
	for (k = 100; k < 140; k++) { /* in the same turn */
		data(&fx, 0, k);
		sent += fx.n_out;
		next = receive(&fx, next);
	}
	assert_true(sent <= 40 * HOSTS);
	while (unfinished(&fx)) {
		fx.now++;
		fx_tick(&fx);
		next = receive(&fx, next);
	}
	assert_int_equal(next, at(140));
	fx_close(&fx);
}

/* Mode-III: a group with a pipe full of packets, of which nobody acknowledges any. */
static void open_full(struct fx *fx)
{
	struct fx_opts opts = star;

	opts.mode = INC_MODE_3;
	fx_open(fx, &opts);
	begin(fx, WINDOW - 1);
	for (unsigned ep = 0; ep < HOSTS; ep++)
		for (unsigned k = 1; k < WINDOW; k++)
			data(fx, ep, k);
	finish(fx);
	fx->now += 100000;
}

/* Any number of NAKs sets off one for each endpoint, and the burst. What another group on the same
 * worker has of that: tests/unit/dataplane/test_storm.c. */
static void test_nak_storm(void **state)
{
	enum { NAKS = 16 };
	unsigned total = 0, most = 0, resent, turn;
	struct fx a;

	(void)state;
	open_full(&a);
	resent = (unsigned)a.g->count[INC_C_RESENT];
	for (turn = 1; turn < 200; turn++) {
		unsigned sent = 0;

		a.now += 25000; /* each NAK counts: half a round trip after the one before */
		for (unsigned i = 0; i < NAKS; i++) {
			fx_ack(&a, 0, at(0), ROCE_AETH_NAK);
			sent += a.n_out;
		}
		fx_tick(&a);
		sent += a.n_out;
		assert_true(sent <= INC_BURST + NAKS * HOSTS);
		total += sent;
		most = sent > most ? sent : most;
	}
	assert_int_equal(a.g->count[INC_C_RESENT] - resent, total);
	/* The budget is what the storm costs, no more and no less: it has always something to send.
	 */
	assert_int_equal(most, INC_BURST + NAKS * HOSTS);
	printf("NAK storm: %u NAKs in each of %u turns draw %u packets a turn at most (budget %u: "
	       "%u, and %u for each NAK)\n",
		NAKS, turn - 1, most, INC_BURST + NAKS * HOSTS, INC_BURST, HOSTS);
	assert_true(a.g->count[INC_C_CUT] >= 199);
	/* It is heard all the same, and so are the other members. */
	for (unsigned ep = 1; ep < HOSTS; ep++)
		fx_ack(&a, ep, at(WINDOW - 1), 0x1f);
	finish(&a);
	assert_int_equal(fx_ack(&a, 0, at(WINDOW - 1), 0x1f), INC_DROP_DONE);
	assert_int_equal(a.g->psn_start[INC_BCAST], at(WINDOW));
	fx_close(&a);
}

/* Endpoints that have all lost everything take turns. */
static void test_fair_among_endpoints(void **state)
{
	unsigned got[HOSTS] = {0};
	struct fx fx;

	(void)state;
	open_full(&fx);
	for (unsigned ep = 0; ep < HOSTS; ep++)
		fx_ack(&fx, ep, at(0), ROCE_AETH_NAK);
	for (unsigned turn = 0; turn < 2 * HOSTS; turn++) {
		fx.now++;
		fx_tick(&fx);
		assert_int_equal(fx.n_out, INC_BURST);
		for (unsigned i = 0; i < fx.n_out; i++)
			got[fx.out[i].ep]++;
	}
	for (unsigned ep = 0; ep < HOSTS; ep++)
		assert_int_equal(got[ep], 2 * INC_BURST);
	finish(&fx);
	for (unsigned ep = 0; ep < HOSTS; ep++)
		assert_int_equal(inc_ep_at(fx.g, ep)->tx_next, at(WINDOW));
	fx_close(&fx);
}

/* One ring ahead of what is not complete: whoever takes the slot would have others told that all is
 * well with the PSN that it belonged to. */
static void test_one_ring_ahead(void **state)
{
	const unsigned n = 2 * WINDOW;
	struct fx fx;

	(void)state;
	fx_open(&fx, &star);
	begin(&fx, 3 * n);
	assert_int_equal(data(&fx, 0, 1 + n), INC_DROP_PSN_AHEAD); /* nobody has sent 1 */
	assert_int_equal(data(&fx, 0, n), INC_DROP_CONSUMED);
	assert_int_equal(data(&fx, 0, 1), INC_DROP_CONSUMED);
	assert_int_equal(data(&fx, 0, 1 + n), INC_DROP_PSN_AHEAD);
	assert_int_equal(fx.g->count[INC_C_AHEAD], 2);
	for (unsigned ep = 1; ep < HOSTS; ep++) {
		assert_int_equal(
			data(&fx, ep, 1), ep == HOSTS - 1 ? INC_DROP_DONE : INC_DROP_CONSUMED);
		assert_true(ep == HOSTS - 1 || fx.n_out == 0); /* acknowledged to nobody */
	}
	assert_int_equal(fx_word(&fx.out[0], 0), HOSTS);
	assert_int_equal(data(&fx, 0, 1 + n), INC_DROP_CONSUMED);
	assert_int_equal(data(&fx, 0, 2 + n), INC_DROP_PSN_AHEAD);
	fx_close(&fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flush_is_linear),
		cmocka_unit_test(test_flush_in_order),
		cmocka_unit_test(test_nak_storm),
		cmocka_unit_test(test_fair_among_endpoints),
		cmocka_unit_test(test_one_ring_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
