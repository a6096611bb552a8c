/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: multicast groups (mcast.c). */
#ifndef RNIC_MCAST_H
#define RNIC_MCAST_H

#include "lib/rnic/rnic.h"

enum {
	MAX_MCAST = 256, /* attachments of queue pairs to groups */
	MULTICAST_QPN = 0xffffff
};

struct mcast {
	struct wire_ip group;
	struct rnic_qp *qp;
};

bool mcast_member(const struct rnic *rnic, const struct wire_ip *group);
void mcast_forget(struct rnic_qp *qp);
/* To every QP attached to the group: 0 if one took it. */
unsigned mcast_rx(
	struct rnic *rnic, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now);

#endif
