/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection Lookup and Translation Table: every registered connection of every active ring. An
 * immutable object, swapped in as a whole (RCU), like struct fwd; NULL while there is no ring. */
#ifndef NR_CLT_H
#define NR_CLT_H

#include <rte_hash.h>

#include "dataplane/netreduce/engine.h"

struct nr_clt {
	struct rte_hash *hash; /* nr_key -> index in row */
	unsigned n;
	struct nr_look row[];
};

/* Of n rings that are not NULL. -EEXIST with the two rings' names in err: a connection is in both
 * (or twice in one); -ENOMEM. Of no ring at all: 0 and NULL. */
int nr_clt_create(
	struct nr_ring *const *rings, unsigned n, struct nr_clt **clt, char err[NR_ERR_LEN]);
void nr_clt_destroy(struct nr_clt *clt);

#endif
