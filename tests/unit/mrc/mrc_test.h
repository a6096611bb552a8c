/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_MRC_TEST_H
#define TESTS_MRC_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

int run_evset_tests(void);
int run_nscc_tests(void);
int run_pair_tests(void);
int run_ports_tests(void);
int run_rcv_tests(void);
int run_req_tests(void);
int run_rsp_tests(void);
int run_rsp_words_tests(void);
int run_snd_fabrics_tests(void);
int run_snd_tests(void);
int run_tail_tests(void);

/* Numbers of a test, the same in every run. */
static inline uint32_t test_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

#endif
