/* SPDX-License-Identifier: BSD-3-Clause */
/* What the control thread keeps of neighbours that are learnt: sw_neigh.c works with it,
 * neigh_list.c tells publish.c of it. */
#ifndef DATAPLANE_SW_NEIGH_H
#define DATAPLANE_SW_NEIGH_H

#include "dataplane/sw.h"

struct rte_ring;

/* A packet that waits. */
struct waiting {
	struct rte_mbuf *mbuf;
	uint8_t l3_off;
	bool hop_taken;
};

struct sw_neigh {
	struct rte_ring *notes;
	struct neigh_cache cache;
	struct waiting waiting[NEIGH_ALL_WAITING + 1];
	uint64_t publish_at;
	unsigned n_list;
	struct fwd_learnt list[NEIGH_MAX];
	uint16_t list_of[NEIGH_MAX]; /* entry of list[i] */
};

#endif
