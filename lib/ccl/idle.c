/* SPDX-License-Identifier: BSD-3-Clause */
/* How a blocking call waits: reads the clock, polls for a while, sleeps on the completion channel,
 * looks at the other processes now and then. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <time.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/mcast.h"
#include "lib/ccl/resume.h"
#include "lib/ccl/resync.h"
#include "lib/ccl/ring.h"
#include "lib/ccl/tree.h"

/* Polling goes on for this long after the last completion, with a yield each turn: on a crowded
 * machine that hands the core to the ranks and the switch that are waited for, and is faster than
 * any sleep. Longer waits are for ranks that compute; they sleep. A nap is short because a device
 * without a thread of its own makes progress only when it is polled. */
static const uint64_t SPIN_NS = 500000;
static const uint64_t WATCH_NS = 100000000; /* who waits, looks at the other processes this often */
enum { NAP_MS = 10 };

uint64_t ccl_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

enum { MAX_SOURCES = 4, MAX_CQS = MAX_SOURCES + CCL_MCAST_MAX_TREES };

/* Where completions come from: of a communicator with a lease or resync the groups' and the ring's,
 * and the desk's answers; of one of nodes, both rings'. */
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
	if (c->across)
		add_source(&s, ccl_ring_cq(c->across), ccl_ring_channel(c->across));
	if (c->mcast)
		add_source(&s, ccl_mcast_cq(c->mcast, 0), ccl_mcast_channel(c->mcast));
	for (unsigned i = 1; c->mcast && ccl_mcast_cq(c->mcast, i); i++)
		s.cq[s.n_cq++] = ccl_mcast_cq(c->mcast, i); /* the same channel's */
	if (c->tree)
		add_source(&s, ccl_tree_cq(c->tree), ccl_tree_channel(c->tree));
	if (c->meeting) {
		add_source(&s, ccl_ring_cq(c->meeting->ring), ccl_ring_channel(c->meeting->ring));
		s.fd[s.n_fd++] = (struct pollfd){.fd = ccl_meeting_fd(c), .events = POLLIN};
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

/* As long before something is due: the beginning of a turn, say, which is not to be slept through.
 */
static int nap_before_ms(uint64_t due_ns)
{
	return due_ns < NAP_MS * 1000000ull ? (int)(due_ns / 1000000) : NAP_MS;
}

/* Sleeps until a completion comes or NAP_MS, or what is left, have passed. What came before the
 * queue was armed is found by one more look. */
static int nap(struct ccl_comm *c, uint64_t left_ns)
{
	const uint64_t due = c->lease ? ccl_lease_due(c, ccl_clock_ns()) : UINT64_MAX;
	struct sources s = sources_of(c);
	const int ms = due < left_ns ? nap_before_ms(due) : nap_ms(left_ns);
	int n;

	if (due == 0)
		return ccl_progress(c, ccl_clock_ns());
	for (unsigned i = 0; i < s.n_cq; i++)
		if (ibv_req_notify_cq(s.cq[i], 0))
			return ccl_fail(c, -EIO, "the completion queue cannot be armed");
	n = ccl_progress(c, ccl_clock_ns());
	if (n != 0)
		return n;
	if (poll(s.fd, s.n_fd, ms) > 0)
		drain_events(&s);
	return 0;
}

int ccl_look_round(struct ccl_comm *c, uint64_t now)
{
	char why[CCL_ERR_LEN];
	struct ccl_turn turn;
	int rc;

	if (!c->setup || now - c->watched_ns < WATCH_NS)
		return 0;
	c->watched_ns = now;
	rc = ccl_setup_watch(c->setup, why);
	if (c->lease && ccl_setup_turn(c->setup, &turn))
		ccl_lease_set_turn(c, &turn);
	if (rc && rc != -ESTALE)
		ccl_resume_deny(c);
	return rc ? ccl_fail(c, -ECONNABORTED, "%s", why) : 0;
}

int ccl_idle(struct ccl_comm *c, uint64_t now, uint64_t *since, uint64_t until)
{
	int rc;

	if (now - *since < SPIN_NS) {
		sched_yield();
		return 0;
	}
	rc = ccl_look_round(c, now);
	if (rc == 0)
		rc = nap(c, until - now);
	*since = ccl_clock_ns();
	return rc < 0 ? rc : 0;
}

int ccl_drain(struct ccl_comm *c)
{
	uint64_t since = ccl_clock_ns();

	while (ccl_resume_pending(c)) {
		const uint64_t now = ccl_clock_ns();
		int n = ccl_progress(c, now);

		if (n > 0)
			since = now;
		if (n == 0)
			n = ccl_idle(c, now, &since, UINT64_MAX);
		if (n < 0)
			return n;
	}
	return 0;
}
