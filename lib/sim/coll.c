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

struct ccl_conn sim_coll_connection(const struct sim_coll *c, unsigned rank)
{
	const struct sim_topo *t = c->conf.sim->topo;
	const unsigned host = sim_coll_host(c, rank);

	return (struct ccl_conn){
		.context = sim_context(c->conf.sim, host),
		.gid_index = 1,
		.rank = rank,
		.n_ranks = c->conf.n_ranks,
		.m = c->conf.m,
		.w = c->conf.w,
		.timeout_ns = c->conf.timeout_ns,
		.mode = c->conf.mode,
		.kind = c->conf.kind,
		.collectives = c->conf.collectives,
		.skip = c->conf.resync ? NULL : host_skip,
		.resync = c->conf.resync,
		.selective = c->conf.flags & INC_F_SR,
		.create = inc_dv_create_qp,
		.write = c->conf.flags & INC_F_WRITE,
		.mtu = c->conf.mtu,
		.remote_ip = t->sw[t->host_switch[host]].ip,
		.start_psn = c->conf.start_psn,
	};
}

static void know_switch(struct sim *sim, unsigned host, const struct wire_ip *ip)
{
	uint8_t mac[6];

	sim_switch_mac(sim->topo->host_switch[host], mac);
	rnic_neigh_add(incline_verbs_rnic(sim_context(sim, host)), 0, ip, mac);
}

void sim_coll_know(struct sim_coll *c, unsigned rank, const struct wire_ip *ip)
{
	know_switch(c->conf.sim, sim_coll_host(c, rank), ip);
}

static int open_comms(struct sim_coll *c, char *err)
{
	struct ccl_remote remote[SIM_MAX_GROUPS];
	int rc = 0;

	for (unsigned r = 0; rc == 0 && r < c->conf.n_ranks; r++) {
		const struct ccl_conn conn = sim_coll_connection(c, r);

		rc = ccl_comm_open(&conn, &c->rank[r].comm, err);
	}
	if (rc == 0)
		rc = sim_coll_describe(c, err);
	if (rc == 0)
		rc = sim_coll_install(c, err);
	for (unsigned r = 0; rc == 0 && r < c->conf.n_ranks; r++) {
		struct ccl_conn conn = sim_coll_connection(c, r);

		know_switch(c->conf.sim, sim_coll_host(c, r), &conn.remote_ip);
		sim_coll_remotes(c, r, remote);
		conn.remote = remote;
		rc = ccl_comm_connect(c->rank[r].comm, &conn, err);
	}
	return rc;
}

int sim_coll_open_ring(struct sim_coll *c, char *err)
{
	const unsigned n = c->conf.n_ranks;
	struct ccl_ring_address *at = calloc(n, sizeof(*at));
	int rc = at ? 0 : -ENOMEM;

	if (rc == 0 && c->conf.mode == CCL_MODE_NETREDUCE)
		rc = sim_coll_describe(c, err);
	for (unsigned r = 0; rc == 0 && r < n; r++) {
		const struct ccl_ring_conf conf = {
			.context = sim_context(c->conf.sim, sim_coll_host(c, r)),
			.gid_index = 1,
			.rank = r,
			.n_ranks = n,
			.mtu = c->conf.mtu,
			.m = c->conf.m,
			.w = c->conf.w,
			.timeout_ns = c->conf.timeout_ns,
			.start_psn = (c->conf.start_psn + 77 * r) & PSN_MASK,
			.netreduce = c->conf.mode == CCL_MODE_NETREDUCE,
			.ring_id = c->group ? ccl_rings_id(c->group, r) : 0,
			.first_msg = c->conf.first_msg,
		};

		rc = ccl_ring_open(&conf, &c->rank[r].ring, err);
		if (rc == 0)
			ccl_ring_address(c->rank[r].ring, &at[r]);
	}
	if (rc == 0 && c->conf.mode == CCL_MODE_NETREDUCE)
		rc = sim_coll_install_rings(c, at, err);
	for (unsigned r = 0; rc == 0 && r < n; r++) {
		const struct ccl_ring_address *prev = &at[(r + n - 1) % n],
					      *next = &at[(r + 1) % n];

		know_switch(c->conf.sim, sim_coll_host(c, r), &prev->ip);
		know_switch(c->conf.sim, sim_coll_host(c, r), &next->ip);
		rc = ccl_ring_connect(c->rank[r].ring, prev, next, c->conf.mtu, err);
	}
	free(at);
	return rc;
}

static bool is_ring(const struct sim_coll_conf *conf)
{
	return conf->mode == CCL_MODE_RING || conf->mode == CCL_MODE_NETREDUCE;
}

int sim_coll_create(const struct sim_coll_conf *conf, struct sim_coll **coll, char err[CCL_ERR_LEN])
{
	struct sim_coll *c = calloc(1, sizeof(*c));
	int rc;

	err[0] = 0;
	c->conf = *conf;
	if (conf->n_ranks == 0 || conf->n_ranks > conf->sim->topo->n_hosts ||
		conf->first_host >= conf->sim->topo->n_hosts ||
		sim_coll_host(c, conf->n_ranks - 1) >= conf->sim->topo->n_hosts ||
		conf->root >= conf->sim->topo->n_switches) {
		snprintf(err, CCL_ERR_LEN,
			"ranks: %u, of %u hosts from %u on; root: %u, must be below %u",
			conf->n_ranks, conf->sim->topo->n_hosts, conf->first_host, conf->root,
			conf->sim->topo->n_switches);
		free(c);
		return -EINVAL;
	}
	c->rank = calloc(conf->n_ranks, sizeof(*c->rank));
	c->rng = conf->sim->conf.seed ^ (uint64_t)conf->start_psn << 32;
	if (sim_coll_by_hosts(c))
		rc = sim_coll_open_hosts(c, err);
	else if (conf->rings > 1)
		rc = sim_coll_open_nodes(c, err);
	else
		rc = is_ring(conf) ? sim_coll_open_ring(c, err) : open_comms(c, err);
	if (rc == 0 && conf->resync)
		rc = sim_coll_attach_resync(c, err);
	for (unsigned r = 0; r < conf->n_ranks; r++) {
		c->rank[r].coll = c;
		c->rank[r].index = r;
		if (rc == 0)
			rc = sim_add_app(conf->sim, sim_coll_host(c, r), sim_coll_app, &c->rank[r]);
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

int sim_coll_close(struct sim_coll *c, char err[CCL_ERR_LEN])
{
	int rc;

	err[0] = 0;
	for (unsigned r = 0; r < c->conf.n_ranks; r++) {
		sim_remove_app(c->conf.sim, sim_coll_host(c, r), &c->rank[r]);
		if (c->rank[r].comm)
			ccl_comm_destroy(c->rank[r].comm);
		ccl_ring_close(c->rank[r].ring);
		c->rank[r].comm = NULL;
		c->rank[r].ring = NULL;
	}
	sim_coll_close_hosts(c);
	sim_coll_let_go(c);
	rc = sim_coll_remove(c, err);
	free(c->rank);
	free(c);
	return rc;
}

void sim_coll_destroy(struct sim_coll *c)
{
	char ignored[CCL_ERR_LEN];

	sim_coll_close(c, ignored);
}

struct ccl_comm *sim_coll_comm(const struct sim_coll *c, unsigned rank)
{
	return c->rank[rank].comm;
}

const struct ccl_mcast *sim_coll_mcast(const struct sim_coll *c, unsigned rank)
{
	return c->rank[rank].mcast;
}

const void *sim_coll_result(const struct sim_coll *c, unsigned rank, unsigned work)
{
	return c->rank[rank].call[work].out;
}

struct ccl_ring *sim_coll_ring(const struct sim_coll *c, unsigned rank)
{
	return c->rank[rank].ring;
}

const char *sim_coll_error(const struct sim_coll *c)
{
	const char *text = "";

	for (unsigned r = 0; r < c->conf.n_ranks && !text[0]; r++) {
		const struct sim_rank *rank = &c->rank[r];

		text = rank->ring    ? ccl_ring_error(rank->ring)
		       : rank->mcast ? ccl_mcast_error(rank->mcast)
		       : rank->tree  ? ccl_tree_error(rank->tree)
				     : ccl_error(rank->comm);
	}
	return text;
}
