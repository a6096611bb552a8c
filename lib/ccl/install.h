/* SPDX-License-Identifier: BSD-3-Clause */
/* A group on its switches, over their control sockets. Called by rank 0, but for
 * ccl_install_missing. All calls block for a bounded time. */
#ifndef CCL_INSTALL_H
#define CCL_INSTALL_H

#include "lib/ccl/group.h"

/* What rank 0 remembers of one switch. Endpoint i is child i, the parent is the last one. */
struct ccl_installed {
	bool present;
	int slot;                           /* identifies the group there */
	uint32_t qpn[CCL_MAX_CHILDREN + 1]; /* the switch's, by endpoint */
};

struct ccl_install_params {
	const uint32_t *rank_qpn;
	unsigned mtu;
	uint32_t start_psn;
};

/* Creates the group on every switch, then tells each of them its neighbours' QPNs and starts it.
 * All or nothing: on an error, named in err, what was created is deleted again. inst: one per
 * switch. */
int ccl_install(const struct ccl_group *group, const struct ccl_install_params *params,
	struct ccl_installed *inst, char err[CCL_ERR_LEN]);

/* Deletes the group from every switch that has it; force: without draining, because every queue
 * pair is known to be gone. The last error, if any, in err. */
int ccl_uninstall(const struct ccl_group *group, struct ccl_installed *inst, bool force,
	char err[CCL_ERR_LEN]);

/* The QPN to which a rank connects, at its first-hop switch. */
uint32_t ccl_installed_qpn(
	const struct ccl_group *group, const struct ccl_installed *inst, unsigned rank);

/* Asks each switch that can be reached from here about the group and adds what it says of waiting
 * ("; switch s0 waits for ranks 2,3") or failure to text. */
void ccl_install_missing(const struct ccl_group *group, char *text, size_t cap);

#endif
