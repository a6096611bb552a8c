/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is waited for: what an operator, a rank that stands still, or somebody who wants a group to
 * end is told. */
#include "dataplane/inc/modules.h"

/* The oldest slot with some contributions and not all. */
static uint64_t slots_missing(struct inc_group *g, uint32_t *psn)
{
	uint64_t missing = 0;

	for (uint32_t i = 0; i < 1u << g->log2n; i++) {
		const struct inc_slot *slot = inc_slot_at(g, i);
		uint64_t in, here = slot->arrived;

		if (here == 0 || slot->complete)
			continue;
		in = inc_slot_fan_in(g, slot);
		if ((here & in) == in || (missing && psn_lt(*psn, slot->tag)))
			continue;
		*psn = slot->tag;
		missing = in & ~here;
	}
	return missing;
}

uint64_t inc_unacknowledged(struct inc_group *g, uint32_t *psn)
{
	const struct inc_desc *d = inc_desc_newest(g, 1);
	uint64_t eps = d->route.prim == INC_BC   ? d->route.outs
		       : d->route.prim == INC_AR ? g->host_mask
						 : 0;
	uint64_t behind = 0;

	if (!d->valid)
		return 0;
	*psn = d->last;
	for (; eps != 0; eps &= eps - 1)
		if (psn_le(inc_ep_at(g, (unsigned)__builtin_ctzll(eps))->ack_next, d->last))
			behind |= eps & -eps;
	return behind;
}

uint64_t inc_group_missing(struct inc_group *g, uint32_t *psn)
{
	const uint64_t missing = slots_missing(g, psn);

	return missing ? missing : inc_ops_of(g)->missing(g, psn);
}

bool inc_group_busy(struct inc_group *g, uint32_t *psn, uint64_t *eps)
{
	*eps = inc_group_missing(g, psn);
	if (*eps == 0)
		*eps = inc_ops_of(g)->behind(g, psn);
	return *eps != 0;
}
