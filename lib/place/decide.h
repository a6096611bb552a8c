/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a packet that arrives, from headers alone: figure 8 of ZeroNIC (OSDI '24), 3.2,
 * as a pure function. Reliable connections, MRC and streams ask it; any thread. */
#ifndef PLACE_DECIDE_H
#define PLACE_DECIDE_H

#include <stdint.h>

enum place_verdict {
	PLACE_ACCEPT, /* its payload goes to its final address now */
	PLACE_DROP,
	PLACE_BUFFER, /* no address now: its headers are kept, it has its turn later */
	PLACE_DEFER,  /* no address now: the sender is asked to come back, or the payload is copied
		       */
};

/* A flow, as its transport sees it when a packet comes. Positions count from the flow's cursor (the
 * first one not yet taken in order), in the transport's units: packets of a reliable connection,
 * bytes of a stream. */
struct place_flow {
	int64_t reach;  /* end of what may be taken ahead of the cursor; 0: only in order */
	int64_t posted; /* end of what has a destination */
	enum place_verdict unmatched; /* what the transport does with what has none */
};

struct place_decision {
	enum place_verdict verdict;
	uint32_t skip; /* PLACE_ACCEPT: units at the packet's start that were taken before */
};

/* A packet at position `at`, len units long, len > 0. */
struct place_decision place_decide(const struct place_flow *flow, int64_t at, uint32_t len);

#endif
