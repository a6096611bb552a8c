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
	bool due; /* those behind its port are to hear that the group has a member here */
};

/* A QP of this port is. */
bool mcast_member(struct rnic *rnic, unsigned port, const struct wire_ip *group);
/* One other than this, on its port. */
bool mcast_other_member(const struct rnic_qp *qp, const struct wire_ip *group);
void mcast_forget(struct rnic_qp *qp);
/* Reports that are due at the port become frames that wait there, as many as there is room for. */
void mcast_report(struct rnic *rnic, unsigned port);
/* The worker of all QPs of the port attached to the group; 0: the owner, or not all have the same.
 */
unsigned mcast_worker(const struct rnic *rnic, unsigned port, const struct wire_ip *group);
/* To every QP of the port attached to the group, if a worker calls to every one of its own: 0 if
 * one took it. */
unsigned mcast_rx(struct rnic *rnic, unsigned worker, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now);

/* The one queue pair that mcast_rx would give it to, if there is one alone, the worker's (0: the
 * owner's), and it takes packets of that kind; else NULL. */
struct rnic_qp *mcast_only(
	const struct rnic *rnic, unsigned worker, unsigned port, const struct wire_pkt *pkt);

/* What is no RoCE: a query for members is answered at once. 0, or the drop reason. */
unsigned mcast_query(
	struct rnic *rnic, unsigned port, const uint8_t *frame, const struct wire_pkt *pkt);

#endif
