/* SPDX-License-Identifier: BSD-3-Clause */
/* Epochs fence jobs (EPIC 3.4, re-initialised groups): each time a job is set up anew it has a
 * larger number, and whoever still acts for an older one, cut off meanwhile or late, is refused.
 * Known of the last EPOCH_MAX_JOBS jobs; those that have groups are never forgotten. */
#ifndef AGENT_EPOCHS_H
#define AGENT_EPOCHS_H

#include "dataplane/switch.h"
#include "lib/ctl/who.h"

enum { EPOCH_MAX_JOBS = 1024 };

struct epoch_job {
	char name[INC_NAME_LEN];  /* "": nobody's */
	char tenant[CTL_WHO_LEN]; /* whose it is, as the manager said; "": nobody's */
	uint64_t newest, used;    /* used: when it was last named, counted */
	bool ended;               /* newest is over */
};

struct epochs {
	struct epoch_job job[EPOCH_MAX_JOBS];
	uint64_t uses;
	struct epoch_of {
		uint16_t job; /* index + 1; 0: none */
		uint64_t epoch;
	} group[INC_GROUP_SLOTS];
};

/* May a group of this job and epoch be made? -ESTALE: that epoch is over, *newest is the newest;
 * -ENOSPC: EPOCH_MAX_JOBS jobs have groups. Changes nothing. */
int epoch_check(
	const struct epochs *e, struct sw *sw, const char *job, uint64_t epoch, uint64_t *newest);
/* One was made: after epoch_check. job NULL: of no job. */
void epoch_note(struct epochs *e, struct sw *sw, unsigned slot, const char *job, uint64_t epoch);

/* Fails or removes groups of this epoch and older ones; none of them can be made from now on.
 * Returns how many were changed, or -ENOSPC. */
int epoch_end(struct epochs *e, struct sw *sw, const char *job, uint64_t epoch, bool take_away);

/* Whose a job is that is known here; NULL: it is not known, or nobody has said. */
const char *epoch_tenant(const struct epochs *e, const char *job);
void epoch_set_tenant(struct epochs *e, const char *job, const char *tenant);

/* Of a group; NULL: of no job. */
const char *epoch_of(const struct epochs *e, unsigned slot, uint64_t *epoch);
/* Groups of job i. */
unsigned epoch_groups(const struct epochs *e, struct sw *sw, unsigned i, unsigned *failed);

#endif
