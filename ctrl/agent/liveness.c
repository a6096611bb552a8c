/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctrl/agent/liveness.h"

int liveness_stuck(struct liveness *l, struct sw *sw, uint64_t now, uint64_t patience_ns)
{
	struct sw_worker w;
	int stuck = -1;

	for (unsigned i = 0; i < CTL_MAX_WORKERS && !sw_worker_get(sw, i, &w); i++) {
		if (!l->seen[i] || w.turns != l->turns[i]) {
			l->turns[i] = w.turns;
			l->seen[i] = now;
		} else if (stuck < 0 && now - l->seen[i] >= patience_ns) {
			stuck = (int)i;
		}
	}
	return stuck;
}
