/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on the EVs of a profile (mrc_ctl.h: EV_OP). */
#include <errno.h>
#include <string.h>

#include "lib/libmrc/profile.h"

static bool same(const struct mrc_ctl_ev *a, const struct mrc_ctl_ev *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* The next entry from `from` on that holds ev; count: none. Entries that were never set hold
 * MRC_CTL_EV_UNPOPULATED. */
static uint32_t find(const struct ev_profile *p, const struct mrc_ctl_ev *ev, uint32_t from)
{
	bool drawn = p->mode == MRC_CTL_EV_MODE_EXP || p->drawn;

	while (drawn && from < p->count && !same(&p->entry[from].ev, ev))
		from++;
	return drawn ? from : p->count;
}

static enum mrc_ctl_ev_state state_of(const struct ev_entry *e)
{
	if (e->denied)
		return MRC_CTL_EV_DENIED;
	if (e->used == 0)
		return MRC_CTL_EV_UNKNOWN;
	return 2 * e->bad > e->used ? MRC_CTL_EV_ASSUMED_BAD : MRC_CTL_EV_GOOD;
}

static bool may_set(enum mrc_ctl_ev_state state)
{
	return state == MRC_CTL_EV_GOOD || state == MRC_CTL_EV_ASSUMED_BAD ||
	       state == MRC_CTL_EV_DENIED;
}

/* Whether ev may stand in the array: unpopulated, or one of a port that packets can carry. The
 * format may be changed as long as the profile is OFFLINE; then it is looked at again later. */
static bool fits(struct profiles *b, const struct ev_profile *p, const struct mrc_ctl_ev *ev)
{
	struct mrc_ctl_ev none = MRC_CTL_EV_UNPOPULATED;
	struct ev_profile with = *p;
	struct fmt_profile *f = fmt_find(b, p->fmt_id);
	struct ev_path path;

	if (same(ev, &none))
		return p->p.state != MRC_CTL_PROFILE_ONLINE;
	if (ev->port < 1 || ev->port > b->n_ports)
		return false;
	if (p->p.state != MRC_CTL_PROFILE_ONLINE || p->fmt.mode == 0) {
		if (!f || f->n_fields == 0)
			return true;
		with.fmt = *f;
	}
	return ev_to_path(&with, ev, 0, &path) == 0;
}

static void replace(struct profiles *b, struct ev_entry *e, const struct mrc_ctl_ev_op_entry *op)
{
	struct mrc_ctl_ev none = MRC_CTL_EV_UNPOPULATED;

	*e = (struct ev_entry){
		.ev = op->ev_new,
		.set = !same(&op->ev_new, &none),
		.denied = op->state == MRC_CTL_EV_DENIED,
		.generation = ++b->generation,
	};
}

static int change(struct profiles *b, struct ev_profile *p, enum mrc_ctl_ev_op what,
	const struct mrc_ctl_ev_op_entry *op)
{
	uint32_t at = find(p, &op->ev, 0);

	if (!may_set(op->state) || op->flags & ~(uint32_t)MRC_CTL_EV_OP_F_ALL_COPIES)
		return -EINVAL;
	if (what == MRC_CTL_EV_OP_REPLACE_EV &&
		(p->mode != MRC_CTL_EV_MODE_EXP || !fits(b, p, &op->ev_new)))
		return -EINVAL;
	if (at == p->count)
		return -ENOENT;
	for (; at < p->count; at = find(p, &op->ev, at + 1)) {
		if (what == MRC_CTL_EV_OP_REPLACE_EV)
			replace(b, &p->entry[at], op);
		else
			p->entry[at].denied = op->state == MRC_CTL_EV_DENIED;
		if (!(op->flags & MRC_CTL_EV_OP_F_ALL_COPIES))
			break;
	}
	return 0;
}

static int query_array(const struct ev_profile *p, struct mrc_ctl_ev_op_entry *entries, int *count)
{
	bool drawn = p->mode == MRC_CTL_EV_MODE_EXP || p->drawn;
	int n = drawn ? (int)p->count : 0, room = *count;

	*count = n;
	if (room < n)
		return -E2BIG;
	for (int i = 0; i < n; i++) {
		entries[i].ev = p->entry[i].ev;
		entries[i].state = state_of(&p->entry[i]);
		entries[i].flags = 0;
	}
	return 0;
}

static int query_state(const struct ev_profile *p, struct mrc_ctl_ev_op_entry *op)
{
	uint32_t at = find(p, &op->ev, 0);

	if (at == p->count)
		return -ENOENT;
	op->state = state_of(&p->entry[at]);
	return 0;
}

int ev_op(struct profiles *b, struct ev_profile *p, enum mrc_ctl_ev_op op,
	struct mrc_ctl_ev_op_entry *entries, int *count)
{
	int ret = 0;

	if (op > MRC_CTL_EV_OP_QUERY_EV_ARRAY || (int)op < 0)
		return -EINVAL;
	if (*count < (op == MRC_CTL_EV_OP_QUERY_EV_ARRAY ? 0 : 1) || (*count && !entries))
		return -EINVAL;
	if (op == MRC_CTL_EV_OP_QUERY_EV_ARRAY)
		return query_array(p, entries, count);
	for (int i = 0; i < *count && !ret; i++)
		ret = op == MRC_CTL_EV_OP_QUERY_EV_STATE ? query_state(p, &entries[i])
							 : change(b, p, op, &entries[i]);
	return ret;
}

void ev_note(struct ev_profile *p, const struct ev_path *path, int used, int bad)
{
	struct ev_entry *e = path->entry < p->count ? &p->entry[path->entry] : NULL;

	if (!e || e->generation != path->generation)
		return;
	e->used = (uint16_t)(e->used + used);
	e->bad = (uint16_t)(e->bad + bad);
}
