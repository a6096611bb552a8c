/* SPDX-License-Identifier: BSD-3-Clause */
/* A sum over all ranks, in the network:
 *
 *	cc -o allreduce allreduce.c $(pkg-config --cflags --libs incline-ccl)
 *	INCLINE_GROUP=group.json mpirun ./allreduce
 *
 * with mpirun, srun, torchrun, or any other way to start a process per rank (INCLINE_RANK=N). */
#include <err.h>
#include <incline/ccl.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 20 };

static float v[COUNT];

int main(void)
{
	const char *file = getenv("INCLINE_GROUP");
	char why[CCL_ERR_LEN];
	struct ccl_group *group;
	struct ccl_comm *comm;
	unsigned rank, n, wrong = 0;

	if (!file)
		errx(2, "set INCLINE_GROUP to the group's file");
	if (ccl_group_load(file, &group, why) || ccl_launched(group, &rank, &n, why) ||
		ccl_comm_create(group, rank, &comm, why))
		errx(1, "%s", why);
	n = ccl_size(comm);
	for (unsigned i = 0; i < COUNT; i++)
		v[i] = (float)(rank + i % 1000);
	ccl_register(comm, v, sizeof(v)); /* optional: no copies on the way to the device */
	if (ccl_allreduce(comm, v, v, COUNT, REDUCE_FP32, REDUCE_SUM))
		errx(1, "%s", ccl_error(comm));
	for (unsigned i = 0; i < COUNT; i++)
		wrong += v[i] != (float)(n * (n - 1) / 2 + n * (i % 1000));
	printf("rank %u of %u: %u sums, %u wrong\n", rank, n, (unsigned)COUNT, wrong);
	ccl_comm_destroy(comm);
	ccl_group_free(group);
	return wrong != 0;
}
