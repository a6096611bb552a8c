/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups of datagram IDs: no subnet manager has to be asked, so joining is attaching. */
#include <errno.h>
#include <stdlib.h>

#include "lib/verbs/cm_exports.h"
#include "lib/verbs/cm_internal.h"
#include "lib/verbs/exports.h"

enum { MULTICAST_QPN = 0xffffff };

static void fill_gid(const struct wire_ip *group, union ibv_gid *gid)
{
	memcpy(gid->raw, group->b, sizeof(gid->raw));
}

static int join(struct iv_id *id, const struct sockaddr *addr, void *context)
{
	struct iv_mc *mc;
	struct iv_cm_event *event;
	struct iv_cm_dev *cdev;
	uint16_t port;
	struct wire_ip ip;
	int ret = iv_to_ip(addr, &ip, &port);

	if (ret || !iv_id_ud(id) || !iv_is_group(&ip))
		return ret ? ret : -EINVAL;
	ret = iv_cm_get(id, &cdev);
	if (ret)
		return ret;
	iv_cm_put(cdev); /* nothing more of it is wanted */
	mc = calloc(1, sizeof(*mc));
	event = iv_cm_event_new(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	if (!mc || !event) {
		free(mc);
		free(event);
		return -ENOMEM;
	}
	mc->group = ip;
	event->base.param.ud.private_data = mc->context = context;
	event->base.param.ud.qp_num = MULTICAST_QPN;
	event->base.param.ud.qkey = id->qkey;
	iv_id_ah(id, &event->base.param.ud.ah_attr);
	fill_gid(&ip, &event->base.param.ud.ah_attr.grh.dgid);
	event->mc = mc;
	LIST_INSERT_HEAD(&id->groups, mc, link);
	iv_cm_raise(event);
	return 0;
}

int iv_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	const uint32_t wanted = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	int ret;

	if (!attr || attr->comp_mask != wanted || attr->join_flags != RDMA_MC_JOIN_FLAG_FULLMEMBER)
		return iv_cm_ret(attr && attr->comp_mask == wanted ? EOPNOTSUPP : EINVAL);
	ret = join(iv_id(id), attr->addr, context);
	return ret ? iv_cm_ret(ret) : iv_cm_complete(iv_id(id));
}

int iv_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	int ret = join(iv_id(id), addr, context);

	return ret ? iv_cm_ret(ret) : iv_cm_complete(iv_id(id));
}

/* On the program's thread, before it sees the event. */
void iv_mc_joined(struct iv_cm_event *event)
{
	struct rdma_cm_id *id = event->base.id;
	struct iv_mc *mc = event->mc;
	struct iv_cm_dev *cdev;
	union ibv_gid gid;
	int ret = -iv_cm_get(iv_id(id), &cdev);

	fill_gid(&mc->group, &gid);
	if (ret == 0) {
		ret = id->qp ? iv_attach_mcast(id->qp, &gid, 0) : 0;
		mc->attached = id->qp && ret == 0;
		iv_cm_put(cdev);
	}
	if (ret) {
		LIST_REMOVE(mc, link);
		event->base.event = RDMA_CM_EVENT_MULTICAST_ERROR;
		event->base.status = -ret;
	}
}

static void leave(struct iv_id *id, struct iv_mc *mc)
{
	struct iv_cm_dev *cdev;
	union ibv_gid gid;

	fill_gid(&mc->group, &gid);
	if (iv_cm_get(id, &cdev) == 0) {
		if (mc->attached && id->base.qp)
			iv_detach_mcast(id->base.qp, &gid, 0);
		iv_cm_put(cdev);
	}
	LIST_REMOVE(mc, link);
	free(mc);
}

int iv_leave_multicast(struct rdma_cm_id *base, struct sockaddr *addr)
{
	struct iv_id *id = iv_id(base);
	struct iv_mc *mc;
	uint16_t port;
	struct wire_ip ip;
	int ret = iv_to_ip(addr, &ip, &port);

	if (ret)
		return iv_cm_ret(ret);
	LIST_FOREACH(mc, &id->groups, link)
	if (wire_ip_eq(&mc->group, &ip)) {
		leave(id, mc);
		return 0;
	}
	return iv_cm_ret(EADDRNOTAVAIL);
}

void iv_mc_leave_all(struct iv_id *id)
{
	while (!LIST_EMPTY(&id->groups))
		leave(id, LIST_FIRST(&id->groups));
}
