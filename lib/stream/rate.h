/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/stream: at what rate a path delivers, seen from its sender (draft-ietf-ccwg-bbr, 4.1;
 * Linux, tcp_rate.c). Each segment carries what had been delivered when it was sent; when it is
 * delivered, the difference over the time of it is a sample. Bytes, ns, positions of lib/stream. */
#ifndef STREAM_RATE_H
#define STREAM_RATE_H

#include "lib/stream/segs.h"

struct rate {
	uint64_t delivered, delivered_at; /* of all of the connection; when last */
	uint64_t first_sent;              /* what the next sample's sending begins with */
	uint64_t limited_to; /* segments sent before this has been delivered: the program had no
			      * more to send; 0: it has */
	bool began;          /* anew: nothing was on its way, and nothing has come since */
};

/* What an acknowledgement tells: of its segments, the one that was sent last counts. */
struct rate_sample {
	uint64_t bytes_per_s; /* 0: none */
	uint64_t delivered;   /* when that one was sent */
	uint64_t at, delivered_at, sending;
	bool limited, any;
	bool began; /* the first since sending began anew */
};

/* A segment goes out, for the first time or again. idle: nothing was unacknowledged. */
void rate_sent(struct rate *r, struct seg *seg, bool idle, uint64_t now);
/* A segment is newly acknowledged, selectively or not. */
void rate_delivered(
	struct rate *r, struct rate_sample *sample, const struct seg *seg, uint64_t now);
/* All of an acknowledgement has been read. Shorter than a round trip (min_rtt, 0: not known) is no
 * sample: it comes of acknowledgements that were lost or late. */
void rate_finish(struct rate *r, struct rate_sample *sample, uint64_t min_rtt);
/* The windows would let more go than there is: in_flight bytes are on their way. */
void rate_limited(struct rate *r, uint64_t in_flight);

#endif
