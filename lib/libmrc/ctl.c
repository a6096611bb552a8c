/* SPDX-License-Identifier: BSD-3-Clause */
/* The controller's calls: profiles and ports. */
#include <errno.h>

#include "lib/libmrc/internal.h"

static int may(const struct mrc_context *ctx, const void *attr)
{
	if (!ctx || !attr)
		return EINVAL;
	return mrc_admin() ? 0 : EPERM;
}

/* One call into the book. */
#define WITH_BOOK(ctx, attr, call)                     \
	do {                                           \
		int ret_ = may(ctx, attr);             \
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
	int ret = may(ctx, attr);

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

/* ---- ports ---- */

static int check_port(const struct mrc_context *ctx, uint8_t port, const void *attr, int mask)
{
	int ret = may(ctx, attr);

	if (ret)
		return ret;
	return port < 1 || port > ctx->dev->book.n_ports || mask & ~MRC_CTL_PORT_ADMIN_STATE
		       ? EINVAL
		       : 0;
}

API int mrc_ctl_query_port(
	struct mrc_context *ctx, uint8_t port, struct mrc_ctl_port_attr *attr, int mask)
{
	int ret = check_port(ctx, port, attr, mask);

	if (ret)
		return mrc_fail(ret);
	pthread_mutex_lock(&ctx->dev->lock);
	if (mask)
		attr->port_admin_state = ctx->dev->admin >> (port - 1) & 1
						 ? MRC_CTL_PORT_ADMIN_ENABLED
						 : MRC_CTL_PORT_ADMIN_DISABLED;
	pthread_mutex_unlock(&ctx->dev->lock);
	return 0;
}

API int mrc_ctl_modify_port(
	struct mrc_context *ctx, uint8_t port, struct mrc_ctl_port_attr *attr, int mask)
{
	int ret = check_port(ctx, port, attr, mask);
	struct mrc_dev *dev;
	uint8_t admin, bit;

	if (ret)
		return mrc_fail(ret);
	if (!mask)
		return 0;
	if (attr->port_admin_state != MRC_CTL_PORT_ADMIN_ENABLED &&
		attr->port_admin_state != MRC_CTL_PORT_ADMIN_DISABLED)
		return mrc_fail(EINVAL);
	dev = ctx->dev;
	bit = (uint8_t)(1u << (port - 1));
	pthread_mutex_lock(&dev->lock);
	admin = attr->port_admin_state == MRC_CTL_PORT_ADMIN_ENABLED ? dev->admin | bit
								     : dev->admin & (uint8_t)~bit;
	ret = dev->dv->set_ports(ctx->verbs, admin);
	if (!ret)
		dev->admin = admin;
	pthread_mutex_unlock(&dev->lock);
	return ret ? mrc_fail(EIO) : 0;
}
