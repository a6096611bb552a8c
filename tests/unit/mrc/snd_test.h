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

#endif
