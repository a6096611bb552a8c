/* SPDX-License-Identifier: BSD-3-Clause */
/* Spatial multiplexing (EPIC 6.2): groups side by side, each with memory of its own. */
#include "lib/mgr/policy.h"

static int candidates(
	struct mgr_place *p, const struct mgr_wish *wish, struct mgr_plan plan[MGR_MAX_PLANS])
{
	return mgr_place_frontier(p, wish, MGR_DUTY, plan);
}

const struct mgr_policy mgr_policy_spatial = {.name = "spatial", .candidates = candidates};
