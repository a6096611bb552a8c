/* SPDX-License-Identifier: BSD-3-Clause */
/* What profiles of all kinds have in common: their list, their states, who uses them. A call works
 * on a draft, which takes the profile's place only if all is well. */
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
			free(((struct ev_profile *)b->ev[i])->entry);
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

/* Whether the call may be made; *to: the state afterwards. */
static int check(const struct life_kind *kind, const struct profile *p, int mask,
	enum mrc_ctl_profile_state want, enum mrc_ctl_profile_state cur,
	enum mrc_ctl_profile_state *to)
{
	enum mrc_ctl_profile_state from = p ? p->state : MRC_CTL_PROFILE_INIT;
	int may;

	*to = mask & LIFE_STATE ? want : from;
	if (mask & ~kind->known || (mask & LIFE_CUR_STATE && cur != from) ||
		*to < MRC_CTL_PROFILE_INIT || *to > MRC_CTL_PROFILE_ONLINE)
		return -EINVAL;
	if (from != *to && !step(from, *to))
		return -EINVAL;
	if (*to == MRC_CTL_PROFILE_INIT)
		may = LIFE_STATE | LIFE_CUR_STATE;
	else
		may = LIFE_STATE | LIFE_CUR_STATE | LIFE_VENDOR |
		      (from == MRC_CTL_PROFILE_ONLINE ? kind->online : kind->offline);
	if (mask & ~may)
		return -EINVAL;
	return from == MRC_CTL_PROFILE_ONLINE && *to != from && p->users ? -EBUSY : 0;
}

/* Where the profile is, or where it would be; NULL: there is no place. */
static struct profile **slot(const struct life_kind *kind, struct profiles *b, uint64_t id)
{
	struct profile **list = (void *)((char *)b + kind->list), **empty = NULL;

	for (unsigned i = 0; i < kind->n; i++) {
		if (list[i] && list[i]->id == id)
			return &list[i];
		if (!list[i] && !empty)
			empty = &list[i];
	}
	return empty;
}

static void forget(const struct life_kind *kind, struct profiles *b, struct profile **at)
{
	if (!at || !*at)
		return;
	if (kind->forget)
		kind->forget(b, *at);
	free(*at);
	*at = NULL;
}

/* Queue pairs know a profile by its address, so the draft's contents move, not the draft. */
static void commit(const struct life_kind *kind, struct profiles *b, struct profile **at,
	struct profile *draft)
{
	if (kind->replace)
		kind->replace(b, draft, *at);
	if (!*at) {
		*at = draft;
		return;
	}
	memcpy(*at, draft, kind->size);
	free(draft);
}

int life_modify(const struct life_kind *kind, struct profiles *b, uint64_t id, void *attr, int mask,
	enum mrc_ctl_profile_state want, enum mrc_ctl_profile_state cur)
{
	struct profile **at = slot(kind, b, id), *old = at ? *at : NULL, *draft;
	enum mrc_ctl_profile_state to;
	int ret = check(kind, old, mask, want, cur, &to);

	if (ret)
		return ret;
	if (to == MRC_CTL_PROFILE_INIT) {
		forget(kind, b, at);
		return 0;
	}
	if (!at)
		return kind->full;
	draft = calloc(1, kind->size);
	if (!draft)
		return -EIO;
	if (old)
		memcpy(draft, old, kind->size);
	draft->id = id;
	draft->state = to;
	ret = kind->change(b, draft, old, attr, mask);
	if (ret)
		free(draft);
	else
		commit(kind, b, at, draft);
	return ret;
}

int life_query(const struct life_kind *kind, const struct profile *p, int mask,
	enum mrc_ctl_profile_state *state)
{
	*state = p ? p->state : MRC_CTL_PROFILE_INIT;
	return mask & ~(p ? kind->known : LIFE_STATE | LIFE_CUR_STATE) ? -EINVAL : 0;
}

struct profile *life_find(const struct life_kind *kind, struct profiles *b, uint64_t id)
{
	struct profile **at = slot(kind, b, id);

	return at ? *at : NULL;
}

int life_get(const struct life_kind *kind, struct profiles *b, uint64_t id, struct profile **out)
{
	struct profile *p = id ? life_find(kind, b, id) : NULL;

	*out = NULL;
	if (id == 0)
		return 0;
	if (!p || p->state != MRC_CTL_PROFILE_ONLINE)
		return -EINVAL;
	*out = p;
	p->users++;
	return 0;
}

void life_put(struct profile *p)
{
	if (p)
		p->users--;
}
