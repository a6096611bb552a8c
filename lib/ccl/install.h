/* SPDX-License-Identifier: BSD-3-Clause */
/* A group on its switches, over their control sockets. Called by rank 0, but for
 * ccl_install_missing. All calls block for a bounded time. */
#ifndef CCL_INSTALL_H
#define CCL_INSTALL_H

#include "lib/ccl/group.h"

struct ccl_talk;

/* What rank 0 remembers of one group on one switch. Endpoint i is child i, the parent is the last
 * one. */
struct ccl_installed {
	bool present, unsure; /* unsure: may be there, its creation was not answered */
	int slot;             /* identifies the group there */
	uint32_t qpn[CCL_MAX_CHILDREN + 1]; /* the switch's, by endpoint */
};

/* Where a rank gets results by RDMA WRITE; len 0: it gets none. */
struct ccl_mr {
	uint64_t addr;
	uint32_t len, rkey;
};

/* One group to be made. */
struct ccl_sub {
	char name[CCL_NAME_LEN];
	enum ccl_prim prim; /* of a single one */
	unsigned root;
	uint32_t start_psn;
	uint32_t *rank_qpn;
	struct ccl_mr *rank_mr; /* by rank */
};

/* All groups of a communicator. */
struct ccl_install {
	const struct ccl_group *group;
	enum ccl_kind kind; /* single or mixed */
	unsigned mtu;
	unsigned n;
	struct ccl_sub *sub;      /* n */
	struct ccl_installed *at; /* n per switch */
	/* By switch: open from ccl_install to ccl_uninstall, which tells the switch that the job
	 * lives. */
	struct ccl_talk *talk;
};

/* 24 bits. */
uint32_t ccl_random_psn(void);

/* Names of the groups: the first has the file's, the others a suffix. -ENAMETOOLONG. */
int ccl_sub_name(
	const struct ccl_group *group, enum ccl_prim prim, unsigned root, char name[CCL_NAME_LEN]);

/* Allocates for the groups of a kind, with names and random first PSNs. -ENOMEM, -ENAMETOOLONG. */
int ccl_install_init(struct ccl_install *in, const struct ccl_group *group, enum ccl_kind kind,
	unsigned collectives, char err[CCL_ERR_LEN]);
void ccl_install_fini(struct ccl_install *in);

/* Creates the groups on every switch, then tells each of them its neighbours' QPNs and starts them.
 * All or nothing: on an error, named in err, what was created is deleted again. A request whose
 * connection breaks is made once more. What cannot be deleted, because the switch does not answer,
 * is taken away by the switch itself as long as it was not started. */
int ccl_install(struct ccl_install *in, char err[CCL_ERR_LEN]);

/* Deletes the groups from every switch that has them; force: without draining, because every queue
 * pair is known to be gone. The last error, if any, in err. */
int ccl_uninstall(struct ccl_install *in, bool force, char err[CCL_ERR_LEN]);

/* To be called now and then while the groups are there: connections that were lost are made again,
 * as far as that goes at once. */
void ccl_install_renew(struct ccl_install *in);

/* The QPN to which a rank connects for a group, at its first-hop switch. */
uint32_t ccl_installed_qpn(const struct ccl_install *in, unsigned sub, unsigned rank);

/* Asks each switch that can be reached from here about a group and adds what it says of waiting
 * ("; switch s0 waits for ranks 2,3") or failure to text. */
void ccl_install_missing(const struct ccl_group *group, const char *name, char *text, size_t cap);

#endif
