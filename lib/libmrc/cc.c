/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/libmrc/profile.h"

enum {
	ALL = MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_CUR_STATE |
	      MRC_CTL_CC_PROFILE_ALGORITHM | MRC_CTL_CC_PROFILE_CONFIG |
	      MRC_CTL_CC_PROFILE_VENDOR_CFG
};

static const struct life_rules rules = {
	.known = ALL,
	.offline = MRC_CTL_CC_PROFILE_ALGORITHM | MRC_CTL_CC_PROFILE_CONFIG,
	.online = MRC_CTL_CC_PROFILE_CONFIG,
};

static const char algorithm[] = NSCC_NAME;

static struct cc_profile **slot(struct profiles *b, uint64_t id)
{
	struct cc_profile **empty = NULL;

	for (unsigned i = 0; i < PROFILES_CC; i++) {
		if (b->cc[i] && b->cc[i]->p.id == id)
			return &b->cc[i];
		if (!b->cc[i] && !empty)
			empty = &b->cc[i];
	}
	return empty;
}

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

int cc_modify(struct profiles *b, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask)
{
	struct cc_profile **at = slot(b, id), draft = {.p.id = id};
	enum mrc_ctl_profile_state to;
	int ret;

	if (id == 0)
		return -EINVAL;
	ret = life_modify(&rules, at && *at ? &(*at)->p : NULL, mask, attr->profile_state,
		attr->cur_profile_state, &to);
	if (ret)
		return ret;
	if (to == MRC_CTL_PROFILE_INIT) {
		if (at) {
			free(*at);
			*at = NULL;
		}
		return 0;
	}
	if (!at)
		return -EIO;
	if (*at)
		draft = **at;
	ret = set(&draft, attr, mask);
	if (ret)
		return ret;
	if (!(draft.p.have & MRC_CTL_CC_PROFILE_ALGORITHM) ||
		(to == MRC_CTL_PROFILE_ONLINE && !draft.none &&
			!(draft.p.have & MRC_CTL_CC_PROFILE_CONFIG)))
		return -EINVAL;
	draft.p.state = to;
	if (!*at)
		*at = malloc(sizeof(**at));
	if (!*at)
		return -EIO;
	**at = draft;
	return 0;
}

/* The built-in profile is one of zeros: everything is derived. */
static const struct cc_profile built_in = {.p.state = MRC_CTL_PROFILE_ONLINE};

int cc_query(struct profiles *b, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask)
{
	struct cc_profile **at = slot(b, id);
	const struct cc_profile *c = id == 0 ? &built_in : at ? *at : NULL;
	enum mrc_ctl_profile_state state;
	int ret = life_query(&rules, c ? &c->p : NULL, mask, &state);

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
	struct cc_profile **at = slot(b, id);

	*out = NULL;
	if (id == 0)
		return 0;
	if (!at || !*at || (*at)->p.state != MRC_CTL_PROFILE_ONLINE)
		return -EINVAL;
	*out = *at;
	(*out)->p.users++;
	return 0;
}

void cc_put(struct cc_profile *c)
{
	if (c)
		c->p.users--;
}
