/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that one worker has received and another has to work on, for it owns their group or ring
 * (inc_table.owner). A ring for each pair of workers, of one writer and one reader: packets that
 * came by one port in an order are handed over in it. The new worker parses them once more:
 * metadata belongs to the turn and worker that made it. What finds its ring full is lost, as
 * handoff_full. */
#ifndef DATAPLANE_HANDOFF_H
#define DATAPLANE_HANDOFF_H

#include "dataplane/runtime/worker.h"

enum {
	HANDOFF_RING = 512, /* packets, a power of two */
	HANDOFF_BURST =
		128, /* taken in a turn at most: ports have the rest of WORKER_MAX_PACKETS */
};

/* Rings between n workers, nothing for one. -ENOMEM. */
int handoff_create(struct worker *const *workers, unsigned n);
/* Frees what is in them, too. No worker runs any more. */
void handoff_destroy(struct worker *const *workers, unsigned n);

/* For the owner: up to HANDOFF_BURST packets, from all workers in turn. */
unsigned handoff_take(struct worker *w, struct rte_mbuf **out);

/* Does another worker have to work on this slot's group or ring? Then the packet's next node is
 * handoff. */
static inline bool handoff_needed(const struct worker *w, unsigned slot, struct meta *meta)
{
	const unsigned owner = inc_owner(w->inc, slot);

	if (likely(owner == w->index))
		return false;
	meta->owner = (uint16_t)owner;
	return true;
}

#endif
