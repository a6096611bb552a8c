/* SPDX-License-Identifier: BSD-3-Clause */
/* Do the workers of a switch still turn? For its watchdog: the control thread alone, which tells
 * that it lives, would not notice a worker that is stuck. Time is an argument. */
#ifndef AGENT_LIVENESS_H
#define AGENT_LIVENESS_H

#include <stdint.h>

#include "dataplane/switch.h"
#include "lib/ctl/config.h"

struct liveness { /* zero at first */
	uint64_t turns[CTL_MAX_WORKERS];
	uint64_t seen[CTL_MAX_WORKERS]; /* when they were last others; 0: not looked yet */
};

/* To be called often. The first worker whose loop has not turned for patience_ns, -1: all turn. */
int liveness_stuck(struct liveness *l, struct sw *sw, uint64_t now, uint64_t patience_ns);

#endif
