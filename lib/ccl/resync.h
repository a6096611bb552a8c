/* SPDX-License-Identifier: BSD-3-Clause */
/* A mixed group of devices that cannot leave out PSNs (docs/inc-protocol.md, 3.7). An operation
 * whose data not everybody sends and receives leaves queue pairs at other PSNs than the group's. So
 * before the next one all ranks meet, by a ring of the hosts; rank 0 has the group begin anew on
 * every switch, at the next operation's PSN, and tells the others by that ring; then each takes its
 * queue pair through RESET to that PSN. The control message of the next operation, which comes back
 * only when all have sent theirs, is what they wait for one another by: nothing else follows. */
#ifndef CCL_RESYNC_H
#define CCL_RESYNC_H

#include "lib/ccl/meeting.h"

struct ccl_boot;

/* Rank 0's desk is asked to have the group ready at a PSN on all switches.
 *
 * Before the first collective of a mixed communicator. The ring is connected, and becomes the
 * communicator's, as does the desk, which only rank 0 has. -ENOMEM: nothing has changed. */
int ccl_resync_attach(struct ccl_comm *c, struct ccl_ring *ring, const struct ccl_desk *desk);
void ccl_resync_close(struct ccl_comm *c); /* may have none */

/* Collective over all ranks, when the group is connected: makes the ring, and rank 0's desk. */
int ccl_resync_open(struct ccl_comm *c, const struct ccl_group *group, struct ccl_boot *boot,
	char err[CCL_ERR_LEN]);

/* As ccl_progress, for the ring and what is to be done by it. */
int ccl_resync_progress(struct ccl_comm *c, uint64_t now);
/* The ranks are about it: the ring's clock counts. */
bool ccl_resync_active(const struct ccl_comm *c);
void ccl_resync_describe(const struct ccl_comm *c, struct ccl_info *info);

/* ---- lease_desk.c ---- */

/* A thread that talks to the switches' control sockets. */
int ccl_resync_desk_open(
	const struct ccl_group *group, struct ccl_desk *desk, char err[CCL_ERR_LEN]);

#endif
