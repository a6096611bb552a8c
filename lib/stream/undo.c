/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/stream/undo.h"

void undo_begin(
	struct undo *u, uint64_t cwnd, uint64_t ssthresh, uint64_t una, uint64_t nxt, bool frto)
{
	*u = (struct undo){.cwnd = cwnd,
		.ssthresh = ssthresh,
		.from = una,
		.to = nxt,
		.frto = frto ? FRTO_FIRST : FRTO_OFF};
}

void undo_sent(struct undo *u, uint64_t from, uint64_t to)
{
	if (from >= u->from && to <= u->to)
		u->again += to - from;
}

bool undo_twice(struct undo *u, uint64_t from, uint64_t to)
{
	if (from < u->from || to > u->to || from >= to || u->again == 0)
		return false;
	u->again -= to - from < u->again ? to - from : u->again;
	return u->again == 0;
}

bool undo_frto(struct undo *u, uint64_t una, bool moved, bool original)
{
	switch (u->frto) {
	case FRTO_OFF:
		return false;
	case FRTO_FIRST:
		/* All of it, or nothing: neither says which one came. */
		u->frto = moved && una < u->to ? FRTO_SECOND : FRTO_OFF;
		return false;
	case FRTO_SECOND:
	default:
		u->frto = FRTO_OFF;
		return original;
	}
}
