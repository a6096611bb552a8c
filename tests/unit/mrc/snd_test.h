/* SPDX-License-Identifier: BSD-3-Clause */
/* A requestor's packets under test. */
#ifndef TESTS_SND_TEST_H
#define TESTS_SND_TEST_H

#include "lib/mrc/snd.h"
#include "lib/wire/psn.h"
#include "tests/unit/mrc/mrc_test.h"

static const struct mrc_snd_config plain = {.first_psn = 0xfffffd,
	.mpr_units = 1,
	.timeout = 4,
	.linear_cnt = 2,
	.exp_cnt = 2,
	.later_ns = 1000};

static inline struct mrc_snd window(const struct mrc_snd_config *config)
{
	struct mrc_snd s;

	assert_int_equal(
		mrc_snd_init(&s, config, test_malloc(mrc_snd_bytes(config->mpr_units))), 0);
	return s;
}

/* PSNs of tests count from 0. */
static inline uint32_t psn(uint32_t n)
{
	return psn_add(plain.first_psn, (int32_t)n);
}

static inline void send_on(struct mrc_snd *s, const uint8_t *ev, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const uint32_t expected = s->next;

		assert_true(mrc_snd_may_send(s));
		assert_int_equal(mrc_snd_new(s, ev[i], 100, i, i), expected);
	}
}

/* arrived: bits from PSN 0 on; cack: how many from there are complete. */
static inline struct mrc_sack sack_of(uint32_t cack, uint64_t arrived, uint32_t trigger)
{
	return (struct mrc_sack){.cack_psn = psn(cack - 1),
		.base_psn = psn(0),
		.bitmap = arrived,
		.trigger_psn = psn(trigger)};
}

static inline struct mrc_news told(struct mrc_snd *s, struct mrc_sack sack, int ev, uint32_t least)
{
	struct mrc_news news;

	assert_int_equal(mrc_snd_sack(s, &sack, ev, 0, least, 50, &news), 0);
	return news;
}

/* The packets that go again, in order, as a bit mask. */
static inline uint64_t lost(const struct mrc_snd *s)
{
	uint64_t mask = 0;

	for (uint16_t i = s->list[MRC_LOST].head; i != 0xffff; i = s->sent[i].next)
		mask |= UINT64_C(1) << s->sent[i].user;
	return mask;
}

#endif
