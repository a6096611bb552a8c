/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: those of collectives in the network are MPI's generalized ones, which this completes
 * when the program looks at them, by its own thread. */
#include "lib/mpi/im.h"

enum { TURN_NS = 100000 };

/* With im.lock. */
static struct im_op **find(MPI_Request request)
{
	for (struct im_op **at = &im.async; *at; at = &(*at)->next_async)
		if ((*at)->request == request)
			return at;
	return NULL;
}

static void complete_one(struct im_op *op)
{
	op->code = im_finish(op);
	PMPI_Grequest_complete(op->request);
}

/* Completes what is done of these. How many are not. */
static int complete(int n, const MPI_Request *request)
{
	int left = 0;

	if (!__atomic_load_n(&im.n_async, __ATOMIC_ACQUIRE))
		return 0;
	for (int i = 0; i < n; i++) {
		struct im_op **at, *op = NULL;

		pthread_mutex_lock(&im.lock);
		at = request[i] != MPI_REQUEST_NULL ? find(request[i]) : NULL;
		if (at && (*at)->done) {
			op = *at;
			*at = op->next_async;
			im.n_async--;
		} else if (at) {
			left++;
		}
		pthread_mutex_unlock(&im.lock);
		if (op)
			complete_one(op);
	}
	return left;
}

static struct im_op *take_done(const struct im_comm *c)
{
	struct im_op *op = NULL;

	pthread_mutex_lock(&im.lock);
	for (struct im_op **at = &im.async; *at && !op; at = &(*at)->next_async)
		if ((*at)->on == c && (*at)->done) {
			op = *at;
			*at = op->next_async;
			im.n_async--;
			break;
		}
	pthread_mutex_unlock(&im.lock);
	return op;
}

void im_settle(struct im_comm *c)
{
	bool left = true;

	while (left) {
		pthread_mutex_lock(&im.lock);
		if (c->first)
			im_advance(c->first, TURN_NS);
		else
			im_meets(c, TURN_NS);
		left = c->first || c->meeting;
		pthread_mutex_unlock(&im.lock);
		im_poke();
	}
	for (struct im_op *op; (op = take_done(c));)
		complete_one(op);
}

static void advance(void)
{
	if (!__atomic_load_n(&im.n_async, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&im.lock);
	im_advance(NULL, 0);
	pthread_mutex_unlock(&im.lock);
}

/* Waits for one of these, if there is one left: in one more turn. */
static void turn(int n, const MPI_Request *request)
{
	struct im_op *op = NULL;

	pthread_mutex_lock(&im.lock);
	for (int i = 0; i < n && !op; i++) {
		struct im_op **at = request[i] != MPI_REQUEST_NULL ? find(request[i]) : NULL;

		op = at && !(*at)->done ? *at : NULL;
	}
	if (op)
		im_advance(op, TURN_NS);
	pthread_mutex_unlock(&im.lock);
	im_poke();
}

/* All of ours. MPI's messages go on meanwhile; then what is not ours may be waited for. */
static void complete_all(int n, const MPI_Request *request)
{
	while (complete(n, request))
		turn(n, request);
}

static void try(int n, const MPI_Request *request)
{
	advance();
	complete(n, request);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	complete_all(1, request);
	return PMPI_Wait(request, status);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	complete_all(count, requests);
	return PMPI_Waitall(count, requests, statuses);
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	while (complete(count, requests)) {
		int flag = 0;
		const int rc = PMPI_Testany(count, requests, index, &flag, status);

		if (rc || flag)
			return rc;
		turn(count, requests);
	}
	return PMPI_Waitany(count, requests, index, status);
}

int MPI_Waitsome(
	int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
	while (complete(incount, requests)) {
		const int rc = PMPI_Testsome(incount, requests, outcount, indices, statuses);

		if (rc || *outcount)
			return rc;
		turn(incount, requests);
	}
	return PMPI_Waitsome(incount, requests, outcount, indices, statuses);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	try(1, request);
	return PMPI_Test(request, flag, status);
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	try(count, requests);
	return PMPI_Testall(count, requests, flag, statuses);
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	try(count, requests);
	return PMPI_Testany(count, requests, index, flag, status);
}

int MPI_Testsome(
	int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
	try(incount, requests);
	return PMPI_Testsome(incount, requests, outcount, indices, statuses);
}

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	try(1, &request);
	return PMPI_Request_get_status(request, flag, status);
}
