/* SPDX-License-Identifier: BSD-3-Clause */
/* A group whose tree a manager finds (docs/manager.md): each rank asks it on a connection of its
 * own, which is its sign of life as well. All calls may block, for a bounded time. */
#ifndef CCL_MANAGED_H
#define CCL_MANAGED_H

#include "lib/ccl/select.h"

struct ccl_managed;

/* Joins the job and waits until it is placed, for the group's timeout at most; mtu: of the rank's
 * port; able: what its device can do, from which with the other ranks' the mode follows. The group
 * gets tree, mode, M, W and epoch, or, if the network is not for it and it may do without, mode
 * "ring"; why: the manager's sentence. -errno with a reason in err. */
int ccl_managed_join(struct ccl_group *own, unsigned rank, unsigned mtu,
	const struct ccl_ability *able, struct ccl_managed **out, char why[CCL_ERR_LEN],
	char err[CCL_ERR_LEN]);

/* The rank is connected. */
int ccl_managed_ready(struct ccl_managed *m, char err[CCL_ERR_LEN]);

/* Is the job over? -ECONNABORTED, and why; 0: not as far as is known. A manager that has gone is
 * looked for again, and is no failure; nobody who does not answer a dial is waited for. */
int ccl_managed_watch(struct ccl_managed *m, char why[CCL_ERR_LEN]);

/* The communicator goes on by the ring of its hosts, and the job stays there as one that does so:
 * from now on nothing that the manager says ends it. m may be NULL. */
void ccl_managed_resumed(struct ccl_managed *m);

/* The job's turn as the manager last said it. False: nothing new. */
bool ccl_managed_turn(struct ccl_managed *m, struct ccl_turn *turn);

/* done: the rank has finished, else its connection just ends. m may be NULL. */
void ccl_managed_leave(struct ccl_managed *m, bool done);

#endif
