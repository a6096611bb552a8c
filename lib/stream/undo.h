/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/stream: what was sent again for nothing. A recovery remembers the window before it;
 * it is undone when the peer has said of every byte that was sent again that it had it twice (RFC
 * 3708, by RFC 2883's reports), or when after a timeout something comes that was not sent again
 * (F-RTO, RFC 5682, 3.1: the variant with SACK). */
#ifndef STREAM_UNDO_H
#define STREAM_UNDO_H

#include <stdbool.h>
#include <stdint.h>

enum frto { FRTO_OFF, FRTO_FIRST, FRTO_SECOND };

struct undo {
	uint64_t cwnd, ssthresh; /* before */
	uint64_t from, to;       /* positions that the recovery is about */
	uint64_t again;          /* bytes sent again of which there is no report yet */
	enum frto frto;          /* which acknowledgement after the timeout is awaited */
};

void undo_begin(
	struct undo *u, uint64_t cwnd, uint64_t ssthresh, uint64_t una, uint64_t nxt, bool frto);
/* [from, to) is sent again. */
void undo_sent(struct undo *u, uint64_t from, uint64_t to);
/* The peer had [from, to) twice. True: all that was sent again was for nothing. */
bool undo_twice(struct undo *u, uint64_t from, uint64_t to);
/* An acknowledgement after a timeout. moved: of the left edge. original: it is the first to tell of
 * something of before the timeout that was not sent again. True: the timeout was for nothing. */
bool undo_frto(struct undo *u, uint64_t una, bool moved, bool original);
/* Of the window before, nothing is kept. */
static inline void undo_forget(struct undo *u)
{
	*u = (struct undo){.again = 0};
}

#endif
