/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/stream: congestion control, between a connection's loss recovery (recover.c) and the
 * ways to find its window. A way is told what every acknowledgement delivered and is asked when
 * segments were lost; it never sees a segment, a timer or a clock. Bytes, ns. */
#ifndef STREAM_CONGESTION_H
#define STREAM_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/stream/rate.h"
#include "lib/stream/stream.h"

enum { CC_MIN_SEGMENTS = 2, CC_MAX_WINDOW = 1 << 30 };

struct cubic {
	double w_max, k, w_est, origin; /* segments; k in seconds */
	uint64_t epoch;                 /* 0: none has begun */
	uint64_t prior;                 /* the window before the cut */
	double was_max;                 /* w_max before it */
};

struct delay {
	uint64_t base;              /* least round trip of the connection; 0: not known */
	uint64_t least;             /* of this round */
	uint64_t total, round_end;  /* bytes delivered */
	uint64_t seen, lost, share; /* bytes; share of them lost, of a million, smoothed */
};

struct bbr {
	enum { BBR_STARTUP, BBR_DRAIN, BBR_PROBE_BW, BBR_PROBE_RTT } mode;
	uint16_t pace_gain, window_gain; /* of 256; 0: nothing was acknowledged yet */
	uint8_t phase, bw_rounds, extra_rounds, full_rounds;
	bool round_begins, limited; /* the last acknowledgement's */
	bool full;                  /* the path has been found */
	bool busy, recovering;      /* losses are being repaired; without a timeout */
	bool conserving;            /* what has left is replaced, no more */
	bool probe_round;
	uint64_t bw[2];     /* most that was delivered in these rounds and in those before: bytes/s
			     */
	uint64_t round_end; /* bytes delivered */
	uint64_t full_bw;
	uint64_t min_rtt, min_rtt_at, phase_at, probe_end;
	uint64_t limited_to; /* bytes delivered: samples before say nothing */
	uint64_t prior;      /* the window before a recovery */
	/* Acknowledgements that come together: what came since burst_at, and most that was more
	 * than the rate, in these rounds and in those before (extra_rounds: also such as say
	 * nothing of the rate). */
	uint64_t burst, burst_at, extra[2];
};

struct congestion {
	const struct cc_ops *ops;
	uint64_t cwnd, ssthresh;
	uint32_t mss, tolerance; /* of a million: stream_config */
	uint64_t delay_target;
	uint64_t pace;    /* bytes/s; 0: whatever the window lets go */
	uint64_t quantum; /* bytes that may go at once when the turn was late */
	uint32_t seed;    /* some number of the connection's */
	union {
		struct cubic cubic;
		struct delay delay;
		struct bbr bbr;
	};
};

/* What an acknowledgement said. */
struct cc_ack {
	uint64_t now, delivered, lost;
	uint64_t rtt, srtt;             /* rtt 0: no sample in it */
	uint64_t flight, flight_before; /* on their way, now and before it came */
	uint64_t total;                 /* delivered since the connection began */
	struct rate_sample rate;
	bool limited; /* the window was what held the sender back */
	bool recovering, timed_out;
};

struct cc_ops {
	const char *name;
	/* While losses are repaired acked() sets the window, too; else PRR does. */
	bool own_recovery;
	void (*acked)(struct congestion *cc, const struct cc_ack *ack);
	/* Segments were lost, or the timer has run out: sets ssthresh. flight: bytes sent and not
	 * acknowledged. At most once per recovery. */
	void (*lost)(struct congestion *cc, uint64_t flight, bool timeout, uint64_t now);
	/* Nothing had been lost. cwnd and ssthresh have been put back. */
	void (*undo)(struct congestion *cc);
};

extern const struct cc_ops cc_newreno, cc_cubic, cc_delay, cc_bbr;

void cc_init(struct congestion *cc, const struct stream_config *config, uint32_t mss);

static inline uint64_t cc_least(const struct congestion *cc)
{
	return CC_MIN_SEGMENTS * (uint64_t)cc->mss;
}

/* Slow start (RFC 5681, 3.1): what of the bytes delivered is left when it ends. */
uint64_t cc_slow_start(struct congestion *cc, uint64_t delivered);

#endif
