/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs objects of a communicator by multicast. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/mcast_priv.h"
#include "lib/ccl/member.h"
#include "lib/verbs/incline_dv.h"

enum {
	PAGE = 4096,
	MAX_DEPTH = 8192,
	DEFAULT_DEPTH = 1024,
	HOP_LIMIT = 64,
	TREE_RECVS = 4,
};
static const uint64_t DEFAULT_BPS = 10000000000, DEFAULT_ALPHA = 20000000,
		      DEFAULT_TIMEOUT = 10000000000;

/* ---- receives ---- */

static int post_recv(
	struct ccl_mcast *c, struct ibv_qp *qp, const void *to, size_t len, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)to, (uint32_t)len, c->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = len > 0}, *bad;

	return -ibv_post_recv(qp, &wr, &bad);
}

int mc_post_chunk_recvs(struct ccl_mcast *c, const unsigned *slot, unsigned n)
{
	struct ibv_recv_wr wr[MC_POLL], *bad;
	struct ibv_sge sge[MC_POLL];
	unsigned first = 0;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n; i++) {
		const unsigned tree = mc_tree_of(c, slot[i]);
		const bool last = i + 1 == n || mc_tree_of(c, slot[i + 1]) != tree;

		sge[i] = (struct ibv_sge){
			(uintptr_t)mc_staging(c, slot[i]), (uint32_t)mc_slot_len(c), c->mr->lkey};
		wr[i] = (struct ibv_recv_wr){.wr_id = (uint64_t)MC_CHUNK_RECV << 32 | slot[i],
			.next = last ? NULL : &wr[i + 1],
			.sg_list = &sge[i],
			.num_sge = !c->marked};
		if (!last)
			continue;
		rc = -ibv_post_recv(c->tree[tree].qp, &wr[first], &bad);
		first = i + 1;
	}
	return rc;
}

int mc_post_rc_recv(struct ccl_mcast *c, unsigned peer, unsigned slot)
{
	return post_recv(c, c->rc[peer], mc_incoming(c, peer, slot), sizeof(struct mc_wire),
		(uint64_t)MC_RC_RECV << 32 | peer << 16 | slot);
}

/* ---- opening ---- */

/* Groups that follow one another are those of the workers that do. */
static unsigned worker_of(const struct ccl_mcast *c, unsigned tree)
{
	return 1 + get_be32(c->tree[tree].group.b + 12) % c->conf.workers;
}

static int make_qp(struct ccl_mcast *c, unsigned tree, char *err)
{
	struct ibv_qp_init_attr init = {.qp_type = c->conf.uc ? IBV_QPT_UC : IBV_QPT_UD,
		.send_cq = c->cq,
		.recv_cq = c->tree[tree].cq,
		.cap = {.max_send_wr = MC_SENDS,
			.max_recv_wr = mc_tree_depth(c),
			.max_send_sge = 1,
			.max_recv_sge = 1}};
	const uint32_t flags = (c->conf.uc ? INC_DV_QP_MULTICAST : 0) |
			       (c->conf.workers > 0 ? INC_DV_QP_WORKER(worker_of(c, tree)) : 0);

	c->tree[tree].qp =
		flags ? c->conf.create(c->pd, &init, flags) : ibv_create_qp(c->pd, &init);
	return c->tree[tree].qp ? 0 : mc_say(c, err, "queue pair of a group", errno);
}

/* A worker's queue pair has a CQ for itself. */
static int make_tree(struct ccl_mcast *c, unsigned tree, char *err)
{
	struct mc_tree *t = &c->tree[tree];

	t->cq = c->cq;
	if (c->conf.workers > 0)
		t->cq = ibv_create_cq(c->conf.context, (int)mc_tree_depth(c), c, c->channel, 0);
	if (!t->cq)
		return mc_say(c, err, "completion queue", errno);
	return make_qp(c, tree, err);
}

static int make_objects(struct ccl_mcast *c, char *err)
{
	const unsigned per_peer = MC_PEER_RECVS + MC_MESSAGES + MC_READS;
	const unsigned depth = c->conf.depth + MC_SENDS + c->n_peers * per_peer;
	int rc;

	c->pd = c->conf.pd ?: ibv_alloc_pd(c->conf.context);
	if (!c->pd)
		return mc_say(c, err, "protection domain", errno);
	c->channel = ibv_create_comp_channel(c->conf.context);
	if (!c->channel || fcntl(c->channel->fd, F_SETFL, O_NONBLOCK) < 0)
		return mc_say(c, err, "completion channel", errno);
	c->cq = ibv_create_cq(c->conf.context, (int)depth, c, c->channel, 0);
	if (!c->cq)
		return mc_say(c, err, "completion queue", errno);
	rc = c->conf.uc ? mc_uc_open(c, err) : 0;
	if (rc == 0)
		rc = mc_marks_open(c, err);
	for (unsigned i = 0; rc == 0 && i < c->conf.trees; i++)
		rc = make_tree(c, i, err);
	for (unsigned i = 0; rc == 0 && i < c->n_peers; i++) {
		c->rc[i] =
			ccl_qp_of(c->pd, c->cq, IBV_QPT_RC, MC_MESSAGES + MC_READS, MC_PEER_RECVS);
		if (!c->rc[i])
			return mc_say(c, err, "queue pair", errno);
	}
	return rc;
}

static int make_memory(struct ccl_mcast *c, char *err)
{
	const size_t len = c->conf.depth * mc_slot_len(c) +
			   (c->n_peers * MC_PEER_RECVS + MC_MESSAGES) * sizeof(struct mc_wire);

	if (posix_memalign((void **)&c->memory, PAGE, len)) {
		c->memory = NULL;
		return mc_say(c, err, "staging", ENOMEM);
	}
	memset(c->memory, 0, len);
	c->mr = ibv_reg_mr(c->pd, c->memory, len, IBV_ACCESS_LOCAL_WRITE);
	return c->mr ? 0 : mc_say(c, err, "registering staging", errno);
}

static int open_all(struct ccl_mcast *c, char *err)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
		.port_num = c->conf.port,
		.qkey = MC_QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	const int own = c->conf.uc ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY;
	int mtu = ccl_port_mtu(c->conf.context, c->conf.port), rc;
	struct ibv_port_attr port;
	union ibv_gid gid;

	if (mtu < 0)
		return mc_say(c, err, "port", -mtu);
	c->mtu = (unsigned)mtu;
	rc = ibv_query_port(c->conf.context, c->conf.port, &port);
	if (rc)
		return mc_say(c, err, "port", rc);
	c->read_bytes = port.max_msg_sz < MC_READ_MAX ? port.max_msg_sz : MC_READ_MAX;
	rc = make_objects(c, err);
	if (rc == 0)
		rc = make_memory(c, err);
	if (rc)
		return rc;
	rc = ibv_query_gid(c->conf.context, c->conf.port, c->conf.gid_index, &gid);
	if (rc)
		return mc_say(c, err, "address", EADDRNOTAVAIL);
	memcpy(c->ip.b, gid.raw, sizeof(c->ip.b));
	for (unsigned i = 0; rc == 0 && i < c->conf.trees; i++)
		rc = ccl_modify_qp(
			c->tree[i].qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own);
	for (unsigned i = 0; rc == 0 && i < c->n_peers; i++)
		rc = ccl_rc_init(c->rc[i], c->conf.port);
	return rc ? mc_say(c, err, "queue pair to INIT", rc) : 0;
}

static void core_config(const struct ccl_mcast_conf *conf, struct mcast_config *config)
{
	*config = (struct mcast_config){.rank = conf->rank,
		.n_ranks = conf->n_ranks,
		.chains = conf->chains,
		.chunk = 1, /* this and read_bytes are known when all have met */
		.psn_bits = MC_PSN_BITS,
		.send_window = MC_SENDS,
		.read_window = MC_READS,
		.first_psn = conf->first_psn,
		.read_bytes = 1,
		.link_bps = conf->link_bps,
		.alpha_ns = conf->alpha_ns,
		.give_up_ns = conf->timeout_ns};
}

static bool set_trees(struct ccl_mcast *c)
{
	if (c->conf.trees > CCL_MCAST_MAX_TREES || c->conf.trees > c->conf.depth ||
		!ccl_mcast_has_groups(&c->conf.group, c->conf.trees))
		return false;
	for (unsigned i = 0; i < c->conf.trees; i++)
		c->tree[i].group = ccl_mcast_group(&c->conf.group, i);
	return true;
}

/* With workers their queue pairs are the device's own; where it marks chunks, receives have no
 * bytes, and a tree needs one. */
static int find_device(struct ccl_mcast *c, char *err)
{
	if (!c->conf.window && !c->conf.staged)
		c->conf.window = ccl_device_window(c->conf.context);
	c->marked = c->conf.uc || (c->conf.window && !c->conf.staged);
	if (c->marked)
		c->conf.depth = TREE_RECVS * c->conf.trees;
	if (c->conf.workers > 0 && !c->conf.create)
		c->conf.create = ccl_device_create(c->conf.context);
	return c->conf.workers == 0 || c->conf.create
		       ? 0
		       : mc_say(c, err, "receive workers", EOPNOTSUPP);
}

int ccl_mcast_open(
	const struct ccl_mcast_conf *conf, struct ccl_mcast **mcast, char err[CCL_ERR_LEN])
{
	struct ccl_mcast *c = calloc(1, sizeof(*c));
	struct mcast_config config;
	int rc;

	*mcast = NULL;
	if (!c) {
		snprintf(err, CCL_ERR_LEN, "out of memory");
		return -ENOMEM;
	}
	c->conf = *conf;
	c->member = -1;
	c->conf.port = conf->port ?: 1;
	c->conf.chains = conf->chains ?: 1;
	c->conf.trees = conf->trees ?: 1;
	c->conf.depth = conf->depth ?: DEFAULT_DEPTH;
	c->conf.link_bps = conf->link_bps ?: DEFAULT_BPS;
	c->conf.alpha_ns = conf->alpha_ns ?: DEFAULT_ALPHA;
	c->conf.timeout_ns = conf->timeout_ns ?: DEFAULT_TIMEOUT;
	core_config(&c->conf, &config);
	if (conf->uc && conf->staged) {
		snprintf(err, CCL_ERR_LEN, "multicast: staged is of datagrams, not of WRITEs (uc)");
		free(c);
		return -EINVAL;
	}
	if (conf->n_ranks > CCL_MCAST_MAX_RANKS || c->conf.depth > MAX_DEPTH || !set_trees(c) ||
		mcast_init(&c->core, &config) < 0) {
		snprintf(err, CCL_ERR_LEN,
			"multicast: rank, n_ranks, chains, depth, trees or group out of range");
		free(c);
		return -EINVAL;
	}
	c->n_peers = mcast_peers(&config, c->peer);
	c->rank = calloc(conf->n_ranks, sizeof(*c->rank));
	rc = c->rank ? find_device(c, err) : mc_say(c, err, "memory", ENOMEM);
	if (rc == 0)
		rc = open_all(c, err);
	if (rc)
		ccl_mcast_close(c);
	else
		*mcast = c;
	return rc;
}

static void close_tree(struct ccl_mcast *c, struct mc_tree *t)
{
	union ibv_gid gid;

	memcpy(gid.raw, t->group.b, sizeof(gid.raw));
	if (t->attached)
		ibv_detach_mcast(t->qp, &gid, 0);
	if (t->ah)
		ibv_destroy_ah(t->ah);
	if (t->qp)
		ibv_destroy_qp(t->qp);
	if (t->cq && t->cq != c->cq)
		ibv_destroy_cq(t->cq);
}

void ccl_mcast_close(struct ccl_mcast *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < c->conf.trees; i++)
		close_tree(c, &c->tree[i]);
	if (c->member >= 0)
		close(c->member);
	for (unsigned i = 0; i < c->n_peers; i++)
		if (c->rc[i])
			ibv_destroy_qp(c->rc[i]);
	if (c->own_mr)
		ibv_dereg_mr(c->own_mr);
	free(c->core_memory);
	if (c->mr)
		ibv_dereg_mr(c->mr);
	if (c->cq)
		ibv_destroy_cq(c->cq);
	if (c->channel)
		ibv_destroy_comp_channel(c->channel);
	if (c->pd && !c->conf.pd)
		ibv_dealloc_pd(c->pd);
	free(c->memory);
	free(c->writer);
	free(c->mark_words);
	free(c->rank);
	free(c);
}

/* ---- connecting ---- */

/* Datagrams: to RTS, and the group's address. */
static int ud_join(struct ccl_mcast *c, struct mc_tree *t)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct ibv_ah_attr to = {.is_global = 1,
		.port_num = c->conf.port,
		.grh = {.sgid_index = c->conf.gid_index, .hop_limit = HOP_LIMIT}};
	int rc = ccl_modify_qp(t->qp, &attr, IBV_QP_STATE);

	attr.qp_state = IBV_QPS_RTS;
	if (rc == 0)
		rc = ccl_modify_qp(t->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (rc)
		return rc;
	memcpy(to.grh.dgid.raw, t->group.b, sizeof(to.grh.dgid.raw));
	t->ah = ibv_create_ah(c->pd, &to);
	return t->ah ? 0 : errno;
}

static int join(struct ccl_mcast *c, unsigned tree, char *err)
{
	struct mc_tree *t = &c->tree[tree];
	union ibv_gid gid;
	int rc = c->conf.uc ? mc_uc_join(c, tree) : ud_join(c, t);

	if (rc)
		return mc_say(c, err, "queue pair of the group to RTS", rc);
	rc = ccl_member_join(
		c->conf.context->device, c->conf.port, c->conf.gid_index, &t->group, &c->member);
	if (rc)
		return mc_say(c, err, "joining the group", rc);
	memcpy(gid.raw, t->group.b, sizeof(gid.raw));
	rc = ibv_attach_mcast(t->qp, &gid, 0);
	t->attached = rc == 0;
	return rc ? mc_say(c, err, "attaching to the group", rc) : 0;
}

int mc_connect(struct ccl_mcast *c, const uint32_t *qpn, char *err)
{
	struct mcast_config config;
	int rc = 0;

	core_config(&c->conf, &config);
	config.chunk = c->mtu;
	config.read_bytes = c->read_bytes;
	rc = -mcast_init(&c->core, &config);
	if (rc)
		return mc_say(c, err, "the port's largest message is less than its MTU", rc);
	for (unsigned i = 0; rc == 0 && i < c->conf.depth; i++)
		rc = mc_post_chunk_recvs(c, &i, 1);
	for (unsigned i = 0; i < c->n_peers; i++)
		for (unsigned k = 0; rc == 0 && k < MC_PEER_RECVS; k++)
			rc = mc_post_rc_recv(c, i, k);
	if (rc)
		return mc_say(c, err, "posting receives", -rc);
	for (unsigned i = 0; rc == 0 && i < c->n_peers; i++) {
		const struct ccl_rc_peer peer = {.ip = c->rank[c->peer[i]].ip,
			.qpn = qpn[i],
			.port = c->conf.port,
			.gid_index = c->conf.gid_index,
			.mtu = c->mtu,
			.reads = MC_READS};

		rc = ccl_rc_connect(c->rc[i], &peer);
	}
	if (rc)
		return mc_say(c, err, "connection", rc);
	for (unsigned i = 0; rc == 0 && i < c->conf.trees; i++)
		rc = join(c, i, err);
	return rc;
}

void ccl_mcast_query(const struct ccl_mcast *c, struct ccl_mcast_info *info)
{
	*info = (struct ccl_mcast_info){.mtu = c->mtu,
		.ud_qps = c->conf.uc ? 0 : c->conf.trees,
		.uc_qps = c->conf.uc ? c->conf.trees : 0,
		.rc_qps = c->n_peers,
		.marked = c->marked,
		.staging_bytes = c->conf.depth * mc_slot_len(c)};
}

struct ibv_cq *ccl_mcast_cq(const struct ccl_mcast *c, unsigned index)
{
	if (index == 0)
		return c->cq;
	return c->conf.workers > 0 && index <= c->conf.trees ? c->tree[index - 1].cq : NULL;
}

struct ibv_comp_channel *ccl_mcast_channel(const struct ccl_mcast *c)
{
	return c->channel;
}
