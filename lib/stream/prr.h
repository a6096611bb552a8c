/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/stream: Proportional Rate Reduction (RFC 6937, with the bound "slow start" of 3 while
 * recovery makes progress): while losses are repaired, what is sent follows what is delivered, so
 * that the window arrives at ssthresh when the recovery does at its end. Bytes. */
#ifndef STREAM_PRR_H
#define STREAM_PRR_H

#include <stdbool.h>
#include <stdint.h>

struct prr {
	uint64_t delivered, out, flight; /* since, and at, the beginning */
};

static inline void prr_begin(struct prr *p, uint64_t flight)
{
	*p = (struct prr){.flight = flight > 0 ? flight : 1};
}

/* An acknowledgement delivered so many bytes: the window from now on. progress: it moved the left
 * edge, and no more was found lost. pipe: bytes on their way. */
uint64_t prr_window(struct prr *p, uint64_t delivered, bool progress, uint64_t pipe,
	uint64_t ssthresh, uint32_t mss);

static inline void prr_sent(struct prr *p, uint64_t bytes)
{
	p->out += bytes;
}

#endif
