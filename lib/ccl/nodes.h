/* SPDX-License-Identifier: BSD-3-Clause */
/* AllReduce among nodes of several devices, a rank each, in three steps over two rings of which
 * every rank is in both: one of its node's ranks, and one across the nodes (NetReduce,
 * section 3.4).
 *
 *  - parallel: the node's ranks reduce and scatter, so that each has the node's sum of its own
 *    block; a ring across the nodes per rank of a node reduces that block, all at the same time;
 *    the node's ranks gather the blocks.
 *  - master: the node's ranks reduce to the first, the first ones of all nodes reduce, the node
 *    gets it by Broadcast (Tencent's, the paper's baseline).
 *
 * Rings across nodes may be NetReduce's or rings of the hosts. The rings are the caller's,
 * connected and used by nobody else while this is open. Threads, time and errors as in ring.h. */
#ifndef CCL_NODES_H
#define CCL_NODES_H

#include "lib/ccl/ring.h"

enum ccl_nodes_way { CCL_NODES_PARALLEL, CCL_NODES_MASTER };
enum { CCL_NODES_MAX_QUEUED = CCL_MAX_QUEUED, CCL_NODES_MAX_LOCAL = 64 };

struct ccl_nodes_conf {
	enum ccl_nodes_way way;
	unsigned index, n_local; /* the rank's place in its node: its rank in `local` */
	struct ccl_ring *local;  /* a ring of the hosts */
	/* The ranks with the same index; master: NULL but at index 0. */
	struct ccl_ring *across;
};

struct ccl_nodes;

/* -EINVAL naming the field, -ENOMEM. */
int ccl_nodes_open(
	const struct ccl_nodes_conf *conf, struct ccl_nodes **nodes, char err[CCL_ERR_LEN]);
/* The rings stay; what is unfinished must have failed or be waited for first. NULL: nothing. */
void ccl_nodes_close(struct ccl_nodes *nodes);

/* Arguments and errors as ccl_ring_iallreduce; all ranks of all nodes call the same ones in the
 * same order. One at a time is on the rings. A count that n_local does not divide is copied into
 * working memory of one block more at most (-ENOMEM). -EAGAIN: CCL_NODES_MAX_QUEUED wait. */
int ccl_nodes_iallreduce(struct ccl_nodes *nodes, const void *sendbuf, void *recvbuf,
	uint64_t count, enum reduce_dtype dtype, enum reduce_op op, struct ccl_req *req);
int ccl_nodes_ibarrier(struct ccl_nodes *nodes, struct ccl_req *req);

/* As ccl_ring_test, ccl_ring_progress. Progress includes both rings'. */
int ccl_nodes_test(const struct ccl_nodes *nodes, struct ccl_req req);
int ccl_nodes_progress(struct ccl_nodes *nodes, uint64_t now);
const char *ccl_nodes_error(const struct ccl_nodes *nodes); /* which ring, and its words; or "" */

#endif
