/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocking half: reads the clock, polls for a while, sleeps on the completion channel. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/mcast.h"
#include "lib/ccl/resume.h"
#include "lib/ccl/tree.h"

/* Polling goes on for this long after the last completion, with a yield each turn: on a crowded
 * machine that hands the core to the ranks and the switch that are waited for, and is faster than
 * any sleep. Longer waits are for ranks that compute; they sleep. A nap is short because a device
 * without a thread of its own makes progress only when it is polled. */
static const uint64_t SPIN_NS = 500000;
static const uint64_t WATCH_NS = 100000000; /* who waits, looks at the other processes this often */
enum { NAP_MS = 10 };
static const uint64_t NOT_QUEUED = UINT64_MAX;

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

enum { MAX_SOURCES = 3, MAX_CQS = MAX_SOURCES + CCL_MCAST_MAX_TREES };

/* Where completions come from: of a communicator with a lease the groups' and the ring's, and the
 * desk's answers. */
struct sources {
	unsigned n_cq;
	struct ibv_cq *cq[MAX_CQS];
	unsigned n_channel;
	struct ibv_comp_channel *channel[MAX_SOURCES];
	unsigned n_fd;
	struct pollfd fd[MAX_SOURCES];
};

static void add_source(struct sources *s, struct ibv_cq *cq, struct ibv_comp_channel *channel)
{
	s->cq[s->n_cq] = cq;
	s->n_cq++;
	s->channel[s->n_channel++] = channel;
	s->fd[s->n_fd++] = (struct pollfd){.fd = channel->fd, .events = POLLIN};
}

static struct sources sources_of(struct ccl_comm *c)
{
	struct sources s = {0};

	if (ccl_cq(c))
		add_source(&s, ccl_cq(c), ccl_channel(c));
	if (c->mcast)
		add_source(&s, ccl_mcast_cq(c->mcast, 0), ccl_mcast_channel(c->mcast));
	for (unsigned i = 1; c->mcast && ccl_mcast_cq(c->mcast, i); i++)
		s.cq[s.n_cq++] = ccl_mcast_cq(c->mcast, i); /* the same channel's */
	if (c->tree)
		add_source(&s, ccl_tree_cq(c->tree), ccl_tree_channel(c->tree));
	if (c->lease) {
		add_source(&s, ccl_ring_cq(c->lease_ring), ccl_ring_channel(c->lease_ring));
		s.fd[s.n_fd++] = (struct pollfd){.fd = ccl_lease_fd(c), .events = POLLIN};
	}
	return s;
}

static void drain_events(const struct sources *s)
{
	for (unsigned i = 0; i < s->n_channel; i++) {
		struct ibv_cq *cq;
		void *arg;

		while (ibv_get_cq_event(s->channel[i], &cq, &arg) == 0)
			ibv_ack_cq_events(cq, 1);
	}
}

/* Not longer than the caller has said, in whole milliseconds: who waits in slices has other things
 * to do between them. */
static int nap_ms(uint64_t left_ns)
{
	return left_ns < NAP_MS * 1000000ull ? (int)((left_ns + 999999) / 1000000) : NAP_MS;
}

/* Sleeps until a completion comes or NAP_MS, or what is left, have passed. What came before the
 * queue was armed is found by one more look. */
static int nap(struct ccl_comm *c, uint64_t left_ns)
{
	struct sources s = sources_of(c);
	int n;

	for (unsigned i = 0; i < s.n_cq; i++)
		if (ibv_req_notify_cq(s.cq[i], 0))
			return ccl_fail(c, -EIO, "the completion queue cannot be armed");
	n = ccl_progress(c, clock_ns());
	if (n != 0)
		return n;
	if (poll(s.fd, s.n_fd, nap_ms(left_ns)) > 0)
		drain_events(&s);
	return 0;
}

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

/* A process that has failed or died says so on the bootstrap connection long before a timeout. */
static int watch(struct ccl_comm *c, uint64_t now)
{
	char why[CCL_ERR_LEN];
	int rc;

	if (!c->setup || now - c->watched_ns < WATCH_NS)
		return 0;
	c->watched_ns = now;
	rc = ccl_setup_watch(c->setup, why);
	if (rc && rc != -ESTALE)
		ccl_resume_deny(c);
	return rc ? ccl_fail(c, -ECONNABORTED, "%s", why) : 0;
}

/* Nothing has happened: yields, or after a while looks round and sleeps. until: of the caller's. */
static int idle(struct ccl_comm *c, uint64_t now, uint64_t *since, uint64_t until)
{
	int rc;

	if (now - *since < SPIN_NS) {
		sched_yield();
		return 0;
	}
	rc = watch(c, now);
	if (rc == 0)
		rc = nap(c, until - now);
	*since = clock_ns();
	return rc < 0 ? rc : 0;
}

int ccl_drain(struct ccl_comm *c)
{
	uint64_t since = clock_ns();

	while (ccl_resume_pending(c)) {
		const uint64_t now = clock_ns();
		int n = ccl_progress(c, now);

		if (n > 0)
			since = now;
		if (n == 0)
			n = idle(c, now, &since, UINT64_MAX);
		if (n < 0)
			return n;
	}
	return 0;
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
		const uint64_t now = clock_ns();
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
			n = idle(c, now, &since, until);
		if (n < 0)
			return n;
	}
}

int ccl_attend(struct ccl_comm *c, struct ccl_req req, uint64_t timeout_ns)
{
	const uint64_t start = clock_ns();
	const int rc = go_on(c, req, start, end_of(start, timeout_ns));
	int seen;

	if (rc == 0)
		return 0;
	seen = c->failed ? c->failed : watch(c, clock_ns());
	return seen ? seen : rc;
}

int ccl_wait(struct ccl_comm *c, struct ccl_req req, uint64_t timeout_ns)
{
	const uint64_t start = clock_ns();

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
		rc = ccl_wait(c, (struct ccl_req){c->coll_done}, UINT64_MAX);
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
