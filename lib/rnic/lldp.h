/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: LLDP of the ports (lldp.c). Nothing happens where it is off. */
#ifndef RNIC_LLDP_H
#define RNIC_LLDP_H

#include "lib/rnic/rnic.h"
#include "lib/rnic/timer.h"

/* 0, -ENOMEM, or -EINVAL: it is on, and somebody has no name. */
int rnic_lldp_init(struct rnic *rnic, const struct rnic_config *config);
void rnic_lldp_free(struct rnic *rnic);

/* Of a port, when it is due. */
void rnic_lldp_timer(struct rnic *rnic, struct timer *timer, uint64_t now);
/* The port's link has changed. */
void rnic_lldp_link(struct rnic *rnic, unsigned port, uint64_t now);

/* Is it read here? Constant in a device. */
bool rnic_lldp_reads(const struct rnic *rnic, const uint8_t *frame, size_t len);
/* Such a frame: 0 or the drop reason. */
unsigned rnic_lldp_rx(
	struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len, uint64_t now);

#endif
