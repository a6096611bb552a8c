/* SPDX-License-Identifier: BSD-3-Clause */
/* The requestor's packets: each way to lose one, each way to be wrong about it, patience, liars. */
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/mrc/snd_test.h"

enum { INTERVAL = 1024 << 4 };

static void refused(void **state)
{
	const struct mrc_snd_config bad[] = {{.mpr_units = 0}, {.mpr_units = 256},
		{.mpr_units = 1, .timeout = 25}, {.mpr_units = 1, .linear_cnt = 8},
		{.mpr_units = 1, .exp_cnt = 26}, {.mpr_units = 1, .first_psn = 1 << 24}};
	struct mrc_snd s;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(mrc_snd_init(&s, &bad[i], NULL), -EINVAL);
}

static void path_order(void **state)
{
	struct mrc_snd s = window(&plain);
	struct mrc_news news;
	uint32_t first;

	(void)state;
	send_on(&s, (const uint8_t[]){0, 1, 0, 1, 70, 70}, 6);
	assert_int_equal(s.flight_bytes, 600);
	/* 2 followed 0 on its path; 1 may still come. */
	news = told(&s, sack_of(0, 1 << 2, 2), 0, 1000);
	assert_int_equal(news.arrived, 1);
	assert_int_equal(news.lost, 1);
	assert_int_equal(news.lost_bytes, 100);
	assert_int_equal(news.bad_ev[0], 1);
	assert_int_equal(lost(&s), 1 << 0);
	assert_int_equal(s.flight_bytes, 400);
	/* Both of a path in one SACK: nobody is missing, whatever the order of the bits. */
	news = told(&s, sack_of(0, 1 << 2 | 1 << 1 | 1 << 3, 3), 1, 1000);
	assert_int_equal(news.arrived, 2);
	assert_int_equal(news.lost, 0);
	/* The same again tells nothing. */
	news = told(&s, sack_of(0, 1 << 2 | 1 << 1 | 1 << 3, 3), 1, 1000);
	assert_int_equal(news.arrived + news.lost, 0);
	news = told(&s, sack_of(0, 1 << 5, 5), 70, 1000);
	assert_int_equal(news.bad_ev[1], 1 << 6);
	assert_int_equal(lost(&s), 1 << 0 | 1 << 4);
	assert_int_equal(mrc_snd_lost(&s, &first)->user, 0);
	assert_int_equal(first, psn(0));
	mrc_snd_again(&s, 3, 60);
	assert_int_equal(mrc_snd_lost(&s, &first)->user, 4);
	assert_int_equal(first, psn(4));
	/* It was late, not lost: it does not go again. */
	news = told(&s, sack_of(6, 0, 4), 70, 1000);
	assert_int_equal(news.arrived, 2);
	assert_null(mrc_snd_lost(&s, &first));
	assert_int_equal(s.flight_bytes, 0);
	test_free(s.sent);
}

/* What a bitmap does not reach is not missing, and an older SACK does not know what came since. */
static void unknown_is_not_lost(void **state)
{
	struct mrc_snd s = window(&plain);
	struct mrc_sack sack = sack_of(0, 0, 71);
	uint8_t ev[72] = {0};

	(void)state;
	memset(ev + 1, 1, 70);
	send_on(&s, ev, 72);
	sack.base_psn = psn(8);
	sack.bitmap = UINT64_C(1) << (71 - 8);
	sack.rcvd_units = 5;
	assert_int_equal(told(&s, sack, 0, 1000).lost, 0);
	sack = sack_of(0, 2, 1);
	sack.rcvd_units = 4;
	assert_int_equal(told(&s, sack, 1, 1000).lost, 0);
	sack.rcvd_units = 5;
	assert_int_equal(told(&s, sack, 1, 1000).lost, 1);
	assert_int_equal(lost(&s), 1);
	test_free(s.sent);
}

/* Missing for longer than silence is borne: lost, whatever came on its path. */
static void late_is_lost(void **state)
{
	struct mrc_snd_config c = plain;
	struct mrc_snd s;
	struct mrc_news news;
	struct mrc_sack sack = sack_of(0, 4, 2);

	(void)state;
	c.late_ns = 500;
	s = window(&c);
	send_on(&s, (const uint8_t[]){0, 1, 2}, 3);
	assert_int_equal(mrc_snd_sack(&s, &sack, 2, 0, 1000, 499, &news), 0);
	assert_int_equal(news.lost, 0);
	assert_int_equal(mrc_snd_sack(&s, &sack, 2, 0, 1000, 500, &news), 0);
	assert_int_equal(news.lost, 1);
	assert_int_equal(lost(&s), 1);
	test_free(s.sent);
}

/* A packet that was sent twice proves something about a path only where the SACK names it. */
static void two_transmissions(void **state)
{
	for (unsigned named = 0; named < 4; named++) {
		struct mrc_snd s = window(&plain);
		struct mrc_sack sack;
		struct mrc_news news;

		(void)state;
		send_on(&s, (const uint8_t[]){0, 0, 1, 1}, 4);
		told(&s, sack_of(0, 1 << 1, 1), 0, 1000);
		assert_int_equal(lost(&s), 1);
		mrc_snd_again(&s, 1, 20); /* behind 2 and 3 */
		sack = sack_of(2, 0, named == 1 ? 1 : 0);
		sack.rtx = named != 2;
		news = told(&s, sack, named == 3 ? 0 : 1, 1000);
		assert_int_equal(news.arrived, 1);
		assert_int_equal(lost(&s), named == 0 ? 1 << 2 | 1 << 3 : 0);
		test_free(s.sent);
	}
}

static void later_ones(void **state)
{
	static const uint8_t each[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

	(void)state;
	for (unsigned least = 0; least < 9; least++) {
		const unsigned needed = least < 5 ? 5 : least;
		struct mrc_snd s = window(&plain);
		uint64_t come = 0;

		send_on(&s, each, 16);
		for (unsigned n = 1; n <= needed; n++) {
			come |= UINT64_C(1) << (n + 1);
			assert_int_equal(lost(&s), 0);
			told(&s, sack_of(0, come, n + 1), (int)n + 1, least);
		}
		/* 0 and 1 have as many behind them. */
		assert_int_equal(lost(&s), 3);
		/* Sent again they are the youngest: only what leaves from now on counts. */
		mrc_snd_again(&s, 20, 20);
		mrc_snd_again(&s, 21, 20);
		told(&s, sack_of(0, 0xfffc, 15), 15, least);
		assert_int_equal(lost(&s), 0);
		for (unsigned n = 0; n < needed; n++) {
			assert_int_equal(lost(&s), 0);
			mrc_snd_new(&s, 30 + n, 100, 16 + n, 30);
			come = 0xfffc | ((UINT64_C(2) << (16 + n)) - (1 << 16));
			told(&s, sack_of(0, come, 16 + n), 30 + (int)n, least);
		}
		assert_int_equal(lost(&s), 3);
		test_free(s.sent);
	}
}

static void refusals(void **state)
{
	static const uint8_t reasons[] = {MRC_NACK_TRIMMED, MRC_NACK_TRIMMED_LASTHOP,
		MRC_NACK_NO_BITMAP, MRC_NACK_NO_PKT_BUFFER, MRC_NACK_NO_RESOURCE};
	struct mrc_snd_config config = plain;
	struct mrc_nack nack = {.psn = psn(0)};
	struct mrc_news news;
	struct mrc_snd s;
	bool probe;

	(void)state;
	config.linear_cnt = 7;
	s = window(&config);
	send_on(&s, (const uint8_t[]){0, 1, 2, 3, 4, 5, 6}, 7);
	for (unsigned i = 0; i < 5; i++) {
		nack.psn = psn(i);
		nack.reason = reasons[i];
		assert_int_equal(mrc_snd_nack(&s, &nack, (int)i + 1, 100 + i, &news), -EINVAL);
		assert_int_equal(mrc_snd_nack(&s, &nack, (int)i, 100 + i, &news), 0);
		assert_int_equal(mrc_snd_nack(&s, &nack, (int)i, 100 + i, &news), -EINVAL);
		assert_int_equal(news.lost, 0); /* neither a path's fault nor a timeout's */
	}
	assert_int_equal(lost(&s), 3);
	assert_int_equal(s.tries, 3); /* trimmed ones do not count */
	assert_int_equal(mrc_snd_deadline(&s), 102 + 1000);
	mrc_snd_timer(&s, 1103, &probe, &news);
	assert_int_equal(lost(&s), 0xf);
	mrc_snd_timer(&s, 1104, &probe, &news);
	assert_int_equal(lost(&s), 0x1f);
	assert_int_equal(s.tries, 3);
	/* Beyond the window: it waits until that moves. */
	nack.psn = psn(6);
	nack.reason = MRC_NACK_PSN_OOR;
	assert_int_equal(mrc_snd_nack(&s, &nack, 6, 105, &news), 0);
	assert_int_equal(lost(&s), 0x1f);
	told(&s, sack_of(1, 0, 0), 0, 1000);
	assert_int_equal(lost(&s), 0x5e);
	nack.psn = psn(5);
	nack.reason = MRC_NACK_UNEXP_EVENT;
	assert_int_equal(mrc_snd_nack(&s, &nack, 5, 105, &news), -EPROTO);
	nack.reason = 0x42;
	assert_int_equal(mrc_snd_nack(&s, &nack, 5, 105, &news), -EPROTO);
	nack.psn = psn(7);
	assert_int_equal(mrc_snd_nack(&s, &nack, 5, 105, &news), -EINVAL);
	test_free(s.sent);
}

/* Lets time pass from *now until the deadline; how long that was. */
static uint64_t expire(struct mrc_snd *s, uint64_t *now, struct mrc_news *news)
{
	const uint64_t at = mrc_snd_deadline(s), waited = at - *now;
	bool probe;

	mrc_snd_timer(s, at - 1, &probe, news);
	assert_int_equal(news->lost, 0);
	mrc_snd_timer(s, at, &probe, news);
	*now = at;
	return waited;
}

static void patience(void **state)
{
	static const unsigned intervals[] = {1, 1, 1, 2, 4};
	struct mrc_snd_config config = plain;
	struct mrc_snd s = window(&config);
	struct mrc_news news;
	uint64_t now = 0;

	(void)state;
	assert_int_equal(mrc_snd_deadline(&s), UINT64_MAX);
	send_on(&s, (const uint8_t[]){9}, 1);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(expire(&s, &now, &news), intervals[i] * INTERVAL);
		assert_int_equal(news.lost, 1);
		assert_int_equal(news.bad_ev[0], 1 << 9);
		assert_int_equal(news.gone, i == 4);
		mrc_snd_again(&s, 9, now);
	}
	/* News: all is as in the beginning. */
	told(&s, sack_of(1, 0, 0), 9, 1000);
	assert_int_equal(s.tries, 0);
	test_free(s.sent);

	config.exp_cnt = MRC_EXP_ENDLESS;
	config.timeout = 20;
	s = window(&config);
	send_on(&s, (const uint8_t[]){9}, 1);
	now = 0;
	for (unsigned i = 0; i < 40; i++) {
		const uint64_t waited = expire(&s, &now, &news);

		assert_false(news.gone);
		if (i >= 6)
			assert_int_equal(waited, UINT64_C(1024) << 24);
		mrc_snd_again(&s, 9, now);
	}
	test_free(s.sent);
}

/* Packets that left one after the other time out so: of one silence it is one try. */
static void one_silence(void **state)
{
	static const unsigned at[] = {1, 2, 3, 5, 9};
	struct mrc_snd_config config = plain;
	struct mrc_snd s = window(&config);
	struct mrc_news news = {.gone = false};
	unsigned tries = 0;
	bool probe;

	(void)state;
	send_on(&s, (const uint8_t[]){9, 9, 9, 9, 9, 9, 9, 9}, 8);
	while (!news.gone) {
		const uint64_t now = mrc_snd_deadline(&s);

		mrc_snd_timer(&s, now, &probe, &news);
		assert_true(news.lost > 0);
		for (unsigned i = news.lost; i > 0; i--)
			mrc_snd_again(&s, 9, now);
		if (s.tries == tries && !news.gone)
			continue;
		assert_in_range(now, at[tries] * INTERVAL, at[tries] * INTERVAL + 8);
		tries++;
	}
	assert_int_equal(tries, 5);
	test_free(s.sent);
}

/* Behind the last packet: its age counts, whatever else is heard, and questions become rare. */
static void tail_probe(void **state)
{
	static const unsigned at[MRC_DFLT_tail_probes] = {2, 4, 8, 12, 16, 20, 24, 28};
	struct mrc_snd_config config = plain;
	struct mrc_news news;
	struct mrc_snd s;
	bool probe;

	(void)state;
	config.timeout = 6;
	config.tail_ns = 1000;
	config.late_ns = 4000;
	s = window(&config);
	mrc_snd_new(&s, 0, 100, 0, 1000);
	s.dry = true;
	assert_int_equal(mrc_snd_deadline(&s), 2000);
	mrc_snd_timer(&s, 1999, &probe, &news);
	assert_false(probe);
	told(&s, sack_of(0, 0, 0), 0, 1000);
	for (unsigned i = 0; i < MRC_DFLT_tail_probes; i++) {
		assert_int_equal(mrc_snd_deadline(&s), 1000 * at[i]);
		mrc_snd_timer(&s, 1000 * at[i], &probe, &news);
		assert_true(probe);
	}
	assert_int_equal(mrc_snd_deadline(&s), 1000 + (1024 << 6));
	told(&s, sack_of(0, 0, 0), 0, 1000); /* it is heard */
	assert_int_equal(mrc_snd_deadline(&s), 29000);
	test_free(s.sent);
}

/* The wait is doubled up to its longest, however many questions a site allows. */
static void tail_probes_many(void **state)
{
	struct mrc_snd_config config = plain;
	uint64_t at = 2000;
	struct mrc_news news;
	struct mrc_snd s;
	bool probe;

	(void)state;
	config.timeout = 12;
	config.tail_ns = 1000;
	config.late_ns = 4000;
	config.tail_probes = 255;
	s = window(&config);
	mrc_snd_new(&s, 0, 100, 0, 1000);
	s.dry = true;
	for (unsigned i = 0; i < 255; i++, at += i == 1 ? 2000 : 4000) {
		assert_int_equal(mrc_snd_deadline(&s), at);
		mrc_snd_timer(&s, at, &probe, &news);
		assert_true(probe);
	}
	assert_int_equal(mrc_snd_deadline(&s), 1000 + (1024 << 12));
	test_free(s.sent);
}

/* Where more is to follow: silence counts. */
static void silence_probe(void **state)
{
	struct mrc_snd_config config = plain;
	struct mrc_sack sack = sack_of(0, 0, 0);
	struct mrc_news news;
	struct mrc_snd s;
	bool probe;

	(void)state;
	config.tail_ns = 1000;
	config.late_ns = 3000;
	s = window(&config);
	mrc_snd_new(&s, 0, 100, 0, 1000);
	assert_int_equal(mrc_snd_deadline(&s), 4000);
	assert_int_equal(mrc_snd_asks_about(&s), MRC_NO_EV);
	mrc_snd_sack(&s, &sack, 0, 0, 1000, 1500, &news);
	assert_int_equal(mrc_snd_deadline(&s), 4500);
	for (unsigned i = 0; i < 3; i++) {
		mrc_snd_timer(&s, 4500 + 3000 * i, &probe, &news);
		assert_true(probe);
		assert_int_equal(mrc_snd_deadline(&s), 7500 + 3000 * i);
	}
	test_free(s.sent);
}

/* The answer to a probe settles what left before it on its path, at whatever age, and no more. */
static void probe_tells(void **state)
{
	struct mrc_snd_config config = plain;
	struct mrc_sack sack = sack_of(0, 1 << 2, 2);
	struct mrc_news news;

	(void)state;
	config.tail_ns = 1000;
	config.late_ns = 4000;
	for (unsigned probed = 0; probed < 2; probed++) {
		struct mrc_snd s = window(&config);
		uint32_t turn;
		bool probe;

		send_on(&s, (const uint8_t[]){0, 1, 2}, 3); /* the third arrives */
		s.dry = true;
		mrc_snd_timer(&s, 1000, &probe, &news);
		assert_true(probe);
		assert_int_equal(mrc_snd_asks_about(&s), 0);
		turn = mrc_snd_probe(&s, probed);
		assert_int_equal(mrc_snd_asks_about(&s), probed == 0 ? MRC_NO_EV : 0);
		mrc_snd_new(&s, probed, 100, 3, 1000); /* behind it */
		sack.probe = false;
		mrc_snd_sack(&s, &sack, (int)probed, turn, 1000, 1100, &news);
		assert_int_equal(news.lost, 0); /* no answer to any */
		sack.probe = true;
		mrc_snd_sack(&s, &sack, (int)probed, turn, 1000, 1100, &news);
		assert_int_equal(lost(&s), 1 << probed);
		assert_int_equal(news.bad_ev[0], 1 << probed);
		/* What is in doubt still is asked about: at once if that answer told of the first
		 * in doubt, else in its time. */
		assert_int_equal(mrc_snd_asks_about(&s), probed == 0 ? 1 : 0);
		assert_int_equal(mrc_snd_deadline(&s), probed == 0 ? 1001 : 2000);
		test_free(s.sent);
	}
}

/* SACKs say what arrived, transport ACKs what is done. */
static void acknowledged(void **state)
{
	struct mrc_snd s = window(&plain);
	struct mrc_news news;
	uint64_t now = 50;
	uint32_t first;

	(void)state;
	send_on(&s, (const uint8_t[]){0, 1, 2}, 3);
	assert_int_equal(mrc_snd_ack(&s, psn(1), 40, &news), 0);
	assert_true(news.acked);
	assert_int_equal(news.arrived, 2);
	assert_int_equal(mrc_snd_ack(&s, psn(0), 40, &news), 0);
	assert_false(news.acked);
	assert_int_equal(mrc_snd_ack(&s, psn(3), 40, &news), -EINVAL);
	told(&s, sack_of(3, 0, 2), 2, 1000);
	/* The ACK of the last is lost: the packet asks for it, as often as it takes. */
	assert_int_equal(s.flight_bytes, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(expire(&s, &now, &news), INTERVAL);
		assert_int_equal(mrc_snd_lost(&s, &first)->user, 2);
		assert_int_equal(first, psn(2));
		mrc_snd_again(&s, 5, now);
		assert_int_equal(s.flight_bytes, 100);
		if (i == 2)
			break;
		news = told(&s, sack_of(3, 0, 2), 5, 1000);
		assert_int_equal(news.arrived + s.flight_bytes, 0);
		s.acked_at = now;
	}
	assert_int_equal(s.tries, 3); /* a SACK of what is known is no news */
	assert_int_equal(mrc_snd_ack(&s, psn(2), now, &news), 0);
	assert_true(news.acked);
	assert_int_equal(s.flight_bytes, 0);
	assert_int_equal(mrc_snd_deadline(&s), UINT64_MAX);
	test_free(s.sent);
}

static void windows(void **state)
{
	struct mrc_snd_config config = plain;
	struct mrc_sack sack;
	struct mrc_news news;
	struct mrc_snd s;

	(void)state;
	config.mpr_units = 3; /* 384 packets, 512 places */
	s = window(&config);
	for (unsigned i = 0; i < 384; i++, assert_int_equal(s.list[MRC_FLIGHT].n, i)) {
		assert_true(mrc_snd_may_send(&s));
		mrc_snd_new(&s, i % 200, 1, i, 0);
	}
	assert_false(mrc_snd_may_send(&s));
	sack = sack_of(1, 0, 0);
	sack.mpr = 1; /* a smaller one: nothing is taken back */
	told(&s, sack, 0, 1000);
	assert_false(mrc_snd_may_send(&s));
	assert_int_equal(s.list[MRC_FLIGHT].n, 383);
	sack = sack_of(256, 0, 255);
	told(&s, sack, 55, 1000);
	assert_false(mrc_snd_may_send(&s));
	sack = sack_of(257, 0, 256);
	sack.mpr = 255; /* more than there is room for */
	told(&s, sack, 56, 1000);
	/* Without a transport ACK requests are not done, and their packets keep their places. */
	for (unsigned i = 384; i < 512; i++) {
		assert_true(mrc_snd_may_send(&s));
		mrc_snd_new(&s, 0, 1, i, 0);
	}
	assert_false(mrc_snd_may_send(&s));
	assert_int_equal(mrc_snd_ack(&s, psn(0), 10, &news), 0);
	assert_true(mrc_snd_may_send(&s));
	test_free(s.sent);
}

static void liars(void **state)
{
	struct mrc_snd s = window(&plain), before;
	struct mrc_sack sack[] = {sack_of(3, 0, 0), sack_of(0, 1 << 2, 0), sack_of(0, 1, 2),
		sack_of(0, UINT64_C(1) << 63, 0), sack_of(0x7fffff, 0, 0)};
	struct mrc_news news;

	(void)state;
	send_on(&s, (const uint8_t[]){0, 1}, 2);
	before = s;
	for (unsigned i = 0; i < sizeof(sack) / sizeof(sack[0]); i++) {
		assert_int_equal(mrc_snd_sack(&s, &sack[i], 0, 0, 5, 9, &news), -EINVAL);
		assert_memory_equal(&s, &before, sizeof(s));
	}
	told(&s, sack_of(2, 0, 0), 0, 1000);
	/* Old words, and bits of what is long known. */
	assert_int_equal(told(&s, sack_of(0, 3, 0), 0, 1000).arrived, 0);
	assert_int_equal(told(&s, sack_of(2, 3, 0), 0, 1000).arrived, 0);
	assert_int_equal(psn_diff(s.cack, psn(1)), 0);
	test_free(s.sent);
}

int run_snd_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(path_order),
		cmocka_unit_test(unknown_is_not_lost),
		cmocka_unit_test(late_is_lost),
		cmocka_unit_test(two_transmissions),
		cmocka_unit_test(later_ones),
		cmocka_unit_test(refusals),
		cmocka_unit_test(patience),
		cmocka_unit_test(one_silence),
		cmocka_unit_test(tail_probe),
		cmocka_unit_test(tail_probes_many),
		cmocka_unit_test(silence_probe),
		cmocka_unit_test(probe_tells),
		cmocka_unit_test(acknowledged),
		cmocka_unit_test(windows),
		cmocka_unit_test(liars),
	};

	return cmocka_run_group_tests_name("snd", tests, NULL, NULL);
}
