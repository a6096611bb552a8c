/* SPDX-License-Identifier: BSD-3-Clause */
/* What the packet path knows of bridges: one for each VLAN, of the ports that are configured to be
 * in it. The addresses are in a hash that the control thread writes while workers read (rte_hash,
 * lock-free, with RCU); what workers see for the first time they note for it. */
#ifndef DATAPLANE_L2_BRIDGE_H
#define DATAPLANE_L2_BRIDGE_H

#include <rte_hash.h>

#include "dataplane/l2/mac_table.h"
#include "dataplane/runtime/node.h"

enum { BRIDGE_NOTES = 2048, BRIDGE_NOTES_OF_PORT = 64 };
static const uint64_t BRIDGE_NOTES_NS = 10000000; /* that many in this time, of one port */

/* A frame from this address has come by this port. */
struct bridge_note {
	uint64_t key;  /* mac_key */
	uint16_t port; /* DPDK port id */
	uint16_t reserved[3];
};
static_assert(sizeof(struct bridge_note) == 16, "of words, for rte_ring_elem");

struct bridge {
	const struct fwd_vlans *vlans[RTE_MAX_ETHPORTS]; /* by DPDK port id; NULL: in none */
	struct rte_hash *macs;                           /* mac_key -> bridge_data */
	uint8_t *heard; /* by entry: since control has asked. Workers set it, control clears it. */
	struct rte_ring *notes;
	unsigned n_own;
	uint8_t own[MAC_MAX_PORTS][6]; /* the switch's own addresses */
	uint64_t own_ends[256 / 64];   /* bit per last byte of theirs */
};

/* Data of the hash. */
static inline uintptr_t bridge_data(unsigned entry, uint16_t port, bool pinned)
{
	return (uintptr_t)pinned << 32 | (uintptr_t)port << 16 | entry;
}

static inline unsigned bridge_data_entry(uintptr_t data)
{
	return data & UINT16_MAX;
}

static inline uint16_t bridge_data_port(uintptr_t data)
{
	return (uint16_t)(data >> 16);
}

static inline bool bridge_data_pinned(uintptr_t data)
{
	return data >> 32 & 1;
}

static inline bool bridge_has(const struct bridge *b, uint16_t port, uint16_t vlan)
{
	const struct fwd_vlans *vlans = b->vlans[port];

	return vlans != NULL && (vlans->bit[vlan / 64] >> vlan % 64 & 1);
}

/* Whether a packet that parse has looked at is a bridge's: of whatever kind, also one that it
 * refuses, but for those that have been unpacked from a tunnel. */
static inline bool bridge_takes(
	const struct bridge *b, const struct rte_mbuf *m, const struct meta *meta)
{
	return meta->pkt.l3_off >= ETH_HDR_LEN && m->data_len >= meta->pkt.l3_off &&
	       meta->srv6.passes == 0 && bridge_has(b, m->port, meta->pkt.vlan & WIRE_VLAN_ID);
}

#endif
