/* SPDX-License-Identifier: BSD-3-Clause */
/* What communicators have beside their groups by which ranks meet (lease.h, resync.h): a ring, and
 * rank 0's desk. */
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

int ccl_lease_open(
	struct ccl_comm *c, const struct ccl_group *g, struct ccl_boot *boot, char err[CCL_ERR_LEN])
{
	struct ccl_lease_desk desk = {.fd = -1};
	struct ccl_ring *ring = NULL;
	int rc = make_ring(c, &ring, err);

	if (rc == 0 && c->rank == 0)
		rc = ccl_lease_desk_open(g, &desk, err);
	if (rc == 0)
		rc = ccl_lease_attach(c, ring, &desk, g->lease_wait_ms * 1000000ull);
	if (rc) {
		ccl_boot_abort(boot, err);
		if (desk.close)
			desk.close(desk.arg);
		ccl_ring_close(ring);
		return rc;
	}
	ccl_lease_set_turn(c, &g->turn);
	/* Its error has been told to the others; what was made is the communicator's. */
	return ccl_ring_meet(ring, boot, NULL, NULL, err);
}

int ccl_resync_open(
	struct ccl_comm *c, const struct ccl_group *g, struct ccl_boot *boot, char err[CCL_ERR_LEN])
{
	struct ccl_resync_desk desk = {.fd = -1};
	struct ccl_ring *ring = NULL;
	int rc = make_ring(c, &ring, err);

	if (rc == 0 && c->rank == 0)
		rc = ccl_resync_desk_open(g, &desk, err);
	if (rc == 0)
		rc = ccl_resync_attach(c, ring, &desk);
	if (rc) {
		ccl_boot_abort(boot, err);
		if (desk.close)
			desk.close(desk.arg);
		ccl_ring_close(ring);
		return rc;
	}
	return ccl_ring_meet(ring, boot, NULL, NULL, err);
}
