/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters of congestion control. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "lib/libmrc/profile.h"

enum {
	ALL = MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_CUR_STATE |
	      MRC_CTL_CC_PROFILE_ALGORITHM | MRC_CTL_CC_PROFILE_CONFIG |
	      MRC_CTL_CC_PROFILE_VENDOR_CFG
};

static const char algorithm[] = NSCC_NAME;

struct nscc_config cc_nscc(const struct mrc_ctl_cc_nscc_cfg *c)
{
	return (struct nscc_config){
		.disable_qa = c->disable_qa,
		.adjust_bytes = c->adjust_bytes_threshold,
		.adjust_period_ns = c->adjust_period_threshold,
		.base_rtt_ns = c->base_rtt,
		.eta = c->eta,
		.fi = c->fi,
		.fi_scale = c->fi_scale,
		.gamma = c->gamma,
		.max_md_jump = c->max_md_jump,
		.max_cwnd = c->max_cwnd,
		.qa_gate = c->qa_gate,
		.qa_threshold_ns = c->qa_threshold,
		.target_ns = c->target_delay,
	};
}

static int set(struct cc_profile *c, const struct mrc_ctl_cc_profile_attr *attr, int mask)
{
	/* What a number has to be does not depend on the link, but that a window holds a packet. */
	static const struct nscc_link link = {.bits_per_s = 1000000000, .mtu = 1024};

	if (mask & MRC_CTL_CC_PROFILE_ALGORITHM) {
		if (attr->algorithm && strcmp(attr->algorithm, algorithm) != 0)
			return -EINVAL;
		c->none = !attr->algorithm;
	}
	if (mask & MRC_CTL_CC_PROFILE_CONFIG) {
		struct nscc_config config;
		struct nscc cc;

		if (!attr->cc_config)
			return -EINVAL;
		memcpy(&c->config, attr->cc_config, sizeof(c->config));
		config = cc_nscc(&c->config);
		if (nscc_init(&cc, &config, &link))
			return -EINVAL;
	}
	if (mask & MRC_CTL_CC_PROFILE_VENDOR_CFG)
		memcpy(c->p.vendor_cfg, attr->vendor_cfg, sizeof(c->p.vendor_cfg));
	c->p.have |= mask;
	return 0;
}

static int change(
	struct profiles *b, struct profile *draft, const struct profile *old, void *attr, int mask)
{
	struct cc_profile *c = (struct cc_profile *)draft;
	int ret = set(c, attr, mask);

	(void)b, (void)old;
	if (ret)
		return ret;
	return !(c->p.have & MRC_CTL_CC_PROFILE_ALGORITHM) ||
			       (c->p.state == MRC_CTL_PROFILE_ONLINE && !c->none &&
				       !(c->p.have & MRC_CTL_CC_PROFILE_CONFIG))
		       ? -EINVAL
		       : 0;
}

static const struct life_kind kind = {
	.known = ALL,
	.offline = MRC_CTL_CC_PROFILE_ALGORITHM | MRC_CTL_CC_PROFILE_CONFIG,
	.online = MRC_CTL_CC_PROFILE_CONFIG,
	.full = -EIO,
	.size = sizeof(struct cc_profile),
	.list = offsetof(struct profiles, cc),
	.n = PROFILES_CC,
	.change = change,
};

int cc_modify(struct profiles *b, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask)
{
	if (id == 0)
		return -EINVAL;
	return life_modify(&kind, b, id, attr, mask, attr->profile_state, attr->cur_profile_state);
}

/* The built-in profile is one of zeros: everything is derived. */
static const struct cc_profile built_in = {.p.state = MRC_CTL_PROFILE_ONLINE};

int cc_query(struct profiles *b, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask)
{
	const struct cc_profile *c =
		id == 0 ? &built_in : (const struct cc_profile *)life_find(&kind, b, id);
	enum mrc_ctl_profile_state state;
	int ret = life_query(&kind, c ? &c->p : NULL, mask, &state);

	if (ret)
		return ret;
	if (mask & MRC_CTL_CC_PROFILE_STATE)
		attr->profile_state = state;
	if (mask & MRC_CTL_CC_PROFILE_CUR_STATE)
		attr->cur_profile_state = state;
	if (mask & MRC_CTL_CC_PROFILE_ALGORITHM)
		attr->algorithm = c->none ? NULL : algorithm;
	if (mask & MRC_CTL_CC_PROFILE_CONFIG)
		attr->cc_config = &c->config;
	if (mask & MRC_CTL_CC_PROFILE_VENDOR_CFG)
		memcpy(attr->vendor_cfg, c->p.vendor_cfg, sizeof(c->p.vendor_cfg));
	return 0;
}

int cc_get(struct profiles *b, uint64_t id, struct cc_profile **out)
{
	struct profile *p;
	int ret = life_get(&kind, b, id, &p);

	*out = (struct cc_profile *)p;
	return ret;
}

void cc_put(struct cc_profile *c)
{
	life_put(c ? &c->p : NULL);
}
