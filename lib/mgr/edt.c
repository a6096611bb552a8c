/* SPDX-License-Identifier: BSD-3-Clause */
/* Edge-disjoint trees (EPIC 6.2): without the edges of active trees, from lower to upper tiers, the
 * lowest level with switches that all members reach without going higher. */
#include <errno.h>

#include "lib/mgr/policy.h"

static const unsigned modes[] = {MGR_MODE_II, MGR_MODE_III, MGR_MODE_I};

/* Any mode's: memory is not looked at, and who does not take part passes too. */
static struct mgr_bar bar_of(unsigned tier)
{
	return (struct mgr_bar){.max_tier = tier,
		.max_height = MGR_MAX_HEIGHT,
		.duty = MGR_DUTY,
		.promised = true,
		.whole = true,
		.ignore_memory = true};
}

/* Whether the root reaches all; its best plan, if memory allows any. */
static int try_root(struct mgr_place *p, const struct mgr_wish *wish, unsigned root, bool *reaches,
	struct mgr_plan *best, bool *found)
{
	struct mgr_bar bar = bar_of(mgr_place_tier(p, root));

	*found = false;
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct mgr_plan plan = {.duty = MGR_DUTY, .whole = true};
		int rc;

		bar.mode = modes[i];
		if (!(wish->modes & bar.mode))
			continue;
		rc = mgr_tree_grow(
			mgr_place_finder(p), wish->member, wish->n_members, root, &bar, &plan.tree);
		if (rc == -ENOMEM)
			return rc;
		if (rc)
			continue;
		*reaches = true;
		if (!mgr_place_size(p, wish, &bar, &plan) ||
			(*found && !mgr_plan_better(&plan, best, &wish->shape))) {
			mgr_plan_free(&plan);
			continue;
		}
		if (*found)
			mgr_plan_free(best);
		*best = plan;
		*found = true;
	}
	return 0;
}

static int candidates(
	struct mgr_place *p, const struct mgr_wish *wish, struct mgr_plan plan[MGR_MAX_PLANS])
{
	unsigned n_roots, level = MGR_NO_TIER, tier, sifted = MGR_NO_TIER + 1;
	bool any = false;
	const unsigned *root = mgr_place_roots(p, &n_roots);
	int n = 0;

	for (unsigned i = 0; i < n_roots && n < MGR_MAX_PLANS; i++) {
		bool reaches = false, found;
		int rc;

		tier = mgr_place_tier(p, root[i]);
		if (level != MGR_NO_TIER && tier > level)
			break;
		if (tier != sifted) {
			struct mgr_bar bar = bar_of(tier);

			any = mgr_tree_sift(
				mgr_place_finder(p), wish->member, wish->n_members, &bar);
			sifted = tier;
		}
		if (!any || !mgr_tree_may_root(mgr_place_finder(p), root[i]))
			continue;
		rc = try_root(p, wish, root[i], &reaches, &plan[n], &found);
		if (reaches)
			level = tier;
		n += rc == 0 && found;
		if (rc) {
			while (n > 0)
				mgr_plan_free(&plan[--n]);
			return rc;
		}
	}
	return n;
}

const struct mgr_policy mgr_policy_edt = {.name = "edt", .whole = true, .candidates = candidates};
