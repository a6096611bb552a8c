/* SPDX-License-Identifier: BSD-3-Clause */
/* What workers tell the control thread of LLDP: a frame's contents, a few of a port at a time by
 * each of them, whatever comes by it. */
#ifndef DATAPLANE_L2_LLDP_NOTE_H
#define DATAPLANE_L2_LLDP_NOTE_H

#include <rte_ring_elem.h>

#include "dataplane/runtime/node.h"
#include "lib/wire/lldp.h"

/* The control thread looks ten times a second. */
enum { LLDP_NOTES = 128, LLDP_NOTES_OF_PORT = 8 };
static const uint64_t LLDP_NOTES_NS = 1000000000; /* that many in this time, of one port */

struct lldp_note {
	uint32_t port; /* DPDK port id */
	struct wire_lldp says;
};
static_assert(sizeof(struct lldp_note) % 4 == 0, "of words, for rte_ring_elem");

/* False: there is no room. */
static inline bool lldp_tell(struct worker *w, const struct lldp_note *note)
{
	struct lport *lp = &w->port[note->port];

	if (w->now - lp->lldp_at >= LLDP_NOTES_NS) {
		lp->lldp_at = w->now;
		lp->lldp_left = LLDP_NOTES_OF_PORT;
	}
	if (lp->lldp_left == 0 ||
		rte_ring_enqueue_elem(w->lldp_notes, (void *)(uintptr_t)note, sizeof(*note)) != 0)
		return false;
	lp->lldp_left--;
	return true;
}

#endif
