/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators of the hosts alone, by multicast or down a tree: opened, introduced, closed. */
#include <errno.h>

#include "lib/sim/coll_priv.h"
#include "lib/verbs/incline_dv.h"

/* Receives of a member: the hosts of a simulation take what comes at once. */
enum { DEPTH = 256 };
static const uint64_t ALPHA_NS = 1000000;

static bool is_tree(const struct sim_coll *c)
{
	return c->conf.algorithm == CCL_BY_TREE;
}

static unsigned n_trees(const struct sim_coll *c)
{
	return c->conf.trees > 0 ? c->conf.trees : 1;
}

/* The first one's; those of the other trees follow. */
static struct wire_ip group_address(struct sim_coll *c)
{
	const unsigned n = c->conf.sim->n_colls + 1;
	struct wire_ip ip = {{0xff, 0x0e}};

	c->conf.sim->n_colls += n_trees(c);
	if (wire_ip_is4(&c->conf.sim->topo->host[0].ip))
		return wire_ip_from4(0xef010000 + (n & 0xffff));
	ip.b[14] = (uint8_t)(n >> 8);
	ip.b[15] = (uint8_t)n;
	return ip;
}

static int open_mcast(struct sim_coll *c, unsigned r, char *err)
{
	const struct ccl_mcast_conf conf = {
		.context = sim_context(c->conf.sim, sim_coll_host(c, r)),
		.gid_index = 1,
		.rank = r,
		.n_ranks = c->conf.n_ranks,
		.group = c->multicast,
		.trees = c->conf.trees,
		.workers = inc_dv_receive_workers(sim_context(c->conf.sim, sim_coll_host(c, r))),
		.uc = c->conf.uc,
		.staged = c->conf.staged,
		.create = inc_dv_create_qp,
		.window = inc_dv_qp_mcast_window,
		.chains = c->conf.chains,
		.first_psn = c->conf.first_psn,
		.depth = DEPTH,
		.link_bps = c->conf.sim->conf.link.mbps * 1000000,
		.alpha_ns = ALPHA_NS,
		.timeout_ns = c->conf.timeout_ns,
	};

	return ccl_mcast_open(&conf, &c->rank[r].mcast, err);
}

static int open_tree(struct sim_coll *c, unsigned r, char *err)
{
	const struct ccl_tree_conf conf = {
		.context = sim_context(c->conf.sim, sim_coll_host(c, r)),
		.gid_index = 1,
		.rank = r,
		.n_ranks = c->conf.n_ranks,
		.only_root = c->conf.any_root ? -1 : 0,
		.shape = c->conf.tree,
		.mtu = c->conf.mtu,
		.m = c->conf.m,
		.w = c->conf.w,
		.timeout_ns = c->conf.timeout_ns,
	};

	return ccl_tree_open(&conf, &c->rank[r].tree, err);
}

static void know_all(struct sim_coll *c, unsigned rank)
{
	const struct sim_topo *t = c->conf.sim->topo;

	for (unsigned r = 0; r < c->conf.n_ranks; r++)
		sim_coll_know(c, rank, &t->host[sim_coll_host(c, r)].ip);
}

static int add_groups(struct sim_coll *c)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n_trees(c); i++) {
		const struct wire_ip group = ccl_mcast_group(&c->multicast, i);

		rc = sim_multicast_add(
			c->conf.sim, &group, c->conf.first_host, c->conf.n_ranks, c->conf.root);
	}
	return rc;
}

int sim_coll_open_hosts(struct sim_coll *c, char *err)
{
	const unsigned n = c->conf.n_ranks;
	json_t *all = json_array();
	int rc = all ? 0 : -ENOMEM;

	if (rc == 0 && !is_tree(c)) {
		c->multicast = group_address(c);
		rc = add_groups(c);
	}
	for (unsigned r = 0; rc == 0 && r < n; r++) {
		rc = is_tree(c) ? open_tree(c, r, err) : open_mcast(c, r, err);
		if (rc == 0)
			json_array_append_new(all, is_tree(c)
							   ? ccl_tree_address(c->rank[r].tree)
							   : ccl_mcast_address(c->rank[r].mcast));
	}
	for (unsigned r = 0; rc == 0 && r < n; r++) {
		know_all(c, r);
		rc = is_tree(c) ? ccl_tree_connect(c->rank[r].tree, all, err)
				: ccl_mcast_connect(c->rank[r].mcast, all, err);
	}
	json_decref(all);
	return rc;
}

void sim_coll_close_hosts(struct sim_coll *c)
{
	for (unsigned r = 0; r < c->conf.n_ranks; r++) {
		ccl_mcast_close(c->rank[r].mcast);
		ccl_tree_close(c->rank[r].tree);
		c->rank[r].mcast = NULL;
		c->rank[r].tree = NULL;
	}
	if (sim_coll_by_hosts(c) && !is_tree(c))
		sim_multicast_remove(c->conf.sim, &c->multicast);
}

int sim_coll_issue_hosts(
	struct sim_rank *rank, const struct sim_work *w, uint64_t block, struct sim_call *k)
{
	const bool root = rank->index == w->root;

	if (w->op == CCL_BROADCAST && root)
		memcpy(k->out, k->in, w->bytes / 4 * 4);
	if (w->op == CCL_BROADCAST && rank->tree)
		return ccl_tree_ibroadcast(rank->tree, k->out, w->bytes / 4 * 4, w->root, &k->req);
	if (w->op == CCL_BROADCAST)
		return ccl_mcast_ibroadcast(
			rank->mcast, k->out, w->bytes / 4 * 4, w->root, &k->req);
	if (w->op == CCL_ALLGATHER && rank->mcast)
		return ccl_mcast_iallgather(rank->mcast, k->in, k->out, block * 4, &k->req);
	return -EOPNOTSUPP;
}

int sim_coll_progress_hosts(struct sim_rank *rank, uint64_t now)
{
	struct sim *sim = rank->coll->conf.sim;
	int n;

	if (rank->tree)
		return ccl_tree_progress(rank->tree, now);
	n = ccl_mcast_progress(rank->mcast, now);
	sim_wake(sim, sim_coll_host(rank->coll, rank->index), ccl_mcast_deadline(rank->mcast));
	return n;
}

int sim_coll_test_hosts(const struct sim_rank *rank, struct ccl_req req)
{
	return rank->tree ? ccl_tree_test(rank->tree, req) : ccl_mcast_test(rank->mcast, req);
}
