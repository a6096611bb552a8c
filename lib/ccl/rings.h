/* SPDX-License-Identifier: BSD-3-Clause */
/* All NetReduce rings of a job on their switches: one, or several in parallel, over one
 * conversation with each switch. For rank 0; all calls block for a bounded time. */
#ifndef CCL_RINGS_H
#define CCL_RINGS_H

#include "lib/ccl/group.h"
#include "lib/ccl/ring_install.h"

struct ccl_rings;

/* What is to be made of a group, which stays the caller's and must not change meanwhile: its name,
 * owner and flags are the rings'. -ENOMEM. */
int ccl_rings_plan(const struct ccl_group *group, struct ccl_rings **rings, char err[CCL_ERR_LEN]);
void ccl_rings_free(struct ccl_rings *rings); /* NULL: nothing */

/* all: addresses by the job's ranks, each in the ring that it is in. All rings or none: they are
 * started when the switches have all of them; on an error, named in err, what was created is
 * deleted again, and err says so where that fails. */
int ccl_rings_install(struct ccl_rings *rings, const struct ccl_ring_address *all, unsigned mtu,
	char err[CCL_ERR_LEN]);
/* Deletes what there is, the last error, if any, in err; as ccl_install_renew. NULL: nothing. */
int ccl_rings_uninstall(struct ccl_rings *rings, char err[CCL_ERR_LEN]);
void ccl_rings_renew(struct ccl_rings *rings);

/* As ccl_ring_missing, of the ring that a rank is in. */
void ccl_rings_missing(const struct ccl_group *group, unsigned rank, char *text, size_t cap);

/* For ccl_ring_conf.ring_id of the ring that a rank is in. */
uint16_t ccl_rings_id(const struct ccl_group *group, unsigned rank);

#endif
