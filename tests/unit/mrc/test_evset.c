/* SPDX-License-Identifier: BSD-3-Clause */
/* The EVs of a connection: rotation, states, swaps, probes; and what must always hold, through
 * random events. */
#include <errno.h>

#include "lib/mrc/evset.h"
#include "tests/unit/mrc/mrc_test.h"

enum { RTT = 10000, MS = 1000000 };

static struct mrc_evset make(unsigned ports, unsigned n, unsigned active, unsigned least)
{
	const struct mrc_evset_config config = {.n_ports = ports,
		.max_active = active,
		.min_active = least,
		.base_rtt_ns = RTT,
		.seed = 2026};
	uint32_t ev[MRC_MAX_EVS];
	uint8_t port[MRC_MAX_EVS];
	struct mrc_evset s;

	for (unsigned i = 0; i < n; i++) {
		ev[i] = 0x9e3779b1u * (i + 1);
		port[i] = (uint8_t)(i % ports);
	}
	assert_int_equal(mrc_evset_init(&s, &config, ev, port, n), 0);
	return s;
}

/* What holds at all times. */
static void sound(const struct mrc_evset *s)
{
	unsigned active = 0, bad = 0;

	for (unsigned p = 0; p < s->n_ports; p++) {
		bool seen[MRC_MAX_EVS] = {false};

		assert_true(s->ring[p].n <= s->per_port);
		assert_true(s->ring[p].at <= s->ring[p].n);
		for (unsigned i = 0; i < s->ring[p].n; i++) {
			const struct mrc_ev *e = &s->ev[s->ring[p].index[i]];

			assert_false(seen[s->ring[p].index[i]]);
			seen[s->ring[p].index[i]] = true;
			assert_int_equal(e->port, p);
			assert_true(e->active && e->state <= MRC_EV_SKIP);
		}
		active += s->ring[p].n;
	}
	assert_int_equal(s->n_active, active);
	for (unsigned i = 0; i < s->n; i++) {
		const struct mrc_ev *e = &s->ev[i];

		active -= e->active;
		bad += e->state == MRC_EV_BAD;
		/* A ring is short only where no backup is left. */
		if (!e->active && e->state <= MRC_EV_SKIP)
			assert_int_equal(s->ring[e->port].n, s->per_port);
	}
	assert_int_equal(active, 0);
	assert_int_equal(s->n_bad, bad);
}

static void planes_in_turn(void **state)
{
	struct mrc_evset s = make(4, 256, 128, 1);
	unsigned of[MRC_MAX_EVS] = {0};

	(void)state;
	assert_int_equal(s.per_port, 32);
	for (unsigned lap = 0; lap < 64; lap++) {
		unsigned ports = 0, first = 0;

		for (unsigned i = 0; i < 4; i++) {
			int index = mrc_evset_next(&s, 0xff, 0);

			assert_in_range(index, 0, 255);
			of[index]++;
			ports |= 1u << s.ev[index].port;
			if (i == 0)
				first = s.ev[index].port;
		}
		assert_int_equal(ports, 15);
		assert_int_equal(first, lap % 4);
	}
	for (unsigned i = 0; i < 256; i++) /* 64 packets a plane: two laps of 32 */
		assert_int_equal(of[i], s.ev[i].active ? 2 : 0);
	sound(&s);
}

/* All EVs that a set can have, on one port. */
static void largest_set(void **state)
{
	struct mrc_evset s = make(1, MRC_MAX_EVS, MRC_MAX_EVS, 1);
	unsigned used[MRC_MAX_EVS] = {0};

	(void)state;
	for (unsigned i = 0; i < 2 * MRC_MAX_EVS; i++)
		used[mrc_evset_next(&s, 1, 0)]++;
	for (unsigned i = 0; i < MRC_MAX_EVS; i++)
		assert_int_equal(used[i], 2);
	sound(&s);
}

static void order_is_drawn_anew(void **state)
{
	struct mrc_evset s = make(1, 64, 64, 1);
	int lap[2][64];
	unsigned same = 0;

	(void)state;
	for (unsigned l = 0; l < 2; l++)
		for (unsigned i = 0; i < 64; i++)
			lap[l][i] = mrc_evset_next(&s, 1, 0);
	for (unsigned i = 0; i < 64; i++)
		same += lap[0][i] == lap[1][i];
	assert_in_range(same, 0, 16);
}

static void rooms_and_ports(void **state)
{
	struct mrc_evset s = make(4, 16, 16, 1);

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		assert_in_range(s.ev[mrc_evset_next(&s, 0x5, 0)].port & 1, 0, 0);
	mrc_evset_port(&s, 0, false);
	mrc_evset_port(&s, 4, false); /* there is none */
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(s.ev[mrc_evset_next(&s, 0x5, 0)].port, 2);
	assert_int_equal(mrc_evset_next(&s, 0x1, 0), MRC_NO_EV);
	assert_int_equal(mrc_evset_next(&s, 0, 0), MRC_NO_EV);
	mrc_evset_port(&s, 0, true);
	assert_int_equal(s.ev[mrc_evset_next(&s, 0x1, 0)].port, 0);
}

static void skipped_once(void **state)
{
	struct mrc_evset s = make(1, 4, 4, 1);
	unsigned of[4] = {0};

	(void)state;
	mrc_evset_skip(&s, 2, 0);
	for (unsigned i = 0; i < 7; i++)
		of[mrc_evset_next(&s, 1, 0)]++;
	assert_int_equal(of[2], 1); /* passed over in the first lap */
	assert_int_equal(s.ev[2].state, MRC_EV_GOOD);
	assert_int_equal(mrc_evset_take_changed(&s), MRC_NO_EV); /* the API shows no SKIP */
	/* By itself, after a base RTT. */
	s = make(1, 2, 2, 1);
	mrc_evset_skip(&s, 0, 0);
	mrc_evset_skip(&s, 1, 0);
	assert_true(mrc_evset_next(&s, 1, RTT) >= 0);
	/* All are SKIP: the first one met is used. */
	for (int i = 0; i < 2; i++)
		mrc_evset_skip(&s, i, RTT);
	assert_true(mrc_evset_next(&s, 1, RTT) >= 0);
	mrc_evset_skip(&s, -1, 0);
	mrc_evset_skip(&s, 2, 0);
}

/* Marks in as many base RTTs on end as it takes, the first in one of this number; the last time. */
static uint64_t mark(struct mrc_evset *s, int index, unsigned rtt, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		for (unsigned j = 0; j < 3; j++) /* in one RTT they count once */
			mrc_evset_skip(s, index, (rtt + i) * RTT + j);
	}
	return (rtt + n - 1) * RTT;
}

/* Marks of the one in use, from RTT to RTT: how often the other one of two took its place. */
static unsigned moves(struct mrc_evset *s, unsigned from, unsigned to)
{
	unsigned n = 0;

	for (unsigned rtt = from; rtt < to; rtt++) {
		const int was = s->ev[1].active;

		mark(s, was, rtt, 1);
		n += was != s->ev[1].active;
	}
	return n;
}

static void marked_changes_places(void **state)
{
	enum { LONG = 8, REST = 64 };
	struct mrc_evset s = make(2, 8, 4, 1); /* 0 and 2 of port 0 are active, 4 and 6 backups */

	(void)state;
	mark(&s, 0, 1, LONG - 1);
	mark(&s, 0, LONG + 3, LONG - 1); /* not on end: three RTTs without */
	assert_true(s.ev[0].active);
	mark(&s, 0, 2 * LONG + 2, 1);
	assert_false(s.ev[0].active);
	assert_true(s.ev[4].active && s.ev[4].port == s.ev[0].port);
	assert_int_equal(s.n_active, 4);
	assert_int_equal(mrc_evset_take_changed(&s), MRC_NO_EV); /* good as before */
	for (unsigned i = 0; i < 100; i++)
		assert_int_not_equal(mrc_evset_next(&s, 3, 100 * RTT), 0);
	/* The next one goes to 6; then nothing has rested, and it stays. */
	mark(&s, 4, 3 * LONG, LONG);
	assert_true(s.ev[6].active && !s.ev[4].active && !s.ev[0].active);
	mark(&s, 6, 4 * LONG, LONG);
	assert_true(s.ev[6].active);
	/* After its rest 0 is as good as any, but a bad backup is none. */
	mrc_evset_bad(&s, 4, 5 * LONG * RTT);
	mark(&s, 6, 5 * LONG, 4 * REST); /* doubled twice */
	assert_true(s.ev[0].active && !s.ev[6].active);
	/* Of the other port, or of none: nothing to go to. */
	s = make(2, 4, 4, 1);
	mark(&s, 0, 1, 10 * LONG);
	assert_true(s.ev[0].active);
	/* Whatever is in use is marked: it is tried ever more seldom, and anew once it has helped.
	 */
	s = make(1, 2, 1, 1);
	assert_int_equal(moves(&s, 1, 10 * REST), 3);
	assert_int_equal(moves(&s, 10 * REST, 1000 * REST), 6);
	mark(&s, s.ev[1].active, 4000 * REST, LONG); /* quiet for as long as that took */
	assert_int_equal(s.rest_rtts, REST);
	/* From time 0 on, and over the end of the count of RTTs. */
	s = make(1, 2, 1, 1);
	mark(&s, 0, 0, LONG);
	assert_true(s.ev[1].active);
	s = make(1, 2, 1, 1);
	for (uint64_t i = 0; i <= LONG; i++) /* one falls on 0, which says that there was none */
		mrc_evset_skip(&s, 0, (UINT32_MAX - 4 + i) * RTT);
	for (uint64_t i = 0; i < LONG; i++)
		mrc_evset_skip(&s, 0, (UINT32_MAX + 16 + i) * RTT);
	assert_true(s.ev[1].active);
}

/* All that are in use are marked in each of n RTTs: how many of them moved. */
static unsigned burst(struct mrc_evset *s, unsigned rtt, unsigned n)
{
	bool was[MRC_MAX_EVS];
	unsigned moved = 0;

	for (unsigned i = 0; i < s->n; i++)
		was[i] = s->ev[i].active;
	for (unsigned k = 0; k < n; k++)
		for (unsigned i = 0; i < s->n; i++)
			mark(s, (int)i, rtt + k, 1);
	for (unsigned i = 0; i < s->n; i++)
		moved += was[i] && !s->ev[i].active;
	return moved;
}

/* Paths that have moved together are one attempt, which is not made again by marking them again
 * after pauses. */
static void moved_together(void **state)
{
	enum { LONG = 8, REST = 64 };
	struct mrc_evset s = make(4, 8, 4, 1);

	(void)state;
	assert_int_equal(burst(&s, 1, 2 * LONG), 4);
	for (unsigned rtt = 2 * LONG + 4; rtt < REST; rtt += LONG + 4)
		assert_int_equal(burst(&s, rtt, LONG), 0);
	assert_int_equal(s.rest_rtts, 2 * REST);
	s = make(1, 32, 16, 1);
	assert_int_equal(burst(&s, 1, 2 * LONG), 16);
	assert_int_equal(s.rest_rtts, 2 * REST);
	/* After their rest they move again, which is another. */
	assert_int_equal(burst(&s, 2 * REST - LONG, 4 * LONG), 16);
	assert_int_equal(s.rest_rtts, 4 * REST);
	/* A path that is in use because it works again is none. */
	s = make(1, 2, 1, 0);
	mark(&s, 0, 1, LONG);
	assert_true(s.ev[1].active);
	mrc_evset_bad(&s, 1, LONG * RTT);
	mrc_evset_bad(&s, 0, LONG * RTT);
	mrc_evset_reprieve(&s, 1, LONG * RTT);
	assert_true(s.ev[1].active);
	mark(&s, 1, 2 * LONG, LONG);
	assert_int_equal(s.rest_rtts, REST);
}

static void bad_is_swapped(void **state)
{
	struct mrc_evset s = make(2, 8, 4, 1);

	(void)state;
	assert_true(s.ev[0].active && !s.ev[4].active);
	assert_true(mrc_evset_bad(&s, 0, 5));
	assert_false(mrc_evset_bad(&s, 0, 6));
	assert_true(s.ev[4].active && s.ev[4].port == s.ev[0].port);
	assert_int_equal(s.n_active, 4);
	assert_int_equal(mrc_evset_take_changed(&s), 0);
	assert_int_equal(mrc_evset_take_changed(&s), MRC_NO_EV);
	for (unsigned i = 0; i < 100; i++)
		assert_int_not_equal(mrc_evset_next(&s, 3, 5), 0);
	mrc_evset_deny(&s, 4);
	mrc_evset_deny(&s, 6);
	mrc_evset_deny(&s, 2);
	assert_int_equal(s.ring[0].n, 0);
	sound(&s);
	/* Port 1 alone is usable: port 0's turns are passed on. */
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(s.ev[mrc_evset_next(&s, 3, 5)].port, 1);
	mrc_evset_allow(&s, 6);
	assert_true(s.ev[6].active);
	mrc_evset_allow(&s, 2);
	mrc_evset_allow(&s, 4);
	assert_false(s.ev[4].active); /* the ring is full again */
	sound(&s);
}

static void enough_are_left(void **state)
{
	struct mrc_evset s = make(1, 4, 4, 3);

	(void)state;
	assert_true(mrc_evset_bad(&s, 0, 0));
	assert_false(mrc_evset_bad(&s, 1, 0));
	assert_int_equal(s.ev[1].state, MRC_EV_GOOD);
	mrc_evset_deny(&s, 1); /* the controller may */
	assert_int_equal(s.n_active, 2);
}

/* The plane whose EVs are left is the dead one: they do not stay because of their number. */
static void the_last_ones_take_turns(void **state)
{
	struct mrc_evset s = make(2, 4, 4, 2);
	const uint64_t later = 8 * s.base_rtt_ns;

	(void)state;
	assert_true(mrc_evset_bad(&s, 0, 0));
	assert_true(mrc_evset_bad(&s, 2, 0));
	assert_int_equal(s.ev[0].port, s.ev[2].port);
	assert_false(mrc_evset_bad(&s, 1, later - 1));
	assert_true(mrc_evset_bad(&s, 1, later));
	assert_int_equal(s.ev[0].state, MRC_EV_GOOD);
	assert_int_equal(s.ev[1].state, MRC_EV_BAD);
	assert_int_equal(s.n_active, 2);
	assert_int_equal(mrc_evset_next(&s, 1u << s.ev[0].port, later), 0);
	/* Of ports that are down none does. */
	mrc_evset_port(&s, s.ev[2].port, false);
	assert_false(mrc_evset_bad(&s, 3, later));
	mrc_evset_port(&s, s.ev[2].port, true);
	assert_true(mrc_evset_bad(&s, 3, later));
	assert_int_equal(s.ev[2].state, MRC_EV_GOOD);
}

static void better_bad_than_still(void **state)
{
	struct mrc_evset s = make(2, 4, 4, 0);

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_true(mrc_evset_bad(&s, i, 100 - (uint64_t)i));
	assert_int_equal(mrc_evset_next(&s, 3, 0), 3);
	mrc_evset_deny(&s, 3);
	assert_int_equal(mrc_evset_next(&s, 3, 0), 2);
	assert_int_equal(mrc_evset_next(&s, 2, 0), 1);
	for (int i = 0; i < 3; i++)
		mrc_evset_deny(&s, i);
	assert_int_equal(mrc_evset_next(&s, 3, 0), MRC_NO_EV);
}

static void probes_bring_back(void **state)
{
	struct mrc_evset s = make(1, 4, 2, 1);
	uint64_t now = 0;

	(void)state;
	assert_int_equal(mrc_evset_probe_deadline(&s), UINT64_MAX);
	assert_true(mrc_evset_bad(&s, 1, 0));
	assert_true(mrc_evset_bad(&s, 0, 1));
	assert_int_equal(mrc_evset_probe_due(&s, 8 * RTT - 1), MRC_NO_EV);
	assert_int_equal(mrc_evset_probe_deadline(&s), 8 * RTT);
	assert_int_equal(mrc_evset_probe_due(&s, 8 * RTT + 1), 1);
	assert_int_equal(mrc_evset_probe_due(&s, 8 * RTT + 1), MRC_NO_EV); /* one per RTT */
	assert_int_equal(mrc_evset_probe_deadline(&s), 9 * RTT + 1);
	assert_int_equal(mrc_evset_probe_due(&s, 9 * RTT + 1), 0);
	mrc_evset_probe_answered(&s, 2, false, now); /* nobody asked */
	/* EV 1's answers come, EV 0's do not. */
	now = 10 * RTT;
	for (unsigned i = 0; i < 3; i++) {
		mrc_evset_probe_answered(&s, 1, false, now);
		mrc_evset_probe_answered(&s, 1, false, now); /* twice counts once */
		assert_int_equal(s.ev[1].state, i < 2 ? MRC_EV_BAD : MRC_EV_GOOD);
		now += RTT;
		if (i < 2)
			assert_int_equal(mrc_evset_probe_due(&s, now), 1);
	}
	assert_false(s.ev[1].active); /* backups took both places */
	assert_int_equal(mrc_evset_take_changed(&s), 0);
	assert_int_equal(mrc_evset_take_changed(&s), 1);
	/* Lost after 1 ms, then twice the pause, up to 100 ms. */
	now = 9 * RTT + 1;
	for (unsigned i = 0; i < 20; i++) {
		uint64_t wait;

		assert_int_equal(mrc_evset_probe_deadline(&s), now + MS);
		assert_int_equal(mrc_evset_probe_due(&s, now + MS), MRC_NO_EV);
		wait = mrc_evset_probe_deadline(&s) - (now + MS);
		assert_int_equal(wait,
			i > 10 || 8 * RTT << (i + 1) > 100 * MS ? 100 * MS : 8 * RTT << (i + 1));
		now += MS + wait;
		assert_int_equal(mrc_evset_probe_due(&s, now), 0);
	}
	/* Marked answers count, the EV comes back as one to pass over. */
	for (unsigned i = 0; i < 3; i++) {
		mrc_evset_probe_answered(&s, 0, true, now);
		now += RTT;
		assert_int_equal(mrc_evset_probe_due(&s, now), i < 2 ? 0 : MRC_NO_EV);
	}
	assert_int_equal(s.ev[0].state, MRC_EV_SKIP);
	assert_int_equal(mrc_evset_probe_deadline(&s), UINT64_MAX);
	sound(&s);
}

/* No probes over a port that is down. */
static void probes_wait_for_ports(void **state)
{
	struct mrc_evset s = make(2, 4, 4, 0);

	(void)state;
	assert_true(mrc_evset_bad(&s, 1, 0));
	mrc_evset_port(&s, 1, false);
	assert_int_equal(mrc_evset_probe_due(&s, MS), MRC_NO_EV);
	assert_int_equal(mrc_evset_probe_deadline(&s), UINT64_MAX);
	mrc_evset_port(&s, 1, true);
	assert_int_equal(mrc_evset_probe_due(&s, MS), 1);
}

static void found_by_value(void **state)
{
	struct mrc_evset s = make(8, 256, 128, 1);

	(void)state;
	for (int i = 0; i < 256; i++)
		assert_int_equal(mrc_evset_find(&s, s.ev[i].ev), i);
	for (uint32_t i = 0; i < 10000; i++) {
		int index = mrc_evset_find(&s, i * 77777);

		assert_true(index == MRC_NO_EV || s.ev[index].ev == i * 77777);
	}
}

static void refusals(void **state)
{
	const struct mrc_evset_config good = {
		.n_ports = 2, .max_active = 2, .min_active = 1, .base_rtt_ns = RTT};
	const uint32_t ev[] = {1, 2, 1};
	const uint8_t port[] = {0, 1, 0}, far[] = {0, 2};
	struct mrc_evset_config c = good;
	struct mrc_evset s;

	(void)state;
	assert_int_equal(mrc_evset_init(&s, &c, ev, port, 2), 0);
	assert_int_equal(mrc_evset_init(&s, &c, ev, port, 3), -EINVAL);
	assert_int_equal(mrc_evset_init(&s, &c, ev, far, 2), -EINVAL);
	assert_int_equal(mrc_evset_init(&s, &c, ev, port, 0), -EINVAL);
	assert_int_equal(mrc_evset_init(&s, &c, ev, port, MRC_MAX_EVS + 1), -EINVAL);
	c.n_ports = 9;
	assert_int_equal(mrc_evset_init(&s, &c, ev, port, 2), -EINVAL);
	c = good, c.max_active = 1;
	assert_int_equal(mrc_evset_init(&s, &c, ev, port, 2), -EINVAL);
	c = good, c.min_active = 3;
	assert_int_equal(mrc_evset_init(&s, &c, ev, port, 2), -EINVAL);
	c = good, c.base_rtt_ns = 0;
	assert_int_equal(mrc_evset_init(&s, &c, ev, port, 2), -EINVAL);
}

static void event(struct mrc_evset *s, uint64_t *random, uint64_t now)
{
	int index = (int)(test_random(random) % s->n);

	switch (test_random(random) % 12) {
	case 0:
		mrc_evset_bad(s, index, now);
		break;
	case 1:
		mrc_evset_deny(s, index);
		break;
	case 2:
		mrc_evset_allow(s, index);
		break;
	case 3:
		mrc_evset_skip(s, index, now);
		break;
	case 4:
		mrc_evset_port(s, test_random(random) % s->n_ports, test_random(random) % 4 > 0);
		break;
	case 5:
		mrc_evset_probe_answered(s, index, test_random(random) % 2, now);
		break;
	case 6:
	case 7:
		mrc_evset_probe_due(s, now);
		break;
	default:
		index = mrc_evset_next(s, (uint8_t)test_random(random), now);
		if (index != MRC_NO_EV) {
			assert_int_not_equal(s->ev[index].state, MRC_EV_DENIED);
			assert_true(s->up >> s->ev[index].port & 1);
		}
	}
}

static void random_events(void **state)
{
	static const unsigned shapes[][4] = {
		{1, 3, 2, 1}, {2, 8, 4, 3}, {4, 60, 32, 16}, {8, 256, 128, 1}};

	(void)state;
	for (unsigned i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		const unsigned *c = shapes[i];
		struct mrc_evset s = make(c[0], c[1], c[2], c[3]);
		uint64_t random = i, now = 0;

		for (unsigned j = 0; j < 25000; j++) {
			now += test_random(&random) % (4 * RTT);
			event(&s, &random, now);
			sound(&s);
		}
	}
}

int run_evset_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(planes_in_turn),
		cmocka_unit_test(largest_set),
		cmocka_unit_test(order_is_drawn_anew),
		cmocka_unit_test(rooms_and_ports),
		cmocka_unit_test(skipped_once),
		cmocka_unit_test(marked_changes_places),
		cmocka_unit_test(moved_together),
		cmocka_unit_test(bad_is_swapped),
		cmocka_unit_test(enough_are_left),
		cmocka_unit_test(the_last_ones_take_turns),
		cmocka_unit_test(better_bad_than_still),
		cmocka_unit_test(probes_bring_back),
		cmocka_unit_test(probes_wait_for_ports),
		cmocka_unit_test(found_by_value),
		cmocka_unit_test(refusals),
		cmocka_unit_test(random_events),
	};

	return cmocka_run_group_tests_name("mrc evset", tests, NULL, NULL);
}
