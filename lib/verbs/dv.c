/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct verbs. */
#include <errno.h>

#include "lib/verbs/internal.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT bool inc_dv_is_supported(const struct ibv_context *context)
{
	return iv_mine(context);
}

EXPORT int inc_dv_qp_skip(struct ibv_qp *base, enum inc_dv_dir dir, uint32_t from, uint32_t count)
{
	struct iv_qp *qp = iv_qp(base);
	struct iv_dev *dev;
	int ret;

	if (!iv_mine(base->context))
		return iv_errno(EOPNOTSUPP);
	if (dir != INC_DV_SEND && dir != INC_DV_RECV)
		return iv_errno(EINVAL);
	dev = iv_dev(base->context);
	/* Ordered among the posts of other threads. */
	pthread_mutex_lock(&qp->sq_lock);
	iv_own(dev);
	ret = rnic_qp_skip(qp->qp, dir == INC_DV_SEND ? RNIC_SEND : RNIC_RECV, from, count);
	iv_disown(dev);
	pthread_mutex_unlock(&qp->sq_lock);
	return ret ? iv_errno(ret) : 0;
}

EXPORT struct ibv_qp *inc_dv_create_qp(
	struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint32_t flags)
{
	if (!iv_mine(pd->context) || flags != INC_DV_QP_SELECTIVE) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return iv_create_qp_as(pd, attr, &rnic_sr);
}

EXPORT int inc_dv_query_qp_stats(struct ibv_qp *base, struct inc_dv_qp_stats *stats)
{
	struct rnic_qp_stats s;
	struct iv_dev *dev;

	if (!iv_mine(base->context))
		return iv_errno(EOPNOTSUPP);
	dev = iv_dev(base->context);
	iv_own(dev);
	rnic_qp_stats(iv_qp(base)->qp, &s);
	iv_disown(dev);
	*stats = (struct inc_dv_qp_stats){
		.sq_una = s.sq_una,
		.sq_next = s.sq_next,
		.epsn = s.epsn,
		.retries_left = s.retries,
		.rnr_retries_left = s.rnr_retries,
		.retransmits = s.retransmits,
		.timeouts = s.timeouts,
	};
	return 0;
}
