/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs objects of a tree, and how its ranks meet: a connection for each pair of a parent and a
 * child of some root, which data goes down and room is told up. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/boot.h"
#include "lib/ccl/comm.h"
#include "lib/ccl/tree_priv.h"

static const uint64_t DEFAULT_TIMEOUT_NS = 10000000000;

static int say(const struct ccl_tree *t, char *err, const char *what, int error)
{
	snprintf(err, CCL_ERR_LEN, "rank %u: tree: %s: %s", t->conf.rank, what, strerror(error));
	return -error;
}

/* ---- who is linked to whom ---- */

static void add(struct tree_link *link, unsigned *n, unsigned rank)
{
	for (unsigned i = 0; i < *n; i++)
		if (link[i].rank == rank)
			return;
	link[(*n)++] = (struct tree_link){.rank = rank};
}

static void add_of_root(struct ccl_tree *t, unsigned root)
{
	const unsigned n = t->conf.n_ranks, place = tree_place(t, root);
	unsigned child[CCL_TREE_MAX_CHILDREN];
	const unsigned count = ccl_tree_children(&t->conf.shape, n, place, child);

	for (unsigned i = 0; i < count; i++)
		add(t->out, &t->n_out, (child[i] + root) % n);
	if (place > 0)
		add(t->in, &t->n_in, (ccl_tree_parent(&t->conf.shape, place) + root) % n);
}

static int find_links(struct ccl_tree *t)
{
	const unsigned n = t->conf.n_ranks;

	t->out = calloc(n, sizeof(*t->out));
	t->in = calloc(n, sizeof(*t->in));
	if (!t->out || !t->in)
		return -ENOMEM;
	for (unsigned root = 0; root < n; root++)
		if (t->conf.only_root < 0 || root == (unsigned)t->conf.only_root)
			add_of_root(t, root);
	return 0;
}

/* ---- objects ---- */

static int make_objects(struct ccl_tree *t, char *err)
{
	const unsigned depth =
		t->n_out * (t->conf.w + TREE_CREDIT_RECVS) + t->n_in * (t->conf.w + 1) + 1;
	int rc = 0;

	t->pd = t->conf.pd ?: ibv_alloc_pd(t->conf.context);
	if (!t->pd)
		return say(t, err, "protection domain", errno);
	t->channel = ibv_create_comp_channel(t->conf.context);
	if (!t->channel || fcntl(t->channel->fd, F_SETFL, O_NONBLOCK) < 0)
		return say(t, err, "completion channel", errno);
	t->cq = ibv_create_cq(t->conf.context, (int)depth, t, t->channel, 0);
	if (!t->cq)
		return say(t, err, "completion queue", errno);
	for (unsigned i = 0; rc == 0 && i < t->n_out; i++) {
		t->out[i].qp = ccl_qp_of(t->pd, t->cq, IBV_QPT_RC, t->conf.w, TREE_CREDIT_RECVS);
		rc = t->out[i].qp ? ccl_rc_init(t->out[i].qp, t->conf.port) : errno;
	}
	for (unsigned i = 0; rc == 0 && i < t->n_in; i++) {
		t->in[i].qp = ccl_qp_of(t->pd, t->cq, IBV_QPT_RC, 1, t->conf.w);
		rc = t->in[i].qp ? ccl_rc_init(t->in[i].qp, t->conf.port) : errno;
	}
	return rc ? say(t, err, "queue pair", rc) : 0;
}

static int open_all(struct ccl_tree *t, char *err)
{
	const int mtu = ccl_port_mtu(t->conf.context, t->conf.port);
	union ibv_gid gid;
	int rc;

	if (mtu < 0)
		return say(t, err, "port", -mtu);
	t->mtu = t->conf.mtu && t->conf.mtu < (unsigned)mtu ? t->conf.mtu : (unsigned)mtu;
	if (ibv_query_gid(t->conf.context, t->conf.port, t->conf.gid_index, &gid))
		return say(t, err, "address", EADDRNOTAVAIL);
	memcpy(t->ip.b, gid.raw, sizeof(t->ip.b));
	rc = find_links(t);
	return rc ? say(t, err, "memory", -rc) : make_objects(t, err);
}

int ccl_tree_open(const struct ccl_tree_conf *conf, struct ccl_tree **tree, char err[CCL_ERR_LEN])
{
	struct ccl_tree *t = calloc(1, sizeof(*t));
	int rc;

	*tree = NULL;
	if (!t) {
		snprintf(err, CCL_ERR_LEN, "out of memory");
		return -ENOMEM;
	}
	t->conf = *conf;
	t->conf.port = conf->port ?: 1;
	t->conf.timeout_ns = conf->timeout_ns ?: DEFAULT_TIMEOUT_NS;
	if (conf->n_ranks < 1 || conf->n_ranks > CCL_MAX_RANKS || conf->rank >= conf->n_ranks ||
		conf->m < 1 || conf->m > 1024 || conf->w < 1 || conf->w > 1024 ||
		(!conf->shape.binary &&
			(conf->shape.radix < 2 || conf->shape.radix > CCL_TREE_MAX_RADIX)) ||
		(conf->shape.binary && conf->only_root < 0 &&
			conf->n_ranks > CCL_TREE_MAX_BINARY)) {
		snprintf(err, CCL_ERR_LEN, "tree: rank, n_ranks, m, w or radix out of range");
		free(t);
		return -EINVAL;
	}
	rc = open_all(t, err);
	if (rc)
		ccl_tree_close(t);
	else
		*tree = t;
	return rc;
}

void ccl_tree_close(struct ccl_tree *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < t->n_out; i++)
		if (t->out[i].qp)
			ibv_destroy_qp(t->out[i].qp);
	for (unsigned i = 0; i < t->n_in; i++)
		if (t->in[i].qp)
			ibv_destroy_qp(t->in[i].qp);
	if (t->own_mr)
		ibv_dereg_mr(t->own_mr);
	if (t->cq)
		ibv_destroy_cq(t->cq);
	if (t->channel)
		ibv_destroy_comp_channel(t->channel);
	if (t->pd && !t->conf.pd)
		ibv_dealloc_pd(t->pd);
	free(t->out);
	free(t->in);
	free(t);
}

/* ---- meeting ---- */

static json_t *qpns(const struct tree_link *link, unsigned n)
{
	json_t *of = json_object();
	char rank[16];

	for (unsigned i = 0; i < n; i++) {
		snprintf(rank, sizeof(rank), "%u", link[i].rank);
		json_object_set_new(of, rank, json_integer(link[i].qp->qp_num));
	}
	return of;
}

json_t *ccl_tree_address(const struct ccl_tree *t)
{
	char ip[WIRE_IP_STRLEN];

	return json_pack("{s:s, s:i, s:o, s:o}", "ip", wire_ip_format(&t->ip, ip, sizeof(ip)),
		"mtu", (int)t->mtu, "out", qpns(t->out, t->n_out), "in", qpns(t->in, t->n_in));
}

int tree_post_credit(struct ccl_tree *t, unsigned out)
{
	struct ibv_recv_wr wr = {.wr_id = (uint64_t)TREE_CREDIT << 32 | out}, *bad;

	return ibv_post_recv(t->out[out].qp, &wr, &bad);
}

static int connect_link(struct ccl_tree *t, const struct tree_link *link, const char *end,
	const json_t *all, char *err)
{
	const json_t *one = json_array_get(all, link->rank);
	struct ccl_rc_peer peer = {
		.port = t->conf.port, .gid_index = t->conf.gid_index, .mtu = t->mtu};
	const char *ip = json_string_value(json_object_get(one, "ip"));
	const json_t *qpn;
	char own[16];
	int rc;

	snprintf(own, sizeof(own), "%u", t->conf.rank);
	qpn = json_object_get(json_object_get(one, end), own);
	if (!ip || wire_ip_parse(ip, &peer.ip) || !json_is_integer(qpn)) {
		snprintf(err, CCL_ERR_LEN, "tree: rank %u's address makes no sense", link->rank);
		return -EPROTO;
	}
	peer.qpn = (uint32_t)json_integer_value(qpn);
	rc = ccl_rc_connect(link->qp, &peer);
	return rc ? say(t, err, "connection", rc) : 0;
}

int ccl_tree_connect(struct ccl_tree *t, const json_t *all, char err[CCL_ERR_LEN])
{
	const json_t *one;
	size_t r;
	int rc = 0;

	json_array_foreach(all, r, one)
	{
		const json_int_t mtu = json_integer_value(json_object_get(one, "mtu"));

		if (mtu < 256 || mtu > 4096 || (mtu & (mtu - 1))) {
			snprintf(err, CCL_ERR_LEN, "tree: rank %zu's MTU makes no sense", r);
			return -EPROTO;
		}
		t->mtu = (unsigned)mtu < t->mtu ? (unsigned)mtu : t->mtu;
	}
	for (unsigned i = 0; rc == 0 && i < t->n_out; i++) {
		for (unsigned k = 0; rc == 0 && k < TREE_CREDIT_RECVS; k++)
			rc = tree_post_credit(t, i);
		rc = rc ? say(t, err, "posting receives", rc)
			: connect_link(t, &t->out[i], "in", all, err);
	}
	for (unsigned i = 0; rc == 0 && i < t->n_in; i++)
		rc = connect_link(t, &t->in[i], "out", all, err);
	t->ready = rc == 0;
	return rc;
}

int ccl_tree_meet(struct ccl_tree *t, struct ccl_boot *boot, char err[CCL_ERR_LEN])
{
	json_t *all = NULL;
	int rc = ccl_boot_exchange(boot, ccl_tree_address(t), &all, err);

	if (rc == 0)
		rc = ccl_tree_connect(t, all, err);
	json_decref(all);
	if (rc)
		ccl_boot_abort(boot, err);
	return rc ? rc : ccl_boot_barrier(boot, err);
}

/* ---- looking ---- */

unsigned ccl_tree_mtu(const struct ccl_tree *t)
{
	return t->mtu;
}

struct ibv_cq *ccl_tree_cq(const struct ccl_tree *t)
{
	return t->cq;
}

struct ibv_comp_channel *ccl_tree_channel(const struct ccl_tree *t)
{
	return t->channel;
}
