/* SPDX-License-Identifier: BSD-3-Clause */
/* Network-signal congestion control, "uet-1.0-nscc" (Ultra Ethernet 1.0, 3.6.13), on MRC's signals:
 * a window in bytes for all that goes to one destination. Acknowledged bytes come from the SACKs'
 * running total, delay from reflected time stamps, marks from ECN, and trimmed or lost packets are
 * told one by one. No clock, no floats on the packet path: rates of the configuration are converted
 * once to 16.16 fixed point.
 *
 * Several senders may share one: then what is on the way is the sum of what each of them has there,
 * and each remembers its part (mine).
 *
 * A packet counts with its UDP length + 40 here and at the responder. Times are nanoseconds. One
 * owner. */
#ifndef MRC_NSCC_H
#define MRC_NSCC_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/mrc/settings.h"

#define NSCC_NAME "uet-1.0-nscc"

/* What an operator may set, in the order of the controller API. 0: derived from the link. */
struct nscc_config {
	bool disable_qa;
	uint32_t adjust_bytes;     /* fulfil increases after so many bytes */
	uint32_t adjust_period_ns; /* or so much time */
	uint32_t base_rtt_ns;
	float eta;         /* bytes per adjust period */
	float fi;          /* bytes per window, while delay is high and nothing is marked */
	float fi_scale;    /* of the bytes acknowledged, in fast increase */
	float gamma;       /* share of the excess delay that a decrease takes off */
	float max_md_jump; /* least that a decrease leaves of the window, as a share */
	uint32_t max_cwnd; /* bytes */
	uint8_t qa_gate;   /* quick adapt if less than max_cwnd >> qa_gate came through */
	uint32_t qa_threshold_ns;
	uint32_t target_ns; /* queueing delay aimed at */
};

/* The link that defaults are derived from. */
struct nscc_link {
	uint64_t bits_per_s;
	uint32_t mtu;                        /* largest packet, headers included, bytes */
	bool trims;                          /* its switches trim */
	const struct mrc_settings *settings; /* by how much; NULL: the defaults */
};

struct nscc {
	/* Constant after nscc_init. */
	uint32_t mtu, max_cwnd, target_ns, period_ns, adjust_bytes, eta, fi, qa_threshold_ns;
	uint32_t alpha_q16, fi_scale_q16, gamma_q16, md_q16;
	uint32_t fast_ns, low_bytes;
	uint8_t qa_gate;
	bool qa;

	uint32_t base_rtt_ns; /* the least that was seen */
	uint32_t cwnd;
	int64_t inflight;
	uint64_t parts;      /* sum of the senders' */
	uint32_t saved_cwnd; /* from before the receiver's penalty; 0: none */
	uint64_t avg_delay_ns;
	uint64_t inc_bytes; /* bytes squared, until the next fulfil */
	uint64_t received, achieved, fi_count;
	bool increasing, trigger_qa;
	uint64_t last_adjust, last_decrease, qa_end;
	uint64_t to_ignore, ignored;
};

/* 0, or -EINVAL (nothing made): a link without rate or MTU, a negative or not finite number, gamma
 * or max_md_jump above 1, a gate of 32 or more, a max_cwnd below the MTU. */
int nscc_init(struct nscc *cc, const struct nscc_config *config, const struct nscc_link *link);

bool nscc_may_send(const struct nscc *cc, uint32_t bytes);
/* Whether the packet should ask for a SACK at once, so that the window does not run dry. */
bool nscc_want_ack(const struct nscc *cc, bool last);

/* Whether both have the same parameters: who has them may share the other. What they have seen does
 * not count. */
bool nscc_same_rules(const struct nscc *a, const struct nscc *b);

/* Every packet that leaves, retransmissions too. mine: the sender's part, 0 at first. */
void nscc_sent(struct nscc *cc, uint64_t *mine, uint32_t bytes);

struct nscc_sack {
	uint32_t bytes; /* newly received, may be 0 */
	bool has_rtt;
	uint64_t rtt_ns; /* now - the reflected time stamp */
	bool marked;
	uint8_t penalty; /* 1/128 of bytes */
	bool restore;
};
void nscc_sack(struct nscc *cc, const struct nscc_sack *sack, uint64_t now);

void nscc_trimmed(struct nscc *cc, uint32_t bytes, uint64_t now);
void nscc_lost(struct nscc *cc, uint32_t bytes);
/* Refused for another reason: no signal of congestion. */
void nscc_refused(struct nscc *cc, uint32_t bytes);

/* The sender's part recomputed from what is really unacknowledged, so that lost counters cannot
 * leak window. 0: it has left. */
void nscc_set_inflight(struct nscc *cc, uint64_t *mine, uint64_t bytes);
/* Of the window, what falls to a sender by its part of what is on the way; all, if it is the only
 * one. */
uint32_t nscc_share(const struct nscc *cc, uint64_t mine);

/* Bytes that a responder's counter has moved on by, from two values of 24 bits in units of 256; 0
 * if it is an older one. */
uint32_t nscc_received(uint32_t last_units, uint32_t units);

#endif
