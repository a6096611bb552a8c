/* SPDX-License-Identifier: BSD-3-Clause */
/* EV profiles: attributes, and what has to be there before connections use them. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/libmrc/profile.h"

enum {
	MODE = MRC_CTL_EV_PROFILE_MODE,
	FMT_ID = MRC_CTL_EV_PROFILE_FMT_ID,
	COUNT = MRC_CTL_EV_PROFILE_COUNT,
	MIN_ACTIVE = MRC_CTL_EV_PROFILE_MIN_ACTIVE,
	EVENT_MASK = MRC_CTL_EV_PROFILE_EVENT_MASK,
	EV_OP = MRC_CTL_EV_PROFILE_EV_OP,
	FIELDS_OP = MRC_CTL_EV_PROFILE_EV_FIELDS_OP,
	VENDOR_CFG = MRC_CTL_EV_PROFILE_VENDOR_CFG,
	OFFLINE = MODE | FMT_ID | COUNT | MIN_ACTIVE | EVENT_MASK | EV_OP | FIELDS_OP,
};

static int set_fields(struct ev_profile *p, const struct mrc_ctl_ev_profile_attr *attr)
{
	int n = attr->ev_fields_op.field_count;

	if (attr->ev_fields_op.op != MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS || n < 1 ||
		!attr->ev_fields_op.fields)
		return -EINVAL;
	if (n > PROFILES_FIELDS)
		return -E2BIG;
	p->n_fields = (unsigned)n;
	memcpy(p->field, attr->ev_fields_op.fields, (unsigned)n * sizeof(*p->field));
	return 0;
}

static int set(struct ev_profile *p, const struct mrc_ctl_ev_profile_attr *attr, int mask)
{
	if (mask & MODE)
		p->mode = attr->ev_mode;
	if (mask & FMT_ID)
		p->fmt_id = attr->ev_fmt_profile_id;
	if (mask & COUNT)
		p->count = attr->ev_count;
	if (mask & MIN_ACTIVE)
		p->min_active = attr->ev_min_active;
	if (mask & EVENT_MASK)
		p->event_mask = attr->ev_event_mask;
	if (mask & VENDOR_CFG)
		memcpy(p->p.vendor_cfg, attr->vendor_cfg, sizeof(p->p.vendor_cfg));
	p->p.have |= mask & ~EV_OP;
	return mask & FIELDS_OP ? set_fields(p, attr) : 0;
}

/* What each mode has to have before it may leave INIT; 0: no such mode. */
static int needed(enum mrc_ctl_ev_mode mode)
{
	switch (mode) {
	case MRC_CTL_EV_MODE_AUTO:
		return MODE;
	case MRC_CTL_EV_MODE_EXP:
		return MODE | FMT_ID | COUNT;
	case MRC_CTL_EV_MODE_GEN:
		return MODE | FMT_ID | COUNT | FIELDS_OP;
	default:
		return 0;
	}
}

static int check_fields(struct profiles *b, const struct ev_profile *p)
{
	const struct fmt_profile *f = fmt_find(b, p->fmt_id);
	struct srv6_ev_format format;

	if (!(p->p.have & FMT_ID))
		return 0;
	if (!f)
		return -EINVAL;
	/* A format that is not ready is looked at again before the profile is ONLINE. */
	return p->n_fields && f->n_fields ? ev_format(p, f, &format) : 0;
}

/* Whether what is there makes sense together. */
static int check(struct profiles *b, struct ev_profile *p)
{
	int need = needed(p->mode);

	if (!need || (p->p.have & need) != need)
		return -EINVAL;
	if (p->mode == MRC_CTL_EV_MODE_AUTO && p->n_fields)
		return -EINVAL;
	if (!(p->p.have & COUNT))
		p->count = PROFILES_EVS_AUTO - PROFILES_EVS_AUTO % b->n_ports;
	if (p->count == 0 || p->event_mask & ~(MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD))
		return -EINVAL;
	if (p->count > PROFILES_EVS_PROFILE)
		return -E2BIG;
	if (p->min_active > p->count)
		return -EINVAL;
	return check_fields(b, p);
}

/* Room for the EVs, if there has to be other. */
static int make_room(
	struct profiles *b, struct ev_profile *p, const struct ev_profile *old, int mask)
{
	bool keep = old && old->mode == p->mode;
	uint32_t held = old ? old->count : 0;

	if (keep && old->count == p->count &&
		(p->mode == MRC_CTL_EV_MODE_EXP || !(mask & (FMT_ID | FIELDS_OP))))
		return 0;
	if (b->n_evs - held + p->count > PROFILES_EVS)
		return -E2BIG;
	p->entry = calloc(p->count, sizeof(*p->entry));
	p->drawn = false;
	if (!p->entry)
		return -EIO;
	for (uint32_t i = 0; keep && p->mode == MRC_CTL_EV_MODE_EXP && i < p->count && i < held;
		i++)
		p->entry[i] = old->entry[i];
	return 0;
}

static int check_entries(const struct ev_profile *p)
{
	struct ev_path path;

	for (uint32_t i = 0; i < p->count; i++) {
		if (!p->entry[i].set || ev_to_path(p, &p->entry[i].ev, (uint16_t)i, &path))
			return -EINVAL;
	}
	return 0;
}

/* All that has to be there before connections use it. */
static int make_ready(struct profiles *b, struct ev_profile *p)
{
	const struct fmt_profile *f = fmt_find(b, p->fmt_id);
	int ret;

	if ((p->p.have & (MIN_ACTIVE | EVENT_MASK)) != (MIN_ACTIVE | EVENT_MASK))
		return -EINVAL;
	p->fmt = (struct fmt_profile){0};
	if (p->p.have & FMT_ID) {
		if (!f || f->p.state != MRC_CTL_PROFILE_ONLINE)
			return -EINVAL;
		p->fmt = *f;
		ret = check_fields(b, p);
		if (ret)
			return ret;
	}
	if (p->mode == MRC_CTL_EV_MODE_EXP)
		return check_entries(p);
	if (p->drawn)
		return 0;
	ret = ev_draw(b, p, p->entry, p->count);
	p->drawn = !ret;
	return ret;
}

static void use_format(struct profiles *b, const struct ev_profile *p, int more)
{
	struct fmt_profile *f = p->p.have & FMT_ID ? fmt_find(b, p->fmt_id) : NULL;

	if (f)
		f->p.users += (unsigned)more;
}

static void forget(struct profiles *b, struct profile *p)
{
	const struct ev_profile *ev = (const struct ev_profile *)p;

	b->n_evs -= ev->count;
	free(ev->entry);
}

static void replace(struct profiles *b, const struct profile *draft, const struct profile *old)
{
	const struct ev_profile *p = (const struct ev_profile *)draft;
	const struct ev_profile *was = (const struct ev_profile *)old;
	bool is = draft->state == MRC_CTL_PROFILE_ONLINE;

	if (is != (old && old->state == MRC_CTL_PROFILE_ONLINE))
		use_format(b, p, is ? 1 : -1);
	b->n_evs += p->count - (was ? was->count : 0);
	if (was && was->entry != p->entry)
		free(was->entry);
}

static int modify(struct profiles *b, struct ev_profile *draft, const struct ev_profile *old,
	struct mrc_ctl_ev_profile_attr *attr, int mask)
{
	bool ready = draft->p.state == MRC_CTL_PROFILE_ONLINE &&
		     (!old || old->p.state != MRC_CTL_PROFILE_ONLINE || mask & FIELDS_OP);
	int ret = set(draft, attr, mask);

	if (!ret)
		ret = check(b, draft);
	if (!ret)
		ret = make_room(b, draft, old, mask);
	if (!ret && mask & EV_OP)
		ret = ev_op(
			b, draft, attr->ev_op.op, attr->ev_op.entries, &attr->ev_op.entry_count);
	return !ret && ready ? make_ready(b, draft) : ret;
}

static int change(
	struct profiles *b, struct profile *draft, const struct profile *old, void *arg, int mask)
{
	const struct ev_profile *was = (const struct ev_profile *)old;
	struct ev_profile *p = (struct ev_profile *)draft;
	struct mrc_ctl_ev_profile_attr *attr = arg;
	int ret;

	if (mask & MODE && attr->ev_mode != p->mode) {
		/* Fields are of a mode. */
		p->n_fields = 0;
		p->p.have &= ~FIELDS_OP;
	}
	ret = modify(b, p, was, attr, mask);
	if (ret && p->entry != (was ? was->entry : NULL))
		free(p->entry);
	return ret;
}

static const struct life_kind kind = {
	.known = LIFE_STATE | LIFE_CUR_STATE | OFFLINE | VENDOR_CFG,
	.offline = OFFLINE,
	.online = EVENT_MASK | EV_OP | FIELDS_OP,
	.full = -E2BIG,
	.size = sizeof(struct ev_profile),
	.list = offsetof(struct profiles, ev),
	.n = PROFILES_EV,
	.change = change,
	.replace = replace,
	.forget = forget,
};

int ev_modify(struct profiles *b, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask)
{
	if (id == 0 || (mask & EV_OP && mask & FIELDS_OP))
		return -EINVAL;
	return life_modify(&kind, b, id, attr, mask, attr->profile_state, attr->cur_profile_state);
}

/* The built-in profile: every connection draws EVs of its own. */
static const struct ev_profile built_in = {
	.p.state = MRC_CTL_PROFILE_ONLINE,
	.mode = MRC_CTL_EV_MODE_AUTO,
};

static int get_fields(const struct ev_profile *p, struct mrc_ctl_ev_profile_attr *attr)
{
	int room = attr->ev_fields_op.field_count;

	if (attr->ev_fields_op.op != MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS)
		return -EINVAL;
	attr->ev_fields_op.field_count = (int)p->n_fields;
	if (room < (int)p->n_fields)
		return -E2BIG;
	if (p->n_fields && !attr->ev_fields_op.fields)
		return -EINVAL;
	if (p->n_fields)
		memcpy(attr->ev_fields_op.fields, p->field, p->n_fields * sizeof(*p->field));
	return 0;
}

int ev_query(struct profiles *b, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask)
{
	struct ev_profile none = built_in,
			  *p = id == 0 ? &none : (struct ev_profile *)life_find(&kind, b, id);
	enum mrc_ctl_profile_state state;
	int ret = life_query(&kind, p ? &p->p : NULL, mask, &state);

	if (!ret && mask & EV_OP &&
		(mask & FIELDS_OP || attr->ev_op.op < MRC_CTL_EV_OP_QUERY_EV_STATE))
		ret = -EINVAL;
	if (!ret && mask & FIELDS_OP)
		ret = get_fields(p, attr);
	if (!ret && mask & EV_OP)
		ret = ev_op(b, p, attr->ev_op.op, attr->ev_op.entries, &attr->ev_op.entry_count);
	if (ret)
		return ret;
	if (mask & LIFE_STATE)
		attr->profile_state = state;
	if (mask & LIFE_CUR_STATE)
		attr->cur_profile_state = state;
	if (mask & MODE)
		attr->ev_mode = p->mode;
	if (mask & FMT_ID)
		attr->ev_fmt_profile_id = p->fmt_id;
	if (mask & COUNT)
		attr->ev_count = p->count;
	if (mask & MIN_ACTIVE)
		attr->ev_min_active = p->min_active;
	if (mask & EVENT_MASK)
		attr->ev_event_mask = p->event_mask;
	if (mask & VENDOR_CFG)
		memcpy(attr->vendor_cfg, p->p.vendor_cfg, sizeof(p->p.vendor_cfg));
	return 0;
}

int ev_get(struct profiles *b, uint64_t id, struct ev_profile **out)
{
	struct profile *p;
	int ret = life_get(&kind, b, id, &p);

	*out = (struct ev_profile *)p;
	return ret;
}

void ev_put(struct ev_profile *p)
{
	life_put(p ? &p->p : NULL);
}
