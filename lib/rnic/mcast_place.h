/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: what comes for a window (mcast_window.c). */
#ifndef RNIC_MCAST_PLACE_H
#define RNIC_MCAST_PLACE_H

#include "lib/rnic/mcast_window.h"

/* A packet of the group, for the open window of the queue pair: 0 or the drop reason. The caller
 * has looked at its opcode, which has immediate data. */
unsigned mcast_place_write(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt);
unsigned mcast_place_datagram(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt);
/* None any more. Workers are held. */
void mcast_window_close(struct rnic_qp *qp);

#endif
