/* SPDX-License-Identifier: BSD-3-Clause */
/* A set-up: what all ranks have (setup.c), rank 0's part (setup_lead.c), and what each makes of its
 * plan (setup_join.c). */
#ifndef CCL_SETUP_PRIV_H
#define CCL_SETUP_PRIV_H

#include "lib/ccl/boot.h"
#include "lib/ccl/comm.h"
#include "lib/ccl/install.h"
#include "lib/ccl/managed.h"
#include "lib/ccl/ring.h"
#include "lib/ccl/rings.h"
#include "lib/ccl/select.h"

struct ccl_setup {
	const struct ccl_group *group; /* = &own */
	struct ccl_group
		own; /* as given, but for what is chosen here: flags (its own), stall_rnr */
	unsigned rank;
	struct ccl_comm *place; /* of ccl_conn */
	struct ccl_boot *boot;
	struct ccl_comm *comm;       /* until it is the caller's */
	struct ccl_managed *managed; /* NULL: the file names the tree */
	char placed[CCL_ERR_LEN];    /* what the manager says of it */
	bool beside;                 /* multicast, when the rest is there */
	bool fallback;               /* the switches know nothing of it */
	bool resync;                 /* queue pairs begin anew (resync.h) */
	struct ccl_install in;       /* rank 0 */
	struct ccl_rings *rings;     /* rank 0, NetReduce; NULL: none yet */
	struct ccl_ability *ranks;   /* rank 0 */
	int64_t renewed_ms;          /* rank 0: when the switches were last looked after */
};

/* As ccl_comm_create; place: of ccl_conn. */
int ccl_setup_make(const struct ccl_group *g, unsigned rank, struct ccl_comm *place,
	struct ccl_comm **comm, char err[CCL_ERR_LEN]);
/* Of one that has failed, after its communicator's queue pairs are gone: the others hear why. NULL:
 * nothing to do. */
void ccl_setup_end(struct ccl_setup *s, const char *why);

/* Queue pairs for the groups that rank 0 has chosen. */
int ccl_setup_join(struct ccl_setup *s, const json_t *plan, char *err);
/* Their numbers, as rank 0 is told. */
json_t *ccl_setup_qpns(const struct ccl_comm *c);

/* Rank 0: collects, installs, answers. Errors have been told to the others. opened: rank 0's own
 * part is there, else err says why not and the others wait to hear it. */
int ccl_setup_lead(struct ccl_setup *s, json_t *mine, bool opened, json_t **own, char *err);

#endif
