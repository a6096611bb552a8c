/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct verbs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/uc_mcast.h"
#include "lib/verbs/internal.h"

/* Of INC_DV_QP_WORKER. */
#define WORKER_MASK UINT32_C(0xff00)
enum { WORKER_SHIFT = 8 };

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
	const unsigned worker = (flags & WORKER_MASK) >> WORKER_SHIFT;

	if (iv_mine(pd->context) && flags == INC_DV_QP_SELECTIVE)
		return iv_create_qp_as(pd, attr, &rnic_sr, 0);
	if (iv_mine(pd->context) && (flags & ~WORKER_MASK) == INC_DV_QP_MULTICAST)
		return iv_create_qp_as(pd, attr, &rnic_uc_mcast, worker);
	if (iv_mine(pd->context) && worker != 0 && (flags & ~WORKER_MASK) == 0)
		return iv_create_qp_as(pd, attr, NULL, worker);
	errno = EOPNOTSUPP;
	return NULL;
}

EXPORT unsigned inc_dv_receive_workers(struct ibv_context *context)
{
	return iv_mine(context) ? rnic_n_workers(iv_dev(context)->rnic) : 0;
}

static int open_window(struct iv_qp *qp, const struct inc_dv_mcast_window *w)
{
	struct rnic_mcast_writer *writer;
	struct rnic_mcast_window window = {.key = w->key,
		.lkey = w->mr->lkey,
		.addr = (uintptr_t)w->addr,
		.len = w->length,
		.number_mask = w->number_mask,
		.chunk = w->chunk,
		.n_writers = w->n_writers};
	int ret;

	if (w->n_writers > RNIC_MAX_WRITERS)
		return -EINVAL;
	if (w->chunk > 0 && w->marks)
		window.marks = (struct rnic_mcast_marks){.bit = w->marks->bit,
			.n = w->marks->n_bits,
			.first = w->marks->mark_first,
			.expect = w->marks->expect,
			.again = &w->marks->again};
	window.writer = writer = calloc(w->n_writers, sizeof(*writer));
	if (w->n_writers > 0 && !writer)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n_writers; i++) {
		const struct inc_dv_mcast_writer *from = &w->writer[i];

		writer[i] = (struct rnic_mcast_writer){.qpn = from->qp_num,
			.va = from->offset,
			.len = from->length,
			.first = from->first};
		memcpy(writer[i].ip.b, from->gid.raw, sizeof(writer[i].ip.b));
	}
	ret = rnic_qp_mcast_window(qp->qp, &window);
	free(writer);
	return ret;
}

EXPORT int inc_dv_qp_mcast_window(struct ibv_qp *base, const struct inc_dv_mcast_window *window)
{
	struct iv_dev *dev;
	int ret;

	if (!iv_mine(base->context))
		return iv_errno(EOPNOTSUPP);
	dev = iv_dev(base->context);
	iv_own(dev);
	ret = window ? open_window(iv_qp(base), window)
		     : rnic_qp_mcast_window(iv_qp(base)->qp, NULL);
	iv_disown(dev);
	return ret ? iv_errno(ret) : 0;
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
