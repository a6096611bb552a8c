/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats of EVs. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "lib/libmrc/profile.h"

enum {
	ALL = MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_CUR_STATE |
	      MRC_CTL_EV_FMT_PROFILE_MODE | MRC_CTL_EV_FMT_PROFILE_OP | MRC_CTL_EV_FMT_VENDOR_CFG
};

/* Bits that a packet has room for; 0: no such mode. */
unsigned fmt_width(enum mrc_ctl_ev_fmt_mode mode)
{
	switch (mode) {
	case MRC_CTL_EV_FMT_MODE_UDP:
		return 16;
	case MRC_CTL_EV_FMT_MODE_STEV:
		return 32;
	case MRC_CTL_EV_FMT_MODE_SRV6:
		return 8 * MRC_CTL_EV_MAX_BYTES;
	default:
		return 0;
	}
}

static int set_fields(struct fmt_profile *f, const struct mrc_ctl_ev_fmt_profile_attr *attr)
{
	int n = attr->ev_fmt_op.fmt_field_count;

	if (attr->ev_fmt_op.op != MRC_CTL_EV_FMT_OP_MODIFY_FIELDS || n < 1 ||
		!attr->ev_fmt_op.fmt_fields)
		return -EINVAL;
	if (n > PROFILES_FIELDS)
		return -E2BIG;
	f->n_fields = (unsigned)n;
	for (int i = 0; i < n; i++) {
		f->width[i] = attr->ev_fmt_op.fmt_fields[i].width;
		if (f->width[i] == 0)
			return -EINVAL;
	}
	return 0;
}

/* Whether what is there makes sense together. */
static int check(const struct fmt_profile *f)
{
	unsigned bits = 0;

	if (!(f->p.have & MRC_CTL_EV_FMT_PROFILE_MODE) || fmt_width(f->mode) == 0)
		return -EINVAL;
	if (f->p.state == MRC_CTL_PROFILE_ONLINE && !(f->p.have & MRC_CTL_EV_FMT_PROFILE_OP))
		return -EINVAL;
	for (unsigned i = 0; i < f->n_fields; i++)
		bits += f->width[i];
	return bits > fmt_width(f->mode) ? -E2BIG : 0;
}

static int change(
	struct profiles *b, struct profile *draft, const struct profile *old, void *arg, int mask)
{
	const struct mrc_ctl_ev_fmt_profile_attr *attr = arg;
	struct fmt_profile *f = (struct fmt_profile *)draft;
	int ret = 0;

	(void)b, (void)old;
	if (mask & MRC_CTL_EV_FMT_PROFILE_MODE)
		f->mode = attr->ev_fmt_mode;
	if (mask & MRC_CTL_EV_FMT_VENDOR_CFG)
		memcpy(f->p.vendor_cfg, attr->vendor_cfg, sizeof(f->p.vendor_cfg));
	if (mask & MRC_CTL_EV_FMT_PROFILE_OP)
		ret = set_fields(f, attr);
	f->p.have |= mask;
	return ret ? ret : check(f);
}

static const struct life_kind kind = {
	.known = ALL,
	.offline = MRC_CTL_EV_FMT_PROFILE_MODE | MRC_CTL_EV_FMT_PROFILE_OP,
	.full = -E2BIG,
	.size = sizeof(struct fmt_profile),
	.list = offsetof(struct profiles, fmt),
	.n = PROFILES_FMT,
	.change = change,
};

struct fmt_profile *fmt_find(struct profiles *b, uint64_t id)
{
	return (struct fmt_profile *)life_find(&kind, b, id);
}

int fmt_modify(struct profiles *b, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr, int mask)
{
	return life_modify(&kind, b, id, attr, mask, attr->profile_state, attr->cur_profile_state);
}

static int get_fields(const struct fmt_profile *f, struct mrc_ctl_ev_fmt_profile_attr *attr)
{
	int room = attr->ev_fmt_op.fmt_field_count;

	if (attr->ev_fmt_op.op != MRC_CTL_EV_FMT_OP_QUERY_FIELDS)
		return -EINVAL;
	attr->ev_fmt_op.fmt_field_count = (int)f->n_fields;
	if (room < (int)f->n_fields)
		return -E2BIG;
	if (f->n_fields && !attr->ev_fmt_op.fmt_fields)
		return -EINVAL;
	for (unsigned i = 0; i < f->n_fields; i++)
		attr->ev_fmt_op.fmt_fields[i].width = f->width[i];
	return 0;
}

int fmt_query(struct profiles *b, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr, int mask)
{
	const struct fmt_profile *f = fmt_find(b, id);
	enum mrc_ctl_profile_state state;
	int ret = life_query(&kind, f ? &f->p : NULL, mask, &state);

	if (ret)
		return ret;
	if (mask & MRC_CTL_EV_FMT_PROFILE_OP && (ret = get_fields(f, attr)))
		return ret;
	if (mask & MRC_CTL_EV_FMT_PROFILE_STATE)
		attr->profile_state = state;
	if (mask & MRC_CTL_EV_FMT_PROFILE_CUR_STATE)
		attr->cur_profile_state = state;
	if (mask & MRC_CTL_EV_FMT_PROFILE_MODE)
		attr->ev_fmt_mode = f->mode;
	if (mask & MRC_CTL_EV_FMT_VENDOR_CFG)
		memcpy(attr->vendor_cfg, f->p.vendor_cfg, sizeof(f->p.vendor_cfg));
	return 0;
}
