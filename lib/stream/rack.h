/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/stream: RACK and the tail loss probe (RFC 8985). A segment is lost when one that was
 * sent later has come, and a time has passed in which it could have been overtaken; when nothing
 * comes at all, the last one is sent once more, before the retransmission timer would run out.
 * Times in ns, arguments; positions of lib/stream. */
#ifndef STREAM_RACK_H
#define STREAM_RACK_H

#include "lib/stream/segs.h"

enum { RACK_PERSIST = 16, RACK_DUP_THRESH = 3, RACK_MAX_MULT = 64 };

struct rack {
	/* Of the segment delivered that was sent last. */
	uint64_t sent, end, rtt;
	uint64_t fack; /* the highest end that was delivered */
	bool reordering_seen;
	uint64_t dsack_round; /* 0: none */
	uint32_t mult, persist;
	/* Least round trip of the last two epochs. */
	uint64_t min, min_before, epoch;
};

void rack_init(struct rack *r);
uint64_t rack_min_rtt(const struct rack *r); /* 0: not known */
void rack_rtt(struct rack *r, uint64_t rtt, uint64_t now);
/* A segment is newly acknowledged, selectively or not (6.2, steps 2 and 3). */
void rack_delivered(struct rack *r, const struct seg *seg, uint64_t now);
/* The peer had one of ours twice (6.2, step 4): at most one step wider per round. */
void rack_dsack(struct rack *r, uint64_t una, uint64_t nxt);
/* A recovery is over. */
void rack_recovered(struct rack *r);
/* How long a segment may be overtaken. n_sacked: segments that the peer has behind a hole. */
uint64_t rack_window(const struct rack *r, bool recovering, uint32_t n_sacked, uint64_t srtt);
/* Of a log, what is lost by now becomes SEG_LOST (step 5); *again: one of them for the second time.
 * Returns when to look again, 0: nothing is waited for. */
uint64_t rack_losses(
	const struct rack *r, struct segs *log, uint64_t window, uint64_t now, bool *again);
/* The retransmission timer has run out (6.3): the first, and all that are older than a round trip
 * and the window. */
void rack_timeout(const struct rack *r, struct segs *log, uint64_t window, uint64_t now);

/* ---- tail loss probe ---- */

struct tlp {
	uint64_t end; /* what has been sent when the probe was; 0: none is out */
	bool retransmitted;
};

/* Time from now to the probe (7.2). n: segments in flight. ack_delay: of a peer that waits for
 * another segment. */
uint64_t tlp_timeout(uint64_t srtt, uint32_t n, uint64_t least, uint64_t ack_delay);
/* An acknowledgement came (7.4). True: the probe has repaired a loss, which is to be answered as
 * one. */
bool tlp_acked(struct tlp *t, uint64_t ack, bool dsack, bool plain_dup);

#endif
