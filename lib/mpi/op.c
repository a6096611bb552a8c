/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives in the network, from the call to the result: issued in the order of MPI's calls,
 * which is the same at all ranks; driven while somebody waits, else by a thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/mpi/im.h"

/* Between two looks at MPI, whose messages have to go on while a program waits here. First short
 * ones, for results are soon there; then those in which CommLib sleeps, and looks at the other
 * processes. */
static const uint64_t SLICE_NS = 100000, LONG_SLICE_NS = 2000000, SHORT_FOR_NS = 3000000;
/* The thread: how long it spins, how long it sleeps. */
static const uint64_t SPIN_NS = 200000, NAP_NS = 200000;
/* How often CommLib is to look at the other processes. */
static const uint64_t LOOK_NS = 100000000;

/* As long as CommLib has no number for it. */
static const uint64_t NOT_QUEUED = UINT64_MAX;

static pthread_t thread;
static bool running, stop;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void im_poke(void)
{
	int flag;

	PMPI_Iprobe(0, 0, im.self, &flag, MPI_STATUS_IGNORE);
}

/* ---- in the order of the calls ---- */

static void enqueue(struct im_op *op)
{
	*op->on->end = op;
	op->on->end = &op->next;
}

static int issue(struct im_op *o)
{
	struct ccl_comm *c = o->on->ccl;

	if (o->refused)
		return o->refused;
	switch (o->kind) {
	case CCL_ALLREDUCE:
		return ccl_iallreduce(c, o->send, o->recv, o->count, o->dtype, o->op, &o->req);
	case CCL_REDUCE:
		return ccl_ireduce(
			c, o->send, o->recv, o->count, o->dtype, o->op, o->root, &o->req);
	case CCL_BROADCAST:
		return ccl_ibroadcast(c, o->send, o->recv, o->count, o->dtype, o->root, &o->req);
	case CCL_REDUCE_SCATTER:
		return ccl_ireduce_scatter(c, o->send, o->recv, o->count, o->dtype, o->op, &o->req);
	case CCL_ALLGATHER:
		return ccl_iallgather(c, o->send, o->recv, o->count, o->dtype, &o->req);
	default:
		return ccl_ibarrier(c, &o->req);
	}
}

/* What has failed may go on by a ring of the hosts: that is found out by meet(). */
static bool is_final(const struct im_comm *c, int rc)
{
	return rc >= 0 || c->lost || !ccl_error(c->ccl)[0];
}

/* What CommLib has no kernel for no rank issues. Anything else the others have issued, and would
 * take this rank's next one for: they have to hear of it. */
static bool is_refused_here(const struct im_comm *c, int rc)
{
	return !c->lost && rc != -EOPNOTSUPP;
}

static void refuse(struct im_comm *c, int rc)
{
	char why[CCL_ERR_LEN];

	snprintf(why, sizeof(why), "a call that the other ranks make was refused at this one: %s",
		strerror(-rc));
	ccl_abort(c->ccl, why);
}

/* False: later. */
static bool try_issue(struct im_comm *c, struct im_op *op)
{
	op->req.seq = NOT_QUEUED;
	op->rc = issue(op);
	/* One that was queued in spite of an error has its place; its tests say what becomes of it.
	 */
	op->issued = op->req.seq != NOT_QUEUED;
	if (op->issued)
		return true;
	if (op->rc == -EAGAIN || !is_final(c, op->rc))
		return false;
	if (is_refused_here(c, op->rc)) {
		refuse(c, op->rc);
		return false;
	}
	op->issued = op->done = true;
	return true;
}

/* Issues what there is room for, takes out what is done. */
static void turn(struct im_comm *c)
{
	if (c->meeting)
		return;
	for (struct im_op *op = c->first; op; op = op->next)
		if (!op->issued && !try_issue(c, op))
			break;
	for (struct im_op **at = &c->first, *op; (op = *at);) {
		const int rc = op->issued && !op->done ? ccl_test(c->ccl, op->req) : 0;

		if (rc && is_final(c, rc)) {
			op->done = true;
			op->rc = rc < 0 ? rc : 0;
		}
		if (op->done) {
			*at = op->next;
			if (!*at)
				c->end = at;
		} else {
			at = &op->next;
		}
	}
}

/* ---- what has failed ---- */

/* With im.lock: what has come of it. */
static void met(struct im_comm *c)
{
	c->meeting = false;
	c->lost = ccl_error(c->ccl)[0] != '\0';
	c->mended = !c->lost;
	turn(c);
	pthread_cond_signal(&more);
}

/* A wait for anything meets the other ranks, or finds out what there is to be said of the failure.
 */
static void meet(const struct im_comm *c)
{
	ccl_wait(c->ccl, (struct ccl_req){NOT_QUEUED}, 0);
}

static void *meet_alone(void *arg)
{
	struct im_comm *c = arg;

	meet(c);
	pthread_mutex_lock(&im.lock);
	met(c);
	pthread_mutex_unlock(&im.lock);
	return NULL;
}

/* With im.lock, so others may wait for it: they do where there is no thread to be had. */
static void mend(struct im_comm *c)
{
	pthread_t id;

	c->meeting = true;
	if (pthread_create(&id, NULL, meet_alone, c) == 0) {
		pthread_detach(id);
		return;
	}
	meet(c);
	met(c);
}

static void notice_failure(struct im_comm *c)
{
	if (!c->meeting && !c->lost && ccl_error(c->ccl)[0])
		mend(c);
}

bool im_meets(const struct im_comm *c, uint64_t wait_ns)
{
	if (!c->meeting)
		return false;
	pthread_mutex_unlock(&im.lock);
	nanosleep(&(struct timespec){.tv_nsec = (long)wait_ns}, NULL);
	pthread_mutex_lock(&im.lock);
	return true;
}

/* ---- turns ---- */

/* Waits for the oldest, or this one. */
static void wait_a_while(struct im_comm *c, const struct im_op *op, uint64_t wait_ns)
{
	ccl_attend(c->ccl, op->req, wait_ns);
	turn(c);
	notice_failure(c);
}

/* On a ring there may be something to be done for others. */
static bool to_be_driven(const struct im_comm *c)
{
	return c->where == IM_IN && (c->first || c->mended);
}

/* How many steps what is unfinished has gone on. An error shows in the tests of the collectives. */
static int progress(struct im_comm *c, uint64_t now)
{
	int n = 0;

	if (c->where != IM_IN || c->meeting)
		return 0;
	if (to_be_driven(c)) {
		n = ccl_progress(c->ccl, now);
		turn(c);
	}
	if ((c->first || c->resumes) && now - c->looked >= LOOK_NS) {
		ccl_attend(c->ccl, (struct ccl_req){NOT_QUEUED}, 0);
		c->looked = now;
	}
	notice_failure(c);
	return n;
}

void im_advance(struct im_op *op, uint64_t wait_ns)
{
	const uint64_t now = clock_ns();

	for (struct im_comm *c = im.comms; c; c = c->next)
		if (!op || c != op->on)
			progress(c, now);
	if (!op || op->done || im_meets(op->on, wait_ns))
		return;
	turn(op->on);
	/* The queue may be so full that this one is not yet issued: then the oldest is waited for.
	 */
	if (!op->done)
		wait_a_while(op->on, op->issued ? op : op->on->first, wait_ns);
}

/* ---- results ---- */

int im_finish(struct im_op *op)
{
	int code = op->rc ? im_error(op->on, op->rc) : MPI_SUCCESS, at = 0;

	if (!op->rc && op->move_to)
		memmove(op->move_to, op->move_from, op->move_len);
	if (op->unpack != MPI_DATATYPE_NULL) {
		const uint64_t bytes =
			op->count * (op->kind == CCL_ALLGATHER ? (unsigned)op->on->size : 1);

		if (!op->rc)
			code = PMPI_Unpack(op->packed, (int)bytes, &at, op->unpack_to,
				op->unpack_count, op->unpack, op->on->comm);
		PMPI_Type_free(&op->unpack);
	}
	free(op->packed);
	op->packed = NULL;
	return code;
}

int im_run(struct im_op *op)
{
	const uint64_t start = clock_ns();

	pthread_mutex_lock(&im.lock);
	enqueue(op);
	for (;;) {
		im_advance(op, clock_ns() - start < SHORT_FOR_NS ? SLICE_NS : LONG_SLICE_NS);
		if (op->done)
			break;
		pthread_mutex_unlock(&im.lock);
		im_poke();
		pthread_mutex_lock(&im.lock);
	}
	pthread_mutex_unlock(&im.lock);
	return im_finish(op);
}

/* ---- without waiting ---- */

static int query(void *op, MPI_Status *status)
{
	PMPI_Status_set_elements(status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = MPI_UNDEFINED;
	status->MPI_TAG = MPI_UNDEFINED;
	return ((struct im_op *)op)->code;
}

static int release(void *op)
{
	free(op);
	return MPI_SUCCESS;
}

/* MPI allows none of a collective. */
static int cancel(void *op, int complete)
{
	(void)op;
	(void)complete;
	return MPI_SUCCESS;
}

static bool turn_all(uint64_t now)
{
	bool moved = false;

	for (struct im_comm *c = im.comms; c; c = c->next)
		moved |= progress(c, now) > 0;
	return moved;
}

static bool any_to_be_driven(void)
{
	for (const struct im_comm *c = im.comms; c; c = c->next)
		if (to_be_driven(c))
			return true;
	return false;
}

static bool any_resumes(void)
{
	for (const struct im_comm *c = im.comms; c; c = c->next)
		if (c->where == IM_IN && c->resumes)
			return true;
	return false;
}

/* Until there is something to drive, or to look at. */
static void rest(void)
{
	const uint64_t until = clock_ns() + LOOK_NS;

	if (any_resumes())
		pthread_cond_clockwait(&more, &im.lock, CLOCK_MONOTONIC,
			&(struct timespec){
				(time_t)(until / 1000000000u), (long)(until % 1000000000u)});
	else
		pthread_cond_wait(&more, &im.lock);
}

static void *drive(void *arg)
{
	uint64_t busy = clock_ns();

	pthread_mutex_lock(&im.lock);
	while (!stop) {
		const uint64_t now = clock_ns();

		if (turn_all(now))
			busy = now;
		if (!any_to_be_driven()) {
			rest();
			busy = clock_ns();
			continue;
		}
		pthread_mutex_unlock(&im.lock);
		nanosleep(&(struct timespec){.tv_nsec = now - busy < SPIN_NS ? 1000 : (long)NAP_NS},
			NULL);
		pthread_mutex_lock(&im.lock);
	}
	pthread_mutex_unlock(&im.lock);
	return arg;
}

/* With im.lock. */
static void wake_thread(void)
{
	if (!running)
		running = pthread_create(&thread, NULL, drive, NULL) == 0;
	pthread_cond_signal(&more);
}

void im_start_thread(void)
{
	pthread_mutex_lock(&im.lock);
	wake_thread();
	pthread_mutex_unlock(&im.lock);
}

void im_stop_thread(void)
{
	pthread_mutex_lock(&im.lock);
	stop = true;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&im.lock);
	if (running)
		pthread_join(thread, NULL);
	running = false;
}

int im_start(struct im_op *op, MPI_Request *request)
{
	int rc = PMPI_Grequest_start(query, release, cancel, op, &op->request);

	if (rc) {
		op->refused = -ENOMEM;
		rc = im_run(op);
		free(op);
		return rc;
	}
	*request = op->request;
	pthread_mutex_lock(&im.lock);
	enqueue(op);
	op->next_async = im.async;
	im.async = op;
	im.n_async++;
	turn(op->on);
	wake_thread();
	pthread_mutex_unlock(&im.lock);
	return MPI_SUCCESS;
}
