/* SPDX-License-Identifier: BSD-3-Clause */
/* Who has said that he is a member of which multicast group: the router's side of IGMP and MLD (RFC
 * 3376 6, RFC 3810 7), without sources. A member that says nothing any more is forgotten; one that
 * leaves is asked for once more, since others may be at the same port. Time is an argument. */
#ifndef DATAPLANE_MCAST_MEMBERSHIP_H
#define DATAPLANE_MCAST_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire/ip.h"

enum { MEMBERSHIP_MAX = 4096, MEMBERSHIP_MAX_PORTS = 64 };

/* ns. RFC 3376 8: twice the interval of general queries and the time for the answer; twice the time
 * for the answer of those that a leaving member leaves behind. */
static const uint64_t MEMBERSHIP_QUERY_EVERY = UINT64_C(125000000000);
static const uint64_t MEMBERSHIP_HOLD = UINT64_C(260000000000);
static const uint64_t MEMBERSHIP_LAST = UINT64_C(2000000000);
enum { MEMBERSHIP_RESPONSE_MS = 10000, MEMBERSHIP_LAST_RESPONSE_MS = 1000 };

struct membership_entry {
	struct wire_ip group;
	uint16_t port; /* index, below MEMBERSHIP_MAX_PORTS */
	uint16_t vlan; /* that the report came in; 0: untagged */
	bool leaving;
	uint64_t until;
};

/* Zero is empty; then set max_per_port. bad, deferred: whoever reads reports and publishes members
 * counts there those that make no sense, and the times that memory was short. */
struct membership {
	unsigned n, max_per_port;
	unsigned n_of[MEMBERSHIP_MAX_PORTS];
	uint64_t joined, left, expired, refused, bad, deferred;
	struct membership_entry entry[MEMBERSHIP_MAX];
};

/* A report: 1 if the member is new, or in another VLAN; 0 if known; -ENOSPC: the port, or the
 * table, has as many groups as it may. */
int membership_join(struct membership *m, uint16_t port, uint16_t vlan, const struct wire_ip *group,
	uint64_t now);
/* He leaves: true if the others at the port should be asked for the group. */
bool membership_leave(
	struct membership *m, uint16_t port, const struct wire_ip *group, uint64_t now);
/* Forgets whose time is over; how many. */
unsigned membership_expire(struct membership *m, uint64_t now);

#endif
