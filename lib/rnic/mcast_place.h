/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: what comes for a window (mcast_window.c). */
#ifndef RNIC_MCAST_PLACE_H
#define RNIC_MCAST_PLACE_H

#include "lib/rnic/device.h"
#include "lib/rnic/mcast_window.h"
#include "lib/rnic/qp.h"

/* As opened. */
struct mcast_part {
	struct wire_ip ip;
	uint32_t qpn;
	uint32_t first;          /* immediate data of the first packet */
	uint32_t start;          /* its number, counted from the first part's first packet */
	uint32_t n, last;        /* packets; the last one */
	uint32_t last_len, mark; /* bytes of the last one; bit of the first one */
	uint64_t va;
};

struct mcast_window {
	uint32_t key, mask, chunk;
	uint32_t id_mask, id;    /* of the other bits */
	struct mcast_part *last; /* whose the last packet was: most often also the next */
	uint8_t *memory;         /* as translated at mr_changes */
	uint64_t mr_changes;
	struct rnic_mcast_marks marks;
	uint32_t left; /* until somebody is told */
	uint32_t lkey;
	uint64_t addr, len;
	unsigned n_parts;
	struct mcast_part part[];
};

/* The window's memory is there: regions may have gone since the last packet. */
bool mcast_translate(const struct rnic_qp *qp, struct mcast_window *w);
static inline bool mcast_has_memory(const struct rnic_qp *qp, struct mcast_window *w)
{
	return (w->mr_changes == qp->rnic->mr_changes && w->memory != NULL) ||
	       mcast_translate(qp, w);
}

/* A packet of the group, for the open window of the queue pair: 0 or the drop reason. The caller
 * has looked at what any packet of its kind is refused for: its opcode, which has immediate data,
 * the window's memory, and of WRITEs key, access and length.
 * Each: of WRITEs that are not marked. */
unsigned mcast_place_write(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt);
unsigned mcast_place_each(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt);
unsigned mcast_place_datagram(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt);
/* None any more. Workers are held. */
void mcast_window_close(struct rnic_qp *qp);

#endif
