/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: queue pair 1 (gsi.c). */
#ifndef RNIC_GSI_H
#define RNIC_GSI_H

#include "lib/rnic/rnic.h"

/* A datagram to QP 1 (gsi.c): 0 or the drop reason. */
unsigned gsi_rx(struct rnic *rnic, unsigned port, const uint8_t *frame, const struct wire_pkt *pkt);

#endif
