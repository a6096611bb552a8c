/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/place/decide.h"

/* The letters are those of the figure. */
struct place_decision place_decide(const struct place_flow *flow, int64_t at, uint32_t len)
{
	int64_t end = at + len;

	if (end <= 0)
		return (struct place_decision){PLACE_DROP, 0}; /* (b) all of it was taken */
	if (at > 0 && end > flow->reach)
		return (struct place_decision){PLACE_DROP, 0}; /* (d), not remembered here */
	if (end > flow->posted)
		return (struct place_decision){flow->unmatched, 0}; /* (e) */
	/* (a) next in order, (c) some of it was taken, (d) behind a hole. */
	return (struct place_decision){PLACE_ACCEPT, at < 0 ? (uint32_t)-at : 0};
}
