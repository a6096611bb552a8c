/* SPDX-License-Identifier: BSD-3-Clause */
/* Hints: kept and given back. Nothing here looks at them yet. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/libmrc/internal.h"

enum {
	ALL = MRC_QP_HINT_NUM_QPS_PER_PEER | MRC_QP_HINT_NUM_SEND_PEERS |
	      MRC_QP_HINT_NUM_REMOTE_RECV_PEERS | MRC_QP_HINT_VENDOR_CFG
};

static bool valid(const struct mrc_qp_hint_attr *a, int mask)
{
	return !(mask & ~ALL) &&
	       (!(mask & MRC_QP_HINT_NUM_QPS_PER_PEER) || a->num_qps_per_peer >= 0) &&
	       (!(mask & MRC_QP_HINT_NUM_SEND_PEERS) || a->num_send_peers >= 0) &&
	       (!(mask & MRC_QP_HINT_NUM_REMOTE_RECV_PEERS) || a->num_remote_recv_peers >= 0);
}

static void copy(struct mrc_qp_hint_attr *to, const struct mrc_qp_hint_attr *from, int mask)
{
	if (mask & MRC_QP_HINT_NUM_QPS_PER_PEER)
		to->num_qps_per_peer = from->num_qps_per_peer;
	if (mask & MRC_QP_HINT_NUM_SEND_PEERS)
		to->num_send_peers = from->num_send_peers;
	if (mask & MRC_QP_HINT_NUM_REMOTE_RECV_PEERS)
		to->num_remote_recv_peers = from->num_remote_recv_peers;
	if (mask & MRC_QP_HINT_VENDOR_CFG)
		memcpy(to->vendor_cfg, from->vendor_cfg, sizeof(to->vendor_cfg));
}

API struct mrc_qp_hint *mrc_create_qp_hint(
	struct mrc_context *ctx, struct mrc_qp_hint_init_attr *init)
{
	struct mrc_qp_hint *hint;

	if (!ctx || !init || !valid(&init->attr, ALL)) {
		errno = EINVAL;
		return NULL;
	}
	if (atomic_fetch_add(&ctx->hints, 1) >= MAX_HINTS) {
		atomic_fetch_sub(&ctx->hints, 1);
		errno = ENOMEM;
		return NULL;
	}
	hint = calloc(1, sizeof(*hint));
	if (!hint) {
		atomic_fetch_sub(&ctx->hints, 1);
		return NULL;
	}
	hint->ctx = ctx;
	hint->attr = init->attr;
	atomic_fetch_add(&ctx->children, 1);
	return hint;
}

API int mrc_destroy_qp_hint(struct mrc_qp_hint *hint)
{
	struct mrc_context *ctx;
	unsigned users;

	if (!hint)
		return mrc_fail(EINVAL);
	ctx = hint->ctx;
	pthread_mutex_lock(&ctx->dev->note);
	users = hint->users;
	pthread_mutex_unlock(&ctx->dev->note);
	if (users)
		return mrc_fail(EBUSY);
	free(hint);
	atomic_fetch_sub(&ctx->hints, 1);
	atomic_fetch_sub(&ctx->children, 1);
	return 0;
}

API int mrc_query_qp_hint(struct mrc_qp_hint *hint, struct mrc_qp_hint_attr *attr, int mask)
{
	if (!hint || !attr || mask & ~ALL)
		return mrc_fail(EINVAL);
	pthread_mutex_lock(&hint->ctx->dev->note);
	copy(attr, &hint->attr, mask);
	pthread_mutex_unlock(&hint->ctx->dev->note);
	return 0;
}

API int mrc_modify_qp_hint(struct mrc_qp_hint *hint, struct mrc_qp_hint_attr *attr, int mask)
{
	if (!hint || !attr || !valid(attr, mask))
		return mrc_fail(EINVAL);
	pthread_mutex_lock(&hint->ctx->dev->note);
	copy(&hint->attr, attr, mask);
	pthread_mutex_unlock(&hint->ctx->dev->note);
	return 0;
}

int mrc_hint_use(struct mrc_context *ctx, struct mrc_qp_hint *hint)
{
	if (!hint)
		return 0;
	if (hint->ctx != ctx)
		return EINVAL;
	pthread_mutex_lock(&ctx->dev->note);
	hint->users++;
	pthread_mutex_unlock(&ctx->dev->note);
	return 0;
}

void mrc_hint_drop(struct mrc_qp_hint *hint)
{
	if (!hint)
		return;
	pthread_mutex_lock(&hint->ctx->dev->note);
	hint->users--;
	pthread_mutex_unlock(&hint->ctx->dev->note);
}
