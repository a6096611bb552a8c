/* SPDX-License-Identifier: BSD-3-Clause */
/* What communicators have beside their groups by which ranks meet (lease.h, resync.h): a ring, and
 * rank 0's desk. */
#include <stdio.h>

#include "lib/ccl/boot.h"
#include "lib/ccl/group.h"
#include "lib/ccl/install.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/resync.h"

static int make_ring(struct ccl_comm *c, struct ccl_ring **ring, char *err)
{
	const struct ccl_ring_conf conf = {
		.context = c->context,
		.port = c->port,
		.gid_index = c->gid_index,
		.rank = c->rank,
		.n_ranks = c->n_ranks,
		.mtu = c->mtu,
		.m = c->m,
		.w = c->w,
		.timeout_ns = c->timeout_ns,
		.start_psn = ccl_random_psn(),
	};

	return ccl_ring_open(&conf, ring, err);
}

/* Rank 0's desk; what makes both the communicator's. */
typedef int (*desk_fn)(const struct ccl_group *g, struct ccl_desk *desk, char err[CCL_ERR_LEN]);
typedef int (*attach_fn)(struct ccl_comm *c, const struct ccl_group *g, struct ccl_ring *ring,
	const struct ccl_desk *desk);

static int open_meeting(struct ccl_comm *c, const struct ccl_group *g, struct ccl_boot *boot,
	desk_fn open_desk, attach_fn attach, char err[CCL_ERR_LEN])
{
	struct ccl_desk desk = {.fd = -1};
	struct ccl_ring *ring = NULL;
	int rc = make_ring(c, &ring, err);

	if (rc == 0 && c->rank == 0)
		rc = open_desk(g, &desk, err);
	if (rc == 0) {
		rc = attach(c, g, ring, &desk);
		snprintf(err, CCL_ERR_LEN, "%s", rc ? "out of memory" : "");
	}
	if (rc) {
		ccl_boot_abort(boot, err);
		if (desk.close)
			desk.close(desk.arg);
		ccl_ring_close(ring);
		return rc;
	}
	/* Its error has been told to the others; what was made is the communicator's. */
	return ccl_ring_meet(ring, boot, NULL, NULL, err);
}

static int attach_lease(struct ccl_comm *c, const struct ccl_group *g, struct ccl_ring *ring,
	const struct ccl_desk *desk)
{
	const int rc = ccl_lease_attach(c, ring, desk, g->lease_wait_ms * 1000000ull);

	if (rc == 0)
		ccl_lease_set_turn(c, &g->turn);
	return rc;
}

static int attach_resync(struct ccl_comm *c, const struct ccl_group *g, struct ccl_ring *ring,
	const struct ccl_desk *desk)
{
	(void)g;
	return ccl_resync_attach(c, ring, desk);
}

int ccl_lease_open(
	struct ccl_comm *c, const struct ccl_group *g, struct ccl_boot *boot, char err[CCL_ERR_LEN])
{
	return open_meeting(c, g, boot, ccl_lease_desk_open, attach_lease, err);
}

int ccl_resync_open(
	struct ccl_comm *c, const struct ccl_group *g, struct ccl_boot *boot, char err[CCL_ERR_LEN])
{
	return open_meeting(c, g, boot, ccl_resync_desk_open, attach_resync, err);
}
