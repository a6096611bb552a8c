/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives, from NCCL's call to its test: issued in the order of the calls, which NCCL makes the
 * same at all ranks; driven by tests. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/nccl/coll.h"

/* As long as CommLib has no number for it. */
static const uint64_t NOT_QUEUED = UINT64_MAX;

/* ---- failing ---- */

/* Says why, once; a wait finds out more than the first error tells. */
static nccl_rc fail(struct np_coll *c, int rc)
{
	if (c->failed)
		return c->failed;
	if (ccl_error(c->ccl)[0])
		ccl_wait(c->ccl, (struct ccl_req){NOT_QUEUED}, 0);
	c->failed = rc == -ECONNABORTED ? NCCL_REMOTE_ERROR : NCCL_SYSTEM_ERROR;
	return np_warn(c->failed, "rank %u of %u: %s", c->rank, c->n_ranks,
		ccl_error(c->ccl)[0] ? ccl_error(c->ccl) : strerror(-rc));
}

void np_abort(struct np_coll *c, const char *why)
{
	ccl_abort(c->ccl, why);
	fail(c, -ECANCELED);
}

/* The others have issued it, and would take this rank's next one for it: they have to hear. */
static nccl_rc refuse(struct np_coll *c, int rc)
{
	char why[CCL_ERR_LEN];

	if (!ccl_error(c->ccl)[0]) {
		snprintf(why, sizeof(why),
			"a collective that the other ranks issue was refused at this one: %s",
			strerror(-rc));
		ccl_abort(c->ccl, why);
	}
	return fail(c, rc);
}

/* ---- issuing ---- */

/* Of rank r's block what the window has: false if nothing. */
static bool cut(const struct np_request *q, unsigned r, uint64_t *from, uint64_t *len)
{
	const uint64_t begin = r * q->block, end = begin + q->block;
	const uint64_t a = begin > q->from ? begin : q->from;
	const uint64_t b = end < q->until ? end : q->until;

	*from = a - q->from;
	*len = a < b ? b - a : 0;
	return *len > 0;
}

/* The Broadcast of rank r's part of an AllGather's window, or the Reduce to r of a ReduceScatter's.
 */
static int issue_step(
	struct np_request *q, unsigned r, uint64_t from, uint64_t len, struct ccl_req *req)
{
	if (q->kind == CCL_ALLGATHER)
		return ccl_ibroadcast(
			q->on->ccl, q->send, q->recv + from, len, REDUCE_BYTES, r, req);
	return ccl_ireduce(
		q->on->ccl, q->send + from, q->recv, len / q->element, q->dtype, q->op, r, req);
}

static int issue_whole(struct np_request *q, struct ccl_req *req)
{
	struct ccl_comm *ccl = q->on->ccl;

	if (q->kind == CCL_ALLREDUCE)
		return ccl_iallreduce(ccl, q->send, q->recv, q->count, q->dtype, q->op, req);
	if (q->kind == CCL_ALLGATHER)
		return ccl_iallgather(ccl, q->send, q->recv, q->count, q->dtype, req);
	return ccl_ireduce_scatter(ccl, q->send, q->recv, q->count, q->dtype, q->op, req);
}

/* The next of CommLib's; 1: there is none left. */
static int issue_next(struct np_request *q)
{
	struct ccl_req req = {NOT_QUEUED};
	uint64_t from = 0, len = 0;
	int rc;

	while (q->in_steps && q->step < q->on->n_ranks && !cut(q, q->step, &from, &len))
		q->step++;
	if (q->step == (q->in_steps ? q->on->n_ranks : 1))
		return 1;
	rc = q->in_steps ? issue_step(q, q->step, from, len, &req) : issue_whole(q, &req);
	/* One that was queued in spite of an error has its place; its tests say what becomes of it.
	 */
	if (req.seq == NOT_QUEUED)
		return rc;
	q->issue[q->n_issued++] = req;
	q->step++;
	return 0;
}

static int drive(struct np_coll *c)
{
	while (c->first) {
		const int rc = issue_next(c->first);

		if (rc < 0)
			return rc == -EAGAIN ? 0 : rc;
		if (rc == 0)
			continue;
		c->first->issued = true;
		c->first = c->first->next;
		if (!c->first)
			c->end = &c->first;
	}
	return 0;
}

static struct np_request *find_free(struct np_coll *c)
{
	for (unsigned i = 0; i < NP_COLL_REQUESTS; i++)
		if (!c->request[i].used)
			return &c->request[i];
	return NULL;
}

/* Starts what `want` says, if there is room; with the lock. */
static nccl_rc start_locked(struct np_coll *c, const struct np_request *want, void **request)
{
	struct np_request *q = find_free(c);
	struct ccl_req *issue;
	int rc;

	if (c->failed || !q)
		return c->failed; /* without room: later */
	issue = q->issue;
	*q = *want;
	q->on = c;
	q->used = true;
	q->issue = issue;
	*c->end = q;
	c->end = &q->next;
	rc = drive(c);
	if (rc < 0)
		return refuse(c, rc);
	*request = q;
	return NCCL_OK;
}

static nccl_rc start(struct np_coll *c, const struct np_request *want, void **request)
{
	nccl_rc rc;

	pthread_mutex_lock(&c->lock);
	rc = start_locked(c, want, request);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

/* What is refused without harm: no rank issues it. */
static nccl_rc check_reduction(int type, int op)
{
	int yes;

	np_supports(type, op, &yes);
	return yes ? NCCL_OK
		   : np_warn(NCCL_INTERNAL_ERROR,
			     "type %d with operation %d: it was said not to be supported", type,
			     op);
}

nccl_rc np_allreduce(void *coll, void *send, void *recv, int count, int type, int op,
	void *send_mem, void *recv_mem, void **request)
{
	const size_t size = np_size(type);
	const struct np_request want = {.kind = CCL_ALLREDUCE,
		.send = send,
		.recv = recv,
		.mem = {send_mem, recv_mem},
		.count = (uint64_t)count,
		.dtype = (enum reduce_dtype)np_dtype(type),
		.op = (enum reduce_op)np_op(op),
		.bytes = (uint64_t)count * size};
	const nccl_rc rc = check_reduction(type, op);

	*request = NULL;
	if (rc)
		return rc;
	if (count < 0)
		return np_warn(NCCL_INTERNAL_ERROR, "an AllReduce of %d elements", count);
	return start(coll, &want, request);
}

/* All of a window, and of its blocks whole elements. */
static nccl_rc check_window(const struct np_coll *c, int n_pieces, const struct nccl_piece *piece,
	const struct np_request *want)
{
	const uint64_t len = want->until - want->from;

	if (n_pieces == 1 && want->until >= want->from && want->until <= c->n_ranks * want->block &&
		piece->len >= len && want->block % want->element == 0 &&
		want->from % want->element == 0 && len % want->element == 0)
		return NCCL_OK;
	return np_warn(NCCL_INTERNAL_ERROR,
		"a window of %llu bytes from %llu on in blocks of %llu, in %d pieces, of elements "
		"of %zu",
		(unsigned long long)len, (unsigned long long)want->from,
		(unsigned long long)want->block, n_pieces, want->element);
}

static nccl_rc start_window(
	struct np_coll *c, struct np_request *want, size_t from, size_t len, void **request)
{
	want->in_steps = from || len != c->n_ranks * want->block;
	want->count = want->block / want->element;
	want->bytes = len;
	return start(c, want, request);
}

nccl_rc np_allgather(void *coll, void *send, int n_pieces, struct nccl_piece *recv, size_t block,
	size_t from, size_t len, void *send_mem, void **request)
{
	struct np_request want = {.kind = CCL_ALLGATHER,
		.send = send,
		.recv = recv->address,
		.mem = {send_mem, recv->mem},
		.dtype = REDUCE_BYTES,
		.element = 1,
		.block = block,
		.from = from,
		.until = from + len};
	const nccl_rc rc = check_window(coll, n_pieces, recv, &want);

	*request = NULL;
	return rc ? rc : start_window(coll, &want, from, len, request);
}

nccl_rc np_reduce_scatter(void *coll, int n_pieces, struct nccl_piece *send, void *recv,
	size_t block, size_t from, size_t len, int type, int op, void *recv_mem, void **request)
{
	struct np_request want = {.kind = CCL_REDUCE_SCATTER,
		.send = send->address,
		.recv = recv,
		.mem = {send->mem, recv_mem},
		.dtype = (enum reduce_dtype)np_dtype(type),
		.op = (enum reduce_op)np_op(op),
		.element = np_size(type),
		.block = block,
		.from = from,
		.until = from + len};
	nccl_rc rc = check_reduction(type, op);

	*request = NULL;
	if (!rc)
		rc = check_window(coll, n_pieces, send, &want);
	return rc ? rc : start_window(coll, &want, from, len, request);
}

nccl_rc np_coll_flush(void *coll, void *data, int len, void *mem, void **request)
{
	(void)coll;
	(void)data;
	(void)len;
	(void)mem;
	*request = NULL; /* a GPU sees host memory as it is */
	return NCCL_OK;
}

/* ---- finishing ---- */

/* 1: done, 0: not yet, or the error. */
static int look(struct np_request *q)
{
	while (q->n_done < q->n_issued) {
		const int rc = ccl_test(q->on->ccl, q->issue[q->n_done]);

		if (rc <= 0)
			return rc;
		q->n_done++;
	}
	return q->issued;
}

static int turn(struct np_request *q)
{
	struct np_coll *c = q->on;
	int rc = drive(c), done;

	if (rc < 0)
		return rc;
	rc = q->n_done < q->n_issued ? ccl_attend(c->ccl, q->issue[q->n_done], 0) : 0;
	done = look(q);
	if (done)
		return done;
	return rc < 0 && rc != -ETIMEDOUT ? rc : ccl_error(c->ccl)[0] ? -EIO : 0;
}

static nccl_rc test_locked(struct np_request *q, int *done, int *len)
{
	int rc;

	if (!q->used)
		return np_warn(NCCL_INTERNAL_ERROR, "a test of a request that is over");
	if (q->on->failed)
		return q->on->failed;
	rc = turn(q);
	if (rc < 0)
		return refuse(q->on, rc);
	*done = rc;
	if (rc && len)
		*len = (int)q->bytes;
	q->used = !rc;
	return NCCL_OK;
}

nccl_rc np_coll_test(void *request, int *done, int *len)
{
	struct np_request *q = request;
	struct np_coll *c = q->on;
	nccl_rc rc;

	*done = 0;
	pthread_mutex_lock(&c->lock);
	rc = test_locked(q, done, len);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

bool np_is_busy(const struct np_coll *c)
{
	for (unsigned i = 0; i < NP_COLL_REQUESTS; i++)
		if (c->request[i].used &&
			(!c->request[i].issued || c->request[i].n_done < c->request[i].n_issued))
			return true;
	return false;
}

bool np_wants(struct np_coll *c, const struct np_memory *m)
{
	for (unsigned i = 0; !c->failed && i < NP_COLL_REQUESTS; i++) {
		struct np_request *q = &c->request[i];

		if (q->used && (q->mem[0] == m || q->mem[1] == m) &&
			(m->registered ? !q->issued : look(q) == 0))
			return true;
	}
	return false;
}
