/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/meet.h"

enum step { INSIDE, ACROSS, BACK, DONE };

struct nodes_coll {
	bool barrier;
	enum reduce_dtype dtype;
	enum reduce_op op;
	const uint8_t *send;
	uint8_t *recv, *work, *scratch; /* work: n_local blocks; recv, or scratch */
	uint64_t count, block;          /* elements; of a rank's block */
	struct ccl_req req;             /* of the step that runs */
};

struct ccl_nodes {
	struct ccl_nodes_conf conf;
	int failed;
	uint64_t issued, done;
	enum step step; /* of the oldest that is not done */
	bool running;   /* that step is on its ring */
	struct nodes_coll coll[CCL_NODES_MAX_QUEUED];
	char err[CCL_ERR_LEN];
};

static struct nodes_coll *coll_at(struct ccl_nodes *n, uint64_t i)
{
	return &n->coll[i % CCL_NODES_MAX_QUEUED];
}

static uint64_t size_of(const struct nodes_coll *c, uint64_t elements)
{
	return elements * reduce_size(c->dtype);
}

/* ---- making ---- */

static int refuse(char *err, const char *why)
{
	snprintf(err, CCL_ERR_LEN, "%s", why);
	return -EINVAL;
}

int ccl_nodes_open(
	const struct ccl_nodes_conf *conf, struct ccl_nodes **nodes, char err[CCL_ERR_LEN])
{
	const bool wants = conf->way == CCL_NODES_PARALLEL || conf->index == 0;
	struct ccl_ring_info local;

	if (conf->way != CCL_NODES_PARALLEL && conf->way != CCL_NODES_MASTER)
		return refuse(err, "way: must be parallel or master");
	if (conf->n_local == 0 || conf->n_local > CCL_NODES_MAX_LOCAL)
		return refuse(err, "n_local: must be 1..64");
	if (conf->index >= conf->n_local)
		return refuse(err, "index: must be below n_local");
	if (!conf->local)
		return refuse(err, "local: there is none");
	if (wants != (conf->across != NULL))
		return refuse(err, wants ? "across: there is none"
					 : "across: only a node's first rank has one");
	ccl_ring_query(conf->local, &local);
	if (local.netreduce)
		return refuse(err, "local: NetReduce has no ReduceScatter, AllGather and Reduce");
	*nodes = calloc(1, sizeof(**nodes));
	if (!*nodes)
		return -ENOMEM;
	(*nodes)->conf = *conf;
	return 0;
}

void ccl_nodes_close(struct ccl_nodes *n)
{
	if (!n)
		return;
	for (; n->done < n->issued; n->done++)
		free(coll_at(n, n->done)->scratch);
	free(n);
}

/* ---- steps ---- */

static int fail(struct ccl_nodes *n, int error, const char *where, const char *why)
{
	if (!n->failed) {
		n->failed = error;
		snprintf(n->err, sizeof(n->err), "%s: %.400s", where,
			why && why[0] ? why : strerror(-error));
	}
	return n->failed;
}

static int inside(struct ccl_nodes *n, struct nodes_coll *c)
{
	const struct ccl_nodes_conf *k = &n->conf;

	if (c->barrier)
		return ccl_ring_ibarrier(k->local, &c->req);
	if (k->way == CCL_NODES_MASTER)
		return ccl_ring_ireduce(k->local, c->send, k->index ? NULL : c->recv, c->count,
			c->dtype, c->op, 0, &c->req);
	return ccl_ring_ireduce_scatter(k->local, c->scratch ? c->work : c->send,
		c->work + k->index * size_of(c, c->block), c->block, c->dtype, c->op, &c->req);
}

static int across(struct ccl_nodes *n, struct nodes_coll *c)
{
	const struct ccl_nodes_conf *k = &n->conf;
	uint8_t *own = c->work + k->index * size_of(c, c->block);

	if (c->barrier)
		return ccl_ring_ibarrier(k->across, &c->req);
	if (k->way == CCL_NODES_MASTER)
		return ccl_ring_iallreduce(
			k->across, c->recv, c->recv, c->count, c->dtype, c->op, &c->req);
	return ccl_ring_iallreduce(k->across, own, own, c->block, c->dtype, c->op, &c->req);
}

static int back(struct ccl_nodes *n, struct nodes_coll *c)
{
	const struct ccl_nodes_conf *k = &n->conf;

	if (c->barrier)
		return ccl_ring_ibarrier(k->local, &c->req);
	if (k->way == CCL_NODES_MASTER)
		return ccl_ring_ibroadcast(k->local, c->recv, size_of(c, c->count), 0, &c->req);
	return ccl_ring_iallgather(k->local, c->work + k->index * size_of(c, c->block), c->work,
		size_of(c, c->block), &c->req);
}

static struct ccl_ring *ring_of(const struct ccl_nodes *n, enum step step)
{
	return step == ACROSS ? n->conf.across : n->conf.local;
}

static int start(struct ccl_nodes *n, struct nodes_coll *c)
{
	static int (*const of[])(struct ccl_nodes *, struct nodes_coll *) = {inside, across, back};
	const int rc = of[n->step](n, c);

	if (rc)
		return fail(n, rc, n->step == ACROSS ? "across the nodes" : "inside the node",
			ccl_ring_error(ring_of(n, n->step)));
	n->running = true;
	return 0;
}

static void finish(struct ccl_nodes *n, struct nodes_coll *c)
{
	if (c->scratch)
		memcpy(c->recv, c->scratch, size_of(c, c->count));
	free(c->scratch);
	c->scratch = NULL;
	n->step = INSIDE;
	n->done++;
}

/* In a fixed order on each ring, whatever is done first: the next collective is begun when the one
 * before it has been gathered. */
static int go_on(struct ccl_nodes *n)
{
	while (n->done < n->issued) {
		struct nodes_coll *c = coll_at(n, n->done);
		int rc;

		if (n->running && ccl_ring_test(ring_of(n, n->step), c->req) != 1)
			return 0;
		if (n->running) {
			n->running = false;
			n->step++;
		}
		if (n->step == ACROSS && !n->conf.across)
			n->step = BACK;
		if (n->step == DONE) {
			finish(n, c);
			continue;
		}
		rc = start(n, c);
		if (rc)
			return rc;
	}
	return 0;
}

int ccl_nodes_progress(struct ccl_nodes *n, uint64_t now)
{
	int rc, some;

	if (n->failed)
		return n->failed;
	some = ccl_ring_progress(n->conf.local, now);
	if (some < 0)
		return fail(n, some, "inside the node", ccl_ring_error(n->conf.local));
	rc = n->conf.across ? ccl_ring_progress(n->conf.across, now) : 0;
	if (rc < 0)
		return fail(n, rc, "across the nodes", ccl_ring_error(n->conf.across));
	some += rc;
	rc = go_on(n);
	return rc ? rc : some;
}

/* ---- issuing ---- */

static int issue(struct ccl_nodes *n, struct nodes_coll *c, struct ccl_req *req)
{
	*coll_at(n, n->issued) = *c;
	req->seq = n->issued++;
	return go_on(n);
}

static int ready(const struct ccl_nodes *n)
{
	if (n->failed)
		return n->failed;
	return n->issued - n->done == CCL_NODES_MAX_QUEUED ? -EAGAIN : 0;
}

/* Blocks are alike: what the last one has too much is 0, and nobody looks at its sum. */
static int pad(const struct ccl_nodes *n, struct nodes_coll *c)
{
	const uint64_t bytes = size_of(c, c->block) * n->conf.n_local;

	if (n->conf.way == CCL_NODES_MASTER || c->block * n->conf.n_local == c->count)
		return 0;
	c->scratch = calloc(1, bytes);
	if (!c->scratch)
		return -ENOMEM;
	memcpy(c->scratch, c->send, size_of(c, c->count));
	c->work = c->scratch;
	return 0;
}

int ccl_nodes_iallreduce(struct ccl_nodes *n, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, struct ccl_req *req)
{
	struct nodes_coll c = {.dtype = dtype,
		.op = op,
		.send = sendbuf,
		.recv = recvbuf,
		.work = recvbuf,
		.count = count,
		.block = count / n->conf.n_local + (count % n->conf.n_local != 0)};
	int rc = ready(n);

	if (rc)
		return rc;
	if (!reduce_kernel(op, dtype))
		return -EOPNOTSUPP;
	if (count > UINT64_MAX / 16 / CCL_NODES_MAX_LOCAL || (count && (!sendbuf || !recvbuf)) ||
		(sendbuf != recvbuf &&
			ccl_meet(sendbuf, size_of(&c, count), recvbuf, size_of(&c, count))))
		return -EINVAL;
	rc = pad(n, &c);
	return rc ? rc : issue(n, &c, req);
}

int ccl_nodes_ibarrier(struct ccl_nodes *n, struct ccl_req *req)
{
	struct nodes_coll c = {.barrier = true, .dtype = REDUCE_INT32, .op = REDUCE_SUM};
	const int rc = ready(n);

	return rc ? rc : issue(n, &c, req);
}

int ccl_nodes_test(const struct ccl_nodes *n, struct ccl_req req)
{
	if (req.seq >= n->issued)
		return -EINVAL;
	if (req.seq < n->done)
		return 1;
	return n->failed;
}

const char *ccl_nodes_error(const struct ccl_nodes *n)
{
	return n->err;
}
