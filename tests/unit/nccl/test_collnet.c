/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL's collective network as NCCL calls it. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/nccl/job.h"

enum { COUNT = 3000, ROUNDS = 3, LEN = COUNT * (int)sizeof(int32_t) };

/* ---- what it says of itself ---- */

static void nothing(struct rank *me)
{
	me->wrong += coll->close(me->comm) != NCCL_OK;
}

static void interface(void **state)
{
	struct job j;
	int n = 0, n_net = 0;

	(void)state;
	prepare(&j, N, nothing);
	assert_string_equal(net->name, "Incline");
	assert_string_equal(coll->name, "Incline");
	assert_int_equal(coll->devices(&n), NCCL_OK);
	assert_int_equal(net->devices(&n_net), NCCL_OK);
	assert_int_equal(n, N);
	assert_int_equal(n_net, N);
	for (int dev = 0; dev < n; dev++) {
		struct nccl_properties p, of_net;
		char name[16];

		snprintf(name, sizeof(name), "fake%d", dev);
		assert_int_equal(coll->properties(dev, &p), NCCL_OK);
		assert_int_equal(net->properties(dev, &of_net), NCCL_OK);
		assert_memory_equal(&p, &of_net, sizeof(p)); /* NCCL takes them for one */
		assert_string_equal(p.name, name);
		assert_null(p.pci_path);
		assert_int_equal(p.memory, NCCL_MEMORY_HOST);
		assert_int_equal(p.max_receives, 1);
		assert_int_equal(p.port, 1);
		assert_int_equal(p.device_type, 0);
		assert_true(p.speed > 0);
	}
	assert_int_equal(coll->properties(n, &(struct nccl_properties){0}), NCCL_INTERNAL_ERROR);
	assert_true(warned("device 4: there are 4"));
	run(&j);
	all_right(&j);
	finish(&j);
}

/* NCCL then uses the network without collectives in it. */
static void without_a_group(void **state)
{
	(void)state;
	unsetenv("INCLINE_GROUP");
	assert_int_equal(coll->init(NULL), NCCL_INVALID_USAGE);
}

/* ---- AllReduce ---- */

static void fill(int32_t *v, unsigned rank, int salt)
{
	for (int i = 0; i < COUNT; i++)
		v[i] = i + salt + (int)rank;
}

/* Sum over ranks 0 .. n-1. */
static unsigned wrong(const int32_t *v, int first, int count, unsigned n, int salt)
{
	unsigned bad = 0;

	for (int i = 0; i < count; i++)
		bad += v[i] != (int)n * (first + i + salt) + (int)(n * (n - 1) / 2);
	return bad;
}

/* As many at a time as there is room for: NCCL tries again when there is none. */
static void many(struct rank *me)
{
	enum { MANY = 150, EACH = 700 };
	const unsigned n = me->job->n;
	int32_t *buf = calloc(2 * MANY * EACH, sizeof(*buf)), *recv = buf + MANY * EACH;
	void *send_mem, *recv_mem, *request[MANY];
	unsigned issued = 0, done = 0, full = 0;

	/* NCCL has both halves in one buffer, which it registers for either side. */
	me->wrong += coll->reg(me->comm, buf, 2 * MANY * EACH * sizeof(*buf), NCCL_MEMORY_HOST,
			     &send_mem) != NCCL_OK;
	me->wrong += coll->reg(me->comm, buf, 2 * MANY * EACH * sizeof(*buf), NCCL_MEMORY_HOST,
			     &recv_mem) != NCCL_OK;
	for (int i = 0; i < MANY * EACH; i++)
		buf[i] = i + (int)me->rank;
	while (done < MANY) {
		int over = 0, len = 0;

		while (issued < MANY) {
			const nccl_rc rc = coll->allreduce(me->comm, buf + issued * EACH,
				recv + issued * EACH, EACH, NCCL_INT32, NCCL_SUM, send_mem,
				recv_mem, &request[issued]);

			me->wrong += rc != NCCL_OK;
			if (rc || !request[issued])
				break;
			issued++;
		}
		full += issued < MANY;
		if (coll->test(request[done], &over, &len)) {
			me->wrong++;
			break;
		}
		me->wrong += over && len != EACH * (int)sizeof(*buf);
		done += (unsigned)over;
	}
	me->wrong += full == 0; /* or the test tries nothing */
	me->wrong += wrong(recv, 0, MANY * EACH, n, 0);
	coll->dereg(me->comm, send_mem);
	coll->dereg(me->comm, recv_mem);
	me->wrong += coll->close(me->comm) != NCCL_OK;
	free(buf);
}

struct registrar {
	struct rank *me;
	atomic_bool stop;
	unsigned times, wrong;
};

/* NCCL's other thread: registers what programs give it, while the first moves data. */
static void *register_others(void *arg)
{
	struct registrar *r = arg;
	static char memory[N][4096];

	do {
		void *mem;

		r->wrong += coll->reg(r->me->comm, memory[r->me->rank], sizeof(memory[0]),
				    NCCL_MEMORY_HOST, &mem) != NCCL_OK;
		r->wrong += coll->dereg(r->me->comm, mem) != NCCL_OK;
		r->times++;
	} while (!r->stop);
	return NULL;
}

static void beside_another(struct rank *me)
{
	struct registrar r = {.me = me};
	int32_t buf[COUNT];
	void *request;
	pthread_t id;

	me->wrong += pthread_create(&id, NULL, register_others, &r) != 0;
	for (int round = 0; round < 40; round++) {
		fill(buf, me->rank, round);
		me->wrong += coll->allreduce(me->comm, buf, buf, COUNT, NCCL_INT32, NCCL_SUM, NULL,
				     NULL, &request) != NCCL_OK;
		me->wrong += complete(request) != LEN;
		me->wrong += wrong(buf, 0, COUNT, N, round);
	}
	r.stop = true;
	pthread_join(id, NULL);
	me->wrong += r.wrong + !r.times;
	me->wrong += coll->close(me->comm) != NCCL_OK;
}

static void two_threads(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, N, beside_another);
	run(&j);
	all_right(&j);
	assert_int_equal(copied(), 0); /* what was given back is not known any more */
	finish(&j);
}

static void allreduce(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, N, many);
	run(&j);
	all_right(&j);
	assert_int_equal(copied(), 0); /* one registration for both sides */
	assert_true(j.sw.creates > 0);
	assert_int_equal(j.sw.creates, j.sw.deletes);
	finish(&j);
}

/* What was not asked for before (supports), memory of a GPU: refused, and nothing else. */
static void refused_calls(struct rank *me)
{
	int32_t buf[COUNT];
	void *request = buf, *mem = buf;

	fill(buf, me->rank, 0);
	me->wrong += coll->allreduce(me->comm, buf, buf, COUNT, 10, NCCL_SUM, NULL, NULL,
			     &request) != NCCL_INTERNAL_ERROR;
	me->wrong += request != NULL;
	me->wrong += coll->allreduce(me->comm, buf, buf, COUNT, NCCL_INT8, NCCL_PROD, NULL, NULL,
			     &request) != NCCL_INTERNAL_ERROR;
	me->wrong += coll->reg(me->comm, buf, sizeof(buf), NCCL_MEMORY_CUDA, &mem) !=
		     NCCL_INTERNAL_ERROR;
	me->wrong += mem != NULL;
	me->wrong += coll->flush(me->comm, buf, LEN, NULL, &request) != NCCL_OK || request;
	me->wrong += coll->allreduce(me->comm, buf, buf, COUNT, NCCL_INT32, NCCL_SUM, NULL, NULL,
			     &request) != NCCL_OK;
	me->wrong += complete(request) != LEN;
	me->wrong += wrong(buf, 0, COUNT, N, 0);
	me->wrong += coll->close(me->comm) != NCCL_OK;
}

static void refusals(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, N, refused_calls);
	run(&j);
	all_right(&j);
	assert_true(warned("type 10 with operation 0: it was said not to be supported"));
	assert_true(warned("memory of kind 2"));
	finish(&j);
}

/* ---- windows of AllGather and ReduceScatter ---- */

enum { BLOCK = COUNT / N, BLOCK_LEN = BLOCK * (int)sizeof(int32_t) };

static const struct window {
	int from, count; /* elements */
} windows[] = {
	{0, COUNT},             /* all */
	{0, BLOCK},             /* one block */
	{BLOCK - 7, 2},         /* inside of one */
	{BLOCK / 2, COUNT / 2}, /* two, and halves of two */
	{COUNT - 1, 1},
	{5, 0},
};

static int overlap(const struct window *w, int rank, int *from)
{
	const int a = rank * BLOCK > w->from ? rank * BLOCK : w->from;
	const int end = w->from + w->count, mine = (rank + 1) * BLOCK;

	*from = a;
	return (end < mine ? end : mine) - a > 0 ? (end < mine ? end : mine) - a : 0;
}

static void gather(struct rank *me, const struct window *w)
{
	int32_t own[BLOCK], all[COUNT + 1] = {0};
	struct nccl_piece piece = {.address = all, .len = (uint32_t)w->count * 4};
	void *request;
	int from;

	for (int i = 0; i < BLOCK; i++)
		own[i] = (int)me->rank * BLOCK + i + 1;
	overlap(w, (int)me->rank, &from);
	me->wrong += coll->allgather(me->comm, own + from % BLOCK, 1, &piece, BLOCK_LEN,
			     (size_t)w->from * 4, (size_t)w->count * 4, NULL, &request) != NCCL_OK;
	me->wrong += complete(request) != w->count * 4;
	for (int i = 0; i < w->count; i++)
		me->wrong += all[i] != w->from + i + 1;
	me->wrong += all[w->count] != 0;
}

static void scatter(struct rank *me, const struct window *w)
{
	int32_t all[COUNT], own[BLOCK + 1] = {0};
	struct nccl_piece piece = {.address = all + w->from, .len = (uint32_t)w->count * 4};
	void *request;
	int from, count = overlap(w, (int)me->rank, &from);

	fill(all, me->rank, 0);
	me->wrong += coll->reduce_scatter(me->comm, 1, &piece, own, BLOCK_LEN, (size_t)w->from * 4,
			     (size_t)w->count * 4, NCCL_INT32, NCCL_SUM, NULL, &request) != NCCL_OK;
	me->wrong += complete(request) != w->count * 4;
	me->wrong += wrong(own, from, count, N, 0);
	me->wrong += own[count] != 0;
}

static void each_window(struct rank *me)
{
	struct nccl_piece none = {0};
	void *request;

	for (unsigned i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		gather(me, &windows[i]);
		scatter(me, &windows[i]);
	}
	me->wrong += coll->allgather(me->comm, NULL, 1, &none, BLOCK_LEN, BLOCK_LEN * N, 4, NULL,
			     &request) != NCCL_INTERNAL_ERROR;
	me->wrong += coll->close(me->comm) != NCCL_OK;
}

static void window(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, N, each_window);
	run(&j);
	all_right(&j);
	finish(&j);
}

/* ---- communicators ---- */

static void which_rank(void **state)
{
	char handle[NCCL_HANDLE_LEN];
	void *listener = handle;
	struct job j;

	(void)state;
	prepare(&j, N, nothing);
	setenv("INCLINE_RANK", "two", 1);
	assert_int_equal(coll->listen(0, handle, &listener), NCCL_INVALID_USAGE);
	assert_null(listener);
	assert_true(warned("INCLINE_RANK: \"two\" is not a number"));
	unsetenv("INCLINE_RANK");
	setenv("INCLINE_GROUP", "/nowhere.json", 1);
	assert_int_equal(coll->listen(0, handle, &listener), NCCL_INVALID_USAGE);
	assert_true(warned("fake0: "));
	assert_true(warned("/nowhere.json"));
	setenv("INCLINE_GROUP", j.path, 1);
	setenv("INCLINE_NCCL_HOST", "no such host", 1);
	assert_int_equal(coll->listen(0, handle, &listener), NCCL_SYSTEM_ERROR);
	assert_true(warned("INCLINE_NCCL_HOST: no such host"));
	setenv("INCLINE_NCCL_HOST", "127.0.0.1", 1);
	run(&j);
	all_right(&j);
	finish(&j);
}

/* Three of the four, in another order than the file has them. */
static void some_ranks(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, 3, many);
	for (unsigned i = 0; i < 3; i++)
		j.order[i] = 2 - i;
	run(&j);
	all_right(&j);
	finish(&j);
}

static int next_fd(void)
{
	const int fd = dup(0);

	close(fd);
	return fd;
}

/* Nothing is left of the listener: NCCL closes none of a connect that has failed. */
static void foreign_handle(void **state)
{
	char handle[NCCL_HANDLE_LEN] = "something else", own[NCCL_HANDLE_LEN];
	void *handles[2] = {own, handle}, *comm = handle, *listener;
	const int fd = next_fd();
	struct job j;

	(void)state;
	prepare(&j, N, nothing);
	assert_int_equal(coll->listen(0, own, &listener), NCCL_OK);
	assert_int_not_equal(next_fd(), fd);
	assert_int_equal(coll->connect(handles, 2, 0, listener, &comm), NCCL_INVALID_USAGE);
	assert_null(comm);
	assert_int_equal(next_fd(), fd);
	assert_int_equal(coll->connect(handles, 2, 0, NULL, &comm), NCCL_INVALID_USAGE);
	assert_true(warned("a handle that is not this plug-in's"));
	run(&j);
	all_right(&j);
	finish(&j);
}

/* NCCL goes without. */
static void no_room_on_a_switch(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, N, nothing);
	j.sw.fail_method = "group.create";
	j.sw.fail_errno = 28; /* ENOSPC */
	run(&j);
	for (unsigned i = 0; i < N; i++) {
		assert_int_not_equal(j.rank[i].connected, NCCL_OK);
		assert_null(j.rank[i].comm);
	}
	assert_true(warned("is not in the network: "));
	finish(&j);
}

/* ---- failures ---- */

/* A rank ends with collectives unfinished; what the others wait for ends with an error. */
static void ends(struct rank *me)
{
	static int32_t buf[N][COUNT];
	void *request, *mem;
	nccl_rc rc;
	int done = 0;

	fill(buf[me->rank], me->rank, 0);
	me->wrong += coll->reg(me->comm, buf[me->rank], sizeof(buf[0]), NCCL_MEMORY_HOST, &mem) !=
		     NCCL_OK;
	if (me->rank != 3) {
		me->wrong += coll->allreduce(me->comm, buf[me->rank], buf[me->rank], COUNT,
				     NCCL_INT32, NCCL_SUM, mem, mem, &request) != NCCL_OK;
		while ((rc = coll->test(request, &done, NULL)) == NCCL_OK && !done)
			sched_yield();
		me->wrong += rc != NCCL_REMOTE_ERROR;
		me->wrong += coll->test(request, &done, NULL) != NCCL_REMOTE_ERROR;
		me->wrong += coll->allreduce(me->comm, buf[me->rank], buf[me->rank], COUNT,
				     NCCL_INT32, NCCL_SUM, mem, mem, &request) != NCCL_REMOTE_ERROR;
	} else {
		me->wrong += coll->allreduce(me->comm, buf[0] + 1, buf[0] + 2, COUNT - 2,
				     NCCL_INT32, NCCL_SUM, mem, mem, &request) == NCCL_OK;
	}
	coll->dereg(me->comm, mem);
	me->wrong += coll->close(me->comm) != NCCL_OK;
}

static void failure(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, N, ends);
	run(&j);
	all_right(&j);
	assert_true(warned("was refused at this one"));
	assert_true(warned("rank 0 of 4: "));
	finish(&j);
}

/* NCCL aborts: closes what is unfinished, at one rank. mem: of the buffer. */
static void leave(struct rank *me, int32_t *buf, void *mem)
{
	void *request;
	nccl_rc rc = NCCL_OK;
	int done = 0;

	if (me->rank != 2)
		me->wrong += coll->allreduce(me->comm, buf, buf, COUNT, NCCL_INT32, NCCL_SUM, mem,
				     mem, &request) != NCCL_OK;
	pthread_barrier_wait(&me->job->all);
	while (me->rank == 0 && !rc && !done) {
		rc = coll->test(request, &done, NULL);
		sched_yield();
	}
	me->wrong += me->rank == 0 && rc != NCCL_REMOTE_ERROR;
	me->wrong += coll->dereg(me->comm, mem) != NCCL_OK;
	me->wrong += coll->close(me->comm) != NCCL_OK;
}

static void aborts(struct rank *me)
{
	static int32_t buf[N][COUNT];

	leave(me, buf[me->rank], NULL);
}

/* It first gives back memory that an unfinished collective uses. */
static void aborts_with_memory(struct rank *me)
{
	static int32_t buf[N][COUNT];
	void *mem;

	me->wrong += coll->reg(me->comm, buf[me->rank], sizeof(buf[0]), NCCL_MEMORY_HOST, &mem) !=
		     NCCL_OK;
	leave(me, buf[me->rank], mem);
}

static void abort_at_one(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, N, aborts);
	run(&j);
	all_right(&j);
	finish(&j);
	prepare(&j, N, aborts_with_memory);
	run(&j);
	all_right(&j);
	assert_true(warned("rank 1 of 4: "));
	assert_true(warned("NCCL has given back memory of an unfinished collective"));
	assert_false(has_warned("nothing came for"));
	finish(&j);
}

/* Memory that no collective uses is given back while others are under way, which then go on. */
static void gives_back(struct rank *me)
{
	static int32_t buf[N][2][COUNT];
	int32_t *own = buf[me->rank][0];
	void *request, *mem, *other;
	int done = 0;

	me->wrong += coll->reg(me->comm, own, LEN, NCCL_MEMORY_HOST, &mem) != NCCL_OK;
	me->wrong += coll->reg(me->comm, own + COUNT, LEN, NCCL_MEMORY_HOST, &other) != NCCL_OK;
	fill(own, me->rank, 0);
	if (me->rank == 2) /* the others cannot have finished */
		pthread_barrier_wait(&me->job->all);
	me->wrong += coll->allreduce(me->comm, own, own, COUNT, NCCL_INT32, NCCL_SUM, mem, mem,
			     &request) != NCCL_OK;
	me->wrong += coll->dereg(me->comm, other) != NCCL_OK;
	if (me->rank != 2) {
		me->wrong += coll->test(request, &done, NULL) != NCCL_OK || done;
		pthread_barrier_wait(&me->job->all);
	}
	me->wrong += complete(request) != LEN;
	me->wrong += wrong(own, 0, COUNT, N, 0);
	me->wrong += coll->dereg(me->comm, mem) != NCCL_OK;
	me->wrong += coll->close(me->comm) != NCCL_OK;
}

static void other_memory(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, N, gives_back);
	run(&j);
	all_right(&j);
	finish(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interface),
		cmocka_unit_test(without_a_group),
		cmocka_unit_test(allreduce),
		cmocka_unit_test(two_threads),
		cmocka_unit_test(refusals),
		cmocka_unit_test(window),
		cmocka_unit_test(which_rank),
		cmocka_unit_test(some_ranks),
		cmocka_unit_test(foreign_handle),
		cmocka_unit_test(no_room_on_a_switch),
		cmocka_unit_test(failure),
		cmocka_unit_test(abort_at_one),
		cmocka_unit_test(other_memory),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
