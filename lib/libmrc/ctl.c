/* SPDX-License-Identifier: BSD-3-Clause */
/* The controller's calls on profiles; port.c has those on ports. */
#include <errno.h>

#include "lib/libmrc/internal.h"

/* One call into the book. */
#define WITH_BOOK(ctx, attr, call)                     \
	do {                                           \
		int ret_ = mrc_may_control(ctx, attr); \
                                                       \
		if (ret_)                              \
			return mrc_fail(ret_);         \
		pthread_mutex_lock(&ctx->dev->note);   \
		ret_ = call;                           \
		pthread_mutex_unlock(&ctx->dev->note); \
		return ret_ ? mrc_fail(ret_) : 0;      \
	} while (0)

API int mrc_ctl_modify_ev_fmt_profile(
	struct mrc_context *ctx, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr, int mask)
{
	WITH_BOOK(ctx, attr, fmt_modify(&ctx->dev->book, id, attr, mask));
}

API int mrc_ctl_query_ev_fmt_profile(
	struct mrc_context *ctx, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr, int mask)
{
	WITH_BOOK(ctx, attr, fmt_query(&ctx->dev->book, id, attr, mask));
}

API int mrc_ctl_query_ev_profile(
	struct mrc_context *ctx, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask)
{
	WITH_BOOK(ctx, attr, ev_query(&ctx->dev->book, id, attr, mask));
}

API int mrc_ctl_modify_cc_profile(
	struct mrc_context *ctx, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask)
{
	WITH_BOOK(ctx, attr, cc_modify(&ctx->dev->book, id, attr, mask));
}

API int mrc_ctl_query_cc_profile(
	struct mrc_context *ctx, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask)
{
	WITH_BOOK(ctx, attr, cc_query(&ctx->dev->book, id, attr, mask));
}

/* Connections hear at once what has become denied, also by the entries before one that failed. */
API int mrc_ctl_modify_ev_profile(
	struct mrc_context *ctx, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask)
{
	struct ev_profile *used = NULL;
	struct mrc_dev *dev;
	int ret = mrc_may_control(ctx, attr);

	if (ret)
		return mrc_fail(ret);
	dev = ctx->dev;
	pthread_mutex_lock(&dev->lock);
	pthread_mutex_lock(&dev->note);
	ret = ev_modify(&dev->book, id, attr, mask);
	if (mask & MRC_CTL_EV_PROFILE_EV_OP && ev_get(&dev->book, id, &used) == 0 && used &&
		used->p.users == 1) {
		ev_put(used); /* nobody else */
		used = NULL;
	}
	pthread_mutex_unlock(&dev->note);
	if (used) {
		mrc_qp_deny(dev, used);
		pthread_mutex_lock(&dev->note);
		ev_put(used);
		pthread_mutex_unlock(&dev->note);
	}
	pthread_mutex_unlock(&dev->lock);
	return ret ? mrc_fail(ret) : 0;
}
