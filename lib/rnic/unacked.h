/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: the sending half of UC and UD (unacked.c). */
#ifndef RNIC_UNACKED_H
#define RNIC_UNACKED_H

#include "lib/rnic/qp.h"

/* NULL if there is no request, or none may begin. */
struct send_wqe *unacked_next(struct rnic_qp *qp);
/* len bytes of it are in a frame. */
void unacked_sent(struct rnic_qp *qp, const struct send_wqe *wqe, uint32_t len);
void unacked_settle(struct rnic_qp *qp);
void unacked_drain(struct rnic_qp *qp, bool on);
void unacked_start_send(struct rnic_qp *qp);
void unacked_reset(struct rnic_qp *qp);
void unacked_timer(struct rnic_qp *qp);
bool unacked_tx_answer(struct rnic_qp *qp, struct rnic_frame *frame);

#endif
