/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles and multicast. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/verbs/exports.h"
#include "lib/verbs/internal.h"

enum {
	RESOLVE_NAP_NS = 50 * 1000,
	NO_VLAN = 0xffff,
};

/* Runs try, which may ask the network, until it does not say EAGAIN any more. */
static int resolve(
	struct iv_dev *dev, int (*try)(struct iv_dev *dev, void *arg, uint64_t now), void *arg)
{
	const uint64_t start = dev->ops->now(dev->port);

	for (;;) {
		uint64_t now;
		int ret;

		iv_own(dev);
		ret = try(dev, arg, dev->ops->now(dev->port));
		if (ret == -EAGAIN && !dev->dead)
			iv_turn(dev);
		iv_disown(dev);
		if (ret != -EAGAIN)
			return ret;
		now = dev->ops->now(dev->port);
		if (now - start > IV_RESOLVE_NS)
			return -ETIMEDOUT;
		dev->ops->wait(dev->port, now + RESOLVE_NAP_NS);
	}
}

struct try_ah {
	struct iv_ah *ah;
	struct rnic_pd *pd;
	const struct ibv_ah_attr *attr;
};

static int try_ah(struct iv_dev *dev, void *arg, uint64_t now)
{
	struct try_ah *t = arg;

	(void)dev;
	return rnic_ah_create(t->pd, t->attr, now, &t->ah->ah);
}

struct ibv_ah *iv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct iv_ctx *ctx = iv_ctx(pd->context);
	struct iv_ah *ah = calloc(1, sizeof(*ah));
	struct try_ah t = {ah, ((struct iv_pd *)pd)->pd, attr};
	int ret;

	if (!ah)
		return NULL;
	ret = ctx->dev->iwarp ? -EOPNOTSUPP : resolve(ctx->dev, try_ah, &t);
	if (ret) {
		free(ah);
		iv_errno(ret);
		return NULL;
	}
	ah->base.context = pd->context;
	ah->base.pd = pd;
	ah->base.handle = iv_handle(ctx);
	pthread_mutex_lock(&ctx->lock);
	LIST_INSERT_HEAD(&ctx->ahs, ah, link);
	pthread_mutex_unlock(&ctx->lock);
	return &ah->base;
}

void iv_ah_free(struct iv_ah *ah)
{
	struct iv_ctx *ctx = iv_ctx(ah->base.context);

	iv_own(ctx->dev);
	rnic_ah_destroy(ah->ah);
	iv_disown(ctx->dev);
	pthread_mutex_lock(&ctx->lock);
	LIST_REMOVE(ah, link);
	pthread_mutex_unlock(&ctx->lock);
	free(ah);
}

int iv_destroy_ah(struct ibv_ah *ah)
{
	iv_ah_free((struct iv_ah *)ah);
	return 0;
}

/* ---- the way back to a sender ---- */

/* The 40 bytes in front of a datagram: an IPv6 header, or an IPv4 one in the second half. */
static int addresses(
	const struct ibv_grh *grh, struct wire_ip *src, struct wire_ip *dst, uint8_t *traffic_class)
{
	const uint8_t *p = (const uint8_t *)grh, *ip4 = p + 20;
	uint32_t addr[2];

	if (p[0] >> 4 == 6) {
		memcpy(src->b, p + 8, 16);
		memcpy(dst->b, p + 24, 16);
		*traffic_class = (uint8_t)(p[0] << 4 | p[1] >> 4);
		return 0;
	}
	if (ip4[0] != 0x45 || ip_sum(ip4, 20, 0) != 0xffff)
		return -EINVAL;
	memcpy(addr, ip4 + 12, sizeof(addr));
	*src = wire_ip_from4(ntohl(addr[0]));
	*dst = wire_ip_from4(ntohl(addr[1]));
	*traffic_class = ip4[1];
	return 0;
}

/* Index of the GID that the datagram was for; of a multicast group, one of the sender's family. */
static int gid_for(const struct rnic *rnic, unsigned port, const struct wire_ip *src,
	const struct wire_ip *dst)
{
	const bool local = src->b[0] == 0xfe && (src->b[1] & 0xc0) == 0x80;
	int family = -1;
	struct wire_ip ip;

	for (unsigned i = 0; rnic_gid(rnic, port, i, &ip) == 0; i++) {
		if (wire_ip_eq(&ip, dst))
			return (int)i;
		if (wire_ip_is4(&ip) == wire_ip_is4(src) && (family < 0 || (family == 0 && !local)))
			family = (int)i;
	}
	return family;
}

int iv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
	struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct wire_ip src, dst;
	int gid = -1;

	memset(attr, 0, sizeof(*attr));
	if (iv_has_port(context, port) && (wc->wc_flags & IBV_WC_GRH) &&
		addresses(grh, &src, &dst, &attr->grh.traffic_class) == 0)
		gid = gid_for(iv_dev(context)->rnic, port - 1u, &src, &dst);
	if (gid < 0) {
		errno = EINVAL;
		return -1;
	}
	attr->is_global = 1;
	attr->port_num = port;
	attr->sl = wc->sl;
	memcpy(attr->grh.dgid.raw, src.b, sizeof(src.b));
	attr->grh.sgid_index = (uint8_t)gid;
	attr->grh.hop_limit = 0xff;
	/* What the network marked is not to be sent back. */
	attr->grh.traffic_class &= (uint8_t)~IP_ECN_MASK;
	return 0;
}

struct ibv_ah *iv_create_ah_from_wc(
	struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr;

	return iv_init_ah_from_wc(pd->context, port, wc, grh, &attr) ? NULL
								     : iv_create_ah(pd, &attr);
}

struct try_mac {
	unsigned port;
	struct wire_ip ip;
	uint8_t *mac;
};

static int try_mac(struct iv_dev *dev, void *arg, uint64_t now)
{
	struct try_mac *t = arg;

	return rnic_resolve(dev->rnic, t->port, &t->ip, t->mac, now);
}

int iv_resolve_eth_l2_from_gid(
	struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t mac[6], uint16_t *vid)
{
	struct try_mac t = {.port = attr->port_num - 1u, .mac = mac};
	int ret;

	memcpy(t.ip.b, attr->grh.dgid.raw, sizeof(t.ip.b));
	ret = attr->is_global ? resolve(iv_dev(context), try_mac, &t) : -EINVAL;
	if (ret)
		return iv_errno(ret);
	*vid = NO_VLAN;
	return 0;
}

/* ---- multicast ---- */

static int change_group(struct ibv_qp *base, const union ibv_gid *gid,
	int (*change)(struct rnic_qp *qp, const struct wire_ip *group))
{
	struct iv_dev *dev = iv_dev(base->context);
	struct wire_ip group;
	int ret;

	memcpy(group.b, gid->raw, sizeof(group.b));
	iv_own(dev);
	ret = change(iv_qp(base)->qp, &group);
	iv_disown(dev);
	return ret ? iv_errno(ret) : 0;
}

int iv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return change_group(qp, gid, rnic_qp_attach_mcast);
}

int iv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return change_group(qp, gid, rnic_qp_detach_mcast);
}
