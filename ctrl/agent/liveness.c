/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctrl/agent/liveness.h"

#include "lib/ctl/notify.h"
#include "lib/journal/journal.h"

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

void watchdog_turn(struct watchdog *w, struct sw *sw, uint64_t now, const char *program, FILE *log)
{
	const int was = w->stuck;

	if (!w->every_ns)
		return;
	w->stuck = liveness_stuck(&w->liveness, sw, now, w->every_ns);
	if (w->stuck >= 0 && was < 0)
		journal_to(log, JOURNAL_ERR,
			"error: worker %d does not turn: the watchdog is told no more", w->stuck);
	if (w->stuck >= 0 || now < w->at)
		return;
	ctl_notify(program, "WATCHDOG=1");
	w->at = now + w->every_ns;
}
