/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic, and for transports: which QP sends next (scheduler.c). */
#ifndef RNIC_SCHEDULER_H
#define RNIC_SCHEDULER_H

#include <stdint.h>

enum { QUANTUM = 16, MAX_QUANTUM = 255 }; /* rnic_config.quantum, on either list */

struct rnic;
struct rnic_qp;

/* Any thread, after ring_post. */
void sched_ring_bell(struct rnic *rnic, uint32_t slot);
/* Its transport may have a packet to send: ops->tx will be asked. */
void qp_ready(struct rnic_qp *qp);
/* The same for ops->tx_control. Both are asked though they had no room a while ago. */
void qp_has_control(struct rnic_qp *qp);
void sched_remove(struct rnic_qp *qp);
/* Off one of the lists, which it is on. */
void sched_unready(struct rnic_qp *qp);
void sched_uncontrol(struct rnic_qp *qp);
/* The others of its lane have their turn. */
void sched_rotate_ready(struct rnic_qp *qp);
void sched_rotate_control(struct rnic_qp *qp);
/* Waits in this lane from now on. */
void sched_move(struct rnic_qp *qp, unsigned lane);
/* QPs whose bell rang become ready. */
void sched_collect(struct rnic *rnic);

#endif
