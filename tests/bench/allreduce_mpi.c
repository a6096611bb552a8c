/* SPDX-License-Identifier: BSD-3-Clause */
/* tools/bench allreduce: what an MPI library takes. MPI_Allreduce of floats, every element of the
 * last one checked, or MPI_Barrier.
 *
 *   allreduce_mpi MIN MAX FACTOR TIMES    sizes in bytes, MAX 0: barriers
 *
 * Rank 0 prints a line for each size: bytes, median and least time in us, wrong elements. The time
 * of an operation is the slowest rank's. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_UP = 3 };

static int rank, ranks;

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sums of small whole numbers are exact. */
static long wrong(const float *sum, size_t n)
{
	long bad = 0;

	for (size_t i = 0; i < n; i++)
		bad += sum[i] != (float)((ranks * (ranks + 1) / 2) * (int)(i % 1024));
	return bad;
}

static double once(const float *in, float *sum, size_t n)
{
	double start, mine, slowest;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	if (n == 0)
		MPI_Barrier(MPI_COMM_WORLD);
	else
		MPI_Allreduce(in, sum, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	mine = MPI_Wtime() - start;
	MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return slowest * 1e6;
}

static long measure(size_t bytes, int times)
{
	const size_t n = bytes / sizeof(float);
	float *in = malloc(bytes + 1), *sum = malloc(bytes + 1);
	double *us = malloc((size_t)times * sizeof(*us));
	long bad = 0, all = 0;

	for (size_t i = 0; i < n; i++)
		in[i] = (float)((rank + 1) * (int)(i % 1024));
	for (int i = 0; i < WARM_UP; i++)
		once(in, sum, n);
	for (int i = 0; i < times; i++)
		us[i] = once(in, sum, n);
	bad = wrong(sum, n);
	MPI_Allreduce(&bad, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	qsort(us, (size_t)times, sizeof(*us), compare);
	if (rank == 0)
		printf("%zu %.2f %.2f %ld\n", bytes, us[times / 2], us[0], all);
	free(in);
	free(sum);
	free(us);
	return all;
}

int main(int argc, char **argv)
{
	long bad = 0;
	size_t max, factor;
	int times;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	max = argc == 5 ? strtoul(argv[2], NULL, 10) : 0;
	factor = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
	times = argc == 5 ? atoi(argv[4]) : 0;
	if (times < 1 || factor < 2) {
		fprintf(stderr, "usage: allreduce_mpi MIN MAX FACTOR TIMES\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	if (max == 0)
		bad = measure(0, times);
	for (size_t bytes = strtoul(argv[1], NULL, 10); bytes <= max && max > 0; bytes *= factor)
		bad += measure(bytes, times);
	MPI_Finalize();
	return bad != 0;
}
