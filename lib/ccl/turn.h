/* SPDX-License-Identifier: BSD-3-Clause */
/* A job's turn with memory that it shares: time goes round in cycles, in each of which it has a
 * part (lib/mgr/book.h, docs/manager.md). Of CLOCK_MONOTONIC, or what stands for it. */
#ifndef CCL_TURN_H
#define CCL_TURN_H

#include <stdint.h>

struct ccl_turn {
	uint64_t cycle_ns; /* 0: there are no turns */
	uint64_t zero_ns;  /* that a cycle began at, of the first there is */
	uint64_t start_ns, length_ns;
};

#endif
