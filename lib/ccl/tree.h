/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast down a tree of the ranks, k-nomial or binary, over RC connections between hosts: what
 * MPI libraries do, the yardstick beside multicast. A rank sends on each message as soon as it has
 * it. A receiver posts its receives at their final places and tells its parent how many; so no
 * message comes too early and none is copied.
 *
 * As in ccl.h the core never blocks and never reads a clock, `now` is nanoseconds of any monotonic
 * clock, one thread at a time, errors are negative errno; the first one is final and ccl_tree_error
 * says what it was. Buffers belong to the tree until the request is done. */
#ifndef CCL_TREE_H
#define CCL_TREE_H

#include <jansson.h>

#include "lib/ccl/ccl.h"
#include "lib/ccl/tree_plan.h"

struct ccl_tree;
struct ccl_boot;

enum { CCL_TREE_MAX_BINARY = 256 }; /* ranks, if all may be roots: all pairs are connected */

struct ccl_tree_conf {
	struct ibv_context *context; /* stays the caller's */
	/* As in mcast.h, but no remote access. */
	struct ibv_pd *pd;
	struct ibv_mr *(*find)(void *arg, const void *buf, uint64_t len);
	void *find_arg;
	uint8_t port;      /* 0: 1 */
	uint8_t gid_index; /* of the rank's own address */
	unsigned rank, n_ranks;
	int only_root; /* the one that will be; -1: any rank */
	struct ccl_tree_shape shape;
	unsigned mtu;        /* 0: the port's; the smallest of all ranks' counts */
	unsigned m, w;       /* packets of a message, messages in flight to a child: 1..1024 */
	uint64_t timeout_ns; /* without any progress; 0: 10 s */
};

int ccl_tree_open(const struct ccl_tree_conf *conf, struct ccl_tree **tree, char err[CCL_ERR_LEN]);
void ccl_tree_close(struct ccl_tree *tree); /* may be NULL */

/* As ccl_mcast_address, ccl_mcast_connect and ccl_mcast_meet. */
json_t *ccl_tree_address(const struct ccl_tree *tree);
int ccl_tree_connect(struct ccl_tree *tree, const json_t *all, char err[CCL_ERR_LEN]);
int ccl_tree_meet(struct ccl_tree *tree, struct ccl_boot *boot, char err[CCL_ERR_LEN]);

/* -EINVAL: no such root, or not the only one; -EAGAIN: CCL_MAX_QUEUED are unfinished. */
int ccl_tree_ibroadcast(
	struct ccl_tree *tree, void *buf, uint64_t bytes, unsigned root, struct ccl_req *req);
int ccl_tree_test(const struct ccl_tree *tree, struct ccl_req req);
int ccl_tree_progress(struct ccl_tree *tree, uint64_t now);

void ccl_tree_fail(struct ccl_tree *tree, int error);
const char *ccl_tree_error(const struct ccl_tree *tree); /* "" while it has not failed */
unsigned ccl_tree_mtu(const struct ccl_tree *tree);
struct ibv_cq *ccl_tree_cq(const struct ccl_tree *tree);
struct ibv_comp_channel *ccl_tree_channel(const struct ccl_tree *tree);

#endif
