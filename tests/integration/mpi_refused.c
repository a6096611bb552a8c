/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program in which rank 1 makes a call that is refused at it alone: its buffers overlap. A
 * call later all have heard of it, waiting or not ("later"), and no rank's second sum has passed
 * for another's first. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank;

static int sum(int *v, int *result, int waits)
{
	MPI_Request r;
	int rc;

	if (waits)
		return MPI_Allreduce(v, result, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	rc = MPI_Iallreduce(v, result, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
	return rc ? rc : MPI_Wait(&r, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	const int waits = argc < 2 || strcmp(argv[1], "later") != 0;
	int v[6] = {1, 1}, rc[2];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Barrier(MPI_COMM_WORLD);
	rc[0] = sum(v, rank == 1 ? v + 1 : v + 4, waits);
	v[0] = v[1] = 1000;
	rc[1] = sum(v, v + 4, waits);
	for (int i = 0; i < 2; i++) {
		char text[MPI_MAX_ERROR_STRING];
		int len;

		MPI_Error_string(rc[i], text, &len);
		printf("rank %d, call %d: %s\n", rank, i, rc[i] ? text : "no error");
	}
	MPI_Finalize();
	return 0;
}
