/* SPDX-License-Identifier: BSD-3-Clause */
/* Leases: ranges of aggregation memory that several groups share, one tenant at a time (EPIC,
 * section 6: contention and fallback). A range is reserved as long as some group names its lease,
 * and is as large as the largest tenant needs: none that is admitted can be refused for want of
 * room later. Control plane only. */
#ifndef DATAPLANE_LEASES_H
#define DATAPLANE_LEASES_H

#include "dataplane/switch.h"

struct sw_lease {
	char name[INC_NAME_LEN]; /* "": the entry is free */
	uint64_t id;             /* unlike that of any other lease, also in the same entry */
	uint64_t off;            /* the range, or INC_NO_ARENA */
	size_t bytes;
	unsigned members;           /* groups that name it, until their blocks are freed */
	char holder[INC_NAME_LEN];  /* tenant, "": nobody */
	unsigned bound;             /* its groups that have memory now */
	uint64_t held_off;          /* the range as it was when it was acquired */
	bool releasing, taken_back; /* the holder is to let go; has been made to */
	uint64_t since_ns;
	struct sw_lease_counters count;
};

/* What a group's slot says of its lease. */
struct sw_lease_member {
	uint8_t lease; /* entry + 1; 0: none */
	char tenant[INC_NAME_LEN];
	uint64_t limit_ns;
	size_t bytes;
};

struct sw_leases {
	struct sw_lease lease[SW_MAX_LEASES];
	uint64_t next_id;
};

struct sw_leases *sw_leases_create(void);
void sw_leases_destroy(struct sw_leases *leases);

/* A group of a checked spec that takes `bytes` is about to be made: finds or makes its lease and
 * enlarges the range if need be. sw_lease_leave undoes it, once no worker sees the group. */
int sw_lease_join(struct sw *sw, const struct inc_group_spec *spec, size_t bytes,
	struct sw_lease_member *member, char err[SW_ERR_LEN]);
void sw_lease_leave(struct sw *sw, const struct sw_lease_member *member, struct inc_group *g);

/* Ends what is to be ended; takes back what its holder does not use. */
void sw_leases_tick(struct sw *sw, uint64_t now);

#endif
