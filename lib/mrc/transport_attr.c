/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of queue pairs, as the transport and its users in other objects have them. */
#include "lib/mrc/transport.h"

enum { KNOWN_CAPS = RNIC_MRC_PEER_NO_TRIM_NACK | RNIC_MRC_DYNAMIC_MPR | RNIC_MRC_SERVICE_TIME };

struct rnic_mrc_attr rnic_mrc_defaults(void)
{
	return (struct rnic_mrc_attr){.mpr = RNIC_MRC_MPR_DEFAULT,
		.mpr_dest = RNIC_MRC_MPR_DEFAULT,
		.max_wimm = RNIC_MRC_WIMM_DEFAULT,
		.max_wimm_dest = RNIC_MRC_WIMM_DEFAULT,
		.timeout = MRC_TIMEOUT_DEFAULT,
		.linear_cnt = MRC_DFLT_linear_cnt,
		.exp_cnt = MRC_DFLT_exp_cnt};
}

static bool in_range(unsigned value, unsigned least, unsigned most)
{
	return value >= least && value <= most;
}

bool rnic_mrc_within_limits(const struct rnic_mrc_attr *a, unsigned mask)
{
	if ((mask & RNIC_MRC_MPR) && !in_range(a->mpr, 1, RNIC_MRC_MPR_LIMIT))
		return false;
	if ((mask & RNIC_MRC_MPR_DEST) && !in_range(a->mpr_dest, 1, RNIC_MRC_MPR_LIMIT))
		return false;
	if ((mask & RNIC_MRC_MAX_WIMM) && !in_range(a->max_wimm, 1, RNIC_MRC_WIMM_LIMIT))
		return false;
	if ((mask & RNIC_MRC_MAX_WIMM_DEST) && !in_range(a->max_wimm_dest, 1, RNIC_MRC_WIMM_LIMIT))
		return false;
	if ((mask & RNIC_MRC_TIMEOUT) && a->timeout > MRC_TIMEOUT_MAX)
		return false;
	if ((mask & RNIC_MRC_RETRY) &&
		(a->linear_cnt > MRC_LINEAR_MAX || a->exp_cnt > MRC_EXP_ENDLESS))
		return false;
	return !(mask & RNIC_MRC_CAPS) || !(a->caps & ~(unsigned)KNOWN_CAPS);
}
