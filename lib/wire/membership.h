/* SPDX-License-Identifier: BSD-3-Clause */
/* What hosts and routers of a link tell each other about members of multicast groups: IGMP 1 to 3
 * (RFC 1112, 2236, 3376) and MLD 1 and 2 (RFC 2710, 3810), as one. Sources are not told apart: who
 * wants any of a group's sources is a member. */
#ifndef WIRE_MEMBERSHIP_H
#define WIRE_MEMBERSHIP_H

#include "lib/wire/ip.h"

enum wire_membership_kind { MEMBERSHIP_QUERY, MEMBERSHIP_REPORT };

struct wire_membership {
	uint8_t kind; /* enum wire_membership_kind */
	struct wire_ip src;
	/* A query's: zero if it is general; and how long answers may take. */
	struct wire_ip group;
	uint32_t max_response_ms;
	/* A report's records that have not been read yet. */
	uint16_t left;
	bool one; /* of a version with one group and no records: it is in group, joins below */
	bool joins;
	bool ip4;
	const uint8_t *at;
};

/* Reads len bytes from the IP header on; what is behind the IP packet is ignored. 0, or -EINVAL:
 * not such a message, or a bad one (a length, a checksum, a hop limit other than 1, no router alert
 * where the version wants one (MLD, IGMP 3), a source that is no link-local address (MLD), a group
 * that is none). Records of a report are all checked before. at refers to l3. */
int wire_membership_parse(const uint8_t *l3, size_t len, struct wire_membership *m);

/* The next group of a report and whether its sender is a member of it from now on. Records that
 * change nothing of that (BLOCK) are passed over. False: there are no more. */
bool wire_membership_next(struct wire_membership *m, struct wire_ip *group, bool *joins);

enum { WIRE_MEMBERSHIP_LEN = 14 + 40 + 8 + 28 }; /* the longest frame that is built, and more */

/* An IGMP 3 or MLD 2 report on one group: joins, or leaves. src: an IPv4 address, or an IPv6
 * link-local one. The frame's length, -ENOSPC, or -EINVAL: the families differ. */
int wire_build_membership_report(uint8_t *out, size_t cap, const uint8_t smac[6],
	const struct wire_ip *src, const struct wire_ip *group, bool joins);
/* A query: of all groups if group is zero (of the family of src). */
int wire_build_membership_query(uint8_t *out, size_t cap, const uint8_t smac[6],
	const struct wire_ip *src, const struct wire_ip *group, uint32_t max_response_ms);

#endif
