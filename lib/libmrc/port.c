/* SPDX-License-Identifier: BSD-3-Clause */
/* The controller's calls on ports: planes. */
#include <errno.h>

#include "lib/libmrc/internal.h"

static int check_port(const struct mrc_context *ctx, uint8_t port, const void *attr, int mask)
{
	int ret = mrc_may_control(ctx, attr);

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
