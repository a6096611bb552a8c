/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that NCCL gives back before CommLib has the collectives that it is for. */
#include <sched.h>

#include "tests/unit/nccl/job.h"

enum {
	COUNT = 3000,
	LEN = COUNT * (int)sizeof(int32_t),
	BLOCK = COUNT / N,
	BLOCK_LEN = BLOCK * (int)sizeof(int32_t),
	MANY = 20 /* windows of N steps each: more than CommLib has room for */
};

/* A window of all but the last bytes. */
static nccl_rc gather_into(struct rank *me, int32_t *recv, void *mem, void **request)
{
	static int32_t own[N][BLOCK];
	struct nccl_piece piece = {.mem = mem, .address = recv, .len = LEN - 8};

	return coll->allgather(
		me->comm, own[me->rank], 1, &piece, BLOCK_LEN, 0, LEN - 8, NULL, request);
}

/* Rank 0 gives back the memory of a collective that CommLib has no room for yet, or whose memory it
 * does not know: it must not be touched any more. */
static void gives_back_early(struct rank *me, bool known)
{
	static int32_t buf[N][2][COUNT];
	int32_t *recv = buf[me->rank][0], *last = buf[me->rank][1];
	void *request, *mem, *of_last, *over = NULL;
	nccl_rc rc = NCCL_OK;
	int done = 0;

	me->wrong += coll->reg(me->comm, recv, LEN, NCCL_MEMORY_HOST, &mem) != NCCL_OK;
	if (!known) /* regions that overlap */
		me->wrong += coll->reg(me->comm, last, LEN, NCCL_MEMORY_HOST, &over) != NCCL_OK;
	me->wrong += coll->reg(me->comm, last + 1, LEN - 4, NCCL_MEMORY_HOST, &of_last) != NCCL_OK;
	if (me->rank == 0) { /* nothing of it can be finished */
		for (int i = 1; known && i < MANY; i++)
			me->wrong += gather_into(me, recv, mem, &request) != NCCL_OK;
		me->wrong += gather_into(me, last + 1, of_last, &request) != NCCL_OK;
		me->wrong += coll->dereg(me->comm, of_last) != NCCL_OK;
		me->wrong += coll->test(request, &done, NULL) != NCCL_SYSTEM_ERROR;
	}
	pthread_barrier_wait(&me->job->all);
	if (me->rank != 0) {
		rc = gather_into(me, recv, mem, &request);
		while (!rc && !done) {
			rc = coll->test(request, &done, NULL);
			sched_yield();
		}
		me->wrong += rc != NCCL_REMOTE_ERROR;
		coll->dereg(me->comm, of_last);
	}
	if (over)
		coll->dereg(me->comm, over);
	coll->dereg(me->comm, mem);
	me->wrong += coll->close(me->comm) != NCCL_OK;
}

static void not_issued(struct rank *me)
{
	gives_back_early(me, true);
}

static void from_copies(struct rank *me)
{
	gives_back_early(me, false);
}

static void aborts(void (*work)(struct rank *me), unsigned n_copied)
{
	struct job j;

	prepare(&j, N, work);
	run(&j);
	all_right(&j);
	assert_true(warned("NCCL has given back memory of an unfinished collective"));
	assert_int_equal(copied(), n_copied);
	finish(&j);
}

static void of_later_ones(void **state)
{
	(void)state;
	aborts(not_issued, 0);
}

static void of_copies(void **state)
{
	(void)state;
	aborts(from_copies, N);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_later_ones),
		cmocka_unit_test(of_copies),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
