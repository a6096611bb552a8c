/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives over a ring as they are issued: arguments checked, own data put in place, the
 * messages planned and queued. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/meet.h"
#include "lib/ccl/ring_priv.h"

/* Buffers that have bytes are there, and are the same or apart. */
static bool usable(
	const void *send, uint64_t send_len, const void *recv, uint64_t recv_len, bool in_place)
{
	return (send || !send_len) && (recv || !recv_len) &&
	       (in_place || !ccl_meet(send, send_len, recv, recv_len));
}

static int ready(const struct ccl_ring *r)
{
	if (r->failed)
		return r->failed;
	if (!r->connected)
		return -ENOTCONN;
	return r->issued - r->done == CCL_RING_MAX_QUEUED ? -EAGAIN : 0;
}

/* Own data to where the result is, if the collective is about to be issued. */
static void put(const struct ccl_ring *r, void *to, const void *from, uint64_t len)
{
	if (to != from && len && !ready(r))
		memcpy(to, from, len);
}

/* The same where nobody sends anything: the result is the own data. */
static void put_alone(const struct ccl_ring *r, void *to, const void *from, uint64_t len)
{
	if (r->n_ranks == 1)
		put(r, to, from, len);
}

static int issue(struct ccl_ring *r, struct ring_coll *c, struct ccl_req *req)
{
	const int rc = ready(r);

	if (rc) {
		free(c->scratch);
		return rc;
	}
	if (!ccl_ring_busy(r))
		r->fresh = true; /* the wait begins now, whenever that is */
	ring_plan(r, c);
	if (r->n_ranks == 1)
		c->n_tx = c->n_rx = 0;
	c->tx_first = r->tx_total;
	c->rx_first = r->rx_total;
	r->tx_total += c->n_tx;
	r->rx_total += c->n_rx;
	*ring_coll_at(r, r->issued) = *c;
	req->seq = r->issued++;
	return ring_pump(r);
}

/* The kernel, where this host reduces; the switch has its own. */
static int find_kernel(const struct ccl_ring *r, struct ring_coll *c)
{
	const reduce_fn add = reduce_kernel(c->op, c->dtype);

	if (add == NULL)
		return -EOPNOTSUPP;
	c->add = r->conf.netreduce ? NULL : add;
	return 0;
}

int ccl_ring_iallreduce(struct ccl_ring *r, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, struct ccl_req *req)
{
	struct ring_coll c = {.kind = RING_ALLREDUCE,
		.op = op,
		.dtype = dtype,
		.send = sendbuf,
		.recv = recvbuf,
		.work = recvbuf,
		.bytes = count * reduce_size(dtype)};

	if (find_kernel(r, &c))
		return -EOPNOTSUPP;
	if (count > UINT64_MAX / 16 ||
		!usable(sendbuf, c.bytes, recvbuf, c.bytes, sendbuf == recvbuf))
		return -EINVAL;
	put_alone(r, recvbuf, sendbuf, c.bytes);
	return issue(r, &c, req);
}

int ccl_ring_ibarrier(struct ccl_ring *r, struct ccl_req *req)
{
	struct ring_coll c = {.kind = RING_BARRIER, .op = REDUCE_SUM, .dtype = REDUCE_INT32};

	return issue(r, &c, req);
}

static int add_scratch(struct ring_coll *c, uint64_t len)
{
	c->scratch = malloc(len ? len : 1);
	c->work = c->scratch;
	return c->scratch ? 0 : -ENOMEM;
}

int ccl_ring_ireduce(struct ccl_ring *r, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, unsigned root, struct ccl_req *req)
{
	const bool is_root = root == r->rank;
	struct ring_coll c = {.kind = RING_REDUCE,
		.op = op,
		.dtype = dtype,
		.send = sendbuf,
		.recv = recvbuf,
		.work = recvbuf,
		.bytes = count * reduce_size(dtype),
		.root = root};

	if (r->conf.netreduce || find_kernel(r, &c))
		return -EOPNOTSUPP;
	if (root >= r->n_ranks || count > UINT64_MAX / 16 ||
		!usable(sendbuf, c.bytes, recvbuf, is_root ? c.bytes : 0, sendbuf == recvbuf))
		return -EINVAL;
	if (!is_root && add_scratch(&c, c.bytes))
		return -ENOMEM;
	put_alone(r, recvbuf, sendbuf, c.bytes);
	return issue(r, &c, req);
}

int ccl_ring_ibroadcast(
	struct ccl_ring *r, void *buf, uint64_t bytes, unsigned root, struct ccl_req *req)
{
	struct ring_coll c = {.kind = RING_BROADCAST,
		.op = REDUCE_NONE,
		.dtype = REDUCE_BYTES,
		.send = buf,
		.recv = buf,
		.work = buf,
		.bytes = bytes,
		.root = root};

	if (r->conf.netreduce)
		return -EOPNOTSUPP;
	if (root >= r->n_ranks || (bytes && !buf))
		return -EINVAL;
	return issue(r, &c, req);
}

int ccl_ring_ireduce_scatter(struct ccl_ring *r, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, struct ccl_req *req)
{
	const uint64_t bytes = count * reduce_size(dtype);
	const uint8_t *own = (const uint8_t *)sendbuf + r->rank * bytes;
	struct ring_coll c = {.kind = RING_REDUCE_SCATTER,
		.op = op,
		.dtype = dtype,
		.send = sendbuf,
		.recv = recvbuf,
		.bytes = bytes};

	if (r->conf.netreduce || find_kernel(r, &c))
		return -EOPNOTSUPP;
	if (count > UINT64_MAX / 16 / r->n_ranks ||
		!usable(sendbuf, bytes * r->n_ranks, recvbuf, bytes, recvbuf == own))
		return -EINVAL;
	if (add_scratch(&c, bytes * r->n_ranks))
		return -ENOMEM;
	put_alone(r, recvbuf, own, bytes);
	return issue(r, &c, req);
}

int ccl_ring_iallgather(
	struct ccl_ring *r, const void *sendbuf, void *recvbuf, uint64_t bytes, struct ccl_req *req)
{
	uint8_t *own = (uint8_t *)recvbuf + r->rank * bytes;
	struct ring_coll c = {.kind = RING_ALLGATHER,
		.op = REDUCE_NONE,
		.dtype = REDUCE_BYTES,
		.send = sendbuf,
		.recv = recvbuf,
		.work = recvbuf,
		.bytes = bytes};

	if (r->conf.netreduce)
		return -EOPNOTSUPP;
	if (bytes > UINT64_MAX / r->n_ranks ||
		!usable(sendbuf, bytes, recvbuf, bytes * r->n_ranks, sendbuf == own))
		return -EINVAL;
	put(r, own, sendbuf, bytes);
	return issue(r, &c, req);
}
