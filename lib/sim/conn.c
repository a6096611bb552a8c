/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/sim/conn.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/sim/priv.h"
#include "lib/sim/srv6.h"

/* Addresses in packets are the same in every run; hosts write to the same memory again and again.
 * A lost packet of RC that no NAK tells of costs 4.096 us << TIMEOUT, 1 ms: little for RC. */
enum { REGION = 1 << 20, IOVA = 0x10000000, DEPTH = 64, HOP_LIMIT = 64, TIMEOUT = 8, RETRIES = 7 };
enum { LAST = 1u << 31 }; /* in a wr_id: the transfer's last write of this queue pair */

struct stripe {
	struct rnic_cq *scq, *rcq;
	struct rnic_qp *src, *dst;
	uint64_t *left; /* ring of transfers: bytes that are not posted yet */
	unsigned first, n, cap, out;
	unsigned arrived;
};

struct sim_conn {
	struct sim_conns *all;
	struct sim_conn_conf conf;
	struct stripe qp[SIM_CONN_MAX_QPS];
	struct rnic_mrc_paths *there, *back;
	uint64_t acked;
	unsigned arrived;
	bool stopped;
	struct sim_conn *next_from, *next_to; /* of the same host */
};

struct sim_conns_host {
	struct sim_conns *all;
	unsigned index;
	struct rnic_pd *pd;
	struct rnic_mr *mr;
	struct sim_conn *from, *to;
};

struct sim_conns {
	struct sim_conns_conf conf;
	struct sim_conn *conn;
	struct sim_conns_host *host;
	uint8_t *memory;
	uint64_t started;
};

/* ---- making ---- */

static int open_host(struct sim_conns *all, unsigned i)
{
	struct sim_conns_host *h = &all->host[i];
	struct rnic *rnic = incline_verbs_rnic(sim_context(all->conf.sim, i));
	int rc = rnic_pd_alloc(rnic, &h->pd);

	h->all = all;
	h->index = i;
	if (rc == 0)
		rc = rnic_mr_reg(h->pd, all->memory, REGION, IOVA,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &h->mr);
	return rc;
}

static int make_qp(struct sim_conn *c, unsigned host, const struct rnic_mrc_paths *paths,
	struct rnic_cq *cq, struct rnic_qp **qp)
{
	struct sim *sim = c->all->conf.sim;
	struct rnic *rnic = incline_verbs_rnic(sim_context(sim, host));
	struct rnic_qp_init init = {.type = IBV_QPT_RC,
		.transport = c->conf.mrc ? &rnic_mrc : NULL,
		.pd = c->all->host[host].pd,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.sq_sig_all = true};
	const struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct rnic_mrc_attr mrc = c->conf.attr;
	int rc = rnic_qp_create(rnic, &init, qp);

	mrc.paths = paths;
	if (rc == 0 && c->conf.mrc)
		rc = rnic_mrc_set(*qp, &mrc, c->conf.attr_mask | RNIC_MRC_PATHS);
	return rc ? rc
		  : rnic_qp_modify(*qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
			    sim->now);
}

static void add_neighbours(struct sim *sim, unsigned host, unsigned peer)
{
	struct rnic *rnic = incline_verbs_rnic(sim_context(sim, host));
	uint8_t mac[6];

	for (unsigned p = 0; p < sim_topo_planes(sim->topo); p++) {
		sim_switch_mac(sim_topo_leaf(sim->topo, host, p), mac);
		rnic_neigh_add(rnic, p, &sim->topo->host[peer].ip, mac);
	}
}

static int connect_qp(
	const struct sim_conn *c, struct rnic_qp *qp, unsigned host, unsigned peer, uint32_t qpn)
{
	const struct sim *sim = c->all->conf.sim;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
		.path_mtu = c->all->conf.mtu,
		.dest_qp_num = qpn,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.sgid_index = 1, .hop_limit = HOP_LIMIT}},
		.timeout = TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RETRIES};
	int rc;

	memcpy(attr.ah_attr.grh.dgid.raw, sim->topo->host[peer].ip.b, 16);
	add_neighbours(c->all->conf.sim, host, peer);
	rc = rnic_qp_modify(qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		sim->now);
	attr.qp_state = IBV_QPS_RTS;
	return rc ? rc
		  : rnic_qp_modify(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
			    sim->now);
}

static int open_stripe(struct sim_conn *c, struct stripe *s)
{
	struct sim *sim = c->all->conf.sim;
	const struct ibv_recv_wr recv = {0};
	int rc = rnic_cq_create(
		incline_verbs_rnic(sim_context(sim, c->conf.from)), 2 * DEPTH + 1, NULL, &s->scq);

	if (rc == 0)
		rc = rnic_cq_create(incline_verbs_rnic(sim_context(sim, c->conf.to)), 2 * DEPTH + 1,
			NULL, &s->rcq);
	if (rc == 0)
		rc = make_qp(c, c->conf.from, c->there, s->scq, &s->src);
	if (rc == 0)
		rc = make_qp(c, c->conf.to, c->back, s->rcq, &s->dst);
	for (unsigned i = 0; rc == 0 && i < DEPTH; i++)
		rc = rnic_post_recv(s->dst, &recv);
	if (rc == 0)
		rc = connect_qp(c, s->src, c->conf.from, c->conf.to, rnic_qp_num(s->dst));
	if (rc == 0)
		rc = connect_qp(c, s->dst, c->conf.to, c->conf.from, rnic_qp_num(s->src));
	return rc;
}

/* Nobody knows which way an EV takes: the more there are, the more ways they find. */
static int draw_evs(const struct sim_conn *c, uint64_t *seed, struct rnic_mrc_paths *paths)
{
	const int rc =
		rnic_mrc_paths_auto(paths, RNIC_MRC_STEV, sim_topo_planes(c->all->conf.sim->topo),
			c->conf.paths ? c->conf.paths : MRC_MAX_EVS, sim_random(seed));

	paths->max_active = c->conf.active ? c->conf.active : paths->n;
	return rc;
}

static int draw_paths(struct sim_conn *c, uint64_t seed)
{
	struct sim *sim = c->all->conf.sim;
	int rc;

	c->there = calloc(1, sizeof(*c->there));
	c->back = calloc(1, sizeof(*c->back));
	if (!c->there || !c->back)
		return -ENOMEM;
	if (c->conf.ecmp) {
		rc = draw_evs(c, &seed, c->there);
		return rc ? rc : draw_evs(c, &seed, c->back);
	}
	rc = sim_srv6_paths(sim, c->conf.from, c->conf.to, c->conf.paths, c->conf.active,
		sim_random(&seed), c->there);
	return rc ? rc
		  : sim_srv6_paths(sim, c->conf.to, c->conf.from, c->conf.paths, c->conf.active,
			    sim_random(&seed), c->back);
}

static int open_conn(struct sim_conns *all, unsigned i)
{
	struct sim_conn *c = &all->conn[i];
	const unsigned n_hosts = all->conf.sim->topo->n_hosts;
	int rc = 0;

	c->all = all;
	c->conf = all->conf.conn[i];
	c->conf.qps = c->conf.qps ? c->conf.qps : 1;
	if (c->conf.from >= n_hosts || c->conf.to >= n_hosts || c->conf.qps > SIM_CONN_MAX_QPS)
		return -EINVAL;
	c->next_from = all->host[c->conf.from].from;
	all->host[c->conf.from].from = c;
	c->next_to = all->host[c->conf.to].to;
	all->host[c->conf.to].to = c;
	if (c->conf.mrc)
		rc = draw_paths(c, all->conf.seed + i);
	for (unsigned q = 0; rc == 0 && q < c->conf.qps; q++)
		rc = open_stripe(c, &c->qp[q]);
	return rc;
}

static void close_conn(struct sim_conn *c)
{
	for (unsigned q = 0; q < SIM_CONN_MAX_QPS; q++) {
		struct stripe *s = &c->qp[q];

		if (s->src)
			rnic_qp_destroy(s->src);
		if (s->dst)
			rnic_qp_destroy(s->dst);
		if (s->scq)
			rnic_cq_destroy(s->scq);
		if (s->rcq)
			rnic_cq_destroy(s->rcq);
		free(s->left);
	}
	free(c->there);
	free(c->back);
}

void sim_conns_close(struct sim_conns *all)
{
	for (unsigned i = 0; all->conn && i < all->conf.n; i++)
		close_conn(&all->conn[i]);
	for (unsigned h = 0; all->host && h < all->conf.sim->topo->n_hosts; h++) {
		sim_remove_app(all->conf.sim, h, &all->host[h]);
		if (all->host[h].mr)
			rnic_mr_dereg(all->host[h].mr);
		if (all->host[h].pd)
			rnic_pd_free(all->host[h].pd);
	}
	free(all->conn);
	free(all->host);
	free(all->memory);
	free(all);
}

/* ---- running ---- */

static void queue(struct stripe *s, uint64_t bytes)
{
	if (s->n == s->cap) {
		const unsigned cap = s->cap ? 2 * s->cap : 16;
		uint64_t *left = malloc(cap * sizeof(*left));

		if (!left)
			abort();
		for (unsigned i = 0; i < s->n; i++)
			left[i] = s->left[(s->first + i) % s->cap];
		free(s->left);
		s->left = left;
		s->first = 0;
		s->cap = cap;
	}
	s->left[(s->first + s->n++) % s->cap] = bytes;
}

/* One write; -ENOMEM: there is no room. */
static int write_some(struct sim_conn *c, struct stripe *s)
{
	const struct sim_conns *all = c->all;
	uint64_t *left = &s->left[s->first];
	const uint32_t len = (uint32_t)(*left < all->conf.message ? *left : all->conf.message);
	const bool last = len == *left;
	struct ibv_sge sge = {IOVA, len, rnic_mr_lkey(all->host[c->conf.from].mr)};
	const struct ibv_send_wr wr = {.wr_id = len | (last ? LAST : 0u),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = last && !c->conf.endless ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
		.wr.rdma = {IOVA, rnic_mr_rkey(all->host[c->conf.to].mr)}};
	const int rc = rnic_post_send(s->src, &wr);

	if (rc)
		return rc;
	s->out++;
	*left -= len;
	if (last) {
		s->first = (s->first + 1) % s->cap;
		s->n--;
	}
	return 0;
}

static int send_side(struct sim_conn *c, struct stripe *s)
{
	struct ibv_wc wc[16];
	int n = rnic_cq_poll(s->scq, 16, wc), did = n;

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			return -EIO;
		c->acked += wc[i].wr_id & (LAST - 1);
		s->out--;
	}
	for (;;) {
		int rc;

		if (s->n == 0 && c->conf.endless && !c->stopped)
			queue(s, c->all->conf.message);
		if (s->n == 0)
			break;
		rc = write_some(c, s);
		if (rc == -ENOMEM)
			break;
		if (rc)
			return rc;
		did++;
	}
	return did;
}

/* Transfers that all stripes have brought. */
static void tell(struct sim_conn *c)
{
	const struct sim_conns_conf *conf = &c->all->conf;
	unsigned least = UINT32_MAX;

	for (unsigned q = 0; q < c->conf.qps; q++)
		least = c->qp[q].arrived < least ? c->qp[q].arrived : least;
	while (c->arrived < least) {
		const unsigned nth = c->arrived++;

		if (conf->arrived)
			conf->arrived(conf->arg, (unsigned)(c - c->all->conn), nth);
	}
}

static int receive_side(struct sim_conn *c)
{
	const struct ibv_recv_wr recv = {0};
	struct ibv_wc wc[16];
	int did = 0;

	for (unsigned q = 0; q < c->conf.qps; q++) {
		struct stripe *s = &c->qp[q];
		const int n = rnic_cq_poll(s->rcq, 16, wc);

		for (int i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS || rnic_post_recv(s->dst, &recv))
				return -EIO;
			s->arrived++;
		}
		did += n;
	}
	if (did)
		tell(c);
	return did;
}

static int host_app(void *arg, uint64_t now)
{
	struct sim_conns_host *h = arg;
	int did = 0, rc;

	for (struct sim_conn *c = h->to; c; c = c->next_to) {
		rc = receive_side(c);
		if (rc < 0)
			return rc;
		did += rc;
	}
	for (struct sim_conn *c = h->from; c; c = c->next_from) {
		if (h->all->started == 0)
			continue;
		if (now < h->all->started + c->conf.start_ns) {
			sim_wake(h->all->conf.sim, h->index, h->all->started + c->conf.start_ns);
			continue;
		}
		for (unsigned q = 0; q < c->conf.qps; q++) {
			rc = send_side(c, &c->qp[q]);
			if (rc < 0)
				return rc;
			did += rc;
		}
	}
	return did;
}

int sim_conns_open(const struct sim_conns_conf *conf, struct sim_conns **out)
{
	struct sim_conns *all = calloc(1, sizeof(*all));
	const unsigned n_hosts = conf->sim->topo->n_hosts;
	int rc = -ENOMEM;

	if (!all)
		return rc;
	all->conf = *conf;
	all->conn = calloc(conf->n, sizeof(*all->conn));
	all->host = calloc(n_hosts, sizeof(*all->host));
	all->memory = calloc(1, REGION);
	if (all->conn && all->host && all->memory)
		rc = conf->message == 0 || conf->message > REGION ? -EINVAL : 0;
	for (unsigned h = 0; rc == 0 && h < n_hosts; h++) {
		rc = open_host(all, h);
		if (rc == 0)
			rc = sim_add_app(conf->sim, h, host_app, &all->host[h]);
	}
	for (unsigned i = 0; rc == 0 && i < conf->n; i++)
		rc = open_conn(all, i);
	if (rc)
		sim_conns_close(all);
	else
		*out = all;
	return rc;
}

void sim_conns_start(struct sim_conns *all)
{
	all->started = all->conf.sim->now;
	for (unsigned h = 0; h < all->conf.sim->topo->n_hosts; h++)
		sim_kick(all->conf.sim, h);
}

void sim_conn_post(struct sim_conns *all, unsigned i, uint64_t bytes)
{
	struct sim_conn *c = &all->conn[i];

	for (unsigned q = 0; q < c->conf.qps; q++)
		queue(&c->qp[q], bytes / c->conf.qps);
	if (all->started)
		sim_kick(all->conf.sim, c->conf.from);
}

void sim_conn_stop(struct sim_conns *all, unsigned i)
{
	all->conn[i].stopped = true;
}

uint64_t sim_conn_acked(const struct sim_conns *all, unsigned i)
{
	return all->conn[i].acked;
}

bool sim_conn_idle(const struct sim_conns *all, unsigned i)
{
	for (unsigned q = 0; q < all->conn[i].conf.qps; q++)
		if (all->conn[i].qp[q].n || all->conn[i].qp[q].out)
			return false;
	return true;
}

struct rnic_qp *sim_conn_qp(const struct sim_conns *all, unsigned i, unsigned qp)
{
	return all->conn[i].qp[qp].src;
}

const struct rnic_mrc_paths *sim_conn_paths(const struct sim_conns *all, unsigned i)
{
	return all->conn[i].there;
}

uint64_t sim_conn_count(const struct sim_conns *all, unsigned i, const char *name)
{
	uint64_t sum = 0, value;
	const char *is;

	for (unsigned q = 0; q < all->conn[i].conf.qps; q++)
		for (unsigned k = 0; (is = rnic_qp_counter(all->conn[i].qp[q].src, k, &value)); k++)
			sum += strcmp(is, name) == 0 ? value : 0;
	return sum;
}

uint64_t sim_conns_timeouts(const struct sim_conns *all)
{
	struct sim *sim = all->conf.sim;
	uint64_t sum = 0;

	for (unsigned h = 0; h < sim->topo->n_hosts; h++)
		sum += rnic_count(incline_verbs_rnic(sim_context(sim, h)), RNIC_C_TIMEOUTS);
	return sum;
}
