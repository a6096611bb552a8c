/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: shared receive queues (srq.c). */
#ifndef RNIC_SRQ_H
#define RNIC_SRQ_H

#include <sys/queue.h>

#include "lib/rnic/ring.h"
#include "lib/rnic/rnic.h"
#include "lib/rnic/wqe.h"

struct rnic_srq {
	LIST_ENTRY(rnic_srq) link;
	struct rnic_pd *pd;
	void *user;
	uint32_t users, max_wr, max_sge;
	uint32_t limit; /* 0: no event */
	struct ring ring;
};

/* The oldest request; NULL: the SRQ is empty. */
const struct recv_wqe *srq_next(const struct rnic_srq *srq);
/* Takes the oldest request of an SRQ into `to`; false: it is empty. */
bool srq_take(struct rnic_srq *srq, struct recv_wqe *to);

#endif
