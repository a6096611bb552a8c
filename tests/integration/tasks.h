/* SPDX-License-Identifier: BSD-3-Clause */
/* Random collectives (tests/unit/ccl/task.h) on a fabric, whether its ranks are joined by groups or
 * in a ring: issued, waited for, checked. What goes wrong fails the test, with its seed. */
#ifndef TESTS_TASKS_H
#define TESTS_TASKS_H

#include "tests/integration/fabric.h"
#include "tests/unit/ccl/task.h"

/* A rank's part. */
int fab_start(struct fabric *fab, struct task *t, unsigned rank);
/* All ranks' at once, which must take it. */
void fab_start_all(struct fabric *fab, struct task *t);
bool fab_task_done(struct fabric *fab, const struct task *t);
/* Waits for it, checks it, within an hour of virtual time, and frees it. */
void fab_finish(struct fabric *fab, struct task *t);
/* All of one of int32, op SUM or, in place if it is AllReduce, MAX. */
void fab_exact(
	struct fabric *fab, enum ccl_collective kind, uint64_t count, unsigned root, bool max);

struct tasks {
	struct fabric *fab;
	uint64_t rng;
	size_t max_bytes; /* of a block */
	unsigned done;
};

enum { FAB_BATCH = 6 };

/* Issues n collectives at once, up to FAB_BATCH, the ranks at different times, and waits for all of
 * them. kind: an enum ccl_collective, or -1 for any that the fabric can do. */
void fab_batch(struct tasks *w, unsigned n, int kind);

/* One of each kind while nothing is lost, then n in all, in batches, on links with these faults. */
void fab_sequence(struct tasks *w, const struct fab_faults *faults, unsigned n);

/* One of this kind, of several hundred kilobytes, until it is half-way. */
void fab_begin(struct fabric *fab, struct task *t, int kind);
/* Within the fabric's timeout every rank but one knows that it has failed and at which peer, or has
 * its part done. */
void fab_all_failed(struct fabric *fab, const struct task *t, unsigned but);

/* A link is pulled in the middle of a collective of this kind, for so long: host 1's, or that of
 * the last switch to its parent. Then it goes on; or, if it may, fails at all ranks. Destroys
 * the fabric. */
void fab_pull(struct fabric *fab, int kind, bool uplink, uint64_t down_ns, bool may_fail);

#endif
