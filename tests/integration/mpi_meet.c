/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program with two communicators that its ranks see, and wait for, in different orders: even
 * ranks the first before the second, odd ones the other way round. Between two turns the last rank
 * waits for a message of rank 0's. Sums until rank 0 is told a line; neither communicator is freed
 * before MPI_Finalize. */
#include <mpi.h>
#include <poll.h>
#include <stdio.h>

static int rank, size;

static void sum_both(const MPI_Comm comm[2], const int v[2], int sum[2])
{
	const int first = rank % 2;
	MPI_Request r[2];

	for (int i = 0; i < 2; i++) {
		const int at = i ? !first : first;

		MPI_Iallreduce(&v[at], &sum[at], 1, MPI_INT, MPI_SUM, comm[at], &r[at]);
	}
	MPI_Wait(&r[first], MPI_STATUS_IGNORE);
	MPI_Wait(&r[!first], MPI_STATUS_IGNORE);
}

static void message(void)
{
	char byte = 0;

	if (rank == 0)
		MPI_Send(&byte, 1, MPI_BYTE, size - 1, 7, MPI_COMM_WORLD);
	else if (rank == size - 1)
		MPI_Recv(&byte, 1, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Until rank 0 gives more than the others. How many turns. */
static int until_told(const MPI_Comm comm[2], int *wrong)
{
	const int many = size * 1000;
	struct pollfd in = {.fd = 0, .events = POLLIN};
	int turns = 0, sum[2];

	do {
		const int told = rank == 0 && turns > 1 && poll(&in, 1, 0) == 1;
		const int v[2] = {told ? many : 1, turns};

		sum_both(comm, v, sum);
		*wrong += sum[0] != size && sum[0] != many + size - 1;
		*wrong += sum[1] != turns * size;
		message();
		if (rank == 0 && turns == 1) {
			printf("ready\n");
			fflush(stdout);
		}
		turns++;
	} while (sum[0] < many);
	return turns;
}

int main(int argc, char **argv)
{
	int wrong = 0, all, turns, sum[2];
	const int v[2] = {1, 1};
	MPI_Comm comm[2];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm[0]);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm[1]);
	sum_both(comm, v, sum); /* by MPI: they join in their first blocking call */
	wrong += sum[0] != size || sum[1] != size;
	MPI_Barrier(comm[0]);
	MPI_Barrier(comm[1]);
	turns = until_told(comm, &wrong);
	MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d turns, %d wrong\n", turns, all);
	MPI_Finalize();
	return 0;
}
