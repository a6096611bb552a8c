/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/sim/rdma.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/sim/priv.h"

/* Addresses in packets are the same in every run; hosts write to the same memory again and again.
 */
enum { CHUNK = 1 << 20, IOVA = 0x10000000, DEPTH = 64, HOP_LIMIT = 64, TIMEOUT = 14 };

struct end {
	struct rnic_pd *pd;
	struct rnic_cq *cq;
	struct rnic_mr *mr;
	struct rnic_qp *qp;
};

struct run;

struct conn {
	struct run *run;
	struct sim_flow *flow;
	struct end src, dst;
	uint64_t posted;   /* bytes */
	struct conn *next; /* of the same source */
};

struct run {
	struct sim *sim;
	struct conn *conn;
	struct conn **of_host;
	uint8_t *memory;
	unsigned n, left;
	uint64_t start;
};

unsigned sim_permutation(
	const struct sim *sim, uint64_t bytes, uint64_t seed, struct sim_flow *flow)
{
	const unsigned n = sim->topo->n_hosts;

	/* Sattolo's shuffle: one cycle, nobody sends to himself. */
	for (unsigned i = 0; i < n; i++)
		flow[i] = (struct sim_flow){.from = i, .to = i, .bytes = bytes};
	for (unsigned i = n - 1; n > 1 && i > 0; i--) {
		unsigned k = (unsigned)(sim_random(&seed) % i), to = flow[i].to;

		flow[i].to = flow[k].to;
		flow[k].to = to;
	}
	return n > 1 ? n : 0;
}

unsigned sim_incast(const struct sim *sim, unsigned n, uint64_t bytes, struct sim_flow *flow)
{
	if (n >= sim->topo->n_hosts)
		n = sim->topo->n_hosts - 1;
	for (unsigned i = 0; i < n; i++)
		flow[i] = (struct sim_flow){.from = i + 1, .bytes = bytes};
	return n;
}

static int open_end(struct run *run, unsigned host, struct end *e)
{
	struct rnic *rnic = incline_verbs_rnic(sim_context(run->sim, host));
	struct rnic_qp_init init = {
		.type = IBV_QPT_RC,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.sq_sig_all = true,
	};
	const struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	int rc = rnic_pd_alloc(rnic, &e->pd);

	if (rc == 0)
		rc = rnic_cq_create(rnic, DEPTH + 1, NULL, &e->cq);
	if (rc == 0)
		rc = rnic_mr_reg(e->pd, run->memory, CHUNK, IOVA,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &e->mr);
	init.pd = e->pd;
	init.send_cq = init.recv_cq = e->cq;
	if (rc == 0)
		rc = rnic_qp_create(rnic, &init, &e->qp);
	if (rc == 0)
		rc = rnic_qp_modify(e->qp, &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
			run->sim->now);
	return rc;
}

static int connect_end(struct run *run, const struct end *e, const struct end *peer, unsigned host,
	unsigned peer_host, enum ibv_mtu mtu)
{
	struct sim *sim = run->sim;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = rnic_qp_num(peer->qp),
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.sgid_index = 1, .hop_limit = HOP_LIMIT}},
		.timeout = TIMEOUT,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	uint8_t mac[6];
	int rc;

	memcpy(attr.ah_attr.grh.dgid.raw, sim->topo->host[peer_host].ip.b, 16);
	sim_switch_mac(sim->topo->host_switch[host], mac);
	rnic_neigh_add(
		incline_verbs_rnic(sim_context(sim, host)), 0, &sim->topo->host[peer_host].ip, mac);
	rc = rnic_qp_modify(e->qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		sim->now);
	attr.qp_state = IBV_QPS_RTS;
	return rc ? rc
		  : rnic_qp_modify(e->qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
			    sim->now);
}

static void close_end(struct end *e)
{
	if (e->qp)
		rnic_qp_destroy(e->qp);
	if (e->mr)
		rnic_mr_dereg(e->mr);
	if (e->cq)
		rnic_cq_destroy(e->cq);
	if (e->pd)
		rnic_pd_free(e->pd);
}

/* Posts as much as there is room for, reaps what is done. */
static int work(struct conn *c, uint64_t now)
{
	struct ibv_wc wc[16];
	int n = rnic_cq_poll(c->src.cq, 16, wc), did = n;

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			return -EIO;
		c->flow->acked += wc[i].wr_id;
	}
	if (n > 0 && c->flow->acked == c->flow->bytes) {
		c->flow->done_ns = now - c->run->start;
		c->run->left--;
	}
	if (now < c->run->start + c->flow->start_ns) {
		sim_wake(c->run->sim, c->flow->from, c->run->start + c->flow->start_ns);
		return did;
	}
	while (c->posted < c->flow->bytes) {
		const uint64_t rest = c->flow->bytes - c->posted;
		const uint32_t len = (uint32_t)(rest < CHUNK ? rest : CHUNK);
		struct ibv_sge sge = {IOVA, len, rnic_mr_lkey(c->src.mr)};
		const struct ibv_send_wr wr = {.wr_id = len,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma = {IOVA, rnic_mr_rkey(c->dst.mr)}};
		int rc = rnic_post_send(c->src.qp, &wr);

		if (rc == -ENOMEM)
			break;
		if (rc)
			return rc;
		c->posted += len;
		did++;
	}
	return did;
}

static int host_app(void *arg, uint64_t now)
{
	int did = 0;

	for (struct conn *c = arg; c; c = c->next) {
		int rc = work(c, now);

		if (rc < 0)
			return rc;
		did += rc;
	}
	return did;
}

static bool all_done(void *arg)
{
	return ((struct run *)arg)->left == 0;
}

static int open_all(struct run *run, struct sim_flow *flow, enum ibv_mtu mtu)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < run->n; i++) {
		struct conn *c = &run->conn[i];

		*c = (struct conn){run, &flow[i], .next = run->of_host[flow[i].from]};
		rc = open_end(run, flow[i].from, &c->src);
		if (rc == 0)
			rc = open_end(run, flow[i].to, &c->dst);
		if (rc == 0)
			rc = connect_end(run, &c->src, &c->dst, flow[i].from, flow[i].to, mtu);
		if (rc == 0)
			rc = connect_end(run, &c->dst, &c->src, flow[i].to, flow[i].from, mtu);
		run->of_host[flow[i].from] = c;
		run->left += flow[i].bytes > 0;
	}
	return rc;
}

int sim_rdma_run(
	struct sim *sim, struct sim_flow *flow, unsigned n, enum ibv_mtu mtu, uint64_t limit_ns)
{
	struct run run = {sim, .n = n, .start = sim->now};
	const unsigned n_hosts = sim->topo->n_hosts;
	int rc = -ENOMEM;

	run.conn = calloc(n, sizeof(*run.conn));
	run.of_host = calloc(n_hosts, sizeof(struct conn *));
	run.memory = calloc(1, CHUNK);
	if (run.conn && run.of_host && run.memory)
		rc = open_all(&run, flow, mtu);
	for (unsigned h = 0; rc == 0 && h < n_hosts; h++) {
		if (!run.of_host[h])
			continue;
		rc = sim_add_app(sim, h, host_app, run.of_host[h]);
		sim_kick(sim, h);
	}
	if (rc == 0)
		rc = sim_run(sim, all_done, &run, run.start + limit_ns);
	for (unsigned i = 0; run.conn && i < n; i++) {
		close_end(&run.conn[i].src);
		close_end(&run.conn[i].dst);
	}
	for (unsigned h = 0; run.of_host && h < n_hosts; h++)
		if (run.of_host[h])
			sim_remove_app(sim, h, run.of_host[h]);
	free(run.conn);
	free(run.of_host);
	free(run.memory);
	return rc;
}
