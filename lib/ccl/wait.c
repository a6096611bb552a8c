/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocking half: calls that return when a collective is done, or cannot be. */
#include <errno.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/resume.h"

static const uint64_t NOT_QUEUED = UINT64_MAX;

/* The first blocking call that meets an error says as much about it as can be found out, here and
 * to the other processes: they need not wait for their own timeouts. */
static int diagnose(struct ccl_comm *c)
{
	const size_t len = strlen(c->err);
	const struct ccl_memb *mb = ccl_waiting_memb(c);

	if (c->diagnosed || !c->setup)
		return c->failed;
	c->diagnosed = true;
	/* Of these it is known why: others said it, or this end's program, which is not to wait. */
	if (c->failed != -ECONNABORTED && c->failed != -ECANCELED)
		ccl_setup_diagnose(c->setup, mb ? mb->prim : CCL_PRIM_AR, mb ? mb->root : 0,
			c->err + len, sizeof(c->err) - len);
	ccl_setup_tell(c->setup, c->err);
	return c->failed;
}

static uint64_t end_of(uint64_t start, uint64_t timeout_ns)
{
	return timeout_ns < UINT64_MAX - start ? start + timeout_ns : UINT64_MAX;
}

/* Until the request is done, or something is wrong. */
static int go_on(struct ccl_comm *c, struct ccl_req req, uint64_t start, uint64_t until)
{
	uint64_t since = start;

	for (;;) {
		const uint64_t now = ccl_clock_ns();
		int n = ccl_progress(c, now);
		const int done = ccl_test(c, req);

		if (done > 0)
			return 0;
		if (done || n < 0)
			return done ? done : n;
		if (now >= until)
			return -ETIMEDOUT;
		if (n > 0)
			since = now;
		else
			n = ccl_idle(c, now, &since, until);
		if (n < 0)
			return n;
	}
}

int ccl_attend(struct ccl_comm *c, struct ccl_req req, uint64_t timeout_ns)
{
	const uint64_t start = ccl_clock_ns();
	const int rc = go_on(c, req, start, end_of(start, timeout_ns));
	int seen;

	if (rc == 0)
		return 0;
	seen = c->failed ? c->failed : ccl_look_round(c, ccl_clock_ns());
	return seen ? seen : rc;
}

int ccl_wait(struct ccl_comm *c, struct ccl_req req, uint64_t timeout_ns)
{
	const uint64_t start = ccl_clock_ns();

	for (;;) {
		const int rc = go_on(c, req, start, end_of(start, timeout_ns));

		if (rc == 0 || !c->failed)
			return rc;
		if (!ccl_resume_meet(c))
			return diagnose(c);
	}
}

/* A failure that can be mended is; when the queue of collectives is full, the oldest one has to go
 * first. */
static int ready(struct ccl_comm *c)
{
	int rc = c->failed && !ccl_resume_meet(c) ? c->failed : 0;

	while (rc == 0 && c->coll_issued - c->coll_done == CCL_MAX_QUEUED)
		rc = ccl_wait(c, (struct ccl_req){c->first + c->coll_done}, UINT64_MAX);
	return rc;
}

/* One that has been queued may be done in spite of an error. */
static int finish(struct ccl_comm *c, int rc, struct ccl_req req)
{
	if (rc && req.seq == NOT_QUEUED)
		return c->failed ? diagnose(c) : rc;
	return ccl_wait(c, req, UINT64_MAX);
}

int ccl_allreduce(struct ccl_comm *c, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op)
{
	struct ccl_req req = {NOT_QUEUED};
	int rc = ready(c);

	if (rc == 0)
		rc = ccl_iallreduce(c, sendbuf, recvbuf, count, dtype, op, &req);
	return finish(c, rc, req);
}

int ccl_reduce(struct ccl_comm *c, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, unsigned root)
{
	struct ccl_req req = {NOT_QUEUED};
	int rc = ready(c);

	if (rc == 0)
		rc = ccl_ireduce(c, sendbuf, recvbuf, count, dtype, op, root, &req);
	return finish(c, rc, req);
}

int ccl_broadcast(struct ccl_comm *c, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, unsigned root)
{
	struct ccl_req req = {NOT_QUEUED};
	int rc = ready(c);

	if (rc == 0)
		rc = ccl_ibroadcast(c, sendbuf, recvbuf, count, dtype, root, &req);
	return finish(c, rc, req);
}

int ccl_barrier(struct ccl_comm *c)
{
	struct ccl_req req = {NOT_QUEUED};
	int rc = ready(c);

	if (rc == 0)
		rc = ccl_ibarrier(c, &req);
	return finish(c, rc, req);
}

int ccl_reduce_scatter(struct ccl_comm *c, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op)
{
	struct ccl_req req = {NOT_QUEUED};
	int rc = ready(c);

	if (rc == 0)
		rc = ccl_ireduce_scatter(c, sendbuf, recvbuf, count, dtype, op, &req);
	return finish(c, rc, req);
}

int ccl_allgather(struct ccl_comm *c, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype)
{
	struct ccl_req req = {NOT_QUEUED};
	int rc = ready(c);

	if (rc == 0)
		rc = ccl_iallgather(c, sendbuf, recvbuf, count, dtype, &req);
	return finish(c, rc, req);
}
