/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FLOWSIM_TEST_H
#define TESTS_FLOWSIM_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

int run_flowsim_tests(void);
int run_paper_tests(void);
int run_waterfill_tests(void);

/* Numbers of a test, the same in every run. */
static inline uint32_t test_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

#endif
