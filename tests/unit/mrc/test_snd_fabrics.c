/* SPDX-License-Identifier: BSD-3-Clause */
/* The requestor's packets over random fabrics, against the real receive window. */
#include <stdlib.h>

#include "lib/mrc/rcv.h"
#include "tests/unit/mrc/snd_test.h"

enum { PATHS = 12, PACKETS = 20000, ON_PATH = 256 };

struct pipe { /* a path: in order, each with its delay */
	struct flying {
		uint32_t psn;
		uint64_t at;
		uint64_t user;
		bool rtx;
	} q[ON_PATH];
	unsigned head, n;
	bool dead;
};

struct fabric {
	struct mrc_snd s;
	struct mrc_rcv r;
	struct pipe path[PATHS];
	uint64_t now, random;
	unsigned loss; /* in 1/1000 */
	unsigned sent_twice, dropped;
	bool came[PACKETS];
};

static void into(struct fabric *f, unsigned ev, uint32_t which, uint64_t user, bool rtx)
{
	struct pipe *p = &f->path[ev];
	uint64_t at = f->now + 500 + test_random(&f->random) % 2000;

	if (p->dead || test_random(&f->random) % 1000 < f->loss || p->n == ON_PATH) {
		f->dropped++;
		return;
	}
	if (p->n && p->q[(p->head + p->n - 1) % ON_PATH].at > at)
		at = p->q[(p->head + p->n - 1) % ON_PATH].at;
	p->q[(p->head + p->n++) % ON_PATH] = (struct flying){which, at, user, rtx};
}

static void check(const struct mrc_snd *s)
{
	uint32_t n[MRC_N_SENT_STATES] = {0}, bytes = 0;

	for (uint32_t i = 0; i <= s->mask; i++) {
		n[s->sent[i].state]++;
		bytes += s->sent[i].state == MRC_FLIGHT ? s->sent[i].bytes : 0;
	}
	for (unsigned i = MRC_FLIGHT; i < MRC_N_SENT_STATES; i++)
		assert_int_equal(n[i], s->list[i].n);
	assert_int_equal(bytes, s->flight_bytes);
}

/* The responder: one packet of a path, its SACK comes at once, lost now and then; a transport ACK
 * for every seventh and for what had come before. */
static void deliver(struct fabric *f, unsigned ev)
{
	struct pipe *p = &f->path[ev];
	const struct flying fly = p->q[p->head];
	struct mrc_sack sack = {.rtx = fly.rtx};
	enum mrc_arrival arrival;
	struct mrc_news news;

	p->head = (p->head + 1) % ON_PATH;
	p->n--;
	arrival = mrc_rcv_packet(&f->r, fly.psn, 100);
	if (arrival == MRC_NEW) {
		assert_false(f->came[fly.user]);
		f->came[fly.user] = true;
	}
	mrc_rcv_sack(&f->r, fly.psn, &sack);
	if (test_random(&f->random) % 1000 >= f->loss)
		assert_int_equal(mrc_snd_sack(&f->s, &sack, (int)ev, 0, 64, f->now, &news), 0);
	if ((fly.psn % 7 == 0 || arrival == MRC_DUPLICATE) &&
		test_random(&f->random) % 1000 >= f->loss)
		assert_int_equal(mrc_snd_ack(&f->s, f->r.cack, f->now, &news), 0);
}

static unsigned alive(struct fabric *f)
{
	unsigned ev;

	do
		ev = test_random(&f->random) % PATHS;
	while (f->path[ev].dead && test_random(&f->random) % 20);
	return ev;
}

static void run(struct fabric *f)
{
	uint64_t user = 0;

	while (f->s.acked != psn(PACKETS - 1)) {
		struct mrc_news news;
		uint32_t again;
		bool probe;

		f->now += test_random(&f->random) % 200;
		if (f->now >= mrc_snd_deadline(&f->s))
			mrc_snd_timer(&f->s, f->now, &probe, &news);
		for (const struct mrc_sent *e; (e = mrc_snd_lost(&f->s, &again)); f->sent_twice++) {
			const unsigned ev = alive(f);
			const uint64_t which = e->user;

			mrc_snd_again(&f->s, ev, f->now);
			into(f, ev, again, which, true);
		}
		if (user < PACKETS && mrc_snd_may_send(&f->s) && f->s.list[MRC_FLIGHT].n < 60) {
			const unsigned ev = alive(f);

			into(f, ev, mrc_snd_new(&f->s, ev, 100, user, f->now), user, false);
			user++;
		}
		for (unsigned ev = 0; ev < PATHS; ev++) {
			while (f->path[ev].n && f->path[ev].q[f->path[ev].head].at <= f->now)
				deliver(f, ev);
		}
		if (test_random(&f->random) % 64 == 0)
			check(&f->s);
		assert_true(f->now < UINT64_C(10000000000));
	}
	for (unsigned i = 0; i < PACKETS; i++)
		assert_true(f->came[i]);
	assert_null(mrc_snd_lost(&f->s, &(uint32_t){0}));
	assert_int_equal(f->s.flight_bytes, 0);
}

static void fabrics(void **state)
{
	static const unsigned loss[] = {0, 1, 10, 100};
	struct mrc_snd_config config = plain;

	(void)state;
	config.exp_cnt = MRC_EXP_ENDLESS;
	for (unsigned i = 0; i < 8; i++) {
		struct fabric *f = test_calloc(1, sizeof(*f));

		f->s = window(&config);
		f->random = i + 1;
		f->loss = loss[i % 4];
		for (unsigned ev = 0; ev < i / 4 * 3; ev++)
			f->path[ev].dead = true;
		assert_int_equal(
			mrc_rcv_init(&f->r, plain.first_psn, 1, test_malloc(mrc_rcv_bytes(1))), 0);
		run(f);
		if (i == 0) /* nothing is lost: nothing but the question for the last ACK */
			assert_in_range(f->sent_twice, 0, 1);
		else /* what is lost goes again once, little else does */
			assert_in_range(f->sent_twice, 0, f->dropped * 5 / 4 + 10);
		test_free(f->r.bits);
		test_free(f->s.sent);
		test_free(f);
	}
}

int run_snd_fabrics_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fabrics),
	};

	return cmocka_run_group_tests_name("snd_fabrics", tests, NULL, NULL);
}
