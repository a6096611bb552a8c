/* SPDX-License-Identifier: BSD-3-Clause */
/* What a communicator has beside its groups by which its ranks meet (lease.h, resync.h): a ring of
 * the hosts, by which they wait for one another and are told, and rank 0's desk, its way to the
 * switches. */
#ifndef CCL_MEETING_H
#define CCL_MEETING_H

#include "lib/ccl/comm.h"
#include "lib/ccl/ring.h"

enum { CCL_DESK_WHY = 240 };

/* Nothing of it blocks: a desk works while it is not looked at. */
struct ccl_desk {
	void *arg;
	/* What is to be done: lease.h and resync.h say what the number means. */
	void (*ask)(void *arg, uint32_t what);
	/* Is it decided? 1, and *rc is 0: it is done on all switches; -errno: not, and why. */
	int (*answer)(void *arg, int *rc, char why[CCL_DESK_WHY]);
	int fd; /* readable when there is an answer to take; -1: none */
	void (*close)(void *arg);
};

struct ccl_meeting {
	struct ccl_ring *ring;
	struct ccl_desk desk; /* rank 0's; else of nothing */
	struct ccl_req req;   /* of the ring: the last meeting or telling */
	bool waits;           /* for the desk's answer */
};

/* m becomes the communicator's: it has none. The ring is connected, and its as well, as is the
 * desk, which only rank 0 has. */
void ccl_meeting_attach(struct ccl_comm *c, struct ccl_meeting *m, struct ccl_ring *ring,
	const struct ccl_desk *desk);
/* Of one that was attached: the desk and the ring, not m. */
void ccl_meeting_close(struct ccl_comm *c);

/* As ccl_ring_progress; the communicator fails with the ring, here and below. */
int ccl_meeting_progress(struct ccl_comm *c, uint64_t now);
/* All ranks have come here. Rank 0 tells len bytes of word, which stay. Both are over when
 * ccl_meeting_over says so. 0, or the communicator's error. */
int ccl_meeting_gather(struct ccl_comm *c);
int ccl_meeting_tell(struct ccl_comm *c, void *word, size_t len);
bool ccl_meeting_over(const struct ccl_comm *c);
/* The communicator fails with the ring. */
int ccl_meeting_fail(struct ccl_comm *c, int rc);

/* Rank 0, of its desk. waits: an answer is to come. */
void ccl_meeting_ask(struct ccl_comm *c, uint32_t what, bool waits);
bool ccl_meeting_answered(struct ccl_comm *c, int *rc, char why[CCL_DESK_WHY]);
int ccl_meeting_fd(const struct ccl_comm *c); /* while an answer is waited for; else -1 */

#endif
