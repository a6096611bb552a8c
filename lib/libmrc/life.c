/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/libmrc/profile.h"
#include "lib/wire/random.h"

void profiles_init(struct profiles *b, unsigned n_ports, uint64_t seed)
{
	*b = (struct profiles){.n_ports = n_ports, .random = seed};
}

void profiles_fini(struct profiles *b)
{
	for (unsigned i = 0; i < PROFILES_FMT; i++)
		free(b->fmt[i]);
	for (unsigned i = 0; i < PROFILES_EV; i++) {
		if (b->ev[i])
			free(b->ev[i]->entry);
		free(b->ev[i]);
	}
	for (unsigned i = 0; i < PROFILES_CC; i++)
		free(b->cc[i]);
}

uint64_t profiles_random(struct profiles *b)
{
	return wire_random(&b->random);
}

/* The chain INIT - OFFLINE - ONLINE, one step in either direction. */
static bool step(enum mrc_ctl_profile_state from, enum mrc_ctl_profile_state to)
{
	return to == from + 1 || to + 1 == from;
}

int life_modify(const struct life_rules *r, const struct profile *p, int mask,
	enum mrc_ctl_profile_state want, enum mrc_ctl_profile_state cur,
	enum mrc_ctl_profile_state *to)
{
	enum mrc_ctl_profile_state from = p ? p->state : MRC_CTL_PROFILE_INIT;
	int may;

	*to = mask & LIFE_STATE ? want : from;
	if (mask & ~r->known || (mask & LIFE_CUR_STATE && cur != from) ||
		*to < MRC_CTL_PROFILE_INIT || *to > MRC_CTL_PROFILE_ONLINE)
		return -EINVAL;
	if (from != *to && !step(from, *to))
		return -EINVAL;
	if (*to == MRC_CTL_PROFILE_INIT)
		may = LIFE_STATE | LIFE_CUR_STATE;
	else
		may = LIFE_STATE | LIFE_CUR_STATE | LIFE_VENDOR |
		      (from == MRC_CTL_PROFILE_ONLINE ? r->online : r->offline);
	if (mask & ~may)
		return -EINVAL;
	return from == MRC_CTL_PROFILE_ONLINE && *to != from && p->users ? -EBUSY : 0;
}

int life_query(const struct life_rules *r, const struct profile *p, int mask,
	enum mrc_ctl_profile_state *state)
{
	*state = p ? p->state : MRC_CTL_PROFILE_INIT;
	return mask & ~(p ? r->known : LIFE_STATE | LIFE_CUR_STATE) ? -EINVAL : 0;
}
