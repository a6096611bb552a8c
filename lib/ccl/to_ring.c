/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator's collective, given to a ring. */
#include <string.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/ring.h"

/* The ring broadcasts in place. */
static int broadcast(
	struct ccl_ring *ring, unsigned rank, const struct ccl_coll *coll, struct ccl_req *req)
{
	if (rank == coll->root && coll->send != coll->recv && coll->bytes)
		memcpy(coll->recv, coll->send, coll->bytes);
	return ccl_ring_ibroadcast(ring, coll->recv, coll->bytes, coll->root, req);
}

int ccl_ring_issue(struct ccl_ring *ring, unsigned rank, struct ccl_coll *coll)
{
	const enum reduce_dtype dtype = (enum reduce_dtype)coll->dtype;
	const enum reduce_op op = (enum reduce_op)coll->op;
	const uint64_t count = coll->bytes / reduce_size(dtype);
	struct ccl_req *req = &coll->handed_req;

	switch (coll->kind) {
	case CCL_ALLREDUCE:
		return ccl_ring_iallreduce(ring, coll->send, coll->recv, count, dtype, op, req);
	case CCL_REDUCE:
		return ccl_ring_ireduce(
			ring, coll->send, coll->recv, count, dtype, op, coll->root, req);
	case CCL_BROADCAST:
		return broadcast(ring, rank, coll, req);
	case CCL_REDUCE_SCATTER:
		return ccl_ring_ireduce_scatter(
			ring, coll->send, coll->recv, count, dtype, op, req);
	case CCL_ALLGATHER:
		return ccl_ring_iallgather(ring, coll->send, coll->recv, coll->bytes, req);
	default:
		return ccl_ring_ibarrier(ring, req);
	}
}
