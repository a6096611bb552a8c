/* SPDX-License-Identifier: BSD-3-Clause */
/* Table acl: which packets may come in, and with which DSCP they go on. An immutable object made of
 * its rows and swapped in with the other tables (RCU); only the counters are written, by each
 * worker its own. */
#ifndef DATAPLANE_ACL_H
#define DATAPLANE_ACL_H

#include "dataplane/match/ternary.h"
#include "dataplane/row_hits.h"
#include "lib/wire/frame.h"

extern const struct table_desc acl_table;

/* In the order of the table's. */
enum acl_action { ACL_PERMIT, ACL_DENY, ACL_DSCP };

/* What a packet is looked up with, by family; numbers in network order. */
struct acl_key_rest {
	uint8_t protocol, unused[3];
	uint8_t sport[2], dport[2];
	uint8_t port[2], dscp, has_ports;
	uint8_t vlan[2], unused2[2];
};
struct acl_key4 {
	struct acl_key_rest rest;
	uint8_t src[4], dst[4];
};
struct acl_key6 {
	struct acl_key_rest rest;
	uint8_t src[16], dst[16];
};

struct acl_rule {
	uint8_t action; /* enum acl_action */
	uint8_t dscp;   /* of ACL_DSCP */
};

struct acl {
	struct ternary *by4, *by6;
	struct acl_rule *rule;   /* by row */
	struct table_entry *row; /* as they were written */
	struct row_hits hits;
};

/* *acl is NULL if there are no rows. -EINVAL if a row makes no sense (err->msg says which), -ENOSPC
 * if too many cross one another, -ENOMEM. */
int acl_create(const struct table_rows *rows, unsigned n_workers, struct acl **acl,
	struct table_error *err);
void acl_destroy(struct acl *acl);

/* As row_hits_inherit. Both may be NULL. */
void acl_inherit(struct acl *to, const struct acl *from);

/* False: there is no such row. acl may be NULL. */
bool acl_hits(const struct acl *acl, unsigned row, uint64_t *hits);

/* Whether packets of such a kind are looked up: all of IP but neighbour discovery, without which a
 * row for "any" would end IPv6 and not IPv4, whose ARP is not IP. */
static inline bool acl_is_for(const struct wire_pkt *pkt)
{
	return pkt->ip_ver != 0 && pkt->kind != WIRE_ND_NS && pkt->kind != WIRE_ND_NA;
}

/* The key of such a packet, which has come by this port (DPDK's id). */
void acl_key4(
	struct acl_key4 *key, const uint8_t *frame, const struct wire_pkt *pkt, uint16_t port);
void acl_key6(
	struct acl_key6 *key, const uint8_t *frame, const struct wire_pkt *pkt, uint16_t port);

#endif
