/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives in the network, from the call to the result: issued in the order of MPI's calls,
 * which is the same at all ranks; driven while somebody waits, else by a thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/mpi/im.h"

/* Between two looks at MPI, whose messages have to go on while a program waits here. First short
 * ones, for results are soon there; then those in which CommLib sleeps, and looks at the other
 * processes. */
static const uint64_t SLICE_NS = 100000, LONG_SLICE_NS = 2000000, SHORT_FOR_NS = 3000000;
/* The thread: how long it spins, how long it sleeps, how often it has CommLib look. */
static const uint64_t SPIN_NS = 200000, NAP_NS = 200000, WATCH_NS = 200000000;

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

/* What has failed may go on by a ring of the hosts: only a wait finds that out. */
static bool is_final(const struct im_comm *c, int rc)
{
	return rc >= 0 || c->lost || !ccl_error(c->ccl)[0];
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
	op->issued = op->done = true;
	return true;
}

/* Issues what there is room for, takes out what is done. */
static void turn(struct im_comm *c)
{
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

/* Waits for the oldest, or this one. Here a failed communicator is mended, or found to be lost. */
static void wait_a_while(struct im_comm *c, const struct im_op *op, uint64_t wait_ns)
{
	const int rc = ccl_wait(c->ccl, op->req, wait_ns);

	c->lost |= rc < 0 && ccl_error(c->ccl)[0];
	turn(c);
}

/* An error shows in the tests of the collectives. */
static int progress(struct im_comm *c)
{
	const int n = ccl_progress(c->ccl, clock_ns());

	turn(c);
	if (n < 0 && c->first)
		wait_a_while(c, c->first, 0);
	return n;
}

void im_advance(struct im_op *op, uint64_t wait_ns)
{
	for (struct im_comm *c = im.comms; c; c = c->next)
		if (c->first && (!op || c != op->on))
			progress(c);
	if (!op || op->done)
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

/* Dead processes are noticed when CommLib waits. */
static void look(uint64_t now)
{
	for (struct im_comm *c = im.comms; c; c = c->next) {
		if (!c->first || !c->first->issued || now - c->moved < WATCH_NS)
			continue;
		wait_a_while(c, c->first, SLICE_NS * 10);
		c->moved = now;
	}
}

/* Whether any has moved since `woken`, before which there was nothing to do. */
static bool turn_all(uint64_t woken, uint64_t now)
{
	bool moved = false;

	for (struct im_comm *c = im.comms; c; c = c->next) {
		const bool moves = c->first && progress(c) > 0;

		if (!c->first || moves || c->moved < woken)
			c->moved = now;
		moved |= moves;
	}
	return moved;
}

static bool any_unfinished(void)
{
	for (const struct im_comm *c = im.comms; c; c = c->next)
		if (c->first)
			return true;
	return false;
}

static void *drive(void *arg)
{
	uint64_t busy = clock_ns(), woken = busy;

	pthread_mutex_lock(&im.lock);
	while (!stop) {
		const uint64_t now = clock_ns();

		if (!any_unfinished()) {
			pthread_cond_wait(&more, &im.lock);
			busy = woken = clock_ns();
			continue;
		}
		if (turn_all(woken, now))
			busy = now;
		look(now);
		pthread_mutex_unlock(&im.lock);
		nanosleep(&(struct timespec){.tv_nsec = now - busy < SPIN_NS ? 1000 : (long)NAP_NS},
			NULL);
		pthread_mutex_lock(&im.lock);
	}
	pthread_mutex_unlock(&im.lock);
	return arg;
}

/* With im.lock. */
static int wake_thread(void)
{
	if (!running && pthread_create(&thread, NULL, drive, NULL))
		return -ENOMEM;
	running = true;
	pthread_cond_signal(&more);
	return 0;
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
	const int rc = PMPI_Grequest_start(query, release, cancel, op, &op->request);

	if (rc) {
		free(op->packed);
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
	wake_thread(); /* without it the program's waits have to do */
	pthread_mutex_unlock(&im.lock);
	return MPI_SUCCESS;
}
