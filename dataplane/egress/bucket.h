/* SPDX-License-Identifier: BSD-3-Clause */
/* Token bucket: a rate, and how much may go at once after a pause. While there is a token left a
 * packet may go, whatever its length; what it takes too much is waited for before the next. So a
 * window of t seconds sees at most rate t + depth + one packet, and the rate is exact in the long
 * run. Integers; the time is an argument and never runs back. */
#ifndef DATAPLANE_EGRESS_BUCKET_H
#define DATAPLANE_EGRESS_BUCKET_H

#include <stdint.h>

struct egress_bucket {
	uint64_t rate;  /* bytes per second, up to 2^37; 0: no limit */
	uint64_t depth; /* bytes, 1..2^31 */
	int64_t level;  /* 1e-9 bytes */
	uint64_t at;    /* ns, when level was right */
};

/* Full. */
void egress_bucket_init(struct egress_bucket *b, uint64_t rate, uint64_t depth, uint64_t now);

/* What may go now, in bytes; above 0: at least one packet. INT64_MAX without a limit. */
int64_t egress_bucket_left(struct egress_bucket *b, uint64_t now);

void egress_bucket_take(struct egress_bucket *b, uint64_t bytes);

/* When something may go: in the past if it may now. Good until the next take. */
uint64_t egress_bucket_when(const struct egress_bucket *b);

#endif
