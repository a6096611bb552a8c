/* SPDX-License-Identifier: BSD-3-Clause */
/* A NetReduce ring on its switches, over their control sockets: the steps that rings.h makes of all
 * rings of a job, each with every switch of the ring. For rank 0, between the gathering of the
 * addresses and connecting (ccl_ring_between). All calls block for a bounded time. */
#ifndef CCL_RING_INSTALL_H
#define CCL_RING_INSTALL_H

#include "lib/ccl/group.h"
#include "lib/ccl/ring.h"
#include "lib/ccl/talk.h"

/* What rank 0 remembers of one switch. */
struct ccl_ring_installed {
	bool present, unsure;                /* as of struct ccl_installed */
	int ring;                            /* identifies the ring there */
	uint32_t parent_qpn;                 /* the switch's own, for its parent */
	uint32_t leaf_qpn[CCL_MAX_CHILDREN]; /* and for each child that is a switch */
	unsigned input[CCL_MAX_CHILDREN];
	struct ccl_talk *talk; /* the job's, which all its rings on that switch share */
};

/* For ccl_ring_conf.ring_id: of a ring's name, so that it is the same at all ranks that read the
 * same file. */
uint16_t ccl_ring_id(const char *name);

/* Creates the ring on every switch, until one refuses, which err names. all: addresses by rank; at:
 * one per switch, all 0 but for talk. */
int ccl_ring_create(const struct ccl_group *group, const struct ccl_ring_address *all, unsigned mtu,
	struct ccl_ring_installed *at, char err[CCL_ERR_LEN]);

/* Tells each switch its neighbours' QPNs and starts the ring there. */
int ccl_ring_activate(
	const struct ccl_group *group, const struct ccl_ring_installed *at, char err[CCL_ERR_LEN]);

/* Deletes it from every switch that has it, or may have it. The last error, if any, in err. */
int ccl_ring_delete(
	const struct ccl_group *group, struct ccl_ring_installed *at, char err[CCL_ERR_LEN]);

/* Asks each switch that can be reached from here and adds what it says of waiting ("; switch s0
 * waits for ranks 2,3") or failure to text. */
void ccl_ring_missing(const struct ccl_group *group, char *text, size_t cap);

#endif
