/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program that knows nothing of Incline: MPI_Allreduce of several sizes, types and
 * operations, every element of the result checked, and a ring of messages. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_COUNT = 1 << 20, ROUNDS = 3 };

static const int counts[] = {1, 7, 256, 1000, 4096, 65537, MAX_COUNT};

static unsigned long fail(const char *what, int count, int i)
{
	fprintf(stderr, "%s of %d elements: element %d is wrong\n", what, count, i);
	return 1;
}

/* Element i of rank r is (r + 1) * (i % 1000 + 1) + round: sums and largest are known. */
static unsigned long check_int(int rank, int n, int count, int round)
{
	int *in = malloc((size_t)count * sizeof(*in)), *out = malloc((size_t)count * sizeof(*out));
	const int ranks = n * (n + 1) / 2;
	unsigned long wrong = 0;

	for (int i = 0; i < count; i++)
		in[i] = (rank + 1) * (i % 1000 + 1) + round;
	MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < count && !wrong; i++)
		if (out[i] != ranks * (i % 1000 + 1) + n * round)
			wrong = fail("sum", count, i);
	MPI_Allreduce(MPI_IN_PLACE, in, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	for (int i = 0; i < count && !wrong; i++)
		if (in[i] != n * (i % 1000 + 1) + round)
			wrong = fail("max", count, i);
	free(in);
	free(out);
	return wrong;
}

static unsigned long check_double(int rank, int n, int count)
{
	double *v = malloc((size_t)count * sizeof(*v));
	unsigned long wrong = 0;

	for (int i = 0; i < count; i++)
		v[i] = (rank + 1) * 0.5 + i % 1024; /* sums are exact */
	MPI_Allreduce(MPI_IN_PLACE, v, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < count && !wrong; i++)
		if (v[i] != n * (n + 1) * 0.25 + (double)n * (i % 1024))
			wrong = fail("sum (double)", count, i);
	free(v);
	return wrong;
}

static unsigned long check_ring(int rank, int n, int count)
{
	int *in = malloc((size_t)count * sizeof(*in)), *out = malloc((size_t)count * sizeof(*out));
	const int from = (rank + n - 1) % n;
	unsigned long wrong = 0;

	for (int i = 0; i < count; i++)
		out[i] = rank * 7919 + i;
	MPI_Sendrecv(out, count, MPI_INT, (rank + 1) % n, 0, in, count, MPI_INT, from, 0,
		MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < count && !wrong; i++)
		if (in[i] != from * 7919 + i)
			wrong = fail("message", count, i);
	free(in);
	free(out);
	return wrong;
}

int main(int argc, char **argv)
{
	unsigned long wrong = 0, all = 0, runs = 0;
	int rank, n;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	for (unsigned c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		for (int round = 0; round < ROUNDS; round++, runs++) {
			wrong += check_int(rank, n, counts[c], round);
			wrong += check_double(rank, n, counts[c]);
			wrong += check_ring(rank, n, counts[c]);
		}
	}
	MPI_Reduce(&wrong, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks, %lu rounds, %lu wrong\n", n, runs, all);
	MPI_Finalize();
	return wrong != 0;
}
