/* SPDX-License-Identifier: BSD-3-Clause */
/* How much a group may send in a turn of its worker. A turn has one time. */
#include "dataplane/inc/modules.h"

void inc_turn_begin(struct inc_group *g, uint64_t now, uint32_t allowance)
{
	if (g->turn_ns == now)
		return;
	g->turn_ns = now;
	g->allowance = allowance;
	g->cut = false;
}

bool inc_may_send(struct inc_ctx *c, unsigned n)
{
	struct inc_group *g = c->g;

	if (n <= g->allowance) {
		g->allowance -= n;
		return true;
	}
	g->allowance = 0;
	g->count[INC_C_CUT] += !g->cut;
	g->cut = true;
	if (c->now + 1 < g->timer_ns)
		g->timer_ns = c->now + 1;
	return false;
}
