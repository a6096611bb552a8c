/* SPDX-License-Identifier: BSD-3-Clause */
/* Do the workers of a switch still turn? For its watchdog: the control thread alone, which tells
 * that it lives, would not notice a worker that is stuck. Time is an argument. */
#ifndef AGENT_LIVENESS_H
#define AGENT_LIVENESS_H

#include <stdint.h>
#include <stdio.h>

#include "dataplane/switch.h"
#include "lib/ctl/config.h"

struct liveness { /* zero at first */
	uint64_t turns[CTL_MAX_WORKERS];
	uint64_t seen[CTL_MAX_WORKERS]; /* when they were last others; 0: not looked yet */
};

/* To be called often. The first worker whose loop has not turned for patience_ns, -1: all turn. */
int liveness_stuck(struct liveness *l, struct sw *sw, uint64_t now, uint64_t patience_ns);

/* A service manager that waits to be told that the switch lives. */
struct watchdog {
	uint64_t every_ns; /* to be told so often; 0: nobody waits */
	uint64_t at;       /* when next */
	int stuck;         /* worker, -1: none */
	struct liveness liveness;
};

/* To be called often. Sends "WATCHDOG=1" when it is due (lib/ctl/notify.h), but not while a worker
 * has not turned for every_ns: what the service manager does not hear for long enough it takes for
 * a switch that hangs. A line in log says so, once. */
void watchdog_turn(struct watchdog *w, struct sw *sw, uint64_t now, const char *program, FILE *log);

#endif
