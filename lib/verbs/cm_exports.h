/* SPDX-License-Identifier: BSD-3-Clause */
/* Every function of librdmacm that takes, or returns, an ID, an event or a channel: ours while
 * INCLINE_RNIC is set, librdmacm's otherwise. As exports.h, but that objects are not asked for one
 * by one: a program's IDs are of one library only. The rest is in
 * tests/unit/verbs/passthrough.txt. */
#ifndef VERBS_CM_EXPORTS_H
#define VERBS_CM_EXPORTS_H

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

/* X(type, name in librdmacm, our function, parameters, arguments, value if there is no librdmacm)
 */
/* clang-format off */
#define CM_EXPORTS(X) \
	X(struct rdma_event_channel *, rdma_create_event_channel, iv_create_event_channel, (void), (), \
		NULL) \
	X(void, rdma_destroy_event_channel, iv_destroy_event_channel, \
		(struct rdma_event_channel *channel), (channel), ) \
	X(int, rdma_get_cm_event, iv_get_cm_event, \
		(struct rdma_event_channel *channel, struct rdma_cm_event **event), (channel, event), -1) \
	X(int, rdma_ack_cm_event, iv_ack_cm_event, (struct rdma_cm_event *event), (event), -1) \
	X(struct ibv_context **, rdma_get_devices, iv_rdma_get_devices, (int *n), (n), NULL) \
	X(void, rdma_free_devices, iv_rdma_free_devices, (struct ibv_context **list), (list), ) \
	\
	X(int, rdma_create_id, iv_create_id, \
		(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, \
			enum rdma_port_space ps), \
		(channel, id, context, ps), -1) \
	X(int, rdma_destroy_id, iv_destroy_id, (struct rdma_cm_id *id), (id), -1) \
	X(int, rdma_bind_addr, iv_bind_addr, (struct rdma_cm_id *id, struct sockaddr *addr), \
		(id, addr), -1) \
	X(int, rdma_resolve_addr, iv_resolve_addr, \
		(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms), \
		(id, src, dst, timeout_ms), -1) \
	X(int, rdma_resolve_route, iv_resolve_route, (struct rdma_cm_id *id, int timeout_ms), \
		(id, timeout_ms), -1) \
	X(int, rdma_listen, iv_listen, (struct rdma_cm_id *id, int backlog), (id, backlog), -1) \
	X(int, rdma_migrate_id, iv_migrate_id, \
		(struct rdma_cm_id *id, struct rdma_event_channel *channel), (id, channel), -1) \
	X(int, rdma_set_option, iv_set_option, \
		(struct rdma_cm_id *id, int level, int name, void *value, size_t len), \
		(id, level, name, value, len), -1) \
	\
	X(int, rdma_connect, iv_connect, (struct rdma_cm_id *id, struct rdma_conn_param *param), \
		(id, param), -1) \
	X(int, rdma_establish, iv_establish, (struct rdma_cm_id *id), (id), -1) \
	X(int, rdma_accept, iv_accept, (struct rdma_cm_id *id, struct rdma_conn_param *param), \
		(id, param), -1) \
	X(int, rdma_reject, iv_reject, \
		(struct rdma_cm_id *id, const void *private_data, uint8_t len), \
		(id, private_data, len), -1) \
	X(int, rdma_reject_ece, iv_reject_ece, \
		(struct rdma_cm_id *id, const void *private_data, uint8_t len), \
		(id, private_data, len), -1) \
	X(int, rdma_notify, iv_notify, (struct rdma_cm_id *id, enum ibv_event_type event), \
		(id, event), -1) \
	X(int, rdma_disconnect, iv_disconnect, (struct rdma_cm_id *id), (id), -1) \
	X(int, rdma_set_local_ece, iv_set_local_ece, \
		(struct rdma_cm_id *id, struct ibv_ece *ece), (id, ece), -1) \
	X(int, rdma_get_remote_ece, iv_get_remote_ece, \
		(struct rdma_cm_id *id, struct ibv_ece *ece), (id, ece), -1) \
	\
	X(int, rdma_create_qp, iv_rdma_create_qp, \
		(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr), \
		(id, pd, attr), -1) \
	X(int, rdma_create_qp_ex, iv_rdma_create_qp_ex, \
		(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr), (id, attr), -1) \
	X(void, rdma_destroy_qp, iv_rdma_destroy_qp, (struct rdma_cm_id *id), (id), ) \
	X(int, rdma_create_srq, iv_rdma_create_srq, \
		(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr), \
		(id, pd, attr), -1) \
	X(int, rdma_create_srq_ex, iv_rdma_create_srq_ex, \
		(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr), (id, attr), -1) \
	X(void, rdma_destroy_srq, iv_rdma_destroy_srq, (struct rdma_cm_id *id), (id), ) \
	X(int, rdma_init_qp_attr, iv_init_qp_attr, \
		(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask), (id, attr, mask), -1) \
	\
	X(int, rdma_getaddrinfo, iv_getaddrinfo, \
		(const char *node, const char *service, const struct rdma_addrinfo *hints, \
			struct rdma_addrinfo **res), \
		(node, service, hints, res), -1) \
	X(void, rdma_freeaddrinfo, iv_freeaddrinfo, (struct rdma_addrinfo *res), (res), ) \
	X(int, rdma_create_ep, iv_create_ep, \
		(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd, \
			struct ibv_qp_init_attr *attr), \
		(id, res, pd, attr), -1) \
	X(void, rdma_destroy_ep, iv_destroy_ep, (struct rdma_cm_id *id), (id), ) \
	X(int, rdma_get_request, iv_get_request, \
		(struct rdma_cm_id *listen, struct rdma_cm_id **id), (listen, id), -1) \
	\
	X(int, rdma_join_multicast, iv_join_multicast, \
		(struct rdma_cm_id *id, struct sockaddr *addr, void *context), (id, addr, context), -1) \
	X(int, rdma_join_multicast_ex, iv_join_multicast_ex, \
		(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context), \
		(id, attr, context), -1) \
	X(int, rdma_leave_multicast, iv_leave_multicast, \
		(struct rdma_cm_id *id, struct sockaddr *addr), (id, addr), -1)
/* clang-format on */

#define X(type, name, ours, params, args, none) \
	type ours params;                       \
	type iv_as_##name params;
CM_EXPORTS(X)
#undef X

#endif
