/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of a job whose memory on the switches is a lease:
 *   lease_job GROUP RANK SEED GO MINIMUM [die | survive]
 * Joins, waits for the file GO, and calls random collectives, checking each result, until MINIMUM
 * of them went through the switches and as many round the ring (but at most LIMIT in all: the other
 * jobs may be at their end). Prints how many. die: kills itself in the middle of the first one in
 * the network, rank 0 first. survive: goes on until it was refused, by a job that dies so, and
 * MINIMUM went through the switches after that. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/ccl/task.h"

enum { LIMIT = 600, MAX_BYTES = 20000, GO_MS = 60000, DYING_BYTES = 1 << 20 };

static int complain(struct ccl_comm *comm, const char *what, int rc)
{
	fprintf(stderr, "%s: %s; %s\n", what, strerror(-rc), comm ? ccl_error(comm) : "");
	return 1;
}

static bool started(const char *go)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	for (unsigned i = 0; i < GO_MS; i++) {
		if (access(go, F_OK) == 0)
			return true;
		nanosleep(&ms, NULL);
	}
	return false;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Rank 0 as soon as it has been granted the first, the others as soon as they notice: the switches
 * have the lease's holder in the middle of an operation. Were the others as quick, rank 0 might
 * hear of a death before it hears that its word has arrived, and end by itself. */
static int die_in_network(struct ccl_comm *comm)
{
	uint8_t *buf = calloc(2, DYING_BYTES);
	struct ccl_req req;
	struct ccl_info info;
	int rc = 0;

	while (buf && rc >= 0) {
		rc = ccl_iallreduce(comm, buf, buf + DYING_BYTES, DYING_BYTES / 4, REDUCE_INT32,
			REDUCE_SUM, &req);
		while (rc >= 0 && ccl_test(comm, req) == 0) {
			rc = ccl_progress(comm, now_ns());
			ccl_query(comm, &info);
			if (ccl_rank(comm) == 0 && info.lease_granted)
				kill(getpid(), SIGKILL);
		}
	}
	if (buf && ccl_rank(comm) != 0)
		kill(getpid(), SIGKILL);
	free(buf);
	return complain(comm, "did not die", rc);
}

/* The same on all ranks, for they agree on the way of each collective. */
static bool enough(const struct ccl_info *info, unsigned minimum, bool survive)
{
	static uint64_t refused, granted_then;

	if (!survive)
		return info->lease_granted >= minimum && info->lease_refused >= minimum;
	if (info->lease_refused > refused) {
		refused = info->lease_refused;
		granted_then = info->lease_granted;
	}
	return refused > 0 && info->lease_granted - granted_then >= minimum;
}

static int work(struct ccl_comm *comm, uint64_t seed, unsigned minimum, bool survive)
{
	const unsigned rank = ccl_rank(comm);
	struct ccl_comm *all[TASK_MAX_RANKS] = {0};
	struct ccl_info info = {0};
	uint64_t rng = seed;
	char why[200];
	int rc;

	all[rank] = comm;
	for (unsigned i = 0; i < LIMIT || survive; i++) {
		struct task t;

		ccl_query(comm, &info);
		if (enough(&info, minimum, survive))
			break;
		task_make(&t, &rng, ccl_size(comm), -1, MAX_BYTES);
		rc = task_start(&t, all, rank);
		if (rc == 0)
			rc = ccl_wait(comm, t.req[rank], UINT64_MAX);
		if (rc)
			return complain(comm, "collective", rc);
		if (!task_right_at(&t, rank, why, sizeof(why))) {
			fprintf(stderr, "collective %u: %s\n", i, why);
			return 1;
		}
		task_free(&t);
	}
	printf("%llu %llu\n%s\n", (unsigned long long)info.lease_granted,
		(unsigned long long)info.lease_refused, info.selection);
	return 0;
}

int main(int argc, char **argv)
{
	struct ccl_group *group;
	struct ccl_comm *comm;
	char err[CCL_ERR_LEN];
	int rc;

	if (argc < 6) {
		fprintf(stderr, "usage: lease_job GROUP RANK SEED GO MINIMUM [die | survive]\n");
		return 2;
	}
	if (ccl_group_load(argv[1], &group, err) ||
		ccl_comm_create(group, (unsigned)atoi(argv[2]), &comm, err)) {
		fprintf(stderr, "%s\n", err);
		return 1;
	}
	if (!started(argv[4]))
		return complain(comm, "start", -ETIMEDOUT);
	if (argc > 6 && strcmp(argv[6], "die") == 0)
		return die_in_network(comm);
	rc = work(comm, strtoull(argv[3], NULL, 0), (unsigned)atoi(argv[5]), argc > 6);
	if (rc)
		ccl_abort(comm, "the test has failed");
	else
		rc = ccl_comm_destroy(comm);
	ccl_group_free(group);
	return rc ? 1 : 0;
}
