/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator whose groups have memory on the switches only per invocation
 * (docs/inc-protocol.md, 13.3). One collective at a time: rank 0 asks every switch of the tree for
 * the lease, for a while again and again if somebody else has it ("lease_wait_ms"), and tells all
 * ranks through a ring of the hosts what came of it; then all of them go through the switches, or
 * all of them round that ring. When all have finished, rank 0 gives the
 * lease back. So no rank ever takes another way than the others, and nobody has memory that it does
 * not use. */
#ifndef CCL_LEASE_H
#define CCL_LEASE_H

#include "lib/ccl/meeting.h"
#include "lib/ccl/turn.h"

struct ccl_boot;

/* What rank 0's desk is asked: to acquire on all switches or on none, which is answered (-EBUSY:
 * somebody else has it, who will let go), or to release, which is not. A release may be followed by
 * an acquire before it is done; the two happen in that order. */
enum { CCL_LEASE_RELEASE, CCL_LEASE_ACQUIRE };

/* Makes the communicator go by a lease from now on. The ring is connected, and becomes the
 * communicator's, as does the desk, which only rank 0 has. wait_ns: how long a collective may wait
 * for who has the lease, of rank 0's time; 0: not at all. -ENOMEM: nothing has changed. */
int ccl_lease_attach(
	struct ccl_comm *c, struct ccl_ring *ring, const struct ccl_desk *desk, uint64_t wait_ns);
void ccl_lease_close(struct ccl_comm *c); /* may have none */

/* Rank 0: collectives begin in these turns only (a manager's; docs/manager.md), and not near the
 * end of one if they took longer the last time. Anew whenever the manager is heard; a cycle that is
 * longer than a quarter of the timeout is not kept to, for the others wait meanwhile, nor is a turn
 * waited for longer than two cycles, or that quarter. The lease is asked for all the same: whose
 * turn it is, is not what keeps two apart. */
void ccl_lease_set_turn(struct ccl_comm *c, const struct ccl_turn *turn);
/* Rank 0 has something to do at the latest in so many nanoseconds; UINT64_MAX: who knows. */
uint64_t ccl_lease_due(const struct ccl_comm *c, uint64_t now);

/* Collective over all ranks, when the groups are connected: makes the ring, and rank 0's desk. */
int ccl_lease_open(struct ccl_comm *c, const struct ccl_group *group, struct ccl_boot *boot,
	char err[CCL_ERR_LEN]);

/* Goes on with what was issued. The communicator's error, or 0. */
int ccl_lease_go(struct ccl_comm *c);
/* As ccl_progress, for the ring and the lease. */
int ccl_lease_progress(struct ccl_comm *c, uint64_t now);
/* The switches are at work now: what is waited for is theirs. */
bool ccl_lease_in_network(const struct ccl_comm *c);
void ccl_lease_describe(const struct ccl_comm *c, struct ccl_info *info);

/* ---- lease_desk.c ---- */

/* A thread that talks to the switches' control sockets, in an order that all communicators share.
 */
int ccl_lease_desk_open(
	const struct ccl_group *group, struct ccl_desk *desk, char err[CCL_ERR_LEN]);

#endif
