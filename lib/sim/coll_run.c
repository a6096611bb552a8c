/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of a communicator: issued, waited for, checked. */
#include <errno.h>
#include <stdlib.h>

#include "lib/sim/coll_priv.h"

enum { FILL = 0x5a };

/* Elements of a piece of work, and of a rank's block in it. */
static uint64_t elements(const struct sim_work *w)
{
	return w->op == CCL_BARRIER ? 0 : w->bytes / 4;
}

static uint64_t block_of(const struct sim_coll *c, const struct sim_work *w)
{
	return elements(w) / c->conf.n_ranks;
}

static uint32_t contribution(const struct sim_coll *c, unsigned k, unsigned rank, uint64_t i)
{
	return (uint32_t)i * 2654435761u ^ rank * 40503u ^ (k + c->conf.start_psn) * 0x85ebca6bu;
}

/* ---- issuing ---- */

/* Elements in memory: ReduceScatter gives, and AllGather receives, a block per rank. */
static int issue_comm(
	struct ccl_comm *comm, const struct sim_work *w, uint64_t block, struct sim_call *k)
{
	const uint64_t n = elements(w);

	switch (w->op) {
	case CCL_ALLREDUCE:
		return ccl_iallreduce(comm, k->in, k->out, n, REDUCE_INT32, REDUCE_SUM, &k->req);
	case CCL_REDUCE:
		return ccl_ireduce(
			comm, k->in, k->out, n, REDUCE_INT32, REDUCE_SUM, w->root, &k->req);
	case CCL_BROADCAST:
		return ccl_ibroadcast(comm, k->in, k->out, n, REDUCE_INT32, w->root, &k->req);
	case CCL_REDUCE_SCATTER:
		return ccl_ireduce_scatter(
			comm, k->in, k->out, block, REDUCE_INT32, REDUCE_SUM, &k->req);
	case CCL_ALLGATHER:
		return ccl_iallgather(comm, k->in, k->out, block, REDUCE_INT32, &k->req);
	default:
		return ccl_ibarrier(comm, &k->req);
	}
}

static int issue_ring(
	struct ccl_ring *ring, const struct sim_work *w, uint64_t block, struct sim_call *k)
{
	const uint64_t n = elements(w);

	switch (w->op) {
	case CCL_ALLREDUCE:
		return ccl_ring_iallreduce(
			ring, k->in, k->out, n, REDUCE_INT32, REDUCE_SUM, &k->req);
	case CCL_REDUCE:
		return ccl_ring_ireduce(
			ring, k->in, k->out, n, REDUCE_INT32, REDUCE_SUM, w->root, &k->req);
	case CCL_BROADCAST:
		memcpy(k->out, k->in, n * 4);
		return ccl_ring_ibroadcast(ring, k->out, n * 4, w->root, &k->req);
	case CCL_REDUCE_SCATTER:
		return ccl_ring_ireduce_scatter(
			ring, k->in, k->out, block, REDUCE_INT32, REDUCE_SUM, &k->req);
	case CCL_ALLGATHER:
		return ccl_ring_iallgather(ring, k->in, k->out, block * 4, &k->req);
	default:
		return ccl_ring_ibarrier(ring, &k->req);
	}
}

/* Whatever is due, in order; the host is woken for the rest. */
static int issue_due(struct sim_rank *rank, uint64_t now)
{
	struct sim_coll *c = rank->coll;

	for (; rank->n_issued < c->n_work; rank->n_issued++) {
		const struct sim_work *w = &c->work[rank->n_issued];
		struct sim_call *call = &rank->call[rank->n_issued];
		int rc;

		if (call->at > now) {
			sim_wake(c->conf.sim, sim_coll_host(c, rank->index), call->at);
			return 0;
		}
		if (sim_coll_by_hosts(c))
			rc = sim_coll_issue_hosts(rank, w, block_of(c, w), call);
		else
			rc = rank->ring ? issue_ring(rank->ring, w, block_of(c, w), call)
					: issue_comm(rank->comm, w, block_of(c, w), call);
		if (rc)
			return rc;
	}
	return 0;
}

static int progress(struct sim_rank *rank, uint64_t now)
{
	if (sim_coll_by_hosts(rank->coll))
		return sim_coll_progress_hosts(rank, now);
	return rank->ring ? ccl_ring_progress(rank->ring, now) : ccl_progress(rank->comm, now);
}

static int test(const struct sim_rank *rank, struct ccl_req req)
{
	if (sim_coll_by_hosts(rank->coll))
		return sim_coll_test_hosts(rank, req);
	return rank->ring ? ccl_ring_test(rank->ring, req) : ccl_test(rank->comm, req);
}

int sim_coll_app(void *arg, uint64_t now)
{
	struct sim_rank *rank = arg;
	int rc = issue_due(rank, now);

	if (rc == 0)
		rc = progress(rank, now);
	for (unsigned k = 0; rc >= 0 && k < rank->n_issued; k++) {
		struct sim_call *call = &rank->call[k];

		if (call->done || test(rank, call->req) != 1)
			continue;
		call->done = true;
		call->done_at = rank->coll->finished = now;
		rank->coll->n_waiting--;
	}
	return rc;
}

/* Memory of a rank's part, and what the rank gives. */
static int prepare(struct sim_rank *rank, unsigned k, uint64_t n)
{
	struct sim_call *call = &rank->call[k];
	const size_t bytes = n * 4;
	int rc = 0;

	call->in = malloc(bytes + 4);
	call->out = malloc(bytes + 4);
	if (!call->in || !call->out)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++)
		call->in[i] = (int32_t)contribution(rank->coll, k, rank->index, i);
	memset(call->out, FILL, bytes + 4);
	for (unsigned i = 0; n > 0 && rc == 0 && i < 2 && !sim_coll_by_hosts(rank->coll); i++) {
		void *buf = i ? call->out : call->in;

		rc = rank->ring ? ccl_ring_register(rank->ring, buf, bytes)
				: ccl_register(rank->comm, buf, bytes);
	}
	return rc;
}

int sim_coll_issue(struct sim_coll *c, const struct sim_work *work, uint64_t skew_ns)
{
	const uint64_t now = sim_now(c->conf.sim);
	const unsigned k = c->n_work;
	int rc = 0;

	if (k == SIM_MAX_WORK)
		return -EAGAIN;
	if (k == 0)
		c->started = now;
	for (unsigned r = 0; rc == 0 && r < c->conf.n_ranks; r++) {
		struct sim_rank *rank = &c->rank[r];

		memset(&rank->call[k], 0, sizeof(rank->call[k]));
		rank->call[k].at = now + (skew_ns ? sim_random(&c->rng) % skew_ns : 0);
		rc = prepare(rank, k, elements(work));
	}
	c->work[c->n_work++] = *work;
	for (unsigned r = 0; rc == 0 && r < c->conf.n_ranks; r++) {
		c->n_waiting++;
		sim_kick(c->conf.sim, sim_coll_host(c, r));
	}
	return rc;
}

bool sim_coll_done(const struct sim_coll *c, uint64_t *ns)
{
	if (ns)
		*ns = c->finished - c->started;
	return c->n_waiting == 0;
}

static bool all_done(void *coll)
{
	return sim_coll_done(coll, NULL);
}

int sim_coll_run(
	struct sim_coll *c, enum ccl_collective op, uint64_t bytes, uint64_t limit_ns, uint64_t *ns)
{
	const struct sim_work work = {.op = op, .bytes = bytes};
	int rc = sim_coll_issue(c, &work, 0);

	if (rc == 0)
		rc = sim_run(c->conf.sim, all_done, c, sim_now(c->conf.sim) + limit_ns);
	/* After an error the device may still write to the memory: it stays until the end. */
	if (rc == 0)
		sim_coll_done(c, ns);
	return rc;
}

/* ---- checking ---- */

static void free_call(struct sim_rank *rank, struct sim_call *call)
{
	for (unsigned i = 0; i < 2; i++) {
		void *buf = i ? call->out : call->in;

		if (buf && rank->ring)
			ccl_ring_deregister(rank->ring, buf);
		else if (buf && rank->comm)
			ccl_deregister(rank->comm, buf);
		free(buf);
	}
	memset(call, 0, sizeof(*call));
}

void sim_coll_let_go(struct sim_coll *c)
{
	for (unsigned r = 0; r < c->conf.n_ranks; r++) {
		for (unsigned k = 0; k < SIM_MAX_WORK; k++)
			free_call(&c->rank[r], &c->rank[r].call[k]);
		c->rank[r].n_issued = 0;
	}
	c->n_work = c->n_waiting = 0;
}

/* The sum of all contributions, once for all ranks. */
static uint32_t *sum_of(const struct sim_coll *c, unsigned k, uint64_t n)
{
	uint32_t *sum = calloc(n + 1, sizeof(*sum));

	for (unsigned r = 0; sum && r < c->conf.n_ranks; r++)
		for (uint64_t i = 0; i < n; i++)
			sum[i] += contribution(c, k, r, i);
	return sum;
}

/* Nobody leaves a barrier before the last has come. */
static bool barrier_is_right(const struct sim_coll *c, unsigned k, unsigned rank)
{
	for (unsigned r = 0; r < c->conf.n_ranks; r++)
		if (c->rank[r].call[k].at > c->rank[rank].call[k].done_at)
			return false;
	return true;
}

static bool gathered(const struct sim_coll *c, unsigned k, const int32_t *out, uint64_t block)
{
	for (uint64_t i = 0; i < block * c->conf.n_ranks; i++)
		if ((uint32_t)out[i] != contribution(c, k, (unsigned)(i / block), i % block))
			return false;
	return true;
}

/* Is a rank's result what it must be? */
static bool is_right(const struct sim_coll *c, unsigned k, unsigned rank, const uint32_t *sum)
{
	const struct sim_work *w = &c->work[k];
	const uint64_t n = elements(w), block = block_of(c, w);
	const int32_t *out = c->rank[rank].call[k].out;

	switch (w->op) {
	case CCL_BARRIER:
		return barrier_is_right(c, k, rank);
	case CCL_REDUCE_SCATTER:
		return memcmp(out, sum + rank * block, block * 4) == 0;
	case CCL_ALLGATHER:
		return gathered(c, k, out, block);
	case CCL_BROADCAST:
		return memcmp(out, c->rank[w->root].call[k].in, n * 4) == 0;
	case CCL_REDUCE:
		return rank != w->root || memcmp(out, sum, n * 4) == 0;
	default:
		return memcmp(out, sum, n * 4) == 0;
	}
}

int sim_coll_check(struct sim_coll *c)
{
	int rc = 0;

	for (unsigned k = 0; rc == 0 && k < c->n_work; k++) {
		uint32_t *sum = sum_of(c, k, elements(&c->work[k]));

		rc = sum ? 0 : -ENOMEM;
		for (unsigned r = 0; rc == 0 && r < c->conf.n_ranks; r++)
			if (!is_right(c, k, r, sum))
				rc = -EBADMSG;
		free(sum);
	}
	sim_coll_let_go(c);
	return rc;
}
