/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents' reports as they are read again and again: one that has not been seen to change for a time
 * is of an agent that is at work no more, and no part of the map. No I/O and no clock. One owner.
 */
#ifndef MAP_FOLLOW_H
#define MAP_FOLLOW_H

#include "lib/map/report.h"

struct map_followed {
	const char *name; /* the caller's */
	json_t *report;   /* the newest; NULL: none so far */
	json_int_t sent;
	bool moves; /* another one has come since the first */
	uint64_t changed_ns;
};

struct map_follow {
	uint64_t stale_ns;
	unsigned n;
	struct map_followed *agent;
};

/* n agents by their names (their files', kept by the caller), at least one; stale_ns: more than
 * every report takes. -ENOMEM. */
int map_follow_init(struct map_follow *f, const char *const *name, unsigned n, uint64_t stale_ns);
void map_follow_fini(struct map_follow *f);

/* What agent i says now; the reference is taken over. NULL: nothing could be read. */
void map_follow_report(struct map_follow *f, unsigned i, json_t *report, uint64_t now_ns);

/* The map of all whose last news is not stale; *m is NULL if there are none. -EINVAL and -ENOMEM as
 * map_join, with its text: then there is no map either. */
int map_follow_join(
	const struct map_follow *f, uint64_t now_ns, struct map **m, char err[MAP_ERR_LEN]);

#endif
