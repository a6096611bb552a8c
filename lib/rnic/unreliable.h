/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: what UC (uc.c) and UD (ud.c) have in common, their sending half
 * (unreliable.c). */
#ifndef RNIC_UNRELIABLE_H
#define RNIC_UNRELIABLE_H

#include "lib/rnic/transport.h"

/* First in the state of either transport. */
struct unreliable {
	uint32_t psn;  /* of the next packet, modulo 2^24 */
	uint32_t sent; /* bytes of the oldest send request that have left */
	bool all_sent; /* all have, in a frame that the caller may still be copying: it completes at
			* the next call */
	bool draining; /* SQD: a request begun is being finished */
};

/* The request to send from. NULL if there is none, or none may begin. */
struct send_wqe *unreliable_next(struct rnic_qp *qp);
/* len bytes of it are in a frame. */
void unreliable_sent(struct rnic_qp *qp, const struct send_wqe *wqe, uint32_t len);
/* Its memory cannot be read. */
void unreliable_refuse(struct rnic_qp *qp);

int unreliable_check_attr(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask);
void unreliable_query(const struct rnic_qp *qp, struct ibv_qp_attr *attr);
void unreliable_stats(const struct rnic_qp *qp, struct rnic_qp_stats *stats);
void unreliable_enter(
	struct rnic_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, uint64_t now);
void unreliable_fail(struct rnic_qp *qp);

#endif
