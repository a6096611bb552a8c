/* SPDX-License-Identifier: BSD-3-Clause */
/* Every function of libibverbs that takes, or returns, a device, a context or an object made with
 * one. exports.c defines each under its own name: objects of the incline device go to our function,
 * all others to the real libibverbs, if one is loaded. What is not here is passed through by not
 * being defined; tests/unit/verbs/passthrough.txt lists those names.
 *
 * X(type, name in libibverbs, our function, parameters, arguments, is it ours?, value if there is
 * no real libibverbs) */
#ifndef VERBS_EXPORTS_H
#define VERBS_EXPORTS_H

#include <infiniband/verbs.h>

/* These names are macros around the functions. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* clang-format off */
#define VERBS_EXPORTS(X) \
	X(struct ibv_device **, ibv_get_device_list, iv_get_device_list, (int *n), (n), \
		iv_env_lists(), NULL) \
	X(void, ibv_free_device_list, iv_free_device_list, (struct ibv_device **list), (list), \
		list[0] && iv_device_mine(list[0]), ) \
	X(const char *, ibv_get_device_name, iv_get_device_name, (struct ibv_device *device), (device), \
		iv_device_mine(device), NULL) \
	X(int, ibv_get_device_index, iv_get_device_index, (struct ibv_device *device), (device), \
		iv_device_mine(device), -1) \
	X(__be64, ibv_get_device_guid, iv_get_device_guid, (struct ibv_device *device), (device), \
		iv_device_mine(device), 0) \
	X(struct ibv_context *, ibv_open_device, iv_open_device, (struct ibv_device *device), (device), \
		iv_device_mine(device), NULL) \
	X(int, ibv_close_device, iv_close_device, (struct ibv_context *context), (context), \
		iv_mine(context), -1) \
	X(struct ibv_context *, ibv_import_device, iv_import_device, (int cmd_fd), (cmd_fd), \
		iv_alone(), NULL) \
	X(int, ibv_fork_init, iv_fork_init, (void), (), \
		iv_alone(), ENOSYS) \
	X(enum ibv_fork_status, ibv_is_fork_initialized, iv_is_fork_initialized, (void), (), \
		iv_alone(), IBV_FORK_DISABLED) \
	\
	X(int, ibv_query_device, iv_query_device, \
		(struct ibv_context *context, struct ibv_device_attr *attr), (context, attr), \
		iv_mine(context), ENOSYS) \
	X(int, ibv_query_port, iv_query_port, \
		(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr), \
		(context, port, attr), iv_mine(context), ENOSYS) \
	X(int, ibv_query_gid, iv_query_gid, \
		(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid), \
		(context, port, index, gid), iv_mine(context), -1) \
	X(int, ibv_query_gid_type, iv_query_gid_type, \
		(struct ibv_context *context, uint8_t port, unsigned int index, int *type), \
		(context, port, index, type), iv_mine(context), -1) \
	X(int, _ibv_query_gid_ex, iv_query_gid_ex, \
		(struct ibv_context *context, uint32_t port, uint32_t index, \
			struct ibv_gid_entry *entry, uint32_t flags, size_t size), \
		(context, port, index, entry, flags, size), iv_mine(context), ENOSYS) \
	X(ssize_t, _ibv_query_gid_table, iv_query_gid_table, \
		(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, \
			uint32_t flags, size_t size), \
		(context, entries, max, flags, size), iv_mine(context), -ENOSYS) \
	X(int, ibv_query_pkey, iv_query_pkey, \
		(struct ibv_context *context, uint8_t port, int index, __be16 *pkey), \
		(context, port, index, pkey), iv_mine(context), -1) \
	X(int, ibv_get_pkey_index, iv_get_pkey_index, \
		(struct ibv_context *context, uint8_t port, __be16 pkey), \
		(context, port, pkey), iv_mine(context), -1) \
	X(int, ibv_get_async_event, iv_get_async_event, \
		(struct ibv_context *context, struct ibv_async_event *event), (context, event), \
		iv_mine(context), -1) \
	X(void, ibv_ack_async_event, iv_ack_async_event, (struct ibv_async_event *event), (event), \
		iv_event_mine(event), ) \
	\
	X(struct ibv_pd *, ibv_alloc_pd, iv_alloc_pd, (struct ibv_context *context), (context), \
		iv_mine(context), NULL) \
	X(int, ibv_dealloc_pd, iv_dealloc_pd, (struct ibv_pd *pd), (pd), \
		iv_mine(pd->context), ENOSYS) \
	X(struct ibv_pd *, ibv_import_pd, iv_import_pd, \
		(struct ibv_context *context, uint32_t handle), (context, handle), \
		iv_mine(context), NULL) \
	X(void, ibv_unimport_pd, iv_unimport_pd, (struct ibv_pd *pd), (pd), \
		iv_mine(pd->context), ) \
	X(struct ibv_mr *, ibv_reg_mr, iv_reg_mr, \
		(struct ibv_pd *pd, void *addr, size_t length, int access), \
		(pd, addr, length, access), iv_mine(pd->context), NULL) \
	X(struct ibv_mr *, ibv_reg_mr_iova, iv_reg_mr_iova, \
		(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access), \
		(pd, addr, length, iova, access), iv_mine(pd->context), NULL) \
	X(struct ibv_mr *, ibv_reg_mr_iova2, iv_reg_mr_iova2, \
		(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access), \
		(pd, addr, length, iova, access), iv_mine(pd->context), NULL) \
	X(struct ibv_mr *, ibv_reg_dmabuf_mr, iv_reg_dmabuf_mr, \
		(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access), \
		(pd, offset, length, iova, fd, access), iv_mine(pd->context), NULL) \
	X(int, ibv_rereg_mr, iv_rereg_mr, \
		(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access), \
		(mr, flags, pd, addr, length, access), iv_mine(mr->context), IBV_REREG_MR_ERR_INPUT) \
	X(int, ibv_dereg_mr, iv_dereg_mr, (struct ibv_mr *mr), (mr), \
		iv_mine(mr->context), ENOSYS) \
	X(struct ibv_mr *, ibv_import_mr, iv_import_mr, (struct ibv_pd *pd, uint32_t handle), \
		(pd, handle), iv_mine(pd->context), NULL) \
	X(void, ibv_unimport_mr, iv_unimport_mr, (struct ibv_mr *mr), (mr), \
		iv_mine(mr->context), ) \
	X(struct ibv_dm *, ibv_import_dm, iv_import_dm, \
		(struct ibv_context *context, uint32_t handle), (context, handle), \
		iv_mine(context), NULL) \
	\
	X(struct ibv_comp_channel *, ibv_create_comp_channel, iv_create_comp_channel, \
		(struct ibv_context *context), (context), iv_mine(context), NULL) \
	X(int, ibv_destroy_comp_channel, iv_destroy_comp_channel, \
		(struct ibv_comp_channel *channel), (channel), iv_mine(channel->context), ENOSYS) \
	X(struct ibv_cq *, ibv_create_cq, iv_create_cq, \
		(struct ibv_context *context, int cqe, void *cq_context, \
			struct ibv_comp_channel *channel, int comp_vector), \
		(context, cqe, cq_context, channel, comp_vector), iv_mine(context), NULL) \
	X(int, ibv_resize_cq, iv_resize_cq, (struct ibv_cq *cq, int cqe), (cq, cqe), \
		iv_mine(cq->context), ENOSYS) \
	X(int, ibv_destroy_cq, iv_destroy_cq, (struct ibv_cq *cq), (cq), \
		iv_mine(cq->context), ENOSYS) \
	X(int, ibv_get_cq_event, iv_get_cq_event, \
		(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context), \
		(channel, cq, cq_context), iv_mine(channel->context), -1) \
	X(void, ibv_ack_cq_events, iv_ack_cq_events, (struct ibv_cq *cq, unsigned int n), (cq, n), \
		iv_mine(cq->context), ) \
	\
	X(struct ibv_qp *, ibv_create_qp, iv_create_qp, \
		(struct ibv_pd *pd, struct ibv_qp_init_attr *init), (pd, init), \
		iv_mine(pd->context), NULL) \
	X(struct ibv_qp_ex *, ibv_qp_to_qp_ex, iv_qp_to_qp_ex, (struct ibv_qp *qp), (qp), \
		iv_mine(qp->context), NULL) \
	X(int, ibv_modify_qp, iv_modify_qp, \
		(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask), (qp, attr, mask), \
		iv_mine(qp->context), ENOSYS) \
	X(int, ibv_query_qp, iv_query_qp, \
		(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init), \
		(qp, attr, mask, init), iv_mine(qp->context), ENOSYS) \
	X(int, ibv_query_qp_data_in_order, iv_query_qp_data_in_order, \
		(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags), (qp, op, flags), \
		iv_mine(qp->context), 0) \
	X(int, ibv_destroy_qp, iv_destroy_qp, (struct ibv_qp *qp), (qp), \
		iv_mine(qp->context), ENOSYS) \
	X(int, ibv_query_ece, iv_query_ece, (struct ibv_qp *qp, struct ibv_ece *ece), (qp, ece), \
		iv_mine(qp->context), ENOSYS) \
	X(int, ibv_set_ece, iv_set_ece, (struct ibv_qp *qp, struct ibv_ece *ece), (qp, ece), \
		iv_mine(qp->context), ENOSYS) \
	X(int, ibv_attach_mcast, iv_attach_mcast, \
		(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid), (qp, gid, lid), \
		iv_mine(qp->context), ENOSYS) \
	X(int, ibv_detach_mcast, iv_detach_mcast, \
		(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid), (qp, gid, lid), \
		iv_mine(qp->context), ENOSYS) \
	X(struct ibv_srq *, ibv_create_srq, iv_create_srq, \
		(struct ibv_pd *pd, struct ibv_srq_init_attr *init), (pd, init), \
		iv_mine(pd->context), NULL) \
	X(int, ibv_modify_srq, iv_modify_srq, \
		(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask), (srq, attr, mask), \
		iv_mine(srq->context), ENOSYS) \
	X(int, ibv_query_srq, iv_query_srq, (struct ibv_srq *srq, struct ibv_srq_attr *attr), \
		(srq, attr), iv_mine(srq->context), ENOSYS) \
	X(int, ibv_destroy_srq, iv_destroy_srq, (struct ibv_srq *srq), (srq), \
		iv_mine(srq->context), ENOSYS) \
	X(int, ibv_destroy_ah, iv_destroy_ah, (struct ibv_ah *ah), (ah), \
		iv_mine(ah->context), ENOSYS) \
	X(struct ibv_ah *, ibv_create_ah, iv_create_ah, \
		(struct ibv_pd *pd, struct ibv_ah_attr *attr), (pd, attr), iv_mine(pd->context), NULL) \
	X(struct ibv_ah *, ibv_create_ah_from_wc, iv_create_ah_from_wc, \
		(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port), \
		(pd, wc, grh, port), iv_mine(pd->context), NULL) \
	X(int, ibv_init_ah_from_wc, iv_init_ah_from_wc, \
		(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh, \
			struct ibv_ah_attr *attr), \
		(context, port, wc, grh, attr), iv_mine(context), -1) \
	X(int, ibv_resolve_eth_l2_from_gid, iv_resolve_eth_l2_from_gid, \
		(struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t mac[6], uint16_t *vid), \
		(context, attr, mac, vid), iv_mine(context), ENOSYS)
/* clang-format on */

#define X(type, name, ours, params, args, mine, none) \
	type ours params;                             \
	type iv_as_##name params;
VERBS_EXPORTS(X)
#undef X

/* Private to libibverbs: in no public header. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type);

#endif
