/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/sim/nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rank {
	struct sim_nodes *all;
	struct ccl_nodes *nodes;
	struct ccl_req sum, barrier;
	bool has_sum, done;
	int32_t *in, *out;
};

struct sim_nodes {
	struct sim_nodes_conf conf;
	unsigned n_ranks, n_done;
	uint64_t started, finished, seed;
	struct sim_coll **local, **across; /* per node; per place in a node */
	struct rank *rank;
};

static int app(void *arg, uint64_t now)
{
	struct rank *r = arg;
	const int rc = ccl_nodes_progress(r->nodes, now);

	if (rc < 0 || !r->out || r->done)
		return rc;
	if (!r->has_sum && ccl_nodes_test(r->nodes, r->sum) == 1) {
		r->has_sum = true;
		r->all->finished = now;
	}
	if (ccl_nodes_test(r->nodes, r->barrier) == 1) {
		r->done = true;
		r->all->n_done++;
	}
	return rc;
}

/* ---- making ---- */

static int rings(struct sim_nodes *n, char *err)
{
	const struct sim_nodes_conf *k = &n->conf;
	const unsigned n_across = k->way == CCL_NODES_PARALLEL ? k->n_local : 1;
	struct sim_coll_conf conf = {.sim = k->sim,
		.mode = CCL_MODE_RING,
		.n_ranks = k->n_local,
		.root = k->root,
		.mtu = k->mtu,
		.m = k->m,
		.w = k->w,
		.flags = INC_F_STALL_RNR,
		.timeout_ns = k->timeout_ns};
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < k->n_nodes; i++) {
		conf.first_host = i * k->n_local;
		conf.start_psn = 0xffff00 + 1000 * i; /* wraps */
		rc = sim_coll_create(&conf, &n->local[i], err);
	}
	conf.mode = k->across;
	conf.n_ranks = k->n_nodes;
	conf.host_step = k->n_local;
	conf.pass_first = true;
	for (unsigned i = 0; rc == 0 && i < n_across; i++) {
		conf.first_host = i;
		conf.start_psn = 0xfff000 + 1000 * i;
		rc = sim_coll_create(&conf, &n->across[i], err);
	}
	return rc;
}

static int open_rank(struct sim_nodes *n, unsigned r, char *err)
{
	const unsigned node = r / n->conf.n_local, index = r % n->conf.n_local;
	const struct ccl_nodes_conf conf = {.way = n->conf.way,
		.index = index,
		.n_local = n->conf.n_local,
		.local = sim_coll_ring(n->local[node], index),
		.across = n->across[index] ? sim_coll_ring(n->across[index], node) : NULL};
	int rc = ccl_nodes_open(&conf, &n->rank[r].nodes, err);

	n->rank[r].all = n;
	return rc ? rc : sim_add_app(n->conf.sim, r, app, &n->rank[r]);
}

int sim_nodes_create(
	const struct sim_nodes_conf *conf, struct sim_nodes **nodes, char err[CCL_ERR_LEN])
{
	struct sim_nodes *n = calloc(1, sizeof(*n));
	int rc;

	if (!n)
		return -ENOMEM;
	n->conf = *conf;
	n->n_ranks = conf->n_nodes * conf->n_local;
	n->local = calloc(conf->n_nodes, sizeof(struct sim_coll *));
	n->across = calloc(conf->n_local, sizeof(struct sim_coll *));
	n->rank = calloc(n->n_ranks, sizeof(*n->rank));
	rc = n->local && n->across && n->rank ? rings(n, err) : -ENOMEM;
	for (unsigned r = 0; rc == 0 && r < n->n_ranks; r++)
		rc = open_rank(n, r, err);
	if (rc) {
		sim_nodes_destroy(n);
		return rc;
	}
	*nodes = n;
	return 0;
}

static void forget(struct rank *r)
{
	free(r->in);
	free(r->out);
	r->in = r->out = NULL;
}

void sim_nodes_destroy(struct sim_nodes *n)
{
	for (unsigned r = 0; n->rank && r < n->n_ranks; r++)
		sim_remove_app(n->conf.sim, r, &n->rank[r]);
	for (unsigned i = 0; n->local && i < n->conf.n_nodes; i++)
		if (n->local[i])
			sim_coll_destroy(n->local[i]);
	for (unsigned i = 0; n->across && i < n->conf.n_local; i++)
		if (n->across[i])
			sim_coll_destroy(n->across[i]);
	/* The rings may have written to the memory until now. */
	for (unsigned r = 0; n->rank && r < n->n_ranks; r++) {
		ccl_nodes_close(n->rank[r].nodes);
		forget(&n->rank[r]);
	}
	free(n->local);
	free(n->across);
	free(n->rank);
	free(n);
}

/* ---- running ---- */

static uint32_t contribution(const struct sim_nodes *n, unsigned rank, uint64_t i)
{
	return (uint32_t)i * 2654435761u ^ rank * 40503u ^ (uint32_t)n->seed * 0x85ebca6bu;
}

static int issue(struct sim_nodes *n, unsigned rank, uint64_t count, bool in_place)
{
	struct rank *r = &n->rank[rank];
	int rc;

	forget(r);
	r->has_sum = r->done = false;
	r->in = calloc(count + 1, sizeof(*r->in));
	r->out = calloc(count + 1, sizeof(*r->out));
	if (!r->in || !r->out)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++)
		(in_place ? r->out : r->in)[i] = (int32_t)contribution(n, rank, i);
	r->out[count] = r->in[count] = 0x5a5a5a5a;
	rc = ccl_nodes_iallreduce(r->nodes, in_place ? r->out : r->in, r->out, count, REDUCE_INT32,
		REDUCE_SUM, &r->sum);
	return rc ? rc : ccl_nodes_ibarrier(r->nodes, &r->barrier);
}

static bool all_done(void *nodes)
{
	const struct sim_nodes *n = nodes;

	return n->n_done == n->n_ranks;
}

static int check(const struct sim_nodes *n, uint64_t count, bool in_place)
{
	for (uint64_t i = 0; i < count; i++) {
		uint32_t sum = 0;

		for (unsigned r = 0; r < n->n_ranks; r++)
			sum += contribution(n, r, i);
		for (unsigned r = 0; r < n->n_ranks; r++)
			if ((uint32_t)n->rank[r].out[i] != sum ||
				(!in_place && (uint32_t)n->rank[r].in[i] != contribution(n, r, i)))
				return -EBADMSG;
	}
	for (unsigned r = 0; r < n->n_ranks; r++)
		if (n->rank[r].out[count] != 0x5a5a5a5a)
			return -EBADMSG;
	return 0;
}

int sim_nodes_allreduce(
	struct sim_nodes *n, uint64_t count, bool in_place, uint64_t limit_ns, uint64_t *ns)
{
	const uint64_t now = sim_now(n->conf.sim);
	int rc = 0;

	n->started = now;
	n->n_done = 0;
	n->seed++;
	for (unsigned r = 0; rc == 0 && r < n->n_ranks; r++)
		rc = issue(n, r, count, in_place);
	for (unsigned r = 0; rc == 0 && r < n->n_ranks; r++)
		sim_kick(n->conf.sim, r);
	if (rc == 0)
		rc = sim_run(n->conf.sim, all_done, n, now + limit_ns);
	if (rc == 0)
		rc = check(n, count, in_place);
	*ns = n->finished - n->started;
	return rc;
}

struct ccl_nodes *sim_nodes_rank(const struct sim_nodes *n, unsigned rank)
{
	return n->rank[rank].nodes;
}

const char *sim_nodes_error(const struct sim_nodes *n)
{
	const char *text = "";

	for (unsigned r = 0; r < n->n_ranks && !text[0]; r++)
		text = n->rank[r].nodes ? ccl_nodes_error(n->rank[r].nodes) : "";
	return text;
}
