/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of lib/mgr/place.c and frontier.c. */
#ifndef MGR_PLACE_PRIV_H
#define MGR_PLACE_PRIV_H

#include "lib/mgr/policy.h"

struct mgr_place {
	struct mgr_graph *g;
	struct mgr_book *b;
	struct mgr_finder *f;
	unsigned *root, n_roots, root_room; /* switches that are up, by ascending tier */
	uint64_t synced;                    /* with this version of the graph, plus one */
	uint64_t *width;                    /* scratch of the frontier */
	unsigned width_room;
};

#endif
