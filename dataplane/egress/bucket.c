/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/egress/bucket.h"

static const int64_t BYTE =
	1000000000; /* in units of the level: a rate's bytes per second and ns */

void egress_bucket_init(struct egress_bucket *b, uint64_t rate, uint64_t depth, uint64_t now)
{
	*b = (struct egress_bucket){rate, depth, (int64_t)depth * BYTE, now};
}

int64_t egress_bucket_left(struct egress_bucket *b, uint64_t now)
{
	const int64_t full = (int64_t)b->depth * BYTE;
	uint64_t missing;

	if (b->rate == 0)
		return INT64_MAX;
	missing = (uint64_t)(full - b->level);
	/* Not elapsed * rate: that may not fit after a long pause. */
	if (now - b->at > missing / b->rate)
		b->level = full;
	else
		b->level += (int64_t)((now - b->at) * b->rate);
	b->at = now;
	return b->level <= 0 ? 0 : (b->level + BYTE - 1) / BYTE;
}

void egress_bucket_take(struct egress_bucket *b, uint64_t bytes)
{
	if (b->rate != 0)
		b->level -= (int64_t)bytes * BYTE;
}

uint64_t egress_bucket_when(const struct egress_bucket *b)
{
	if (b->rate == 0 || b->level > 0)
		return b->at;
	return b->at + (uint64_t)-b->level / b->rate + 1;
}
