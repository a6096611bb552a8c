/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator whose groups fail goes on by a ring of its hosts ("resume" of a group file).
 *
 * A rank may be done with a collective, and its program have written over the buffers, while
 * another rank still waits for it. So each rank keeps, of what others may not have finished, what
 * they would need: of an AllReduce its result, else what it has contributed. A result may not be
 * computed anew: the ring adds floats in another order, and ranks would differ. What is in flight
 * is repeated from the program's own buffers, which are the communicator's until then; only what a
 * result would overwrite (in place) is copied when it is issued.
 *
 * How long: a message that comes back from the switches was sent by all ranks, and none sends it
 * before it has finished all but the W messages before. This holds for one group into which every
 * rank sends: a mixed one, or one for AllReduce and Barrier alone.
 *
 * The core, here and in resume.c, does not block and knows no sockets; ranks meet in resume_meet.c.
 * After a failure: ccl_resume_standing at every rank, ccl_resume_decide at one, ccl_resume_over
 * with its verdict and a connected ring at all of them. Errors are negative errno. */
#ifndef CCL_RESUME_H
#define CCL_RESUME_H

#include "lib/ccl/comm.h"

struct ccl_resume;

enum { CCL_RESUME_MAX_KEPT = 1024 + CCL_MAX_QUEUED, CCL_RESUME_WHY = 256 };

/* From now on; after ccl_join, before the first collective. -EOPNOTSUPP: more than one group;
 * -ENOMEM. */
int ccl_resume_enable(struct ccl_comm *c);
void ccl_resume_close(struct ccl_comm *c); /* may have none */

/* ---- for coll.c and engine.c ---- */

/* A collective is about to be issued: -ENOMEM, and it cannot be, here alone. */
int ccl_resume_keep(struct ccl_comm *c, const struct ccl_coll *coll);
/* An operation is finished; before ccl_part_done of its last one. */
void ccl_resume_finished(struct ccl_memb *mb, const struct ccl_op *op);
/* On the ring, with collectives of before to be repeated yet: new ones wait for that. */
bool ccl_resume_pending(const struct ccl_comm *c);
/* This one is not on the ring yet. */
bool ccl_resume_holds(const struct ccl_comm *c, uint64_t number);
/* The last one that was issued was given to the ring at once. */
void ccl_resume_handed(struct ccl_comm *c);
/* Goes on with them: 0 or the ring's error. */
int ccl_resume_go_on(struct ccl_comm *c);

/* ---- after a failure ---- */

/* It will not be resumed: a process is gone. */
void ccl_resume_deny(struct ccl_comm *c);
/* It has failed in a way that another way may mend. */
bool ccl_resume_may(const struct ccl_comm *c);

/* Where a rank stands. Collectives below `done` are finished here, those below `issued` begun;
 * digest[i] says what collective kept + i is. */
struct ccl_standing {
	bool leaving; /* is about to end, and needs nothing any more */
	uint64_t kept, done, issued;
	unsigned n; /* issued - kept */
	uint32_t digest[CCL_RESUME_MAX_KEPT];
};
void ccl_resume_standing(const struct ccl_comm *c, struct ccl_standing *standing);

/* What all ranks do: repeat from `first` on; but AllReduces below `known` are told by rank
 * `source`, who has their results. */
struct ccl_verdict {
	uint64_t first, known;
	unsigned source;
};
/* -EPROTO: ranks have issued different collectives; -ENODATA: one has not kept enough. */
int ccl_resume_decide(const struct ccl_standing *const *all, unsigned n, struct ccl_verdict *v,
	char err[CCL_ERR_LEN]);

/* Can this rank do so: has it kept, and not finished, what it is to repeat? */
bool ccl_resume_can(const struct ccl_comm *c, const struct ccl_verdict *v);

/* Leaves the groups for a connected ring, which becomes the communicator's, and repeats what the
 * verdict says: ccl_progress goes on with it. -EPROTO, or -errno of registering memory with the
 * ring: the communicator stays failed, and the ring the caller's. */
int ccl_resume_over(struct ccl_comm *c, struct ccl_ring *ring, const struct ccl_verdict *v);

bool ccl_resume_is_over(const struct ccl_comm *c);

/* How it is: kind, counts, selection. */
void ccl_resume_describe(const struct ccl_comm *c, struct ccl_info *info);

/* ---- idle.c, blocking ---- */

/* Until nothing is to be repeated for others any more. */
int ccl_drain(struct ccl_comm *c);

/* ---- resume_meet.c, blocking ---- */

/* In a blocking call that has met the communicator's failure: true if it goes on by the ring. All
 * ranks come here within the group's timeout, or it stays as it is, and ccl_error says why. */
bool ccl_resume_meet(struct ccl_comm *c);
/* Before the end: returns when all ranks want to end, having helped those that do not yet. */
int ccl_resume_leave(struct ccl_comm *c, char err[CCL_ERR_LEN]);

#endif
