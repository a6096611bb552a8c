/* SPDX-License-Identifier: BSD-3-Clause */
/* IDs of librdmacm: their life, addresses and ports. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "lib/verbs/cm_exports.h"
#include "lib/verbs/cm_internal.h"

/* Where Linux takes ports from that a program does not choose. */
enum { FIRST_PORT = 32768, N_PORTS = 28232, NS_PER_MS = 1000000 };

/* ---- addresses ---- */

int iv_to_ip(const struct sockaddr *addr, struct wire_ip *ip, uint16_t *port)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;

	if (addr->sa_family == AF_INET) {
		*ip = wire_ip_from4(ntohl(in->sin_addr.s_addr));
		*port = ntohs(in->sin_port);
		return 0;
	}
	if (addr->sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	memcpy(ip->b, &in6->sin6_addr, sizeof(ip->b));
	*port = ntohs(in6->sin6_port);
	return 0;
}

void iv_from_ip(const struct wire_ip *ip, uint16_t port, struct sockaddr_storage *addr)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;

	memset(addr, 0, sizeof(*addr));
	if (wire_ip_is4(ip)) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		in->sin_addr.s_addr = htonl(wire_ip_to4(ip));
	} else {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, ip->b, sizeof(ip->b));
	}
}

static bool is_any(const struct wire_ip *ip)
{
	const struct wire_ip any4 = wire_ip_from4(0);

	return wire_ip_is_zero(ip) || wire_ip_eq(ip, &any4);
}

static uint16_t src_port(const struct iv_id *id)
{
	return ntohs(id->base.route.addr.src_sin.sin_port); /* the same place in both families */
}

/* ---- ports ---- */

/* iv_cm.lock is held. */
static bool port_taken(const struct iv_id *id, uint16_t port)
{
	struct iv_id *other;

	LIST_FOREACH(other, &iv_cm.ids, link)
	{
		bool differ = !other->bound_any && !id->bound_any &&
			      !wire_ip_eq(&other->local, &id->local);

		if (other != id && other->base.ps == id->base.ps && src_port(other) == port &&
			other->has_port && !differ &&
			!(other->reuse && id->reuse && other->state != ID_LISTEN))
			return true;
	}
	return false;
}

static int choose_port(struct iv_id *id, uint16_t *port)
{
	uint32_t start = 0;

	if (*port)
		return port_taken(id, *port) ? -EADDRINUSE : 0;
	if (getrandom(&start, sizeof(start), 0) != sizeof(start))
		start = (uint32_t)(uintptr_t)id;
	for (uint32_t i = 0; i < N_PORTS; i++) {
		*port = (uint16_t)(FIRST_PORT + (start + i) % N_PORTS);
		if (!port_taken(id, *port))
			return 0;
	}
	return -EADDRNOTAVAIL;
}

/* ---- life ---- */

int iv_id_set_state(struct iv_id *id, enum iv_id_state from, enum iv_id_state to)
{
	int ret = 0;

	pthread_mutex_lock(&iv_cm.lock);
	if (id->removed)
		ret = -ENODEV;
	else if (id->state == from)
		id->state = to;
	else
		ret = -EINVAL;
	pthread_mutex_unlock(&iv_cm.lock);
	return ret;
}

struct iv_id *iv_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	enum ibv_qp_type type)
{
	struct iv_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->base.channel = channel;
	id->base.context = context;
	id->base.ps = ps;
	id->base.qp_type = type;
	id->bound_any = true;
	id->qkey = type == IBV_QPT_UD ? RDMA_UDP_QKEY : 0;
	id->ack_timeout = IV_CM_ACK_TIMEOUT;
	LIST_INIT(&id->groups);
	pthread_cond_init(&id->all_acked, NULL);
	pthread_mutex_lock(&iv_cm.lock);
	LIST_INSERT_HEAD(&iv_cm.ids, id, link);
	pthread_mutex_unlock(&iv_cm.lock);
	return id;
}

void iv_id_free(struct iv_id *id)
{
	struct iv_id *other;

	pthread_mutex_lock(&iv_cm.lock);
	LIST_REMOVE(id, link);
	LIST_FOREACH(other, &iv_cm.ids, link)
	if (other->listener == id)
		other->listener = NULL;
	pthread_mutex_unlock(&iv_cm.lock);
	pthread_cond_destroy(&id->all_acked);
	if (id->sync)
		iv_destroy_event_channel(id->base.channel);
	free(id->qp_init);
	free(id);
}

static int create(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
	enum rdma_port_space ps, enum ibv_qp_type type)
{
	const bool sync = channel == NULL;
	struct iv_id *id;
	int ret = iv_cm_open();

	if (ret)
		return iv_cm_ret(ret);
	if (sync)
		channel = iv_create_event_channel();
	if (!channel)
		return -1;
	id = iv_id_new(channel, context, ps, type);
	if (!id) {
		if (sync)
			iv_destroy_event_channel(channel);
		return iv_cm_ret(ENOMEM);
	}
	id->sync = sync;
	*out = &id->base;
	return 0;
}

int iv_create_id_sync(struct rdma_cm_id **id, enum rdma_port_space ps, enum ibv_qp_type type)
{
	return create(NULL, id, NULL, ps, type);
}

int iv_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
	enum rdma_port_space ps)
{
	if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP && ps != RDMA_PS_IB)
		return iv_cm_ret(EPROTONOSUPPORT);
	return create(channel, id, context, ps, ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC);
}

static void stop_resolving(struct iv_id *id)
{
	struct iv_cm_dev *cdev;

	if (iv_cm_get(id, &cdev))
		return; /* a device that is closed has let go of it */
	iv_own(cdev->dev);
	if (id->is_resolving)
		LIST_REMOVE(id, resolving);
	id->is_resolving = false;
	iv_disown(cdev->dev);
	iv_cm_put(cdev);
}

int iv_destroy_id(struct rdma_cm_id *base)
{
	struct iv_id *id = iv_id(base);

	iv_cm_unlisten(id);
	iv_cm_iwarp_unlistened();
	stop_resolving(id);
	iv_cm_barrier();
	iv_mc_leave_all(id);
	iv_cm_drop_conn(id);
	iv_cm_forget(id);
	if (base->event)
		iv_ack_cm_event(base->event);
	base->event = NULL;
	/* As librdmacm: events that the program has are his to acknowledge first. */
	pthread_mutex_lock(&iv_cm.lock);
	while (id->got != id->acked)
		pthread_cond_wait(&id->all_acked, &iv_cm.lock);
	pthread_mutex_unlock(&iv_cm.lock);
	iv_id_free(id);
	return 0;
}

int iv_migrate_id(struct rdma_cm_id *base, struct rdma_event_channel *channel)
{
	struct iv_id *id = iv_id(base);
	struct rdma_event_channel *old = base->channel;
	const bool was_sync = id->sync, sync = channel == NULL;

	if (was_sync && sync)
		return iv_cm_ret(EINVAL);
	if (sync)
		channel = iv_create_event_channel();
	if (!channel)
		return -1;
	if (was_sync && base->event) {
		iv_ack_cm_event(base->event);
		base->event = NULL;
	}
	iv_cm_move(id, (struct iv_cm_channel *)channel);
	id->sync = sync;
	if (was_sync)
		iv_destroy_event_channel(old);
	return 0;
}

/* ---- binding ---- */

void iv_id_use(struct iv_id *id, struct iv_cm_dev *cdev, struct iv_gid gid)
{
	pthread_mutex_lock(&iv_cm.lock);
	id->cdev = cdev;
	id->gid = gid;
	id->base.verbs = cdev->context;
	id->base.port_num = (uint8_t)(gid.port + 1);
	if (!id->base.pd)
		id->base.pd = cdev->pd;
	pthread_mutex_unlock(&iv_cm.lock);
}

static int bind_port(struct iv_id *id, const struct wire_ip *ip, uint16_t port)
{
	int ret;

	pthread_mutex_lock(&iv_cm.lock);
	ret = id->state == ID_IDLE ? 0 : -EINVAL;
	if (ret == 0) {
		id->local = *ip;
		id->bound_any = is_any(ip);
		ret = choose_port(id, &port);
	}
	if (ret == 0) {
		iv_from_ip(ip, port, &id->base.route.addr.src_storage);
		id->has_port = true;
		id->state = ID_BOUND;
	}
	pthread_mutex_unlock(&iv_cm.lock);
	return ret;
}

static int serves(const struct iv_cm_dev *cdev, const struct iv_id *id)
{
	if (!cdev->dev->iwarp || id->base.ps == RDMA_PS_TCP)
		return 0;
	iv_debug("%s: iWARP has connections of RDMA_PS_TCP only", cdev->dev->device->base.name);
	return -EOPNOTSUPP;
}

/* Is there one that serves the ID? */
static int any_serves(const struct iv_id *id)
{
	struct iv_cm_dev *cdevs[IV_CM_DEVICES];
	const unsigned n = iv_cm_get_all(cdevs);
	int ret = -EOPNOTSUPP;

	for (unsigned i = 0; i < n && ret; i++)
		ret = serves(cdevs[i], id);
	iv_cm_put_all(cdevs, n);
	return ret;
}

static int bind_ip(struct iv_id *id, const struct sockaddr *addr)
{
	struct iv_cm_dev *cdev = NULL;
	struct iv_gid gid = {0, 0};
	struct wire_ip ip;
	uint16_t port;
	int ret = iv_to_ip(addr, &ip, &port);

	if (ret == 0 && !is_any(&ip)) {
		cdev = iv_cm_find(&ip, &gid);
		ret = cdev ? serves(cdev, id) : -ENODEV;
	}
	if (ret == 0)
		ret = bind_port(id, &ip, port);
	if (ret == 0 && cdev)
		iv_id_use(id, cdev, gid);
	if (cdev)
		iv_cm_put(cdev);
	return ret;
}

int iv_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return iv_cm_ret(bind_ip(iv_id(id), addr));
}

int iv_listen(struct rdma_cm_id *base, int backlog)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};
	struct iv_id *id = iv_id(base);
	int ret = 0;

	if (id->state == ID_IDLE)
		ret = bind_ip(id, (const struct sockaddr *)&any);
	if (ret == 0 && id->bound_any)
		ret = any_serves(id);
	if (ret == 0) {
		pthread_mutex_lock(&iv_cm.lock);
		id->backlog = backlog > 0 ? (unsigned)backlog : IV_CM_BACKLOG;
		pthread_mutex_unlock(&iv_cm.lock);
		ret = iv_id_set_state(id, ID_BOUND, ID_LISTEN);
	}
	if (ret == 0) {
		ret = iv_cm_iwarp_listen(id);
		if (ret) {
			iv_id_set_state(id, ID_LISTEN, ID_BOUND);
			iv_cm_iwarp_unlistened();
		}
	}
	if (ret == 0)
		iv_debug("rdma_cm listens on port %u", src_port(id));
	return iv_cm_ret(ret);
}

/* ---- resolving ---- */

/* To the own address nearest to dst. */
static int bind_nearest(struct iv_id *id, const struct wire_ip *dst)
{
	const uint16_t port = src_port(id);
	struct iv_gid own = {0, 0};
	struct iv_cm_dev *cdev = iv_cm_nearest(dst, &own);
	struct wire_ip gid;
	int ret = cdev ? serves(cdev, id) : -ENODEV;

	if (ret == 0)
		ret = rnic_gid(cdev->dev->rnic, own.port, own.index, &gid);
	if (ret == 0 && id->state == ID_IDLE) {
		ret = bind_port(id, &gid, port);
	} else if (ret == 0) {
		id->local = gid; /* bound to a port of any address before */
		id->bound_any = false;
		iv_from_ip(&gid, port, &id->base.route.addr.src_storage);
	}
	if (ret == 0)
		iv_id_use(id, cdev, own);
	if (cdev)
		iv_cm_put(cdev);
	return ret;
}

/* Binds to src if it is given, else to the own address nearest to dst. */
static int bind_for(struct iv_id *id, const struct sockaddr *src, const struct wire_ip *dst)
{
	struct iv_cm_dev *cdev;
	int ret = src && id->state == ID_IDLE ? bind_ip(id, src) : 0;

	if (ret)
		return ret;
	ret = iv_cm_get(id, &cdev);
	if (ret == 0)
		iv_cm_put(cdev);
	return ret == -EINVAL ? bind_nearest(id, dst) : ret;
}

static int start_resolving(struct iv_id *id, int timeout_ms)
{
	struct iv_cm_dev *cdev;
	struct iv_dev *dev;
	int ret = iv_cm_get(id, &cdev);

	if (ret)
		return ret;
	dev = cdev->dev;
	iv_own(dev);
	id->resolve_until =
		dev->ops->now(dev->port) + (timeout_ms > 0 ? (uint64_t)timeout_ms * NS_PER_MS : 0);
	id->is_resolving = true;
	LIST_INSERT_HEAD(&cdev->resolving, id, resolving);
	iv_cm_flush(cdev);
	iv_disown(dev);
	iv_kick(dev);
	iv_cm_put(cdev);
	return 0;
}

int iv_resolve_addr(
	struct rdma_cm_id *base, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	struct iv_id *id = iv_id(base);
	struct wire_ip ip;
	uint16_t port;
	int ret = dst ? iv_to_ip(dst, &ip, &port) : -EINVAL;

	if (ret == 0 && is_any(&ip))
		ret = -EINVAL;
	if (ret == 0)
		ret = bind_for(id, src, &ip);
	if (ret == 0 && wire_ip_is4(&ip) != wire_ip_is4(&id->local))
		ret = -EINVAL;
	if (ret == 0)
		ret = iv_id_set_state(id, ID_BOUND, ID_ADDR_QUERY);
	if (ret)
		return iv_cm_ret(ret);
	id->remote = ip;
	iv_from_ip(&ip, port, &base->route.addr.dst_storage);
	if (iv_is_group(&ip)) {
		iv_id_set_state(id, ID_ADDR_QUERY, ID_ADDR_RESOLVED); /* groups need no asking */
		iv_cm_raise_plain(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	} else {
		ret = start_resolving(id, timeout_ms);
	}
	return ret ? iv_cm_ret(ret) : iv_cm_complete(id);
}

/* The path record that programs of InfiniBand look at; the route itself is Ethernet's business. */
void iv_id_route(struct iv_id *id, const struct iv_cm_dev *cdev)
{
	struct ibv_sa_path_rec *path = &id->path_rec;

	*path = (struct ibv_sa_path_rec){.reversible = 1,
		.numb_path = 1,
		.pkey = htobe16(IV_PKEY),
		.traffic_class = id->tos,
		.hop_limit = 64,
		.mtu_selector = 2,
		.mtu = rnic_active_mtu(cdev->dev->rnic, id->gid.port),
		.packet_life_time = id->ack_timeout - 1,
		.packet_life_time_selector = 2};
	memcpy(path->sgid.raw, id->local.b, sizeof(path->sgid.raw));
	memcpy(path->dgid.raw, id->remote.b, sizeof(path->dgid.raw));
	id->base.route.path_rec = path;
	id->base.route.num_paths = 1;
}

int iv_resolve_route(struct rdma_cm_id *base, int timeout_ms)
{
	struct iv_id *id = iv_id(base);
	struct iv_cm_dev *cdev;
	int ret = iv_cm_get(id, &cdev);

	(void)timeout_ms;
	if (ret)
		return iv_cm_ret(ret);
	ret = iv_id_set_state(id, ID_ADDR_RESOLVED, ID_ROUTE_RESOLVED);
	if (ret == 0)
		iv_id_route(id, cdev);
	iv_cm_put(cdev);
	if (ret)
		return iv_cm_ret(ret);
	iv_cm_raise_plain(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return iv_cm_complete(id);
}

/* ---- options ---- */

int iv_set_option(struct rdma_cm_id *base, int level, int name, void *value, size_t len)
{
	struct iv_id *id = iv_id(base);

	if (level != RDMA_OPTION_ID)
		return iv_cm_ret(ENOSYS); /* paths of InfiniBand */
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		if (len != sizeof(uint8_t))
			return iv_cm_ret(EINVAL);
		id->tos = *(uint8_t *)value;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
	case RDMA_OPTION_ID_AFONLY:
		if (len != sizeof(int))
			return iv_cm_ret(EINVAL);
		*(name == RDMA_OPTION_ID_AFONLY ? &id->afonly : &id->reuse) = *(int *)value != 0;
		return 0;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (len != sizeof(uint8_t) || *(uint8_t *)value > 31)
			return iv_cm_ret(EINVAL);
		id->ack_timeout = *(uint8_t *)value;
		id->ack_timeout_set = true;
		return 0;
	default:
		return iv_cm_ret(ENOSYS);
	}
}
