/* SPDX-License-Identifier: BSD-3-Clause */
/* tools/demo --matrix: what an MPI library takes, by its own algorithms. Sums of floats; every
 * element of every result is checked.
 *
 *   collectives_mpi COLLECTIVE BYTES TIMES    bytes of the whole vector
 *
 * Rank 0 prints: mean time of the slowest rank in us, wrong elements at all ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 2 };

static int rank, ranks;
static int n; /* elements of the vector */
static float *in, *out;

static const char *const names[] = {
	"allreduce", "reduce", "broadcast", "barrier", "reduce_scatter", "allgather"};
enum what { ALLREDUCE, REDUCE, BROADCAST, BARRIER, REDUCE_SCATTER, ALLGATHER, N_WHAT };

/* Small whole numbers: their sums are exact. */
static float share(int of, int i)
{
	return (float)((of + 1) * (i % 1024));
}

static float sum(int i)
{
	return (float)(ranks * (ranks + 1) / 2 * (i % 1024));
}

static void prepare(enum what what)
{
	const int block = n / ranks;

	memset(out, 0xff, (size_t)n * sizeof(float));
	for (int i = 0; i < n; i++)
		in[i] = share(rank, i);
	for (int i = 0; what == BROADCAST && rank == 0 && i < n; i++)
		out[i] = share(0, i);
	for (int i = 0; what == ALLGATHER && i < block; i++)
		in[i] = share(rank, rank * block + i);
}

static void once(enum what what)
{
	const int block = n / ranks;

	switch (what) {
	case ALLREDUCE:
		MPI_Allreduce(in, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case REDUCE:
		MPI_Reduce(in, out, n, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
		break;
	case BROADCAST:
		MPI_Bcast(out, n, MPI_FLOAT, 0, MPI_COMM_WORLD);
		break;
	case REDUCE_SCATTER:
		MPI_Reduce_scatter_block(in, out, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case ALLGATHER:
		MPI_Allgather(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD);
		break;
	default:
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

static long wrong(enum what what)
{
	const int block = n / ranks;
	long bad = 0;

	if (what == BARRIER || (what == REDUCE && rank != 0))
		return 0;
	for (int i = 0; i < (what == REDUCE_SCATTER ? block : n); i++) {
		float want = sum(what == REDUCE_SCATTER ? rank * block + i : i);

		if (what == BROADCAST)
			want = share(0, i);
		if (what == ALLGATHER)
			want = share(i / block, i);
		bad += out[i] != want;
	}
	return bad;
}

int main(int argc, char **argv)
{
	double mine, slowest, us = 0;
	unsigned what = 0;
	long bad = 0, all = 0;
	int times;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	while (argc == 4 && what < N_WHAT && strcmp(argv[1], names[what]) != 0)
		what++;
	if (argc != 4 || what == N_WHAT || atoi(argv[3]) < 1) {
		fprintf(stderr, "usage: collectives_mpi COLLECTIVE BYTES TIMES\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	times = atoi(argv[3]);
	n = atoi(argv[2]) / (int)sizeof(float) / ranks * ranks;
	in = malloc((size_t)n * sizeof(float) + 1);
	out = malloc((size_t)n * sizeof(float) + 1);
	for (int i = -WARM_UP; i < times; i++) {
		prepare((enum what)what);
		MPI_Barrier(MPI_COMM_WORLD);
		mine = MPI_Wtime();
		once((enum what)what);
		mine = MPI_Wtime() - mine;
		MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		us += i < 0 ? 0 : slowest * 1e6;
		bad += wrong((enum what)what);
	}
	MPI_Allreduce(&bad, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%.2f %ld\n", us / times, all);
	free(in);
	free(out);
	MPI_Finalize();
	return all != 0;
}
