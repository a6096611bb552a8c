/* SPDX-License-Identifier: BSD-3-Clause */
/* Which packets are marked: RED (RFC 2309, RFC 7141) on the length of the queue at this moment, as
 * DCQCN and DCTCP want it, in bytes. None below min, all from max on, in between with a probability
 * that grows evenly. The random number is an argument. */
#ifndef DATAPLANE_EGRESS_RED_H
#define DATAPLANE_EGRESS_RED_H

#include <stdbool.h>
#include <stdint.h>

struct egress_red {
	uint64_t min, max; /* bytes, min <= max < 2^32; max 0: none is marked */
};

/* queued: bytes before the packet. random: even over 0..2^32-1. */
static inline bool egress_red_marks(const struct egress_red *r, uint64_t queued, uint32_t random)
{
	if (r->max == 0 || queued < r->min)
		return false;
	return queued >= r->max || (uint64_t)random * (r->max - r->min) < (queued - r->min) << 32;
}

#endif
