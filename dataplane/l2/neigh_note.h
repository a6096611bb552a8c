/* SPDX-License-Identifier: BSD-3-Clause */
/* What workers tell the control thread about neighbours: who is wanted, and what neighbours say of
 * themselves. Few at a time, whatever comes by a port. */
#ifndef DATAPLANE_L2_NEIGH_NOTE_H
#define DATAPLANE_L2_NEIGH_NOTE_H

#include "dataplane/l2/neigh_cache.h"
#include "dataplane/runtime/node.h"

enum { NEIGH_NOTES = 512, NEIGH_NOTES_OF_PORT = 32 };
static const uint64_t NEIGH_NOTES_NS = 10000000; /* that many in this time, of one port */

struct neigh_note {
	struct wire_ip ip;
	struct rte_mbuf *mbuf; /* that waits for ip; NULL: ip has spoken */
	uint16_t port;         /* DPDK port id: where ip is */
	uint16_t vlan;
	uint8_t mac[6];
	uint8_t word;   /* enum neigh_word */
	uint8_t l3_off; /* of mbuf */
	bool hop_taken; /* of mbuf */
};
static_assert(sizeof(struct neigh_note) == 40, "of words, for rte_ring_elem");

/* from: DPDK id of the port that the packet came by. False: there is no room. */
static inline bool neigh_tell(struct worker *w, uint16_t from, const struct neigh_note *note)
{
	struct lport *lp = &w->port[from];

	if (w->now - lp->notes_at >= NEIGH_NOTES_NS) {
		lp->notes_at = w->now;
		lp->notes_left = NEIGH_NOTES_OF_PORT;
	}
	if (w->neigh_notes == NULL || lp->notes_left == 0 ||
		rte_ring_enqueue_elem(w->neigh_notes, (void *)(uintptr_t)note, sizeof(*note)) != 0)
		return false;
	lp->notes_left--;
	wake_call(w->wake);
	return true;
}

#endif
