/* SPDX-License-Identifier: BSD-3-Clause */
/* What the queue of a ring's collectives tells: which of them are done, and whose buffers are in
 * use. */
#include <errno.h>

#include "lib/ccl/meet.h"
#include "lib/ccl/ring_priv.h"

bool ccl_ring_busy(const struct ccl_ring *r)
{
	return r->done != r->issued;
}

int ccl_ring_test(const struct ccl_ring *r, struct ccl_req req)
{
	if (req.seq >= r->issued)
		return -EINVAL;
	if (req.seq < r->done)
		return 1;
	return r->failed;
}

bool ring_uses(struct ccl_ring *r, const void *base, size_t len)
{
	for (uint64_t i = r->done; i != r->issued; i++) {
		const struct ring_coll *c = ring_coll_at(r, i);
		const uint64_t all = c->bytes * r->n_ranks;

		if (ccl_meet(c->send, c->kind == RING_REDUCE_SCATTER ? all : c->bytes, base, len) ||
			ccl_meet(c->recv, c->kind == RING_ALLGATHER ? all : c->bytes, base, len))
			return true;
	}
	return false;
}
