/* SPDX-License-Identifier: BSD-3-Clause */
/* Which algorithm a communicator uses for a collective and its size. */
#include <errno.h>
#include <stdio.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/mcast.h"

enum ccl_algorithm ccl_pick(const struct ccl_comm *c, enum ccl_collective kind, uint64_t bytes)
{
	if (c->kind == CCL_MULTICAST)
		return CCL_BY_MULTICAST;
	if (c->kind == CCL_TREE)
		return CCL_BY_TREE;
	if (c->mcast && ccl_algorithm_does(CCL_BY_MULTICAST) >> kind & 1 && bytes >= c->mcast_min &&
		bytes > 0 &&
		ccl_mcast_fits(c->mcast, kind == CCL_ALLGATHER,
			kind == CCL_ALLGATHER ? bytes / c->n_ranks : bytes))
		return CCL_BY_MULTICAST;
	return c->ring && (c->fallback || c->mode != CCL_MODE_NETREDUCE) ? CCL_BY_RING : CCL_BY_INC;
}

static const char *const how[] = {
#define X(id, name, does, text) [CCL_BY_##id] = text,
	CCL_ALGORITHMS(X)
#undef X
};

int ccl_selected(const struct ccl_comm *c, enum ccl_collective kind, uint64_t bytes,
	enum ccl_algorithm *algorithm, char why[CCL_ERR_LEN])
{
	if ((unsigned)kind >= CCL_N_COLLECTIVES || !(c->collectives >> kind & 1))
		return -EOPNOTSUPP;
	*algorithm = ccl_pick(c, kind, bytes);
	if (c->mcast && c->kind != CCL_MULTICAST && *algorithm == CCL_BY_MULTICAST)
		snprintf(why, CCL_ERR_LEN,
			"at least %llu bytes, and every rank's device has multicast",
			(unsigned long long)c->mcast_min);
	else if (c->mcast && c->kind != CCL_MULTICAST &&
		 ccl_algorithm_does(CCL_BY_MULTICAST) >> kind & 1)
		snprintf(why, CCL_ERR_LEN, "%s for multicast",
			bytes < c->mcast_min ? "too small" : "too large");
	else
		snprintf(why, CCL_ERR_LEN, "%s", how[*algorithm]);
	return 0;
}
