/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic, and for transports: memory windows (window.c). */
#ifndef RNIC_WINDOW_H
#define RNIC_WINDOW_H

#include "lib/rnic/mr.h"
#include "lib/rnic/wqe.h"

/* A request that is carried out here and sends nothing: binding, local invalidation. */
bool wqe_is_local(const struct send_wqe *wqe);
enum ibv_wc_status window_run(struct rnic_qp *qp, const struct send_wqe *wqe);
/* Fields of the request; -EINVAL, -EOPNOTSUPP. */
int window_post(struct send_wqe *wqe, const struct ibv_send_wr *wr);
void window_unbind(struct rnic_mr *mw);
/* May the peer of this QP, or the QP itself, invalidate the key? */
bool window_may_invalidate(const struct rnic_qp *qp, uint32_t key);
void window_invalidate(struct rnic_qp *qp, uint32_t key);

#endif
