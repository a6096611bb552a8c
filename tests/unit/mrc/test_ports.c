/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports that both ends know to be up, how the news travels; paths of control packets. */
#include <errno.h>

#include "lib/mrc/ports.h"
#include "lib/mrc/reverse.h"
#include "tests/unit/mrc/mrc_test.h"

enum { RTT = 1000, SECOND = 1000000000, PORTS = 4, EVS = 32 };

static struct mrc_settings settings(void)
{
	struct mrc_settings s = mrc_settings_default();

	s.base_rtt_us = RTT / 1000;
	return s;
}

static struct mrc_ports ports(void)
{
	const struct mrc_settings s = settings();
	struct mrc_ports p;

	assert_int_equal(mrc_ports_init(&p, PORTS, &s), 0);
	assert_int_equal(mrc_ports_deadline(&p), UINT64_MAX);
	return p;
}

static void refused(void **state)
{
	struct mrc_settings s = settings();
	struct mrc_ports p;

	(void)state;
	assert_int_equal(mrc_ports_init(&p, 0, &s), -EINVAL);
	assert_int_equal(mrc_ports_init(&p, 9, &s), -EINVAL);
	s.base_rtt_us = 0;
	assert_int_equal(mrc_ports_init(&p, 1, &s), -EINVAL);
}

/* A fabric of long round trips: the first wait is held to the longest, too. */
static void told_far(void **state)
{
	struct mrc_settings s = settings();
	struct mrc_ports p;
	struct mrc_endpoint said;

	(void)state;
	s.base_rtt_us = 20000;
	s.status_cap_ms = 100;
	assert_int_equal(mrc_ports_init(&p, PORTS, &s), 0);
	mrc_ports_local(&p, 0xb, 5000);
	assert_true(mrc_ports_tx(&p, 5000, &said));
	assert_int_equal(mrc_ports_deadline(&p), 5000 + SECOND / 10);
}

/* Until it is answered, with growing patience; then once a second while a port is down. */
static void told(void **state)
{
	struct mrc_ports p = ports();
	struct mrc_endpoint said;
	uint64_t now = 5000, wait = 8 * RTT;

	(void)state;
	mrc_ports_local(&p, 0xff, now); /* nothing has changed */
	assert_false(mrc_ports_tx(&p, now, &said));
	mrc_ports_local(&p, 0xfb, now);
	assert_int_equal(mrc_ports_usable(&p), 0xb);
	for (unsigned i = 0; i < 20; i++) {
		assert_true(mrc_ports_tx(&p, now, &said));
		assert_int_equal(said.op, MRC_PORT_STATUS);
		assert_int_equal(said.id, 1);
		assert_int_equal(said.port_mask, 0xb << 1);
		assert_false(mrc_ports_tx(&p, now + wait - 1, &said));
		assert_int_equal(mrc_ports_deadline(&p), now + wait);
		now += wait;
		wait = 2 * wait < 100000000 ? 2 * wait : 100000000;
	}
	mrc_ports_answered(&p, 2, now); /* no such */
	assert_true(p.unanswered);
	mrc_ports_answered(&p, 1, now);
	assert_int_equal(mrc_ports_deadline(&p), now + SECOND);
	now += SECOND;
	assert_true(mrc_ports_tx(&p, now, &said));
	assert_int_equal(said.id, 2);
	assert_int_equal(mrc_ports_deadline(&p), now + SECOND);
	mrc_ports_local(&p, 0xf, now);
	assert_true(mrc_ports_tx(&p, now, &said));
	assert_int_equal(said.port_mask, 0xf << 1);
	mrc_ports_answered(&p, 3, now);
	assert_int_equal(mrc_ports_deadline(&p), UINT64_MAX);
}

static void heard(void **state)
{
	struct mrc_ports p = ports();
	struct mrc_endpoint r = {.id = 0xfffe, .port_mask = 0x6, .ts = 77, .op = MRC_PORT_STATUS};

	(void)state;
	assert_true(mrc_ports_update(&p, &r));
	assert_int_equal(mrc_ports_usable(&p), 0x3);
	r.id = 3; /* over the wrap */
	r.port_mask = 0x1e;
	assert_true(mrc_ports_update(&p, &r));
	assert_int_equal(mrc_ports_usable(&p), 0xf);
	r.id = 0xffff;
	r.port_mask = 0;
	assert_false(mrc_ports_update(&p, &r));
	assert_int_equal(mrc_ports_usable(&p), 0xf);
	assert_int_equal(p.stale, 1);
	assert_int_equal(mrc_endpoint_answer(&r).id, 0xffff);
	assert_int_equal(mrc_endpoint_answer(&r).ts, 77);
}

static void answers_are_limited(void **state)
{
	const struct mrc_settings s = settings();
	struct mrc_answers a = {0};
	unsigned given = 0;

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		given += mrc_answers_take(&a, &s, 50);
	assert_int_equal(given, s.answers_burst);
	for (uint64_t now = 50; now < 50 + SECOND; now += 1000)
		given += mrc_answers_take(&a, &s, now);
	assert_in_range(
		given, s.answers_per_s + s.answers_burst - 2, s.answers_per_s + s.answers_burst);
}

static struct mrc_evset set(void)
{
	const struct mrc_evset_config config = {
		.n_ports = PORTS, .max_active = EVS / 2, .min_active = 1, .base_rtt_ns = RTT};
	uint32_t ev[EVS];
	uint8_t port[EVS];
	struct mrc_evset s;

	for (unsigned i = 0; i < EVS; i++) {
		ev[i] = 100 + i;
		port[i] = (uint8_t)(i % PORTS);
	}
	assert_int_equal(mrc_evset_init(&s, &config, ev, port, EVS), 0);
	return s;
}

static void in_turn(void **state)
{
	struct mrc_evset s = set();
	struct mrc_reverse r;

	(void)state;
	mrc_reverse_init(&r, &s, MRC_DFLT_reverse_silent, 1);
	for (unsigned i = 0; i < 2 * PORTS; i++)
		assert_int_equal(s.ev[mrc_reverse_next(&r, &s, 0xf)].port, i % PORTS);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(s.ev[mrc_reverse_next(&r, &s, 0x5)].port, i % 2 ? 2 : 0);
	assert_int_equal(mrc_reverse_next(&r, &s, 0), MRC_NO_EV);
	mrc_evset_port(&s, 2, false); /* ours is down */
	assert_int_equal(mrc_reverse_next(&r, &s, 0x4), MRC_NO_EV);
}

static void learns(void **state)
{
	struct mrc_evset s = set();
	struct mrc_reverse r;

	(void)state;
	mrc_reverse_init(&r, &s, MRC_DFLT_reverse_silent, 1);
	mrc_reverse_worked(&r, &s, 17); /* of port 1 */
	mrc_reverse_worked(&r, &s, MRC_NO_EV);
	assert_int_equal(mrc_reverse_next(&r, &s, 0x2), 17);
	mrc_evset_skip(&s, 21, 0); /* marked: no word that it works well */
	mrc_reverse_worked(&r, &s, 21);
	assert_int_equal(mrc_reverse_next(&r, &s, 0x2), 17);
	mrc_evset_deny(&s, 17);
	assert_int_equal(s.ev[mrc_reverse_next(&r, &s, 0x2)].port, 1);
	assert_true(mrc_reverse_next(&r, &s, 0x2) != 17);
}

/* One port after the other, each time any of its active paths. */
static void doubts(void **state)
{
	struct mrc_evset s = set();
	struct mrc_reverse r;
	uint64_t seen = 0;

	(void)state;
	mrc_reverse_init(&r, &s, MRC_DFLT_reverse_silent, 3);
	for (unsigned i = 0; i < 400; i++) {
		mrc_reverse_doubt(&r, &s);
		assert_int_equal(s.ev[r.ev[i % PORTS]].port, i % PORTS);
		assert_true(s.ev[r.ev[i % PORTS]].active);
		seen |= UINT64_C(1) << r.ev[i % PORTS];
	}
	assert_int_equal(__builtin_popcountll(seen), s.n_active);
}

/* Which of a run of repetitions, all of what had come, are doubts. */
static uint64_t doubted(const uint32_t *psn, unsigned n)
{
	struct mrc_evset s = set();
	struct mrc_reverse r;
	uint64_t mask = 0;

	mrc_reverse_init(&r, &s, MRC_DFLT_reverse_silent, 3);
	for (unsigned i = 0; i < n; i++) {
		const unsigned before = r.doubted;

		mrc_reverse_repeated(&r, &s, psn[i]);
		mask |= (uint64_t)(r.doubted != before) << i;
	}
	return mask;
}

/* In any order, over the end of the PSNs too; far apart; and when PSNs have come round. */
static void once_is_no_doubt(void **state)
{
	static const uint32_t tail[] = {0xfffffe, 1, 0xffffff, 0, 0xffffff, 0xfffffe, 2, 1, 0,
		0xfffffe},
			      far[] = {5, 105, 5, 105, 169, 168, 170},
			      round[] = {0x100000, 0x980000, 0x980000, 0x90, 0x90};

	(void)state;
	assert_int_equal(doubted(tail, 10), 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9);
	assert_int_equal(doubted(far, 7), 1 << 2 | 1 << 3);
	assert_int_equal(doubted(round, 5), 1 << 2 | 1 << 4);
}

/* A plane whose probes are not answered carries no words until one is; nor does one without a good
 * path. */
static void passes_over(void **state)
{
	struct mrc_evset s = set();
	struct mrc_reverse r;
	uint64_t now = 100;
	uint16_t id, silent = 0;
	int ev, dead = MRC_NO_EV;
	unsigned seen = 0;

	(void)state;
	mrc_reverse_init(&r, &s, MRC_DFLT_reverse_silent, 7);
	while (dead == MRC_NO_EV || now < 100 * RTT) {
		mrc_reverse_received(&r);
		assert_true(mrc_reverse_probe(&r, &s, 0xf, now, &ev, &id));
		now += RTT;
		if (s.ev[ev].port == 2) {
			silent = id;
			dead = ev;
		} else {
			mrc_reverse_answered(&r, &s, id);
			silent = (uint16_t)(id - silent) < MRC_REVERSE_OUT ? silent : 0;
		}
	}
	for (unsigned i = 0; i < 3 * PORTS; i++)
		assert_int_not_equal(s.ev[mrc_reverse_next(&r, &s, 0xf)].port, 2);
	assert_int_equal(s.ev[mrc_reverse_next(&r, &s, 1 << 2)].port, 2); /* there is no other */
	assert_int_equal(mrc_reverse_ports(&r, &s), 0xb); /* to wait for, if only 2 has room */
	assert_int_not_equal(silent, 0);
	mrc_reverse_answered(&r, &s, silent); /* late */
	for (unsigned i = 0; i < PORTS; i++)
		seen |= 1u << s.ev[mrc_reverse_next(&r, &s, 0xf)].port;
	assert_int_equal(seen, 0xf);
	assert_int_equal(mrc_reverse_next(&r, &s, 1 << 2), dead);
	for (unsigned i = 0; i < s.n; i++) {
		if (s.ev[i].port == 1)
			assert_true(mrc_evset_bad(&s, (int)i, now));
	}
	for (unsigned i = 0; i < 3 * PORTS; i++)
		assert_int_not_equal(s.ev[mrc_reverse_next(&r, &s, 0xf)].port, 1);
	assert_int_equal(mrc_reverse_ports(&r, &s), 0xd);
}

static void probes(void **state)
{
	struct mrc_evset s = set();
	struct mrc_reverse r;
	uint64_t now = 100, seen = 0;
	uint16_t id;
	int ev;

	(void)state;
	mrc_reverse_init(&r, &s, MRC_DFLT_reverse_silent, 7);
	assert_int_equal(mrc_reverse_deadline(&r), UINT64_MAX);
	assert_false(mrc_reverse_probe(&r, &s, 0xf, now, &ev, &id));
	for (unsigned i = 0; i < 400; i++) {
		mrc_reverse_received(&r);
		assert_true(mrc_reverse_probe(&r, &s, 0xd, now, &ev, &id));
		assert_true(s.ev[ev].active);
		assert_true(s.ev[ev].port != 1);
		seen |= UINT64_C(1) << ev;
		mrc_reverse_received(&r);
		assert_false(mrc_reverse_probe(&r, &s, 0xd, now + RTT - 1, &ev, &id));
		now = mrc_reverse_deadline(&r);
		mrc_reverse_answered(&r, &s, (uint16_t)(id + 1));
		mrc_reverse_answered(&r, &s, id);
		assert_int_equal(mrc_reverse_next(&r, &s, (uint8_t)(1u << s.ev[ev].port)), ev);
	}
	assert_int_equal(__builtin_popcountll(seen), 12); /* all of three ports come to turn */
	/* With data flowing out there is no need. */
	mrc_reverse_received(&r);
	mrc_reverse_sent(&r);
	assert_false(mrc_reverse_probe(&r, &s, 0xf, now + RTT, &ev, &id));
	assert_int_equal(mrc_reverse_deadline(&r), UINT64_MAX);
}

int run_ports_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(told),
		cmocka_unit_test(told_far),
		cmocka_unit_test(heard),
		cmocka_unit_test(answers_are_limited),
		cmocka_unit_test(in_turn),
		cmocka_unit_test(learns),
		cmocka_unit_test(doubts),
		cmocka_unit_test(once_is_no_doubt),
		cmocka_unit_test(passes_over),
		cmocka_unit_test(probes),
	};

	return cmocka_run_group_tests_name("ports", tests, NULL, NULL);
}
