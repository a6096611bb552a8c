/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses by name, and IDs made of them in one call. */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>

#include "lib/verbs/cm_exports.h"
#include "lib/verbs/cm_internal.h"

enum { RESOLVE_MS = 2000 };

/* ---- rdma_getaddrinfo ---- */

void iv_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}

static int copy(struct sockaddr **to, socklen_t *to_len, const struct sockaddr *from, socklen_t len)
{
	*to = malloc(len);
	if (!*to)
		return -ENOMEM;
	memcpy(*to, from, len);
	*to_len = len;
	return 0;
}

static void fill_kind(struct rdma_addrinfo *res, const struct rdma_addrinfo *hints)
{
	res->ai_flags = hints ? hints->ai_flags : 0;
	res->ai_port_space = hints ? hints->ai_port_space : 0;
	res->ai_qp_type = hints ? hints->ai_qp_type : 0;
	if (!res->ai_port_space)
		res->ai_port_space = res->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (!res->ai_qp_type)
		res->ai_qp_type = res->ai_port_space == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
}

static int fill_addresses(
	struct rdma_addrinfo *res, const struct rdma_addrinfo *hints, const struct addrinfo *found)
{
	int ret = 0;

	if (res->ai_flags & RAI_PASSIVE) {
		if (found)
			ret = copy(&res->ai_src_addr, &res->ai_src_len, found->ai_addr,
				found->ai_addrlen);
	} else {
		if (found)
			ret = copy(&res->ai_dst_addr, &res->ai_dst_len, found->ai_addr,
				found->ai_addrlen);
		if (ret == 0 && hints && hints->ai_src_len)
			ret = copy(&res->ai_src_addr, &res->ai_src_len, hints->ai_src_addr,
				hints->ai_src_len);
	}
	if (res->ai_src_addr)
		res->ai_family = res->ai_src_addr->sa_family;
	if (res->ai_dst_addr)
		res->ai_family = res->ai_dst_addr->sa_family;
	return ret;
}

/* The first address only, as librdmacm. */
static int look_up(const char *node, const char *service, const struct rdma_addrinfo *hints,
	struct addrinfo **found)
{
	const int flags = hints ? hints->ai_flags : 0;
	struct addrinfo how = {.ai_socktype = SOCK_STREAM};

	if (flags & RAI_PASSIVE)
		how.ai_flags |= AI_PASSIVE;
	if (flags & RAI_NUMERICHOST)
		how.ai_flags |= AI_NUMERICHOST;
	if (flags & RAI_FAMILY)
		how.ai_family = hints->ai_family;
	return getaddrinfo(node, service, &how, found);
}

int iv_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
	struct rdma_addrinfo **out)
{
	struct addrinfo *found = NULL;
	struct rdma_addrinfo *res;
	int ret;

	if (!node && !service && !hints)
		return iv_cm_ret(EINVAL);
	ret = iv_cm_open();
	if (ret)
		return iv_cm_ret(ret);
	if (node || service) {
		ret = look_up(node, service, hints, &found);
		if (ret)
			return ret; /* EAI_*, as librdmacm */
	}
	res = calloc(1, sizeof(*res));
	if (res) {
		fill_kind(res, hints);
		ret = fill_addresses(res, hints, found);
	}
	if (found)
		freeaddrinfo(found);
	if (!res || ret) {
		iv_freeaddrinfo(res);
		return iv_cm_ret(ENOMEM);
	}
	*out = res;
	return 0;
}

/* ---- rdma_create_ep ---- */

static int prepare(struct rdma_cm_id *id, struct rdma_addrinfo *res)
{
	if (res->ai_flags & RAI_PASSIVE)
		return res->ai_src_addr ? iv_bind_addr(id, res->ai_src_addr) : iv_cm_ret(EINVAL);
	if (iv_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS))
		return -1;
	return iv_resolve_route(id, RESOLVE_MS);
}

static int equip(struct rdma_cm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
	struct ibv_qp_init_attr *attr)
{
	if (!attr)
		return 0;
	attr->qp_type = res->ai_qp_type;
	if (!(res->ai_flags & RAI_PASSIVE))
		return iv_rdma_create_qp(id, pd, attr);
	/* For every ID that rdma_get_request gives. */
	iv_id(id)->qp_init = malloc(sizeof(*attr));
	if (!iv_id(id)->qp_init)
		return iv_cm_ret(ENOMEM);
	*iv_id(id)->qp_init = *attr;
	return 0;
}

int iv_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd,
	struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *id;
	int err;

	if (iv_create_id_sync(&id, (enum rdma_port_space)res->ai_port_space,
		    (enum ibv_qp_type)res->ai_qp_type))
		return -1;
	if (pd)
		id->pd = pd;
	if (prepare(id, res) || equip(id, res, pd, attr)) {
		err = errno;
		iv_destroy_ep(id);
		return iv_cm_ret(err);
	}
	*out = id;
	return 0;
}

void iv_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		iv_rdma_destroy_qp(id);
	if (id->srq)
		iv_rdma_destroy_srq(id);
	iv_destroy_id(id);
}

int iv_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **out)
{
	struct iv_id *listener = iv_id(listen);
	struct rdma_cm_event *event;
	struct ibv_qp_init_attr attr;
	struct rdma_cm_id *id;
	int err;

	if (!listener->sync)
		return iv_cm_ret(EINVAL);
	if (listen->event)
		iv_ack_cm_event(listen->event);
	listen->event = NULL;
	if (iv_get_cm_event(listen->channel, &event))
		return -1;
	err = event->status                                   ? abs(event->status)
	      : event->event != RDMA_CM_EVENT_CONNECT_REQUEST ? EINVAL
							      : 0;
	id = event->id;
	if (err) {
		iv_ack_cm_event(event);
		return iv_cm_ret(err);
	}
	id->event = event;
	if (listener->qp_init) {
		attr = *listener->qp_init;
		if (iv_rdma_create_qp(id, listen->pd, &attr)) {
			err = errno;
			iv_destroy_ep(id);
			return iv_cm_ret(err);
		}
	}
	*out = id;
	return 0;
}
