/* SPDX-License-Identifier: BSD-3-Clause */
/* The last packets, behind which nothing is sent: they go again on their age, and what became of
 * their first transmissions is found out afterwards. */
#include <errno.h>

#include "lib/mrc/req.h"
#include "tests/unit/mrc/snd_test.h"

enum { TAIL = 1000, LATE = 4000, GUARD = 700, FEW = 3 };

/* Packets 0 .. n - 1 on EVs of the same numbers, sent at 0 .. n - 1, and nothing to follow. Those
 * of the mask ask for a SACK. */
static struct mrc_snd tail_that_asks(unsigned n, unsigned few, uint64_t mask)
{
	static const uint8_t ev[] = {0, 1, 2, 3, 4};
	struct mrc_snd_config config = plain;
	struct mrc_snd s;

	config.timeout = 6;
	config.tail_ns = TAIL;
	config.late_ns = LATE;
	config.guard_ns = GUARD;
	config.tail_again = (uint8_t)few;
	s = window(&config);
	send_on(&s, ev, n);
	for (unsigned i = 0; i < n; i++)
		mrc_snd_asked(&s, psn(i), mask >> i & 1);
	s.dry = true;
	return s;
}

static struct mrc_snd tail_of(unsigned n, unsigned few)
{
	return tail_that_asks(n, few, ~UINT64_C(0));
}

/* What is due then; whether a probe is. */
static bool at(struct mrc_snd *s, uint64_t now, struct mrc_news *news)
{
	bool probe;

	mrc_snd_timer(s, now, &probe, news);
	return probe;
}

static void goes_again(void **state)
{
	static const unsigned after[] = {1, 2, 4, 4, 4, 4, 4, 4};
	struct mrc_snd s = tail_of(1, FEW);
	struct mrc_news news;
	uint64_t now = 0;
	bool probe;

	(void)state;
	for (unsigned i = 0; i < MRC_DFLT_tail_probes; i++) {
		now += after[i] * TAIL;
		assert_int_equal(mrc_snd_deadline(&s), now);
		mrc_snd_timer(&s, now - 1, &probe, &news);
		assert_int_equal(lost(&s), 0);
		assert_false(at(&s, now, &news));
		assert_int_equal(lost(&s), 1);
		assert_int_equal(news.lost, 0);
		assert_int_equal(s.flight_bytes, 0);
		mrc_snd_again(&s, 5 + i, now);
		told(&s, sack_of(0, 0, 0), 7, 1000); /* word of others does not put it off */
	}
	assert_int_equal(mrc_snd_deadline(&s), now + (1024 << 6));
	test_free(s.sent);
}

/* Of many a probe asks, as it does where there is no such limit; what has more behind it waits for
 * that. */
static void many(void **state)
{
	struct mrc_snd s = tail_of(FEW + 1, FEW);
	struct mrc_news news;

	(void)state;
	assert_true(at(&s, TAIL, &news));
	assert_int_equal(lost(&s), 0);
	told(&s, sack_of(1, 0, 0), 0, 1000); /* now they are few */
	assert_int_equal(mrc_snd_deadline(&s), TAIL + 1);
	assert_false(at(&s, TAIL + 2, &news));
	assert_int_equal(lost(&s), 1 << 1 | 1 << 2);
	test_free(s.sent);
	s = tail_of(1, 0);
	assert_true(at(&s, TAIL, &news));
	assert_int_equal(lost(&s), 0);
	test_free(s.sent);
	s = tail_of(1, FEW);
	s.dry = false;
	assert_false(at(&s, TAIL, &news));
	assert_int_equal(lost(&s), 0);
	test_free(s.sent);
}

/* Sent on EV 0, again on EV 5. */
static struct mrc_snd repeated(void)
{
	struct mrc_snd s = tail_of(1, FEW);
	struct mrc_news news;

	at(&s, TAIL, &news);
	mrc_snd_again(&s, 5, TAIL);
	return s;
}

/* All has come, says a word that names a transmission. */
static struct mrc_news heard(struct mrc_snd *s, int ev, bool rtx, uint64_t now)
{
	struct mrc_sack sack = sack_of(1, 0, 0);
	struct mrc_news news;

	sack.rtx = rtx;
	assert_int_equal(mrc_snd_sack(s, &sack, ev, 0, 1000, now, &news), 0);
	return news;
}

/* The repetition has come, and the first is not heard of: its path has lost it. */
static void silent_is_guilty(void **state)
{
	struct mrc_snd s = repeated();
	struct mrc_news news = heard(&s, 5, true, 2 * TAIL);

	(void)state;
	assert_int_equal(news.arrived, 1);
	assert_int_equal(news.lost, 0);
	assert_int_equal(mrc_snd_deadline(&s), LATE);
	at(&s, LATE - 1, &news);
	assert_int_equal(news.lost, 0);
	at(&s, LATE, &news);
	assert_int_equal(news.lost, 1);
	assert_int_equal(news.lost_bytes, 100);
	assert_int_equal(news.bad_ev[0], 1 << 0);
	at(&s, 2 * LATE, &news);
	assert_int_equal(news.lost, 0);
	test_free(s.sent);
}

/* What has followed it on its path tells earlier. */
static void overtaken_is_guilty(void **state)
{
	struct mrc_snd s = repeated();
	struct mrc_news news;

	(void)state;
	heard(&s, 5, true, 2 * TAIL);
	mrc_snd_new(&s, 1, 100, 1, TAIL);
	mrc_snd_new(&s, 0, 100, 2, TAIL);
	news = told(&s, sack_of(1, 1 << 1, 1), 1, 1000);
	assert_int_equal(news.lost, 0);
	news = told(&s, sack_of(1, 1 << 2, 2), 0, 1000);
	assert_int_equal(news.lost, 1);
	assert_int_equal(news.bad_ev[0], 1 << 0);
	test_free(s.sent);
}

enum { RTT = 800 };

/* It was slow: the peer names it, before or after the repetition; or tells of it before the
 * repetition can have come. */
static void slow_is_innocent(void **state)
{
	struct mrc_news news;

	(void)state;
	for (unsigned way = 0; way < 4; way++) {
		struct mrc_snd s = repeated();

		mrc_snd_rtt(&s, RTT);
		if (way == 0)
			heard(&s, 5, true, TAIL + RTT);
		if (way < 2)
			heard(&s, 0, false, TAIL + RTT);
		else if (way == 2)
			heard(&s, MRC_NO_EV, false, TAIL + RTT - 1);
		else
			assert_int_equal(mrc_snd_ack(&s, psn(0), TAIL + RTT - 1, &news), 0);
		heard(&s, 5, true, TAIL + RTT);
		at(&s, LATE, &news);
		assert_int_equal(news.lost, 0);
		test_free(s.sent);
	}
}

/* A word that names none, but is what the repetition would have made. */
static void told_in_time_is_guilty(void **state)
{
	struct mrc_snd s = repeated();
	struct mrc_news news;

	(void)state;
	mrc_snd_rtt(&s, RTT);
	assert_int_equal(mrc_snd_ack(&s, psn(0), TAIL + RTT, &news), 0);
	at(&s, LATE, &news);
	assert_int_equal(news.lost, 1);
	assert_int_equal(news.bad_ev[0], 1 << 0);
	test_free(s.sent);
}

/* From one that was in a hurry in vain it is learnt how long it takes. */
static void patience_is_learnt(void **state)
{
	struct mrc_snd s = repeated();

	(void)state;
	mrc_snd_rtt(&s, RTT);
	heard(&s, 0, false, TAIL + RTT);
	assert_int_equal(s.rtt.ns, (7 * RTT + TAIL + RTT) / 8);
	test_free(s.sent);
}

/* It comes when it is to go again and has not: it does not. */
static void just_in_time(void **state)
{
	struct mrc_snd s = tail_of(1, FEW);
	struct mrc_news news;
	uint32_t which;

	(void)state;
	at(&s, TAIL, &news);
	news = heard(&s, 0, false, TAIL);
	assert_int_equal(news.arrived, 1);
	assert_null(mrc_snd_lost(&s, &which));
	at(&s, LATE, &news);
	assert_int_equal(news.lost, 0);
	test_free(s.sent);
}

/* A switch had cut it: nothing is wrong with its path, and it has gone again already. Of no
 * transmission that is in doubt such a word cannot be. */
static void trimmed_is_innocent(void **state)
{
	struct mrc_nack nack = {.psn = psn(0), .reason = MRC_NACK_TRIMMED};
	struct mrc_snd s = repeated();
	struct mrc_news news;

	(void)state;
	assert_int_equal(mrc_snd_nack(&s, &nack, 1, TAIL, &news), -EINVAL);
	assert_int_equal(mrc_snd_nack(&s, &nack, 0, TAIL, &news), 0);
	assert_int_equal(lost(&s), 0);
	assert_int_equal(mrc_snd_nack(&s, &nack, 0, TAIL, &news), -EINVAL);
	heard(&s, 5, true, 2 * TAIL);
	at(&s, LATE, &news);
	assert_int_equal(news.lost, 0);
	assert_int_equal(mrc_snd_ack(&s, psn(0), 50, &news), 0);
	test_free(s.sent);
	/* Even if all is done meanwhile. */
	s = repeated();
	heard(&s, 5, true, 2 * TAIL);
	assert_int_equal(mrc_snd_ack(&s, psn(0), 50, &news), 0);
	assert_int_equal(mrc_snd_nack(&s, &nack, 0, TAIL, &news), 0);
	test_free(s.sent);
}

/* Twice lost: both paths are to blame. */
static void twice(void **state)
{
	struct mrc_snd s = repeated();
	struct mrc_news news;

	(void)state;
	at(&s, 3 * TAIL, &news);
	assert_int_equal(lost(&s), 1);
	mrc_snd_again(&s, 6, 3 * TAIL);
	heard(&s, 6, true, 3 * TAIL + 500);
	at(&s, LATE + 3 * TAIL, &news);
	assert_int_equal(news.lost, 2);
	assert_int_equal(news.bad_ev[0], 1 << 0 | 1 << 5);
	test_free(s.sent);
}

/* As long as a round trip takes, once it is known how long: with as much again as it varies, an
 * eighth at least. */
static void measured(void **state)
{
	struct mrc_snd_config config = plain;
	struct mrc_news news;
	struct mrc_snd s;
	uint64_t wait;

	(void)state;
	config.timeout = 16;
	config.tail_ns = 2 * TAIL;
	config.tail_rtts = 2;
	config.late_ns = 10 * LATE;
	config.tail_again = FEW;
	s = window(&config);
	mrc_snd_new(&s, 0, 100, 0, 0);
	s.dry = true;
	assert_int_equal(mrc_snd_deadline(&s), 2 * TAIL);
	for (unsigned i = 0; i < 100; i++)
		mrc_snd_rtt(&s, 800);
	assert_int_equal(mrc_snd_deadline(&s), 2 * 900);
	for (unsigned i = 0; i < 400; i++)
		mrc_snd_rtt(&s, i % 2 ? 3000 : 1000);
	assert_in_range(mrc_snd_deadline(&s), 2 * (1800 + 4 * 900), 2 * (2200 + 4 * 1100));
	/* Longer than late_ns: then once, each time. */
	mrc_snd_rtt(&s, 1000000);
	wait = 2 * mrc_rtt_most(&s.rtt);
	assert_true(wait > 10 * LATE);
	assert_int_equal(mrc_snd_deadline(&s), wait);
	at(&s, wait, &news);
	mrc_snd_again(&s, 1, wait);
	assert_int_equal(mrc_snd_deadline(&s), 2 * wait);
	test_free(s.sent);
}

/* More in doubt than is remembered: the oldest are let go. */
static void crowd(void **state)
{
	struct mrc_snd s = tail_of(1, 255);
	struct mrc_news news;

	(void)state;
	for (unsigned i = 1; i < MRC_DOUBTS + 2; i++)
		mrc_snd_asked(&s, mrc_snd_new(&s, i, 100, i, 0), true);
	at(&s, TAIL, &news);
	for (unsigned i = 0; i < MRC_DOUBTS + 2; i++)
		mrc_snd_again(&s, 63, TAIL);
	for (unsigned i = 0; i < MRC_DOUBTS + 2; i++) {
		struct mrc_sack sack = sack_of(i + 1, 0, i);

		sack.rtx = true;
		mrc_snd_sack(&s, &sack, 63, 0, 1000, 2 * TAIL, &news);
	}
	at(&s, LATE, &news);
	assert_int_equal(news.lost, MRC_DOUBTS);
	assert_int_equal(news.bad_ev[0], ((1u << MRC_DOUBTS) - 1) << 2);
	test_free(s.sent);
}

/* Packets 0 to 2 do not ask, 3 does, and is the only one that is lost: of the others there is no
 * word yet when a round trip has passed, and that of 3 tells of them before they go. */
static void unasked_wait(void **state)
{
	struct mrc_snd s = tail_that_asks(4, 4, 1 << 3);
	struct mrc_sack all = sack_of(4, 0, 3);
	struct mrc_news news;

	(void)state;
	assert_int_equal(mrc_snd_deadline(&s), 3 + TAIL);
	at(&s, 3 + TAIL, &news);
	assert_int_equal(lost(&s), 1 << 3);
	mrc_snd_again(&s, 5, 3 + TAIL);
	assert_int_equal(mrc_snd_deadline(&s), 2 + GUARD + TAIL);
	all.rtx = true;
	assert_int_equal(mrc_snd_sack(&s, &all, 5, 0, 1000, 1 + GUARD + TAIL, &news), 0);
	assert_int_equal(news.arrived, 4);
	assert_int_equal(lost(&s), 0);
	at(&s, LATE + 3, &news);
	assert_int_equal(news.bad_ev[0], 1 << 3);
	test_free(s.sent);
}

/* They go again in vain, since the word was lost: their repetitions are named, the first ones never
 * would be. No path is blamed for that. */
static void unnamed_is_innocent(void **state)
{
	struct mrc_snd s = tail_that_asks(3, FEW, 0);
	struct mrc_news news;

	(void)state;
	at(&s, 1 + GUARD + TAIL, &news);
	assert_int_equal(lost(&s), 0);
	at(&s, 2 + GUARD + TAIL, &news);
	assert_int_equal(lost(&s), 7);
	for (unsigned i = 0; i < 3; i++)
		mrc_snd_again(&s, 10 + i, 2 + GUARD + TAIL);
	for (unsigned i = 0; i < 3; i++) {
		struct mrc_sack sack = sack_of(3, 0, i);

		sack.rtx = true;
		mrc_snd_sack(&s, &sack, (int)(10 + i), 0, 1000, 2 + GUARD + 2 * TAIL, &news);
		assert_int_equal(news.lost, 0);
	}
	at(&s, 2 * LATE, &news);
	assert_int_equal(news.lost, 0);
	test_free(s.sent);
}

/* The word of one that asked misses what left before it: no other is waited for. One of a packet
 * that left before says nothing of those behind it. */
static void missed_do_not_wait(void **state)
{
	struct mrc_snd s = tail_that_asks(3, FEW, 1 << 1);
	struct mrc_news news;

	(void)state;
	told(&s, sack_of(0, 1 << 1, 1), 1, 1000);
	assert_int_equal(mrc_snd_deadline(&s), TAIL);
	at(&s, TAIL, &news);
	assert_int_equal(lost(&s), 1 << 0);
	mrc_snd_again(&s, 5, TAIL);
	assert_int_equal(mrc_snd_deadline(&s), 2 + GUARD + TAIL); /* 2, and 0 at 3 * TAIL */
	test_free(s.sent);
	/* In one burst. */
	s = tail_that_asks(2, FEW, 1 << 1);
	mrc_snd_new(&s, 2, 100, 2, 1);
	told(&s, sack_of(1, 1 << 1, 1), 1, 1000);
	assert_int_equal(mrc_snd_deadline(&s), 1 + GUARD + TAIL);
	test_free(s.sent);
}

/* Round trips that take longer than late_ns: what is silent has not been for longer than these. */
static void slow_fabric(void **state)
{
	struct mrc_snd s = repeated();
	struct mrc_news news;
	uint64_t silent;

	(void)state;
	mrc_snd_rtt(&s, 2 * LATE);
	silent = mrc_rtt_most(&s.rtt);
	assert_true(silent > LATE);
	news = heard(&s, 5, true, TAIL + 2 * LATE);
	assert_int_equal(news.lost, 0);
	assert_int_equal(mrc_snd_ack(&s, psn(0), TAIL + 2 * LATE, &news), 0);
	assert_int_equal(mrc_snd_deadline(&s), silent);
	at(&s, silent - 1, &news);
	assert_int_equal(news.lost, 0);
	at(&s, silent, &news);
	assert_int_equal(news.bad_ev[0], 1 << 0);
	test_free(s.sent);
}

/* The shortest is that of some time, not of all. */
static void shortest_is_forgotten(void **state)
{
	struct mrc_rtt r = {0};

	(void)state;
	mrc_rtt_sample(&r, 700);
	for (unsigned i = 1; i < 2 * MRC_RTT_SPAN; i++) {
		assert_int_equal(r.least_ns, 700);
		mrc_rtt_sample(&r, 900);
	}
	assert_int_equal(r.least_ns, 900);
	mrc_rtt_sample(&r, 800);
	assert_int_equal(r.least_ns, 800);
}

/* The only path there is takes a packet three times. The word of the second one comes when the
 * third has just left: it is no round trip of that. */
static void repetitions_are_ambiguous(void **state)
{
	const struct mrc_evset_config one = {
		.n_ports = 1, .max_active = 1, .min_active = 1, .base_rtt_ns = TAIL};
	struct mrc_req_config config = {.snd = plain,
		.pmtu = 256,
		.messages = 1,
		.max_wimm = 1,
		.peer_nacks_trimmed = true};
	const struct mrc_msg msg = {.length = 100};
	const uint32_t ev = 7;
	const uint8_t port = 0;
	struct mrc_sack sack = sack_of(1, 0, 0);
	struct mrc_evset evs;
	struct mrc_req q;
	struct mrc_out out;

	(void)state;
	config.snd.tail_ns = TAIL;
	config.snd.late_ns = LATE;
	config.snd.timeout = 6;
	config.snd.tail_again = FEW;
	assert_int_equal(mrc_evset_init(&evs, &one, &ev, &port, 1), 0);
	assert_int_equal(
		mrc_req_init(&q, &config, &evs, NULL, test_malloc(mrc_req_bytes(&config))), 0);
	assert_int_equal(mrc_req_post(&q, &msg), 0);
	for (unsigned i = 0; i < 3; i++) {
		const uint64_t now = (i + i / 2) * TAIL; /* 0, 1, 3 */

		mrc_req_timer(&q, now);
		assert_true(mrc_req_tx(&q, 1, now, &out));
		assert_int_equal(out.pkt.data.rtx, i > 0);
	}
	sack.rtx = true;
	sack.entropy = ev;
	assert_int_equal(mrc_req_sack(&q, &sack, 3 * TAIL + 10), 0);
	assert_int_equal(q.snd.rtt.ns, 2 * TAIL + 10);
	assert_int_equal(q.snd.rtt.least_ns, 2 * TAIL + 10);
	test_free(q.snd.sent);
}

/* All has come, at 500, and is not acknowledged: the last of it asks, as often as the lost go
 * again, and these are no tries; then the timeout counts. */
static struct mrc_snd unacknowledged(unsigned few)
{
	struct mrc_snd s = tail_of(2, few);
	struct mrc_sack sack = sack_of(2, 0, 1);
	struct mrc_news news;

	assert_int_equal(mrc_snd_sack(&s, &sack, 1, 0, 1000, 500, &news), 0);
	assert_int_equal(news.arrived, 2);
	return s;
}

static void ack_is_asked_for(void **state)
{
	static const unsigned after[] = {1, 2, 4, 4, 4, 4, 4, 4};
	struct mrc_snd s = unacknowledged(FEW);
	struct mrc_news news;
	uint64_t now = 500;

	(void)state;
	for (unsigned i = 0; i < MRC_DFLT_tail_probes; i++) {
		struct mrc_sack sack = sack_of(2, 0, 1);

		now += GUARD + after[i] * TAIL;
		assert_int_equal(mrc_snd_deadline(&s), now);
		at(&s, now - 1, &news);
		assert_int_equal(lost(&s), 0);
		at(&s, now, &news);
		assert_int_equal(lost(&s), 2);
		assert_int_equal(s.tries, 0);
		mrc_snd_again(&s, 5, now);
		sack.rtx = true;
		assert_int_equal(mrc_snd_sack(&s, &sack, 5, 0, 1000, now, &news), 0);
	}
	assert_int_equal(mrc_snd_deadline(&s), now + (1024 << 6));
	at(&s, now + (1024 << 6), &news);
	assert_int_equal(s.tries, 1);
	mrc_snd_again(&s, 5, now + (1024 << 6));
	assert_int_equal(mrc_snd_ack(&s, psn(1), now + (1024 << 6), &news), 0);
	assert_true(news.acked);
	assert_int_equal(mrc_snd_deadline(&s), UINT64_MAX);
	test_free(s.sent);
	s = unacknowledged(0);
	assert_int_equal(mrc_snd_deadline(&s), 500 + (1024 << 6));
	test_free(s.sent);
}

/* Of two that asked the second is answered, and the first never: its path has lost it. If the word
 * comes sooner than the second can have drawn it, the first has. */
static void unanswered_is_guilty(void **state)
{
	const uint64_t asked = 500 + GUARD + TAIL;
	struct mrc_news news;

	(void)state;
	for (unsigned slow = 0; slow < 2; slow++) {
		struct mrc_snd s = unacknowledged(FEW);

		mrc_snd_rtt(&s, TAIL);
		at(&s, mrc_snd_deadline(&s), &news);
		mrc_snd_again(&s, 5, asked);
		at(&s, mrc_snd_deadline(&s), &news);
		assert_int_equal(lost(&s), 2);
		mrc_snd_again(&s, 6, asked + 2 * TAIL);
		assert_int_equal(mrc_snd_ack(&s, psn(1), asked + 3 * TAIL - slow, &news), 0);
		assert_int_equal(news.lost, 0);
		at(&s, asked + 100 * LATE, &news);
		assert_int_equal(news.lost, !slow);
		assert_int_equal(news.bad_ev[0], slow ? 0 : 1 << 5);
		test_free(s.sent);
	}
}

int run_tail_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_again),
		cmocka_unit_test(many),
		cmocka_unit_test(silent_is_guilty),
		cmocka_unit_test(overtaken_is_guilty),
		cmocka_unit_test(slow_is_innocent),
		cmocka_unit_test(told_in_time_is_guilty),
		cmocka_unit_test(patience_is_learnt),
		cmocka_unit_test(just_in_time),
		cmocka_unit_test(trimmed_is_innocent),
		cmocka_unit_test(twice),
		cmocka_unit_test(measured),
		cmocka_unit_test(crowd),
		cmocka_unit_test(slow_fabric),
		cmocka_unit_test(shortest_is_forgotten),
		cmocka_unit_test(repetitions_are_ambiguous),
		cmocka_unit_test(unasked_wait),
		cmocka_unit_test(unnamed_is_innocent),
		cmocka_unit_test(missed_do_not_wait),
		cmocka_unit_test(ack_is_asked_for),
		cmocka_unit_test(unanswered_is_guilty),
	};

	return cmocka_run_group_tests_name("tail", tests, NULL, NULL);
}
