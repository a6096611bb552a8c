/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives that are handed on as a whole: to a ring, to multicast, to a tree. A communicator's
 * own queue of collectives stays, so that requests mean the same. */
#include <errno.h>
#include <string.h>

#include "lib/ccl/boot.h"
#include "lib/ccl/comm.h"
#include "lib/ccl/group.h"
#include "lib/ccl/mcast.h"
#include "lib/ccl/ring.h"
#include "lib/ccl/tree.h"

/* Memory that the application has registered. */
static struct ibv_mr *find_region(void *arg, const void *buf, uint64_t len)
{
	const struct ccl_comm *c = arg;
	const uint8_t *at = buf;

	for (unsigned i = 0; i < CCL_MAX_REGIONS; i++) {
		const struct ccl_region *r = &c->region[i];

		if (r->mr && at >= r->base && len <= r->len &&
			(uint64_t)(at - r->base) <= r->len - len)
			return r->mr;
	}
	return NULL;
}

/* ---- joining ---- */

int ccl_over_mcast(
	struct ccl_comm *c, const struct ccl_group *g, struct ccl_boot *boot, char err[CCL_ERR_LEN])
{
	const struct ccl_mcast_conf conf = {.context = c->context,
		.pd = c->pd,
		.find = find_region,
		.find_arg = c,
		.port = c->port,
		.gid_index = c->gid_index,
		.rank = c->rank,
		.n_ranks = c->n_ranks,
		.group = g->mcast.group,
		.trees = g->mcast.trees,
		.workers = ccl_device_workers(c->context),
		.uc = g->mcast.uc,
		.chains = g->mcast.chains,
		.timeout_ns = c->timeout_ns};
	struct ccl_mcast_info info;
	int rc = ccl_mcast_open(&conf, &c->mcast, err);

	if (rc) {
		ccl_boot_abort(boot, err);
		return rc;
	}
	c->mcast_min = g->mcast.min_bytes;
	rc = ccl_mcast_meet(c->mcast, boot, err);
	ccl_mcast_query(c->mcast, &info);
	if (c->kind == CCL_MULTICAST)
		c->mtu = info.mtu;
	return rc;
}

int ccl_over_tree(
	struct ccl_comm *c, const struct ccl_group *g, struct ccl_boot *boot, char err[CCL_ERR_LEN])
{
	const struct ccl_tree_conf conf = {.context = c->context,
		.pd = c->pd,
		.find = find_region,
		.find_arg = c,
		.port = c->port,
		.gid_index = c->gid_index,
		.rank = c->rank,
		.n_ranks = c->n_ranks,
		.only_root = -1,
		.shape = g->tree,
		.mtu = g->mtu,
		.m = c->m,
		.w = c->w,
		.timeout_ns = c->timeout_ns};
	int rc = ccl_tree_open(&conf, &c->tree, err);

	if (rc) {
		ccl_boot_abort(boot, err);
		return rc;
	}
	rc = ccl_tree_meet(c->tree, boot, err);
	c->mtu = ccl_tree_mtu(c->tree);
	return rc;
}

void ccl_hosts_close(struct ccl_comm *c)
{
	ccl_mcast_close(c->mcast);
	ccl_tree_close(c->tree);
	ccl_ring_close(c->ring);
	ccl_over_nodes_close(c);
}

/* ---- collectives ---- */

/* The root's own data is where its result is to be. */
static void put_own(const struct ccl_comm *c, const struct ccl_coll *coll)
{
	if (c->rank == coll->root && coll->send != coll->recv && coll->bytes)
		memcpy(coll->recv, coll->send, coll->bytes);
}

static int to_mcast(struct ccl_comm *c, struct ccl_coll *coll)
{
	if (coll->kind == CCL_ALLGATHER)
		return ccl_mcast_iallgather(
			c->mcast, coll->send, coll->recv, coll->bytes, &coll->handed_req);
	if (coll->kind != CCL_BROADCAST)
		return -EOPNOTSUPP;
	put_own(c, coll);
	return ccl_mcast_ibroadcast(
		c->mcast, coll->recv, coll->bytes, coll->root, &coll->handed_req);
}

int ccl_hand_on(struct ccl_comm *c, struct ccl_coll *coll)
{
	switch (coll->by) {
	case CCL_BY_MULTICAST:
		return to_mcast(c, coll);
	case CCL_BY_TREE:
		put_own(c, coll);
		return ccl_tree_ibroadcast(
			c->tree, coll->recv, coll->bytes, coll->root, &coll->handed_req);
	default:
		return c->across ? ccl_over_nodes_issue(c, coll)
				 : ccl_ring_issue(c->ring, c->rank, coll);
	}
}

static int test(const struct ccl_comm *c, const struct ccl_coll *coll)
{
	switch (coll->by) {
	case CCL_BY_MULTICAST:
		return ccl_mcast_test(c->mcast, coll->handed_req);
	case CCL_BY_TREE:
		return ccl_tree_test(c->tree, coll->handed_req);
	default: /* of a communicator with a ring, which looks itself, or not handed on */
		return 0;
	}
}

int ccl_hosts_go_on(struct ccl_comm *c, uint64_t now)
{
	const int n =
		c->mcast ? ccl_mcast_progress(c->mcast, now) : ccl_tree_progress(c->tree, now);

	for (uint64_t i = c->coll_done; i != c->coll_issued; i++) {
		const struct ccl_coll *coll = ccl_coll_at(c, i);

		if (coll->parts_left && test(c, coll) == 1)
			ccl_part_done(c, i);
	}
	if (n >= 0)
		return n;
	return ccl_fail(c, n, "%s", c->mcast ? ccl_mcast_error(c->mcast) : ccl_tree_error(c->tree));
}
