/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that programs call by libibverbs' names, and those that the device does not offer.
 * The definitions carry no symbol version, so that the dynamic linker binds references to any
 * version (IBVERBS_1.0, 1.1 ..) to them when this library comes first. */
#include <errno.h>

#include "lib/verbs/exports.h"

#include "lib/verbs/behind.h"
#include "lib/verbs/internal.h"

static bool iv_event_mine(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return iv_mine(event->element.cq->context);
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return iv_mine(event->element.qp->context);
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return iv_mine(event->element.srq->context);
	case IBV_EVENT_WQ_FATAL:
		return false;
	default:
		return true; /* of a port or device: acknowledging does nothing in either library */
	}
}

#define X(type, name, ours, params, args, mine, none) \
	EXPORT_BEHIND(type, name, ours, params, args, mine, BEHIND_VERBS, none)
VERBS_EXPORTS(X)
#undef X

/* ---- not offered ---- */

struct ibv_mr *iv_reg_dmabuf_mr(
	struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	(void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
	errno = EOPNOTSUPP;
	return NULL;
}

struct ibv_context *iv_import_device(int cmd_fd)
{
	(void)cmd_fd;
	errno = EOPNOTSUPP;
	return NULL;
}

struct ibv_pd *iv_import_pd(struct ibv_context *context, uint32_t handle)
{
	(void)context, (void)handle;
	errno = EOPNOTSUPP;
	return NULL;
}

void iv_unimport_pd(struct ibv_pd *pd)
{
	(void)pd;
}

struct ibv_mr *iv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	(void)pd, (void)handle;
	errno = EOPNOTSUPP;
	return NULL;
}

void iv_unimport_mr(struct ibv_mr *mr)
{
	(void)mr;
}

struct ibv_dm *iv_import_dm(struct ibv_context *context, uint32_t handle)
{
	(void)context, (void)handle;
	errno = EOPNOTSUPP;
	return NULL;
}

int iv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp, (void)ece;
	return iv_errno(EOPNOTSUPP);
}

int iv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp, (void)ece;
	return iv_errno(EOPNOTSUPP);
}

int iv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp, (void)op, (void)flags;
	return 0; /* of a packet only the last word is known to be last: wait for the completion */
}

struct ibv_qp_ex *iv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return iv_qp(qp)->has_ex ? &iv_qp(qp)->ex : NULL;
}

/* Registered memory is reached through the process's own mappings, by a thread of the process:
 * there is nothing that copy-on-write could tear apart. */
int iv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status iv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}
