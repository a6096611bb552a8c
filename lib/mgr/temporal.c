/* SPDX-License-Identifier: BSD-3-Clause */
/* Temporal multiplexing (EPIC 6.2): what is free and, of what others share, the time in which they
 * do not use it. The book holds who shares with whom; who goes first is the switches' matter
 * (leases). */
#include "lib/mgr/policy.h"

static int candidates(
	struct mgr_place *p, const struct mgr_wish *wish, struct mgr_plan plan[MGR_MAX_PLANS])
{
	return mgr_place_frontier(p, wish, wish->duty, plan);
}

const struct mgr_policy mgr_policy_temporal = {
	.name = "temporal", .shared = true, .candidates = candidates};
