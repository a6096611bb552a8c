/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs that run as one rank of a group have in common: which group and rank, interruption,
 * messages. */
#ifndef APPS_RANK_H
#define APPS_RANK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/ccl/ccl.h"

struct rank {
	const char *program;
	const char *group_file; /* default: environment INCLINE_GROUP */
	int number;             /* default: by the environment (ccl_launched); -1: not given */
	uint64_t timeout_ns;    /* 0: as the file says */
	int algorithm;          /* enum ccl_algorithm; -1: as the file says */
	struct ccl_group *group;
	struct ccl_comm *comm;
};

/* Defaults from the environment; catches SIGINT and SIGTERM. */
void rank_init(struct rank *rank, const char *program);

/* Joins the group. 0, or an exit status after a message on stderr. */
int rank_join(struct rank *rank);

/* After a failure: leaves, and joins anew, for patience_ms at most. 0 or -1 after a message. */
int rank_rejoin(struct rank *rank, unsigned patience_ms);

/* Leaves it. status 0: after everybody has come to this point; else at once. Returns the exit
 * status, with a message if leaving failed. */
int rank_leave(struct rank *rank, int status);

/* Waits for a collective that was issued with result rc (returned if it is an error), or ends with
 * -EINTR at a signal. */
int rank_wait(struct rank *rank, int rc, struct ccl_req req);

/* As ccl_allreduce (sum) and ccl_barrier, but end with -EINTR at a signal. The barrier is made of
 * what the communicator does: Barrier, AllGather, or a Broadcast from each rank. */
int rank_allreduce(
	struct rank *rank, const void *send, void *recv, uint64_t count, enum reduce_dtype dtype);
int rank_barrier(struct rank *rank);

/* Says why the last call failed; returns exit status 1. */
int rank_failed(const struct rank *rank, int error);

/* Every rank's number, at every rank: an AllReduce of a vector in which each fills its place, or
 * AllGather, or Broadcasts, as the barrier. value < 2^61. */
int rank_gather(struct rank *rank, uint64_t value, uint64_t *values);

bool rank_interrupted(void);
uint64_t rank_clock_ns(void);

/* "4096", "4K", "1.5M", "1G" (powers of 1024), or "10ms" with unit ... false: not that. */
bool rank_parse_size(const char *text, uint64_t *bytes);
/* A decimal number within limits. */
bool rank_parse_int(const char *text, long min, long max, long *value);

/* What --rank and --timeout (in ms) were given; false: it is not RANK_NUMBERS, RANK_TIMEOUTS. */
#define RANK_NUMBERS "0 to 1048576"
#define RANK_TIMEOUTS "1 to 3600000 ms"
bool rank_parse_number(struct rank *rank, const char *text);
bool rank_parse_timeout(struct rank *rank, const char *text);

/* Writes an object to a file and frees it; exit status. */
int rank_write_json(const struct rank *rank, const char *path, json_t *object);

#endif
