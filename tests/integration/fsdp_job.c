/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of a training step's traffic (multicast AllGather, appendix B):
 *   fsdp_job GROUP-FILE RANK BYTES TIMES
 * TIMES times a ReduceScatter of BYTES per block, an AllGather of as many, and both at once, each
 * result checked. Prints the shortest of each as JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/group.h"

struct job {
	struct ccl_comm *comm;
	unsigned rank, n;
	uint64_t words; /* of a block */
	int32_t *gradients, *scattered, *parameters, *gathered;
};

enum what { SCATTER = 1, GATHER = 2, N_WHAT = 4 };

static int32_t gradient(unsigned time, unsigned rank, uint64_t at)
{
	return (int32_t)(time * 1000003 + rank * 10007 + at * 31);
}

static int32_t parameter(unsigned time, unsigned rank, uint64_t at)
{
	return (int32_t)(time * 7919 + rank * 65537 + at * 17);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void fill(struct job *j, unsigned time)
{
	for (uint64_t i = 0; i < j->n * j->words; i++)
		j->gradients[i] = gradient(time, j->rank, i);
	for (uint64_t i = 0; i < j->words; i++)
		j->parameters[i] = parameter(time, j->rank, i);
	memset(j->scattered, 0xee, j->words * 4);
	memset(j->gathered, 0xee, j->n * j->words * 4);
}

static bool right(const struct job *j, unsigned time, unsigned what)
{
	for (uint64_t i = 0; what & SCATTER && i < j->words; i++) {
		int32_t sum = 0;

		for (unsigned r = 0; r < j->n; r++)
			sum += gradient(time, r, j->rank * j->words + i);
		if (j->scattered[i] != sum)
			return false;
	}
	for (uint64_t i = 0; what & GATHER && i < j->n * j->words; i++)
		if (j->gathered[i] != parameter(time, (unsigned)(i / j->words), i % j->words))
			return false;
	return true;
}

/* The AllGather first: it begins with a barrier, whose messages should not wait for gradients. */
static int run(struct job *j, unsigned what, uint64_t *ns)
{
	struct ccl_req req[2];
	int rc = ccl_barrier(j->comm);
	uint64_t began = now_ns();
	unsigned n = 0;

	if (rc == 0 && what & GATHER)
		rc = ccl_iallgather(
			j->comm, j->parameters, j->gathered, j->words, REDUCE_INT32, &req[n++]);
	if (rc == 0 && what & SCATTER)
		rc = ccl_ireduce_scatter(j->comm, j->gradients, j->scattered, j->words,
			REDUCE_INT32, REDUCE_SUM, &req[n++]);
	for (unsigned i = 0; rc == 0 && i < n; i++)
		rc = ccl_wait(j->comm, req[i], UINT64_MAX);
	began = now_ns() - began;
	if (began < *ns)
		*ns = began;
	return rc;
}

static int rounds(struct job *j, unsigned times)
{
	uint64_t ns[N_WHAT] = {0, UINT64_MAX, UINT64_MAX, UINT64_MAX};

	for (unsigned t = 0; t < times; t++)
		for (unsigned what = SCATTER; what < N_WHAT; what++) {
			int rc;

			fill(j, t);
			rc = run(j, what, &ns[what]);
			if (rc)
				return rc;
			if (!right(j, t, what)) {
				fprintf(stderr, "fsdp_job: rank %u: a wrong result\n", j->rank);
				return -EBADMSG;
			}
		}
	printf("{\"reduce_scatter_ns\": %llu, \"allgather_ns\": %llu, \"both_ns\": %llu}\n",
		(unsigned long long)ns[SCATTER], (unsigned long long)ns[GATHER],
		(unsigned long long)ns[SCATTER | GATHER]);
	return 0;
}

int main(int argc, char **argv)
{
	struct ccl_group *group = NULL;
	struct job j = {0};
	char err[CCL_ERR_LEN] = "usage: fsdp_job GROUP-FILE RANK BYTES TIMES";
	int32_t *memory;
	int rc = argc == 5 ? ccl_group_load(argv[1], &group, err) : -EINVAL;

	if (rc == 0)
		rc = ccl_comm_create(group, (unsigned)atoi(argv[2]), &j.comm, err);
	if (rc) {
		fprintf(stderr, "fsdp_job: %s\n", err);
		return 1;
	}
	j.rank = ccl_rank(j.comm);
	j.n = ccl_size(j.comm);
	j.words = strtoull(argv[3], NULL, 0) / 4;
	memory = calloc(2 * (j.n + 1) * j.words, sizeof(*memory));
	if (!memory)
		return 1;
	j.gradients = memory;
	j.scattered = j.gradients + j.n * j.words;
	j.parameters = j.scattered + j.words;
	j.gathered = j.parameters + j.words;
	rc = ccl_register(j.comm, memory, 2 * (j.n + 1) * j.words * sizeof(*memory));
	if (rc == 0)
		rc = rounds(&j, (unsigned)atoi(argv[4]));
	if (rc) {
		fprintf(stderr, "fsdp_job: %s; %s\n", strerror(-rc), ccl_error(j.comm));
		ccl_abort(j.comm, "the test has failed");
	} else {
		rc = ccl_comm_destroy(j.comm);
	}
	ccl_group_free(group);
	free(memory);
	return rc != 0;
}
