/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: the window of one flow, bytes that may be unacknowledged. It starts small,
 * and becomes twice as large as long as that pays: a path that is not full yet gives a higher rate
 * for more bytes under way, one that is full a longer queue. So it ends between one and a half and
 * about three times what fills the path, however long that is, and the sender's memory that is
 * under way stays in its caches. Rates are measured in rounds: from when a packet leaves that asks
 * for an acknowledgement until that is here. No clock: times are arguments, nanoseconds. */
#ifndef RNIC_CWND_H
#define RNIC_CWND_H

#include <stdbool.h>
#include <stdint.h>

enum { CWND_MAX = 1 << 30 };

struct cwnd {
	uint32_t bytes; /* the window */
	uint32_t least; /* where it starts, and never below; 0: no window */
	uint64_t best;  /* bytes/s: the highest rate of a round, as far as it still counts */
	uint8_t slow;   /* rounds in a row of less than half of that */
	bool down;      /* it is looked for how much smaller it may be */
	bool fresh;     /* it has changed: the round after that tells of both */
	bool timing;    /* a round is under way: */
	bool wanted;    /* the window was all used, and more would have been sent; */
	uint32_t from;  /* bytes acknowledged when it began, modulo 2^32; */
	uint64_t end;   /* sequence number up to which is to be acknowledged; */
	uint64_t begun; /* when */
};

/* At most CWND_MAX. */
void cwnd_init(struct cwnd *w, uint32_t least);

static inline bool cwnd_is_on(const struct cwnd *w)
{
	return w->least != 0;
}

/* A packet that asks has left for the first time. next: behind it; acked: bytes acknowledged. */
void cwnd_sent(struct cwnd *w, uint64_t next, uint32_t acked, uint64_t now);
/* Packets before una are acknowledged. */
void cwnd_acked(struct cwnd *w, uint64_t una, uint32_t acked, uint64_t now);
/* The packet before next leaves once more: which of the two is acknowledged is not known. */
void cwnd_again(struct cwnd *w, uint64_t next);
/* More would be sent now, if the window were larger. */
static inline void cwnd_want(struct cwnd *w)
{
	w->wanted = true;
}
/* The path is congested: half of it, and of what is expected of it. */
void cwnd_cut(struct cwnd *w);
/* Nothing was heard for long, or it is another path: from the start. */
void cwnd_restart(struct cwnd *w);

#endif
