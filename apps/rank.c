/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/rank.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLICE_NS = 50000000 }; /* how long a signal may go unnoticed */

static volatile sig_atomic_t interrupted;

/* A second signal kills. */
static void on_signal(int number)
{
	interrupted = 1;
	signal(number, SIG_DFL);
}

void rank_init(struct rank *r, const char *program)
{
	const struct sigaction sa = {.sa_handler = on_signal};

	*r = (struct rank){.program = program,
		.group_file = getenv("INCLINE_GROUP"),
		.number = -1,
		.algorithm = -1};
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

bool rank_interrupted(void)
{
	return interrupted;
}

uint64_t rank_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* By the launcher, if nobody has said it. */
static int find_number(struct rank *r, char err[CCL_ERR_LEN])
{
	unsigned number, size;
	int rc;

	if (r->number >= 0)
		return 0;
	rc = ccl_launched(r->group, &number, &size, err);
	if (rc == -ENOENT)
		snprintf(err, CCL_ERR_LEN, "needs --rank N (or INCLINE_RANK, or a launcher)");
	if (rc == 0)
		r->number = (int)number;
	return rc;
}

int rank_join(struct rank *r)
{
	char err[CCL_ERR_LEN];

	if (!r->group_file) {
		fprintf(stderr, "%s: needs --group FILE (or INCLINE_GROUP)\n", r->program);
		return 2;
	}
	if (ccl_group_load(r->group_file, &r->group, err)) {
		fprintf(stderr, "%s: %s\n", r->program, err);
		return 2;
	}
	if (find_number(r, err)) {
		fprintf(stderr, "%s: %s\n", r->program, err);
		ccl_group_free(r->group);
		return 2;
	}
	if (r->timeout_ns && ccl_group_set_timeout(r->group, r->timeout_ns)) {
		fprintf(stderr, "%s: --timeout must be " RANK_TIMEOUTS "\n", r->program);
		ccl_group_free(r->group);
		return 2;
	}
	if (r->algorithm >= 0 &&
		ccl_group_set_algorithm(r->group, (enum ccl_algorithm)r->algorithm, err)) {
		fprintf(stderr, "%s: --algorithm %s: %s\n", r->program,
			ccl_algorithm_name((enum ccl_algorithm)r->algorithm), err);
		ccl_group_free(r->group);
		return 2;
	}
	if (ccl_comm_create(r->group, (unsigned)r->number, &r->comm, err)) {
		fprintf(stderr, "%s: %s\n", r->program, err);
		ccl_group_free(r->group);
		return 1;
	}
	return 0;
}

int rank_rejoin(struct rank *r, unsigned patience_ms)
{
	const uint64_t until = rank_clock_ns() + (uint64_t)patience_ms * 1000000;
	const struct timespec pause = {.tv_nsec = 100000000};
	char err[CCL_ERR_LEN];
	int rc;

	fprintf(stderr, "%s: %s; joining again\n", r->program, ccl_error(r->comm));
	do {
		rc = ccl_comm_renew(r->comm, err);
		if (rc)
			nanosleep(&pause, NULL);
	} while (rc && !interrupted && rank_clock_ns() < until);
	if (rc)
		fprintf(stderr, "%s: %s\n", r->program, err);
	return rc ? -1 : 0;
}

int rank_leave(struct rank *r, int status)
{
	int rc;

	if (status && r->comm)
		ccl_abort(r->comm, rank_interrupted() ? "interrupted" : "gave up");
	rc = ccl_comm_destroy(r->comm);
	if (rc && !status) {
		fprintf(stderr, "%s: rank %d: saying goodbye: %s\n", r->program, r->number,
			strerror(-rc));
		status = 1;
	}
	ccl_group_free(r->group);
	return status;
}

int rank_wait(struct rank *r, int rc, struct ccl_req req)
{
	while (rc == 0) {
		if (interrupted)
			return -EINTR;
		rc = ccl_wait(r->comm, req, SLICE_NS);
		if (rc == 0)
			return 0;
		if (rc == -ETIMEDOUT && !ccl_error(r->comm)[0])
			rc = 0; /* the slice is over, nothing else */
	}
	return rc;
}

int rank_allreduce(
	struct rank *r, const void *send, void *recv, uint64_t count, enum reduce_dtype dtype)
{
	struct ccl_req req;
	const int rc = ccl_iallreduce(r->comm, send, recv, count, dtype, REDUCE_SUM, &req);

	return rank_wait(r, rc, req);
}

static bool does(const struct rank *r, enum ccl_collective collective)
{
	struct ccl_info info;

	ccl_query(r->comm, &info);
	return info.collectives >> collective & 1;
}

/* What each rank says to all others, in a communicator without AllReduce. */
static int exchange(struct rank *r, uint64_t *values)
{
	const unsigned n = ccl_size(r->comm);
	struct ccl_req req = {0};
	int rc = 0;

	if (does(r, CCL_ALLGATHER)) {
		rc = ccl_iallgather(r->comm, &values[r->number], values, 1, REDUCE_UINT64, &req);
		return rank_wait(r, rc, req);
	}
	for (unsigned root = 0; root < n && !rc; root++) {
		rc = ccl_ibroadcast(
			r->comm, &values[root], &values[root], 1, REDUCE_UINT64, root, &req);
		rc = rank_wait(r, rc, req);
	}
	return rc;
}

int rank_barrier(struct rank *r)
{
	struct ccl_req req;
	uint64_t *values;
	int rc;

	if (does(r, CCL_BARRIER)) {
		rc = ccl_ibarrier(r->comm, &req);
		return rank_wait(r, rc, req);
	}
	values = calloc(ccl_size(r->comm), sizeof(*values));
	rc = values ? exchange(r, values) : -ENOMEM;
	free(values);
	return rc;
}

int rank_failed(const struct rank *r, int error)
{
	const char *why = r->comm ? ccl_error(r->comm) : "it could not join again";

	fprintf(stderr, "%s: %s\n", r->program,
		error == -EINTR ? "interrupted"
		: why[0]        ? why
				: strerror(-error));
	return 1;
}

int rank_gather(struct rank *r, uint64_t value, uint64_t *values)
{
	const unsigned n = ccl_size(r->comm);
	int32_t *part = calloc(n, 2 * sizeof(*part));
	int rc;

	if (!part)
		return -ENOMEM;
	if (!does(r, CCL_ALLREDUCE)) {
		free(part);
		values[r->number] = value;
		return exchange(r, values);
	}
	part[2 * r->number] = (int32_t)(value & 0x3fffffff);
	part[2 * r->number + 1] = (int32_t)(value >> 30 & 0x7fffffff);
	rc = rank_allreduce(r, part, part, 2 * n, REDUCE_INT32);
	for (unsigned i = 0; i < n && !rc; i++)
		values[i] = (uint64_t)part[2 * i] | (uint64_t)part[2 * i + 1] << 30;
	free(part);
	return rc;
}

bool rank_parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	const char *unit;
	double v;
	char *end;

	errno = 0;
	v = strtod(text, &end);
	if (end == text || errno || !(v >= 0))
		return false;
	unit = *end ? strchr(units, *end & ~0x20) : NULL;
	if (unit)
		for (const char *u = units; u <= unit; u++)
			v *= 1024;
	if (unit)
		end++;
	if (unit && (*end == 'B' || *end == 'b'))
		end++;
	if (*end || v > 1e15)
		return false;
	*bytes = (uint64_t)v;
	return true;
}

bool rank_parse_int(const char *text, long min, long max, long *value)
{
	char *end;

	errno = 0;
	*value = strtol(text, &end, 10);
	return end != text && !*end && !errno && *value >= min && *value <= max;
}

bool rank_parse_number(struct rank *r, const char *text)
{
	long n;

	if (!rank_parse_int(text, 0, 1048576, &n))
		return false;
	r->number = (int)n;
	return true;
}

bool rank_parse_timeout(struct rank *r, const char *text)
{
	long ms;

	if (!rank_parse_int(text, 1, 3600000, &ms))
		return false;
	r->timeout_ns = (uint64_t)ms * 1000000;
	return true;
}

int rank_write_json(const struct rank *r, const char *path, json_t *object)
{
	const int rc =
		object ? json_dump_file(object, path, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : -1;

	if (rc)
		fprintf(stderr, "%s: %s cannot be written: %s\n", r->program, path,
			strerror(errno));
	json_decref(object);
	return rc ? 1 : 0;
}
