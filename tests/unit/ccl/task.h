/* SPDX-License-Identifier: BSD-3-Clause */
/* One collective on all ranks at once: arguments drawn at random, buffers, what must come out. */
#ifndef TESTS_TASK_H
#define TESTS_TASK_H

#include "lib/ccl/ccl.h"

enum { TASK_MAX_RANKS = 32 };

struct task {
	unsigned n_ranks;
	enum ccl_collective kind;
	enum reduce_dtype dtype;
	enum reduce_op op;
	unsigned root;
	size_t count, size; /* of a block: elements, bytes */
	bool in_place, registered;
	size_t send_len, recv_len;
	uint8_t *send[TASK_MAX_RANKS], *recv[TASK_MAX_RANKS], *input[TASK_MAX_RANKS];
	struct ccl_req req[TASK_MAX_RANKS];
};

/* A number below n; rng is the state. */
unsigned task_random(uint64_t *rng, unsigned n);

/* kind: an enum ccl_collective, or -1 for any; blocks of about max_bytes at most. Exact types only:
 * integers, or no reduction. */
void task_make(struct task *t, uint64_t *rng, unsigned n_ranks, int kind, size_t max_bytes);
/* One of int32. in_place: not for Broadcast, ReduceScatter and AllGather on a ring. */
void task_make_exact(struct task *t, uint64_t *rng, unsigned n_ranks, enum ccl_collective kind,
	enum reduce_op op, uint64_t count, unsigned root, bool in_place);
void task_free(struct task *t);

/* Registers or deregisters buffers, if the task says so. 0 or the first error. */
int task_register(const struct task *t, struct ccl_comm *const *comm, bool on);

int task_start(struct task *t, struct ccl_comm *const *comm, unsigned rank);
bool task_done(const struct task *t, struct ccl_comm *const *comm);

/* true if every result is right and nothing else was touched; else says what is wrong. */
bool task_right(const struct task *t, char *why, size_t cap);
bool task_right_at(const struct task *t, unsigned rank, char *why, size_t cap);

#endif
