/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic, and for transports: completion queues (cq.c). */
#ifndef RNIC_CQ_H
#define RNIC_CQ_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "lib/rnic/device.h"
#include "lib/rnic/ring.h"
#include "lib/rnic/rnic.h"

enum { MAX_CQE = 1 << 18 };

struct cqe {
	struct ibv_wc wc;
	/* Cleared by the owner when the QP goes: may race with a poll, which either still returns
	 * the entry or passes over it. */
	atomic_bool valid;
};

enum cq_arm { CQ_DISARMED, CQ_ARM_SOLICITED, CQ_ARM_ANY };

struct rnic_cq {
	LIST_ENTRY(rnic_cq) link;
	struct rnic *rnic;
	void *user;
	uint32_t users;           /* queues of QPs that complete here */
	unsigned worker;          /* that all of them are of, see worker.h; 0: the owner produces */
	struct cq_gather *gather; /* of who produces */
	_Atomic int armed;        /* enum cq_arm */
	atomic_bool overrun;      /* for good */
	STAILQ_ENTRY(rnic_cq) unshown_link;
	uint32_t unshown; /* entries behind the ring's head; on the list if there are any */
	bool wakes;       /* one of them raises the event of a CQ armed for what is solicited */
	struct ring ring;
};

void cq_push(struct rnic_cq *cq, const struct ibv_wc *wc, bool solicited);
/* Who produces is about to complete many requests: they show, and raise their event, when
 * cq_publish is called. */
static inline void cq_gather(struct cq_gather *gather)
{
	gather->on = true;
}
void cq_publish(struct cq_gather *gather);
void cq_purge(struct rnic_cq *cq, uint32_t qpn);
bool cq_is_dead(const struct rnic_cq *cq);
/* QPs whose CQ has overrun fail, and those that a worker has marked: not where that happened, in
 * the middle of something, and by the owner alone. */
void cq_settle(struct rnic *rnic);
static inline bool cq_unsettled(const struct rnic *rnic)
{
	return atomic_load_explicit(&rnic->unsettled, memory_order_relaxed);
}
/* A QP with receive queue in a CQ: its worker's from now on, until the last one has gone. -EINVAL:
 * it is another's. */
int cq_give(struct rnic_cq *cq, unsigned worker);

#endif
