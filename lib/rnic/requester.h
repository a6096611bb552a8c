/* SPDX-License-Identifier: BSD-3-Clause */
/* What requester.c and completer.c share: where an RC requester stands. */
#ifndef RNIC_REQUESTER_H
#define RNIC_REQUESTER_H

#include "lib/rnic/rc.h"

static inline struct send_wqe *request(const struct rnic_qp *qp, uint32_t index)
{
	return ring_at(&qp->sq, index);
}

/* Where a request starts, and the PSNs skipped before it; index may be the one to be posted next.
 */
static inline uint64_t start_of(const struct rnic_qp *qp, uint32_t index)
{
	return index == rc_of(qp)->req.assign_idx ? rc_of(qp)->req.assign
						  : request(qp, index)->first;
}

static inline uint64_t skipped_at(const struct rnic_qp *qp, uint32_t index)
{
	return index == rc_of(qp)->req.assign_idx ? rc_of(qp)->req.skipped
						  : request(qp, index)->skipped;
}

/* Packets, not PSNs, that would be in flight before `next`. */
static inline uint64_t in_flight(const struct rnic_qp *qp)
{
	const struct rc_requester *req = &rc_of(qp)->req;

	return (req->next - skipped_at(qp, req->next_idx)) -
	       (req->una - skipped_at(qp, req->una_idx));
}

/* Bytes before the packet seq, which is of request index, modulo 2^32: of a READ those of its
 * answer.
 */
static inline uint32_t bytes_at(const struct rnic_qp *qp, uint32_t index, uint64_t seq)
{
	const struct rc_requester *req = &rc_of(qp)->req;
	const struct send_wqe *wqe;
	uint64_t offset;

	if (index == req->assign_idx)
		return req->bytes;
	wqe = request(qp, index);
	offset = (seq - wqe->first) * qp->mtu;
	return wqe->bytes + (uint32_t)(offset < wqe->len ? offset : wqe->len);
}

static inline uint32_t bytes_acked(const struct rnic_qp *qp)
{
	return bytes_at(qp, rc_of(qp)->req.una_idx, rc_of(qp)->req.una);
}

static inline bool outstanding(const struct rc_requester *req)
{
	return req->una != req->high;
}

/* By a packet that has left and asks for one: of the others nothing need come back. */
static inline bool answer_due(const struct rc_requester *req)
{
	return req->asked > req->una;
}

/* The oldest request failed: it completes with status, everything else is flushed. */
void rc_fail(struct rnic_qp *qp, enum ibv_wc_status status);
/* Request index fails in its turn, and no packet of it leaves before. */
void rc_fail_in_turn(struct rnic_qp *qp, uint32_t index, enum ibv_wc_status status);
/* It is its turn, perhaps. */
void rc_settle_fault(struct rnic_qp *qp);
/* In SQD: nothing that was begun is unfinished. */
void rc_settle_drain(struct rnic_qp *qp);
/* Requests without packets are done when they have been carried out and all before them is done. */
void rc_settle_local(struct rnic_qp *qp);

#endif
