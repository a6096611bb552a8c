/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program that knows nothing of Incline: random collectives, blocking and not, over all
 * communicators, types and operations, between messages; every result compared with what this
 * program computes by itself. Prints how many calls there were of those six that libincline_mpi.so
 * has, and how many of them docs/mpi.md says run in the network.
 *
 *	mpi_calls SEED ROUNDS
 *	mpi_calls SEED ROUNDS calm     one call after the other, of those for the network
 *	mpi_calls fail          sums until an error is returned, and says which
 *	mpi_calls told          sums, waiting and not, until rank 0 is told a line */
#include <mpi.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COUNT = 3000, BATCH = 80, N_COMMS = 4, BIG = 1 << 20 };

static uint64_t state; /* the same at all ranks */
static unsigned long wrong, calls, in_network;
static int world_rank, world_size;

struct comm {
	MPI_Comm comm;
	int rank, size;
};
static struct comm comms[N_COMMS];

static unsigned pick(unsigned n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % n;
}

/* ---- types: values are small integers, so that floats are exact, too ---- */

#define TYPES(X)                                         \
	X(MPI_FLOAT, float, 1)                           \
	X(MPI_DOUBLE, double, 1)                         \
	X(MPI_INT, int, 1)                               \
	X(MPI_LONG, long, 1)                             \
	X(MPI_UNSIGNED, unsigned, 1)                     \
	X(MPI_UNSIGNED_LONG_LONG, unsigned long long, 1) \
	X(MPI_INT8_T, int8_t, 1)                         \
	X(MPI_UNSIGNED_CHAR, unsigned char, 1)           \
	X(MPI_INT64_T, int64_t, 1)                       \
	X(MPI_SHORT, short, 0)                           \
	X(MPI_LONG_DOUBLE, long double, 0)

struct type {
	MPI_Datatype mpi;
	size_t size;
	int offered;
	void (*put)(void *at, long v);
	long (*get)(const void *at);
};

#define X(name, ctype, in)                       \
	static void put_##name(void *at, long v) \
	{                                        \
		*(ctype *)at = (ctype)v;         \
	}                                        \
	static long get_##name(const void *at)   \
	{                                        \
		return (long)*(const ctype *)at; \
	}
TYPES(X)
#undef X

static struct type types[16];
static unsigned n_types;

static void make_types(void)
{
#define X(name, ctype, in) \
	types[n_types++] = (struct type){name, sizeof(ctype), in, put_##name, get_##name};
	TYPES(X)
#undef X
}

/* ---- operations ---- */

static void user_sum(void *in, void *inout, int *n, MPI_Datatype *type)
{
	for (unsigned t = 0; t < n_types; t++)
		for (int i = 0; types[t].mpi == *type && i < *n; i++) {
			char *a = (char *)inout + (size_t)i * types[t].size;

			types[t].put(a, types[t].get(a) + types[t].get((char *)in +
								       (size_t)i * types[t].size));
		}
}

enum { SUM, MIN, MAX, PROD, USER, N_OPS };
static MPI_Op ops[N_OPS];

static long fold(int op, long a, long b)
{
	switch (op) {
	case MIN:
		return a < b ? a : b;
	case MAX:
		return a > b ? a : b;
	case PROD:
		return a * b;
	default:
		return a + b;
	}
}

/* ---- a call ---- */

enum { ALLREDUCE, REDUCE, BCAST, BARRIER, REDUCE_SCATTER, ALLGATHER, N_KINDS };

struct call {
	const struct comm *c;
	const struct type *t;
	int kind, op, count, root, in_place, gaps, by_mpi;
	unsigned salt;
	char *send, *recv;
	MPI_Request request;
	MPI_Datatype vector;
};

/* What a rank contributes: 1 to 3, a product of four is at most 81 and fits into a byte. */
static long given(const struct call *call, int rank, int i)
{
	uint32_t h = (uint32_t)i * 2654435761u + call->salt * 40503u + (uint32_t)rank * 97u;

	h ^= h >> 15;
	h *= 2246822519u;
	return (long)((h >> 20) % 3) + 1;
}

static long reduced(const struct call *call, int i)
{
	long v = given(call, 0, i);

	for (int r = 1; r < call->c->size; r++)
		v = fold(call->op, v, given(call, r, i));
	return v;
}

/* Every second element is used. */
static MPI_Datatype with_gaps(const struct call *call, int count)
{
	MPI_Datatype vector, type;

	MPI_Type_vector(count, 1, 2, call->t->mpi, &vector);
	MPI_Type_create_resized(vector, 0, (MPI_Aint)(2 * (size_t)count * call->t->size), &type);
	MPI_Type_commit(&type);
	MPI_Type_free(&vector);
	return type;
}

static int expected_in_network(const struct call *call)
{
	if (call->c->size == 1)
		return 0;
	if (call->kind == BARRIER)
		return 1;
	if (call->count == 0)
		return 0;
	if (call->kind == BCAST || call->kind == ALLGATHER)
		return 1;
	return call->t->offered && call->op != USER && (call->op != PROD || call->t->size > 1);
}

static int blocks(const struct call *call, int of_send)
{
	if (call->kind == (of_send ? REDUCE_SCATTER : ALLGATHER))
		return call->c->size;
	return 1;
}

static void *at(const struct call *call, char *buf, long i)
{
	return buf + (size_t)i * call->t->size * (call->gaps ? 2 : 1);
}

static void prepare(struct call *call)
{
	const size_t room = (size_t)(call->count + 1) * (size_t)call->c->size * call->t->size * 2;
	const int rank = call->c->rank;

	if (call->by_mpi) {
		MPI_Alloc_mem((MPI_Aint)room, MPI_INFO_NULL, &call->send);
		MPI_Alloc_mem((MPI_Aint)room, MPI_INFO_NULL, &call->recv);
	} else {
		call->send = malloc(room);
		call->recv = malloc(room);
	}
	memset(call->send, 0x5a, room);
	memset(call->recv, 0x5a, room);
	calls++;
	in_network += (unsigned long)expected_in_network(call);
	if (call->kind == BARRIER)
		return;
	if (call->kind == BCAST) {
		for (int i = 0; i < call->count && rank == call->root; i++)
			call->t->put(at(call, call->recv, i), given(call, rank, i));
	} else if (call->kind == ALLGATHER) {
		char *own = call->in_place ? at(call, call->recv, (long)rank * call->count)
					   : call->send;

		for (int i = 0; i < call->count; i++)
			call->t->put(at(call, own, i), given(call, rank, i));
	} else {
		char *from = call->in_place && (call->kind != REDUCE || rank == call->root)
				     ? call->recv
				     : call->send;

		for (int i = 0; i < call->count * blocks(call, 1); i++)
			call->t->put(at(call, from, i), given(call, rank, i));
	}
	if (call->gaps && call->count)
		call->vector = with_gaps(call, call->count);
}

static void describe(const struct call *call, int *count, MPI_Datatype *type)
{
	*count = call->vector != MPI_DATATYPE_NULL ? 1 : call->count;
	*type = call->vector != MPI_DATATYPE_NULL ? call->vector : call->t->mpi;
}

static void run(struct call *call, int waits)
{
	const MPI_Comm comm = call->c->comm;
	const void *send = call->in_place ? MPI_IN_PLACE : call->send;
	const MPI_Op op = ops[call->op];
	const MPI_Datatype mpi = call->t->mpi;
	MPI_Request *r = &call->request;
	MPI_Datatype type;
	int count;

	describe(call, &count, &type);
	switch (call->kind) {
	case ALLREDUCE:
		waits ? MPI_Allreduce(send, call->recv, call->count, mpi, op, comm)
		      : MPI_Iallreduce(send, call->recv, call->count, mpi, op, comm, r);
		break;
	case REDUCE:
		if (call->c->rank != call->root)
			send = call->send;
		waits ? MPI_Reduce(send, call->recv, call->count, mpi, op, call->root, comm)
		      : MPI_Ireduce(send, call->recv, call->count, mpi, op, call->root, comm, r);
		break;
	case BCAST:
		waits ? MPI_Bcast(call->recv, count, type, call->root, comm)
		      : MPI_Ibcast(call->recv, count, type, call->root, comm, r);
		break;
	case BARRIER:
		waits ? MPI_Barrier(comm) : MPI_Ibarrier(comm, r);
		break;
	case REDUCE_SCATTER:
		waits ? MPI_Reduce_scatter_block(send, call->recv, call->count, mpi, op, comm)
		      : MPI_Ireduce_scatter_block(send, call->recv, call->count, mpi, op, comm, r);
		break;
	default:
		waits ? MPI_Allgather(send, count, type, call->recv, count, type, comm)
		      : MPI_Iallgather(send, count, type, call->recv, count, type, comm, r);
	}
	/* MPI keeps what it still needs of it. */
	if (call->vector != MPI_DATATYPE_NULL)
		MPI_Type_free(&call->vector);
}

static long want(const struct call *call, int i)
{
	switch (call->kind) {
	case BCAST:
		return given(call, call->root, i);
	case ALLGATHER:
		return given(call, i / call->count, i % call->count);
	case REDUCE_SCATTER:
		return reduced(call, call->c->rank * call->count + i);
	default:
		return reduced(call, i);
	}
}

static void check(struct call *call)
{
	static const char *const names[] = {
		"allreduce", "reduce", "bcast", "barrier", "reduce_scatter_block", "allgather"};
	const int looks =
		call->kind != BARRIER && (call->kind != REDUCE || call->c->rank == call->root);
	const int n = call->count * blocks(call, 0);

	for (int i = 0; looks && i < n; i++) {
		const long is = call->t->get(at(call, call->recv, i)), w = want(call, i);

		if (is == w)
			continue;
		fprintf(stderr,
			"rank %d: %s of %d (size %zu, op %d, %s%s): element %d is %ld, not %ld\n",
			world_rank, names[call->kind], call->count, call->t->size, call->op,
			call->in_place ? "in place" : "out of place", call->gaps ? ", gaps" : "", i,
			is, w);
		wrong++;
		break;
	}
	/* What lies between is the program's. */
	for (int i = 0; looks && call->gaps && i < n; i++) {
		const char *gap = (const char *)at(call, call->recv, i) + call->t->size;

		for (size_t b = 0; b < call->t->size; b++)
			wrong += gap[b] != 0x5a;
	}
	if (call->by_mpi) {
		MPI_Free_mem(call->send);
		MPI_Free_mem(call->recv);
	} else {
		free(call->send);
		free(call->recv);
	}
}

static struct call choose(void)
{
	static const int counts[] = {0, 1, 2, 7, 100, 1000, MAX_COUNT};
	struct call call = {.c = &comms[pick(N_COMMS)],
		.t = &types[pick(n_types)],
		.kind = (int)pick(N_KINDS),
		.op = (int)pick(N_OPS),
		.count = counts[pick(7)],
		.in_place = pick(2),
		.gaps = pick(3) == 0,
		.by_mpi = (int)pick(2),
		.salt = pick(1 << 30),
		.request = MPI_REQUEST_NULL,
		.vector = MPI_DATATYPE_NULL};

	call.root = (int)pick(12);
	call.root %= call.c->size; /* communicators of different sizes are in use at a time */
	/* The same data by another type at each second rank. */
	if ((call.kind != BCAST && call.kind != ALLGATHER) || call.c->rank % 2)
		call.gaps = 0;
	if (call.kind == BCAST || call.kind == BARRIER)
		call.in_place = 0;
#ifdef MPICH_NAME
	/* Its 4.0.2 reads from MPI_IN_PLACE in some Reduces, and crashes. */
	if (call.kind == REDUCE && !expected_in_network(&call))
		call.in_place = 0;
#endif
	return call;
}

static int calm;

static void one(void)
{
	struct call call = choose();

	if (calm && !expected_in_network(&call))
		return;
	prepare(&call);
	run(&call, 1);
	check(&call);
}

/* ---- several at a time, and messages between them ---- */

static void wait_for(int n, MPI_Request *r)
{
	int flag = 0, index, done = 0, indices[BATCH + 2];

	switch (pick(5)) {
	case 0:
		MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
		break;
	case 1:
		for (int i = n - 1; i >= 0; i--)
			MPI_Wait(&r[i], MPI_STATUS_IGNORE);
		break;
	case 2:
		for (int i = 0; i < n; i++)
			MPI_Waitany(n, r, &index, MPI_STATUS_IGNORE);
		break;
	case 3:
		while (!flag)
			MPI_Testall(n, r, &flag, MPI_STATUSES_IGNORE);
		break;
	default:
		for (int i = 0; i < n; i += done)
			MPI_Waitsome(n, r, &done, indices, MPI_STATUSES_IGNORE);
	}
}

static void batch(void)
{
	const int n = 1 + (int)pick(BATCH), right = (world_rank + 1) % world_size;
	const int left = (world_rank + world_size - 1) % world_size;
	struct call *call = calloc((size_t)n, sizeof(*call));
	MPI_Request r[BATCH + 2];
	int sent = world_rank * 1000 + n, got = -1;

	MPI_Irecv(&got, 1, MPI_INT, left, 5, MPI_COMM_WORLD, &r[n]);
	for (int i = 0; i < n; i++) {
		call[i] = choose();
		prepare(&call[i]);
		run(&call[i], 0);
		r[i] = call[i].request;
	}
	MPI_Isend(&sent, 1, MPI_INT, right, 5, MPI_COMM_WORLD, &r[n + 1]);
	if (pick(2))
		one(); /* a blocking one behind them */
	wait_for(n + 2, r);
	for (int i = 0; i < n; i++)
		check(&call[i]);
	wrong += got != left * 1000 + n;
	free(call);
}

/* MPI promises progress: a long message goes on while its sender waits in a collective, a
 * collective while its ranks wait for a message. */
static void crossed(void)
{
	const int partner = world_rank ^ 1, first = world_rank % 2 == 0;
	char *message = malloc(BIG), *other = malloc(BIG);
	int *v = malloc(BIG), *sum = malloc(BIG);
	MPI_Request r;

	memset(message, world_rank, BIG);
	for (unsigned i = 0; i < BIG / sizeof(*v); i++)
		v[i] = world_rank;
	if (first) {
		MPI_Isend(message, BIG, MPI_BYTE, partner, 6, MPI_COMM_WORLD, &r);
		MPI_Allreduce(MPI_IN_PLACE, v, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(other, BIG, MPI_BYTE, partner, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Allreduce(MPI_IN_PLACE, v, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		wrong += other[BIG - 1] != partner;
	}
	v[0] = world_rank;
	MPI_Iallreduce(v, sum, BIG / sizeof(*v), MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
	if (first) {
		MPI_Recv(other, 1, MPI_BYTE, partner, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	} else {
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		MPI_Send(message, 1, MPI_BYTE, partner, 7, MPI_COMM_WORLD);
	}
	for (unsigned i = 0; i < BIG / sizeof(*v); i++)
		wrong += sum[i] != world_size * (world_size - 1) / 2;
	calls += 2;
	in_network += 2;
	free(message);
	free(other);
	free(v);
	free(sum);
}

static void make_comms(void)
{
	MPI_Comm c[N_COMMS];

	c[0] = MPI_COMM_WORLD;
	MPI_Comm_dup(MPI_COMM_WORLD, &c[1]);
	MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &c[2]);
	MPI_Comm_split(MPI_COMM_WORLD, world_rank == 1, world_rank, &c[3]);
	for (int i = 0; i < N_COMMS; i++) {
		comms[i].comm = c[i];
		MPI_Comm_rank(c[i], &comms[i].rank);
		MPI_Comm_size(c[i], &comms[i].size);
		MPI_Barrier(c[i]);
		calls++;
		in_network += comms[i].size > 1;
	}
}

/* The program has asked for errors to be returned, so they are. */
static int until_it_fails(void)
{
	char text[MPI_MAX_ERROR_STRING];
	int v = 1, sum, rc, len, class;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Barrier(MPI_COMM_WORLD);
	if (world_rank == 0) {
		printf("ready\n");
		fflush(stdout);
	}
	do
		rc = MPI_Allreduce(&v, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	while (!rc && sum == world_size);
	MPI_Error_string(rc, text, &len);
	MPI_Error_class(rc, &class);
	printf("rank %d: %s: %s\n", world_rank, class > MPI_ERR_LASTCODE ? "own class" : "class",
		text);
	MPI_Finalize();
	return rc ? 0 : 1;
}

/* A number that all ranks but the first give; that one gives more when it is told to stop. Two at a
 * time, one of them without waiting. */
static int until_told(void)
{
	const int many = world_size * 1000;
	int sum = 0, later = 0, turns = 0, wrong_ones = 0, all;
	struct pollfd in = {.fd = 0, .events = POLLIN};
	MPI_Request r;

	do {
		int v = world_rank == 0 && turns > 1 && poll(&in, 1, 0) == 1 ? many : 1, w = turns;

		MPI_Iallreduce(&w, &later, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
		MPI_Allreduce(&v, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		wrong_ones += later != turns * world_size;
		wrong_ones += sum != world_size && sum != many + world_size - 1;
		if (world_rank == 0 && turns == 1) {
			printf("ready\n");
			fflush(stdout);
		}
		turns++;
	} while (sum < many);
	MPI_Reduce(&wrong_ones, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (world_rank == 0)
		printf("%d turns, %d wrong\n", turns, all);
	MPI_Finalize();
	return 0;
}

int main(int argc, char **argv)
{
	const long rounds = argc > 2 ? atol(argv[2]) : 100;
	unsigned long mine[3], all[3];

	state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &world_size);
	if (argc > 1 && !strcmp(argv[1], "fail"))
		return until_it_fails();
	if (argc > 1 && !strcmp(argv[1], "told"))
		return until_told();
	calm = argc > 3 && !strcmp(argv[3], "calm");
	make_types();
	MPI_Op_create(user_sum, 1, &ops[USER]);
	ops[SUM] = MPI_SUM;
	ops[MIN] = MPI_MIN;
	ops[MAX] = MPI_MAX;
	ops[PROD] = MPI_PROD;
	make_comms();
	for (long i = 0; i < rounds; i++) {
		switch (calm ? 2 : pick(16)) {
		case 0:
			batch();
			break;
		case 1:
			crossed();
			break;
		default:
			one();
		}
	}
	MPI_Op_free(&ops[USER]);
	for (int i = 1; i < N_COMMS; i++)
		MPI_Comm_free(&comms[i].comm);
	mine[0] = wrong;
	mine[1] = calls + 1; /* with the one that follows */
	mine[2] = in_network + 1;
	MPI_Reduce(mine, all, 3, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (world_rank == 0)
		printf("%lu calls, %lu of them for the network, %lu wrong\n", all[1], all[2],
			all[0]);
	MPI_Finalize();
	return wrong != 0;
}
