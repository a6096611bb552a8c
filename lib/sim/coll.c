/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/sim/coll.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/sim/coll_priv.h"
#include "lib/verbs/incline_dv.h"

static int host_skip(struct ibv_qp *qp, int dir, uint32_t from, uint32_t count)
{
	return inc_dv_qp_skip(qp, (enum inc_dv_dir)dir, from, count);
}

/* ---- making ---- */

static struct ccl_conn connection(const struct sim_coll *c, unsigned rank)
{
	const struct sim_topo *t = c->conf.sim->topo;

	return (struct ccl_conn){
		.context = sim_context(c->conf.sim, rank),
		.gid_index = 1,
		.rank = rank,
		.n_ranks = c->conf.n_ranks,
		.m = c->conf.m,
		.w = c->conf.w,
		.timeout_ns = c->conf.timeout_ns,
		.mode = c->conf.mode,
		.kind = c->conf.kind,
		.collectives = c->conf.collectives,
		.skip = host_skip,
		.mtu = c->conf.mtu,
		.remote_ip = t->sw[t->host_switch[rank]].ip,
		.start_psn = c->conf.start_psn,
	};
}

static void know_switch(struct sim *sim, unsigned host, const struct wire_ip *ip)
{
	uint8_t mac[6];

	sim_switch_mac(sim->topo->host_switch[host], mac);
	rnic_neigh_add(incline_verbs_rnic(sim_context(sim, host)), ip, mac);
}

static int open_comms(struct sim_coll *c, char *err)
{
	struct ccl_remote remote[SIM_MAX_GROUPS];
	int rc = 0;

	for (unsigned r = 0; rc == 0 && r < c->conf.n_ranks; r++) {
		const struct ccl_conn conn = connection(c, r);

		rc = ccl_comm_open(&conn, &c->rank[r].comm, err);
	}
	if (rc == 0)
		rc = sim_coll_install(c, err);
	for (unsigned r = 0; rc == 0 && r < c->conf.n_ranks; r++) {
		struct ccl_conn conn = connection(c, r);

		know_switch(c->conf.sim, r, &conn.remote_ip);
		sim_coll_remotes(c, r, remote);
		conn.remote = remote;
		rc = ccl_comm_connect(c->rank[r].comm, &conn, err);
	}
	return rc;
}

static int open_ring(struct sim_coll *c, char *err)
{
	const unsigned n = c->conf.n_ranks;
	struct ccl_ring_address *at = calloc(n, sizeof(*at));
	int rc = at ? 0 : -ENOMEM;

	for (unsigned r = 0; rc == 0 && r < n; r++) {
		const struct ccl_ring_conf conf = {
			.context = sim_context(c->conf.sim, r),
			.gid_index = 1,
			.rank = r,
			.n_ranks = n,
			.mtu = c->conf.mtu,
			.m = c->conf.m,
			.w = c->conf.w,
			.timeout_ns = c->conf.timeout_ns,
			.start_psn = (c->conf.start_psn + 77 * r) & PSN_MASK,
		};

		rc = ccl_ring_open(&conf, &c->rank[r].ring, err);
		if (rc == 0)
			ccl_ring_address(c->rank[r].ring, &at[r]);
	}
	for (unsigned r = 0; rc == 0 && r < n; r++) {
		const struct ccl_ring_address *prev = &at[(r + n - 1) % n],
					      *next = &at[(r + 1) % n];

		know_switch(c->conf.sim, r, &prev->ip);
		know_switch(c->conf.sim, r, &next->ip);
		rc = ccl_ring_connect(c->rank[r].ring, prev, next, c->conf.mtu, err);
	}
	free(at);
	return rc;
}

/* What a rank does whenever something happened at its host. */
static int rank_app(void *arg, uint64_t now)
{
	struct sim_rank *rank = arg;
	int rc = rank->ring ? ccl_ring_progress(rank->ring, now) : ccl_progress(rank->comm, now);

	if (rc >= 0 && rank->waits &&
		(rank->ring ? ccl_ring_test(rank->ring, rank->req)
			    : ccl_test(rank->comm, rank->req)) == 1) {
		rank->waits = false;
		rank->coll->n_waiting--;
		rank->coll->finished = now;
	}
	return rc;
}

int sim_coll_create(const struct sim_coll_conf *conf, struct sim_coll **coll, char err[CCL_ERR_LEN])
{
	struct sim_coll *c = calloc(1, sizeof(*c));
	int rc;

	err[0] = 0;
	c->conf = *conf;
	if (conf->mode == CCL_MODE_NETREDUCE || conf->mode == CCL_MODE_1) {
		snprintf(err, CCL_ERR_LEN, "mode: %s is not built into the simulator",
			conf->mode == CCL_MODE_1 ? "Mode-I" : "NetReduce");
		free(c);
		return -EOPNOTSUPP;
	}
	if (conf->n_ranks == 0 || conf->n_ranks > conf->sim->topo->n_hosts ||
		conf->root >= conf->sim->topo->n_switches) {
		snprintf(err, CCL_ERR_LEN, "ranks: %u, must be 1..%u; root: %u, must be below %u",
			conf->n_ranks, conf->sim->topo->n_hosts, conf->root,
			conf->sim->topo->n_switches);
		free(c);
		return -EINVAL;
	}
	c->rank = calloc(conf->n_ranks, sizeof(*c->rank));
	rc = conf->mode == CCL_MODE_RING ? open_ring(c, err) : open_comms(c, err);
	for (unsigned r = 0; r < conf->n_ranks; r++) {
		c->rank[r].coll = c;
		if (rc == 0)
			sim_set_app(conf->sim, r, rank_app, &c->rank[r]);
	}
	if (rc) {
		if (!err[0])
			snprintf(err, CCL_ERR_LEN, "%s", strerror(-rc));
		sim_coll_destroy(c);
		return rc;
	}
	*coll = c;
	return 0;
}

void sim_coll_destroy(struct sim_coll *c)
{
	for (unsigned r = 0; r < c->conf.n_ranks; r++) {
		sim_set_app(c->conf.sim, r, NULL, NULL);
		if (c->rank[r].comm)
			ccl_comm_destroy(c->rank[r].comm);
		ccl_ring_close(c->rank[r].ring);
		free(c->rank[r].in);
		free(c->rank[r].out);
	}
	if (c->conf.mode != CCL_MODE_RING)
		sim_coll_remove(c);
	free(c->rank);
	free(c);
}

const char *sim_coll_error(const struct sim_coll *c)
{
	const char *text = "";

	for (unsigned r = 0; r < c->conf.n_ranks && !text[0]; r++)
		text = c->rank[r].ring ? ccl_ring_error(c->rank[r].ring)
				       : ccl_error(c->rank[r].comm);
	return text;
}

/* ---- running ---- */

/* Elements in memory: ReduceScatter gives, and AllGather receives, a block per rank. */
static int issue_comm(struct sim_rank *rank, enum ccl_collective op, uint64_t n, uint64_t block)
{
	struct ccl_comm *comm = rank->comm;

	switch (op) {
	case CCL_ALLREDUCE:
		return ccl_iallreduce(
			comm, rank->in, rank->out, n, REDUCE_INT32, REDUCE_SUM, &rank->req);
	case CCL_REDUCE:
		return ccl_ireduce(
			comm, rank->in, rank->out, n, REDUCE_INT32, REDUCE_SUM, 0, &rank->req);
	case CCL_BROADCAST:
		return ccl_ibroadcast(comm, rank->in, rank->out, n, REDUCE_INT32, 0, &rank->req);
	case CCL_REDUCE_SCATTER:
		return ccl_ireduce_scatter(
			comm, rank->in, rank->out, block, REDUCE_INT32, REDUCE_SUM, &rank->req);
	case CCL_ALLGATHER:
		return ccl_iallgather(comm, rank->in, rank->out, block, REDUCE_INT32, &rank->req);
	default:
		return ccl_ibarrier(comm, &rank->req);
	}
}

static int issue_ring(struct sim_rank *rank, enum ccl_collective op, uint64_t n, uint64_t block)
{
	struct ccl_ring *ring = rank->ring;

	switch (op) {
	case CCL_ALLREDUCE:
		return ccl_ring_iallreduce(
			ring, rank->in, rank->out, n, REDUCE_INT32, REDUCE_SUM, &rank->req);
	case CCL_REDUCE:
		return ccl_ring_ireduce(
			ring, rank->in, rank->out, n, REDUCE_INT32, REDUCE_SUM, 0, &rank->req);
	case CCL_BROADCAST:
		memcpy(rank->out, rank->in, n * 4);
		return ccl_ring_ibroadcast(ring, rank->out, n * 4, 0, &rank->req);
	case CCL_REDUCE_SCATTER:
		return ccl_ring_ireduce_scatter(
			ring, rank->in, rank->out, block, REDUCE_INT32, REDUCE_SUM, &rank->req);
	case CCL_ALLGATHER:
		return ccl_ring_iallgather(ring, rank->in, rank->out, block * 4, &rank->req);
	default:
		return ccl_ring_ibarrier(ring, &rank->req);
	}
}

static uint32_t contribution(unsigned rank, uint64_t i)
{
	return (uint32_t)i * 2654435761u ^ rank * 40503u;
}

static int prepare(struct sim_coll *c, uint64_t n)
{
	for (unsigned r = 0; r < c->conf.n_ranks; r++) {
		struct sim_rank *rank = &c->rank[r];

		rank->in = malloc(n * 4 + 4);
		rank->out = malloc(n * 4 + 4);
		if (!rank->in || !rank->out)
			return -ENOMEM;
		for (uint64_t i = 0; i < n; i++)
			rank->in[i] = (int32_t)contribution(r, i);
		memset(rank->out, 0x5a, n * 4 + 4);
		if (n == 0)
			continue;
		if (rank->ring) {
			ccl_ring_register(rank->ring, rank->in, n * 4);
			ccl_ring_register(rank->ring, rank->out, n * 4);
		} else {
			ccl_register(rank->comm, rank->in, n * 4);
			ccl_register(rank->comm, rank->out, n * 4);
		}
	}
	return 0;
}

static void let_go(struct sim_coll *c)
{
	for (unsigned r = 0; r < c->conf.n_ranks; r++) {
		struct sim_rank *rank = &c->rank[r];

		if (rank->ring && rank->in) {
			ccl_ring_deregister(rank->ring, rank->in);
			ccl_ring_deregister(rank->ring, rank->out);
		} else if (rank->in) {
			ccl_deregister(rank->comm, rank->in);
			ccl_deregister(rank->comm, rank->out);
		}
		free(rank->in);
		free(rank->out);
		rank->in = rank->out = NULL;
	}
}

/* The sum of all contributions, once for all ranks. */
static uint32_t *sum_of(const struct sim_coll *c, uint64_t n)
{
	uint32_t *sum = calloc(n + 1, sizeof(*sum));

	for (unsigned r = 0; sum && r < c->conf.n_ranks; r++)
		for (uint64_t i = 0; i < n; i++)
			sum[i] += contribution(r, i);
	return sum;
}

/* Is a rank's result what it must be? */
static bool is_right(const struct sim_coll *c, unsigned rank, const uint32_t *sum)
{
	const uint64_t block = c->n / c->conf.n_ranks;
	const int32_t *out = c->rank[rank].out;

	switch (c->op) {
	case CCL_REDUCE_SCATTER:
		return memcmp(out, sum + rank * block, block * 4) == 0;
	case CCL_ALLGATHER:
		for (uint64_t i = 0; i < block * c->conf.n_ranks; i++)
			if ((uint32_t)out[i] != contribution((unsigned)(i / block), i % block))
				return false;
		return true;
	case CCL_BROADCAST:
		return memcmp(out, c->rank[0].in, c->n * 4) == 0;
	case CCL_REDUCE:
		return rank > 0 || memcmp(out, sum, c->n * 4) == 0;
	default:
		return memcmp(out, sum, c->n * 4) == 0;
	}
}

int sim_coll_check(struct sim_coll *c)
{
	uint32_t *sum = sum_of(c, c->n);
	int rc = sum ? 0 : -ENOMEM;

	for (unsigned r = 0; rc == 0 && r < c->conf.n_ranks; r++)
		if (!is_right(c, r, sum))
			rc = -EBADMSG;
	free(sum);
	let_go(c);
	return rc;
}

static bool all_done(void *arg)
{
	return ((struct sim_coll *)arg)->n_waiting == 0;
}

int sim_coll_run(
	struct sim_coll *c, enum ccl_collective op, uint64_t bytes, uint64_t limit_ns, uint64_t *ns)
{
	struct sim *sim = c->conf.sim;
	const unsigned n_ranks = c->conf.n_ranks;
	const uint64_t n = op == CCL_BARRIER ? 0 : bytes / 4, block = n / n_ranks,
		       start = sim_now(sim);
	int rc = prepare(c, n);

	c->op = op;
	c->n = n;
	for (unsigned r = 0; rc == 0 && r < n_ranks; r++) {
		struct sim_rank *rank = &c->rank[r];

		rc = rank->ring ? issue_ring(rank, op, n, block) : issue_comm(rank, op, n, block);
		rank->waits = true;
		c->n_waiting++;
		sim_kick(sim, r);
	}
	if (rc == 0)
		rc = sim_run(sim, all_done, c, start + limit_ns);
	/* After an error the device may still write to the memory: it stays until the end. */
	if (rc == 0)
		*ns = c->finished - start;
	return rc;
}
