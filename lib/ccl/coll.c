/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives as they are issued: checked and queued. */
#include <errno.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/meet.h"
#include "lib/ccl/resume.h"

static const struct ccl_region *find_region(
	const struct ccl_comm *c, const uint8_t *p, uint64_t len)
{
	for (unsigned i = 0; p && i < CCL_MAX_REGIONS; i++) {
		const struct ccl_region *r = &c->region[i];

		if (r->mr && p >= r->base && len <= r->len &&
			(uint64_t)(p - r->base) <= r->len - len)
			return r;
	}
	return NULL;
}

/* Bytes of the buffers. */
static uint64_t send_len(const struct ccl_comm *c, const struct ccl_coll *coll)
{
	return coll->bytes * (coll->kind == CCL_REDUCE_SCATTER ? c->n_ranks : 1);
}

static uint64_t recv_len(const struct ccl_comm *c, const struct ccl_coll *coll)
{
	return coll->bytes * (coll->kind == CCL_ALLGATHER ? c->n_ranks : 1);
}

static void find_keys(const struct ccl_comm *c, struct ccl_coll *coll)
{
	const struct ccl_region *r = find_region(c, coll->send, send_len(c, coll));

	/* AllReduce in place: a result may overwrite what the NIC might have to send again. */
	if (r && !(coll->kind == CCL_ALLREDUCE && coll->send == coll->recv)) {
		coll->send_direct = true;
		coll->send_lkey = r->mr->lkey;
	}
	r = find_region(c, coll->recv, recv_len(c, coll));
	if (r) {
		coll->recv_direct = true;
		coll->recv_lkey = r->mr->lkey;
	}
}

bool ccl_uses(const struct ccl_comm *c, const uint8_t *base, size_t len)
{
	for (uint64_t i = c->coll_done; i != c->coll_issued; i++) {
		const struct ccl_coll *coll = &c->coll[i % CCL_MAX_QUEUED];

		if (coll->parts_left && (ccl_meet(coll->send, send_len(c, coll), base, len) ||
						ccl_meet(coll->recv, recv_len(c, coll), base, len)))
			return true;
	}
	return false;
}

/* Equal to `place` is in place; apart is fine; all else is not. */
static bool overlap(const struct ccl_comm *c, const struct ccl_coll *coll)
{
	const uint8_t *send = coll->send, *recv = coll->recv;
	uint64_t shift = 0;

	if (!send || !recv || coll->bytes == 0)
		return false;
	if (coll->kind == CCL_REDUCE_SCATTER || coll->kind == CCL_ALLGATHER)
		shift = c->rank * coll->bytes;
	if (coll->kind == CCL_ALLGATHER ? send == recv + shift : recv == send + shift)
		return false;
	return ccl_meet(send, send_len(c, coll), recv, recv_len(c, coll));
}

/* Of the whole vector. */
static uint64_t whole(const struct ccl_comm *c, const struct ccl_coll *coll)
{
	const bool blocks = coll->kind == CCL_REDUCE_SCATTER || coll->kind == CCL_ALLGATHER;

	return coll->bytes * (blocks ? c->n_ranks : 1);
}

/* A rank alone: Reduce and Broadcast have nobody to talk to. */
static void do_alone(struct ccl_coll *coll)
{
	if (coll->bytes && coll->send != coll->recv)
		memcpy(coll->recv, coll->send, coll->bytes);
	coll->n_parts = 0;
}

/* Without memory it is this rank alone that cannot issue it: its next one would pass for it. */
static int refused_here(struct ccl_comm *c, int rc)
{
	if (rc != -ENOMEM && rc != -ENOBUFS)
		return rc;
	ccl_abort(c, "out of memory for a collective that the others have issued");
	return c->failed;
}

static int issue(struct ccl_comm *c, struct ccl_coll *coll, struct ccl_req *req)
{
	bool held;
	int rc;

	if (c->failed)
		return c->failed;
	if (!c->connected)
		return -ENOTCONN;
	if (!(c->collectives >> coll->kind & 1))
		return -EOPNOTSUPP;
	if (c->coll_issued - c->coll_done == CCL_MAX_QUEUED)
		return -EAGAIN;
	coll->by = ccl_pick(c, coll->kind, whole(c, coll));
	if (c->ring && coll->by == CCL_BY_INC)
		coll->by = CCL_BY_RING; /* into which the switches put sums */
	if (coll->by == CCL_BY_INC)
		find_keys(c, coll);
	if (!ccl_busy(c))
		c->fresh = true; /* the wait begins now, whenever that is */
	coll->n_parts =
		coll->kind == CCL_REDUCE_SCATTER || coll->kind == CCL_ALLGATHER ? c->n_ranks : 1;
	if (!ccl_by_hosts(c) && c->n_ranks == 1 && coll->kind != CCL_ALLREDUCE &&
		coll->kind != CCL_BARRIER)
		do_alone(coll);
	if (coll->by != CCL_BY_INC && coll->by != CCL_BY_RING && coll->bytes == 0)
		coll->by = CCL_BY_INC, coll->n_parts = 0; /* nothing to be done */
	held = ccl_resume_pending(c);
	rc = c->resume ? ccl_resume_keep(c, coll) : 0;
	if (rc)
		return refused_here(c, rc);
	if (coll->by != CCL_BY_INC) {
		/* What is to be repeated comes first. */
		rc = held ? 0 : ccl_hand_on(c, coll);
		if (rc)
			return refused_here(c, rc);
		coll->n_parts = 0;
	}
	/* With a lease, it is done when all ranks are; what is handed on is one part. */
	coll->parts_left = coll->n_parts + (c->lease || coll->by != CCL_BY_INC ? 1 : 0);
	*ccl_coll_at(c, c->coll_issued) = *coll;
	req->seq = c->first + c->coll_issued++;
	if (!held)
		ccl_resume_handed(c);
	ccl_retire(c);
	if (c->lease)
		return ccl_lease_go(c);
	for (unsigned i = 0; i < c->n_memb; i++)
		if (ccl_pump(&c->memb[i]))
			return c->failed;
	return 0;
}

/* What is common to those with data. */
static int issue_data(struct ccl_comm *c, struct ccl_coll *coll, uint64_t count, unsigned dtype,
	unsigned root, struct ccl_req *req)
{
	const size_t size = reduce_size((enum reduce_dtype)dtype);
	const bool reduces = coll->op != REDUCE_NONE;

	if (reduces && c->no_half && (dtype == REDUCE_FP16 || dtype == REDUCE_BF16))
		return -EOPNOTSUPP;
	if (size == 0 ||
		(reduces && !reduce_kernel((enum reduce_op)coll->op, (enum reduce_dtype)dtype)))
		return -EOPNOTSUPP;
	if (root >= c->n_ranks || count > UINT64_MAX / 2 / size / c->n_ranks)
		return -EINVAL;
	/* Only the root of a Reduce has a result, only that of a Broadcast a contribution. */
	if (coll->kind == CCL_REDUCE && root != c->rank)
		coll->recv = NULL;
	else if (count && !coll->recv)
		return -EINVAL;
	if (coll->kind == CCL_BROADCAST && root != c->rank)
		coll->send = NULL;
	else if (count && !coll->send)
		return -EINVAL;
	coll->dtype = (uint8_t)dtype;
	coll->root = (uint16_t)root;
	coll->bytes = count * size;
	return overlap(c, coll) ? -EINVAL : issue(c, coll, req);
}

int ccl_iallreduce(struct ccl_comm *c, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, struct ccl_req *req)
{
	struct ccl_coll coll = {
		.kind = CCL_ALLREDUCE, .send = sendbuf, .recv = recvbuf, .op = (uint8_t)op};

	return op == REDUCE_NONE ? -EOPNOTSUPP : issue_data(c, &coll, count, dtype, 0, req);
}

int ccl_ireduce(struct ccl_comm *c, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, unsigned root, struct ccl_req *req)
{
	struct ccl_coll coll = {
		.kind = CCL_REDUCE, .send = sendbuf, .recv = recvbuf, .op = (uint8_t)op};

	return op == REDUCE_NONE ? -EOPNOTSUPP : issue_data(c, &coll, count, dtype, root, req);
}

int ccl_ibroadcast(struct ccl_comm *c, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, unsigned root, struct ccl_req *req)
{
	struct ccl_coll coll = {
		.kind = CCL_BROADCAST, .send = sendbuf, .recv = recvbuf, .op = REDUCE_NONE};

	return issue_data(c, &coll, count, dtype, root, req);
}

int ccl_ireduce_scatter(struct ccl_comm *c, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, struct ccl_req *req)
{
	struct ccl_coll coll = {
		.kind = CCL_REDUCE_SCATTER, .send = sendbuf, .recv = recvbuf, .op = (uint8_t)op};

	return op == REDUCE_NONE ? -EOPNOTSUPP : issue_data(c, &coll, count, dtype, 0, req);
}

int ccl_iallgather(struct ccl_comm *c, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, struct ccl_req *req)
{
	struct ccl_coll coll = {
		.kind = CCL_ALLGATHER, .send = sendbuf, .recv = recvbuf, .op = REDUCE_NONE};

	return issue_data(c, &coll, count, dtype, 0, req);
}

int ccl_ibarrier(struct ccl_comm *c, struct ccl_req *req)
{
	struct ccl_coll coll = {.kind = CCL_BARRIER, .op = REDUCE_NONE, .dtype = REDUCE_BYTES};

	return issue(c, &coll, req);
}

int ccl_test(const struct ccl_comm *c, struct ccl_req req)
{
	if (req.seq < c->first)
		return -ECANCELED;
	req.seq -= c->first;
	if (req.seq >= c->coll_issued)
		return -EINVAL;
	if (req.seq < c->coll_done || c->coll[req.seq % CCL_MAX_QUEUED].parts_left == 0)
		return 1;
	return c->failed;
}
